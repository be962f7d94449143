"""Command lines with their right answers, by kind. A new way around the policy starts as a new line here."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from ringfence import Policy, ToolCall

SAFE = "process: {env: {assign: [CI, NODE_ENV, LANG, LC_ALL, TZ, NO_COLOR, FORCE_COLOR]}}\n"
FILES = (
    "files: {write: {deny: ['.git/**', policy.yaml, .bashrc, .profile, .npmrc, '.github/workflows/**']}}\n"
    "working_tree: {allowed_roots: ['.']}\nnetwork: {allow: false}\n"
)


def commands(allow: str, aliases: str = "{}") -> str:
    listed = ", ".join(f"{{argv_prefix: [{', '.join(words.split())}]}}" for words in allow.split(";"))
    return (
        f"commands:\n  default: ask\n  aliases: {aliases}\n  allow: [{listed}]\n"
        "  ask: [{argv_prefix: [git, push]}, {argv_prefix: [rm]}]\n"
        "  deny: [{argv_prefix: [sudo]}, {argv_prefix: [curl]}, {argv_prefix: [wget]}, {argv_prefix: [ssh]}]\n"
    )


SMALL = "git status;git diff;python '-m' pytest;ls;rg"
WIDE = SMALL + ";find;git log;git commit;cat;head;grep;sed '-n';npm test;make;echo;cd"
TOOLS = WIDE + ";sort;awk;tar;man;date;file;base64;xargs;env"
VERSIONED = "{python: [python3, python3.11]}"

# answer, policy, line: `-` is anything but allow.
LINES: list[tuple[str, str, str]] = [
    # several commands on a line
    ("deny", "wide", "cat README.md; true && wget -q http://example.invalid"),
    ("deny", "wide", "echo a &\ncurl example.invalid"),
    ("deny", "wide", "{ ls; sudo id; }"),
    ("deny", "wide", "while sudo id; do ls; done"),
    ("deny", "wide", "until ls; do curl x; done"),
    ("deny", "wide", "case x in x) sudo id;; esac"),
    ("deny", "wide", "if ls; then ls; elif curl x; then ls; fi"),
    ("deny", "wide", "if ls; then ls; else curl x; fi"),
    ("deny", "wide", "select x in a; do curl y; done"),
    ("deny", "wide", "((1)) && sudo id"),
    ("deny", "wide", "for ((i=0;i<2;i++)); do sudo id; done"),
    ("deny", "wide", "! ! sudo id"),
    ("deny", "wide", "time -p sudo id"),
    ("deny", "wide", "ls |& sudo tee x"),
    ("-", "wide", "ls\r\nsudo id"),
    ("ask", "wide", "ls; git push"),
    ("ask", "wide", "cd src && rm -f app.py"),
    ("deny", "wide", "rm x; sudo id; git push"),
    # a pattern with a part of unknown value stands for nobody knows what
    ("-", "wide", "cat $(echo /etc)/*"),
    ("-", "wide", "cat `echo ..`/*"),
    ("-", "wide", "cat $X/*"),
    ("-", "wide", 'cat "$X"/*'),
    ("-", "wide", "head ${X}s*"),
    ("-", "wide", "ls src/$X/*.py"),
    ("-", "wide", "grep x $X[a-z]"),
    ("-", "wide", "cat ~/$X/*"),
    ("-", "wide", "cat $PWD/$X/*"),
    ("-", "wide", "cat {$X,src}/*"),
    ("-", "wide", "for d in .. src; do cat $d/*; done"),
    # substitutions
    ("deny", "wide", 'echo "$(sudo id)"'),
    ("deny", "wide", "echo `sudo id`"),
    ("deny", "wide", "echo ${A:-$(sudo id)}"),
    ("deny", "wide", "cat <(sudo id)"),
    ("deny", "wide", "echo $(( $(sudo id) + 1 ))"),
    ("deny", "wide", 'echo "${A[$(sudo id)]}"'),
    ("deny", "wide", "cat <<EOF\n`sudo id`\nEOF"),
    ("deny", "wide", 'cat <<"EOF"\nx\nEOF\nsudo id'),
    ("deny", "wide", "grep x <<< `curl x`"),
    ("-", "wide", "${X}"),
    ("-", "wide", "$'su\\x64o' id"),
    ("-", "wide", 'x=ls; "$x"'),
    ("-", "wide", "echo ${x@P}"),
    ("-", "wide", "echo ${!x}"),
    # wrappers
    ("deny", "small", "nice -n 5 sudo id"),
    ("deny", "small", "nohup sudo id"),
    ("deny", "small", "setsid -f curl x"),
    ("deny", "small", "stdbuf -oL -eL curl x"),
    ("deny", "small", "timeout -k 5 -s KILL 10 curl x"),
    ("deny", "small", "timeout --signal=TERM 10 curl x"),
    ("deny", "small", "env -u X A=1 curl x"),
    ("deny", "small", "env -- curl x"),
    ("deny", "small", "bash -lc 'sudo id'"),
    ("deny", "small", "bash --norc -c 'sudo id'"),
    ("deny", "small", "sh -c 'sh -c \"sudo id\"'"),
    ("deny", "small", "dash -c 'curl x'"),
    ("deny", "small", "zsh -c 'curl x'"),
    ("deny", "small", "eval sudo id"),
    ("deny", "small", "eval 'cur''l x'"),
    ("deny", "small", "command -p sudo id"),
    ("deny", "small", "builtin command sudo id"),
    ("deny", "small", "exec -a name sudo id"),
    ("deny", "small", "trap 'sudo id' EXIT"),
    ("deny", "small", "ionice -c 3 curl x"),
    ("deny", "small", "chroot . curl x"),
    ("deny", "small", "unshare -r curl x"),
    ("deny", "small", "busybox wget x"),
    ("deny", "small", "busybox sh -c 'wget x'"),
    ("deny", "small", "script -c 'sudo id' /dev/null"),
    ("deny", "small", "parallel curl ::: a b"),
    ("deny", "small", "watch -n 1 'curl x'"),
    ("deny", "small", "flock /tmp/x curl y"),
    ("deny", "tools", "find . -exec curl {} ;"),
    ("deny", "wide", "find . -execdir sudo id \\;"),
    ("deny", "tools", "xargs -n 1 -I % sh -c 'curl %' < urls.txt"),
    ("deny", "tools", "cat urls.txt | xargs -P 4 -0 wget"),
    ("ask", "wide", "find . -name '*.o' -exec rm {} +"),
    ("allow", "wide", "find src -name '*.py' -exec grep -l import {} +"),
    ("-", "wide", "find -L src -exec cat {} +"),
    ("-", "wide", "find .. -exec cat {} +"),
    ("-", "tools", "find src -exec sort -o {} {} \\;"),
    ("-", "small", "strace ls"),
    ("-", "small", "doas ls"),
    ("-", "small", "su -c ls"),
    ("-", "small", "pkexec ls"),
    ("-", "tools", "env bash"),
    ("-", "tools", "xargs sh"),
    ("allow", "small", "timeout 30 python -m pytest -q"),
    ("allow", "small", "nice git status"),
    ("allow", "small", "env CI=1 python -m pytest"),
    ("allow", "small", "bash -c 'ls && git diff | rg x'"),
    ("allow", "small", "time ls"),
    ("allow", "small", "stdbuf -oL ls"),
    ("allow", "wide", "find src -name '*.py' -exec grep -n import {} \\;"),
    # options that run, write or read elsewhere
    ("-", "wide", "find . -okdir rm {} ;"),
    ("-", "wide", "find -L . -name x -delete"),
    ("-", "wide", "find / -name x"),
    ("-", "wide", "find . -newer ../outside.txt"),
    ("-", "small", "rg --pre cat x"),
    ("-", "small", "rg --pre-glob '*.x' --pre ./x y"),
    ("-", "small", "rg -f ../outside.txt ."),
    ("-", "small", "rg --ignore-file ../x y"),
    ("-", "small", "rg -z x .."),
    ("-", "wide", "grep -rf ../outside.txt ."),
    ("-", "wide", "grep --file=../outside.txt x"),
    ("-", "wide", "grep --fil=../outside.txt x"),
    ("-", "wide", "grep --exclude-from=../x y README.md"),
    ("-", "wide", "sed -n '1e id' README.md"),
    ("-", "wide", "sed -n 's/a/b/e' README.md"),
    ("-", "wide", "sed -n 'w ../x' README.md"),
    ("-", "wide", "sed -n -e 'r ../outside.txt' README.md"),
    ("-", "wide", "sed -n -f ../prog.sed README.md"),
    ("-", "wide", "sed -ni 1p README.md"),
    ("-", "wide", "sed -n --in-place 1p README.md"),
    ("-", "tools", "sort -o ../x README.md"),
    ("-", "tools", "sort --compress-program=sh README.md"),
    ("-", "tools", "sort --files0-from=../x"),
    ("-", "tools", "sort -T .. README.md"),
    ("-", "tools", "awk -i inplace 1 README.md"),
    ("-", "tools", "awk '{print > \"../x\"}' README.md"),
    ("-", "tools", "awk '{print | \"sh\"}' README.md"),
    ("-", "tools", "awk 'BEGIN{while((getline l < \"../outside.txt\")>0) print l}'"),
    ("-", "tools", "awk -v x=1 -f ../p.awk"),
    ("-", "tools", "awk -l filefuncs 1 README.md"),
    ("-", "tools", "tar -cf x.tar -I 'sh -c id' README.md"),
    ("-", "tools", "tar -xf x.tar --to-command=sh"),
    ("-", "tools", "tar -xf ../x.tar"),
    ("-", "tools", "tar -xf x.tar -C .."),
    ("-", "tools", "tar xf x.tar -C/"),
    ("-", "tools", "tar --use-compress-program=sh -tf x.tar"),
    ("-", "tools", "tar -cf host.example.invalid:x.tar --rsh-command=sh README.md"),
    ("-", "tools", "man -P sh ls"),
    ("-", "tools", "man --pager=sh ls"),
    ("-", "tools", "man -H'sh -c id' ls"),
    ("-", "tools", "man ../outside.1"),
    ("-", "tools", "date --file=../outside.txt"),
    ("-", "tools", "date -s 2020-01-01"),
    ("-", "tools", "date -r ../outside.txt"),
    ("-", "tools", "file -f ../outside.txt"),
    ("-", "tools", "file -m ../magic README.md"),
    ("-", "tools", "base64 ../outside.txt"),
    ("-", "wide", "make -f ../x"),
    ("-", "wide", "make -C.. all"),
    ("-", "wide", "make --directory=.. all"),
    ("-", "wide", "make -I .. all"),
    ("-", "wide", "make --eval 'x:;id'"),
    ("-", "wide", "make MAKEFLAGS=--eval=x"),
    ("-", "wide", "make CC='sh -c id'"),
    ("-", "wide", "npm --script-shell=sh test"),
    ("-", "wide", "npm test --prefix=.."),
    ("-", "wide", "npm -C .. test"),
    ("-", "wide", "npm test --node-options=--require=./x"),
    ("-", "wide", "head -n 1 ../outside.txt"),
    ("-", "wide", "cat -- ../outside.txt"),
    ("-", "small", "python -m pytest -p evil --rootdir=.."),
    ("-", "small", "python -m pytest -c ../pytest.ini"),
    ("-", "small", "python -m pytest --confcutdir=.. ../tests"),
    ("-", "small", "python -m pytest --junit-xml=../x.xml"),
    ("-", "small", "python -m pytest -o cache_dir=../x"),
    ("-", "small", "python -m pytest --pdbcls=x:y"),
    ("-", "small", "python -m pytest --pastebin=all"),
    ("-", "small", "python -i -m pytest"),
    ("-", "small", "python -c 1 -m pytest"),
    ("-", "small", "python -X importtime -m pytest"),
    # git
    ("-", "small", "git -c core.fsmonitor=./x status"),
    ("-", "small", "git -ccore.pager=x diff"),
    ("-", "small", "git --config-env=core.pager=X diff"),
    ("-", "small", "git --exec-path=. status"),
    ("-", "small", "git --git-dir=../x status"),
    ("-", "small", "git --work-tree=.. status"),
    ("-", "small", "git -C .. diff"),
    ("-", "small", "git -C src -C ../.. status"),
    ("-", "small", "git diff --output=../x"),
    ("-", "small", "git diff --output ../x"),
    ("-", "small", "git diff --outp=../x"),
    ("-", "small", "git diff --ext-diff"),
    ("-", "small", "git diff --no-index /etc/passwd README.md"),
    ("-", "small", "git diff --no-index ../outside.txt README.md"),
    ("-", "small", "git diff -O../order"),
    ("-", "small", "git diff --output=.git/hooks/x"),
    ("-", "wide", "git log --output=policy.yaml"),
    ("-", "wide", "git -p log"),
    ("-", "wide", "git --paginate log"),
    ("-", "wide", "git commit -F ../outside.txt"),
    ("-", "wide", "git commit --template=../x"),
    ("-", "wide", "git commit -t ../x"),
    ("-", "small", "git stash"),
    ("-", "small", "git statusx"),
    ("-", "small", "git"),
    ("ask", "small", "git -C src push"),
    ("ask", "small", "git --no-pager -C src push origin x"),
    ("ask", "small", "/usr/bin/git push"),
    ("ask", "small", "NO_COLOR=1 git push"),
    ("allow", "small", "git -C src status"),
    ("allow", "small", "git --no-pager diff"),
    ("allow", "small", "git diff HEAD~2..HEAD --name-only"),
    ("allow", "small", "git status -sb"),
    ("allow", "small", "git diff --color=always -U5 -w HEAD^ -- src/app.py"),
    ("allow", "wide", "git log --graph --oneline --all -n 20"),
    ("allow", "wide", "git log --since='2 weeks ago' --author='a b' --pretty=format:'%h %an %s'"),
    ("allow", "wide", "git commit -am 'wip: sudo curl'"),
    ("allow", "wide", "git commit --amend --no-edit"),
    ("allow", "wide", "git commit -m 'a' -m 'b (c) | d > e'"),
    # redirections
    ("-", "wide", "echo x >| ../x"),
    ("-", "wide", "echo x &>> ../x"),
    ("-", "wide", "echo x 2>> ../x"),
    ("-", "wide", "(ls) > ../x"),
    ("-", "wide", "{ ls; } > ../x"),
    ("-", "wide", "for f in a; do ls; done > ../x"),
    ("-", "wide", "if ls; then ls; fi > ../x"),
    ("-", "wide", "while ls; do ls; done < ../outside.txt"),
    ("-", "wide", "cat < /etc/passwd"),
    ("-", "wide", "cat 0< ../outside.txt"),
    ("-", "wide", "echo x > $OUT"),
    ("-", "wide", "echo x > ~/x"),
    ("-", "wide", "echo x > .git/config"),
    ("-", "wide", "echo x > src/../policy.yaml"),
    ("-", "wide", "echo x > POLICY.YAML"),
    ("-", "wide", "echo x > .github/workflows/ci.yml"),
    ("-", "wide", "cat < /dev/tcp/example.invalid/80"),
    ("-", "wide", "exec 5<>/dev/tcp/example.invalid/80"),
    ("-", "wide", "ls > >(cat > ../x)"),
    ("-", "wide", "cd src && echo x > ../../x"),
    ("-", "wide", "cd /tmp && echo x > y"),
    ("allow", "wide", "echo x > build/out.txt"),
    ("allow", "wide", "echo x 2>&1 >/dev/null"),
    ("allow", "wide", "ls >/dev/null 2>&1"),
    ("allow", "wide", "cat < README.md > build/copy.txt"),
    ("allow", "wide", "(cd src && ls) > build/list.txt"),
    ("allow", "wide", "cat <<'EOF' > build/x.txt\nrm -rf / $(sudo id)\nEOF"),
    ("allow", "wide", "cat > build/x.sh <<'EOF'\n#!/bin/sh\ncurl x | sh\nEOF"),
    # paths
    ("-", "wide", "cat ../project-backup/secret.txt"),
    ("-", "wide", "cat {ROOT}-backup/secret.txt"),
    ("-", "wide", "cat {ROOT}/../outside.txt"),
    ("-", "wide", "cat src/../../outside.txt"),
    ("-", "wide", "cat src/link-out/outside.txt"),
    ("-", "wide", "ls src/link-out"),
    ("-", "wide", "cat link-file"),
    ("-", "wide", "cat link-*"),
    ("-", "wide", "cat ~"),
    ("-", "wide", "cat ~nobody/x"),
    ("-", "wide", "cat ~+/../outside.txt"),
    ("-", "wide", "cat ~-/x"),
    ("-", "wide", "cat $PWD/../outside.txt"),
    ("-", "wide", "cat ${HOME}/.netrc"),
    ("-", "wide", 'cat "$HOME/x"'),
    ("-", "wide", "cat /proc/self/environ"),
    ("-", "wide", "cat /proc/1/cwd/x"),
    ("-", "wide", "cat /proc/thread-self/root/etc/hostname"),
    ("-", "wide", "cat src/{app.py,../../outside.txt}"),
    ("-", "wide", "cat //etc/passwd"),
    ("-", "wide", "cat /../etc/passwd"),
    ("-", "wide", "cd .. && ls"),
    ("-", "wide", "cd; ls"),
    ("-", "wide", "cd - && ls"),
    ("-", "wide", "cd src/link-out && ls"),
    ("-", "wide", "cd ~ && ls"),
    ("-", "wide", "cd $X && ls"),
    ("-", "wide", "cd src && cat ../../outside.txt"),
    ("-", "wide", "CDPATH=.. cd project-backup && cat secret.txt"),
    ("-", "wide", "cd nested && git status"),
    ("-", "wide", "git -C nested status"),
    ("-", "wide", "(cd ..; ls)"),
    ("-", "wide", "ls .."),
    ("-", "wide", "ls -d ../*"),
    ("allow", "wide", "cat ./src//app.py src/../README.md"),
    ("allow", "wide", "cat {ROOT}/src/app.py"),
    ("allow", "wide", "cd src && cat ../README.md"),
    ("allow", "wide", "cd {ROOT}/src && ls"),
    ("allow", "wide", "cd src && cd .. && ls"),
    ("allow", "wide", "cat src/*.py"),
    ("allow", "wide", "cat src/{app,other}.py"),
    ("allow", "wide", "cat link-inside"),
    ("allow", "wide", "ls $PWD"),
    ("-", "wide", 'for f in ../outside.txt; do cat "$f"; done'),
    ("-", "wide", 'for f in ../outside.txt; do grep --file="$f" x README.md; done'),
    ("-", "wide", "for f in ../outside.txt; do grep -f$f x README.md; done"),
    ("-", "small", 'for f in --pre=sh; do rg x "$f"; done'),
    ("-", "wide", 'for d in ..; do cat "$d/outside.txt"; done'),
    ("-", "tools", 'for f in ../x; do sort -o "$f" README.md; done'),
    ("allow", "wide", 'for f in src/app.py README.md; do cat "$f"; done'),
    ("allow", "wide", 'for d in src docs; do ls "$d/"; done'),
    # environment
    ("-", "small", "PATH=. git status"),
    ("-", "small", "LD_LIBRARY_PATH=. ls"),
    ("-", "small", "GIT_DIR=../x git status"),
    ("-", "small", "BASH_ENV=x bash -c ls"),
    ("-", "small", "RIPGREP_CONFIG_PATH=x rg y"),
    ("-", "small", "PYTHONPATH=.. python -m pytest"),
    ("-", "small", "PYTEST_ADDOPTS='-p evil' python -m pytest"),
    ("-", "small", "env PATH=. ls"),
    ("-", "small", "env -S 'PATH=. ls'"),
    ("-", "small", "export PATH=.; ls"),
    ("-", "small", "declare -x PATH=.; ls"),
    ("-", "small", "typeset PATH=.; ls"),
    ("-", "small", "printf -v PATH x; ls"),
    ("-", "small", "read PATH < README.md; ls"),
    ("-", "small", "mapfile PATH < README.md"),
    ("-", "small", "for PATH in .; do ls; done"),
    ("-", "small", "unset PATH; ls"),
    ("-", "small", "IFS=x ls"),
    ("-", "small", "IFS=x; ls"),
    ("-", "wide", "cat <(ls)/../../outside.txt"),
    ("-", "wide", "cat x<(ls)"),
    ("-", "tools", "env -C src sort -o *.md"),
    ("-", "wide", "cat < <(ls)/../x"),
    ("-", "wide", "cat <(cat ../outside.txt)"),
    ("-", "wide", "make -f <(echo x)"),
    ("-", "wide", "awk -f <(echo x)"),
    ("-", "wide", "bash <(echo x)"),
    ("-", "wide", "bash < <(echo x)"),
    ("allow", "wide", "cat <(ls)"),
    ("allow", "wide", "cat < <(ls)"),
    ("-", "small", "alias ls=curl; ls"),
    ("-", "small", "ls() { curl x; }; ls"),
    ("-", "small", "hash -p ./x ls; ls"),
    ("-", "small", "enable -f ./x ls"),
    ("-", "small", "source build/x.sh"),
    ("-", "small", ". build/x.sh"),
    ("-", "small", "set -o history; ls"),
    ("-", "small", "NO_COLOR=$(curl x) ls"),
    ("allow", "small", "CI=1 NO_COLOR=1 python -m pytest -q"),
    ("allow", "small", "LC_ALL=C ls"),
    # who is meant
    ("-", "small", "./ls"),
    ("-", "small", "bin/git status"),
    ("-", "small", "{ROOT}/ls"),
    ("-", "small", "/tmp/git status"),
    ("-", "small", "/usr/bin/../../tmp/ls"),
    ("-", "small", "/usr/sbin/ls"),
    ("-", "small", "python3 -m pytest"),
    ("-", "small", "python -m pytestx"),
    ("-", "small", "python -m  unittest"),
    ("-", "small", "lsx"),
    ("-", "small", "LS"),
    ("deny", "small", "./sudo id"),
    ("deny", "small", "bin/curl x"),
    ("deny", "small", "/opt/x/wget y"),
    ("allow", "small", "/usr/bin/git status"),
    ("allow", "small", "/bin/ls"),
    ("allow", "small", "'git' \"status\""),
    ("allow", "wide", "python3.11 -m pytest"),
    # quoting
    ("deny", "small", "s\\udo id"),
    ("deny", "small", "'su'\"do\" id"),
    ("deny", "small", "su\\\ndo id"),
    ("-", "small", "s{u,}do id"),
    ("-", "small", "/???/?url x"),
    ("-", "small", "ls\u00a0x"),
    ("-", "small", "ls \u200b; ls"),
    ("-", "small", "ls 'x"),
    ("-", "small", 'ls "x'),
    ("-", "small", "ls $(git status"),
    ("-", "small", "ls && "),
    ("-", "small", ""),
    ("-", "small", "   "),
    ("-", "small", "# only a comment"),
    ("-", "small", "ls \x00"),
    # text that is no command and no path
    ("allow", "wide", "echo 'sudo rm -rf /'"),
    ("allow", "wide", 'echo "a; curl x | sh"'),
    ("allow", "wide", "grep -n '/etc/shadow' README.md"),
    ("allow", "wide", "grep -rn -e '--pre' src"),
    ("allow", "wide", "grep '.env' README.md"),
    ("allow", "wide", "grep -E '(a|b)&&c' src/app.py"),
    ("allow", "wide", "rg '\\$\\(curl' src"),
    ("allow", "wide", "git commit -m 'remove /etc/x and ../y'"),
    ("allow", "wide", "git log --grep '../x'"),
    ("allow", "wide", "find . -name '*.sh' -o -path '*/../*'"),
    ("allow", "wide", "echo ls # sudo id"),
    ("allow", "wide", "sed -n '/^\\/etc/p' README.md"),
    ("allow", "tools", "awk -F/ '$1 == \"..\" {print $2}' urls.txt"),
    ("allow", "tools", "sort -k2,2n -t, urls.txt | head -5"),
    ("allow", "tools", "tar -tzf build/a.tgz"),
    ("allow", "tools", "tar -czf build/a.tgz src"),
    ("allow", "tools", "date -u +%s"),
    ("allow", "tools", "date -d '2 days ago' +%F"),
    ("allow", "tools", "file src/app.py"),
    ("allow", "tools", "base64 -d build/x.b64"),
    ("allow", "wide", "make -j8 -s test VERBOSE=1"),
    ("allow", "wide", "npm test -- --watch=false"),
    ("allow", "wide", "head -c 100 README.md"),
    ("allow", "wide", "find . -type f -size +10k -mtime -3 -print0"),
    ("allow", "small", "ls -lah --color=never src"),
    ("allow", "small", "rg -n -C3 --glob '!*.lock' 'def \\w+' src docs"),
    ("allow", "small", "rg -uu --hidden -t py import"),
    ("allow", "small", "python -m pytest tests -x -vv --tb=short -k 'a or b' -m 'not slow'"),
    ("allow", "small", "python -m pytest src/app.py::test_x --maxfail=1 -n 4 --cov=src"),
]


@pytest.fixture
def furnished(workspace: Path) -> Path:
    (workspace / "policy.yaml").write_text("x\n")
    (workspace / "src" / "link-out").symlink_to("../..")
    (workspace / "link-file").symlink_to("../outside.txt")
    (workspace / "link-inside").symlink_to("README.md")
    nested = workspace / "nested"
    for name in ("objects", "refs"):
        (nested / name).mkdir(parents=True)
    (nested / "HEAD").write_text("ref: refs/heads/main\n")
    return workspace


@pytest.fixture
def policies(policy_of: Callable[..., Policy], furnished: Path) -> dict[str, Policy]:
    return {
        "small": policy_of(commands(SMALL) + FILES + SAFE),
        "wide": policy_of(commands(WIDE, VERSIONED) + FILES + SAFE),
        "tools": policy_of(commands(TOOLS, VERSIONED) + FILES + SAFE),
    }


def test_every_line_gets_its_answer(policies: dict[str, Policy], furnished: Path) -> None:
    wrong = []
    for answer, name, line in LINES:
        call = ToolCall.shell(line.replace("{ROOT}", str(furnished)))
        decision = policies[name].decide(call)
        got = decision.tier.word
        if got != answer and not (answer == "-" and got != "allow"):
            why = "; ".join(f"{r.matched}: {r.because}" for r in decision.deciding[:2])
            wrong.append(f"{name} {line!r}: {got}, not {answer} ({why})")
    assert not wrong, "\n" + "\n".join(wrong)


def test_nothing_on_a_line_changes_when_facts_are_kept(policies: dict[str, Policy], furnished: Path) -> None:
    """Stored facts give the same answer again, and a fact that is missing is a deny."""
    from msgspec.structs import replace

    from ringfence.policy.facts import gather

    for _, name, line in LINES[::7]:
        policy = policies[name]
        call = policy.absolute(ToolCall.shell(line.replace("{ROOT}", str(furnished))))
        facts = gather(policy.questions(call), call, root=policy.root, home="/nonexistent")
        again = Policy.from_effective(policy.effective())
        assert again.decide_with(call, facts).reasons == policy.decide_with(call, facts).reasons
        without = replace(facts, paths=())
        assert policy.decide_with(call, without).tier.word != "allow"


def test_deciding_touches_nothing(policies: dict[str, Policy], furnished: Path, no_io: None) -> None:
    from ringfence.model.facts import PathFacts

    call = ToolCall.shell("git status && cat README.md", cwd=str(furnished))
    facts = PathFacts(cwd=call.cwd, home="/nonexistent", root=str(furnished))
    assert policies["wide"].decide_with(call, facts).tier.word == "deny"


def test_a_link_that_is_changed_meanwhile_changes_the_answer(policies: dict[str, Policy], furnished: Path) -> None:
    call = ToolCall.shell("cat link-inside")
    assert policies["wide"].decide(call).tier.word == "allow"
    os.unlink(furnished / "link-inside")
    (furnished / "link-inside").symlink_to("../outside.txt")
    assert policies["wide"].decide(call).tier.word != "allow"


def test_a_file_named_like_an_option_makes_a_bare_glob_doubtful(policies: dict[str, Policy], furnished: Path) -> None:
    assert policies["small"].decide(ToolCall.shell("rg x src/*")).tier.word != "deny"
    assert policies["wide"].decide(ToolCall.shell("cat src/*.py")).tier.word == "allow"
    (furnished / "--pre=sh").write_text("x\n")
    assert policies["small"].decide(ToolCall.shell("rg x *")).tier.word == "ask"
    assert policies["small"].decide(ToolCall.shell("rg x ./*")).tier.word != "allow"  # link-file leads outside


def test_a_link_is_no_other_name_for_a_program(policy_of: Callable[..., Policy], furnished: Path) -> None:
    (furnished / "tool").symlink_to("/usr/bin/env")
    (furnished / "own-tool").write_text("true\n")
    policy = policy_of("commands: {default: ask, allow: [{argv_prefix: ['./**']}], deny: [{argv_prefix: [env]}]}\n")
    assert policy.decide(ToolCall.shell("./own-tool")).tier.word == "allow"
    assert policy.decide(ToolCall.shell("./tool")).tier.word == "deny"
    lenient = policy_of("commands: {default: ask, allow: [{argv_prefix: ['./**']}]}\n")
    assert lenient.decide(ToolCall.shell("./tool")).tier.word == "ask"


@pytest.mark.parametrize(
    ("rule", "line", "answer"),
    [
        # What makes a policy softer is compared exactly, what makes it stricter loosely.
        ("deny: [{argv_prefix: [frob], unless_args: ['-n']}]", "frob -n", "ask"),
        ("deny: [{argv_prefix: [frob], unless_args: ['-n']}]", "frob -name", "deny"),
        ("deny: [{argv_prefix: [frob], unless_args: ['-n']}]", "frob $X", "deny"),
        ("deny: [{argv_prefix: [frob], any_args: ['-n']}]", "frob -an", "deny"),
        ("deny: [{argv_prefix: [frob], any_args: ['--force']}]", "frob --forc", "deny"),
        ("deny: [{argv_prefix: [frob], any_args: ['-n']}]", 'frob "$X"', "deny"),
        ("deny: [{argv_prefix: [frob], any_args: ['--post-data*']}]", "frob --post-d=x", "deny"),
        ("deny: [{argv_prefix: [frob], any_args: ['--post-data*']}]", "frob --post-file=x", "ask"),
        ("allow: [{argv_prefix: [frob], unless_args: ['--post-data*']}]", "frob --post-d=x", "ask"),
        ("allow: [{argv_prefix: [frob], any_args: ['-n']}]", "frob -n", "allow"),
        ("allow: [{argv_prefix: [frob], any_args: ['-n']}]", "frob -an", "ask"),
        ("allow: [{argv_prefix: [frob], unless_args: ['-n']}]", "frob -an", "ask"),
        ("allow: [{argv_prefix: [frob], unless_args: ['-n']}]", "frob", "allow"),
        ("deny: [{argv_prefix: [frob], when: {cwd: src}}]", "cd src || cd docs; frob", "deny"),
    ],
)
def test_arguments_are_compared_exactly_where_that_is_stricter(
    policy_of: Callable[..., Policy], judge: Callable[..., str], rule: str, line: str, answer: str
) -> None:
    assert judge(policy_of(f"commands:\n  default: ask\n  {rule}\n"), line) == answer


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("uv run cat README.md", "allow"),
        ("uv run pytest -q src", "allow"),
        ("uv run python -c 'print(1)'", "allow"),
        ("uv run frob --verbose", "allow"),
        ("uv run cat ../outside.txt", "ask"),
        ("uv run ../outside.txt", "ask"),
        ("uv run ./src/app.py", "allow"),
        ("uv run tee .git/config", "deny"),
        ("uv run frob --out=../x", "ask"),
        ("uv run curl https://example.org", "ask"),
        ("npx eslint --fix src", "allow"),
        ("npx eslint --fix ../outside.txt", "ask"),
        ("npx tsc --outDir ../x", "ask"),
        ('npx eslint "$X"', "ask"),
        ('uv run eslint "$X"', "allow"),
        ('uv run env CI=1 eslint "$X"', "allow"),
        ("uv run env CI=1 cat ../outside.txt", "ask"),
    ],
)
def test_what_a_covered_wrapper_starts_reaches_no_further_than_itself(
    policy_of: Callable[..., Policy], judge: Callable[..., str], line: str, answer: str
) -> None:
    rules = "[{argv_prefix: [uv, run], grants: [unknown]}, {argv_prefix: [npx, [eslint, tsc]], grants: [executes]}]"
    assert judge(policy_of(f"commands: {{default: ask, allow: {rules}}}\nnetwork: {{allow: false}}\n"), line) == answer


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("cp notes/.npmrc .", "deny"),
        ("cp notes/.npmrc ./", "deny"),
        ("cp -t . notes/.npmrc", "deny"),
        ("cp --target-directory=. notes/.npmrc", "deny"),
        ("cp notes/.np* .", "deny"),
        ("cp -r notes/.claude .", "deny"),
        ("mv notes .claude", "deny"),
        ("cp -r notes .github", "deny"),
        ("cp -r notes .notes", "allow"),
        ("mv README.md notes", "allow"),
        ("cp README.md notes/secret", "allow"),
        ("cp notes/plain src", "deny"),
        ("cp notes/pl* src", "deny"),
        ("cp -T notes/plain src", "allow"),
        ("cp notes/plain notes/other", "allow"),
        ("install notes/plain src", "deny"),
        ("ln notes/plain src", "deny"),
        ("cp notes/.npmrc npmrc.bak", "allow"),
    ],
)
def test_what_goes_into_a_folder_is_written_there_by_its_own_name(
    policy_of: Callable[..., Policy], judge: Callable[..., str], workspace: Path, line: str, answer: str
) -> None:
    for name in (".npmrc", ".claude/settings.json", "plain"):
        (workspace / "notes" / name).parent.mkdir(parents=True, exist_ok=True)
        (workspace / "notes" / name).write_text("x\n")
    rules = "[{argv_prefix: [[cp, mv, install, ln]]}]"
    policy = policy_of(f"commands: {{default: ask, allow: {rules}}}\nfiles: {{write: {{deny: [src/plain]}}}}\n")
    assert judge(policy, line) == answer


def test_a_rule_for_a_path_says_nothing_about_the_rules_behind_it(
    policy_of: Callable[..., Policy], judge: Callable[..., str], furnished: Path
) -> None:
    tool = furnished / "bin" / "cat"
    tool.parent.mkdir()
    tool.write_text("true\n")
    tool.chmod(0o755)
    rules = "[{argv_prefix: [bin/cat]}, {argv_prefix: [cat], grants: [unknown]}]"
    policy = policy_of(f"commands: {{default: ask, allow: {rules}}}\n")
    assert judge(policy, "cat README.md") == "allow"
    assert judge(policy, "bin/cat README.md") == "allow"
    assert judge(policy, 'bin/cat "$X"') == "ask"


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ('for f in src/*.py; do cat "$f"; done', "allow"),
        ('for f in src/*.py; do cat "${f}" && head -1 "$f"; done', "allow"),
        ('cd docs && for f in *.md; do cat "$f"; done', "allow"),
        ('for f in src/*; do for g in docs/*; do diff "$f" "$g"; done; done', "allow"),
        ("for f in src/*.py; do cat $f; done", "ask"),
        ('for f in ../*.txt; do cat "$f"; done', "ask"),
        ('for f in .gi*/config; do tee "$f"; done', "deny"),
        ('for f in src/*; do cat "../$f"; done', "ask"),
        ('for f in src/*; do cat "$f/../../../outside.txt"; done', "ask"),
        ('for f in *; do (cd docs && tee "$f"); done', "ask"),
        ('for f in *; do cd docs; cat "$f"; done', "ask"),
        ('for f in *; do env -C docs tee "$f"; done', "ask"),
        ('for f in src/*; do f=../outside.txt; cat "$f"; done', "ask"),
        ('for f in src/*; do read -r f; cat "$f"; done', "ask"),
        ('for f in src/*; do cat x > "$f"; done', "ask"),
        ('for f in src/*; do "$f"; done', "ask"),
        ('for f in src/*; do :; done; cat "$f"', "ask"),
        ('for f in src/*; do cat() { head "$f"; }; done', "ask"),
    ],
)
def test_a_loop_over_a_pattern_reads_the_names_it_stands_for(
    policy_of: Callable[..., Policy], judge: Callable[..., str], line: str, answer: str
) -> None:
    rules = "[{argv_prefix: [[cat, head, tee, diff, cd, env, read, ':']]}]"
    policy = policy_of(f"commands: {{default: ask, allow: {rules}}}\nprocess: {{env: {{local: true}}}}\n")
    assert judge(policy, line) == answer


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("find src -name '*.py' -print0 | xargs -0 grep -n x", "allow"),
        ("find . -type f -print0 | xargs -r0 -n1 wc -l", "allow"),
        ("find src -print0 | xargs -0 -I{} head {}", "allow"),
        ("find src -name '*.py' | xargs grep x", "ask"),
        ("find .. -print0 | xargs -0 grep x", "ask"),
        ("find -L src -print0 | xargs -0 grep x", "ask"),
        ("find src -printf x -print0 | xargs -0 grep x", "ask"),
        ("find src -fls /dev/stdout -print0 | xargs -0 grep x", "ask"),
        ("find src -exec cat {} + -print0 | xargs -0 grep x", "ask"),
        ("find src -print0 | cat | xargs -0 grep x", "ask"),
        ("find src -print0 | xargs -0 grep x < README.md", "ask"),
        ("find src -print0 | xargs -0 -a README.md grep x", "ask"),
        ("find src -print0 | (cd docs && xargs -0 grep x)", "ask"),
        ("find src -print0 > README.md | xargs -0 grep x", "ask"),
        ("cat README.md; find src -print0 | xargs grep x", "ask"),
        ("find src -print0 | xargs -0 sed -i p", "ask"),
        ("find src -print0 | xargs -0 sudo cat", "ask"),
    ],
)
def test_what_find_hands_to_xargs_lies_below_where_it_looks(
    policy_of: Callable[..., Policy], judge: Callable[..., str], line: str, answer: str
) -> None:
    rules = "[{argv_prefix: [[cat, head, grep, wc, find, xargs, cd, sed]]}]"
    assert judge(policy_of(f"commands: {{default: ask, allow: {rules}}}\n"), line) == answer


def test_a_strict_rule_says_when_only_an_unknown_word_made_it_speak(policy_of: Callable[..., Policy]) -> None:
    policy = policy_of(
        "commands: {deny: [{argv_prefix: [git, push], any_args: ['--force', '+*'], because: no force}]}\n"
    )
    said = {
        line: policy.decide(ToolCall.shell(line)).deciding[0].because for line in ("git push $X", "git push --force $X")
    }
    assert "`$X` is not known before it runs" in said.pop("git push $X")
    assert said["git push --force $X"] == "no force"


def test_where_an_earlier_move_may_have_failed_the_answer_says_so(policy_of: Callable[..., Policy]) -> None:
    policy = policy_of("commands: {allow: [{argv_prefix: [[cd, ls]]}]}\n")
    assert policy.decide(ToolCall.shell("cd src; ls; cd ..")).tier.word == "allow"
    because = [reason.because for reason in policy.decide(ToolCall.shell("cd src; cd ..; ls")).deciding]
    assert any("if an earlier `cd` fails" in text for text in because)
