"""The overlay and the gate over a tree of 20,000 files: layer and mount, list, discard, commit of 100 files, history.

Baselines in the same interleaved rounds: ``cp -a`` of the 100 changed files with ``sync -f`` for the commit. The
decider is the policy engine with the policy below; set-up and the box's own work are not counted.
"""

import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

from ringfence import Policy
from ringfence.model.ids import MissionId
from ringfence.sandbox.worktree.tree import Worktree

FILES, CHANGED, ROUNDS = 20_000, 100, 15
POLICY = """\
version: 1
fail_closed: true
files:
  write: {allow: ["**"]}
  delete: {allow: ["**"]}
patterns:
  - {id: key, on: [file.write.content], regex: "AKIA[0-9A-Z]{16}", tier: deny}
"""
GIT = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1"}
MOUNT = 'mount -t overlay o -o "lowerdir=$L,upperdir=$U,workdir=$W,userxattr" "$L" || exit 9; cd "$L"; '
MOUNT_TIME = (
    "import time,os,ctypes,sys;l=ctypes.CDLL(None,use_errno=True);a=[s.encode() for s in sys.argv[1:]];"
    "t=time.perf_counter();"
    "r=l.mount(b'o',a[0],b'overlay',0,b'lowerdir='+a[0]+b',upperdir='+a[1]+b',workdir='+a[2]+b',userxattr');"
    "e=time.perf_counter()-t;print(e if r==0 else 'failed')"
)


def git(root, *args):
    config = ["-c", "user.name=B", "-c", "user.email=b@example.org", "-c", "gc.auto=0"]
    subprocess.run(["git", *config, *args], cwd=root, env=GIT, check=True, capture_output=True)


def make_tree(root):
    for number in range(FILES):
        folder = f"{root}/d{number // 100:03d}"
        if number % 100 == 0:
            os.makedirs(folder)
        with open(f"{folder}/f{number}.txt", "w", encoding="utf-8") as stream:
            stream.write(f"file {number}\n" * 20)
    git(root, "init", "-q", "-b", "main")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "first")
    git(root, "repack", "-adq")  # as a clone has it


def box(layer, script):
    env = {**GIT, "L": layer.lower, "U": layer.upper, "W": layer.work}
    subprocess.run(["unshare", "-Urm", "bash", "-euc", MOUNT + script], env=env, check=True, capture_output=True)


def mount_seconds(layer):
    words = ["unshare", "-Urm", sys.executable, "-I", "-S", "-c", MOUNT_TIME, layer.lower, layer.upper, layer.work]
    return float(subprocess.run(words, capture_output=True, check=True, text=True).stdout)


def timed(times, name, action):
    start, used = time.perf_counter(), os.times()
    result = action()
    wall, now = time.perf_counter() - start, os.times()
    cpu = sum(now[:4]) - sum(used[:4])
    times.setdefault(name, []).append((wall, cpu))
    return result


def copied(root, number):
    """What a plain copy of the same files costs, made durable the same way."""
    target = f"{root}.copy{number}"
    names = [f"{root}/d{n:03d}/f{n * 100}.txt" for n in range(CHANGED)]
    os.mkdir(target)
    subprocess.run(["cp", "-a", *names, target], check=True)
    subprocess.run(["sync", "-f", target], check=True)


def main():
    times = {}
    with tempfile.TemporaryDirectory(dir=pathlib.Path(__file__).parent.parent) as base:
        root = f"{base}/tree"
        os.mkdir(root)
        make_tree(root)
        policy = Policy.parse(POLICY, root=root)
        tree = Worktree.open(root, f"{base}/state")
        mission = MissionId("bench")
        for number in range(ROUNDS):
            layer = timed(times, "layer() ready to mount", lambda: tree.layer(mission))
            times.setdefault("mount(2) of the overlay", []).append((mount_seconds(layer), 0.0))
            edit = f"for n in $(seq 0 {CHANGED - 1}); do echo {number} >> d$(printf %03d $n)/f${{n}}00.txt; done"
            box(layer, edit)
            found = timed(times, f"changes(), {CHANGED} changed", lambda layer=layer: tree.changes(layer))
            assert len(found) == CHANGED
            timed(times, "discard()", lambda layer=layer: tree.discard(layer))
            layer = tree.layer(mission)
            box(layer, edit)
            report = timed(times, f"commit(), {CHANGED} files", lambda layer=layer: tree.commit(layer, policy, now=0))
            assert len(report.committed) == CHANGED, report
            timed(times, "cp -a of the same files, synced", lambda n=number: copied(root, n))
            layer = tree.layer(mission)
            box(layer, f"git -c user.name=B -c user.email=b@example.org commit -qam {number}")
            request = tree.bundle_request(layer)
            box(layer, " ".join(request.argv))
            taken = timed(
                times, f"take_history(), a commit of {CHANGED} files",
                lambda layer=layer: tree.take_history(layer, policy, now=0),
            )  # fmt: skip
            assert taken.moved, taken
    print(f"{'':44} {'median':>10} {'fastest':>10} {'cpu':>8}   (ms; cpu of git and cp included)")
    for name, values in times.items():
        walls = sorted(wall for wall, _ in values)
        cpu = statistics.mean(cpu for _, cpu in values)
        print(f"{name:44} {statistics.median(walls) * 1000:10.2f} {walls[0] * 1000:10.2f} {cpu * 1000:8.1f}")


if __name__ == "__main__":
    main()
