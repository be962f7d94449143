"""``ringfence ledger`` on a folder, without a supervisor."""

import contextlib
import json
import os
import re
import shutil
import sqlite3
import subprocess
import time
from pathlib import Path

import pytest

from ringfence.cli import ledger_show
from ringfence.cli.main import main
from ringfence.ledger import anchors, record
from ringfence.ledger.log import Ledger
from ringfence.ledger.start import now
from ringfence.model.call import ToolCall
from ringfence.model.entry import Entry, EntryKind
from ringfence.model.ids import MissionId
from ringfence.policy.facts import gather
from ringfence.policy.policy import Policy
from ringfence.policy.store import PolicyStore

POLICY = """
version: 1
fail_closed: true
commands:
  allow:
    - argv_prefix: ["git", "status"]
"""


@pytest.fixture
def state(tmp_path, monkeypatch) -> Path:
    """A test root with a ledger of three calls: two allowed, one denied."""
    root = tmp_path / "root"
    repository = tmp_path / "repository"
    repository.mkdir()
    (root / "state").mkdir(parents=True)
    policy = Policy.parse(POLICY, root=str(repository))
    PolicyStore(str(root / "state" / "policies")).put(policy.effective())
    with Ledger.open(str(root / "state" / "ledger")) as ledger:
        for number, line in enumerate(["git status", "git status -s", "rm -rf / \x1b[31m"]):
            call = ToolCall.shell(line, cwd=str(repository))
            facts = gather(policy.questions(call), call, root=policy.root)
            decision = policy.decide_with(call, facts)
            body = record.intent_body(call, facts, decision, extra={"agent": "tester"})
            entry = Entry(kind=EntryKind.INTENT, time=now(), mission=MissionId("m-1"), call=f"c-{number}", body=body)
            ledger.append([entry])
            if number < 2:
                ledger.append(
                    [
                        Entry(
                            kind=EntryKind.RESULT,
                            time=now(),
                            mission=MissionId("m-1"),
                            call=f"c-{number}",
                            body={"exit": 0},
                        )
                    ]
                )
    return root


def ringfence(state: Path, *words: str) -> int:
    return main(["--test-root", str(state), "ledger", *words])


def test_show_lists_filters_and_escapes(state, capsys):
    assert ringfence(state, "show") == 0
    out, err = capsys.readouterr()
    assert "ALLOW git status  [" in out
    assert "\x1b" not in out
    assert "no anchor" in err
    assert ringfence(state, "show", "--tier", "deny", "--json") == 0
    (row,) = capsys.readouterr().out.splitlines()
    assert json.loads(row)["call"] == "c-2"
    assert ringfence(state, "show", "--program", "git", "--limit", "1") == 0
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 1
    assert "--before" in err


@pytest.mark.parametrize("body", [{"exit": 0, "duration": "x"}, {"exit": [], "duration": None}])
def test_a_record_of_another_make_is_shown_as_far_as_it_says_something(body):
    record = {"seq": 1, "time": 1_800_000_000_000_000, "kind": "tool.result", "body": body}
    assert "exit" in ledger_show.line(record)
    request = {"decision": {"tier": 5}, "request": {"host": "h"}}
    assert "h:None" in ledger_show.line({**record, "body": request})


def test_what_was_denied_is_told_in_the_line_of_its_result_violations_first():
    def seen(kind, detail, count=1, *, violation=False):
        return {"kind": kind, "detail": detail, "count": count, "violation": violation}

    quiet = [
        seen("exec", "/usr/bin/true"),
        seen("hidden-path", "/etc/xdg/x"),
        seen("credential-read", "/home/agent/.npmrc"),
    ]
    denied = [
        seen("refused-write", "remove /usr/x", 2),
        seen("egress", {"hex": "6e616d6520ff"}),
        seen("refused-syscall", "mount"),
    ]
    touched = seen("decoy", "/home/agent/.aws/credentials\x1b", violation=True)
    gate = {
        "refused": [{"path": ".git/config", "rule": "protected/git-config"}],
        "history": {"held": [{"name": "refs/heads/x", "rule": "r"}]},
    }
    record = {"seq": 1, "time": 1_800_000_000_000_000, "kind": "tool.result", "mission": "m"}

    def says(**body):
        return ledger_show.line({**record, "body": body}).partition("  m  ")[2]

    assert says(exit=0, duration=1000, observations=quiet) == "exit 0, 0.001 s"
    assert says(exit=0, duration=1000, observations=[*quiet, *denied[:2]]) == (
        "exit 0, 0.001 s: refused-write remove /usr/x (2 times), egress name \\xff"
    )
    assert says(exit=1, duration=1000, observations=[*denied, touched]) == (
        "exit 1, 0.001 s, violation: decoy /home/agent/.aws/credentials\\x1b, refused-write remove /usr/x (2 times), "
        "egress name \\xff and 1 more"
    )
    assert says(gate={"committed": [{}, {}], **gate}, root="/w") == (
        "committed 2 in /w, violation: refused .git/config [protected/git-config], held refs/heads/x [r]"
    )
    assert says(exit=0, duration=1000, observations=[{"kind": 3}, "x"], gate={"refused": [{}]}).startswith(
        "exit 0, 0.001 s, violation"
    )


