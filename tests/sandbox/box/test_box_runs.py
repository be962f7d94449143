"""A command in a box: status, streams, view, changes kept apart."""

import os
import signal
import stat
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from ringfence.model.box import Limits
from ringfence.model.errors import BoxError
from ringfence.model.ids import Bytes, Millis
from ringfence.sandbox.inner.ward import FLUSH_SECONDS, flush_seconds

pytestmark = pytest.mark.needs_userns


def test_status_and_streams_are_the_commands_own(bench):
    ran = bench.sh("cat; echo problem >&2; exit 7", stdin=b"from the caller")
    assert (ran.execution.exit, ran.execution.signal, ran.execution.ended_by) == (7, None, "")
    assert (ran.out, ran.err) == (b"from the caller", b"problem\n")


def test_message_queues_are_the_boxs_own_and_work(bench):
    text = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
queue = libc.mq_open(b"/seen-from-here", os.O_RDWR | os.O_CREAT, 0o600, None)
assert queue >= 0, os.strerror(ctypes.get_errno())
assert libc.mq_send(queue, b"word", 4, 0) == 0
print(os.listdir("/dev/mqueue"), libc.mq_unlink(b"/seen-from-here"), os.listdir("/dev/mqueue"))
open("/dev/mqueue/by-path", "w")
"""
    ran = bench.run("/usr/bin/python3", "-c", text)
    assert ran.execution.exit == 0, ran.err
    assert ran.out.startswith(b"['seen-from-here']")
    assert ran.out.endswith(b" 0 []\n")
    assert not [o for o in ran.execution.observations if o.kind in {"refused-write", "hidden-path"}]
    ran = bench.sh("ls /dev/mqueue")
    assert (ran.out, ran.err) == (b"", b"")


def test_streams_open_by_their_names_too(bench):
    ran = bench.sh("cat /dev/stdin; echo out > /dev/stdout; echo err | tee /dev/stderr >> /dev/fd/1", stdin=b"in\n")
    assert (ran.out, ran.err) == (b"in\nout\nerr\n", b"err\n")
    assert ran.execution.exit == 0


def test_a_signal_is_told_as_a_signal(bench):
    ran = bench.sh("kill -USR1 $$")
    assert (ran.execution.exit, ran.execution.signal) == (None, signal.SIGUSR1)


def test_a_missing_program_is_127_and_a_file_without_right_126(bench):
    assert bench.run("no-such-program").execution.exit == 127
    assert bench.run("./readme.txt").execution.exit == 126


@pytest.mark.parametrize(
    "name",
    ["co:lon", "back\\slash", "a\\054b", "com,ma", "new\nline", "quo\"te'", "l" * 250, "/".join(["d" * 200] * 12)],
)
def test_a_worktree_may_have_any_name(bench, tmp_path, name):
    project = tmp_path / name
    project.mkdir(parents=True)
    (project / "was.txt").write_text("here\n")
    layer = replace(bench.layer, lower=str(project), target=str(project), masked=())
    ran = bench.sh("cat was.txt; echo new > made.txt", layer=layer, cwd=str(project))
    assert (ran.execution.exit, ran.out) == (0, b"here\n"), ran.err
    assert (Path(bench.layer.upper) / "made.txt").read_text() == "new\n"


def test_changes_stay_above_the_real_tree(bench):
    ran = bench.sh("echo new > made.txt; rm readme.txt; ls -A")
    lower, upper = Path(bench.layer.lower), Path(bench.layer.upper)
    assert ran.out == b"made.txt\n"
    assert sorted(p.name for p in lower.iterdir()) == [".env", "readme.txt"]
    assert (upper / "made.txt").read_text() == "new\n"
    assert (upper / "made.txt").stat().st_uid == bench.layer.owner[0]
    whiteout = (upper / "readme.txt").lstat()
    assert stat.S_ISCHR(whiteout.st_mode)
    assert whiteout.st_rdev == 0


def test_masked_paths_never_existed(bench):
    ran = bench.sh("cat .env; ls -A; echo mine > .env; cat .env")
    assert b"planted" not in ran.out
    assert ran.out == b"readme.txt\nmine\n"
    assert (Path(bench.layer.lower) / ".env").read_text() == "TOKEN=planted\n"


def test_replaced_files_show_the_other_content_and_can_be_written(bench):
    (Path(bench.layer.lower) / "sub").mkdir()
    (Path(bench.layer.lower) / "sub" / "config").write_text("secret\n")
    layer = replace(bench.layer, replaced=(("sub/config", b"clean\n"),))
    ran = bench.sh("cat sub/config; echo more >> sub/config; cat sub/config", layer=layer)
    assert ran.out == b"clean\nclean\nmore\n"
    assert (Path(bench.layer.lower) / "sub" / "config").read_text() == "secret\n"


def test_masks_outside_the_worktree_are_refused(bench):
    with pytest.raises(BoxError, match="not a path within"):
        bench.sh("true", layer=replace(bench.layer, masked=("../x",), middle=bench.layer.middle + "2"))


def test_it_runs_as_an_unprivileged_user_without_capabilities(bench):
    ran = bench.sh("id -u; grep -E '^(Cap(Inh|Prm|Eff|Bnd|Amb)|NoNewPrivs|Seccomp):' /proc/self/status")
    lines = ran.out.decode().split("\n")
    assert lines[0] == str(bench.facts.uid or 1_900_000_000)
    assert all(line.split()[1].strip("0") == "" for line in lines if line.startswith("Cap"))
    assert "NoNewPrivs:\t1" in lines
    assert "Seccomp:\t2" in lines


def test_only_the_box_is_seen(bench):
    ran = bench.sh(
        "ls / /home /proc | tr '\\n' ' '; cat /proc/1/environ; cat /etc/shadow; ls /run/user /var/run/docker.sock"
    )
    assert b"shadow:" not in ran.out
    assert b"root:" not in ran.out.replace(b"/root:", b"")
    assert str(os.getpid()).encode() not in ran.out.split()


def test_no_descriptor_is_inherited(bench):
    with open("/etc/passwd", "rb") as secret:
        os.set_inheritable(secret.fileno(), True)
        ran = bench.sh("ls /proc/self/fd; ls -l /proc/self/fd | grep -c pipe")
    assert ran.out.split() == [b"0", b"1", b"2", b"3", b"3"]


def test_the_callers_secrets_and_the_launchers_environment_stay_outside(bench):
    environ = {
        "PATH": bench.facts.path,
        "GH_TOKEN": "planted-1",
        "AWS_SECRET_ACCESS_KEY": "planted-2",
        "LANG": "C.UTF-8",
    }
    ran = bench.sh("cat /proc/*/environ | tr '\\0' '\\n'; env", caller_env=environ, run_id="run-5", git_sha="abc")
    assert b"planted" not in ran.out
    for line in (b"AGENT_ENV_CLASS=sandbox", b"AGENT_RUN_ID=run-5", b"AGENT_GIT_SHA=abc", b"LANG=C.UTF-8"):
        assert line in ran.out.split(b"\n")


def test_umask_and_working_directory_are_kept(bench):
    ran = bench.sh("umask; pwd", umask=0o027)
    assert ran.out.decode().split() == ["0027", bench.layer.target]


def test_a_working_directory_outside_the_view_is_named(bench):
    with pytest.raises(BoxError) as fault:
        bench.sh("true", cwd="/srv/elsewhere")
    assert fault.value.code == "box-cwd"


def test_loopback_servers_work_and_nothing_else_is_reachable(bench):
    script = (
        "import socket\n"
        "s=socket.create_server(('127.0.0.1',80)); c=socket.create_connection(('127.0.0.1',80)); print('own')\n"
        "for a in ('169.254.169.254','192.0.2.1'):\n"
        "  try: socket.create_connection((a,80),timeout=2); print('reached')\n"
        "  except OSError as e: print(type(e).__name__)\n"
    )
    ran = bench.run("/usr/bin/python3", "-c", script)
    assert ran.out.split()[0] == b"own"
    assert b"reached" not in ran.out


def test_what_it_starts_is_seen_and_what_is_refused_too(bench):
    ran = bench.sh("unshare -U true; /usr/bin/env true; cat ~/.ssh/id_rsa > /dev/null")
    seen = {(o.kind, o.detail.split(" (")[0]) for o in ran.execution.observations}
    assert ("refused-syscall", "unshare 0x10000000") in seen
    assert ("exec", "/usr/bin/env true") in seen
    decoys = [o for o in ran.execution.observations if o.kind == "decoy"]
    assert [o.detail for o in decoys] == ["/home/agent/.ssh/id_rsa"]
    assert decoys[0].violation


def test_a_quiet_run_touches_no_decoy(bench):
    ran = bench.sh("ls -laR ~ > /dev/null; git --version; python3 -c 'import ssl'")
    assert not [o for o in ran.execution.observations if o.kind != "exec"]


def test_the_interpreter_that_runs_the_tests_is_found(bench):
    base = os.path.realpath(sys.executable)
    if base.startswith("/usr/"):
        base = "/usr/bin/python3"
    tools = {t.root for t in bench.facts.toolchains}
    assert base.startswith("/usr/") or any(base.startswith(root + "/") for root in tools)


def test_a_large_order_and_large_input_pass(bench):
    data = os.urandom(3_000_000)
    limits = Limits(output=Bytes(8_000_000))
    ran = bench.run("cat", stdin=data[:60_000], limits=limits, env_set={"BIG": "x" * 100_000})
    assert ran.out == data[:60_000]


def test_a_home_that_a_box_has_closed_is_open_to_the_next(bench, tmp_path):
    home = str(tmp_path / "home")
    assert bench.sh("echo kept > ~/.state; chmod 0 ~", home_upper=home).execution.exit == 0
    ran = bench.sh("cat ~/.state; echo more >> ~/.state", home_upper=home)
    assert (ran.execution.exit, ran.out) == (0, b"kept\n"), ran.err


def test_a_home_is_kept_between_boxes_when_the_plan_says_so(bench, tmp_path):
    home = str(tmp_path / "home")
    first = bench.sh("echo kept > ~/.state; ls -A ~; echo own > ~/.ssh/id_rsa", home_upper=home)
    assert b".gitconfig" in first.out
    second = bench.sh("cat ~/.state; cat ~/.ssh/id_rsa", home_upper=home)
    assert second.out == b"kept\nown\n"
    assert [o.detail for o in second.execution.observations if o.kind == "decoy"] == ["/home/agent/.ssh/id_rsa"]
    info = (tmp_path / "home" / ".state").stat()
    assert (info.st_uid, info.st_gid) == bench.layer.owner


def test_a_planted_link_in_a_kept_home_leads_nowhere(bench, tmp_path):
    home = tmp_path / "home"
    victim = tmp_path / "victim"
    victim.mkdir()
    bench.sh(
        f"rm -rf ~/.ssh; ln -s {victim} ~/.ssh; rm ~/.gitconfig; ln -s {victim}/x ~/.gitconfig", home_upper=str(home)
    )
    bench.sh("true", home_upper=str(home))
    assert list(victim.iterdir()) == []


TOOLS = {
    "git": "git init -q r && cd r && echo x > f && git add f && git commit -qm one && git log --format=%an",
    "multiprocessing": (
        "/usr/bin/python3 -c 'import multiprocessing as m\nif __name__ == \"__main__\":\n    print(sum(m.Pool(3).map(abs, [-1, 2])))'"
    ),
    "gcc": "printf 'int main(){return 0;}' > a.c && cc a.c -o a && ./a && echo built",
    "node": "node -e 'console.log(require(\"os\").userInfo().username)'",
    "make": "printf 'all:\\n\\t@echo made\\n' > Makefile && make -s",
}


@pytest.mark.parametrize("tool", sorted(TOOLS))
def test_ordinary_tools_work(bench, tool):
    import shutil

    needed = {"multiprocessing": "python3"}.get(tool, tool)
    if shutil.which(needed, path="/usr/bin:/bin") is None:
        pytest.skip(f"{needed} is not installed here")
    ran = bench.sh(TOOLS[tool])
    assert (ran.execution.exit, ran.err) == (0, b""), ran
    assert ran.out.split()[0] in {b"agent", b"3", b"built", b"made"}


def test_files_that_ordinary_tools_open_too_are_recorded_and_no_violation(bench):
    ran = bench.sh("cat ~/.netrc ~/.npmrc > /dev/null; grep -c . /proc/keys")
    seen = {o.detail: o.violation for o in ran.execution.observations if o.kind == "credential-read"}
    assert seen == {"/home/agent/.netrc": False, "/home/agent/.npmrc": False}


@pytest.mark.parametrize("size", [100, 1 << 20], ids=["all of it fits the pipe", "more than fits"])
@pytest.mark.parametrize(
    ("line", "reads"),
    [("true", 0), ("dd bs=5 count=1", 5), ("exec <&-; echo", 0), ("cat", None), ("dd bs=7 count=2; kill -9 $$", 14)],
)
def test_what_a_command_leaves_of_a_file_is_the_callers_to_read(bench, tmp_path, line, reads, size):
    """A shell's loop shares its input with each command in it."""
    (tmp_path / "input").write_bytes(bytes(size))
    source, null = os.open(tmp_path / "input", os.O_RDONLY), os.open("/dev/null", os.O_WRONLY)
    os.lseek(source, 10, os.SEEK_SET)
    box = bench.launcher.start(bench.plan("/bin/sh", "-c", line), stdin=source, stdout=null, stderr=null)
    box.wait(60)
    assert os.lseek(source, 0, os.SEEK_CUR) == (size if reads is None else 10 + reads)
    os.close(source)
    os.close(null)


