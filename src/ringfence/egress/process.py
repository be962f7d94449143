"""The egress worker's process: reads its set-up, gives up what it does not need, serves one mission's box.

Started as ``python -I -m ringfence.egress.process FD``; ends when the supervisor's end of FD closes.
"""

import ipaddress
import socket
import sys
from collections.abc import Coroutine
from typing import Any

from ringfence.egress import asking, capture, entries, httpflow, nflog
from ringfence.egress.asking import Listener, Named, Ready, Setup
from ringfence.egress.buckets import Bucket
from ringfence.egress.confine import confine
from ringfence.egress.dial import Dialer, Resolver
from ringfence.egress.link import PACKET, Link
from ringfence.egress.loop import Loop, Stream
from ringfence.egress.names import NameTable
from ringfence.egress.session import Services
from ringfence.egress.stub import Stub


def main(argv: list[str]) -> int:
    """Serve until the supervisor goes or says so."""
    channel = socket.socket(fileno=int(argv[1]))
    setup, listeners, names = receive(channel)
    loop = Loop()
    stream = Stream(loop, channel)
    link = Link(loop, stream, setup.ask_millis / 1000)
    services = build(loop, link, setup)
    held = confine()
    gate = capture.Gate(loop, services, Bucket(setup.rate, setup.burst), setup.open_limit)
    for name, fd in listeners.items():
        serve(services, names, name, Stream(loop, socket.socket(fileno=fd)), gate)
    loop.spawn(gate.report())
    loop.spawn(link.write())
    loop.spawn(link.read())
    link.tell(Ready(confined=held))
    loop.run()
    return 0


def receive(channel: socket.socket) -> tuple[Setup, dict[str, int], NameTable]:
    """Listeners and names first, the set-up last."""
    channel.settimeout(10)
    listeners: dict[str, int] = {}
    names = NameTable()
    while True:
        packet = channel.recv(PACKET)
        if not packet:
            raise SystemExit(0)
        for message in asking.from_supervisor(packet):
            if isinstance(message, Listener):
                listeners[message.name] = message.fd
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
    )


def serve(services: Services, names: NameTable, name: str, stream: Stream, gate: capture.Gate) -> None:
    """Start the task of one descriptor, by its name."""
    loop, link = services.loop, services.link
    kind = name.partition(":")[0]
    stub = Stub(loop, link, names)
    if kind == "dns-udp":
        loop.spawn(stub.datagrams(stream))
    elif kind == "nflog":
        loop.spawn(nflog.watch(stream, link, names))
    elif kind in {"tcp4", "tcp6", "any4", "any6"}:
        loop.spawn(capture.listen(gate, stream, lambda client, _sock: capture.captured(services, names, client, kind)))
    elif kind in {"dns-tcp", "http-proxy", "socks"}:
        loop.spawn(capture.listen(gate, stream, lambda client, _sock: _entry(kind, services, stub, client)))
    else:
        raise SystemExit(f"a descriptor of an unknown kind: {name}")


def _entry(kind: str, services: Services, stub: Stub, client: Stream) -> Coroutine[Any, Any, None]:
    if kind == "dns-tcp":
        return stub.stream(client)
    return entries.http_proxy(services, client) if kind == "http-proxy" else entries.socks5(services, client)


if __name__ == "__main__":
    sys.exit(main(sys.argv))
