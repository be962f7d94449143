"""Which changes a box may not make, judged from words alone."""

import posixpath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringfence.sandbox.inner.changes import (
    CHANGES,
    NOFOLLOW,
    OWN_DESCRIPTOR,
    Places,
    follows,
    joined,
    normal,
    real,
    shown,
    unnamed,
)

ORDER = {
    "writable": [b"/home/u/p", b"/home/agent", b"/tmp", b"/dev/shm", b"/run"],
    "hidden": [b"/home/u/p/.env", b"/home/u/p/keys/.env.local"],
    "steps": [
        ("ro", b"/usr", b"/usr"),
        ("ro", b"/etc", b"/x"),
        ("ro", b"/opt/py", b"/opt/py"),
        ("dir", b"/dev", 0o755),
    ],
    "bare": [],
}
PLACES = Places(ORDER, (b"null", b"tty"))


@pytest.mark.parametrize(
    ("path", "may"),
    [
        (b"/home/u/p/a", True),
        (b"/home/u/p", False),  # the place itself is a mount
        (b"/home/u/pp/a", False),
        (b"/tmp/a/b", True),
        (b"/dev/shm/x", True),
        (b"/dev/null", True),
        (b"/dev/pts/0", True),
        (b"/dev/ptmx", True),
        (b"/dev/mem", False),
        (b"/proc/self/oom_score_adj", True),
        (b"/proc/17/task/18/comm", True),
        (b"/proc/17/mem", False),
        (b"/proc/17/root/home/u/p/a", False),
        (b"/proc/sys/kernel/core_pattern", False),
        (b"/sys/fs/cgroup/x", False),
        (b"/etc/passwd", False),
    ],
)
def test_what_may_be_changed(path, may):
    assert PLACES.may_change(path) is may


def test_what_nobody_else_can_change():
    steps = [
        ("overlay", b"/home/u/p", [b"/l"], b"/u", b"/w"),
        ("tmpfs", b"/tmp", 0o700, 1),
        ("rw", b"/home/u/p/given", b"/g"),
    ]
    places = Places(ORDER | {"steps": steps}, ())
    assert [path for path in (
        b"/home/u/p/a", b"/tmp/a", b"/home/u/p/given", b"/home/u/p/given/a", b"/home/u/p/givens", b"/home/agent/a", b"/home/u/p",
    ) if places.own(path)] == [b"/home/u/p/a", b"/tmp/a", b"/home/u/p/givens"]  # fmt: skip


def test_hidden_names_and_for_a_rename_the_folders_above_them():
    assert PLACES.hides(b"/home/u/p/.env", "remove")
    assert not PLACES.hides(b"/home/u/p/.env.d", "remove")
    assert PLACES.hides(b"/home/u/p/keys", "rename")
    assert not PLACES.hides(b"/home/u/p/keys", "chmod")


def test_byte_code_caches_of_one_tree_share_a_name():
    assert PLACES.folded(b"/usr/lib/python3/x/__pycache__/a.pyc.1") == b"/usr/**/__pycache__"
    assert PLACES.folded(b"/opt/py/lib/__pycache__") == b"/opt/py/**/__pycache__"
    assert PLACES.folded(b"/usr/bin/x") == b"/usr/bin/x"
    assert PLACES.folded(b"/etc/__pycache__/x") == b"/etc/__pycache__/x"


@given(st.lists(st.sampled_from([b"a", b"b.c", b".", b"..", b"", b".d", b"e..", b"..."]), min_size=1, max_size=8))
def test_a_path_is_made_normal_by_its_letters(parts):
    path = b"/".join(parts) or b"x"
    whole = joined(b"/w/k", path)
    assert normal(whole) == posixpath.normpath(posixpath.join(b"/w/k", path)).replace(b"//", b"/")


def test_without_a_known_folder_there_is_no_path():
    assert joined(b"", b"a") == b""
    assert joined(b"", b"/a") == b"/a"


def test_a_file_without_a_name_is_made_in_the_folder():
    assert unnamed(CHANGES["openat"], (0, 0, 0o20200002))
    assert not unnamed(CHANGES["openat"], (0, 0, 0o200002))
    assert not unnamed(CHANGES["unlinkat"], (0, 0, 0o20200002))


