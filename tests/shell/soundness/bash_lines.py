"""A grammar of bash lines: every construct in every position, composed at random from a seed."""

import random

PROGRAMS = [f"p{number}" for number in range(10)]
NAMES = ["x", "y", "i", "f", "V", "W"]
SPECIALS = (
    *"\"'`$(){}[]<>|&;\\!#=*?, \n\t@-+1:",
    *("$(", "${", "((", "))", "<<E\n", "<<'E'\n", "\nE\n", "\\\n", "&&", "||", ">&", "<(", "$'", "[[ ", " ]]", ";;"),
)  # fmt: skip


class Lines:
    """One line per call, the same for the same seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.waiting: list[str] = []
        self.quiet = 0

    def line(self) -> str:
        self.waiting = []
        self.quiet = 0
        text = self.sequence(self.pick(1, 1, 2))
        return text + self.bodies()

    def mutated(self) -> str:
        """A line with a few characters of meaning put in, taken out or doubled."""
        text = self.line()
        for _ in range(self.random.randint(1, 3)):
            at = self.random.randrange(len(text) + 1)
            what = self.random.random()
            if what < 0.5:
                text = text[:at] + self.random.choice(SPECIALS) + text[at:]
            elif what < 0.8:
                text = text[:at] + text[at + 1 :]
            else:
                text = text[:at] + text[max(at - 3, 0) : at] + text[at:]
        return text

    # Lists.

    def pick(self, *options):
        return self.random.choice(options)

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def sequence(self, depth: int) -> str:
        parts = [self.and_or(depth)]
        for _ in range(self.pick(0, 0, 0, 1, 1, 2)):
            separator = self.pick("; ", ";", " & ", "\n", "\n\n", " # note; p9\n", " ;\t")
            if "\n" in separator and not self.quiet:
                separator += self.bodies()
            elif self.quiet and "\n" in separator:
                separator = "; "
            parts += [separator, self.and_or(depth)]
        return "".join(parts)

    def and_or(self, depth: int) -> str:
        text = self.pipeline(depth)
        for _ in range(self.pick(0, 0, 0, 0, 1, 1, 2)):
            text += self.pick(" && ", " || ", "&&", "||", " &&\\\n ") + self.pipeline(depth)
        return text

    def pipeline(self, depth: int) -> str:
        text = self.pick("", "", "", "", "! ", "time ", "time -p ") + self.command(depth)
        for _ in range(self.pick(0, 0, 0, 0, 1, 1, 2)):
            text += self.pick(" | ", "|", " |& ") + self.command(depth)
        return text

    def command(self, depth: int) -> str:
        if depth > 0 and self.chance(0.35):
            return self.compound(depth - 1)
        if depth > 0 and self.chance(0.25):
            return self.wrapper(depth - 1)
        if self.chance(0.15):
            return self.builtin(depth)
        return self.simple(depth)

    def simple(self, depth: int) -> str:
        parts = []
        if self.chance(0.1):
            parts.append(f"{self.pick(*NAMES)}={self.word(depth)}")
        if self.chance(0.1):
            parts.append(self.redirection(depth))
        name = self.pick(*PROGRAMS)
        parts.append(self.pick(name, name, name, name, name[0] + '""' + name[1:], f'"{name}"', "\\" + name, f"'{name[0]}'{name[1:]}", f"{name[0]}\\\n{name[1:]}", f"$(echo {name})", "$'\\x70'" + name[1:]))  # fmt: skip
        parts += [
            self.redirection(depth) if self.chance(0.15) else self.word(depth) for _ in range(self.pick(0, 1, 1, 2, 3))
        ]
        return self.pick(" ", " ", "  ", "\t", " \\\n").join(parts)

    def builtin(self, depth: int) -> str:
        name = self.pick(*NAMES[:4])
        return self.pick(
            f"cd {self.pick('d1', 'd2', '..', 'd1/d3', 'nowhere', '-', '.', '$V', 'd1/..')}", 'cd "d1"',
            f"pushd {self.pick('d1', 'd2', 'nowhere')}", "popd", "cd", "cd -P d1",
            f"echo {self.word(depth)}", f"printf %s {self.word(depth)}", "true", "false", ":",
            f"{name}={self.word(depth)}", f"{name}=5", f"export {name}={self.pick('a', 'b c', '1')}", f"read {name} <<< {self.word(depth)}",
            f"[ {self.pick('-n', '-f')} {self.word(depth)} ]", f"test a = {self.word(depth)}", f"(( {self.pick('1', '0', '1 + 2', 'i = 3', '1<<2', '(1) > 0')} ))",
            f"[[ {self.pick('-n', '-f')} {self.word(depth)} ]]", f"[[ {self.word(depth)} == {self.word(depth)} ]]", "[[ a =~ (a|b) ]]",
            f"set -- {self.word(depth)}", "set -e", "shift", "unset x", f"local {name}=1", "wait", f"> {self.pick('out1', 'out2')}",
        )  # fmt: skip

    def compound(self, depth: int) -> str:
        name = self.pick("x", "y", "f")
        text = self.pick(
            lambda: f"( {self.sequence(depth)} )",
            lambda: f"({self.sequence(depth)})",
            lambda: f"{{ {self.sequence(depth)}; }}",
            lambda: f"{{ {self.inline(depth)}\n}}",
            lambda: f"if {self.inline(depth)}; then {self.inline(depth)}; else {self.inline(depth)}; fi",
            lambda: f"if {self.inline(depth)}; then {self.inline(depth)}; elif {self.inline(depth)}\nthen {self.inline(depth)}; fi",
            lambda: f"while {self.inline(depth)}; do {self.inline(depth)}; break; done",
            lambda: f"until {self.inline(depth)}; do {self.inline(depth)}; break; done",
            lambda: f"for {name} in {self.word(depth)} {self.pick('a', 'b c')}; do {self.inline(depth)}; p6 ${name} \"a${{{name}}}b\"; done",
            lambda: f"for {name} in a 'b c'; do p8 \"${name}\"; {self.inline(depth)}; done",
            lambda: f"for ((i=0; i<2; i++)); do {self.inline(depth)}; done",
            lambda: f"case {self.word(depth)} in a|b) {self.inline(depth)} ;; (*) {self.inline(depth)};; esac",
            lambda: f"case a in a) {self.inline(depth)} ;& c) {self.inline(depth)} ;;& *) {self.inline(depth)}\nesac",
            lambda: f"fn() {{ {self.inline(depth)}; }}; fn",
            lambda: f"function fn {{ {self.inline(depth)}; }}\nfn a",
            lambda: f"fn() ( {self.inline(depth)} ); fn b",
            lambda: f"coproc {self.simple(0)}",
            lambda: f"coproc CO {{ {self.inline(depth)}; }}",
            lambda: f"select {name} in a b; do {self.inline(depth)}; done",
        )()  # fmt: skip
        if self.chance(0.2) and not text.endswith(("fn", "a", "b")) and "coproc" not in text:
            text += " " + self.redirection(depth)
        return text

    def inline(self, depth: int) -> str:
        self.quiet += 1
        text = self.sequence(depth)
        self.quiet -= 1
        return text

    def wrapper(self, depth: int) -> str:
        if not self.quiet and self.chance(0.1):
            return self.script_on_input()
        quoted = self.quoted_script(depth)
        inner = self.simple(0)
        return self.pick(
            f"env {inner}", 'env -i PATH="$PATH" ' + inner, f"env A=1 B='2 3' {inner}", f"env -u V -C d1 {inner}", "env -S 'p4 a b' c",
            f"timeout 5 {inner}", f"timeout -k 1 -s TERM 5 {inner}", f"nice -n 1 {inner}", f"nice -5 {inner}", f"nohup {inner}", f"setsid -w {inner}",
            f"stdbuf -o0 {inner}", f"command {inner}", "command -p true", "command -v p1", f"exec {inner}", f"builtin echo {self.word(0)}",
            f"eval {quoted}", f"eval {inner}", f"trap {quoted} EXIT", f"bash -c {quoted}", f"bash -ec {quoted} x y", f"bash -c -- {quoted}", f"bash +e -c {quoted}", f"sh -c {quoted}", f"sh -uc {quoted}",
            f"p2 | xargs {inner}", f"echo a b | xargs -n 1 {self.pick(*PROGRAMS)} z", f"echo a | xargs -I{{}} {self.pick(*PROGRAMS)} x{{}}y", f"echo a | xargs -0 -r {self.pick(*PROGRAMS)}", "echo a | xargs -I X bash -c 'p6 X'",
            f"find . -name one.txt -exec {self.pick(*PROGRAMS)} {{}} \\;", f"find d1 -type f -exec {self.pick(*PROGRAMS)} a {{}} +", f"find d1 -name '*.txt' -execdir {self.pick(*PROGRAMS)} {{}} ';'",
        ) if not self.quiet else self.pick(f"env {inner}", f"bash -c {quoted}", f"eval {quoted}", f"timeout 5 {inner}", f"trap {quoted} EXIT")  # fmt: skip

    def quoted_script(self, depth: int) -> str:
        saved, self.waiting = self.waiting, []
        self.quiet += 1
        script = self.sequence(min(depth, 1))
        self.quiet -= 1
        self.waiting = saved
        return "'" + script.replace("'", "'\\''") + "'"

    # Words.

    def word(self, depth: int) -> str:
        text = self.part(depth)
        while self.chance(0.2):
            text += self.part(depth)
        return text

    def part(self, depth: int) -> str:
        if depth > 0 and self.chance(0.2):
            return self.substitution(depth - 1)
        return self.pick(
            "a", "b", "c1", "-x", "one.txt", "d1/three.txt", "'s q'", '"d q"', "'$(p9)'", '"\\$(p9)"', "\\;", "\\ ", '""', "''", "$V", '"$V"', "${V}", '"${W}"',
            "${W:-d}", "${U:-e f}", '"${U:-g}"', "${W:+h}", "${W%w}", "${#W}", "${V//v/z}", "$'t\\tn'", "$'q\\'q'", "$?", "$#", "$$", "$@", '"$@"', "$((1 + 2))", "$((4*(2+1)))",
            "{a,b}", "x{1,2}y", "{1..3}", "{c..a}", "a{,z}", "{a", "b}", "{}", "*.txt", "?ne.txt", "[ot]*.txt", "zz*", "~", "~/k", "a=b", "=", "#", "a#b", "-", "--", "é", "%", "!", "^", "\\\n", "a\\\nb", "\\a", "@", "+", ",", "]",
        ) if not self.chance(0.02) else "${x[0]}"  # fmt: skip

    def substitution(self, depth: int) -> str:
        self.quiet += 1
        waiting, self.waiting = self.waiting, []
        inner = self.sequence(depth)
        simple = self.simple(0)
        self.waiting = waiting
        self.quiet -= 1
        tick = simple.replace("\\", "\\\\").replace("`", "\\`").replace("$", "\\$")
        return self.pick(
            f"$({inner})", f'"$({inner})"', f"$( {inner}\n)", f"`{tick}`", f"<({inner})", f"${{U:-$({inner})}}", '"${U:-`p4 q`}"', f"$(({self.pick('1', '2')} + $( ({self.pick('p2', 'p4')}; echo 3) )))",
            f"$( ({inner}) )", "$(<one.txt)", f"$(cat <<'H'\n{self.pick('p9 $(p9)', 'text')}\nH\n)", f"$(cat <<H\nx $({simple})\nH\n)", f'"a $({simple}) b `p4`"', f"$(case a in a) {simple};; esac)", f"$( # p9 )\n{simple})",
        )  # fmt: skip

    def redirection(self, depth: int) -> str:
        if self.chance(0.3) and not self.quiet:
            return self.here_document(depth)
        return self.pick("> out1", ">out2", ">> out1", "2>/dev/null", "2>&1", "&> out3", ">& out4", ">| out5", "< one.txt", "<one.txt", "<> out6", "3> out7", "3>&1", "2>&-", "{fd}> out8", "&>> out9", "<<< a", '<<< "$V"', "<&0", "> d1/out", f"< <({self.simple(0)})", f"> >({self.simple(0)})", "> $W", '> "$W.o"')  # fmt: skip

    def here_document(self, depth: int) -> str:
        number = len(self.waiting)
        delimiter = f"E{number}{self.random.randrange(10)}"
        form = self.pick("plain", "single", "double", "escaped", "dash")
        body = self.pick(
            "text\n", "$V and ${W}\n", "$(p4 in)\n", "`p4 in`\n", "\\$(p9) \\`p9\\`\n", "it's \"q\n", "a\\\nb\n", "<<X\n", "p9\n", "", f"{delimiter} \n", "$((1+1))\n", "${U:-$(p4)}\n", "\\\\$(p4)\n", "a\\\n" + delimiter + "x\n",
        )  # fmt: skip
        operator, end = "<<", delimiter
        spelled = {"single": f"'{delimiter}'", "double": f'"{delimiter}"', "escaped": "\\" + delimiter}.get(
            form, delimiter
        )
        if form == "dash":
            operator, end, body = "<<-", "\t" + delimiter, "\t" + body
        self.waiting.append(f"{body}{end}\n")
        return f"{operator}{self.pick('', ' ')}{spelled}"

    def script_on_input(self) -> str:
        start, quoted, end = self.pick(
            ("bash", True, ""),
            ("bash -s a", False, ""),
            ("cat", True, " | bash"),
            ("sh", True, ""),
            ("bash -x", True, ""),
        )
        return f"{start} {self.document(quoted=quoted)}{end}"

    def document(self, *, quoted: bool) -> str:
        """A here-document that holds a script."""
        waiting, self.waiting = self.waiting, []
        self.quiet += 1
        script = self.simple(0)
        self.quiet -= 1
        delimiter = f"S{len(waiting)}{self.random.randrange(10)}"
        self.waiting = [*waiting, f"{script}\n{delimiter}\n"]
        return f"<<'{delimiter}'" if quoted else f"<<{delimiter}"

    def bodies(self) -> str:
        text = "".join(self.waiting)
        self.waiting = []
        return ("\n" + text) if text else ""
