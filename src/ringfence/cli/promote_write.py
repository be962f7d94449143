"""The parts of ``ringfence promote`` that write: a starting policy, evidence of a re-run, signed words and verdicts."""

import argparse
import hashlib
import json
import os
import secrets
import time

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from ringfence.model.errors import PromotionError
from ringfence.promotion import mint
from ringfence.promotion.attest import Rerun, build_statements, read_results
from ringfence.promotion.dsse import STATEMENT, seal
from ringfence.promotion.evidence import MAX_ARTIFACT, read_regular
from ringfence.promotion.objects import OID
from ringfence.promotion.rehearse import rehearse as walk_back
from ringfence.promotion.signed import ATTESTOR, BREAK_GLASS, EXPLANATION
from ringfence.promotion.starter import starter_owners, starter_policy
from ringfence.promotion.strict import Malformed, Value, parse_object
from ringfence.promotion.verdict import Verdict
from ringfence.promotion.vsa import Signer, canonical, sign_verdict
from ringfence.supervisor.paths import Paths


def init(args: argparse.Namespace, paths: Paths) -> int:
    """Write ``promotion/policy.json`` and ``promotion/owners.json``; never over a file that is there."""
    del paths
    if not os.path.isdir(args.repo):
        raise PromotionError(
            "promotion-unreadable", "not a folder", where=args.repo, remedy="name the repository's own folder"
        )
    folder = os.path.join(args.repo, "promotion")
    os.makedirs(folder, exist_ok=True)
    files = (
        ("policy.json", starter_policy(args.service, args.artifact, args.artifact_path)),
        ("owners.json", starter_owners()),
    )
    for name, text in files:
        try:
            with open(os.path.join(folder, name), "x", encoding="utf-8") as file:
                file.write(text)
            print(f"wrote promotion/{name}")
        except FileExistsError:
            print(f"kept  promotion/{name}, which is there already")
    print(
        "next: name owners and hosts in these files, commit them to the base branch, and set up CI (docs/promotion.md)"
    )
    return 0


def attest(args: argparse.Namespace, paths: Paths) -> int:
    """Write ``ci.intoto.jsonl`` and the proof of identity that binds it. Refuses (20) where nobody can be proved."""
    del paths
    statements = os.path.join(args.evidence, "ci.intoto.jsonl")
    if args.token_variable:
        raw = _read(statements)
        _write(args.evidence, "ci.jwt", mint.given_token(args.token_variable, _audience(args, raw)) + b"\n")
        return 0
    job = _job(args)
    raw = canonical(build_statements(_rerun(args, job)))
    audience = _audience(args, raw)
    proof: tuple[str, bytes] | None
    match args.platform:
        case "github":
            proof = ("ci.jwt", mint.github_token(audience) + b"\n")
        case "buildkite":
            proof = ("ci.jwt", mint.buildkite_token(audience) + b"\n")
        case "key":
            proof = ("ci.dsse.json", _sign_as_host(args, job, raw))
        case _:
            proof = None
    if proof is None and not args.statements_only:
        raise mint.no_identity("on GitLab give --statements-only, then --token-variable in a child pipeline")
    _write(args.evidence, "ci.intoto.jsonl", raw)
    if proof is not None:
        _write(args.evidence, *proof)
    print(audience)
    return 0


def rehearse(args: argparse.Namespace, paths: Paths) -> int:
    """Run an allowed rollback once and write down how it went; exit 1 where it did not lead back."""
    del paths
    predicate = walk_back(
        args.repo,
        args.base,
        args.head,
        args.rollback,
        environment=args.environment,
        state=args.state,
        deploy=args.deploy,
    )
    with open(args.out, "w", encoding="utf-8") as file:
        json.dump(predicate, file, indent=2)
    back = predicate["exitCode"] == 0 and predicate["treeBefore"] == predicate["treeAfter"]
    print("the way back leads back" if back else "the rehearsal did not lead back to the tree before the change")
    return 0 if back else 1


