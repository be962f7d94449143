"""An interactive box has a real terminal; what it sends to the person's is filtered."""

import os
import select
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
    b"\x1b]133;A\x07\x1b]133;D;130\x1b\\",
    b"\x1b[38:2::10:20:30m\x1b[65535b",
]
STOPPED = [
    b"\x1b]133;A;click_events=1\x07",
    b"\x1b]133;A;cl=line\x1b\\",
    b"\x1b[2147483647b",
    b"\x1b[1;000100000L",
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
    b"\x9d52;c;ZXZpbA==",
    b"\x1bktitle\x1b\\",
    b"\x1bG",
    b"\x1b%@",
    b"\x1b G",
    b"\x1b[1;1;1;1#|",
    b"\x1b[#R",
    b"\x1b[?1;1;0S",
    b"\x1b[1'z",
    b"\x1b[1'|",
    b'\x1b["v',
    b"\x1b[1$u",
    b"\x1b[&u",
    b"\x1b[5i",
    b"\x1b[?2l",
    b"\x1b[?2048h",
    b"\x1b[?1049;2031h",
    b"\x1b[<u",
    b"\x1b[?1000s",
    b"\x1b]8;;x-man-page://;touch\x07",
    b"\x1b]8;;https://example.org\xc2\x9c\x07",
    b"\x1b]8;;https://example.org\x18",
]
JOINING = [
    b"\x1b\x05]52;c;ZXZpbA==\x07",
    b"\x1b\x1bZ]52;c;ZXZpbA==\x07",
    b"\x1b\x1b[5n]52;c;ZXZpbA==\x07",
    b"\xc2\x05\x9d52;c;ZXZpbA==\x07",
    b"\x1b[\r21t",
    b"\x1b[2\x081t",
    b"\x1b\x00]52;c;ZXZpbA==\x07",
    b"\x1b\x7f[21t",
    b"\x1b]8;;\x18\xc2\x9d52;c;ZXZpbA==\x07",
    b"\x1b]8;;x\xc2\x9c\xc2\x9d52;c;ZXZpbA==\x07",
]
"""Taking something out of these, or reading them as a terminal does, makes another sequence."""


@pytest.mark.parametrize("data", PASSED)
def test_ordinary_output_passes(data):
    assert Screen().feed(data) == data


@pytest.mark.parametrize("data", STOPPED)
def test_what_would_act_on_the_terminal_is_stopped(data):
    shown = Screen().feed(b"a" + data + b"b")
    assert shown in {b"ab", b"a52;c;ZXZpbA==b", b"a@b", b"aGb"}


def as_a_terminal_reads(data):
    """The sequences that a terminal would obey: controls inside one are obeyed and skipped, CAN and SUB end it."""
    found, at = [], 0
    text = data.decode("utf-8", "surrogateescape")
    starts = {"]": "osc", "P": "string", "X": "string", "^": "string", "_": "string", "k": "string", "[": "csi"}
    while at < len(text):
        one, at = text[at], at + 1
        if "\x80" <= one <= "\x9f" or "\udc80" <= one <= "\udc9f":
            found.append(("c1", one))
        if one != "\x1b":
            continue
        kind, body = "", ""
        while at < len(text):
            one, at = text[at], at + 1
            if one in "\x18\x1a":
                break
            if one == "\x1b":
                at -= 1
                break
            if kind in {"osc", "string"}:
                if one in "\x07\x9c":
                    break
                body += one
            elif one < " " or one == "\x7f":
                continue
            elif not kind and not body and one in starts:
                kind = starts[one]
            else:
                body += one
                if (one >= "@") if kind == "csi" else (one >= "0"):
                    break
        found.append((kind or "esc", body))
    return found


def harmless(kind, body):
    if kind == "osc":
        return body.startswith(("8;;https://", "8;;\x1b", "133;", "4;", "10;", "11;", "12;")) or body in {
            "8;;",
            "104",
            "110",
            "111",
            "112",
        }
    if kind == "csi":
        return body[-1:] in set("@ABCDEFGHIJKLMPSTXZ^`abdefgmrsuqhl") or body == "6n"
    return kind == "esc" and body in {"(B", "(0", "=", ">", "7", "8", "D", "E", "H", "M", "c", "\\"}


PIECES = [*PASSED, *STOPPED, *JOINING, *(bytes([n]) for n in b"\x1b\x05\x07\x18[]PkGZ\\21;8t\x7f\r\xc2\x9d\x9c\xe2 $")]


@given(st.lists(st.sampled_from(PIECES), max_size=12), st.integers(1, 7))
def test_whatever_is_sent_a_terminal_reads_only_harmless_sequences(parts, size):
    data, screen = b"".join(parts), Screen()
    shown = b"".join(screen.feed(data[n : n + size]) for n in range(0, len(data), size)) + screen.rest()
    assert [found for found in as_a_terminal_reads(shown) if not harmless(*found)] == []


@pytest.mark.parametrize("data", JOINING)
def test_nothing_joins_to_a_sequence_when_something_is_taken_out(data):
    assert b"\x1b" not in Screen().feed(data)
    assert b"\xc2\x9d" not in Screen().feed(data)


def test_without_a_keyboard_nothing_makes_the_terminal_type():
    screen = Screen(keyboard=False)
    assert screen.feed(b"a\x1b[6n\x1b[?1000h\x1b[?1004h\x1b[>1u\x1b[?25lb") == b"a\x1b[?25lb"


