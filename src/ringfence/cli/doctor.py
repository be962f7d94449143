"""``ringfence doctor``: what this host can enforce, control by control, what is missing and how to get it; how the ledger stands."""

import argparse
import json
import os
import platform
import shutil
import sys

from ringfence import __version__
from ringfence.cli import ledger_show
from ringfence.cli.text import escape
from ringfence.model.box import ControlState, Level
from ringfence.model.errors import PolicyError, RingfenceError
from ringfence.supervisor import client, protocol
from ringfence.supervisor.paths import Paths, make_private

HELPERS = {
    "git": "history through the gate",
    "bwrap": "hosts where only it may create namespaces",
    "nft": "capture of connections on every port",
    "rg": "nothing of ours; agents like it",
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument(
        "--host", action="store_true", help="check a disposable host: credentials on disk, sudo, metadata, log"
    )


def run(args: argparse.Namespace, paths: Paths) -> int:
    """Print the report; exit 13 when this host cannot enforce, 3 when the fence lies inside an allowed root.

    Raises RingfenceError where the supervisor could not use its folders: that comes first.
    """
    from ringfence.sandbox.probe import probe_host

    if args.host:
        from ringfence.sandbox import disposable

        return int(disposable.main(as_json=args.json))
    for folder in (paths.state, paths.runtime):
        make_private(folder)
    report = probe_host(paths.state)
    inside = _fence_inside_root()
    data: dict[str, object] = {
        "ringfence": __version__,
        "python": platform.python_version(),
        "interpreter": sys.executable,
        "kernel": platform.release(),
        "level": report.level.name.lower(),
        "controls": [{"name": c.name, "state": c.state.value, "detail": c.detail} for c in report.controls],
        "causes": list(report.causes),
        "remedies": list(report.remedies),
        "programs": {name: shutil.which(name, path="/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin") for name in HELPERS},
        "state": paths.state,
        "socket": paths.socket,
        "supervisor": _supervisor(paths),
        "ledger": ledger_show.standing(paths.ledger),
        "problems": [str(inside)] if inside else [],
    }
    if args.json:
        print(json.dumps(data, indent=2))
    else:
        _print(data)
    if report.level < Level.NAMESPACES:
        return 13
    return 3 if inside else 0


def _print(data: dict[str, object]) -> None:
    for name in ("ringfence", "python", "interpreter", "kernel", "state", "socket", "supervisor"):
        print(f"{name:12} {data[name]}")
    print(f"{'level':12} {data['level']}")
    marks = {
        ControlState.ENFORCED.value: "yes",
        ControlState.DOWNGRADED.value: "weaker",
        ControlState.ABSENT.value: "no",
    }
    print("\ncontrols")
    rows = data["controls"]
    assert isinstance(rows, list)
    for row in rows:
        print(f"  {row['name']:22} {marks[row['state']]:7} {row['detail']}")
    print("\nprograms")
    programs = data["programs"]
    assert isinstance(programs, dict)
    for name, place in programs.items():
        print(f"  {name:22} {place or 'missing':24} {HELPERS[name]}")
    for title in ("ledger", "causes", "remedies", "problems"):
        lines = data[title]
        assert isinstance(lines, list)
        if lines:
            print(f"\n{title}")
            for line in lines:
                print(f"  {escape(line)}")


def _fence_inside_root() -> RingfenceError | None:
    """Whether the policy here would let an agent write the fence's own code; other policy faults are `check`'s to tell."""
    from ringfence.policy.in_force import find_policy
    from ringfence.policy.policy import Policy
    from ringfence.supervisor.door import refuse_own_home_inside

    try:
        refuse_own_home_inside(Policy.load(find_policy(os.getcwd())))
    except PolicyError as error:
        return error if error.code == "fence-inside-root" else None
    except OSError:  # the working directory is gone: no policy holds there
        return None
    return None


def _supervisor(paths: Paths) -> str:
    """The one that serves now; none is started for this."""
    try:
        connection = client.connect(paths, start=False)
    except RingfenceError as error:
        if error.code != "no-supervisor":
            return f"{error.code}: {error.what}"
        return "one starts or ends" if client.is_held(paths) else "none runs; the next command starts it"
    pid = protocol.peer(connection)[0]
    connection.close()
    return f"process {pid}"
