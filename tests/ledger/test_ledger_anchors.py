"""Anchors: a git ref, a copy elsewhere, a time stamp; what they remember is compared before anything is appended."""

import http.server
import os
import shutil
import subprocess
import threading
from pathlib import Path

import pytest

from ringfence.cli import ledger as cli
from ringfence.ledger import admin, anchor_git, anchors, export, keys
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
    subprocess.run(["git", "init", "--quiet", "--bare", str(tmp_path / "anchor.git")], check=True, timeout=30)
    return f"git:{tmp_path}/anchor.git#refs/ringfence/test"


def judge(directory: str) -> Verdict:
    return verify(directory, anchors=anchors.configured(directory), now=NOW).verdict


def anchored(make_ledger, make_entry, place: str) -> str:
    with make_ledger() as ledger:
        ledger.append([make_entry(n, EntryKind.OBSERVED) for n in range(5)])
        admin.perform(ledger, "anchor", {"add": [place]}, by=ME)
        return ledger.directory


def test_an_anchored_log_is_ok_and_its_lag_is_shown(make_ledger, make_entry, place):
    directory = anchored(make_ledger, make_entry, place)
    assert judge(directory) is Verdict.OK
    with make_ledger() as ledger:
        assert [s.lag_records for s in anchors.lag(directory, size=ledger.head.size, now=ledger.now)] == [0]
        ledger.append([make_entry(9, EntryKind.OBSERVED)])
        (behind,) = anchors.lag(directory, size=ledger.head.size, now=ledger.now)
        assert behind.lag_records == 2
        assert behind.lag_us > 0
        assert admin.tick(ledger)["anchor"]["anchors"][0]["size"] == ledger.head.size - 1
        assert admin.tick(ledger)["anchor"]["anchors"] == []
    assert judge(directory) is Verdict.OK


def test_a_log_rolled_back_to_an_older_copy_is_refused_before_anything_is_appended(
    make_ledger, make_entry, place, tmp_path
):
    directory = anchored(make_ledger, make_entry, place)
    old = tmp_path / "old"
    shutil.copytree(directory, old)
    with make_ledger() as ledger:
        ledger.append([make_entry(6, EntryKind.OBSERVED)])
        admin.perform(ledger, "anchor", {}, by=ME)
    for name in ("segments", "checkpoint", "keys"):
        target = Path(directory, name)
        shutil.rmtree(target) if target.is_dir() else target.unlink()
        (shutil.copytree if (old / name).is_dir() else shutil.copy)(old / name, target)
    before = sorted(p.read_bytes() for p in Path(directory, "segments").iterdir())
    with pytest.raises(LedgerError) as refused:
        make_ledger()
    assert (refused.value.code, "TRUNCATED" in refused.value.what) == ("ledger-altered", True)
    assert sorted(p.read_bytes() for p in Path(directory, "segments").iterdir()) == before
    assert judge(directory) is Verdict.TRUNCATED


def test_a_removed_log_cannot_begin_anew_while_the_anchor_remembers_it(make_ledger, make_entry, place):
    directory = anchored(make_ledger, make_entry, place)
    for name in ("segments", "keys"):
        shutil.rmtree(Path(directory, name))
    Path(directory, "checkpoint").unlink()
    with pytest.raises(LedgerError) as refused:
        make_ledger()
    assert "TRUNCATED" in refused.value.what
    assert judge(directory) is Verdict.TRUNCATED


def test_an_anchor_that_cannot_be_read_keeps_the_ledger_closed(make_ledger, make_entry, place, tmp_path):
    directory = anchored(make_ledger, make_entry, place)
    location = Path(place.split(":")[1].split("#")[0])
    shutil.move(location, tmp_path / "away")
    with pytest.raises(LedgerError) as refused:
        make_ledger()
    assert refused.value.code == "anchor-unreadable"
    shutil.move(tmp_path / "away", location)
    make_ledger().close()
    assert judge(directory) is Verdict.OK


