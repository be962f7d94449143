"""Changes whose tests are fewer than they look, or whose packages come from elsewhere: held until a person explains them."""

import pytest

REVIEW, HOLD = "human_review", "hold_for_explanation"
SUITE = b"def test_one():\n    assert 1\n\n\ndef test_two():\n    assert 2\n    assert 3\n"


@pytest.fixture(scope="module")
def fuller(double, tmp_path_factory):
    return double.Shop(tmp_path_factory.mktemp("suites"), **{"services/cart/test_more.py": SUITE})


def told(verdict):
    return verdict.outcome.word, {reason.code for reason in verdict.reasons}


SUITES = {
    "a-test-removed": {"services/cart/test_more.py": SUITE.split(b"\n\n\n")[0] + b"\n"},
    "a-test-file-removed": {"services/cart/test_more.py": None},
    "a-test-file-that-is-no-longer-found": {
        "services/cart/test_more.py": None,
        "services/cart/more_checks.py": SUITE,
    },
    "skipped": {"services/cart/test_more.py": b"import pytest\n\n\n@pytest.mark.skip\n" + SUITE},
    "expected-to-fail": {"services/cart/test_more.py": b"import pytest\n\npytestmark = pytest.mark.xfail\n" + SUITE},
    "left-out": {"services/cart/tests/conftest.py": b"collect_ignore = ['test_more.py']\n"},
    "only-one-is-run": {"services/cart/cart.test.ts": b"it.only('works', () => { expect(1).toBe(1) })\n"},
    "go": {"services/cart/cart_test.go": b'func TestX(t *testing.T) {\n\tt.Skip("later")\n}\n'},
    "rust": {"services/cart/lib.rs": b"#[test]\n#[ignore]\nfn works() {}\n"},
    "java": {"services/cart/CartTest.java": b"@Disabled @Test void works() {}\n"},
}


def _class(name, more=b""):
    return b"class " + name + b":\n" + more + b"    def test_one(self):\n        assert 1\n"


def _indented(raw):
    return b"".join(b"    " + line + b"\n" for line in raw.splitlines())


NODE = b"describe('a', () => {\n  it('x', () => { expect(1).toBe(1) })\n  it('y', () => { expect(1).toBe(1) })\n})\n"
GO = b"package a\n\nfunc TestA(t *testing.T) {\n}\n"
PROJECT = b"[tool.pytest.ini_options]\naddopts = '-q'\n"
PACKAGE = b'{\n  "scripts": {\n    "test": "jest"\n  }\n}\n'
LOCK = (
    b'{\n "node_modules/a": {\n  "version": "1.0.0",\n  "resolved": "https://packages.example.net/a/-/a-1.0.0.tgz",\n'
    b'  "integrity": "sha512-AAAA",\n  "funding": {"url": "https://sponsor.example/a"}\n }\n}\n'
)
SOURCES = {
    "another-registry": (
        {"package-lock.json": LOCK},
        {"package-lock.json": LOCK.replace(b"packages.example.net", b"evil.example")},
    ),
    "no-digest": (
        {"package-lock.json": LOCK},
        {"package-lock.json": LOCK.replace(b'  "integrity": "sha512-AAAA",\n', b"")},
    ),
    "a-second-index": (
        {"requirements.txt": b"a==1\n"},
        {"requirements.txt": b"--extra-index-url https://evil.example/simple\na==1\n"},
    ),
    "by-address": ({"requirements.txt": b"a==1\n"}, {"requirements.txt": b"a @ https://evil.example/a-1.tar.gz\n"}),
    "from-git": ({}, {"package.json": b'{\n "dependencies": {\n  "a": "git+ssh://git@evil.example/a.git"\n }\n}\n'}),
    "cargo": ({}, {"Cargo.lock": b'source = "registry+https://evil.example/index"\n'}),
    "with-a-name-before": (
        {},
        {"uv.lock": b'source = { registry = "https://packages.example.org@evil.example/simple" }\n'},
    ),
}