def test_verify_is_not_a_pass_without_an_anchor_and_ok_with_one(state, capsys, tmp_path):
    assert ringfence(state, "verify") == 14
    assert "NO_ANCHOR" in capsys.readouterr().out
    (tmp_path / "elsewhere").mkdir()
    assert ringfence(state, "anchor", "--add", f"copy:{tmp_path}/elsewhere") == 0
    assert ringfence(state, "lag") == 0
    capsys.readouterr()
    assert ringfence(state, "verify", "--json", "--replay") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["verdict"] == "OK"
    assert found["replay"] == {"allowed": 2, "lawful": 2, "not_replayed": 0, "undecided": 0}


def test_an_anchor_that_is_gone_can_be_taken_away(state, capsys, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    assert ringfence(state, "anchor", "--add", f"copy:{tmp_path}/elsewhere") == 0
    shutil.rmtree(tmp_path / "elsewhere")
    assert ringfence(state, "checkpoint") == 1
    assert "anchor --remove" in capsys.readouterr().err
    assert ringfence(state, "anchor", "--remove", f"copy:{tmp_path}/elsewhere") == 0
    assert ringfence(state, "verify") == 14


def test_an_altered_ledger_is_exit_12_for_reading_and_for_appending(state, capsys):
    segment = next((state / "state" / "ledger" / "segments").iterdir())
    content = segment.read_bytes()
    segment.write_bytes(content.replace(b"git status -s", b"git status -v"))
    assert ringfence(state, "verify") == 12
    assert "ALTERED" in capsys.readouterr().out
    assert ringfence(state, "checkpoint") == 12


def test_a_permission_that_the_policy_would_not_give_is_a_mismatch(state, capsys, tmp_path):
    with Ledger.open(str(state / "state" / "ledger")) as ledger:
        policy = Policy.parse(POLICY, root=str(tmp_path / "repository"))
        call = ToolCall.shell("git push", cwd=str(tmp_path / "repository"))
        facts = gather(policy.questions(call), call, root=policy.root)
        body = record.intent_body(call, facts, policy.decide_with(call, facts))
        body["decision"]["tier"] = "allow"
        ledger.append([Entry(kind=EntryKind.INTENT, time=now(), call="c-9", body=body)])
    assert ringfence(state, "verify", "--replay") == 12
    assert "POLICY_MISMATCH" in capsys.readouterr().out


def forge(state: Path, repository: Path, text: str, *, mission: str = "", **extra: str) -> None:
    """An intent that is allowed by the policy ``text``, or is said to be."""
    with Ledger.open(str(state / "state" / "ledger")) as ledger:
        policy = Policy.parse(text, root=str(repository))
        PolicyStore(str(state / "state" / "policies")).put(policy.effective())
        call = ToolCall.shell("git diff", cwd=str(repository))
        facts = gather(policy.questions(call), call, root=policy.root)
        body = record.intent_body(call, facts, policy.decide_with(call, facts), extra=extra)
        body["decision"]["tier"] = "allow"
        ledger.append(
            [Entry(kind=EntryKind.INTENT, time=now(), mission=MissionId(mission) if mission else None, body=body)]
        )


def replayed(state: Path, capsys) -> str:
    ringfence(state, "verify", "--replay", "--json")
    return str(json.loads(capsys.readouterr().out)["verdict"])


def test_a_mark_of_a_secret_beside_the_call_excuses_nothing(state, capsys, tmp_path):
    forge(state, tmp_path / "repository", POLICY, agent="hmac:1:" + "0" * 32)
    assert replayed(state, capsys) == "POLICY_MISMATCH"


def test_a_decision_under_a_policy_that_the_mission_never_had_is_a_mismatch(state, capsys, tmp_path):
    lax = POLICY + '    - argv_prefix: ["git", "diff"]\n'
    first, second = (Policy.parse(text, root=str(tmp_path / "repository")).digest for text in (POLICY, lax))
    with Ledger.open(str(state / "state" / "ledger")) as ledger:
        start = {"action": "start", "policy": first}
        ledger.append([Entry(kind=EntryKind.MISSION, time=now(), mission=MissionId("m-7"), body=start)])
    assert replayed(state, capsys) == "NO_ANCHOR"
    with Ledger.open(str(state / "state" / "ledger")) as ledger:
        reload = {"action": "reload", "before": first, "after": second}
        ledger.append([Entry(kind=EntryKind.POLICY, time=now(), mission=MissionId("m-8"), body=reload)])
    forge(state, tmp_path / "repository", lax, mission="m-8")  # its start is not here: nothing is known
    assert replayed(state, capsys) == "NO_ANCHOR"
    forge(state, tmp_path / "repository", lax, mission="m-7")
    assert replayed(state, capsys) == "POLICY_MISMATCH"


def test_a_mission_may_decide_by_each_policy_that_it_was_given(state, capsys, tmp_path):
    lax = POLICY + '    - argv_prefix: ["git", "diff"]\n'
    first, second = (Policy.parse(text, root=str(tmp_path / "repository")).digest for text in (POLICY, lax))
    with Ledger.open(str(state / "state" / "ledger")) as ledger:
        for kind, body in (
            (EntryKind.MISSION, {"action": "start", "policy": first}),
            (EntryKind.POLICY, {"action": "reload", "before": first, "after": second}),
        ):
            ledger.append([Entry(kind=kind, time=now(), mission=MissionId("m-7"), body=body)])
    forge(state, tmp_path / "repository", lax, mission="m-7")
    assert replayed(state, capsys) == "NO_ANCHOR"


def test_a_stored_policy_that_was_altered_is_a_mismatch_and_one_that_is_gone_is_told(state, capsys):
    (stored,) = (state / "state" / "policies").glob("*.json")
    content = stored.read_bytes()
    stored.write_bytes(content + b" ")
    assert replayed(state, capsys) == "POLICY_MISMATCH"
    stored.unlink()
    assert ringfence(state, "verify", "--replay") == 14
    assert "2 could not be decided again" in capsys.readouterr().out


@pytest.mark.parametrize("loss", ["policy", "request", "context", "side store"])
def test_a_permission_that_cannot_be_decided_again_is_never_a_pass(state, capsys, tmp_path, loss):
    if loss == "policy":
        for stored in (state / "state" / "policies").glob("*.json"):
            stored.unlink()
    else:
        body: dict = {"decision": {"tier": "allow", "policy": "0" * 64, "reasons": []}, "cwd": "/", "facts": {}}
        parts = {
            "request": {"request": {"kind": "shell", "line": {"hex": "zz"}}},
            "context": {"request": {"kind": "shell", "line": "x"}, "context": {"remotes": 5}},
            "side store": {"request": {"kind": "file", "action": "write", "path": "/x", "content": "text"}},
        }
        with Ledger.open(str(state / "state" / "ledger")) as ledger:
            ledger.append(
                [Entry(kind=EntryKind.INTENT, time=now(), mission=MissionId("m-9"), body={**body, **parts[loss]})]
            )
        if loss == "side store":
            shutil.rmtree(state / "state" / "ledger" / "private")
    (tmp_path / "elsewhere").mkdir()
    assert ringfence(state, "anchor", "--add", f"copy:{tmp_path}/elsewhere") == 0
    assert ringfence(state, "verify") == 0
    capsys.readouterr()
    assert ringfence(state, "verify", "--replay") == 14
    assert "not proven" in capsys.readouterr().out
    if loss == "side store":  # what an entry says was erased is no loss
        assert ringfence(state, "erase", "--mission", "m-9", "--ground", "GDPR 17(1)(b)") == 0
        assert ringfence(state, "anchor") == 0
        assert ringfence(state, "verify", "--replay") == 0


def test_a_relative_path_is_one_below_where_one_is(state, tmp_path, monkeypatch, capsys):
    paths = [{"asked": "a", "real": str(tmp_path / "repository" / "src" / "a"), "kind": "file"}]
    with Ledger.open(str(state / "state" / "ledger")) as ledger:
        ledger.append([Entry(kind=EntryKind.OBSERVED, time=now(), body={"facts": {"paths": paths}})])
    monkeypatch.chdir(tmp_path / "repository")
    for written in ("src", "./src/a", str(tmp_path / "repository" / "src")):
        assert ringfence(state, "show", "--json", "--path", written) == 0
        assert len(capsys.readouterr().out.splitlines()) == 1, written
    assert ringfence(state, "show", "--json", "--path", "other") == 0
    assert not capsys.readouterr().out


def test_a_head_may_come_through_a_pipe(state, capsys):
    head = (state / "state" / "ledger" / "checkpoint").read_bytes()
    reading, writing = os.pipe()
    os.write(writing, head)
    os.close(writing)
    assert ringfence(state, "verify", "--checkpoint", f"/dev/fd/{reading}") == 0
    os.close(reading)
    assert capsys.readouterr().out.startswith("OK")


def test_an_index_that_came_with_a_copy_hides_nothing(state, tmp_path, capsys):
    assert ringfence(state, "show", "--tier", "deny", "--json") == 0
    copy = tmp_path / "copy"
    shutil.copytree(state / "state" / "ledger", copy)
    with contextlib.closing(sqlite3.connect(copy / "index.sqlite")) as database, database:
        database.execute("UPDATE records SET tier = 'allow'")
    capsys.readouterr()
    assert ringfence(state, "show", "--tier", "deny", "--json", "--ledger", str(copy)) == 0
    assert json.loads(capsys.readouterr().out)["call"] == "c-2"


def test_nothing_in_a_folder_that_came_from_elsewhere_chooses_its_anchors_or_runs(state, tmp_path, capsys):
    folder, marker, bare = tmp_path / "from-elsewhere", tmp_path / "ran", tmp_path / "anchor.git"
    shutil.copytree(state / "state" / "ledger", folder)
    log = anchors.FileAnchor(path=str(folder / "checkpoint")).heads()
    (folder / "mine").mkdir()
    shutil.copy(folder / "checkpoint", folder / "mine" / f"{next(iter(log))}.checkpoint")
    subprocess.run(["git", "init", "-q", "--bare", str(bare)], check=True, timeout=30)
    for place in (f"copy:{folder}/mine", "git:nobody.invalid:team#refs/ringfence/ledger"):
        anchors.configure(str(folder), [place])
        scratch = Path(anchors.parse_anchor("git:nobody.invalid:team", str(folder))._repository)
        shutil.rmtree(scratch, ignore_errors=True)
        subprocess.run(["git", "init", "-q", "--bare", str(scratch)], check=True, timeout=30)
        with (scratch / "config").open("a") as config:
            config.write(
                f'[remote "nobody.invalid:team"]\n\turl = {bare}\n\tuploadpack = "touch {marker}; git-upload-pack"\n'
            )
        assert ringfence(state, "verify", "--ledger", str(folder)) == 14
        told = capsys.readouterr().out
        assert "NO_ANCHOR" in told
        assert f"it names {place}" in told
        assert ringfence(state, "verify", "--ledger", str(folder), "--anchor", f"git:{bare}") == 14
        assert ringfence(state, "verify", "--ledger", str(folder), "--anchor", "git:nobody.invalid:team") == 1
        assert ringfence(state, "export", "--ledger", str(folder), "--out", str(tmp_path / place[:3])) == 0
        assert not (tmp_path / place[:3] / "anchors").exists()
        assert ringfence(state, "checkpoint", "--ledger", str(folder)) == (1 if place.startswith("git") else 0)
        assert not marker.exists()
        capsys.readouterr()


def test_the_own_ledger_by_its_name_is_no_folder_from_elsewhere(state, tmp_path):
    (tmp_path / "anchor").mkdir()
    assert ringfence(state, "anchor", "--add", f"copy:{tmp_path}/anchor") == 0
    (tmp_path / "name").symlink_to(state / "state" / "ledger")
    assert ringfence(state, "verify", "--ledger", str(tmp_path / "name")) == 0


def test_a_bundle_of_one_mission_is_refused_and_one_without_its_anchor_is_made(state, tmp_path, capsys):
    assert ringfence(state, "export", "--mission", "m-1", "--out", str(tmp_path / "one")) == 2
    assert not (tmp_path / "one").exists()
    (tmp_path / "anchor").mkdir()
    assert ringfence(state, "anchor", "--add", f"copy:{tmp_path}/anchor") == 0
    (tmp_path / "anchor").rename(tmp_path / "gone")
    capsys.readouterr()
    assert ringfence(state, "export", "--out", str(tmp_path / "all")) == 0
    assert "without the head of copy:" in capsys.readouterr().err


def test_how_far_anchors_are_behind_is_shown_by_the_doctor_too(state, tmp_path, capsys):
    def standing() -> list[str]:
        assert main(["--test-root", str(state), "doctor", "--json"]) in {0, 13}
        return json.loads(capsys.readouterr().out)["ledger"]

    assert "could be cut off unseen" in standing()[0]
    (tmp_path / "anchor").mkdir()
    assert ringfence(state, "anchor", "--add", f"copy:{tmp_path}/anchor") == 0
    capsys.readouterr()
    assert "covers everything" in standing()[0]
    (state / "state" / "ledger" / "anchors.json").write_text("{")
    assert standing()[0].startswith("bad-anchor")
    shutil.rmtree(state / "state" / "ledger")
    assert "none yet" in standing()[0]


def test_a_time_that_is_shown_is_taken_back_wherever_one_is(state, capsys, monkeypatch):
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        assert ringfence(state, "show", "--tier", "deny") == 0
        shown = capsys.readouterr().out[9:33]
        assert shown.endswith("Z")
        assert ringfence(state, "show", "--tier", "deny", "--json", "--since", shown) == 0
        assert len(capsys.readouterr().out.splitlines()) == 1
    finally:
        monkeypatch.undo()
        time.tzset()


def test_a_hold_answers_how_much_it_covers(state, capsys):
    for mission, covered in (("m-1", 5), ("m-l", 0)):
        assert ringfence(state, "hold", "place", "--mission", mission, "--because", "case 17", "--json") == 0
        assert json.loads(capsys.readouterr().out)["records"] == covered


def test_every_option_of_every_verb_says_what_it_is_for(capsys):
    for verb in ("show", "verify", "export", "proof", "anchor", "archive", "hold", "erase", "retention"):
        with pytest.raises(SystemExit):
            main(["ledger", verb, "--help"])
        told = re.sub(r"\n {10,}", "  ", capsys.readouterr().out)
        for line in told.splitlines():
            assert not re.match(r" +--", line) or re.match(r" +--\S+( \S+)?  +\S", line), (verb, line)


@pytest.mark.parametrize("depth", ["chain", "strict"])
def test_what_is_not_proven_comes_with_what_to_do(state, capsys, depth):
    assert ringfence(state, "verify", "--json", "--depth", depth) == 14
    assert json.loads(capsys.readouterr().out)["remedy"]
    assert ringfence(state, "verify", "--depth", depth) == 14
    assert "  fix: " in capsys.readouterr().out


def test_an_anchor_struck_from_the_list_by_hand_is_taken_away_in_the_open(state, tmp_path, capsys):
    places = [f"copy:{tmp_path}/{name}" for name in "ab"]
    for place in places:
        Path(place[5:]).mkdir()
        assert ringfence(state, "anchor", "--add", place) == 0
    anchors.configure(str(state / "state" / "ledger"), places[:1])
    capsys.readouterr()
    assert ringfence(state, "verify") == 14
    assert "--remove NAME" in capsys.readouterr().out
    Path(places[1][5:], "unreadable.checkpoint").mkdir()
    assert ringfence(state, "anchor", "--remove", places[1]) == 0
    assert ringfence(state, "verify") == 0
    assert ringfence(state, "anchor", "--remove", "copy:/never") == 1
    assert "bad-anchor" in capsys.readouterr().err


def test_export_proof_hold_and_index(state, capsys, tmp_path):
    assert ringfence(state, "export", "--out", str(tmp_path / "bundle")) == 0
    assert (tmp_path / "bundle" / "verify.py").exists()
    capsys.readouterr()
    assert ringfence(state, "export", "--format", "csv") == 0
    assert len(capsys.readouterr().out.splitlines()) > 5
    assert ringfence(state, "proof", "--entry", "2") == 0
    assert json.loads(capsys.readouterr().out)["index"] == 2
    assert ringfence(state, "proof", "--from", "2") == 0
    assert ringfence(state, "hold", "place", "--mission", "m-1", "--because", "case 17") == 0
    capsys.readouterr()
    assert ringfence(state, "hold", "list", "--json") == 0
    assert json.loads(capsys.readouterr().out)["holds"][0]["mission"] == "m-1"
    assert ringfence(state, "hold", "lift", "--id", "h-1") == 1
    assert "two people" in capsys.readouterr().err
    assert ringfence(state, "rebuild-index") == 0
    for verb in ("archive", "purge"):
        assert ringfence(state, verb, "--dry-run") == 0
    assert ringfence(state, "show", "--ledger", str(tmp_path / "bundle")) == 0


def test_no_ledger_is_a_clear_fault(tmp_path, capsys):
    assert ringfence(tmp_path, "show") == 1
    assert ringfence(tmp_path, "verify") == 1
    assert ringfence(tmp_path, "checkpoint") == 1
    assert capsys.readouterr().err.count("ledger-missing") == 3
