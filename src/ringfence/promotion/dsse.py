"""Dead Simple Signing Envelopes with Ed25519 keys: make, open, verify. Pure."""

import base64
import json
from dataclasses import dataclass

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from ringfence.promotion.strict import Malformed, Value, parse_object
from ringfence.promotion.trust import PinnedKey, Trust

IN_TOTO = "application/vnd.in-toto+json"
STATEMENT = "https://in-toto.io/Statement/v1"
MAX_ENVELOPE = 1_048_576


class _Signature(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    keyid: str
    sig: str


class _Envelope(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    payload_type: str = msgspec.field(name="payloadType")
    payload: str
    signatures: tuple[_Signature, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Signed:
    """A statement and the pinned key that signed it."""

    statement: dict[str, Value]
    payload: bytes
    by: PinnedKey


def encode_for_signing(payload_type: str, payload: bytes) -> bytes:
    """The pre-authentication encoding: what is signed names its type and lengths."""
    kind = payload_type.encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def seal(statement: dict[str, Value], key: Ed25519PrivateKey, keyid: str) -> bytes:
    """An envelope as JSON bytes, one line."""
    payload = json.dumps(statement, sort_keys=True, separators=(",", ":")).encode()
    envelope = {
        "payloadType": IN_TOTO,
        "payload": base64.b64encode(payload).decode(),
        "signatures": [
            {"keyid": keyid, "sig": base64.b64encode(key.sign(encode_for_signing(IN_TOTO, payload))).decode()}
        ],
    }
    return json.dumps(envelope, sort_keys=True, separators=(",", ":")).encode() + b"\n"


def unseal(raw: bytes, trust: Trust, role: str, at: int) -> Signed:
    """The statement, if exactly one signature stands on it and a pinned key of that role made it; raises Malformed."""
    try:
        envelope = msgspec.convert(parse_object(raw, limit=MAX_ENVELOPE), _Envelope, strict=True)
        payload = base64.b64decode(envelope.payload, validate=True)
    except (msgspec.ValidationError, ValueError) as error:
        raise Malformed(f"not a DSSE envelope: {error}") from None
    if envelope.payload_type != IN_TOTO or len(envelope.signatures) != 1:
        raise Malformed("not an in-toto payload with exactly one signature")
    signature = envelope.signatures[0]
    pinned = trust.key(signature.keyid, role, at)
    if pinned is None:
        raise Malformed(f"signed by no pinned key with the role {role}")
    try:
        made = base64.b64decode(signature.sig, validate=True)
        pinned.key.verify(made, encode_for_signing(IN_TOTO, payload))
    except (InvalidSignature, ValueError):
        raise Malformed("the signature is not by the pinned key") from None
    statement = parse_object(payload, limit=MAX_ENVELOPE)
    if statement.get("_type") != STATEMENT:
        raise Malformed("the payload is not an in-toto statement")
    return Signed(statement=statement, payload=payload, by=pinned)
