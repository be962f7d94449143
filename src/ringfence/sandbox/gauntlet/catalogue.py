"""The shipped attacks, read from their files."""

import os

from ringfence.sandbox.gauntlet.attack import FAMILIES, Attack, read_attack

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "attacks")


def load(families: tuple[str, ...] = FAMILIES) -> tuple[Attack, ...]:
    """Every attack of the families, in the families' order and then by name. Raises ValueError for a bad header."""
    found = []
    for family in families:
        folder = os.path.join(FOLDER, family)
        for program in sorted(os.listdir(folder)):
            if program.endswith((".py", ".sh")):
                with open(os.path.join(folder, program), encoding="utf-8") as file:
                    found.append(read_attack(family, program, file.read()))
    return tuple(found)


def path_of(attack: Attack) -> str:
    """Where the attack's program lies."""
    folder = attack.family if attack.family in FAMILIES else ""
    return os.path.join(FOLDER, folder, attack.program)
