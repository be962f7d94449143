"""Which words are values of options and which are files: a file that is taken for a value is judged by nobody."""

import pytest
from msgspec.structs import replace

from ringfence.shell.parse import parse_line
from ringfence.shell.programs import EffectKind, PathAccess, read_arguments


def paths(line):
    return {(path.text, path.access) for path in read_arguments(parse_line(line).commands[0]).paths}


@pytest.mark.parametrize(
    "line",
    [
        "zcat -f x", "zcat -d x", "zcat -l x", "bzcat -d x", "xzcat -f x", "xzcat -d x", "zstdcat -l x", "zstdcat -T x", "zstdcat -d x", "lzcat -f x",
        "fmt -t x", "hexdump -L x", "hd -L x", "xxd -t x", "xxd -c 8 x", "sdiff -W x y", "sdiff -l x y", "diff3 -x x y z", "tree --filesfirst x", "tac -s , x", "rev x",
        "pydocstyle -e x", "pydocstyle -s x", "radon cc -s x", "radon cc -j x", "bandit -d x", "vitest -w x", "mocha -w x", "ack foo -C x",
    ],
)  # fmt: skip
def test_a_file_behind_a_flag_is_read(line):
    assert ("x", PathAccess.READ) in paths(line)


@pytest.mark.parametrize(
    "line", ["zstd -T x", "zstd -S x", "unzstd -T x", "lz4 -T x", "isort --sl x", "yapf -i -p x", "xxd -r -c 8 y x", "xxd -r -l 5 -s 2 y x"]
)  # fmt: skip
def test_a_file_behind_a_flag_is_written(line):
    assert ("x", PathAccess.WRITE) in paths(line)


@pytest.mark.parametrize(
    "line",
    ["od -A x -t x1 f", "od -N 5 -j 2 f", "hexdump -n 16 -C f", "hexdump -e '1/1 \"%02x\"' f", "xxd -l 16 f", "xxd -g 1 -c16 f", "strings -n 8 f", "fold -w 80 f", "expand -t 4 f", "diff3 -m f g h", "sdiff -w 100 f g"],
)  # fmt: skip
def test_the_value_of_an_option_is_not_written(line):
    assert all(access is PathAccess.READ for _, access in paths(line))
    assert ("f", PathAccess.READ) in paths(line)


def test_letters_that_stand_apart_are_no_cluster():
    reading = read_arguments(parse_line("xxd -bc ../x").commands[0])
    assert [effect.option for effect in reading.effects] == ["-bc"]


@pytest.mark.parametrize(
    "line",
    [
        "curl -H @x u", "curl -H@x u", "curl --header=@x u", "curl --header @x u", "curl -w @x u", "curl -b x u", "curl -d @x u", "curl -sd@x u", "curl --json @x u", "curl --data-urlencode n@x u",
        "curl --data-urlencode @x u", "curl --url-query n@x u", "curl --variable n@x u", "curl -F n=@x u", "curl -F 'n=@x;type=text/plain' u", "curl -F 'n=<x' u", "curl -F 'n=@y,x' u", "curl -F 'n=@\"x\"' u",
        "curl file:x", "curl file://x", "curl FILE:x", "curl file:%78", "curl --url file://x",
    ],
)  # fmt: skip
def test_what_is_sent_is_read(line):
    assert ("x", PathAccess.READ) in paths(line)


def test_a_local_url_is_a_path():
    assert ("/etc/x", PathAccess.WRITE) in paths("curl -T y file://localhost/etc/x")
    assert (None, PathAccess.READ) in paths("curl 'file:///etc/{x,y}'")
    assert not read_arguments(parse_line("curl file:///etc/x").commands[0]).hosts


@pytest.mark.parametrize(
    "line",
    ["curl -H 'Accept: @x' u", 'curl -H "Authorization: Bearer $T" u', "curl -b a=@x u", "curl -d a=@x u", "curl --data-raw @x u", "curl --form-string n=@x u", "curl -F n=x u", "curl https://example.org/file:x"],
)  # fmt: skip
def test_what_is_no_file_is_not_read(line):
    assert not paths(line)


