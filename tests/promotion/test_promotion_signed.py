"""What people and hosts sign: a plain-git host's proof, explanations, broken glass, the gate's own verdict; and the ledger."""

import base64
import json

import pytest

from ringfence.model.entry import EntryKind
from ringfence.model.errors import LedgerError
from ringfence.promotion.dsse import seal
from ringfence.promotion.findings import Outcome
from ringfence.promotion.seen import TokenLog
from ringfence.promotion.signed import ATTESTOR, BREAK_GLASS, EXPLANATION
from ringfence.promotion.strict import Malformed
from ringfence.promotion.trust import parse_trust
from ringfence.promotion.vsa import Signer, sign_verdict, verify_summary


def codes(verdict):
    return {reason.code for reason in verdict.reasons}


def statement(kind, digest, predicate):
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": "x", "digest": digest}],
        "predicateType": kind,
        "predicate": predicate,
    }


@pytest.fixture
def trust(double):
    return parse_trust({name: double.text(value) for name, value in double.trust_files().items()})


def host_change(shop, double, **altered):
    case = shop.change()
    run = case.statements[0]["predicate"]["runDetails"]
    run["builder"]["id"], run["metadata"]["invocationId"] = "key:host", f"key:host/{case.run_id}"
    case.write()
    import hashlib

    digest = hashlib.sha256(case.proof["ci.intoto.jsonl"]).hexdigest()
    predicate = {
        "commit": case.content,
        "runId": case.run_id,
        "invocationId": f"key:host/{case.run_id}",
        "builder": "key:host",
        "issuedAt": case.issued,
        "nonce": "n",
        **{k: v for k, v in altered.items() if k not in {"by", "digest"}},
    }
    by = altered.get("by", "host")
    envelope = seal(statement(ATTESTOR, {"sha256": altered.get("digest", digest)}, predicate), double.PEOPLE[by], by)
    (case.evidence / "ci.jwt").unlink()
    (case.evidence / "ci.dsse.json").write_bytes(envelope)
    return case


def test_a_plain_git_host_is_believed_by_its_pinned_key(shop, double):
    verdict = host_change(shop, double).check()
    assert (verdict.outcome, codes(verdict)) == (Outcome.HUMAN_REVIEW, set()), verdict.reasons


@pytest.mark.parametrize(
    ("altered", "code"),
    [
        ({"by": "gate"}, "identity.bad_signature"),
        ({"digest": "a" * 64}, "identity.not_bound"),
        ({"commit": "b" * 40}, "identity.wrong_claims"),
        ({"issuedAt": 1}, "identity.expired"),
        ({"runId": "2"}, "identity.wrong_claims"),
        ({"more": 1}, "identity.wrong_claims"),
        ({"nonce": ""}, "identity.wrong_claims"),
    ],
)
def test_a_plain_git_host_is_bound_to_everything_it_signs(shop, double, altered, code):
    verdict = host_change(shop, double, **altered).check()
    assert verdict.outcome is Outcome.REFUSE
    assert code in codes(verdict)


def held(shop):
    case = shop.change()
    case.sandbox["result"] = "fail"
    return case.write()


def explanation(double, case, by="Imre", head=None, **altered):
    predicate = {
        "reason": "the box has no locale data",
        "codes": ["delta.unexplained"],
        "issuedAt": double.NOW - 5,
        **altered,
    }
    return seal(statement(EXPLANATION, {"gitCommit": head or case.head}, predicate), double.PEOPLE[by], by)


def test_a_hold_is_lifted_by_a_named_persons_signed_words(shop, double):
    case = held(shop)
    (case.evidence / "explanation.dsse.json").write_bytes(explanation(double, case))
    verdict = case.check()
    assert verdict.outcome is Outcome.HUMAN_REVIEW
    assert any("Imre" in note and "locale" in note for note in verdict.notes)


@pytest.mark.parametrize(
    "altered",
    [{"by": "Agent"}, {"by": "host"}, {"head": "a" * 40}, {"codes": []}, {"reason": "ok"}, {"issuedAt": 9_999_999_999}],
)
def test_an_explanation_that_does_not_count_lifts_nothing(shop, double, altered):
    case = held(shop)
    (case.evidence / "explanation.dsse.json").write_bytes(explanation(double, case, **altered))
    assert case.check().outcome is Outcome.HOLD


