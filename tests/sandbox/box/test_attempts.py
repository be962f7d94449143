"""Attempts of a box to change what it may not change stand in its record; ordinary work leaves none there."""

import os

import pytest

from ringfence.sandbox.inner.watch import MANY_BEYOND, MANY_CHANGES

pytestmark = pytest.mark.needs_userns
KINDS = {"refused-write", "hidden-write"}


def attempts(ran):
    return {o.detail: o.count for o in ran.execution.observations if o.kind in KINDS}


def python(bench, text, **options):
    return bench.run("/usr/bin/python3", "-c", "import ctypes, os, sys\n" + text, **options)


def test_every_way_to_change_a_path_outside_is_seen(bench):
    ran = python(bench, """
libc = ctypes.CDLL(None, use_errno=True)
def attempt(function, *arguments, **options):
    try: function(*arguments, **options)
    except OSError: pass
os.mkdir("sub"); here = os.open("sub", os.O_RDONLY); usr = os.open("/usr", os.O_PATH)
attempt(os.open, "/etc/passwd", os.O_WRONLY); attempt(os.open, "/nowhere/at/all", os.O_CREAT)
attempt(os.unlink, "../../../../../../../../etc/hosts"); attempt(os.unlink, "bin/env", dir_fd=usr)
attempt(os.mkdir, "/opt/new"); attempt(os.rmdir, "/usr/lib"); attempt(os.rename, "sub", "/usr/sub")
attempt(os.rename, "/etc/hosts", "hosts"); attempt(os.link, "/etc/hosts", "hosts"); attempt(os.symlink, "x", "/usr/x")
attempt(os.mknod, "/usr/pipe", 0o10600); attempt(os.chmod, "/usr/bin", 0o777); attempt(os.chown, "/usr/bin", 1, 1)
attempt(os.truncate, "/usr/bin/env", 0); attempt(os.setxattr, "sub", "trusted.x", b"y")
attempt(os.setxattr, here, "user.overlay.opaque", b"y"); attempt(os.open, "/dev/mem", os.O_RDWR)
attempt(os.mkdir, "/sys/fs/cgroup/x"); attempt(os.open, "/proc/1/mem", os.O_RDWR)
attempt(os.open, "/proc/self/root/etc/passwd", os.O_RDWR); attempt(os.open, f"/proc/self/cwd/../../x", os.O_CREAT)
how = (ctypes.c_uint64 * 3)(os.O_WRONLY, 0, 0); libc.syscall(437, -100, b"/usr/by-openat2", how, 24)
how = (ctypes.c_uint64 * 3)(os.O_RDONLY, 0, 0); libc.syscall(437, -100, b"/usr/bin", how, 24)
""")  # fmt: skip
    assert ran.execution.exit == 0, ran.err
    project = bench.layer.target
    assert attempts(ran) == dict.fromkeys([
        "open for writing /etc/passwd", "open for writing /nowhere/at/all", "remove /etc/hosts", "remove /usr/bin/env",
        "make folder /opt/new", "remove /usr/lib", f"rename {project}/sub to /usr/sub", f"rename /etc/hosts to {project}/hosts",
        f"link /etc/hosts to {project}/hosts", "symlink /usr/x", "mknod /usr/pipe", "chmod /usr/bin", "chown /usr/bin",
        "truncate /usr/bin/env", f"setxattr trusted.x on {project}/sub", f"setxattr user.overlay.opaque on {project}/sub",
        "open for writing /dev/mem", "make folder /sys/fs/cgroup/x", "open for writing /proc/1/mem",
        "open for writing /proc/self/root/etc/passwd", "open for writing /proc/self/cwd/../../x", "open for writing /usr/by-openat2",
    ], 1)  # fmt: skip


