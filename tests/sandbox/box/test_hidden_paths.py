"""Real boxes: a try on what the view leaves out fails as ever, and is in the record with its count."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from dataclasses import replace
from pathlib import Path

import pytest

from ringfence.model.box import ControlState
from ringfence.sandbox.controls import HIDDEN_LOG
from ringfence.sandbox.launcher import Launcher

pytestmark = pytest.mark.needs_userns


@pytest.fixture
def below_tmp():
    """A folder in the host's /tmp, wherever tests have their files."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        yield Path(name)


def hidden(ran):
    return {o.detail: o.count for o in ran.execution.observations if o.kind == "hidden-path"}


def control(ran):
    return next(c for c in ran.execution.controls if c.name == HIDDEN_LOG)


@pytest.fixture
def place(bench):
    """A folder of the person that holds the worktree, outside of what is a box's own."""
    with tempfile.TemporaryDirectory(dir="/var/tmp", ignore_cleanup_errors=True) as name:
        yield Path(name)
        leftover = Path(name) / "work" / "work"
        if leftover.exists():
            leftover.chmod(0o700)


@pytest.fixture
def seen(bench, place):
    """The bench over a worktree in that folder, on a host where the box's root can be answered by the launcher."""
    for name in ("project", "upper", "work"):
        (place / name).mkdir()
    project = str(place / "project")
    bench.layer = replace(
        bench.layer, lower=project, target=project, upper=f"{place}/upper", work=f"{place}/work", masked=()
    )
    ran = bench.sh("true")
    if control(ran).state is not ControlState.ENFORCED:
        assert os.geteuid() != 0, control(ran).detail
        pytest.skip(control(ran).detail)
    assert hidden(ran) == {}
    return bench


@pytest.fixture
def beside(place):
    """A project of the person next to the worktree."""
    other = place / "sibling"
    other.mkdir()
    (other / "notes.txt").write_text("planted")
    return other


def test_a_sibling_project_is_told_with_the_whole_path_and_the_exact_count(seen, beside):
    ran = seen.sh(
        f"for i in 1 2 3 4 5; do cat {beside}/notes.txt; done; cat ../sibling/notes.txt; rm -rf {beside}; echo x > {beside}/new"
    )
    assert b"planted" not in ran.out
    found = hidden(ran)
    assert found[f"{beside}/notes.txt"] == 6
    assert found[f"{beside}/new"] == 1
    assert (beside / "notes.txt").read_text() == "planted"


def test_a_try_to_change_what_is_hidden_is_told_once_as_each(seen, beside):
    ran = seen.sh(f"for i in 1 2 3; do echo x > {beside}/notes.txt; mkdir {beside}; done 2>/dev/null; true")
    changes = {o.detail: o.count for o in ran.execution.observations if o.kind == "refused-write"}
    assert changes == {f"open for writing {beside}/notes.txt": 3, f"make folder {beside}": 3}
    assert sum(hidden(ran).values()) == 6


def test_a_root_that_was_guessed_wrongly_is_made_anew_and_tells_as_well(seen, beside, place):
    for name in ("elsewhere", "upper2", "work2"):
        (place / name).mkdir()
    first, other = seen.layer, str(place / "elsewhere")
    second = replace(first, lower=other, target=other, upper=f"{place}/upper2", work=f"{place}/work2")
    for layer in (first, first, second, second, first):
        seen.layer = layer
        time.sleep(0.2)  # the next box has been begun by then, with a root like that of the last one
        ran = seen.sh(f"cat {beside}/notes.txt {beside}/notes.txt; ls -d {layer.target}")
        assert ran.out.decode() == f"{layer.target}\n"
        assert hidden(ran) == {f"{beside}/notes.txt": 2}
        assert control(ran).state is ControlState.ENFORCED
    leftover = place / "work2" / "work"
    if leftover.exists():
        leftover.chmod(0o700)


def test_every_try_of_a_loop_counts_and_costs_no_more_than_its_answer(seen, beside):
    program = f"""
        import os
        for n in range(3000):
            try:
                os.lstat({str(beside)!r})
            except FileNotFoundError:
                pass
    """
    ran = seen.run("/usr/bin/python3", "-c", textwrap.dedent(program))
    assert ran.execution.exit == 0, ran.err
    assert hidden(ran) == {str(beside): 3000}


