"""Secrets are replaced before anything is written: known token forms, the policy's patterns, and exact values.

A secret becomes ``hmac:EPOCH:32 hex digits``, a keyed hash: who holds the key can ask whether two are equal, nobody can
guess one from it. Every record is searched once in its encoded form; only where that finds something are its texts
looked at one by one.
"""

import base64
import hmac
import html
import json
import os
import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote, quote_plus

from ringfence.ledger import canonical
from ringfence.ledger.files import read_small
from ringfence.ledger.segment import replace
from ringfence.model.entry import Json
from ringfence.model.errors import LedgerError

_EDGE = r"(?:\b|_|\\(?:[nrtbf]|u[0-9a-f]{4}))"
"""Where a name or token begins: also behind a line end or tab that is spelled out, as in JSON inside a text."""
_IS = r"\\*[\"']?\s*(?:=>|:=|[=:])\s*\\*[\"']?"
"""What stands between a name and its value in configuration, headers, code and JSON, however often it was quoted."""
FORMS: tuple[tuple[str, str], ...] = (
    ("aws-key-id", _EDGE + r"((?:AKIA|ASIA|ABIA|ACCA)[0-9A-Z]{16})"),
    ("aws-secret", r"(?i)aws_?secret_?(?:access_?)?key[\"']?\s*[=:]\s*[\"']?[0-9a-z/+=]{40}"),
    ("github", r"gh[pousr]_[0-9A-Za-z]{36,251}|github_pat_[0-9A-Za-z_]{22,255}"),
    ("gitlab", r"gl(?:pat|dt|rt|ft|soat|cbt|ptt|agent)-[0-9A-Za-z_-]{20,}"),
    ("slack", r"xox[abeoprs]-[0-9A-Za-z-]{10,}|xapp-[0-9]-[0-9A-Za-z-]{20,}"),
    ("slack-hook", r"hooks\.slack\.com/services/[0-9A-Za-z/]{20,}"),
    ("google-api", r"AIza[0-9A-Za-z_-]{35}"),
    ("google-oauth", r"ya29\.[0-9A-Za-z_-]{20,}|GOCSPX-[0-9A-Za-z_-]{20,}"),
    ("stripe", r"[rs]k_(?:live|test)_[0-9A-Za-z]{16,}|whsec_[0-9A-Za-z]{16,}"),
    (
        "model-api",
        _EDGE + r"(sk-(?:ant-|proj-|svcacct-|or-v1-)?[0-9A-Za-z_-]{20,})|sk-(?:ant|proj|svcacct)-[0-9A-Za-z_-]{20,}",
    ),
    (
        "package-index",
        r"pypi-[0-9A-Za-z_-]{50,}|npm_[0-9A-Za-z]{36}|dckr_[op]at_[0-9A-Za-z_-]{20,}|rubygems_[0-9a-f]{48}",
    ),
    ("hugging-face", r"hf_[0-9A-Za-z]{30,}"),
    ("sendgrid", r"SG\.[0-9A-Za-z_-]{16,}\.[0-9A-Za-z_-]{16,}"),
    ("digitalocean", r"do[opr]_v1_[0-9a-f]{64}"),
    (
        "azure",
        r"(?i)(?:AccountKey|SharedAccessKey)=[0-9a-z+/]{40,}={0,2}|[?&](?:sig|X-Amz-Signature|X-Goog-Signature)=[0-9a-z%+/]{30,}",
    ),
    (
        "hooks",
        r"discord(?:app)?\.com/api/webhooks/[0-9]+/[0-9A-Za-z_-]{40,}|webhook\.office\.com/webhookb2/[0-9A-Za-z@/-]{60,}",
    ),
    ("chat", r"[0-9]{8,10}:AA[0-9A-Za-z_-]{33}|[MNO][0-9A-Za-z_-]{23,27}\.[0-9A-Za-z_-]{6}\.[0-9A-Za-z_-]{27,38}"),
    (
        "by-name",
        r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}|lin_api_[0-9A-Za-z]{32,}|NRAK-[0-9A-Z]{27}|figd_[0-9A-Za-z_-]{30,}",
    ),
    ("hosts", r"ATATT3[0-9A-Za-z_=-]{40,}|pscale_(?:tkn|pw|oauth)_[0-9A-Za-z_-]{30,}|fm[12]_[0-9A-Za-z+/=_-]{40,}"),
    ("model-hosts", r"gsk_[0-9A-Za-z]{40,}|xai-[0-9A-Za-z]{60,}|sbp_[0-9a-f]{40}|sntr[yu]s_[0-9A-Za-z_=+/-]{40,}"),
    (
        "more-hosts",
        (
            r"tskey-[a-z]+-[0-9A-Za-z-]{20,}|nvapi-[0-9A-Za-z_-]{40,}|r8_[0-9A-Za-z]{30,}|pplx-[0-9A-Za-z]{40,}"
            r"|ntn_[0-9A-Za-z]{40,}|pul-[0-9a-f]{40}|CCIPAT_[0-9A-Za-z_]{40,}|sgp_[0-9a-f_]{40,}|bkua_[0-9a-f]{40}"
            r"|sb_secret_[0-9A-Za-z_-]{20,}|ops_eyJ[0-9A-Za-z_-]{100,}"
        ),
    ),
    (
        "vaults",
        r"hv[sbr]\.[0-9A-Za-z_-]{24,}|dp\.(?:pt|st|ct|sa|scim|audit)\.[0-9A-Za-z]{40,}|AGE-SECRET-KEY-1[0-9A-Z]{58}",
    ),
    (
        "dashboards",
        r"glsa_[0-9A-Za-z]{32}_[0-9a-f]{8}|PMAK-[0-9a-f]{24}-[0-9a-f]{34}|[0-9A-Za-z]{14}\.atlasv1\.[0-9A-Za-z_-]{60,}",
    ),
    (
        "hexadecimal",
        _EDGE + r"(SK[0-9a-f]{32}|dapi[0-9a-f]{32}|key-[0-9a-f]{32}|pat[0-9A-Za-z]{14}\.[0-9a-f]{64})(?:\b|_)",
    ),
    ("jwt", r"eyJ[0-9A-Za-z_-]{8,}\.eyJ[0-9A-Za-z_-]{8,}\.[0-9A-Za-z_-]{8,}"),
    (
        "private-key",
        r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?:[^-]|-[^-])*(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----)?",
    ),
    ("url-password", r"[a-zA-Z][a-zA-Z0-9+.-]{1,20}://[^/\s:@\"']*:([^/\s\"']{3,})@"),
    ("url-token", r"https?://([0-9A-Za-z_.~%-]{20,})@"),
    (
        "authorization",
        r"(?i)authorization" + _IS + r"(?:bearer|basic|token|digest|api-?key)\s+([0-9a-z._~+/=:-]{8,})",
    ),
    (
        "assigned",
        r"(?i)(?:password|passwd|passphrase|_pass|"
        + _EDGE
        + r"(?:secret(?:[_-]?key)?|api[_-]?key|auth[_-]?token|access[_-]?token|private[_-]?token))"
        + _IS
        + r"([^\s\"'\\&;,<>(){}$]{8,})",
    ),
    (
        "token",
        r"(?i)(?:" + _EDGE + r"|[-a-z])token" + _IS + r"([0-9a-z_/+=~-]{16,})",
    ),
    (
        "option",
        r"(?i)--?(?:[a-z_-]*[_-])?(?:password|passwd|passphrase|token|secret|(?:api|secret)[_-]?key)\s+\\*[\"']?([^\s\"'\\&;|<>(){}$-][^\s\"'\\&;|<>(){}$]{7,})",
    ),
    ("netrc", _EDGE + r"(?:machine\s+\S+|default)\s+login\s+\S+\s+password\s+([^\s\"'\\]{4,})"),
)
"""Name and RE2 rule of every form that is recognised. Where a rule has a group, only the group is the secret."""
_TWO_WORDS = r"\"--?(?:[a-z_-]*[_-])?(?:password|passwd|passphrase|token|secret|(?:api|secret)[_-]?key)\",\""
"""An option whose value is the next word of an argument vector, as records spell it."""
_ESCAPE = re.compile(rb"\\(?:u[0-9a-f]{4}|.)")
_SPELLED = {b'"': b'"', b"\\": b"", b"n": b"\n", b"t": b"\t", b"r": b"\r"}
_MARK = re.compile(r"hmac:[0-9]+:[0-9a-f]{32}")
_ANCHOR = re.compile(r"[\^$]|\\[Az]")
_KEY_BEGINS, _KEY_ENDS = (re.compile(f"-----{word} [A-Z0-9 ]*PRIVATE KEY") for word in ("BEGIN", "END"))
MIN_VALUE = 6
"""Characters of the shortest exact value: shorter ones would tear up ordinary text."""
_INDEX_KEYS = frozenset({"policy", "public", "root", "sha256", "prev", "by_old", "by_new"})


