"""Names and the synthetic addresses that stand for them in one mission: each name one pair, never given to another.

Pure. The box's DNS hands the addresses out; a connection to one of them carries its name by this record alone.
"""

import ipaddress
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from ringfence.egress.rules import SYNTHETIC4, SYNTHETIC6, Address

FIRST = 256  # .0.0/24 of the pool stays unused: no address that looks like a network's own
MAX_NAMES = 20_000


class PoolFullError(Exception):
    """The mission has asked for more names than it may have: no further name gets an address."""


@dataclass(slots=True)
class NameTable:
    """The record of one mission. Grows to ``limit`` names and then refuses."""

    limit: int = MAX_NAMES
    _number: dict[str, int] = field(default_factory=dict)
    _name: dict[int, str] = field(default_factory=dict)

    def give(self, name: str) -> int:
        """The number of a name (canonical spelling), a new one if needed. Raises PoolFullError at the limit."""
        number = self._number.get(name)
        if number is None:
            if len(self._number) >= self.limit:
                raise PoolFullError(name)
            number = FIRST + len(self._number)
            self._number[name], self._name[number] = number, name
        return number

    def knows(self, name: str) -> bool:
        """Whether the name already has its pair."""
        return name in self._number

    def restore(self, pairs: Iterable[tuple[int, str]]) -> None:
        """Take over what an earlier worker of this mission gave out, so that no address changes its name."""
        for number, name in pairs:
            self._number[name], self._name[number] = number, name

    def pairs(self) -> Iterator[tuple[int, str]]:
        """Every number with its name."""
        return iter(self._name.items())

    def name_of(self, address: Address) -> str | None:
        """The name an address was given out for, or ``None``: not ours, or never given out."""
        pool = SYNTHETIC4 if isinstance(address, ipaddress.IPv4Address) else SYNTHETIC6
        if address not in pool:
            return None
        return self._name.get(int(address) - int(pool.network_address))


def address4(number: int) -> ipaddress.IPv4Address:
    """The IPv4 address of a number."""
    return SYNTHETIC4.network_address + number


def address6(number: int) -> ipaddress.IPv6Address:
    """The IPv6 address of a number."""
    return SYNTHETIC6.network_address + number
