"""TLS over a stream of the loop, as server towards the box or as client towards the world. Same calls as a plain stream."""

import contextlib
import socket
import ssl

from ringfence.egress.loop import Stream

PIECE = 65_536


class TlsStream(Stream):
    """Wraps a connected stream. ``seen`` holds bytes of the other side that were read already."""

    __slots__ = ("_incoming", "_outgoing", "_tls", "raw")

    def __init__(
        self, raw: Stream, context: ssl.SSLContext, *, server: bool, hostname: str | None = None, seen: bytes = b""
    ) -> None:
        """Nothing is sent before ``handshake``. The plain stream is not used by others from here on."""
        self.loop, self.sock, self.fd, self.raw = raw.loop, raw.sock, raw.fd, raw
        self.reader = self.writer = None
        self.closed = raw.closed
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._incoming.write(seen)
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=server, server_hostname=hostname)

    async def handshake(self, deadline: float) -> None:
        """Agree on keys. Raises ssl.SSLError, OSError or TimedOut."""
        while True:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                await self._flush(deadline)
                await self._fill(deadline)
            except ssl.SSLError:
                with contextlib.suppress(OSError):
                    await self._flush(deadline)  # the alert that says why
                raise
            else:
                await self._flush(deadline)
                return

    async def recv(self, count: int, deadline: float | None = None) -> bytes:
        """Up to ``count`` bytes of plain text, empty at the end."""
        while True:
            try:
                return self._tls.read(count)
            except ssl.SSLWantReadError:
                await self._flush(deadline)
                if not await self._fill(deadline):
                    return b""
            except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
                return b""
            except ssl.SSLError as error:
                raise ConnectionAbortedError("broken TLS") from error

    async def send_all(self, data: bytes | memoryview, deadline: float | None = None) -> None:
        """All of the bytes."""
        view = memoryview(data)
        while view:
            view = view[self._tls.write(view[:PIECE]) :]
            await self._flush(deadline)

    def end_writing(self) -> None:
        """Say that nothing more comes. What does not fit into the socket's buffer is not waited for."""
        with contextlib.suppress(ssl.SSLError):
            self._tls.unwrap()
        with contextlib.suppress(BlockingIOError):
            self.sock.send(self._outgoing.read())
        self.sock.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """Close the connection below."""
        self.closed = True
        self.raw.close()

    async def _fill(self, deadline: float | None) -> bool:
        data = await self.raw.recv(PIECE, deadline)
        if data:
            self._incoming.write(data)
        else:
            self._incoming.write_eof()
        return bool(data)

    async def _flush(self, deadline: float | None) -> None:
        while data := self._outgoing.read():
            await self.raw.send_all(data, deadline)