def test_an_anchor_that_was_taken_from_the_list_by_hand_is_no_pass(make_ledger, make_entry, place, tmp_path):
    directory = anchored(make_ledger, make_entry, place)
    (tmp_path / "own").mkdir()
    with make_ledger() as ledger:
        admin.perform(ledger, "anchor", {"add": [f"copy:{tmp_path}/own"]}, by=ME)
    assert judge(directory) is Verdict.OK
    anchors.configure(directory, [f"copy:{tmp_path}/own"])
    found = verify(directory, anchors=anchors.configured(directory), now=NOW)
    assert found.verdict is Verdict.NO_ANCHOR
    assert place.partition("#")[0] in found.detail
    with make_ledger() as ledger:
        admin.perform(ledger, "anchor", {"add": [place]}, by=ME)
    assert judge(directory) is Verdict.OK
    with make_ledger() as ledger:
        admin.perform(ledger, "anchor", {"remove": [f"copy:{tmp_path}/own"]}, by=ME)
    assert judge(directory) is Verdict.OK


def test_anchors_that_disagree_are_a_fork_whichever_is_asked_first(make_ledger, make_entry, tmp_path):
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    places = [f"copy:{tmp_path}/one", f"copy:{tmp_path}/two"]
    with make_ledger() as ledger:
        ledger.append([make_entry(n, EntryKind.OBSERVED) for n in range(5)])
        admin.perform(ledger, "anchor", {"add": places}, by=ME)
        directory = ledger.directory
        key = keys.load_key(directory, 1)
        fork = keys.sign(key, log=ledger.head.log, epoch=1, size=4, root=bytes(32))
    assert judge(directory) is Verdict.OK
    for place in ("one", "two"):
        file = next((tmp_path / place).iterdir())
        kept = file.read_bytes()
        file.write_bytes(fork.text())
        assert judge(directory) is Verdict.FORKED
        with pytest.raises(LedgerError) as refused:
            make_ledger()
        assert "FORKED" in refused.value.what
        file.write_bytes(kept)


def test_a_stale_clone_in_the_place_of_the_repository_is_told(make_ledger, make_entry, tmp_path):
    bare = tmp_path / "anchor.git"
    subprocess.run(["git", "init", "--quiet", "--bare", str(bare)], check=True, timeout=30)
    directory = anchored(make_ledger, make_entry, f"git:{bare}#refs/ringfence/test")
    shutil.copytree(bare, tmp_path / "stale")
    with make_ledger() as ledger:
        ledger.append([make_entry(6, EntryKind.OBSERVED)])
        admin.perform(ledger, "anchor", {}, by=ME)
    shutil.rmtree(bare)
    shutil.move(tmp_path / "stale", bare)
    with pytest.raises(LedgerError) as told:
        judge(directory)
    assert told.value.code == "ledger-altered"


def test_another_log_on_the_same_anchor_is_part_of_the_set(make_ledger, make_entry, place):
    anchored(make_ledger, make_entry, place)
    with make_ledger("second") as ledger:
        anchors.configure(ledger.directory, [place])
    with pytest.raises(LedgerError):
        make_ledger("second")
    assert judge(ledger.directory) is Verdict.TRUNCATED


def test_an_anchor_of_another_ledger_is_not_taken_and_told_nothing(make_ledger, make_entry, place):
    first = anchored(make_ledger, make_entry, place)
    with make_ledger("second") as ledger:
        with pytest.raises(LedgerError, match="another log") as refused:
            admin.perform(ledger, "anchor", {"add": [place]}, by=ME)
        assert refused.value.code == "bad-anchor"
        anchor = anchors.parse_anchor(place, ledger.directory)
        with pytest.raises(LedgerError, match="another log"):
            anchor.push(ledger.head.log, ledger.checkpoint(), lambda _: None)
    with make_ledger("second") as ledger:
        assert anchors.names(ledger.directory) == []
    assert judge(first) is Verdict.OK


@pytest.mark.parametrize(
    "text",
    [
        "git:https://me:hunter2@git.example.org/a.git",
        "git:https://0123456789abcdef0123@git.example.org/a.git",
        "rfc3161:https://tsa.example.org/tsr?token=0123456789abcdef0123#/roots.pem",
    ],
)
def test_an_anchors_address_with_a_secret_in_it_is_refused_before_it_is_shown(make_ledger, text):
    with make_ledger() as ledger:
        with pytest.raises(LedgerError, match="password or token") as refused:
            admin.perform(ledger, "anchor", {"add": [text]}, by=ME)
        assert refused.value.code == "bad-anchor"
        assert text[-12:] not in str(refused.value)
        assert anchors.names(ledger.directory) == []


