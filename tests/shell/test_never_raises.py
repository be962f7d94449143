"""Any text at all ends in an answer: no crash, no hang, no quiet limit."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringfence.shell import parse
from ringfence.shell.parse import parse_argv, parse_line
from ringfence.shell.plain import split
from ringfence.shell.programs import read_arguments
from ringfence.shell.syntax import Line

PIECES = st.sampled_from(
    [
        "ls", "cd", "a", "b", " ", "  ", "\t", "\n", ";", "&", "&&", "|", "||", "|&", "(", ")", "{", "}", "$", "`", "'", '"', "\\", "\\\n", "<", ">", "<<", "<<-", "<<<", "<&", ">&", "&>", "<(", ">(", "$(", "$((", "((", "))", "${", "[[", "]]", "[", "]",
        "if", "then", "else", "fi", "for", "in", "do", "done", "while", "case", "esac", ";;", "function", "f()", "coproc", "time", "!", "#", "=", "A=", "~", "*", "?", "{a,b}", "{1..3}", "env", "sudo", "bash", "-c", "xargs", "-I{}", "find", "-exec", "eval", "trap",
        "git", "sed", "-n", "awk", "EOF", "2", "-", "--", "\0", "\r", "\u202e", "\udc80", "\u00e9", "$'", '$"', "@", ":", ",", "..", "%", "+", "/",
    ]
)  # fmt: skip
LINES = st.lists(PIECES, max_size=40).map("".join) | st.text(max_size=60)


def sound(line: Line) -> None:
    for number, command in enumerate(line.commands):
        assert command.words
        assert all(0 <= other < len(line.commands) for other in command.wraps)
        assert command.wrapper is None or 0 <= command.wrapper < len(line.commands)
        assert command.wrapper != number
        read_arguments(command)
    assert len(line.redirections) == len(line.directories)


@given(LINES)
@settings(max_examples=1500)
def test_any_line(text):
    sound(parse_line(text))


@given(st.lists(st.text(max_size=12) | PIECES, max_size=8).map(tuple))
@settings(max_examples=500)
def test_any_vector(words):
    sound(parse_argv(words))


PLAIN = st.lists(
    st.sampled_from(
        ["ls", "cd", "src", "&&", "||", "|", ";", "2>&1", ">/dev/null", "2>/dev/null", "'a b'", '"c d"', "env", "A=1", "--x=y", "sudo", "-c", "bash", "'ls; sudo id'", "echo", "xargs", "if", "time", "..", "popd", "pushd", "2", "timeout", "5", "set", "-P", "-", "!", "'", '"', "\n", "&", "%1", "^", "a:b", "@"]
    ),
    max_size=12,
)  # fmt: skip


@given(PLAIN, st.sampled_from([" ", "", "  ", "\t"]))
@settings(max_examples=1500)
def test_plain_lines_mean_the_same_to_the_grammar(tokens, blank):
    line = blank.join(tokens)
    if split(line) is not None:
        assert parse_line(line) == parse._parse(line)


def test_ordinary_lines_mean_the_same_to_the_grammar(ordinary_lines):
    plain = [line for line in ordinary_lines if split(line) is not None]
    assert len(plain) > len(ordinary_lines) / 2
    for line in plain:
        assert parse_line(line) == parse._parse(line)


def test_ordinary_lines_are_explained(ordinary_lines):
    odd = [line for line in ordinary_lines if parse_line(line).unexplained]
    assert len(ordinary_lines) >= 300
    assert len(odd) <= len(ordinary_lines) * 0.03


@given(LINES, LINES)
@settings(max_examples=300)
def test_two_lines_hold_the_commands_of_the_first(first, second):
    """What stands on a line that is explained is still found when something follows."""
    before = parse_line(first)
    if before.unexplained:
        return
    both = parse_line(first + "\n" + second)
    names = [command.words[0].text for command in both.commands]
    for command in before.commands:
        assert command.words[0].text in names


LARGE = 60_000


@pytest.mark.parametrize(
    "unit",
    [
        "(", "((", "$(", "$((", "`", "'", '"', "{", "{ ", "{a,", "{a,b}", "${x:-", "if ", "while ", "case x in ", "for x in a; do ", "f() { ", "[[ ", "a=(", "<(", "<<A ", "<<A\n", "a b ", "ls;", "ls|", "! ", "time ", "x=$y;", "x=1; ", "env ", "eval eval ", "bash -c '", "find . -exec ",
        "xargs ", "ssh h ", "$'\\x41", "\\\n", "\\", ">", "> a ", "#\n", "\n", "\u200b", "\udc80", "\0", "~", "*", "$", "[a", "{x[0]", "((a) ", "$((a) ", "cd a;", "X=1 ", "(a) ", "$(a) ", "`a` ", "a", "\u202e", "sudo ", "trap 'a' EXIT;", "coproc ", "a[0]=1 ", "&& ", ")",
    ],
)  # fmt: skip
def test_long_lines_end_in_an_answer(unit):
    """Twice the length takes about twice the time, whatever is repeated."""
    times = []
    for size in (LARGE, 2 * LARGE):
        begin = time.process_time()
        line = parse_line(unit * (size // len(unit)))
        for command in line.commands[:5]:
            read_arguments(command)
        times.append(time.process_time() - begin)
    assert times[1] < 4 * times[0] + 1.0


def test_a_cap_is_said():
    assert parse_line("ls;" * 30_000).unexplained
    assert parse_line("$(" * 500 + "ls" + ")" * 500).unexplained
    assert parse_line("ls;" * 30_000 + "sudo id").unexplained
