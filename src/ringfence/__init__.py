"""Ringfence: a fail-closed fence around coding agents. The names below are the public API; everything else is private.

Names are loaded on first use, so that importing the package costs nothing on the way to a decision.
"""

TYPE_CHECKING = False  # typing itself would cost the thin client more than all it imports
if TYPE_CHECKING:
    from ringfence.model.call import Context, ToolCall
    from ringfence.model.decision import Decision, Reason
    from ringfence.model.errors import RingfenceError
    from ringfence.model.tier import Tier
    from ringfence.policy.policy import Policy
    from ringfence.supervisor.fence import Fence

__version__ = "0.1.0"
__all__ = ["Context", "Decision", "Fence", "Policy", "Reason", "RingfenceError", "Tier", "ToolCall", "__version__"]

_HOMES = {
    "Context": "ringfence.model.call",
    "ToolCall": "ringfence.model.call",
    "Decision": "ringfence.model.decision",
    "Reason": "ringfence.model.decision",
    "RingfenceError": "ringfence.model.errors",
    "Tier": "ringfence.model.tier",
    "Policy": "ringfence.policy.policy",
    "Fence": "ringfence.supervisor.fence",
}


def __getattr__(name: str) -> object:
    """Load a public name on first use."""
    if name not in _HOMES:
        raise AttributeError(name)
    import importlib

    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value
