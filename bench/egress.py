"""What the egress worker costs: against a direct connection, and against the same relay that decides nothing.

    python bench/egress.py [--rounds N] [--flood SECONDS]

Everything runs on this machine between network namespaces: box, worker, servers. Rounds are interleaved; read the ratios.
"""

import argparse
import contextlib
import importlib.util
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
SERVER, PORT, MIB = "203.0.113.10", 2700, 1 << 20

CLIENT = """
import json, socket, sys, time
what, host, port, count, size = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5])
buffer = bytearray(1 << 20)
def once():
    begun = time.perf_counter()
    s = socket.create_connection((host, port), 20)
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    s.sendall(b"%d\\n" % size)
    left = size
    while left:
        got = s.recv_into(buffer)
        if not got: raise SystemExit("cut short")
        left -= got
    s.close()
    return time.perf_counter() - begun
if what == "times":
    print(json.dumps([once() for _ in range(count)]))
elif what == "verdicts":
    times = []
    for _ in range(count):
        begun = time.perf_counter()
        s = socket.create_connection((host, port), 20); s.sendall(b"x")
        try: s.recv(10)
        except OSError: pass
        times.append(time.perf_counter() - begun); s.close()
    print(json.dumps(times))
elif what == "rate":
    until, done = time.perf_counter() + count, 0
    while time.perf_counter() < until:
        once(); done += 1
    print(json.dumps(done))
elif what == "hold":
    held = []
    for _ in range(count):
        s = socket.create_connection((host, port), 20); s.sendall(b"%d\\n" % size); s.recv(1, socket.MSG_WAITALL); held.append(s)
    print(len(held), flush=True); sys.stdin.readline()
elif what == "flood":
    until, made, failed = time.perf_counter() + count, 0, 0
    while time.perf_counter() < until:
        s = socket.socket()
        try: s.connect((host, port)); s.sendall(b"x"); made += 1
        except OSError: failed += 1
        s.close()
    print(json.dumps([made, failed]))
"""

PLAIN_RELAY = """
import socket, sys
sys.path.insert(0, sys.argv[3])
from ringfence.egress.loop import Loop, Stream
from ringfence.egress.relay import Traffic, relay, reset
loop = Loop()
listener = Stream(loop, socket.socket(fileno=int(sys.argv[1])))
async def one(sock):
    client = Stream(loop, sock)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    upstream = Stream(loop, socket.socket())
    upstream.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        upstream.sock.connect_ex(("203.0.113.10", 2700)); await upstream.writable(loop.now + 10)
        await relay(loop, client, upstream, Traffic(), idle=60)
    finally:
        client.close(); upstream.close()
async def serve():
    while True:
        try: sock, _ = listener.sock.accept()
        except BlockingIOError:
            await listener.readable(); continue
        loop.spawn(one(sock))
loop.spawn(serve())
loop.run()
"""


