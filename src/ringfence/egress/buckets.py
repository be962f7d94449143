"""A token bucket: how many connections a mission may open before the excess is refused and counted. Pure."""

from dataclasses import dataclass


@dataclass(slots=True)
class Bucket:
    """Holds up to ``burst`` tokens and gains ``rate`` a second; starts full."""

    rate: float
    burst: float
    _tokens: float = -1.0
    _at: float = 0.0

    def take(self, now: float) -> bool:
        """Take one token at ``now`` (seconds, monotonic). False: none left. A clock that goes back adds nothing."""
        if self._tokens < 0:
            self._tokens, self._at = self.burst, now
        self._tokens = min(self.burst, self._tokens + max(0.0, now - self._at) * self.rate)
        self._at = max(now, self._at)
        if self._tokens < 1.0:
            return False
        self._tokens -= 1.0
        return True
