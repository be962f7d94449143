"""Every part killed with SIGKILL at random times: nothing is left over and the tree is of one piece."""

import contextlib
import os
import random
import re
import signal
import subprocess
import sys
import time

import pytest

MAIN = "import sys; from ringfence.cli.main import main; sys.exit(main(sys.argv[1:]))"
FILES = 12
POLICY = """\
version: 1
fail_closed: true
working_tree: {allowed_roots: ["."]}
process: {max_runtime_ms: 60000, max_output_bytes: 65536}
commands:
  allow: [{argv_prefix: ["sh", "write.sh"]}, {argv_prefix: ["true"]}]
files:
  read: {allow: ["**"]}
  write: {allow: ["**"]}
  delete: {allow: ["**"]}
"""
WRITE = f"""\
i=0
while [ $i -lt {FILES} ]; do echo "$1 whole" >src/new; mv src/new src/f$i; i=$((i+1)); sleep 0.01; done
(sleep 30 &) >/dev/null 2>&1 </dev/null
sleep "$2"
"""
PARTS = ("client", "supervisor", "launcher", "box", "supervisor and launcher", "everything")
SETTLE = 60.0


class Yard:
    """One repository and one ringfence of its own, with every process of it that was ever seen."""

    def __init__(self, base):
        self.base = str(base)
        self.root, self.repo = f"{self.base}/ringfence", f"{self.base}/repo"
        os.makedirs(f"{self.repo}/src")
        for name, text in (("sandbox_policy.yaml", POLICY), ("write.sh", WRITE)):
            with open(f"{self.repo}/{name}", "w", encoding="utf-8") as file:
                file.write(text)
        for number in range(FILES):
            self.put(number, "0 whole\n")
        who = ["-c", "user.name=P", "-c", "user.email=p@example.org"]
        for words in (["init", "-q"], ["add", "-A"], [*who, "commit", "-q", "-m", "x"]):
            subprocess.run(["git", *words], cwd=self.repo, check=True)
        self.seen = {}
        self.call("policy", "trust", "--yes")

    def put(self, number, text):
        with open(f"{self.repo}/src/f{number}", "w", encoding="utf-8") as file:
            file.write(text)

    def words(self, *words):
        return [sys.executable, "-c", MAIN, "--test-root", self.root, *words]

    def call(self, *words):
        return subprocess.run(
            self.words(*words), cwd=self.repo, capture_output=True, text=True, timeout=180, check=False,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip

    def tear_down(self):
        """Everything, the uncommitted work that killed commands left named one by one."""
        told = self.call("teardown")
        unfinished = re.findall(r"^kept: mission (\S+):", told.stdout, re.MULTILINE)
        assert told.returncode == (1 if unfinished else 0), told.stdout + told.stderr
        discarded = self.call("teardown", *(word for name in unfinished for word in ("--discard", name)))
        assert discarded.returncode == 0, discarded.stdout + discarded.stderr
        assert "nothing of any box is left" in discarded.stdout

    def begin(self, generation, linger):
        return subprocess.Popen(
            self.words("run", "--", "sh", "write.sh", str(generation), str(linger)), cwd=self.repo,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def supervisors(self):
        return [pid for pid, line in cmdlines() if b"daemon.py" in line and self.root.encode() in line]

    def family(self):
        """Pids below the supervisors: launchers first, then boxes and what runs in them; all are remembered."""
        children, levels, found = parents(), [], self.supervisors()
        while found:
            for pid in found:
                self.seen[pid] = started(pid)
            levels.append(found)
            found = [pid for pid, parent in children.items() if parent in set(found)]
        return levels

    def targets(self, part, client):
        levels = self.family()
        below = {"supervisor": levels[:1], "launcher": levels[1:2], "box": levels[2:3]}
        below |= {"supervisor and launcher": levels[:2], "everything": levels, "client": []}
        pids = [pid for level in below[part] for pid in level]
        return [*pids, client] if part in {"client", "everything"} else pids

    def log(self):
        with contextlib.suppress(OSError), open(f"{self.root}/state/supervisor.log", encoding="utf-8") as file:
            return file.read()[-3000:]
        return ""

    def torn(self):
        """The command puts whole files in place one after the other, so whatever cut it short, each is whole, and an earlier
        one is never older than a later one. A commit that was applied in part, in its own order, breaks that."""
        found = []
        for number in range(FILES):
            with open(f"{self.repo}/src/f{number}", encoding="utf-8") as file:
                text = file.read()
            found.append(int(text.split()[0]) if text.endswith(" whole\n") else -1)
        return "" if found == sorted(found, reverse=True) and min(found) >= 0 else str(found)

    def alive(self):
        return [pid for pid, start in self.seen.items() if start and started(pid) == start]


def cmdlines():
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError), open(f"/proc/{name}/cmdline", "rb") as file:
                yield int(name), file.read()


def stat_fields(pid):
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()
    except OSError:
        return []


def parents():
    return {int(n): int(f[1]) for n in os.listdir("/proc") if n.isdigit() and (f := stat_fields(n))}


def started(pid):
    fields = stat_fields(pid)
    return fields[19] if fields and fields[0] not in b"ZX" else b""


def groups_left(seen):
    """Control groups of the processes seen here; one of another process that had the same number once is nobody's here."""
    names = {f"ringfence.{pid}.{start.decode()}" for pid, start in seen.items() if start}
    left = []
    for folder, folders, _ in os.walk("/sys/fs/cgroup"):
        left += [f"{folder}/{name}" for name in folders if name in names]
    return left


def until(condition, seconds=SETTLE):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.05)
    return condition()


