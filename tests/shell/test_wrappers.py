"""Programs that start programs are looked through."""

import pytest

from ringfence.shell.parse import parse_line

pytestmark = pytest.mark.usefixtures("no_io")


def started(line):
    return [command for command in parse_line(line).commands if command.words[0].text == "ls"]


@pytest.mark.parametrize(
    "line",
    [
        "env ls a", "env A=1 B='2 3' ls a", "env -i A=1 ls a", "env -u A ls a", "env --unset=A ls a", "env - ls a", "env -iu A -- ls a", "/usr/bin/env ls a", "env -S 'ls a'", "env -S 'ls' a", "env -vS'ls a'",
        "timeout 5 ls a", "timeout -k 1 -s TERM 5 ls a", "timeout --kill-after=1 --signal KILL 5 ls a", "timeout -k1 5s ls a", "timeout --sig KILL 5 ls a", "nice ls a", "nice -n 5 ls a", "nice -5 ls a", "nice --adjustment=5 ls a",
        "nohup ls a", "setsid -w ls a", "stdbuf -oL -e0 ls a", "stdbuf --output=L ls a", "time ls a", "command time -v ls a", "command ls a", "command -p ls a", "exec ls a", "exec -a x ls a", "exec -cl ls a", "builtin ls a",
        "eval ls a", "eval 'ls a'", "eval -- 'ls a'", "trap 'ls a' EXIT", "trap -- 'ls a' INT TERM", "ionice -c 3 ls a", "taskset 3 ls a", "chrt -b 0 ls a",
        "bash -c 'ls a'", "sh -c 'ls a'", "dash -ec 'ls a'", "bash -lc 'ls a'", "bash -c -- 'ls a'", "bash -o pipefail -c 'ls a'", "bash -eo pipefail -c 'ls a'", "bash --norc -c 'ls a'", "bash +x -c 'ls a'", "bash -c 'ls a' x y", "/bin/sh -c 'ls a'", "bash -c $'ls a'", 'bash -c "ls a"',
        "bash -c \"bash -c 'ls a'\"", "watch -n1 -x ls a", "watch -n 1 'ls a'", "watch --interval=1 ls a", "env timeout 5 nice bash -c 'exec ls a'",
        "find . -exec ls a \\;", "find . -ok ls a ';'", "find . -name x -execdir ls a \\;",
    ],
)  # fmt: skip
def test_what_is_started_is_known(line):
    read = parse_line(line)
    (inner,) = started(line)
    assert [word.text for word in inner.words] == ["ls", "a"]
    assert not any(word.dynamic for word in inner.words)
    assert not read.unexplained
    if inner.wrapper is not None:
        outer = read.commands[inner.wrapper]
        assert outer.is_wrapper
        assert outer.wraps


@pytest.mark.parametrize("line", ["sudo ls a", "sudo -u root -- ls a", "sudo A=1 ls a", "sudo -iu root ls a", "doas ls a", "doas -u x ls a", "su -c 'ls a'", "su root -c 'ls a'", "su - x --command='ls a'", "pkexec ls a", "runuser -c 'ls a'", "chroot /x ls a", "unshare -r ls a"])  # fmt: skip
def test_other_privileges_are_never_an_allow(line):
    assert all(command.privileged for command in started(line))
    assert started(line)


@pytest.mark.parametrize("line", ["ssh host ls a", "ssh -p 22 -i key user@host ls a", "ssh host 'ls a'", "ssh -- host ls a", "ssh -o X=y host 'cd x && ls a'"])  # fmt: skip
def test_another_machine_is_remote(line):
    (inner,) = started(line)
    assert inner.remote


def test_a_proxy_command_runs_here():
    (inner,) = started("ssh -o ProxyCommand='ls a' host")
    assert not inner.remote


@pytest.mark.parametrize("line", ["npx ls a", "npx -y ls a", "uv run ls a", "uv run --frozen ls a", "uvx ls a", "pipx run ls a", "poetry run ls a", "npm exec -- ls a", "pnpm dlx ls a", "strace -f ls a", "flock /x ls a", "flock /x -c 'ls a'", "busybox ls a", "script -c 'ls a'", "script -qc 'ls a' /dev/null", "xvfb-run -a ls a"])  # fmt: skip
def test_programs_whose_own_rule_must_cover_it(line):
    (inner,) = started(line)
    assert inner.covered


