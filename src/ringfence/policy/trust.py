"""Which repository policies a person has trusted: one file a repository, outside every worktree."""

import hashlib
import os
import tempfile

import msgspec

from ringfence.model.errors import PolicyError
from ringfence.model.ids import Micros, Sha256
from ringfence.model.person import Person


class Trust(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One person's word for one text of one repository's policy."""

    root: str
    digest: str
    by: str
    uid: int
    how: str
    at: int
    """Microseconds since the epoch."""


class TrustStore:
    """A folder of trust records. The caller has made the folder private; the newest record of a repository counts."""

    def __init__(self, directory: str) -> None:
        self._directory = directory

    def trust(self, root: str, digest: Sha256 | str, by: Person, now: Micros | int) -> Trust:
        """Record that ``by`` trusts the policy with this ``trust_digest`` in the repository at ``root``."""
        record = Trust(root=os.path.realpath(root), digest=str(digest), by=by.name, uid=by.uid, how=by.how, at=int(now))
        os.makedirs(self._directory, mode=0o700, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=self._directory, prefix=".new-")
        with os.fdopen(descriptor, "wb") as file:
            file.write(msgspec.json.encode(record))
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, self._path(record.root))
        return record

    def is_trusted(self, root: str, digest: Sha256 | str) -> bool:
        """Whether this very policy is trusted there. What cannot be read is not trusted."""
        record = self.find(root)
        return record is not None and record.digest == str(digest)

    def find(self, root: str) -> Trust | None:
        """The record of a repository, or None where there is none that can be read."""
        real = os.path.realpath(root)
        try:
            with open(self._path(real), "rb") as file:
                record = msgspec.json.decode(file.read(65_536), type=Trust, strict=True)
        except (OSError, msgspec.DecodeError, UnicodeDecodeError):
            return None
        return record if record.root == real else None

    def withdraw(self, root: str) -> None:
        """Forget a repository's trust."""
        try:
            os.unlink(self._path(os.path.realpath(root)))
        except FileNotFoundError:
            return
        except OSError as error:
            raise PolicyError(
                "trust-not-withdrawn", f"the record stays: {error.strerror}", where=root, remedy="remove it by hand"
            ) from None

    def _path(self, real_root: str) -> str:
        return os.path.join(self._directory, hashlib.sha256(real_root.encode()).hexdigest() + ".json")
