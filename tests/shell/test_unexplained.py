"""What is not surely read is said so; text that bash evaluates a second time is never taken for data."""

import subprocess

import pytest

from ringfence.shell.parse import parse_argv, parse_line

P = "$(touch PWN)"

# Forms that run a command out of quoted or stored text. Each was run in bash; the test below runs it again.
EVALUATED = [
    f": >& '{P}'", f"declare -a 'x=({P})'", f"readonly -a 'x=({P})'", f"f(){{ local -a 'x=({P})'; }}; f", f"y='({P})'; declare -a x=\"$y\"",
    f"y='({P})'; x=(1); declare x=$y", f"declare 'a[{P}]=1'", f"declare -i 'x=a[{P}]'", f"[ -v 'a[{P}]' ]", f"[[ -v 'a[{P}]' ]]",
    f"x='a[{P}]'; [[ $x -eq 1 ]]", f"x='a[{P}]'; [[ x -eq 1 ]]", f"x='a[{P}]'; : $((x))", f"x='a[{P}]'; (( x ))", f"x='a[{P}]'; : ${{!x}}",
    f"x='a[{P}]'; declare -n r=$x; : $r", f"x='{P}'; : \"${{x@P}}\"", f"x='a[{P}]'; a=([x]=1)", f"printf -v 'a[{P}]' x", f"read 'a[{P}]' <<< x",
    f"a=1; unset 'a[{P}]'", f"let 'a[{P}]'", f"eval '{P}'", f"trap '{P}' EXIT", f"trap '{P}' DEBUG; :", f"compgen -W '{P}'", f": \"${{y:-'{P}'}}\"",
    f': $"{P}"', f"a=(1); echo ${{a['{P}']}}", f"a=(1); echo ${{#a['{P}']}}", f"echo $[ 'a[{P}]' ]", f"(( 'a[{P}]' ))", f"for (( i='a[{P}]'; 0; )); do :; done",
    f"i='a[{P}]'; for((;i<0;)); do :; done", f"RANDOM='a[{P}]'", f"OPTIND='a[{P}]'", f"echo hi {{a['{P}']}}>f", f"PS4='{P}'; set -x; :", f"set -x; PS4='{P}' :",
    f"x='a[{P}]'; let x", f"x='a[{P}]'; let y=x", f"x='a[{P}]'; y=x; let y", f"x='a[{P}]'; let x++", f"a=('a[{P}]'); let a", f"let x=1; x='a[{P}]'; let x", f"for x in 'a[{P}]'; do let x; done",
    f"x='a[{P}]' let x", f"x='a[{P}]' eval 'let x'", f"x='a[{P}]' bash -c 'echo $((x))'", f"env x='a[{P}]' bash -c 'echo $((x))'", f"x='a[{P}]'; exec {{z[x]}}</dev/null",
    f"x='a[{P}]'; y=2; : ${{y:x}}", f"cat <<A\n{P}\nA", "printf '%s' \"$(: `touch PWN`)\"", "x='touch PWN'; $x", "x=to; y=uch; $x$y PWN",
]  # fmt: skip


@pytest.mark.parametrize("line", EVALUATED)
def test_text_that_is_evaluated_is_seen(line, tmp_path):
    subprocess.run(["bash", "-c", line], cwd=tmp_path, capture_output=True, timeout=120, check=False)
    assert (tmp_path / "PWN").exists(), "bash does not run this; the form does not belong here"
    read = parse_line(line)
    predicted = any(command.words[0].text == "touch" or command.words[0].dynamic for command in read.commands)
    assert predicted or read.unexplained


