"""Tokens of every platform and algorithm, and the parts of a token that must not be able to choose anything."""

import base64
import hashlib
import hmac
import json

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, utils
from cryptography.hazmat.primitives.hashes import SHA256

from ringfence.promotion.identity import check_token
from ringfence.promotion.jws import BadToken, take_apart
from ringfence.promotion.strict import Malformed
from ringfence.promotion.trust import parse_trust

BUILDKITE = "https://agent.buildkite.com"


def b64(raw):
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


class Elliptic:
    """An issuer with a P-256 key."""

    def __init__(self):
        self.key = ec.generate_private_key(ec.SECP256R1())
        point = self.key.public_key().public_numbers()
        coordinates = {"x": b64(point.x.to_bytes(32)), "y": b64(point.y.to_bytes(32))}
        self.jwk = {"kty": "EC", "crv": "P-256", "alg": "ES256", "use": "sig", "kid": "e", **coordinates}

    def token(self, claims, header=None):
        head = {"alg": "ES256", "kid": "e", **(header or {})}
        body = f"{b64(json.dumps(head).encode())}.{b64(json.dumps(claims).encode())}"
        r, s = utils.decode_dss_signature(self.key.sign(body.encode(), ec.ECDSA(SHA256())))
        return f"{body}.{b64(r.to_bytes(32) + s.to_bytes(32))}".encode()


@pytest.fixture(scope="module")
def elliptic():
    return Elliptic()


@pytest.fixture(scope="module")
def trust(double, elliptic):
    files = {name: double.text(value) for name, value in double.trust_files().items()}
    listed = double.trust_files()["issuers.json"]
    pins = {"organization_slug": "orchard", "pipeline_slug": "shop"}
    listed["issuers"].append(
        {"platform": "buildkite", "issuer": BUILDKITE, "jwks": "jwks-b.json", "algorithms": ["ES256"], "require": pins}
    )
    return parse_trust(
        {**files, "issuers.json": double.text(listed), "jwks-b.json": double.text({"keys": [elliptic.jwk]})}
    )


def buildkite(double, **altered):
    claims = {
        "iss": BUILDKITE,
        "sub": "organization:orchard:pipeline:shop:ref:refs/heads/x:commit:" + "a" * 40 + ":step:attest",
        "aud": "promotion+sha256:" + "d" * 64,
        "iat": double.NOW - 60,
        "nbf": double.NOW - 60,
        "exp": double.NOW + 240,
        "jti": "b-1",
        "organization_slug": "orchard",
        "pipeline_slug": "shop",
        "build_number": 9,
        "build_branch": "x",
        "build_commit": "a" * 40,
        "step_key": "attest",
        "job_id": "j",
        "agent_id": "g",
        **altered,
    }
    return {name: value for name, value in claims.items() if value is not None}


def ask(token, trust, double, *, live=False, at=None):
    return check_token(
        token,
        trust=trust,
        statements_digest="d" * 64,
        at=double.NOW if at is None else at,
        live=live,
        tested=lambda sha: None if sha == "a" * 40 else "is another",
    )


def test_a_buildkite_token_proves_its_build(trust, double, elliptic):
    identity, found = ask(elliptic.token(buildkite(double)), trust, double)
    assert not found
    assert (identity.platform, identity.run_id) == ("buildkite", "9")
    assert identity.invocation == "https://buildkite.com/orchard/shop/builds/9"


@pytest.mark.parametrize(
    ("altered", "code"),
    [
        ({"build_commit": "b" * 40}, "identity.wrong_claims"),
        ({"build_commit": None}, "identity.wrong_claims"),
        ({"pipeline_slug": "other"}, "identity.wrong_claims"),
        ({"jti": None}, "identity.wrong_claims"),
        ({"jti": 5}, "identity.wrong_claims"),
        ({"build_number": None}, "identity.wrong_claims"),
        ({"aud": None}, "identity.not_bound"),
        ({"iat": None}, "identity.expired"),
        ({"iat": True}, "identity.expired"),
        ({"exp": 1e12}, "identity.expired"),
        ({"iss": "https://agent.buildkite.com/"}, "identity.bad_signature"),
    ],
)
def test_each_claim_counts(trust, double, elliptic, altered, code):
    identity, found = ask(elliptic.token(buildkite(double, **altered)), trust, double)
    assert identity is None
    assert code in {item.code for item in found}


