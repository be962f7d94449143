"""Secrets never reach the disk; personal data and long texts lie apart and can be erased."""

import base64
import json
import os
from pathlib import Path
from urllib.parse import quote

import pytest

from ringfence.ledger import apart, record
from ringfence.ledger.described import describe, is_violation
from ringfence.ledger.personal import PersonalStore, subject_id
from ringfence.ledger.scrub import SecretScrubber, load_key
from ringfence.model.entry import EntryKind
from ringfence.model.errors import LedgerError

AWS = "AKIA" + "IOSFODNN7EXAMPLE"
CANARIES = {
    "aws": AWS,
    "github": "ghp_" + "a1B2" * 9,
    "gitlab": "glpat-" + "x9" * 10,
    "slack": "xoxb-" + "123456789012-abcdef",
    "model": "sk-ant-" + "api03-" + "Zz9" * 12,
    "stripe": "sk_live_" + "9a" * 12,
    "google": "AIza" + "Sy" * 17 + "x",
    "jwt": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJlMTIz",
    "pem": "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA\n-----END RSA PRIVATE KEY-----",
}
HIDDEN_IN = {
    "url": ("https://user:{}@example.org/x", "hunter2secret"),
    "header": ("curl -H 'Authorization: Bearer {}' https://example.org", "abcdefgh12345678"),
    "assignment": ("DB_PASSWORD={} make", "correct-horse9"),
    "json": ('{{"api_key":"{}"}}', "0123456789abcdef"),
    "quoted": ("export API_KEY='{}'", "zzz111yyy222"),
}


def everything_in(directory: str) -> bytes:
    found = b""
    for folder, _, names in os.walk(directory):
        for name in names:
            found += Path(folder, name).read_bytes()
    return found


@pytest.fixture
def scrubber(tmp_path) -> SecretScrubber:
    (tmp_path / "keys").mkdir()
    return SecretScrubber(
        load_key(str(tmp_path)), patterns=["CANARY-[0-9]{6}"], values=['s3cr3t "value" ü', "longvalue123"]
    )


@pytest.mark.parametrize("form", CANARIES)
def test_known_forms_are_replaced_wherever_they_stand(make_ledger, make_entry, form):
    secret = CANARIES[form]
    body = {
        "request": {"kind": "shell", "line": f"run {secret} now", "content": f"x\n{secret}\ny"},
        "argv": ["a", secret, f"--x={secret}"],
        "env": {"KEY": secret, secret.replace("\n", " "): "v"},
        "nested": f'{{"deep": "{secret}"}}',
    }
    with make_ledger() as ledger:
        ledger.append([make_entry(1, body=body, personal={"stdout": f"... {secret} ..."})])
        stored = list(ledger.read())[-1].value
    content = everything_in(ledger.directory)
    for part in secret.split("\n"):
        assert part.encode() not in content
    assert stored["body"]["argv"][1].startswith("hmac:1:")
    assert stored["body"]["argv"][2].endswith(stored["body"]["argv"][1])


@pytest.mark.parametrize("case", HIDDEN_IN)
def test_secrets_that_only_their_surroundings_show_are_replaced(scrubber, case):
    template, secret = HIDDEN_IN[case]
    line = template.format(secret)
    cleaned = scrubber.scrub({"line": line})["line"]
    assert secret not in cleaned
    assert "hmac:1:" in cleaned
    before = template.split("{}")[0]
    assert cleaned.startswith(before.replace("{{", "{"))


def test_the_word_after_a_password_option_is_replaced(scrubber):
    cleaned = scrubber.scrub({"argv": ["mysql", "--password", "opensesame", "-h", "db"]})["argv"]
    assert cleaned[1] == "--password"
    assert cleaned[2].startswith("hmac:1:")
    assert cleaned[3:] == ["-h", "db"]


@pytest.mark.parametrize("value", ['s3cr3t "value" ü', "longvalue123"])
def test_exact_values_and_policy_patterns_are_replaced_in_every_spelling(scrubber, value):
    spellings = [
        value,
        quote(value, safe=""),
        base64.b64encode(value.encode()).decode(),
        base64.b64encode(b"user:" + value.encode() + b"!").decode(),
        value.encode().hex(),
        '{"x":' + repr(value).replace("'", '"') + "}" if '"' not in value else '{"x":"s3cr3t \\"value\\" \\u00fc"}',
    ]
    for spelling in spellings:
        cleaned = scrubber.scrub({"a": f"before {spelling} after"})["a"]
        core = spelling[6:-4] if spelling.startswith("dXNlcj") else spelling
        assert core not in cleaned, spelling
    assert "CANARY-123456" not in scrubber.clean("x CANARY-123456 y")


