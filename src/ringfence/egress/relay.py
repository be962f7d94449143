"""Moves bytes between two connected streams, both ways, with half-close, counting them. No protocol knowledge."""

import contextlib
import socket
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass

from ringfence.egress.loop import Answer, Loop, Stream, TimedOut

CHUNK = 256 * 1024
TURNS = 16  # a fast download lets the others go on after so many chunks
_shared = bytearray(CHUNK)
_view = memoryview(_shared)
LINGER_RESET = struct.pack("ii", 1, 0)


@dataclass(slots=True)
class Traffic:
    """Bytes moved so far, and when the last one was."""

    sent: int = 0
    received: int = 0
    moved: float = 0.0


FirstCheck = Callable[[bytes], bool]


async def relay(
    loop: Loop, client: Stream, upstream: Stream, traffic: Traffic, *, idle: float, check: FirstCheck | None = None
) -> str:
    """Move bytes until both directions have ended. Returns the log's word for how.

    ``check`` sees the box's first bytes before they leave, where it had not spoken yet; False ends the connection.
    """
    traffic.moved = time.monotonic()
    done = Answer(loop)
    down = loop.spawn(_pump(upstream, client, traffic, done, outward=False))
    outcome = await _outward(client, upstream, traffic, check, idle)
    while not down.done:
        try:
            await done.wait(time.monotonic() + idle)
        except TimedOut:
            if time.monotonic() - traffic.moved >= idle:
                outcome = "idle"
                break
    if outcome == "closed" and done.value == "reset":
        outcome = "reset"
    return outcome


async def _outward(client: Stream, upstream: Stream, traffic: Traffic, check: FirstCheck | None, idle: float) -> str:
    if check is not None:
        try:
            first = await _first(client, traffic, idle)
        except OSError:
            return "reset"
        if not check(first):
            reset(client)
            reset(upstream)
            return "refused"
        if first:
            await upstream.send_all(first, time.monotonic() + idle)
            traffic.sent += len(first)
    return await _move(client, upstream, traffic, outward=True, idle=idle)


async def _first(client: Stream, traffic: Traffic, idle: float) -> bytes:
    while True:
        try:
            return await client.recv(16_384, time.monotonic() + idle)
        except TimedOut:
            if time.monotonic() - traffic.moved >= idle:
                raise ConnectionAbortedError("idle for too long") from None


async def _pump(source: Stream, sink: Stream, traffic: Traffic, done: Answer, *, outward: bool) -> None:
    done.deliver(await _move(source, sink, traffic, outward=outward, idle=None))


async def _move(source: Stream, sink: Stream, traffic: Traffic, *, outward: bool, idle: float | None) -> str:
    """One direction until its end. A reset on one side resets the other."""
    turns = 0
    try:
        while True:
            try:
                count = source.sock.recv_into(_shared)
            except BlockingIOError:
                turns = 0
                if idle is None:
                    await source.readable()
                elif not await _patient(source, traffic, idle):
                    return "idle"
                continue
            if not count:
                sink.end_writing()
                return "closed"
            if outward:
                traffic.sent += count
            else:
                traffic.received += count
            traffic.moved = source.loop.now
            try:
                at = sink.sock.send(_view[:count])
            except BlockingIOError:
                at = 0
            if at < count:
                # Others use the shared buffer while this task waits: keep the rest apart.
                await sink.send_all(bytes(_view[at:count]), None if idle is None else time.monotonic() + idle)
            turns += 1
            if turns == TURNS:
                turns = 0
                await source.loop.breathe()
    except TimedOut:
        return "idle"
    except OSError:
        reset(sink)
        reset(source)
        return "reset"


async def _patient(source: Stream, traffic: Traffic, idle: float) -> bool:
    try:
        await source.readable(time.monotonic() + idle)
    except TimedOut:
        return time.monotonic() - traffic.moved < idle
    return True


def reset(stream: Stream) -> None:
    """Close with RST, so that the other side knows at once."""
    if not stream.closed:
        with contextlib.suppress(OSError):
            stream.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_RESET)
        stream.close()


async def farewell(stream: Stream, data: bytes) -> None:
    """Send a last message and close so that it arrives: what the other side still sends is read away, briefly."""
    deadline = time.monotonic() + 0.5
    try:
        await stream.send_all(data, deadline)
        stream.end_writing()
        left = 256 * 1024
        while left > 0 and (piece := await stream.recv(65_536, deadline)):
            left -= len(piece)
    except (OSError, TimedOut):
        pass
    stream.close()
