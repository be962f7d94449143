"""The door from outside: what a person or an agent sees, and what happens when parts of it are missing or fake."""

import contextlib
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

from ringfence.supervisor.paths import by_short_address

pytestmark = pytest.mark.needs_userns


def test_an_allowed_command_runs_with_its_own_output_and_status(cli):
    done = cli("run", "--", "cat", "a.txt")
    assert (done.returncode, done.stdout) == (0, "hello\n"), done.stderr
    assert cli("run", "--", "false").returncode == 1


def test_output_that_finds_no_room_is_no_success(cli):
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*cli.words, "run", "--", "cat", "a.txt"], cwd=cli.project, stdout=full, stderr=subprocess.PIPE, text=True,
            timeout=60, check=False,
        )  # fmt: skip
    assert (done.returncode, "No space left on device" in done.stderr) == (1, True)


def test_a_refused_command_does_not_run_and_says_which_rule(cli):
    done = cli("run", "--", "touch", "made")
    assert done.returncode == 11
    assert "denied[" in done.stderr
    assert not (cli.project / "made").exists()


def test_nothing_is_allowed_until_a_person_trusts_the_policy(untrusted):
    done = untrusted("run", "--", "cat", "a.txt")
    assert (done.returncode, done.stdout) == (10, "")
    assert "trust" in done.stderr


def test_an_edited_policy_is_no_longer_the_trusted_one(cli):
    assert cli("run", "--", "true").returncode == 0
    policy = cli.project / "sandbox_policy.yaml"
    policy.write_text(policy.read_text() + "  default: deny\n")
    assert cli("run", "--", "true").returncode == 10


def test_without_a_policy_nothing_runs_and_the_remedy_is_named(cli, tmp_path):
    empty = tmp_path / "empty"
    empty.mkdir()
    done = cli("run", "--", "true", cwd=empty)
    assert done.returncode == 3
    assert "ringfence init" in done.stderr


def test_a_broken_policy_is_a_fault_with_its_place(cli):
    (cli.project / "sandbox_policy.yaml").write_text("version: 1\nfail_closed: maybe\n")
    done = cli("run", "--", "true")
    assert done.returncode == 3
    assert "sandbox_policy.yaml:2" in done.stderr


def test_a_signal_that_ended_the_command_ends_the_client(cli):
    cli.task("kill -TERM $$\n")
    assert cli("run", "--", "sh", "task.sh").returncode == -signal.SIGTERM


def test_changes_reach_the_tree_and_protected_ones_do_not(cli):
    cli.task(
        "echo new > made.txt; echo x >> sandbox_policy.yaml; mkdir -p .git/hooks; echo evil > .git/hooks/pre-commit\n"
    )
    before = (cli.project / "sandbox_policy.yaml").read_text()
    report = cli.json("run", "--json", "--", "sh", "task.sh")
    assert report["exit"] == 0, report
    assert (cli.project / "made.txt").read_text() == "new\n"
    assert (cli.project / "sandbox_policy.yaml").read_text() == before
    assert not (cli.project / ".git" / "hooks" / "pre-commit").exists()
    refused = {item["path"] for item in report["gate"]["refused"]}
    assert {"sandbox_policy.yaml", ".git/hooks/pre-commit"} <= refused


def test_review_keeps_everything_back(cli):
    cli.task("echo new > made.txt\n")
    report = cli.json("run", "--json", "--review", "--", "sh", "task.sh")
    assert not (cli.project / "made.txt").exists()
    mission = report["mission"]
    assert "made.txt" in cli("mission", "diff", mission).stdout
    assert cli("mission", "commit", mission, "made.txt").returncode == 0
    assert (cli.project / "made.txt").read_text() == "new\n"


