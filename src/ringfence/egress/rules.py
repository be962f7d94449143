"""What is refused by construction, before and after any policy: host spellings, the address floor, names that differ.

Pure. Which hosts a policy allows is the policy room's business; nothing here grants anything.
"""

import enum
import ipaddress
import math
from collections import Counter
from dataclasses import dataclass
from typing import TypeAlias

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network

LABEL = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-_")
MAX_NAME, MAX_LABEL = 253, 63
SYNTHETIC4 = ipaddress.IPv4Network("198.18.0.0/15")
SYNTHETIC6 = ipaddress.IPv6Network("fd72:6e66:6365::/48")


class FloorClass(enum.Enum):
    """Why an address is never dialled for a name. ``liftable`` ones can be granted by a rule that names the address."""

    METADATA = "metadata"
    LOOPBACK = "loopback"
    LINK_LOCAL = "link-local"
    MULTICAST = "multicast"
    UNSPECIFIED = "unspecified"
    RESERVED = "reserved"
    SYNTHETIC = "synthetic"
    PRIVATE = "private"
    CGNAT = "cgnat"
    UNIQUE_LOCAL = "unique-local"
    OWN = "own-address"

    @property
    def liftable(self) -> bool:
        """A literal or CIDR rule that allows exactly this address opens it; the others stay shut whatever is written."""
        return self in {FloorClass.PRIVATE, FloorClass.CGNAT, FloorClass.UNIQUE_LOCAL, FloorClass.OWN}


