"""Hostile bytes everywhere bytes come in: a refusal with a reason, never a traceback, never a pass."""

import base64
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringfence.promotion.artifacts import members
from ringfence.promotion.blast.alembic import unknown_in_alembic
from ringfence.promotion.blast.documents import Unreadable, read_yaml
from ringfence.promotion.blast.flags import check_flags, why_not_off
from ringfence.promotion.blast.iam import compare_iam
from ringfence.promotion.blast.manifests import compare_manifests
from ringfence.promotion.blast.sql import compare_sql
from ringfence.promotion.check import check
from ringfence.promotion.claim import FIELDS, is_placeholder, read_claim
from ringfence.promotion.credentials import find_secrets
from ringfence.promotion.decode import Unread
from ringfence.promotion.dsse import unseal
from ringfence.promotion.findings import Outcome
from ringfence.promotion.identity import check_token
from ringfence.promotion.jws import BadToken, parse_jwks, take_apart
from ringfence.promotion.objects import BadObject, parse_commit, parse_tree
from ringfence.promotion.personal import find_personal
from ringfence.promotion.policy import parse_owners, parse_policy
from ringfence.promotion.sandbox_report import parse_report
from ringfence.promotion.statements import parse_statements
from ringfence.promotion.strict import Malformed, parse
from ringfence.promotion.trust import parse_trust
from ringfence.promotion.vsa import verify_summary

FAST = settings(max_examples=150)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
HOSTILE = (
    st.binary(max_size=300)
    | JSON.map(lambda v: json.dumps(v).encode())
    | st.sampled_from([b"[" * 9000, b'{"a":1,"a":2}', b"\xff", b"1e999", b'"\\ud800"'])
)


@pytest.fixture(scope="module")
def trust(double):
    return parse_trust({name: double.text(value) for name, value in double.trust_files().items()})


@FAST
@given(HOSTILE)
def test_parsers_of_json_answer_or_call_it_malformed(raw):
    for reader in (
        parse,
        parse_policy,
        parse_owners,
        parse_report,
        parse_statements,
        parse_jwks,
        lambda r: parse_trust({"issuers.json": r}),
    ):
        try:
            reader(raw)
        except Malformed:
            continue


@FAST
@given(HOSTILE)
def test_a_hostile_claim_is_never_clean(raw):
    claim, found = read_claim(raw, id_length=40, where="x")
    assert found
    assert claim is None


@FAST
@given(st.fixed_dictionaries({name: st.text(max_size=20) for name in FIELDS}))
def test_random_words_in_nine_fields_never_make_a_clean_claim(value):
    _, found = read_claim(json.dumps(value).encode(), id_length=40, where="x")
    assert found


@FAST
@given(st.text(alphabet="\u200b\u3164\u00a0\u2800 \t\u0000\u202e\ufeff\u00ad", max_size=10))
def test_whatever_shows_nothing_is_a_placeholder(text):
    assert is_placeholder(text)


@FAST
@given(raw=HOSTILE | st.binary(max_size=80).map(base64.urlsafe_b64encode))
def test_hostile_tokens_prove_nobody(raw, trust):
    for token in (raw, b".".join([raw] * 3), b"e30.e30." + raw):
        identity, found = check_token(
            token, trust=trust, statements_digest="a" * 64, at=0, live=False, tested=lambda sha: None
        )
        assert identity is None
        assert found


@FAST
@given(header=st.dictionaries(st.sampled_from(["alg", "kid", "crit", "jwk", "jku", "x5u", "x5c"]), JSON, max_size=5))
def test_hostile_headers_prove_nobody(header, trust, double):
    token = double.ISSUERS["stranger"].token({"iss": double.GITHUB}, header)
    identity, _ = check_token(token, trust=trust, statements_digest="a" * 64, at=0, live=False, tested=lambda sha: None)
    assert identity is None


