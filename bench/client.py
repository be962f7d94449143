"""A whole command, from the client's first instruction to its exit: ``ringfence run -- true`` against bare bubblewrap.

Baseline: ``bwrap --ro-bind / / --unshare-all true`` in the same interleaved rounds. Then 50 boxes at once.
"""

import concurrent.futures
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROUNDS = 40
POLICY = """\
version: 1
fail_closed: true
commands:
  allow:
    - argv_prefix: ["true"]
    - argv_prefix: ["sleep"]
"""


def timed(words, cwd):
    started = time.perf_counter()
    done = subprocess.run(words, cwd=cwd, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
    elapsed = time.perf_counter() - started
    if done.returncode:
        sys.exit(f"{words} failed with {done.returncode}: {done.stderr.decode()}")
    return elapsed


def main():
    ringfence = str(pathlib.Path(sys.executable).with_name("ringfence"))
    client = str(pathlib.Path(__file__).parent.parent / "src" / "ringfence" / "cli" / "client.py")
    with tempfile.TemporaryDirectory(dir=pathlib.Path(__file__).parent.parent) as folder:
        project = pathlib.Path(folder) / "project"
        project.mkdir()
        (project / "sandbox_policy.yaml").write_text(POLICY)
        subprocess.run(["git", "init", "-q", "."], cwd=project, check=True)
        state = str(pathlib.Path(folder) / "state")
        os.mkdir(state, 0o700)
        base = [ringfence, "--test-root", state]
        subprocess.run([*base, "policy", "trust", "--yes"], cwd=project, check=True, stdout=subprocess.DEVNULL)
        variants = {
            "bwrap --ro-bind / / --unshare-all true": ["bwrap", "--ro-bind", "/", "/", "--unshare-all", "true"],
            "ringfence run -- true": [*base, "run", "--", "true"],
            "thin client (python -I -S client.py)": [
                sys.executable,
                "-I",
                "-S",
                client,
                "--test-root",
                state,
                "run",
                "--",
                "true",
            ],
        }
        times = {name: [] for name in variants}
        for round_number in range(ROUNDS + 3):
            for name, words in variants.items():
                elapsed = timed(words, project)
                if round_number >= 3:
                    times[name].append(elapsed)
        baseline = times["bwrap --ro-bind / / --unshare-all true"]
        for name, values in times.items():
            ratio = statistics.median(value / base for value, base in zip(values, baseline, strict=True))
            print(f"{name:42} p50 {statistics.median(values) * 1000:6.1f} ms   {ratio:5.2f} x")
        started = time.perf_counter()
        with concurrent.futures.ThreadPoolExecutor(50) as pool:
            codes = list(
                pool.map(
                    lambda _: subprocess.run([*base, "run", "--", "sleep", "1"], cwd=project, check=False).returncode,
                    range(50),
                )
            )
        print(
            f"50 x `sleep 1` at once: {time.perf_counter() - started:.2f} s, {sum(code != 0 for code in codes)} failures"
        )
        subprocess.run([*base, "stop"], cwd=project, check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