LINKS = {
    b"/w/out": b"/home/other",
    b"/w/up": b"../..",
    b"/w/loop": b"loop",
    b"/w/near": b"./sub/file",
    b"/var/tmp": b"../tmp",
    b"/w/proc": b"/proc/self/root",
    b"/proc/self": b"17",
}


@pytest.mark.parametrize(
    ("path", "last", "led"),
    [
        (b"/w/out/notes", True, b"/home/other/notes"),
        (b"/w/out", True, b"/home/other"),
        (b"/w/out", False, b"/w/out"),
        (b"/w/up/etc/x", True, b"/etc/x"),
        (b"/w/near", True, b"/w/sub/file"),
        (b"/var/tmp/x", True, b"/tmp/x"),
        (b"/w/proc/etc", True, b"/proc/self/root/etc"),
        (b"/", True, b"/"),
        (b"/w/out/../x", True, b"/home/x"),
        (b"/w/a/../x", True, b"/w/x"),
        (b"/proc/self/cwd/../../x", True, b"/proc/self/cwd/../../x"),
    ],
)
def test_where_a_path_leads(path, last, led):
    assert real(path, last=last, read_link=LINKS.get) == led


@given(
    st.dictionaries(st.sampled_from([b"/a", b"/b", b"/a/b"]), st.sampled_from([b"a/b/a", b"/b/b", b"../a", b"b" * 9]))
)
def test_links_that_wind_end(links):
    looks = []

    def read(path):
        looks.append(path)
        return links.get(path)

    assert real(b"/a/b/a/b", last=True, read_link=read).startswith(b"/")
    assert len(looks) <= 400


@pytest.mark.parametrize("machine", sorted(NOFOLLOW))
def test_whether_a_last_link_is_followed(machine):
    nofollow = NOFOLLOW[machine]
    openat = CHANGES["openat"]
    assert follows(openat, (0, 0, 1), nofollow)
    assert follows(openat, (0, 0, 0o101), nofollow)
    assert not follows(openat, (0, 0, 0o301), nofollow)
    assert not follows(openat, (0, 0, 1 | nofollow), nofollow)
    assert follows(CHANGES["fchownat"], (0, 0, 0, 0, 0), nofollow)
    assert not follows(CHANGES["fchownat"], (0, 0, 0, 0, 0x100), nofollow)
    assert follows(CHANGES["chmod"], (0, 0), nofollow)
    assert not follows(CHANGES["rename"], (0, 0), nofollow)


def test_a_path_in_a_record_is_escaped_and_bounded():
    assert shown(b"/a/b.txt") == "/a/b.txt"
    assert shown(b"/a b\x1b]0;x\x07") == r"'/a b\x1b]0;x\x07'"
    assert shown(b"/\xff") == r"/\xff"
    long = shown(b"/begin" + b"x" * 4000 + b"end")
    assert long.startswith("/begin")
    assert long.endswith("end")
    assert len(long) < 220


def test_an_own_descriptor_is_known_by_its_name():
    assert OWN_DESCRIPTOR.fullmatch(b"/proc/self/fd/1")
    assert not OWN_DESCRIPTOR.fullmatch(b"/proc/1/fd/1")


def test_what_leads_to_a_worktree_in_a_private_place_is_closed_and_the_worktree_is_not():
    order = {
        "writable": [b"/tmp/x/a/p", b"/home/agent", b"/tmp"],
        "hidden": [],
        "steps": [("tmpfs", b"/tmp", 0o1777, 1), ("overlay", b"/tmp/x/a/p", []), ("ro", b"/tmp/x/a/p/.venv", b"/v")],
        "bare": [b"/tmp/x"],
    }
    places = Places(order, ())
    for path in (b"/tmp/x/a/out", b"/tmp/x/a/q/f", b"/tmp/x/f", b"/tmp/x/a/p/.venv/f"):
        assert not places.may_change(path)
        assert not places.plain(path, "remove")
    for path in (b"/tmp/f", b"/tmp/xx/f", b"/tmp/x/a/p/f", b"/tmp/x/a/p/d/f", b"/home/agent/f"):
        assert places.may_change(path)
        assert places.plain(path, "remove")
