"""Compares what bash really started with what the parser predicted."""

import json
import os
import shutil
import stat
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from ringfence.shell.parse import parse_line
from ringfence.shell.syntax import Access, Directory, Line, SimpleCommand, Word

HERE = Path(__file__).parent
PLAIN = [f"p{number}" for number in range(10)]
WRAPPERS = ["env", "timeout", "nice", "nohup", "setsid", "stdbuf", "xargs", "find", "bash", "sh", "cat"]
RECORDER_C = """
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#define ADD(text) do {{ size_t n = strlen(text) + 1; if (used + n > sizeof all) return 99; memcpy(all + used, text, n); used += n; }} while (0)
static char all[1 << 20];
int main(int argc, char **argv) {{
    static char folder[65536], count[32];
    size_t used = 0;
    char *name = strrchr(argv[0], '/');
    name = name ? name + 1 : argv[0];
    if (!getcwd(folder, sizeof folder)) folder[0] = 0;
    snprintf(count, sizeof count, "%d", argc - 1);
    ADD("REC"); ADD(folder); ADD(name); ADD(count);
    for (int i = 1; i < argc; i++) ADD(argv[i]);
    int file = open("{log}", O_WRONLY | O_APPEND | O_CREAT, 0600);
    if (file < 0 || write(file, all, used) < 0) return 99;
    if (name[0] == 'p' && name[2] == 0) {{ int odd = (name[1] - '0') % 2; puts(odd ? "p4 b" : "p2 a"); return odd; }}
    char real[4096];
    snprintf(real, sizeof real, "{real}/%s", name);
    execv(real, argv);
    return 127;
}}
"""
RECORDER = """#!/bin/dash
printf '%s\\0' REC "$PWD" "${{0##*/}}" "$#" "$@" >> {log}
"""
PLAIN_END = {0: "echo p2 a\nexit 0\n", 1: "echo p4 b\nexit 1\n"}


@dataclass
class Findings:
    """What the comparison found over many lines."""

    lines: int = 0
    explained: int = 0
    started: int = 0
    unseen: list[tuple[str, str]] = field(default_factory=list)
    """Lines without anything unexplained in which something started that was not predicted."""
    hidden: list[tuple[str, str]] = field(default_factory=list)
    """The same for lines with something unexplained: no hole, but a deny rule would not have seen it."""
    unwritten: list[tuple[str, str]] = field(default_factory=list)


class Bash:
    """Real bash with a PATH of recorders."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.bin = folder / "bin"
        self.home = folder / "home"
        self.start = self.home.joinpath(*["deep"] * 8)
        self.log = folder / "log"
        self.bin.mkdir()
        if self.compiled():
            return
        for number, name in enumerate(PLAIN):
            self.recorder(name, PLAIN_END[number % 2])
        for name in WRAPPERS:
            real = shutil.which(name)
            if real:
                self.recorder(name, f'exec {real} "$@"\n')

    def compiled(self) -> bool:
        """Quick recorders where there is a compiler; scripts do the same otherwise."""
        compiler = shutil.which("cc")
        if not compiler:
            return False
        real = self.folder / "real"
        real.mkdir()
        (self.folder / "recorder.c").write_text(RECORDER_C.format(log=self.log, real=real))
        built = self.folder / "recorder"
        if subprocess.run([compiler, "-O1", "-o", built, self.folder / "recorder.c"], check=False).returncode:
            return False
        for name in PLAIN:
            (self.bin / name).symlink_to(built)
        for name in WRAPPERS:
            path = shutil.which(name)
            if path:
                (real / name).symlink_to(os.path.realpath(path))
                (self.bin / name).symlink_to(built)
        return True

    def recorder(self, name: str, end: str) -> None:
        path = self.bin / name
        path.write_text(RECORDER.format(log=self.log) + end)
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    def run(self, lines: list[str]) -> list[dict]:
        job = {
            "lines": lines, "home": str(self.home), "start": str(self.start), "log": str(self.log),
            "path": str(self.bin), "bash": [shutil.which("bash"), "-c"],
        }  # fmt: skip
        source, result = self.folder / "job.json", self.folder / "out.json"
        source.write_text(json.dumps(job))
        subprocess.run([sys.executable, str(HERE / "bash_driver.py"), str(source), str(result)], check=True)
        return json.loads(result.read_text())

    def compare(self, lines: list[str]) -> Findings:
        findings = Findings()
        for line, result in zip(lines, self.run(lines), strict=True):
            self.compare_one(line, result, findings)
        return findings

    def compare_one(self, line: str, result: dict, findings: Findings) -> None:
        parsed = parse_line(line)
        findings.lines += 1
        findings.explained += not parsed.unexplained
        for folder, name, arguments in result["records"]:
            findings.started += 1
            if not any(self.predicted(command, folder, name, arguments) for command in parsed.commands):
                text = f"{name} {arguments} in {os.path.relpath(folder, self.start)}"
                (findings.hidden if parsed.unexplained else findings.unseen).append((line, text))
        if not parsed.unexplained:
            for path in result["files"]:
                if not self.written(parsed, path):
                    findings.unwritten.append((line, os.path.relpath(path, self.start)))

    # What a prediction covers.

    def predicted(self, command: SimpleCommand, folder: str, name: str, arguments: list[str]) -> bool:
        first = command.words[0]
        if not self.in_directory(command.directory, folder):
            return False
        values = [name, *arguments]
        if not first.dynamic and first.text.rsplit("/", 1)[-1] != name:
            return False
        words = list(command.words)
        if not first.dynamic:
            words, values = words[1:], values[1:]
        return self.matches(words, values, extra=command.extra_arguments)

    def in_directory(self, directory: Directory, folder: str) -> bool:
        if directory.path is None:
            return True
        return any(
            os.path.normpath(os.path.join(self.start, self.home_of(path))) == os.path.normpath(folder)
            for path in (directory.path, *directory.alternatives)
        )

    def home_of(self, path: str) -> str:
        return str(self.home) + path[1:] if path == "~" or path.startswith("~/") else path

    def matches(self, words: list[Word], values: list[str], *, extra: bool) -> bool:
        if not words:
            return extra or not values
        word, rest = words[0], words[1:]
        if not word.dynamic:
            text = word.text
            if word.tilde:
                return bool(values) and self.matches(rest, values[1:], extra=extra)
            return bool(values) and values[0] == text and self.matches(rest, values[1:], extra=extra)
        low, high = (1, 1) if not word.may_split else (1 if word.glob else 0, len(values))
        if word.values:
            return bool(values) and values[0] in word.values and self.matches(rest, values[1:], extra=extra)
        for count in range(low, min(high, len(values)) + 1):
            fits = count == 0 or word.tilde or values[0].startswith(word.prefix)
            if fits and self.matches(rest, values[count:], extra=extra):
                return True
        return False

    def written(self, parsed: Line, path: str) -> bool:
        redirections = [(item, command.directory) for command in parsed.commands for item in command.redirections]
        redirections += list(zip(parsed.redirections, parsed.directories, strict=True))
        for item, directory in redirections:
            if item.access not in (Access.WRITE, Access.READ_WRITE) or item.target is None:
                continue
            if item.target.dynamic or item.target.tilde or directory.path is None:
                return True
            for base in (directory.path, *directory.alternatives):
                full = os.path.normpath(os.path.join(self.start, self.home_of(base), item.target.text))
                if full == os.path.normpath(path):
                    return True
        return False