def test_a_socket_that_is_placed_outside_is_seen_and_one_s_own_is_ordinary(bench):
    ran = python(bench, """
import socket
def attempt(place, kind=socket.SOCK_STREAM, family=socket.AF_UNIX):
    try: socket.socket(family, kind).bind(place)
    except OSError: pass
os.mkdir("sub"); os.symlink("/usr/lib", "out")
for place in ("/usr/lib/x", "/etc/x", "/home/x", "sub/" + 20 * "../" + "etc/y", "out/x", "/dev/x", "/usr/lib/" + 98 * "y"): attempt(place)
for kind in (socket.SOCK_DGRAM, socket.SOCK_SEQPACKET): attempt("/usr/x", kind)
for place in ("here", "sub/here", "/tmp/here", os.path.expanduser("~/here"), "\\0name", ""): attempt(place)
attempt(("127.0.0.1", 0), family=socket.AF_INET); attempt(("::1", 0), family=socket.AF_INET6)
ctypes.CDLL(None).bind(socket.socket(socket.AF_UNIX).fileno(), ctypes.c_void_p(8), 110)
os.chdir("/usr/share"); attempt("x")
""")  # fmt: skip
    assert ran.execution.exit == 0, ran.err
    project = bench.layer.target
    assert attempts(ran) == {"make socket /usr/x": 2} | dict.fromkeys([
        "make socket /usr/lib/x", "make socket /etc/x", "make socket /home/x", "make socket /etc/y",
        f"make socket /usr/lib/x through {project}/out/x", "make socket /dev/x", "make socket /usr/share/x",
        f"make socket /usr/lib/{98 * 'y'}",
    ], 1)  # fmt: skip


def test_an_access_list_for_somebody_else_is_seen_and_one_s_own_is_ordinary(bench):
    ran = python(bench, """
import struct
libc = ctypes.CDLL(None, use_errno=True)
def text(tag, who):
    entries = ((1, 7, -1), (tag, 7, who), (4, 5, -1), (16, 7, -1), (32, 5, -1))
    return struct.pack("<i", 2) + b"".join(struct.pack("<HHi", *one) for one in sorted(entries))
def attempt(place, value):
    try: os.setxattr(place, "system.posix_acl_access", value)
    except OSError as fault: print(place, fault.strerror)
open("mine", "w").close(); open("theirs", "w").close(); os.mkdir("sub"); here = os.open("sub", os.O_RDONLY)
attempt("mine", text(2, os.getuid())); attempt("theirs", text(2, 65534)); attempt(here, text(8, 65534))
value = ctypes.create_string_buffer(text(2, 65534)); told = struct.pack("=QII", ctypes.addressof(value), 44, 0)
libc.syscall(463, -100, b"mine", 0, b"system.posix_acl_access", told, 16)
attempt("mine", b"short")
""")  # fmt: skip
    assert ran.execution.exit == 0, ran.err
    project, words = bench.layer.target, "let others in by setxattr system.posix_acl_access on"
    assert attempts(ran) == {f"{words} {project}/{name}": 1 for name in ("theirs", "sub", "mine")}


def test_changes_of_what_is_open_of_times_and_of_attributes_are_seen(bench):
    ran = python(bench, """
import fcntl
libc = ctypes.CDLL(None, use_errno=True)
def attempt(function, *arguments, **options):
    try: function(*arguments, **options)
    except OSError: pass
def change(name):
    file = os.open(name, os.O_RDONLY)
    attempt(os.fchmod, file, 0o777); attempt(os.fchown, file, os.getuid(), -1); attempt(os.utime, name)
    attempt(os.setxattr, file, "user.x", b"y"); attempt(fcntl.ioctl, file, 0x40086602, bytes(8))
    libc.syscall(469, -100, os.fsencode(name), bytes(24), 24, 0)
    libc.syscall(452, file, b"", 0o700, 0x1000); attempt(os.utime, file)
change("/usr/bin/env")
open("mine", "w").close(); change("mine"); change("."); change("/tmp"); os.fchmod(os.memfd_create("x"), 0o700)
attempt(os.fchmod, 1, 0o600)
gone = os.open("gone", os.O_CREAT); os.unlink("gone"); os.fchmod(gone, 0o600)
""")  # fmt: skip
    assert ran.execution.exit == 0, ran.err
    words = ["chmod", "chown", "set times of", "setxattr user.x on", "set attributes of"]
    counts = {f"{word} /usr/bin/env": 2 if word in {"chmod", "set attributes of"} else 1 for word in words}
    assert attempts(ran) == counts


