"""Programs that start other programs: where the command that they start begins, and how it runs. Pure.

Each wrapper is read by its own options. What cannot be read surely yields the likeliest reading *and* a reason, so that
deny and ask still see the wrapped command while allow does not hold.
"""

import re
from collections.abc import Callable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from ringfence.shell.syntax import Word
from ringfence.shell.wrapper_specs import RUNNERS, SHELLS, SPECS, Spec
from ringfence.shell.wrapper_specs import spec as make_spec


class Wrapped(Struct, frozen=True, kw_only=True, gc=False):
    """One command that a wrapper starts: either ``words``, or ``script`` to be read as a line of its own."""

    words: tuple[Word, ...] = ()
    script: str | None = None
    at: Word | None = None
    """The word that holds the script, for its place."""
    reader: str = "sh"
    assigned: tuple[Word, ...] = ()
    """``NAME=value`` words that are set for it."""
    directory: str | None = "."
    """Where it runs, seen from the wrapper; None: not known."""
    remote: bool = False
    privileged: bool = False
    extra: bool = False
    covered: bool = False
    why: str = ""
    """Why this reading is not sure; empty where it is."""


_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=", re.ASCII)
Unwrap = Callable[[Sequence[Word]], list[Wrapped]]


def base_name(word: Word) -> str:
    """The program's name without its folder."""
    return word.text.rsplit("/", 1)[-1]


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
        if spec.assignments and _sets(word):
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


def skip_options(words: Sequence[Word], index: int, spec: Spec) -> tuple[int, str]:
    """The index of the first word that is no option, and a reason where the options are not surely read."""
    why = ""
    while index < len(words):
        word = words[index]
        text = word.text
        if _doubtful(word):
            return index, why or f"`{word.raw}` may be an option"
        if text == "--":
            return index + 1, why
        if not text.startswith("-") or text == "-":
            return index, why
        index += 1
        if text.startswith("--"):
            name, equals, _ = text[2:].partition("=")
            if name in spec.long or (not equals and _abbreviates(name, spec.long)):
                index += 0 if equals else 1
            elif name not in spec.long_flags and not _abbreviates(name, spec.long_flags):
                why = why or f"`{text}` is not a known option of `{words[0].text}`"
            continue
        if spec.numbers and re.fullmatch(r"--?\d+", text):
            continue
        taken = _cluster(text, spec)
        if taken is None:
            why = why or f"`{text}` is not a known option of `{words[0].text}`"
        elif taken:
            index += 1
    return index, why


def _doubtful(word: Word) -> bool:
    """A word of unknown value that may turn out to be an option."""
    if not word.dynamic:
        return False
    if word.prefix:
        return word.prefix.startswith("-")
    return not word.values or any(value.startswith("-") for value in word.values)


def _sets(word: Word) -> bool:
    """``NAME=value``, known or not."""
    return bool(_ASSIGNMENT.match(word.prefix if word.dynamic else word.text))


def _abbreviates(name: str, names: frozenset[str]) -> bool:
    return bool(name) and sum(candidate.startswith(name) for candidate in names) == 1


def _cluster(text: str, spec: Spec) -> bool | None:
    """Whether a cluster of short options takes the next word; None where one is not known."""
    for position, letter in enumerate(text[1:], 1):
        if letter in spec.short:
            return position == len(text) - 1
        if letter not in spec.flags:
            return None
    return False


# Wrappers with words of their own.


def shell(words: Sequence[Word]) -> list[Wrapped] | None:
    """``bash -c SCRIPT`` in every spelling of its flags; None where no ``-c`` is given."""
    name = base_name(words[0])
    index, takes_script, why = 1, False, ""
    while index < len(words):
        word = words[index]
        text = word.text
        if _doubtful(word):
            why = why or f"`{word.raw}` may be an option"
            break
        if text in ("--", "-"):
            index += 1
            break
        if not text.startswith(("-", "+")):
            break
        index += 1
        if text.startswith("--"):
            if text in ("--rcfile", "--init-file"):
                index += 1
                why = why or f"`{text}` names a file of commands"
            elif text not in (
                "--norc",
                "--noprofile",
                "--posix",
                "--login",
                "--verbose",
                "--noediting",
                "--restricted",
            ):
                why = why or f"`{text}` is not a known option of `{name}`"
            continue
        letters = text[1:]
        if "c" in letters and text[0] == "-":
            takes_script = True
        index += letters.count("o") + letters.count("O")
        if set(letters) - set("cexuilnvfhoOabEBCpmrsT"):
            why = why or f"`{text}` is not a known option of `{name}`"
        if "O" in letters or "s" in letters or "i" in letters or "a" in letters:
            why = why or f"`{text}` changes how `{name}` reads its script"
    if not takes_script:
        return None
    if index >= len(words):
        return []
    script = words[index]
    if script.dynamic or script.tilde:
        likely = re.sub(r"^([\"'])(.*)\1$", r"\2", script.raw, flags=re.DOTALL)
        return [Wrapped(script=likely, at=script, reader=name, why="the script is not known before it runs")]
    return [Wrapped(script=script.text, at=script, reader=name, why=why)]


