"""JSON and YAML documents of a repository as plain values, strictly: what two parsers could read differently is unreadable. Pure."""

from collections.abc import Hashable
from typing import Any

import yaml

from ringfence.promotion.strict import Malformed, Value, parse

LIMIT = 1_048_576
_NODES = 50_000


class Unreadable(ValueError):
    """The gate cannot tell what the file means."""


class _Loader(yaml.SafeLoader):
    """Safe loader that refuses duplicate keys, and aliases beyond a cap (a small file can unfold to gigabytes)."""

    aliases = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.events.AliasEvent):
            self.aliases += 1
            if self.aliases > 50:
                raise Unreadable("more than 50 aliases")
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen = set()
        for key, _ in node.value:
            name = (key.tag, getattr(key, "value", None)) if isinstance(key, yaml.ScalarNode) else None
            if name is None or name in seen:
                raise Unreadable("a key is given twice or is not plain")
            if key.tag != "tag:yaml.org,2002:merge":
                seen.add(name)
        return super().construct_mapping(node, deep=deep)


# A date stays text: what a manifest means by it is its spelling.
_Loader.yaml_implicit_resolvers = {
    first: [(tag, rule) for tag, rule in rules if tag != "tag:yaml.org,2002:timestamp"]
    for first, rules in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def read_json(raw: bytes) -> Value:
    """The one JSON value; raises Unreadable."""
    try:
        return parse(raw, limit=LIMIT)
    except Malformed as error:
        raise Unreadable(str(error)) from None


def read_yaml(raw: bytes) -> list[Value]:
    """All documents of a YAML file, empty ones left out; raises Unreadable."""
    if len(raw) > LIMIT:
        raise Unreadable(f"larger than {LIMIT} bytes")
    try:
        text = raw.decode("utf-8")
        loader = _Loader(text)
        documents: list[Value] = []
        while loader.check_data():  # type: ignore[no-untyped-call]
            documents.append(_plain(loader.get_data(), [_NODES]))
    except (yaml.YAMLError, ValueError, RecursionError, TypeError, AttributeError) as error:
        mark = getattr(error, "problem_mark", None)
        place = f" at line {mark.line + 1}" if mark else ""
        raise Unreadable(
            f"not YAML that can be read{place}" if not isinstance(error, Unreadable) else str(error)
        ) from None
    return [document for document in documents if document is not None]


def read_documents(path: str, raw: bytes) -> list[Value]:
    """Documents of a JSON or YAML file by its name; raises Unreadable."""
    return [read_json(raw)] if path.casefold().endswith(".json") else read_yaml(raw)


def as_list(value: Value) -> list[Value]:
    """A list as it is, anything else as a list of one."""
    return value if isinstance(value, list) else [value]


def _plain(value: object, budget: list[int]) -> Value:
    budget[0] -= 1
    if budget[0] < 0:
        raise Unreadable(f"more than {_NODES} values")
    if isinstance(value, dict):
        if not all(isinstance(name, (str, int, bool, float)) for name in value):
            raise Unreadable("a key is not plain")
        return {str(name): _plain(item, budget) for name, item in value.items()}
    if isinstance(value, list):
        return [_plain(item, budget) for item in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise Unreadable(f"holds a value of kind {type(value).__name__}")
