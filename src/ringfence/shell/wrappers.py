"""Programs that start other programs: where the command that they start begins, and how it runs. Pure.

Each wrapper is read by its own options. What cannot be read surely yields the likeliest reading *and* a reason, so that
deny and ask still see the wrapped command while allow does not hold.
"""

import re
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from ringfence.shell.syntax import Word
from ringfence.shell.wrapper_options import Wrapped, assigns, base_name, joined, skip_options
from ringfence.shell.wrapper_scripts import evaluate, parallel, script, shell, ssh, su, trap, watch
from ringfence.shell.wrapper_specs import RUNNERS, SHELLS, SPECS, Spec
from ringfence.shell.wrapper_words import env, find, xargs

_SUDO_SHELL = re.compile(r"-[a-zA-Z]*[si][a-zA-Z]*|--login|--shell")


def wrapped(words: Sequence[Word]) -> list[Wrapped] | None:
    """The commands that ``words`` starts besides itself; None where it is no wrapper at all."""
    if not words or words[0].dynamic:
        return None
    name = base_name(words[0])
    if name in SHELLS:
        return shell(words)
    if (special := _SPECIAL.get(name)) is not None:
        return special(words)
    if (spec := SPECS.get(name)) is not None:
        return generic(words, spec, 1)
    if name in _RUNNER_NAMES:
        return runner(name, words)
    return None


def generic(words: Sequence[Word], spec: Spec, first: int) -> list[Wrapped]:
    """The command behind a wrapper's own options and operands."""
    index, why = skip_options(words, first, spec)
    assigned: list[Word] = []
    operands = spec.operands
    while index < len(words):
        word = words[index]
        if spec.assignments and assigns(word):
            assigned.append(word)
        elif operands:
            operands -= 1
        else:
            break
        index += 1
    if index >= len(words):
        return []
    return [
        Wrapped(
            words=tuple(words[index:]), assigned=tuple(assigned), why=why, privileged=spec.privileged,
            covered=spec.covered,
        )
    ]  # fmt: skip


def sudo(words: Sequence[Word]) -> list[Wrapped]:
    """``sudo``: its command, also through a shell."""
    found = generic(words, SPECS["sudo"], 1)
    options = [word.text for word in words[1 : len(words) - (len(found[0].words) if found else 0)]]
    if found and any(_SUDO_SHELL.fullmatch(option) for option in options):
        return [*found, *joined(found[0].words, privileged=True)]
    return found


def command_builtin(words: Sequence[Word]) -> list[Wrapped] | None:
    """``command -v`` and ``-V`` only look a name up."""
    for word in words[1:]:
        if not word.text.startswith("-") or word.dynamic or word.text == "--":
            break
        if re.fullmatch(r"-p*[vV][pvV]*", word.text):
            return None
    return generic(words, SPECS["command"], 1)


def flock(words: Sequence[Word]) -> list[Wrapped]:
    """``flock``: a command or a script."""
    for index, word in enumerate(words[1:-1], 1):
        if word.text in ("-c", "--command"):
            return [replace(item, covered=True) for item in joined(words[index + 1 : index + 2])]
    return generic(words, SPECS["flock"], 1)


def npx(words: Sequence[Word]) -> list[Wrapped]:
    """``npx``: a command of a package."""
    for index, word in enumerate(words[1:-1], 1):
        if word.text in ("-c", "--call"):
            return [replace(item, covered=True) for item in joined(words[index + 1 : index + 2])]
    found = generic(words, SPECS["npx"], 1)
    return [replace(item, why="") for item in found]


def runner(name: str, words: Sequence[Word]) -> list[Wrapped] | None:
    """``uv run``, ``poetry run``, ``docker exec`` and the like."""
    index = 1
    path: tuple[str, ...] = (name,)
    while index < len(words) and len(path) < 3:
        word = words[index]
        if word.dynamic:
            return None
        index += 1
        if word.text.startswith("-"):
            continue
        path = (*path, word.text)
        if path in RUNNERS:
            return [replace(item, why="") for item in generic([words[0], *words[index:]], RUNNERS[path], 1)]
    return None


_SPECIAL: dict[str, Callable[[Sequence[Word]], list[Wrapped] | None]] = {
    "env": env, "xargs": xargs, "gxargs": xargs, "find": find, "gfind": find, "su": su, "runuser": su, "sudo": sudo, "ssh": ssh,
    "watch": watch, "parallel": parallel, "script": script, "eval": evaluate, "trap": trap, "command": command_builtin,
    "flock": flock, "npx": npx,
}  # fmt: skip
_RUNNER_NAMES = frozenset(path[0] for path in RUNNERS)
NAMES = frozenset({*_SPECIAL, *SPECS, *_RUNNER_NAMES, *SHELLS})
"""Every program that this file reads."""
