"""How a wrapper's own options are gone through: where they end, what belongs to them, and when they are in doubt."""

import pytest

from ringfence.shell.syntax import Word
from ringfence.shell.wrapper_options import Options, abbreviates, skip_options
from ringfence.shell.wrapper_specs import spec

pytestmark = pytest.mark.usefixtures("no_io")


def word(text: str, **more: object) -> Word:
    return Word(text=text, raw=text, start=0, end=len(text), **more)


def words(line: str) -> list[Word]:
    return [word(text) for text in line.split()]


def taken(options: Options) -> list[str]:
    found = []
    while (one := options.take()) is not None:
        found.append(one.text)
    return found


@pytest.mark.parametrize(
    ("line", "options", "index"),
    [
        ("x", [], 1),
        ("x a -b", [], 1),
        ("x -a --b c -d", ["-a", "--b"], 3),
        ("x -a -- -b", ["-a"], 3),
        ("x -a - -b", ["-a"], 2),
        ("x -a", ["-a"], 2),
    ],
)
def test_options_end_at_the_first_operand_and_behind_two_dashes(line, options, index):
    read = Options(words(line), 1, "x")
    assert taken(read) == options
    assert (read.index, read.why) == (index, "")


def test_a_program_may_begin_and_end_its_options_in_its_own_way():
    class Own(Options):
        __slots__ = ()
        signs = ("-", "+")
        ends = ("--", "++")

    read = Own(words("x +a -b ++ -c"), 1, "x")
    assert taken(read) == ["+a", "-b"]
    assert read.index == 4

    class Dash(Options):
        __slots__ = ()
        dash = True

    assert taken(Dash(words("x - -a b"), 1, "x")) == ["-", "-a"]


def test_a_value_is_attached_or_the_next_word_or_missing():
    read = Options(words("x -a b -c"), 1, "x")
    first = read.take()
    assert first is not None
    assert read.value(first, "z").text == "z"
    assert read.index == 2
    assert read.value(first, None).text == "b"
    assert read.index == 3
    last = read.take()
    assert read.value(last, None) is None
    assert read.take() is None


@pytest.mark.parametrize(
    ("unknown", "doubtful"),
    [
        ({}, True),
        ({"prefix": "-"}, True),
        ({"prefix": "a"}, False),
        ({"values": ("a", "-b")}, True),
        ({"values": ("a", "b")}, False),
    ],
)
def test_a_word_that_may_be_an_option_ends_them_in_doubt(unknown, doubtful):
    line = [word("x"), word("$v", dynamic=True, **unknown), word("-b")]
    read = Options(line, 1, "x")
    assert read.take() is None
    assert read.index == 1
    assert bool(read.why) is doubtful
    assert skip_options(line, 1, spec("", "b")) == (1, read.why)


def test_the_first_doubt_is_the_one_that_is_told():
    read = Options(words("x"), 1, "x")
    read.unknown("-z")
    read.doubt("another")
    assert read.why == "`-z` is not a known option of `x`"


@pytest.mark.parametrize(
    ("line", "index", "why"),
    [
        ("t -k 1 -s TERM 5 ls", 5, False),
        ("t -k1 --signal=KILL 5 ls", 3, False),
        ("t --sig KILL ls", 3, False),
        ("t --s KILL ls", 2, True),
        ("t -zk 1 ls", 2, True),
        ("t -vk 1 ls", 3, False),
        ("t -7 ls", 2, True),
    ],
)
def test_options_are_skipped_by_their_table(line, index, why):
    found, told = skip_options(words(line), 1, spec("ks", "v", "signal silent", "foreground"))
    assert (found, bool(told)) == (index, why)
    assert skip_options(words("t -7 ls"), 1, spec(numbers=True)) == (2, "")


def test_a_long_name_is_shortened_only_where_it_is_the_only_one():
    names = frozenset({"signal", "silent"})
    assert abbreviates("sig", names)
    assert not abbreviates("si", names)
    assert not abbreviates("", frozenset({"signal"}))
