"""What the ledger must never keep by its text: secrets of known credentials, and what policies' own patterns find."""

import threading

from ringfence.ledger.log import Ledger
from ringfence.ledger.scrub import SecretScrubber, load_key
from ringfence.policy.policy import Policy


class Scrubbing:
    """Teaches the ledger each pattern once. Patterns only ever add: a policy cannot make an entry say more."""

    def __init__(self, ledger: Ledger, values: tuple[str, ...]) -> None:
        """``values`` are secrets known by their exact text."""
        self._ledger = ledger
        self._values = values
        self._patterns: tuple[str, ...] = ()
        self._lock = threading.Lock()
        if values:
            self._use()

    def learn(self, policy: Policy) -> None:
        """Scrub by this policy's patterns too. Raises LedgerError for one that cannot be run: then nothing is decided by it."""
        with self._lock:
            new = [pattern for pattern in policy.secret_patterns if pattern not in self._patterns]
            if new:
                self._patterns += tuple(new)
                self._use()

    def _use(self) -> None:
        key = load_key(self._ledger.directory)
        self._ledger.use_secrets(SecretScrubber(key, patterns=self._patterns, values=self._values))