def test_the_time_limit_ends_a_child_that_ignores_term_and_one_that_left(cli):
    marker = f"{300 + os.getpid() / 1e7:.7f}"
    cli.task(f"trap '' TERM\n(setsid sh -c \"trap '' TERM; sleep {marker}\" &)\nsleep {marker}\n")
    text = (cli.project / "sandbox_policy.yaml").read_text().replace("60000", "1500")
    (cli.project / "sandbox_policy.yaml").write_text(text)
    assert cli("policy", "trust", "--yes").returncode == 0
    report = cli.json("run", "--json", "--", "sh", "task.sh")
    assert report["ended_by"].startswith("runtime")
    assert not list(processes_named(marker))


def processes_named(text):
    for folder in pathlib.Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                line = (folder / "cmdline").read_bytes()
            except OSError:
                continue
            if text.encode() in line and int(folder.name) != os.getpid():
                yield int(folder.name)


def test_output_beyond_the_cap_is_drained_and_counted(cli):
    cli.task("i=0; while [ $i -lt 20000 ]; do echo 0123456789; i=$((i+1)); done; echo end\n")
    report = cli.json("run", "--json", "--", "sh", "task.sh")
    assert report["exit"] == 0
    assert report["execution"]["dropped_bytes"] > 100_000
    assert report["stdout"].startswith("0123456789\n")
    assert report["stdout"].endswith("end\n")
    assert len(report["stdout"]) < 70_000


def test_the_box_does_not_see_the_callers_variables_or_descriptors(cli):
    cli.task("cat /proc/self/environ | tr '\\0' '\\n'; ls /proc/self/fd\n")
    read, write = os.pipe()
    os.set_inheritable(write, True)
    done = cli("run", "--", "sh", "task.sh", env={"MY_TOKEN": "planted-secret", "LD_PRELOAD": ""})
    os.close(read)
    os.close(write)
    assert "planted-secret" not in done.stdout
    assert "AGENT_ENV_CLASS=sandbox" in done.stdout
    numbers = {int(word) for word in done.stdout.split() if word.isdigit()}
    assert numbers <= {0, 1, 2, 3}, done.stdout


@pytest.mark.parametrize("name", ["prod", "trusted_ci"])
def test_a_caller_of_a_closed_class_is_refused(cli, name):
    done = cli("run", "--", "true", env={"AGENT_ENV_CLASS": name})
    assert done.returncode == 3
    assert "closed-class" in done.stderr


def test_hostile_variables_and_a_shadowed_module_change_nothing(cli, tmp_path):
    evil = tmp_path / "evil"
    evil.mkdir()
    marker = tmp_path / "owned"
    body = f"open({str(marker)!r}, 'w').close()\n"
    for name in ("ringfence.py", "msgspec.py", "sitecustomize.py", "usercustomize.py", "json.py", "os.py"):
        (evil / name).write_text(body)
        (cli.project / name).write_text(body)
    for name in ("git", "python3", "sh", "bwrap"):
        (evil / name).write_text(f"#!/bin/sh\ntouch {marker}\n")
        (evil / name).chmod(0o755)
    cli("stop")
    hostile = {
        "PYTHONPATH": str(evil),
        "PYTHONSTARTUP": str(evil / "os.py"),
        "PATH": f"{evil}:{os.environ['PATH']}",
        "XDG_RUNTIME_DIR": str(evil),
        "XDG_STATE_HOME": str(evil),
        "XDG_CONFIG_HOME": str(evil),
        "HOME": str(evil),
        "TMPDIR": str(evil),
    }
    done = cli("run", "--", "cat", "a.txt", env=hostile)
    assert done.stdout == "hello\n", done.stderr
    assert not marker.exists()
    environment = pathlib.Path(f"/proc/{cli.supervisor_pid()}/environ")
    try:
        text = environment.read_bytes()
    except PermissionError:
        text = b""  # not even readable: the supervisor is not dumpable
    assert str(evil).encode() not in text