def test_a_moved_base_is_explained_for_that_base_alone(shop, double):
    case, bases = shop.change().write(), [shop.base]
    for body in (b"B = 1\n", b"B = 2\n"):
        files = {**shop.files, "services/cart/app.py": body}
        bases.append(shop.objects.commit(shop.objects.tree(files), bases[-1:], name="Noor"))
    signed = explanation(double, case, codes=["base.moved"], base=bases[1])
    (case.evidence / "explanation.dsse.json").write_bytes(signed)
    outcomes = []
    for base in bases[1:]:
        shop.base = base
        outcomes.append(case.check().outcome)
    assert outcomes == [Outcome.HUMAN_REVIEW, Outcome.HOLD]


def test_an_explanation_lifts_no_refusal(shop, double):
    case = shop.change({"services/cart/x.so": b"\0"}).write()
    (case.evidence / "explanation.dsse.json").write_bytes(explanation(double, case, codes=["blast.bytes"]))
    assert case.check().outcome is Outcome.REFUSE


def glass(double, case, by="Imre", **altered):
    predicate = {"reason": "the shop is down now", "issuedAt": double.NOW - 5, "expiresAt": double.NOW + 600, **altered}
    return seal(statement(BREAK_GLASS, {"gitCommit": case.head}, predicate), double.PEOPLE[by], by)


def test_broken_glass_passes_is_shown_and_keeps_the_reasons(tmp_path, double):
    shop = double.Shop(tmp_path, policy={**double.POLICY, "break_glass": True})
    case = shop.change({"services/cart/x.so": b"\0"}).write()
    (case.evidence / "break-glass.dsse.json").write_bytes(glass(double, case))
    verdict = case.check()
    assert verdict.outcome is Outcome.HUMAN_REVIEW
    assert "Imre" in verdict.break_glass
    assert verdict.headline.startswith("BREAK GLASS")
    assert "blast.bytes" in codes(verdict)


@pytest.mark.parametrize("altered", [{"by": "host"}, {"expiresAt": 5}, {"expiresAt": 9_999_999_999}, {"reason": "x"}])
def test_broken_glass_that_does_not_count(tmp_path, double, altered):
    shop = double.Shop(tmp_path, policy={**double.POLICY, "break_glass": True})
    case = shop.change({"services/cart/x.so": b"\0"}).write()
    (case.evidence / "break-glass.dsse.json").write_bytes(glass(double, case, **altered))
    assert case.check().outcome is Outcome.REFUSE


def test_no_glass_is_broken_past_credentials_or_without_the_base(tmp_path, double):
    shop = double.Shop(tmp_path, policy={**double.POLICY, "break_glass": True})
    key = b"k = 'AKIA" + b"QWERTYUIOPASDFGH'\n"
    leak = shop.change({"services/cart/k.py": key}).write()
    (leak.evidence / "break-glass.dsse.json").write_bytes(glass(double, leak))
    assert leak.check().outcome is Outcome.REFUSE
    prod = shop.change()
    prod.sandbox["env_class"] = "prod"
    prod.write()
    (prod.evidence / "break-glass.dsse.json").write_bytes(glass(double, prod))
    assert prod.check().outcome is Outcome.ROTATE
    strict = double.Shop(tmp_path / "b")
    case = strict.change({"services/cart/x.so": b"\0"}).write()
    (case.evidence / "break-glass.dsse.json").write_bytes(glass(double, case))
    assert case.check().outcome is Outcome.REFUSE


def test_a_token_vouches_for_one_head_only(shop, double, tmp_path):
    once = TokenLog(str(tmp_path / "once"))
    case = shop.change().write()
    assert case.check(used_once=once).outcome is Outcome.HUMAN_REVIEW
    assert case.check(used_once=once).outcome is Outcome.HUMAN_REVIEW
    tree = shop.objects.tree({**case.files, "promotion.json": double.text(case.promo)})
    case.head = shop.objects.commit(tree, [case.content], message="again")
    assert codes(case.check(used_once=once)) == {"identity.replayed"}


def sign(double, verdict, resource="git+https://git.example.org/shop@refs/heads/main"):
    return sign_verdict(verdict, Signer(key=double.PEOPLE["gate"], keyid="gate", verifier="gate"), resource)


def test_the_signed_verdict_verifies_and_names_everything(shop, double, trust):
    case = shop.change()
    summary = verify_summary(sign(double, case.check()), trust, double.NOW)
    assert (summary.result, summary.levels, summary.head) == ("PASSED", ("PROMOTION_REVIEWABLE",), case.head)
    assert summary.artifact_sha256 == case.promo["sandbox_artifact_sha256"]
    assert summary.resource.endswith("refs/heads/main")
    assert len(summary.policy_sha256) == 64


