"""The check of a disposable host, and its set-up script, run for real in a copy of /etc."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from ringfence.sandbox import disposable

SCRIPT = Path(disposable.__file__).parent / "files" / "disposable_host.sh"


def found(home):
    return {finding.check: finding for finding in disposable.check_host(str(home))}


def test_credentials_are_told_by_path_and_never_by_content(tmp_path, monkeypatch):
    for name in list(os.environ):
        monkeypatch.delenv(name) if disposable._secret(name) else None
    assert found(tmp_path)["credentials"].passed
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "id_ed25519").write_text("planted-content")
    monkeypatch.setenv("SOME_API_KEY", "planted-content")
    finding = found(tmp_path)["credentials"]
    assert not finding.passed
    assert (finding.detail, "planted" in str(finding)) == ("~/.ssh/id_ed25519, $SOME_API_KEY", False)


def test_root_is_not_a_user_for_agents(tmp_path):
    finding = found(tmp_path)["user"]
    if os.geteuid() == 0:
        assert (finding.passed, bool(finding.remedy)) == (False, True)
    else:
        assert finding.passed or "member of" in finding.detail


def test_an_old_machine_is_a_pet(tmp_path, monkeypatch):
    import time

    now = time.time()
    monkeypatch.setattr(disposable.time, "time", lambda: now + 30 * 86400)
    finding = found(tmp_path)["age"]
    assert not finding.passed
    assert "pet" in finding.detail


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
ip link set lo up
bash "$2" fencetest
bash "$2" fencetest
getent passwd fencetest; passwd --status fencetest; id -nG fencetest
nft list table inet ringfence_host
ip addr add 169.254.169.254/32 dev lo
setpriv --reuid=fencetest --clear-groups bash -c 'exec 3<>/dev/tcp/169.254.169.254/80' 2>&1 || true
"""


@pytest.mark.needs_root
@pytest.mark.skipif(os.geteuid() != 0, reason="makes users and rules, in namespaces of its own")
def test_the_script_does_what_it_says_and_twice_is_once(tmp_path):
    for program in ("nft", "useradd", "unshare", "setpriv"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed here")
    for name in ("etc-u", "etc-w"):
        (tmp_path / name).mkdir()
    command = ["unshare", "-m", "-n", "bash", "-c", PLAY, "play", str(tmp_path), str(SCRIPT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("ready: fencetest") == 2
    assert "fencetest L " in done.stdout
    assert done.stdout.count('log prefix "AGENT-EGRESS "') == 1
    assert "No route to host" in done.stdout or "prohibited" in done.stdout or "denied" in done.stdout
    assert "fencetest" not in Path("/etc/passwd").read_text()
    (tmp_path / "etc-w" / "work").chmod(0o700)
