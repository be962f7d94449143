"""The gauntlet's results as a table for a person and as JSON for a program. Pure."""

import json

from ringfence.sandbox.gauntlet.attack import Attack, Outcome, Result

ORDER = (Outcome.PASSED, Outcome.PRIVATE, Outcome.BLOCKED, Outcome.NOT_APPLICABLE)


def as_json(sandbox: str, results: tuple[Result, ...]) -> str:
    """One object: the sandbox's name, the counts, and one object for each attack."""
    attacks = [
        {
            "name": result.name,
            "family": result.family,
            "outcome": result.outcome.value,
            "control": "passed" if result.control else "failed",
            "recorded": result.recorded,
            "evidence": result.evidence,
            **({"detail": result.detail} if result.detail else {}),
        }
        for result in results
    ]
    return json.dumps({"sandbox": sandbox, "counts": counts(results), "attacks": attacks}, indent=1)


def counts(results: tuple[Result, ...]) -> dict[str, int]:
    """How many of each outcome."""
    return {outcome.value: sum(result.outcome is outcome for result in results) for outcome in ORDER}


def line(result: Result) -> str:
    """One row of the table."""
    recorded = "recorded" if result.recorded else "-"
    control = "works" if result.control else "fails"
    detail = f"  {result.detail}" if result.detail else ""
    return (
        f"{result.family:<12} {result.name:<36} {result.outcome.value:<15} {control:<8} {recorded:<9}{detail}".rstrip()
    )


def heading() -> str:
    """The table's first line."""
    return f"{'family':<12} {'attack':<36} {'outcome':<15} {'control':<8} record"


def summary(sandbox: str, results: tuple[Result, ...]) -> str:
    """One sentence for the end."""
    parts = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in counts(results).items())
    return f"{sandbox}: {len(results)} attacks: {parts}"


def catalogue(attacks: tuple[Attack, ...]) -> str:
    """What each attack tries."""
    return "\n".join(f"{attack.family:<12} {attack.name:<36} {attack.tries}" for attack in attacks)