def test_a_refusal_and_broken_glass_are_never_a_pass(tmp_path, double, trust):
    shop = double.Shop(tmp_path, policy={**double.POLICY, "break_glass": True})
    case = shop.change({"services/cart/x.so": b"\0"}).write()
    assert verify_summary(sign(double, case.check()), trust, double.NOW).result == "FAILED"
    (case.evidence / "break-glass.dsse.json").write_bytes(glass(double, case))
    assert verify_summary(sign(double, case.check()), trust, double.NOW).result == "FAILED"


def test_no_altered_line_of_a_signed_verdict_verifies(shop, double, trust):
    raw = sign(double, shop.change().check())
    first, second = raw.strip().split(b"\n")
    other = sign(double, shop.change({"services/cart/x.so": b"\0"}).check()).strip().split(b"\n")[0]
    envelope = json.loads(first)
    payload = base64.b64decode(envelope["payload"]).replace(b"PASSED", b"FAILED")
    forged = json.dumps({**envelope, "payload": base64.b64encode(payload).decode()}).encode()
    for bad in (
        first,
        second + b"\n" + first,
        first + b"\n" + first,
        other + b"\n" + second,
        forged + b"\n" + second,
        raw + raw,
    ):
        with pytest.raises(Malformed):
            verify_summary(bad, trust, double.NOW)


def test_a_verdict_by_a_key_without_the_role_does_not_verify(shop, double, trust):
    verdict = shop.change().check()
    for keyid, verifier in (("host", "host"), ("gate", "other")):
        with pytest.raises(Malformed):
            verify_summary(
                sign_verdict(verdict, Signer(key=double.PEOPLE[keyid], keyid=keyid, verifier=verifier), "x"),
                trust,
                double.NOW,
            )


class Book:
    def __init__(self, *, broken=False):
        self.entries, self.broken = [], broken

    def append(self, entries):
        if self.broken:
            raise LedgerError("ledger-full", "disk full")
        self.entries.extend(entries)
        return []


def test_the_verdict_is_recorded_before_it_is_returned(shop):
    book = Book()
    verdict = shop.change().check(record=book)
    assert [entry.kind for entry in book.entries] == [EntryKind.PROMOTION]
    assert book.entries[0].body["verdict"] == verdict.to_json()


def test_what_cannot_be_recorded_is_refused(shop):
    verdict = shop.change().check(record=Book(broken=True))
    assert verdict.outcome is Outcome.REFUSE
    assert codes(verdict) == {"check.fault"}


@pytest.mark.parametrize(
    "broken",
    [
        {"issuers.json": b"{}"},
        {"jwks-github.json": b'{"keys": []}'},
        {"keys.json": b'{"keys": [{"keyid": "x"}]}'},
        {"issuers.json": b'{"a": 1, "a": 2}'},
    ],
)
def test_trust_that_cannot_be_read_refuses(shop, broken):
    case = shop.change().write()
    for name, raw in broken.items():
        (shop.trust / name).write_bytes(raw)
    assert {"trust.unreadable", "identity.missing"} <= codes(case.check())


def test_an_issuer_whose_pipeline_is_not_pinned_is_no_trust(double):
    files = {name: double.text(value) for name, value in double.trust_files().items()}
    for issuer in double.trust_files()["issuers.json"]["issuers"]:
        for claim in ("repository_id", "job_workflow_ref", "project_id", "ref_protected"):
            if claim in issuer["require"]:
                loose = {**issuer, "require": {k: v for k, v in issuer["require"].items() if k != claim}}
                listed = {"audience_prefix": "p", "max_age_seconds": 1, "issuers": [loose]}
                with pytest.raises(Malformed):
                    parse_trust({**files, "issuers.json": double.text(listed)})


def test_weak_algorithms_and_keys_are_no_trust(double):
    files = {name: double.text(value) for name, value in double.trust_files().items()}
    listed = double.trust_files()["issuers.json"]
    for algorithms in ([], ["none"], ["HS256"], ["RS256", "HS256"]):
        first = {**listed["issuers"][0], "algorithms": algorithms}
        with pytest.raises(Malformed):
            parse_trust({**files, "issuers.json": double.text({**listed, "issuers": [first]})})
    short = {
        "keys": [
            {"kty": "RSA", "kid": "x", "e": "AQAB", "n": base64.urlsafe_b64encode(b"\xff" * 128).rstrip(b"=").decode()}
        ]
    }
    with pytest.raises(Malformed):
        parse_trust({**files, "jwks-github.json": double.text(short)})
