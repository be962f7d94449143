"""A box with a terminal, from a person's side: a real pty, its size, Ctrl-C, and the terminal given back."""

import contextlib
import os
import pty
import select
import signal
import struct
import termios
import time

import pytest

pytestmark = pytest.mark.needs_userns


class Session:
    """ringfence run in a terminal of its own, as a person would have it."""

    def __init__(self, cli, *words):
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            os.chdir(cli.project)
            os.execv(cli.words[0], [*cli.words, "run", "--", *words])
        import fcntl

        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", 31, 97, 0, 0))
        self.seen = b""

    def until(self, text, seconds=30):
        deadline = time.monotonic() + seconds
        while text not in self.seen and time.monotonic() < deadline:
            if select.select([self.master], [], [], 0.2)[0]:
                try:
                    self.seen += os.read(self.master, 65536)
                except OSError:
                    break
        assert text in self.seen, self.seen
        return self.seen

    def type(self, data):
        os.write(self.master, data)

    def end(self, seconds=30):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            done, status = os.waitpid(self.pid, os.WNOHANG)
            if done:
                return os.waitstatus_to_exitcode(status)
            with contextlib.suppress(OSError):
                if select.select([self.master], [], [], 0.05)[0]:
                    self.seen += os.read(self.master, 65536)
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        raise AssertionError(self.seen)

    def close(self):
        os.close(self.master)


@pytest.fixture
def session(cli):
    opened = []

    def start(script):
        cli.task(script)
        cli("run", "--", "true")
        opened.append(Session(cli, "sh", "task.sh"))
        return opened[-1]

    yield start
    for one in opened:
        one.close()


def test_the_box_has_a_terminal_of_the_persons_size(session):
    one = session("test -t 0 && test -t 1 && echo a-terminal; sleep 1; stty size; read line; echo got $line\n")
    one.until(b"a-terminal")
    one.until(b"31 97")
    one.type(b"hello\r")
    one.until(b"got hello")
    assert one.end() == 0


def test_control_c_reaches_the_command_and_not_only_the_client(session):
    one = session("trap 'echo interrupted; exit 7' INT\necho ready\nwhile :; do sleep 0.1; done\n")
    one.until(b"ready")
    one.type(b"\x03")
    one.until(b"interrupted")
    assert one.end() == 7


def test_a_key_typed_the_moment_the_command_speaks_is_not_lost(session):
    # Python, because dash takes a key for itself that comes while it starts a program; and the signal left to the
    # kernel, because Python's own handler forgets one that comes between its last look and its sleep. Both do so
    # without a box too.
    program = "import signal, time; signal.signal(2, signal.SIG_DFL); print('ready', flush=True); time.sleep(20)"
    for _attempt in range(5):
        one = session(f'exec python3 -c "{program}"\n')
        one.until(b"ready")
        one.type(b"\x03")
        assert one.end() == -signal.SIGINT


def test_the_clipboard_of_the_person_is_not_the_boxs(session):
    one = session("printf 'before\\033]52;c;ZXZpbA==\\007after\\n'\n")
    one.until(b"after")
    one.end()
    assert b"]52" not in one.seen


def test_control_z_where_no_shell_would_continue_it_stops_nothing(session):
    # exec, because dash waits in vfork, unstoppable, for a child that the key has stopped before its own exec; and one
    # write for all that is said, because what is typed next may show in between
    one = session("exec python3 -c \"print('ready', flush=True); print('got ' + input())\"\n")
    one.until(b"ready")
    one.type(b"\x1a")
    for _attempt in range(20):
        one.type(b"word\r")  # what was typed before the key came to its end is flushed, as a terminal does
        with contextlib.suppress(AssertionError):
            one.until(b"got word", 2)
            break
    assert b"got word" in one.seen
    assert one.end() == 0
