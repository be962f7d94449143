"""Start of a box against raw ``bwrap --ro-bind / / --unshare-all true``, interleaved; memory; 50 at once; real work.

``python -m bench box`` runs as whoever starts it: once as root and once as an ordinary user tell the whole story.
"""

import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import threading
import time

from ringfence.model.box import Layer, Limits
from ringfence.model.ids import Bytes, CallId, Millis
from ringfence.sandbox.host import gather_host_facts
from ringfence.sandbox.launcher import Launcher
from ringfence.sandbox.plan import plan_box

ROUNDS, AT_ONCE = 40, 50
BWRAP = ["bwrap", "--ro-bind", "/", "/", "--unshare-all", "true"]
LIMITS = Limits(runtime=Millis(120_000), output=Bytes(1 << 20))
WORK = {
    "500 forks and execs": ("/bin/sh", "-c", "i=0; while [ $i -lt 500 ]; do /usr/bin/true; i=$((i+1)); done"),
    "5,000 opens and reads": (
        "/usr/bin/python3",
        "-c",
        "import os\nfor n in range(5000):\n    f = os.open(f'files/{n % 1000}', os.O_RDONLY); os.read(f, 4096); os.close(f)",
    ),
    "git status, 20,000 files": ("git", "status", "--porcelain"),
    "compileall of the standard library's json, email, http, xml": (
        "/usr/bin/python3",
        "-c",
        (
            "import compileall, json, os, shutil, sysconfig\n"
            "base = sysconfig.get_path('stdlib')\n"
            "for p in ('json', 'email', 'http', 'xml'):\n"
            "    shutil.copytree(f'{base}/{p}', f'compiled/{p}', ignore=shutil.ignore_patterns('__pycache__'))\n"
            "compileall.compile_dir('compiled', quiet=2, force=True)\nshutil.rmtree('compiled')"
        ),
    ),
}


class Bench:
    """A launcher over a small repository."""

    def __init__(self, folder):
        self.folder = folder
        self.tree = f"{folder}/tree"
        self.facts = None
        self.null = os.open("/dev/null", os.O_RDWR)
        os.makedirs(f"{self.tree}/files")
        for number in range(1000):
            pathlib.Path(f"{self.tree}/files/{number}").write_text("x" * 2000)
        self.launcher = Launcher.spawn(f"{folder}/state")
        self.facts = gather_host_facts(f"{folder}/state", path="/usr/local/bin:/usr/bin:/bin")
        self.layer = self.new_layer("0")

    def new_layer(self, name):
        for part in ("u", "w"):
            os.mkdir(f"{self.folder}/{part}{name}")
        info = os.stat(self.tree)
        return Layer(
            lower=self.tree, upper=f"{self.folder}/u{name}", work=f"{self.folder}/w{name}", target=self.tree,
            owner=(info.st_uid, info.st_gid),
        )  # fmt: skip

    def plan(self, *argv, layer=None):
        return plan_box(
            call_id=CallId("bench"), argv=argv, cwd=self.tree, facts=self.facts, layer=layer or self.layer, limits=LIMITS,
            caller_env={"PATH": "/usr/bin:/bin"},
        )  # fmt: skip

    def run(self, *argv, layer=None):
        begun = time.perf_counter()
        box = self.launcher.start(self.plan(*argv, layer=layer), stdin=self.null, stdout=self.null, stderr=self.null)
        execution = box.wait()
        if execution.exit != 0:
            sys.exit(f"{argv} ended with {execution.exit}, {execution.signal}, {execution.ended_by}")
        return time.perf_counter() - begun


def plain(argv, cwd):
    begun = time.perf_counter()
    subprocess.run(
        argv, cwd=cwd, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    return time.perf_counter() - begun


def start(bench):
    for _ in range(3):
        bench.run("/usr/bin/true")
        plain(BWRAP, "/")
    pairs = [(bench.run("/usr/bin/true"), plain(BWRAP, "/")) for _ in range(ROUNDS)]
    ours, theirs = zip(*pairs, strict=True)
    ratio = statistics.median(a / b for a, b in pairs)
    print(
        f"start and end, {ROUNDS} pairs: ours {ms(ours)} (min {min(ours) * 1e3:.1f}), bwrap {ms(theirs)}: {ratio:.2f} x"
    )


def ms(values):
    return f"{statistics.median(values) * 1e3:.1f} ms"


def memory(bench):
    box = bench.launcher.start(
        bench.plan("/usr/bin/sleep", "2"), stdin=bench.null, stdout=bench.null, stderr=bench.null
    )
    time.sleep(0.5)
    try:
        own = sum(_private(pid) for pid in box.pids())
        print(f"memory of its own (private pages of init and sleep): {own / 1024:.1f} MiB")
    except PermissionError:
        print("memory of its own: only root can read it")
    box.wait()


def _private(pid):
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
        return sum(int(line.split()[1]) for line in file if line.startswith("Private_"))


def at_once(bench):
    layers = [bench.new_layer(f"-{n}") for n in range(AT_ONCE)]
    failures = []

    def one(layer):
        try:
            bench.run("/usr/bin/sleep", "1", layer=layer)
        except BaseException as fault:  # noqa: BLE001  counted
            failures.append(fault)

    threads = [threading.Thread(target=one, args=(layer,)) for layer in layers]
    begun = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(f"{AT_ONCE} x sleep 1 at once: {time.perf_counter() - begun:.2f} s, {len(failures)} failures")


def work(bench, rounds=5):
    for number in range(20_000):
        folder = f"{bench.tree}/many/{number // 200}"
        os.makedirs(folder, exist_ok=True)
        pathlib.Path(f"{folder}/{number}").write_text("")
    git = ["git", "-c", "user.name=b", "-c", "user.email=b@example.org"]
    for line in ([*git, "init", "-q"], [*git, "add", "."], [*git, "commit", "-qm", "x"]):
        subprocess.run(line, cwd=bench.tree, check=True)
    layer = bench.new_layer("-work")
    for name, argv in WORK.items():
        bench.run(*argv, layer=layer)
        plain(argv, bench.tree)
        pairs = [(bench.run(*argv, layer=layer), plain(argv, bench.tree)) for _ in range(rounds)]
        ratio = statistics.median(a / b for a, b in pairs)
        ours, theirs = zip(*pairs, strict=True)
        print(f"{name}: {ms(ours)} in a box, {ms(theirs)} without: {ratio:.2f} x (start of the box included)")


def main():
    with tempfile.TemporaryDirectory(dir="/var/tmp", ignore_cleanup_errors=True) as folder:
        bench = Bench(folder)
        print(f"as uid {os.getuid()}, load {os.getloadavg()[0]:.1f}")
        start(bench)
        memory(bench)
        at_once(bench)
        work(bench)
        bench.launcher.close()
        for entry in os.scandir(folder):
            if entry.name.startswith("w"):
                os.chmod(f"{entry.path}/work", 0o700)


if __name__ == "__main__":
    main()
