"""The processes of a box as the host sees them."""


def tree(root: int) -> tuple[int, ...]:
    """``root`` and everything below it, as far as it can be read at this moment."""
    found, waiting = [], [root]
    while waiting:
        pid = waiting.pop()
        try:
            with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
                children = [int(word) for word in file.read().split()]
        except OSError:
            continue
        found.append(pid)
        waiting += children
    return tuple(found)
