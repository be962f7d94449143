"""What a repository ignores, by git's own rules, without running git. Pure: text in, answers out.

Patterns are matched in linear time: an agent may write a ``.gitignore`` made to stall a backtracking matcher.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import re2

MAX_BYTES = 256 * 1024
MAX_PATTERNS = 4000
_BYTES = re2.Options()
_BYTES.encoding = re2.Options.Encoding.LATIN1  # a name is bytes
_BYTES.log_errors = False
_PLAIN = re2.compile(rb"[^*?\[\\]*", _BYTES)
"""The beginning of a pattern that stands for itself."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """One line of an ignore file."""

    expression: bytes
    negative: bool
    directories: bool
    whole: bool
    """Matched against the path from the ignore file's folder; else against the last component."""


class _Together:
    """Expressions matched all at once: the time does not grow with their number, which an agent chooses."""

    def __init__(self, expressions: Sequence[tuple[int, bytes]]) -> None:
        self._numbers = [number for number, _ in expressions]
        self._set = re2.Set.FullMatchSet(_BYTES)
        for _, expression in expressions:
            self._set.Add(expression)
        if expressions:
            self._set.Compile()

    def matching(self, text: bytes) -> list[int]:
        """The numbers of the expressions that match the whole text; none where that would take too much memory."""
        return [self._numbers[at] for at in self._set.Match(text) or ()] if self._numbers else []


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """One ignore file. ``prefix`` is its folder, empty or ending in ``/``."""

    prefix: str = ""
    patterns: tuple[Pattern, ...] = field(default=())
    everything: bool = False
    """The folder itself is ignored: so is all in it, and no deeper file can take that back."""
    names: "_Together" = field(default_factory=lambda: _Together(()), compare=False)
    """The patterns that are matched against the last component."""
    paths: "_Together" = field(default_factory=lambda: _Together(()), compare=False)
    """The patterns that are matched against the path from the ignore file's folder."""

    def last(self, below: bytes, *, directory: bool) -> Pattern | None:
        """The last line that matches a path below the ignore file's folder."""
        found = [*self.names.matching(below.rpartition(b"/")[2]), *self.paths.matching(below)]
        fit = [at for at in found if directory or not self.patterns[at].directories]
        return self.patterns[max(fit)] if fit else None


def parse(text: bytes, prefix: str = "") -> Rules:
    """The rules of one ignore file. What is too long or is no pattern ignores nothing, so the gate sees those paths."""
    if len(text) > MAX_BYTES:
        return Rules(prefix=prefix)
    lines = text.removeprefix(b"\xef\xbb\xbf").split(b"\n")[:MAX_PATTERNS]
    found = (_pattern(line.removesuffix(b"\r")) for line in lines)
    patterns = tuple(p for p in found if p is not None)
    names, paths = (
        _Together([(at, p.expression) for at, p in enumerate(patterns) if p.whole is whole]) for whole in (False, True)
    )
    return Rules(prefix=prefix, patterns=patterns, names=names, paths=paths)


def is_ignored(stack: Sequence[Rules], path: bytes, *, directory: bool) -> bool:
    """Whether ``path`` is ignored, its parents being not. The deepest file and its last matching line decide."""
    if any(rules.everything for rules in stack):
        return True
    for rules in reversed(stack):
        below = path[len(rules.prefix.encode("utf-8", "surrogateescape")) :]
        pattern = rules.last(below, directory=directory)
        if pattern is not None:
            return not pattern.negative
    return False


def _pattern(line: bytes) -> Pattern | None:
    stripped = line.rstrip(b" \t")
    if stripped.endswith(b"\\") and len(stripped) < len(line):
        stripped = line[: len(stripped) + 1]  # an escaped space belongs to the name
    if not stripped or stripped.startswith(b"#"):
        return None
    negative = stripped.startswith(b"!")
    body = stripped[1:] if negative else stripped
    directories = body.endswith(b"/")
    body = body.removesuffix(b"/")
    whole = b"/" in body
    body = body.removeprefix(b"/")
    if not body:
        return None
    expression = _translate(body)
    try:
        re2.compile(expression, _BYTES)
    except re2.error:
        return None
    return Pattern(expression, negative, directories, whole)


def _translate(glob: bytes) -> bytes:
    out = bytearray(b"(?s)")
    at = 0
    plain = len(_PLAIN.match(glob).group())
    while at < len(glob):
        char = glob[at : at + 1]
        if char == b"*":
            stars = len(glob) - at - len(glob[at:].lstrip(b"*"))
            # git matches the plain beginning by itself, so stars that follow it count as the beginning of a component.
            begins = at == plain or glob[at - 1 : at] == b"/"
            at += stars
            if stars == 1 or not begins or not (at == len(glob) or glob.startswith((b"/", b"\\/"), at)):
                out += b"[^/]*"
            elif glob.startswith(b"/", at):
                out += b"(?:.*/)?"
                at += 1
            else:
                out += b".*"
        elif char == b"?":
            out += b"[^/]"
            at += 1
        elif char == b"[" and (end := _class_end(glob, at)) > 0:
            out += _class(glob[at + 1 : end])
            at = end + 1
        else:
            if char == b"\\" and at + 1 < len(glob):
                at += 1
                char = glob[at : at + 1]
            out += _literal(char)
            at += 1
    return bytes(out)


def _literal(char: bytes) -> bytes:
    return char if char.isalnum() else b"\\x%02x" % char[0]


def _class_end(glob: bytes, start: int) -> int:
    at = start + 1
    if glob[at : at + 1] in {b"!", b"^"}:
        at += 1
    if glob[at : at + 1] == b"]":
        at += 1
    while at < len(glob) and glob[at : at + 1] != b"]":
        if glob.startswith(b"[:", at) and (inner := glob.find(b":]", at + 2)) > 0:
            at = inner + 1
        elif glob[at : at + 1] == b"\\":
            at += 1
        at += 1
    return at if at < len(glob) else -1


def _class(body: bytes) -> bytes:
    out = bytearray(b"[")
    if body[:1] in {b"!", b"^"}:
        out += b"^/"
        body = body[1:]
    at = 0
    while at < len(body):
        if body.startswith(b"[:", at) and (inner := body.find(b":]", at + 2)) > 0:
            out += body[at : inner + 2]
            at = inner + 2
            continue
        char = body[at : at + 1]
        if char == b"-" and 0 < at < len(body) - 1:
            out += b"-"
        else:
            if char == b"\\" and at + 1 < len(body):
                at += 1
                char = body[at : at + 1]
            out += _literal(char)
        at += 1
    return bytes(out + b"]")
