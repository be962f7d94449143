"""Goes and looks: PathFacts for one call. The only part of a decision that touches the file system.

Paths are resolved one component at a time, as the kernel does, so that the answer says what it means in the box and
not in this process: nothing below /proc is followed, and a loop or an unreadable folder is told as such.
"""

import fnmatch
import functools
import os
import pwd
import re
import stat

from ringfence.model.call import ToolCall
from ringfence.model.facts import GlobFact, PathFact, PathFacts, PathKind, ProgramFact
from ringfence.policy.facts_index import join
from ringfence.policy.questions import Questions

MAX_LINKS = 40
MAX_MATCHES = 512
MAX_PATHS = 4096
MAX_GLOBS = 64
"""What is asked beyond these is not looked at, so that it is denied for want of a fact, never passed over."""
MAX_ENTRIES = 20_000


def gather(questions: Questions, call: ToolCall, *, root: str, home: str | None = None) -> PathFacts:
    """Look up everything the questions ask about.

    ``root`` is the repository's root; ``home`` the user's home (from the passwd entry where it is not given).
    Never raises for a path: what cannot be resolved comes back as UNREADABLE.
    """
    folders: set[str] = set()
    real_root = _real(root, folders)
    own_home = home_of_user() if home is None else home
    globs = tuple(_glob(pattern) for pattern in questions.globs[:MAX_GLOBS])
    asked = dict.fromkeys((call.cwd, *questions.paths[:MAX_PATHS]))
    asked |= dict.fromkeys(join(real_root, path) for path in questions.roots)
    for fact in globs:
        asked |= dict.fromkeys(fact.matches or (fact.asked,))
    working = set(questions.working)
    return PathFacts(
        cwd=call.cwd,
        home=own_home,
        root=real_root,
        paths=tuple(path_fact(path, root=real_root, working=path in working, folders=folders) for path in asked),
        programs=tuple(_program(name, questions.directories, folders) for name in questions.programs[:MAX_PATHS]),
        globs=globs,
    )


def home_of_user() -> str:
    """The home directory of the user this runs as, from the passwd entry and never from the environment."""
    try:
        return os.path.realpath(_home_of(os.getuid()))
    except (KeyError, OSError):
        return "/nonexistent"


@functools.cache
def _home_of(uid: int) -> str:
    return pwd.getpwuid(uid).pw_dir  # a file to be read, or a directory service to be asked


def path_fact(asked: str, *, root: str, working: bool = False, folders: set[str] | None = None) -> PathFact:
    """Where one absolute path leads. ``folders`` are those that this call's other paths were found to go through."""
    try:
        real, seen = _resolve(asked, set() if folders is None else folders)
        found = seen or os.lstat(real)
    except FileNotFoundError:
        return PathFact(asked=asked, real=real, kind=PathKind.ABSENT, via_symlink=real != asked and _is_link(asked))
    except (OSError, ValueError):
        return PathFact(asked=asked, real=asked.replace("\0", ""), kind=PathKind.UNREADABLE)
    kind = PathKind.OTHER
    if stat.S_ISREG(found.st_mode):
        kind = PathKind.FILE
    elif stat.S_ISDIR(found.st_mode):
        kind = PathKind.DIRECTORY
    return PathFact(
        asked=asked,
        real=real,
        kind=kind,
        links=found.st_nlink if kind is PathKind.FILE else 0,
        via_symlink=stat.S_ISLNK(found.st_mode) if real == asked else _is_link(asked),
        git_directory=working and kind is PathKind.DIRECTORY and is_nested_repository(real, root),
    )


def _is_link(path: str) -> bool:
    try:
        return stat.S_ISLNK(os.lstat(path.rstrip("/") or "/").st_mode)
    except (OSError, ValueError):
        return False


