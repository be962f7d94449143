"""Where a path leads: as the kernel says, whatever was looked at before in the same call, and also while it changes."""

import os

import pytest

from ringfence.model.facts import PathKind
from ringfence.policy.facts import path_fact


@pytest.fixture
def tree(tmp_path):
    """A folder, a file in it, and links of every kind."""
    root = tmp_path.resolve()
    (root / "folder").mkdir()
    (root / "folder" / "file").write_text("")
    for name, target in {
        "file": "folder/file",
        "folder-too": "folder",
        "out": "/",
        "above": "..",
        "nowhere": "nothing/there",
        "circle": "circle",
        "process": "/proc/self/exe",
    }.items():
        (root / name).symlink_to(target)
    return str(root)


@pytest.mark.parametrize(
    ("asked", "real", "kind"),
    [
        ("folder", "folder", PathKind.DIRECTORY),
        ("folder/file", "folder/file", PathKind.FILE),
        ("folder/./file/", "folder/file", PathKind.FILE),
        ("folder/nothing/../file", "folder/file", PathKind.FILE),
        ("nothing/at/all", "nothing/at/all", PathKind.ABSENT),
        ("folder/file/below", "folder/file/below", PathKind.UNREADABLE),
        ("file", "folder/file", PathKind.FILE),
        ("folder-too/file", "folder/file", PathKind.FILE),
        ("out", "/", PathKind.DIRECTORY),
        ("out/proc/self", "/proc/self", PathKind.OTHER),
        ("process", "/proc/self/exe", PathKind.OTHER),
        ("nowhere", "nothing/there", PathKind.ABSENT),
        ("circle", "circle", PathKind.UNREADABLE),
    ],
)
def test_a_path_leads_where_the_kernel_says_whatever_was_seen_before(tree, asked, real, kind):
    seen: set[str] = set()
    for other in ("folder/file", "folder-too/file", "above", asked):
        path_fact(f"{tree}/{other}", root=tree, folders=seen)
    for folders in (None, seen):
        fact = path_fact(f"{tree}/{asked}", root=tree, folders=folders)
        assert (fact.real, fact.kind) == (os.path.join(tree, real), kind)
        assert fact.via_symlink == (kind is not PathKind.UNREADABLE and os.path.islink(f"{tree}/{asked.rstrip('/')}"))


def test_the_links_of_proc_are_told_as_links_and_not_followed():
    fact = path_fact("/proc/self/exe", root="/nonexistent")
    assert (fact.real, fact.via_symlink) == ("/proc/self/exe", True)


def test_a_link_that_goes_away_while_it_is_followed_is_absent(tree, monkeypatch):
    real = os.readlink

    def readlink(path):
        os.unlink(path)
        return real(path)

    monkeypatch.setattr(os, "readlink", readlink)
    assert path_fact(f"{tree}/file", root=tree).kind is PathKind.ABSENT
