"""Type-checked only, never run: the public API as a user spells it."""

from ringfence import Decision, Tier, ToolCall

call: ToolCall = ToolCall.shell("git status", cwd=".")
tiers: list[Tier] = [Tier.ALLOW, Tier.ASK, Tier.DENY]


def read(decision: Decision) -> bool:
    """Compare tiers."""
    return decision.tier is Tier.ALLOW
