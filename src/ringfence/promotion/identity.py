"""Who re-ran the change: the claims of a CI system's token, each compared by type and value. Pure.

Every claim is one of: checked here, required by the trust folder, or deliberately unchecked (names next to their ids,
``sub``, ``actor``, ``workflow_ref``, which a change can choose or which get renamed).
"""

from collections.abc import Callable
from dataclasses import dataclass

from ringfence.promotion.findings import Finding, finding
from ringfence.promotion.jws import BadToken, check_signature, take_apart
from ringfence.promotion.strict import Value
from ringfence.promotion.trust import Issuer, Trust

LEEWAY = 30
"""Seconds that clocks may differ."""
TestedCommit = Callable[[str], str | None]
"""Given the token's ``sha``: why it does not stand for the change's commit, or None if it does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """A proved identity, and what statements of its run must say.

    ``run_id`` is empty for a token of a GitLab child pipeline: then ``invocation`` is only the beginning, and the
    statements name the run.
    """

    platform: str
    issuer: str
    run_id: str
    invocation: str
    builder: str
    issued: int
    token_id: str
    actor: str
    pull_request: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Token:
    claims: dict[str, Value]
    issuer: Issuer


def check_token(
    raw: bytes, *, trust: Trust, statements_digest: str, at: int, live: bool, tested: TestedCommit
) -> tuple[Identity | None, list[Finding]]:
    """The identity if everything holds, else None with all that does not. ``at`` is seconds since the epoch."""
    where = "ci.jwt"
    try:
        token = _verified(raw, trust)
    except BadToken as error:
        return None, [finding("identity.bad_signature", str(error), where)]
    claims, found = token.claims, []
    expected = trust.audience_prefix + statements_digest
    if claims.get("aud") != expected or not isinstance(claims.get("aud"), str):
        found.append(finding("identity.not_bound", "its audience is not the digest of ci.intoto.jsonl", where))
    found.extend(_check_times(claims, trust.max_age, at, live=live))
    found.extend(_check_required(token))
    identity = _read_identity(token)
    if identity is None:
        found.append(finding("identity.wrong_claims", "a claim of its run is missing or of another type", where))
    else:
        found.extend(_check_commit(token, tested))
    return (None if found else identity), found


def _verified(raw: bytes, trust: Trust) -> _Token:
    token = take_apart(raw)
    name = token.claims.get("iss")
    issuer = next((issuer for issuer in trust.issuers if issuer.issuer == name), None)
    if issuer is None:
        raise BadToken("its issuer is not pinned")
    check_signature(token, issuer.keys, issuer.algorithms)
    return _Token(claims=token.claims, issuer=issuer)


def _check_times(claims: dict[str, Value], max_age: int, at: int, *, live: bool) -> list[Finding]:
    begins, issued, ends = (claims.get(name) for name in ("nbf", "iat", "exp"))
    if type(begins) is not int or type(issued) is not int or type(ends) is not int:
        return [finding("identity.expired", "nbf, iat and exp are not all whole numbers", "ci.jwt")]
    if not begins <= issued < ends:
        said = "it was issued outside its own validity"
    elif issued > at + LEEWAY:
        said = f"issued {issued - at} s in the future"
    elif at - issued > max_age:
        said = f"issued {at - issued} s ago, at most {max_age} s count"
    elif live and at >= ends + LEEWAY:
        said = f"expired {at - ends} s ago"
    else:
        return []
    return [finding("identity.expired", said, "ci.jwt")]


def _check_required(token: _Token) -> list[Finding]:
    found = []
    for name, wanted in token.issuer.require:
        value = token.claims.get(name)
        if type(value) is not str or value != wanted:
            said = f"{name} is {str(value)[:120]!a}, pinned is {wanted!a}"
            found.append(finding("identity.wrong_claims", said, "ci.jwt"))
    return found


def _read_identity(token: _Token) -> Identity | None:
    text, claims = _Text(token.claims), token.claims
    issuer = token.issuer.issuer
    match token.issuer.platform:
        case "github":
            server = "https://github.com"
            if issuer != "https://token.actions.githubusercontent.com":
                server = issuer.removesuffix("/_services/token")
            run_id = text["run_id"]
            invocation = f"{server}/{text['repository']}/actions/runs/{run_id}/attempts/{text['run_attempt']}"
            builder, actor = f"{server}/{text['job_workflow_ref']}", text["actor"]
        case "gitlab":
            # The token of a child pipeline vouches for statements that its parent made in the same project.
            run_id = "" if claims.get("pipeline_source") == "parent_pipeline" else text["pipeline_id"]
            invocation = f"{issuer}/{text['project_path']}/-/pipelines/{run_id}"
            builder, actor = f"https://{text['ci_config_ref_uri']}", text["user_login"]
        case "buildkite":
            run_id, pipeline = str(claims.get("build_number") or ""), text["pipeline_slug"]
            invocation = f"https://buildkite.com/{text['organization_slug']}/{pipeline}/builds/{run_id}"
            builder, actor = f"https://buildkite.com/{text['organization_slug']}/{pipeline}", text["agent_id"]
    issued = claims.get("iat")
    token_id = text["jti"]
    child = claims.get("pipeline_source") == "parent_pipeline" and token.issuer.platform == "gitlab"
    if text.missing or not (run_id or child) or not isinstance(issued, int):
        return None
    return Identity(
        platform=token.issuer.platform,
        issuer=issuer,
        run_id=run_id,
        invocation=invocation,
        builder=builder,
        issued=issued,
        token_id=token_id,
        actor=actor,
        pull_request=_pull_request(claims),
    )


class _Text:
    """String claims; remembers that one was missing or of another type."""

    def __init__(self, claims: dict[str, Value]) -> None:
        self._claims = claims
        self.missing = False

    def __getitem__(self, name: str) -> str:
        value = self._claims.get(name)
        if isinstance(value, str) and value:
            return value
        self.missing = True
        return ""


def _pull_request(claims: dict[str, Value]) -> int | None:
    words = str(claims.get("ref", "")).split("/")
    if words[:2] == ["refs", "pull"] and len(words) == 4 and words[2].isascii() and words[2].isdigit():
        return int(words[2][:18])
    return None


def _check_commit(token: _Token, tested: TestedCommit) -> list[Finding]:
    """GitHub and Buildkite name the commit; a GitLab job in the trusted project names its own, so statements bind it."""
    name = {"github": "sha", "buildkite": "build_commit", "gitlab": ""}[token.issuer.platform]
    if not name:
        return []
    value = token.claims.get(name)
    why = tested(value) if isinstance(value, str) else "is missing"
    return [finding("identity.wrong_claims", f"{name} {why}", "ci.jwt")] if why else []
