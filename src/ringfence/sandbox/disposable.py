"""``ringfence doctor --host``: is this machine fit to be thrown away? Credentials, rights, metadata, log, age.

A box needs none of this; a whole machine given to agents does. Nothing is read but names: a credential is told by its
path, never by what it holds.
"""

import grp
import json
import os
import pwd
import shutil
import socket
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass

OLD_SECONDS = 7 * 24 * 3600
CONNECT_SECONDS = 1.0
METADATA = (("169.254.169.254", 80), ("100.100.100.200", 80))
CREDENTIALS = (
    ".ssh/id_rsa", ".ssh/id_ed25519", ".ssh/id_ecdsa", ".ssh/id_dsa", ".aws/credentials", ".config/gcloud",
    ".azure", ".kube/config", ".docker/config.json", ".git-credentials", ".netrc", ".npmrc", ".pypirc", ".gnupg",
    ".config/gh/hosts.yml", ".config/hub", ".cargo/credentials.toml", ".cargo/credentials", ".terraform.d",
    ".claude/.credentials.json", ".codex/auth.json", ".gemini/oauth_creds.json", ".mozilla", ".config/google-chrome",
    ".config/chromium", ".password-store", ".local/share/keyrings",
)  # fmt: skip
POWERFUL = frozenset({"sudo", "wheel", "docker", "lxd", "libvirt", "adm", "disk", "kvm", "shadow"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One check: passed or not, and what to do where not."""

    check: str
    passed: bool
    detail: str
    remedy: str = ""


def check_host(home: str) -> tuple[Finding, ...]:
    """Look at this machine as the calling user with this home would find it. Never raises for what it finds."""
    checks: tuple[Callable[[str], Finding], ...] = (_credentials, _user, _sudo, _metadata, _log, _age)
    return tuple(check(home) for check in checks)


def main(*, as_json: bool) -> int:
    """Print the findings; 0 when all passed, else 1."""
    findings = check_host(pwd.getpwuid(os.geteuid()).pw_dir)
    if as_json:
        rows = [{"check": f.check, "passed": f.passed, "detail": f.detail, "remedy": f.remedy} for f in findings]
        print(json.dumps({"fit": all(f.passed for f in findings), "findings": rows}, indent=2))
    else:
        for finding in findings:
            print(f"{'ok    ' if finding.passed else 'FAILED'} {finding.check}: {finding.detail}")
            if not finding.passed:
                print(f"       fix: {finding.remedy}")
    return 0 if all(finding.passed for finding in findings) else 1


def _credentials(home: str) -> Finding:
    found = [path for path in CREDENTIALS if os.path.lexists(f"{home}/{path}")]
    named = [name for name in os.environ if _secret(name)]
    if not found and not named:
        return Finding(
            check="credentials", passed=True, detail="none on disk where they usually lie, none in the environment"
        )
    detail = ", ".join([*(f"~/{path}" for path in found), *(f"${name}" for name in sorted(named))])
    return Finding(
        check="credentials", passed=False, detail=detail, remedy="remove them, or use a fresh machine or user"
    )


def _secret(name: str) -> bool:
    from ringfence.sandbox.environment import looks_secret

    return looks_secret(name)


def _user(home: str) -> Finding:
    if os.geteuid() == 0:
        return Finding(
            check="user",
            passed=False,
            detail=f"this is root (home {home!a})",
            remedy="run agents as a user without rights",
        )
    groups = [grp.getgrgid(gid).gr_name for gid in os.getgroups() if _known(gid)]
    strong = sorted(set(groups) & POWERFUL)
    if strong:
        return Finding(
            check="user",
            passed=False,
            detail=f"member of {', '.join(strong)}",
            remedy=f"gpasswd --delete USER {strong[0]}",
        )
    return Finding(check="user", passed=True, detail="unprivileged, in no powerful group")


def _known(gid: int) -> bool:
    try:
        grp.getgrgid(gid)
    except KeyError:
        return False
    return True


def _sudo(_home: str) -> Finding:
    sudo = shutil.which("sudo", path="/usr/local/bin:/usr/bin:/bin")  # never one that a worktree on PATH holds
    if os.geteuid() != 0 and sudo:
        try:
            done = subprocess.run(
                [sudo, "-n", "true"], capture_output=True, timeout=10, check=False, stdin=subprocess.DEVNULL
            )
        except (OSError, subprocess.TimeoutExpired):
            return Finding(check="sudo", passed=True, detail="cannot be used without a password")
        if done.returncode == 0:
            return Finding(
                check="sudo", passed=False, detail="works without a password", remedy="remove the user from sudoers"
            )
    return Finding(check="sudo", passed=True, detail="gives this user nothing")


def _metadata(_home: str) -> Finding:
    for address in METADATA:
        with socket.socket() as client:
            client.settimeout(CONNECT_SECONDS)
            if client.connect_ex(address) == 0:
                return Finding(
                    check="metadata",
                    passed=False,
                    detail=f"{address[0]} answers: it hands out the machine's own credentials",
                    remedy="reject it for this user: see docs/disposable-host.md",
                )
    return Finding(check="metadata", passed=True, detail="no metadata service answers")


def _log(_home: str) -> Finding:
    """Whether the set-up script's rules were written down; only root can ask the kernel whether they are in force."""
    if os.path.exists("/etc/ringfence/host.nft"):
        return Finding(
            check="egress log",
            passed=True,
            detail="rules are in /etc/ringfence/host.nft; entries are named AGENT-EGRESS",
        )
    return Finding(
        check="egress log",
        passed=False,
        detail="connections made outside a box leave no trace",
        remedy="run the set-up script of docs/disposable-host.md as root",
    )


def _age(_home: str) -> Finding:
    try:
        born = min(
            os.stat(path).st_mtime
            for path in ("/etc/machine-id", "/lost+found", "/etc/hostname")
            if os.path.exists(path)
        )
    except ValueError:
        born = time.time()
    days = max(0, int((time.time() - born) // 86400))
    if time.time() - born > OLD_SECONDS:
        return Finding(
            check="age",
            passed=False,
            detail=f"about {days} days old: it has become a pet",
            remedy="delete it and make a new one",
        )
    return Finding(check="age", passed=True, detail=f"about {days} days old")
