"""Proxy entries for programs that insist on one: HTTP CONNECT, absolute-URI requests, SOCKS5. Same session behind each."""

import contextlib
import time
from collections.abc import Callable

from ringfence.egress import http1, socks
from ringfence.egress.asking import Refused, Try
from ringfence.egress.loop import Stream, TimedOut
from ringfence.egress.names import NameTable
from ringfence.egress.refuse import NETWORK_FAULTS, page
from ringfence.egress.relay import farewell, reset
from ringfence.egress.rules import BadHostError, Host, canonical_host, split_authority
from ringfence.egress.session import Services, Session

ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"
UNREADABLE = ("(unreadable)", 0)
DROPPED = frozenset({"proxy-connection", "proxy-authorization", "connection", "keep-alive", "te", "upgrade"})


async def http_proxy(services: Services, names: NameTable, stream: Stream) -> None:
    """One connection to the HTTP proxy entry: one tunnel or one request."""
    try:
        head, data = await _read_head(services, stream)
        session = (
            _tunnel(services, names, stream, head)
            if head.method == "CONNECT"
            else _request(services, stream, head, data)
        )
    except (http1.BadRequestError, BadHostError) as error:
        await _refused(services, stream, "http-proxy", error, page("?", 0, "egress/bad-request", str(error)))
        return
    except (OSError, TimedOut):
        reset(stream)
        return
    await session.run()


async def _read_head(services: Services, stream: Stream) -> tuple[http1.Head, bytes]:
    deadline = time.monotonic() + services.hello
    data = b""
    while (head := http1.read_head(data) if data else None) is None:
        piece = await stream.recv(16_384, deadline)
        if not piece:
            raise ConnectionAbortedError("closed before a request")
        data += piece
    return head, data


def _tunnel(services: Services, names: NameTable, stream: Stream, head: http1.Head) -> Session:
    text, port = split_authority(head.target)
    if head.all("host") and head.all("host") != [head.target]:
        # Some clients leave the port out of Host; anything else is two destinations in one request.
        name, told = split_authority(head.all("host")[0], default=port)
        if len(head.all("host")) > 1 or canonical_host(name) != canonical_host(text) or told != port:
            raise http1.BadRequestError("CONNECT to one host, Host names another")
    if head.framing is not http1.Framing.NONE:
        raise http1.BadRequestError("CONNECT with a body")
    host = _meant(names, canonical_host(text))
    return _session(services, stream, host, port, "http-proxy", granted=ESTABLISHED, denied=_page_for(host, port))


def _request(services: Services, stream: Stream, head: http1.Head, data: bytes) -> Session:
    """An absolute-URI request, made into what the server itself would be sent, with the connection ending after it."""
    found = http1.absolute(head.target)
    if found is None:
        raise http1.BadRequestError("a request to the proxy itself")
    authority, path = found
    text, port = split_authority(authority, default=80)
    host = canonical_host(text)
    told = head.all("host")
    if len(told) > 1 or (told and canonical_host(split_authority(told[0], default=port)[0]) != host):
        raise http1.BadRequestError("a request for one host, Host names another")
    kept = [f"{name}: {value}" for name, value in head.headers if name.lower() not in DROPPED | {"host"}]
    lines = [f"{head.method} {path} {head.version}", f"Host: {authority}", *kept, "Connection: close", "", ""]
    rewritten = "\r\n".join(lines).encode("latin-1") + data[head.length :]
    session = _session(services, stream, host, port, "http-proxy")
    session.seen = rewritten
    return session


async def socks5(services: Services, names: NameTable, stream: Stream) -> None:
    """One connection to the SOCKS5 entry."""
    try:
        request = await _negotiate(services, stream)
        host = _meant(names, canonical_host(request.host))
        if not request.port:
            raise BadHostError("port 0")
    except socks.BadSocksError as error:
        await _refused(services, stream, "socks", error, error.answer)
        return
    except BadHostError as error:
        await _refused(services, stream, "socks", error, socks.reply(socks.Answer.NOT_ALLOWED))
        return
    except (OSError, TimedOut):
        reset(stream)
        return
    granted = socks.reply(socks.Answer.GRANTED)
    session = _session(services, stream, host, request.port, "socks", granted=granted, denied=_reply_for)
    await session.run()


def _meant(names: NameTable, host: Host) -> Host:
    """The name behind one of our addresses: some clients look names up themselves, also where a proxy would."""
    name = names.name_of(host.address) if host.address is not None else None
    return host if name is None else Host(text=name)


async def _negotiate(services: Services, stream: Stream) -> socks.Request:
    deadline = time.monotonic() + services.hello
    data = await _more(stream, b"", deadline)
    while (length := socks.greeting_length(data)) is None:
        data = await _more(stream, data, deadline)
    with contextlib.suppress(OSError):  # a client that said all at once and went is told of as well
        await stream.send_all(socks.GREETING_OK, deadline)
    data = data[length:]
    while (request := socks.read_request(data)) is None:
        data = await _more(stream, data, deadline)
    if len(data) > request.length:
        raise socks.BadSocksError("bytes before the reply", socks.reply(socks.Answer.FAILURE))
    return request


async def _more(stream: Stream, data: bytes, deadline: float) -> bytes:
    piece = await stream.recv(1024, deadline)
    if not piece or len(data) > 1024:
        raise ConnectionAbortedError("no request")
    return data + piece


def _session(
    services: Services,
    stream: Stream,
    host: Host,
    port: int,
    entry: str,
    *,
    granted: bytes = b"",
    denied: Callable[[str, str], bytes] | None = None,
) -> Session:
    source, target = stream.ends()
    return Session(
        services=services,
        client=stream,
        host=host,
        port=port,
        entry=entry,
        source=source,
        target=target,
        granted=granted,
        denied=denied,
    )


def _reply_for(rule: str, _because: str) -> bytes:
    return socks.reply(socks.Answer.HOST_UNREACHABLE if rule in NETWORK_FAULTS else socks.Answer.NOT_ALLOWED)


def _page_for(host: Host, port: int) -> Callable[[str, str], bytes]:
    return lambda rule, because: page(host.text, port, rule, because)


def _wanted(error: ValueError) -> tuple[str, int]:
    """Where a client wanted to go, for the log, as far as that can be read."""
    if isinstance(error, socks.BadSocksError) and error.host:
        with contextlib.suppress(BadHostError):
            return canonical_host(error.host).text, error.port
    return UNREADABLE


async def _refused(services: Services, stream: Stream, entry: str, error: ValueError, words: bytes) -> None:
    source, target = stream.ends()
    wanted = _wanted(error)
    subject = Try(
        host=wanted[0],
        port=wanted[1],
        protocol="http" if entry == "http-proxy" else "tcp",
        entry=entry,
        source=source,
        target=target,
    )
    services.link.tell(Refused(subject=subject, rule="egress/bad-request", because=str(error)[:300]))
    if words:
        await farewell(stream, words)
    else:
        reset(stream)