def test_a_rewound_or_deleted_git_ref_is_told_from_a_new_one(make_ledger, make_entry, tmp_path):
    bare = tmp_path / "anchor.git"
    subprocess.run(["git", "init", "--quiet", "--bare", str(bare)], check=True, timeout=30)
    directory = anchored(make_ledger, make_entry, f"git:{bare}#refs/ringfence/test")

    def git(*words: str) -> str:
        return subprocess.run(
            ["git", "-c", "safe.directory=*", "--git-dir", str(bare), *words],
            check=True,
            timeout=30,
            capture_output=True,
            text=True,
        ).stdout.strip()

    first = git("rev-parse", "refs/ringfence/test")
    with make_ledger() as ledger:
        ledger.append([make_entry(6, EntryKind.OBSERVED)])
        admin.perform(ledger, "anchor", {}, by=ME)
    assert git("rev-list", "--count", "refs/ringfence/test") == "2"
    git("update-ref", "refs/ringfence/test", first)
    with pytest.raises(LedgerError) as rewound:
        judge(directory)
    assert rewound.value.code == "ledger-altered"
    git("update-ref", "-d", "refs/ringfence/test")
    with pytest.raises(LedgerError) as gone:
        make_ledger()
    assert gone.value.code == "ledger-altered"


def test_hooks_and_configuration_of_a_person_do_not_run_in_an_anchoring(make_ledger, make_entry, tmp_path, monkeypatch):
    home = tmp_path / "home"
    home.mkdir()
    marker = tmp_path / "ran"
    (home / ".gitconfig").write_text(
        f"[core]\n\tfsmonitor = touch {marker}\n\thooksPath = {home}\n[alias]\n\tpush = !touch {marker}\n"
    )
    for hook in ("pre-push", "reference-transaction"):
        (home / hook).write_text(f"#!/bin/sh\ntouch {marker}\n")
        (home / hook).chmod(0o755)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "else"))
    subprocess.run(
        ["git", "init", "--quiet", "--bare", str(tmp_path / "a.git")],
        check=True,
        timeout=30,
        env={"PATH": "/usr/bin:/bin"},
    )
    anchored(make_ledger, make_entry, f"git:{tmp_path}/a.git")
    assert not marker.exists()


def test_a_repository_on_this_machine_that_belongs_to_somebody_else_is_an_anchor(
    make_ledger, make_entry, tmp_path, monkeypatch
):
    monkeypatch.setitem(anchor_git._NEUTRAL, "GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")  # git's own way to test that
    for name in ("plain.git", 'odd "name".git'):
        subprocess.run(["git", "init", "--quiet", "--bare", str(tmp_path / name)], check=True, timeout=30)
        with make_ledger(f"ledger of {name}") as ledger:
            ledger.append([make_entry(0, EntryKind.OBSERVED)])
            admin.perform(ledger, "anchor", {"add": [f"git:{tmp_path}/{name.removesuffix('.git')}"]}, by=ME)
        assert judge(ledger.directory) is Verdict.OK


@pytest.mark.parametrize(
    "text",
    ["", "copy:relative", "git:", "git:-oProxy=x", "git:../a.git#r", "git:a.git", "ftp:x", "rfc3161:file:///etc"],
)
def test_words_that_name_no_anchor_are_refused(make_ledger, text):
    with make_ledger() as ledger, pytest.raises(LedgerError) as refused:
        admin.perform(ledger, "anchor", {"add": [text]}, by=ME)
    assert refused.value.code == "bad-anchor"