def one_round(yard, chance, generation):
    client = yard.begin(generation, chance.choice([0, 0, 0.2]))
    delay = chance.uniform(0, 0.8)
    part = chance.choice(PARTS)
    note = f"round {generation}: {part} killed after {delay:.3f} s"
    end = time.monotonic() + delay
    while time.monotonic() < end:
        yard.family()
        time.sleep(0.08)
    killed = yard.targets(part, client.pid)
    for pid in killed:
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)
    try:
        client.wait(120)
    except subprocess.TimeoutExpired:
        client.kill()
        client.wait()
        pytest.fail(f"{note}: the client hangs")
    after = yard.call("run", "--", "true")
    if after.returncode == 13:
        # It met a supervisor whose probe of the host was killed: nothing ran, which is right, and a new one starts anew.
        yard.call("stop")
        after = yard.call("run", "--", "true")
    assert after.returncode == 0, f"{note}: {after.stderr}\n{yard.log()}"
    assert not yard.torn(), f"{note}: the tree is torn: {yard.torn()}"
    current = {pid for level in yard.family() for pid in level}
    left = [pid for pid in yard.alive() if pid not in current]
    assert until(lambda: not [pid for pid in yard.alive() if pid not in current]), f"{note}: left over: {left}"


def finish(yard):
    """Tear down and verify; each of them may start a supervisor, and none is left."""
    try:
        yard.tear_down()
        verified = yard.call("ledger", "verify")
        assert verified.returncode in {0, 14}, verified.stdout + verified.stderr
        yard.family()
    finally:
        yard.call("stop")
    assert until(lambda: not yard.alive() and not yard.supervisors()), yard.alive()


def rounds(base, count, seed):
    yard = Yard(base)
    chance = random.Random(seed)
    try:
        for generation in range(1, count + 1):
            one_round(yard, chance, generation)
            if generation % 50 == 0:
                print(f"{generation} kills survived", flush=True)
    finally:
        stopped = yard.call("stop")
    assert stopped.returncode == 0, stopped.stderr
    assert until(lambda: not yard.alive()), yard.alive()
    finish(yard)
    with open("/proc/self/mountinfo", encoding="utf-8") as file:
        assert yard.base not in file.read()
    assert not groups_left(yard.seen)
    check = subprocess.run(["git", "fsck", "--strict"], cwd=yard.repo, capture_output=True, text=True, check=False)
    assert check.returncode == 0, check.stderr


@pytest.mark.needs_userns
def test_a_kill_at_any_time_leaves_nothing_and_tears_nothing(tmp_path):
    rounds(tmp_path, 8, seed=20)


@pytest.mark.slow
@pytest.mark.needs_userns
def test_five_hundred_kills(tmp_path):
    rounds(tmp_path, 500, seed=500)
