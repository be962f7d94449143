"""The command line: exit codes, JSON, SARIF, annotations, the files it writes, and the errors it explains."""

import json
import os
import subprocess
import sys

import pytest

from ringfence.cli.main import main
from ringfence.promotion.check import blast
from ringfence.promotion.policy import parse_owners, parse_policy


def promote(tmp_path, *words):
    return main(["--test-root", str(tmp_path / "state"), "promote", *map(str, words)])


def change_words(case, double):
    shop = case.shop
    return [
        "--repo",
        shop.git_dir,
        "--base",
        "main",
        "--head",
        case.head,
        "--trust",
        shop.trust,
        "--evidence",
        case.evidence,
        "--at",
        double.NOW,
    ]


def test_exit_codes_follow_the_verdict(shop, double, tmp_path, capsys):
    honest, held, broken, prod = (shop.change() for _ in range(4))
    held.sandbox["result"] = "fail"
    broken.promo["owner"] = "N/A"
    prod.sandbox["env_class"] = "prod"
    expected = ((honest, 0), (held, 10), (broken, 20), (prod, 21))
    for case, code in expected:
        case.write()
        assert promote(tmp_path, "check", *change_words(case, double)) == code
    assert "rotate" in capsys.readouterr().out


def test_json_has_the_stable_members(shop, double, tmp_path, capsys):
    case = shop.change({"services/cart/x.so": b"\0"}).write()
    assert promote(tmp_path, "check", *change_words(case, double), "--json") == 20
    verdict = json.loads(capsys.readouterr().out)
    assert verdict["verdict"] == "refuse"
    assert set(verdict["reasons"][0]) == {"code", "gate", "asked", "found", "from", "next"}
    assert verdict["numbers"]["opaque_files"] == 1


def test_one_screen_explains_gate_by_gate(shop, double, tmp_path, capsys):
    case = shop.change({f"services/cart/r{i}.py": b"R\n" for i in range(12)}).write()
    promote(tmp_path, "check", *change_words(case, double))
    screen = capsys.readouterr().out
    assert "paths 13 of 8" in screen
    assert "asked" in screen
    assert "next:" in screen
    assert len(screen.splitlines()) < 45


def test_without_evidence_it_is_a_dry_run_and_never_exits_0(shop, double, tmp_path, capsys):
    case = shop.change().write()
    words = ["--repo", shop.git_dir, "--base", "main", "--head", case.head]
    assert promote(tmp_path, "check", *words) == 20
    assert "dry run" in capsys.readouterr().out


def test_sarif_and_annotations(shop, double, tmp_path, capsys):
    case = shop.change({"services/cart/x.so": b"\0"}).write()
    promote(tmp_path, "check", *change_words(case, double), "--sarif", tmp_path / "s.json", "--annotations")
    assert "::error title=blast.bytes (gate 4)::" in capsys.readouterr().out
    sarif = json.loads((tmp_path / "s.json").read_text())
    assert sarif["version"] == "2.1.0"
    assert sarif["runs"][0]["results"][0]["ruleId"] == "blast.bytes"


def test_blast_prints_numbers_and_exits_by_the_limits(shop, tmp_path, capsys):
    small, large = shop.change().write(), shop.change({f"services/cart/r{i}.py": b"R\n" for i in range(12)}).write()
    for case, code in ((small, 0), (large, 20)):
        assert (
            promote(tmp_path, "blast", "--repo", shop.git_dir, "--base", "main", "--head", case.head, "--json") == code
        )
        assert json.loads(capsys.readouterr().out)["numbers"]["paths"] == (2 if case is small else 13)


def test_sign_then_verify(shop, double, tmp_path, capsys):
    case = shop.change().write()
    (tmp_path / "gate.pem").write_bytes(double.pem("gate"))
    signed = tmp_path / "v.dsse.jsonl"
    resource = "git+https://git.example.org/shop@refs/heads/main"
    words = ["--sign", tmp_path / "gate.pem", "--resource", resource, "--out", signed]
    assert promote(tmp_path, "check", *change_words(case, double), *words) == 0
    verify = ["verify", signed, "--trust", shop.trust, "--at", double.NOW]
    assert promote(tmp_path, *verify, "--head", case.head, "--resource", resource) == 0
    assert promote(tmp_path, *verify, "--head", "a" * 40) == 20
    assert promote(tmp_path, *verify, "--resource", resource.replace("main", "dev")) == 20
    signed.write_bytes(signed.read_bytes()[:-9])
    assert promote(tmp_path, *verify) == 20
    assert "promotion-not-verified" in capsys.readouterr().err