def record_words(args: argparse.Namespace, paths: Paths) -> int:
    """Sign an explanation of a hold, or a break-glass, for the head of a stored verdict."""
    del paths
    if not (args.key and args.keyid and args.out):
        raise PromotionError(
            "promotion-unreadable", "--key, --keyid and --out are needed to sign", remedy="give all three"
        )
    if len(str(args.break_glass or args.record).split()) < 3:
        raise PromotionError(
            "promotion-unreadable",
            "a reason of less than three words does not count",
            remedy="say in a sentence why it is right",
        )
    try:
        verdict = parse_object(_read(args.what), limit=4_194_304)
    except Malformed as error:
        raise PromotionError(
            "promotion-unreadable", str(error), where=args.what, remedy="give a verdict as JSON"
        ) from None
    now = int(time.time())
    head, reasons = verdict.get("head"), verdict.get("reasons")
    if not isinstance(head, str) or not isinstance(reasons, list):
        raise PromotionError("promotion-unreadable", "not a verdict", where=args.what, remedy="give a verdict as JSON")
    name, kind = ("break-glass.dsse.json", BREAK_GLASS) if args.break_glass else ("explanation.dsse.json", EXPLANATION)
    predicate: dict[str, Value] = {"reason": args.break_glass or args.record, "issuedAt": now}
    if args.break_glass:
        predicate["expiresAt"] = now + 14_400
    else:
        predicate["base"] = str(verdict.get("base", ""))
        predicate["codes"] = [*sorted({str(item["code"]) for item in reasons if isinstance(item, dict)})]
    statement: dict[str, Value] = {
        "_type": STATEMENT,
        "subject": [{"name": "head", "digest": {"gitCommit": head}}],
        "predicateType": kind,
        "predicate": predicate,
    }
    _write(args.out, name, seal(statement, _key(args.key), args.keyid))
    print(f"wrote {name} for head {head[:12]}")
    return 0


def write_signed(verdict: Verdict, args: argparse.Namespace) -> None:
    """The signed summary and verdict beside the printed one."""
    signer = Signer(key=_key(args.sign), keyid=args.keyid, verifier=args.verifier)
    with open(args.out, "wb") as file:
        file.write(sign_verdict(verdict, signer, args.resource))


def _job(args: argparse.Namespace) -> mint.Job:
    match args.platform:
        case "github":
            return mint.github_job()
        case "gitlab":
            return mint.gitlab_job()
        case "buildkite":
            return mint.buildkite_job()
        case _:
            if not (args.key and args.keyid and args.run_id):
                raise mint.no_identity("--key, --keyid and --run-id are needed for plain git", "give all three")
            return mint.Job(
                builder=f"key:{args.keyid}",
                invocation=f"key:{args.keyid}/{args.run_id}",
                run_id=args.run_id,
                pull_request=None,
            )


def _rerun(args: argparse.Namespace, job: mint.Job) -> Rerun:
    if not (args.commit and OID.match(args.commit) and args.artifact and args.results):
        raise PromotionError(
            "promotion-unreadable", "--commit (a full id), --artifact and --results are needed", remedy="give all three"
        )
    try:
        passed, failed = read_results(parse_object(_read(args.results)))
        rehearsal = parse_object(_read(args.rehearsal)) if args.rehearsal else None
        artifact = read_regular(args.artifact, MAX_ARTIFACT)
    except (Malformed, OSError) as error:
        raise PromotionError(
            "promotion-unreadable", str(error), remedy="look at what the re-run job left behind"
        ) from None
    return Rerun(
        commit=args.commit,
        artifact_name=os.path.basename(args.artifact),
        artifact_sha256=hashlib.sha256(artifact).hexdigest(),
        passed=passed,
        failed=failed,
        builder=job.builder,
        invocation=job.invocation,
        repository=args.repository,
        pull_request=job.pull_request,
        finished=int(time.time()) if args.at is None else args.at,
        rehearsal=rehearsal,
    )


def _sign_as_host(args: argparse.Namespace, job: mint.Job, raw: bytes) -> bytes:
    statement: dict[str, Value] = {
        "_type": STATEMENT,
        "subject": [{"name": "ci.intoto.jsonl", "digest": {"sha256": hashlib.sha256(raw).hexdigest()}}],
        "predicateType": ATTESTOR,
        "predicate": {
            "commit": args.commit,
            "runId": job.run_id,
            "invocationId": job.invocation,
            "builder": job.builder,
            "issuedAt": int(time.time()) if args.at is None else args.at,
            "nonce": secrets.token_hex(16),
        },
    }
    return seal(statement, _key(args.key), args.keyid)


def _audience(args: argparse.Namespace, raw: bytes) -> str:
    return str(args.audience_prefix) + hashlib.sha256(raw).hexdigest()


def _key(path: str) -> Ed25519PrivateKey:
    try:
        key = load_pem_private_key(read_regular(path, 16_384), password=None)
    except (OSError, ValueError, TypeError, Malformed) as error:
        raise PromotionError(
            "promotion-unreadable",
            f"the key cannot be read ({type(error).__name__})",
            where=path,
            remedy="make one with: openssl genpkey -algorithm ed25519 -out key.pem",
        ) from None
    if not isinstance(key, Ed25519PrivateKey):
        raise PromotionError(
            "promotion-unreadable", "not an Ed25519 key", where=path, remedy="openssl genpkey -algorithm ed25519"
        )
    return key


def _read(path: str) -> bytes:
    try:
        return read_regular(path, 4_194_304)
    except (OSError, Malformed) as error:
        raise PromotionError("promotion-unreadable", str(error), where=path, remedy="look at the path") from None


def _write(folder: str, name: str, raw: bytes) -> None:
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, name), "wb") as file:
        file.write(raw)
