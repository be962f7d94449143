"""``python -m bench ledger``: ratios against limits measured in the same interleaved run (median of per-round ratios).

LEDGER_RECORDS (default 1,000,000) is the size of the log that is verified and searched.
"""

import hashlib
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import threading
import time

from ringfence.ledger import canonical, envelope, frame, tree
from ringfence.ledger.index import Index, Query
from ringfence.ledger.log import Ledger
from ringfence.ledger.scrub import SecretScrubber
from ringfence.ledger.standalone import VERIFIER
from ringfence.ledger.verify import verify
from ringfence.model.entry import Entry, EntryKind
from ringfence.model.ids import Micros, MissionId

START = 1_800_000_000_000_000
SLICE = 0.4
ROUNDS = 12


class Nothing:
    """Scrubs nothing: scrubbing is reported apart."""

    def suspects(self, encoded):
        return not encoded

    def scrub(self, body):
        return body

    def clean(self, text):
        return text


def entry(number: int) -> Entry:
    """A typical intent: about 800 bytes stored."""
    name = ("git", "pytest", "ls", "python")[number % 4]
    body = {
        "agent": "agent",
        "request": {"kind": "argv", "argv": [name, "-m", "x", f"tests/test_{number % 999}.py"]},
        "cwd": "/home/dev/repository",
        "facts": {
            "cwd": "/home/dev/repository",
            "home": "/home/dev",
            "root": "/home/dev/repository",
            "paths": [
                {
                    "asked": f"/home/dev/repository/src/{number % 999}.py",
                    "real": f"/home/dev/repository/src/{number % 999}.py",
                    "kind": "file",
                    "links": 1,
                }
            ],
            "programs": [{"name": name, "real": f"/usr/bin/{name}"}],
        },
        "decision": {
            "tier": "allow" if number % 50 else "deny",
            "policy": "ab" * 32,
            "reasons": [
                {
                    "rule": f"rule-{number % 20}",
                    "scope": "repository",
                    "place": "sandbox_policy.yaml:12:7",
                    "tier": "allow",
                    "matched": name,
                    "because": "ordinary test runs",
                }
            ],
        },
    }
    return Entry(
        kind=EntryKind.INTENT,
        time=Micros(START + number),
        mission=MissionId(f"m-{number // 1000}"),
        call=f"c-{number}",
        body=body,
    )


def flush_limit(path: str, size: int) -> list[float]:
    """Seconds of each overwrite + fdatasync of ``size`` bytes in zeros written before, for one slice of time."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT)
    try:
        room = 16 << 20
        if os.fstat(fd).st_size != room:
            for offset in range(0, room, 1 << 20):
                os.pwrite(fd, bytes(1 << 20), offset)
            os.fsync(fd)
        data, offset, times = os.urandom(size), 0, []
        end = time.perf_counter() + SLICE
        while (started := time.perf_counter()) < end:
            os.pwrite(fd, data, offset)
            os.fdatasync(fd)
            times.append(time.perf_counter() - started)
            offset = (offset + size) % (room - size)
        return times
    finally:
        os.close(fd)


ENTRIES = [entry(number) for number in range(4000)]
"""Made before: what a caller does is not the ledger's."""


