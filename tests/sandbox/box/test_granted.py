"""Folders that are granted for reading: what the host has in them of sockets, pipes and locks is not the box's to use."""

import errno
import fcntl
import os
import socket
import stat

import pytest

from ringfence.model.box import ControlState
from ringfence.sandbox.inner import view

TRIES = """
import errno, fcntl, os, socket, subprocess, sys
def said(what):
    try: what()
    except OSError as fault: return errno.errorcode[fault.errno]
    return "done"
def connect(): socket.socket(socket.AF_UNIX).connect("app.sock")
os.chdir(sys.argv[1])
file = open("data")
print(said(connect), said(lambda: os.open("pipe", os.O_WRONLY | os.O_NONBLOCK)), said(lambda: open("new", "w")))
print(file.read(), subprocess.run(["bin/tool"], capture_output=True).stdout.decode(), end="")
print(said(lambda: fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)), len({os.lstat(name).st_dev for name in (".", "data", "bin")}), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def tool(tmp_path):
    """A toolchain's folder with a server's socket and a pipe that somebody reads."""
    folder = tmp_path / "tool with blank"
    (folder / "bin").mkdir(parents=True)
    (folder / "data").write_text("data")
    (folder / "bin" / "tool").write_text("#!/bin/sh\necho ran\n")
    (folder / "bin" / "tool").chmod(0o755)
    os.mkfifo(folder / "pipe")
    reader = os.open(folder / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    server = socket.socket(socket.AF_UNIX)
    here = os.open(folder, os.O_PATH)
    server.bind(f"/proc/self/fd/{here}/app.sock")
    server.listen()
    for name in ("pipe", "app.sock"):
        (folder / name).chmod(0o777)
    yield folder
    os.close(reader)
    os.close(here)
    server.close()


@pytest.mark.needs_userns
def test_sockets_and_pipes_in_a_granted_folder_lead_nowhere_and_its_locks_are_the_boxs_own(bench, tool):
    plan = bench.plan("/usr/bin/python3", "-c", TRIES, str(tool), read_only=(str(tool),))
    away, kept = os.pipe()
    seen, told = os.pipe()
    null = os.open("/dev/null", os.O_WRONLY)
    box = bench.launcher.start(plan, stdin=away, stdout=told, stderr=null)
    try:
        for descriptor in (away, told, null):
            os.close(descriptor)
        with open(seen, "rb") as out:
            assert out.readline() == b"ECONNREFUSED ENXIO EROFS\n"
            assert out.readline() == b"data ran\n"
            assert out.readline() == b"done 1\n"
            with (tool / "data").open() as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # which the box's lock does not keep from anybody
    finally:
        os.close(kept)
        execution = box.wait(60)
    assert execution.exit == 0
    states = {control.name: control.state for control in execution.controls}
    assert states["granted folders"] is ControlState.ENFORCED


@pytest.mark.needs_userns
def test_a_box_without_granted_folders_says_nothing_of_them(bench):
    plan = bench.plan("/bin/true")
    names = {control.name for control in bench.begin(plan).finish().execution.controls}
    assert ("granted folders" in names) == any(mount.kind == "granted" for mount in plan.mounts)


def looked_at(folder, monkeypatch, places):
    monkeypatch.setattr(view, "_places", lambda: places)
    step = ("granted", b"/opt/tool", os.fsencode(folder))
    found = view.View({"steps": [step]}, user=(1, 1), idmap=-1, base=None)
    found.trees[0] = os.open(folder, os.O_PATH)
    found._find_granted()
    return found


def test_a_granted_folder_in_which_something_is_mounted_is_shown_as_it_is_and_that_is_said(tool, monkeypatch):
    inside = os.fsencode(tool / "disk")
    found = looked_at(tool, monkeypatch, [b"/", inside])
    assert (found.granted, found.shared) == ({}, ["/opt/tool holds mounts"])
    found = looked_at(tool, monkeypatch, [b"/", os.fsencode(tool), os.fsencode(tool) + b"s/disk"])
    assert list(found.granted) == [0]
    assert found.shared == []


def test_a_granted_folder_that_can_be_no_layer_is_shown_as_it_is_and_that_is_said(tool, monkeypatch):
    found, attached = looked_at(tool, monkeypatch, []), []

    def refused(*_layers, **_how):
        raise OSError(errno.EINVAL, "Invalid argument")

    monkeypatch.setattr(found, "_mount_overlay", refused)
    monkeypatch.setattr(view.kernel, "attach", lambda tree, place: attached.append((tree, place)))
    tree = found.trees[0]
    found._apart(0, b"/opt/tool", b"/tmp/opt/tool")
    assert attached == [(tree, b"/tmp/opt/tool")]
    assert found.shared == ["/opt/tool: Invalid argument"]
    assert stat.S_ISDIR(os.fstat(tree).st_mode)


def test_places_are_read_with_blanks_in_their_names(monkeypatch, tmp_path):
    table = tmp_path / "mountinfo"
    table.write_bytes(b"1 0 0:1 / / rw - x x rw\n2 1 0:2 / /opt/a\\040b\\134c rw - x x rw\n")
    real = open
    monkeypatch.setattr(view, "open", lambda _path, mode: real(table, mode), raising=False)
    assert view._places() == [b"/", b"/opt/a b\\c"]
