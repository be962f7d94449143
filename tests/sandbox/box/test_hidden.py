"""What a try on a hidden path becomes: asked of the host without touching it, recorded, bounded, escaped."""

import errno
import os
import stat

import pytest

from ringfence.sandbox.inner import hidden, kernel
from ringfence.sandbox.inner.hidden import KIND, LISTERS, Hidden, on_host, rest_of, text
from ringfence.sandbox.inner.loop import Loop
from ringfence.sandbox.inner.root import Root
from ringfence.sandbox.inner.view import View
from ringfence.sandbox.inner.watch import Record


@pytest.fixture
def served():
    """A server whose host has everything but what begins with ``no``."""
    device, other = os.pipe()
    one = Hidden(
        Loop(), device, [], Record(), host=lambda _f, name: 0 if name.startswith(b"no") else stat.S_IFREG | 0o600
    )
    yield one
    one.close()
    os.close(other)


def test_the_host_is_asked_without_following_anything(tmp_path):
    (tmp_path / "file").write_text("x")
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("nowhere")
    (tmp_path / "loop").symlink_to("loop")
    folder = os.fsencode(tmp_path)
    kinds = [stat.S_IFMT(on_host(folder, name)) for name in (b"file", b"folder", b"link", b"loop")]
    assert kinds == [stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK, stat.S_IFLNK]
    assert [on_host(folder, name) for name in (b"absent", b"x" * 300, b"\xff\xfe")] == [0] * 3
    assert on_host(folder + b"/absent", b"file") == 0
    assert on_host(folder + b"/file", b"file") == 0
    assert stat.S_ISDIR(on_host(b"/", b"proc")), "a mount point is not crossed, and there all the same"


def test_without_the_newer_call_the_answer_is_the_same(tmp_path, monkeypatch):
    def unknown(*_arguments):
        raise OSError(38, "unknown")

    (tmp_path / "file").write_text("x")
    monkeypatch.setattr(hidden.kernel, "openat2", unknown)
    assert stat.S_ISREG(on_host(os.fsencode(tmp_path), b"file"))
    assert on_host(os.fsencode(tmp_path), b"absent") == 0


def test_every_try_counts_and_what_the_host_has_not_does_not(served):
    assert [served._missing(b"/", b"root", 5) for _ in range(3)] == [True] * 3
    assert not served._missing(b"/home/u", b"nobody", 5)
    assert served.record.counts == {(KIND, "/root"): 3}


def test_what_the_launcher_looks_up_is_nobodys_try(served):
    assert served._missing(b"/", b"root", hidden.OUTSIDE), "not remembered either, so that the box's own try is seen"
    assert not served._missing(b"/", b"nobody", hidden.OUTSIDE)
    assert served.record.counts == {}


def test_a_flood_on_one_name_is_counted_to_its_bound_and_then_left_to_the_kernel(served):
    answers = [served._missing(b"/home", b"other", 5) for _ in range(hidden.MANY_TRIES + 1)]
    assert answers.count(True) == hidden.MANY_TRIES
    assert not answers[-1]
    assert served.record.counts == {
        (KIND, "/home/other"): hidden.MANY_TRIES,
        (KIND, "/home/other, and no longer counted"): 1,
    }


def test_what_every_program_looks_for_is_not_told(served):
    assert not served._missing(b"/", b"sys", 5)
    served.host = lambda _folder, _name: stat.S_IFREG | 0o644
    assert not served._missing(b"/etc", b"gitconfig", 5)
    assert served._missing(b"/home/u", b"notes", 5)
    served.host = lambda _folder, _name: stat.S_IFREG | 0o640
    assert served._missing(b"/etc", b"shadow", 5)
    assert served.record.counts == {(KIND, "/home/u/notes"): 1, (KIND, "/etc/shadow"): 1}


def test_a_program_that_looks_at_every_process_is_not_told_of_for_what_it_asks_for_unbidden_alone(served, monkeypatch):
    monkeypatch.setattr(served, "_unbidden", lambda _pid: LISTERS[b"ps"])
    assert served._tried(b"/proc/1", b"environ", 5)
    assert served._tried(b"/proc/1/task", b"1", 5)
    assert served.record.counts == {}
    served._tried(b"/proc/1", b"root", 5)
    served._tried(b"/proc", b"kcore", 5)
    assert served.record.counts == {(KIND, "/proc/1/root"): 1, (KIND, "/proc/kcore"): 1}