def test_tries_to_be_root_and_to_change_the_network_are_seen(bench):
    ran = python(bench, """
import fcntl, socket
def attempt(function, *arguments):
    try: function(*arguments)
    except OSError: return
    print("done", function)
attempt(os.setuid, 0); attempt(os.setresgid, -1, 0, -1); attempt(os.setgroups, [0])
attempt(fcntl.ioctl, socket.socket(), 0x8914, b"lo" + bytes(38))
os.setuid(os.getuid()); os.setresuid(-1, os.getuid(), -1)
libc = ctypes.CDLL(None, use_errno=True); libc.syscall(0x40000065, 0, 0, 0, 0)
""")  # fmt: skip
    assert (ran.execution.exit, ran.out) == (0, b""), ran.err
    seen = {o.detail for o in ran.execution.observations if o.kind == "refused-syscall"}
    assert seen == {"setuid 0", "setresgid - 0 -", "setgroups", "ioctl SIOCSIFFLAGS", "call 0x40000065"}


def test_tries_to_reach_other_families_devices_and_whole_file_systems_are_seen(bench):
    ran = python(bench, """
import fcntl, socket
def attempt(function, *arguments):
    try: function(*arguments)
    except OSError: return
    print("done", function)
attempt(socket.socketpair, 40, 1, 0); attempt(socket.socketpair, 30, 2, 0); attempt(socket.socket, 2, 10, 0)
attempt(socket.socket().setsockopt, 0, 64, bytes(100))
attempt(fcntl.ioctl, socket.socket(), 0x8943, b"lo" + bytes(38)); attempt(fcntl.ioctl, os.open("/usr", 0), 0xC0045877, bytes(8))
attempt(os.mknod, "disk", 0o60600, os.makedev(254, 0)); attempt(os.mknod, "/tmp/null", 0o20666, os.makedev(1, 3))
folder = os.open(".", 0); attempt(lambda: os.mknod("whiteout", 0o20000, 0, dir_fd=folder))
os.mkfifo("pipe"); os.mknod("file"); socket.socketpair(); socket.if_nameindex()
fcntl.ioctl(socket.socket(), 0x8913, b"lo" + bytes(38)); fcntl.ioctl(os.pipe()[0], 0x541B, bytes(4))
""")  # fmt: skip
    assert (ran.execution.exit, ran.out) == (0, b""), ran.err
    here = bench.layer.target
    assert attempts(ran) == {
        f"make device {here}/disk": 1,
        "make device /tmp/null": 1,
        f"make device {here}/whiteout": 1,
    }
    seen = {o.detail for o in ran.execution.observations if o.kind == "refused-syscall"}
    assert seen == {
        "socketpair vsock type stream", "socketpair tipc type datagram", "socket inet type packet",
        "setsockopt level 0 option 64", "ioctl SIOCSIFTXQLEN", "ioctl FIFREEZE",
    }  # fmt: skip


def test_tries_to_make_snapshots_or_to_take_keys_of_the_persons_file_system_are_seen(bench):
    ran = python(bench, """
import fcntl
os.chdir(os.path.expanduser("~"))
home = os.open(".", 0)
for request in (0x50009401, 0x5000940E, 0xC0406618, 0x40806685):
    try: fcntl.ioctl(home, request, bytearray(4096))
    except PermissionError: continue
    print("done", hex(request))
file = os.open("file", os.O_CREAT | os.O_RDWR)
for request in (0x80086601, 0x40049409, 0x80087601, 0xC020660B):  # ordinary: its attributes, a copy, its version, its extents
    try: fcntl.ioctl(file, request, bytearray(64))
    except PermissionError: print("refused", hex(request))
    except OSError: continue
""")  # fmt: skip
    assert (ran.execution.exit, ran.out) == (0, b""), ran.err
    seen = {o.detail for o in ran.execution.observations if o.kind == "refused-syscall"}
    assert seen == {
        "ioctl BTRFS_IOC_SNAP_CREATE", "ioctl BTRFS_IOC_SUBVOL_CREATE", "ioctl FS_IOC_REMOVE_ENCRYPTION_KEY",
        "ioctl FS_IOC_ENABLE_VERITY",
    }  # fmt: skip


