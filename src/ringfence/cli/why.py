"""``ringfence why -- CMD``: how a call is judged and by which rule; ``--json`` and ``--batch`` for programs."""

import argparse
import json
import os
import shlex
import sys
from typing import TYPE_CHECKING

from ringfence.model.call import ToolCall
from ringfence.model.errors import PolicyError
from ringfence.model.tier import Tier
from ringfence.supervisor.paths import Paths

if TYPE_CHECKING:
    from ringfence.policy.policy import Explanation, Policy


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of the subcommand."""
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.add_argument(
        "--batch", metavar="FILE", help='JSON Lines of {"id", "command", "cwd"}; one JSON answer a line'
    )
    parser.add_argument("--policy", default=None, help="policy file (the nearest sandbox_policy.yaml otherwise)")
    parser.add_argument("--cwd", default=None, help="where the command would run (here otherwise)")
    parser.add_argument("-c", dest="line", metavar="LINE", help="a shell line")
    parser.add_argument("words", nargs="*", metavar="CMD", help="a command, after --; one word is a shell line")


def run(args: argparse.Namespace, paths: Paths) -> int:
    """Exit 0 for ALLOW, 10 for ASK, 11 for DENY; a batch exits 0 when every line was answered."""
    policy = _policy(args, paths)
    if args.batch is not None:
        return _batch(policy, args.batch)
    if args.line is None and not args.words:
        raise _usage("no command is given", "write `ringfence why -- git push`")
    call = _call(args.line, args.words, os.path.realpath(args.cwd or os.getcwd()))
    explanation = policy.explain(call)
    others = _missions_elsewhere(policy, paths)
    if args.json:
        answer = _answer(policy, call, explanation)
        if others:
            answer["missions"] = [{"id": mission, "policy": digest} for mission, digest in others]
        print(json.dumps(answer, ensure_ascii=True))
    else:
        from ringfence.policy.explain import as_text

        color = sys.stdout.isatty() and "NO_COLOR" not in os.environ
        print(as_text(call, explanation, color=color))
        for mission, digest in others:
            print(f"note: mission {mission} still runs under policy {digest[:16]}, this is {policy.digest[:16]}")
    return {Tier.ALLOW: 0, Tier.ASK: 10, Tier.DENY: 11}[explanation.decision.tier]


def _policy(args: argparse.Namespace, paths: Paths) -> "Policy":
    from ringfence.policy.in_force import policy_in_force
    from ringfence.policy.policy import Policy
    from ringfence.policy.trust import TrustStore
    from ringfence.supervisor.presets import Presets

    organisation, user = f"{paths.organisation}/policy.yaml", f"{paths.config}/policy.yaml"
    trust = f"{paths.state}/trust"
    if args.policy is None:
        return policy_in_force(
            args.cwd or os.getcwd(), organisation=organisation, user=user, trust=trust, network_presets=Presets(paths)
        )
    policy = Policy.load(
        args.policy, trusted=False, organisation=organisation, user=user, network_presets=Presets(paths)
    )
    known = TrustStore(trust).is_trusted(policy.root, policy.trust_digest)
    return policy.with_trust(trusted=known)


def _missions_elsewhere(policy: "Policy", paths: Paths) -> list[tuple[str, str]]:
    """Missions of this repository that pinned another policy: there, this answer does not hold until a reload."""
    from ringfence.supervisor.missions import pinned_elsewhere

    return [(one.id, one.policy_digest) for one in pinned_elsewhere(paths.missions, policy.root, policy.digest)]


def _call(line: str | None, words: list[str], cwd: str) -> ToolCall:
    if line is not None:
        return ToolCall.shell(line, cwd=cwd)
    if len(words) == 1:
        return ToolCall.shell(words[0], cwd=cwd)
    return ToolCall.shell(shlex.join(words), cwd=cwd)


def _answer(policy: "Policy", call: ToolCall, explanation: "Explanation") -> dict[str, object]:
    from ringfence.policy.explain import as_json

    return {**as_json(call, explanation), "trusted": policy.trusted}


def _batch(policy: "Policy", path: str) -> int:
    """One answer a line, in order; a line that cannot be read is answered with an error and a deny."""
    stream = sys.stdin if path == "-" else open(path, encoding="utf-8", errors="surrogateescape")  # noqa: SIM115
    with stream:
        for text in stream:
            if text.strip():
                print(json.dumps(_one(policy, text), ensure_ascii=True), flush=path == "-")
    return 0


def _one(policy: "Policy", text: str) -> dict[str, object]:
    identity: object = None
    try:
        row = json.loads(text)
        if not isinstance(row, dict):
            raise ValueError("not a JSON object")  # noqa: TRY004 - one kind of fault for the answer
        identity = row.get("id")
        unknown = set(row) - {"id", "command", "cwd", "argv"}
        if unknown:
            raise ValueError(f"unknown keys {sorted(unknown)}")
        cwd = row.get("cwd", ".")
        if not isinstance(cwd, str):
            raise ValueError("`cwd` is not text")  # noqa: TRY004 - the same
        call = _row_call(row, cwd)
    except (ValueError, RecursionError) as error:
        return {"id": identity, "tier": "deny", "error": f"the line cannot be read: {str(error)[:200]}"}
    call = policy.absolute(call)
    return {"id": identity, **_answer(policy, call, policy.explain(call))}


def _row_call(row: dict[str, object], cwd: str) -> ToolCall:
    command, argv = row.get("command"), row.get("argv")
    if isinstance(command, str) and argv is None:
        return ToolCall.shell(command, cwd=cwd)
    if isinstance(argv, list) and argv and all(isinstance(word, str) for word in argv) and command is None:
        return ToolCall.argv(argv, cwd=cwd)
    raise ValueError("write `command` (text) or `argv` (a list of text)")


def _usage(what: str, remedy: str) -> PolicyError:
    error = PolicyError("usage", what, remedy=remedy)
    error.exit = 2  # type: ignore[attr-defined]  # the entry point takes an error's own exit code
    return error
