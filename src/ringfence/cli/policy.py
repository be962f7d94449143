"""``ringfence policy``: trust, presets, suggest, reload, lint, schema, diff."""

import argparse
import os
import sys

from ringfence.cli import policy_network, policy_review
from ringfence.cli.text import one_line
from ringfence.model.errors import PolicyError
from ringfence.supervisor.paths import Paths


def configure(parser: argparse.ArgumentParser) -> None:
    """One parser a verb."""
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    trust = verbs.add_parser("trust", help="trust this repository's policy as it is now")
    trust.add_argument("--policy", default=None, help="policy file (the nearest sandbox_policy.yaml otherwise)")
    trust.add_argument("--yes", action="store_true", help="do not ask")
    trust.add_argument("--digest", metavar="D", help="trust only if the policy still has this digest")
    trust.add_argument("--withdraw", action="store_true", help="forget the trust")
    policy_network.configure(verbs)
    policy_review.configure(verbs)


def run(args: argparse.Namespace, paths: Paths) -> int:
    """Each verb's own exit code."""
    return _VERBS[args.verb](args, paths)


def _trust(args: argparse.Namespace, paths: Paths) -> int:
    from ringfence.policy.in_force import find_policy
    from ringfence.policy.policy import Policy
    from ringfence.policy.widening import beyond_presets
    from ringfence.supervisor.presets import Presets
    from ringfence.supervisor.trusting import this_person, trust

    policy = Policy.load(args.policy or find_policy(os.getcwd()), network_presets=Presets(paths))
    if args.withdraw:
        trust(paths, policy.root, policy.trust_digest, this_person("peer"), withdraw=True)
        print(one_line(f"no longer trusted: {policy.root}"))
        return 0
    print(one_line(f"repository  {policy.root}"))
    print(f"digest      {policy.trust_digest}")
    print("It would allow, beyond the presets it extends:")
    for line in beyond_presets(policy) or ("nothing",):
        print(one_line(f"  {line}"))
    if args.digest is not None and args.digest != policy.trust_digest:
        raise PolicyError(
            "digest-differs",
            f"the policy has digest {policy.trust_digest}, not the one given",
            where=policy.root,
            remedy="look at what changed, then give its digest",
        )
    if args.digest is None and not args.yes and not _agreed(policy.trust_digest):
        print("not trusted", file=sys.stderr)
        return 1
    asked = args.digest is None and not args.yes
    trust(paths, policy.root, policy.trust_digest, this_person("terminal" if asked else "peer"))
    print("trusted")
    return 0


def _agreed(digest: str) -> bool:
    """A person types the first eight digits; no terminal is no answer."""
    if not sys.stdin.isatty():
        print("no terminal to ask on; give --yes or --digest", file=sys.stderr)
        return False
    try:
        return input(f"type {digest[:8]} to trust it: ").strip() == digest[:8]
    except EOFError:
        print(file=sys.stderr)
        return False


_VERBS = {
    "trust": _trust,
    "presets": policy_network.run_presets,
    "suggest": policy_network.run_suggest,
    "reload": policy_network.run_reload,
    "lint": policy_review.run_lint,
    "schema": policy_review.run_schema,
    "diff": policy_review.run_diff,
}
