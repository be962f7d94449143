"""Arguments are read with the table of their program."""

import pytest

from ringfence.shell.parse import parse_argv, parse_line
from ringfence.shell.programs import SHIPPED, EffectKind, PathAccess, TableError, Tables, read_arguments
from ringfence.shell.programs.load import BUILTIN


def reading(line):
    return read_arguments(parse_line(line).commands[0])


def effects(line):
    return {effect.kind for effect in reading(line).effects}


def paths(line):
    return [(path.text, path.access.value) for path in reading(line).paths if path.into is None]


@pytest.mark.parametrize(
    "line",
    [
        "find . -delete", "sed -i s/a/b/ f", "sed -ni.bak p f", "sed -n --in-place=.b p f", "sed --in-pl p f", "sed 's/a/b/w out' f", "sed -n '/x/{w out\n}' f", "perl -pi -e x f", "gofmt -w f", "tar -cf x --remove-files f",
        "git config user.name x", "git config --global core.pager x", "git config set a.b c", "git remote add x y", "git clean -f", "prettier --write f", "awk '{print > \"out\"}' f", "awk '{printf \"x\" >> $1}' f", "git hash-object -w f",
    ],
)  # fmt: skip
def test_changes_files(line):
    assert EffectKind.WRITES in effects(line)


@pytest.mark.parametrize(
    "line",
    [
        "rg --pre x y", "rg --pre=x y", "rg --hostname-bin x y", "rg -z y", "git -c a=b log", "git -ca=b log", "git --exec-path=x log", "git -p log", "git --paginate log", "git --git-dir=x log", "git --git-dir x log", "git --config-env=a=B log",
        "git log --ext-diff", "git diff --ext-d", "git grep -Ox y", "git grep --open-files-in-pager=x y", "git rebase -x y", "git rebase --exec=y main", "git bisect run x", "git submodule foreach x", "git fetch --upload-pack=x y", "git fetch --upload-p x y",
        "git clone -u x y", "git clone -c a=b y", "git push --receive-pack=x", "git archive --exec=x HEAD", "sort --compress-program=x f", "sort --comp x f", "tar -xf a -I x", "tar -xf a --use-comp=x", "tar -cf a --checkpoint-action=exec=x b", "tar -xf a --to-command x", "tar --to-comm=x -xf a",
        "tar xFf script a", "tar -xf host:a", "man -P x y", "man -Hx y", "man --pager=x y", "man --html=x y", "awk 'BEGIN{system(\"x\")}'", "awk '{print | \"x\"}'", "awk '{\"x\" | getline}'", "awk '{print |& \"x\"}'", "awk '@load \"x\"'", "awk '{f=\"system\"; @f(\"x\")}'", "gawk -l x y",
        "sed 's/a/b/e' f", "sed 1e f", "sed -n '/x/e id' f", "npm test --script-shell=x", "npm test --script-sh x", "npm --node-options=x test", "python -m pytest -p x", "pytest -o a=b", "pytest -c f", "pytest --pdb", "go test -exec x", "go build -toolexec x", "go vet -vettool=x", "go test -toolexec=x ./...",
        "cargo --config x build", "cargo build --config x", "rsync -e x a b", "rsync --rsh=x a b", "gcc -fplugin=x f.c", "gcc -wrapper x f.c", "gcc -B x f.c", "less +x f", "make -f x", "make -I x", "node -r x f", "node --require=x f", "diff --diff-program=x a b", "split --filter=x f", "fd -x rm", "fd a --exec=rm", "bat --pager=x f", "git merge -s x y", "mypy --config-file x", "eslint -c x f", "eslint --rulesdir=x f", "pylint --load-plugins=x f",
    ],
)  # fmt: skip
def test_starts_programs_or_loads_code(line):
    assert EffectKind.EXECUTES in effects(line)


@pytest.mark.parametrize(
    "line",
    [
        "python -c x", "python -Bc x", "python -", "python", "python -i", "python3.11 -c x", "python -m http.server", "python -mhttp.server x", "python -m pytest", "node -e x", "node -pe x", "node --eval=x", "node", "perl -e x", "ruby -e x", "make --eval=x", "make -Ex", "make SHELL=x", "make CC=x all", "make 'A=$(shell id)'", "make 'A=a b'", "make A:=$X", "make A!=id",
        "awk -e x", 'awk "$X" f', 'sed "$X" f', "mypy -c x", "black --code x", "sqlite3 x.db '.shell id'", "cmake -E x",
    ],
)  # fmt: skip
def test_takes_program_text(line):
    assert EffectKind.PROGRAM_TEXT in effects(line) or EffectKind.UNKNOWN_OPTION in effects(line)


