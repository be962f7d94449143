"""The effective policy as canonical bytes, and what is computed over all scopes at once. Pure."""

import hashlib
import json
from typing import Any

import msgspec

from ringfence.model.box import Level, Limits
from ringfence.model.errors import PolicyError
from ringfence.model.ids import Sha256
from ringfence.model.protected import PROTECTED_ASK, PROTECTED_DENY
from ringfence.model.tier import Scope
from ringfence.policy import protected
from ringfence.policy.compile import Scoped
from ringfence.policy.document import At

FORMAT = 1


class Effective(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Everything that decisions depend on besides call and facts."""

    format: int
    evaluator: int
    builtin: str
    """Digest of the protected and hidden lists."""
    tables: str
    """Digest of the program tables."""
    scopes: tuple[Scoped, ...]


def make(scopes: tuple[Scoped, ...]) -> Effective:
    """The effective policy of these scopes with this version of ringfence."""
    return Effective(
        format=FORMAT,
        evaluator=protected.EVALUATOR_VERSION,
        builtin=_builtin_digest(),
        tables=tables_digest(),
        scopes=scopes,
    )


def encode(effective: Effective) -> bytes:
    """Canonical bytes: the same policy gives the same bytes."""
    return msgspec.json.encode(effective)


def decode(stored: bytes) -> Effective:
    """The effective policy in stored bytes. Raises PolicyError."""
    try:
        effective = msgspec.json.decode(stored, type=Effective, strict=True)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise PolicyError(
            "bad-effective-policy",
            f"the stored policy cannot be read: {type(error).__name__}",
            remedy="restore the store",
        ) from None
    if effective.format != FORMAT:
        raise PolicyError(
            "bad-effective-policy",
            f"the stored policy has format {effective.format}; this version reads {FORMAT}",
            remedy="use the version of ringfence that stored it",
        )
    return effective


def _builtin_digest() -> str:
    lists = [PROTECTED_DENY, PROTECTED_ASK, protected.HIDDEN, sorted(protected.FREE_TO_READ)]
    return hashlib.sha256(json.dumps(lists).encode()).hexdigest()


def tables_digest() -> str:
    """Names the program tables that arguments are read with."""
    from ringfence.policy.understanding import tables_version

    return tables_version()


def trust_digest_of(effective: Effective) -> Sha256:
    """SHA-256 over the repository's document without places."""
    documents = [scoped.document for scoped in effective.scopes if scoped.scope is Scope.REPOSITORY]
    plain = [_without_places(msgspec.to_builtins(document)) for document in documents]
    text = json.dumps(plain, sort_keys=True, separators=(",", ":"))
    return Sha256(hashlib.sha256(text.encode()).hexdigest())


def _without_places(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_places(item) for key, item in value.items() if key not in {"at", "file"}}
    if isinstance(value, list | tuple):
        return [_without_places(item) for item in value]
    return value


_LIMITS = {
    "runtime": "max_runtime_ms",
    "output": "max_output_bytes",
    "memory": "max_memory_bytes",
    "processes": "max_processes",
    "disk": "max_disk_bytes",
    "cpu": "max_cpu_ms",
    "open_files": "max_open_files",
    "file_size": "max_file_size_bytes",
}


def limits_of(effective: Effective) -> Limits:
    """The narrowest stated limit of all scopes, the model's own where none is stated."""
    values: dict[str, Any] = {}
    for name, key in _LIMITS.items():
        stated = [getattr(scoped.document.process, key) for scoped in effective.scopes]
        numbers = [value for value in stated if value is not None]
        if numbers:
            values[name] = min(numbers)
    return Limits(**values)


def minimum_of(effective: Effective) -> Level:
    """The strictest minimum; a repository can raise it and never lower it."""
    wide = [
        Level[scoped.document.minimum_enforcement.upper()]
        for scoped in effective.scopes
        if scoped.document.minimum_enforcement is not None and scoped.scope is not Scope.REPOSITORY
    ]
    own = [
        Level[scoped.document.minimum_enforcement.upper()]
        for scoped in effective.scopes
        if scoped.document.minimum_enforcement is not None and scoped.scope is Scope.REPOSITORY
    ]
    return max([max(wide, default=Level.NAMESPACES), *own])


def at_text(at: At) -> str:
    """A place for a message."""
    return ":".join(str(part) for part in at if part)
