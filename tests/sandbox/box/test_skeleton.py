"""The skeleton of a box's root: which folders it has, and what it answers, for requests of any shape."""

import errno
import stat
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringfence.sandbox.inner import fuse
from ringfence.sandbox.inner.skeleton import FOLDER, LINK, PLACE, ROOT, Skeleton, between, entries

STEPS = (
    ("ro", b"/usr", b"/usr"),
    ("ro", b"/etc", b"/state/etc"),
    ("link", b"/bin", b"usr/bin"),
    ("proc", b"/proc"),
    ("dir", b"/dev", 0o755),
    ("ro", b"/dev/null"),
    ("tmpfs", b"/run", 0o755, 1),
    ("ro", b"/usr/local/tool", b"/usr/local/tool"),
    ("overlay", b"/home/u/project", []),
)
OPERATIONS = [*range(60), 4096]
TELLING = (
    (b"/proc/8", FOLDER, b"", [b".env", b"keys"], (b"/home/u/project", 1000, 100, 0)),
    (b"/proc/8/conf", stat.S_IFDIR | 0o750, b"", [b"token"], (b"/home/u/project/conf", 1000, 100, 5_000_000_007)),
    (b"/proc/of-keys", stat.S_IFREG | 0o444, b"", None, (b"/proc/keys", 0, 0, 0)),
    (b"/proc/of-1-fd", stat.S_IFDIR | 0o555, b"", None, (b"/proc/1/fd", 0, 0, 0)),
    (b"/proc/of-1-root", stat.S_IFLNK | 0o777, b"", None, (b"/proc/1/root", 0, 0, 0)),
)


def made():
    return entries(STEPS, lambda number: STEPS[number][1] != b"/dev/null")


class Asked:
    """A skeleton and what it was asked about that is missing."""

    def __init__(self, again=True):
        self.missing, self.tries = [], []
        self.again = again
        self.skeleton = Skeleton(
            [*made(), *TELLING], owner=(0, 0), seconds=7, missing=self.note, tried=lambda *what: self.tries.append(what)
        )

    def note(self, folder, name, pid):
        self.missing.append((folder, name, pid))
        return self.again

    def ask(self, operation, node=ROOT, body=b"", pid=9):
        data = struct.pack("=IIQQIIIHH", 40 + len(body), operation, 77, node, 0, 0, pid, 0, 0) + body
        answer = self.skeleton.answer(data)
        if answer is None:
            return None
        length, error, unique = fuse.REPLY.unpack_from(answer)
        assert (length, unique) == (len(answer), 77)
        return -error if error else answer[fuse.REPLY.size :]

    def look_up(self, path):
        node = ROOT
        for name in path.strip("/").split("/"):
            answer = self.ask(fuse.LOOKUP, node, name.encode() + b"\0")
            if isinstance(answer, int):
                return answer
            node = struct.unpack_from("=Q", answer)[0]
        return node


def test_the_folders_above_every_mount_are_there_and_nothing_below_one():
    kinds = {path: mode for path, mode, _target, _in_view, _tells in made()}
    assert kinds == {
        b"/usr": FOLDER, b"/etc": FOLDER, b"/bin": LINK, b"/proc": FOLDER, b"/dev": FOLDER, b"/dev/null": PLACE,
        b"/run": FOLDER, b"/home": FOLDER, b"/home/u": FOLDER, b"/home/u/project": FOLDER,
    }  # fmt: skip


def test_folders_that_lead_to_a_worktree_in_a_private_place_are_of_the_skeleton_too():
    steps = (
        ("tmpfs", b"/tmp", 0o1777, 1),
        ("tmpfs", b"/home/agent", 0o700, 1),
        ("overlay", b"/tmp/x/a/p", []),
        ("ro", b"/tmp/x/tools", b"/t"),
        ("ro", b"/tmp/data/set", b"/d"),
        ("ro", b"/home/agent/a/b", b"/b"),
    )
    assert between(steps) == [b"/tmp/x"]
    kinds = {path: mode for path, mode, *_rest in entries(steps, lambda _: True)}
    assert set(kinds) == {
        b"/tmp", b"/tmp/x", b"/tmp/x/a", b"/tmp/x/a/p", b"/tmp/x/tools", b"/home", b"/home/agent",
    }  # fmt: skip
    assert between((("tmpfs", b"/tmp", 0o1777, 1), ("overlay", b"/tmp/p", []))) == []
    assert between((("overlay", b"/tmp/x/p", []),)) == []