@pytest.mark.parametrize(
    "line",
    [
        "grep --frob x f", "rg --frob x", "git diff --frob", "git --frob diff", "ls --frob", "find . -frob", "sort --frob f", "cat -Y f", "sed --frob p f", "make --frob", "npm test --frob", "python --frob", "pytest --frob", "dd frob", "curl --frob x", "gcc --frob x", "rg --pr x y", "tar --frob x", "git log --config=x", "jq --frob . f", "cargo test --frob",
    ],
)  # fmt: skip
def test_an_option_that_the_table_does_not_know(line):
    assert EffectKind.UNKNOWN_OPTION in effects(line)


@pytest.mark.parametrize(
    "line",
    [
        "git status -sb", "git log -p -2 -- a", "git log --oneline --graph --all -n 5 --format=%h", "git log --grep sudo -i --since=yesterday", "git diff --stat HEAD~1 -- src", "git show HEAD:a.py", "git commit -am 'x -- y'", "git commit -qm x --no-verify", "git -C src --no-pager diff --cached --name-only", "git branch -vv", "git rev-parse --abbrev-ref HEAD", "git ls-files -- '*.py'", "git blame -L 1,5 a", "git config --get user.name", "git config user.name", "git remote -v", "git stash list", "git tag -l 'v*'", "git reflog -5",
        "rg -n --no-heading -g '*.py' 'a|b' src", "rg -e --pre docs", "rg --files -g x", "rg -uu -C3 x", "grep -rnE --include='*.py' 'a|b' src", "grep -e -f f", "grep -A5 -B 5 x f", "grep -- -x f", "sed -n 1,5p f", "sed -n -e '/a b/p' -e '$=' f", "sed -e 's/w/e/g' f", "sed 's|a|b|g;s,c,d,' f", "sed -E 's/^(a)$/\\1/' f", "sed '/^#/d' f", "sed -n '/a/,/b/{p;n}' f", "sed y/abc/xyz/ f", "sed 's/[/]/x/' f", "sed '2i\\hello e w' f", "sed '$!d' f", "sed 's/a/b/;t x;:x' f",
        "awk '{print $1}' f", "awk -F: -v n=3 'NR>n{print $2}' f", "awk '/a|b/{c++} END{print c}' f", "awk '$1 > 5 && $2 < 3' f", "awk '{s+=$1} END {printf \"%d\\n\", s/NR}' f", "awk '{print ($1 > 2)}' f", "awk '{print a || b}' f", "awk 'BEGIN{while((getline l) > 0) print l}' f", "awk '!seen[$0]++' f", "awk '{gsub(/\"/, \"\"); print}' f",
        "find . -name '*.py' -not -path './x/*' -type f -print0", "find src \\( -name a -o -name b \\) -newer f -mtime -3 -maxdepth 2", "find . -newermt 2024-01-01", "find -L . -exec ls {} +", "sort -t, -k2,2n -ru f", "sort -nrk2 f", "head -5 f", "head -n5 f", "tail -f f", "tail -n +2 f", "ls -la --color=never src", "wc -l f", "cut -d: -f1 f", "tr a b", "uniq -c", "date +%s", "date -d yesterday +%F", "jq -r '.a[] | .b' f", "jq --arg a b '.c' f", "diff -u a b", "tar -tzf a", "tar tf a", "file f", "base64 -d f", "stat -c %s f", "du -sh .", "tree -L 2", "xargs -0 -n1 grep x",
        "npm test -- --frob", "npm run lint --silent", "make -j4 -k test", "make V=1 all", "make -n", "cargo test -p x -- --nocapture", "go test ./... -run X -v", "ruff check --fix src", "mypy --strict src", "pip list --outdated", "ps aux", "kill -9 1", "echo -e -n --frob", "printf -- x", "cat -n f", "less -N f",
        "gcc -O2 -Wall -std=c11 -Iinclude -DX=1 -c a.c", "curl -s --retry 3 -H 'a: b' x", "pytest -q -x -k 'a and b' --tb=short -p no:cacheprovider tests/a.py::b", "npx tsc --noEmit",
    ],
)  # fmt: skip
def test_ordinary_uses_have_no_effect(line):
    found = [(item.kind, item.why) for item in reading(line).effects]
    allowed = {EffectKind.CHANGES_DIRECTORY}
    assert [item for item in found if item[0] not in allowed] == []
    assert reading(line).known


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("cat a b", [("a", "read"), ("b", "read")]), ("cat -- -n", [("-n", "read")]), ("grep x a", [("a", "read")]), ("grep -e x a", [("a", "read")]), ("grep -f p a", [("p", "read"), ("a", "read")]), ("grep -fp a", [("p", "read"), ("a", "read")]),
        ("grep --file=p a", [("p", "read"), ("a", "read")]), ("grep -rn '/etc/passwd' src/", [("src/", "read")]), ("rg -f=p x", [("p", "read"), ("x", "read")]), ("cp a b c", [("a", "read"), ("b", "read"), ("c", "write")]), ("cp -t d a b", [("d", "write"), ("a", "read"), ("b", "read")]),
        ("mv a b", [("a", "delete"), ("b", "write")]), ("rm -rf a b", [("a", "delete"), ("b", "delete")]), ("mkdir -p a", [("a", "write")]), ("tee -a f", [("f", "write")]), ("touch f", [("f", "write")]), ("ln -s a b", [("a", "write"), ("b/a", "write"), ("b", "write")]), ("chmod +x f", [("f", "write")]), ("chmod 644 f g", [("f", "write"), ("g", "write")]),
        ("dd if=a of=b bs=1", [("a", "read"), ("b", "write")]), ("sort -o out f", [("out", "write"), ("f", "read")]), ("sort -oout f", [("out", "write"), ("f", "read")]), ("uniq a b", [("a", "read"), ("b", "write")]), ("git diff --output=o", [("o", "write")]), ("git log --outp o", [("o", "write")]), ("sed -i p f", [("f", "write")]), ("sed -n p f", [("f", "read")]),
        ("sed -n 'r a' f", [("a", "read"), ("f", "read")]), ("awk 1 f", [("f", "read")]), ("awk 1 x=1 f", [("f", "read")]), ("find a b -name x", [("a", "read"), ("b", "read")]), ("find -name x", [(".", "read")]), ("find . -fprint f", [(".", "read"), ("f", "write")]), ("find . -fprintf f %p -newer g", [(".", "read"), ("f", "write"), ("g", "read")]),
        ("tar -cf a.tar src", [("a.tar", "write"), ("src", "read")]), ("tar -tf a.tar", [("a.tar", "read")]), ("tar xf a.tar", [("a.tar", "read"), (".", "write")]), ("date -r f", [("f", "read")]), ("patch -p1 -i f", [("f", "read")]), ("test -f a", [("a", "read")]), ("[ a -nt b ]", [("a", "read"), ("b", "read")]), ("curl -o f -T g http://h/", [("f", "write"), ("g", "read")]),
        ("python a.py", [("a.py", "execute")]), ("bash a.sh", [("a.sh", "execute")]), ("source a.sh", [("a.sh", "execute")]), ("pytest a::b", [("a", "execute")]), ("pytest --junitxml=o --basetemp=d", [("o", "write"), ("d", "delete")]), ("gcc -o o a.c", [("o", "write"), ("a.c", "read")]), ("make -C d", [("d", "read")]), ("ls /dev/null -", []), ("git show HEAD:a", [("HEAD:a", "read"), ("a", "read")]),
        ("wc -l --files0-from=f", [("f", "read")]), ("jq --slurpfile x f . g", [("f", "read"), ("g", "read")]), ("rsync a b", [("a", "read"), ("b", "write")]), ("env -C d ls", [("d", "read")]), ("split a b", [("a", "read"), ("b", "write")]), ("unzip a -d d", [("d", "write"), ("a", "read")]), ("zip a b", [("a", "write"), ("b", "read")]), ("gzip a", [("a", "write")]), ("ls ~/x", [("~/x", "read")]),
    ],
)  # fmt: skip
def test_paths_and_what_is_done_to_them(line, expected):
    assert paths(line) == expected


