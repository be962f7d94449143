"""Slowdown of real work in a box against no sandbox, interleaved: forks, opens, git status, compileall, making files.

    .venv/bin/python -m bench.realwork [--rounds N] [--files N] [--only WORDS]

Each piece of work is timed inside (start-up excluded) and as a whole; the ratio is the median of the pairs' ratios.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

MAIN = "import sys; from ringfence.cli.main import main; sys.exit(main(sys.argv[1:]))"
POLICY = """\
version: 1
fail_closed: true
working_tree: {allowed_roots: ["."]}
process: {max_runtime_ms: 300000, max_output_bytes: 1048576}
commands:
  allow: [{argv_prefix: ["python3", "work.py"]}]
files:
  read: {allow: ["**"]}
  write: {allow: ["**"]}
  delete: {allow: ["**"]}
"""
WORK = """
import compileall, os, shutil, subprocess, sys, time

def forks():
    for _ in range(500):
        subprocess.run(["/bin/true"], check=True)

def opens():
    for number in range(5000):
        with open(f"files/{number % 100}/{number // 100}", "rb") as file:
            file.read()

def status():
    subprocess.run(["git", "status", "--porcelain"], check=True, stdout=subprocess.DEVNULL)

def compiled():
    compileall.compile_dir("library", quiet=1, force=True)

def shell(line):
    return lambda: subprocess.run(["sh", "-c", line], check=True, stdout=subprocess.DEVNULL)

def repository():
    run = shell("mkdir repo && cd repo && git init -q && git config gc.auto 0 && mkdir a b"
        " && for n in $(seq 1000); do echo $n > a/$n; echo $n > b/$n; done && git add -A"
        " && git -c user.name=P -c user.email=p@example.org commit -qm x")
    run()

nothing = lambda: None
work, before, after = {
    "500 forks": (forks, nothing, nothing),
    "5,000 opens": (opens, nothing, nothing),
    "git status": (status, nothing, nothing),
    "compileall": (compiled, nothing, nothing),
    "cp -r of 5,000 files": (shell("cp -r made copied"), nothing, shell("rm -rf copied")),
    "untar of 5,000 files": (shell("mkdir untarred && tar xf made.tar -C untarred"), nothing, shell("rm -rf untarred")),
    "rm -r of 5,000 files": (shell("rm -r copied"), shell("cp -r made copied"), nothing),
    "git checkout of 2,000 files": (shell("cd repo && git checkout -q -f"), shell("rm -rf repo/a repo/b"), nothing),
    "5,000 appends": (shell("for n in $(seq 5000); do echo $n >> log; done"), nothing, shell("rm -f log")),
    "ninety-nine C files": (shell("cd sources && for n in $(seq 99); do cc -c $n.c; done"), nothing, shell("rm -f sources/*.o")),
}[sys.argv[1]]
made = "cp" in sys.argv[1] or "tar" in sys.argv[1] or "rm -r" in sys.argv[1]
if made:
    for number in range(5000):
        os.makedirs(f"made/{number % 50}", exist_ok=True)
        with open(f"made/{number % 50}/{number}", "w", encoding="ascii") as file:
            file.write(f"line {number}\\n" * 20)
    shell("tar cf made.tar made")()
if "checkout" in sys.argv[1]:
    repository()
if "C files" in sys.argv[1]:
    os.makedirs("sources")
    for number in range(1, 100):
        with open(f"sources/{number}.c", "w", encoding="ascii") as file:
            file.write(f"int f{number}(int a) {{ return a * {number}; }}\\n")
if sys.argv[1] != "500 forks":
    before(); work(); after()
times = []
for _ in range(3):
    before()
    begin = time.perf_counter()
    work()
    times.append(time.perf_counter() - begin)
    after()
shutil.rmtree("made", ignore_errors=True)
for left in ("repo", "sources"):
    shutil.rmtree(left, ignore_errors=True)
if made:
    os.remove("made.tar")
print(sorted(times)[1])
"""
PIECES = (
    "500 forks",
    "5,000 opens",
    "git status",
    "compileall",
    "cp -r of 5,000 files",
    "untar of 5,000 files",
    "rm -r of 5,000 files",
    "git checkout of 2,000 files",
    "5,000 appends",
    "ninety-nine C files",
)


def prepare(folder, files):
    tree = f"{folder}/tree"
    for number in range(files):
        path = f"{tree}/files/{number % 100}/{number // 100}"
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="ascii") as file:
            file.write(f"line {number}\n" * 20)
    library = os.path.dirname(os.__file__)
    for name in ("json", "email", "asyncio", "unittest", "http"):
        shutil.copytree(f"{library}/{name}", f"{tree}/library/{name}", ignore=shutil.ignore_patterns("__pycache__"))
    for name, text in (("sandbox_policy.yaml", POLICY), ("work.py", WORK), (".gitignore", "__pycache__/\n")):
        with open(f"{tree}/{name}", "w", encoding="utf-8") as file:
            file.write(text)
    for words in (
        ["init", "-q"],
        ["add", "-A"],
        ["-c", "user.name=P", "-c", "user.email=p@example.org", "commit", "-qm", "x"],
    ):
        subprocess.run(["git", *words], cwd=tree, check=True)
    subprocess.run(["git", "status"], cwd=tree, check=True, stdout=subprocess.DEVNULL)
    return tree


def once(words, tree):
    begin = time.perf_counter()
    done = subprocess.run(words, cwd=tree, capture_output=True, text=True, timeout=300, check=False)
    whole = time.perf_counter() - begin
    if done.returncode:
        raise SystemExit(f"{words}: {done.stdout}{done.stderr}")
    return float(done.stdout.split()[0]), whole


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--files", type=int, default=20_000)
    options.add_argument("--only", default="", help="only pieces whose name holds these words")
    args = options.parse_args()
    folder = tempfile.mkdtemp(prefix="realwork-", dir=os.path.expanduser("~/.cache"))
    ringfence = [sys.executable, "-c", MAIN, "--test-root", f"{folder}/ringfence"]
    try:
        tree = prepare(folder, args.files)
        subprocess.run([*ringfence, "policy", "trust", "--yes"], cwd=tree, check=True, stdout=subprocess.DEVNULL)
        print("| work | outside ms | in a box ms | ratio inside | ratio as a whole |\n|---|---|---|---|---|")
        for piece in [name for name in PIECES if args.only in name]:
            words = ["python3", "work.py", piece]
            once(words, tree), once([*ringfence, "run", "--", *words], tree)
            pairs = [(once(words, tree), once([*ringfence, "run", "--", *words], tree)) for _ in range(args.rounds)]
            inside = statistics.median(b[0] / a[0] for a, b in pairs)
            whole = statistics.median(b[1] / a[1] for a, b in pairs)
            low, high = (statistics.median(pair[side][0] for pair in pairs) * 1000 for side in (0, 1))
            print(f"| {piece} | {low:.1f} | {high:.1f} | {inside:.2f} | {whole:.2f} |", flush=True)
    finally:
        subprocess.run([*ringfence, "stop"], check=False, capture_output=True, timeout=60)
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