def test_a_file_with_content_in_the_bare_root_needs_another_root():
    assert entries((("file", b"/notes", b"x", 0o644, False),), lambda _: True) is None
    assert entries((*STEPS, ("file", b"/run/notes", b"x", 0o644, False)), lambda _: True) is not None


def test_the_kernel_is_greeted_and_another_protocol_refused():
    asked = Asked()
    answer = asked.ask(fuse.INIT, 0, struct.pack("=IIII", 7, 45, 0, 0xFFFFFFFF))
    major, minor, _ahead, flags = struct.unpack_from("=IIII", answer)
    assert (len(answer), major, minor, flags) == (64, 7, 31, fuse.WANTED)
    assert asked.ask(fuse.INIT, 0, struct.pack("=IIII", 8, 0, 0, 0)) == errno.EPROTO
    assert asked.ask(fuse.INIT, 0, struct.pack("=IIII", 7, 12, 0, 0)) == errno.EPROTO
    assert asked.ask(fuse.INIT, 0, b"") == errno.EPROTO


def test_what_is_in_view_is_found_for_ever_and_asks_nobody():
    asked = Asked()
    answer = asked.ask(fuse.LOOKUP, ROOT, b"home\0")
    node, _generation, name_valid, attr_valid = struct.unpack_from("=QQQQ", answer)
    assert (len(answer), name_valid, attr_valid) == (128, fuse.FOREVER, fuse.FOREVER)
    attr = asked.ask(fuse.GETATTR, node)
    assert len(attr) == 104
    assert struct.unpack_from("=Q", attr, 16)[0] == node
    assert struct.unpack_from("=II", attr, 16 + 60) == (stat.S_IFDIR | 0o755, 3)
    assert asked.look_up("/home/u/project") == asked.skeleton.nodes[asked.look_up("/home/u")].names[b"project"]
    assert asked.ask(fuse.READLINK, asked.look_up("/bin")) == b"usr/bin"
    assert asked.missing == []


def test_what_is_missing_is_told_each_time_and_not_remembered():
    asked = Asked(again=True)
    assert [asked.look_up("/home/u/other") for _ in range(3)] == [errno.ENOENT] * 3
    assert asked.missing == [(b"/home/u", b"other", 9)] * 3


def test_what_nobody_wants_to_hear_again_is_remembered_as_absent():
    asked = Asked(again=False)
    answer = asked.ask(fuse.LOOKUP, ROOT, b"opt\0")
    assert struct.unpack_from("=QQQ", answer) == (0, 0, fuse.FOREVER)


def test_names_in_view_that_lie_above_are_nobodys_business():
    skeleton = Skeleton(
        [(b"/etc", FOLDER, b"", [b"ssl"], None)],
        owner=(0, 0),
        seconds=0,
        missing=lambda *_: pytest.fail("told"),
        tried=lambda *_: pytest.fail("told"),
    )
    data = struct.pack("=IIQQIIIHH", 44, fuse.LOOKUP, 1, 2, 0, 0, 0, 0, 0) + b"ssl\0"
    assert skeleton.answer(data) == fuse.reply(1, fuse.ABSENT)


def test_a_folder_that_tells_knows_no_name_and_tells_of_those_that_are_hidden_alone():
    asked = Asked()
    folder = asked.look_up("/proc/8")
    assert asked.ask(fuse.LOOKUP, folder, b"README\0") == fuse.ABSENT
    assert asked.ask(fuse.LOOKUP, folder, b".env\0") == errno.ENOENT
    assert asked.look_up("/proc/8/conf/token") == errno.ENOENT
    assert asked.tries == [(b"/home/u/project", b".env", 9), (b"/home/u/project/conf", b"token", 9)]
    assert asked.missing == []


def test_a_folder_that_tells_looks_like_the_one_it_stands_for():
    asked = Asked()
    attr = asked.ask(fuse.GETATTR, asked.look_up("/proc/8/conf"))
    assert struct.unpack_from("=Q", attr, 16 + 32)[0] == 5
    assert struct.unpack_from("=6I", attr, 16 + 48) == (7, 7, 7, stat.S_IFDIR | 0o750, 2, 1000)


