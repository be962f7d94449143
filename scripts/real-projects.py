#!/usr/bin/env python3
"""Real projects run their own tests outside and inside a box, and must give the same result.

    .venv/bin/python scripts/real-projects.py [--folder DIR] [--rounds N] [--only NAME]… [--markdown]

Sources come from the package registries by name through their ordinary clients (pip, npm, apt): source distributions,
npm packages and Debian source packages. Each project is made ready outside the box (a virtual environment, node_modules,
a build folder), then its tests run outside and inside, interleaved. Exit 1 when a result differs.
"""

import argparse
import glob
import os
import re
import shutil
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass

PATH = "/usr/local/bin:/usr/bin:/bin"
MAIN = "import sys; from ringfence.cli.main import main; sys.exit(main(sys.argv[1:]))"
POLICY = """\
version: 1
fail_closed: true
working_tree:
  allowed_roots: ["."]
process: {{max_runtime_ms: 600000, max_output_bytes: 4194304, max_memory_bytes: 4294967296, max_processes: 1024,
          max_disk_bytes: 2147483648}}
commands:
  allow:
    - argv_prefix: {argv}
  toolchains: {toolchains}
files:
  read: {{allow: ["**"]}}
  write: {{allow: ["**"]}}
  delete: {{allow: ["**"]}}
"""


@dataclass(frozen=True)
class Project:
    """Where it comes from, how it is made ready, how it tests itself, and which words of the output are its result."""

    name: str
    source: str
    prepare: tuple[tuple[str, ...], ...]
    test: tuple[str, ...]
    result: str


PYTEST = r"(\d+ (?:passed|failed|skipped|errors?|xfailed|xpassed))"
TAP = r"^# (tests +\d+|pass +\d+|fail +\d+)"


