"""Host names and addresses: normal form, and rules over them by label, literal or CIDR. Pure.

The attack this file answers: one address has many spellings (decimal, octal, hexadecimal, short, mapped into IPv6),
and a name glob that is compared as text lets ``evil-example.org`` or ``10.0.0.1.example.org`` through.
"""

import ipaddress
import re
from typing import TypeAlias

from ringfence.policy.globs import glob_matches

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
NetworkRange: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network

_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")
_RULE_LABEL = re.compile(r"[a-z0-9_*-]{1,63}")
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_COMPATIBLE = ipaddress.IPv6Network("::/96")
_SIX_TO_FOUR = ipaddress.IPv6Network("2002::/16")


def normal_name(host: str) -> str | None:
    """A host name in lowercase without its final dot; None where it is no ASCII host name (write IDNs as ``xn--``)."""
    if len(host) > 254 or not host.isascii():
        return None
    name = host.lower().removesuffix(".")
    labels = name.split(".")
    return name if all(_LABEL.fullmatch(label) for label in labels) else None


def address_of(host: str) -> Address | None:
    """The address that a spelling means to any resolver (``0x7f.1``, ``2130706433``, ``[::ffff:127.0.0.1]``), or None."""
    text = host.strip("[]").split("%", 1)[0].removesuffix(".")
    if ":" in text:
        try:
            return _unwrapped(ipaddress.IPv6Address(text))
        except ValueError:
            return None
    numbers = [_number(part) for part in text.split(".")]
    if not 1 <= len(numbers) <= 4 or any(number is None for number in numbers):
        return None
    *front, last = [number for number in numbers if number is not None]
    if any(number > 255 for number in front) or last >= 256 ** (4 - len(front)):
        return None
    value = last
    for place, number in enumerate(front):
        value += number << (24 - 8 * place)
    return ipaddress.IPv4Address(value)


def _number(part: str) -> int | None:
    if not part or len(part) > 16 or not part.isascii() or not part.isalnum():
        return None
    base = 16 if part[:2].lower() == "0x" else 8 if part[0] == "0" and len(part) > 1 else 10
    digits = part[2:] if base == 16 else part
    try:
        return int(digits or "0", base)
    except ValueError:
        return None


def _unwrapped(address: ipaddress.IPv6Address) -> Address:
    """The IPv4 address inside an IPv6 one that merely carries it."""
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address in _SIX_TO_FOUR:
        return ipaddress.IPv4Address((int(address) >> 80) & 0xFFFFFFFF)
    inner = int(address) & 0xFFFFFFFF
    if address in _NAT64 or (address in _COMPATIBLE and inner > 0xFFFF):
        return ipaddress.IPv4Address(inner)
    return address


_LOCAL_NAMES = ("localhost", "local", "internal", "localdomain", "home.arpa")
_METADATA_NAMES = ("metadata", "instance-data", "metadata.google.internal", "metadata.goog")


def is_floor(host: str) -> str | None:
    """Why a host is never reachable without an explicit literal grant, or None for an ordinary public host."""
    address = address_of(host)
    if address is not None:
        return None if address.is_global and not address.is_multicast else "not a public address"
    name = normal_name(host)
    if name is None:
        return None
    if name in _METADATA_NAMES:
        return "a cloud metadata service"
    if any(name == local or name.endswith("." + local) for local in _LOCAL_NAMES):
        return "a name of this host or its local network"
    return None


def bad_host_rule(host: str) -> str | None:
    """What is wrong with the host of a rule, or None."""
    if _range_of(host) is not None:
        return None
    if "/" in host or ":" in host:
        return "neither a host name nor a CIDR range (a scheme, port or path does not belong here)"
    if not host.isascii():
        return "not ASCII; write the xn-- form"
    if address_of(host) is not None:
        return None
    for label in host.lower().removesuffix(".").split("."):
        if label == "**":
            continue
        if "**" in label or not _RULE_LABEL.fullmatch(label):
            return "every part between dots holds letters, digits, `-`, `_` or `*`; `**` stands alone for several parts"
    return None


def _range_of(host: str) -> NetworkRange | None:
    if "/" not in host:
        return None
    try:
        return ipaddress.ip_network(host, strict=False)
    except ValueError:
        return None


class HostRule:
    """One host of a rule, ready to be compared."""

    __slots__ = ("_address", "_parts", "_range", "literal")

    def __init__(self, host: str) -> None:
        self._range = _range_of(host)
        self._address = None if self._range else address_of(host)
        self.literal = self._range is not None or self._address is not None
        self._parts = () if self.literal else _parts(host.lower().removesuffix(".").split("."))

    @property
    def exact(self) -> bool:
        """Whether it names one host and no pattern."""
        return not any("*" in part for part in self._parts)

    @property
    def opens_floor(self) -> bool:
        """Whether it is explicit enough to open what is never open by itself: not by covering the whole world as well."""
        if self._range is not None:
            return not self._range.is_global or self._range.is_multicast
        return self.literal or self.exact

    def matches(self, host: str) -> bool:
        """Whether the rule speaks about this host. Addresses are matched by literals and ranges alone."""
        address = address_of(host)
        if address is not None:
            if self._range is not None:
                return address.version == self._range.version and address in self._range
            return address == self._address
        name = normal_name(host)
        return name is not None and not self.literal and glob_matches(self._parts, tuple(name.split(".")))


def _parts(labels: list[str]) -> tuple[str, ...]:
    """Labels as the parts of a glob, where ``**`` may stand for nothing: in a host it is one or more labels."""
    return tuple(part for label in labels for part in (("*", "**") if label == "**" else (label,)))