def _resolve(path: str, folders: set[str]) -> tuple[str, os.stat_result | None]:
    """The path with every existing component resolved and the missing rest appended, and what was last seen there, if it was.

    What is in ``folders`` is known to be one and not looked at again; others are added. Raises OSError or ValueError.
    """
    if len(path) > 65_536:
        raise ValueError("path too long")
    todo = path.split("/")[::-1]
    real = ""
    links = 0
    missing = False
    seen: os.stat_result | None = None
    while todo:
        part = todo.pop()
        if part in {"", "."}:
            continue
        seen = None
        if part == "..":
            # A missing folder that is left again may exist when the command runs: what follows is looked at as if it did.
            missing = False
            real = real.rpartition("/")[0]
            continue
        above, real = real, f"{real}/{part}"
        # Below /proc a link means the process that follows it, which is not this one.
        if missing or real in folders or real == "/proc" or real.startswith("/proc/"):
            continue
        try:
            found = os.lstat(real)
            target = os.readlink(real) if stat.S_ISLNK(found.st_mode) else None
        except (FileNotFoundError, NotADirectoryError):
            missing = True
            continue
        if target is None:
            seen = found
            if stat.S_ISDIR(found.st_mode):
                folders.add(real)
            continue
        links += 1
        if links > MAX_LINKS:
            raise OSError("too many links")
        real = "" if target.startswith("/") else above
        todo += target.split("/")[::-1]
    return real or "/", seen


def _real(path: str, folders: set[str]) -> str:
    """Where a path leads that can be followed all the way, and otherwise as far as Python says."""
    try:
        return _resolve(path, folders)[0]
    except (OSError, ValueError):
        return os.path.realpath(path)


def is_nested_repository(path: str, root: str) -> bool:
    """Whether git, run in this folder, would use another repository than the root's own."""
    current = path
    while current.startswith(root + "/"):
        if _is_bare(current) and os.path.basename(current) != ".git":
            return True
        inner = os.path.join(current, ".git")
        if os.path.isdir(inner) or (os.path.lexists(inner) and not _is_submodule(inner, root)):
            return True
        current = os.path.dirname(current)
    return False


def _is_bare(path: str) -> bool:
    names = ("HEAD", "objects", "refs")
    return all(os.path.lexists(os.path.join(path, name)) for name in names)


def _is_submodule(pointer: str, root: str) -> bool:
    """A ``.git`` file that points into the root's own modules folder, which the agent cannot write."""
    try:
        with open(pointer, encoding="utf-8") as file:
            text = file.read(4096)
    except (OSError, UnicodeError):
        return False
    if not text.startswith("gitdir: "):
        return False
    target = os.path.realpath(os.path.join(os.path.dirname(pointer), text.removeprefix("gitdir: ").strip()))
    return target.startswith(os.path.join(root, ".git", "modules") + "/")


def _program(name: str, directories: tuple[str, ...], folders: set[str]) -> ProgramFact:
    for directory in directories:
        candidate = os.path.join(directory, name)
        if os.path.isfile(candidate) and os.access(candidate, os.X_OK):
            return ProgramFact(name=name, real=_real(candidate, folders))
    return ProgramFact(name=name, real=None)


def _glob(pattern: str) -> GlobFact:
    """The existing names that bash would put in the place of a pattern (no ``**``, no hidden names unless asked)."""
    parts = [part for part in pattern.split("/") if part]
    found = ["/"]
    seen = 0
    for number, part in enumerate(parts):
        if not any(c in part for c in "*?["):
            found = [os.path.join(base, part) for base in found]
            if number + 1 < len(parts) and any(c in rest for rest in parts[number + 1 :] for c in "*?["):
                continue
            found = [path for path in found if os.path.lexists(path)] if part not in {".", ".."} else found
            continue
        if "[:" in part or "[=" in part or "[." in part:
            return GlobFact(asked=pattern, complete=False)
        # Rather too many names than too few: ranges take both cases, as some locales do.
        expression = re.compile(fnmatch.translate(part.replace("[^", "[!")), re.IGNORECASE)
        following: list[str] = []
        for base in found:
            try:
                names = sorted(os.listdir(base))
            except (FileNotFoundError, NotADirectoryError):
                continue
            except (OSError, ValueError):
                return GlobFact(asked=pattern, complete=False)
            seen += len(names)
            if seen > MAX_ENTRIES:
                return GlobFact(asked=pattern, complete=False)
            if part.startswith("."):
                names += [".", ".."]  # what shells before bash 5.2 find too
            following += [
                os.path.join(base, name)
                for name in names
                if expression.match(name) and (part.startswith(".") or not name.startswith("."))
            ]
        found = following
        if len(found) > MAX_MATCHES:
            return GlobFact(asked=pattern, complete=False)
    return GlobFact(asked=pattern, matches=tuple(found))
