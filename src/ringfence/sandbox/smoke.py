"""The smoke test: one box, about a dozen probes, each judged from outside where that can be; under a second.

A box with a known hole is worse than none, so one failed probe means: nothing runs. Nothing of the test is left behind.
"""

import json
import os
import secrets
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any

from ringfence.model.box import BoxPlan, Control, ControlState, Execution, Layer, Limits
from ringfence.model.call import ToolCall
from ringfence.model.decision import Decision, Place, Reason
from ringfence.model.errors import RingfenceError
from ringfence.model.ids import CallId, Micros, Millis, MissionId, RuleId, Sha256
from ringfence.model.tier import Scope, Tier
from ringfence.sandbox.controls import DECOY_LOG, HIDDEN_LOG
from ringfence.sandbox.host import gather_host_facts
from ringfence.sandbox.inner import landlock
from ringfence.sandbox.launcher import Box, Launcher
from ringfence.sandbox.plan import plan_box
from ringfence.sandbox.teardown import PARTS
from ringfence.sandbox.worktree.tree import Worktree

PROBE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "smoke_probe.py")
SEPARATE = ("user", "mnt", "pid", "net", "ipc", "uts")
RUNTIME = Millis(20_000)
GONE_SECONDS = 5.0
RECORDED = {
    "exec": "", "refused-syscall": "", "refused-write": "", "decoy": DECOY_LOG, "floor": "egress-log", "hidden-path": HIDDEN_LOG,
}  # fmt: skip
"""What the record must show of what is tried, and the control without which it cannot."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """One check: its name, whether it passed, what was found where it did not, how long after the start it was known."""

    name: str
    passed: bool
    detail: str
    duration: Micros


@dataclass(frozen=True, slots=True, kw_only=True)
class SmokeReport:
    """All probes of one test."""

    passed: bool
    probes: tuple[Probe, ...]
    duration: Micros


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What the kernel says of the living box, seen from outside."""

    wrong: tuple[str, ...]
    processes: frozenset[tuple[int, str]]
    """Of the box: number and time of start."""
    groups: str
    """Control groups of the probe."""


@dataclass(slots=True)
class Ground:
    """What is planted on the host for one test, and what was seen there."""

    folder: str
    tree: str
    word: str
    port: int = 0
    sockets: list[str] = field(default_factory=list)
    servers: list[socket.socket] = field(default_factory=list)
    config: bytes = b""

    @property
    def victim(self) -> str:
        """A file that must not come into being, in a folder that every user may write to."""
        return f"{self.folder}/open/victim"

    def visited(self) -> list[str]:
        """Planted servers that somebody connected to."""
        hits = []
        for server in self.servers:
            try:
                server.accept()[0].close()
                hits.append(str(server.getsockname()))
            except BlockingIOError:
                continue
        return hits


class AllowAll:
    """The most permissive policy there could be: what the gate still refuses, it refuses by itself."""

    def decide(self, call: ToolCall) -> Decision:
        """ALLOW."""
        reason = Reason(
            rule=RuleId("smoke"), scope=Scope.MISSION, place=Place(file="builtin"), tier=Tier.ALLOW,
            matched="everything", because="the smoke test judges the gate, not a policy",
        )  # fmt: skip
        return Decision(call_id=call.id, policy_digest=Sha256("0" * 64), reasons=(reason,))


def run_smoke(launcher: Launcher, *, state: str) -> SmokeReport:
    """Probe a box made exactly as others are. Takes about half a second; a fault while building counts as failed."""
    begun = time.monotonic()
    with _ground(state) as ground:
        try:
            probes = _probe(launcher, ground, begun)
        except (RingfenceError, OSError, ValueError, LookupError) as fault:
            what = fault.what if isinstance(fault, RingfenceError) else str(fault)
            probes = [_result("box-built", [what], begun)]
    if os.path.exists(ground.folder):
        probes.append(_result("teardown-rehearsed", [f"{ground.folder} is still there"], begun))
    return SmokeReport(
        passed=bool(probes) and all(probe.passed for probe in probes),
        probes=tuple(probes),
        duration=_since(begun),
    )


def _probe(launcher: Launcher, ground: Ground, begun: float) -> list[Probe]:
    worktree = Worktree.open(ground.tree, f"{ground.folder}/state")
    mission = MissionId("smoke")
    layer = worktree.layer(mission)
    plan = _plan(launcher, ground, layer)
    box, said, look = _run(launcher, plan, ground)
    execution = box.wait(RUNTIME / 1000 + GONE_SECONDS)  # its own limit comes first
    outside = ground.visited()
    probes = [
        ("no-secrets-reachable", said["secrets"] + [f"descriptor {n}" for n in said["descriptors"]]),
        ("no-escalation", said["escalation"]),
        ("metadata-refused", said["metadata"]),
        ("tries-recorded", _unrecorded(execution)),
        ("host-sockets-absent", said["sockets"]),
        ("host-network-absent", said["loopback"] + outside),
        ("shadow-unreadable", said["shadow"]),
        ("no-nested-namespaces", said["nesting"]),
        ("no-writes-outside", _written(ground)),
        ("host-processes-hidden", said["processes"]),
        ("level-as-promised", [*look.wrong, *_lowered(execution, look, said["devices"])]),
        ("git-rename-caught", _after_gate(worktree, layer, ground)),
        ("nothing-outlives", _remaining(look)),
        ("teardown-rehearsed", _teardown(worktree, layer, execution)),
    ]
    return [_result(name, found, begun) for name, found in probes]


