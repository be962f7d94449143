"""Ignore rules agree with git's own answer, and an index names what git says it names."""

import os
import random
import subprocess
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringfence.sandbox.worktree.ignore import MAX_BYTES, _Together, is_ignored, parse
from ringfence.sandbox.worktree.tracked import Tracked

ENV = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1"}
PIECES = [
    "a",
    "b",
    "ab",
    "*",
    "**",
    "***",
    "a**",
    "**b",
    "a*b",
    "**\\",
    "?",
    "[ab]",
    "[!a]",
    "[a-c]",
    "x.y",
    "*.y",
    "\\*",
    "\\!",
    "a b",
    "[[:alpha:]]",
    "é",
]
NAMES = ["a", "b", "ab", "ba", "x.y", "abc", "*", "!", "a b", "é", "z"]

pattern = st.builds(
    lambda negative, root, parts, slash, space: negative + root + "/".join(parts) + slash + space,
    st.sampled_from(["", "", "", "!"]),
    st.sampled_from(["", "", "/"]),
    st.lists(st.sampled_from(PIECES), min_size=1, max_size=4),
    st.sampled_from(["", "", "/"]),
    st.sampled_from(["", "", " "]),
)
files = st.lists(st.lists(pattern, max_size=5), min_size=1, max_size=2)


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    root = tmp_path_factory.mktemp("ignore")
    subprocess.run(["git", "init", "-q", str(root)], env=ENV, check=True, timeout=60)
    dice = random.Random(1)
    paths = {}
    for _ in range(120):
        parts = [dice.choice(NAMES) for _ in range(dice.randint(1, 4))]
        for depth in range(1, len(parts)):
            paths["/".join(parts[:depth])] = True
        paths.setdefault("/".join(parts), False)
    kept = {}
    for path, directory in sorted(paths.items()):
        if directory:
            os.makedirs(root / path, exist_ok=True)
        elif not (root / path).exists():
            (root / path).write_text("x")
        kept[path] = (root / path).is_dir()
    return root, kept


def ours(texts, path, directories):
    """The walk's way: every parent first, then the path itself."""
    stack = [parse(texts[0].encode())]
    parts = path.split("/")
    for depth in range(1, len(parts) + 1):
        here = "/".join(parts[:depth])
        if is_ignored(stack, here.encode(), directory=directories[here]):
            return True
        if here == "a" and len(texts) > 1:
            stack.append(parse(texts[1].encode(), "a/"))
    return False


@settings(max_examples=100)
@given(texts=files)
def test_every_path_is_ignored_exactly_when_git_says_so(repository, texts):
    root, paths = repository
    lines = ["\n".join(lines) + "\n" for lines in texts]
    (root / ".gitignore").write_text(lines[0])
    inner = root / "a" / ".gitignore"
    inner.unlink(missing_ok=True)
    if len(lines) > 1 and (root / "a").is_dir():
        inner.write_text(lines[1])
    done = subprocess.run(
        ["git", "check-ignore", "-z", "--stdin", "--no-index"],
        input="\0".join(paths).encode(), cwd=root, env=ENV, capture_output=True, timeout=60, check=False,
    )  # fmt: skip
    git = {name.decode() for name in done.stdout.split(b"\0") if name}
    mine = {path for path in paths if ours(lines, path, paths)}
    assert mine == git, (lines, sorted(mine ^ git))


@settings(max_examples=300)
@given(text=st.binary(max_size=300), path=st.binary(min_size=1, max_size=60))
def test_no_ignore_file_and_no_name_is_a_fault(text, path):
    is_ignored([parse(text)], path.replace(b"\0", b""), directory=False)


def test_a_pattern_made_to_stall_is_answered_at_once():
    rules = parse(b"*a*a*a*a*a*a*a*a*a*a*a*a*b\n" * 20)
    start = time.process_time()
    assert not is_ignored([rules], b"a" * 250, directory=False)
    assert time.process_time() - start < 10  # by trying all that may fit it would take for ever


def test_a_file_beyond_the_cap_ignores_nothing():
    assert parse(b"*\n" * MAX_BYTES).patterns == ()


@pytest.mark.parametrize("version", ["2", "3", "4"])
def test_the_index_names_what_git_tracks(tmp_path, version):
    subprocess.run(["git", "init", "-q", str(tmp_path)], env=ENV, check=True, timeout=60)
    names = ["a", "b.txt", "a.d/b.txt", "a.d/c/deep.txt", "long/" + "n" * 200 + "/" + "m" * 220, "é/ü", "x/y.txt"]
    for name in names:
        os.makedirs(tmp_path / os.path.dirname(name), exist_ok=True)
        (tmp_path / name).write_text("x")
    git = ["git", "-c", f"index.version={version}"]
    subprocess.run([*git, "add", "-A"], cwd=tmp_path, env=ENV, check=True, timeout=60)
    if version == "3":
        subprocess.run(
            [*git, "update-index", "--skip-worktree", "a", "x/y.txt"], cwd=tmp_path, env=ENV, check=True, timeout=60
        )
    tracked = Tracked((tmp_path / ".git" / "index").read_bytes())
    for name in names:
        assert tracked.covers(name.encode(), directory=False), name
        if "/" in name:
            assert tracked.covers(os.path.dirname(name).encode(), directory=True)
    if version != "4":  # of version 4 every name counts as tracked, so that the gate sees it
        for name in ("txt", "c/deep.txt", "y.txt", "b", "a.d", "nothing"):
            assert not tracked.covers(name.encode(), directory=False), name
        for name in ("c", "d", "a", "nothing"):
            assert not tracked.covers(name.encode(), directory=True), name
    assert not Tracked(b"").covers(b"a", directory=False)
    assert Tracked(b"garbage").covers(b"a", directory=False)


def test_an_index_counts_as_split_by_its_extension_not_by_a_files_name(tmp_path):
    def git(*words):
        subprocess.run(["git", *words], cwd=tmp_path, check=True, env={"PATH": "/usr/bin:/bin"}, timeout=60)

    git("init", "-q")
    for length in range(1, 10):
        (tmp_path / ("l" * length + "link")).touch()
    git("add", "-A")
    assert not Tracked((tmp_path / ".git" / "index").read_bytes()).unreadable
    git("update-index", "--split-index")
    split = Tracked((tmp_path / ".git" / "index").read_bytes(), b"\0a/b\0c\0")
    assert split.unreadable
    assert split.covers(b"a", directory=True)
    assert split.covers(b"c", directory=False)
    assert not split.covers(b"a", directory=False)
    assert not split.covers(b"b", directory=False)


def test_the_time_does_not_grow_with_the_number_of_patterns(monkeypatch):
    asked = []
    real = _Together.matching
    monkeypatch.setattr(_Together, "matching", lambda self, text: asked.append(text) or real(self, text))
    rules = parse(b"".join(b"x%d*y%d?[ab]z\n/a/%d*\n!k%d*\n" % (n, n, n, n) for n in range(1000)))
    assert is_ignored([rules], b"a/7more", directory=False)
    assert is_ignored([rules], b"b/x9--y9-az", directory=False)
    assert not is_ignored([rules], b"b/k5", directory=False)
    assert len(asked) == 6
