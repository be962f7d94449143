"""Folders that were there before the mission can be renamed in a box, as on any file system."""

import os
import shutil
import subprocess
from dataclasses import replace

import pytest

from ringfence.model.box import Limits
from ringfence.model.ids import Bytes

pytestmark = pytest.mark.needs_userns
LOOK = "find . -name .git -prune -o -printf '%y %m %p %l %T@\\n' | sort"


@pytest.fixture
def old(bench):
    """A folder of the lower tree with a bit of everything, and its hidden file."""
    base = f"{bench.layer.target}/old"
    os.makedirs(f"{base}/deep/er")
    os.makedirs(f"{base}/empty/nested")
    for name, text, mode in (
        ("a", "one\n", 0o644),
        ("deep/tool", "#!/bin/sh\necho hi\n", 0o755),
        ("deep/er/c", "x" * 99, 0o400),
    ):
        with open(f"{base}/{name}", "w") as file:
            file.write(text)
        os.chmod(f"{base}/{name}", mode)
    os.symlink("../a", f"{base}/deep/link")
    os.symlink("/etc/hosts", f"{base}/absolute")
    os.link(f"{base}/a", f"{base}/twin")
    os.mkfifo(f"{base}/pipe")
    os.setxattr(f"{base}/deep", "user.note", b"kept")
    os.chmod(f"{base}/deep/er", 0o555)
    for folder, _folders, files in os.walk(base, topdown=False):
        for name in [*files, "."]:
            os.utime(f"{folder}/{name}", (1_500_000_000, 1_500_000_000), follow_symlinks=False)
    return base


def python(bench, text):
    return bench.run("/usr/bin/python3", "-c", "import errno, os, sys, ctypes\n" + text)


def test_a_renamed_folder_is_the_same_in_every_respect(bench, old):
    before = bench.sh(f"cd old && {LOOK}").out
    ran = python(bench, "os.rename('old', 'new'); print(os.getxattr('new/deep', 'user.note'), os.path.lexists('old'))")
    assert ran.out == b"b'kept' False\n", ran.err
    assert bench.sh(f"cd new && {LOOK}; test new/a -ef new/twin").out == before
    assert bench.sh("sh new/deep/tool; ls -A").out.split() == [b"hi", b"new", b"readme.txt"]
    assert not [name for name in os.listdir(bench.layer.upper) if "moving" in name]
    assert os.path.exists(f"{old}/deep/er/c")  # the real tree


def test_it_goes_on_being_a_folder_like_others(bench, old):
    ran = python(bench, """
os.rename('old', 'new'); os.rename('new', 'newer'); os.mkdir('old'); os.rename('newer', 'old/sub'); os.rename('old', 'x')
print(sorted(os.listdir('.')), sorted(os.listdir('x/sub')))
""")  # fmt: skip
    assert b"['readme.txt', 'x']" in ran.out, ran.err
    assert ran.out.count(b"'empty'") == 1


def test_git_moves_an_old_folder(bench, old):
    os.unlink(f"{old}/pipe")
    for words in (
        ["init", "-q"],
        ["add", "-A", "old"],
        ["-c", "user.name=P", "-c", "user.email=p@x", "commit", "-qm", "x"],
    ):
        subprocess.run(["git", *words], cwd=bench.layer.target, check=True)
    ran = bench.sh("git mv old/deep moved && git mv old new && git status --porcelain -uno | sort && git commit -qm y")
    assert ran.out.splitlines()[0] == b"R  old/a -> new/a", ran.err
    assert b"R  old/deep/tool -> moved/tool" in ran.out
    assert bench.sh("git status --porcelain -uno; git diff --stat HEAD").out == b""


@pytest.mark.skipif(shutil.which("node", path="/usr/bin") is None, reason="no node")
def test_node_renames_an_old_folder(bench, old):
    ran = bench.run(
        "/usr/bin/node", "-e", "require('fs').renameSync('old', 'new'); console.log(require('fs').existsSync('old'))"
    )
    assert ran.out == b"false\n", ran.err


