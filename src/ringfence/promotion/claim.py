"""promotion.json: nine fields that a change says about itself. Read strictly here, compared elsewhere, never believed. Pure."""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, fields

from ringfence.promotion.findings import Finding, finding
from ringfence.promotion.strict import Malformed, Value, parse_object

EMPTY_SHA256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
_DIGEST = re.compile(r"[0-9a-f]{64}\Z")
_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/-]{0,127}\Z")
_FLAG = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}\Z")
_PRINTABLE = re.compile(r"[!-~](?:[ -~]*[!-~])?\Z")
_FILLERS = "\u115f\u1160\u3164\uffa0\u2800"  # letters and symbols that show nothing
_PLACEHOLDER = re.compile(
    r"(?:replace[ _-]?(?:me|with|this).*|to ?do|t\.?b\.?d|fixme|change[ _-]?me|place[ _-]?holder|example|sample|"
    r"n ?[/.\\-]? ?a\.?|not[ _-]?applicable|none|null|nil|undefined|unknown|empty|blank|missing|pending|later|"
    r"x+|y+|z+|0+|f+|\?+|-+|_+|\.+|\*+|true|false|yes|no|ok|test|foo|bar|string|value|"
    r"same as .*|see .*|ask .*|agent-change-ticket|ticket|on-?call-?handle|@?(?:owner|handle|user(?:name)?|somebody)|"
    r"<.*>|\{\{.*\}\}|\$\{.*\}|full[ _-]?sha|sha(?:256)?|run[ _-]?id)\Z"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """The nine fields as written; any of them may be false."""

    git_sha: str
    sandbox_run_id: str
    sandbox_artifact_sha256: str
    trusted_ci_run_id: str
    trusted_ci_artifact_sha256: str
    env_class_attested: str
    feature_flag: str
    owner: str
    rollback: str


FIELDS = tuple(field.name for field in fields(Claim))


def read_claim(raw: bytes, *, id_length: int, where: str) -> tuple[Claim | None, list[Finding]]:
    """The claim, or None where not all nine are strings, and everything wrong with its form. ``id_length`` is 40 or 64."""
    try:
        members = parse_object(raw)
    except Malformed as error:
        return None, [finding("evidence.malformed", str(error), where)]
    found = [
        finding("evidence.malformed", f"the key {name[:40]!a} is not one of the nine", where)
        for name in members
        if name not in FIELDS
    ]
    for name in FIELDS:
        found.extend(_check_field(name, members, id_length, where))
    texts = {name: value for name in FIELDS if isinstance(value := members.get(name), str)}
    return (Claim(**texts) if len(texts) == len(FIELDS) else None), found


def _check_field(name: str, members: dict[str, Value], id_length: int, where: str) -> Iterator[Finding]:
    if name not in members:
        yield finding("evidence.malformed", f"{name} is missing", where)
        return
    value = members[name]
    if not isinstance(value, str):
        yield finding("evidence.malformed", f"{name} is not a string", where)
        if not value:
            yield finding("evidence.placeholder", f"{name} is empty", where)
        return
    if is_placeholder(value):
        yield finding("evidence.placeholder", f"{name} is {value[:60]!a}", where)
    elif not _PRINTABLE.match(value) or len(value) > 512:
        yield finding("evidence.malformed", f"{name} holds {value[:60]!a}: printable ASCII only", where)
    yield from _check_grammar(name, value, id_length, where)


def _check_grammar(name: str, value: str, id_length: int, where: str) -> Iterator[Finding]:
    text = f"{name} is {value[:80]!a}"
    if name == "git_sha" and not re.fullmatch(rf"[0-9a-f]{{{id_length}}}", value):
        yield finding("sha.format", text, where)
    elif name.endswith("_artifact_sha256") and not is_digest(value):
        yield finding("digest.format", text, where)
    elif name.endswith("_run_id") and not _RUN_ID.match(value):
        yield finding("evidence.malformed", f"{text}, not a run id", where)
    elif name == "feature_flag" and not _FLAG.match(value):
        yield finding("flag.missing", f"{text}, not a flag's name", where)


def is_digest(value: str) -> bool:
    """64 lower-case hex digits, neither of nothing nor of one repeated digit."""
    return bool(_DIGEST.match(value)) and value != EMPTY_SHA256 and len(set(value)) > 1


def is_placeholder(value: str) -> bool:
    """Whether a person would see nothing, or the words of a template, where a value belongs."""
    folded = unicodedata.normalize("NFKC", value).casefold()
    seen = "".join(c for c in folded if c == " " or (c not in _FILLERS and unicodedata.category(c)[0] not in "CZM"))
    bare = seen.strip(" \"'`()[]")
    return not bare or bool(_PLACEHOLDER.match(bare))