def test_many_at_once_are_all_counted(seen, beside):
    program = f"""
        import os, threading
        def some():
            for n in range(100):
                try:
                    os.lstat({str(beside)!r})
                except FileNotFoundError:
                    pass
        threads = [threading.Thread(target=some) for _ in range(8)]
        [t.start() for t in threads]; [t.join() for t in threads]
    """
    ran = seen.run("/usr/bin/python3", "-c", textwrap.dedent(program))
    assert ran.execution.exit == 0, ran.err
    assert hidden(ran) == {str(beside): 800}


def test_a_socket_that_is_hidden_is_told_by_its_path(seen, beside):
    program = f"""
        import socket
        with socket.socket(socket.AF_UNIX) as s:
            try:
                s.connect({str(beside / "docker.sock")!r})
            except OSError as fault:
                print(fault.errno)
    """
    ran = seen.run("/usr/bin/python3", "-c", textwrap.dedent(program))
    assert ran.out == b"2\n"
    assert hidden(ran) == {f"{beside}/docker.sock": 1}


def test_the_password_file_and_devices_are_told_where_the_host_has_them(seen):
    ran = seen.sh("cat /etc/shadow; head -c1 /dev/mem; head -c1 /dev/no-such-device; ls /srv; true")
    found = hidden(ran)
    assert ("/etc/shadow" in found) == os.path.exists("/etc/shadow")
    assert ("/dev/mem" in found) == os.path.exists("/dev/mem")
    assert ("/srv" in found) == os.path.exists("/srv")
    assert not any("no-such" in path for path in found)


def test_names_that_the_host_has_not_are_not_told(seen, place):
    ran = seen.sh(f"cat {place}/nothing {place}/nothing /no/such /dev/none/x /etc/nothing /run/nothing; true")
    assert hidden(ran) == {}


def test_a_name_of_strange_bytes_is_told_escaped(seen, place):
    (place / "two\nlines").mkdir()
    ran = seen.sh(f"cat '{place}/two\nlines/x'; true")
    assert hidden(ran) == {ascii(f"{place}/two\nlines/x"): 1}


def test_ordinary_work_is_not_told(seen):
    ran = seen.sh(
        "ls / /home /dev /etc /run > /dev/null; df > /dev/null; find / -maxdepth 2 -xdev > /dev/null; realpath . > /dev/null; "
        "git init -q x; git -C x status > /dev/null; python3 -c 'import ssl, json'; mkdir -p x/y; pwd"
    )
    assert ran.out.decode().strip() == seen.layer.target
    assert ran.err == b""
    assert hidden(ran) == {}


def test_the_root_looks_as_it_did_and_nothing_in_it_can_be_changed(seen):
    script = """
        import errno, os, stat
        for name in ("/", "/dev", "/home"):
            entries = sorted((e.name, stat.S_IFMT(e.stat(follow_symlinks=False).st_mode)) for e in os.scandir(name))
            listed = sorted((e.name, e.is_dir(follow_symlinks=False), e.is_symlink()) for e in os.scandir(name))
            assert [(n, stat.S_ISDIR(m), stat.S_ISLNK(m)) for n, m in entries] == listed, (entries, listed)
            print(name, *(e[0] for e in listed))
        assert os.readlink("/var/run") == "../run" and os.path.realpath("/var/run") == "/run"
        tries = (
            lambda: open("/made", "w"), lambda: os.mkdir("/home/made"), lambda: os.mknod("/dev/made", 0o666),
            lambda: os.unlink("/bin"), lambda: os.rename("/home", "/other"), lambda: os.chmod("/", 0o777),
            lambda: os.symlink("a", "/dev/b"), lambda: os.link("/etc/passwd", "/p"), lambda: os.setxattr("/", "user.a", b"b"),
            lambda: os.utime("/home"), lambda: os.truncate("/dev", 0),
        )
        for n, one in enumerate(tries):
            try:
                one()
            except OSError:
                continue
            print("changed", n)
        line = next(l for l in open("/proc/self/mountinfo") if l.split()[4] == "/")
        assert {"ro", "nosuid", "nodev"} <= set(line.split()[5].split(",")), line
        os.makedirs("/run/mine/in"); open("/run/mine/file", "w").close()
        os.rename("/run/mine/in", "/run/mine/inner"); os.rename("/run/mine/file", "/run/file"); os.remove("/run/file")
        try:
            os.setxattr("/tmp", "user.a", b"b")
            os.rename("/run/mine", "/run/other")
        except OSError as fault:  # a folder directly below /run, where tmpfs keeps no attributes: before Linux 6.6
            assert fault.errno == errno.EOPNOTSUPP, fault
        assert os.listdir("/run") in (["mine"], ["other"])
        print(sorted(os.listdir("/etc"))[0], open("/etc/hostname").read().strip())
    """
    ran = seen.run("/usr/bin/python3", "-c", textwrap.dedent(script))
    assert ran.execution.exit == 0, ran.err.decode()
    lines = ran.out.decode().splitlines()
    assert not any(line.startswith("changed") for line in lines)
    expected = {"dev", "etc", "home", "proc", "run", "tmp", "usr", "var"}
    expected |= {toolchain.root.split("/")[1] for toolchain in seen.facts.toolchains}
    expected |= {name[1:] for name, _to in seen.facts.links} | {n[1:] for n in seen.facts.folders}
    assert set(lines[0].split()[1:]) == expected
    assert set(lines[1].split()[1:]) == {
        "null", "zero", "full", "random", "urandom", "tty", "fd", "stdin", "stdout", "stderr", "ptmx", "pts", "shm",
        "mqueue",
    }  # fmt: skip
    assert "agent" in lines[2].split()
    assert lines[-1].endswith(" box")


