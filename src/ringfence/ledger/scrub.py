"""Secrets are replaced before anything is written: known token forms, the policy's patterns, and exact values.

A secret becomes ``hmac:EPOCH:32 hex digits``, a keyed hash: who holds the key can ask whether two are equal, nobody can
guess one from it. Every record is searched once in its encoded form; only where that finds something are its texts
looked at one by one.
"""

import bisect
import hmac
import itertools
import json
import os
import re
from collections.abc import Iterable, Mapping
from typing import Any

from ringfence.ledger import canonical
from ringfence.ledger.files import read_small
from ringfence.ledger.reach import end_of, quotes_of
from ringfence.ledger.secret_forms import BYTES, COMMANDS, CORES, FORMS, OPTION, TWO_WORDS
from ringfence.ledger.segment import replace
from ringfence.ledger.spellings import MIN_VALUE, spellings
from ringfence.ledger.token_forms import TOKENS
from ringfence.ledger.unsaid import withhold
from ringfence.model.entry import Json
from ringfence.model.errors import LedgerError

PROBE = 16
"""Characters that a record is searched for, of each spelling of a known value: enough to suspect it, and few for many values."""
_RESTORE = "look at its permissions and at the disk; where it is damaged, restore it from a backup"
_CONTROL = ord("u")
_SPELLED = dict(zip(b'"ntrbf', (b'"', b"\n", b"\t", b"\r", b"\b", b"\f"), strict=True))
_MARK = re.compile(r"hmac:[0-9]+:[0-9a-f]{32}")
_OPTION = re.compile(OPTION)
_ANCHOR = re.compile(r"[\^$]|\\[Az]")
_KEY_BEGINS, _KEY_ENDS = (re.compile(f"-----{word} [A-Z0-9 ]*PRIVATE KEY") for word in ("BEGIN", "END"))
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
        raise LedgerError("ledger-key", "the scrubbing key cannot be read", where=path, remedy=_RESTORE) from error
    if len(key) != 32:
        raise LedgerError("ledger-key", "the scrubbing key is damaged", where=path, remedy=_RESTORE)
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
        patterns = tuple(patterns)
        rules = [*(rule for _, rule in FORMS), *patterns]
        cores = [CORES.get(name, rule) for name, rule in FORMS]
        options = re2.Options()
        options.log_errors = False
        options.max_mem = 64 << 20
        try:
            # What a pattern anchors to are the ends of a text, which only the texts one by one show.
            self._anchored = any(_ANCHOR.search(rule) is not None for rule in rules[len(FORMS) :])
            # Groups of the policy's patterns are its own way of writing: what the whole pattern finds is the secret.
            self._rules = [(re2.compile(rule, options), number < len(FORMS)) for number, rule in enumerate(rules)]
            # These look for the first word of a value only.
            self._words = frozenset(rule for _, rule in FORMS[len(TOKENS) :])
            self._commands = [re2.compile(rule, options) for _, rule in COMMANDS]
            options.never_capture = True  # whether is asked, not where: room for all groups would take as long again
            self._any = re2.compile("|".join(f"(?:{rule})" for rule in (*cores, *patterns, TWO_WORDS, BYTES)), options)
        except re2.error as error:
            raise LedgerError(
                "bad-pattern", "a scrubbing pattern is not valid RE2", remedy="see the policy's `patterns`"
            ) from error
        known = {spelling for value in values if len(value) >= MIN_VALUE for spelling in spellings(value)}
        self._values = sorted(known, key=len, reverse=True)
        encoded = sorted({json.dumps(value, ensure_ascii=False)[1:-1][:PROBE] for value in known})
        self._known = re2.compile("|".join(re2.escape(value) for value in encoded), options) if encoded else None

    def suspects(self, encoded: bytes) -> bool:
        """Whether a body, given its canonical bytes, may hold something to replace: never False where it does."""
        if self._anchored or (self._known is not None and self._known.search(encoded) is not None):
            return True
        # The rules are about texts as they are; of the escapes that canonical JSON has nothing may be left.
        plain = _one_line(_unescaped(encoded).decode()).encode() if b"\\" in encoded else encoded
        return self._any.search(plain) is not None

    def scrub(self, body: Mapping[str, Json]) -> Mapping[str, Json]:
        """The body with every secret replaced, in keys too; the same object where there is none."""
        if not self.suspects(canonical.encode(dict(body))):
            return body
        cleaned = self._walk(dict(body))
        assert isinstance(cleaned, dict)
        return body if cleaned == body else withhold(body, cleaned, self.mark)

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
            if rule.search(_one_line(text)) is not None:
                text = self._replace(rule, text, grouped=grouped)
        return text

    def mark(self, secret: str) -> str:
        """What stands in the ledger in place of a secret."""
        digest = hmac.digest(self._key, secret.encode("utf-8", "surrogatepass"), "sha256")
        return f"hmac:{self._epoch}:{digest.hex()[:32]}"

    def _told_by_line(self, values: list[Json]) -> list[str]:
        """What a command's words, put into one line, show to be a secret, the longest first: to the end of a word that it is."""
        words = [value for value in values if isinstance(value, str)]
        line, ends = " ".join(words), list(itertools.accumulate(len(word) + 1 for word in words))
        found: set[str] = set()
        for match in (match for rule in self._commands for match in rule.finditer(line)):
            place = bisect.bisect_right(ends, match.start(1))
            begin = ends[place] - len(words[place]) - 1
            whole = match.start() < begin and not re.search(r"\s", line[begin : match.start(1)])
            found.add(line[match.start(1) : ends[place] - 1] if whole else match[1])
        return sorted(
            (secret for secret in found if not _MARK.fullmatch(secret)), key=lambda secret: (-len(secret), secret)
        )

    def _replace(self, rule: Any, text: str, *, grouped: bool) -> str:
        parts: list[str] = []
        end, quotes = 0, None
        for match in rule.finditer(_one_line(text)):
            group = next((n for n in range(1, match.re.groups + 1) if match.start(n) >= 0), 0) if grouped else 0
            start, stop = match.start(group), match.end(group)
            if start < end or start == stop or _MARK.fullmatch(text, start, stop):
                continue
            if rule.pattern in self._words:
                quotes = quotes_of(text) if quotes is None else quotes
                stop = end_of(text, quotes, began=match.start(), start=start, stop=stop)
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
        """Texts one by one, and what only several words in a row say, as ``--password`` and the next word."""
        cleaned = values
        for secret in self._told_by_line(values):
            cleaned = [word.replace(secret, self.mark(secret)) if isinstance(word, str) else word for word in cleaned]
        cleaned = [self._walk(value) for value in cleaned]
        for position in _inside_key(values):
            cleaned[position] = self.mark(str(values[position]))
        for position in range(len(values) - 1):
            name, value = values[position], values[position + 1]
            if isinstance(name, str) and isinstance(value, str) and len(value) >= MIN_VALUE and _OPTION.fullmatch(name):
                cleaned[position + 1] = self.mark(value)
        return cleaned


def _unescaped(encoded: bytes) -> bytes:
    """Canonical JSON with every text as it is, quotes and line ends among them."""
    before, *behind = encoded.split(b"\\")
    found, parts = [before], iter(behind)
    for part in parts:
        if not part:  # two backslashes: what follows is no escape
            found.append(b"\\" + next(parts, b""))
        elif part[0] == _CONTROL:
            found.append(bytes.fromhex(part[3:5].decode()) + part[5:])
        else:
            found.append(_SPELLED[part[0]] + part[1:])
    return b"".join(found)


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


def _one_line(text: str) -> str:
    """The text with every line that a backslash continues joined to the next, at the same places; also where it is spelled out."""
    return text.replace("\\\n", "  ").replace("\\\\\\n", "    ")


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_hash(value: Json) -> bool:
    return isinstance(value, str) and len(value) in {64, 128} and all(char in "0123456789abcdef" for char in value)
