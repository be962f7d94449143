"""``ringfence serve``: the supervisor in the foreground, until Ctrl-C."""

import argparse

from ringfence.supervisor.paths import Paths


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("--no-web", action="store_true", help="without the web process (there is none yet)")


def run(args: argparse.Namespace, paths: Paths) -> int:
    """Serve; returns when stopped."""
    from ringfence.supervisor import daemon

    del args
    words = [] if paths.test_root is None else ["--test-root", paths.test_root]
    print(f"serving on {paths.socket}; stop with Ctrl-C", flush=True)
    return daemon.main(words)