@pytest.mark.parametrize("text", ["copy:{}/not-there", "git:{}/not-there.git#refs/x"])
def test_an_anchor_that_cannot_be_asked_is_not_taken_into_the_list(make_ledger, make_entry, tmp_path, text):
    with make_ledger() as ledger:
        ledger.append([make_entry(0, EntryKind.OBSERVED)])
        with pytest.raises(LedgerError, match="cannot be read") as refused:
            admin.perform(ledger, "anchor", {"add": [text.format(tmp_path)]}, by=ME)
        assert refused.value.code == "anchor-unreadable"
        assert anchors.names(ledger.directory) == []
        directory = ledger.directory
    with make_ledger() as ledger:  # it opens as before
        assert ledger.directory == directory


def test_one_anchor_that_is_gone_does_not_keep_the_others_from_being_told(make_ledger, make_entry, tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    with make_ledger() as ledger:
        ledger.append([make_entry(0, EntryKind.OBSERVED)])
        admin.perform(ledger, "anchor", {"add": [f"copy:{tmp_path}/{name}" for name in ("one", "two")]}, by=ME)
        (tmp_path / "one").rename(tmp_path / "gone")
        ledger.append([make_entry(1, EntryKind.OBSERVED)])
        before = (tmp_path / "two" / f"{ledger.head.log}.checkpoint").read_bytes()
        with pytest.raises(LedgerError) as refused:
            admin.perform(ledger, "anchor", {}, by=ME)
        assert refused.value.where == f"copy:{tmp_path}/one"
        assert (tmp_path / "two" / f"{ledger.head.log}.checkpoint").read_bytes() != before


@pytest.fixture
def authority(tmp_path):
    """A time stamp authority of our own behind HTTP on loopback: (URL, roots file, a switch that makes it lie)."""
    home = tmp_path / "tsa"
    home.mkdir()
    (home / "tsa.cnf").write_text(
        f"[tsa]\ndefault_tsa = one\n[one]\nserial = {home}/serial\ncrypto_device = builtin\nsigner_cert = {home}/tsa.pem\n"
        f"signer_key = {home}/tsa.key\nsigner_digest = sha256\ndefault_policy = 1.2.3.4\ndigests = sha256, sha384, sha512\n"
        f"ess_cert_id_alg = sha256\naccuracy = secs:1\n[ext]\nextendedKeyUsage = critical,timeStamping\nkeyUsage = critical,digitalSignature\n"
    )
    (home / "serial").write_text("01\n")

    def openssl(*words: str) -> None:
        subprocess.run(["openssl", *words], check=True, timeout=60, capture_output=True, cwd=home)

    openssl(
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-keyout",
        "ca.key",
        "-out",
        "ca.pem",
        "-days",
        "30",
        "-subj",
        "/CN=Test root",
    )
    openssl("req", "-newkey", "rsa:2048", "-nodes", "-keyout", "tsa.key", "-out", "tsa.csr", "-subj", "/CN=Test TSA")
    openssl(
        "x509",
        "-req",
        "-in",
        "tsa.csr",
        "-CA",
        "ca.pem",
        "-CAkey",
        "ca.key",
        "-CAcreateserial",
        "-out",
        "tsa.pem",
        "-days",
        "30",
        "-extfile",
        "tsa.cnf",
        "-extensions",
        "ext",
    )
    lie = threading.Event()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if not lie.is_set():
                (home / "query").write_bytes(body)
                openssl("ts", "-reply", "-config", "tsa.cnf", "-section", "one", "-queryfile", "query", "-out", "reply")
            answer = (home / "reply").read_bytes()
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *words) -> None:
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}", home / "ca.pem", lie
    server.shutdown()
    server.server_close()
    thread.join(10)


def test_a_time_stamp_anchors_and_a_token_for_something_else_does_not(make_ledger, make_entry, authority):
    url, roots, lie = authority
    directory = anchored(make_ledger, make_entry, f"rfc3161:{url}#{roots}")
    assert judge(directory) is Verdict.OK
    with make_ledger() as ledger:
        receipt = next(r.value["body"]["receipt"] for r in ledger.read() if r.value["body"].get("receipt"))
        assert "serial" in receipt
        ledger.append([make_entry(9, EntryKind.OBSERVED)])
        lie.set()
        with pytest.raises(LedgerError) as refused:
            admin.perform(ledger, "anchor", {}, by=ME)
        assert refused.value.code == "anchor-unreadable"
    another = anchors.parse_anchor(f"rfc3161:{url}/other#/another/ca.pem", directory)
    assert another.heads() == {}, "the tokens of one authority say nothing of another's"
    (token,) = Path(directory, "anchors", "timestamps").glob("*/*.tsr")
    content = bytearray(token.read_bytes())
    content[-5] ^= 1
    token.write_bytes(content)
    with pytest.raises(LedgerError):
        judge(directory)