@pytest.mark.parametrize(
    "line", ["pip install -r https://h/x", "pip install -c http://h/x", "pip install -e git+https://h/x#egg=y"]
)
def test_a_file_of_a_program_that_connects_may_lie_on_a_host(line):
    assert [use.host for use in read_arguments(parse_line(line).commands[0]).hosts] == ["h"]


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("cp -b -S rc f .bash", ".bashrc"), ("cp --suffix=rc .bash docs", "docs/.bashrc"), ("mv -b -S rc f .bash", ".bashrc"), ("ln -b -S rc f .bash", ".bashrc"),
        ("install -b -S rc f .bash", ".bashrc"), ("patch -b -z rc .bash", ".bashrc"), ("gzip --suffix=rc .bash", ".bashrc"), ("sed -irc p .bash", ".bashrc"), ("sed -i'.*rc' p bash", ".bashrc"),
        ("zip -r a.zip -lf x src", "x"), ("cp -l x y", "x"), ("cp --link x y", "x"), ("cp -s x y", "x"), ("cp -rl x y", "x"), ("rsync -a --link-dest=x a b", "x"),
        ("ln -s f src/l", "src/f"), ("ln -s f src", "src/f"), ("ln -st src f", "src/f"), ("ln -s ../x src/l", "src/../x"), ("ln -s x", "x"), ("ln x src/l", "x"), ("ln -sr x src/l", "x"),
        ("gcc --output x a.c", "x"), ("gcc --output=x a.c", "x"), ("gcc -Wl,-o,x a.c", "x"), ("gcc -Wl,--output=x a.c", "x"), ("gcc -Wp,-MD,x a.c", "x"), ("gcc -Wa,-ox a.c", "x"), ("gcc -Wl,-Map=x a.c", "x"),
        ("eslint --unheard-of=./x", "./x"), ("rg --unheard-of=.x y", ".x"),
    ],
)  # fmt: skip
def test_a_name_that_words_make_together_is_written(line, name):
    assert (name, PathAccess.WRITE) in paths(line)


@pytest.mark.parametrize("line", ["split f .bash", "split -n 3 f src/.bash", "csplit -f .bash f 1"])
def test_names_that_begin_hidden_may_be_any(line):
    assert (None, PathAccess.WRITE) in paths(line)


def test_a_relative_link_is_seen_from_where_it_lies():
    assert ("../lib/x", PathAccess.WRITE) not in paths("ln -s ../lib/x bin/x")


@pytest.mark.parametrize(
    "line", ["meson setup ../x", "gradle -p ../x build", "gradle --init-script ../x build", "tox -c ../x", "gcc -Wl,-T,../x a.c", "gcc -specs=../x a.c", "just ../x"]
)  # fmt: skip
def test_places_among_the_words_of_a_builder_are_read(line):
    assert "../x" in {text for text, _ in paths(line)}


@pytest.mark.parametrize(
    "line",
    [
        "bazel build //x:y",
        "gradle :a:b",
        "mvn -q package",
        "ninja all",
        "gcc -Wl,-rpath,/opt/x a.c",
        "gcc -Wl,--as-needed -Wall a.c",
    ],
)
def test_what_is_no_place_is_not_read(line):
    assert {text for text, _ in paths(line)} <= {"a.c"}


def effects(line):
    return {effect.kind for effect in read_arguments(parse_line(line).commands[0]).effects}


@pytest.mark.parametrize(
    "line",
    ["sqlite3 x.db", "sqlite3 -json x.db", "vim f", "vim -es f", "nvim --headless f", "ed f", "ex f", "emacs --batch f", "psql -d x", "mysql x", "dc", "m4 f"],
)  # fmt: skip
def test_what_stands_on_standard_input_is_run(line):
    assert EffectKind.PROGRAM_TEXT in effects(line)


