"""The socket protocol: frames of a 4-byte big-endian length and JSON, descriptors beside the first frame.

The thin client imports this file on the way to every command, so it takes the C modules below ``socket`` and ``json``:
those two alone (with enum, re and selectors behind them) would double the client's start; ``struct`` is a library of its
own to load. What a frame may hold is checked by the supervisor (``requests.py``); here only its shape: a JSON object of at most ``MAX_FRAME`` bytes.
"""

import _socket
import errno
import os
import sys
import time

from ringfence.model.errors import RingfenceError
from ringfence.supervisor import jsontext

MAX_FRAME = 16 * 1024 * 1024
"""Bytes of one frame: room for a command line of 1 MiB in its worst JSON escaping, and no more."""
MAX_DESCRIPTORS = 4
VERSION = 4
_INT = 4
"""Bytes of a C ``int``, on every machine this package knows."""
TAKEN = b'{"event":"taken"}'
"""First frame of the supervisor's side: the request was read whole and is judged from now on. A connection that ends
without it has done nothing, so the request may be given to the next supervisor; after it, never again."""


class ProtocolError(RingfenceError):
    """The other side said something that is not the protocol."""


def send(connection: _socket.socket, message: dict[str, object], descriptors: tuple[int, ...] = ()) -> None:
    """Send one frame, whole. Raises OSError when the other side is gone."""
    send_bytes(connection, jsontext.encode(message).encode("ascii"), descriptors)


def send_bytes(connection: _socket.socket, body: bytes, descriptors: tuple[int, ...] = ()) -> None:
    """The same for a message that is encoded already."""
    if len(body) > MAX_FRAME:
        raise ProtocolError("frame-too-long", f"a message of {len(body)} bytes is over the limit of {MAX_FRAME}")
    frame = len(body).to_bytes(4, "big") + body
    if descriptors:
        numbers = b"".join([number.to_bytes(_INT, sys.byteorder) for number in descriptors])
        along = [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, numbers)]
        try:
            sent = connection.sendmsg([frame], along)
        except OSError as fault:
            if fault.errno != errno.ETOOMANYREFS:
                raise
            sent = _send_with_more_room(connection, frame, along)
        frame = frame[sent:]
    if frame:
        connection.sendall(frame)


def _send_with_more_room(connection: _socket.socket, frame: bytes, along: list[tuple[int, int, bytes]]) -> int:
    """Send under the hard limit of open files, for the soft one is often small.

    By it the kernel measures what all programs of this user, boxes too, have on its way over sockets.
    """
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    try:
        return connection.sendmsg([frame], along)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


class Reader:
    """Reads frames from one connection and keeps the descriptors that came with them."""

    __slots__ = ("_buffer", "connection", "descriptors", "until")

    def __init__(self, connection: _socket.socket) -> None:
        self.connection = connection
        self._buffer = b""
        self.descriptors: list[int] = []
        self.until: float | None = None
        """Monotonic seconds after which nothing more is waited for, however much of a frame came; None: no such time."""

    def receive(self) -> dict[str, object] | None:
        """The next message, or None at the end of the stream. Raises ProtocolError for anything else."""
        body = self.receive_bytes()
        return None if body is None else decode(body)

    def receive_bytes(self) -> bytes | None:
        """The next frame's bytes, or None at the end of the stream. Raises ProtocolError for a broken frame."""
        header = self._exactly(4)
        if header is None:
            return None
        length = int.from_bytes(header, "big")
        if not 2 <= length <= MAX_FRAME:
            raise ProtocolError("bad-frame", f"a frame claims {length} bytes; 2 to {MAX_FRAME} are possible")
        body = self._exactly(length)
        if body is None:
            raise ProtocolError("bad-frame", "the stream ended in the middle of a frame")
        return body

    @property
    def buffered(self) -> bool:
        """Whether bytes that were received have not been given out."""
        return bool(self._buffer)

    def put_back(self, body: bytes) -> None:
        """Have a frame that was received be the next one again."""
        self._buffer = len(body).to_bytes(4, "big") + body + self._buffer

    def close_descriptors(self) -> None:
        """Close every descriptor that nobody took."""
        while self.descriptors:
            os.close(self.descriptors.pop())

    def _exactly(self, count: int) -> bytes | None:
        chunks = [self._buffer]
        have = len(self._buffer)
        while have < count:
            data = self._chunk()
            if not data:
                if have:
                    raise ProtocolError("bad-frame", "the stream ended in the middle of a frame")
                return None
            chunks.append(data)
            have += len(data)
        joined = b"".join(chunks)
        self._buffer = joined[count:]
        return joined[:count]

    def _chunk(self) -> bytes:
        if self.until is not None:
            self.connection.settimeout(max(0.001, self.until - time.monotonic()))
        space = _socket.CMSG_SPACE(MAX_DESCRIPTORS * _INT)
        data, ancillary, flags, _ = self.connection.recvmsg(65536, space, _socket.MSG_CMSG_CLOEXEC)
        for level, kind, payload in ancillary:
            if level == _socket.SOL_SOCKET and kind == _socket.SCM_RIGHTS:
                self.descriptors.extend(_ints(payload))
        if flags & _socket.MSG_CTRUNC or len(self.descriptors) > MAX_DESCRIPTORS:
            self.close_descriptors()
            raise ProtocolError("bad-frame", f"more than {MAX_DESCRIPTORS} descriptors came with a message")
        return data


def fault(error: RingfenceError) -> dict[str, object]:
    """An error as the message that tells it; ``client.raise_fault`` is the way back."""
    told = {name: str(getattr(error, name)) for name in ("code", "what", "where", "remedy")}
    return {"error": {**told, "kind": type(error).__name__}}


def decode(body: bytes) -> dict[str, object]:
    """The JSON object in a frame. Raises ProtocolError for broken bytes, never anything else."""
    try:
        value = jsontext.decode(body.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise ProtocolError("bad-frame", "a frame does not hold JSON") from error
    if not isinstance(value, dict):
        raise ProtocolError("bad-frame", "a frame holds JSON that is not an object")
    return value


def peer(connection: _socket.socket) -> tuple[int, int, int]:
    """pid, uid and gid of the other side, as the kernel says."""
    pid, uid, gid = _ints(connection.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 3 * _INT))
    return pid, uid, gid


def _ints(data: bytes) -> list[int]:
    """The whole C ints in these bytes. A group id beyond 2**31 (such as -1, which means none) stays an unsigned one."""
    return [int.from_bytes(data[at : at + _INT], sys.byteorder) for at in range(0, len(data) - _INT + 1, _INT)]
