"""A box before and after: the plan, the limits, what was enforced, what came of it."""

import enum
from dataclasses import dataclass

from ringfence.model.ids import Bytes, CallId, Micros, Millis, MissionId, Sha256


class Level(enum.IntEnum):
    """How strongly this host can fence; ordered, so that a policy's minimum compares."""

    NONE = 0
    LANDLOCK = 1
    NAMESPACES = 2


class ControlState(enum.Enum):
    """What became of one control."""

    ENFORCED = "enforced"
    DOWNGRADED = "downgraded"
    ABSENT = "absent"


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """One wall of a box: its name, whether it stood, and by which rule or cause it did not."""

    name: str
    state: ControlState
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Caps on one tool call. 0 means the built-in ceiling, never unlimited."""

    runtime: Millis = Millis(15_000)
    output: Bytes = Bytes(65_536)
    memory: Bytes = Bytes(0)
    processes: int = 0
    disk: Bytes = Bytes(0)
    cpu: Millis = Millis(0)
    open_files: int = 0
    file_size: Bytes = Bytes(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """One thing in the box's view.

    ``kind`` is ``ro``, ``granted`` (read-only too, and its sockets and pipes lead nowhere) or ``rw`` (``source`` on the host), ``tmpfs`` (``size`` in bytes), ``file`` (``content`` given),
    ``decoy`` (a file whose opening is a violation), ``watched`` (one whose opening is recorded), ``link`` (to ``source``), ``dir``, ``proc``, ``mqueue`` (the message queues of the box), or ``hidden``.
    """

    kind: str
    target: str
    source: str = ""
    content: bytes = b""
    mode: int = 0o755
    size: Bytes = Bytes(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """The worktree as an overlay: the real tree below, the mission's changes above."""

    lower: str
    upper: str
    work: str
    target: str
    owner: tuple[int, int]
    """uid and gid on the host of whom the box's user stands for in the worktree."""
    direct: bool = False
    """Bound writable without an overlay; only by a scope that may grant it."""
    middle: str = ""
    """Folder for second lower layers, between ``lower`` and ``upper``, made from the two fields below when they say
    anything; it can be removed when no box of the mission runs. It belongs to the sandbox alone: the gate compares ``upper`` with ``lower`` and never sees it."""
    masked: tuple[str, ...] = ()
    """Relative paths that must not be seen (``files.read.deny``, ``.env`` and the like): whiteouts in ``middle``. A
    path that is masked and absent from ``upper`` was hidden, never deleted; a masked path in ``upper`` was written by
    the box without ever seeing the original; a whiteout or an opaque folder in ``upper`` over an ancestor of a masked
    path would delete what the box never saw."""
    replaced: tuple[tuple[str, bytes], ...] = ()
    """Relative path and the content seen instead, as ``.git/config`` without its credentials. Also in ``middle``."""
    beside: tuple["Layer", ...] = ()
    """Further overlays that belong to this one, mounted with it: the git directory of a linked worktree or a submodule,
    which lies outside the worktree. They have no ``beside`` of their own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BoxPlan:
    """Everything needed to build one box; printable and comparable before anything happens."""

    call_id: CallId
    mission: MissionId | None
    argv: tuple[str, ...]
    cwd: str
    env: tuple[tuple[str, str], ...]
    mounts: tuple[Mount, ...]
    layer: Layer | None
    limits: Limits
    network: str = "none"
    """``none`` or ``captured``."""
    endpoints: tuple[tuple[str, int], ...] = ()
    """Name and port of what answers on the box's loopback for the supervisor."""
    host_ports: tuple[int, ...] = ()
    """Ports of the host's loopback that the box reaches on its own."""
    inbound: bool = False
    """Whether a port of the box is granted to the host."""
    pty: bool = False
    home: str = "/home/agent"
    home_upper: str = ""
    """Directory on the host that keeps the synthetic home between missions; empty: a private tmpfs."""
    required: Level = Level.NAMESPACES
    user: tuple[int, int] = (0, 0)
    """uid and gid of the box's processes; never 0 when carried out."""
    umask: int = 0o022
    size: tuple[int, int] = (24, 80)
    """Rows and columns of the terminal at start."""
    modes: tuple[int, ...] = ()
    """Input, output and local modes of the caller's terminal, then its control characters; empty: those of a new one."""
    stops: bool = False
    """Its caller hears when the command stops, and says when it goes on; one with a terminal always does."""
    behind: bool = False
    """Another job has the keys of the caller's terminal: nothing is read of it until the command goes on in front."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """Something seen happening in a box, by the kernel or from outside, never by the agent's word."""

    kind: str
    """``exec``, ``refused-syscall``, ``refused-write``, ``hidden-write``, ``decoy``, ``credential-read``, ``limit``,
    ``floor``, ``egress``, ``hidden-path``, ``hidden-late``."""
    detail: str
    count: int = 1
    violation: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """What came of one box. ``exit`` and ``signal`` are the command's own; ``ended_by`` says when it was the fence."""

    call_id: CallId
    level: Level
    controls: tuple[Control, ...]
    exit: int | None
    signal: int | None
    ended_by: str = ""
    """Empty, or the limit or fault that ended it, as ``runtime, 15000 ms``."""
    started: Micros = Micros(0)
    duration: Micros = Micros(0)
    stdout_bytes: int = 0
    stderr_bytes: int = 0
    dropped_bytes: int = 0
    observations: tuple[Observation, ...] = ()
    observations_dropped: int = 0
    changes_digest: Sha256 | None = None