def reads_input(words: Sequence[Word]) -> bool:
    """Whether a shell without ``-c`` gets its script from standard input rather than from a file."""
    index = 1
    while index < len(words):
        word = words[index]
        text = word.text
        if word.dynamic:
            return True
        if text in ("--version", "--help", "--dump-strings", "-D"):
            return False
        if text in ("--", "-"):
            return index + 1 >= len(words)
        if not text.startswith(("-", "+")):
            return False
        if not text.startswith("--") and "s" in text[1:]:
            return True
        index += 2 if text in ("--rcfile", "--init-file") or (text[1:2] != "-" and text.endswith(("o", "O"))) else 1
    return True


def joined(words: Sequence[Word], *, shell_name: str = "sh", **more: object) -> list[Wrapped]:
    """Words that a program joins with blanks and hands to a shell."""
    if not words:
        return []
    unknown = any(word.dynamic or word.tilde for word in words)
    result = Wrapped(
        script=" ".join(word.text for word in words), at=_span(words), reader=shell_name,
        why="the script is not known before it runs" if unknown else "", **more,  # type: ignore[arg-type]
    )  # fmt: skip
    return [result]


def _span(words: Sequence[Word]) -> Word:
    return replace(words[0], end=words[-1].end)


def env(words: Sequence[Word]) -> list[Wrapped]:
    """``env``: options, assignments, then the command; ``-S`` splits a text of its own."""
    index, why, directory = 1, "", "."
    split: tuple[Word, ...] = ()
    unknown_directory = False
    while index < len(words):
        word = words[index]
        text = word.text
        if _doubtful(word):
            why = why or f"`{word.raw}` may be an option"
            break
        if text == "--":
            index += 1
            break
        if not text.startswith("-") or text == "-":
            index += text == "-"
            if text == "-":
                continue
            break
        index += 1
        value: Word | None = None
        name = text
        if text.startswith("--"):
            name, equals, attached = text.partition("=")
            full = [
                known for known in ("--unset", "--chdir", "--split-string", "--ignore-environment", "--null", "--debug",
                                    "--block-signal", "--default-signal", "--ignore-signal", "--list-signal-handling", "--argv0")
                if known.startswith(name)
            ]  # fmt: skip
            name = name if name in full else full[0] if len(full) == 1 else name
            if name in ("--unset", "--chdir", "--split-string", "--argv0"):
                value = replace(word, text=attached) if equals else (words[index] if index < len(words) else None)
                index += not equals
            elif not full:
                why = why or f"`{text}` is not a known option of `env`"
        else:
            match = re.fullmatch(r"-([i0v]*)(?:([uCSPa])(.*))?", text, re.DOTALL)
            if not match:
                why = why or f"`{text}` is not a known option of `env`"
            elif match[2]:
                name = "-" + match[2]
                attached = match[3]
                value = replace(word, text=attached) if attached else (words[index] if index < len(words) else None)
                index += not attached
        if name in ("-C", "--chdir"):
            if value is None or value.dynamic:
                unknown_directory = True
            else:
                directory = value.text
        elif name in ("-S", "--split-string") and value is not None:
            split, why = _split_string(value, why)
            break
    rest = (*split, *words[index:])
    assigned: list[Word] = []
    while rest and (_sets(rest[0]) or (not rest[0].dynamic and "=" in rest[0].text)):
        assigned.append(rest[0])
        rest = rest[1:]
    where = None if unknown_directory else directory
    if not rest:
        return [Wrapped(assigned=tuple(assigned), directory=where, why=why)] if assigned or why else []
    return [Wrapped(words=rest, assigned=tuple(assigned), directory=where, why=why)]


