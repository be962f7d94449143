"""Credential material in bytes: a small set of precise shapes, each with a check that tells examples from the real thing. Pure.

RE2 matches in linear time, so that a blob made to stall a backtracking engine cannot.
"""

import hashlib
import itertools
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import re2

from ringfence.promotion.decode import layers

Match: TypeAlias = Any
Pattern: TypeAlias = Any
"""RE2 ships no types."""

_LOCAL_HOST = re.compile(
    r"(?:localhost|127\.\d+\.\d+\.\d+|0\.0\.0\.0|\[?::1\]?|host\.docker\.internal|"
    r"(?:.*\.)?(?:example|test|invalid|localhost)|(?:.*\.)?example\.(?:com|org|net|edu))\Z",
    re.IGNORECASE,
)
_DUMMY = re.compile(
    r"(?:pass(?:word|wd|phrase)?|pwd|secret|changeme|change-me|hunter2|admin|root|user|guest|test(?:ing)?|dummy|fake|"
    r"example|sample|demo|redacted|removed|placeholder|postgres|mysql|mongo|rabbitmq|minio|your.*|my.*|x+|\*+|\.+|"
    r"\[.*\]|<.*>|\$.*|%.*|\{.*\}?|.*(?:example|placeholder|changeme|redacted|dummy|not[-_]?a[-_]?(?:real|secret)).*)\d{0,4}\Z",
    re.IGNORECASE,
)
_DIGEST_NAME = re.compile(
    r"(?i)(?:sha\d*|digest|hash|checksum|integrity|fingerprint|public|_id|_name|_url|_path|_file)\W*\Z"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Secret:
    """One hit: which rule, and a digest of the value. The value itself is kept nowhere."""

    rule: str
    digest: str
    line: int
    wrapped: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rule:
    name: str
    pattern: Pattern
    check: Callable[[Match], bool]
    deep: bool = True


def _text(match: Match, group: int = 0) -> str:
    return (match.group(group) or b"").decode("latin-1")


def _not_example(match: Match) -> bool:
    text = _text(match)
    return "EXAMPLE" not in text.upper() and len(set(text[4:])) > 5


def _real_url(match: Match) -> bool:
    password, host = _text(match, 1), _text(match, 2).rpartition(":")[0] or _text(match, 2)
    if _LOCAL_HOST.match(host) or _DUMMY.match(password):
        return False
    return "." in host or (len(password) >= 12 and entropy(password) > 3.0)


def _random_value(match: Match) -> bool:
    name, value = _text(match, 1), _text(match, 2)
    if _DUMMY.match(value) or _DIGEST_NAME.search(name) or "://" in value or value.startswith(("/", "./", "~")):
        return False
    kinds = sum(bool(re.search(kind, value)) for kind in ("[a-z]", "[A-Z]", "[0-9]"))
    return kinds >= 2 and bool(re.search("[0-9]", value)) and entropy(value) >= 3.3


def _key_body(match: Match) -> bool:
    return len(set(_text(match, 1))) > 12


def _always(match: Match) -> bool:
    return len(set(_text(match))) > 8 and "example" not in _text(match).casefold()


def entropy(text: str) -> float:
    """Bits per character, by the characters' own frequencies."""
    size = len(text)
    return -sum(text.count(c) / size * math.log2(text.count(c) / size) for c in set(text)) if size else 0.0


def _rule(name: str, pattern: str, check: Callable[[Match], bool] = _always, *, deep: bool = True) -> _Rule:
    return _Rule(name=name, pattern=re2.compile(pattern.encode("latin-1")), check=check, deep=deep)


_ASSIGNED = r"(?im)([a-z0-9_.-]*(?:password|passwd|passphrase|pwd|secret|token|api_?-?key|access_?-?key|private_?-?key|credential|auth)[a-z0-9_-]*[\"']?\s*(?::|=>?|:=)\s*)"
RULES = (
    _rule("aws-key-id", r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b", _not_example),
    _rule(
        "aws-secret-key",
        r"(?i)aws[a-z0-9_. -]{0,24}(?:secret|key)[a-z0-9_. -]{0,24}[\"']?\s*[:=]\s*[\"']?([A-Za-z0-9/+]{40})(?:[^A-Za-z0-9/+]|$)",
        _always,
    ),
    _rule(
        "private-key",
        r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----(?:\s|\\n|\"|'|,)*(?:[A-Za-z-]+: [^\n]*\s+)*([A-Za-z0-9+/=]{40,})",
        _key_body,
    ),
    _rule("github-token", r"\b(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{50,})"),
    _rule("gitlab-token", r"\bgl(?:pat|ptt|dt|rt|cbt|ft|soat|agent|oas)-[A-Za-z0-9_-]{20,}"),
    _rule(
        "slack-token",
        r"\bxox[abeoprs]-[A-Za-z0-9-]{20,}|hooks\.slack\.com/services/T[A-Z0-9]{6,}/B[A-Z0-9]{6,}/[A-Za-z0-9]{20,}",
    ),
    _rule("payment-key", r"\b(?:sk|rk)_live_[A-Za-z0-9]{16,}|\bwhsec_[A-Za-z0-9]{24,}"),
    _rule("google-key", r"\bAIza[A-Za-z0-9_-]{35}|\bya29\.[A-Za-z0-9_-]{30,}|\bGOCSPX-[A-Za-z0-9_-]{20,}"),
    _rule(
        "registry-token",
        r"\bnpm_[A-Za-z0-9]{36}\b|\bpypi-AgE[A-Za-z0-9_-]{50,}|\bdckr_pat_[A-Za-z0-9_-]{20,}|\brubygems_[0-9a-f]{40,}",
    ),
    _rule("model-key", r"\bsk-(?:ant-|proj-|or-)?[A-Za-z0-9_-]{32,}|\bhf_[A-Za-z0-9]{30,}"),
    _rule(
        "service-token",
        r"\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{20,}|\bdop_v1_[0-9a-f]{60,}|\bshp(?:at|ss|ca)_[0-9a-fA-F]{32}|\bhvs\.[A-Za-z0-9_-]{24,}|\bdapi[0-9a-f]{32}\b|\bAccountKey=[A-Za-z0-9+/]{60,}",
    ),
    _rule("jwt", r"\beyJ[A-Za-z0-9_-]{16,}\.eyJ[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{20,}"),
    _rule(
        "connection-string",
        r"(?i)\b[a-z][a-z0-9+.-]{1,24}://[^\s:/@\"'<>]{0,80}:([^\s@/\"'<>]{3,200})@([A-Za-z0-9.\[\]:-]{1,255})",
        _real_url,
    ),
    _rule(
        "connection-string",
        r"(?i)(?:server|host|data source)\s*=\s*[^;\n]{1,200};[^\n]{0,200}?(?:password|pwd)\s*=\s*([^;\s\"']{6,})()",
        lambda m: (
            not _DUMMY.match(_text(m, 1))
            and not re.search(r"(?i)=\s*(?:tcp:)?(?:localhost|127\.0\.0\.1|\(local)", _text(m))
        ),
    ),
    _rule(
        "basic-auth",
        r"(?i)authorization[\"']?\s*[:=]\s*[\"']?(?:basic|bearer)\s+([A-Za-z0-9+/_.=-]{20,})()",
        lambda m: entropy(_text(m, 1)) > 3.5 and not _DUMMY.match(_text(m, 1)),
    ),
    _rule(
        "netrc",
        r"(?i)\bmachine\s+[a-z0-9.-]+\s+login\s+\S+\s+password\s+(\S{6,})()",
        lambda m: not _DUMMY.match(_text(m, 1)),
    ),
    _rule("npmrc", r"(?i)_auth(?:token)?\s*=\s*([A-Za-z0-9+/=_-]{16,})()", lambda m: not _DUMMY.match(_text(m, 1))),
    _rule("kubeconfig", r"(?i)client-key-data:\s*([A-Za-z0-9+/=]{40,})()"),
    _rule("assigned-secret", _ASSIGNED + r"[\"'`]([^\s\"'`]{12,200})[\"'`]", _random_value, deep=False),
    _rule(
        "assigned-secret",
        r"(?m)^\s*(?:export\s+)?([A-Za-z0-9_.-]*(?i:password|passwd|passphrase|secret|token|api_?key|access_?key|private_?key)[A-Za-z0-9_]*\s*[=:]\s*)([A-Za-z0-9+/=_!@#%^&*-]{12,200})\s*$",
        _random_value,
        deep=False,
    ),
)
_HITS = 500
"""Matches of one rule that are looked at in one text: enough to refuse, too few to stall."""
_KEY_FILE = re.compile(
    r"(?:.*/)?(?:id_(?:rsa|dsa|ecdsa|ed25519)|[^/]+\.(?:p12|pfx|jks|keystore|kdbx|ppk)|\.aws/credentials|\.netrc|\.pgpass|"
    r"\.docker/config\.json|\.kube/config|\.git-credentials)\Z",
    re.IGNORECASE,
)


def find_secrets(raw: bytes) -> list[Secret]:
    """Every credential in the bytes or packed inside them. Raises decode.Unread where not all of it was read."""
    found: dict[tuple[str, str], Secret] = {}
    for text, wrapped in layers(raw):
        for secret in _scan(text, wrapped):
            found.setdefault((secret.rule, secret.digest), secret)
    return list(found.values())


def is_key_file(path: str) -> bool:
    """Whether a file of that name holds credentials by its nature."""
    return bool(_KEY_FILE.match(path))


def _scan(text: bytes, wrapped: str) -> Iterator[Secret]:
    for rule in RULES:
        if wrapped in {"base64", "hex"} and not rule.deep:
            continue
        for match in itertools.islice(rule.pattern.finditer(text), _HITS):
            if rule.check(match):
                value = match.group(0)
                line = text.count(b"\n", 0, match.start()) + 1 if not wrapped else 0
                yield Secret(rule=rule.name, digest=hashlib.sha256(value).hexdigest(), line=line, wrapped=wrapped)
