"""Two logs that grew from one: an anchor keeps what it was told first, and a head that was put on top of it hides nothing."""

import shutil
import subprocess
from pathlib import Path

import pytest

from ringfence.ledger import admin, anchors, keys, proof
from ringfence.ledger.log import Ledger
from ringfence.ledger.verdict import Verdict
from ringfence.ledger.verify import verify
from ringfence.model.entry import EntryKind
from ringfence.model.errors import LedgerError
from ringfence.model.ids import Micros
from ringfence.model.person import Person

ME = Person(name="me", uid=1000, how="peer")
NOW = Micros(1_800_000_001_000_000)


@pytest.fixture(params=["git", "copy"])
def place(request, tmp_path) -> str:
    """An anchor outside the ledger's folder."""
    if request.param == "copy":
        (tmp_path / "elsewhere").mkdir()
        return f"copy:{tmp_path}/elsewhere"
    return git(tmp_path)


def git(tmp_path: Path) -> str:
    subprocess.run(["git", "init", "--quiet", "--bare", str(tmp_path / "anchor.git")], check=True, timeout=30)
    return f"git:{tmp_path}/anchor.git#refs/ringfence/test"


def run_git(repository: str, *arguments: str, stdin: str = "") -> str:
    command = ["git", "-C", repository, "-c", "user.name=x", "-c", "user.email=x@example.org", *arguments]
    return subprocess.run(command, input=stdin, check=True, capture_output=True, text=True, timeout=30).stdout.strip()


def judge(directory: str) -> Verdict:
    return verify(directory, anchors=anchors.configured(directory), now=NOW).verdict


def grow(ledger: Ledger, make_entry, first: int, count: int) -> None:
    ledger.append([make_entry(first + n, EntryKind.OBSERVED) for n in range(count)])


@pytest.fixture
def twins(make_ledger, make_entry, place, tmp_path):
    """Two ledgers, copies of each other, which then took other entries."""
    with make_ledger("one") as ledger:
        grow(ledger, make_entry, 0, 5)
        admin.perform(ledger, "anchor", {"add": [place]}, by=ME)
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    with make_ledger("one") as one, make_ledger("two") as two:
        grow(one, make_entry, 100, 10)
        grow(two, make_entry, 200, 30)
        yield one, two


def test_a_longer_fork_does_not_make_the_anchor_forget_the_other(twins):
    one, two = twins
    admin.perform(one, "anchor", {}, by=ME)
    with pytest.raises(LedgerError, match="FORKED") as refused:
        admin.perform(two, "anchor", {}, by=ME)
    assert refused.value.code == "ledger-altered"
    admin.perform(one, "anchor", {}, by=ME)
    assert judge(one.directory) is Verdict.OK
    assert judge(two.directory) is Verdict.FORKED


def test_a_root_is_that_of_the_records_before_it_in_whatever_segment(make_ledger, make_entry):
    with make_ledger() as ledger:
        heads = []
        for number in range(12):
            grow(ledger, make_entry, number * 10, 10)
            heads.append(ledger.checkpoint())
        for head in heads:
            assert proof.root_at(ledger.directory, head.size) == head.root
        sealed = sorted(Path(ledger.directory, "segments").iterdir())
        assert len(sealed) > 2
        sealed[0].unlink()
        assert proof.root_at(ledger.directory, 1) is None
        assert proof.root_at(ledger.directory, heads[-1].size) == heads[-1].root


def test_a_head_put_on_top_of_another_hides_nothing_where_the_anchor_has_a_history(
    make_ledger, make_entry, tmp_path, monkeypatch
):
    place = git(tmp_path)
    with make_ledger("one") as ledger:
        grow(ledger, make_entry, 0, 5)
        admin.perform(ledger, "anchor", {"add": [place]}, by=ME)
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    with make_ledger("one") as ledger:
        grow(ledger, make_entry, 100, 10)
        admin.perform(ledger, "anchor", {}, by=ME)
        admin.perform(ledger, "anchor", {}, by=ME)
    assert judge(str(tmp_path / "one")) is Verdict.OK
    repository, ref = place.removeprefix("git:").split("#")
    top = run_git(repository, "mktree", stdin=f"040000 tree {run_git(repository, 'mktree')}\tlogs\n")
    run_git(repository, "update-ref", ref, run_git(repository, "commit-tree", "-m", "x", "-p", ref, top))
    monkeypatch.setattr("ringfence.ledger.anchor_git.refuse_rewind", lambda *_: None)  # as who has the key would
    two = Ledger.open(str(tmp_path / "two"), anchors=())
    grow(two, make_entry, 200, 40)
    admin.perform(two, "anchor", {}, by=ME)
    two.close()
    found = verify(two.directory, anchors=anchors.configured(two.directory), now=NOW)
    assert (found.verdict, place in found.detail) == (Verdict.FORKED, True)


def test_a_head_of_nobody_in_the_history_is_told(make_ledger, make_entry, tmp_path, monkeypatch):
    place = git(tmp_path)
    with make_ledger("one") as ledger:
        grow(ledger, make_entry, 0, 5)
        admin.perform(ledger, "anchor", {"add": [place]}, by=ME)
        log, epoch = ledger.head.log, ledger.epochs[-1].epoch
        (anchor,) = anchors.configured(ledger.directory)
        (tmp_path / "other" / "keys").mkdir(parents=True)
        keys.create_key(str(tmp_path / "other"), epoch)
        forged = keys.sign(keys.load_key(str(tmp_path / "other"), epoch), log=log, epoch=epoch, size=3, root=bytes(32))
        monkeypatch.setattr("ringfence.ledger.anchor_git.refuse_rewind", lambda *_: None)
        anchor.push(log, forged, lambda _: None)
        admin.perform(ledger, "anchor", {}, by=ME)
    assert judge(str(tmp_path / "one")) is Verdict.ALTERED