@pytest.mark.parametrize("name", SOURCES)
def test_packages_from_elsewhere_are_held_for_an_explanation(double, tmp_path, name):
    base, files = SOURCES[name]
    verdict = double.Shop(tmp_path, **base).change(files).check()
    assert told(verdict) == (HOLD, {"packages.source"})


SAME_SOURCES = {
    "a-newer-version": (
        {"package-lock.json": LOCK},
        {"package-lock.json": LOCK.replace(b"1.0.0", b"1.0.1").replace(b"sponsor", b"other")},
    ),
    "a-host-of-the-policy": ({}, {"uv.lock": b'source = { registry = "https://packages.example.org/simple" }\n'}),
    "a-home-page": (
        {},
        {
            "package.json": b'{\n "homepage": "https://www.example.net",\n "repository": {"url": "git+https://code.example.net/x.git"}\n}\n'
        },
    ),
    "a-comment": ({}, {"requirements.txt": b"# see https://www.example.net\na==1  # https://www.example.net\n"}),
    "project-addresses": ({}, {"pyproject.toml": b'[project.urls]\nHomepage = "https://www.example.net"\n'}),
}


@pytest.mark.parametrize("name", SAME_SOURCES)
def test_packages_from_where_they_came_before_are_no_matter(double, tmp_path, name):
    base, files = SAME_SOURCES[name]
    assert told(double.Shop(tmp_path, **base).change(files).check()) == (REVIEW, set())


# What stands on the base, and what the change makes of it: the runner sees less, and no line says so.
SEEN_LESS = {
    "renamed-away": ({"tests/test_a.py": SUITE}, {"tests/test_a.py": None, "tests/a_checks.py": SUITE}),
    "nested": ({"tests/test_a.py": SUITE}, {"tests/test_a.py": b"def unused():\n" + _indented(SUITE)}),
    "quoted": ({"tests/test_a.py": SUITE}, {"tests/test_a.py": b'"""\n' + SUITE + b'"""\n'}),
    "never": ({"tests/test_a.py": SUITE}, {"tests/test_a.py": b"if False:\n" + _indented(SUITE)}),
    "hung-on-a-condition": ({"tests/test_a.py": SUITE}, {"tests/test_a.py": b"if HOST:\n" + _indented(SUITE)}),
    "shadowed": ({"tests/test_a.py": SUITE}, {"tests/test_a.py": SUITE.replace(b"two", b"one")}),
    "emptied": (
        {"tests/test_a.py": SUITE},
        {"tests/test_a.py": SUITE.replace(b"    assert 1", b"    return\n    assert 1")},
    ),
    "class-renamed": ({"tests/test_a.py": _class(b"TestA")}, {"tests/test_a.py": _class(b"CheckA")}),
    "class-constructed": (
        {"tests/test_a.py": _class(b"TestA")},
        {"tests/test_a.py": _class(b"TestA", b"    def __init__(self):\n        pass\n\n")},
    ),
    "node-focus": ({"a.test.js": NODE}, {"a.test.js": NODE.replace(b"describe(", b"fdescribe(")}),
    "node-renamed": ({"a.test.js": NODE}, {"a.test.js": None, "a.tests.js": NODE}),
    "node-comment": ({"a.test.js": NODE}, {"a.test.js": b"/*\n" + NODE + b"*/\n"}),
    "node-chain": ({"a.spec.ts": NODE}, {"a.spec.ts": NODE.replace(b"describe(", b"test.describe.skip(")}),
    "go-tag": ({"a_test.go": GO}, {"a_test.go": b"//go:build never\n\n" + GO}),
    "go-renamed": ({"a_test.go": GO}, {"a_test.go": None, "a_tests.go": GO}),
    "go-main": ({"a_test.go": GO}, {"a_test.go": GO + b"\nfunc TestMain(m *testing.M) { os.Exit(0) }\n"}),
    "rust-cfg": (
        {"a.rs": b"mod t {\n#[test]\nfn a() {}\n}\n"},
        {"a.rs": b"#[cfg(any())]\nmod t {\n#[test]\nfn a() {}\n}\n"},
    ),
    "pytest-options": (
        {"pyproject.toml": PROJECT},
        {"pyproject.toml": PROJECT.replace(b"-q", b"-q --ignore=tests/test_a.py")},
    ),
    "pytest-deselect": ({}, {"pytest.ini": b"[pytest]\naddopts = --deselect tests/test_a.py::test_one\n"}),
    "jest-options": ({}, {"jest.config.js": b"module.exports = {testPathIgnorePatterns: ['a.test.js']}\n"}),
    "npm-script": ({"package.json": PACKAGE}, {"package.json": PACKAGE.replace(b'"jest"', b'"exit 0"')}),
    "make-true": ({}, {"Makefile": b"check:\n\tpython -m pytest || true\n"}),
    "cargo": ({}, {"Cargo.toml": b"[lib]\ntest = false\n"}),
}


