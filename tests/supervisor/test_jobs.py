"""A command as a job of a person's shell: in front, behind, stopped, continued; and what is typed meanwhile."""

import os
import pathlib
import pty
import select
import shlex
import signal
import subprocess
import time
import uuid

import pytest

pytestmark = pytest.mark.needs_userns

TELLS = """\
import os, signal, time
signal.signal(signal.SIGUSR1, lambda *_: os.write(1, b"told" + b"-again"))
os.write(1, b"rea" + b"dy")
while True:
    time.sleep(60)
"""
ASKS = """\
print("rea" + "dy", flush=True)
print("got " + input(), flush=True)
"""
WAITS = """\
import signal
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
print("beg" + "un", flush=True)
signal.sigwait({signal.SIGUSR1})
"""


class Shell:
    """An interactive bash in a terminal of its own, with ``run`` for ringfence."""

    def __init__(self, cli):
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            os.chdir(cli.project)
            os.execvpe("bash", ["bash", "--norc", "--noprofile", "-i"], {**os.environ, "PS1": "> ", "TERM": "dumb"})
        self.seen = b""
        words = " ".join(shlex.quote(word) for word in [*cli.words, "run", "--"])
        self.type(f'alias run={shlex.quote(words)}; stty -echo; echo begin-"ning"\n')
        self.until(b"begin-ning")

    def until(self, text, seconds=60):
        """All up to this text, which is then no longer looked at."""
        deadline = time.monotonic() + seconds
        while text not in self.seen:
            assert time.monotonic() < deadline, self.seen
            if select.select([self.master], [], [], 0.2)[0]:
                self.seen += os.read(self.master, 65536)
        before, _, self.seen = self.seen.partition(text)
        return before

    def type(self, text):
        os.write(self.master, text.encode())

    def ask(self, line):
        """What the shell, at its prompt, answers to a line."""
        self.type(f'{line}; echo end-"ed"\n')
        return self.until(b"end-ed")

    def stop(self):
        """The key, and until the shell reads again."""
        self.type("\x1a")
        self.until(b"Stopped")
        self.ask(":")

    def close(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.master)


@pytest.fixture
def shell(cli):
    cli("run", "--", "true")
    opened = Shell(cli)
    yield opened
    opened.close()


@pytest.fixture
def program(cli):
    """Writes what task.sh becomes, under a name that no other process of this machine has; gives that name."""
    name = f"program-{uuid.uuid4().hex}.py"

    def write(text):
        (cli.project / name).write_text(text)
        cli.task(f"exec python3 {name}\n")
        return name

    return write


def until(name, wanted, seconds=60):
    """Until the process that runs this program, in a box or not, is in one of these states."""
    deadline = time.monotonic() + seconds
    while (found := states(name)) != wanted:
        assert time.monotonic() < deadline, found
        time.sleep(0.05)


def states(name):
    found = ""
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if (folder / "cmdline").read_bytes() == f"python3\0{name}\0".encode():
                found += (folder / "stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
    return found


def test_what_is_typed_while_a_command_runs_behind_is_for_the_shell(shell, program):
    program(TELLS)
    shell.type("run sh task.sh &\n")
    shell.until(b"ready")
    shell.type("echo al'ive'\n")
    shell.until(b"alive")
    shell.type("kill -USR1 %1\n")
    shell.until(b"told-again")
    shell.type("kill %1; wait %1; echo status: $?\n")
    shell.until(b"status: 143")


def test_what_is_typed_is_for_the_shell_where_only_the_input_is_the_terminal(shell, program):
    program(ASKS)
    shell.type("run sh task.sh | cat &\n")
    shell.until(b"ready")
    shell.type("echo al'ive'\n")
    shell.until(b"alive")
    shell.type("fg\n")
    shell.until(b"sh task.sh")
    shell.type("word\n")
    shell.until(b"got word")


def test_a_command_behind_that_wants_a_key_stops_and_gets_it_in_front(shell, program):
    program(ASKS)
    shell.type("run sh task.sh &\n")
    while b"Stopped" not in shell.ask("jobs"):
        pass
    shell.type("fg\n")
    shell.until(b"sh task.sh")
    shell.type("word\n")
    shell.until(b"got word")


def test_a_running_command_that_came_to_the_front_gets_the_keys_it_wants(shell, program):
    program(WAITS + ASKS)
    shell.type("run sh task.sh & echo pi''d: $!.\n")
    shell.until(b"pid: ")
    client = int(shell.until(b"."))
    shell.until(b"begun")
    shell.type("fg\n")
    shell.until(b"sh task.sh")
    os.kill(client, signal.SIGUSR1)
    shell.until(b"ready")
    shell.type("word\n")
    shell.until(b"got word")


def test_a_stopped_command_goes_on_behind(shell, program):
    program(TELLS)
    shell.type("run sh task.sh\n")
    shell.until(b"ready")
    shell.stop()
    shell.type("bg\n")
    shell.until(b"sh task.sh")
    shell.type("kill -USR1 %1\n")
    shell.until(b"told-again")
    shell.type("kill %1; wait %1; echo status: $?\n")
    shell.until(b"status: 143")


def test_the_key_stops_the_whole_job_that_the_command_is_of(shell, program):
    program(ASKS)
    shell.type("sh -c \"${BASH_ALIASES[run]} sh task.sh; echo af''ter\"\n")
    shell.until(b"ready")
    shell.stop()
    shell.type("fg\n")
    shell.until(b"task.sh")
    shell.type("word\n")
    shell.until(b"got word")
    shell.until(b"after")


def test_the_key_stops_a_command_without_a_terminal_of_its_own_too(shell, program):
    name = program(TELLS)
    shell.type("run sh task.sh | cat\n")
    shell.until(b"ready")
    shell.stop()
    until(name, "T")
    shell.type("fg\n")
    until(name, "S")
    shell.type("\x03")
    until(name, "")


def test_the_terminal_of_the_box_is_set_as_the_persons(shell, cli):
    cli.task("stty -a\n")
    shell.type("stty iutf8 erase ^H intr ^G; run sh task.sh; stty sane -echo; echo o''ver\n")
    said = shell.until(b"over")
    assert b" iutf8" in said
    assert b"erase = ^H" in said
    assert b"intr = ^G" in said


def test_control_c_ends_the_wait_for_another_command_of_the_mission(shell, cli, program):
    program(TELLS)
    mission = cli.json("mission", "start", "--json")["id"]
    words = f"{shlex.join(cli.words)} run --mission {mission} --"
    shell.type(f"{words} sh task.sh &\n")
    shell.until(b"ready")
    shell.type(f"{words} true\n")
    shell.until(b"waits for its turn")
    shell.type("\x03")
    shell.until(b"nothing ran")
    shell.type("kill %1; wait %1; echo status: $?\n")
    shell.until(b"status: 143")


def test_a_command_that_stops_itself_where_there_is_no_terminal_stops_nobody_else(cli, program):
    name = program("import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)\n")
    client = cli.start("run", "--", "sh", "task.sh", stdin=subprocess.DEVNULL, start_new_session=True)
    until(name, "T")
    assert client.poll() is None
    assert pathlib.Path(f"/proc/{client.pid}/stat").read_text().rpartition(")")[2].split()[0] == "S"
    client.kill()
    client.communicate(timeout=30)