def test_links_that_lead_out_are_followed_for_the_record(bench):
    ran = bench.sh(
        "ln -s /home/u/other/notes.txt link; ln -s /usr/lib away; echo x > link; echo x > away/x; ln -sf new link;"
        " echo x > away/../bin/y; :"
    )
    project = bench.layer.target
    assert attempts(ran) == {
        f"open for writing /home/u/other/notes.txt through {project}/link": 1,
        f"open for writing /usr/lib/x through {project}/away/x": 1,
        f"open for writing /usr/bin/y through {project}/away/../bin/y": 1,
    }


def test_a_folder_that_becomes_a_link_is_seen_however_often_it_was_none(bench):
    ran = python(bench, """
def write(path):
    try: open(path, "w").close()
    except OSError: pass
for name in ("by-symlink", "by-rename", "by-link"):
    os.mkdir(name)
    for n in range(5): write(f"{name}/sub/x"); write(f"{name}/x"); os.unlink(f"{name}/x"); write(f"{name}/missing/x")
    os.rename(name, name + "-away")
os.symlink("/usr/lib", "by-symlink"); os.symlink("/usr/lib", "made"); os.rename("made", "by-rename")
os.symlink("/usr/lib", "made"); os.link("made", "by-link", follow_symlinks=False)
for name in ("by-symlink", "by-rename", "by-link"): write(f"{name}/x"); write(os.getcwd() + f"/{name}/y")
for n in range(3): write("tree/sub/x"); write("plain")
os.mkdir("other"); os.symlink("/usr/lib", "other/sub"); os.rename("other", "tree"); write("tree/sub/x")
os.unlink("plain"); os.symlink("/usr/plain", "plain"); write("plain")
""")  # fmt: skip
    assert ran.execution.exit == 0, ran.err
    project = bench.layer.target
    assert attempts(ran) == dict.fromkeys([
        *(f"open for writing /usr/lib/{name} through {project}/by-{how}/{name}"
          for how in ("symlink", "rename", "link") for name in "xy"),
        f"open for writing /usr/lib/x through {project}/tree/sub/x",
        f"open for writing /usr/plain through {project}/plain",
    ], 1)  # fmt: skip


def test_files_are_renamed_and_linked_unrecorded_until_one_of_them_leads_out(bench):
    ran = python(bench, """
libc = ctypes.CDLL(None, use_errno=True)
def attempt(function, *arguments):
    try: function(*arguments)
    except OSError: pass
os.mkdir("d"); os.mkdir("swapped"); here = os.getcwd()
for n in range(4):
    for text in ("", here + "/"):
        open("d/a", "w").close(); os.rename(text + "d/a", text + f"b{n}"); os.link(text + f"b{n}", text + "d/c"); os.unlink("d/c")
        open("swapped/x", "w").close()
os.symlink("/usr/lib", "away")
for name in (".env", "/usr/x", "away/x"): attempt(os.rename, "b0", name)
for name in (".env.local", "/usr/y", "away/y"): attempt(os.link, "b1", name)
attempt(os.rename, "/usr/bin/env", "env"); attempt(os.link, "away/none", "none"); attempt(os.rename, "none", "other")
assert libc.renameat2(-100, b"away", -100, b"swapped", 2) == 0  # RENAME_EXCHANGE
attempt(open, "swapped/z", "w"); open("away/z", "w").close()
""")  # fmt: skip
    assert ran.execution.exit == 0, ran.err
    project = bench.layer.target
    assert attempts(ran) == dict.fromkeys([
        f"rename {project}/b0 to {project}/.env", f"rename {project}/b0 to /usr/x",
        f"rename {project}/b0 to /usr/lib/x through {project}/away/x",
        f"link {project}/b1 to /usr/y", f"link {project}/b1 to /usr/lib/y through {project}/away/y",
        f"rename /usr/bin/env to {project}/env",
        f"link /usr/lib/none through {project}/away/none to {project}/none",
        f"open for writing /usr/lib/z through {project}/swapped/z",
    ], 1)  # fmt: skip