def test_equal_secrets_are_equal_marks_and_the_key_decides(scrubber):
    assert scrubber.mark("one") == scrubber.mark("one") != scrubber.mark("two")
    assert SecretScrubber(b"k" * 32).mark("one") != scrubber.mark("one")


def test_ordinary_text_and_hashes_stay_as_they_are(scrubber):
    body = {
        "line": "git commit -m 'token of thanks' && python -m pytest -q tests/secrets/test_password.py",
        "decision": {"policy": "ab" * 32},
        "commit": "c" * 40,
    }
    assert scrubber.scrub(body) is body


def test_all_that_a_pattern_of_the_policy_finds_is_replaced_whatever_its_groups():
    scrubber = SecretScrubber(b"k" * 32, patterns=["(tok|key)-[0-9a-z]{12}", "(?i)(corp)_([0-9]{10})"])
    cleaned = str(scrubber.scrub({"line": "use tok-abcdef012345 and CORP_0123456789"})["line"])
    assert "abcdef" not in cleaned
    assert "0123456789" not in cleaned


@pytest.mark.parametrize(
    "line", ["password=" + AWS + "-and-more", "--password hmac:sesame-open", "token=hmac_" + "sesame" * 4]
)
def test_what_only_begins_like_a_mark_is_replaced(scrubber, line):
    cleaned = scrubber.clean(line)
    assert "and-more" not in cleaned
    assert "sesame" not in cleaned
    assert scrubber.clean(cleaned) == cleaned


def test_a_secret_beside_a_byte_that_is_no_unicode_is_replaced(make_ledger, make_entry):
    line = f"curl -H 'Authorization: Bearer {AWS}' /tmp/caf\udce9"
    content = f"x \ud800 {AWS} y"
    with make_ledger() as ledger:
        request = {"kind": "file", "line": record.text(line), "content": record.text(content)}
        ledger.append([make_entry(1, body={"request": request, "other": record.text("caf\udce9")})])
        stored = list(ledger.read())[-1].value
        kept = ledger.keeper.load(stored["personal"]["request.content"])
    body = stored["body"]
    assert "hmac:1:" in body["request"]["line"]
    assert body["other"] == {"hex": "636166e9"}
    assert body["request"]["content"] == {"kept": "request.content"}
    assert AWS not in kept
    for spelled in (AWS, AWS.encode().hex()):
        assert spelled.encode() not in everything_in(ledger.directory)


def test_a_pattern_that_cannot_be_run_is_refused():
    with pytest.raises(LedgerError) as refused:
        SecretScrubber(b"k" * 32, patterns=["(?<=look)behind"])
    assert refused.value.code == "bad-pattern"


def test_personal_data_is_committed_to_loaded_and_erased_with_proofs_intact(make_ledger, make_entry):
    with make_ledger() as ledger:
        ledger.append([make_entry(1, EntryKind.OBSERVED, subject="anna@example.org", personal={"mail": "Dear Anna"})])
        ledger.append([make_entry(2, EntryKind.OBSERVED, personal={"mail": "Dear Ben"})])
        anna, ben = (r.value["personal"]["mail"] for r in list(ledger.read())[-2:])
        content = everything_in(ledger.directory)
        assert b"Dear" not in content
        assert b"anna@" not in content
        store = PersonalStore(ledger.directory)
        assert (store.load(anna), store.load(ben)) == ("Dear Anna", "Dear Ben")
        assert store.erase(subject_id("anna@example.org"))
        assert (store.load(anna), store.load(ben)) == (None, "Dear Ben")
        assert not store.erase(subject_id("anna@example.org"))


def test_a_changed_side_store_gives_nothing_rather_than_something_else(make_ledger, make_entry):
    with make_ledger() as ledger:
        ledger.append([make_entry(1, EntryKind.OBSERVED, personal={"x": "value"})])
        commit = list(ledger.read())[-1].value["personal"]["x"]
    (box,) = Path(ledger.directory, "private").glob("*.box")
    content = bytearray(box.read_bytes())
    content[-1] ^= 1
    box.write_bytes(content)
    assert PersonalStore(ledger.directory).load(commit) is None


def test_long_texts_go_apart_and_come_back(make_ledger, make_entry):
    line = "echo " + "x" * 200_000
    facts = {
        "cwd": "/r",
        "home": "/h",
        "root": "/r",
        "paths": [{"asked": f"/r/{n}", "real": f"/r/{n}", "kind": "file"} for n in range(3000)],
    }
    body = {
        "request": {"kind": "shell", "line": line},
        "cwd": "/r",
        "context": {},
        "facts": facts,
        "decision": {"tier": "allow"},
    }
    with make_ledger() as ledger:
        ledger.append([make_entry(1, body=body)])
        stored = list(ledger.read())[-1].value
        load = lambda name: ledger.keeper.load(stored["personal"][name])  # noqa: E731 - one use
        assert record.call_from_record(stored, load).request.line == line
        assert len(record.facts_from_record(stored, load).paths) == 3000
        with pytest.raises(record.NotReplayable):
            record.call_from_record(stored)


