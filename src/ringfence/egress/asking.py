"""What worker and supervisor say to each other: messages, their encoding, their limits. Pure.

One packet of a SOCK_SEQPACKET pair holds a list of messages in MessagePack. The worker sends what hostile bytes made of
it, so the supervisor takes every field as untrusted text: typed, capped, never a path or a format.
"""

from typing import Annotated, TypeAlias

import msgspec

MAX_PACKET = 128 * 1024
Short: TypeAlias = Annotated[str, msgspec.Meta(max_length=300)]
Text: TypeAlias = Annotated[str, msgspec.Meta(max_length=20_000)]


class Message(msgspec.Struct, frozen=True, kw_only=True, tag=True, forbid_unknown_fields=True):
    """Base of all messages."""


class Try(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where a connection wants to go, as far as the worker knows it."""

    host: Short
    port: int
    protocol: Short
    entry: Short
    address: Short = ""
    method: Short = ""
    path: Text = ""
    query: Text | None = None
    body: Annotated[str, msgspec.Meta(max_length=65_536)] | None = None
    source: tuple[Short, int] = ("", 0)
    """The box's end of the connection, for attribution."""
    target: tuple[Short, int] = ("", 0)
    flags: tuple[Short, ...] = ()


class Ask(Message, frozen=True, kw_only=True):
    """A question: may this go through."""

    id: int
    subject: Try
    whole: bool = True
    """False: a further request on a connection that is already counted."""
    connection: int = 0
    """For a further request: the id under which its connection was asked for."""
    also_path: Text | None = None
    """The path in its other reading, which must be allowed as well."""
    literal_only: bool = False
    """The name is allowed; may this one private address, which it resolves to, be dialled?"""
    credential: Short = ""
    """Name of the binding whose secret the request needs after ALLOW."""


class Reused(Message, frozen=True, kw_only=True):
    """A connection that the supervisor's standing verdict covers: told, not asked, and counted like any other."""

    id: int
    subject: Try
    rule: Short
    because: Text


class Ended(Message, frozen=True, kw_only=True):
    """An allowed connection is over."""

    id: int
    sent: int
    received: int
    micros: int
    outcome: Short
    protocol: Short
    address: Short = ""
    rule: Short = ""
    """Set where something built in refused it after ALLOW; ``because`` says why."""
    because: Short = ""
    flags: tuple[Short, ...] = ()
    tokens: tuple[int, int] = (0, 0)
    """Input and output tokens that a model's answers told."""


class Refused(Message, frozen=True, kw_only=True):
    """Refused by construction, never asked."""

    subject: Try
    rule: Short
    because: Short
    count: int = 1


class Noted(Message, frozen=True, kw_only=True):
    """Answered by construction and let be, as a DNS query is; told for the log."""

    subject: Try
    rule: Short
    because: Short
    count: int = 1


class Named(Message, frozen=True, kw_only=True):
    """A name was given its synthetic pair; kept by the supervisor so that a new worker goes on with it."""

    number: int
    name: Short


class Ready(Message, frozen=True, kw_only=True):
    """The worker listens, having given up what ``confined`` names."""

    confined: tuple[Short, ...]


class Here(Message, frozen=True, kw_only=True):
    """The answer to Look: the worker is at work."""


class Verdict(Message, frozen=True, kw_only=True):
    """The answer to one Ask."""

    id: int
    allow: bool
    rule: Short
    because: Text
    inspect: bool = False
    reuse: int = 0
    """Milliseconds for which the same question need not be asked again."""
    secret: Text = ""
    """The one credential asked for, after ALLOW, for this request only."""
    without: Text = ""
    """Why the credential could not be had, where it could not."""


class Held(Message, frozen=True, kw_only=True):
    """A person is being asked: keep the connection open up to ``millis``."""

    id: int
    millis: int


class Listener(Message, frozen=True, kw_only=True):
    """One descriptor handed over with this packet; ``fd`` is its place among the packet's descriptors."""

    name: Short
    fd: int


class Binding(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where a credential may go; never its value."""

    name: Short
    placeholder: Short
    host: Short
    port: int
    path: Short = "/"
    endpoint: Short = ""
    header: Short = ""


class Setup(Message, frozen=True, kw_only=True):
    """Everything a worker needs to begin. Follows the Listener and Named messages."""

    mission: Short
    nameservers: tuple[tuple[Short, int], ...]
    hosts: dict[str, list[str]]
    rate: float
    burst: float
    open_limit: int
    ask_millis: int
    idle_millis: int
    hello_millis: int
    dial_millis: int
    encrypted_hello: bool
    host_ports: dict[str, tuple[str, int]] = {}
    bindings: tuple[Binding, ...] = ()
    authority: tuple[Text, Text] = ("", "")
    """Certificate and key of the mission's authority in PEM; empty: no inspection."""
    body_cap: int = 8_388_608
    judge_bodies: bool = False
    trusted: Text = ""
    """File with the certificates (PEM) that upstream servers are checked against; empty: the system's."""


class Look(Message, frozen=True, kw_only=True):
    """Is the worker at work? One that stands still answers to nothing."""


class Stop(Message, frozen=True, kw_only=True):
    """The box has ended: take and tell what it still tried, close everything, end."""


ToSupervisor: TypeAlias = Ask | Reused | Ended | Refused | Noted | Named | Ready | Here
ToWorker: TypeAlias = Verdict | Held | Listener | Named | Setup | Look | Stop

_encoder = msgspec.msgpack.Encoder()
_from_worker = msgspec.msgpack.Decoder(list[ToSupervisor])
_from_supervisor = msgspec.msgpack.Decoder(list[ToWorker])


class BadPacketError(ValueError):
    """A packet that is not in the protocol: the sender is broken or taken over."""


def pack(messages: list[Message]) -> list[bytes]:
    """The messages in as many packets as their size needs, in order."""
    whole = _encoder.encode(messages)
    if len(whole) <= MAX_PACKET or len(messages) == 1:
        return [whole]
    half = len(messages) // 2
    return pack(messages[:half]) + pack(messages[half:])


def from_worker(packet: bytes) -> list[ToSupervisor]:
    """Messages of a worker. Raises BadPacketError."""
    try:
        return _from_worker.decode(packet)
    except msgspec.MsgspecError as error:
        raise BadPacketError(str(error)) from error


def from_supervisor(packet: bytes) -> list[ToWorker]:
    """Messages of the supervisor. Raises BadPacketError."""
    try:
        return _from_supervisor.decode(packet)
    except msgspec.MsgspecError as error:
        raise BadPacketError(str(error)) from error