@pytest.mark.parametrize(
    "line",
    [
        "vim +'!id' f",
        "vim -c '!id' f",
        "vim --cmd x f",
        "vim -S x f",
        "emacs --eval x",
        "dc -e '!id'",
        "psql -c x",
        "patch -e -i x",
    ],
)
def test_commands_of_an_editor_or_database_are_seen(line):
    assert effects(line) & {EffectKind.PROGRAM_TEXT, EffectKind.EXECUTES}


@pytest.mark.parametrize(
    "line",
    [
        "yq 'load(\"x\")' f",
        "yq eval 'load_str(\"x\")' f",
        "yq -n 'load (\"x\")'",
        "yq -s '.a' f",
        "yq --split-exp '.a' f",
        "jq 'import \"a\" as $a; .' f",
    ],
)
def test_files_that_a_script_names_are_seen(line):
    assert effects(line) & {EffectKind.UNKNOWN, EffectKind.UNKNOWN_OPTION}


@pytest.mark.parametrize(
    "line",
    [
        "yq '.a' f",
        "yq eval '.load' f",
        "yq -r .a.b f",
        "vim --version",
        "git -c user.name=x -c user.email=y commit -m z",
        'git -c user.name="$X" commit -m z',
        "git -c color.ui=never status",
        "git -c Core.QuotePath=false diff",
        "git -c core.pager=cat log",
        "git -c pager.log=false log",
        "git -c commit.gpgsign=false commit -m x",
        "sqlite3 -version",
        "jq .loaded f",
    ],
)
def test_ordinary_uses_have_no_effect(line):
    assert not effects(line)


@pytest.mark.parametrize(
    "line",
    ["git -c core.pager=x log", "git -c core.pager='cat x' log", "git -c user.name=$X commit", "git -c $X commit", 'git -c "$X=y" commit', 'git -c "user.$X" commit', "git -c color.ui=$X status", "git -c include.path=x status", "git -c commit.gpgsign=true commit", "git -c diff.external=x diff", "git -c colorx=y log", "git -c core.fsmonitor=x status"],
)  # fmt: skip
def test_a_setting_may_name_a_program(line):
    assert effects(line) & {EffectKind.EXECUTES, EffectKind.UNKNOWN}


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("cp a/x d", "d/x"), ("cp -t d a/x", "d/x"), ("mv a/x d/", "d/x"), ("install a/x d", "d/x"), ("ln x d", "d/x"),
        ("gunzip x.gz", "x"), ("gzip -d .npmrc.gz", ".npmrc"), ("unxz d/x.xz", "d/x"), ("bzip2 -d x.bz2", "x"),
    ],
)  # fmt: skip
def test_the_name_that_a_file_gets_is_written(line, name):
    assert (name, PathAccess.WRITE) in paths(line)


@pytest.mark.parametrize("line", ["mv a .x", "cp -r a .x", "cp -a a d/.x/"])
def test_a_folder_that_becomes_hidden_brings_what_may_lie_below(line):
    assert PathAccess.DELETE in {access for text, access in paths(line) if text.rstrip("/").endswith(".x")}


@pytest.mark.parametrize("line", ["cp -T a/x d", "cp x", "cp .. d", "gzip x", "gzip .x"])
def test_no_other_name_is_written(line):
    assert {text for text, access in paths(line) if access is PathAccess.WRITE} <= {"d", "x", ".x"}


@pytest.mark.parametrize(
    ("word", "path"),
    [
        (":.env", ".env"),
        (":0:.env", ".env"),
        (":2:src/x", "src/x"),
        (":/.env", ".env"),
        (":(top).env", ".env"),
        ("HEAD:.env", ".env"),
    ],
)
def test_a_path_of_the_index_is_read(word, path):
    assert (path, PathAccess.READ) in paths(f"git show '{word}'")


