"""What may be asked of the supervisor: one strict type per verb. Anything else is a fault, never a permission."""

from typing import Annotated, TypeAlias

import msgspec

from ringfence.supervisor import protocol
from ringfence.supervisor.protocol import ProtocolError

Cells: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=65_535)]
"""Rows or columns of a terminal, as the kernel counts them."""
Mode: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=0xFFFF_FFFF)]


class _Request(msgspec.Struct, tag_field="verb", forbid_unknown_fields=True, kw_only=True):
    version: int


class Status(_Request, tag="status"):
    """Is it alive, what does it hold."""


class Stop(_Request, tag="stop"):
    """End the supervisor and every box."""


class Decide(_Request, tag="decide"):
    """Judge a call and record the decision; nothing runs."""

    cwd: str
    line: str | None = None
    argv: tuple[str, ...] | None = None
    agent: str | None = None


class Run(_Request, tag="run"):
    """Judge a command and run it in a box; the descriptors 0, 1, 2 come beside the frame."""

    cwd: str
    line: str | None = None
    argv: tuple[str, ...] | None = None
    env: dict[str, str] = {}
    umask: Annotated[int, msgspec.Meta(ge=0, le=0o777)] = 0o022
    interactive: bool = False
    rows: Cells = 24
    columns: Cells = 80
    modes: tuple[Mode, ...] = ()
    stops: bool = False
    behind: bool = False
    mission: str | None = None
    review: bool = False


class Trust(_Request, tag="trust"):
    """Trust the repository policy with this digest, as a person who has seen what it allows."""

    root: str
    digest: str
    withdraw: bool = False


class Mission(_Request, tag="mission"):
    """start, list, show, diff, commit, discard, reload, end, terminate."""

    action: str
    cwd: str = "/"
    id: str | None = None
    task: str = ""
    agent: str = ""
    commit: str = "call"
    paths: tuple[str, ...] = ()
    until: int = 0
    learning_until: int = 0
    host_ports: tuple[int, ...] = ()
    inbound: tuple[int, ...] = ()


class LedgerVerb(_Request, tag="ledger"):
    """checkpoint, anchor, archive, purge, hold: what needs the one writer."""

    action: str
    arguments: dict[str, str | int | bool | list[str] | None] = {}


class Smoke(_Request, tag="smoke"):
    """Probe a box now, whatever was proved before."""


class Teardown(_Request, tag="teardown"):
    """Remove all that boxes left; missions named in ``discard`` lose their uncommitted work."""

    discard: tuple[str, ...] = ()
    dry_run: bool = False


class Promotion(_Request, tag="promotion"):
    """Record a promotion verdict."""

    body: dict[str, msgspec.Raw]


Request: TypeAlias = Status | Stop | Decide | Run | Trust | Mission | LedgerVerb | Smoke | Teardown | Promotion

_DECODER = msgspec.json.Decoder(Request)


class _Head(msgspec.Struct):
    """What a request of any version has, whatever else is in it."""

    verb: str
    version: int


def parse(body: bytes) -> Request:
    """The request in a frame's bytes. Raises ProtocolError naming what is wrong, never anything else.

    ``stop`` is understood from any version: it is how a supervisor of another version is ended.
    """
    try:
        head = msgspec.json.decode(body, type=_Head)
        if head.verb == "stop":
            return Stop(version=head.version)
        if head.version != protocol.VERSION:
            raise ProtocolError(
                "other-version",
                f"the supervisor speaks version {protocol.VERSION} and this client version {head.version}; nothing ran",
                remedy="end it with `ringfence stop`; the next command starts the right one",
            )
        return _DECODER.decode(body)
    except (msgspec.MsgspecError, RecursionError, UnicodeError) as error:
        raise ProtocolError("bad-request", f"the request is not one that this supervisor knows: {error}") from error


class Signal(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Sent by a client while its command runs: a signal for the box, a new window size, or word that it was continued.

    ``behind``: it goes on while another job has the terminal's keys.
    """

    signal: Annotated[int, msgspec.Meta(ge=0, le=64)] = 0
    go_on: bool = False
    behind: bool = False
    rows: Cells = 0
    columns: Cells = 0


def parse_signal(body: bytes) -> Signal:
    """A message that may follow ``run`` on its connection. Raises ProtocolError."""
    try:
        return msgspec.json.decode(body, type=Signal)
    except (msgspec.MsgspecError, RecursionError, UnicodeError) as error:
        raise ProtocolError("bad-request", f"not a signal: {error}") from error