@pytest.mark.parametrize(
    ("line", "texts", "extra"),
    [
        ("xargs ls", ["ls"], True), ("xargs -0 -n 1 ls -l", ["ls", "-l"], True), ("xargs -a f --max-args=1 ls", ["ls"], True), ("xargs -P4 -r ls", ["ls"], True), ("xargs -d '\\n' ls", ["ls"], True),
        ("xargs -I{} ls x{} y", ["ls", "x{}", "y"], False), ("xargs -I % ls %", ["ls", "%"], False), ("xargs --replace ls {}", ["ls", "{}"], False), ("xargs -i ls {}", ["ls", "{}"], False), ("find . -exec ls -l {} +", ["ls", "-l"], True),
    ],
)  # fmt: skip
def test_arguments_that_come_from_elsewhere(line, texts, extra):
    (inner,) = started(line)
    assert [word.text for word in inner.words] == texts
    assert inner.extra_arguments is extra
    assert all(word.dynamic for word in inner.words if "{}" in word.text or "%" in word.text)


def test_inserted_words_know_how_they_begin():
    (inner,) = started("xargs -I{} ls src/{}.py")
    assert inner.words[1].prefix == "src/"


def test_xargs_without_a_command_is_echo():
    assert [command.words[0].text for command in parse_line("xargs -n1").commands] == ["xargs", "echo"]


@pytest.mark.parametrize(
    "line",
    [
        "command -v ls",
        "command -V ls",
        "find . -name ls",
        "trap - EXIT",
        "trap '' INT",
        "bash ls",
        "bash scripts/x.sh ls",
    ],
)
def test_what_starts_nothing(line):
    assert not started(line)
    assert not parse_line(line).commands[0].is_wrapper


@pytest.mark.parametrize(
    "line",
    ["env $X ls", "timeout --frob 5 ls", "env -Z ls", 'bash -c "ls $X"', "xargs -I{} sh -c 'ls {}'", "parallel ls ::: a", "bash -sc ls", "bash -O extglob -c ls", "zsh -c 'ls *(e:x:)'", "env -S 'ls ${X}'", "watch $X"],
)  # fmt: skip
def test_a_doubtful_wrapper_is_not_explained(line):
    assert parse_line(line).unexplained


def test_assignments_of_env_belong_to_what_it_starts():
    (inner,) = started("env A=1 'B C=2' ls")
    assert [item.name for item in inner.assignments] == ["A", "B C"]


def test_assignments_of_env_alone_are_kept():
    assert [item.name for item in parse_line("env A=1").commands[0].assignments] == ["A"]


def test_very_many_wrappers_are_not_explained_and_deny_still_sees():
    read = parse_line("nice " * 200 + "sudo ls")
    assert read.unexplained
    assert any(command.privileged for command in read.commands)


@pytest.mark.parametrize("line", ["xargs env", "xargs env -i", "xargs env A=1", "xargs xargs", "xargs xargs -n1", "xargs env xargs", "xargs timeout 5", "xargs nice -n 5", "xargs bash -c", "xargs uv run", "xargs npx", "find . -exec env {} +", "find . -exec xargs {} +", "xargs sudo"])  # fmt: skip
def test_a_program_that_is_added_when_it_runs_is_not_explained(line):
    assert parse_line(line).unexplained


@pytest.mark.parametrize("line", ["xargs timeout 5 ls", "xargs env A=1 ls", "xargs env -S 'ls x'", "xargs nice ls", "find . -exec timeout 5 ls {} +", "xargs xargs ls"])  # fmt: skip
def test_arguments_are_added_to_the_innermost_command(line):
    (inner,) = started(line)
    assert inner.extra_arguments
    assert not parse_line(line).unexplained


@pytest.mark.parametrize("line", ["xargs", "xargs -n1", "env", "env A=1", "nice", "xargs find . -exec ls x \\;", "xargs command -v"])  # fmt: skip
def test_nothing_is_added_to_what_stands_alone(line):
    assert not parse_line(line).unexplained