def test_a_process_that_becomes_another_program_is_read_anew(bench):
    ran = python(bench, """
def refuse(word):
    for n in range(4):
        try: os.unlink(f"/usr/{word}{n}")
        except OSError: pass
        open("kept", "w").close(); os.unlink("kept")
child = os.fork()
if child == 0:
    refuse("child"); os.execv("/bin/sh", ["sh", "-c", "for n in 0 1 2 3; do true > /usr/program$n; true > kept; done"])
os.waitpid(child, 0); refuse("parent")
""")  # fmt: skip
    assert ran.execution.exit == 0, ran.err
    verbs = {"child": "remove", "parent": "remove", "program": "open for writing"}
    assert attempts(ran) == {f"{verb} /usr/{word}{n}": 1 for word, verb in verbs.items() for n in range(4)}


def test_names_that_hide_something_are_seen(bench):
    ran = bench.sh("cp readme.txt .env; echo x > .env; mv .env other; echo x > plain.env")
    project = bench.layer.target
    found = {(o.kind, o.detail) for o in ran.execution.observations if o.kind in KINDS}
    assert found == {
        ("hidden-write", f"open for writing {project}/.env"),
        ("hidden-write", f"rename {project}/.env to {project}/other"),
    }


ORDINARY = """
set -e
echo x > /dev/null; echo x > /tmp/a; echo x > /var/tmp/b; echo x > /dev/shm/c
mkdir -p "$PWD/deep/er/still"; mkdir -p /tmp/x/y; cp -a readme.txt deep/; mv readme.txt read.txt; ln -s read.txt l; echo y > l
exec 3> out; echo z >&3; echo z > /proc/self/fd/3; echo z > /dev/fd/3
git init -q . && git add -A && git commit -qm one && git checkout -qb two && git mv read.txt again.txt && git commit -qam two
tar cf /tmp/all.tar . && mkdir un && tar xf /tmp/all.tar -C un && rm -r un deep && sort -o sorted again.txt
python3 -c '
import json, subprocess, tempfile, threading, multiprocessing, asyncio, email, sqlite3
tempfile.TemporaryFile().close(); threading.Thread(target=print).start()
with multiprocessing.Pool(2) as pool: pool.map(abs, [1, 2])
sqlite3.connect("base.db").execute("create table t (a)"); subprocess.run(["true"], stdout=subprocess.DEVNULL)
'
"""


@pytest.mark.parametrize(
    ("line", "seen"),
    [
        ("cp payload /usr/local/bin/new", "open for writing /usr/local/bin/new"),
        ("cp -r folder/. /usr/lib", "open for writing /usr/lib/payload"),
        ("install -m755 payload /usr/bin/new", "open for writing /usr/bin/new"),
        ("python3 -c \"open('/opt/new', 'x')\"", "open for writing /opt/new"),
        ("mktemp /usr/lib/one.XXX", "open for writing /usr/lib/one."),
        ("mktemp -p /usr/lib", "open for writing /usr/lib/tmp."),
        ("mktemp -d -p /usr/lib", "make folder /usr/lib/tmp."),
        ("git init /usr/share/x", "make folder /usr/share/x"),
        ("ln payload /usr/bin/new", "link {project}/payload to /usr/bin/new"),
        ("ln -s payload /usr/bin/new", "symlink /usr/bin/new"),
        ("tar cf - payload | tar xf - -C /usr/share", "open for writing /usr/share/payload"),
        ("ln -s /usr/lib away; cp payload away/new", "open for writing /usr/lib/new through {project}/away/new"),
        ("ln -s /usr away; cp payload away/lib/../bin/new", "open for writing /usr/bin/new through {project}/away/lib/../bin/new"),
        ("cp payload ../../../../../../../../../../../usr/new", "open for writing /usr/new"),
        ("cd /usr/share && cp $OLDPWD/payload new", "open for writing /usr/share/new"),
        ("cd /usr/share && cp $OLDPWD/payload ../new", "open for writing /usr/new"),
        ("cp payload /proc/self/root/usr/new", "open for writing /proc/self/root/usr/new"),
        ("cp payload /sys/new", "open for writing /sys/new"),
        ("cp payload /etc/new", "open for writing /etc/new"),
        ("set -C; echo x > /etc/new", "open for writing /etc/new"),
    ],
)  # fmt: skip
def test_making_a_new_file_outside_is_seen_however_it_is_asked_for(bench, line, seen):
    ran = bench.sh(f"mkdir folder; echo x > payload; echo x > folder/payload; {line}; true")
    project = bench.layer.target
    wanted = seen.format(project=project)
    found = attempts(ran)
    assert [detail for detail in found if detail.startswith(wanted)], (found, ran.err)
    assert len(found) == 1, found