def test_a_recorded_explanation_lifts_the_hold(shop, double, tmp_path, capsys, monkeypatch):
    case = shop.change()
    case.sandbox["result"] = "fail"
    case.write()
    assert promote(tmp_path, "check", *change_words(case, double), "--json") == 10
    (tmp_path / "v.json").write_text(capsys.readouterr().out)
    (tmp_path / "imre.pem").write_bytes(double.pem("Imre"))
    monkeypatch.setattr("time.time", lambda: double.NOW)
    words = [
        "--record",
        "the box has no locale data",
        "--key",
        tmp_path / "imre.pem",
        "--keyid",
        "Imre",
        "--out",
        case.evidence,
    ]
    assert promote(tmp_path, "explain", tmp_path / "v.json", *words) == 0
    assert promote(tmp_path, "check", *change_words(case, double)) == 0
    assert "explained by 'Imre'" in capsys.readouterr().out


def test_explain_shows_codes_and_stored_verdicts(shop, double, tmp_path, capsys):
    assert promote(tmp_path, "explain", "blast.iam") == 0
    case = shop.change({"services/cart/x.so": b"\0"}).write()
    promote(tmp_path, "check", *change_words(case, double), "--json")
    out = capsys.readouterr().out
    (tmp_path / "v.json").write_text(out[out.index("{") :])
    assert promote(tmp_path, "explain", tmp_path / "v.json") == 0
    assert "blast.bytes  (gate 4)" in capsys.readouterr().out
    assert promote(tmp_path, "explain", "no-such-thing") == 1
    assert "promotion-unreadable" in capsys.readouterr().err


def test_init_writes_a_policy_that_loads_and_never_over_another(tmp_path, capsys):
    words = ["init", "--repo", tmp_path, "--service", "services/cart", "--artifact", "cart.tar"]
    assert promote(tmp_path, *words) == 0
    policy = parse_policy((tmp_path / "promotion/policy.json").read_bytes())
    assert policy.services == {"cart": ("services/cart/**",)}
    assert policy.flag_rules.must_be_read
    assert parse_owners((tmp_path / "promotion/owners.json").read_bytes()).humans == {}
    (tmp_path / "promotion/policy.json").write_text("mine")
    assert promote(tmp_path, *words) == 0
    assert (tmp_path / "promotion/policy.json").read_text() == "mine"


def test_attest_refuses_without_an_identity(shop, tmp_path, capsys, monkeypatch):
    for name in ("ACTIONS_ID_TOKEN_REQUEST_URL", "CI_SERVER_URL", "BUILDKITE_PIPELINE_SLUG"):
        monkeypatch.delenv(name, raising=False)
    for platform in ("github", "gitlab", "buildkite", "key"):
        assert (
            promote(tmp_path, "attest", "--platform", platform, "--commit", "a" * 40, "--evidence", tmp_path / "e")
            == 20
        )
    assert "promotion-no-identity" in capsys.readouterr().err
    assert not (tmp_path / "e").exists()


def test_rehearse_walks_back_and_only_by_allowed_commands(shop, double, tmp_path, capsys):
    case = shop.change().write()
    shop.objects.ref("refs/heads/agent", case.content)
    words = ["rehearse", "--repo", shop.git_dir, "--base", "main", "--head", "agent", "--out", tmp_path / "r.json"]
    assert promote(tmp_path, *words, "--command", double.ROLLBACK) == 0
    predicate = json.loads((tmp_path / "r.json").read_text())
    assert predicate == case.statements[2]["predicate"]
    assert promote(tmp_path, *words, "--command", "scripts/back cart 1.0") == 1
    assert promote(tmp_path, *words, "--command", "sh -c true") == 1
    assert "promotion-not-allowed" in capsys.readouterr().err