def _split_string(value: Word, why: str) -> tuple[tuple[Word, ...], str]:
    """``env -S``: its own splitting rules; only plain words are surely read."""
    text = value.text
    if value.dynamic:
        return (), why or "the text that env splits is not known before it runs"
    if re.search(r"[\\$#]", text):
        why = why or "`env -S` expands this text in its own way"
    parts = re.findall(r"(?:\"[^\"]*\"|'[^']*'|[^\s\"'])+", text)
    words = tuple(replace(value, text=re.sub(r"[\"']", "", part), raw=part, dynamic=False) for part in parts)
    return words, why


def xargs(words: Sequence[Word]) -> list[Wrapped]:
    """``xargs``: the command gets words of unknown value, at the end or in place of a mark."""
    index, why, replacement = 1, "", ""
    while index < len(words):
        word = words[index]
        text = word.text
        if _doubtful(word):
            why = why or f"`{word.raw}` may be an option"
            break
        if text == "--":
            index += 1
            break
        if not text.startswith("-") or text == "-":
            break
        index += 1
        if text.startswith("--"):
            name, equals, attached = text[2:].partition("=")
            valued = frozenset({"arg-file", "delimiter", "max-args", "max-procs", "max-chars", "process-slot-var"})
            flags = frozenset({"null", "no-run-if-empty", "verbose", "interactive", "exit", "open-tty", "show-limits", "eof", "max-lines"})  # fmt: skip
            if name == "replace":
                replacement = attached or "{}"
            elif name in valued or (len(name) > 2 and _abbreviates(name, valued)):
                index += not equals
            elif name not in flags:
                why = why or f"`{text}` is not a known option of `xargs`"
            continue
        match = re.fullmatch(r"-([0rtpxo]*)(?:([adEILnPsJRS])(.*)|([iel])(.*))?", text, re.DOTALL)
        if not match:
            why = why or f"`{text}` is not a known option of `xargs`"
            continue
        if match[2]:
            value = match[3] or (words[index].text if index < len(words) else "")
            index += not match[3]
            if match[2] in "IJ":
                replacement = value
        elif match[4] == "i":
            replacement = match[5] or "{}"
    rest = list(words[index:])
    if not rest:
        rest = [replace(words[0], text="echo", raw="xargs")]
    if replacement:
        rest = [_inserted(word, replacement) for word in rest]
    return [Wrapped(words=tuple(rest), extra=not replacement, why=why)]


def _inserted(word: Word, mark: str, prefix: str | None = None) -> Word:
    """A word into which something of unknown value is put when it runs."""
    if not mark or mark not in word.text or word.dynamic:
        return word
    head = word.text[: word.text.index(mark)]
    return replace(word, dynamic=True, prefix=head + (prefix or ""), may_split=False, text=word.raw)


def find(words: Sequence[Word]) -> list[Wrapped] | None:
    """``-exec``, ``-execdir``, ``-ok`` and ``-okdir``, with the found path in place of ``{}``."""
    found: list[Wrapped] = []
    index = 1
    while index < len(words):
        text = words[index].text
        index += 1
        if text not in ("-exec", "-execdir", "-ok", "-okdir") or words[index - 1].dynamic:
            continue
        start = index
        while index < len(words):
            word = words[index]
            if word.text == ";" or (word.text == "+" and index > start and words[index - 1].text == "{}"):
                break
            index += 1
        ended = index < len(words)
        plus = ended and words[index].text == "+"
        inside = [word for word in words[start:index] if not (plus and word.text == "{}")]
        directory = None if text.endswith("dir") else "."
        inside = [_inserted(word, "{}", "./" if directory is None else None) for word in inside]
        if inside:
            why = "" if ended else "an -exec that is never closed"
            found.append(Wrapped(words=tuple(inside), directory=directory, extra=bool(plus), why=why))
        index += 1
    return found


def su(words: Sequence[Word]) -> list[Wrapped]:
    """``su -c``: a script run as another user."""
    for index, word in enumerate(words):
        match = re.fullmatch(r"-[a-zA-Z]*c(.*)|--command(?:=(.*))?", word.text, re.DOTALL)
        if match and index:
            attached = match[1] or match[2]
            at = word if attached else words[index + 1] if index + 1 < len(words) else None
            if at is not None:
                return [Wrapped(script=attached or at.text, at=at, privileged=True, why="runs as another user")]
    return [Wrapped(words=(), privileged=True, why="runs as another user")]


def sudo(words: Sequence[Word]) -> list[Wrapped]:
    """``sudo``: its command, also through a shell."""
    found = generic(words, SPECS["sudo"], 1)
    options = [word.text for word in words[1 : len(words) - (len(found[0].words) if found else 0)]]
    if found and any(re.fullmatch(r"-[a-zA-Z]*[si][a-zA-Z]*|--login|--shell", option) for option in options):
        return [*found, *joined(found[0].words, privileged=True)]
    return found


