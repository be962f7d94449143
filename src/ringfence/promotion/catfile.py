"""One running ``git cat-file``: requests in, answers out, with a deadline on every read so that nothing can stall a check."""

import contextlib
import os
import select
import subprocess
import time
from typing import IO

from ringfence.promotion.objects import BadObject


class Batch:
    """Answers requests in the order they were asked. Raises BadObject for what is missing, late or cut short."""

    def __init__(self, command: list[str], env: dict[str, str], cwd: str, until: float) -> None:
        self._process = subprocess.Popen(
            command, env=env, cwd=cwd, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self._until = until
        self._buffer = b""
        self._in = _pipe(self._process.stdin)
        self._out = _pipe(self._process.stdout)

    def ask(self, oids: list[str]) -> None:
        """Send the requests, so few that neither side's pipe can fill up while the other waits."""
        try:
            self._in.write("".join(f"{oid}\n" for oid in oids).encode("ascii"))
            self._in.flush()
        except OSError:
            raise BadObject("git cat-file ended early") from None

    def header(self, oid: str) -> tuple[bytes, int]:
        """Kind and size of the next answer."""
        while b"\n" not in self._buffer:
            self._fill()
        line, _, self._buffer = self._buffer.partition(b"\n")
        words = line.split(b" ")
        if len(words) != 3 or not words[2].isdigit():
            raise BadObject(f"object {oid} is missing")
        return words[1], int(words[2])

    def body(self, size: int) -> bytes:
        """The bytes of the answer whose header was just read."""
        while len(self._buffer) < size + 1:
            self._fill()
        raw, self._buffer = self._buffer[:size], self._buffer[size + 1 :]
        return raw

    def skip(self, size: int) -> None:
        """Drop the bytes of the answer whose header was just read, without keeping them."""
        left = size + 1
        while left > len(self._buffer):
            left -= len(self._buffer)
            self._buffer = b""
            self._fill()
        self._buffer = self._buffer[left:]

    def close(self) -> None:
        """End the process, whatever it is doing."""
        for pipe in (self._in, self._out):
            with contextlib.suppress(OSError):
                pipe.close()
        self._process.kill()
        self._process.wait()

    def _fill(self) -> None:
        left = self._until - time.monotonic()
        ready, _, _ = select.select([self._out], [], [], max(0.0, left))
        if not ready:
            raise BadObject("reading the repository took too long")
        chunk = os.read(self._out.fileno(), 1 << 20)
        if not chunk:
            raise BadObject("git cat-file ended early: the repository has broken objects")
        self._buffer += chunk


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    if pipe is None:
        raise BadObject("git could not be started")
    return pipe