def load_key(directory: str) -> bytes:
    """The key of the keyed hashes, made at first use. Raises LedgerError ``ledger-key``."""
    path = f"{directory}/keys/scrub-1.key"
    try:
        key = bytes.fromhex(read_small(path, 256).decode().strip())
    except FileNotFoundError:
        key = os.urandom(32)
        replace(path, key.hex().encode() + b"\n")
    except (OSError, ValueError) as error:
        raise LedgerError("ledger-key", "the scrubbing key cannot be read", where=path) from error
    if len(key) != 32:
        raise LedgerError("ledger-key", "the scrubbing key is damaged", where=path, remedy="restore it from a backup")
    return key


class SecretScrubber:
    """Replaces what looks like a secret, or is one that we know. Thread-safe; holds compiled rules only."""

    def __init__(self, key: bytes, *, patterns: Iterable[str] = (), values: Iterable[str] = (), epoch: int = 1) -> None:
        """``patterns`` are RE2 rules of the policy, ``values`` secrets that the credential store knows.

        Raises LedgerError ``bad-pattern`` naming a rule that RE2 does not take: a rule that cannot be run would let
        its secrets through.
        """
        import re2

        self._key, self._epoch = key, epoch
        rules = [*(rule for _, rule in FORMS), *patterns]
        options = re2.Options()
        options.log_errors = False
        options.max_mem = 64 << 20
        try:
            # What a pattern anchors to are the ends of a text, which only the texts one by one show.
            self._anchored = any(_ANCHOR.search(rule) is not None for rule in rules[len(FORMS) :])
            # Groups of the policy's patterns are its own way of writing: what the whole pattern finds is the secret.
            self._rules = [(re2.compile(rule, options), number < len(FORMS)) for number, rule in enumerate(rules)]
            self._any = re2.compile("|".join(f"(?:{rule})" for rule in (*rules, _TWO_WORDS)), options)
        except re2.error as error:
            raise LedgerError(
                "bad-pattern", "a scrubbing pattern is not valid RE2", remedy="see the policy's `patterns`"
            ) from error
        known = {spelling for value in values if len(value) >= MIN_VALUE for spelling in _spellings(value)}
        self._values = sorted(known, key=len, reverse=True)
        encoded = sorted({json.dumps(value, ensure_ascii=False)[1:-1] for value in known})
        self._known = re2.compile("|".join(re2.escape(value) for value in encoded), options) if encoded else None

    def scrub(self, body: Mapping[str, Json]) -> Mapping[str, Json]:
        """The body with every secret replaced, in keys too; the same object where there is none."""
        encoded = canonical.encode(dict(body))
        # Escapes would hide the edges of a form from the rules, so the search sees the texts without them as well.
        plain = _ESCAPE.sub(_unescaped, encoded) if b"\\" in encoded else encoded
        seen = self._any.search(encoded) is not None or (plain is not encoded and self._any.search(plain) is not None)
        seen = seen or b'{"hex":"' in encoded
        if not seen and not self._anchored and (self._known is None or self._known.search(encoded) is None):
            return body
        cleaned = self._walk(dict(body))
        assert isinstance(cleaned, dict)
        return cleaned

    def clean(self, text: str) -> str:
        """One text with every secret replaced."""
        if not _is_unicode(text):
            shown = text.encode("utf-8", "replace").decode()
            cleaned = self.clean(shown)
            return text if cleaned == shown else cleaned
        for value in self._values:
            if value in text:
                text = text.replace(value, self.mark(value))
        for rule, grouped in self._rules:
            if rule.search(text) is not None:
                text = self._replace(rule, text, grouped=grouped)
        return text

    def mark(self, secret: str) -> str:
        """What stands in the ledger in place of a secret."""
        digest = hmac.digest(self._key, secret.encode("utf-8", "surrogatepass"), "sha256")
        return f"hmac:{self._epoch}:{digest.hex()[:32]}"

    def _replace(self, rule: Any, text: str, *, grouped: bool) -> str:
        parts: list[str] = []
        end = 0
        for match in rule.finditer(text):
            group = 1 if grouped and match.re.groups and match.start(1) >= 0 else 0
            start, stop = match.start(group), match.end(group)
            if start < end or start == stop or _MARK.fullmatch(text, start, stop):
                continue
            parts += [text[end:start], self.mark(text[start:stop])]
            end = stop
        return "".join([*parts, text[end:]])

    def _walk(self, value: Json) -> Json:
        if isinstance(value, str):
            return self.clean(value)
        if isinstance(value, list):
            return self._list(value)
        if isinstance(value, dict):
            if value.keys() == {"hex"}:
                return self._bytes(value)
            return {
                self.clean(key): inner if key in _INDEX_KEYS and _is_hash(inner) else self._walk(inner)
                for key, inner in value.items()
            }
        return value

    def _bytes(self, value: dict[str, Json]) -> Json:
        """Bytes that are no Unicode: the same, or their readable part where that holds a secret."""
        try:
            text = bytes.fromhex(str(value["hex"])).decode("utf-8", "replace")
        except ValueError:
            return {"hex": self._walk(value["hex"])}
        cleaned = self.clean(text)
        return value if cleaned == text else cleaned

    def _list(self, values: list[Json]) -> list[Json]:
        """Texts one by one, and what only two words in a row say, as ``--password`` and the next word."""
        cleaned = [self._walk(value) for value in values]
        for position in _inside_key(values):
            cleaned[position] = self.mark(str(values[position]))
        for position in range(len(values) - 1):
            name, value = values[position], values[position + 1]
            if isinstance(name, str) and isinstance(value, str) and len(value) >= MIN_VALUE and _names_secret(name):
                cleaned[position + 1] = self.mark(value)
        return cleaned


