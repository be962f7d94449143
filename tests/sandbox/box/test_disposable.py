"""The check of a disposable host, and its set-up script, run for real in a copy of /etc."""

import errno
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ringfence.egress import rules
from ringfence.sandbox import disposable
from ringfence.sandbox.inner import refusals

SCRIPT = Path(disposable.__file__).parent / "files" / "disposable_host.sh"


def found(home):
    return {finding.check: finding for finding in disposable.check_host(str(home))}


@pytest.fixture(autouse=True)
def _no_cloud(monkeypatch):
    """No test asks the network of the machine it runs on."""
    monkeypatch.setattr(disposable, "METADATA", ("127.0.0.2",))
    monkeypatch.setattr(disposable, "HTTP", 1)


@pytest.fixture
def bare(monkeypatch):
    for name in list(os.environ):
        if disposable.looks_secret(name) or name == "SSH_AUTH_SOCK":
            monkeypatch.delenv(name)


@pytest.mark.usefixtures("bare")
def test_credentials_are_told_by_path_and_never_by_content(tmp_path, monkeypatch):
    assert found(tmp_path)["credentials"].passed
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "id_ed25519").write_text("planted-content")
    monkeypatch.setenv("SOME_API_KEY", "planted-content")
    finding = found(tmp_path)["credentials"]
    assert not finding.passed
    assert (finding.detail, "planted" in str(finding)) == ("~/.ssh/id_ed25519, $SOME_API_KEY", False)


@pytest.mark.usefixtures("bare")
@pytest.mark.parametrize("path", [*disposable.CREDENTIALS, ".ssh/deploy-key", ".ssh/id_ed25519_sk", ".ssh/work.pem"])
def test_each_credential_is_found_alone(path, tmp_path):
    (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / path).write_text("x")
    finding = found(tmp_path)["credentials"]
    assert (finding.passed, finding.detail) == (False, f"~/{path}")


@pytest.mark.usefixtures("bare")
def test_what_of_ssh_is_public_is_no_credential(tmp_path, monkeypatch):
    (tmp_path / ".ssh" / "config.d").mkdir(parents=True)
    for name in ("known_hosts", "known_hosts.old", "authorized_keys", "config", "id_ed25519.pub"):
        (tmp_path / ".ssh" / name).write_text("x")
    assert found(tmp_path)["credentials"].passed
    monkeypatch.setenv("SSH_AUTH_SOCK", "/run/user/1000/agent")
    assert found(tmp_path)["credentials"].detail == "$SSH_AUTH_SOCK"


def test_root_is_not_a_user_for_agents(tmp_path):
    finding = found(tmp_path)["user"]
    if os.geteuid() == 0:
        assert (finding.passed, bool(finding.remedy)) == (False, True)
    else:
        assert finding.passed or "member of" in finding.detail


@pytest.fixture
def someone(monkeypatch):
    """As an ordinary user, whoever runs the tests."""
    monkeypatch.setattr(disposable.os, "geteuid", lambda: os.getuid() or 1)
    monkeypatch.setattr(disposable.os, "getegid", lambda: 1)
    monkeypatch.setattr(disposable.os, "getgroups", lambda: [1])
    monkeypatch.setattr(disposable.os, "getgrouplist", lambda _name, _gid: [1])
    monkeypatch.setattr(disposable, "ENGINES", ())


@pytest.mark.usefixtures("someone")
@pytest.mark.parametrize("asked", ["getgroups", "getgrouplist"])
def test_a_powerful_group_is_named_with_what_takes_the_user_out_of_it(asked, tmp_path, monkeypatch):
    assert found(tmp_path)["user"].passed
    shadow = disposable.grp.getgrnam("shadow").gr_gid
    monkeypatch.setattr(disposable.os, asked, lambda *_who: [1, shadow])
    finding = found(tmp_path)["user"]
    assert (finding.passed, finding.detail) == (False, "member of shadow")
    assert f"gpasswd --delete {disposable.pwd.getpwuid(os.getuid() or 1).pw_name} shadow" in finding.remedy


