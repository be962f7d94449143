"""The first bytes of a connection: what they are, and whether they agree with the name decided upon. Pure."""

from dataclasses import dataclass

from ringfence.egress import http1, tls
from ringfence.egress.rules import BadHostError, Host, canonical_host, same_host, split_authority

WEB_PORTS = frozenset({80, 443, 8080, 8443})


class RefusedError(Exception):
    """Refused by construction: the rule, the reason, and the protocol to say it in."""

    def __init__(self, rule: str, because: str, protocol: str = "tcp") -> None:
        super().__init__(because)
        self.rule, self.because, self.protocol = rule, because, protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """The first bytes, whole where they are a TLS hello or a request head. Empty: the client waits for the server."""

    protocol: str
    data: bytes = b""
    hello: tls.Hello | None = None
    head: http1.Head | None = None


def classify(data: bytes) -> Opening | None:
    """What the first bytes are, ``None`` while they are too few to tell. Raises RefusedError for a broken beginning."""
    if not data:
        return None
    if tls.looks_like_tls(data):
        try:
            hello = tls.read_hello(data)
        except tls.BadHelloError as error:
            raise RefusedError("egress/bad-hello", str(error), "tls") from None
        return None if isinstance(hello, tls.Incomplete) else Opening(protocol="tls", data=data, hello=hello)
    if data.startswith(b"SSH-"):
        return Opening(protocol="ssh", data=data)
    text = data.lstrip(b"\r\n")
    begins = http1.begins_request(text) if text else None
    if begins and text != data:
        raise RefusedError("egress/bad-request", "a request after empty lines, which servers pass over", "http")
    if begins is None and len(data) > http1.MAX_HEAD:
        raise RefusedError("egress/bad-request", "empty lines without an end", "http")
    if begins is None:
        return None
    if begins:
        if data.startswith(http1.PRIOR_KNOWLEDGE):
            raise RefusedError("egress/http2", "HTTP/2 in the clear cannot be checked")
        try:
            head = http1.read_head(data)
        except http1.BadRequestError as error:
            raise RefusedError("egress/bad-request", str(error), "http") from None
        if head is None:
            return None
        head, data = http1.without_offer(head, data)
        return Opening(protocol="http", data=data, head=head)
    return Opening(protocol="tcp", data=data)


def check(opening: Opening, host: Host, port: int, *, encrypted_hello: bool) -> None:
    """Raise RefusedError unless the name inside is the name decided upon, or there can be none inside."""
    if opening.hello is not None:
        check_hello(opening.hello, host, encrypted_hello=encrypted_hello)
    elif opening.head is not None:
        check_head(opening.head, host, port)
    elif opening.data and port in WEB_PORTS:
        raise RefusedError("egress/not-web", f"neither TLS nor HTTP on port {port}", opening.protocol)


def check_hello(hello: tls.Hello, host: Host, *, encrypted_hello: bool) -> None:
    """The server name must be the host; a hidden second one is refused unless the mission allows it."""
    if hello.encrypted_hello and not encrypted_hello:
        raise RefusedError("egress/encrypted-hello", "the TLS hello hides a second server name (ECH)", "tls")
    if hello.server_name is None:
        if host.address is None:
            raise RefusedError("egress/name-mismatch", "a TLS hello without a server name", "tls")
    elif not same_host(host, hello.server_name):
        because = f"TLS asks for {hello.server_name!r}, the connection is for {host.text}"
        raise RefusedError("egress/name-mismatch", because, "tls")


def check_head(head: http1.Head, host: Host, port: int) -> None:
    """Host must be the host and port decided upon, and nothing may lead past it."""
    if head.method == "CONNECT":
        raise RefusedError("egress/chained-proxy", "CONNECT inside a connection leads elsewhere", "http")
    try:
        http1.split_target(head.target)
        told = http1.host_of(head)
    except http1.BadRequestError as error:
        raise RefusedError("egress/bad-request", str(error), "http") from None
    check_overrides(head)
    if not same_authority(host, port, told):
        because = f"Host says {told!r}, the connection is for {host.text} port {port}"
        raise RefusedError("egress/name-mismatch", because, "http")
    if head.upgrade not in {None, "websocket"}:
        raise RefusedError("egress/upgrade", f"a change of protocol to {head.upgrade!r} cannot be followed", "http")


def check_overrides(head: http1.Head) -> None:
    """No header may put another path, or what is no method, in the place of the request line's, or have others dropped."""
    options = {word.strip().lower() for value in head.all("connection") for word in value.split(",")}
    if options & http1.NEEDED:
        raise RefusedError("egress/bad-request", "a Connection header that has a needed header dropped", "http")
    if any(name.lower() in http1.TARGET_OVERRIDES for name, _ in head.headers):
        raise RefusedError("egress/bad-request", "a header that names another path than the request", "http")
    try:
        http1.overrides(head)
    except http1.BadRequestError as error:
        raise RefusedError("egress/bad-request", str(error), "http") from None


def same_authority(host: Host, port: int, text: str) -> bool:
    """Whether ``text`` (a Host header) names this host, and this port or none."""
    try:
        name, told = split_authority(text, default=port)
        return told == port and canonical_host(name).text == host.text
    except BadHostError:
        return False
