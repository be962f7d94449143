"""A verdict for people and for platforms: one screen, SARIF, annotations. Pure; every text was made harmless where it came in."""

import json

from ringfence.promotion.findings import GATES, KINDS, Finding, Outcome
from ringfence.promotion.strict import Value
from ringfence.promotion.verdict import Verdict

_NUMBERS = (
    ("paths", "paths"),
    ("services", "services"),
    ("added_bytes", "added_bytes"),
    ("iam_actions_added", "iam_actions_added"),
    ("regions", "regions"),
    ("namespaces", "namespaces"),
    ("clusters", "clusters"),
    ("schema_drops", "schema_drops"),
    ("authz_changes", "authz_changes"),
    ("secret_rotations", "secret_rotations"),
    ("submodules", "submodules"),
)


def one_screen(verdict: Verdict) -> str:
    """Verdict, then gate by gate what was asked, found and from where; at the end the one next step."""
    lines = [f"{verdict.outcome.word}: {verdict.headline}"]
    if verdict.head:
        lines.append(f"  head {verdict.head[:12]}  base {verdict.base[:12]}")
    if verdict.identity:
        lines.append(f"  re-run proved by {verdict.identity}")
    for gate, name in enumerate(GATES):
        mine = [item for item in verdict.reasons if item.gate == gate]
        without = verdict.gates.get(gate, "not asked")
        counted = f"{len(mine)} finding{'s' if len(mine) > 1 else ''}"
        lines.append(f"gate {gate}  {name}: {counted if mine else without}")
        for code in dict.fromkeys(item.code for item in mine):
            same = [item for item in mine if item.code == code]
            lines.extend(_lines(same))
    if verdict.numbers:
        shown = (f"{name} {verdict.numbers.get(name, 0)}/{verdict.limits.get(cap, 0)}" for name, cap in _NUMBERS)
        lines.append("numbers: " + ", ".join(shown))
    lines.extend(f"note: {note}" for note in verdict.notes)
    if verdict.reasons:
        lines.append(f"next: {verdict.reasons[0].next_step}")
    elif verdict.outcome is Outcome.HUMAN_REVIEW:
        lines.append("next: a person reviews; nothing was merged")
    return "\n".join(lines)


def _lines(same: list[Finding]) -> list[str]:
    """One code: asked once, the first two of what was found with where it was decided from."""
    lines = [f"    {same[0].code}: asked {same[0].asked}"]
    lines.extend(f"      found {item.found}  (from {item.source})" for item in same[:2])
    if len(same) > 2:
        lines.append(f"      … and {len(same) - 2} more of the kind (--json)")
    return lines


def to_sarif(verdict: Verdict) -> str:
    """SARIF 2.1.0, one result a reason."""
    rules: list[Value] = [
        {"id": code, "shortDescription": {"text": KINDS[code].asked}}
        for code in dict.fromkeys(item.code for item in verdict.reasons)
    ]
    results: list[Value] = [
        {
            "ruleId": item.code,
            "level": "warning" if item.outcome is Outcome.HOLD else "error",
            "message": {
                "text": f"asked: {item.asked}; found: {item.found}; from: {item.source}; next: {item.next_step}"
            },
            "locations": [{"physicalLocation": {"artifactLocation": {"uri": _uri(item)}}}],
        }
        for item in verdict.reasons
    ]
    driver: Value = {"name": "ringfence promote", "rules": rules}
    document: Value = {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": results}],
    }
    return json.dumps(document, indent=2)


def _uri(item: Finding) -> str:
    word = item.source.split(" ", 1)[0]
    return word if "/" in word or "." in word else "promotion.json"


def to_annotations(verdict: Verdict) -> str:
    """Workflow commands of GitHub Actions, one a reason; newlines and percent signs escaped as the runner asks."""
    lines = []
    for item in verdict.reasons:
        kind = "warning" if item.outcome is Outcome.HOLD else "error"
        text = _escape(f"asked {item.asked}; found {item.found}; from {item.source}; next: {item.next_step}")
        lines.append(f"::{kind} title={_escape(f'{item.code} (gate {item.gate})', prop=True)}::{text}")
    lines.append(f"::notice title=ringfence::{_escape(f'{verdict.outcome.word}: {verdict.headline}')}")
    return "\n".join(lines)


def _escape(text: str, *, prop: bool = False) -> str:
    out = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return out.replace(":", "%3A").replace(",", "%2C") if prop else out