def test_the_rules_of_rename_stay(bench, old):
    os.makedirs(f"{bench.layer.target}/full/x")
    os.makedirs(f"{bench.layer.target}/hollow")
    ran = python(bench, """
libc = ctypes.CDLL(None, use_errno=True)
def move(source, target, flags=0):
    result = libc.renameat2(-100, source.encode(), -100, target.encode(), flags)
    print(source, target, flags, errno.errorcode[ctypes.get_errno()] if result else 0)
os.makedirs('full'+'/y'); move('old', 'full'); move('old', 'old/deep/in'); move('old', 'readme.txt'); move('old', 'hollow', 1)
move('old', 'full', 2); move('old', '/tmp/away'); move('old', 'no/where'); move('old/a', 'full'); move('old', 'old')
move('old', '/usr/x'); move('gone', 'x'); move('old/', 'full/y'); print(os.path.lexists('old')); os.mkdir('old'); move('hollow', 'old/h'); move('full/y/deep', 'deep', 1)
""")  # fmt: skip
    assert ran.out.decode().split("\n")[:-1] == [
        "old full 0 ENOTEMPTY", "old old/deep/in 0 EINVAL", "old readme.txt 0 ENOTDIR", "old hollow 1 EEXIST",
        "old full 2 EXDEV", "old /tmp/away 0 EXDEV", "old no/where 0 ENOENT", "old/a full 0 EISDIR", "old old 0 0",
        "old /usr/x 0 EXDEV", "gone x 0 ENOENT", "old/ full/y 0 0", "False", "hollow old/h 0 0", "full/y/deep deep 1 0",
    ], ran.err  # fmt: skip


def test_an_empty_folder_is_replaced(bench, old):
    os.makedirs(f"{bench.layer.target}/hollow")
    ran = python(bench, "os.rename('old', 'hollow'); print(len(os.listdir('hollow')), os.path.exists('old'))")
    assert ran.out == b"6 False\n", ran.err


def test_what_is_hidden_stays_hidden(bench, old):
    with open(f"{old}/.env", "w") as file:
        file.write("TOKEN=planted\n")
    layer = replace(bench.layer, masked=(".env", "old/.env"))
    ran = bench.run(
        "/bin/sh",
        "-c",
        'python3 -c \'import os; os.rename("old", "new")\'; ls -A new; cat new/.env; mkdir old; cat old/.env',
        layer=layer,
    )
    assert b".env" not in ran.out
    assert b"planted" not in ran.out
    assert b"deep" in ran.out
    hidden = {o.detail: o.count for o in ran.execution.observations if o.kind == "hidden-write"}
    assert hidden == {f"rename {bench.layer.target}/old to {bench.layer.target}/new": 1}


def test_renames_that_race_lose_nothing(bench, old):
    ran = python(bench, """
import threading
def race(number):
    for turn in range(10):
        for source, target in (('old', f'n{number}'), (f'n{number}', 'old')):
            try: os.rename(source, target)
            except OSError: pass
threads = [threading.Thread(target=race, args=(n,)) for n in range(4)]
[t.start() for t in threads]; [t.join() for t in threads]
print(sum(len(files) for _f, _d, files in os.walk('.')), [n for n in os.listdir('.') if 'moving' in n])
""")  # fmt: skip
    assert ran.out == b"8 []\n", ran.err


def test_files_that_come_in_meanwhile_are_not_lost(bench, old):
    for number in range(300):
        with open(f"{old}/deep/{number}", "w") as file:
            file.write("x")
    ran = python(bench, """
import threading
made = []
def writer():
    for number in range(400):
        try: open(f'old/deep/late{number}', 'x').close(); made.append(number)
        except OSError: pass
thread = threading.Thread(target=writer); thread.start(); os.rename('old', 'new'); thread.join()
names = [name for _f, _d, files in os.walk('.') for name in files]
print(all(f'late{number}' in names for number in made), sum(name.isdigit() for name in names))
""")  # fmt: skip
    assert ran.out == b"True 300\n", ran.err


def test_the_disk_limit_in_the_middle_leaves_the_old_tree_whole(bench, old):
    for number in range(60):
        with open(f"{old}/big{number}", "wb") as file:
            file.write(bytes(1 << 20))
    limits = Limits(disk=Bytes(20 << 20))
    ran = bench.run("/usr/bin/python3", "-c", "import os; os.rename('old', 'new')", limits=limits)
    assert ran.execution.ended_by.startswith("disk"), ran.execution
    assert bench.sh("ls old | grep -c big; ls -d new").out == b"60\n"


def test_a_killed_caller_leaves_one_whole_tree(bench, old):
    for number in range(2000):
        with open(f"{old}/{number}", "wb") as file:
            file.write(b"x")
    ran = bench.sh(
        "python3 -c 'import os; os.rename(\"old\", \"new\")' & sleep 0.1; kill -9 $!; sleep 2; ls old new | grep -c '^[0-9]*$'"
    )
    assert int(ran.out) == 2000, ran.err
