"""A launcher, a worktree, and a way to run one command in a box with its output captured."""

import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from ringfence.model.box import BoxPlan, Execution, Layer, Limits
from ringfence.model.ids import CallId, Millis
from ringfence.sandbox.facts import HostFacts
from ringfence.sandbox.host import gather_host_facts
from ringfence.sandbox.launcher import Box, Launcher
from ringfence.sandbox.plan import plan_box


@dataclass
class Ran:
    execution: Execution
    out: bytes
    err: bytes


@dataclass
class Bench:
    launcher: Launcher
    facts: HostFacts
    layer: Layer

    def plan(self, *argv: str, limits: Limits | None = None, **options: Any) -> BoxPlan:
        options.setdefault("layer", self.layer)
        options.setdefault("cwd", self.layer.target)
        options.setdefault("caller_env", {"PATH": self.facts.path, "LANG": "C.UTF-8"})
        limits = limits or Limits()
        if limits.runtime == Limits().runtime:  # not what the test is about: a busy machine may take its time
            limits = replace(limits, runtime=Millis(180_000))
        return plan_box(call_id=CallId("c-1"), argv=argv, facts=self.facts, limits=limits, **options)

    def begin(self, plan: BoxPlan, stdin: bytes = b"", **options: Any) -> "Running":
        return Running(self.launcher, plan, stdin, options)

    def run(self, *argv: str, stdin: bytes = b"", **options: Any) -> Ran:
        return self.begin(self.plan(*argv, **options), stdin).finish()

    def sh(self, line: str, **options: Any) -> Ran:
        return self.run("/bin/sh", "-c", line, **options)


class Running:
    def __init__(self, launcher: Launcher, plan: BoxPlan, stdin: bytes, options: dict[str, Any]) -> None:
        pipes = [os.pipe() for _ in range(3)]
        self.parts: list[bytearray] = [bytearray(), bytearray()]
        try:
            self.box: Box = launcher.start(plan, stdin=pipes[0][0], stdout=pipes[1][1], stderr=pipes[2][1], **options)
        except BaseException:
            for pipe in pipes:
                os.close(pipe[0])
                os.close(pipe[1])
            raise
        for descriptor in (pipes[0][0], pipes[1][1], pipes[2][1]):
            os.close(descriptor)
        self.readers = [
            threading.Thread(target=self._read, args=(pipes[n + 1][0], self.parts[n]), daemon=True) for n in (0, 1)
        ]
        for reader in self.readers:
            reader.start()
        try:
            os.write(pipes[0][1], stdin) if stdin else None
        except BrokenPipeError:
            pass
        os.close(pipes[0][1])

    @staticmethod
    def _read(descriptor: int, into: bytearray) -> None:
        while data := os.read(descriptor, 65536):
            into += data
        os.close(descriptor)

    def finish(self, timeout: float = 300) -> Ran:
        execution = self.box.wait(timeout)
        for reader in self.readers:
            reader.join(60)
        return Ran(execution, bytes(self.parts[0]), bytes(self.parts[1]))


@pytest.fixture(scope="session")
def box_launcher(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Launcher]:
    with Launcher.spawn(str(tmp_path_factory.mktemp("state"))) as launcher:
        yield launcher


@pytest.fixture
def bench(box_launcher: Launcher, tmp_path: Path) -> Iterator[Bench]:
    project = tmp_path / "project"
    project.mkdir()
    (project / "readme.txt").write_text("hello\n")
    (project / ".env").write_text("TOKEN=planted\n")
    owner = (project.stat().st_uid, project.stat().st_gid)
    for name in ("upper", "work"):
        (tmp_path / name).mkdir()
    layer = Layer(
        lower=str(project), upper=f"{tmp_path}/upper", work=f"{tmp_path}/work", target=str(project), owner=owner,
        middle=f"{tmp_path}/middle", masked=(".env",),
    )  # fmt: skip
    facts = gather_host_facts(box_launcher.state_dir, path=os.environ["PATH"], trees=[str(project)])
    yield Bench(box_launcher, facts, layer)
    leftover = tmp_path / "work" / "work"
    if leftover.exists():
        leftover.chmod(0o700)


BESIDE, LOOKS = 4, 100
"""Processes of a launcher at rest: three helpers, and the next box's. After so many looks that find the same, it is at rest."""


@pytest.fixture
def at_rest() -> Callable[[int], tuple[int, int]]:
    """How many processes and, where they may be looked at, open files a launcher holds once nothing of its last box is left."""
    import time

    def held(pid: int) -> tuple[int, int]:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
            processes = len(file.read().split())
        return processes, len(os.listdir(f"/proc/{pid}/fd")) if os.access(f"/proc/{pid}/fd", os.R_OK) else 0

    def rest(pid: int) -> tuple[int, int]:
        found, same, deadline = (0, 0), 0, time.monotonic() + 120
        while same < LOOKS:
            assert time.monotonic() < deadline, f"it does not come to rest: {found}"
            time.sleep(0.01)
            now = held(pid)
            same = same + 1 if now == found and now[0] == BESIDE else 0
            found = now
        return found

    return rest


@pytest.fixture
def wait_for() -> Callable[[Callable[[], bool]], None]:
    import time

    def wait(reached: Callable[[], bool], seconds: float = 300) -> None:
        deadline = time.monotonic() + seconds
        while not reached():
            assert time.monotonic() < deadline, "not reached in time"
            time.sleep(0.01)

    return wait


__all__ = ["Bench", "Ran", "Running", "replace"]
