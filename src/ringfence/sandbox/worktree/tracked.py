"""Whether git's index names a path, by searching its bytes: no git is run, and 20,000 entries cost nothing to load.

Only versions 2 and 3 hold whole names; for another one every path counts as tracked, so that the gate judges it
rather than leaving it in the layer unseen.
"""

from dataclasses import dataclass

_HEADER = b"DIRC"


@dataclass(frozen=True, slots=True)
class Tracked:
    """The names in one index. ``raw`` empty: there is no index, nothing is tracked."""

    raw: bytes = b""

    def covers(self, path: bytes, *, directory: bool) -> bool:
        """Whether ``path`` is tracked, or for a directory, whether anything below it is."""
        if not self.raw:
            return False
        if self.unreadable:
            return True
        needle = path + (b"/" if directory else b"\0")
        at = self.raw.find(needle, 12)
        while at >= 0:
            if self._is_entry(at):
                return True
            at = self.raw.find(needle, at + 1)
        return False

    @property
    def unreadable(self) -> bool:
        """Whether there is an index that does not hold whole names."""
        if not self.raw:
            return False
        split = b"link\0\0" in self.raw[-4096:]
        return self.raw[:4] != _HEADER or int.from_bytes(self.raw[4:8], "big") not in {2, 3} or split

    def _is_entry(self, start: int) -> bool:
        """Whether an entry's name begins at ``start``: the two bytes before hold its length, or the extended flags."""
        end = self.raw.find(b"\0", start)
        length = min(end - start, 0xFFF)
        plain = int.from_bytes(self.raw[start - 2 : start], "big")
        if plain & 0x0FFF == length and not plain & 0x4000:
            return True
        extended = int.from_bytes(self.raw[start - 4 : start - 2], "big")
        return extended & 0x4FFF == 0x4000 | length