@pytest.mark.parametrize(
    ("places", "rest"),
    [
        ([b"/home/u/other/notes.txt\0junk"], b"/notes.txt"),
        ([b"../other//./a/b\0"], b"/a/b"),
        ([b"", b"\x01\0/run/other/x.sock\0"], b"/x.sock"),
        ([b"other\0"], b""),
        ([b"/home/u/other/other/other/x\0"], b"/other/other/x"),
        ([b"elsewhere/notes\0", b"", b"\xff" * 40], b""),
        ([], b""),
    ],
)
def test_the_rest_of_a_path_is_read_from_what_the_call_points_at(places, rest):
    assert rest_of(places, b"/home/u/other") == rest


def test_a_name_that_stands_twice_in_a_path_is_not_told_twice():
    assert rest_of([b"/proc/1/fd/1" + bytes(3)], b"/proc/1/fd/1") == b""
    assert rest_of([b"/proc/1/fd/1/x" + bytes(3)], b"/proc/1/fd/1") == b"/x"


def test_arguments_are_read_from_a_process_that_waits_and_a_strange_one_gives_none():
    processes = os.open("/proc", os.O_PATH | os.O_DIRECTORY)
    assert hidden.arguments_of(processes, 1 << 30) == []
    assert isinstance(hidden.arguments_of(processes, os.getpid()), list)
    os.close(processes)


def test_a_caller_that_has_asked_and_does_not_sleep_yet_is_looked_at_again(tmp_path, monkeypatch):
    looks = []

    def moments_later(_seconds):
        looks.append(1)
        if len(looks) == 3:
            (tmp_path / "7" / "syscall").write_text("56 0xffffffffffffff9c 0x2000 0x0 0x0 0x0 0x0 0x1 0x1\n")

    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "syscall").write_text("running\n")
    (tmp_path / "7" / "mem").write_bytes(bytes(0x2000) + b"../other/notes.txt\0")
    monkeypatch.setattr(hidden.time, "sleep", moments_later)
    processes = os.open(tmp_path, os.O_PATH | os.O_DIRECTORY)
    assert rest_of(hidden.arguments_of(processes, 7), b"/home/u/other") == b"/notes.txt"
    (tmp_path / "7" / "syscall").write_text("running\n")
    assert hidden.arguments_of(processes, 7) == []
    assert len(looks) == 3 + hidden.LOOKS
    os.close(processes)


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        (b"/home/other", "/home/other"),
        (b"/home/a b", "'/home/a b'"),
        (b"/x\n/etc", "'/x\\n/etc'"),
        (b"/\xff", "/\\xff"),
        ("/\u202ereversed".encode(), "'/\\u202ereversed'"),
    ],
)
def test_a_name_is_escaped_so_that_it_can_be_taken_for_nothing_else(path, shown):
    assert text(path) == shown


@pytest.mark.parametrize("refused", [True, False])
def test_a_kernel_that_takes_no_folder_that_tells_makes_the_same_view_without_and_says_so(monkeypatch, refused):
    mounted, attached = [], []

    def mount(parts, *, writable=True, numbers=False):
        if numbers and refused:
            raise OSError(errno.EINVAL, "Invalid argument")
        mounted.append((len(parts), writable, numbers))
        return 99

    monkeypatch.setattr(View, "_mount_overlay", staticmethod(mount))
    monkeypatch.setattr(kernel, "attach", lambda tree, place: attached.append((tree, place)))
    step = ("overlay", b"/project", [b"/hides", b"/real"], b"/upper", b"/work", [b".env"])
    base = object.__new__(Root)
    view = View({"steps": [step]}, user=(5, 5), idmap=-1, base=base)
    view.parts[0] = [os.open("/", os.O_PATH) for _part in range(4)]
    view.told[0] = os.open("/", os.O_PATH)
    view._overlay(0, step, b"/place")
    assert mounted == [(4, True, False) if refused else (5, True, True)]
    assert attached == [(99, b"/place")]
    assert view.unseen == (["/project: Invalid argument"] if refused else [])


def test_who_asked_is_not_left_waiting_where_the_answer_cannot_be_given(served, monkeypatch):
    def refused(*_arguments):
        raise OSError(errno.ENOMEM, "no memory")

    def gone(*_arguments):
        raise FileNotFoundError(errno.ENOENT, "who asked has died")

    monkeypatch.setattr(hidden.os, "write", gone)
    served._write(b"answer")
    assert served.device >= 0
    assert not served.failed
    monkeypatch.setattr(hidden.os, "write", refused)
    served._write(b"answer")
    assert served.device < 0, "the kernel refuses only what nobody holds the device of any more"
    assert served.failed
