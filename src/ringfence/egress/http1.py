"""HTTP/1 request heads and bodies, read so strictly that no server can read the same bytes as two other requests. Pure.

What is ambiguous is refused, never repaired: bare line feeds, folded headers, two lengths, a length beside chunks,
spaces before a colon, more than one Host.
"""

import enum
import re
from dataclasses import dataclass, field

MAX_HEAD = 32 * 1024
MAX_HEADERS = 128
MAX_ESCAPES = 4
"""How often an escape may be escaped again before nobody can say what a path means."""
METHOD = re.compile(r"[A-Z][A-Z0-9!#$%&'*+.^_`|~-]{0,31}")
FIELD_NAME = re.compile(rb"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,256}")
FIELD_VALUE = re.compile(rb"[\t\x20-\x7e\x80-\xff]*")
TARGET = re.compile(r"[\x21-\x7e]{1,16384}")
PERCENT = re.compile(r"%([0-9A-Fa-f]{2})")
TWICE = re.compile(r"%25(?=[0-9A-Fa-f]{2})")
UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
VERBS = frozenset({b"GET", b"HEAD", b"POST", b"PUT", b"DELETE", b"OPTIONS", b"PATCH"})
MAX_METHOD = 33
BODILESS = frozenset({"GET", "HEAD", "DELETE", "OPTIONS", "TRACE"})
NEEDED = frozenset({"host", "content-length", "transfer-encoding", "authorization"})
"""Headers that `Connection` must not name: a proxy on the way would drop them and read another request."""
EXACT = frozenset({b"content-length", b"transfer-encoding", b"host"})
"""Headers that must be spelled as everybody spells them: no two programs may disagree where a request ends or goes."""
METHOD_OVERRIDES = frozenset({"x-http-method-override", "x-http-method", "x-method-override"})
TARGET_OVERRIDES = frozenset({"x-original-url", "x-rewrite-url"})
"""Headers in which some servers read another path than the one in the request line."""
WEIGHTY = (
    NEEDED
    | METHOD_OVERRIDES
    | TARGET_OVERRIDES
    | {"connection", "upgrade", "expect", "te", "accept-encoding", "content-encoding", "content-type", "range"}
)
"""Headers that change what a request means: they are spelled with hyphens, and stand in the head."""
PRIOR_KNOWLEDGE = b"PRI * HTTP/2.0"


class BadRequestError(ValueError):
    """A request that is not HTTP/1, or that two programs could read differently."""


class Framing(enum.Enum):
    """How the end of a body is known."""

    NONE = "none"
    LENGTH = "length"
    CHUNKED = "chunked"


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """One request head. ``length`` is its size in bytes including the empty line."""

    method: str
    target: str
    version: str
    headers: tuple[tuple[str, str], ...]
    length: int
    framing: Framing
    content_length: int = 0

    def all(self, name: str) -> list[str]:
        """Every value of a header, by its lower-case name."""
        return [value for key, value in self.headers if key.lower() == name]

    def one(self, name: str) -> str | None:
        """The first value of a header, or ``None``."""
        return next(iter(self.all(name)), None)

    @property
    def upgrade(self) -> str | None:
        """The protocol this request wants to change to, lower case; all of them where it offers several."""
        values = self.all("upgrade")
        return ", ".join(value.strip().lower() for value in values) if values else None


def begins_request(first: bytes) -> bool | None:
    """Whether the bytes begin a request; ``None`` while that cannot be told.

    A text protocol with words of its own (``EHLO x``, ``USER x``) begins none: its first line does not speak of HTTP.
    """
    line, end, _ = first.partition(b"\n")
    word, space, rest = line.partition(b" ")
    if len(word) > MAX_METHOD or METHOD.fullmatch(word.decode("latin-1")) is None:
        return False
    if not space:
        return False if end else None
    if not end:
        return None if len(line) <= MAX_HEAD else True
    return b"HTTP/" in rest or (word in VERBS and rest.startswith((b"/", b"http")))


def read_head(data: bytes) -> Head | None:
    """The head at the start of ``data``, ``None`` while incomplete. Raises BadRequestError."""
    end = data.find(b"\r\n\r\n")
    if end < 0:
        if len(data) > MAX_HEAD or b"\n\n" in data or b"\n\r\n" in data.replace(b"\r\n\r\n", b""):
            raise BadRequestError("a request head that does not end within 32 KiB, or ends with bare line feeds")
        return None
    if end > MAX_HEAD:
        raise BadRequestError("a request head larger than 32 KiB")
    first, *lines = data[:end].split(b"\r\n")
    method, target, version = _request_line(first)
    if len(lines) > MAX_HEADERS:
        raise BadRequestError("more than 128 headers")
    headers = tuple(_header(line) for line in lines)
    framing, size = _framing(headers, version)
    return Head(
        method=method,
        target=target,
        version=version,
        headers=headers,
        length=end + 4,
        framing=framing,
        content_length=size,
    )