def _run(launcher: Launcher, plan: BoxPlan, ground: Ground) -> tuple[Box, dict[str, Any], Look]:
    """Start the probe, read its answer, look at the living box from outside, and let it end; at a fault it is ended."""
    (stdin, let_go), (answer, stdout) = os.pipe(), os.pipe()
    try:
        with open(f"{ground.folder}/errors", "wb") as errors:
            box = launcher.start(plan, stdin=stdin, stdout=stdout, stderr=errors.fileno())
    except BaseException:
        for descriptor in (let_go, answer):
            os.close(descriptor)
        raise
    finally:
        os.close(stdin)
        os.close(stdout)
    try:
        with os.fdopen(answer, "rb") as reader:
            said = json.loads(reader.readline() or b"{}")
            if not said:
                raise ValueError(f"the probe said nothing: {_errors(ground)!a}")
            look = _look(box)
    except BaseException:
        box.kill("the smoke test failed")
        with suppress(RingfenceError, TimeoutError):
            box.wait(GONE_SECONDS)
        raise
    finally:
        os.close(let_go)
    return box, said, look


def _errors(ground: Ground) -> str:
    with open(f"{ground.folder}/errors", encoding="utf-8", errors="replace") as file:
        return file.read()[-300:]


def _plan(launcher: Launcher, ground: Ground, layer: Layer) -> BoxPlan:
    interpreter = os.path.realpath(sys.executable)
    base = os.path.dirname(os.path.dirname(interpreter))
    planted = {
        "word": ground.word,
        "file": f"{ground.folder}/key",
        "tree": ground.tree,
        "port": ground.port,
        "sockets": ground.sockets,
        "victim": ground.victim,
        "pids": [os.getpid(), launcher.pid],
    }
    with open(PROBE, encoding="utf-8") as file:
        program = file.read()
    shown = replace(layer, middle=f"{ground.folder}/middle", masked=(".env",), replaced=((".git/config", b"[core]\n"),))
    return plan_box(
        call_id=CallId("smoke"),
        argv=(interpreter, "-I", "-S", "-c", program, json.dumps(planted)),
        cwd=ground.tree,
        facts=gather_host_facts(launcher.state_dir, path="/usr/bin:/bin"),
        layer=shown,
        limits=Limits(runtime=RUNTIME),
        caller_env={"SMOKE_API_KEY": ground.word},
        read_only=() if base == "/usr" else (base,),
        run_id="smoke",
    )


@contextmanager
def _ground(state: str) -> Iterator[Ground]:
    os.makedirs(state, mode=0o700, exist_ok=True)
    folder = tempfile.mkdtemp(prefix="smoke.", dir=state)
    ground = Ground(folder=folder, tree=f"{folder}/tree", word=f"planted-{secrets.token_hex(8)}")
    try:
        _plant(ground)
        yield ground
    finally:
        for server in ground.servers:
            server.close()
        _remove(folder)


def _plant(ground: Ground) -> None:
    os.chmod(ground.folder, 0o755)  # noqa: S103  closed by the state directory above it; in a box the view must do it
    os.mkdir(f"{ground.folder}/open")
    os.chmod(f"{ground.folder}/open", 0o777)  # noqa: S103  the same
    os.makedirs(f"{ground.tree}/.git/hooks")
    os.makedirs(f"{ground.tree}/.git/refs/heads")
    os.makedirs(f"{ground.tree}/.git/objects")
    ground.config = f"[core]\n\trepositoryformatversion = 0\n[http]\n\textraheader = {ground.word}\n".encode()
    contents = {
        f"{ground.folder}/key": ground.word.encode(),
        f"{ground.tree}/.env": ground.word.encode(),
        f"{ground.tree}/.git/HEAD": b"ref: refs/heads/main\n",
        f"{ground.tree}/.git/config": ground.config,
    }
    for path, content in contents.items():
        with open(path, "wb") as file:
            file.write(content)
        os.chmod(path, 0o644)  # whatever the umask: no owner's right may stand in for the view
    tcp = socket.create_server(("127.0.0.1", 0))
    ground.port = tcp.getsockname()[1]
    ground.servers.append(tcp)
    folder = os.open(ground.folder, os.O_PATH | os.O_CLOEXEC)
    for address in (f"{ground.folder}/s", f"\0{ground.word}"):
        server = socket.socket(socket.AF_UNIX)
        server.bind(address.replace(ground.folder, f"/proc/self/fd/{folder}"))  # however long its path is
        server.listen(1)
        if not address.startswith("\0"):
            os.chmod(address, 0o777)  # noqa: S103  what must stop the box is the view, not these rights
        ground.servers.append(server)
        ground.sockets.append(address.replace("\0", "@"))
    os.close(folder)
    for server in ground.servers:
        server.setblocking(False)


