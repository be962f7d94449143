"""``ringfence doctor --host``: is this machine fit to be thrown away? Credentials, rights, metadata, log, age.

A box needs none of this; a whole machine given to agents does. Nothing is read but names: a credential is told by its
path, never by what it holds.
"""

import errno
import grp
import json
import os
import pwd
import select
import shutil
import socket
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass

from ringfence.sandbox.environment import looks_secret
from ringfence.sandbox.inner.refusals import METADATA

OLD_SECONDS = 7 * 24 * 3600
CONNECT_SECONDS, SUDO_SECONDS = 1.0, 10.0
HTTP = 80
RULES = "/etc/ringfence/host.nft"
IN_FORCE = ("127.65.71.84", 9)
"""The set-up script's rules refuse this user this address of loopback otherwise than a host without them does."""
CREDENTIALS = (
    ".aws/credentials", ".aws/sso", ".aws/cli", ".config/gcloud", ".azure", ".kube/config", ".oci", ".terraform.d", ".terraformrc",
    ".vault-token", ".s3cfg", ".boto", ".config/rclone", ".config/doctl", ".config/hcloud", ".fly", ".docker/config.json",
    ".config/containers/auth.json", ".git-credentials", ".config/git/credentials", ".config/gh/hosts.yml", ".config/hub",
    ".config/glab-cli", ".netrc", ".npmrc", ".yarnrc", ".yarnrc.yml", ".pypirc", ".config/pip", ".pip", ".gem/credentials",
    ".cargo/credentials.toml", ".cargo/credentials", ".m2/settings.xml", ".gradle/gradle.properties", ".pgpass", ".my.cnf", ".gnupg",
    ".claude/.credentials.json", ".claude.json", ".codex/auth.json", ".gemini/oauth_creds.json", ".config/github-copilot", ".copilot",
    ".local/share/opencode/auth.json", ".cursor", ".config/cursor", ".config/op", ".password-store", ".local/share/keyrings",
    ".local/share/kwalletd", ".mozilla", "snap/firefox", ".config/google-chrome", ".config/chromium", ".config/BraveSoftware",
    ".config/microsoft-edge", ".thunderbird", ".bitcoin", ".ethereum", ".config/solana",
)  # fmt: skip
PUBLIC_OF_SSH = ("known_hosts", "authorized_keys", "config", "rc")
"""Files of ``~/.ssh`` that begin so hold no key; nor does one that ends in ``.pub``."""
POWERFUL = frozenset({
    "root", "sudo", "wheel", "admin", "docker", "podman", "lxd", "incus", "incus-admin", "libvirt", "adm", "disk", "kvm", "shadow", "staff",
    "vboxusers",
})  # fmt: skip
ENGINES = (
    "/run/docker.sock", "/run/podman/podman.sock", "/run/containerd/containerd.sock", "/run/crio/crio.sock", "/run/libvirt/libvirt-sock",
    "/var/lib/lxd/unix.socket", "/var/snap/lxd/common/lxd/unix.socket", "/var/lib/incus/unix.socket",
)  # fmt: skip
"""Who may use one of these is root."""
FIRST_BOOT = ("/etc/machine-id", "/etc/hostname", "/lost+found")
"""What the first boot writes, then what stands in for it: an image is older than the machine made of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One check: passed or not, and what to do where not."""

    check: str
    passed: bool
    detail: str
    remedy: str = ""


def check_host(home: str) -> tuple[Finding, ...]:
    """Look at this machine as the calling user with this home would find it. Never raises for what it finds."""
    checks: dict[str, Callable[[str], Finding]] = {
        "credentials": _credentials,
        "user": _user,
        "sudo": _sudo,
        "metadata": _metadata,
        "egress log": _log,
        "age": _age,
    }
    return tuple(_found(name, check, home) for name, check in checks.items())


def _found(name: str, check: Callable[[str], Finding], home: str) -> Finding:
    """What the check finds; one that cannot look has not passed."""
    try:
        return check(home)
    except OSError as error:
        detail = f"cannot be looked at: {error.strerror or error}"
        return Finding(check=name, passed=False, detail=detail, remedy="see to that, then ask again")


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
    found = [path for path in CREDENTIALS if os.path.lexists(f"{home}/{path}")] + _keys(home)
    named = [
        name if name.isprintable() else ascii(name)
        for name in os.environ
        if looks_secret(name) or name == "SSH_AUTH_SOCK"
    ]
    if not found and not named:
        return Finding(
            check="credentials", passed=True, detail="none on disk where they usually lie, none in the environment"
        )
    detail = ", ".join([*(f"~/{path}" for path in found), *(f"${name}" for name in sorted(named))])
    return Finding(
        check="credentials", passed=False, detail=detail, remedy="remove them, or use a fresh machine or user"
    )


def _keys(home: str) -> list[str]:
    """Files of ssh that may be keys, whatever they are called."""
    try:
        names = sorted(os.listdir(f"{home}/.ssh"))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except PermissionError:
        return [".ssh"]  # closed, and its owner can open it
    return [
        f".ssh/{name if name.isprintable() else ascii(name)}"
        for name in names
        if not name.startswith(PUBLIC_OF_SSH) and not name.endswith(".pub") and not os.path.isdir(f"{home}/.ssh/{name}")
    ]


