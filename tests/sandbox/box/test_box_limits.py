"""Time, output, and the end of the whole tree."""

import contextlib
import os
import resource
import signal
import subprocess
import sys
import threading
import time

import pytest

from ringfence.model.box import Limits
from ringfence.model.ids import Bytes, Millis
from ringfence.sandbox.inner import groups
from ringfence.sandbox.inner.tree import kept_memory, own_memory

pytestmark = pytest.mark.needs_userns

STUBBORN = (
    "import os,signal,time\n"
    "[signal.signal(s, signal.SIG_IGN) for s in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)]\n"
    "if os.fork() == 0:\n"
    "  os.setsid()\n"
    "  if os.fork() == 0: time.sleep(60)\n"
    "  os._exit(0)\n"
    "print('up', flush=True); time.sleep({})\n"
)


def test_runtime_ends_the_whole_tree(bench, wait_for):
    limits = Limits(runtime=Millis(4000))
    running = bench.begin(bench.plan("/usr/bin/python3", "-c", STUBBORN.format(600), limits=limits))
    wait_for(lambda: b"up" in running.parts[0])
    pids = running.box.pids()
    assert len(pids) >= 3
    ran = running.finish()
    assert ran.execution.ended_by == "runtime, 4000 ms"
    assert ran.execution.signal == 9
    assert not [pid for pid in pids if os.path.exists(f"/proc/{pid}")]
    assert any(o.kind == "limit" and o.violation for o in ran.execution.observations)


def test_a_daemon_does_not_outlive_its_parent(bench, wait_for):
    running = bench.begin(bench.plan("/usr/bin/python3", "-c", STUBBORN.format(3)))
    wait_for(lambda: b"up" in running.parts[0])
    pids = running.box.pids()
    ran = running.finish()
    assert (ran.execution.exit, ran.execution.ended_by) == (0, "")
    assert pids
    assert not [pid for pid in pids if os.path.exists(f"/proc/{pid}")]


def test_kill_names_its_reason_and_comes_from_any_thread(bench):
    running = bench.begin(bench.plan("sleep", "60"))
    threading.Timer(0.2, running.box.kill, ["the mission was terminated"]).start()
    assert running.finish().execution.ended_by == "the mission was terminated"
    assert running.box.pids() == ()


def test_wait_can_be_tried_again(bench):
    running = bench.begin(bench.plan("sleep", "0.5"))
    with pytest.raises(TimeoutError):
        running.box.wait(0.05)
    assert running.finish().execution.exit == 0


def test_output_beyond_the_cap_is_drained_and_counted(bench):
    script = "import sys; [sys.stdout.write('%07d\\n' % n) for n in range(100000)]"
    ran = bench.run("/usr/bin/python3", "-c", script, limits=Limits(output=Bytes(4096)))
    assert ran.execution.exit == 0
    assert ran.execution.stdout_bytes == 800_000
    assert ran.execution.dropped_bytes == 800_000 - 4096
    head, marker, tail = ran.out[:3072], ran.out[3072:-1024], ran.out[-1024:]
    assert head.startswith(b"0000000\n")
    assert tail.endswith(b"0099999\n")
    assert marker == b"\n[ringfence: 795904 bytes of output not shown]\n"


def test_output_up_to_the_cap_is_whole(bench):
    ran = bench.sh("head -c 4096 /dev/zero", limits=Limits(output=Bytes(4096)))
    assert (len(ran.out), ran.execution.dropped_bytes) == (4096, 0)


def test_a_reader_that_goes_away_gives_the_command_sigpipe(bench):
    read_end, write_end = os.pipe()
    null = os.open("/dev/null", os.O_RDWR)
    box = bench.launcher.start(
        bench.plan("yes", limits=Limits(output=Bytes(1 << 26))), stdin=null, stdout=write_end, stderr=null
    )
    os.close(write_end)
    os.read(read_end, 10)
    os.close(read_end)
    assert box.wait(60).signal == 13
    os.close(null)


def test_fifty_at_once(bench, tmp_path):
    results = []

    def one(number):
        for name in ("u", "w"):
            os.mkdir(tmp_path / f"{name}{number}")
        from dataclasses import replace

        layer = replace(bench.layer, upper=str(tmp_path / f"u{number}"), work=str(tmp_path / f"w{number}"))
        results.append(bench.sh(f"echo {number} > n; cat n; sleep 0.5", layer=layer).out)

    threads = [threading.Thread(target=one, args=(n,)) for n in range(50)]
    [t.start() for t in threads]
    [t.join(60) for t in threads]
    assert sorted(int(r) for r in results) == list(range(50))
    for number in range(50):
        os.chmod(tmp_path / f"w{number}" / "work", 0o700)