def test_a_paused_box_in_the_middle_of_tries_holds_nobody_up(seen, beside, wait_for):
    running = seen.begin(seen.plan("/bin/sh", "-c", f"while :; do cat {beside}/x; echo; done 2>/dev/null"))
    wait_for(lambda: len(running.parts[0]) > 2)
    running.box.pause()
    assert seen.sh("echo other").out == b"other\n"
    running.box.resume()
    running.box.kill("enough")
    assert hidden(running.finish())[f"{beside}/x"] > 0


def test_kill_9_of_the_launcher_leaves_no_mount_and_no_process(seen, beside, wait_for, tmp_path):
    before = mounts()
    launcher = Launcher.spawn(str(tmp_path / "state"))
    null = os.open("/dev/null", os.O_RDWR)
    line = f"while :; do cat {beside}/x; done 2>/dev/null"
    box = launcher.start(seen.plan("/bin/sh", "-c", line), stdin=null, stdout=null, stderr=null)
    with open(f"/proc/{launcher.pid}/task/{launcher.pid}/children", encoding="ascii") as file:
        pids = [launcher.pid, *map(int, file.read().split()), *box.pids()]
    os.kill(launcher.pid, signal.SIGKILL)
    launcher.close()
    os.close(null)

    def gone():
        return not [pid for pid in pids if os.path.exists(f"/proc/{pid}") and _state(pid) != "Z"]

    wait_for(gone)
    assert mounts() <= before


def mounts():
    """Of the kinds that a box is made of; others on this machine mount what they like."""
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    return {line for line in lines if line.partition(" - ")[2].startswith(("fuse ", "overlay "))}