@pytest.mark.parametrize(
    ("left", "undone"),
    [
        (b"\x1b[?1049h\x1b[?1000;1006h\x1b[?25l", b"\x1b[?25h\x1b[?1000l\x1b[?1006l\x1b[?1049l"),
        (b"\x1b[?25l\x1b[?25h\x1b[?1000h\x1b[?1000l", b""),
        (b"\x1b[8;31mhidden", b"\x1b[0m"),
        (b"\x1b[31mred\x1b[0m", b""),
        (b"\x1b(0lines", b"\x1b(B"),
        (b"\x0e", b"\x0f"),
        (b"\x1b[2;5r", b"\x1b7\x1b[r\x1b8"),
        (b"\x1b[4h\x1b=", b"\x1b[4l\x1b>"),
        (b"\x1b[>1u\x1b[>5u\x1b[<u", b"\x1b[<1u"),
        (b"\x1b]10;#000000\x07\x1b]11;#000000\x07", b"\x1b]110\x07\x1b]111\x07"),
        (b"\x1b[5 q", b"\x1b[0 q"),
    ],
)
def test_what_the_box_turned_on_is_turned_off_at_its_end(left, undone):
    screen = Screen()
    screen.feed(left)
    assert screen.rest() == undone
    assert screen.rest() == b""


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
        self.name = os.ttyname(slave)
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

    def until(self, text, seconds=60):
        deadline = time.monotonic() + seconds
        while text not in self.shown:
            assert time.monotonic() < deadline, bytes(self.shown)
            time.sleep(0.01)

    def end(self):
        execution = self.box.wait(20)
        self.reader.join(60)
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
    person.type(b"sh -c 'echo it-\"runs\"; exec sleep 30'\n")
    person.until(b"it-runs")
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
    assert stopped.wait(60)
    assert person.box.stopped
    person.box.go_on()
    person.type(b"more\n")
    person.until(b"got more")
    waiter.join(60)
    assert person.end().exit == 0


@pytest.mark.needs_userns
def test_what_is_typed_while_the_command_is_stopped_is_for_the_persons_shell(bench):
    stopped = threading.Event()
    person = Person(bench, "/bin/sh", "-c", "echo up; read word; echo got $word", on_stop=stopped.set)
    shell = os.open(person.name, os.O_RDWR | os.O_NOCTTY)
    person.until(b"up")
    waiter = threading.Thread(target=person.box.wait)
    waiter.start()
    person.type(b"\x1a")
    assert stopped.wait(60)
    person.type(b"jobs\n")
    time.sleep(0.2)  # in which the launcher would have taken it
    assert select.select([shell], [], [], 0)[0] == [shell]
    assert os.read(shell, 100) == b"jobs\n"
    person.box.go_on()
    person.type(b"more\n")
    person.until(b"got more")
    os.close(shell)
    waiter.join(60)
    assert person.end().exit == 0


def test_a_stopped_command_leaves_the_terminal_as_the_shell_had_it_and_finds_it_again():
    screen = Screen()
    on = b"\x1b[?1003h\x1b[?1049h\x1b[?25l\x1b[>1u\x1b[31m"
    assert screen.feed(on + b"\x1b[") == on
    assert screen.set_aside() == b"\x1b[?25h\x1b[?1003l\x1b[?1049l\x1b[<1u\x1b[0m"
    assert screen.feed(b"1mtext\x1b[?1003h\x1b[?2004h\x1b[6n\x1b[>1u") == b"\x1b[1mtext"  # of a process that goes on
    assert screen.take_up() == b"\x1b[?25l\x1b[?1003h\x1b[?1049h"
    assert screen.feed(b"\x1b[?1003l\x1b[?2004h") == b"\x1b[?1003l\x1b[?2004h"
    assert screen.rest() == b"\x1b[?25h\x1b[?1049l\x1b[?2004l\x1b[0m"


def test_a_command_that_stopped_again_before_it_had_the_keys_finds_the_terminal_again():
    screen = Screen()
    screen.feed(b"\x1b[?1049h")
    assert screen.set_aside() == b"\x1b[?1049l"
    assert screen.set_aside() == b""
    assert screen.take_up() == b"\x1b[?1049h"


@pytest.mark.needs_userns
def test_a_command_that_stops_itself_leaves_no_mouse_reports_on(bench, wait_for):
    stopped = threading.Event()
    line = r"printf 'up\033[?1003h'; kill -STOP $$; echo back"
    person = Person(bench, "/bin/sh", "-c", line, on_stop=stopped.set)
    waiter = threading.Thread(target=person.box.wait)
    waiter.start()
    assert stopped.wait(60)
    person.until(b"up")
    wait_for(lambda: person.shown.count(b"\x1b[?1003h") == person.shown.count(b"\x1b[?1003l"))
    person.box.go_on()
    person.until(b"back")
    waiter.join(60)
    assert person.end().exit == 0
    assert person.shown.count(b"\x1b[?1003h") == person.shown.count(b"\x1b[?1003l")


@pytest.mark.needs_userns
def test_clipboard_and_title_do_not_reach_the_person(bench):
    line = r"printf 'a\033]52;c;ZXZpbA==\007b\033]0;owned\007c\033[21td\n'"
    person = Person(bench, "/bin/sh", "-c", line)
    person.until(b"d\r\n")
    assert person.end().exit == 0
    assert bytes(person.shown) == b"abcd\r\n"