def test_memory_beyond_the_limit_ends_the_box_and_is_named(bench):
    script = "import time\nx = bytearray(300 << 20)\nx[::4096] = b'1' * len(x[::4096])\ntime.sleep(5)\n"
    ran = bench.run("/usr/bin/python3", "-c", script, limits=Limits(memory=Bytes(64 << 20)))
    assert ran.execution.ended_by == "memory, 64 MiB"
    assert ran.execution.exit != 0


def test_processes_are_held_at_the_limit(bench):
    script = (
        "import os, time\nmade = 0\n"
        "for n in range(200):\n"
        "  try:\n    if os.fork() == 0: time.sleep(3); os._exit(0)\n    made += 1\n"
        "  except OSError: break\n"
        "print(made, flush=True); time.sleep(3)\n"  # where nothing counts them, a look finds them
    )
    ran = bench.run("/usr/bin/python3", "-c", script, limits=Limits(processes=20))
    assert ran.execution.exit == 0
    assert 10 <= int(ran.out) <= 20
    assert [o.count for o in ran.execution.observations if o.detail == "processes, 20"] == [1]
    less = bench.run("/usr/bin/python3", "-c", script.replace("200", "5"), limits=Limits(processes=20))
    assert [o for o in less.execution.observations if o.kind == "limit"] == []


def test_threads_are_held_and_named_as_processes_are(bench):
    script = (
        "import threading, time\n"
        "try:\n  for n in range(200): threading.Thread(target=time.sleep, args=(3,), daemon=True).start()\n"
        "except RuntimeError: print('held', n); time.sleep(3)\n"
    )
    ran = bench.run("/usr/bin/python3", "-c", script, limits=Limits(processes=20))
    assert ran.out.startswith(b"held"), ran
    assert [o.count for o in ran.execution.observations if o.detail == "processes, 20"] == [1]


