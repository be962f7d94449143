"""What a folder hands down to new files and folders in it, they have behind the gate as well: access lists and its group."""

import os
import stat
import struct

import pytest

pytestmark = pytest.mark.needs_userns

DEFAULT, ACCESS = "system.posix_acl_default", "system.posix_acl_access"
OWNER, USER, GROUP, NAMED_GROUP, MASK, OTHER = 1, 2, 4, 8, 16, 32
NOBODY = 0xFFFFFFFF


def access_list(*entries):
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


LIST = access_list(
    (OWNER, 7, NOBODY),
    (USER, 6, 1234),
    (GROUP, 5, NOBODY),
    (NAMED_GROUP, 7, 4321),
    (MASK, 7, NOBODY),
    (OTHER, 4, NOBODY),
)
SCRIPT = "umask 022; cd {}; echo n > n; echo e > e; chmod +x e; echo p > p; chmod 600 p; mkdir -p d/dd; echo m > d/dd/m; ln -s n l"


def told(root):
    """Mode, owner and access lists of everything below a folder."""
    found = {}
    for base, folders, files in os.walk(root):
        for name in (*folders, *files):
            path = os.path.join(base, name)
            info = os.lstat(path)
            lists = () if stat.S_ISLNK(info.st_mode) else tuple(_list(path, one) for one in (ACCESS, DEFAULT))
            found[os.path.relpath(path, root)] = (oct(info.st_mode), info.st_uid, info.st_gid, lists)
    return found


def _list(path, name):
    try:
        return os.getxattr(path, name)
    except OSError:
        return b""


def test_new_files_have_the_access_list_that_their_folder_hands_down(bench):
    for name in ("here", "there"):
        os.mkdir(f"{bench.root}/{name}")
        os.setxattr(f"{bench.root}/{name}", DEFAULT, LIST)
    bench.box(SCRIPT.format("here"))
    report = bench.commit()
    assert report.clean
    assert os.system(f"cd '{bench.root}' && {SCRIPT.format('there')}") == 0
    expected = told(f"{bench.root}/there")
    assert expected["n"][3][0]
    assert told(f"{bench.root}/here") == expected


def test_a_changed_file_keeps_its_own_list(bench):
    os.setxattr(f"{bench.root}/src", DEFAULT, LIST)
    os.setxattr(f"{bench.root}/src/b.py", ACCESS, own := LIST.replace(struct.pack("<I", 1234), struct.pack("<I", 99)))
    bench.box("echo more >> src/b.py; echo more >> src/deep/c.py")
    assert bench.commit().clean
    assert _list(f"{bench.root}/src/b.py", ACCESS) == own
    assert _list(f"{bench.root}/src/deep/c.py", ACCESS) == b""


def test_new_files_and_folders_belong_to_the_group_that_their_folder_hands_down(bench):
    group = 4321 if os.geteuid() == 0 else max((os.getegid(), *os.getgroups()))
    bench.box("mkdir made; " + SCRIPT.format("src"))
    os.chown(f"{bench.root}/src", -1, group)
    os.chmod(f"{bench.root}/src", 0o2775)
    assert bench.commit().clean
    found = told(f"{bench.root}/src")
    assert {
        name: entry[2] for name, entry in found.items() if name not in {"b.py", "deep", "deep/c.py"}
    } == dict.fromkeys(("n", "e", "p", "l", "d", "d/dd", "d/dd/m"), group)
    assert int(found["d"][0], 8) & stat.S_ISGID
    assert int(found["d/dd"][0], 8) & stat.S_ISGID
    assert not os.stat(f"{bench.root}/made").st_mode & stat.S_ISGID
