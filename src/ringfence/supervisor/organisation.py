"""What the organisation's policy says to the ledger, read again whenever its file changed."""

import threading

from ringfence.ledger.classes import Organisation, Stated
from ringfence.model.errors import RingfenceError
from ringfence.policy.in_force import organisation_in_force
from ringfence.policy.store import PolicyStore
from ringfence.supervisor.paths import Paths, file_stamp
from ringfence.supervisor.presets import Presets

POLICY_NAME = "policy.yaml"


class OrganisationPolicy:
    """The organisation's policy file as the ledger's retention sees it. Safe to use from many threads."""

    def __init__(self, paths: Paths, store: PolicyStore) -> None:
        """``store`` keeps each policy that was used by its digest, so that an entry's digest leads back to it."""
        self._file = f"{paths.organisation}/{POLICY_NAME}"
        self._presets = Presets(paths)
        self._store = store
        self._lock = threading.Lock()
        self._kept: tuple[tuple[int, ...], Organisation] | None = None

    def retention(self) -> Organisation:
        """The days that it asks for. Never raises: a policy that cannot be used is an answer, and shortens nothing."""
        with self._lock:
            identity = file_stamp(self._file)
            if self._kept is not None and identity and self._kept[0] == identity:
                return self._kept[1]
            found = self._read()
            self._kept = None if found.fault else (identity, found)
            return found

    def _read(self) -> Organisation:
        try:
            policy = organisation_in_force(self._file, network_presets=self._presets)
            if policy is None:
                return Organisation(file=self._file)
            self._store.put(policy.effective())
        except RingfenceError as error:
            place = f" ({error.where})" if error.where not in {"", self._file} else ""
            return Organisation(file=self._file, there=True, fault=f"{error.code}: {error.what}{place}")
        except OSError as error:
            return Organisation(file=self._file, there=True, fault=f"{error.strerror}")
        asked = policy.retention
        stated = (
            Stated()
            if asked is None
            else Stated(operational_days=asked.operational_days, compliance_days=asked.compliance_days)
        )
        return Organisation(file=self._file, there=True, stated=stated, policy=str(policy.digest))