def host_of(head: Head) -> str:
    """The one Host header. Raises BadRequestError where there is none or more than one."""
    hosts = head.all("host")
    if len(hosts) != 1 or not hosts[0]:
        raise BadRequestError("a request without exactly one Host header")
    return hosts[0]


def hides_a_request(head: Head) -> bool:
    """Whether a server that expects no body with this method might take the body for the next request."""
    return head.method in BODILESS and not Body.of(head).done


def closing(data: bytes, head: Head) -> bytes:
    """The head at the start of ``data``, with the connection ending after its answer."""
    lines = data[: head.length - 4].split(b"\r\n")
    kept = [line for line in lines if line.partition(b":")[0].lower() not in {b"connection", b"keep-alive"}]
    return b"\r\n".join([*kept, b"Connection: close", b"", b""])


def without_offer(head: Head, data: bytes) -> tuple[Head, bytes]:
    """Head and bytes without an offer to go on in HTTP/2, which servers may pass over: Java's client makes it unasked."""
    if head.upgrade != "h2c":
        return head, data
    first, *lines = data[: head.length - 4].split(b"\r\n")
    named = [
        line for line in lines if line.partition(b":")[0].lower() not in {b"upgrade", b"http2-settings", b"connection"}
    ]
    options = [word.strip() for value in head.all("connection") for word in value.split(",")]
    kept = [word for word in options if word.lower() not in {"upgrade", "http2-settings", ""}]
    if kept:
        named.append(f"Connection: {', '.join(kept)}".encode("latin-1"))
    plain = b"\r\n".join([first, *named, b"", b""])
    again = read_head(plain)
    assert again is not None
    return again, plain + data[head.length :]


def overrides(head: Head) -> tuple[str, ...]:
    """Methods that servers take in the place of the request's own, where headers ask for it. Raises BadRequestError."""
    found = [value.upper() for name, value in head.headers if name.lower() in METHOD_OVERRIDES]
    if not all(METHOD.fullmatch(method) for method in found):
        raise BadRequestError("a header that puts something else than a method in the method's place")
    return tuple(dict.fromkeys(method for method in found if method != head.method))


def absolute(target: str) -> tuple[str, str] | None:
    """Authority and path of an absolute ``http://`` target, or ``None`` for another form. Raises for other schemes."""
    if target.startswith("/") or target == "*":
        return None
    scheme, sep, rest = target.partition("://")
    if not sep or scheme.lower() != "http":
        raise BadRequestError("a request target that is neither a path nor an http:// address")
    cut = min((at for at in (rest.find("/"), rest.find("?")) if at >= 0), default=len(rest))
    path = rest[cut:]
    return rest[:cut], path if path.startswith("/") else f"/{path}"


def split_target(target: str) -> tuple[str, str | None]:
    """Path and query of an origin-form target, the path in one spelling.

    Escapes of plain characters are undone, other escapes keep upper-case digits. Raises BadRequestError for dot
    segments, backslashes, escaped NULs and fragments: servers differ in how they read those.
    """
    if target == "*":
        return "*", None
    path, mark, query = target.partition("?")
    if not path.startswith("/") or "\\" in path or "#" in target:
        raise BadRequestError("a path that does not begin with a slash, or holds a backslash or fragment")
    if "%" in PERCENT.sub("", path):
        raise BadRequestError("a path with a broken escape")
    plain = PERCENT.sub(_unescape, path)
    if _climbs(plain) or "%00" in plain:
        raise BadRequestError("a path with dot segments or an escaped NUL")
    return plain, query if mark else None


def _climbs(path: str) -> bool:
    """Whether any server reads a dot segment in it: one that cuts ``;`` parameters off, or undoes escapes twice."""
    for _ in range(MAX_ESCAPES):
        parts = re.split(r"/|%2F|%5C|\\", path, flags=re.IGNORECASE)
        if any(re.split(r";|%3B", part, flags=re.IGNORECASE)[0] in {".", ".."} for part in parts):
            return True
        once = PERCENT.sub(lambda match: chr(int(match[1], 16)), path)
        if once == path:
            return False
        path = once
    return True


def other_reading(path: str) -> str | None:
    """The path as servers read it that do more to it, or ``None`` where they would read the same.

    They undo escapes twice, decode slashes, cut ``;`` parameters off and take several slashes for one.
    """
    plain = path
    for _ in range(MAX_ESCAPES):
        plain = PERCENT.sub(_unescape, TWICE.sub("%", plain))
    plain = re.sub(r"%2F|%5C", "/", plain, flags=re.IGNORECASE)
    plain = "/".join(re.split(r";|%3B", part, flags=re.IGNORECASE)[0] for part in plain.split("/"))
    plain = re.sub(r"/{2,}", "/", plain)
    return plain if plain != path else None