@FAST
@given(raw=HOSTILE)
def test_hostile_envelopes_are_malformed(raw, trust):
    payload = base64.b64encode(raw).decode()
    shaped = json.dumps(
        {
            "payloadType": "application/vnd.in-toto+json",
            "payload": payload,
            "signatures": [{"keyid": "gate", "sig": payload}],
        }
    )
    for envelope in (raw, shaped.encode()):
        with pytest.raises(Malformed):
            unseal(envelope, trust, "gate", 0)
        with pytest.raises(Malformed):
            verify_summary(envelope + b"\n" + envelope, trust, 0)


@FAST
@given(st.binary(max_size=200))
def test_hostile_git_objects_are_bad_objects(raw):
    for reader in (parse_tree, parse_commit):
        try:
            reader("a" * 40, raw)
        except BadObject:
            continue


@FAST
@given(st.binary(max_size=300))
def test_token_parts_are_taken_apart_or_refused(raw):
    try:
        take_apart(raw)
    except BadToken:
        return


@FAST
@given(st.binary(max_size=400) | st.text(max_size=200).map(str.encode))
def test_scanners_and_archives_take_any_bytes(raw):
    for packed in (
        raw,
        b"\x1f\x8b\x08" + raw,
        b"PK\x03\x04" + raw,
        b"BZh9" + raw,
        b"\xfd7zXZ\0" + raw,
        b"\0" * 257 + b"ustar" + raw,
    ):
        try:
            find_secrets(packed)
            find_personal(packed).verdict()
        except Unread:
            continue
        finally:
            members(packed)


@FAST
@given(JSON, JSON)
def test_readers_of_documents_answer_or_cannot_tell(one, two):
    for reader in (compare_iam, lambda a, b: compare_manifests([a], [b])):
        try:
            reader(one, two)
        except Unreadable:
            continue
    assert isinstance(why_not_off(one), str)
    assert check_flags(
        "x", path="f.json", old=json.dumps(one).encode(), new=json.dumps(two).encode(), may_exist=True, label=""
    )


@FAST
@given(st.text(max_size=120).map(lambda t: t.encode("utf-8", "surrogatepass")) | st.binary(max_size=120))
def test_readers_of_text_answer_or_cannot_tell(raw):
    for reader in (lambda r: compare_sql(None, r, "postgres"), read_yaml):
        try:
            reader(raw)
        except Unreadable:
            continue
    assert unknown_in_alembic(raw)


WORDS = [
    "DROP",
    "TABLE",
    "baskets",
    ";",
    "/*",
    "*/",
    "--",
    "\n",
    "'",
    '"',
    "CREATE",
    "(",
    ")",
    "id",
    "int",
    "$$",
    "ALTER",
    "ADD",
    "COLUMN",
    "x",
    "TRUNCATE",
    ",",
]


@FAST
@given(st.lists(st.sampled_from(WORDS), max_size=14))
def test_no_arrangement_of_words_hides_a_drop(words):
    text = " ".join(words)
    try:
        delta = compare_sql(None, text.encode(), "postgres")
    except Unreadable:
        return
    if not (delta.drops or delta.cannot_tell or delta.access):
        import sqlglot

        kinds = {type(s).__name__ for s in sqlglot.parse(text, read="postgres") if s is not None}
        assert kinds <= {"Create", "Alter", "Semicolon"}, text


@settings(max_examples=25)
@given(
    raw=HOSTILE,
    name=st.sampled_from(["sandbox.json", "ci.intoto.jsonl", "ci.jwt", "ci.dsse.json", "explanation.dsse.json"]),
)
def test_the_whole_check_refuses_hostile_evidence(raw, name, fuzzed, double):
    path = fuzzed.evidence / name
    before = path.read_bytes() if path.exists() else None
    path.write_bytes(raw)
    try:
        verdict = check(
            str(fuzzed.shop.git_dir), "main", fuzzed.head, str(fuzzed.shop.trust), str(fuzzed.evidence), at=double.NOW
        )
    finally:
        path.unlink() if before is None else path.write_bytes(before)
    assert not any(reason.code == "check.fault" for reason in verdict.reasons)
    if name != "ci.dsse.json":  # beside a good token it is not asked
        assert verdict.outcome >= Outcome.HOLD


@pytest.fixture(scope="module")
def fuzzed(shared_shop):
    return shared_shop.change().write()
