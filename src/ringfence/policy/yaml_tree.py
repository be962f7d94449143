"""YAML text to a small tree in which every node knows its line and column. Pure; PyYAML is imported on first use.

Stricter than YAML on purpose: no anchors, aliases, tags, merge keys or second documents, no duplicate keys, and a cap
on size and depth, so that a hostile file cannot grow when it is read and a reviewer sees all that it says.
"""

import re
from dataclasses import dataclass
from typing import TypeAlias

from ringfence.model.errors import PolicyError
from ringfence.shell.characters import describe

MAX_CHARACTERS = 1_048_576
MAX_DEPTH = 24
MAX_NODES = 200_000


@dataclass(frozen=True, slots=True)
class Scalar:
    """A word of the file. ``plain`` is false where it was quoted, so that ``"5"`` is text and ``5`` a number."""

    text: str
    plain: bool
    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Sequence:
    """A list of the file."""

    items: "tuple[Node, ...]"
    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Mapping:
    """A mapping of the file, in the order written. Keys are always text; none occurs twice."""

    pairs: "tuple[tuple[Scalar, Node], ...]"
    line: int
    column: int


Node: TypeAlias = Scalar | Sequence | Mapping

# What YAML 1.1 or 1.2 readers take for something else than text when it is not quoted.
_NOT_TEXT = re.compile(
    r"|~|null|Null|NULL|true|True|TRUE|false|False|FALSE|yes|Yes|YES|no|No|NO|on|On|ON|off|Off|OFF|[yYnN]"
    r"|[-+]?(0b[01_]+|0x[0-9a-fA-F_]+|0o?[0-7_]+|[0-9][0-9_]*(:[0-5]?[0-9])*(\.[0-9_]*)?([eE][-+]?[0-9]+)?)"
    r"|[-+]?\.[0-9_]+([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)"
    r"|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt ].*)?"
)
# A reviewer sees one line of comment where YAML sees two lines, or a word that no command is ever called.
_HIDDEN = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u2064\u2066-\u206f\ufeff"
    r"\ud800-\udfff\U000e0000-\U000e007f]|\r(?!\n)|(?<=[\x00-\x7f])[\u200c\u200d]"
)
_SUSPECT_FIRST = frozenset("~nNtTfFyYoO+-.0123456789")


def is_text(scalar: Scalar) -> bool:
    """Whether every YAML reader takes this scalar for text."""
    if not scalar.plain:
        return True
    text = scalar.text
    if text and text[0] not in _SUSPECT_FIRST:
        return True
    return _NOT_TEXT.fullmatch(text) is None


def read_tree(text: str, *, file: str) -> Node:
    """The tree of one YAML document.

    Raises PolicyError with ``file:line:column`` for anything that is not plain, single-document YAML within the caps.
    """
    import yaml

    if len(text) > MAX_CHARACTERS:
        raise PolicyError(
            "policy-too-large",
            f"the file has {len(text)} characters; at most {MAX_CHARACTERS} are read",
            where=file,
            remedy="split rules into presets or shorten the file",
        )
    if hidden := _HIDDEN.search(text, text.startswith("\ufeff")):
        raise _hides(text, hidden.start(), file)
    loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
    try:
        return _Builder(loader(text), file).document()
    except yaml.YAMLError as error:
        raise _not_yaml(error, file) from None
    except (RecursionError, UnicodeError, ValueError):
        raise PolicyError("not-yaml", "the file is not readable YAML", where=file, remedy="write UTF-8 YAML") from None


def _hides(text: str, position: int, file: str) -> PolicyError:
    line, column = text.count("\n", 0, position) + 1, position - text.rfind("\n", 0, position)
    return PolicyError(
        "hidden-character",
        f"the file holds a character that shows nothing or ends a line unseen: {describe(text[position])}",
        where=f"{file}:{line}:{column}",
        remedy='remove it; lines end with LF or CR LF, and a quoted escape such as "\\u200b" says it openly',
    )


