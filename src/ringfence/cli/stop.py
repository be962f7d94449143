"""``ringfence stop``: end the supervisor; its boxes end with it."""

import argparse

from ringfence.model.errors import RingfenceError
from ringfence.supervisor import client
from ringfence.supervisor.paths import Paths


def configure(parser: argparse.ArgumentParser) -> None:
    """No options."""
    del parser


def run(args: argparse.Namespace, paths: Paths) -> int:
    """Ask the supervisor to end and wait until it did."""
    del args
    try:
        client.request(paths, "stop", start=False, seconds=10)
    except RingfenceError as error:
        if error.code != "no-supervisor":
            raise
        print("no supervisor is running")
        return 0
    client.wait_until_gone(paths, seconds=20)
    print("the supervisor has ended")
    return 0
