"""Whether a change leaves fewer tests than it found: counted by name in the touched files of both sides. Pure.

Counting is not running: it shows what was taken out or switched off in the open. A test that is kept and says nothing
any more is for the reviewer, who is told how many assertions went.
"""

import re
from dataclasses import dataclass

import re2

from ringfence.promotion.change import Change, Side, Touched
from ringfence.promotion.findings import Finding, finding

_TEST_PATH = re.compile(
    r"(?:.*/)?(?:tests?|__tests__|specs?|testing)/.*|(?:.*/)?(?:test_[^/]*|conftest\.py|[^/]*[._-](?:test|tests|spec)\.[^/]+|"
    r"[^/]*(?:Tests?|Spec)\.(?:java|kt|scala|groovy|cs|swift|php))\Z"
)
_ASSERTION = re2.compile(rb"\b(?:assert|expect|should|require\.)|\bt\.(?:Error|Fatal)")
# Suffixes, a test, and what switches one off (`only` switches off all the others).
_LANGUAGES: tuple[tuple[tuple[str, ...], str, str], ...] = (
    (
        (".py",),
        r"(?m)^[ \t]*(?:async[ \t]+)?def[ \t]+test",
        (
            r"(?m)^[^#\n]*(?:\bmark\.(?:skip|skipif|xfail)\b|\b(?:skip|skipIf|skipUnless|skipTest|importorskip|xfail|"
            r"expectedFailure|SkipTest)\b|\bcollect_ignore|\b__test__\s*=\s*False)"
        ),
    ),
    (
        (".js", ".jsx", ".ts", ".tsx", ".mjs", ".cjs", ".mts", ".cts", ".vue"),
        r"(?m)^[ \t]*(?:it|test)\b\s*[(.`]",
        r"(?m)^[ \t]*(?:(?:it|test|describe|context|suite)\.(?:skip|skipIf|todo|fixme|failing|fails|only)\b|x(?:it|test|describe)\b)",
    ),
    ((".go",), r"(?m)^func (?:\([^)]*\) )?(?:Test|Fuzz|Example)\w*\(", r"\bt\.(?:Skip|SkipNow|Skipf)\("),
    ((".rs",), r"#\[(?:\w+::)*test\b", r"#\[ignore\b"),
    (
        (".java", ".kt", ".scala", ".groovy"),
        r"@(?:Test|ParameterizedTest|RepeatedTest|Property)\b",
        r"@(?:Disabled|Ignore)\b",
    ),
    ((".cs",), r"\[(?:Fact|Theory|Test|TestCase|TestMethod)\b", r"\[Ignore\b|\bSkip\s*="),
    (
        (".rb",),
        r"(?m)^[ \t]*(?:(?:it|specify|scenario|test)\b|def test_)",
        r"(?m)^[ \t]*(?:xit|xdescribe|pending|skip)\b",
    ),
    ((".php",), r"\bfunction test\w*|@test\b|#\[Test\b", r"markTest(?:Skipped|Incomplete)"),
    ((".ex", ".exs"), r'(?m)^[ \t]*test[ \t]+"', r"@(?:module)?tag :?skip"),
    ((".c", ".cc", ".cpp", ".cxx", ".h", ".hpp"), r"\bTEST(?:_F|_P|_CASE)?\(", r"\bGTEST_SKIP\b|\bDISABLED_"),
    ((".swift",), r"\bfunc test\w*\(|@Test\b", r"\bXCTSkip"),
)
_COUNTED = tuple(
    (suffixes, re2.compile(test.encode()), re2.compile(off.encode())) for suffixes, test, off in _LANGUAGES
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Suite:
    """What one side of one file holds."""

    tests: int = 0
    off: int = 0
    assertions: int = 0


def measure_suites(change: Change) -> tuple[list[Finding], dict[str, int]]:
    """A finding where tests are fewer, or more of them are switched off, over the whole change; and the numbers."""
    tests = off = assertions = 0
    places = []
    for item in change.touched:
        old, new = _suite(item, item.old), _suite(item, item.new)
        tests += new.tests - old.tests
        off += new.off - old.off
        assertions += new.assertions - old.assertions
        if new.tests < old.tests or new.off > old.off:
            places.append(item.path)
    numbers = {
        "tests_fewer": max(0, -tests),
        "tests_switched_off": max(0, off),
        "assertions_fewer": max(0, -assertions),
    }
    if not (numbers["tests_fewer"] or numbers["tests_switched_off"]):
        return [], numbers
    said = f"{numbers['tests_fewer']} fewer tests, {numbers['tests_switched_off']} more switched off: {', '.join(places[:4])}"
    return [finding("tests.fewer", said, change.label)], numbers


def _suite(item: Touched, side: Side | None) -> _Suite:
    path = item.path
    if side is None or side.content is None or not (path.endswith(".rs") or _TEST_PATH.match(path)):
        return _Suite()
    for suffixes, test, off in _COUNTED:
        if path.endswith(suffixes):
            return _Suite(
                tests=_count(test, side.content),
                off=_count(off, side.content),
                assertions=_count(_ASSERTION, side.content),
            )
    return _Suite()


def _count(pattern: "re2._Regexp[bytes]", content: bytes) -> int:
    return sum(1 for _ in pattern.finditer(content))