def test_the_supervisor_starts_clean(cli):
    cli("run", "--", "true")
    pid = cli.supervisor_pid()
    if os.getuid() == 0:  # for others it is not even readable: the supervisor is not dumpable
        assert os.readlink(f"/proc/{pid}/cwd") == "/"
    assert os.getsid(pid) != os.getsid(0)
    assert os.stat(cli.root / "run" / "supervisor.sock").st_mode & 0o777 == 0o600


class FakeSupervisor:
    """Answers on the real socket's place with whatever the test says."""

    def __init__(self, path, reply):
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        os.chmod(path.parent, 0o700)
        self.listener = socket.socket(socket.AF_UNIX)
        by_short_address(str(path), self.listener.bind)
        self.listener.listen()
        self.reply = reply
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            with connection, contextlib.suppress(OSError):  # a client may look who answers, and leave
                connection.recv(65536)
                connection.sendall(self.reply)

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.thread.join(60)
        self.listener.close()


REPLIES = {
    "nothing": b"",
    "garbage": b"\xff" * 64,
    "half a frame": b"\x00\x00\x00\x10{",
    "a list": b"\x00\x00\x00\x02[]",
    "too long": b"\x7f\xff\xff\xff",
    "an empty object": b"\x00\x00\x00\x02{}",
}


@pytest.mark.parametrize("name", REPLIES)
def test_a_fake_supervisor_gets_no_command_run(cli, name):
    fake = FakeSupervisor(cli.root / "run" / "supervisor.sock", REPLIES[name])
    try:
        cli.task("echo ran > ran.txt\n")
        done = cli("run", "--", "sh", "task.sh")
    finally:
        fake.close()
        os.unlink(cli.root / "run" / "supervisor.sock")
    assert done.returncode != 0
    assert not (cli.project / "ran.txt").exists()
    assert "Traceback" not in done.stderr


@pytest.mark.needs_root
@pytest.mark.skipif(os.getuid() != 0, reason="only root can make another user's socket")
def test_a_socket_of_another_user_is_refused(untrusted):
    path = untrusted.root / "run" / "supervisor.sock"
    path.parent.mkdir(mode=0o755)
    os.chmod(untrusted.root, 0o755)
    os.chown(path.parent, 65534, 65534)
    done = untrusted("run", "--", "true")
    assert done.returncode == 1
    assert "unsafe-path" in done.stderr


def test_a_runtime_folder_open_to_others_is_refused(untrusted):
    folder = untrusted.root / "run"
    folder.mkdir()
    folder.chmod(0o777)
    done = untrusted("run", "--", "true")
    assert done.returncode == 1
    assert "unsafe-path" in done.stderr


