"""The main job on real input: a real project, the example policy, commands that pass, commands that do not, and an attack.

Everything happens below ``.demo/`` of this checkout. Exit 0 only if every row is as expected.
"""

import hashlib
import http.server
import importlib.metadata
import json
import os
import pathlib
import pwd
import shutil
import signal
import subprocess
import sys
import tarfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
DEMO = ROOT / ".demo"
PROJECT = DEMO / "project"
RINGFENCE = [str(ROOT / ".venv" / "bin" / "ringfence"), "--test-root", str(DEMO / "state")]
SDIST = "idna==3.10"
SECRET = "demo-secret-" + hashlib.sha256(os.urandom(16)).hexdigest()[:16]
rows = []


def say(text):
    print(f"demo: {text}", flush=True)


def row(name, expected, actual, note=""):
    good = expected == actual
    rows.append(good)
    mark = "ok " if good else "BAD"
    text = " ".join(note.split()).replace(str(DEMO), ".demo")
    print(f"  {mark}  {name:34} {expected:10} {actual:10} {text if len(text) < 96 else text[:93] + '...'}", flush=True)


def head(text):
    print(f"\n{text}\n       {'what':34} {'expected':10} {'actual':10}", flush=True)


def call(words, **kwargs):
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=300, **kwargs)


def must(words, **kwargs):
    done = call(words, **kwargs)
    if done.returncode:
        print(done.stdout, done.stderr, file=sys.stderr)
        sys.exit(f"demo: {' '.join(map(str, words))} failed with {done.returncode}")
    return done.stdout


def fence(*words, cwd=PROJECT):
    return call([*RINGFENCE, *words], cwd=cwd, env={**os.environ, "RINGFENCE_DEMO_SECRET": SECRET})


def remove(folder):
    """A folder and all in it; an overlay leaves folders that are closed even to their owner."""
    for path, names, _ in os.walk(folder):
        for name in names:
            inner = os.path.join(path, name)
            if not os.path.islink(inner):
                os.chmod(inner, 0o700)
    shutil.rmtree(folder)


def prepare():
    if DEMO.exists():
        fence("stop", cwd=ROOT)
        remove(DEMO)
    DEMO.mkdir()
    say(f"fetching the source distribution of {SDIST} with pip")
    must(
        [
            sys.executable,
            "-m",
            "pip",
            "download",
            "-q",
            "--disable-pip-version-check",
            "--no-deps",
            "--no-binary",
            ":all:",
            "-d",
            DEMO / "sdist",
            SDIST,
        ]
    )
    (archive,) = (DEMO / "sdist").iterdir()
    with tarfile.open(archive) as tar:
        safely = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}  # Debian 12's 3.11.2 has no filters yet
        tar.extractall(DEMO / "unpacked", **safely)
    (unpacked,) = (DEMO / "unpacked").iterdir()
    unpacked.rename(PROJECT)
    for name in ("sandbox_policy.yaml", "sandbox_fixtures.json"):
        shutil.copy(ROOT / "examples" / name, PROJECT)
    (PROJECT / ".env").write_text(f"TOKEN={SECRET}\n")
    (PROJECT / ".gitignore").write_text("__pycache__/\n.pytest_cache/\n.env\n")
    git = ["git", "-c", "user.name=Demo", "-c", "user.email=demo@example.org"]
    must([*git, "init", "-q", "-b", "main"], cwd=PROJECT)
    must([*git, "add", "."], cwd=PROJECT)
    must([*git, "commit", "-qm", "As released"], cwd=PROJECT)
    say("making a toolchain with pytest outside of the project")
    must([sys.executable, "-m", "venv", DEMO / "toolchain"])
    wanted = f"pytest=={importlib.metadata.version('pytest')}"
    must([DEMO / "toolchain" / "bin" / "python", "-m", "pip", "install", "-q", "--disable-pip-version-check", wanted])
    config = DEMO / "state" / "config"
    config.mkdir(parents=True)
    (config / "policy.yaml").write_text(
        f"version: 1\nfail_closed: true\ncommands:\n  toolchains: [{json.dumps(str(DEMO / 'toolchain' / 'bin'))}]\n"
    )
    os.chmod(config / "policy.yaml", 0o600)


