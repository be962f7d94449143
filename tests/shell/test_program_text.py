"""Program text of awk and sed: what one real reader of it would run, read or write is never passed over."""

import pytest

from ringfence.shell.parse import parse_argv, parse_line
from ringfence.shell.programs import EffectKind, read_arguments

pytestmark = pytest.mark.usefixtures("no_io")


def reading(program, text):
    return read_arguments(parse_argv((program, text, "f")).commands[0])


def read_line(line, command=0):
    return read_arguments(parse_line(line).commands[command])


def found(program, text):
    read = reading(program, text)
    return {effect.kind for effect in read.effects}, [(path.text, path.access.value) for path in read.paths]


RUNS = EffectKind.EXECUTES
UNREAD = EffectKind.PROGRAM_TEXT


# A slash after a condition begins an expression, elsewhere a division; where awks differ nothing is taken for read.
@pytest.mark.parametrize(
    "text",
    [
        'BEGIN{if (1) /"/; system("id"); x=""}', 'BEGIN{while (0) /"/; system("id"); x=""}', 'BEGIN{for (;0;) /"/; system("id"); x=""}',
        'BEGIN{if (0) exit /"/; system("id"); x=""}', 'BEGIN{if ((1) && (x)) /"/; system("id"); x=""}', 'BEGIN{if (0); else /"/; system("id"); x=""}',
        'BEGIN{getline / 2; system("id") #/\n}', 'BEGIN{x++ /"/; system("id"); x=""}', 'BEGIN{x-- /#/ system("id")}', 'BEGIN{length /"/; system("id"); x=""}', 'BEGIN{$/#/ system("id")}',
        'BEGIN{f(1)/2; system("id")/2}', 'BEGIN{a[1]/2; system("id")/2}', 'BEGIN{(1)/system("id")/2}', 'BEGIN{awk::system("id")}', 'BEGIN{@awk::f("id")}', 'BEGIN{x="',
    ],
)  # fmt: skip
def test_what_awk_would_run_is_seen(text):
    assert found("awk", text)[0] & {RUNS, UNREAD}


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ('{while ((getline a[b[1]] < "/x") > 0) print}', "/x"), ('{getline $(1) < "/x"}', "/x"), ('{getline $ 1 < "/x"}', "/x"),
        ('{getline a[1] \\\n < "/x"}', "/x"), ("{getline < (x)}", None), ("{(getline line < FILENAME)}", None), ('{getline $NF < "/x" ".y"}', None),
    ],
)  # fmt: skip
def test_what_awk_would_read_is_seen(text, path):
    assert (path, "read") in found("awk", text)[1]


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ('{if (1) /[(]/; print "x" > "/x"}', "/x"), ('{print(1)(2) > "/x"}', "/x"), ('{print "x" > "/dev/stdin/../x"}', "/dev/stdin/../x"),
        ('{print "x" > "/dev/stdoutx"}', "/dev/stdoutx"), ("{print (1) > (x)}", None), ('function f(a) {printf a >> "/x"}', "/x"), ('{((1)); print 1 > "/x"}', "/x"), ('{print 1,\n\n2 > "/x"}', "/x"), ('{print 1 ||  # or\n 2 > "/x"}', "/x"),
    ],
)  # fmt: skip
def test_what_awk_would_write_is_seen(text, path):
    kinds, paths = found("awk", text)
    assert EffectKind.WRITES in kinds
    assert (path, "write") in paths


@pytest.mark.parametrize(
    "text",
    [
        "{print ($1 > 3)}", "{if ($1 > 3) print}", "{while ((getline line) > 0) n++}", "{n = (getline line) < 1}", '{print > "/dev/stderr"}', "{print $1 / $2 / NF}", '$1 ~ /a"b/ {print}',
        '{if (/"/) print; else print $2 / 2}', '{gsub(/"/, ""); print substr($0, 2) / 1}', '!/"/', '/a/,/b[/]"/', "{x = f(1) / 2; y = a[1] / 2}", '{if ($1) print /x"/ ? 1 : 2}', "{print length($0) / 2}",
    ],
)  # fmt: skip
def test_ordinary_awk_has_no_effect(text):
    assert found("awk", text) == (set(), [("f", "read")])