def _not_yaml(error: Exception, file: str) -> PolicyError:
    mark = getattr(error, "problem_mark", None)
    where = f"{file}:{mark.line + 1}:{mark.column + 1}" if mark is not None else file
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "not readable"
    return PolicyError("not-yaml", f"not valid YAML: {problem}", where=where, remedy="correct the YAML at this place")


class _Builder:
    """Takes parser events and builds the tree; one pass, no composition, so nothing can be aliased."""

    def __init__(self, parser: object, file: str) -> None:
        self._next = parser.get_event  # type: ignore[attr-defined]  # PyYAML's loaders have no common type
        self._file = file
        self._count = 0

    def document(self) -> Node:
        import yaml

        event = self._next()
        while isinstance(event, yaml.StreamStartEvent):
            event = self._next()
        if isinstance(event, yaml.StreamEndEvent):
            return Mapping((), 1, 1)
        node = self._node(self._next(), 0)
        self._next()
        after = self._next()
        if not isinstance(after, yaml.StreamEndEvent):
            raise self._fault("second-document", "a second YAML document follows", after, "keep one document per file")
        return node

    def _node(self, event: object, depth: int) -> Node:
        kind = type(event).__name__
        self._count += 1
        if depth > MAX_DEPTH:
            raise self._fault("nested-too-deep", f"nested deeper than {MAX_DEPTH}", event, "flatten this part")
        if self._count > MAX_NODES:
            raise self._fault("policy-too-large", f"more than {MAX_NODES} values", event, "shorten the file")
        if kind == "AliasEvent" or event.anchor is not None:  # type: ignore[attr-defined]
            raise self._fault("yaml-anchor", "anchors and aliases are not read", event, "write the value out")
        if event.tag is not None and event.tag != "!":  # type: ignore[attr-defined]
            raise self._fault("yaml-tag", "tags are not read", event, "remove the tag")
        mark = event.start_mark  # type: ignore[attr-defined]
        line, column = mark.line + 1, mark.column + 1
        if kind == "ScalarEvent":
            return Scalar(event.value, event.implicit[0], line, column)  # type: ignore[attr-defined]
        if kind == "SequenceStartEvent":
            return Sequence(self._items(depth), line, column)
        return Mapping(self._pairs(depth), line, column)

    def _items(self, depth: int) -> tuple[Node, ...]:
        items = []
        take = self._next
        while type(event := take()).__name__ != "SequenceEndEvent":
            items.append(self._node(event, depth + 1))
        return tuple(items)

    def _pairs(self, depth: int) -> tuple[tuple[Scalar, Node], ...]:
        pairs: list[tuple[Scalar, Node]] = []
        seen: dict[str, Scalar] = {}
        take = self._next
        while type(event := take()).__name__ != "MappingEndEvent":
            key = self._node(event, depth + 1)
            if not isinstance(key, Scalar):
                raise self._fault("wrong-type", "a key must be a word", event, "write `key: value`")
            if key.text in seen:
                first = seen[key.text]
                raise PolicyError(
                    "duplicate-key",
                    f"key `{show(key.text)}` is written twice; the first is on line {first.line}",
                    where=f"{self._file}:{key.line}:{key.column}",
                    remedy="keep one of them",
                )
            seen[key.text] = key
            pairs.append((key, self._node(take(), depth + 1)))
        return tuple(pairs)

    def _fault(self, code: str, what: str, event: object, remedy: str) -> PolicyError:
        mark = event.start_mark  # type: ignore[attr-defined]
        return PolicyError(code, what, where=f"{self._file}:{mark.line + 1}:{mark.column + 1}", remedy=remedy)


def show(text: str, limit: int = 80) -> str:
    """Text from a file or a call, safe to print: control and invisible characters escaped, long text cut visibly."""
    if len(text) <= limit and text.isprintable():
        return text
    shown = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text[: limit + 1])
    return shown if len(text) <= limit else shown[:limit] + "…"