def test_paths_are_seen_from_the_directory_an_option_names():
    (_, folder, file) = reading("git -C a -C b show x").paths
    assert (folder.text, folder.directory, file.text, file.directory) == ("b", "a", "x", "a/b")
    assert reading("make -C $X f").paths[0].text is None


@pytest.mark.parametrize(
    ("line", "hosts"),
    [
        ("curl https://a.example.org/x", [("a.example.org", 443)]), ("curl -s http://u:p@a.test:8080/x?y", [("a.test", 8080)]), ("curl a.test b.test", [("a.test", 80), ("b.test", 80)]), ("wget -q 'https://[::1]/x'", [("::1", 443)]), ("curl $X", [(None, None)]), ("curl http://$X/", [(None, None)]), ("curl http://a.test/$X", [("a.test", 80)]),
        ("curl http://a{b,c}.test", [("ab.test", 80), ("ac.test", 80)]), ("curl 'http://a{b,c}.test'", [(None, None)]), ("git clone https://a.test/x", [("a.test", None)]), ("git clone git@a.test:x", [("a.test", None)]), ("git push origin main", []), ("scp a u@h.test:b", [("h.test", None)]), ("curl -x http://p.test:3128 a.test", [("p.test", 3128), ("a.test", 80)]), ("ssh u@h.test ls", [("h.test", 80)]),
    ],
)  # fmt: skip
def test_hosts(line, hosts):
    found = [(host.host, host.port) for host in reading(line).hosts]
    assert [name for name, _ in found] == [name for name, _ in hosts]
    if not line.startswith("ssh"):
        assert found == hosts


