"""The rules of a box's network, as one netfilter batch: what leaves is redirected or refused, and each refusal logged."""

import socket
import struct

from ringfence.sandbox.inner.netlink import ACKNOWLEDGE, APPEND, CREATE, NETFILTER, Value, ask, attribute, message

SUBSYSTEM = 10 << 8
BATCH_BEGIN, BATCH_END = 0x10, 0x11
NEW_TABLE, NEW_CHAIN, NEW_RULE = 0, 3, 6
INET = 1
OUTPUT_HOOK = 3
NAT_PRIORITY, FILTER_PRIORITY = -100, 0
DROP, ACCEPT, RETURN = 0, 1, -5
REGISTER, VERDICT_REGISTER = 1, 0
LOG_GROUP, METADATA_GROUP, LOGGED_BYTES = 3, 4, 128
NUMBERED = 1
"""NFULNL_CFG_F_SEQ: so that what did not fit is counted."""
TCP, UDP, ICMP, ICMPV6 = 6, 17, 1, 58
TABLE = "ringfence"

Expression = tuple[str, list[tuple[int, Value]]]


def meta(key: int) -> Expression:
    """Load a property of the packet: 15 the network protocol, 16 the transport protocol."""
    return ("meta", [(2, key), (1, REGISTER)])


def equal(data: bytes) -> Expression:
    """Go on with the rule only if what was loaded is this."""
    return ("cmp", [(1, REGISTER), (2, 0), (3, [(1, data)])])


def unequal(data: bytes) -> Expression:
    """Go on with the rule only if what was loaded is not this."""
    return ("cmp", [(1, REGISTER), (2, 1), (3, [(1, data)])])


def load(base: int, offset: int, length: int) -> Expression:
    """Load bytes of the packet; base 1 is the network header, 2 the transport header."""
    return ("payload", [(1, REGISTER), (2, base), (3, offset), (4, length)])


def bits(mask: bytes) -> Expression:
    """Keep these bits of what was loaded."""
    return ("bitwise", [(1, REGISTER), (2, REGISTER), (3, len(mask)), (4, [(1, mask)]), (5, [(1, bytes(len(mask)))])])


def verdict(code: int) -> Expression:
    """End with accept, drop or return."""
    return ("immediate", [(1, VERDICT_REGISTER), (2, [(2, [(1, code)])])])


def log(prefix: str, group: int = LOG_GROUP) -> Expression:
    """Tell a log group, every packet at once."""
    return ("log", [(1, struct.pack(">H", group)), (2, prefix), (3, LOGGED_BYTES), (4, struct.pack(">H", 1))])


REFUSE: Expression = ("reject", [(1, 2), (2, b"\x03")])
"""ICMP of the packet's own family: administratively prohibited."""
RESET: Expression = ("reject", [(1, 1), (2, b"\x00")])
IPV4, IPV6 = [meta(15), equal(b"\x02")], [meta(15), equal(b"\x0a")]
TO_LOOPBACK4 = [*IPV4, load(1, 16, 1), equal(b"\x7f")]
TO_LOOPBACK6 = [*IPV6, load(1, 24, 16), equal(bytes(15) + b"\x01")]
FROM_LOOPBACK6 = [load(1, 8, 16), equal(bytes(15) + b"\x01")]
TO_METADATA = [
    [*IPV4, load(1, 16, 2), equal(socket.inet_aton("169.254.0.0")[:2])],
    [*IPV4, load(1, 16, 4), equal(socket.inet_aton("100.100.100.200"))],
    [*IPV4, load(1, 16, 4), equal(socket.inet_aton("168.63.129.16"))],
    [*IPV4, load(1, 16, 4), equal(socket.inet_aton("192.0.0.192"))],
    [*IPV6, load(1, 24, 4), equal(socket.inet_pton(socket.AF_INET6, "fd00:ec2::")[:4])],
    [*IPV6, load(1, 24, 16), equal(socket.inet_pton(socket.AF_INET6, "fd20:ce::254"))],
    [*IPV6, load(1, 24, 16), equal(socket.inet_pton(socket.AF_INET6, "fd00:42::42"))],
]


def established() -> list[Expression]:
    """Packets of connections that are known, and what belongs to them."""
    state = struct.pack("=I", 0x2 | 0x4)
    return [("ct", [(2, 0), (1, REGISTER)]), bits(state), unequal(bytes(4)), verdict(ACCEPT)]


def refusal(kind: int) -> list[Expression]:
    """Accept the "unreachable" that tells a program of a refusal."""
    return [load(2, 0, 1), equal(bytes([kind])), verdict(ACCEPT)]


def transport(protocol: int) -> list[Expression]:
    """Only this transport protocol."""
    return [meta(16), equal(bytes([protocol]))]


def capture_rules(port: int) -> list[list[Expression]]:
    """Every TCP connection that does not stay on loopback goes to one port."""
    redirect: list[Expression] = [
        ("immediate", [(1, REGISTER), (2, [(1, struct.pack(">H", port))])]),
        ("redir", [(1, REGISTER)]),
    ]
    return [
        [*TO_LOOPBACK4, verdict(RETURN)],
        [*TO_LOOPBACK6, verdict(RETURN)],
        [*transport(TCP), *redirect],
    ]