def test_killing_the_supervisor_ends_the_box_and_the_client_sees_a_fault(cli):
    marker = f"{300 + os.getpid() / 1e7:.7f}"
    cli.task(f"sleep {marker}\n")
    client = cli.start("run", "--", "sh", "task.sh")
    deadline = time.monotonic() + 20
    while not list(processes_named(marker)) and time.monotonic() < deadline:
        time.sleep(0.05)
    os.kill(cli.supervisor_pid(), signal.SIGKILL)
    _, err = client.communicate(timeout=60)
    assert client.returncode == 1
    assert "supervisor-gone" in err
    deadline = time.monotonic() + 60
    while list(processes_named(marker)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not list(processes_named(marker))
    assert cli("run", "--", "cat", "a.txt").stdout == "hello\n"
    kinds = [entry["kind"] for entry in entries_of(cli)]
    assert "tool.orphaned" in kinds


def test_when_the_launcher_is_killed_the_next_command_finds_a_fresh_one(cli):
    cli("run", "--", "true")
    before = cli.supervisor_pid()
    children = pathlib.Path(f"/proc/{before}/task/{before}/children").read_text().split()
    assert len(children) == 1  # the launcher; boxes are its children, not the supervisor's
    os.kill(int(children[0]), signal.SIGKILL)
    deadline = time.monotonic() + 20
    while os.path.exists(f"/proc/{before}") and time.monotonic() < deadline:
        time.sleep(0.05)
    assert cli("run", "--", "cat", "a.txt").stdout == "hello\n"


def test_stop_ends_boxes_and_leaves_nothing(cli):
    marker = f"{400 + os.getpid() / 1e7:.7f}"
    cli.task(f"sleep {marker}\n")
    client = cli.start("run", "--", "sh", "task.sh")
    deadline = time.monotonic() + 30
    while not list(processes_named(marker)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert cli("stop").returncode == 0
    client.communicate(timeout=60)
    assert client.returncode != 0
    assert not (cli.root / "run" / "supervisor.sock").exists()
    assert str(cli.root) not in pathlib.Path("/proc/self/mountinfo").read_text()


def test_many_clients_at_once_start_one_supervisor(cli):
    cli("stop")
    clients = [cli.start("run", "--", "cat", "a.txt") for _ in range(8)]
    results = [(one.communicate(timeout=60), one.returncode) for one in clients]
    assert [code for _, code in results] == [0] * 8, results
    assert {out for (out, _), _ in results} == {"hello\n"}


def test_a_ledger_that_cannot_be_written_lets_nothing_run(cli):
    cli("run", "--", "true")
    cli("stop")
    ledger = cli.root / "state" / "ledger"
    saved = ledger.with_name("kept")
    ledger.rename(saved)
    ledger.write_text("not a folder")
    cli.task("echo ran > ran.txt\n")
    done = cli("run", "--", "sh", "task.sh")
    ledger.unlink()
    saved.rename(ledger)
    assert done.returncode != 0
    assert not (cli.project / "ran.txt").exists()


def entries_of(cli):
    return [json.loads(line) for line in cli("ledger", "show", "--json").stdout.splitlines()]


def test_every_run_is_an_intent_and_a_result_in_the_ledger(cli):
    report = cli.json("run", "--json", "--", "cat", "a.txt")
    kinds = {entry["seq"]: entry["kind"] for entry in entries_of(cli)}
    assert kinds[report["ledger"]["intent"]["seq"]] == "tool.intent"
    assert kinds[report["ledger"]["result"]["seq"]] == "tool.result"


def test_the_client_runs_isolated_without_site_packages(cli):
    import ringfence

    source = str(pathlib.Path(ringfence.__file__).parent.parent)
    code = f"import sys; sys.path.insert(0, {source!r}); import ringfence.supervisor.client, ringfence.cli.run; print(sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True)
    loaded = set(json.loads(done.stdout.replace("'", '"')))
    heavy = {
        "msgspec",
        "yaml",
        "tree_sitter",
        "cryptography",
        "socket",
        "json",
        "typing",
        "dataclasses",
        "argparse",
        "re",
        "_struct",
        "array",
    }
    assert not loaded & (heavy), loaded & heavy


def test_a_person_can_tell_the_commands_eleven_from_the_fences(cli, tmp_path):
    cli.task("exit 11\n")
    report = tmp_path / "report.json"
    assert cli("run", "--report", str(report), "--", "sh", "task.sh").returncode == 11
    assert json.loads(report.read_text())["ran"] is True
    assert cli("run", "--report", str(report), "--", "touch", "x").returncode == 11
    assert json.loads(report.read_text())["ran"] is False


def test_untrusted_text_is_escaped_where_a_person_sees_it(cli):
    done = cli("run", "--", "touch", "\x1b]0;owned\x07\u202egpj")
    assert done.returncode == 11
    assert "\x1b" not in done.stderr
    assert "\u202e" not in done.stderr


@pytest.mark.parametrize(
    "words", [("run",), ("run", "--"), ("run", "--bogus"), ("run", "-c"), ("run", "-c", "ls", "--", "ls")]
)
def test_usage_faults_exit_two(cli, words):
    done = cli(*words)
    assert done.returncode == 2
    assert "ringfence run --" in done.stderr
