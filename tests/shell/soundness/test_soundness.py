"""Every program that real bash starts was predicted, with its arguments and directory, or the line is not explained."""

import pytest


def check(bash, lines):
    found = bash.compare(lines)
    assert found.unseen == []
    assert found.unwritten == []
    assert found.started > found.lines
    return found


def test_composed_lines(bash, bash_lines):
    source = bash_lines.Lines(seed=20)
    found = check(bash, [source.line() for _ in range(220)])
    assert found.explained > found.lines / 2


def test_lines_with_broken_characters(bash, bash_lines):
    source = bash_lines.Lines(seed=21)
    check(bash, [source.mutated() for _ in range(140)])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 112))
def test_many_composed_lines(bash, bash_lines, seed):
    source = bash_lines.Lines(seed=seed)
    check(bash, [source.line() for _ in range(1000)])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(200, 208))
def test_many_lines_with_broken_characters(bash, bash_lines, seed):
    source = bash_lines.Lines(seed=seed)
    check(bash, [source.mutated() for _ in range(1000)])


def test_the_harness_sees_what_is_not_predicted(bash):
    """A prediction that is wrong is found: the comparison itself is tested."""
    findings = bash.compare(["p2 a; p4 b"])
    assert findings.started == 2
    record = {"records": [[str(bash.start), "p9", []]], "files": [str(bash.start / "new")]}
    bash.compare_one("p2 a > out", record, findings)
    assert [line for line, _ in findings.unseen] == ["p2 a > out"]
    assert [line for line, _ in findings.unwritten] == ["p2 a > out"]


def test_a_body_that_ends_early_inside_a_substitution(bash):
    lines = [
        "p0 $(p1 <<H\nH)\np2 x\nH\n)\n",
        "p0 $(p1 <<'H'\nbody\nH)\np2 x\n",
        "p0 <(p1 <<H\nH)\np2 x\n",
        "(p1 <<H\nH)\nH\n)\np2 x\n",
        "p0 $( (p1 <<H\nH)\np2 x\nH\n) )\n",
        "p0 $( (p1 <<H\nH) )\np2 x\n",
        "p0 `p1 <<H\nH)\np2 x\nH\n`\n",
        'p0 "${A:-$(p1 <<H\nH)}"\np2 x\n',
        "p0 $(p1 <<-'E'\n\t\tE )\np2 x\nE\n)\n",
        "p0 $(p1 <<A <<B\nA)\np2 x\nB\n)\n",
        "p0 $(p1 <<A <<B\na\nA\nB)\np2 x\n",
        "p0 $(p1 <<E\nEx (y)\np2 z\nE\n)\n",
        "p0 $(p1 <<''\n)\np2 x\n\n)\n",
        "p0 $(p1 <<H\nH\\\n)\np2 x\nH\n)\n",
        "p0 $(p1 <<H\nx $(p3 <<I\nI)\nH)\np2 x\n",
        "p0 $(bash -c 'p1 <<H\nH)\np2 x\nH\n')\n",
        "p0 $(bash -c 'p1 $(p3 <<H\nH)\np2 x\n')\n",
        "p0 $(sh -c 'p1 $(p3 <<H\nH)\np2 x\nH\n)')\n",
        "eval 'p0 $(p1 <<H\nH)\np2 x\nH\n)'\n",
        "f() { p1 <<H\nH)\nH\n}; p0 $(f)\np2 x\n",
        "p0 $(if true; then p1 <<H\nH); fi\np2 x\nH\nfi)\n",
    ]
    check(bash, lines)
