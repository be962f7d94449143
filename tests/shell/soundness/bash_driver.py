"""Runs lines in real bash and reports every program that started. A script of its own: python bash_driver.py JOB.json OUT.json.

Programs on PATH are recorders. The driver is the reaper of everything it starts, so that a background job is waited for
and no record lands in the next line's list.
"""

import ctypes
import json
import os
import shutil
import subprocess
import sys
import time

SUBREAPER = 36


def reap(deadline):
    """Wait for every child, orphans included; kill what is left at the deadline."""
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            if time.monotonic() > deadline:
                for child in children():
                    try:
                        os.kill(child, 9)
                    except OSError:
                        pass
            time.sleep(0.001)


def children():
    with open(f"/proc/self/task/{os.getpid()}/children") as file:
        return [int(pid) for pid in file.read().split()]


def records(path):
    try:
        with open(path, "rb") as file:
            parts = file.read().split(b"\0")
    except FileNotFoundError:
        return []
    os.unlink(path)
    found, index = [], 0
    texts = [part.decode("utf-8", "surrogateescape") for part in parts]
    while index < len(texts) - 1:
        count = int(texts[index + 3])
        found.append([texts[index + 1], texts[index + 2], texts[index + 4 : index + 4 + count]])
        index += 4 + count
    return found


def fresh(home, start):
    shutil.rmtree(home, ignore_errors=True)
    os.makedirs(start)
    for folder in ("d1", "d2", "d1/d3"):
        os.makedirs(os.path.join(start, folder))
    for name in ("one.txt", "two.txt", "d1/three.txt", "-n.txt"):
        with open(os.path.join(start, name), "w") as file:
            file.write("p2 word\n")


def tree(home):
    return sorted(os.path.join(folder, name) for folder, _, names in os.walk(home) for name in names)


def main():
    with open(sys.argv[1]) as file:
        job = json.load(file)
    ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0)
    home, start, log = job["home"], job["start"], job["log"]
    environment = {"PATH": job["path"], "HOME": home, "LC_ALL": "C.UTF-8", "V": "v1 v2", "W": "w"}
    fresh(home, start)
    before = tree(home)
    results = []
    for line in job["lines"]:
        if "\0" in line:
            results.append({"records": [], "files": []})
            continue
        command = [*job["bash"], line.encode("utf-8", "surrogateescape")]
        process = subprocess.Popen(
            command,
            cwd=start,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            process.wait(timeout=2)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            process.wait()
        reap(time.monotonic() + 1)
        after = tree(home)
        results.append({"records": records(log), "files": [path for path in after if path not in before]})
        if after != before or not os.path.isdir(os.path.join(start, "d1/d3")):
            fresh(home, start)
    with open(sys.argv[2], "w") as file:
        json.dump(results, file)


main()
