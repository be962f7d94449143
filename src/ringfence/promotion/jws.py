"""JSON Web Signatures, the little of them that is safe. Pure.

The algorithm is what the issuer's pin says, the key is one that was pinned: nothing in the token's own header can
choose either, so ``none``, HMAC with the public key, embedded keys and key URLs have nothing to act on.
"""

import base64
import re
from dataclasses import dataclass

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa, utils
from cryptography.hazmat.primitives.hashes import SHA256

from ringfence.promotion.strict import Malformed, Value, parse_object

MAX_TOKEN = 16_384
_PART = re.compile(rb"[A-Za-z0-9_-]+\Z")
ALGORITHMS = frozenset({"RS256", "ES256"})
PublicKey = rsa.RSAPublicKey | ec.EllipticCurvePublicKey


class BadToken(ValueError):
    """The token is not one that a pinned key signed; the message says why and holds nothing of the token."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Jwk:
    """One pinned public key."""

    kid: str
    algorithm: str
    key: PublicKey


@dataclass(frozen=True, slots=True, kw_only=True)
class Unverified:
    """A token taken apart; nothing in it is true yet."""

    header: dict[str, Value]
    claims: dict[str, Value]
    signed: bytes
    signature: bytes


def take_apart(token: bytes) -> Unverified:
    """The three parts of a compact token; raises BadToken for anything else."""
    raw = token.removesuffix(b"\n")
    if len(raw) > MAX_TOKEN:
        raise BadToken(f"longer than {MAX_TOKEN} bytes")
    parts = raw.split(b".")
    if len(parts) != 3:
        raise BadToken("not three parts")
    try:
        header = parse_object(decode_part(parts[0]), limit=MAX_TOKEN, depth=8)
        claims = parse_object(decode_part(parts[1]), limit=MAX_TOKEN, depth=8)
    except Malformed as error:
        raise BadToken(f"header or claims: {error}") from None
    return Unverified(header=header, claims=claims, signed=parts[0] + b"." + parts[1], signature=decode_part(parts[2]))


def decode_part(part: bytes) -> bytes:
    """base64url without padding, in its one canonical form."""
    if not _PART.match(part):
        raise BadToken("a part is not base64url")
    raw = base64.urlsafe_b64decode(part + b"=" * (-len(part) % 4)) if len(part) % 4 != 1 else b""
    if not raw or base64.urlsafe_b64encode(raw).rstrip(b"=") != part:
        raise BadToken("a part is not canonical base64url")
    return raw


def check_signature(token: Unverified, keys: tuple[Jwk, ...], algorithms: tuple[str, ...]) -> None:
    """Return only if a pinned key of a pinned algorithm signed the token; raises BadToken."""
    algorithm, kid = token.header.get("alg"), token.header.get("kid")
    if algorithm not in algorithms or algorithm not in ALGORITHMS:
        raise BadToken(f"algorithm {algorithm!a} is not pinned for this issuer"[:120])
    if "crit" in token.header or "b64" in token.header:
        raise BadToken("asks for extensions that are not understood")
    if not isinstance(kid, str) or not kid:
        raise BadToken("names no key: cannot tell which pinned key to ask")
    key = next((k for k in keys if k.kid == kid and k.algorithm == algorithm), None)
    if key is None:
        raise BadToken("names a key that is not pinned for this issuer")
    try:
        _verify(key.key, token)
    except (InvalidSignature, ValueError):
        raise BadToken("the signature is not by the pinned key") from None


def _verify(key: PublicKey, token: Unverified) -> None:
    if isinstance(key, rsa.RSAPublicKey):
        key.verify(token.signature, token.signed, padding.PKCS1v15(), SHA256())
        return
    if len(token.signature) != 64:
        raise InvalidSignature
    half = int.from_bytes(token.signature[:32]), int.from_bytes(token.signature[32:])
    key.verify(utils.encode_dss_signature(*half), token.signed, ec.ECDSA(SHA256()))


def parse_jwks(raw: bytes) -> tuple[Jwk, ...]:
    """The signing keys of a JWKS file; raises Malformed. Keys for encryption and of other kinds are left out."""
    listed = parse_object(raw, limit=1_048_576).get("keys")
    if not isinstance(listed, list):
        raise Malformed("no list of keys")
    keys = [key for item in listed if isinstance(item, dict) and (key := _parse_jwk(item)) is not None]
    if not keys:
        raise Malformed("no usable signing key")
    if len({key.kid for key in keys}) != len(keys):
        raise Malformed("two keys with one kid")
    return tuple(keys)


def _parse_jwk(item: dict[str, Value]) -> Jwk | None:
    kid, kind = item.get("kid"), item.get("kty")
    if item.get("use", "sig") != "sig" or not isinstance(kid, str) or not kid:
        return None
    try:
        if kind == "RSA" and item.get("alg", "RS256") == "RS256":
            numbers = rsa.RSAPublicNumbers(e=_number(item.get("e")), n=_number(item.get("n")))
            if numbers.n.bit_length() < 2048:
                raise Malformed("an RSA key shorter than 2048 bits")
            return Jwk(kid=kid, algorithm="RS256", key=numbers.public_key())
        if kind == "EC" and item.get("crv") == "P-256":
            point = ec.EllipticCurvePublicNumbers(_number(item.get("x")), _number(item.get("y")), ec.SECP256R1())
            return Jwk(kid=kid, algorithm="ES256", key=point.public_key())
    except (BadToken, ValueError) as error:
        raise Malformed(f"key {kid[:40]!a}: {error}") from None
    return None


def _number(value: Value | None) -> int:
    if not isinstance(value, str):
        raise Malformed("a key's number is not a string")
    return int.from_bytes(decode_part(value.encode("utf-8")))