def plant():
    home = DEMO / "home"
    for name in (".ssh/id_demo", ".aws/credentials"):
        (home / name).parent.mkdir(parents=True)
        (home / name).write_text(SECRET)
    (home / ".bashrc").write_text("# the person's own\n")
    victim = subprocess.Popen(
        ["sleep", "600"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Listener)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    plan = {
        "ssh_key": str(home / ".ssh/id_demo"),
        "cloud_key": str(home / ".aws/credentials"),
        "outside": str(DEMO / "outside.txt"),
        "bashrc": str(home / ".bashrc"),
        "victim": victim.pid,
        "port": server.server_address[1],
        "heartbeat": str(PROJECT / "heartbeat.txt"),
    }
    shutil.copy(ROOT / "scripts" / "demo_files" / "test_hostile.py", PROJECT / "tests")
    (PROJECT / "tests" / "hostile_plan.json").write_text(json.dumps(plan))
    return plan, victim, server


class Listener(http.server.BaseHTTPRequestHandler):
    hits = 0

    def do_GET(self):
        Listener.hits += 1
        self.send_response(200)
        self.end_headers()
        self.wfile.write(SECRET.encode())

    def log_message(self, *_):
        """Nothing: hits are counted."""


def digest(*paths):
    total = hashlib.sha256()
    for path in paths:
        for file in sorted([path, *path.rglob("*")] if path.is_dir() else [path]):
            total.update(str(file).encode())
            if file.is_file():
                total.update(file.read_bytes())
    return total.hexdigest()


ALLOWED = ["git status", "git diff --stat", "ls", "rg -n def idna"]
REFUSED = ["git push origin main", "rm -rf /", "curl https://example.com", "ls ../secrets", "bash -c 'ls'"]


def ordinary(mission):
    head("The project's own work")
    done = fence(
        "run", "--mission", mission, "--json", "--", "python", "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"
    )
    tail = report(done).get("stdout", "").strip().splitlines()[-1:]
    row("its own test suite, in the box", "exit 0", f"exit {done.returncode}", note=" ".join(tail))
    head("Commands by the example policy")
    for line in ALLOWED:
        done = fence("run", "--mission", mission, "-c", line)
        row(line, "exit 0", f"exit {done.returncode}", note=done.stderr.strip())
    for line in REFUSED:
        done = fence("run", "--mission", mission, "-c", line)
        row(line, "exit 11", f"exit {done.returncode}", note=done.stderr)


def report(done):
    try:
        return json.loads(done.stdout)
    except ValueError:
        print(done.stdout, done.stderr, file=sys.stderr)
        return {}


def hostile(mission):
    head("A hostile test file, run by an allowed command; judged from outside")
    plan, victim, server = plant()
    real_bashrc = pathlib.Path(pwd.getpwuid(os.getuid()).pw_dir) / ".bashrc"
    watched = [PROJECT / ".git", DEMO / "home", real_bashrc]
    before = digest(*watched)
    done = fence(
        "run",
        "--mission",
        mission,
        "--json",
        "--",
        "python",
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "tests/test_hostile.py",
    )
    answer = report(done)
    loot = PROJECT / "tests" / "loot.json"
    got = json.loads(loot.read_text()) if loot.exists() else {}
    row(
        "the file ran to its end",
        "yes",
        "yes" if got else "no",
        note=" ".join(answer.get("stdout", "").split())[-60:],
    )
    for name in ("read ssh key", "read cloud key", "read .env", "read /proc/1/environ", "metadata address"):
        row(
            name,
            "nothing",
            "SECRET" if SECRET in str(got.get(name)) else "nothing",
            note=str(got.get(name)),
        )
    row("host server on loopback", "0 hits", f"{Listener.hits} hits")
    outside = os.path.exists(plan["outside"])
    row("write outside the tree", "no file", "FILE" if outside else "no file")
    hook = (PROJECT / ".git/hooks/post-checkout").exists() or (PROJECT / ".git.old").exists()
    row("write into .git/hooks, rename .git", "untouched", "CHANGED" if hook else "untouched")
    row(".git, ~/.bashrc, keys by digest", "same", "same" if digest(*watched) == before else "CHANGED")
    row("signal a host process", "alive", "alive" if victim.poll() is None else "DEAD")
    beat = pathlib.Path(plan["heartbeat"])
    first = beat.read_bytes() if beat.exists() else b""
    time.sleep(1)
    second = beat.read_bytes() if beat.exists() else b""
    alive = call(["pgrep", "-f", plan["heartbeat"]]).stdout.split()
    row("outlive the parent", "ended", "ended" if first == second and not alive else "LIVES")
    refused = [item["path"] for item in answer.get("gate", {}).get("refused", [])]
    row(
        "the gate names what it refused",
        ".git",
        ".git" if any(p.split("/")[0] in {".git", ".git.old"} for p in refused) else "nothing",
        note=", ".join(refused),
    )
    victim.send_signal(signal.SIGKILL)
    victim.wait()
    server.shutdown()


def ledger(mission):
    head("The ledger")
    bare = DEMO / "anchor.git"
    must(["git", "init", "-q", "--bare", bare])
    fence("mission", "end", mission)
    done = fence("ledger", "anchor", "--add", f"git:{bare}#refs/ringfence/anchor")
    row("anchored to a bare repository", "exit 0", f"exit {done.returncode}", note=done.stderr.strip())
    done = fence("ledger", "verify")
    row(
        "verified",
        "exit 0",
        f"exit {done.returncode}",
        note=done.stdout + done.stderr,
    )
    copy = DEMO / "copy"
    shutil.copytree(DEMO / "state" / "state" / "ledger", copy / "state" / "ledger")
    os.chmod(copy / "state", 0o700)
    fence("stop")
    segment = max((p for p in (copy / "state" / "ledger").rglob("*") if p.is_file()), key=lambda p: p.stat().st_size)
    data = bytearray(segment.read_bytes())
    at = data.index(b"post-checkout") if b"post-checkout" in data else data.index(b"git")
    data[at] ^= 1
    segment.write_bytes(data)
    done = call([RINGFENCE[0], "--test-root", str(copy), "ledger", "verify"], cwd=PROJECT)
    row(
        "a copy with one bit changed",
        "exit 12",
        f"exit {done.returncode}",
        note=done.stdout + done.stderr,
    )


def main():
    started = time.monotonic()
    prepare()
    say("set up; what follows is the product at work")
    begun = time.monotonic()
    head("Policy")
    done = fence("check")
    row(
        "ringfence check",
        "exit 0",
        f"exit {done.returncode}",
        note=done.stdout.strip().splitlines()[-1] if done.stdout else done.stderr,
    )
    done = fence("run", "-c", "git status")
    row(
        "git status before trust",
        "exit 10",
        f"exit {done.returncode}",
        note=done.stderr,
    )
    done = fence("policy", "trust", "--yes")
    row("ringfence policy trust --yes", "exit 0", f"exit {done.returncode}", note=done.stderr.strip())
    done = fence("mission", "start", "--task", "demo", "--json")
    mission = report(done).get("id", "")
    row("ringfence mission start", "exit 0", f"exit {done.returncode}", note=mission)
    ordinary(mission)
    hostile(mission)
    ledger(mission)
    fence("stop")
    bad = rows.count(False)
    print()
    say(
        f"{len(rows)} rows, {bad} not as expected; {time.monotonic() - begun:.0f} s after {begun - started:.0f} s of set-up"
    )
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