def test_where_nothing_counts_refused_forks_a_full_box_is_seen_at_a_look(monkeypatch):
    # The process has no network and no places of its own: what others on this machine send and keep is not asked for.
    monkeypatch.setattr(groups.buffers, "on_host", lambda: 0)
    monkeypatch.setattr(groups, "kept_memory", lambda _pids: 0)
    source = "import threading, time\nfor n in range(4): threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\nprint('held', flush=True); time.sleep(60)"
    polled = groups.Groups(groups.POLLING, {})
    polled.limits = {"memory": 1 << 40, "cpu": 1 << 40, "processes": 6}
    with subprocess.Popen([sys.executable, "-c", source], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout.readline() == b"held\n"
            assert polled.reached(process.pid) == ""
            assert polled.notes() == {}
            polled.limits["processes"] = 5
            assert polled.reached(process.pid) == ""
            assert polled.notes() == {"processes, 5": 1}
        finally:
            process.kill()


def test_cpu_time_is_limited_for_the_whole_tree(bench):
    line = "for n in 1 2 3; do /usr/bin/python3 -c 'while True: pass' & done; wait"
    ran = bench.sh(line, limits=Limits(cpu=Millis(800), runtime=Millis(20_000)))
    assert ran.execution.ended_by == "cpu, 800 ms"


def test_one_file_cannot_grow_beyond_its_limit(bench):
    ran = bench.sh(
        "head -c 3000000 /dev/zero > big; ls -l big | cut -d' ' -f5", limits=Limits(file_size=Bytes(1_000_000))
    )
    assert int(ran.out) == 1_000_000


def test_the_layer_cannot_grow_beyond_the_disk_limit(bench):
    line = "n=0; while [ $n -lt 400 ]; do head -c 1000000 /dev/urandom > f$n; n=$((n+1)); sleep 0.01; done"
    ran = bench.sh(line, limits=Limits(disk=Bytes(24 << 20)))
    assert ran.execution.ended_by == "disk, 24 MiB"


@pytest.mark.parametrize("milliseconds", [1000, 1200])
def test_cpu_time_of_one_process_is_named_before_the_kernel_ends_it(bench, milliseconds):
    ran = bench.run("/usr/bin/python3", "-c", "while True: pass", limits=Limits(cpu=Millis(milliseconds)))
    assert ran.execution.ended_by == f"cpu, {milliseconds} ms"


def test_a_command_that_ends_by_the_size_of_a_file_says_so(bench):
    ran = bench.run("dd", "if=/dev/zero", "of=big", "bs=1M", "count=50", limits=Limits(file_size=Bytes(8 << 20)))
    assert (ran.execution.signal, ran.execution.ended_by) == (25, "")
    assert "file size, 8 MiB" in {o.detail for o in ran.execution.observations if o.kind == "limit"}


def test_private_places_are_limited_too(bench):
    ran = bench.sh("head -c 40000000 /dev/zero > /tmp/x; stat -c %s /tmp/x", limits=Limits(disk=Bytes(16 << 20)))
    assert int(ran.out) <= 16 << 20


def test_pause_keeps_everything_and_resume_goes_on(bench, wait_for):
    lines = b"".join(b"%d\n" % number for number in range(1, 31))
    running = bench.begin(bench.plan("/bin/bash", "-c", "for n in {1..30}; do echo $n; sleep 0.1; done"))
    wait_for(lambda: bool(running.parts[0]))
    running.box.pause()
    seen = b""
    while seen != (seen := bytes(running.parts[0])):
        time.sleep(0.5)  # what it had written before is on its way; a box that goes on writes in between
    assert seen.count(b"\n") < 30
    running.box.resume()
    assert running.finish().out == lines


def test_a_paused_box_can_be_killed(bench):
    running = bench.begin(bench.plan("sleep", "60"))
    running.box.pause()
    running.box.kill("terminated while paused")
    assert running.finish(10).execution.ended_by == "terminated while paused"


def test_time_spent_paused_is_not_the_commands(bench):
    running = bench.begin(bench.plan("sleep", "1", limits=Limits(runtime=Millis(3500))))
    running.box.pause()
    time.sleep(4.0)
    running.box.resume()
    assert (running.finish().execution.exit, running.box.wait().ended_by) == (0, "")
    running = bench.begin(bench.plan("sleep", "30", limits=Limits(runtime=Millis(2500))))
    running.box.pause()
    time.sleep(2.0)
    running.box.resume()
    ran = running.finish()
    assert ran.execution.ended_by == "runtime, 2500 ms"
    assert ran.execution.duration > 4_000_000


def test_memory_taken_faster_than_any_poll_is_stopped_too(bench):
    script = "x = bytearray(4 << 30)\nfor n in range(0, len(x), 4096): x[n] = 1\nprint('took it')\n"
    ran = bench.run("/usr/bin/python3", "-c", script, limits=Limits(memory=Bytes(64 << 20)))
    assert ran.execution.exit != 0
    assert b"took" not in ran.out


def test_what_counts_for_the_whole_account_is_shared_with_the_person(bench):
    ran = bench.run(
        "/usr/bin/python3",
        "-c",
        "import resource as r, ctypes, os\n"
        "print(r.getrlimit(11)[1], r.getrlimit(r.RLIMIT_MSGQUEUE)[1], r.getrlimit(14), r.getrlimit(13))\n"
        "libc, n = ctypes.CDLL(None), 0\n"
        "while n < 5000 and libc.inotify_init() >= 0: n += 1\n"
        "print(n)\n"
        "print(open('/proc/keys').read() + open('/proc/key-users').read(), end='')\n",
    )
    with open("/proc/sys/fs/inotify/max_user_instances", encoding="ascii") as file:
        half = int(file.read()) // 2
    limits, instances = ran.out.decode().splitlines()
    assert limits == "4096 409600 (0, 0) (0, 0)"
    assert int(instances) <= half


HOLDERS = {
    "memory file": "f = os.memfd_create('y'); os.write(f, b'a' * (24 << 20)); print('held', flush=True); time.sleep(30)",
    "page tables": "libc.mmap.restype = ctypes.c_void_p; f = open('/usr/bin/env', 'rb')\n"
    "for i in range(8000): ctypes.string_at(libc.mmap(ctypes.c_void_p(0x100000000000 + (i << 21)), ctypes.c_size_t(4096), 1,"
    " 0x12, f.fileno(), ctypes.c_long(0)), 1)\n"
    "print('held', flush=True); time.sleep(30)",
}


@pytest.mark.parametrize("name", HOLDERS)
def test_memory_that_nothing_has_mapped_is_polled_too(name):
    source = f"import ctypes, os, time\nlibc = ctypes.CDLL(None)\n{HOLDERS[name]}"
    with subprocess.Popen(["/usr/bin/python3", "-c", source], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout.readline() == b"held\n"
            own, shared, _common = own_memory([process.pid])
            assert own + max(shared, kept_memory([process.pid])) > 20 << 20
        finally:
            process.kill()


def test_no_program_of_a_box_starts_the_hosts_crash_handler(bench):
    ran = bench.run("/usr/bin/python3", "-c", """
import os, resource, signal, subprocess
core = resource.RLIMIT_CORE
print(resource.getrlimit(core))
resource.setrlimit(core, (0, 0))  # with which a handler would be started
print(resource.getrlimit(core))
try: resource.prlimit(0, core, (0, 0))
except PermissionError: print("refused")
print(subprocess.run(["/bin/sh", "-c", "ulimit -c 0 && kill -SEGV $$"]).returncode == -signal.SIGSEGV)
""")  # fmt: skip
    expected = ["(1, 1)", "(1, 1)", "refused", "True"]
    if resource.getrlimit(resource.RLIMIT_CORE)[1] == 0:
        expected[:2] = ["(0, 0)"] * 2  # the caller's own, which no ordinary user can raise
    assert ran.out.decode().splitlines() == expected, ran.err
    assert not any(name.startswith("core") for name in os.listdir(bench.layer.upper))


UNLISTED = {
    "pages let go of": "m = mmap.mmap(-1, 48 << 20); m.write(bytes(48 << 20)); m.madvise(mmap.MADV_DONTNEED)",
    "a file that is mapped alone": "f = os.memfd_create('y'); os.write(f, bytes(48 << 20)); m = mmap.mmap(f, 48 << 20); os.close(f)",
    "a file sent and not received": "a, b = socket.socketpair(); f = os.memfd_create('y'); os.write(f, bytes(48 << 20));"
    " socket.send_fds(a, [b'x'], [f]); os.close(f)",
}


@pytest.mark.parametrize(("name", "counted"), [*((name, True) for name in UNLISTED), ("nothing of the kind", False)])
def test_shared_memory_that_no_list_shows_is_polled_too(name, counted, monkeypatch):
    # The process has no network and no places of its own: what others on this machine send and keep is not asked for.
    monkeypatch.setattr(groups.buffers, "on_host", lambda: 0)
    monkeypatch.setattr(groups, "kept_memory", lambda _pids: 0)
    source = f"import mmap, os, socket, time\n{UNLISTED.get(name, '')}\nprint('held', flush=True); time.sleep(30)"
    polled = groups.Groups(groups.POLLING, {})
    polled.limits = {"memory": 32 << 20, "processes": 1000}
    with subprocess.Popen(["/usr/bin/python3", "-c", source], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout.readline() == b"held\n"
            polled.shared_before = groups.shared_on_host() - (48 << 20)
            assert (polled._polled(process.pid) > 32 << 20) is counted
        finally:
            process.kill()


def test_system_v_memory_of_a_box_is_counted(tmp_path):
    table = tmp_path / "shm"
    table.write_text(" key shmid perms size rss swap\n 0 1 1600 4096 4096 0\n 0 2 1600 8192 8192 0\n")
    descriptor = os.open(table, os.O_RDONLY)
    assert groups._segments(descriptor) == 12288
    assert groups._segments(-1) == 0
    os.close(descriptor)


FILLED = """
import socket, time
kind, held = socket.{kind}, []
for n in range(1000):
    end = socket.socket(socket.AF_INET, kind)
    end.bind(("127.0.0.1", 0))
    if kind == socket.SOCK_STREAM:
        end.listen()
        sender = socket.create_connection(end.getsockname())
        held.append((end, end.accept()[0]))
    else:
        sender = socket.socket(socket.AF_INET, kind)
        sender.connect(end.getsockname())
    held.append((end, sender))
    sender.setblocking(False)
    try:
        for _packet in range(100): sender.send(bytes(32_000))
    except BlockingIOError: pass
    if n % 50 == 0: time.sleep(0.02)
time.sleep(10)
rows = [row.split()[4].split(":") for name in ("udp", "tcp") for row in open("/proc/net/" + name).readlines()[1:]]
print(sum(int(sent, 16) + int(got, 16) for sent, got in rows))
"""


@pytest.mark.parametrize("kind", ["SOCK_DGRAM", "SOCK_STREAM"])
def test_memory_that_waits_in_sockets_counts_too(bench, kind):
    script = "import resource as r; r.setrlimit(r.RLIMIT_NOFILE, (4096, 4096))" + FILLED.format(kind=kind)
    limits = Limits(memory=Bytes(96 << 20), open_files=4096, runtime=Millis(60_000))
    ran = bench.run("/usr/bin/python3", "-c", script, limits=limits)
    assert ran.execution.ended_by == "memory, 96 MiB" or int(ran.out) < 96 << 20, ran.err


BEGUN = """
import mmap, os, socket, time
kept, ends = [], socket.socketpair()
def many(begin):
    for n in range(64):
        file = begin()
        os.posix_fallocate(file, 0, 1 << 20)
        kept.append(file)
        time.sleep(0.01)
def deleted():
    file = os.open("x", os.O_CREAT | os.O_RDWR, 0o600)
    os.unlink("x")
    return file
"""
WITHOUT_A_NAME = {
    "deleted": "many(deleted)",
    "never named": "many(lambda: os.open('.', os.O_TMPFILE | os.O_RDWR, 0o600))",
    "in a socket": """
for n in range(200):  # more than what others may delete meanwhile
    file = deleted()
    os.posix_fallocate(file, 0, 1 << 20)
    socket.send_fds(ends[0], [b'x'], [file])
    os.close(file)
    time.sleep(0.01)
""",
    "only mapped": """
for n in range(200):  # more than what others may delete meanwhile
    file = deleted()
    os.posix_fallocate(file, 0, 1 << 20)
    kept.append(mmap.mmap(file, 1 << 20))
    os.close(file)
    time.sleep(0.01)
""",
}


@pytest.mark.parametrize("way", sorted(WITHOUT_A_NAME))
def test_files_without_a_name_count_as_disk_too(bench, way):
    limits = Limits(disk=Bytes(24 << 20), runtime=Millis(60_000))
    ran = bench.run("/usr/bin/python3", "-c", BEGUN + WITHOUT_A_NAME[way] + "\ntime.sleep(20)", limits=limits)
    assert ran.execution.ended_by == "disk, 24 MiB", ran.err


def test_memory_files_and_deleted_files_of_tmp_are_no_disk(bench):
    ran = bench.run("/usr/bin/python3", "-c", f"""{BEGUN}
many(lambda: os.memfd_create("x"))
os.chdir("/tmp")
many(deleted)
""", limits=Limits(disk=Bytes(96 << 20), runtime=Millis(60_000)))  # fmt: skip
    assert (ran.execution.exit, ran.execution.ended_by) == (0, ""), ran.err


def test_what_is_deleted_and_let_go_of_does_not_count(bench):
    ran = bench.run("/usr/bin/python3", "-c", f"""{BEGUN}
for n in range(20):
    file = deleted()
    os.posix_fallocate(file, 0, 8 << 20)
    os.close(file)
    time.sleep(0.03)
""", limits=Limits(disk=Bytes(24 << 20), runtime=Millis(60_000)))  # fmt: skip
    assert (ran.execution.exit, ran.execution.ended_by) == (0, ""), ran.err


AWAKE = """
import ctypes, os, signal, sys
signal.signal(signal.SIGCONT, lambda *_: None)
libc = ctypes.CDLL(None)
libc.timer_create.argtypes = libc.timer_settime.argtypes = None
event, timer = (ctypes.c_long * 8)(0, signal.SIGCONT), ctypes.c_void_p()
assert libc.timer_create(1, event, ctypes.byref(timer)) == 0
assert libc.timer_settime(timer, 0, (ctypes.c_long * 4)(0, 20_000_000, 0, 20_000_000), None) == 0
print("begun", flush=True)
while True: print(end="x", flush=True)
"""


def test_a_paused_box_that_wakes_itself_stays_paused_or_is_ended(bench, wait_for):
    """Timers may send SIGCONT: a freezer does not mind, and without one the box is ended."""
    running = bench.begin(bench.plan("/usr/bin/python3", "-c", AWAKE, limits=Limits(output=Bytes(1 << 30))))
    wait_for(lambda: b"begun" in running.parts[0])
    running.box.pause()
    freezes = groups.mechanism() != groups.POLLING
    if freezes:
        running.box.kill("still there")
    for _look in range(0 if freezes else 600):
        try:
            running.box.wait(0.1)
            break
        except (
            TimeoutError
        ):  # to stop it may have taken the timer's signal away, and the timer with it: wake it from here
            for pid in running.box.pids()[1:]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)
    ended_by = running.finish().execution.ended_by
    assert ended_by == ("still there" if freezes else "it did not stand still while it was paused")


def test_a_signal_to_a_paused_command_does_not_wake_it(bench, wait_for):
    running = bench.begin(
        bench.plan("/bin/sh", "-c", "trap 'echo heard; exit 4' CONT; echo begun; while :; do :; done")
    )
    wait_for(lambda: b"begun" in running.parts[0])
    running.box.pause()
    running.box.signal(18)
    running.box.pause()
    assert b"heard" not in running.parts[0]
    running.box.resume()
    ran = running.finish()
    assert (ran.execution.exit, ran.execution.ended_by) == (4, "")
    assert b"heard" in ran.out
