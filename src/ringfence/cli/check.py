"""``ringfence check``: run the policy's fixtures. Exit 0 with one line, or 1 with the disagreements as JSON."""

import argparse
import json
import os
import sys
from typing import TYPE_CHECKING

from ringfence.model.errors import PolicyError
from ringfence.supervisor.paths import Paths

if TYPE_CHECKING:
    from ringfence.policy.fixtures import Fixture


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of the subcommand."""
    parser.add_argument("--policy", default=None, help="policy file (the nearest sandbox_policy.yaml otherwise)")
    parser.add_argument("--fixtures", default=None, help="fixtures file (sandbox_fixtures.json beside the policy)")
    parser.add_argument("--json", action="store_true", help="one JSON object, also when all is well")


def run(args: argparse.Namespace, paths: Paths) -> int:
    """Judge every fixture by the repository's policy alone, as if it were trusted, and print what disagrees."""
    from ringfence.policy.fixtures import report, run_fixtures
    from ringfence.policy.policy import Policy
    from ringfence.supervisor.presets import Presets

    path = args.policy or _found()
    if not os.path.lexists(path):
        raise _as_finding(
            PolicyError(
                "policy-missing",
                "there is no policy file",
                where=path,
                remedy="name a file that is there, or write one with `ringfence init`",
            )
        )
    policy = Policy.load(path, network_presets=Presets(paths))
    fixtures = _fixtures(args.fixtures or os.path.join(policy.root, "sandbox_fixtures.json"))
    rows = report(run_fixtures(policy, fixtures))
    if args.json:
        print(json.dumps({"fixtures": len(fixtures), "policy_digest": policy.digest, "disagreements": rows}, indent=2))
        return 1 if rows else 0
    if rows:
        print(json.dumps(rows, indent=2, ensure_ascii=True))
        print(f"{len(rows)} of {len(fixtures)} fixtures disagree with the policy", file=sys.stderr)
        return 1
    for line in _missions_elsewhere(policy.root, paths):
        print(line, file=sys.stderr)
    print("sandbox fixtures passed")
    return 0


def _missions_elsewhere(root: str, paths: Paths) -> list[str]:
    """A line for each mission of this repository that runs under another policy than the one in force now."""
    from ringfence.policy.in_force import policy_in_force
    from ringfence.supervisor.missions import pinned_elsewhere
    from ringfence.supervisor.presets import Presets

    if not pinned_elsewhere(paths.missions, root, ""):
        return []
    now = policy_in_force(
        root,
        organisation=f"{paths.organisation}/policy.yaml",
        user=f"{paths.config}/policy.yaml",
        trust=f"{paths.state}/trust",
        network_presets=Presets(paths),
    )
    return [
        f"note: mission {one.id} still runs under policy {one.policy_digest[:16]}, now it is {now.digest[:16]}"
        for one in pinned_elsewhere(paths.missions, root, now.digest)
    ]


def _found() -> str:
    from ringfence.policy.in_force import find_policy

    try:
        return find_policy(os.getcwd())
    except PolicyError as error:
        raise _as_finding(error) from None


def _fixtures(path: str) -> "tuple[Fixture, ...]":
    from ringfence.policy.fixtures import read_fixtures

    try:
        with open(path, "rb") as file:
            data = file.read(16 << 20)
    except OSError as error:
        raise _as_finding(
            PolicyError(
                "fixtures-missing",
                f"the fixtures cannot be read: {error.strerror}",
                where=path,
                remedy='write a list such as [{"command": "git push", "expect_allow": false}], or run `ringfence init`',
            )
        ) from None
    fixtures = read_fixtures(data, file=path)
    if not fixtures:
        raise _as_finding(
            PolicyError(
                "fixtures-empty",
                "the list of fixtures is empty, so nothing is proven",
                where=path,
                remedy="add at least a path escape, a network case and an extra subcommand that must fail",
            )
        )
    return fixtures


def _as_finding(error: PolicyError) -> PolicyError:
    error.exit = 1  # type: ignore[attr-defined]  # the entry point takes an error's own exit code
    return error
