"""Whether git's index names a path, by searching its bytes: no git is run, and 20,000 entries cost nothing to load.

Only versions 2 and 3 hold whole names; for another one git's own list is given, and without it every path counts as
tracked, so that the gate judges it rather than leaving it in the layer unseen.
"""

from dataclasses import dataclass

_HEADER = b"DIRC"
_LINK = b"link"


@dataclass(frozen=True, slots=True)
class Tracked:
    """The names in one index. ``raw`` empty: there is no index, nothing is tracked."""

    raw: bytes = b""
    listed: bytes | None = None
    """Names by git itself, a NUL before and behind each, for an index that does not hold them whole; None: git cannot tell."""

    def covers(self, path: bytes, *, directory: bool) -> bool:
        """Whether ``path`` is tracked, or for a directory, whether anything below it is."""
        if not self.raw:
            return False
        if self.unreadable:
            if self.listed is None:
                return True
            return b"\0" + path + (b"/" if directory else b"\0") in self.listed
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
        return self.raw[:4] != _HEADER or int.from_bytes(self.raw[4:8], "big") not in {2, 3} or self._is_split()

    def _is_split(self) -> bool:
        """Whether the extension for a split index is there: not only its name, which a file may have too."""
        at = self.raw.find(_LINK, 12)
        while at >= 0:
            end = at + 8 + int.from_bytes(self.raw[at + 4 : at + 8], "big")
            left = len(self.raw) - end
            if end >= at + 8 + 20 and (left in {20, 32} or (left > 32 and self.raw[end : end + 4].isalpha())):
                return True
            at = self.raw.find(_LINK, at + 1)
        return False

    def _is_entry(self, start: int) -> bool:
        """Whether an entry's name begins at ``start``: the two bytes before hold its length, or the extended flags."""
        end = self.raw.find(b"\0", start)
        length = min(end - start, 0xFFF)
        plain = int.from_bytes(self.raw[start - 2 : start], "big")
        if plain & 0x0FFF == length and not plain & 0x4000:
            return True
        extended = int.from_bytes(self.raw[start - 4 : start - 2], "big")
        return extended & 0x4FFF == 0x4000 | length
