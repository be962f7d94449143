"""Identity maps: which id on disk a box's user stands for. Made once per mapping by the launcher started by root.

The map swaps the worktree's owner with the box's user and leaves every other id alone, so that ownership on disk
stays what it was and the box's user is never seen there.
"""

import os

from ringfence.sandbox.inner import kernel
from ringfence.sandbox.inner.beside import Beside, wait

TOP = 0xFFFFFFFF
"""Ids end here: the last one is the kernel's "no id"."""


def swap(first: int, second: int) -> list[tuple[int, int, int]]:
    """Extents (on disk, in the box, count) that swap two ids and keep the rest.

    >>> swap(0, 5)
    [(0, 5, 1), (1, 1, 4), (5, 0, 1), (6, 6, 4294967289)]
    """
    if first == second:
        return [(0, 0, TOP)]
    low, high = sorted((first, second))
    extents = [(0, 0, low), (low, high, 1), (low + 1, low + 1, high - low - 1), (high, low, 1)]
    extents.append((high + 1, high + 1, TOP - high - 1))
    return [extent for extent in extents if extent[2] > 0]


def make(owner: tuple[int, int], user: tuple[int, int]) -> int:
    """A descriptor of a user namespace that carries the two maps. Needs root. Raises OSError."""
    holder = Beside(wait, kernel.CLONE_NEWUSER)
    try:
        for name, pair in (("uid_map", (owner[0], user[0])), ("gid_map", (owner[1], user[1]))):
            text = "".join(f"{a} {b} {count}\n" for a, b, count in swap(*pair))
            with open(f"/proc/{holder.pid}/{name}", "w", encoding="ascii") as file:
                file.write(text)
        return os.open(f"/proc/{holder.pid}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
    finally:
        holder.close()
