"""A process of the person: holds a secret in its environment, memory and an open file, and writes down every signal.

Started by the gauntlet as ``python3 -I -S victim.py LOG SECRET_FILE SECRET``; it prints where in its memory the secret
stands, then waits to be told to end on its standard input.
"""

import ctypes
import os
import signal
import sys


def main(log: str, secret_file: str, _secret: str) -> None:
    """Set up the secret, tell where it is, wait."""
    secret = os.environ["VICTIM_SECRET"].encode()
    buffer = ctypes.create_string_buffer(secret)
    kept = os.open(secret_file, os.O_RDONLY)
    out = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def note(number: int, _frame: object) -> None:
        os.write(out, f"{number}\n".encode())

    for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
        if number not in {signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE}:
            signal.signal(number, note)
    print(ctypes.addressof(buffer), kept, flush=True)
    while sys.stdin.buffer.read(1):
        pass


main(*sys.argv[1:])