def status_of(data: bytes) -> int | None:
    """Status of a response head, ``None`` while its first line is incomplete. Raises BadRequestError."""
    line, end, _ = data.partition(b"\r\n")
    if not end:
        if len(data) > MAX_HEAD:
            raise BadRequestError("a status line that does not end")
        return None
    match = re.match(rb"HTTP/1\.[01] ([1-9][0-9]{2})( |$)", line)
    if match is None:
        raise BadRequestError("an answer that is not HTTP/1")
    return int(match[1])


@dataclass(slots=True)
class Body:
    """Follows one body through the bytes of a connection; ``take`` says how many of them belong to it.

    What the body says without its framing is kept until ``drain``: text cut into chunks is whole there.
    """

    framing: Framing
    left: int = 0
    done: bool = False
    _payload: bytearray = field(default_factory=bytearray)
    _line: bytearray = field(default_factory=bytearray)
    _state: str = "size"

    @classmethod
    def of(cls, head: Head) -> "Body":
        """The body that follows a head."""
        empty = head.framing is Framing.NONE or (head.framing is Framing.LENGTH and head.content_length == 0)
        return cls(framing=head.framing, left=head.content_length, done=empty)

    def take(self, data: bytes | memoryview) -> int:
        """How many bytes at the front are this body's; sets ``done`` at its end. Raises BadRequestError."""
        if self.done:
            return 0
        if self.framing is Framing.LENGTH:
            count = min(self.left, len(data))
            self.left -= count
            self.done = self.left == 0
            self._payload += data[:count]
            return count
        return self._chunks(bytes(data))

    def drain(self) -> bytes:
        """The payload taken since the last time."""
        payload = bytes(self._payload)
        self._payload.clear()
        return payload

    def _chunks(self, data: bytes) -> int:
        at = 0
        while at < len(data) and not self.done:
            if self._state == "data":
                count = min(self.left, len(data) - at)
                self.left -= count
                self._payload += data[at : at + count]
                at += count
                self._state = "data" if self.left else "end"
                continue
            cut = data.find(b"\n", at)
            piece = data[at : len(data) if cut < 0 else cut + 1]
            self._line += piece
            at += len(piece)
            if len(self._line) > 4096:
                raise BadRequestError("a chunk line or trailer that does not end")
            if cut >= 0:
                self._finish_line()
        return at

    def _finish_line(self) -> None:
        line = bytes(self._line)
        self._line.clear()
        if not line.endswith(b"\r\n") or b"\r" in line[:-2]:
            raise BadRequestError("a chunk line with a bare line feed")
        text = line[:-2]
        if self._state == "end":
            if text:
                raise BadRequestError("a chunk longer than it said")
            self._state = "size"
        elif self._state == "size":
            match = re.fullmatch(rb"([0-9A-Fa-f]{1,15})(;[\t\x20-\x7e]*)?", text)
            if match is None:
                raise BadRequestError("a chunk without a plain size")
            self.left = int(match[1], 16)
            self._state = "data" if self.left else "trailer"
        elif not text:
            self.done = True
        elif _header(text)[0].lower() in WEIGHTY:
            raise BadRequestError("a header behind a body that belongs in front of it")


def _request_line(line: bytes) -> tuple[str, str, str]:
    parts = line.decode("latin-1").split(" ")
    if len(parts) != 3:
        raise BadRequestError("a request line that is not three words")
    method, target, version = parts
    if METHOD.fullmatch(method) is None or TARGET.fullmatch(target) is None or version not in {"HTTP/1.0", "HTTP/1.1"}:
        raise BadRequestError("a request line that is not HTTP/1")
    return method, target, version


def _header(line: bytes) -> tuple[str, str]:
    name, colon, value = line.partition(b":")
    if not colon or FIELD_NAME.fullmatch(name) is None or FIELD_VALUE.fullmatch(value) is None:
        raise BadRequestError("a header line that is folded or oddly spelled")
    if b"_" in name and name.decode("ascii").lower().replace("_", "-") in WEIGHTY:
        raise BadRequestError("a header with underscores, which some servers take for the one with hyphens")
    plain = value.strip(b" \t")
    if name.lower() in EXACT and plain != value.removeprefix(b" "):
        raise BadRequestError("a length, coding or host with odd white space around it")
    return name.decode("ascii"), plain.decode("latin-1")


def _framing(headers: tuple[tuple[str, str], ...], version: str) -> tuple[Framing, int]:
    codings = [value for name, value in headers if name.lower() == "transfer-encoding"]
    lengths = [value for name, value in headers if name.lower() == "content-length"]
    if codings:
        if len(codings) > 1 or lengths or version == "HTTP/1.0" or codings[0] != "chunked":
            raise BadRequestError("a body framed in two ways, or by an unknown coding")
        return Framing.CHUNKED, 0
    if lengths:
        if len(lengths) > 1 or not re.fullmatch(r"[0-9]{1,15}", lengths[0]):
            raise BadRequestError("a body with two lengths, or none that is a number")
        return Framing.LENGTH, int(lengths[0])
    return Framing.NONE, 0


def _unescape(match: re.Match[str]) -> str:
    char = chr(int(match[1], 16))
    return char if char in UNRESERVED else match[0].upper()