def _unescaped(match: "re.Match[bytes]") -> bytes:
    return _SPELLED.get(match[0][1:2], b" ")


def _inside_key(values: list[Json]) -> list[int]:
    """Places of the texts from the line after a private key's first one to its last, where each line is a text."""
    found: list[int] = []
    begun: int | None = None
    for position, value in enumerate(values):
        text = value if isinstance(value, str) else ""
        if begun is not None and _KEY_ENDS.search(text):
            found += [place for place in range(begun + 1, position + 1) if isinstance(values[place], str)]
            begun = None
        elif _KEY_BEGINS.search(text) and not _KEY_ENDS.search(text):
            begun = position
    return found


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _names_secret(word: str) -> bool:
    bare = word.lstrip("-").replace("-", "_").lower()
    return word.startswith("-") and (
        bare in {"password", "passwd", "passphrase", "token", "secret", "api_key", "apikey", "secret_key"}
        or bare.endswith(("_password", "_passphrase", "_token", "_secret", "_api_key", "_secret_key"))
    )


def _is_hash(value: Json) -> bool:
    return isinstance(value, str) and len(value) in {64, 128} and all(char in "0123456789abcdef" for char in value)


def _spellings(value: str) -> set[str]:
    """A secret as it also appears: percent-encoded, escaped, in base64, in hexadecimal, inside JSON inside a text."""
    raw = value.encode("utf-8", "surrogatepass")
    wide = value.encode("utf-16-le", "surrogatepass")
    found = {
        value,
        html.escape(value),
        re.sub(r"([^\w])", r"\\\1", value),
        value.replace("'", "'\\''"),
        repr(raw)[2:-1],
    }
    for inner in (value, json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]):
        found |= {json.dumps(inner)[1:-1], json.dumps(inner, ensure_ascii=False)[1:-1]}
    for spelled in (quote(value, safe=""), quote(value), quote_plus(value), "".join(f"%{byte:02X}" for byte in raw)):
        found |= {spelled, re.sub("%[0-9A-F]{2}", lambda escape: escape[0].lower(), spelled)}
    for digits in (raw.hex(), wide.hex(), raw.hex(":"), raw.hex(" "), raw.hex("-")):
        found |= {digits, digits.upper()}
    found |= {"".join(f"{form % byte}" for byte in raw) for form in ("\\x%02x", "\\x%02X", "\\%03o")}
    found |= {"".join(f"\\u{ord(char):04x}" for char in value), "\x00".join(value)}
    return {spelling for spelling in found | _in_base64(raw) | _in_base64(wide) if len(spelling) >= MIN_VALUE}


def _in_base64(raw: bytes) -> set[str]:
    """Base64 of a longer text that holds the secret shows it in one of three spellings; the ends depend on neighbours."""
    found: set[str] = set()
    for shift in range(3):
        spelled = base64.b64encode(b"\x00" * shift + raw).decode().rstrip("=")
        inner = spelled[(0, 2, 3)[shift] : len(spelled) - (1 if (len(raw) + shift) % 3 else 0)]
        if len(inner) >= MIN_VALUE + 2:
            found |= {inner, inner.replace("+", "-").replace("/", "_")}
    return found
