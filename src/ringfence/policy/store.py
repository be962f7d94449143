"""Every effective policy that ever decided, by digest, so that a decision can be looked into years later."""

import hashlib
import os
import re
import tempfile

from ringfence.model.errors import PolicyError
from ringfence.model.ids import Sha256

_DIGEST = re.compile(r"[0-9a-f]{64}")
MAX_BYTES = 64 << 20


class PolicyStore:
    """A folder of effective policies. The caller has made the folder private."""

    def __init__(self, directory: str) -> None:
        self._directory = directory

    def put(self, effective: bytes) -> Sha256:
        """Keep the bytes durably and return their digest. The same bytes twice are kept once."""
        digest = Sha256(hashlib.sha256(effective).hexdigest())
        path = self._path(digest)
        if os.path.exists(path):
            return digest
        os.makedirs(self._directory, mode=0o700, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=self._directory, prefix=".new-")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(effective)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        except OSError:
            os.unlink(temporary)
            raise
        _sync_folder(self._directory)
        return digest

    def get(self, digest: str) -> bytes:
        """The bytes of a digest, checked against it. Raises PolicyError ``policy-not-stored`` or ``policy-altered``."""
        if not _DIGEST.fullmatch(digest):
            raise PolicyError("policy-not-stored", "not a policy digest", remedy="give 64 hexadecimal digits")
        try:
            with open(self._path(digest), "rb", opener=_without_waiting) as file:
                effective = file.read(MAX_BYTES + 1)
        except OSError:
            raise PolicyError(
                "policy-not-stored",
                f"policy {digest} is not in the store",
                where=self._directory,
                remedy="restore it from a backup of the state directory",
            ) from None
        if hashlib.sha256(effective).hexdigest() != digest:
            raise PolicyError(
                "policy-altered",
                f"the stored policy {digest} has been altered",
                where=self._path(digest),
                remedy="restore it from a backup of the state directory",
            )
        return effective

    def _path(self, digest: str) -> str:
        return os.path.join(self._directory, f"{digest}.json")


def _without_waiting(path: str, flags: int) -> int:
    """Opens it; a pipe in its place reads as empty, and so as altered."""
    return os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)


def _sync_folder(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
