"""Access that is granted inside other documents: a policy statement in a list of roles, a role binding, a role's definition. Pure.

Only whole IAM documents are counted action by action; what lies deeper is compared as it stands.
"""

from collections.abc import Iterator

from ringfence.promotion.strict import Value

_EFFECTS = frozenset({"Allow", "Deny"})


def access_within(documents: list[Value]) -> frozenset[str]:
    """Each grant that stands anywhere in the documents, as text to be compared."""
    return frozenset(found for document in documents for found in _walk(document))


def _walk(value: Value) -> Iterator[str]:
    stack: list[Value] = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, dict):
            if _grants(item):
                yield as_text(item)
            stack.extend(item.values())
        elif isinstance(item, list):
            stack.extend(item)
        elif isinstance(item, str) and '"Effect"' in item and '"Allow"' in item:
            yield item


def _grants(item: dict[str, Value]) -> bool:
    names = {name.casefold(): value for name, value in item.items()}
    effect, role = names.get("effect"), names.get("role")
    statement = (
        isinstance(effect, str) and effect.capitalize() in _EFFECTS and bool({"action", "notaction"} & names.keys())
    )
    binding = isinstance(role, str) and "roles/" in role and "members" in names
    definition = {"actions", "assignablescopes"} <= names.keys()
    return statement or binding or definition


def as_text(value: Value) -> str:
    """As ``repr``, with members in order: in Python 1 == True, in a role file they are not the same."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{name!r}:{as_text(value[name])}" for name in sorted(value)) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(as_text, value)) + "]"
    return repr(value)