def append_slice(ledger: Ledger, clients: int) -> tuple[list[list[float]], float]:
    """Each client's latencies over one slice."""
    latencies: list[list[float]] = [[] for _ in range(clients)]
    end = time.perf_counter() + SLICE

    def work(own: list[float], first: int) -> None:
        number = first
        while (started := time.perf_counter()) < end:
            ledger.append([ENTRIES[number % len(ENTRIES)]])
            own.append(time.perf_counter() - started)
            number += 1

    began = time.perf_counter()
    if clients == 1:
        work(latencies[0], 0)
    else:
        threads = [threading.Thread(target=work, args=(own, i * 500)) for i, own in enumerate(latencies)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return latencies, time.perf_counter() - began


def bench_append(folder: str) -> None:
    single, scrubbed, many, shared, fair, tail, overhead = [], [], [], [], [], [], []
    size = len(stored(entry(1)))
    with Ledger.open(f"{folder}/plain", secrets=Nothing()) as plain, Ledger.open(f"{folder}/scrub") as scrub:
        scrub.append([entry(0)])
        for _ in range(ROUNDS):
            limit = flush_limit(f"{folder}/limit", size)
            ((own,), took) = append_slice(plain, 1)
            ((own2,), took2) = append_slice(scrub, 1)
            rate = len(limit) / sum(limit)
            single.append(len(own) / took / rate)
            scrubbed.append(len(own2) / took2 / rate)
            overhead.append(2 * statistics.median(own2) / 0.050)
            clients, took8 = append_slice(plain, 8)
            counts = [len(c) for c in clients]
            many.append(sum(counts) / took8 / rate)
            shared.append(sum(counts) / took8 / (len(own) / took))
            fair.append(max(counts) / max(1, min(counts)))
            every = sorted(x for c in clients for x in c)
            tail.append(every[int(len(every) * 0.99)] / statistics.median(limit))
    middle = statistics.median
    print(f"single append / (overwrite + fdatasync)        {middle(single):6.2f}   goal >= 0.75")
    print(f"  with the default scrubbing                   {middle(scrubbed):6.2f}")
    print(f"8 clients / one client                         {middle(shared):6.2f}   goal >= 2.5")
    print(f"8 clients / (overwrite + fdatasync)            {middle(many):6.2f}")
    print(f"  fairness max/min                             {middle(fair):6.2f}   goal <= 1.5")
    print(f"  p99 / limit's p50                            {middle(tail):6.2f}   goal <= 10")
    print(f"two entries on a 50 ms command                 {middle(overhead) * 100:6.2f} % goal <= 2 %")


def stored(one: Entry) -> bytes:
    return frame.complete(
        envelope.prepare(one, body=canonical.encode(one.body), personal={}), "ab" * 32, 123456, one.time
    )


def best(work, count: int) -> float:
    times = []
    for _ in range(7):
        started = time.process_time()
        for _ in range(count):
            work()
        times.append((time.process_time() - started) / count)
    return min(times)


def bench_cpu() -> None:
    one = entry(7)
    line = stored(one)
    range_ = tree.Range()

    def whole() -> None:
        made = frame.complete(
            envelope.prepare(one, body=canonical.encode(one.body), personal={}), "ab" * 32, 123456, one.time
        )
        digest = hashlib.sha256(b"\x00" + made)
        digest.hexdigest()
        range_.add(digest.digest())

    scrubber, encoded = SecretScrubber(b"k" * 32), canonical.encode(one.body)
    hashing = best(lambda: hashlib.sha256(line).digest(), 20_000)
    print(f"record of {len(line)} bytes, one SHA-256 of it: {hashing * 1e6:.2f} us")
    print(f"canonical form + chain + tree + framing        {best(whole, 20_000) / hashing:6.2f} x goal <= 8")
    print(
        f"  canonical form alone                         {best(lambda: canonical.encode(one.body), 20_000) / hashing:6.2f} x"
    )
    print(
        f"  scrubbing, apart                             {best(lambda: scrubber.suspects(encoded), 2_000) / hashing:6.2f} x"
    )


def bench_verify(folder: str, count: int) -> None:
    directory = f"{folder}/large"
    started = time.perf_counter()
    with Ledger.open(directory, secrets=Nothing()) as ledger:
        for first in range(0, count, 500):
            ledger.append([entry(number) for number in range(first, min(first + 500, count))])
    print(f"{count} entries written in groups of 500: {time.perf_counter() - started:.1f} s")
    rows: dict[str, list[float]] = {"chain": [], "tree": [], "strict": [], "verify.py": []}
    goals = {"chain": 4, "tree": 7, "strict": 9, "verify.py": 15}
    for _ in range(3):
        limit = hash_limit(directory)
        for depth in ("chain", "tree", "strict"):
            started = time.process_time()
            found = verify(directory, now=Micros(START), depth=depth)
            rows[depth].append((time.process_time() - started) / limit)
            assert found.size == count + 1, found
        before = os.times()
        subprocess.run([sys.executable, "-I", "-S", VERIFIER, directory], check=False, capture_output=True)
        after = os.times()
        spent = after.children_user + after.children_system - before.children_user - before.children_system
        rows["verify.py"].append(spent / limit)
    print(f"bulk hash limit over the same bytes: {limit:.2f} s")
    for name, ratios in rows.items():
        print(
            f"verify, {name:<10}                             {statistics.median(ratios):6.2f} x goal <= {goals[name]}"
        )
    code = f"from ringfence.ledger.verify import verify; print(verify({directory!r}, now=2*10**15).verdict.value)\nprint([int(l.split()[1]) // 1024 for l in open('/proc/self/status') if l.startswith('VmHWM')][0])"
    peak = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()[-1]
    print(f"  peak memory of strict                        {peak:>6} MiB goal <= 32")
    bench_search(directory)


def hash_limit(directory: str) -> float:
    """Processor seconds: both sides are bound by it, and what else runs on the machine does not count."""
    started = time.process_time()
    for path in sorted(pathlib.Path(directory, "segments").iterdir()):
        digest = hashlib.sha256()
        with open(path, "rb") as stream:
            while block := stream.read(1 << 20):
                digest.update(block)
    return time.process_time() - started


def bench_search(directory: str) -> None:
    with Index(directory) as index:
        started = time.perf_counter()
        size = index.catch_up()
        print(f"index of {size} records built in {time.perf_counter() - started:.1f} s")
        for name, query in {
            "denied": Query(tier="deny"),
            "mission and program": Query(mission="m-17", program="git"),
            "rule and tier": Query(rule="rule-7", tier="allow"),
            "path": Query(path="/home/dev/repository/src/77.py"),
            "free text": Query(text="test_500"),
            "time range": Query(since=START + 1000, until=START + 2000),
        }.items():
            times = []
            for _ in range(5):
                started = time.perf_counter()
                page = index.search(query, limit=50)
                list(index.read(page.seqs))
                times.append(time.perf_counter() - started)
            print(f"  a page of 50, {name:<22}         {statistics.median(times) * 1000:6.1f} ms goal < 100")


def main() -> None:
    with tempfile.TemporaryDirectory(dir=os.environ.get("LEDGER_FOLDER")) as folder:
        bench_cpu()
        bench_append(folder)
        bench_verify(folder, int(os.environ.get("LEDGER_RECORDS", "1000000")))


if __name__ == "__main__":
    main()