@pytest.mark.usefixtures("someone")
def test_an_engine_that_the_user_may_use_is_a_way_to_root(tmp_path, monkeypatch):
    engine = tmp_path / "docker.sock"
    monkeypatch.setattr(disposable, "ENGINES", (str(engine),))
    assert found(tmp_path)["user"].passed
    engine.write_text("")
    finding = found(tmp_path)["user"]
    assert not finding.passed
    assert str(engine) in finding.detail
    assert str(engine) in finding.remedy


SUDO = "#!/bin/sh\n[ \"$1 $2\" = '-n -l' ] && {}\nexit 1\n"


@pytest.mark.usefixtures("someone")
@pytest.mark.parametrize(
    ("does", "passed"),
    [
        ("exit 0", False),  # as for one program without a password: `sudo -n true` would be refused
        ("exit 1", True),
        ("exec sleep 60", False),
    ],
)
def test_whatever_sudo_does_without_a_password_is_a_way_up(does, passed, tmp_path, monkeypatch):
    program = tmp_path / "sudo"
    program.write_text(SUDO.format(does))
    program.chmod(0o755)
    monkeypatch.setattr(disposable.shutil, "which", lambda _name, **_where: str(program))
    monkeypatch.setattr(disposable, "SUDO_SECONDS", 10.0 if passed or "sleep" not in does else 0.5)
    finding = found(tmp_path)["sudo"]
    assert (finding.passed, bool(finding.remedy)) == (passed, not passed)


def test_a_metadata_service_that_answers_is_named(tmp_path, monkeypatch):
    assert found(tmp_path)["metadata"].passed
    with socket.create_server(("127.0.0.1", 0)) as cloud:
        monkeypatch.setattr(disposable, "HTTP", cloud.getsockname()[1])
        monkeypatch.setattr(disposable, "METADATA", ("127.0.0.1", "127.0.0.2", "::1"))
        finding = found(tmp_path)["metadata"]
    assert not finding.passed
    assert finding.detail.startswith("127.0.0.1 takes connections")


def test_what_cannot_be_asked_has_not_passed_but_a_family_that_the_kernel_lacks_has(tmp_path, monkeypatch):
    real = socket.socket

    def refuse(fault):
        def made(family=socket.AF_INET, *words):
            if family == socket.AF_INET6:
                raise OSError(fault, os.strerror(fault))
            return real(family, *words)

        return made

    monkeypatch.setattr(disposable, "METADATA", ("127.0.0.2", "::1"))
    for fault, passed in ((errno.EAFNOSUPPORT, True), (errno.EMFILE, False)):
        monkeypatch.setattr(disposable.socket, "socket", refuse(fault))
        finding = found(tmp_path)["metadata"]
        assert (finding.passed, bool(finding.remedy)) == (passed, not passed)


@pytest.mark.usefixtures("bare")
def test_a_closed_folder_of_keys_counts_and_no_name_in_it_reaches_a_terminal_raw(tmp_path, monkeypatch):
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "k\x1b]0;x\x07").write_text("")
    finding = found(tmp_path)["credentials"]
    assert not finding.passed
    assert finding.detail.isprintable()

    def closed(path):
        raise PermissionError(errno.EACCES, "closed", path)

    monkeypatch.setattr(disposable.os, "listdir", closed)
    assert found(tmp_path)["credentials"].detail == "~/.ssh"


def test_the_box_the_egress_worker_and_this_check_know_the_same_addresses_of_metadata():
    assert {str(address) for address in rules.METADATA} == set(refusals.METADATA)


def test_rules_that_are_only_written_down_are_no_log(tmp_path, monkeypatch):
    assert not found(tmp_path)["egress log"].passed
    (tmp_path / "host.nft").write_text("")
    monkeypatch.setattr(disposable, "RULES", str(tmp_path / "host.nft"))
    finding = found(tmp_path)["egress log"]
    assert not finding.passed
    assert "not in force" in finding.detail
    assert f"nft -f {tmp_path}/host.nft" in finding.remedy


def test_an_old_machine_is_a_pet(tmp_path, monkeypatch):
    now = time.time()
    monkeypatch.setattr(disposable.time, "time", lambda: now + 30 * 86400)
    finding = found(tmp_path)["age"]
    assert not finding.passed
    assert "pet" in finding.detail


