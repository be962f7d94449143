"""One altered field in the evidence of a passing change never passes: what was signed is bound, what was not is compared."""

import copy
import hashlib
import json

import pytest

from ringfence.promotion.check import check
from ringfence.promotion.findings import Outcome


@pytest.fixture(scope="module")
def passing(shared_shop):
    case = shared_shop.change().write()
    assert case.check().outcome is Outcome.HUMAN_REVIEW
    return case


def leaves(value, path=()):
    if isinstance(value, dict) and value:
        for key in value:
            yield from leaves(value[key], (*path, key))
    elif isinstance(value, list) and value:
        for index in range(len(value)):
            yield from leaves(value[index], (*path, index))
    else:
        yield path, value


def set_at(value, path, new):
    value = copy.deepcopy(value)
    inner = value
    for key in path[:-1]:
        inner = inner[key]
    if new is DELETE:
        del inner[path[-1]]
    else:
        inner[path[-1]] = new
    return value


DELETE = object()


def altered(old):
    """Other values for a field: of other types, empty, longer, and one character off."""
    yield from (DELETE, None, 7, True, {}, [old])
    if isinstance(old, str):
        yield from ("", old + "x", old[:-1], " " + old, old[:-1] + ("0" if old[-1:] != "0" else "1"), "N/A")
        if old.upper() != old:
            yield old.upper()
    elif isinstance(old, int):
        yield from (str(old), old + 1)
    elif isinstance(old, list):
        yield from (["x"], "x")


def run(case, double, files=None):
    for name, raw in (files or {}).items():
        (case.evidence / name).write_bytes(raw)
    try:
        return check(
            str(case.shop.git_dir), case.shop.base, case.head, str(case.shop.trust), str(case.evidence), at=double.NOW
        )
    finally:
        case.write()


def test_no_altered_field_of_the_sandbox_report_passes(passing, double):
    for path, old in leaves(passing.sandbox):
        for new in altered(old):
            report = set_at(passing.sandbox, path, new)
            verdict = run(passing, double, {"sandbox.json": double.text(report)})
            assert verdict.outcome >= Outcome.HOLD, (path, new)
            assert not any(r.code == "check.fault" for r in verdict.reasons), (path, new)


def test_no_altered_field_of_the_statements_passes_under_the_same_token(passing, double):
    for path, old in leaves(passing.statements):
        new = next(n for n in altered(old) if n not in (DELETE, old))
        lines = "".join(json.dumps(s, sort_keys=True) + "\n" for s in set_at(passing.statements, path, new)).encode()
        verdict = run(passing, double, {"ci.intoto.jsonl": lines})
        assert "identity.not_bound" in {r.code for r in verdict.reasons}, path


# What only describes the run to a reader, and binds nothing.
DESCRIPTIVE = {"buildType", "uri", "configuration", "name"}


def test_no_altered_field_of_the_statements_passes_even_if_the_ci_binds_it(passing, double):
    for path, old in leaves(passing.statements):
        if path[-1] in DESCRIPTIVE and path[0] != 0:
            continue
        if path[-1] in {"buildType", "uri"} or "passedTests" in path or path[-1] in {"pullRequest", "artifact"}:
            continue
        for new in altered(old):
            if new is DELETE and isinstance(path[-1], str) and path[-1] == "failedTests":
                continue  # its absence says the same: nothing failed
            lines = "".join(
                json.dumps(s, sort_keys=True) + "\n" for s in set_at(passing.statements, path, new)
            ).encode()
            claims = {**passing.claims, "aud": "promotion+sha256:" + hashlib.sha256(lines).hexdigest()}
            token = double.ISSUERS["github"].token(claims)
            verdict = run(passing, double, {"ci.intoto.jsonl": lines, "ci.jwt": token})
            assert verdict.outcome >= Outcome.HOLD, (path, new)
            assert not any(r.code == "check.fault" for r in verdict.reasons), (path, new)


CLAIMS_WORDS = (
    "iss aud iat nbf exp jti sha repository repository_id repository_owner_id run_id run_attempt job_workflow_ref"
)
CHECKED_CLAIMS = [*CLAIMS_WORDS.split(), "runner_environment", "actor"]


def is_harmless(name, old, new):
    """Another spelling that still says the same, or that is only compared with something else."""
    if name in {"jti", "actor"}:
        return isinstance(new, str) and bool(new)
    return name in {"nbf", "iat", "exp"} and type(new) is int and (new == old + 1 or (name, new) == ("nbf", 7))


def test_no_altered_claim_passes(passing, double):
    bound = {
        **passing.claims,
        "aud": "promotion+sha256:" + hashlib.sha256(passing.proof["ci.intoto.jsonl"]).hexdigest(),
    }
    for name in CHECKED_CLAIMS:
        for new in altered(bound[name]):
            if is_harmless(name, bound[name], new):
                continue
            claims = {k: v for k, v in bound.items() if k != name} if new is DELETE else {**bound, name: new}
            verdict = run(passing, double, {"ci.jwt": double.ISSUERS["github"].token(claims)})
            assert verdict.outcome >= Outcome.REFUSE, (name, new)


def test_no_altered_byte_of_the_token_passes(passing, double):
    token = passing.proof["ci.jwt"].strip()
    for at in range(0, len(token), max(1, len(token) // 60)):
        flipped = token[:at] + (b"A" if token[at : at + 1] != b"A" else b"B") + token[at + 1 :]
        verdict = run(passing, double, {"ci.jwt": flipped})
        assert verdict.outcome >= Outcome.REFUSE, at


def test_no_altered_artefact_passes(passing, double):
    for name in ("sandbox", "trusted"):
        path = passing.evidence / "artifacts" / name / double.ARTIFACT
        raw = path.read_bytes()
        path.write_bytes(raw[:-1] + b"\1")
        verdict = run(passing, double)
        path.write_bytes(raw)
        assert "digest.mismatch" in {r.code for r in verdict.reasons}


def test_no_altered_field_of_promotion_json_passes(shared_shop, double):
    case = shared_shop.change().write()
    for name, old in case.promo.items():
        for new in altered(old):
            promo = set_at(case.promo, (name,), new)
            tree = shared_shop.objects.tree({**case.files, "promotion.json": double.text(promo)})
            head = shared_shop.objects.commit(tree, [case.content], name="Bot")
            verdict = check(
                str(shared_shop.git_dir), "main", head, str(shared_shop.trust), str(case.evidence), at=double.NOW
            )
            assert verdict.outcome >= Outcome.HOLD, (name, new)
            assert not any(r.code == "check.fault" for r in verdict.reasons), (name, new)
