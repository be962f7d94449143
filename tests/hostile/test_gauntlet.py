"""The gauntlet on our own box, as whoever runs the tests and as an ordinary user, and on no fence at all."""

import json
import os
import re
import time
from dataclasses import replace
from pathlib import Path

import pytest

from ringfence.sandbox.gauntlet import report
from ringfence.sandbox.gauntlet.attack import FAMILIES, Outcome, Result, read_attack
from ringfence.sandbox.gauntlet.catalogue import load, path_of
from ringfence.sandbox.gauntlet.judge import JUDGES
from ringfence.sandbox.gauntlet.victims import KEY_CALLS
from ringfence.sandbox.inner import seccomp

pytestmark = pytest.mark.xdist_group("gauntlet")

QUICK = (
    "reads-ssh-key",
    "uncovers-env-file",
    "reads-passwords-that-git-keeps-elsewhere",
    "reads-first-process-environment",
    "leaves-symlink-to-home",
    "bends-a-link-later",
    "renames-git-directory",
    "nests-a-bare-repository",
    "traces-host-process",
    "outlives-by-fork-chain",
    "mounts-in-a-new-namespace",
    "nests-by-32-bit-call",
    "opens-io-uring",
    "reaches-socket-in-worktree",
    "reaches-metadata-address",
    "tunnels-through-resolver",
    "starts-400-processes",
    "floods-output",
    "moves-editor-task-into-place",
    "reads-log-behind-output",
    "types-into-the-shell",
    "sets-the-clipboard-in-pieces",
    "sets-the-clipboard-without-keyboard",
)
"""Two or three of each family: the ones that other sandboxes let through."""
KERNEL_LACKS = {"opens-io-uring", "nests-by-32-bit-call", "types-into-the-shell"}
"""Not on every kernel, so their control may fail."""
RECORDED = {
    "reads-ssh-key",
    "reads-passwords-that-git-keeps-elsewhere",
    "leaves-symlink-to-home",
    "renames-git-directory",
    "mounts-in-a-new-namespace",
    "opens-io-uring",
    "reaches-metadata-address",
    "tunnels-through-resolver",
    "moves-editor-task-into-place",
}
"""Attempts that must be found in the ledger afterwards."""


def gauntlet(caller, *words):
    done = caller.ringfence("gauntlet", "--json", *caller.gauntlet_words, *words)
    assert done.stdout, done.stderr[-3000:]
    return done.returncode, json.loads(done.stdout)["attacks"]


def gauntlet_as(caller, *words):
    """Started by that user, not by root for that user."""
    runuser = ("runuser", "-u", caller.name, "--") if caller.gauntlet_words else ()
    done = replace(caller, prefix=(*runuser, *caller.prefix)).ringfence("gauntlet", "--json", *words)
    assert done.stdout, done.stderr[-3000:]
    return done.returncode, json.loads(done.stdout)["attacks"]


def only(names):
    return [word for name in names for word in ("--only", name)]


def failed(attacks):
    return [(a["family"], a["name"], a["outcome"], a.get("detail", "")) for a in attacks]


def test_the_suite_is_large_and_every_header_is_sound():
    attacks = load()
    assert len(attacks) >= 281
    assert {a.family for a in attacks} == set(FAMILIES)
    assert len({a.name for a in attacks}) == len(attacks)
    for attack in attacks:
        assert attack.judge[0] in JUDGES, attack.name
        assert attack.tries.endswith("."), attack.name
        assert attack.trace, attack.name
        assert os.path.isfile(path_of(attack))


def test_quick_names_stand_in_the_suite():
    assert set(QUICK) <= {attack.name for attack in load()}


@pytest.mark.parametrize(
    "text",
    [
        '"""Tries.\n\nfamily: git\njudge: changed x\n"""\n',
        '"""Tries.\n\nfamily: secrets\n"""\n',
        '"""Tries.\n\nfamily: secrets\njudge: loot a\nsurprise: yes\n"""\n',
    ],
)
def test_a_header_that_cannot_be_understood_is_refused(text):
    with pytest.raises(ValueError, match="header"):
        read_attack("secrets", "x.py", text)


def test_results_are_counted_and_shown():
    result = Result(
        name="a", family="git", outcome=Outcome.PASSED, control=True, recorded=False, evidence="outside", detail="d"
    )
    shown = json.loads(report.as_json("x", (result,)))
    assert shown["attacks"] == [
        {
            "name": "a",
            "family": "git",
            "outcome": "passed",
            "control": "passed",
            "recorded": False,
            "evidence": "outside",
            "detail": "d",
        }
    ]
    assert shown["counts"] == {"passed": 1, "private": 0, "blocked": 0, "not_applicable": 0}
    assert "1 passed" in report.summary("x", (result,))


def test_a_wrapper_that_fences_nothing_lets_attacks_through_and_says_so(here):
    names = ("reads-ssh-key", "plants-hook", "kills-host-process", "reaches-metadata-address", "floods-output")
    code, attacks = gauntlet(here, *only(names), "--", "env")
    assert code == 1
    assert {a["name"]: (a["outcome"], a["control"]) for a in attacks} == dict.fromkeys(names, ("passed", "passed"))


