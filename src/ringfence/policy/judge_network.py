"""Connections and requests against the network rules and the floor. Pure."""

import re

from ringfence.model.call import NetworkAccess
from ringfence.model.decision import Reason
from ringfence.model.ids import RuleId
from ringfence.model.tier import Scope, Tier
from ringfence.policy.compile import Compiled, builtin_reason, place
from ringfence.policy.conditions import Circumstances, holds
from ringfence.policy.document import NetworkRule
from ringfence.policy.globs import PathPattern, split
from ringfence.policy.hosts import address_of, is_floor, normal_name
from ringfence.policy.yaml_tree import show

STANDARD_PORTS = (443,)
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")
_DOUBTFUL = re.compile(r"[%\\;?#\x00-\x1f\x7f]|//|(^|/)\.\.?(/|$)")


def judge_network(compiled: Compiled, request: NetworkAccess, circumstances: Circumstances) -> list[Reason]:
    """Every reason about one connection or request; never empty."""
    shown = _shown(request)
    if address_of(request.host) is None and normal_name(request.host) is None:
        return [builtin_reason(compiled, shown, "fault", "the host is neither a name nor an address", Tier.DENY)]
    if not 0 < request.port < 65536:
        return [builtin_reason(compiled, shown, "fault", "the port is out of range", Tier.DENY)]
    found = []
    granted = False
    for rule, host, scope, tier in compiled.network:
        if host is None or not host.matches(request.host) or not _speaks(rule, request, tier):
            continue
        if rule.when is not None and not holds(rule.when, circumstances, unknown=tier is not Tier.ALLOW):
            continue
        granted = granted or (tier is Tier.ALLOW and host.opens_floor)
        found.append(_reason(rule, scope, tier, shown))
    floor = is_floor(request.host)
    if floor is not None and not granted:
        found.append(
            builtin_reason(
                compiled, shown, "floor", f"{floor}: only a rule with this very name or address grants it", Tier.DENY
            )
        )
    for at, scope in compiled.network_off:
        found.append(
            Reason(
                rule=RuleId("network.allow"),
                scope=scope,
                place=place(at),
                tier=Tier.DENY,
                matched=shown,
                because="the network is off",
            )
        )
    if all(reason.tier is Tier.ASK and (reason.scope, "network") in compiled.locked for reason in found):
        # Nothing speaks, or only the questions of a scope that a wider one has locked.
        found.append(
            builtin_reason(compiled, shown, "default", "no network rule covers this host and port", compiled.default)
        )
    return found


def _speaks(rule: NetworkRule, request: NetworkAccess, tier: Tier) -> bool:
    """Whether ports, methods and paths fit. What inspection did not show fits a strict rule, and no allow rule."""
    if request.protocol != "tcp" and tier is Tier.ALLOW:
        return False
    ports = rule.ports or (() if tier is not Tier.ALLOW else STANDARD_PORTS)
    if ports and request.port not in ports:
        return False
    unseen = tier is not Tier.ALLOW
    if rule.methods and not (unseen if request.method is None else request.method.upper() in rule.methods):
        return False
    if rule.paths:
        return unseen if request.path is None else _path_fits(rule.paths, request.path, tier)
    return True


def _path_fits(patterns: tuple[str, ...], path: str, tier: Tier) -> bool:
    """Request paths component by component, with escapes (``/@scope%2fname``) left and undone.

    An allow rule must fit both readings, a strict one either. A path that is doubtful in one of them, as with ``..``,
    ``;``, backslashes or escaped escapes, fits every strict rule and no allow rule.
    """
    bare = path.split("?", 1)[0].split("#", 1)[0]
    undone = _ESCAPE.sub(lambda match: chr(int(match[1], 16)), bare)
    if _DOUBTFUL.search(_ESCAPE.sub("", bare)) or _DOUBTFUL.search(undone):
        return tier is not Tier.ALLOW
    loose = tier is not Tier.ALLOW
    fits = (
        any(PathPattern(pattern).matches(split(reading), loose=loose) for pattern in patterns)
        for reading in dict.fromkeys((bare, undone))
    )
    return any(fits) if loose else all(fits)


def _shown(request: NetworkAccess) -> str:
    port = f":{request.port}"
    method = f"{request.method} " if request.method else ""
    # The query may hold secrets and is never shown.
    path = (request.path or "").split("?", 1)[0]
    return show(f"{method}{request.host}{port}{path}", 200)


def _reason(rule: NetworkRule, scope: Scope, tier: Tier, shown: str) -> Reason:
    return Reason(
        rule=RuleId(rule.id),
        scope=scope,
        place=place(rule.at),
        tier=tier,
        matched=shown,
        because=rule.because or f"host rule `{rule.host}`",
        approvals=rule.approvals,
        not_owner=rule.not_owner,
    )