def load(path: Path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


class Bench:
    def __init__(self, tests, world, rounds: int) -> None:
        self.tests, self.world, self.rounds = tests, world, rounds
        self.rules = tests.Rules(allow=(f"{SERVER}:{PORT}",))
        self.rig = world.rig(self.rules, {"rate": 1e6, "burst": 1e6, "open_limit": 4000})
        self.plain_box = tests.double("netns").Box()
        fd = self.plain_box.descriptors["tcp4"]
        self.plain = subprocess.Popen(
            [*world.internet.uplink, sys.executable, "-I", "-c", PLAIN_RELAY, str(fd), "-", str(ROOT / "src")],
            pass_fds=[fd],
        )
        level_with_us(self.rig.worker.pid)
        self.ways = {
            "direct": world.internet.uplink,
            "relay": self.plain_box.prefix,
            "worker": self.rig.box.prefix,
        }

    def client(self, way: str, *words: object) -> object:
        argv = [*self.ways[way], sys.executable, "-I", "-S", "-c", CLIENT, *map(str, words)]
        return json.loads(subprocess.run(argv, check=True, capture_output=True, text=True, timeout=120).stdout)

    def times(self, size: int, count: int) -> dict[str, float]:
        """Median of the rounds' medians for each way, seconds."""
        found: dict[str, list[float]] = {way: [] for way in self.ways}
        for number in range(self.rounds):
            order = list(self.ways) if number % 2 else list(self.ways)[::-1]
            for way in order:
                found[way].append(statistics.median(self.client(way, "times", SERVER, PORT, count, size)))
        return {way: statistics.median(values) for way, values in found.items()}

    def close(self) -> None:
        self.plain.kill()
        self.plain.wait()
        self.plain_box.close()
        self.rig.close()


def level_with_us(pid: int) -> None:
    """The worker has a session of its own, which some kernels schedule as a group: give the group our priority."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/autogroup", "w", encoding="ascii") as file:
        file.write(str(os.nice(0)))


def rss(pid: int) -> int:
    """Resident bytes of the worker behind its launch prefix."""
    with open(f"/proc/{pid}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--flood", type=float, default=0)
    args = parser.parse_args()
    tests = load(ROOT / "tests/egress/conftest.py")
    with tempfile.TemporaryDirectory() as folder:
        world = tests.World(Path(folder))
        bench = Bench(tests, world, args.rounds)
        try:
            time.sleep(0.5)
            measure(bench)
            if args.flood:
                flood(bench, args.flood)
        finally:
            bench.close()
            world.internet.close()


def measure(bench: Bench) -> None:
    bulk = bench.times(64 * MIB, 3)
    print("one 64 MiB download:", {way: f"{64 / t:.0f} MiB/s" for way, t in bulk.items()})
    print(
        f"  worker / relay  {bulk['relay'] / bulk['worker']:.2f} x    worker / direct {bulk['direct'] / bulk['worker']:.2f} x"
    )
    small = bench.times(1024, 200)
    print("new connection with a 1 KiB answer:", {way: f"{t * 1e6:.0f} us" for way, t in small.items()})
    print(
        f"  worker / relay  {small['worker'] / small['relay']:.2f} x    worker / direct {small['worker'] / small['direct']:.2f} x"
    )
    rates: dict[str, list[float]] = {way: [] for way in bench.ways}
    for number in range(bench.rounds):
        for way in list(bench.ways)[:: 1 if number % 2 else -1]:
            rates[way].append(rate(bench, way, clients=8, seconds=2))
    print(
        "connections a second, eight clients:", {way: f"{statistics.median(found):.0f}" for way, found in rates.items()}
    )
    before = rss(bench.rig.worker.pid)
    argv = [*bench.rig.box.prefix, sys.executable, "-I", "-S", "-c", CLIENT, "hold", SERVER, str(PORT), "1000", "1"]
    holder = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    held = int(holder.stdout.readline())
    print(
        f"{held} connections open at once: {(rss(bench.rig.worker.pid) - before) / held / 1024:.1f} KiB each in the worker"
    )
    holder.communicate("\n")


def rate(bench: Bench, way: str, *, clients: int, seconds: int) -> float:
    counts: list[int] = []
    threads = [
        threading.Thread(target=lambda: counts.append(bench.client(way, "rate", SERVER, PORT, seconds, 1024)))
        for _ in range(clients)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts) / seconds


def flood(bench: Bench, seconds: float) -> None:
    """A box floods; another mission's connections are timed meanwhile."""
    flooded = bench.world.rig(bench.rules)
    level_with_us(flooded.worker.pid)
    quiet = sorted(bench.client("worker", "verdicts", "203.0.113.77", 2701, 300, 0))
    before = rss(flooded.worker.pid)
    results: list[list[int]] = []
    argv = [
        *flooded.box.prefix,
        sys.executable,
        "-I",
        "-S",
        "-c",
        CLIENT,
        "flood",
        "203.0.113.77",
        "80",
        str(int(seconds)),
        "0",
    ]
    threads = [
        threading.Thread(
            target=lambda: results.append(
                json.loads(subprocess.run(argv, capture_output=True, text=True, check=True).stdout)
            )
        )
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    times: list[float] = []
    until = time.monotonic() + seconds - 1
    while time.monotonic() < until:
        times += bench.client("worker", "verdicts", "203.0.113.77", 2701, 20, 0)
        time.sleep(0.2)
    for thread in threads:
        thread.join()
    grown = rss(flooded.worker.pid) - before
    time.sleep(1.5)
    flooded.worker.stop()
    made = sum(result[0] + result[1] for result in results)
    told = sum(line.count for line in flooded.lines)
    refused = sum(line.count for line in flooded.lines if line.rule == "egress/rate")
    p95 = statistics.quantiles(times, n=20)[18]
    print(
        f"flood of {seconds:.0f} s: {made} connections made, {told} counted in the log, {refused} of them beyond the bucket,"
    )
    print(f"  {len(flooded.lines)} lines; the worker grew by {grown / MIB:.1f} MiB")
    before_p95 = quiet[int(len(quiet) * 0.95)]
    print(
        f"  another mission's decisions: p95 {p95 * 1000:.1f} ms of {len(times)} (before: {before_p95 * 1000:.1f} ms)"
    )
    flooded.box.close()


if __name__ == "__main__":
    os.environ.pop("PYTHONPATH", None)
    main()
