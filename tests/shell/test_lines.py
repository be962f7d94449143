"""Every simple command in every position is found, with its words."""

import pytest

from ringfence.shell.parse import parse_argv, parse_line
from ringfence.shell.syntax import Access

pytestmark = pytest.mark.usefixtures("no_io")


def found(line):
    return [" ".join(word.text for word in command.words) for command in parse_line(line).commands]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("ls; pwd", ["ls", "pwd"]),
        ("ls & pwd", ["ls", "pwd"]),
        ("ls\npwd", ["ls", "pwd"]),
        ("ls | cat |& wc", ["ls", "cat", "wc"]),
        ("ls && cat a || wc b", ["ls", "cat a", "wc b"]),
        ("! ls", ["ls"]),
        ("time -p ls", ["ls"]),
        ("(ls; (cat a))", ["ls", "cat a"]),
        ("{ ls; cat a; }", ["ls", "cat a"]),
        ("if ls; then cat a; elif wc b; then id; else pwd; fi", ["ls", "cat a", "wc b", "id", "pwd"]),
        ("while ls; do cat a; done", ["ls", "cat a"]),
        ("until ls\ndo cat a\ndone", ["ls", "cat a"]),
        ("for x in 1 2; do ls; done", ["ls"]),
        ("for ((i=0; i<2; i++)); do ls; done", ["ls"]),
        ("select x in 1 2; do ls; done", ["ls"]),
        ("case x in a|b) ls;; (*) cat a ;& c) wc b;;& esac", ["ls", "cat a", "wc b"]),
        ("f() { ls; }; g() (cat a)", ["ls", "cat a"]),
        ("function f { ls; }\nf", ["ls", "f"]),
        ("coproc ls a", ["ls a"]),
        ("coproc NAME { ls; }", ["ls"]),
        ("[[ -n $(ls) ]] && pwd", ["ls", "pwd"]),
        ("(( $(ls) ))", ["ls"]),
        ("a=$(ls) b=`pwd`", ["ls", "pwd"]),
        ("a=($(ls) `pwd`)", ["ls", "pwd"]),
        ("> $(ls)", ["ls"]),
        ("ls # pwd\ncat a", ["ls", "cat a"]),
        ("l''s", ["ls"]),
        ('"l"s', ["ls"]),
        ("\\ls", ["ls"]),
        ("$'\\x6cs'", ["ls"]),
        ("l\\\ns", ["ls"]),
        ("ls \\\n  -a", ["ls -a"]),
        ("cat <<A\n$(ls)\nA\npwd", ["cat", "ls", "pwd"]),
        ("cat <<'A'\n$(ls)\nA\npwd", ["cat", "pwd"]),
        ("cat <<-A\n\tx\n\tA\npwd", ["cat", "pwd"]),
        ("cat <<A <<B\na\nA\nb\nB\npwd", ["cat", "pwd"]),
        ("cat <<\\A | wc\n$(ls)\nA\npwd", ["cat", "wc", "pwd"]),
        ("cat <<A\na\\\nA\nA\npwd", ["cat", "pwd"]),
        ("trap 'ls' EXIT", ["trap ls EXIT", "ls"]),
        ("eval ls a", ["eval ls a", "ls a"]),
        ("alias x='ls a'", ["alias x=ls a", "ls a"]),
        ("bash <<'A'\nls a\nA", ["bash", "ls a"]),
        ("bash <<< 'ls a'", ["bash", "ls a"]),
        ("echo $((1<<A))\nls\nA", ["echo $((1<<A))", "ls", "A"]),
    ],
)
def test_every_position_is_found(line, expected):
    assert sorted(found(line)) == sorted(expected)


@pytest.mark.parametrize(
    "form",
    [
        '"$({})"', "`{}`", '"`{}`"', "<({})", ">({})", "${{x:-$({})}}", '"${{x:-`{}`}}"', "${{x:=$({})}}", "$(( $({}) ))", "a$({})b",
        "$(echo $({}))", "$( ({}) )", "$(\n{}\n)", "$(cat <<A\n$({})\nA\n)", "${{x/$({})/b}}", "${{x#$({})}}", "<(cat <({}))",
    ],
)  # fmt: skip
def test_substitutions_in_words_are_found(form):
    assert "ls deep" in found("echo " + form.format("ls deep"))