def test_rehearse_by_a_script_compares_what_is_deployed(shop, double, tmp_path):
    case = shop.change().write()
    shop.objects.ref("refs/heads/agent", case.content)
    words = ["rehearse", "--repo", shop.git_dir, "--base", "main", "--head", "agent", "--out", tmp_path / "r.json"]
    state = f"printf {shop.base_tree}"
    assert promote(tmp_path, *words, "--command", "scripts/back cart 1.0", "--state", state, "--deploy", "true") == 0
    assert json.loads((tmp_path / "r.json").read_text())["treeBefore"] == shop.base_tree


def test_check_needs_no_network_and_no_third_party_but_its_own(shop, double, tmp_path):
    case = shop.change().write()
    code = "import socket,sys\ndef no(*a, **k): raise AssertionError('network')\nsocket.socket.connect = no\n"
    code += "from ringfence.cli.main import main\nsys.exit(main(sys.argv[1:]))"
    words = ["--test-root", str(tmp_path / "s"), "promote", "check", *map(str, change_words(case, double))]
    done = subprocess.run(
        [sys.executable, "-c", code, *words],
        capture_output=True,
        timeout=60,
        check=False,
        env={"PATH": "/usr/bin", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    assert done.returncode == 0, done.stderr


def test_a_missing_sql_parser_refuses_with_the_remedy(shop, monkeypatch):
    monkeypatch.setitem(sys.modules, "sqlglot", None)
    case = shop.change({"db/0002.sql": b"CREATE TABLE x (id int);\n"}).write()
    verdict = blast(str(shop.git_dir), "main", case.head)
    assert any(r.code == "blast.schema" and "ringfence[promotion]" in r.found for r in verdict.reasons)


@pytest.mark.parametrize(
    ("removed", "files", "codes"),
    [
        ({"gate": "flag", "only_paths": ["**/*.md"], "because": "words switch nothing"}, {"README.md": b"x\n"}, set()),
        (
            {"gate": "flag", "only_paths": ["**/*.md"], "because": "words switch nothing"},
            {"services/cart/app.py": b"x\n"},
            {"flag.missing"},
        ),
        ({"gate": "rollback", "only_paths": ["**/*.md"], "because": "x"}, {"README.md": b"x\n"}, {"flag.missing"}),
    ],
)
def test_only_the_base_removes_a_gate_and_only_where_its_condition_holds(tmp_path, double, removed, files, codes):
    shop = double.Shop(tmp_path, policy={**double.POLICY, "removed_gates": [removed]})
    case = shop.change(files, with_flag=False)
    verdict = case.check()
    assert {r.code for r in verdict.reasons} == codes
    assert bool(verdict.notes) == (codes == set() or removed["gate"] == "rollback")


def test_an_exception_of_the_base_names_kind_and_paths(tmp_path, double):
    excepted = {"kind": "terraform", "paths": ["infra/dns/**"], "because": "reviewed by the dns team"}
    shop = double.Shop(tmp_path, policy={**double.POLICY, "cannot_tell_exceptions": [excepted]})
    assert not shop.change({"infra/dns/a.tf": b"x\n"}).check().reasons
    assert {r.code for r in shop.change({"infra/net/a.tf": b"x\n"}).check().reasons} == {"blast.cannot_tell"}


def test_a_flag_must_be_read_where_the_base_asks_it(tmp_path, double):
    shop = double.Shop(tmp_path, policy={**double.POLICY, "flag_rules": {"must_be_read": True}})
    assert {r.code for r in shop.change().check().reasons} == {"flag.not_read"}
    guarded = shop.change({"services/cart/app.py": b"if on('agent-2'):\n    pass\n"})
    assert not guarded.check().reasons


def test_bytes_that_may_differ_are_compared_by_members(tmp_path, double):
    import hashlib

    policy = {**double.POLICY, "artifact": {**double.POLICY["artifact"], "reproducible": False}}
    shop = double.Shop(tmp_path, policy=policy)
    for tail, outcome in ((b"\0" * 512, "human_review"), (None, "hold_for_explanation")):
        case = shop.change()
        files = {**case.files, "services/cart/app.py": b"other\n"}
        other = case.artifacts["trusted"] + tail if tail else double.tar_of(files, "services/cart")
        case.artifacts["sandbox"] = other
        case.sandbox["artifact"]["sha256"] = case.promo["sandbox_artifact_sha256"] = hashlib.sha256(other).hexdigest()
        assert case.check().outcome.word == outcome


BAD_POLICIES = [
    {"version": 2},
    {"limits": {"paths": -1, "services": 1, "added_bytes": 1}},
    {"egress": {"allowlist_required": False}},
    {"evidence_file": "../x"},
    {"unknown": 1},
    {"removed_gates": [{"gate": "egress", "only_paths": ["**"], "because": "x"}]},
    {"removed_gates": [{"gate": "flag", "only_paths": [], "because": "x"}]},
    {"limits": {"paths": "20", "services": 1, "added_bytes": 1}},
]


@pytest.mark.parametrize("broken", BAD_POLICIES)
def test_a_policy_that_cannot_be_meant_refuses_everything(tmp_path, double, broken):
    shop = double.Shop(tmp_path, policy={**double.POLICY, **broken})
    assert {r.code for r in shop.change().check().reasons} == {"policy.unreadable"}


def test_one_evidence_file_a_change_where_the_base_asks_it(tmp_path, double):
    shop = double.Shop(tmp_path, policy={**double.POLICY, "evidence_file": "evidence/*.json"})
    case = shop.change()
    case.entry = {"evidence/one.json": double.text(case.promo)}
    verdict = case.check()
    assert (verdict.outcome.word, verdict.numbers["paths"]) == ("human_review", 2), verdict.reasons
    two = shop.change()
    two.entry = {"evidence/one.json": double.text(two.promo), "evidence/two.json": double.text(two.promo)}
    assert "evidence.not_a_file" in {r.code for r in two.check().reasons}


def test_a_check_that_does_not_end_refuses(shop, tmp_path, monkeypatch, capsys):
    from ringfence.cli import main, promote
    from ringfence.promotion import check

    def busy(*args):
        while True:
            pass

    monkeypatch.setattr(check, "ask", busy)
    monkeypatch.setattr(promote, "DEADLINE", 1)
    case = shop.change().write()
    words = ["--repo", shop.git_dir, "--base", shop.base, "--head", case.head, "--trust", shop.trust]
    ended = main.main(["--test-root", str(tmp_path / "state"), "promote", "check", *map(str, words)])
    assert ended == 20
    assert "check.fault" in capsys.readouterr().out


def test_a_gate_that_was_not_asked_is_not_said_to_have_passed(shop, tmp_path, capsys):
    """The numbers alone prove nothing of a re-run, and without a claim there is no owner to look at."""
    from ringfence.cli import main

    case = shop.change().write()
    words = ["--test-root", str(tmp_path / "state"), "promote"]
    change = ["--repo", str(shop.git_dir), "--base", shop.base, "--head"]
    main.main([*words, "blast", *change, case.content])
    said = capsys.readouterr().out
    assert "gate 3  trusted re-run: not asked" in said
    assert "gate 4  blast radius: passed" in said
    assert said.count("passed") == 1
    main.main([*words, "check", *change, case.content])
    assert "gate 5  owner and rollback: not asked" in capsys.readouterr().out
    main.main([*words, "check", *change, "HEAD~1"])
    said = capsys.readouterr().out
    assert "passed" not in said
    assert "a branch, a tag or a full id" in said


def test_a_reason_that_would_not_count_is_not_signed(shop, double, tmp_path, capsys):
    from ringfence.cli import main

    (tmp_path / "key.pem").write_bytes(double.pem("Imre"))
    (tmp_path / "verdict.json").write_text('{"head": "' + "a" * 40 + '", "base": "", "reasons": []}')
    words = [
        "promote",
        "explain",
        str(tmp_path / "verdict.json"),
        "--key",
        str(tmp_path / "key.pem"),
        "--keyid",
        "Imre",
    ]
    for option in ("--record", "--break-glass"):
        assert main.main([*words, option, "it is", "--out", str(tmp_path / "out")]) == 1
        assert "fix: say in a sentence" in capsys.readouterr().err
        assert not (tmp_path / "out").exists()
        assert main.main([*words, option, "it is right so", "--out", str(tmp_path / "out")]) == 0
        (tmp_path / "out").rename(tmp_path / f"out{option}")