def test_a_new_file_from_a_folder_that_was_opened_outside_is_seen(bench):
    ran = python(bench, """
new = os.O_CREAT | os.O_EXCL | os.O_WRONLY
usr, here = os.open("/usr", os.O_PATH), os.open(".", os.O_RDONLY)
os.symlink("/usr/lib", "away"); away = os.open("away", os.O_PATH | os.O_DIRECTORY)
for n in range(4):
    for folder, name in ((usr, f"a{n}"), (away, f"b{n}"), (here, f"away/c{n}"), (usr, f"share/../d{n}"), (here, f"inside{n}")):
        try: os.close(os.open(name, new, dir_fd=folder))
        except OSError: pass
""")  # fmt: skip
    assert ran.execution.exit == 0, ran.err
    project = bench.layer.target
    assert attempts(ran) == dict.fromkeys([
        f"open for writing {place}" for n in range(4)
        for place in (f"/usr/a{n}", f"/usr/lib/b{n}", f"/usr/lib/c{n} through {project}/away/c{n}", f"/usr/d{n}")
    ], 1)  # fmt: skip


def test_every_kind_of_open_that_may_write_is_seen(bench):
    ran = python(bench, """
for flags in (os.O_CREAT | os.O_EXCL | os.O_WRONLY, os.O_CREAT | os.O_WRONLY, os.O_EXCL | os.O_WRONLY, os.O_CREAT | os.O_EXCL):
    try: os.open(f"/usr/{flags}", flags)
    except OSError: pass
""")  # fmt: skip
    assert attempts(ran) == {f"open for writing /usr/{flags}": 1 for flags in (193, 65, 129, 192)}


def test_ordinary_work_leaves_no_attempt_in_the_record(bench):
    ran = bench.sh(ORDINARY)
    assert ran.execution.exit == 0, ran.err
    assert {detail for detail in attempts(ran) if "__pycache__" not in detail} == set()


def test_repeated_attempts_are_counted_exactly(bench):
    ran = bench.sh("for n in $(seq 300); do echo x > /usr/x; done 2> /dev/null; true")
    assert attempts(ran) == {"open for writing /usr/x": 300}


def test_a_flood_of_attempts_takes_no_other_record_s_place(bench):
    ran = python(bench, """
def remove(name):
    try: os.unlink(name)
    except OSError: pass
for n in range(3000): remove(f"/usr/{n}")
for name in ("/home/me/.ssh/keys/a", "/opt/x"): remove(name)
for n in range(200): remove(f"/srv/{n}/x")
os.system("/usr/bin/env true")
""")  # fmt: skip
    seen = attempts(ran)
    assert seen.pop("more below /usr") == 3000 - MANY_CHANGES
    assert seen.pop("more below /home/me/.ssh/keys") == seen.pop("more below /opt") == 1
    assert sum(seen.values()) == MANY_CHANGES + MANY_BEYOND - 3
    assert ran.execution.observations_dropped == 200 - (MANY_BEYOND - 3)
    assert [o for o in ran.execution.observations if o.kind == "exec" and "env true" in o.detail]


