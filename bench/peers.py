"""Starts a command in another sandbox with a tight policy for one worktree: the peers that stand beside ours.

    python3 bench/peers.py PEER [--at FOLDER] WORKTREE -- COMMAND…

PEER is bubblewrap, firejail, srt, sandlock or nono. ``--at`` is the folder in which srt (``npm install --prefix FOLDER``)
or the Python peers (a virtual environment) are installed. It is made for `ringfence gauntlet -- python3 bench/peers.py
… {worktree} --`; each policy is what an hour with the peer's own documentation gives: the worktree writable, the paths
from which code is started read-only, environment files hidden, no network, limits where the peer has any.
"""

import json
import os
import sys

PROTECTED = (".git/hooks", ".git/config", ".vscode", ".claude", ".venv", ".mcp.json", ".envrc", ".idea", ".devcontainer",
             ".github/workflows", "sandbox_policy.yaml")  # fmt: skip
HIDDEN = (".env", "packages/api/.env.local", "deploy/server.pem", "dev.sock")
FOLDERS = (".vscode", ".claude", ".venv", ".idea", ".devcontainer", ".github/workflows")
SYSTEM = ("/usr", "/bin", "/lib", "/lib64", "/etc/ld.so.cache", "/etc/passwd", "/etc/group", "/etc/alternatives")
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "TERM": "xterm"}


def main(words):
    peer, *rest = words
    at = ""
    if rest[0] == "--at":
        at, rest = rest[1], rest[2:]
    tree, command = rest[0], rest[rest.index("--") + 1 :]
    os.chdir(tree)
    for name in FOLDERS:  # a mount needs a place; what is not there cannot be covered
        os.makedirs(name, exist_ok=True)
    PEERS[peer](tree, command, at)


def existing(tree, names):
    return [f"{tree}/{name}" for name in names if os.path.lexists(f"{tree}/{name}")]


def bubblewrap(tree, command, _at):
    words = ["bwrap", "--ro-bind", "/usr", "/usr"]
    for name in ("bin", "lib", "lib64", "sbin"):
        words += ["--symlink", f"usr/{name}", f"/{name}"]
    for path in ("/etc/ld.so.cache", "/etc/passwd", "/etc/group", "/etc/alternatives"):
        words += ["--ro-bind-try", path, path]
    words += [
        "--proc",
        "/proc",
        "--dev",
        "/dev",
        "--tmpfs",
        "/tmp",
        "--bind",
        tree,
        tree,
        "--bind",
        f"{tree}/.git",
        f"{tree}/.git",
    ]
    for path in existing(tree, PROTECTED):
        words += ["--ro-bind", path, path]
    for path in existing(tree, HIDDEN):
        words += ["--ro-bind", "/dev/null", path]
    words += [
        "--unshare-all",
        "--unshare-user",
        "--disable-userns",
        "--cap-drop",
        "ALL",
        "--new-session",
        "--die-with-parent",
    ]
    words += ["--clearenv", "--setenv", "HOME", "/tmp"]
    for name, value in ENVIRONMENT.items():
        words += ["--setenv", name, value]
    start([*words, "--chdir", tree, "--", *command], {"PATH": ENVIRONMENT["PATH"]})


def firejail(tree, command, _at):
    words = ["firejail", "--quiet", "--noprofile", f"--whitelist={tree}"]
    words += [f"--read-only={path}" for path in existing(tree, PROTECTED)]
    words += [f"--blacklist={path}" for path in existing(tree, HIDDEN)]
    words += ["--private-tmp", "--private-dev", "--net=none", "--caps.drop=all", "--nonewprivs", "--noroot"]
    words += ["--seccomp=io_uring_setup,io_uring_enter,io_uring_register"]  # beside its default list
    words += ["--protocol=inet,inet6", "--restrict-namespaces", "--rlimit-nproc=96", "--rlimit-fsize=268435456"]
    words += ["--rlimit-as=800000000", "--rlimit-nofile=2048", "--timeout=00:00:12", "--rmenv=DEPLOY_TOKEN", "--"]
    start([*words, *command], dict(os.environ))


def srt(tree, command, at):
    settings = {
        "network": {"allowedDomains": [], "deniedDomains": []},
        "filesystem": {
            "denyRead": ["/home", "/root", "/var/tmp", *existing(tree, HIDDEN)],
            "allowRead": [tree],
            "allowWrite": [tree],
            "denyWrite": [path for path in existing(tree, PROTECTED) if not path.endswith("/.claude")],
        },
    }
    path = f"{os.path.dirname(tree)}/.srt-settings.json"
    with open(path, "w", encoding="utf-8") as file:
        json.dump(settings, file)
    environment = {name: value for name, value in os.environ.items() if name != "DEPLOY_TOKEN"}
    start([f"{at}/node_modules/.bin/srt", "--settings", path, "--", *command], environment)


def sandlock(tree, command, at):
    program = """
import json, sys
from sandlock import Sandbox
given = json.loads(sys.argv[1])
box = Sandbox(**given["policy"])
answer = box.run(given["command"], timeout=12)
sys.stdout.buffer.write(answer.stdout or b"")
sys.stderr.buffer.write(answer.stderr or b"")
"""
    policy = {
        "fs_readable": [path for path in (*SYSTEM, "/proc", "/dev") if os.path.exists(path)],
        "fs_writable": [tree, "/dev/null"],
        "fs_denied": existing(tree, (*HIDDEN, ".git/hooks", ".vscode", ".claude", ".venv")),
        "max_memory": "512M",
        "max_processes": 64,
        "max_open_files": 2048,
        "max_disk": "256M",
        "clean_env": True,
        "env": {**ENVIRONMENT, "HOME": "/tmp"},
        "cwd": tree,
    }
    start([f"{at}/bin/python", "-c", program, json.dumps({"policy": policy, "command": command})], dict(os.environ))


def nono(tree, command, at):
    program = """
import json, sys
import nono_py
given = json.loads(sys.argv[1])
caps = nono_py.CapabilitySet()
for path in given["read"]:
    caps.allow_path(path, nono_py.AccessMode.READ) if __import__("os").path.isdir(path) else caps.allow_file(path, nono_py.AccessMode.READ)
caps.allow_path(given["tree"], nono_py.AccessMode.READ_WRITE)
caps.allow_file("/dev/null", nono_py.AccessMode.READ_WRITE)
caps.block_network()
answer = nono_py.sandboxed_exec(caps, given["command"], cwd=given["tree"], timeout_secs=12, env=list(given["env"].items()))
sys.stdout.buffer.write(answer.stdout or b"")
sys.stderr.buffer.write(answer.stderr or b"")
"""
    given = {
        "read": [path for path in (*SYSTEM, "/proc", "/dev") if os.path.exists(path)],
        "tree": tree,
        "command": command,
        "env": {**ENVIRONMENT, "HOME": "/tmp"},
    }
    start([f"{at}/bin/python", "-c", program, json.dumps(given)], {"PATH": ENVIRONMENT["PATH"], "HOME": "/tmp"})


def start(words, environment):
    os.execvpe(words[0], words, environment)


PEERS = {"bubblewrap": bubblewrap, "firejail": firejail, "srt": srt, "sandlock": sandlock, "nono": nono}

if __name__ == "__main__":
    main(sys.argv[1:])
