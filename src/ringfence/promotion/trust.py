"""What a verifier is given out of band, never by the change: issuers with their keys, and pinned Ed25519 keys.

Files are read by the caller; this file is pure.
"""

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeVar

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from ringfence.promotion.jws import ALGORITHMS, Jwk, parse_jwks
from ringfence.promotion.strict import Malformed, parse_object

Platform = Literal["github", "gitlab", "buildkite"]
ROLES = frozenset({"ci", "explainer", "break_glass", "gate", "owner"})
_T = TypeVar("_T")


class _IssuerFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    platform: Platform
    issuer: str
    jwks: str
    algorithms: tuple[str, ...]
    require: dict[str, str]
    commit: str = ""


class _IssuersFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    audience_prefix: str
    max_age_seconds: int
    issuers: tuple[_IssuerFile, ...] = ()
    time: str = ""


class _KeyFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    keyid: str
    public_key: str
    roles: tuple[str, ...]
    name: str
    until: int = 0


class _KeysFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    keys: tuple[_KeyFile, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Issuer:
    """One CI system's token issuer: keys, algorithms and the claims that must be exactly so."""

    platform: Platform
    issuer: str
    algorithms: tuple[str, ...]
    require: tuple[tuple[str, str], ...]
    keys: tuple[Jwk, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PinnedKey:
    """An Ed25519 key of a person or a plain-git CI host. ``until``: seconds since the epoch, 0 for no end."""

    keyid: str
    key: Ed25519PublicKey
    roles: tuple[str, ...]
    name: str
    until: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Trust:
    """All that was pinned. ``max_age``: seconds that kept evidence counts."""

    audience_prefix: str
    max_age: int
    issuers: tuple[Issuer, ...]
    keys: tuple[PinnedKey, ...]

    def key(self, keyid: str, role: str, at: int) -> PinnedKey | None:
        """The pinned key of that id, if it has the role and has not ended."""
        return next(
            (k for k in self.keys if k.keyid == keyid and role in k.roles and (not k.until or at < k.until)), None
        )


# Claims without which an issuer's tokens could be of anybody's pipeline.
_MUST_PIN = {
    "github": (("repository_id",), ("repository_owner_id",), ("job_workflow_ref",)),
    "gitlab": (("project_id",), ("ref_path",), ("ref_protected",)),
    "buildkite": (("organization_id", "organization_slug"), ("pipeline_id", "pipeline_slug")),
}


def parse_trust(files: Mapping[str, bytes]) -> Trust:
    """The trust of a folder, given as file name to bytes; raises Malformed naming what is wrong."""
    if "issuers.json" not in files and "keys.json" not in files:
        raise Malformed("neither issuers.json nor keys.json")
    listed = _IssuersFile(audience_prefix="promotion+sha256:", max_age_seconds=86_400)
    if "issuers.json" in files:
        listed = _convert(files["issuers.json"], _IssuersFile)
    if listed.max_age_seconds <= 0 or not listed.audience_prefix:
        raise Malformed("issuers.json: max_age_seconds and audience_prefix are needed")
    issuers = tuple(_issuer(item, files) for item in listed.issuers)
    if len({issuer.issuer for issuer in issuers}) != len(issuers):
        raise Malformed("issuers.json: an issuer is listed twice")
    keys: tuple[PinnedKey, ...] = ()
    if "keys.json" in files:
        keys = tuple(_pinned(item) for item in _convert(files["keys.json"], _KeysFile).keys)
    if len({key.keyid for key in keys}) != len(keys):
        raise Malformed("keys.json: two keys with one keyid")
    return Trust(audience_prefix=listed.audience_prefix, max_age=listed.max_age_seconds, issuers=issuers, keys=keys)


def _issuer(item: _IssuerFile, files: Mapping[str, bytes]) -> Issuer:
    if not item.algorithms or not set(item.algorithms) <= ALGORITHMS:
        raise Malformed(f"issuers.json: {item.issuer}: algorithms are among RS256 and ES256")
    for names in _MUST_PIN[item.platform]:
        if not any(item.require.get(name) for name in names):
            raise Malformed(f"issuers.json: {item.issuer}: require must pin {' or '.join(names)}")
    if item.jwks not in files:
        raise Malformed(f"issuers.json: {item.jwks[:80]!a} is not in the trust folder")
    return Issuer(
        platform=item.platform,
        issuer=item.issuer,
        algorithms=item.algorithms,
        require=tuple(sorted(item.require.items())),
        keys=parse_jwks(files[item.jwks]),
    )


def _pinned(item: _KeyFile) -> PinnedKey:
    if not item.roles or not set(item.roles) <= ROLES or not item.keyid or not item.name:
        raise Malformed("keys.json: keyid, name and roles are needed; roles: " + ", ".join(sorted(ROLES)))
    try:
        key = Ed25519PublicKey.from_public_bytes(base64.b64decode(item.public_key, validate=True))
    except ValueError:
        raise Malformed(f"keys.json: {item.keyid[:40]!a}: public_key is not base64 of 32 bytes") from None
    return PinnedKey(keyid=item.keyid, key=key, roles=item.roles, name=item.name, until=item.until)


def _convert(raw: bytes, kind: type[_T]) -> _T:
    try:
        return msgspec.convert(parse_object(raw, limit=1_048_576), kind, strict=True)
    except msgspec.ValidationError as error:
        raise Malformed(str(error)) from None
