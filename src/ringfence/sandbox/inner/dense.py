"""Makes what is loaded next lie close together, so that a fork touches few pages of it.

Whatever a process touches of what it shares with its parent, counts of references alone, costs it a page of its own.
"""

SMALLEST, LARGEST = 16, 512
"""Bytes: the sizes that the interpreter keeps in pools of one size, in steps of the smallest."""
MANY = 20_000
HEADER, PAGE = 48, 4096
"""A pool begins at a page's start with its header; its first object follows."""


def fill() -> list[object]:
    """Objects that take every free place between those that are there; what is made after them is made on fresh pages.

    Keep them for as long as the process lives. Elsewhere than in CPython's own pools it does nothing of use, and no harm.
    """
    kept: list[object] = []
    for size in range(SMALLEST, LARGEST + 1, SMALLEST):
        row = last = 0
        for _ in range(MANY):
            one = _of(size)
            kept.append(one)
            first = id(one) % PAGE == HEADER
            row = row + 1 if row and id(one) == last + size else int(first)
            last = id(one)
            if row == 3:  # three in a row from a pool's first place on: it is a fresh pool
                break
    return kept


def _of(size: int) -> object:
    """An object of this many bytes of which no spare ones are kept ready."""
    if size == SMALLEST:
        return object()
    return complex(1.0, 1.0) if size == 2 * SMALLEST else bytes(size - b"".__sizeof__())
