"""The egress worker's process: reads its set-up, gives up what it does not need, serves one mission's box.

Started as ``python -I -m ringfence.egress.process FD``; ends when the supervisor's end of FD closes.
"""

import datetime as dt
import ipaddress
import os
import socket
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ringfence.egress import asking, capture, entries, grants, httpflow, nflog
from ringfence.egress.asking import Listener, Named, Ready, Setup
from ringfence.egress.buckets import Bucket
from ringfence.egress.confine import confine
from ringfence.egress.dial import Dialer, Resolver
from ringfence.egress.link import PACKET, Link
from ringfence.egress.loop import Loop, Stream
from ringfence.egress.names import NameTable
from ringfence.egress.rules import canonical_host
from ringfence.egress.session import Services, Session
from ringfence.egress.stub import Stub

if TYPE_CHECKING:
    from ringfence.egress.inspection import Inspector


def main(argv: list[str]) -> int:
    """Serve until the supervisor goes or says so."""
    channel = socket.socket(fileno=int(argv[1]))
    setup, listeners, names = receive(channel)
    loop = Loop()
    stream = Stream(loop, channel)
    link = Link(loop, stream, setup.ask_millis / 1000)
    services = build(loop, link, setup)
    inspector = inspector_of(setup) if setup.authority[0] or setup.bindings or setup.judge_bodies else None
    services.inspect = inspector.inspect if inspector is not None else None
    inbound = grants.Inbound(loop, [fd for name, fd in listeners.items() if name.startswith("inbound:")])
    held = confine()
    gate = capture.Gate(loop, services, Bucket(setup.rate, setup.burst), setup.open_limit)
    serving = Serving(services=services, setup=setup, names=names, gate=gate, inspector=inspector, inbound=inbound)
    for name, fd in listeners.items():
        serving.begin(name, fd)
    loop.spawn(gate.report())
    loop.spawn(link.write())
    loop.spawn(link.read())
    link.tell(Ready(confined=held))
    loop.run()
    gate.tell_counts()
    link.drain()
    return 0


def receive(channel: socket.socket) -> tuple[Setup, dict[str, int], NameTable]:
    """Listeners and names first, the set-up last."""
    channel.setblocking(True)
    listeners: dict[str, int] = {}
    names = NameTable()
    while True:
        packet, fds, _flags, _address = socket.recv_fds(channel, PACKET, 253)
        if not packet:
            raise SystemExit(0)
        for message in asking.from_supervisor(packet):
            if isinstance(message, Listener):
                listeners[message.name] = fds[message.fd]
            elif isinstance(message, Named):
                names.restore([(message.number, message.name)])
            elif isinstance(message, Setup):
                return message, listeners, names


def build(loop: Loop, link: Link, setup: Setup) -> Services:
    """The services all sessions share."""
    hosts = {name: tuple(map(ipaddress.ip_address, texts)) for name, texts in setup.hosts.items()}
    resolver = Resolver(loop, setup.nameservers, hosts)
    return Services(
        loop=loop,
        link=link,
        dialer=Dialer(loop, resolver, setup.dial_millis / 1000),
        hello=setup.hello_millis / 1000,
        idle=setup.idle_millis / 1000,
        encrypted_hello=setup.encrypted_hello,
        carry_http=httpflow.carry_http,
        judges_bodies=setup.judge_bodies,
    )


def inspector_of(setup: Setup) -> "Inspector":
    """What inspection and endpoints need, everything read from files now. Costs more than all the rest of the start."""
    from ringfence.egress.authority import Authority, upstream_context
    from ringfence.egress.inspection import Inspector

    certificate, key = setup.authority
    today = dt.datetime.fromtimestamp(time.time(), dt.UTC)
    "a".encode("idna")  # the codec that TLS uses for names is a file as well
    authority = Authority.load(certificate, key, today) if certificate else None
    if authority is not None:
        authority.context("warm-up.invalid")  # imports now what could not be read later
    return Inspector(
        authority=authority,
        upstream=upstream_context(setup.trusted),
        bindings=setup.bindings,
        body_cap=setup.body_cap,
        judge_bodies=setup.judge_bodies,
    )


@dataclass(slots=True, kw_only=True)
class Serving:
    """Starts the task of each descriptor, by its name."""

    services: Services
    setup: Setup
    names: NameTable
    gate: capture.Gate
    inspector: "Inspector | None"
    inbound: grants.Inbound

    def begin(self, name: str, fd: int) -> None:
        """One descriptor. An unknown name ends the worker: a box that cannot be served whole is not served."""
        kind, _, rest = name.partition(":")
        if kind == "inbound":
            return
        loop, link = self.services.loop, self.services.link
        stream = Stream(loop, socket.socket(fileno=fd))
        stub = Stub(loop, link, self.names)
        if kind == "dns-udp":
            loop.spawn(stub.datagrams(stream))
        elif kind == "nflog":
            loop.spawn(nflog.watch(stream, link, self.names))
        else:
            start = self._starter(kind, rest, stub)
            loop.spawn(capture.listen(self.gate, stream, start))

    def _starter(self, kind: str, rest: str, stub: Stub) -> capture.Start:
        services = self.services
        if kind in {"tcp4", "tcp6", "any4", "any6"}:
            return lambda client: capture.captured(services, self.names, client, kind)
        if kind == "dns-tcp":
            return stub.stream
        if kind == "http-proxy":
            return lambda client: entries.http_proxy(services, self.names, client)
        if kind == "socks":
            return lambda client: entries.socks5(services, self.names, client)
        if kind == "host-port":
            return lambda client: grants.host_port(services, client, int(rest), self.setup.host_ports[rest])
        if kind == "outside":
            port, box_port = map(int, rest.split(":"))
            return lambda client: self.inbound.serve(services, client, port, box_port)
        if kind == "endpoint":
            binding = next(binding for binding in self.setup.bindings if binding.endpoint == rest)
            return lambda client: self._endpoint(client, binding)
        raise SystemExit(f"a descriptor of an unknown kind: {kind}")

    async def _endpoint(self, client: Stream, binding: asking.Binding) -> None:
        host = canonical_host(binding.host)
        session = Session(
            services=self.services,
            client=client,
            host=host,
            port=binding.port,
            entry="endpoint",
            source=client.ends()[0],
        )
        assert self.inspector is not None
        inspector = self.inspector
        await session.run(lambda: inspector.endpoint(session, binding))


if __name__ == "__main__":
    code = main(sys.argv)
    os._exit(code)  # no tidying: what is left open belongs to connections that end now
