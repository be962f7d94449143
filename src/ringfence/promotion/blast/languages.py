"""What a test looks like in each language, what switches one off, and which files a runner looks into by itself. Pure data.

``off`` is searched in the file as it is, tests in what is left without comments.
"""

import re
from dataclasses import dataclass

import re2


@dataclass(frozen=True, slots=True, kw_only=True)
class Language:
    """One language's tests. ``collected``: the paths that its usual runners take tests from; ``anywhere``: not only test files."""

    suffixes: tuple[str, ...]
    test: "re2._Regexp[bytes]"
    off: "re2._Regexp[bytes]"
    collected: re.Pattern[str]
    comments: bool = True
    anywhere: bool = False


def _language(
    suffixes: str, test: str, off: str, collected: str = ".*", *, comments: bool = True, anywhere: bool = False
) -> Language:
    return Language(
        suffixes=tuple(suffixes.split()),
        test=re2.compile(test.encode()),
        off=re2.compile(off.encode()),
        collected=re.compile(collected + r"\Z"),
        comments=comments,
        anywhere=anywhere,
    )


LANGUAGES = (
    _language(
        ".py",
        r"(?m)^[ \t]*(?:async[ \t]+)?def[ \t]+test",
        r"(?m)^[^#\n]*(?:\bmark\.(?:skip|skipif|xfail)\b|\b(?:skip|skipIf|skipUnless|skipTest|importorskip|xfail|"
        r"expectedFailure|SkipTest)\b|\bcollect_ignore|\b__test__\s*=\s*False)",
        r"(?:.*/)?(?:test[^/]*|[^/]*_test|conftest)\.py",
        comments=False,
    ),
    _language(
        ".js .jsx .ts .tsx .mjs .cjs .mts .cts .vue",
        r"(?m)^[ \t]*(?:it|test)\b\s*[(.`]",
        r"(?m)\b(?:it|test|describe|context|suite|specify)(?:\.\w+)*\.(?:skip|skipIf|runIf|todo|fixme|fail|failing|fails|only)\b|"
        r"^[ \t]*[xf](?:it|test|describe|context|specify)\b|\b(?:this|t)\.(?:skip|todo)\(|[{,]\s*(?:skip|todo|only)\s*:\s*(?:true|['\"])",
        r"(?:.*/)?(?:[^/]*[._-](?:test|spec|cy|e2e)\.[^/]+|(?:tests?|__tests__|specs?|e2e)/.*)",
    ),
    _language(
        ".go",
        r"(?m)^func (?:\([^)]*\) )?(?:Test|Fuzz|Example)\w*\(",
        r"(?m)(?:\b(?:t|tb|b|f|s)|T\(\))\.Skip(?:Now|f)?\(|\btesting\.Short\(\)|^//go:build|^// \+build|^func TestMain\(",
        r".*_test\.go",
    ),
    _language(
        ".rs",
        r"#\[(?:\w+::)*test\b",
        r"#\[(?:cfg_attr\([^\]]*\b)?ignore\b|#\[cfg\(any\(\)\)\]",
        comments=True,
        anywhere=True,
    ),
    _language(
        ".java .kt .scala .groovy",
        r"@(?:Test|ParameterizedTest|RepeatedTest|Property)\b",
        r"@(?:Disabled\w*|Ignore|Enabled(?:If|On|For)\w*)\b|\bassum(?:e[A-Z]|ing)\w*\(|\benabled\s*=\s*false",
        r"(?:.*/)?(?:Test[^/]*|[^/]*(?:Tests?|TestCase|Spec|IT))\.\w+",
    ),
    _language(
        ".cs",
        r"\[(?:Fact|Theory|Test|TestCase|TestMethod)\b",
        r"\[(?:Ignore|Explicit)\b|\bSkip\s*=|(?m)^\s*#if (?:false|FALSE)\b",
    ),
    _language(
        ".rb",
        r"(?m)^[ \t]*(?:(?:it|specify|scenario|test)\b|def test_)",
        r"(?m)^[ \t]*(?:[xf](?:it|describe|context|specify|scenario|feature)|pending|skip)\b|"
        r"\b(?:skip|pending|focus):\s*(?:true|['\"])|[,(]\s*:(?:skip|pending|focus)\b",
        r"(?:.*/)?(?:test_[^/]*|[^/]*_(?:test|spec))\.rb",
        comments=False,
    ),
    _language(
        ".php",
        r"\bfunction test\w*|@test\b|#\[Test\b",
        r"markTest(?:Skipped|Incomplete)|@requires\b|#\[Requires",
        r"(?:.*/)?[^/]*Test\.php",
        comments=False,
    ),
    _language(
        ".ex .exs",
        r'(?m)^[ \t]*test[ \t]+"',
        r"@(?:module|describe)?tag\s+:?(?:skip|pending)",
        r"(?:.*/)?[^/]*_test\.exs",
        comments=False,
    ),
    _language(
        ".c .cc .cpp .cxx .h .hpp", r"\bTEST(?:_F|_P|_CASE)?\(", r"\bGTEST_SKIP\b|\bDISABLED_|(?m)^\s*#\s*if 0\b"
    ),
    _language(
        ".swift",
        r"\bfunc test\w*\(|@Test\b",
        r"\bXCTSkip|\.disabled\(|(?m)^\s*#if false\b",
    ),
)

# Strings first, so that a glob such as "src/**/*.js" opens no comment.
_COMMENT = re.compile(
    rb"""("(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`)|/\*.*?(?:\*/|\Z)|//[^\n]*""", re.DOTALL
)


def bare(language: Language, content: bytes) -> bytes:
    """The file without its comments, where the language has C's."""
    return _COMMENT.sub(lambda match: match.group(1) or b" ", content) if language.comments else content


IS_CONFIGURATION = re.compile(
    r"(?:.*/)?(?:pyproject\.toml|setup\.cfg|tox\.ini|\.?pytest\.(?:ini|toml)|noxfile\.py|package\.json|jest\.config\.\w+|vitest\.[\w.]+|"
    r"vite\.config\.\w+|karma\.conf\.\w+|playwright\.config\.\w+|cypress\.config\.\w+|\.mocharc[^/]*|pom\.xml|build\.gradle(?:\.kts)?|"
    r"Cargo\.toml|phpunit\.xml(?:\.dist)?|\.rspec|makefile|GNUmakefile|justfile|Taskfile\.ya?ml|Rakefile)\Z",
    re.IGNORECASE,
)
SHUTS_OUT = re2.compile(
    rb"(?i)(?:addopts|pytest)\b.*(?:\s-(?:k|m)\b|--ignore)|^\s*['\"]?--ignore(?:-glob)?[= ]|--deselect\b|--collect-only|\bcollect_ignore|"
    rb"\bnorecursedirs\b|\btestpaths\b|\bpython_(?:files|classes|functions)\b|"
    rb"\b(?:test|module)PathIgnorePatterns\b|\btest(?:Match|Regex|NamePattern|Ignore)\b|\bgrepInvert\b|pass-?with-?no-?tests|"
    rb"\bskipTests\b|maven\.test\.skip|testFailureIgnore|ignoreFailures|\bexcludedGroups\b|"
    rb"\bautotests\s*=\s*false|\bharness\s*=\s*false|\btest\s*=\s*false|\bignore_(?:errors|outcome)\b|--exit-zero|"
    rb"(?:test|spec|jest|tox|nox).*\|\|\s*(?:true\b|:|exit 0)|(?:^|[{,])\s*\"(?:pre|post)?test\"\s*:"
)
"""A line of that configuration by which fewer tests are run, or failures do not count."""
