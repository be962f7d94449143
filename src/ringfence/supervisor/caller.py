"""The process on the other end of a connection, as the kernel says, and what it handed over."""

import contextlib
import os
import select
import signal
import socket
from collections.abc import Callable, Collection
from dataclasses import dataclass

from ringfence.model.errors import RingfenceError
from ringfence.model.person import Person
from ringfence.supervisor import protocol, requests

MOST_ENVIRONMENT = 1 << 20
"""Bytes."""
ENDING = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT})


@dataclass(slots=True, kw_only=True)
class Caller:
    """One client. Its descriptors belong to it until they are taken."""

    pid: int
    uid: int
    connection: socket.socket
    reader: protocol.Reader

    @classmethod
    def of(cls, connection: socket.socket, reader: protocol.Reader) -> "Caller":
        """Read the peer's credentials."""
        pid, uid, _ = protocol.peer(connection)
        return cls(pid=pid, uid=uid, connection=connection, reader=reader)

    @property
    def person(self) -> Person:
        """Who this is, as far as a socket can tell."""
        import pwd

        try:
            name = pwd.getpwuid(self.uid).pw_name
        except KeyError:
            name = str(self.uid)
        return Person(name=name, uid=self.uid, how="peer")

    def gives_up(self) -> str:
        """Why nobody waits any more for what has not begun: its client left, or was told to end. Empty where one does."""
        looking = select.poll()
        looking.register(self.connection, select.POLLIN)
        kept: list[bytes] = []
        why = ""
        while not why and (self.reader.buffered or looking.poll(0)):
            try:
                body = self.reader.receive_bytes()
            except OSError:
                body = None
            if body is None:
                why = "the client went away"
            elif requests.parse_signal(body).signal in ENDING:
                why = "the client was told to end"
            else:
                kept.append(body)  # a new window size, say, which the box will want to know
        for body in reversed(kept):
            self.reader.put_back(body)
        return why

    def must_wait(self) -> None:
        """Raise RingfenceError where nobody waits any more for what has not begun."""
        if why := self.gives_up():
            raise RingfenceError("client-gone", f"{why} before its command's turn came; nothing ran")

    def waits_for(self, mission: str) -> Callable[[], None]:
        """To be called now and then while another command has the mission's turn: the client hears so, once.

        Raises RingfenceError where nobody waits any more.
        """
        told = False

        def waits() -> None:
            nonlocal told
            self.must_wait()
            if not told:
                told, why = True, f"another command of mission {mission} runs; this one waits for its turn"
                with contextlib.suppress(OSError):  # it leaves at this moment: seen at the next look
                    protocol.send(self.connection, {"event": "waiting", "why": why})

        return waits

    def take_descriptors(self, count: int) -> tuple[int, ...]:
        """Exactly ``count`` descriptors that came with the request. Raises ProtocolError for another number."""
        found = tuple(self.reader.descriptors)
        if len(found) != count:
            raise protocol.ProtocolError("bad-request", f"{count} descriptors were expected and {len(found)} came")
        self.reader.descriptors.clear()
        return found


def ancestors(pid: int) -> tuple[int, ...]:
    """The process and all it descends from, nearest first, as /proc tells now."""
    found: list[int] = []
    current = pid
    while current > 0 and len(found) < 1024:
        found.append(current)
        try:
            with open(f"/proc/{current}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
        except OSError:
            break
        current = int(fields[1])
    return tuple(found)


def environment_class(pid: int) -> str:
    """AGENT_ENV_CLASS of the calling process, or an empty string."""
    return variables(pid, {"AGENT_ENV_CLASS"}).get("AGENT_ENV_CLASS", "")


def variables(pid: int, names: Collection[str]) -> dict[str, str]:
    """These variables of the calling process, as it began; never anything else of its environment."""
    try:
        descriptor = os.open(f"/proc/{pid}/environ", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return {}
    with os.fdopen(descriptor, "rb") as file:
        pairs = (item.decode("utf-8", "replace").partition("=") for item in file.read(MOST_ENVIRONMENT).split(b"\0"))
        return {name: value for name, _, value in pairs if name in names}
