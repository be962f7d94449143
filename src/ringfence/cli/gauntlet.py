"""``ringfence gauntlet``: put our box, or any other sandbox's command, through the hostile suite."""

import argparse
import json
import os
import pwd
import sys

from ringfence.cli.gauntlet_own import OwnBox
from ringfence.model.errors import RingfenceError
from ringfence.sandbox.gauntlet import ground, report
from ringfence.sandbox.gauntlet.attack import FAMILIES, Attack, Outcome, Result
from ringfence.sandbox.gauntlet.catalogue import load
from ringfence.sandbox.gauntlet.fence import Fence, NoFence, Wrapper
from ringfence.sandbox.gauntlet.interruption import Interruption, make_ground
from ringfence.sandbox.gauntlet.servers import Servers
from ringfence.sandbox.gauntlet.suite import Gauntlet
from ringfence.sandbox.gauntlet.victims import join_session_keyring
from ringfence.supervisor.paths import Paths

EPILOG = """\
Without a WRAPPER the attacks run in ringfence's own box. With one, the sandbox under test is that command, and the
attack is put behind it; {worktree}, {home} and {run} are filled in:

  ringfence gauntlet -- bwrap --ro-bind /usr /usr ... --bind {worktree} {worktree} --
  ringfence gauntlet --user someone -- firejail --noprofile --whitelist={worktree} --

Exit code: 0 when no attack passed, 1 when one did, 13 when the WRAPPER does not even run an ordinary program.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Flags of the subcommand."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EPILOG
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    parser.add_argument("--list", action="store_true", help="say what each attack tries, and run none")
    parser.add_argument("--family", action="append", choices=FAMILIES, help="only this family; may be repeated")
    parser.add_argument("--only", action="append", metavar="NAME", help="only this attack; may be repeated")
    parser.add_argument("--user", help="started by root: run everything as this user")
    parser.add_argument(
        "--record", metavar="FILE", default="", help="the log file that the WRAPPER appends its record to"
    )
    parser.add_argument("--controls", metavar="FILE", help="take the controls from the JSON of an earlier run here")
    parser.add_argument(
        "--no-fence", action="store_true", help="run the attacks without any fence, to see that they work"
    )
    parser.add_argument("wrapper", nargs="*", metavar="WRAPPER", help="the command of another sandbox, after --")


def run(args: argparse.Namespace, paths: Paths) -> int:
    """Run the attacks; 0 when none passed, 1 otherwise."""
    del paths  # the gauntlet keeps its own state, apart from the person's
    attacks = _chosen(args)
    if args.list:
        rows = [{"family": attack.family, "name": attack.name, "tries": attack.tries} for attack in attacks]
        print(json.dumps(rows, indent=2) if args.json else report.catalogue(attacks))
        return 0
    results = _run(args, attacks)
    name = _name(args)
    if args.json:
        print(report.as_json(name, results))
    else:
        print(report.summary(name, results))
    return 1 if any(result.outcome is Outcome.PASSED for result in results) else 0


def _chosen(args: argparse.Namespace) -> tuple[Attack, ...]:
    attacks = load(tuple(args.family) if args.family else FAMILIES)
    if not args.only:
        return attacks
    unknown = sorted(set(args.only) - {attack.name for attack in attacks})
    if unknown:
        raise RingfenceError(
            "gauntlet-unknown-attack",
            f"no attack is called {', '.join(map(repr, unknown))}",
            remedy="`ringfence gauntlet --list` names them",
        )
    return tuple(attack for attack in attacks if attack.name in args.only)


def _name(args: argparse.Namespace) -> str:
    if args.no_fence:
        return "none"
    return os.path.basename(args.wrapper[0]) if args.wrapper else "ringfence"


def _run(args: argparse.Namespace, attacks: tuple[Attack, ...]) -> tuple[Result, ...]:
    known = _controls(args.controls) if args.controls else {}
    interruption = Interruption()
    ground.enter()
    servers = Servers()
    servers.open_network()
    if args.user:
        ground.become(args.user)
    ground.adopt_orphans()
    join_session_keyring()
    os.umask(0o022)
    interruption.listen()
    gauntlet = None
    try:
        with interruption.held():
            base = make_ground(_parent())
            gauntlet = Gauntlet(
                base=base, fence=_fence(args, base), servers=servers, interruption=interruption, known=known
            )
        gauntlet.open()
        if not args.json:
            print(report.heading())
        return gauntlet.run(attacks, lambda result: _tell(args, result))
    finally:
        if gauntlet is not None:
            gauntlet.close()


def _controls(path: str) -> dict[str, bool]:
    try:
        with open(path, encoding="utf-8") as file:
            return {str(attack["name"]): attack["control"] == "passed" for attack in json.load(file)["attacks"]}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RingfenceError(
            "gauntlet-controls",
            f"the controls cannot be read: {error}",
            where=path,
            remedy="give the file that `ringfence gauntlet --json` printed",
        ) from error


def _fence(args: argparse.Namespace, base: str) -> Fence:
    if args.no_fence:
        return NoFence()
    if args.wrapper:
        return Wrapper(name=_name(args), words=tuple(args.wrapper), log=args.record)
    return OwnBox(base=base)


def _tell(args: argparse.Namespace, result: Result) -> None:
    if args.json:
        if sys.stderr.isatty():
            print(report.line(result), file=sys.stderr, flush=True)
    else:
        print(report.line(result), flush=True)


def _parent() -> str:
    home = pwd.getpwuid(os.getuid()).pw_dir
    return f"{home}/.cache" if os.access(home, os.W_OK) else "/var/tmp"  # noqa: S108  # a fresh name, mode 0755