@pytest.mark.parametrize("name", SEEN_LESS)
def test_tests_that_the_runner_would_no_longer_find_are_held_for_an_explanation(double, tmp_path, name):
    base, files = SEEN_LESS[name]
    verdict = double.Shop(tmp_path, **base).change(files).check()
    assert told(verdict) == (HOLD, {"tests.fewer"})


ORDINARY = {
    "a-class-of-unittest": ({}, {"tests/test_a.py": _class(b"Cart(TestCase)")}),
    "a-script-beside": (
        {"package.json": PACKAGE},
        {"package.json": PACKAGE.replace(b'"jest"\n', b'"jest",\n    "test:slow": "jest --slow"\n')},
    ),
    "linters": ({}, {"Makefile": b"lint:\n\tflake8 --ignore E501\n\trm -f x || true\n"}),
    "a-glob-opens-no-comment": ({"a.test.js": NODE}, {"a.test.js": b"const g = 'src/*.js'\n" + NODE}),
    "newer-syntax": ({"tests/test_a.py": SUITE}, {"tests/test_a.py": b"type A = int\n" + SUITE}),
    "test-options": (
        {"pyproject.toml": PROJECT},
        {"pyproject.toml": PROJECT.replace(b"-q", b"-q -x --strict-markers")},
    ),
}


@pytest.mark.parametrize("name", ORDINARY)
def test_ordinary_work_on_tests_and_their_configuration_is_no_matter(double, tmp_path, name):
    base, files = ORDINARY[name]
    assert told(double.Shop(tmp_path, **base).change(files).check()) == (REVIEW, set())


def test_tests_that_are_gone_by_name_are_told_to_the_reviewer(fuller):
    verdict = fuller.change({"services/cart/test_more.py": SUITE.replace(b"test_two", b"test_other")}).check()
    assert told(verdict) == (REVIEW, set())
    assert "1 tests of the base are gone by name: test_two" in " ".join(verdict.notes)


@pytest.mark.parametrize("name", SUITES)
def test_fewer_tests_or_more_of_them_off_are_held_for_an_explanation(fuller, name):
    verdict = fuller.change(SUITES[name]).check()
    assert told(verdict) == (HOLD, {"tests.fewer"})


KEPT = {
    "renamed": {"services/cart/test_more.py": None, "services/cart/test_cart.py": SUITE},
    "split-in-two": {
        "services/cart/test_more.py": SUITE.split(b"\n\n\n")[0] + b"\n",
        "services/cart/test_two.py": SUITE.split(b"\n\n\n")[1],
    },
    "one-for-another": {"services/cart/test_more.py": SUITE.replace(b"test_two", b"test_other")},
    "skips-in-a-comment": {"services/cart/test_more.py": SUITE + b"# we do not skip\n"},
    "code-that-skips": {"services/cart/app.py": b"def skip(n):\n    return n\n"},
}


@pytest.mark.parametrize("name", KEPT)
def test_as_many_tests_as_before_are_no_matter(fuller, name):
    assert told(fuller.change(KEPT[name]).check()) == (REVIEW, set())


def test_assertions_that_went_are_told_to_the_reviewer(fuller):
    verdict = fuller.change({"services/cart/test_more.py": SUITE.replace(b"    assert 3\n", b"")}).check()
    assert told(verdict) == (REVIEW, set())
    assert "1 fewer assertions" in " ".join(verdict.notes)