# A label ends at a blank: what follows is a command.
@pytest.mark.parametrize("text", [":a e id", ": a e id", ":a\te id", "ba e id\n:a", "/x/!ta e id\n:a", "T a e id\n:a", ":a;e id", "{:a e id\n}", "b;e id", "/x/b }\ne id"])  # fmt: skip
def test_what_stands_behind_a_label_of_sed_is_seen(text):
    assert found("sed", text)[0] & {RUNS, UNREAD}


@pytest.mark.parametrize("text", [":a;N;$!ba;s/\\n/ /g", ":a\nN\n$!ba\ns/\\n/ /g", "/x/{b};p", "/x/b end;p;:end", "t x;:x", ":a;s/^(a)/b/;ta", "b # a comment"])  # fmt: skip
def test_ordinary_labels_have_no_effect(text):
    assert found("sed", text) == (set(), [("f", "read")])


@pytest.mark.parametrize(
    "line", ["sed -i'../*' p f", "sed --in-place=.git/hooks/* p f", 'sed -ni"$x" p f', "perl -i'../*' x f"]
)
def test_a_backup_in_another_folder_is_a_write_there(line):
    assert (None, "write") in [(path.text, path.access.value) for path in read_line(line).paths]


@pytest.mark.parametrize(
    ("line", "backup"),
    [("sed -i.bak p f", {"f.bak"}), ("sed -i p f", set()), ("sed --in-place=.orig p f", {"f.orig"}), ("sed -i'.*rc' p f", {".frc"})],
)  # fmt: skip
def test_a_backup_beside_the_file_is_a_write_there(line, backup):
    assert {(path.text, path.access.value) for path in read_line(line).paths} == {
        ("f", "write"), *((name, "write") for name in backup)
    }  # fmt: skip


# What is added when it runs may be a program, its text or a path, also behind `--`.
@pytest.mark.parametrize("line", ["xargs sed", "xargs sed -n", "xargs awk", "xargs make", "xargs make --", "xargs jq -r", "xargs sqlite3 x.db"])  # fmt: skip
def test_added_arguments_may_be_program_text(line):
    assert UNREAD in {effect.kind for effect in read_line(line, 1).effects}


@pytest.mark.parametrize(
    "line", ["xargs awk '{print}'", "xargs pytest --", "xargs git diff --", "xargs tar -cf x.tar --", "xargs timeout 5 cat", "xargs env sort", "find . -exec nice cat {} +"],
)  # fmt: skip
def test_added_arguments_are_paths(line):
    last = len(parse_line(line).commands) - 1
    assert None in {path.text for path in read_line(line, last).paths}


@pytest.mark.parametrize("line", ["awk -W exec=x f", "awk -We x f", "xargs --process-slot-var=PATH ls", "xargs --process-slot PATH ls"])  # fmt: skip
def test_options_that_pass_another_option_or_variable(line):
    assert EffectKind.UNKNOWN_OPTION in {effect.kind for effect in read_line(line).effects}


@pytest.mark.parametrize(
    "setting", ["PATH=x", "PATH=.", "X=..", "BASH_ENV=x", "ENV=x", "LD_PRELOAD=x.so", "GIT_EXTERNAL_DIFF=x", "NODE_OPTIONS=x", "PERL5OPT=-x", "IFS=x", "PAGER=x", "EDITOR=x", "HOME=x", "JAVA_HOME=x", "PIP_INDEX_URL=x", "RUSTC=x", "CFLAGS=-wrapper", "CFLAGS=-fplugin=x", "CFLAGS=@x", "LDFLAGS=-Bx", "CFLAGS=-Wl,x"],
)  # fmt: skip
def test_a_variable_of_make_that_its_recipes_take_code_from(setting):
    assert UNREAD in {effect.kind for effect in read_line(f"make {setting} all").effects}


@pytest.mark.parametrize("setting", ["V=1", "DEBUG=1", "VERSION=1.2.3", "TARGET=x86_64-linux", "NODE_ENV=test", "CFLAGS=-O2", "CFLAGS='-O2 -g -Wall -std=c11 -DX=1 -fPIC'", "CXXFLAGS=-std=c++17", "MANIFEST=x", "OPT=1"])  # fmt: skip
def test_a_variable_of_make_that_harms_nobody(setting):
    assert not read_line(f"make {setting} all").effects