def test_a_time_stamp_travels_in_an_export_and_is_checked_there_by_openssl(
    make_ledger, make_entry, authority, tmp_path
):
    url, roots, _ = authority
    directory = anchored(make_ledger, make_entry, f"rfc3161:{url}#{roots}")
    out = str(tmp_path / "out")
    heads, stamps = cli._anchored(directory)
    export.bundle(directory, out, anchored=heads, stamps=stamps)
    words = ["openssl", "ts", "-verify", "-data", "anchors/0.checkpoint", "-in", "anchors/0.tsr", "-CAfile", roots]
    done = subprocess.run(words, cwd=out, capture_output=True, text=True, timeout=60, check=False)
    assert "Verification: OK" in done.stdout + done.stderr
    assert verify(out, anchors=[anchors.FileAnchor(path=f"{out}/anchors/0.checkpoint")], now=NOW).verdict is Verdict.OK
    Path(out, "anchors/0.tsr").write_bytes(b"x")
    assert verify(out, now=NOW).verdict is Verdict.ALTERED


def test_of_the_time_stamps_of_an_hour_the_first_and_the_newest_stay(make_ledger, make_entry, authority):
    url, roots, _ = authority
    directory = anchored(make_ledger, make_entry, f"rfc3161:{url}#{roots}")

    def stamped() -> list[Path]:
        return sorted(Path(directory, "anchors", "timestamps").glob("*/*.checkpoint"))

    with make_ledger() as ledger:
        for number in range(4):
            ledger.append([make_entry(20 + number, EntryKind.OBSERVED)])
            admin.perform(ledger, "anchor", {}, by=ME)
        assert len(stamped()) == 2
        first, newest = stamped()
        os.utime(first, (1, 1))
        ledger.append([make_entry(30, EntryKind.OBSERVED)])
        admin.perform(ledger, "anchor", {}, by=ME)
    assert stamped()[:2] == [first, newest]
    assert len(stamped()) == 3
    assert len(list(Path(directory, "anchors", "timestamps").glob("*/*.tsr"))) == 3
    assert judge(directory) is Verdict.OK


def test_a_branch_whose_name_ends_like_the_ref_is_not_the_anchor(make_ledger, make_entry, tmp_path):
    repository = str(tmp_path / "anchor.git")
    subprocess.run(["git", "init", "--quiet", "--bare", repository], check=True, timeout=30)
    directory = anchored(make_ledger, make_entry, f"git:{repository}#refs/ringfence/test")
    run = ["git", "-C", repository]
    old = subprocess.run([*run, "rev-parse", "refs/ringfence/test"], capture_output=True, text=True, check=True).stdout
    with make_ledger() as ledger:
        ledger.append([make_entry(n, EntryKind.OBSERVED) for n in range(6, 9)])
        admin.perform(ledger, "anchor", {}, by=ME)
        size = ledger.head.size - 1
    subprocess.run([*run, "update-ref", "refs/heads/refs/ringfence/test", old.strip()], check=True)
    fresh = anchors.parse_anchor(f"git:{repository}#refs/ringfence/test", str(tmp_path / "auditor"))
    assert [head.size for head in fresh.heads().values()] == [size]
    assert judge(directory) is Verdict.OK


@pytest.mark.parametrize("ref", ["main", "refs/heads/*", "refs/a:refs/b", "refs/heads/a b", "HEAD"])
def test_a_ref_that_could_mean_another_is_no_anchor(tmp_path, ref):
    with pytest.raises(LedgerError, match="bad-anchor"):
        anchors.parse_anchor(f"git:{tmp_path}/anchor.git#{ref}", str(tmp_path))
