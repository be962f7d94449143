"""Feature flags in flagd's file layout: defined by the change, and off whatever the context. Pure."""

from ringfence.promotion.blast.documents import Unreadable, read_documents
from ringfence.promotion.findings import Finding, finding
from ringfence.promotion.strict import Value

_KEYS = frozenset({"state", "variants", "defaultVariant", "targeting", "metadata", "$schema"})


def check_flags(
    name: str | None, *, path: str, old: bytes | None, new: bytes | None, may_exist: bool, label: str
) -> list[Finding]:
    """Findings about the claimed flag and about every flag whose definition the change touched."""
    if new is None:
        return [finding("flag.missing", f"{path} is not in the head tree", label)]
    try:
        after, before = _flags(path, new), _flags(path, old) if old is not None else {}
        shared_changed = old is not None and _shared(path, old) != _shared(path, new)
    except Unreadable as error:
        return [finding("flag.missing", f"{path} cannot be read: {error}", label)]
    found = []
    if name is not None and name not in after:
        found.append(finding("flag.missing", f"{name!a} is not in {path}", label))
    elif name is not None and not may_exist and before.get(name) == after[name]:
        found.append(finding("flag.missing", f"{name!a} is on the base already; this change does not define it", label))
    for key in sorted(after):
        touched = before.get(key) != after[key] or key == name or (shared_changed and "$ref" in repr(after[key]))
        why = why_not_off(after[key]) if touched else ""
        if why:
            found.append(finding("flag.not_off", f"{key[:80]!a}: {why}", f"{path} in the head tree"))
    return found


def _flags(path: str, raw: bytes) -> dict[str, Value]:
    documents = read_documents(path, raw)
    if len(documents) != 1 or not isinstance(documents[0], dict):
        raise Unreadable("not one object")
    flags = documents[0].get("flags")
    if not isinstance(flags, dict):
        raise Unreadable("no object of flags (flagd's layout)")
    return flags


def _shared(path: str, raw: bytes) -> Value:
    document = read_documents(path, raw)[0]
    return document.get("$evaluators") if isinstance(document, dict) else None


def why_not_off(flag: Value) -> str:
    """Why a flag may be on for somebody; empty if it is off for everybody."""
    if not isinstance(flag, dict):
        return "not an object"
    unknown = flag.keys() - _KEYS
    if unknown:
        return f"members {', '.join(sorted(unknown))[:60]} are not understood"
    variants, default = flag.get("variants"), flag.get("defaultVariant")
    if flag.get("state") not in {"ENABLED", "DISABLED"} or not isinstance(variants, dict) or not variants:
        return "no state or no variants"
    if not all(isinstance(value, bool) for value in variants.values()):
        return "its variants are not true and false"
    if not isinstance(default, str) or variants.get(default) is not False:
        return f"the default variant is {str(default)[:40]!a}, which is not off"
    off = {name for name, value in variants.items() if value is False}
    return _why_targeted(flag.get("targeting"), off)


def _why_targeted(rule: Value, off: set[str]) -> str:
    if rule is None or rule == {}:
        return ""
    outcomes = list(_outcomes(rule))
    if all(isinstance(outcome, str) and outcome in off for outcome in outcomes):
        return ""
    return "a targeting rule can serve another variant than off"


def _outcomes(rule: Value) -> list[Value]:
    """What an ``if`` chain or a ``fractional`` split can give; anything else stands for itself and is not off."""
    if isinstance(rule, dict) and len(rule) == 1:
        (operator, arguments), *_ = rule.items()
        if operator == "if" and isinstance(arguments, list) and len(arguments) >= 2:
            picked = arguments[1::2] + (arguments[-1:] if len(arguments) % 2 else [])
            return [outcome for item in picked for outcome in _outcomes(item)]
        if operator == "fractional" and isinstance(arguments, list) and arguments:
            buckets = [item for item in arguments if isinstance(item, list) and item]
            return [item[0] for item in buckets] or [rule]
    return [rule]


def is_read(name: str, sources: list[bytes]) -> bool:
    """Whether the flag's name occurs in changed code."""
    return any(name.encode() in source for source in sources)
