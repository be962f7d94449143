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
