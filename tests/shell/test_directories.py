"""Directory changes are followed through a line, with what a failure leaves."""

import pytest

from ringfence.shell.parse import parse_line
from ringfence.shell.syntax import Directory

pytestmark = pytest.mark.usefixtures("no_io")


def directory(line, name="here"):
    (command,) = [item for item in parse_line(line).commands if item.words[0].text == name]
    return command.directory


@pytest.mark.parametrize(
    ("line", "path", "others"),
    [
        ("here", ".", ()),
        ("cd src && here", "src", ()),
        ("cd src; here", "src", (".",)),
        ("cd src || here", ".", ()),
        ("cd src && cd .. && here", ".", ()),
        ("cd a/../../b && here", "../b", ()),
        ("cd /x/../y && here", "/y", ()),
        ("cd -P a/.. && here", "a/..", ()),
        ("(cd src); here", ".", ()),
        ("(cd src && here)", "src", ()),
        ("{ cd src; } && here", "src", ()),
        ("cd src | here", ".", ()),
        ("cd src | cat; here", ".", ()),
        ("cd src & here", ".", ()),
        ("cd a && cd b; here", "a/b", (".", "a")),
        ("! cd a || here", "a", ()),
        ("if cd a; then here; fi", "a", ()),
        ("if cd a; then :; else here; fi", ".", ()),
        ("if true; then cd a; fi; here", "a", (".",)),
        ("case x in x) cd a;; esac; here", ".", ("a",)),
        ("pushd a && here", "a", ()),
        ("pushd a && popd && here", ".", ()),
        ("popd && here", ".", ()),
        ("cd a && cd - && here", ".", ()),
        ("cd && here", "~", ()),
        ("cd ~/x && here", "~/x", ()),
        ("cd ./~ && here", "./~", ()),
        ("cd -- a && here", "a", ()),
        ("cd 'a b' && here", "a b", ()),
        ("command cd a && here", "a", ()),
        ("builtin cd a && here", "a", ()),
        ("eval 'cd a' && here", "a", ()),
        ("bash -c 'cd a' && here", ".", ()),
        ("bash -c 'cd a && here'", "a", ()),
        ("env -C a here", "a", ()),
        ("env --chdir=a here", "a", ()),
        ("cd a && env -C b here", "a/b", ()),
        ("x=$(cd a) && here", ".", ()),
        ("for d in a b; do (cd $d && true); done; here", ".", ()),
        ("while cd /x; do :; done; cd /y && here", "/y", ()),
        ("D=a; cd $D && here", "a", ()),
    ],
)
def test_where_a_command_runs(line, path, others):
    assert directory(line) == Directory(path=path, alternatives=others)


@pytest.mark.parametrize(
    "line",
    [
        "cd $X && here", 'cd "$(ls)" && here', "cd - && here", "cd ~/.. && here", "cd a b; here", "while true; do here; cd a; done", "f() { cd a; }; f; here", "f() { here; }",
        "find . -execdir here {} \\;", "env -C $X here", "pushd +1 && here", "cd a* && here", "CDPATH=/x; cd a && here", "for d in a b; do cd $d; here; done", "cd ~- && here",
    ],
)  # fmt: skip
def test_where_it_is_not_known(line):
    assert directory(line).path is None


def test_many_alternatives_are_unknown():
    assert directory("; ".join(f"cd d{number}" for number in range(20)) + "; here").path is None


def test_redirections_of_compounds_have_the_directory_they_stand_in():
    line = parse_line("cd a && { ls; } > out")
    assert [item.path for item in line.directories] == ["a"]
