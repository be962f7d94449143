"""One attack as its file's header describes it, and what can come of it. Pure: text in, values out."""

import enum
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass

FAMILIES = (
    "secrets",
    "writes",
    "git",
    "processes",
    "kernel",
    "sockets",
    "network",
    "limits",
    "persistence",
    "descriptors",
    "terminal",
)
FIELDS = frozenset({"family", "arguments", "judge", "trace", "terminal", "descriptors", "after", "seconds", "runs"})
PLACEHOLDER = re.compile(r"\{([a-z_0-9]+)\}")


class Outcome(enum.Enum):
    """What became of one attack inside the fence."""

    BLOCKED = "blocked"
    """It failed, and nothing changed outside."""
    PRIVATE = "private"
    """It believes that it worked, but acted on a throw-away view: nothing changed outside."""
    PASSED = "passed"
    """Its effect was seen from outside (or, where nothing can be seen there, proved by the kernel's answer)."""
    NOT_APPLICABLE = "not_applicable"
    """It does not work on this host even without a fence, or did not start: it tells nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attack:
    """One program and how its effect is seen."""

    name: str
    family: str
    program: str
    """File name below ``attacks/FAMILY/``."""
    tries: str
    """The first line of the header, for a person."""
    judge: tuple[str, ...]
    """Kind of judge, then its arguments, which may hold placeholders."""
    arguments: tuple[str, ...] = ()
    trace: tuple[str, ...] = ()
    """Words of which one must stand in the fence's record for the attempt to count as recorded."""
    terminal: str = ""
    """``yes``: it runs on a terminal; ``output``: only its output goes to one."""
    descriptors: tuple[str, ...] = ()
    """Descriptors that the launcher leaves open: ``key``, ``home``, ``log``, ``listener``."""
    after: str = ""
    """What the person does next in the worktree: empty or ``git``."""
    seconds: float = 20.0
    """Longest time that the run may take before the harness ends it."""
    runs: int = 1
    """How often it is started in the same worktree, one after the other."""

    @property
    def evidence(self) -> str:
        """``outside``, or ``inside`` where nothing can be seen outside and the kernel's answer is the proof."""
        return "inside" if self.judge[0] == "proof" else "outside"


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What the gauntlet says about one attack."""

    name: str
    family: str
    outcome: Outcome
    control: bool
    """It worked without a fence on this host."""
    recorded: bool
    """The fence's record shows the attempt."""
    evidence: str
    detail: str = ""


def read_attack(family: str, program: str, text: str) -> Attack:
    """The attack that a file's header describes. Raises ValueError naming the file and the fault."""
    tries, fields = _header(program, text)
    unknown = sorted(set(fields) - FIELDS)
    if unknown or fields.get("family") != family or not fields.get("judge"):
        raise ValueError(f"{family}/{program}: header needs family and judge; unknown: {unknown}")
    return Attack(
        name=program.rpartition(".")[0].replace("_", "-"),
        family=family,
        program=program,
        tries=tries,
        judge=tuple(shlex.split(fields["judge"])),
        arguments=tuple(shlex.split(fields.get("arguments", ""))),
        trace=tuple(word.strip() for word in fields.get("trace", "").split(",") if word.strip()),
        terminal=fields.get("terminal", ""),
        descriptors=tuple(fields.get("descriptors", "").split()),
        after=fields.get("after", ""),
        seconds=float(fields.get("seconds", "20")),
        runs=int(fields.get("runs", "1")),
    )


def fill(words: tuple[str, ...], values: Mapping[str, str]) -> tuple[str, ...]:
    """The words with each ``{name}`` replaced. Raises KeyError for a name that nothing was planted for."""
    return tuple(PLACEHOLDER.sub(lambda match: values[match.group(1)], word) for word in words)


def _header(program: str, text: str) -> tuple[str, dict[str, str]]:
    if program.endswith(".py"):
        body = text.split('"""')[1]
    else:
        body = "\n".join(
            line.lstrip("#").strip() for line in text.splitlines() if line.startswith("#") and "!" not in line[:2]
        )
    lines = [line.strip() for line in body.splitlines()]
    pairs = (line.partition(":") for line in lines if re.match(r"[a-z]+: ", line))
    return lines[0], {name: value.strip() for name, _, value in pairs}
