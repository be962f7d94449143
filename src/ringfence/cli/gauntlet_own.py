"""Our own box as a fence for the gauntlet: a supervisor of its own below the gauntlet's folder, a policy, the ledger."""

from dataclasses import dataclass

from ringfence.sandbox.gauntlet.plant import World


@dataclass(slots=True)
class OwnBox:
    """``ringfence run`` with everything of ringfence kept below ``base``."""

    base: str
    name: str = "ringfence"

    def files(self) -> dict[str, str]:
        """The policy that the repository carries."""
        return {}

    def prepare(self, world: World) -> None:
        """Trust the repository's policy."""
        del world

    def command(self, world: World, argv: tuple[str, ...], *, terminal: bool) -> tuple[str, ...]:
        """``ringfence run`` in that repository."""
        del world, terminal
        return argv

    def mark(self) -> int:
        """The last entry of the ledger."""
        return 0

    def record(self, mark: int) -> str:
        """What the ledger holds since."""
        del mark
        return ""

    def close(self) -> None:
        """Stop the supervisor."""
