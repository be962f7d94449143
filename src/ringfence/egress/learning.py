"""From what a learning mission did to the narrowest rules that let it pass again, for a person to review. Pure.

Presets come first, then single hosts with their ports. What only ever failed or looks dangerous is left out and said so.
"""

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass

from ringfence.egress.presets import HostRule, catalogue, danger_of, moved, near_misses
from ringfence.egress.presets.clients import Index
from ringfence.egress.record import OUTWARD, ConnectionLog
from ringfence.egress.rules import BadHostError, canonical_host
from ringfence.model.tier import Tier

MAX_NEW, WARN_HOSTS = 10, 25
CLIENT_PRESET = {"pip": "pypi", "npm": "npm", "apt": "apt"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposed:
    """One rule for review: a preset, or one host with its ports."""

    preset: str = ""
    host: str = ""
    ports: tuple[int, ...] = ()
    tries: int = 0
    programs: tuple[str, ...] = ()
    covers: tuple[str, ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """What to add, what was left out and why, and what a person should know."""

    rules: tuple[Proposed, ...]
    left_out: tuple[tuple[str, str], ...]
    """(host:port, why)"""
    notes: tuple[str, ...]

    def fragment(self) -> str:
        """The rules as a ``network:`` block of a policy, with a comment on each."""
        return "network:\n  allow:\n" + "".join(f"    {line}\n" for line in self.lines())

    def lines(self) -> list[str]:
        """One line of YAML a rule."""
        return [_line(rule) for rule in self.rules]

    def diff(self, policy: str, *, name: str = "sandbox_policy.yaml") -> str:
        """A unified diff of the policy's text with the rules added; the bare fragment where it is not clear where to."""
        added = _added(policy, self)
        if added is None:
            return self.fragment()
        return "".join(
            difflib.unified_diff(policy.splitlines(keepends=True), added.splitlines(keepends=True), name, name)
        )


@dataclass(slots=True)
class _Seen:
    tries: int = 0
    worked: bool = False
    odd: bool = False
    programs: tuple[str, ...] = ()
    only_permitted: bool = True


def suggest_network(
    cold: Iterable[ConnectionLog], warm: Iterable[ConnectionLog] = (), *, indexes: Iterable[Index] = ()
) -> Proposal:
    """Rules for what two runs reached that the policy in force did not allow.

    ``cold`` is a run with empty caches, ``warm`` one after it; where there is no second run, the proposal says so.
    ``indexes`` are the clients' own, so that their hosts become the preset that stands for them.
    """
    first, second = _gather(cold), _gather(warm)
    seen = dict(first)
    for key, item in second.items():
        seen.setdefault(key, item)
    candidates, left_out = _sift(seen)
    rules, rest = _presets(candidates, tuple(indexes))
    hosts = _hosts(rest)
    notes = _notes(first, second, candidates, rest)
    if len(hosts) > MAX_NEW:
        notes.append(
            f"{len(hosts)} new hosts: only the {MAX_NEW} most used are proposed; look at the others one by one"
        )
        left_out += [(f"{rule.host}:{rule.ports[0]}", "beyond ten new hosts at once") for rule in hosts[MAX_NEW:]]
        hosts = hosts[:MAX_NEW]
    return Proposal(rules=(*rules, *hosts), left_out=tuple(left_out), notes=tuple(notes))


def lint_rules(rules: Iterable[HostRule]) -> tuple[str, ...]:
    """What is wrong with an allowlist as a whole: dangerous classes, odd ports, too many hosts. One sentence each."""
    allowed = [rule for rule in rules if rule.tier is Tier.ALLOW]
    found = []
    for rule in allowed:
        danger = danger_of(rule.host)
        if danger is not None:
            found.append(f"{rule.host} is of the class {danger.name}: {danger.because}")
        found += [f"{rule.host} opens port {port}: {_PORTS[port]}" for port in rule.ports if port in _PORTS]
        found += [f"{rule.host} looks like {near} of a preset" for near in near_misses(rule.host)]
        found += [f"{rule.host} has moved: the preset {preset} has {now}" for preset, now in moved(rule.host)]
    hosts = {rule.host for rule in allowed}
    if len(hosts) > WARN_HOSTS:
        found.append(f"{len(hosts)} hosts are allowed: above {WARN_HOSTS}, an allowlist is seldom read by anybody")
    return tuple(dict.fromkeys(found))


_PORTS = {22: "ssh carries anything, pushes too", 53: "name resolution is a tunnel", 25: "mail leaves by design"}


def _gather(lines: Iterable[ConnectionLog]) -> dict[tuple[str, int], _Seen]:
    found: dict[tuple[str, int], _Seen] = {}
    for line in lines:
        if line.stage == "decided" or line.entry not in OUTWARD or line.port == 0:
            continue
        seen = found.setdefault((line.host, line.port), _Seen())
        seen.tries += line.count
        seen.worked = seen.worked or (line.outcome in {"closed", "idle"} and line.received > 0)
        seen.odd = seen.odd or "odd-labels" in line.flags
        seen.programs = seen.programs or line.programs
        seen.only_permitted = seen.only_permitted and line.tier is Tier.ALLOW
    return found


def _sift(seen: dict[tuple[str, int], _Seen]) -> tuple[dict[tuple[str, int], _Seen], list[tuple[str, str]]]:
    kept, left_out = {}, []
    for key, item in sorted(seen.items()):
        if item.only_permitted:
            continue
        why = _unfit(*key, item)
        if why:
            left_out.append((f"{key[0]}:{key[1]}", why))
        else:
            kept[key] = item
    return kept, left_out


def _unfit(host: str, port: int, item: _Seen) -> str:
    """Why a destination is not proposed, or nothing."""
    try:
        canonical = canonical_host(host)
    except BadHostError:
        return "not a host"
    if canonical.address is not None:
        return "a raw address: find out which name it stands for"
    if host.startswith("_"):
        return "the name of a service record, not of a host"
    if (danger := danger_of(host)) is not None:
        return f"class {danger.name}: {danger.because}"
    if port in _PORTS:
        return _PORTS[port]
    if item.odd:
        return "labels that look like data"
    return "" if item.worked else "it only ever failed"


def _presets(
    candidates: dict[tuple[str, int], _Seen], indexes: tuple[Index, ...]
) -> tuple[list[Proposed], dict[tuple[str, int], _Seen]]:
    """The presets that cover most, one after the other, and what none of them covers."""
    rest = dict(candidates)
    offers = {name: {(h.host, port) for h in preset.hosts for port in h.ports} for name, preset in catalogue().items()}
    for index in indexes:
        offers[CLIENT_PRESET[index.client]].add((index.host, index.port))
    rules: list[Proposed] = []
    while True:
        name, covered = max(
            ((n, [key for key in rest if _in(key, o)]) for n, o in offers.items()), key=lambda x: len(x[1])
        )
        if not covered:
            return rules, rest
        preset = catalogue()[name]
        rules.append(
            Proposed(
                preset=name,
                tries=sum(rest[key].tries for key in covered),
                programs=rest[covered[0]].programs,
                covers=tuple(f"{host}:{port}" for host, port in covered),
                note="" if preset.name_only else "ASK until requests are inspected",
            )
        )
        for key in covered:
            del rest[key]


def _in(key: tuple[str, int], offers: set[tuple[str, int]]) -> bool:
    host, port = key
    return key in offers or (f"*.{host.partition('.')[2]}", port) in offers


def _hosts(rest: dict[tuple[str, int], _Seen]) -> list[Proposed]:
    found = [
        Proposed(host=host, ports=(port,), tries=item.tries, programs=item.programs)
        for (host, port), item in rest.items()
    ]
    return sorted(found, key=lambda rule: (-rule.tries, rule.host, rule.ports))


def _notes(
    first: dict[tuple[str, int], _Seen],
    second: dict[tuple[str, int], _Seen],
    candidates: dict[tuple[str, int], _Seen],
    rest: dict[tuple[str, int], _Seen],
) -> list[str]:
    notes = []
    if not second:
        notes.append("only one run was seen: run once with cold caches and once more, then suggest again")
    else:
        cold_only = sorted({host for host, port in candidates if (host, port) in first and (host, port) not in second})
        if cold_only:
            notes.append(f"needed on a cold cache only: {', '.join(cold_only)}")
    for host, _port in rest:
        notes += [f"{host} looks like {near} of a preset: a typing error?" for near in near_misses(host)]
        notes += [f"{host} has moved: the preset {preset} has {now}" for preset, now in moved(host)]
    if len(candidates) > WARN_HOSTS:
        notes.append(
            f"{len(candidates)} hosts in one mission: above {WARN_HOSTS}, split it or look for the one tool that asks for most"
        )
    return notes


def _line(rule: Proposed) -> str:
    who = f", by {rule.programs[0]}" if rule.programs else ""
    remark = f"{rule.tries} tries{who}"
    if rule.preset:
        remark = f"{', '.join(rule.covers)}; {remark}" + (f"; {rule.note}" if rule.note else "")
        return f"- preset: {rule.preset}  # {_plain(remark)}"
    return f'- {{host: "{rule.host}", ports: [{", ".join(map(str, rule.ports))}]}}  # {_plain(remark)}'


def _plain(text: str) -> str:
    """A comment that stays one: program names are the box's own words."""
    return "".join(c if c.isprintable() and c.isascii() else "?" for c in text)[:200]


def _added(policy: str, proposal: Proposal) -> str | None:
    """The policy's text with the rules at the head of ``network.allow``, or ``None`` where that is not plain to see."""
    if not proposal.rules:
        return policy
    if not re.search(r"(?m)^network\s*:", policy):
        return policy.rstrip("\n") + "\n\n" + proposal.fragment()
    match = re.search(r"(?m)^network:[ \t]*\n(?:[ \t]+.*\n|[ \t]*\n)*?([ \t]+)allow:[ \t]*\n([ \t]+)-", policy)
    if match is None:
        return None
    at = match.start(2)
    return policy[:at] + "".join(f"{match[2]}{line}\n" for line in proposal.lines()) + policy[at:]