class BadHostError(ValueError):
    """A host that is neither a name nor an address, or is written so that two programs would read it differently."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """One destination host, spelled one way: lower case, no trailing dot, addresses in their shortest usual form."""

    text: str
    address: Address | None = None
    """Set where the host is a literal address."""


def canonical_host(text: str) -> Host:
    """The one spelling of a host. Raises BadHostError for what no careful client would send.

    Decimal, octal, hexadecimal and short forms of IPv4 are read as the C library reads them, and IPv4-mapped IPv6 is the
    IPv4 address that the kernel would dial, so that no spelling gets another verdict than the plain one.
    """
    if not text.isascii():
        raise BadHostError("a host with characters outside ASCII: send the xn-- form")
    bare = "" if "\x00" in text else text
    if bare.startswith("[") and bare.endswith("]"):
        return _literal6(bare[1:-1])
    if ":" in bare:
        return _literal6(bare)
    lowered = bare.lower().removesuffix(".")
    labels = lowered.split(".")
    if _numeric(labels[-1]):
        address = _aton(labels)
        return Host(text=str(address), address=address)
    if not lowered or len(lowered) > MAX_NAME:
        raise BadHostError("an empty host, or one longer than 253 characters")
    for label in labels:
        if not label or len(label) > MAX_LABEL or not LABEL.issuperset(label):
            raise BadHostError("a host with an empty, overlong or oddly spelled label")
    return Host(text=lowered)


def canonical_address(address: Address) -> Address:
    """IPv4-mapped IPv6 becomes the IPv4 address it means; everything else stays."""
    if isinstance(address, ipaddress.IPv6Address) and (mapped := address.ipv4_mapped) is not None:
        return mapped
    return address


def floor(address: Address) -> FloorClass | None:
    """The class that forbids dialling this address, or ``None``. Addresses carried inside IPv6 count as well."""
    found = _floor(canonical_address(address))
    if found is not None or isinstance(address, ipaddress.IPv4Address):
        return found
    for inner in _embedded(address):
        if (found := _floor(inner)) is not None:
            return found
    return FloorClass.RESERVED if address in _LOCAL_NAT64 else None


def same_host(decided: Host, told: str) -> bool:
    """Whether the name in a TLS hello or Host header is the one decided upon. An unreadable one is not."""
    try:
        return canonical_host(told).text == decided.text
    except BadHostError:
        return False


def split_authority(text: str, default: int | None = None) -> tuple[str, int]:
    """Host and port of ``host:port``, ``[v6]:port`` or (with a default) ``host``. Raises BadHostError.

    User information, spaces, a second colon outside brackets and ports outside 1..65535 are refused, not guessed at.
    """
    if any(c in "@/\\?#% \t\r\n" or ord(c) < 33 or ord(c) > 126 for c in text):
        raise BadHostError("an authority with characters that do not belong in it")
    if text.startswith("["):
        host, bracket, rest = text[1:].partition("]")
        if not bracket or (rest and not rest.startswith(":")):
            raise BadHostError("an address in brackets that does not end well")
        digits = rest[1:] if rest else ""
        host = f"[{host}]"
    else:
        host, colon, digits = text.partition(":")
        if ":" in digits or (colon and not digits):
            raise BadHostError("an authority with more than one colon, or none after it")
    if not digits:
        if default is None:
            raise BadHostError("an authority without a port")
        return host, default
    if not digits.isdigit() or len(digits) > 5 or not 1 <= int(digits) <= 65535:
        raise BadHostError("a port outside 1 to 65535")
    return host, int(digits)


def odd_labels(name: str) -> bool:
    """Whether a name carries labels that look like data rather than a word: the shape of a DNS tunnel.

    A label of 40 characters or more, or of 20 or more whose characters are spread as evenly as random text, or labels
    that together hold more than 100 characters below the registrable part.
    """
    labels = name.split(".")[:-2]
    if sum(map(len, labels)) > 100:
        return True
    return any(len(label) >= 40 or (len(label) >= 20 and _entropy(label) > 3.6) for label in labels)


def _entropy(text: str) -> float:
    counts = Counter(text)
    return -sum(n / len(text) * math.log2(n / len(text)) for n in counts.values())


def _literal6(text: str) -> Host:
    if "%" in text:
        raise BadHostError("an address with a zone")
    try:
        address = canonical_address(ipaddress.IPv6Address(text))
    except ValueError as error:
        raise BadHostError("not an IPv6 address") from error
    return Host(text=str(address), address=address)


def _numeric(label: str) -> bool:
    return label.isdigit() or (label.startswith("0x") and all(c in "0123456789abcdef" for c in label[2:]))


def _aton(labels: list[str]) -> ipaddress.IPv4Address:
    """Read one to four numbers as inet_aton does: octal with 0, hexadecimal with 0x, the last fills the rest."""
    if len(labels) > 4 or not all(_numeric(label) for label in labels):
        raise BadHostError("a host that ends in a number and is no IPv4 address")
    numbers = [_number(label) for label in labels]
    *head, last = numbers
    if any(n > 255 for n in head) or last >= 256 ** (5 - len(numbers)):
        raise BadHostError("an IPv4 address with a part that is too large")
    value = last
    for place, number in enumerate(head):
        value += number << (24 - 8 * place)
    return ipaddress.IPv4Address(value)


def _number(label: str) -> int:
    if len(label) > 12:
        raise BadHostError("an address with a part that is too long")
    try:
        if label.startswith("0x"):
            return int(label, 0)
        return int(label, 8) if len(label) > 1 and label.startswith("0") else int(label)
    except ValueError as error:
        raise BadHostError("a number in an address that is none") from error


def _network(text: str) -> Network:
    return ipaddress.ip_network(text)


METADATA = frozenset(
    ipaddress.ip_address(text)
    for text in (
        "169.254.169.254",  # the address most clouds share
        "169.254.170.2",  # container credentials
        "169.254.170.23",  # pod identity
        "100.100.100.200",
        "168.63.129.16",
        "192.0.0.192",
        "fd00:ec2::254",
        "fd00:ec2::23",
        "fd20:ce::254",
        "fd00:42::42",
    )
)
_CLASSES: tuple[tuple[Network, FloorClass], ...] = (
    (_network("0.0.0.0/8"), FloorClass.UNSPECIFIED),
    (_network("127.0.0.0/8"), FloorClass.LOOPBACK),
    (_network("169.254.0.0/16"), FloorClass.LINK_LOCAL),
    (_network("224.0.0.0/4"), FloorClass.MULTICAST),
    (_network("240.0.0.0/4"), FloorClass.RESERVED),
    (SYNTHETIC4, FloorClass.SYNTHETIC),
    (_network("10.0.0.0/8"), FloorClass.PRIVATE),
    (_network("172.16.0.0/12"), FloorClass.PRIVATE),
    (_network("192.168.0.0/16"), FloorClass.PRIVATE),
    (_network("192.0.0.0/24"), FloorClass.RESERVED),
    (_network("192.88.99.0/24"), FloorClass.RESERVED),
    (_network("100.64.0.0/10"), FloorClass.CGNAT),
    (_network("::/128"), FloorClass.UNSPECIFIED),
    (_network("::1/128"), FloorClass.LOOPBACK),
    (_network("fe80::/10"), FloorClass.LINK_LOCAL),
    (_network("fec0::/10"), FloorClass.UNIQUE_LOCAL),
    (_network("ff00::/8"), FloorClass.MULTICAST),
    (SYNTHETIC6, FloorClass.SYNTHETIC),
    (_network("fc00::/7"), FloorClass.UNIQUE_LOCAL),
)
_RANGES4 = tuple((int(n[0]), int(n[-1]), c) for n, c in _CLASSES if n.version == 4)
_RANGES6 = tuple((int(n[0]), int(n[-1]), c) for n, c in _CLASSES if n.version == 6)
_LOCAL_NAT64 = _network("64:ff9b:1::/48")
"""Where in such an address the translator keeps the IPv4 address is that network's own affair (RFC 8215)."""
_NAT64 = (_network("64:ff9b::/96"), _LOCAL_NAT64)
_COMPATIBLE = (_network("::/96"), _network("::ffff:0:0:0/96"))
_ISATAP = frozenset({0x5EFE, 0x0200_5EFE})


def _floor(address: Address) -> FloorClass | None:
    if address in METADATA:
        return FloorClass.METADATA
    value = int(address)
    ranges = _RANGES4 if isinstance(address, ipaddress.IPv4Address) else _RANGES6
    return next((kind for low, high, kind in ranges if low <= value <= high), None)


def _embedded(address: ipaddress.IPv6Address) -> tuple[ipaddress.IPv4Address, ...]:
    """IPv4 addresses that a translator or tunnel on the way would dial for this IPv6 address."""
    found = []
    if any(address in net for net in (*_NAT64, *_COMPATIBLE)) or int(address) >> 32 & 0xFFFF_FFFF in _ISATAP:
        found.append(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
    if address.sixtofour is not None:
        found.append(address.sixtofour)
    if address.teredo is not None:
        found.extend(address.teredo)
    return tuple(found)