@pytest.mark.parametrize(
    ("spelled", "access", "target"),
    [
        ("> f", Access.WRITE, "f"), (">f", Access.WRITE, "f"), (">> f", Access.WRITE, "f"), (">| f", Access.WRITE, "f"),
        ("&> f", Access.WRITE, "f"), ("&>> f", Access.WRITE, "f"), (">& f", Access.WRITE, "f"), ("2> f", Access.WRITE, "f"),
        ("2>f", Access.WRITE, "f"), ("7<> f", Access.READ_WRITE, "f"), ("{fd}> f", Access.WRITE, "f"), ("< f", Access.READ, "f"),
        ("<f", Access.READ, "f"), ("> 'a b'", Access.WRITE, "a b"), (">\\\nf", Access.WRITE, "f"),
        ("2>&1", Access.NONE, None), (">&2", Access.NONE, None), ("<&-", Access.NONE, None), ("<&3", Access.NONE, None), ("<<< f", Access.NONE, None),
    ],
)  # fmt: skip
@pytest.mark.parametrize("place", ["ls {}", "{} ls", "{{ ls; }} {}", "while ls; do ls; done {}", "(ls) {}", "{}"])
def test_every_spelling_of_a_redirection(spelled, access, target, place):
    line = parse_line(place.format(spelled))
    assert not line.unexplained
    all_of_them = [*line.redirections, *(item for command in line.commands for item in command.redirections)]
    (one,) = all_of_them
    assert one.access is access
    assert (one.target.text if one.target else None) == target
    assert len(line.redirections) == len(line.directories)


def test_process_substitution_as_a_target_is_no_path():
    line = parse_line("ls > >(cat > leak)")
    targets = [item.target.text for command in line.commands for item in command.redirections if item.target]
    assert targets == ["leak"]


@pytest.mark.parametrize(
    ("word", "values"),
    [
        ("a{b,c}", ["ab", "ac"]), ("{1..3}", ["1", "2", "3"]), ("{03..1}", ["03", "02", "01"]), ("{a..e..2}", ["a", "c", "e"]),
        ("{a,b}{c,d}", ["ac", "ad", "bc", "bd"]), ("{a,b{c,d}}", ["a", "bc", "bd"]), ("{a", ["{a"]), ("{}", ["{}"]), ("{a}", ["{a}"]),
        ("'{a,b}'", ["{a,b}"]), ("\\{a,b}", ["{a,b}"]), ("{a,'b c'}", ["a", "b c"]), ("x{,y}", ["x", "xy"]), ("{a{b,c}}", ["{ab}", "{ac}"]),
    ],
)  # fmt: skip
def test_braces_are_expanded(word, values):
    (command,) = parse_line(f"echo {word}").commands
    assert [item.text for item in command.words[1:]] == values
    assert not any(item.dynamic for item in command.words)


def test_braces_too_many_are_of_unknown_value():
    (command,) = parse_line("cat src/{1..9999}").commands
    assert command.words[1].dynamic
    assert command.words[1].prefix == "src/"


@pytest.mark.parametrize(
    ("word", "prefix", "split", "glob"),
    [
        ("$X", "", True, False), ('"$X"', "", False, False), ("src/$X", "src/", True, False), ("*.py", "", True, True), ("a?", "a", True, True),
        ("a[bc]", "a", True, True), ("$(ls)", "", True, False), ('"a $(ls)"', "a ", False, False), ('"$@"', "", True, False), ("<(ls)", "/dev/fd/", False, False),
    ],
)  # fmt: skip
def test_words_of_unknown_value(word, prefix, split, glob):
    item = parse_line(f"echo {word}").commands[-1].words[1]
    assert (item.dynamic, item.prefix, item.may_split, item.glob) == (True, prefix, split, glob)