def _look(box: Box) -> Look:
    """What the kernel says of the running probe: namespaces of its own, a filter, no capability."""
    pids = box.pids()
    if len(pids) < 3:
        raise ValueError("the probe, or what it left behind, could not be looked at")
    pid, wrong = pids[1], []
    wrong += [
        f"shares the host's {name} namespace"
        for name in SEPARATE
        if os.readlink(f"/proc/{pid}/ns/{name}") == os.readlink(f"/proc/self/ns/{name}")
    ]
    wanted = {"Seccomp": "2", "NoNewPrivs": "1", "CapEff": "0" * 16, "CapBnd": "0" * 16}
    values = dict(line.split(":\t", 1) for line in _text(f"/proc/{pid}/status").splitlines() if ":\t" in line)
    wrong += [
        f"{name} is {values.get(name)}" for name, value in wanted.items() if values.get(name, "").strip() != value
    ]
    wrong += ["runs as root"] if values.get("Uid", "0").split()[0] == "0" else []
    seen = frozenset((one, _born(one)) for one in pids)
    return Look(wrong=tuple(wrong), processes=seen, groups=_text(f"/proc/{pid}/cgroup"))


def _born(pid: int) -> str:
    """When the process was started, by which it is told from a later one of its number; empty for one that has ended."""
    fields = _text(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return fields[19] if len(fields) > 19 and fields[0] not in {"Z", "X"} else ""


def _text(path: str) -> str:
    """What the kernel says there; nothing of a process that has ended. What cannot be read for another reason proves nothing."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def _unrecorded(execution: Execution) -> list[str]:
    """Kinds of tries that the record does not show, where this host can."""
    seen = {observation.kind for observation in execution.observations}
    in_force = {control.name for control in execution.controls if control.state is ControlState.ENFORCED}
    return [
        f"no {kind} recorded"
        for kind, control in RECORDED.items()
        if kind not in seen and (not control or control in in_force)
    ]


def _lowered(execution: Execution, look: Look, devices: list[str]) -> list[str]:
    """Controls that the box is said to have, or that this kernel has, and that were not in force in it."""

    def in_force(control: Control) -> bool:
        return control.state is ControlState.ENFORCED

    said = {control.name for control in execution.controls if in_force(control)}
    found = ["is in no control group of its own"] if "limits" in said and "ringfence." not in look.groups else []
    usable = landlock.abi() >= landlock.USABLE_ABI
    return found + ([f"Landlock let it make {device}" for device in devices] if usable else [])


def _written(ground: Ground) -> list[str]:
    places = (ground.victim, "/etc/smoke", "/usr/smoke", "/smoke")
    return [f"{place} exists" for place in places if os.path.lexists(place)]


def _after_gate(worktree: Worktree, layer: Layer, ground: Ground) -> list[str]:
    """Commit what the attack left, with a policy that allows everything: the real ``.git`` must stay as it was."""
    report = worktree.commit(layer, AllowAll(), now=Micros(time.time_ns() // 1000))
    refused = [item.path for item in report.refused if item.path.split("/")[0] == ".git"]
    with open(f"{ground.tree}/.git/config", "rb") as file:
        config = file.read()
    found = [] if refused else ["the gate refused nothing of it"]
    found += [] if config == ground.config else ["the real .git/config was changed"]
    return found + [f"hook {name} was planted" for name in os.listdir(f"{ground.tree}/.git/hooks")]


def _remaining(look: Look) -> list[str]:
    """Processes of the box that are still there, the daemon that it left behind among them."""
    deadline = time.monotonic() + GONE_SECONDS
    while (
        left := [pid for pid, born in look.processes if born and _born(pid) == born]
    ) and time.monotonic() < deadline:
        time.sleep(0.005)
    return [f"process {pid}" for pid in left]


def _teardown(worktree: Worktree, layer: Layer, execution: Execution) -> list[str]:
    """Take the layer away as at a mission's end; the rest of the ground goes with the test's folder."""
    worktree.discard(layer)
    worktree.end(layer)
    folder = os.path.dirname(layer.upper)
    problems = [] if not execution.ended_by else [f"the probe was ended: {execution.ended_by}"]
    problems += [f"{part} of the layer is still there" for part in PARTS if os.path.lexists(f"{folder}/{part}")]
    return problems + [line.split()[1] for line in _text("/proc/self/mounts").splitlines() if folder in line]


def _remove(folder: str) -> None:
    """Overlayfs leaves folders without any right in its work folder."""
    for place, names, _files in os.walk(folder):
        for name in names:
            if not os.path.islink(f"{place}/{name}"):
                os.chmod(f"{place}/{name}", 0o700)
    shutil.rmtree(folder, ignore_errors=True)


def _result(name: str, found: list[str], begun: float) -> Probe:
    return Probe(name=name, passed=not found, detail="; ".join(found), duration=_since(begun))


def _since(begun: float) -> Micros:
    return Micros(int((time.monotonic() - begun) * 1_000_000))
