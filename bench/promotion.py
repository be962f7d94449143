"""``ringfence promote check``, whole process: 10,000 tracked files with 200 changed, and a history of 200,000 commits.

Baseline of each row: ``git log`` of the same range in the same repository, in the same interleaved rounds.
"""

import importlib.util
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time

ROUNDS = 7
ROOT = pathlib.Path(__file__).parents[1]
RINGFENCE = [sys.executable, "-m", "ringfence.cli.main"]


def double():
    spec = importlib.util.spec_from_file_location("promotion_shop_double", ROOT / "tests/doubles/promotion_shop.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["promotion_shop_double"] = module
    spec.loader.exec_module(module)
    return module


def many_files(made, folder):
    """10,000 tracked files, 200 of them changed."""
    limits = {**made.POLICY["limits"], "paths": 300, "added_bytes": 1_000_000}
    line = b"VALUE_%d = 'some ordinary text in a line of code'  # and a comment\n"
    files = {
        f"services/cart/m{i // 100}/f{i % 100}.py": b"".join(line % (i + j) for j in range(20)) for i in range(10_000)
    }
    shop = made.Shop(folder, policy={**made.POLICY, "limits": limits}, **files)
    changed = {path: files[path] + line % 7 for path in list(files)[:10_000:50]}
    return shop.change(changed).write()


def long_history(made, folder):
    """200,000 commits below the base."""
    shop = made.Shop(folder)
    stream = [f"reset refs/heads/long\nfrom {shop.base}\n\n".encode()]
    for i in range(200_000):
        body = b"%d\n" % i
        stream.append(
            b"commit refs/heads/long\ncommitter N <n@orchard.example> %d +0000\ndata 1\nx" % (1_600_000_000 + i)
            + b"\nM 100644 inline log.txt\ndata %d\n%s\n" % (len(body), body)
        )
    subprocess.run(["git", "fast-import", "--quiet"], cwd=shop.git_dir, input=b"".join(stream), check=True)
    show = ["git", "rev-parse", "refs/heads/long", "refs/heads/long^{tree}"]
    out = subprocess.run(show, cwd=shop.git_dir, check=True, capture_output=True, text=True).stdout
    shop.base, shop.base_tree = out.split()
    shop.files["log.txt"] = b"199999\n"
    shop.objects.ref("refs/heads/main", shop.base)
    return shop.change().write()


def processor_time():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measure(name, case, made):
    shop = case.shop
    words = ["promote", "check", "--repo", shop.git_dir, "--base", shop.base, "--head", case.head]
    words += ["--trust", shop.trust, "--evidence", case.evidence, "--at", made.NOW]
    check = [*RINGFENCE, "--test-root", shop.folder / "state", *words]
    log = ["git", f"--git-dir={shop.git_dir}", "log", "--raw", "-z", f"{shop.base}..{case.head}"]
    times = {"check": [], "git log --raw": []}
    for _ in range(ROUNDS):
        for label, command in (("check", check), ("git log --raw", log)):
            started, spent = time.perf_counter(), processor_time()
            done = subprocess.run([*map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
            times[label].append((time.perf_counter() - started, processor_time() - spent))
            if done.returncode:
                sys.exit(f"{label} on {name} ended with {done.returncode}:\n{done.stdout.decode()}")
    for label, taken in times.items():
        wall, spent = zip(*taken, strict=True)
        line = f"{name:28} {label:14} wall: median {statistics.median(wall):6.3f} s, worst {max(wall):6.3f} s"
        print(f"{line}   processor: median {statistics.median(spent):6.3f} s")


def main():
    made = double()
    for name, build in (("10,000 files, 200 changed", many_files), ("200,000 commits", long_history)):
        with tempfile.TemporaryDirectory(prefix="promotion-bench-") as folder:
            measure(name, build(made, pathlib.Path(folder)), made)


if __name__ == "__main__":
    main()
