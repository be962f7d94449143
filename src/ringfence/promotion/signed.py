"""Statements that pinned Ed25519 keys sign: a plain-git attestor, an explanation of a hold, a break-glass. Pure."""

from typing import TypeVar

import msgspec

from ringfence.promotion.dsse import Signed, unseal
from ringfence.promotion.findings import Finding, finding
from ringfence.promotion.identity import LEEWAY, Identity
from ringfence.promotion.strict import Malformed
from ringfence.promotion.trust import Trust

ATTESTOR = "https://promotion.example/attestor/v1"
EXPLANATION = "https://promotion.example/explanation/v1"
BREAK_GLASS = "https://promotion.example/break-glass/v1"
_T = TypeVar("_T")


class _Strict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class _Attestor(_Strict, frozen=True):
    commit: str
    run_id: str = msgspec.field(name="runId")
    invocation: str = msgspec.field(name="invocationId")
    builder: str
    issued: int = msgspec.field(name="issuedAt")
    nonce: str


class _Explanation(_Strict, frozen=True):
    """``base``: the base that was looked at; without it nothing is said about a base that moved."""

    reason: str
    codes: tuple[str, ...]
    issued: int = msgspec.field(name="issuedAt")
    base: str = ""


class _BreakGlass(_Strict, frozen=True):
    reason: str
    issued: int = msgspec.field(name="issuedAt")
    expires: int = msgspec.field(name="expiresAt")


def check_attestor(
    raw: bytes, *, trust: Trust, statements_digest: str, commit: str, at: int
) -> tuple[Identity | None, list[Finding]]:
    """The identity of a plain-git CI host, whose pinned key signed the digest of the statements."""
    where = "ci.dsse.json"
    try:
        signed = unseal(raw, trust, "ci", at)
    except Malformed as error:
        return None, [finding("identity.bad_signature", str(error), where)]
    try:
        body = _predicate(signed, ATTESTOR, _Attestor)
    except Malformed as error:
        return None, [finding("identity.wrong_claims", str(error), where)]
    found = []
    if _subject(signed) != {"sha256": statements_digest}:
        found.append(finding("identity.not_bound", "signed for other statements", where))
    if body.commit != commit:
        found.append(finding("identity.wrong_claims", f"signed for commit {body.commit[:40]!a}", where))
    if not body.issued - LEEWAY <= at <= body.issued + trust.max_age:
        found.append(finding("identity.expired", "signed in the future, or too long ago", where))
    if not (body.run_id and body.nonce):
        found.append(finding("identity.wrong_claims", "no run id or nonce", where))
    identity = Identity(
        platform="key",
        issuer=signed.by.keyid,
        run_id=body.run_id,
        invocation=body.invocation,
        builder=body.builder,
        issued=body.issued,
        token_id=body.nonce,
        actor="",
        pull_request=None,
    )
    return (None if found else identity), found


def read_explanation(raw: bytes, *, trust: Trust, head: str, base: str, at: int) -> tuple[str, str, frozenset[str]]:
    """Who explained which codes of this head, and why; raises Malformed. A moved base is explained for that base alone."""
    signed = unseal(raw, trust, "explainer", at)
    body = _predicate(signed, EXPLANATION, _Explanation)
    if _subject(signed) != {"gitCommit": head}:
        raise Malformed("signed for another head")
    _check_words(body.reason, body.issued, at)
    codes = frozenset(body.codes)
    return signed.by.name, body.reason, codes if body.base == base else codes - {"base.moved"}


def read_break_glass(raw: bytes, *, trust: Trust, head: str, at: int) -> tuple[str, str]:
    """Who broke the glass for this head, and why; raises Malformed."""
    signed = unseal(raw, trust, "break_glass", at)
    body = _predicate(signed, BREAK_GLASS, _BreakGlass)
    if _subject(signed) != {"gitCommit": head}:
        raise Malformed("signed for another head")
    _check_words(body.reason, body.issued, at)
    if not at < body.expires <= body.issued + 86_400:
        raise Malformed("expired, or valid for more than a day")
    return signed.by.name, body.reason


def _check_words(reason: str, issued: int, at: int) -> None:
    if len(reason.split()) < 3:
        raise Malformed("the reason is shorter than three words")
    if issued > at + LEEWAY:
        raise Malformed("signed in the future")


def _subject(signed: Signed) -> object:
    subject = signed.statement.get("subject")
    first = subject[0] if isinstance(subject, list) and len(subject) == 1 else None
    return first.get("digest") if isinstance(first, dict) else None


def _predicate(signed: Signed, kind: str, shape: type[_T]) -> _T:
    if signed.statement.get("predicateType") != kind:
        raise Malformed("a statement of another kind")
    try:
        return msgspec.convert(signed.statement.get("predicate"), shape, strict=True)
    except msgspec.ValidationError as error:
        raise Malformed(str(error)) from None
