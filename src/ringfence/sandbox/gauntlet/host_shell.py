"""Stands for the person's shell on a terminal: starts the sandbox there and then reads what was typed meanwhile.

Started as ``python3 -I -S host_shell.py REPORT COMMAND…`` with the terminal as descriptor 0 and a pipe as REPORT. It
makes the terminal its own, runs the command on it, and writes whatever then waits as input to REPORT: text that
the command pushed into the terminal's input queue would have been typed into the person's shell.
"""

import contextlib
import fcntl
import os
import signal
import sys
import termios
import time


def main(report: int, command: list[str]) -> int:
    """The command's exit status."""
    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    pid = os.fork()
    if pid == 0:
        os.close(report)
        signal.signal(signal.SIGTTOU, signal.SIG_DFL)
        os.execvp(command[0], command)
    _, status = os.waitpid(pid, 0)
    with contextlib.suppress(OSError, termios.error):
        os.tcsetpgrp(0, os.getpgrp())
        modes = termios.tcgetattr(0)
        os.write(report, b"local %d\n" % modes[3])
        modes[3] &= ~(termios.ICANON | termios.ECHO)
        termios.tcsetattr(0, termios.TCSANOW, modes)
    time.sleep(0.1)
    os.set_blocking(0, False)
    with contextlib.suppress(OSError):
        os.write(report, b"typed " + os.read(0, 4096) + b"\n")
    return os.waitstatus_to_exitcode(status)


sys.exit(main(int(sys.argv[1]), sys.argv[2:]) & 0xFF)