def fence_rules(*, names_asked: bool) -> list[list[Expression]]:
    """What is left is refused at once and logged. ``names_asked``: log questions to the name server, which is not there."""
    asked = [load(2, 2, 2), equal(struct.pack(">H", 53)), log("rf-name")]
    # Connection tracking costs each new network a millisecond; with nothing captured only our own refusals come back.
    known = [[*transport(ICMP), *refusal(3)], [*transport(ICMPV6), *refusal(1)]] if names_asked else [established()]
    return [
        *(_nobody_listens() if names_asked else []),
        *known,
        *([[*TO_LOOPBACK4, *transport(UDP), *asked]] if names_asked else []),
        [*TO_LOOPBACK4, verdict(ACCEPT)],
        [*TO_LOOPBACK6, verdict(ACCEPT)],
        *(_apart() if names_asked else []),
        [*transport(UDP), log("rf-udp"), REFUSE],
        [*transport(ICMP), log("rf-icmp"), REFUSE],
        [*transport(ICMPV6), log("rf-icmp"), REFUSE],
        [log("rf-other"), REFUSE],
    ]


def _apart() -> list[list[Expression]]:
    """Metadata has a log of its own, which no flood of other packets fills.

    A connection is refused by a reset, which its caller hears of at once; of an "unreachable" only at the next attempt.
    """
    told = log("rf-metadata", METADATA_GROUP)
    reset = [load(2, 13, 1), bits(b"\x04"), unequal(b"\x00"), verdict(ACCEPT)]
    return [
        [*transport(TCP), *reset],
        *([*where, *transport(TCP), told, RESET] for where in TO_METADATA),
        *([*where, told, REFUSE] for where in TO_METADATA),
        [*transport(TCP), log("rf-other"), RESET],
    ]


def _nobody_listens() -> list[list[Expression]]:
    """Log the box's own "nobody listens here": who tries the host's servers on loopback finds only this."""
    # The answer to a connection nobody takes has sequence number 0; a reset of one that was open has not.
    unheard = [load(2, 4, 4), equal(bytes(4)), load(2, 13, 1), bits(b"\x04"), unequal(b"\x00")]
    reset = [*transport(TCP), *unheard, log("rf-local")]
    return [
        [*TO_LOOPBACK4, *reset],
        [*TO_LOOPBACK6, *FROM_LOOPBACK6, *reset],
        [*TO_LOOPBACK4, *transport(ICMP), load(2, 0, 2), equal(b"\x03\x03"), log("rf-local")],
        [*TO_LOOPBACK6, *transport(ICMPV6), load(2, 0, 2), equal(b"\x01\x04"), log("rf-local")],
    ]


def batch(port: int | None) -> tuple[bytes, int]:
    """The whole table as one batch, and how many acknowledgements it brings. Without ``port`` nothing is captured."""
    parts = [_table()]
    if port is not None:
        parts.append(_chain("capture", "nat", NAT_PRIORITY, ACCEPT))
        parts += [_rule("capture", rule) for rule in capture_rules(port)]
    parts.append(_chain("fence", "filter", FILTER_PRIORITY, DROP))
    parts += [_rule("fence", rule) for rule in fence_rules(names_asked=port is None)]
    edge = struct.pack(">BBH", 0, 0, 10)
    return message(BATCH_BEGIN, 0, edge) + b"".join(parts) + message(BATCH_END, 0, edge), len(parts)


def apply(port: int | None) -> None:
    """Put the rules in force in this namespace. Raises OSError where the kernel has no nf_tables or refuses."""
    data, answers = CLOSED if port is None else batch(port)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETFILTER) as end:
        end.settimeout(5)
        end.bind((0, 0))
        ask(end, data, answers)


def log_socket(group: int = LOG_GROUP) -> socket.socket:
    """A socket on which a log group of this namespace arrives, packet heads included."""
    end = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETFILTER)
    end.settimeout(5)
    end.bind((0, 0))
    settings: list[tuple[int, Value]] = [
        (1, b"\x01"), (2, struct.pack(">IBx", LOGGED_BYTES, 2)), (5, struct.pack(">I", 1)), (6, struct.pack(">H", NUMBERED))
    ]  # fmt: skip
    head = struct.pack(">BBH", 0, 0, group)
    ask(end, message((4 << 8) | 1, ACKNOWLEDGE, head + b"".join(attribute(*one) for one in settings)), 1)
    end.setblocking(False)
    return end


def _table() -> bytes:
    return _message(NEW_TABLE, [(1, TABLE)])


def _chain(name: str, kind: str, priority: int, policy: int) -> bytes:
    hook: list[tuple[int, Value]] = [(1, OUTPUT_HOOK), (2, priority)]
    return _message(NEW_CHAIN, [(1, TABLE), (3, name), (4, hook), (5, policy), (7, kind)])


def _rule(chain: str, expressions: list[Expression]) -> bytes:
    elements: list[tuple[int, Value]] = [(1, [(1, name), (2, data)]) for name, data in expressions]
    return _message(NEW_RULE, [(1, TABLE), (2, chain), (4, elements)])


def _message(kind: int, attributes: list[tuple[int, Value]]) -> bytes:
    body = struct.pack(">BBH", INET, 0, 0) + b"".join(attribute(*pair) for pair in attributes)
    return message(SUBSYSTEM | kind, ACKNOWLEDGE | CREATE | APPEND, body)


CLOSED = batch(None)
"""Made once: every box without a network has the same."""
