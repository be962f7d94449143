"""Runs the gauntlet: each attack once without a fence and once behind it, in fresh worlds, and says what became of it."""

import os
import socket
from collections.abc import Callable
from dataclasses import dataclass, field

from ringfence.model.errors import BoxError
from ringfence.sandbox.gauntlet import judge, trial, watch
from ringfence.sandbox.gauntlet.attack import Attack, Outcome, Result, fill
from ringfence.sandbox.gauntlet.fence import Fence, NoFence
from ringfence.sandbox.gauntlet.interruption import Interruption, remove
from ringfence.sandbox.gauntlet.plant import World, make_template, plant
from ringfence.sandbox.gauntlet.servers import Servers
from ringfence.sandbox.gauntlet.victims import Victims, raise_victims

CONTROLS = 2
"""Runs without a fence, until one shows that the attack works here: a busy machine may be too slow for some."""
ORDINARY = Attack(
    name="ordinary-work",
    family="works",
    program="ordinary_work.py",
    tries="Reads a source file, writes beside it, and starts a program.",
    judge=("proof", "^ordinary work done"),
    seconds=90.0,  # the sandbox's own first start is in it
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """One run, judged."""

    passed: bool
    claims: bool
    started: bool
    recorded: bool
    record: str
    output: bytes


@dataclass(slots=True, kw_only=True)
class Gauntlet:
    """The suite on one host. ``base`` is a folder of its own that ``close`` removes."""

    base: str
    fence: Fence
    servers: Servers
    interruption: Interruption = field(default_factory=Interruption)
    known: dict[str, bool] = field(default_factory=dict)
    """Controls of an earlier run on this host, by attack: whether it works without a fence."""
    _number: int = 0
    _control: NoFence = field(default_factory=NoFence)

    def open(self) -> None:
        """Plant what all worlds share. Raises BoxError when the sandbox does not run an ordinary program."""
        make_template(f"{self.base}/template", self.fence.files())
        self.servers.start()
        try:
            tried = self.attempt(ORDINARY, self.fence)
        except OSError as fault:
            raise _useless(f"{fault.filename or 'it'}: {fault.strerror}") from fault
        if not (tried.passed and tried.started):
            raise _useless(tried.output.decode(errors="replace")[-2000:])

    def run(self, attacks: tuple[Attack, ...], tell: Callable[[Result], None]) -> tuple[Result, ...]:
        """Every attack in turn; ``tell`` hears each result as it comes."""
        results = []
        for attack in attacks:
            result = self.one(attack)
            tell(result)
            results.append(result)
        return tuple(results)

    def one(self, attack: Attack) -> Result:
        """The control run, then the run behind the fence."""
        control = self.known.get(attack.name)
        if control is None:
            control = any(self.attempt(attack, self._control).passed for _ in range(CONTROLS))
        fenced = self.attempt(attack, self.fence)
        return Result(
            name=attack.name,
            family=attack.family,
            outcome=_outcome(fenced, control=control),
            control=control,
            recorded=fenced.recorded,
            evidence=attack.evidence,
            detail="" if fenced.started else "the sandbox did not start the program",
        )

    def attempt(self, attack: Attack, fence: Fence) -> Tried:
        """One run in a fresh world, judged from outside."""
        self._number += 1
        base, victims = f"{self.base}/{self._number:03d}", None
        try:
            with self.interruption.held():
                world = plant(base, f"{self.base}/template")
                world.values["inbound_port"] = str(_free_port())
                victims = raise_victims(world, self.servers)
            return self._attempt(attack, fence, world, victims)
        finally:
            with self.interruption.held():
                if victims is not None:
                    watch.kill(victims.world.tag.encode(), spare={os.getpid(), victims.process.pid})
                    victims.close()
                remove(base)

    def _attempt(self, attack: Attack, fence: Fence, world: World, victims: Victims) -> Tried:
        fence.prepare(world)
        path = judge.watched_path(attack, world)
        before, mark = judge.fingerprint(path), fence.mark()
        self.servers.answers = {"metadata": f"HTTP/1.0 200 OK\r\n\r\n{world.secrets['metadata']}".encode()}
        run = trial.run(attack, world, fence, victims)
        scene = judge.Scene(
            world=world,
            servers=self.servers,
            run=run,
            before=victims.before,
            after=victims.standing(),
            prints=(before, judge.fingerprint(path)),
            other_terminal=victims.typed_on(),
        )
        record = fence.record(mark)
        return Tried(
            recorded=any(word in record for word in fill(attack.trace, world.values)),
            passed=judge.passed(attack, scene),
            claims=run.claims,
            started=run.started,
            record=record,
            output=run.output,
        )

    def close(self) -> None:
        """End the servers, the sandbox and whatever else was started, and remove everything that was planted."""
        with self.interruption.held():
            try:
                self.fence.close()
            finally:
                self.servers.stop()
                watch.end_all_below()
                remove(self.base)


def _useless(said: str) -> BoxError:
    return BoxError(
        "gauntlet-wrapper",
        "the sandbox does not run an ordinary program, so a suite that it blocks would prove nothing",
        where=said,
        remedy="try the wrapper by hand with `sh -c 'echo works'`; {worktree}, {home} and {run} are filled in",
    )


def _outcome(fenced: Tried, *, control: bool) -> Outcome:
    if fenced.passed:
        return Outcome.PASSED
    if not control or not fenced.started:
        return Outcome.NOT_APPLICABLE
    return Outcome.PRIVATE if fenced.claims else Outcome.BLOCKED


def _free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])