@pytest.mark.parametrize("line", ["echo short", "yes", "echo short >&2"])
def test_output_that_cannot_be_written_is_told(bench, line):
    full = os.open("/dev/full", os.O_WRONLY)
    nothing = os.open("/dev/null", os.O_RDONLY)
    box = bench.launcher.start(bench.plan("/bin/sh", "-c", line), stdin=nothing, stdout=full, stderr=full)
    assert box.wait(60).ended_by == "output could not be written: No space left on device"
    os.close(full)
    os.close(nothing)


@pytest.mark.parametrize("cap", [65536, 1 << 20], ids=["all that is shown fits the pipe", "more than fits"])
@pytest.mark.parametrize("reads", [0, 100_000])
def test_a_reader_who_has_enough_is_no_fault(bench, cap, reads):
    """Also where the cap drops what comes now, so that no write would find out."""
    inner, outer = os.pipe()
    nothing = os.open("/dev/null", os.O_RDWR)
    plan = bench.plan("/usr/bin/yes")
    plan = replace(plan, limits=replace(plan.limits, output=Bytes(cap)))
    box = bench.launcher.start(plan, stdin=nothing, stdout=outer, stderr=nothing)
    for descriptor in (outer, nothing):
        os.close(descriptor)
    assert len(os.read(inner, 1)) == 1
    time.sleep(0.3)  # by now the cap is reached, where it is small
    left = min(reads, cap // 4)
    while left > 0:
        left -= len(os.read(inner, left))
    os.close(inner)
    ended = box.wait(60)
    assert (ended.signal, ended.ended_by) == (signal.SIGPIPE, "")


def test_a_reader_is_waited_for_as_long_as_the_command_might_have_run():
    assert flush_seconds(0, 5.0) is None
    assert flush_seconds(600.0, 5.0) == 595.0
    assert flush_seconds(15.0, 5.0) == FLUSH_SECONDS


@pytest.mark.slow
@pytest.mark.parametrize(("runtime", "all_of_it"), [(0, True), (600_000, True), (1000, False)])
def test_a_pager_that_is_looked_at_for_a_while_gets_the_rest(bench, runtime, all_of_it):
    inner, outer = os.pipe()
    nothing = os.open("/dev/null", os.O_RDWR)
    plan = bench.plan("/usr/bin/head", "-c", "200000", "/dev/zero")
    plan = replace(plan, limits=replace(plan.limits, output=Bytes(1 << 20), runtime=Millis(runtime)))
    box = bench.launcher.start(plan, stdin=nothing, stdout=outer, stderr=nothing)
    for descriptor in (outer, nothing):
        os.close(descriptor)
    if all_of_it:
        with pytest.raises(TimeoutError):
            box.wait(FLUSH_SECONDS + 5)
    else:
        assert box.wait(120).ended_by == "output could not be written: nobody read it in time"
    with open(inner, "rb") as reader:
        assert (len(reader.read()) == 200_000) is all_of_it
    if all_of_it:
        ended = box.wait(60)
        assert (ended.exit, ended.ended_by, ended.dropped_bytes) == (0, "", 0)
