"""Descriptors of the launcher, several at once: all of them or none. No names, no contents."""

import os
from collections.abc import Iterable


def pipes(count: int) -> list[tuple[int, int]]:
    """So many. Raises OSError, and leaves none then."""
    made: list[tuple[int, int]] = []
    try:
        while len(made) < count:
            made.append(os.pipe2(os.O_CLOEXEC))
    except OSError:
        for pair in made:
            close_all(pair)
        raise
    return made


def close_all(descriptors: Iterable[int]) -> None:
    """Every one of them."""
    for descriptor in descriptors:
        os.close(descriptor)