def _state(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "Z"


FALLBACK = """
    import os, sys, pickle
    sys.path[:0] = {path!r}
    from ringfence.sandbox.launcher import Launcher
    from ringfence.sandbox.probe import probe_host
    null, (reader, writer) = os.open("/dev/null", os.O_RDWR), os.pipe()
    plan = pickle.loads(bytes.fromhex(sys.argv[1]))
    with Launcher.spawn({state!r}) as launcher:
        done = launcher.start(plan, stdin=null, stdout=writer, stderr=null).wait(30)
    os.close(writer)
    found = [c for c in (*done.controls, *probe_host({state!r}).controls) if c.name == "hidden-path log"]
    print(os.read(reader, 100), done.exit, [o for o in done.observations if o.kind == "hidden-path"])
    print(*((c.state.name, c.detail) for c in found), sep="\\n")
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="covers /dev/fuse in a mount namespace of its own")
def test_without_the_device_the_box_is_as_tight_and_says_that_tries_go_unseen(bench, beside, tmp_path):
    import pickle

    plan = pickle.dumps(
        bench.plan("/bin/sh", "-c", f"cat {beside}/notes.txt /etc/shadow; ls /; touch /x; touch /run/x")
    )
    script = textwrap.dedent(FALLBACK.format(path=sys.path, state=str(tmp_path / "state")))
    cover = 'mount --bind /dev/null /dev/fuse && exec "$@"'
    done = subprocess.run(
        ["unshare", "--mount", "--propagation", "private", "sh", "-c", cover, "sh", sys.executable, "-c", script, plan.hex()],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    lines = done.stdout.splitlines()
    assert "planted" not in lines[0], done.stderr
    assert lines[0].endswith("0 []")
    assert "DOWNGRADED" in lines[1]
    assert "unseen: /dev/fuse: EINVAL" in lines[1]
    assert "DOWNGRADED" in lines[2]
    assert "/dev/fuse: EINVAL" in lines[2]


def test_a_plan_with_a_file_in_the_bare_root_is_built_as_before_and_says_so(bench):
    from ringfence.model.box import Mount

    plan = bench.plan("/bin/cat", "/notes")
    plan = replace(plan, mounts=(*plan.mounts, Mount(kind="file", target="/notes", content=b"given", mode=0o644)))
    ran = bench.begin(plan).finish()
    assert ran.out == b"given"
    assert control(ran).state is ControlState.DOWNGRADED


def test_a_flood_of_names_holds_no_other_box_up_and_fills_no_record(seen, place):
    program = f"""
        import os, time
        end = time.monotonic() + 3
        print(flush=True)
        n = 0
        while time.monotonic() < end:
            n += 1
            for name in ("/boot/%d" % n, "{place}/none%d" % n, "{place}/work/%d" % n):
                try:
                    os.lstat(name)
                except OSError:
                    pass
    """
    flood = seen.begin(seen.plan("/usr/bin/python3", "-c", textwrap.dedent(program), layer=None, cwd="/"))
    second = replace(seen.layer, upper=f"{place}/upper2", work=f"{place}/work2")
    for name in ("upper2", "work2"):
        (place / name).mkdir()
    assert seen.sh("echo other", layer=second).out == b"other\n"
    ran = flood.finish()
    assert ran.execution.exit == 0, ran.err
    assert len(hidden(ran)) <= 70
    assert sum(hidden(ran).values()) > 64
    (place / "work2" / "work").chmod(0o700)


@pytest.fixture
def hiding(seen, place):
    """A worktree in which two names are hidden, one of them in a folder with a look of its own."""
    project = Path(seen.layer.lower)
    (project / "conf").mkdir(mode=0o750)
    (project / "conf").chmod(0o750)
    for name in (".env", "conf/token", "plain", "conf/plain"):
        (project / name).write_text(f"of {name}\n")
    seen.layer = replace(seen.layer, middle=f"{place}/middle", masked=(".env", "conf/token", "conf/absent"))
    return seen


def test_a_try_on_a_hidden_name_of_the_worktree_is_told(hiding):
    ran = hiding.sh("cat .env conf/token ./conf/../.env; cat plain conf/plain conf/absent; true")
    assert ran.out == b"of plain\nof conf/plain\n"
    target = hiding.layer.target
    # The kernel remembers a name of an overlay that is not there, so one box is told of it once.
    assert hidden(ran) == {f"{target}/{name}": 1 for name in (".env", "conf/token", "conf/absent")}
    assert control(ran).state is ControlState.ENFORCED


def test_no_look_up_by_the_launcher_hides_a_later_try(hiding):
    ran = hiding.sh("(> .env/x; > /etc/shadow/x) 2>/dev/null; cat .env /etc/shadow; true")
    found = hidden(ran)
    assert f"{hiding.layer.target}/.env" in found
    assert ("/etc/shadow" in found) == os.path.exists("/etc/shadow")


def test_the_next_box_tells_of_the_same_name_again(hiding):
    for _ in range(3):
        time.sleep(0.1)  # the next box has been begun by then
        assert hidden(hiding.sh("cat .env 2>/dev/null; true")) == {f"{hiding.layer.target}/.env": 1}


def test_looking_around_in_a_worktree_with_hidden_names_tells_nothing(hiding):
    ran = hiding.sh("ls -la . conf > /dev/null; find . > /dev/null; grep -r of . ; du -s . > /dev/null; echo */*")
    assert sorted(ran.out.decode().split("\n")) == ["", "./conf/plain:of conf/plain", "./plain:of plain", "conf/plain"]
    assert hidden(ran) == {}


def test_a_folder_with_hidden_names_keeps_its_look_also_when_it_is_written_to(hiding):
    script = """
        import os
        def look(path):
            info = os.stat(path)
            return oct(info.st_mode), info.st_uid, info.st_gid
        before = [look(path) for path in ("conf", "conf/plain")]
        open("conf/new", "w").close()
        os.chmod("conf/plain", 0o600)
        assert look("conf") == before[0], (look("conf"), before)
        assert sorted(os.listdir("conf")) == ["new", "plain"]
        open(".env", "w").close()
        os.mkdir("conf/token")
        os.rmdir("conf/token")
        assert not os.path.exists("conf/token")
        print(*before[0], os.getuid() == before[0][1])
    """
    ran = hiding.run("/usr/bin/python3", "-c", textwrap.dedent(script))
    assert ran.execution.exit == 0, ran.err.decode()
    assert ran.out.split()[0] == b"0o40750"
    assert ran.out.split()[3] == b"True"
    upper, project = Path(hiding.layer.upper), Path(hiding.layer.lower)
    copied, real = os.stat(upper / "conf"), os.stat(project / "conf")
    assert (copied.st_mode, copied.st_uid, copied.st_gid) == (real.st_mode, real.st_uid, real.st_gid)
    assert (project / ".env").read_text() == "of .env\n"
    assert {f"{hiding.layer.target}/{name}" for name in (".env", "conf/token")} <= set(hidden(ran))
    assert {o.detail for o in ran.execution.observations if o.kind == "hidden-write"} >= {
        f"open for writing {hiding.layer.target}/.env"
    }


def test_hidden_names_of_a_vast_folder_stay_hidden_and_the_record_says_that_tries_go_unseen(hiding):
    project = Path(hiding.layer.lower)
    (project / "vast").mkdir()
    for number in range(1001):
        (project / "vast" / str(number)).touch()
    hiding.layer = replace(hiding.layer, masked=(".env", "vast/7", "conf/token"))
    ran = hiding.sh("cat vast/7 .env; ls vast | wc -l")
    assert ran.out == b"1000\n"
    assert hidden(ran) == {f"{hiding.layer.target}/.env": 1}
    assert f"1 hidden paths of {hiding.layer.target}" in control(ran).detail


def test_hidden_names_stay_hidden_when_whoever_tells_of_them_is_killed(hiding, wait_for):
    line = "cat .env; echo up; sleep 4; cat conf/token .env; ls conf; cat conf/plain; true"
    running = hiding.begin(hiding.plan("/bin/sh", "-c", line))
    wait_for(lambda: b"up" in running.parts[0])
    with open(f"/proc/{hiding.launcher.pid}/task/{hiding.launcher.pid}/children", encoding="ascii") as file:
        children = list(map(int, file.read().split()))
    for pid in set(children) - set(running.box.pids()):  # whoever answers, and other helpers that are begun anew
        os.kill(pid, signal.SIGKILL)
    ran = running.finish()
    assert b"of .env" not in ran.out
    assert b"of conf/token" not in ran.out
    assert control(ran).state is ControlState.DOWNGRADED
    assert hidden(hiding.sh("cat .env; cat plain")) == {f"{hiding.layer.target}/.env": 1}


def test_what_is_closed_in_proc_tells_of_tries(seen):
    names = [
        *("keys", "key-users", "kcore", "kmsg", "1/environ", "1/mem", "1/maps", "1/auxv", "1/cwd/x", "1/exe", "1/root/etc/shadow"),
        *("1/fd/3", "1/ns/net", "1/map_files/0-1", "1/task/1/environ"),
    ]  # fmt: skip
    names = [f"/proc/{name}" for name in names if not name.startswith("k") or os.path.exists(f"/proc/{name}")]
    ran = seen.sh(
        f"cat {' '.join(names)}; ps -ef > /dev/null; ps -eLf >/dev/null; top -bn1 >/dev/null; df >/dev/null;"
        "cat /proc/self/environ > /dev/null; ls -l /proc > /dev/null"
    )
    assert ran.out == b""
    assert hidden(ran) == dict.fromkeys(names, 1)


def test_a_closed_link_or_folder_of_process_1_is_neither_read_nor_listed_nor_unseen(seen):
    ran = seen.sh(
        "for link in root cwd exe; do readlink /proc/1/$link; done; ls /proc/1/fd /proc/1/task; cd /proc/1/root"
    )
    assert ran.out.split() == [b"/proc/1/fd:", b"/proc/1/task:"]
    assert hidden(ran) == {
        "/proc/1/root": 2, "/proc/1/cwd": 1, "/proc/1/exe": 1, "/proc/1/fd": 1, "/proc/1/task": 1,
    }  # fmt: skip


def test_files_have_the_inode_numbers_of_the_host_when_the_layer_lies_on_another_file_system(hiding):
    with tempfile.TemporaryDirectory(dir="/dev/shm", ignore_cleanup_errors=True) as other:
        try:
            os.setxattr(other, "user.try", b"y")
        except OSError:
            pytest.skip("this kernel's tmpfs cannot hold an upper directory for an ordinary user's overlay")
        for name in ("upper", "work"):
            os.mkdir(f"{other}/{name}")
        layer = replace(hiding.layer, upper=f"{other}/upper", work=f"{other}/work")
        ran = hiding.sh("stat -c %i plain conf/plain; cat .env; true", layer=layer)
        real = [(Path(hiding.layer.lower) / name).stat().st_ino for name in ("plain", "conf/plain")]
        assert list(map(int, ran.out.split())) == real
        assert hidden(ran) == {f"{hiding.layer.target}/.env": 1}


def test_device_and_inode_numbers_are_of_one_piece_and_files_have_those_of_the_host(hiding):
    """What git compares to know that a file is unchanged, and tools to stay on one file system."""
    script = """
        import json, os
        found = {}
        for folder, _folders, _files in os.walk("."):
            for entry in os.scandir(folder):
                info = entry.stat(follow_symlinks=False)
                assert entry.inode() == info.st_ino, entry.path
                found[os.path.relpath(entry.path)] = info.st_dev, info.st_ino
        assert {dev for dev, _ino in found.values()} == {os.stat(".").st_dev}, found
        assert len(set(found.values())) == len(found), found
        print(json.dumps({name: ino for name, (_dev, ino) in found.items()}))
    """
    project = Path(hiding.layer.lower)
    (project / "deep" / "er").mkdir(parents=True)
    (project / "deep" / "er" / "file").touch()
    ran = hiding.run("/usr/bin/python3", "-c", textwrap.dedent(script))
    assert ran.execution.exit == 0, ran.err.decode()
    numbers = json.loads(ran.out)
    same = ("plain", "conf/plain", "deep", "deep/er", "deep/er/file")
    assert {name: numbers[name] for name in same} == {name: (project / name).stat().st_ino for name in same}


def test_a_worktree_below_the_hosts_tmp_has_bare_folders_above_it_that_tell(seen, below_tmp):
    above = below_tmp / "above"
    for name in ("project", "sibling", "upper", "work"):
        (above / name).mkdir(parents=True)
    (above / "sibling" / "notes").write_text("planted")
    project = str(above / "project")
    layer = replace(seen.layer, lower=project, target=project, upper=f"{above}/upper", work=f"{above}/work")
    line = "cat ../sibling/notes; echo x > ../new; rm -rf ../sibling; echo x > in; touch /tmp/mine; ls .. /tmp; cat ../nothing"
    ran = seen.run("/bin/sh", "-c", line, layer=layer, cwd=project)
    assert ran.out.decode().split() == ["..:", "project", "/tmp:", "mine", str(above).split("/")[2]]
    assert hidden(ran) == {f"{above}/sibling/notes": 1, f"{above}/sibling": 2}
    changes = {o.detail for o in ran.execution.observations if o.kind == "refused-write"}
    assert changes == {f"open for writing {above}/new", f"remove {above}/sibling"}
    assert control(ran).state is ControlState.ENFORCED
    assert (above / "sibling" / "notes").read_text() == "planted"
    assert not (above / "new").exists()
    (above / "work" / "work").chmod(0o700)
