"""Signed checkpoints: C2SP tlog-checkpoint in a signed note. Text in, values out; the signing itself is elsewhere. Pure.

The note's key name carries the key's epoch; who may sign which size is judged by the verifier.
"""

import base64
import binascii
import hashlib
import re
from dataclasses import dataclass

ED25519 = b"\x01"
LONGEST = 65_536
"""Bytes of a note."""
_SIZE = re.compile(r"0|[1-9][0-9]{0,15}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """One signature line: who says to have signed, the key's hint, the signature."""

    name: str
    key_id: bytes
    value: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """The head of one log: origin, records, root, and who signed."""

    origin: str
    size: int
    root: bytes
    signatures: tuple[Signature, ...] = ()

    def body(self) -> bytes:
        """The bytes that are signed."""
        return f"{self.origin}\n{self.size}\n{base64.b64encode(self.root).decode()}\n".encode()

    def text(self) -> bytes:
        """The whole note."""
        lines = [f"— {s.name} {base64.b64encode(s.key_id + s.value).decode()}\n" for s in self.signatures]
        return self.body() + ("\n" + "".join(lines)).encode()


def origin(log: str) -> str:
    """The origin line of a log."""
    return f"ringfence/{log}"


def log_of(origin_line: str) -> str | None:
    """The log that an origin line names, or None where it is none of ours."""
    found = origin_line.removeprefix("ringfence/")
    return found if origin(found) == origin_line else None


def key_name(log: str, epoch: int) -> str:
    """The name of the key of one epoch."""
    return f"{origin(log)}/{epoch}"


def key_id(name: str, public: bytes) -> bytes:
    """The first four bytes of SHA-256(name, line feed, 0x01, public key)."""
    return hashlib.sha256(name.encode() + b"\n" + ED25519 + public).digest()[:4]


def parse(text: bytes) -> Checkpoint | None:
    """The checkpoint of a note, or None where it is not exactly a note of three lines with signatures.

    Who reads it from a file reads one byte more than ``LONGEST``: what follows would not be seen.
    """
    if len(text) > LONGEST:
        return None
    try:
        head, signed, rest = text.decode().partition("\n\n")
        origin_line, size, root = head.split("\n")
        if not signed or not rest.endswith("\n") or not _SIZE.fullmatch(size) or not origin_line:
            return None
        signatures = tuple(_signature(line) for line in rest[:-1].split("\n"))
        digest = _base64(root)
    except (ValueError, binascii.Error):
        return None
    if len(digest) != 32:
        return None
    return Checkpoint(origin=origin_line, size=int(size), root=digest, signatures=signatures)


def _signature(line: str) -> Signature:
    dash, name, value = line.split(" ")
    raw = _base64(value)
    if dash != "—" or not name or "+" in name or len(raw) < 5:
        raise ValueError(line)
    return Signature(name=name, key_id=raw[:4], value=raw[4:])


def _base64(text: str) -> bytes:
    raw = base64.b64decode(text, validate=True)
    if base64.b64encode(raw).decode() != text:  # spare bits that are set would be a second spelling
        raise ValueError(text)
    return raw