@pytest.mark.parametrize(
    "line",
    [
        "ls 'x", 'ls "x', "ls `x", "ls $(x", "ls ${x", "ls )", "( ls", "{ ls", "if ls; then", "for x in", "case x in", "[[ x", "((", "ls &&", "ls |", "| ls", "&& ls", ";; ls",
        "ls >", "ls > > x", "cat <<A\nx", "f( ls", "a=(b", "ls \\", "then ls", "done", "}", "ls (x)", "ls;;", "function", "x[$(id)]=1", "$\\\n(ls)", "i\\\nf true; then ls; fi",
        "ls\x00x", "ls \x1b[8m", "ls\r", "ls \u202e", "ls \u200bx", "git\u00a0status", "ls \ud800", "set -k", "shopt -s expand_aliases", "shopt -s extglob", "set -o posix",
        "hash -p ./x ls", "enable -n test", "[ $x = a ]", '[ "$a" "$b" ]', "test -v 'a[0]'", 'read "$x"', "export $x", "declare -n a=b", "bash", "echo ls | bash", "sh -s", 'bash -c "$x"', "bash --rcfile f -c ls",
        "zsh -c 'echo =ls(x)'", "sh -c 'echo {a,b}'", "sh -c 'cat <(ls)'", "sh -c 'ls &> f'", "cat <<$(x)\n$(x)", "echo \"${x:-'a'}\"", "p 2\\\n2> f", "echo x | bash 3<<< ls", "echo x | sh 3<<A\nls\nA", "bash <<< ls 0<&3", "bash 3<<< x <<< ls 0>&3", "echo x | bash /dev/stdin", "bash /dev/fd/3 3<<< x <<< ls", "bash <(ls)", "bash -- /proc/self/fd/4 <<< ls", "env --unknown ls", "timeout --unknown 5 ls", "env -S 'ls ${X}'", "find . -exec ls",
    ],
)  # fmt: skip
def test_not_explained(line):
    read = parse_line(line)
    assert read.unexplained
    for item in read.unexplained:
        assert 0 <= item.start <= item.end <= max(len(line), 1)
        assert item.why


@pytest.mark.parametrize(
    "line",
    [
        "ls 'x; sudo id", "if x; then sudo id", "ls ) ; sudo id", "f( sudo id", "ls &&& sudo id", "[[ a ; sudo id ]]", "x[$(sudo id)]=1", "$\\\n(sudo id)", '"$\\\n(sudo id)"', "ls \x1b; sudo id",
        "for x in a; do sudo id", "{ sudo id", "echo $((sudo id)", "xargs -I{} sh -c 'sudo id {}'", 'bash -c "sudo id $x"', "zsh -c 'sudo id'", "fish -c 'sudo id'", "[[ -v 'a[$(sudo id)]' ]]", "ls 'a' 'b; sudo id", "env --wrong sudo id",
        "x='a[$(sudo id)]'; : $((x))", "sudo " + "id " * 5, "$(" * 60 + "sudo id", "( " * 80 + "sudo id", "env " * 50 + "sudo id", "if a; then 'sudo' id",
        "bash /dev/stdin <<< 'sudo id'", "sh /dev/fd/0 <<A\nsudo id\nA", "bash 3<<< ls <<< 'sudo id'", "bash <<< 'sudo id' 3<<< ls", "bash 0<<< 'sudo id'",
    ],
)  # fmt: skip
def test_deny_rules_still_see_what_stands_behind(line):
    assert any(command.words[0].text == "sudo" for command in parse_line(line).commands)


@pytest.mark.parametrize(
    "line",
    [
        "echo 'caf\u00e9 \u4e2d\u6587'",
        "git commit -m 'a\u00a0b \u2014 \u201cc\u201d'",
        "cat <<'A'\n\U0001f469\u200d\U0001f4bb ok\nA",
        "echo \u00e9",
        "echo '\U0001f600'",
    ],
)
def test_ordinary_text_of_other_languages_is_fine(line):
    assert not parse_line(line).unexplained


def test_quoted_controls_are_not_fine():
    assert parse_line("echo '\x1b[8m'").unexplained
    assert parse_line("echo '\u202ex'").unexplained
    assert parse_argv(("ls", "a\x07")).unexplained


def test_the_character_is_named_not_shown():
    (item,) = parse_line("ls \u202ex").unexplained
    assert "right-to-left override (U+202E)" in item.why