def test_hostile_memory_neither_hangs_nor_fools_the_listener(bench):
    ran = python(bench, """
import mmap, threading
libc = ctypes.CDLL(None, use_errno=True); libc.mmap.restype = ctypes.c_void_p; libc.mmap.argtypes = [ctypes.c_void_p] + [ctypes.c_size_t] * 5
MKDIRAT = {"x86_64": 258, "aarch64": 34}[os.uname().machine]
def mkdir(address): return libc.syscall(MKDIRAT, ctypes.c_long(-100), ctypes.c_ulong(address), 0o700)
for address in (0, 1, 4095, 1 << 47, (1 << 47) - 1, (1 << 64) - 1, 1 << 63): assert mkdir(address) == -1
area = libc.mmap(None, 8192, 3, 0x22, 2**64 - 1, 0); libc.munmap(ctypes.c_void_p(area + 4096), ctypes.c_size_t(4096))
ctypes.memmove(area + 4096 - 9, b"/usr/end\\0", 9); mkdir(area + 4096 - 9)
ctypes.memmove(area + 4096 - 9, b"/usr/endx", 9); assert mkdir(area + 4096 - 9) == -1
for text in (b"/usr/" + b"x" * 4090, b"/usr/" + b"y" * 9000, b"/usr/" + b"z/" * 1800, b"/usr/\\xff\\xfe", b"/usr/\\x1b[2J", b"", b"/"):
    kept = ctypes.create_string_buffer(text); mkdir(ctypes.addressof(kept))
for folder in (-1, 9999, 2**31 - 1): libc.syscall(MKDIRAT, ctypes.c_long(folder), b"x", 0o700)
reader, writer = os.pipe(); libc.syscall(MKDIRAT, ctypes.c_long(reader), b"x", 0o700)
libc.syscall(435, ctypes.c_ulong(1), ctypes.c_ulong(88)); libc.syscall(437, -100, b"/usr/q", ctypes.c_ulong(1), 24)
flip = ctypes.create_string_buffer(b"/tmp/flip" + bytes(20))
def change():
    for n in range(20000): flip.value = b"/usr/flip" if n % 2 else b"/tmp/flip"
thread = threading.Thread(target=change); thread.start()
for n in range(2000): mkdir(ctypes.addressof(flip))
thread.join(); print("whole")
""")  # fmt: skip
    assert ran.out == b"whole\n", ran.err
    seen = attempts(ran)
    assert seen["make folder /usr/end"] == 1
    assert seen[r"make folder /usr/\xff\xfe"] == 1
    assert seen[r"make folder '/usr/\x1b[2J'"] == 1
    assert not any("y" * 50 in detail for detail in seen)


def test_pipes_and_sockets_on_the_way_are_never_opened(bench):
    ran = bench.sh(
        "mkfifo pipe; ln -s pipe link; (echo x > link &) ; cat link; ln -s $PWD/pipe/x deeper; : > deeper; true"
    )
    assert ran.out == b"x\n"


def test_clone3_with_a_namespace_is_recorded_and_missing_as_before(bench):
    ran = python(bench, """
import struct
libc = ctypes.CDLL(None, use_errno=True)
for flags in (0x10000000, 0x20000000, 0x100):
    kept = ctypes.create_string_buffer(struct.pack("11Q", flags, 0, 0, 0, 17, 0, 0, 0, 0, 0, 0))
    assert libc.syscall(435, kept, 88) == -1 and ctypes.get_errno() == 38
""")  # fmt: skip
    assert ran.execution.exit == 0, ran.err
    seen = {o.detail for o in ran.execution.observations if o.kind == "refused-syscall"}
    assert seen == {"clone3 0x10000000", "clone3 0x20000000"}


def test_byte_code_beside_programs_is_one_line(bench, tmp_path):
    tool = tmp_path / "tool"
    tool.mkdir()
    for name in ("one", "two", "three"):
        (tool / f"{name}.py").write_text("x = 1\n")
    ran = python(bench, f"sys.path.insert(0, {str(tool)!r}); import one, two, three", read_only=(str(tool),))
    assert ran.execution.exit == 0, ran.err
    assert [detail for detail in attempts(ran) if str(tool) in detail] == [f"make folder {tool}/**/__pycache__"]
    assert not os.path.exists(tool / "__pycache__")