def test_a_file_that_tells_is_never_opened_and_each_try_told():
    asked = Asked()
    file = asked.look_up("/proc/of-keys")
    assert asked.tries == []
    assert [asked.ask(fuse.OPEN, file, bytes(8)) for _ in range(2)] == [errno.EACCES] * 2
    assert asked.tries == [(b"/proc", b"keys", 9)] * 2


def test_a_closed_folder_and_a_closed_link_answer_nothing_and_each_try_is_told():
    asked = Asked()
    folder, link = asked.look_up("/proc/of-1-fd"), asked.look_up("/proc/of-1-root")
    assert asked.tries == []
    assert asked.ask(fuse.LOOKUP, folder, b"3\0") == errno.EACCES
    assert asked.ask(fuse.READDIR, folder, struct.pack("=QQIIQII", 0, 0, 4096, 0, 0, 0, 0)) == errno.EACCES
    assert asked.ask(fuse.READLINK, link, b"") == errno.EACCES
    assert asked.tries == [(b"/proc/1/fd", b"3", 9), (b"/proc/1", b"fd", 9), (b"/proc/1", b"root", 9)]


@pytest.mark.parametrize(("operation", "extra"), [(fuse.READDIR, 0), (fuse.READDIRPLUS, 128)])
@pytest.mark.parametrize("room", [200, 65536])
def test_a_listing_is_whole_in_pieces_of_any_size(operation, extra, room):
    asked = Asked()
    found, offset = [], 0
    while data := asked.ask(operation, ROOT, struct.pack("=QQIIQII", 0, offset, room, 0, 0, 0, 0)):
        assert len(data) <= room
        position = 0
        while position < len(data):
            node, offset, length, kind = struct.unpack_from("=QQII", data, position + extra)
            start = position + extra + 24
            found.append((data[start : start + length], kind))
            assert not extra or struct.unpack_from("=Q", data, position)[0] == (0 if len(found) <= 2 else node)
            position += (extra + 24 + length + 7) & ~7
    assert [name for name, _kind in found[:2]] == [b".", b".."]
    assert dict(found[2:]) == {
        b"usr": 4, b"etc": 4, b"bin": 10, b"proc": 4, b"dev": 4, b"run": 4, b"home": 4,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        (fuse.MKDIR, errno.EROFS), (fuse.MKNOD, errno.EROFS), (fuse.CREATE, errno.EROFS), (fuse.SETATTR, errno.EROFS),
        (fuse.UNLINK, errno.EROFS), (fuse.RENAME2, errno.EROFS), (fuse.LINK, errno.EROFS), (fuse.WRITE, errno.EROFS),
        (fuse.OPEN, errno.EACCES), (fuse.READ, errno.EACCES), (fuse.OPENDIR, errno.ENOSYS), (22, errno.ENOSYS),
        (fuse.FORGET, None), (fuse.BATCH_FORGET, None), (fuse.INTERRUPT, None), (fuse.DESTROY, b""), (4096, errno.ENOSYS),
    ],
)  # fmt: skip
def test_nothing_can_be_changed_or_read_and_some_get_no_answer(operation, expected):
    assert Asked().ask(operation, ROOT, bytes(64)) == expected


def test_a_node_that_was_never_given_out_is_stale_and_a_link_is_no_folder():
    asked = Asked()
    assert asked.ask(fuse.LOOKUP, 4711, b"x\0") == errno.ESTALE
    link = asked.look_up("/bin")
    assert asked.ask(fuse.LOOKUP, link, b"x\0") == errno.ENOTDIR
    assert asked.ask(fuse.READDIR, link, bytes(40)) == errno.ENOTDIR
    assert asked.ask(fuse.READLINK, ROOT) == errno.EINVAL
    assert asked.missing == []


@pytest.mark.parametrize("body", [b"", b"\0", b"no end", b"a/b\0", b"/\0", b"..\0"])
def test_a_name_that_is_none_is_refused(body):
    asked = Asked()
    assert asked.ask(fuse.LOOKUP, ROOT, body) == errno.EINVAL
    assert asked.missing == []


@given(st.binary(max_size=200))
def test_any_bytes_are_survived(data):
    Asked().skeleton.answer(data)


@given(st.sampled_from(OPERATIONS), st.integers(0, 40), st.binary(max_size=100))
def test_any_request_gets_one_whole_answer_or_none(operation, node, body):
    answer = Asked().ask(operation, node, body)
    assert answer is None or isinstance(answer, (int, bytes))