def test_effects_name_the_words_that_cause_them():
    assert [effect.words for effect in reading("python -m pytest -p x").effects] == [(1, 2), (3, 4)]
    assert [effect.words for effect in reading("sed -n -i p f").effects] == [(2,)]
    assert [effect.words for effect in reading("git push origin").effects] == [(0, 1)]


def test_options_before_the_subcommand_are_apart():
    read = reading("git -C x --no-pager -c a=b diff --stat f")
    assert read.subcommand == ("diff",)
    assert [(option.name, option.harmless) for option in read.options if option.top] == [
        ("-C", True),
        ("--no-pager", True),
        ("-c", False),
    ]
    assert read.essential == (0, 6, 7, 8)


@pytest.mark.parametrize(
    "line", ["rg x *", "rg x $Y", "find $X", 'sed -n p "$X"', "git diff $X", "xargs rg x", "xargs sed -n p"]
)
def test_a_word_of_unknown_value_may_be_an_option(line):
    command = parse_line(line).commands[-1]
    assert EffectKind.UNKNOWN in {effect.kind for effect in read_arguments(command).effects}


@pytest.mark.parametrize(
    "line",
    [
        "ls *.md",
        "cat $X",
        "grep x *.py",
        "rg x -- $Y",
        "rg x src/*",
        "wc -l *",
        "xargs grep x",
        "echo $X",
        "for f in a b; do rg x $f; done",
    ],
)
def test_where_no_option_does_harm_it_may_be_one(line):
    command = parse_line(line).commands[-1]
    assert EffectKind.UNKNOWN not in {effect.kind for effect in read_arguments(command).effects}


def test_a_program_without_a_table():
    read = reading("frobnicate --x a ../b")
    assert not read.known
    assert [(path.text, path.maybe) for path in read.paths] == [("a", True), ("../b", True)]
    assert not reading("git frobnicate x").known


def test_a_name_of_unknown_value_is_no_program():
    assert read_arguments(parse_line("$X a").commands[0]).program == ""


def test_paths_of_loop_variables_are_all_of_them():
    command = parse_line("for f in a ../b; do cat $f; done").commands[-1]
    assert [path.text for path in read_arguments(command).paths] == ["a", "../b"]


def test_every_shipped_table_is_well_written():
    BUILTIN.check()
    assert len(BUILTIN.names()) > 350


@pytest.mark.parametrize(
    ("name", "program"),
    [("python3.11", "python"), ("pip3.12", "pip"), ("g++-13", "g++"), ("gcc-12", "gcc"), ("frob", "frob")],
)
def test_versioned_names(name, program):
    assert BUILTIN.program(name) == program


def test_a_later_table_replaces_an_earlier_one_whole():
    text = '[frob]\nalso = "frub"\nflags = "-v"\nwrite = "-o --out"\nexecutes = "--hook"\noperands = "pattern read..."\n[ls]\nflags = "-q"\n'
    tables = Tables([*SHIPPED, ("mine.toml", text)])
    tables.check()
    command = parse_argv(("frub", "-vo", "x", "p", "f", "--hook=y")).commands[0]
    read = read_arguments(command, tables)
    assert [(path.text, path.access) for path in read.paths] == [("x", PathAccess.WRITE), ("f", PathAccess.READ)]
    assert [effect.kind for effect in read.effects] == [EffectKind.EXECUTES]
    assert read_arguments(parse_argv(("ls", "-l")).commands[0], tables).effects
    assert read_arguments(parse_argv(("cat", "f")).commands[0], tables).known


@pytest.mark.parametrize(
    "text", ["[x]\nfrob = 1\n", "[x]\nflags = 1\n", "[x]\nflags = '---'\n[", "[x]\nlike = 'y'\n", "[x]\nread = '--'\n"]
)
def test_a_table_that_is_not_well_written_is_refused(text):
    with pytest.raises(TableError, match=r"bad\.toml"):
        Tables([*SHIPPED, ("bad.toml", text)]).check()
