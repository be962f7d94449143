"""What one mission's egress worker may do, and what it is told at its start. Opens the host's side of granted ports."""

import os
import socket
from collections.abc import Iterable
from dataclasses import dataclass

from ringfence.egress.asking import Binding, Setup
from ringfence.egress.credentials import Credential
from ringfence.egress.upstream import Upstream
from ringfence.model.errors import BoxError
from ringfence.model.ids import Micros, MissionId


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What a mission's worker may do, and how long it waits. Milliseconds; counts a second."""

    rate: float = 1500.0
    """New connections a second of one mission; the excess is reset and counted."""
    burst: float = 3000.0
    open_limit: int = 1024
    ask_millis: int = 30_000
    """How long an ASK holds the accepted connection for a person."""
    answer_millis: int = 25_000
    """How long the worker waits for the supervisor before it refuses: a keyring may wait for its person, a disk be slow."""
    idle_millis: int = 900_000
    hello_millis: int = 10_000
    dial_millis: int = 10_000
    encrypted_hello: bool = False
    """Let TLS hellos through that hide a second name (ECH, and the padding of it that browsers send)."""
    learning_until: Micros = Micros(0)
    """Until then, what only a default refuses is let pass and logged as what it would have been. A person's choice."""
    inspection: bool = False
    """Make an authority for the mission, so that ``inspects`` can be honoured."""
    judge_bodies: bool = False
    """Give request bodies of inspected requests to the policy (its patterns read ``net.body``)."""
    body_cap: int = 8_388_608
    """Bytes that one inspected request's body may have."""
    trusted: str = ""
    """File with certificates (PEM) that servers are checked against in inspection; empty: the system's."""
    host_ports: tuple[tuple[int, str, int], ...] = ()
    """Granted services of the host: port in the box, address and port on the host."""
    inbound: tuple[tuple[int, int], ...] = ()
    """Granted services of the box: port on the host's loopback (0: any free one), port in the box."""
    cwd: str = "/"
    call: str = ""
    prefix: tuple[str, ...] = ()
    """Words before the worker's command line, as to enter a network namespace."""


def setup_for(
    options: Options, *, mission: MissionId, upstream: Upstream, bindings: Iterable[Binding], authority: tuple[str, str]
) -> Setup:
    """The worker's first message."""
    return Setup(
        mission=mission,
        nameservers=upstream.nameservers,
        hosts={name: list(addresses) for name, addresses in upstream.hosts},
        rate=options.rate,
        burst=options.burst,
        open_limit=options.open_limit,
        ask_millis=options.answer_millis,
        idle_millis=options.idle_millis,
        hello_millis=options.hello_millis,
        dial_millis=options.dial_millis,
        encrypted_hello=options.encrypted_hello,
        host_ports={str(port): (address, there) for port, address, there in options.host_ports},
        bindings=tuple(bindings),
        authority=authority,
        body_cap=options.body_cap,
        judge_bodies=options.judge_bodies,
        trusted=options.trusted,
    )


def binding(credential: Credential, placeholder: str) -> Binding:
    """A credential as the worker knows it: where it may go, and what stands for it in the box."""
    return Binding(
        name=credential.name,
        placeholder=placeholder,
        host=credential.host,
        port=credential.port,
        path=credential.path,
        endpoint=credential.endpoint,
        header=credential.header,
    )


def open_outside(grants: tuple[tuple[int, int], ...], mission: str) -> dict[tuple[int, int], int]:
    """A listener on the host's loopback for each granted port of the box. Raises BoxError where one is taken."""
    found: dict[tuple[int, int], int] = {}
    try:
        for port, box_port in grants:
            listener = socket.create_server(("127.0.0.1", port), backlog=128)
            own = listener.getsockname()[1]
            found[own, box_port] = listener.detach()
    except OSError as error:
        for fd in found.values():
            os.close(fd)
        raise BoxError(
            "grant-port-taken",
            f"port {port} of this machine, granted to the box's port {box_port}, cannot be opened: {error.strerror}",
            where=mission,
            remedy="end the program that uses the port, or grant another (0 takes any free one)",
        ) from error
    return found