def ssh(words: Sequence[Word]) -> list[Wrapped]:
    """The remote command, and local commands that options name."""
    found: list[Wrapped] = []
    index, why = 1, ""
    hosts = 0
    while index < len(words):
        word = words[index]
        text = word.text
        if word.dynamic or not text.startswith("-") or text == "-":
            if hosts or text == "-":
                break
            hosts = 1
            index += 1
            continue
        if text == "--":
            index += 1
            continue
        index += 1
        match = re.fullmatch(r"-([1246AaCfGgKkMNnqsTtVvXxYy]*)(?:([BbcDEeFIiJLlmOoPpQRSWw])(.*))?", text, re.DOTALL)
        if not match:
            why = why or f"`{text}` is not a known option of `ssh`"
        elif match[2]:
            value = match[3] or (words[index].text if index < len(words) else "")
            at = word if match[3] else words[min(index, len(words) - 1)]
            index += not match[3]
            command = re.match(
                r"\s*(?:proxycommand|localcommand|knownhostscommand)\s*[=\s]\s*(.*)", value, re.IGNORECASE | re.DOTALL
            )
            if match[2] == "o" and command:
                found.append(Wrapped(script=command[1], at=at, why=why))
    if index < len(words):
        found.extend(joined(words[index:], remote=True))
    return found


def watch(words: Sequence[Word]) -> list[Wrapped]:
    """``watch``: its words are joined and handed to sh."""
    spec = make_spec("nqs", "bcdegptwxrCf", "interval equexit shotsdir", "beep color no-color differences errexit chgexit precise no-title no-wrap exec no-rerun")  # fmt: skip
    index, why = skip_options(words, 1, spec)
    direct = any(re.fullmatch(r"-[a-z]*x[a-z]*|--exec", word.text) for word in words[1:index])
    if direct:
        return [Wrapped(words=tuple(words[index:]), why=why)] if index < len(words) else []
    return [replace(item, why=item.why or why) for item in joined(words[index:])]


def parallel(words: Sequence[Word]) -> list[Wrapped]:
    """GNU parallel: the command is a template that a shell reads."""
    index = 1
    while index < len(words) and words[index].text.startswith("-") and words[index].text != "--":
        takes = re.fullmatch(r"-[jnaNISsPLdEC]|--(?:jobs|colsep|arg-file|delay|timeout|tmpdir|results|joblog|max-args|sshlogin|workdir|wd|basefile|return)", words[index].text)  # fmt: skip
        index += 2 if takes else 1
    command = list(words[index:])
    end = next((number for number, word in enumerate(command) if word.text.startswith(":::")), len(command))
    template = command[:end]
    why = "`parallel` builds its commands when it runs"
    if not template:
        return [Wrapped(script=word.text, at=word, why=why) for word in command[end + 1 :] if not word.dynamic] or [
            Wrapped(why=why)
        ]
    return [replace(item, why=why) for item in joined(template)]


def script(words: Sequence[Word]) -> list[Wrapped]:
    """``script -c COMMAND``; without it an interactive shell."""
    for index, word in enumerate(words[1:], 1):
        match = re.fullmatch(r"-[aefqV]*c(.*)|--command(?:=(.*))?", word.text, re.DOTALL)
        if match:
            attached = match[1] or match[2]
            at = word if attached else words[index + 1] if index + 1 < len(words) else None
            if at is not None:
                unknown = "the script is not known before it runs" if at.dynamic else ""
                return [Wrapped(script=attached or at.text, at=at, why=unknown, covered=True)]
    return [Wrapped(why="`script` starts a shell that reads its input", covered=True)]


def evaluate(words: Sequence[Word]) -> list[Wrapped]:
    """``eval``: its words are joined and read as a line."""
    rest = words[2:] if len(words) > 1 and words[1].text == "--" else words[1:]
    return joined(rest, shell_name="eval")


def trap(words: Sequence[Word]) -> list[Wrapped]:
    """``trap``: a line that runs later."""
    rest = [word for word in words[1:] if word.text != "--"]
    if (
        not rest
        or rest[0].text in ("-", "", "-l", "-p", "-P")
        or (len(rest) == 1 and re.fullmatch(r"\d+|(?:SIG)?[A-Z]+\d?", rest[0].text))
    ):
        return []
    return joined(rest[:1], shell_name="trap")


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