def python(name, *needs, arguments=("tests",)):
    return Project(
        name=name,
        source="pip",
        prepare=(
            ("/usr/bin/python3", "-m", "venv", ".venv"),
            (".venv/bin/python", "-m", "pip", "install", "-q", "--disable-pip-version-check", "pytest", *needs, "."),
        ),
        test=(".venv/bin/python", "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments),
        result=PYTEST,
    )


def node(name, *needs):
    install = ("npm", "install", "--silent", "--ignore-scripts", "--no-audit", "--no-fund", "--no-save")
    return Project(
        name=name,
        source="npm",
        prepare=(("npm", "pkg", "delete", "devDependencies", "scripts"), (*install, "tape@5", *needs)),
        test=("node", "node_modules/tape/bin/tape", "test/**/*.js"),
        result=TAP,
    )


PROJECTS = (
    python("more-itertools"),
    python("idna", "hypothesis"),
    python("sqlparse"),
    python("click"),
    node("minimist"),
    node("qs", "has-symbols", "object-inspect", "side-channel", "safer-buffer", "iconv-lite", "es-value-fixtures",
         "for-each", "has-bigints", "has-override-mistake", "has-property-descriptors", "mock-property", "qs-iconv"),
    Project(
        name="zlib",
        source="apt",
        prepare=(("sh", "./configure"), ("make", "test")),
        test=("make", "test"),
        result=r"(\*\*\* zlib.*OK \*\*\*|FAILED)",
    ),
    Project(
        name="rust-fnv",
        source="apt",
        prepare=(("cargo", "test", "--offline", "--quiet", "--no-run"),),
        test=("cargo", "test", "--offline", "--quiet"),
        result=r"(test result: \w+\. \d+ passed; \d+ failed)",
    ),
)  # fmt: skip


def fetch(project, folder):
    """The sources, unpacked into a repository of their own."""
    target = f"{folder}/{project.name}"
    if os.path.isdir(f"{target}/.git"):
        return target
    shutil.rmtree(target, ignore_errors=True)
    drop = f"{folder}/downloads/{project.name}"
    shutil.rmtree(drop, ignore_errors=True)
    os.makedirs(drop)
    if project.source == "pip":
        run(
            [
                sys.executable,
                "-m",
                "pip",
                "download",
                "-q",
                "--no-deps",
                "--no-binary",
                ":all:",
                "-d",
                drop,
                project.name,
            ]
        )
    elif project.source == "npm":
        run(["npm", "pack", "--silent", project.name], cwd=drop)
    else:
        apt_source(project.name, drop)
    (archive,) = glob.glob(f"{drop}/*.tar.*z*") + glob.glob(f"{drop}/*.tgz")
    unpacked = f"{drop}/unpacked"
    os.mkdir(unpacked)
    run(["tar", "xf", archive, "--no-same-owner", "-C", unpacked])
    (inner,) = os.listdir(unpacked)
    shutil.move(f"{unpacked}/{inner}", target)
    return target


def apt_source(name, drop):
    """The upstream sources of a Debian package, with source entries derived from the host's own."""
    parts = f"{drop}/parts"
    for path in (parts, f"{drop}/lists/partial"):
        os.makedirs(path)
    for path in (*glob.glob("/etc/apt/sources.list.d/*.sources"), "/etc/apt/sources.list"):
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                text = re.sub(r"^Types: deb$|^deb ", lambda m: {"Types: deb": "Types: deb-src"}.get(m[0], "deb-src "),
                              file.read(), flags=re.MULTILINE)  # fmt: skip
            with open(f"{parts}/{os.path.basename(path)}", "w", encoding="utf-8") as file:
                file.write(text)
    options = [
        "-o",
        "Dir::Etc::SourceList=/dev/null",
        "-o",
        f"Dir::Etc::SourceParts={parts}",
        "-o",
        f"Dir::State::Lists={drop}/lists",
    ]
    run(["apt-get", "update", "-qq", *options])
    words = ["apt-get", "source", "-qq", "--download-only", *options, name]
    subprocess.run(words, cwd=drop, check=False, capture_output=True, timeout=300)  # only the upstream archive counts
    for path in glob.glob(f"{drop}/*.debian.tar.*") + glob.glob(f"{drop}/*.dsc"):
        os.unlink(path)
    for path in (parts, f"{drop}/lists"):
        shutil.rmtree(path)


def make_ready(project, target):
    """Everything that needs the network, outside the box; then one commit and a policy that allows the test command."""
    if os.path.isdir(f"{target}/.git"):
        return
    for words in project.prepare:
        run(list(words), cwd=target, env=environment())
    argv = "[" + ", ".join(f'"{word}"' for word in project.test) + "]"
    with open(f"{target}/sandbox_policy.yaml", "w", encoding="utf-8") as file:
        file.write(POLICY.format(argv=argv, toolchains=toolchains()))
    with open(f"{target}/.gitignore", "a", encoding="utf-8") as file:
        file.write("\n.venv/\nnode_modules/\ntarget/\n")
    who = ["-c", "user.name=Person", "-c", "user.email=person@example.org"]
    for words in (["init", "-q"], ["add", "-A"], [*who, "commit", "-q", "-m", "As published"]):
        run(["git", *words], cwd=target)


def run(words, **more):
    done = subprocess.run(
        words, capture_output=True, text=True, timeout=600, check=False, stdin=subprocess.DEVNULL, **more
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(words)}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


def toolchains():
    """The folders of toolchains that are not on the system's PATH: what a policy names to have them in the box."""
    if shutil.which("cargo", path=PATH) or not shutil.which("rustup"):
        return []
    return [os.path.dirname(run(["rustup", "which", "cargo"]).strip())]


def environment():
    kept = {name: os.environ[name] for name in ("HOME", "LANG", "USER") if name in os.environ}
    return {**kept, "PATH": ":".join((*toolchains(), PATH))}


def test(project, target, fence):
    """Exit status, the result's words and the seconds."""
    begin = time.monotonic()
    done = subprocess.run(
        [*fence, *project.test], cwd=target, env=environment(), capture_output=True, text=True, timeout=900, check=False,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    took = time.monotonic() - begin
    words = re.findall(project.result, done.stdout + done.stderr, re.MULTILINE)
    return done.returncode, tuple(sorted(" ".join(word.split()) for word in words)), took, done.stdout + done.stderr


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--folder", default=os.path.expanduser("~/.cache/ringfence-real-projects"))
    options.add_argument("--rounds", type=int, default=1)
    options.add_argument("--only", action="append")
    options.add_argument("--markdown", action="store_true")
    args = options.parse_args()
    os.makedirs(args.folder, exist_ok=True)
    state = f"{args.folder}/ringfence"
    ringfence = [sys.executable, "-c", MAIN, "--test-root", state]
    rows, differ = [], 0
    try:
        for project in (p for p in PROJECTS if not args.only or p.name in args.only):
            target = fetch(project, args.folder)
            make_ready(project, target)
            run([*ringfence, "policy", "trust", "--yes"], cwd=target)
            row = compare(project, target, [*ringfence, "run", "--"], args.rounds)
            rows.append(row)
            differ += not row[2]
            print(" ".join(str(part) for part in row), flush=True)
    finally:
        subprocess.run([*ringfence, "stop"], check=False, capture_output=True, timeout=60)
    if args.markdown:
        print(table(rows))
    return 1 if differ else 0


def compare(project, target, fence, rounds):
    outside, inside, same = [], [], True
    words = ()
    for _ in range(rounds):
        first, second = test(project, target, []), test(project, target, fence)
        same = same and first[:2] == second[:2] and bool(first[1])
        outside.append(first[2])
        inside.append(second[2])
        words = first[1]
        if first[:2] != second[:2] or not first[1]:
            print(
                f"--- {project.name} outside: {first[:2]}\n{first[3][-1500:]}\n--- inside: {second[:2]}\n{second[3][-3000:]}"
            )
    ratio = statistics.median(b / a for a, b in zip(outside, inside, strict=True))
    return (
        project.name,
        "; ".join(words)[:60],
        same,
        round(statistics.median(outside), 2),
        round(statistics.median(inside), 2),
        round(ratio, 2),
    )


def table(rows):
    lines = ["| project | result outside | same inside | s outside | s inside | ratio |", "|---|---|---|---|---|---|"]
    lines += [f"| {n} | {w} | {'yes' if same else '**no**'} | {a} | {b} | {r} |" for n, w, same, a, b, r in rows]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
