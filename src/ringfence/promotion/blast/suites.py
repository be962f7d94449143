"""Whether a change leaves fewer tests than it found: counted by name in the touched files of both sides. Pure.

Counting is not running: it shows what was taken out, hidden from the runner, or switched off. A test that is kept and says
nothing any more is for the reviewer, who is told how many assertions went and which tests are gone by name.
"""

import re
from collections import Counter
from dataclasses import dataclass, field

import re2

from ringfence.promotion.blast.languages import IS_CONFIGURATION, LANGUAGES, SHUTS_OUT, Language, bare
from ringfence.promotion.blast.python_suite import python_tests
from ringfence.promotion.change import Change, Side, Touched
from ringfence.promotion.findings import Finding, finding, shown

_TEST_PATH = re.compile(
    r"(?:.*/)?(?:tests?|__tests__|specs?|testing)/.*|(?:.*/)?(?:test_[^/]*|conftest\.py|[^/]*[._-](?:test|tests|spec)\.[^/]+|"
    r"[^/]*(?:Tests?|Spec)\.(?:java|kt|scala|groovy|cs|swift|php))\Z"
)
_ASSERTION = re2.compile(rb"\b(?:assert|expect|should|require\.)|\bt\.(?:Error|Fatal)")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Suite:
    """What one side of one file holds. ``found``: its tests, if a runner looks into a file of that name by itself."""

    names: Counter[str] = field(default_factory=Counter)
    found: int = 0
    off: int = 0
    assertions: int = 0


def measure_suites(change: Change) -> tuple[list[Finding], dict[str, int]]:
    """A finding where tests are fewer, or more of them are switched off, over the whole change; and the numbers."""
    tests = found = off = assertions = 0
    places = []
    for item in change.touched:
        old, new = _suite(item, item.old), _suite(item, item.new)
        shut = _shuts_out(item)
        tests += new.names.total() - old.names.total()
        found += new.found - old.found
        off += new.off - old.off + shut
        assertions += new.assertions - old.assertions
        if new.names.total() < old.names.total() or new.found < old.found or new.off > old.off or shut:
            places.append(item.path)
    numbers = {
        "tests_fewer": max(0, -tests, -found),
        "tests_switched_off": max(0, off),
        "assertions_fewer": max(0, -assertions),
    }
    if not (numbers["tests_fewer"] or numbers["tests_switched_off"]):
        return [], numbers
    said = f"{numbers['tests_fewer']} fewer tests, {numbers['tests_switched_off']} more switched off: {', '.join(places[:4])}"
    return [finding("tests.fewer", said, change.label)], numbers


def gone_by_name(change: Change) -> list[str]:
    """Tests of the base that no touched file holds under that name any more: as many others may stand for them."""
    before: Counter[str] = Counter()
    after: Counter[str] = Counter()
    for item in change.touched:
        before += _suite(item, item.old).names
        after += _suite(item, item.new).names
    return sorted(shown(name, 80) for name in (before - after))


def _suite(item: Touched, side: Side | None) -> _Suite:
    path = item.path
    language = next((language for language in LANGUAGES if path.endswith(language.suffixes)), None)
    if side is None or side.content is None or language is None:
        return _Suite()
    if not (language.anywhere or _TEST_PATH.match(path)):
        return _Suite()
    names, conditional = _tests(language, side.content)
    return _Suite(
        names=names,
        found=names.total() if language.collected.match(path) else 0,
        off=_count(language.off, side.content) + conditional,
        assertions=_count(_ASSERTION, bare(language, side.content)),
    )


def _tests(language: Language, content: bytes) -> tuple[Counter[str], int]:
    parsed = python_tests(content) if language.suffixes == (".py",) else None
    if parsed is not None:
        return Counter(dict.fromkeys(parsed.names, 1)), parsed.conditional
    text = bare(language, content)
    return Counter(_line(text, match.end()) for match in language.test.finditer(text)), 0


def _line(text: bytes, at: int) -> str:
    """The line in which a test begins, as its name."""
    start, end = text.rfind(b"\n", 0, at) + 1, text.find(b"\n", at)
    return text[start : end if end >= 0 else len(text)][:200].strip().decode("utf-8", "replace")


def _shuts_out(item: Touched) -> int:
    """How many such lines the change brings into the configuration of tests; a comma at the end makes no new line."""
    if item.new is None or item.new.content is None or not IS_CONFIGURATION.match(item.path):
        return 0
    old = item.old.content if item.old is not None and item.old.content is not None else b""
    known, lines = ({line.strip().rstrip(b",") for line in side.splitlines()} for side in (old, item.new.content))
    return sum(1 for line in lines - known if SHUTS_OUT.search(line) and not line.startswith((b"#", b"//", b";")))


def _count(pattern: "re2._Regexp[bytes]", content: bytes) -> int:
    return sum(1 for _ in pattern.finditer(content))
