"""The side store: personal data, contents and long texts, encrypted, apart from the evidence, erasable by subject.

The record holds SHA-256(salt, value); salt and value lie here under a key of their subject. Destroying the key erases
them, and leaves every proof as it was: a salt of 32 random bytes leaves nothing to guess from.
"""

import hashlib
import os
import struct
import threading
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from ringfence.ledger.files import open_regular, read_small
from ringfence.ledger.segment import replace, sync_directory
from ringfence.model.entry import Json
from ringfence.model.errors import LedgerError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

_FRAME = struct.Struct(">I12s")
_MAX = 64 << 20


def subject_id(subject: str) -> str:
    """The file name of a subject: a hash, so that the folder's listing tells no names."""
    return hashlib.sha256(b"ringfence subject\n" + subject.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def commitment(salt: bytes, value: bytes) -> str:
    """What the record holds of a value."""
    return hashlib.sha256(salt + value).hexdigest()


class PersonalStore:
    """The side store of one ledger. cryptography is imported when the first value is kept or read."""

    def __init__(self, directory: str) -> None:
        """``directory`` is the ledger's; nothing is read or made yet."""
        self._folder = f"{directory}/private"
        self._lock = threading.Lock()

    def keep(self, subject: str, values: Mapping[str, str]) -> Mapping[str, Json]:
        """Store the values durably under the subject's key; returns ``{name: {"bytes", "commit", "subject"}}``.

        Raises OSError where they cannot be stored: then no record may speak of them.
        """
        own = subject_id(subject)
        commitments: dict[str, Json] = {}
        frames = []
        with self._lock:
            cipher = self._cipher(own, make=True)
            for name, value in values.items():
                raw = value.encode("utf-8", "surrogatepass")
                salt = os.urandom(32)
                commit = commitment(salt, raw)
                nonce = os.urandom(12)
                sealed = cipher.encrypt(nonce, salt + raw, commit.encode())
                frames.append(_FRAME.pack(64 + len(sealed), nonce) + commit.encode() + sealed)
                commitments[name] = {"bytes": len(raw), "commit": commit, "subject": own}
            self._append(own, b"".join(frames))
        return commitments

    def load(self, commit: Mapping[str, Json]) -> str | None:
        """The value of a commitment as a record holds it, checked against it; None where it was erased or is lost."""
        wanted, own = str(commit.get("commit")), str(commit.get("subject"))
        try:
            cipher = self._cipher(own, make=False)
        except FileNotFoundError:
            return None
        for nonce, found, sealed in self._frames(own):
            if found == wanted:
                from cryptography.exceptions import InvalidTag

                try:
                    opened = cipher.decrypt(nonce, sealed, found.encode())
                except InvalidTag:
                    return None
                if commitment(opened[:32], opened[32:]) != wanted:
                    return None
                return opened[32:].decode("utf-8", "surrogatepass")
        return None

    def erase(self, own: str) -> bool:
        """Destroy a subject's key and values, given its id; whether there were any."""
        with self._lock:
            gone = False
            for name in (f"{own}.key", f"{own}.box"):
                path = f"{self._folder}/{name}"
                try:
                    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
                except FileNotFoundError:
                    continue
                try:
                    if name.endswith(".key"):
                        os.pwrite(fd, os.urandom(os.fstat(fd).st_size), 0)
                        os.fsync(fd)
                finally:
                    os.close(fd)
                os.unlink(path)
                gone = True
            if gone:
                sync_directory(self._folder)
            return gone

    def has(self, own: str) -> bool:
        """Whether a subject, given its id, has values or a key."""
        return any(os.path.exists(f"{self._folder}/{own}.{kind}") for kind in ("key", "box"))

    def _cipher(self, own: str, *, make: bool) -> "AESGCM":
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        path = f"{self._folder}/{own}.key"
        try:
            key = bytes.fromhex(read_small(path, 256).decode().strip())
        except FileNotFoundError:
            if not make:
                raise
            os.makedirs(self._folder, mode=0o700, exist_ok=True)
            key = AESGCM.generate_key(256)
            replace(path, key.hex().encode() + b"\n")
        except ValueError as error:
            raise LedgerError(
                "ledger-key",
                "a key of the side store is damaged",
                where=path,
                remedy="restore it from a backup; what it encrypts cannot be read without it",
            ) from error
        return AESGCM(key)

    def _append(self, own: str, data: bytes) -> None:
        path = f"{self._folder}/{own}.box"
        fresh = not os.path.exists(path)
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
        try:
            view = memoryview(data)
            before = os.fstat(fd).st_size
            try:
                while view:
                    view = view[os.write(fd, view) :]
                os.fdatasync(fd)
            except OSError:
                os.ftruncate(fd, before)
                raise
        finally:
            os.close(fd)
        if fresh:
            sync_directory(self._folder)

    def _frames(self, own: str) -> Iterator[tuple[bytes, str, bytes]]:
        path = f"{self._folder}/{own}.box"
        if not os.path.exists(path):
            return
        with open_regular(path) as stream:
            while len(head := stream.read(_FRAME.size)) == _FRAME.size:
                length, nonce = _FRAME.unpack(head)
                if not 64 <= length <= _MAX:
                    return
                data = stream.read(length)
                if len(data) != length:
                    return
                yield nonce, data[:64].decode("ascii", "replace"), data[64:]
