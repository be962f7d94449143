"""Findings as text, JSON and SARIF 2.1.0 (the format code hosts show beside the lines). Pure."""

from ringfence.policy.lint import WARNING, Finding
from ringfence.policy.yaml_tree import show


def as_text(findings: list[Finding]) -> str:
    """Three lines a finding, and a count."""
    lines = []
    for finding in findings:
        lines.append(f"{finding.level}[{finding.code}]: {finding.message}")
        lines.append(f"  --> {place(finding)}")
        lines.append(f"  fix: {show(finding.fix, 300)}")
    warnings = sum(finding.level == WARNING for finding in findings)
    lines.append(f"{warnings} warnings, {len(findings) - warnings} notes")
    return "\n".join(lines)


def as_json(findings: list[Finding]) -> list[dict[str, object]]:
    """One object a finding."""
    return [
        {
            "code": finding.code,
            "level": finding.level,
            "message": finding.message,
            "file": finding.at[0],
            "line": finding.at[1],
            "column": finding.at[2],
            "fix": finding.fix,
        }
        for finding in findings
    ]


def as_sarif(findings: list[Finding], *, version: str) -> dict[str, object]:
    """A SARIF log with one run."""
    codes = sorted({finding.code for finding in findings})
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "ringfence policy lint",
                        "version": version,
                        "rules": [{"id": code} for code in codes],
                    }
                },
                "results": [_result(finding, codes) for finding in findings],
            }
        ],
    }


def _result(finding: Finding, codes: list[str]) -> dict[str, object]:
    return {
        "ruleId": finding.code,
        "ruleIndex": codes.index(finding.code),
        "level": finding.level,
        "message": {"text": f"{finding.message}. {finding.fix}"},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": finding.at[0]},
                    "region": {"startLine": max(finding.at[1], 1), "startColumn": max(finding.at[2], 1)},
                }
            }
        ],
    }


def place(finding: Finding) -> str:
    """``file:line:column``, leaving out what is not known."""
    return ":".join(str(part) for part in finding.at if part)
