"""``ringfence policy lint | schema | diff``: what a reviewer of a policy wants to know."""

import argparse
import json
import os
from typing import TYPE_CHECKING

from ringfence.cli.text import escape
from ringfence.model.call import ToolCall
from ringfence.model.errors import PolicyError
from ringfence.model.tier import Scope
from ringfence.supervisor.paths import Paths

if TYPE_CHECKING:
    from ringfence.policy.fixtures import Fixture
    from ringfence.policy.lint import Finding
    from ringfence.policy.policy import Policy


def configure(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """The parsers of these verbs."""
    lint = verbs.add_parser("lint", help="broad, dead and contradicting rules, weak fixtures")
    lint.add_argument("--policy", default=None, help="policy file (the nearest sandbox_policy.yaml otherwise)")
    lint.add_argument("--fixtures", default=None, help="fixtures file (beside the policy otherwise)")
    style = lint.add_mutually_exclusive_group()
    style.add_argument("--json", action="store_true", help="print JSON")
    style.add_argument("--sarif", action="store_true", help="print SARIF, for code hosts")
    _add_scope(lint)
    lint.add_argument("--strict", action="store_true", help="exit 1 for notes too")
    verbs.add_parser("schema", help="the policy file's JSON Schema, for editors")
    diff = verbs.add_parser("diff", help="what changes in meaning between two policies")
    diff.add_argument("before", metavar="A", help="the policy as it was")
    diff.add_argument("after", metavar="B", help="the policy as it would be")
    diff.add_argument("--fixtures", action="append", default=[], help="fixtures to judge by both")
    diff.add_argument("--calls", action="append", default=[], metavar="FILE.jsonl", help="calls to judge by both")
    diff.add_argument("--root", default=None, help="the repository both are about (the nearest one otherwise)")
    diff.add_argument("--fail-on-widening", action="store_true", help="exit 1 if B is softer anywhere")
    _add_scope(diff)
    diff.add_argument("--json", action="store_true", help="print JSON")


def _add_scope(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--scope",
        choices=("organisation", "user", "repository"),
        default="repository",
        help="whose policy the file is to be",
    )


def run_lint(args: argparse.Namespace, _paths: Paths) -> int:
    """Exit 1 for warnings (with ``--strict`` for notes too)."""
    from ringfence import __version__
    from ringfence.policy import lint_report
    from ringfence.policy.in_force import find_policy
    from ringfence.policy.lint import WARNING, lint
    from ringfence.policy.policy import Policy

    path = args.policy or find_policy(os.getcwd())
    policy = Policy.load(path, scope=Scope(args.scope))
    fixtures_path = args.fixtures or os.path.join(policy.root, "sandbox_fixtures.json")
    unproved = () if args.scope == "repository" else None  # fixtures stand beside a repository's policy
    fixtures = _fixtures(fixtures_path) if args.fixtures or os.path.lexists(fixtures_path) else unproved
    findings = [
        finding
        for scope, document in policy.scopes
        for finding in lint(document, scope=scope, fixtures=fixtures, fixtures_file=os.path.basename(fixtures_path))
    ]
    findings += _hosts(policy)
    if args.json:
        print(json.dumps(lint_report.as_json(findings), indent=2))
    elif args.sarif:
        print(json.dumps(lint_report.as_sarif(findings, version=__version__), indent=2))
    else:
        print(escape(lint_report.as_text(findings)))
    return 1 if any(args.strict or finding.level == WARNING for finding in findings) else 0


def _hosts(policy: "Policy") -> "list[Finding]":
    """What is wrong with the allowed hosts, by the network room's lists of dangerous and moved names."""
    from ringfence.cli.policy_network import host_findings
    from ringfence.model.tier import Tier
    from ringfence.policy.lint import WARNING, Finding

    found: list[Finding] = []
    for _, document in policy.scopes:
        allowed = [rule for rule in document.network if rule.tier is Tier.ALLOW and rule.host]
        for text in host_findings((rule.host, rule.ports) for rule in allowed):
            rule = next((rule for rule in allowed if text.startswith(rule.host)), allowed[0])
            fix = "narrow it, ask instead, or use a preset; docs/network.md names the classes"
            found.append(Finding(code="host", level=WARNING, message=text, at=rule.at, fix=fix))
    return found


def run_schema(_args: argparse.Namespace, _paths: Paths) -> int:
    """Print the schema."""
    from ringfence.policy.schema import policy_schema

    print(json.dumps(policy_schema(), indent=2))
    return 0


def run_diff(args: argparse.Namespace, _paths: Paths) -> int:
    """Exit 1 with ``--fail-on-widening`` where the second policy is softer for any call judged."""
    from ringfence.policy.compare import as_json, as_text, compare, compare_retention

    before, after = (_load(path, args.root, Scope(args.scope)) for path in (args.before, args.after))
    changes = compare(before, after, [*_given(args.fixtures, args.before, args.after), *_calls(args.calls)])
    kept = compare_retention(before, after)
    if args.json:
        print(json.dumps(as_json(changes, kept), indent=2))
    else:
        print(escape(as_text(changes, kept)))
    wider = any(change.widens for change in changes) or any(days.widens for days in kept)
    return 1 if args.fail_on_widening and wider else 0


def _load(path: str, root: str | None, scope: Scope) -> "Policy":
    """Both policies are judged over one repository, wherever the files lie (a reviewer compares two checkouts)."""
    from ringfence.policy.in_force import find_policy
    from ringfence.policy.policy import Policy

    policy = Policy.load(path, scope=scope)
    if root is None:
        try:
            root = os.path.dirname(find_policy(os.getcwd()))
        except PolicyError:
            root = policy.root
    return Policy.from_effective(policy.effective(), root=os.path.realpath(root), home=policy.home)


def _given(named: list[str], *policies: str) -> list[tuple[str, ToolCall]]:
    from ringfence.policy.fixtures import call_of

    beside = [os.path.join(os.path.dirname(path) or ".", "sandbox_fixtures.json") for path in policies]
    files = named or [path for path in dict.fromkeys(beside) if os.path.lexists(path)]
    return [("fixture", call_of(fixture)) for path in files for fixture in _fixtures(path)]


def _fixtures(path: str) -> "tuple[Fixture, ...]":
    from ringfence.policy.fixtures import read_fixtures

    return read_fixtures(_read(path), file=path)


def _calls(paths: list[str]) -> list[tuple[str, ToolCall]]:
    """Calls as JSON Lines: fixtures whose expectation may be left out; ``id`` and other notes are not read."""
    from ringfence.policy.fixtures import call_of, read_calls

    return [("call", call_of(fixture)) for path in paths for fixture in read_calls(_read(path), file=path)]


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(256 << 20)
    except OSError as error:
        raise PolicyError(
            "fixtures-missing",
            f"the file cannot be read: {error.strerror}",
            where=path,
            remedy="name a file that exists",
        ) from None