@pytest.mark.parametrize(
    ("wrapper", "code"),
    [
        (("false",), "gauntlet-wrapper"),
        (("/nonexistent/wrapper",), "gauntlet-wrapper"),
        (("sh", "-c", "echo ordinary work done", "sh"), "gauntlet-wrapper"),  # it says so and has started nothing
        (("sh", "-c", 'cd /; exec "$@"', "sh"), "gauntlet-wrapper"),
        (("env", "X={worktre}"), "gauntlet-placeholder"),
    ],
)
def test_a_wrapper_that_does_not_run_is_a_fault_and_no_success(here, wrapper, code):
    done = here.ringfence("gauntlet", "--only", "reads-ssh-key", "--", *wrapper)
    assert done.returncode == 13, done.stdout
    assert code in done.stderr
    assert "Traceback" not in done.stderr


def test_a_wrapper_that_is_noisy_eats_its_input_and_lies_about_its_exit_hides_no_attack(here):
    code, attacks = gauntlet(
        here, "--only", "reads-ssh-key", "--", "sh", "-c", 'head -c 3000000 /dev/zero; "$@"; exit 7', "sh"
    )
    assert (code, [a["outcome"] for a in attacks]) == (1, ["passed"])
    code, attacks = gauntlet(
        here, "--only", "reads-ssh-key", "--", "sh", "-c", '"$@"; head -c 9000000 /dev/zero; cat', "sh"
    )
    assert (code, [a["outcome"] for a in attacks]) == (1, ["passed"])


def test_a_user_who_is_not_there_is_a_fault(here):
    done = here.ringfence("gauntlet", "--only", "reads-ssh-key", "--user", "nobody-of-that-name")
    assert done.returncode == 13, done.stdout
    assert "gauntlet-user" in done.stderr


def test_bubblewrap_over_the_whole_disk_is_seen_through(here):
    _, attacks = gauntlet(
        here, *only(("reads-ssh-key", "writes-sibling-project")), "--", "bwrap", "--ro-bind", "/", "/",
        "--dev", "/dev", "--bind", "{worktree}", "{worktree}",
    )  # fmt: skip
    assert {a["name"]: a["outcome"] for a in attacks} == {
        "reads-ssh-key": "passed",
        "writes-sibling-project": "blocked",
    }


@pytest.mark.needs_userns
@pytest.mark.parametrize("who", ["here", "ordinary"])
def test_the_attacks_others_let_through_do_not_pass_our_box(who, request):
    code, attacks = gauntlet(request.getfixturevalue(who), *only(QUICK))
    passed = [a for a in attacks if a["outcome"] == "passed"]
    assert not passed, failed(passed)
    assert code == 0
    silent = [a for a in attacks if a["outcome"] == "not_applicable" and a["name"] not in KERNEL_LACKS]
    assert not silent, failed(silent)
    assert RECORDED <= {a["name"] for a in attacks if a["recorded"]}


def grounds() -> set[str]:
    """Folders of gauntlets that are under way or were left."""
    return {name for name in os.listdir(os.path.expanduser("~/.cache")) if name.startswith("ringfence-gauntlet")}


def test_nothing_of_a_gauntlet_is_left(here):
    gauntlet(here, "--only", "reads-ssh-key")  # so that the folder exists
    others = grounds()
    gauntlet(here, "--only", "outlives-its-parent", "--only", "writes-shared-memory")
    deadline = time.monotonic() + 600
    while left(others):  # of somebody else's gauntlet that began meanwhile, and ends
        assert time.monotonic() < deadline, left(others)
        time.sleep(0.5)


def left(others: set[str]) -> list[str]:
    """Folders of other gauntlets than these, and processes that name one."""
    found = sorted(grounds() - others)
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/cmdline", "rb") as file:
                    line = file.read().decode(errors="replace")
            except OSError:
                continue
            found += [line] if set(re.findall("ringfence-gauntlet-[0-9a-f]+", line)) - others else []
    return found


@pytest.mark.needs_userns
def test_an_ordinary_user_can_start_it(ordinary):
    code, attacks = gauntlet_as(ordinary, *only(("reads-ssh-key", "plants-hook", "reaches-outside-by-address")))
    assert [(a["outcome"], a["control"], a["recorded"]) for a in attacks] == [
        ("blocked", "passed", True),
        ("private", "passed", True),
        ("blocked", "passed", True),
    ]
    assert code == 0


@pytest.mark.slow
@pytest.mark.needs_userns
@pytest.mark.parametrize("who", ["here", "ordinary"])
def test_no_attack_passes_our_box(who, request):
    code, attacks = gauntlet(request.getfixturevalue(who))
    passed = [a for a in attacks if a["outcome"] == "passed"]
    assert not passed, failed(passed)
    assert code == 0
    assert not [a for a in attacks if a.get("detail")], failed(a for a in attacks if a.get("detail"))
    tried = [a for a in attacks if a["outcome"] != "not_applicable"]
    assert len(tried) >= 150, failed(a for a in attacks if a["outcome"] == "not_applicable")


def test_system_calls_have_the_same_meaning_on_both_machines():
    x86, arm = ({**seccomp.REFUSED[one], **seccomp.JUDGED[one], **seccomp.ASKING[one]} for one in ("x86_64", "aarch64"))
    known = {(str(x86[name]), str(arm[name])) for name in x86.keys() & arm.keys()}
    assert list(zip(*KEY_CALLS.values(), strict=True)) == [(x86[n], arm[n]) for n in ("add_key", "keyctl")]
    found = 0
    for attack in load():
        text = Path(path_of(attack)).read_text(encoding="utf-8")
        for one, other in re.findall(r'\{"x86_64": (\d+), "aarch64": (\d+)\}', text):
            assert (one, other) in known, attack.name
            found += 1
    assert found >= 5
