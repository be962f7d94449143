"""``ringfence serve``: the supervisor in the foreground, until Ctrl-C."""

import argparse
import os
import pwd

from ringfence.supervisor.paths import Paths


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("--no-web", action="store_true", help="without the web process (there is none yet)")


def run(args: argparse.Namespace, paths: Paths) -> int:
    """Serve; returns when stopped."""
    from ringfence.supervisor import daemon

    del args
    os.chdir("/")
    os.environ["HOME"] = pwd.getpwuid(os.getuid()).pw_dir
    return daemon.main([] if paths.test_root is None else ["--test-root", paths.test_root])