@pytest.mark.parametrize("word", [":!.env", ":^.env", ":(exclude).env", ":/!.env"])
def test_a_path_that_is_left_out_is_not(word):
    assert (".env", PathAccess.READ) not in paths(f"git diff -- '{word}'")


@pytest.mark.parametrize("line", ["sort -o", "sort --output", "tar -cf", "cp -t", "curl -o", "find . -fprint"])
def test_a_value_that_is_added_when_it_runs_is_not_known(line):
    command = replace(parse_line(line).commands[0], extra_arguments=True)
    assert (None, PathAccess.WRITE) in {(path.text, path.access) for path in read_arguments(command).paths}


@pytest.mark.parametrize(
    "line",
    ["nm @x", "objdump -d @x", "readelf @x", "size @x", "strings @x", "rustc @x", "tsc @x", "mypy @x", "python -m mypy @x", "ruff check @x", "pytest @x", "gcc @x"],
)  # fmt: skip
def test_a_file_of_more_arguments_is_read_and_not_known(line):
    assert EffectKind.UNKNOWN in effects(line)
    assert paths(line) & {("x", PathAccess.READ), ("x", PathAccess.EXECUTE)}


@pytest.mark.parametrize(
    "line",
    ["nm --plugin x f", "nm --plug=x f", "objdump -P x f", "patch -g1 f", "patch --get=1 f", "scp -D ./x a h:b", "sftp -D ./x h", "git difftool -x id", "git difftool --extc=id HEAD", "git difftool -t x", "git mergetool --tool=x", "git range-diff --ext-diff a b", "uv run https://h/x.py", "npx https://h/x", "npm exec --package=x tsc", "npm x tsc -c id"],
)  # fmt: skip
def test_options_that_start_a_program_are_seen(line):
    assert EffectKind.EXECUTES in effects(line)


@pytest.mark.parametrize(
    ("line", "path"),
    [
        ("curl -w '%output{x}a' u", "x"), ("curl -w '%{url}%output{>>x}a%output{y}b' u", "x"), ("curl --write-out='%output{>>y}%output{x}' u", "x"),
        ("wget https://h/a/x", "x"), ("wget 'https://h/a/%78?q=/y#z'", "x"), ("wget -q -N https://h/x", "x"), ("wget -P d https://h/x", "d"),
    ],
)  # fmt: skip
def test_files_that_a_transfer_writes_are_seen(line, path):
    assert (path, PathAccess.WRITE) in paths(line)


@pytest.mark.parametrize(
    "line",
    ["wget -O- https://h/x", "wget --spider https://h/x", "wget h", "wget https://h/", "curl -w '%{http_code}' u"],
)
def test_what_a_transfer_only_shows_is_not_written(line):
    assert all(access is not PathAccess.WRITE for path, access in paths(line) if path != "-")


@pytest.mark.parametrize(
    "mode",
    ["4755", "2755", "04755", "004755", "777", "0777", "1777", "666", "o+w", "a=rw", "ugo+rwx", "u+s", "g=xs", "=s", "u=rwxs", "u+x,g+s", "+x,o=u", "a=g", "x", "9", "u~x", "o-r+w"],
)  # fmt: skip
def test_a_mode_that_gives_away_more_than_ordinary_work_needs_is_seen(mode):
    assert EffectKind.UNKNOWN_OPTION in effects(f"chmod '{mode}' f")
    assert EffectKind.UNKNOWN_OPTION in effects(f"install -m '{mode}' f g")


@pytest.mark.parametrize(
    "mode",
    ["755", "0644", "600", "1755", "+x", "u+x", "a+x", "ugo+rx", "-w", "u=rwX,go=rX", "g+w", "o-rwx", "a-s", "g=u", "u+t"],
)  # fmt: skip
def test_an_ordinary_mode_has_no_effect(mode):
    assert EffectKind.UNKNOWN_OPTION not in effects(f"chmod {mode} f")
    assert EffectKind.UNKNOWN_OPTION not in effects(f"mkdir -m {mode} d")
