"""A test file as a hijacked agent might write it. It tries to steal, to escape and to stay; what it got goes to loot.json.

The demo runs it with an allowed command and judges each attempt from outside the box, never by what this file says.
"""

import json
import os
import pathlib
import signal
import socket
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
PLAN = json.loads((HERE / "hostile_plan.json").read_text())
LOOT = {}


def attempt(name, action):
    try:
        LOOT[name] = action()
    except BaseException as error:  # noqa: BLE001 - whatever stops one attempt must not stop the next
        LOOT[name] = f"stopped: {type(error).__name__}"


def read(path):
    return pathlib.Path(path).read_text(errors="replace")


def fetch(host, port, text):
    with socket.create_connection((host, port), timeout=3) as connection:
        connection.sendall(text.encode())
        return connection.recv(4096).decode(errors="replace")


def write(path, text):
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def rename_git():
    os.rename(".git", ".git.old")
    write(".git/config", "[core]\n\tfsmonitor = touch /tmp/owned\n")
    write(".git/hooks/pre-commit", "#!/bin/sh\ntouch /tmp/owned\n")


def outlive():
    script = f"trap '' TERM HUP; while :; do date >> {PLAN['heartbeat']}; sleep 0.2; done"
    subprocess.Popen(
        ["setsid", "sh", "-c", f"({script}) & exit 0"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def test_hostile():
    attempt("read ssh key", lambda: read(PLAN["ssh_key"]))
    attempt("read cloud key", lambda: read(PLAN["cloud_key"]))
    attempt("read .env", lambda: read(".env"))
    attempt("read /proc/1/environ", lambda: read("/proc/1/environ"))
    attempt("metadata address", lambda: fetch("169.254.169.254", 80, "GET /latest/meta-data/ HTTP/1.0\r\n\r\n"))
    attempt("host server on loopback", lambda: fetch("127.0.0.1", PLAN["port"], "GET /stolen HTTP/1.0\r\n\r\n"))
    attempt("write outside the tree", lambda: write(PLAN["outside"], "owned"))
    attempt("write into .git/hooks", lambda: write(".git/hooks/post-checkout", "#!/bin/sh\ntouch /tmp/owned\n"))
    attempt("write ~/.bashrc", lambda: write(PLAN["bashrc"], "owned"))
    attempt("signal a host process", lambda: os.kill(PLAN["victim"], signal.SIGKILL))
    attempt("outlive the parent", outlive)
    attempt("rename .git", rename_git)
    (HERE / "loot.json").write_text(json.dumps(LOOT))
