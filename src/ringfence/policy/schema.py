"""The policy file's JSON Schema, for editors. The reader is stricter where a schema cannot say it; a test holds both together."""

from typing import Any

from ringfence.policy.document import GRANTS, LIMITS, PATTERN_FIELDS, SECTIONS
from ringfence.policy.presets import NAMES
from ringfence.policy.read_document import LEAST_COMPLIANCE_DAYS, MOST_DAYS
from ringfence.policy.read_rules import METHODS

_TEXT: dict[str, Any] = {"type": "string", "minLength": 1}
_TEXTS: dict[str, Any] = {"type": "array", "items": _TEXT}
_TEXT_OR_TEXTS: dict[str, Any] = {"oneOf": [_TEXT, _TEXTS]}


def policy_schema() -> dict[str, Any]:
    """The schema as a JSON value (draft 2020-12)."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "https://example.org/ringfence/sandbox_policy.schema.json",
        "title": "ringfence policy",
        **_object(
            {
                "version": {"const": 1},
                "fail_closed": {"const": True, "description": "anything else is refused"},
                "extends": {"type": "array", "items": {"enum": list(NAMES)}, "description": "bundled starting points"},
                "working_tree": _object({"allowed_roots": _TEXTS, "deny_path_prefixes": _TEXTS}),
                "network": _network(),
                "process": _process(),
                "commands": _commands(),
                "files": _object({access: _tiers(_path_rule()) for access in ("read", "write", "delete")}),
                "tools": _tiers(_tool_rule()),
                "patterns": {"type": "array", "items": _pattern()},
                "minimum_enforcement": {"enum": ["landlock", "namespaces"]},
                "locked": {"type": "array", "items": {"enum": list(SECTIONS)}},
                "ceiling": {"enum": ["ask", "deny"]},
                "audit": _audit(),
            },
            required=["version", "fail_closed"],
        ),
    }


def _object(properties: dict[str, Any], *, required: list[str] | None = None) -> dict[str, Any]:
    value: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
    if required:
        value["required"] = required
    return value


def _tiers(rule: dict[str, Any]) -> dict[str, Any]:
    return _object({tier: {"type": "array", "items": rule} for tier in ("allow", "ask", "deny")})


def _common() -> dict[str, Any]:
    return {
        "id": _TEXT,
        "because": _TEXT,
        "when": _when(),
        "approvals": {"type": "integer", "minimum": 1, "maximum": 2},
        "not_owner": {"type": "boolean"},
    }


def _when() -> dict[str, Any]:
    texts = ("cwd", "branch", "remote", "agent", "env_class")
    return _object({**dict.fromkeys(texts, _TEXT_OR_TEXTS), "interactive": {"type": "boolean"}})


def _commands() -> dict[str, Any]:
    rule = _object(
        {
            "argv_prefix": {
                "type": "array",
                "minItems": 1,
                "items": {"oneOf": [_TEXT, {"type": "array", "minItems": 1, "items": _TEXT}]},
                "description": "words compared one by one; a list is alternatives",
            },
            "unless_args": _TEXT_OR_TEXTS,
            "any_args": _TEXT_OR_TEXTS,
            "grants": {"oneOf": [{"enum": list(GRANTS)}, {"type": "array", "items": {"enum": list(GRANTS)}}]},
            "match": _TEXT_OR_TEXTS,
            "no_match": _TEXT_OR_TEXTS,
            **_common(),
        },
        required=["argv_prefix"],
    )
    value = _tiers(rule)
    value["properties"] |= {
        "default": {"enum": ["ask", "deny"]},
        "deny_substrings": _TEXTS,
        "aliases": {"type": "object", "additionalProperties": _TEXT_OR_TEXTS},
        "toolchains": _TEXTS,
    }
    return value


def _path_rule() -> dict[str, Any]:
    rule = _object({"path": _TEXT, "id": _TEXT, "because": _TEXT, "when": _when()}, required=["path"])
    return {"oneOf": [_TEXT, rule]}


def _network() -> dict[str, Any]:
    rule = _object(
        {
            "host": _TEXT,
            "preset": _TEXT,
            "ports": {"type": "array", "items": {"type": "integer", "minimum": 1, "maximum": 65535}},
            "inspect": {"type": "boolean"},
            "methods": {"oneOf": [{"enum": list(METHODS)}, {"type": "array", "items": {"enum": list(METHODS)}}]},
            "paths": _TEXT_OR_TEXTS,
            **_common(),
        }
    )
    value = _tiers(rule)
    value["properties"]["allow"] = {"oneOf": [{"const": False}, {"type": "array", "items": rule}]}
    return value


def _tool_rule() -> dict[str, Any]:
    arguments = {"type": "object", "additionalProperties": _TEXT_OR_TEXTS}
    return _object({"server": _TEXT, "tool": _TEXT, "arguments": arguments, **_common()}, required=["server", "tool"])


def _pattern() -> dict[str, Any]:
    fields = {"enum": list(PATTERN_FIELDS)}
    return _object(
        {
            "id": _TEXT,
            "on": {"oneOf": [fields, {"type": "array", "items": fields}]},
            "regex": _TEXT,
            "tier": {"enum": ["ask", "deny"]},
            "because": _TEXT,
            "when": _when(),
        },
        required=["on", "regex", "tier"],
    )


def _process() -> dict[str, Any]:
    environment = _object(
        {
            "pass": _TEXTS,
            "assign": _TEXTS,
            "set": {"type": "object", "additionalProperties": {"type": "string"}},
            "local": {"type": "boolean"},
        }
    )
    return _object({**{limit: {"type": "integer", "minimum": 1} for limit in LIMITS}, "env": environment})


def _audit() -> dict[str, Any]:
    days = {
        "operational_days": {"type": "integer", "minimum": 1, "maximum": MOST_DAYS},
        "compliance_days": {"type": "integer", "minimum": LEAST_COMPLIANCE_DAYS, "maximum": MOST_DAYS},
    }
    text = "least days that audit records are kept; counts in the organisation's policy alone"
    return _object({"retention": {**_object(days), "description": text}})
