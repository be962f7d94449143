"""What stands between an attack and the host: nothing (the control) or a sandbox's command."""

from dataclasses import dataclass
from typing import Protocol

from ringfence.model.errors import BoxError
from ringfence.sandbox.gauntlet.attack import fill
from ringfence.sandbox.gauntlet.plant import World


class Fence(Protocol):
    """A sandbox under test."""

    name: str

    def files(self) -> dict[str, str]:
        """Files that the repository carries for this sandbox, by path (a policy)."""
        ...

    def prepare(self, world: World) -> None:
        """Make the sandbox ready for this repository; called once before each run."""
        ...

    def command(self, world: World, argv: tuple[str, ...]) -> tuple[str, ...]:
        """The command that runs ``argv`` inside the sandbox."""
        ...

    def mark(self) -> int:
        """Where the sandbox's record stands now."""
        ...

    def record(self, mark: int) -> str:
        """What the sandbox has recorded since, as text; empty where it keeps no record."""
        ...

    def close(self) -> None:
        """End whatever the sandbox keeps running."""
        ...


@dataclass(slots=True)
class NoFence:
    """The control: the attack runs as any program would."""

    name: str = "none"

    def files(self) -> dict[str, str]:
        """Nothing."""
        return {}

    def prepare(self, world: World) -> None:
        """Nothing to do."""

    def command(self, world: World, argv: tuple[str, ...]) -> tuple[str, ...]:
        """The command itself."""
        del world
        return argv

    def mark(self) -> int:
        """No record."""
        return 0

    def record(self, mark: int) -> str:
        """No record."""
        del mark
        return ""

    def close(self) -> None:
        """Nothing to end."""


@dataclass(slots=True)
class Wrapper(NoFence):
    """Any sandbox that is a command put in front; ``{worktree}``, ``{home}`` and ``{run}`` in it are filled in.

    ``log`` is a file that the sandbox appends its record to, where it has one.
    """

    words: tuple[str, ...] = ()
    log: str = ""

    def command(self, world: World, argv: tuple[str, ...]) -> tuple[str, ...]:
        """The wrapper's words, then the command. Raises BoxError for a place in it that nothing fills."""
        try:
            return (*fill(self.words, world.values), *argv)
        except KeyError as unknown:
            raise BoxError(
                "gauntlet-placeholder",
                f"nothing is filled in for {{{unknown.args[0]}}} in the wrapper",
                where=" ".join(self.words),
                remedy="write {worktree}, {home} or {run}; no other word may stand alone in braces",
            ) from unknown

    def mark(self) -> int:
        """The size of the log, in bytes."""
        return len(_read(self.log))

    def record(self, mark: int) -> str:
        """What was appended to the log."""
        return _read(self.log)[mark:].decode(errors="replace")


def _read(path: str) -> bytes:
    if not path:
        return b""
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""
