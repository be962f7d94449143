"""``Fence``: the fence for programs. A mission in a repository; each ``run`` is decided, boxed, recorded."""

import os
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from ringfence.model.errors import RingfenceError
from ringfence.supervisor import client, protocol
from ringfence.supervisor.paths import Paths, user_paths


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What came of one command. ``tier`` is ``allow``, ``ask`` or ``deny``; only an allowed one has run.

    ``exit`` is the command's own exit status, or None where a signal ended it (``signal``) or it did not run.
    ``ended_by`` names the limit or fault by which the fence ended it, and is empty otherwise.
    ``report`` is the whole answer of the supervisor, as ``ringfence run --json`` prints it.
    """

    tier: str
    exit: int | None
    signal: int | None
    ended_by: str
    stdout: bytes
    stderr: bytes
    report: dict[str, object]

    @property
    def ok(self) -> bool:
        """It was allowed, ran, and ended with exit status 0 by itself."""
        return self.tier == "allow" and self.exit == 0 and not self.ended_by


class Fence:
    """A mission of this program's agent in one repository. Use as a context manager; leaving it ends the mission."""

    def __init__(self, *, paths: Paths, root: str, mission: str) -> None:
        """Use ``open``."""
        self._paths = paths
        self.root = root
        self.mission = mission

    @classmethod
    def open(cls, repo: str = ".", *, task: str = "", agent: str = "", test_root: str | None = None) -> "Fence":
        """Start a mission in the repository at ``repo``.

        Raises RingfenceError when it cannot be: no policy, no supervisor, a host that cannot enforce what the policy
        asks. ``test_root`` keeps all state below one folder, for tests.
        """
        paths = user_paths(test_root)
        payload: dict[str, object] = {"action": "start", "cwd": os.path.realpath(repo), "task": task, "agent": agent}
        answer = client.request(paths, "mission", payload)
        return cls(paths=paths, root=str(answer["root"]), mission=str(answer["id"]))

    def run(self, command: str | list[str] | tuple[str, ...], *, cwd: str | None = None) -> Result:
        """Decide a line (str, for bash) or an argument vector, run it in a box if allowed, and give what came of it.

        A denial is a Result, a fault is a RingfenceError. Nothing ever runs outside a box.
        """
        payload: dict[str, object] = {
            "verb": "run",
            "version": protocol.VERSION,
            "cwd": os.path.realpath(cwd or self.root),
            "mission": self.mission,
        }
        if isinstance(command, str):
            payload["line"] = command
        else:
            payload["argv"] = list(command)
        null = os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC)
        out, err = os.memfd_create("stdout"), os.memfd_create("stderr")
        try:
            connection, reader = client.ask(self._paths, payload, (null, out, err))
            try:
                answer = client.answer(reader, self._paths)
            finally:
                connection.close()
            return _result(answer, _all_of(out), _all_of(err))
        finally:
            for descriptor in (null, out, err):
                os.close(descriptor)

    def close(self) -> None:
        """End the mission. Changes that the gate held back stay with it; see ``ringfence mission diff``."""
        client.request(self._paths, "mission", {"action": "end", "id": self.mission})

    def __enter__(self) -> Self:
        """The fence itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the mission; a fault in ending does not hide the exception that left the block."""
        try:
            self.close()
        except RingfenceError:
            if value is None:
                raise


def _all_of(descriptor: int) -> bytes:
    return os.pread(descriptor, os.lseek(descriptor, 0, os.SEEK_END), 0)


def _result(answer: dict[str, object], stdout: bytes, stderr: bytes) -> Result:
    code, number = answer.get("exit"), answer.get("signal")
    ran = bool(answer.get("ran"))
    return Result(
        tier=str(answer.get("tier")),
        exit=code if ran and isinstance(code, int) else None,
        signal=number if ran and isinstance(number, int) else None,
        ended_by=str(answer.get("ended_by", "")),
        stdout=stdout,
        stderr=stderr,
        report=answer,
    )