def test_a_live_token_must_be_unexpired_and_kept_evidence_recent(trust, double, elliptic):
    token = elliptic.token(buildkite(double))
    assert ask(token, trust, double, live=True)[0]
    assert ask(token, trust, double, live=True, at=double.NOW + 300)[0] is None
    assert ask(token, trust, double, at=double.NOW + 300)[0]
    assert ask(token, trust, double, at=double.NOW + 90_000)[0] is None


@pytest.mark.parametrize(
    "header",
    [
        {"alg": "none"},
        {"alg": "RS256"},
        {"alg": "HS256"},
        {"alg": "es256"},
        {"alg": None},
        {"kid": "other"},
        {"kid": ""},
        {"kid": None},
        {"kid": 5},
        {"crit": ["exp"]},
        {"b64": False},
    ],
)
def test_a_header_chooses_nothing(trust, double, elliptic, header):
    identity, found = ask(elliptic.token(buildkite(double), header), trust, double)
    assert identity is None
    assert [item.code for item in found] == ["identity.bad_signature"]


def test_keys_in_the_header_are_not_looked_at(trust, double):
    other = Elliptic()
    for name, value in (("jwk", other.jwk), ("jku", "https://evil.example/jwks"), ("x5u", "https://evil.example/x")):
        assert ask(other.token(buildkite(double), {name: value}), trust, double)[0] is None


def test_the_public_key_is_no_shared_secret(trust, double):
    issuer = double.ISSUERS["github"]
    for secret in (json.dumps(issuer.jwk()).encode(), issuer.jwk()["n"].encode()):
        body = f"{b64(json.dumps({'alg': 'HS256', 'kid': issuer.kid}).encode())}.{b64(json.dumps({'iss': double.GITHUB}).encode())}"
        token = f"{body}.{b64(hmac.new(secret, body.encode(), hashlib.sha256).digest())}".encode()
        assert ask(token, trust, double)[0] is None


def test_one_issuers_key_does_not_sign_for_another(trust, double, elliptic):
    claims = buildkite(double)
    assert ask(double.ISSUERS["gitlab"].token({**claims, "iss": double.GITHUB}), trust, double)[0] is None
    assert ask(elliptic.token({**claims, "iss": double.GITLAB}), trust, double)[0] is None


def test_an_all_zero_elliptic_signature_is_refused(trust, double, elliptic):
    body = b".".join(elliptic.token(buildkite(double)).split(b".")[:2])
    for raw in (bytes(64), b"\xff" * 64, bytes(63), bytes(65)):
        assert ask(body + b"." + b64(raw).encode(), trust, double)[0] is None


@pytest.mark.parametrize(
    "token", [b"", b".", b"..", b"a.b", b"a.b.c.d", b"e30=.e30.e30", b"e30.e30.e3", b"W10.e30.e30", b"x" * 20_000]
)
def test_other_shapes_are_no_tokens(token):
    with pytest.raises(BadToken):
        take_apart(token)


def test_a_second_spelling_of_the_same_signature_is_refused(trust, double, elliptic):
    token = elliptic.token(buildkite(double))
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    last = letters.index(chr(token[-1]))
    other = token[:-1] + letters[last ^ 1].encode()  # the lowest bits of the last letter carry nothing
    assert ask(other, trust, double)[0] is None


def test_keys_that_are_no_signing_keys_are_left_out_or_refused(double):
    files = {name: double.text(value) for name, value in double.trust_files().items()}
    good = double.ISSUERS["github"].jwk()
    for keys in (
        [],
        [{**good, "use": "enc"}],
        [{**good, "kid": ""}],
        [good, good],
        [{**good, "n": 5}],
        [{"kty": "oct", "k": "x"}],
    ):
        with pytest.raises(Malformed):
            parse_trust({**files, "jwks-github.json": double.text({"keys": keys})})