@pytest.mark.parametrize(
    ("word", "text"), [("~", "~"), ("~/a", "~/a"), ("~root", "~root"), ("$HOME/a", "~/a"), ('"$HOME"/a', "~/a"), ("${HOME}", "~"), ("~+/a", "~+/a"), ('"$PWD/a"', "~+/a")]
)  # fmt: skip
def test_home_is_a_tilde(word, text):
    item = parse_line(f"cat {word}").commands[0].words[1]
    assert (item.tilde, item.text, item.dynamic) == (True, text, False)


@pytest.mark.parametrize("word", ["'~'", "\\~", '"~/a"', "a~", '~"root"'])
def test_a_quoted_tilde_is_a_tilde_character(word):
    assert not parse_line(f"cat {word}").commands[0].words[1].tilde


def test_a_home_that_the_line_sets_is_unknown():
    assert parse_line("HOME=/x; cat $HOME/a").commands[0].words[1].dynamic


def test_loop_variables_have_their_values():
    line = parse_line('for f in a.py "b c"; do cat "$f" src/$f.x; done')
    assert line.commands[0].words[1].values == ("a.py", "b c")
    assert line.commands[0].words[2].values == ()  # unquoted, and one value has a blank
    assert [item.scope for item in line.assignments] == ["loop"]


@pytest.mark.parametrize(
    "line",
    [
        "F=a; F=b; cat $F", "read F; cat $F", "F=a; (F=b); cat $F", "true && F=a; cat $F", "for F in $(ls); do cat $F; done",
        "for F in a; do cat $F; F=b; done", "if true; then F=a; fi; cat $F", "F=a | true; cat $F", "F=a & cat $F",
    ],
)  # fmt: skip
def test_variables_that_may_change_are_not_followed(line):
    assert all(not word.values for command in parse_line(line).commands for word in command.words)


def test_assignments_are_named():
    line = parse_line(
        "A=1 B=$X ls; C=2; export D=3 E; declare F=4; read G; printf -v H x; for I in 1; do :; done; unset J"
    )
    first = line.commands[0]
    assert [(item.name, item.value.text) for item in first.assignments] == [("A", "1"), ("B", "$X")]
    assert [item.name for item in line.assignments] == ["C", "D", "E", "F", "G", "H", "J", "I"]
    assert line.assignments[1].scope == "export"


def test_functions_and_aliases_are_named():
    assert parse_line("f() { ls; }; alias g=ls; function h { ls; }").functions == ("f", "g", "h")


def test_positions_point_into_the_line():
    line = parse_line("  ls 'a b' | wc -l > out")
    source = line.source
    assert [source[item.start : item.end] for item in line.commands] == ["ls 'a b'", "wc -l > out"]
    assert [source[word.start : word.end] for item in line.commands for word in item.words] == [
        "ls",
        "'a b'",
        "wc",
        "-l",
    ]


@pytest.mark.parametrize(
    ("line", "body"),
    [("cat <<'A'\nx $y\nA", "x $y\n"), ("cat <<A\nx\nA", "x\n"), ("cat <<-A\n\tx\n\tA", "x\n"), ("cat <<A\n$y\nA", None), ("cat <<< 'a b'", "a b\n")],
)  # fmt: skip
def test_bodies_that_are_literal_are_kept(line, body):
    assert parse_line(line).commands[0].redirections[0].body == body


def test_a_vector_is_literal():
    line = parse_argv(("echo", "$(id)", "*", "a b", "~", ">x"))
    (command,) = line.commands
    assert [word.text for word in command.words] == ["echo", "$(id)", "*", "a b", "~", ">x"]
    assert not any(word.dynamic or word.tilde for word in command.words)
    assert not line.unexplained


def test_a_vector_is_seen_through():
    line = parse_argv(("env", "A=1", "bash", "-c", "ls; pwd"))
    assert [command.words[0].text for command in line.commands] == ["env", "bash", "ls", "pwd"]
    assert parse_argv(()).unexplained
