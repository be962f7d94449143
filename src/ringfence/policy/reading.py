"""Typed reading of tree nodes: each function gives the value or raises a PolicyError with the place and the fix. Pure."""

import difflib
from collections.abc import Iterable

from ringfence.model.errors import PolicyError
from ringfence.policy.document import At
from ringfence.policy.yaml_tree import Mapping, Node, Scalar, Sequence, is_text, show

MAX_INTEGER = 1 << 53


class Source:
    """The file being read: makes places and faults."""

    __slots__ = ("file",)

    def __init__(self, file: str) -> None:
        self.file = file

    def at(self, node: Node) -> At:
        """Where a node stands."""
        return (self.file, node.line, node.column)

    def fault(self, code: str, what: str, node: Node, remedy: str) -> PolicyError:
        """A PolicyError at a node."""
        return PolicyError(code, what, where=f"{self.file}:{node.line}:{node.column}", remedy=remedy)

    def wrong(self, expected: str, node: Node, key: str) -> PolicyError:
        """A value of another type than the key takes."""
        return self.fault(
            "wrong-type", f"`{key}` is {describe(node)}; expected {expected}", node, f"write {expected} here"
        )


def describe(node: Node) -> str:
    """What a node is, for a message."""
    if isinstance(node, Mapping):
        return "a mapping"
    if isinstance(node, Sequence):
        return "a list"
    if is_text(node):
        return f"the text `{show(node.text, 40)}`"
    return f"`{show(node.text, 40)}`, which is not text unless quoted" if node.text else "empty"


def fields(source: Source, node: Node, what: str, allowed: Iterable[str]) -> dict[str, Node]:
    """The values of a mapping by key; an unknown key is a fault that names the nearest known one."""
    if not isinstance(node, Mapping):
        raise source.wrong("a mapping", node, what)
    known = tuple(allowed)
    for key, _ in node.pairs:
        if key.text not in known:
            near = difflib.get_close_matches(key.text, known, n=1)
            hint = f"write `{near[0]}`" if near else f"known keys here: {', '.join(known)}"
            raise source.fault("unknown-key", f"{what} has no key `{show(key.text)}`", key, hint)
    return {key.text: value for key, value in node.pairs}


def text(source: Source, node: Node, key: str) -> str:
    """Text, not empty. A plain scalar that some YAML reader takes for a number or a boolean must be quoted."""
    if not isinstance(node, Scalar):
        raise source.wrong("text", node, key)
    if not is_text(node):
        raise source.fault(
            "wrong-type",
            f"`{key}` is {describe(node)}; expected text",
            node,
            f'write "{show(node.text, 40)}" in quotes',
        )
    if not node.text:
        raise source.fault("empty-text", f"`{key}` is empty", node, "write a value or remove the key")
    if "\0" in node.text:
        raise source.fault("wrong-type", f"`{key}` holds a NUL character", node, "remove it")
    return node.text


def texts(source: Source, node: Node, key: str) -> tuple[str, ...]:
    """A list of texts, or one text as a list of one."""
    if isinstance(node, Scalar):
        return (text(source, node, key),)
    return tuple(text(source, item, key) for item in listed(source, node, key))


def some_texts(source: Source, node: Node, key: str) -> tuple[str, ...]:
    """A list of texts that names at least one: an empty one would hold for nothing, or for everything."""
    found = texts(source, node, key)
    if not found:
        raise empty_list(source, node, key)
    return found


def empty_list(source: Source, node: Node, key: str) -> PolicyError:
    """A list that must name something."""
    return source.fault("empty-list", f"`{key}` is an empty list", node, "name at least one, or remove the key")


def listed(source: Source, node: Node, key: str) -> tuple[Node, ...]:
    """The items of a list."""
    if not isinstance(node, Sequence):
        raise source.wrong("a list", node, key)
    return node.items


def boolean(source: Source, node: Node, key: str) -> bool:
    """``true`` or ``false``, not quoted."""
    if isinstance(node, Scalar) and node.plain and node.text in {"true", "false"}:
        return node.text == "true"
    raise source.wrong("true or false", node, key)


def integer(source: Source, node: Node, key: str, *, minimum: int = 0, maximum: int = MAX_INTEGER) -> int:
    """A whole number within bounds."""
    if not (isinstance(node, Scalar) and node.plain and node.text.isascii() and node.text.isdigit()):
        raise source.wrong("a whole number", node, key)
    value = int(node.text) if len(node.text) <= 20 else MAX_INTEGER + 1
    if not minimum <= value <= maximum:
        raise source.fault(
            "out-of-range",
            f"`{key}` is {show(node.text, 24)}; expected {minimum} to {maximum}",
            node,
            "use a value in that range",
        )
    return value


def one_of(source: Source, node: Node, key: str, choices: tuple[str, ...], *, code: str = "wrong-value") -> str:
    """One of a few words."""
    value = text(source, node, key)
    if value not in choices:
        raise source.fault(code, f"`{key}` is `{show(value)}`", node, f"write one of: {', '.join(choices)}")
    return value


def pairs(source: Source, node: Node, key: str) -> tuple[tuple[Scalar, Node], ...]:
    """The pairs of a mapping whose keys are free."""
    if not isinstance(node, Mapping):
        raise source.wrong("a mapping", node, key)
    return node.pairs
