"""``ringfence stop``: end the supervisor; its boxes end with it."""

import argparse
import time

from ringfence.model.errors import RingfenceError
from ringfence.supervisor import client
from ringfence.supervisor.paths import Paths

SECONDS = 30.0


def configure(parser: argparse.ArgumentParser) -> None:
    """No options."""
    del parser


def run(args: argparse.Namespace, paths: Paths) -> int:
    """Ask the supervisor to end and wait until it did; one that starts is ended as soon as it listens."""
    del args
    deadline = time.monotonic() + SECONDS
    while True:
        try:
            client.request(paths, "stop", start=False, seconds=SECONDS)
            break
        except RingfenceError as error:
            if error.code != "no-supervisor" or (client.is_held(paths) and time.monotonic() > deadline):
                raise
        if not client.is_held(paths):
            print("no supervisor is running")
            return 0
        time.sleep(0.05)
    deadline = time.monotonic() + SECONDS
    while client.is_held(paths):
        if time.monotonic() > deadline:
            raise RingfenceError(
                "supervisor-slow",
                "the supervisor has not ended yet",
                where=f"{paths.state}/supervisor.log",
                remedy="wait for what it finishes, and ask again; its log says what it does",
            )
        time.sleep(0.02)
    print("the supervisor has ended")
    return 0