@pytest.mark.parametrize(
    "words",
    [
        [f"src/some/folder/of/this/project/file_{n}.py" for n in range(3000)],
        ["y" * 3000] * 60,
        ["y" * 1000 + str(n) for n in range(200)],
        ["é" * 300] * 64 + ["z" * 200] * 230,
        ["x"] * 20_000,
    ],
    ids=["files", "few long", "many long", "both", "tiny"],
)
def test_a_call_of_however_many_words_is_recorded_and_comes_back(make_ledger, make_entry, words):
    argv = ["git", "add", *words]
    facts = {"cwd": "/r", "home": "/h", "root": "/r", "paths": [{"asked": w, "real": w, "kind": "file"} for w in words]}
    body = {"request": {"kind": "argv", "argv": argv}, "cwd": "/r", "facts": facts, "decision": {"tier": "allow"}}
    with make_ledger() as ledger:
        ledger.append([make_entry(1, body={**body, "context": {}})])
        stored = list(ledger.read())[-1].value
        load = lambda name: ledger.keeper.load(stored["personal"][name])  # noqa: E731 - one use
        assert record.call_from_record(stored, load).request.argv == tuple(argv)
        assert len(record.facts_from_record(stored, load).paths) == len(words)
        with pytest.raises(record.NotReplayable):
            record.call_from_record(stored)
    assert stored["body"]["request"]["argv"][:2] == ["git", "add"]


def test_of_too_many_reasons_the_strictest_stay(make_ledger, make_entry):
    reasons = [{"rule": f"r{n}", "tier": "ask", "matched": "x" * 200} for n in range(400)]
    reasons.append({"rule": "last", "tier": "deny", "matched": "x"})
    body = {"request": {"kind": "shell", "line": "rm x"}, "decision": {"tier": "deny", "reasons": reasons}}
    with make_ledger() as ledger:
        ledger.append([make_entry(1, body=body)])
        stored = list(ledger.read())[-1].value
        rest = json.loads(ledger.keeper.load(stored["personal"]["decision.reasons"]))
    *front, mark = stored["body"]["decision"]["reasons"]
    assert front[0]["rule"] == "last"
    assert mark == {"kept": "decision.reasons"}
    assert len(front) + len(rest) == len(reasons)
    assert is_violation(stored["body"])
    assert ("rule", "last") in describe(stored).terms
    assert ("rule", "None") not in describe(stored).terms


def test_what_fits_is_left_alone():
    body = {"a": "x" * 50_000}
    assert apart.fit(body) == (body, {})


def test_of_a_list_that_is_too_long_the_front_stays(make_ledger, make_entry):
    violation = {"kind": "decoy", "detail": "/home/agent/.aws/credentials", "violation": True}
    programs = [{"kind": "exec", "detail": f"/usr/bin/true {n} {'é' * 100}"} for n in range(1000)]
    with make_ledger() as ledger:
        ledger.append([make_entry(1, kind=EntryKind.RESULT, body={"exit": 0, "observations": [violation, *programs]})])
        stored = list(ledger.read())[-1].value
        *front, mark = stored["body"]["observations"]
        rest = json.loads(ledger.keeper.load(stored["personal"]["observations"]))
    assert front[0] == violation
    assert mark == {"kept": "observations"}
    assert len(front) > 200
    assert [*front, *rest] == [violation, *programs]
    assert is_violation(stored["body"])


def test_many_long_values_are_known_too():
    """Ten tokens of the largest size that a credential may have, in a few of their spellings."""
    values = [f"{number:02}" + "aB3/dE5+gH7jK9.mN1" * 455 for number in range(10)]
    scrubber = SecretScrubber(b"k" * 32, values=values)
    for value in values[9:]:
        for spelled in (value, quote(value, safe=""), value.encode().hex(), base64.b64encode(value.encode()).decode()):
            assert spelled[1000:1040] not in json.dumps(scrubber.scrub({"line": f"x {spelled} y"}))


@pytest.mark.parametrize("text", [b"", b"short", b"zz" * 32, b"\xff\xff"])
def test_a_damaged_scrubbing_key_is_refused_with_a_remedy(tmp_path, text):
    (tmp_path / "keys").mkdir()
    (tmp_path / "keys" / "scrub-1.key").write_bytes(text)
    with pytest.raises(LedgerError) as refused:
        load_key(str(tmp_path))
    assert refused.value.code == "ledger-key"
    assert "backup" in refused.value.remedy
