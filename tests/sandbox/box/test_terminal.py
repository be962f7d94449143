"""An interactive box has a real terminal; what it sends to the person's is filtered."""

import os
import signal
import threading
import time
import tty

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringfence.model.box import Limits
from ringfence.model.ids import Bytes
from ringfence.sandbox.inner.screen import Screen

PASSED = [
    b"plain text \xc3\xa9 \xe2\x9d\x9d\r\n",
    b"\x1b[1;31mred\x1b[0m",
    b"\x1b[2J\x1b[H\x1b[?1049h\x1b[?25l",
    b"\x1b]8;;https://example.org\x1b\\link\x1b]8;;\x1b\\",
    b"\x1b]11;#202020\x07",
    b"\x1b[6n",
    b"\x1b(B\x1b=\x1b7\x1b8",
]
STOPPED = [
    b"\x1b]52;c;ZXZpbA==\x07",
    b"\x1b]52;c;ZXZpbA==\x1b\\",
    b"\x1b]0;title\x07",
    b"\x1b]2;title\x1b\\",
    b"\x1b]4;1;?\x07",
    b"\x1b]10;?\x07",
    b"\x1b[21t",
    b"\x1b[>c",
    b"\x1b[5n",
    b"\x1b[?15n",
    b"\x1b[>q",
    b"\x1b[?1$p",
    b"\x1bP$qm\x1b\\",
    b"\x1bP+q544e\x1b\\",
    b"\x1b_Gi=31;AAAA\x1b\\",
    b"\x1b^private\x1b\\",
    b"\x1bXstring\x1b\\",
    b"\x1bZ",
    b"\x05",
    b"\xc2\x9d52;c;ZXZpbA==",
]


@pytest.mark.parametrize("data", PASSED)
def test_ordinary_output_passes(data):
    assert Screen().feed(data) == data


@pytest.mark.parametrize("data", STOPPED)
def test_what_would_act_on_the_terminal_is_stopped(data):
    shown = Screen().feed(b"a" + data + b"b")
    assert shown in {b"ab", b"a52;c;ZXZpbA==b"}


def test_primary_attributes_are_answered_for_the_terminal():
    screen = Screen()
    assert screen.feed(b"x\x1b[cy") == b"xy"
    assert screen.answer == b"\x1b[?62;22c"


@given(st.lists(st.sampled_from(PASSED + STOPPED), max_size=8), st.integers(1, 9))
def test_it_does_not_matter_where_the_output_is_cut(parts, size):
    data = b"".join(parts)
    whole, cut = Screen(), Screen()
    expected = whole.feed(data)
    got = b"".join(cut.feed(data[n : n + size]) for n in range(0, len(data), size))
    assert got == expected


@given(st.binary(max_size=400))
def test_no_bytes_at_all_make_it_fail_or_let_a_clipboard_write_through(data):
    shown = Screen().feed(data + b"\x1b]52;c;ZQ==\x07")
    assert b"\x1b]52;" not in shown


def test_a_sequence_that_never_ends_is_given_up():
    screen = Screen()
    screen.feed(b"\x1b]0;" + b"x" * 70000)
    assert screen.feed(b"text again\n").endswith(b"text again\n")


class Person:
    """The person's side: a terminal of the host whose slave is what the client would pass on."""

    def __init__(self, bench, *argv, size=(24, 80), **options):
        self.master, slave = os.openpty()
        tty.setraw(slave)
        plan = bench.plan(*argv, pty=True, size=size, limits=Limits(output=Bytes(64)))
        self.box = bench.launcher.start(plan, stdin=slave, stdout=slave, stderr=slave, **options)
        os.close(slave)
        self.shown = bytearray()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        while True:
            try:
                data = os.read(self.master, 4096)
            except OSError:
                return
            if not data:
                return
            self.shown += data

    def type(self, data):
        os.write(self.master, data)

    def until(self, text, seconds=10):
        deadline = time.monotonic() + seconds
        while text not in self.shown:
            assert time.monotonic() < deadline, bytes(self.shown)
            time.sleep(0.01)

    def end(self):
        execution = self.box.wait(20)
        self.reader.join(5)
        os.close(self.master)
        return execution


@pytest.mark.needs_userns
def test_it_is_a_terminal_with_the_callers_size_and_is_not_capped(bench):
    person = Person(bench, "/bin/sh", "-c", "tty; stty size; seq 1 200", size=(31, 97))
    person.until(b"200\r\n")
    assert person.end().exit == 0
    assert bytes(person.shown).startswith(b"/dev/pts/0\r\n31 97\r\n1\r\n")


@pytest.mark.needs_userns
def test_a_new_size_reaches_the_box(bench):
    person = Person(bench, "/bin/bash", "-c", "trap 'stty size; exit' WINCH; echo up; while :; do sleep 0.05; done")
    person.until(b"up")
    person.box.resize(50, 132)
    person.until(b"50 132")
    assert person.end().exit == 0


@pytest.mark.needs_userns
def test_ctrl_c_interrupts_the_command_and_not_the_box(bench):
    person = Person(bench, "/bin/bash", "-c", "trap 'echo caught; exit 5' INT; echo up; while :; do sleep 0.05; done")
    person.until(b"up")
    person.type(b"\x03")
    person.until(b"caught")
    assert person.end().exit == 5


@pytest.mark.needs_userns
def test_a_key_typed_before_the_command_runs_is_for_the_command(bench):
    for _attempt in range(10):
        person = Person(bench, "/bin/sleep", "20")
        person.type(b"\x03")
        assert person.end().signal == signal.SIGINT


@pytest.mark.needs_userns
def test_what_cannot_be_started_in_a_terminal_says_so(bench):
    person = Person(bench, "./readme.txt")
    assert person.end().exit == 126
    person = Person(bench, "no-such-program")
    assert person.end().exit == 127


@pytest.mark.needs_userns
def test_a_script_without_a_first_line_runs_in_a_terminal_too(bench):
    ran = bench.sh("printf 'test -t 0 && echo in-a-terminal\n' >script; chmod +x script")
    assert ran.execution.exit == 0
    person = Person(bench, "./script")
    person.until(b"in-a-terminal")
    assert person.end().exit == 0


@pytest.mark.needs_userns
def test_job_control_works_in_a_shell(bench):
    person = Person(bench, "/bin/bash", "--norc", "-i")
    person.type(b"sleep 30\n")
    time.sleep(0.3)
    person.type(b"\x1a")
    person.until(b"Stopped")
    person.type(b"kill -9 %1; echo over\nexit 3\nexit 3\n")
    person.until(b"over\r\n")
    assert person.end().exit == 3


@pytest.mark.needs_userns
def test_ctrl_z_is_told_and_the_command_goes_on_when_the_caller_says_so(bench):
    stopped = threading.Event()
    person = Person(bench, "/bin/sh", "-c", "echo up; read word; echo got $word", on_stop=stopped.set)
    person.until(b"up")
    waiter = threading.Thread(target=person.box.wait)
    waiter.start()
    person.type(b"\x1a")
    assert stopped.wait(10)
    assert person.box.stopped
    person.box.go_on()
    person.type(b"more\n")
    person.until(b"got more")
    waiter.join(10)
    assert person.end().exit == 0


@pytest.mark.needs_userns
def test_clipboard_and_title_do_not_reach_the_person(bench):
    line = r"printf 'a\033]52;c;ZXZpbA==\007b\033]0;owned\007c\033[21td\n'"
    person = Person(bench, "/bin/sh", "-c", line)
    person.until(b"d\r\n")
    assert person.end().exit == 0
    assert bytes(person.shown) == b"abcd\r\n"