def test_a_new_machine_of_an_old_image_is_new(tmp_path, monkeypatch):
    names = [str(tmp_path / name) for name in ("machine-id", "hostname", "lost+found")]
    monkeypatch.setattr(disposable, "FIRST_BOOT", names)
    for days, name in zip((0, 40, 400), names, strict=True):
        Path(name).write_text("")
        os.utime(name, (0, time.time() - days * 86400))
    assert found(tmp_path)["age"].passed
    os.unlink(names[0])
    assert found(tmp_path)["age"].detail.startswith("about 40 days")


def test_every_failure_has_a_remedy_and_the_output_is_json(capsys):
    code = disposable.main(as_json=True)
    report = json.loads(capsys.readouterr().out)
    assert code == (0 if report["fit"] else 1)
    assert all(row["passed"] or row["remedy"] for row in report["findings"])
    assert [row["check"] for row in report["findings"]] == [
        "credentials",
        "user",
        "sudo",
        "metadata",
        "egress log",
        "age",
    ]


def test_the_script_refuses_anyone_but_root():
    if os.geteuid() == 0:
        subprocess.run(["bash", "-n", str(SCRIPT)], check=True, timeout=20)
        return
    done = subprocess.run(["bash", str(SCRIPT)], capture_output=True, text=True, check=False, timeout=20)
    assert (done.returncode, done.stderr) == (1, "run this as root\n")


PLAY = """
set -eu
mount --make-rprivate /
mount -t overlay o -o lowerdir=/etc,upperdir=$1/etc-u,workdir=$1/etc-w /etc
mount -t tmpfs t /home
mkdir -p /etc/systemd/system
ip link set lo up
as_user() { setpriv --reuid=fencetest --regid=fencetest --clear-groups "$@"; }
log() { as_user "$3" -c "$LOG"; }
groupadd --force sudo
useradd --create-home --groups sudo fencetest
echo "log before: $(log "$@")"
bash "$2" fencetest
bash "$2" fencetest
getent passwd fencetest; passwd --status fencetest; echo "groups: $(id -nG fencetest)"
nft list table inet ringfence_host
ip addr add 169.254.169.254/32 dev lo
as_user bash -c 'exec 3<>/dev/tcp/169.254.169.254/80' 2>&1 || true
echo "log after: $(log "$@")"
nft flush ruleset
echo "log without rules: $(log "$@")"
$(sed -n 's/^ExecStart=//p' /etc/systemd/system/multi-user.target.wants/ringfence-host.service)
echo "log after a boot: $(log "$@")"
bash "$2" root && echo "took root" || true
"""
LOG = """
import errno, socket
with socket.socket() as client:
    print("in force" if client.connect_ex(("127.65.71.84", 9)) == errno.EHOSTUNREACH else "not in force")
"""


@pytest.mark.needs_root
@pytest.mark.skipif(os.geteuid() != 0, reason="makes users and rules, in namespaces of its own")
def test_the_script_does_what_it_says_and_twice_is_once(tmp_path):
    for program in ("nft", "useradd", "unshare", "setpriv"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed here")
    assert disposable.IN_FORCE == ("127.65.71.84", 9)
    for name in ("etc-u", "etc-w"):
        (tmp_path / name).mkdir()
    python = shutil.which("python3", path="/usr/bin:/bin") or sys.executable
    command = ["unshare", "-m", "-n", "bash", "-c", PLAY, "play", str(tmp_path), str(SCRIPT), python]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=60, env={**os.environ, "LOG": LOG}
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("ready: fencetest") == 2
    assert "fencetest L " in done.stdout
    assert "groups: fencetest\n" in done.stdout
    assert done.stdout.count('log prefix "AGENT-EGRESS "') == 1
    assert "No route to host" in done.stdout or "prohibited" in done.stdout or "denied" in done.stdout
    told = dict(line.split(": ", 1) for line in done.stdout.splitlines() if line.startswith("log "))
    assert told == {
        "log before": "not in force",
        "log after": "in force",
        "log without rules": "not in force",
        "log after a boot": "in force",
    }
    assert "took root" not in done.stdout
    assert "fencetest" not in Path("/etc/passwd").read_text()
    (tmp_path / "etc-w" / "work").chmod(0o700)