def _user(home: str) -> Finding:
    if os.geteuid() == 0:
        return Finding(
            check="user",
            passed=False,
            detail=f"this is root (home {home!a})",
            remedy="run agents as a user without rights",
        )
    name, strong = _memberships()
    if strong:
        return Finding(
            check="user",
            passed=False,
            detail=f"member of {', '.join(strong)}",
            remedy=f"as root: {'; '.join(f'gpasswd --delete {name} {group}' for group in strong)}; then log in anew",
        )
    engines = [path for path in ENGINES if os.access(path, os.W_OK)]
    if engines:
        return Finding(
            check="user",
            passed=False,
            detail=f"may use {', '.join(engines)}, and so be root",
            remedy=f"as root: chmod o-rw {' '.join(engines)}, or remove the engine",
        )
    return Finding(check="user", passed=True, detail="unprivileged, in no powerful group, at no engine's socket")


def _memberships() -> tuple[str, list[str]]:
    """The user's name, and its powerful groups: those in force now, and those of the next log-in."""
    entry = pwd.getpwuid(os.geteuid())
    numbers = {os.getegid(), *os.getgroups(), *os.getgrouplist(entry.pw_name, entry.pw_gid)}
    names = {group.gr_name for group in grp.getgrall() if group.gr_gid in numbers}
    return entry.pw_name, sorted(names & POWERFUL)


def _sudo(_home: str) -> Finding:
    """What sudo would do without a password: anything at all is a way up, not only everything."""
    sudo = shutil.which("sudo", path="/usr/local/bin:/usr/bin:/bin")  # never one that a worktree on PATH holds
    if os.geteuid() == 0 or not sudo:
        return Finding(check="sudo", passed=True, detail="gives this user nothing")
    try:
        done = subprocess.run(
            [sudo, "-n", "-l"],
            capture_output=True,
            timeout=SUDO_SECONDS,
            check=False,
            stdin=subprocess.DEVNULL,
            env={"LC_ALL": "C"},
        )
    except (OSError, subprocess.TimeoutExpired):
        return Finding(check="sudo", passed=False, detail="cannot be asked", remedy="as root: remove the package sudo")
    if done.returncode == 0:
        return Finding(
            check="sudo",
            passed=False,
            detail="does something without a password: `sudo -n -l` lists what",
            remedy="as root: take the user out of /etc/sudoers and /etc/sudoers.d",
        )
    return Finding(check="sudo", passed=True, detail="gives this user nothing without a password")


def _metadata(_home: str) -> Finding:
    answering = _answering([(address, HTTP) for address in sorted(METADATA)])
    if answering:
        return Finding(
            check="metadata",
            passed=False,
            detail=f"{', '.join(answering)} takes connections: there a cloud hands out the machine's own credentials",
            remedy="reject it for this user: see docs/disposable-host.md",
        )
    return Finding(check="metadata", passed=True, detail="no address of a cloud's metadata service takes connections")


def _answering(addresses: list[tuple[str, int]]) -> list[str]:
    """Those that take a connection, all asked at once."""
    asked: dict[socket.socket, str] = {}
    answered = []
    for host, port in addresses:
        try:
            client = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        except OSError as error:
            if error.errno == errno.EAFNOSUPPORT:
                continue  # a kernel without that family
            for other in asked:
                other.close()
            raise
        client.setblocking(False)
        asked[client] = host
        client.connect_ex((host, port))
    deadline = time.monotonic() + CONNECT_SECONDS
    waiting = list(asked)
    while waiting and (left := deadline - time.monotonic()) > 0:
        _readable, ready, _other = select.select([], waiting, [], left)
        answered += [
            asked[one] for one in ready if one.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0 and _is_on(one)
        ]
        waiting = [one for one in waiting if one not in ready]
    for client in asked:
        client.close()
    return answered


def _is_on(client: socket.socket) -> bool:
    """Whether it is connected: one that was refused at once has no error left to tell."""
    try:
        client.getpeername()
    except OSError:
        return False
    return True


def _log(_home: str) -> Finding:
    """Whether the set-up script's rules are in force for this user, which an address of loopback tells."""
    with socket.socket() as client:
        client.settimeout(CONNECT_SECONDS)
        in_force = client.connect_ex(IN_FORCE) == errno.EHOSTUNREACH
    if in_force:
        return Finding(check="egress log", passed=True, detail="rules are in force; entries are named AGENT-EGRESS")
    if os.path.exists(RULES):
        return Finding(
            check="egress log",
            passed=False,
            detail=f"{RULES} is there, but its rules are not in force for this user",
            remedy=f"as root: nft -f {RULES}, or the set-up script of docs/disposable-host.md with this user's name",
        )
    return Finding(
        check="egress log",
        passed=False,
        detail="connections made outside a box leave no trace",
        remedy="run the set-up script of docs/disposable-host.md as root",
    )


def _age(_home: str) -> Finding:
    written = next((path for path in FIRST_BOOT if os.path.exists(path)), "")
    now = time.time()
    born = os.stat(written).st_mtime if written else now
    days = max(0, int((now - born) // 86400))
    if now - born > OLD_SECONDS:
        return Finding(
            check="age",
            passed=False,
            detail=f"about {days} days old: it has become a pet",
            remedy="delete it and make a new one",
        )
    return Finding(check="age", passed=True, detail=f"about {days} days old")
