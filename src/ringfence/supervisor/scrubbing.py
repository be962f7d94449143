"""What the ledger must never keep by its text: secrets of known credentials, and what policies' own patterns find."""

import threading
from collections.abc import Callable, Iterable

from ringfence.ledger.log import Ledger
from ringfence.ledger.scrub import SecretScrubber, load_key
from ringfence.policy.policy import Policy

MOST_VALUES = 128
"""Of tokens that a command makes anew every hour the newest are known."""


class Scrubbing:
    """Teaches the ledger each pattern and value once. They only add, but for values that many newer ones have replaced."""

    def __init__(self, ledger: Ledger, read: Callable[[], tuple[str, ...]]) -> None:
        """``read`` gives the secrets that are known by their exact text now; a person may add and change them at any time."""
        self._ledger = ledger
        self._read = read
        self._values: dict[str, None] = {}
        self._patterns: dict[str, None] = {}
        self._lock = threading.Lock()
        self.look()

    def look(self) -> None:
        """Scrub by the values of now too."""
        self._add(self._values, self._read())

    def learn(self, policy: Policy) -> None:
        """Scrub by this policy's patterns too. Raises LedgerError for one that cannot be run: then nothing is decided by it."""
        self._add(self._patterns, policy.secret_patterns)

    def learn_value(self, value: str) -> None:
        """Scrub by this value too: it was read where only its use may read it."""
        self._add(self._values, (value,))

    def _add(self, known: dict[str, None], found: Iterable[str]) -> None:
        with self._lock:
            new = [item for item in found if item not in known]
            if not new:
                return
            known.update(dict.fromkeys(new))
            for item in list(self._values)[:-MOST_VALUES]:
                del self._values[item]
            try:
                key = load_key(self._ledger.directory)
                self._ledger.use_secrets(SecretScrubber(key, patterns=self._patterns, values=self._values))
            except BaseException:
                for item in new:  # what could not be taken is refused the next time as well
                    known.pop(item, None)
                raise
