"""What a host can enforce: tried, and where it cannot, explained with the remedy."""

import errno
import os
import subprocess
import sys

import pytest

from ringfence.model.box import ControlState, Level
from ringfence.sandbox.host import find_toolchains, gather_host_facts, toolchain_root
from ringfence.sandbox.inner import groups, idmap, landlock, trial
from ringfence.sandbox.inner.trial import ROOT_NEEDS
from ringfence.sandbox.launcher import Launcher
from ringfence.sandbox.probe import BUBBLEWRAP, NEEDED, Settings, explain_missing, probe_host

GOOD = dict.fromkeys(NEEDED, 0)
HOST = Settings(release=(6, 8), python="/usr/bin/python3.12")


@pytest.mark.needs_userns
def test_this_host_can_and_nothing_is_left(tmp_path):
    report = probe_host(str(tmp_path))
    assert (report.level, report.backend, report.causes) == (Level.NAMESPACES, "native", ())
    assert {c.name for c in report.controls} >= set(NEEDED.values()) | {"Landlock", "limits"}
    assert all(c.state is not ControlState.ABSENT for c in report.controls)
    assert os.listdir(tmp_path) == []


@pytest.mark.needs_userns
def test_a_file_system_without_attributes_holds_no_overlay(tmp_path, monkeypatch):
    def refused(*_arguments):
        raise OSError(errno.EOPNOTSUPP, "as tmpfs says before Linux 6.6")

    folder = os.fsencode(tmp_path)
    assert trial._outcome(trial._overlay, folder) == 0
    monkeypatch.setattr(os, "setxattr", refused)
    assert trial._outcome(trial._overlay, folder) == errno.EOPNOTSUPP
    os.chmod(tmp_path / "work" / "work", 0o700)


@pytest.mark.needs_userns
def test_where_no_namespace_is_left_the_cause_is_named(tmp_path):
    """In a user namespace that may make none itself, as a hardened host or a container would have it."""
    script = (
        f"import sys; sys.path[:0] = {sys.path!r}\n"
        "from ringfence.sandbox.inner import kernel, init\nimport os\n"
        "kernel.prctl(4, 1, 0, 0, 0); ids = os.geteuid(), os.getegid()\n"
        "kernel.unshare(kernel.CLONE_NEWUSER); init.map_self(*ids)\n"
        "open('/proc/sys/user/max_user_namespaces', 'w').write('0')\n"
        "kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); init._drop_capabilities()\n"
        "from ringfence.sandbox.probe import probe_host\n"
        f"r = probe_host({str(tmp_path)!r}); print(r.level.name, repr(r.backend)); print(*r.causes); print(*r.remedies)\n"
    )
    if os.geteuid() == 0:
        pytest.skip("root keeps its rights in the namespace it maps itself to")
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=60)
    lines = done.stdout.splitlines()
    assert lines[0] == "LANDLOCK ''", done.stderr
    assert "max_user_namespaces is 0" in lines[1]
    assert "sysctl -w user.max_user_namespaces" in lines[2]


@pytest.mark.parametrize(
    ("missing", "host", "cause", "remedy"),
    [
        ({"user": errno.EACCES}, {"apparmor_userns": True}, "AppArmor", "profile ringfence /usr/bin/python3.12"),
        ({"user": errno.EPERM}, {"userns_clone_off": True}, "unprivileged_userns_clone", "sysctl -w kernel.unpriv"),
        ({"user": errno.ENOSPC}, {"no_namespaces_left": True}, "max_user_namespaces", "sysctl -w user.max_user"),
        (
            {"user": errno.EPERM, "mnt": errno.EPERM},
            {"container": "docker"},
            "docker container",
            "--security-opt seccomp",
        ),
        ({"seccomp": errno.ENOSYS}, {"container": "podman"}, "refuses: seccomp notification", "on the host"),
        (
            {"mnt": errno.EPERM, "mounts": errno.EPERM, "rights": errno.EPERM},
            {"container": "docker", "root": True, "lacks": ("NET_ADMIN", "SYS_ADMIN")},
            "lacks CAP_NET_ADMIN, CAP_SYS_ADMIN",
            "--cap-add NET_ADMIN --cap-add SYS_ADMIN",
        ),
        ({"proc": errno.EPERM}, {}, "/proc", "systempaths=unconfined"),
        ({"overlay": errno.EINVAL}, {}, "overlay", "ext4"),
        ({"overlay": errno.EOPNOTSUPP}, {}, "overlay", "from Linux 6.6 also tmpfs"),
        ({"idmap": errno.EINVAL}, {"root": True}, "id-mapped", "ordinary user"),
        ({"idmap": errno.EINVAL}, {"root": True, "release": (5, 15)}, "kernel 5.15 makes no overlay", "ordinary user"),
        ({"seccomp": errno.EINVAL}, {}, "seccomp notification", "unshare -Urnpmf"),
        ({"mounts": errno.ENOSYS}, {"release": (5, 4)}, "5.4 is older", "boot a kernel"),
    ],
)
def test_each_cause_has_its_remedy(missing, host, cause, remedy):
    from dataclasses import replace

    causes, remedies = explain_missing({**GOOD, **missing}, replace(HOST, **host))
    assert cause in " ".join(causes)
    assert remedy in " ".join(remedies)
    assert len(causes) == len(remedies) >= 1


def test_nothing_missing_needs_no_explanation():
    assert explain_missing(GOOD, HOST) == ((), ())


DROPPED = "import sys; from ringfence.sandbox.probe import probe_host; found = probe_host(sys.argv[1]); print(found.level, *found.causes)"


@pytest.mark.needs_root
@pytest.mark.skipif(os.geteuid() != 0, reason="only root has capabilities to give up")
@pytest.mark.parametrize("name", ROOT_NEEDS)
def test_root_without_one_capability_that_boxes_need_is_told_so(name, tmp_path):
    command = ["setpriv", f"--bounding-set=-{name.lower()}", sys.executable, "-c", DROPPED, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert "Level.NAMESPACES" not in done.stdout
    assert f" this root lacks CAP_{name}, " in done.stdout, done.stderr


def test_results_that_are_missing_count_as_not_working():
    causes, _remedies = explain_missing({}, HOST)
    assert causes


@pytest.mark.needs_userns
@pytest.mark.skipif(not os.path.exists(BUBBLEWRAP), reason="the second way to a namespace needs bubblewrap")
def test_a_box_through_bubblewrap_is_as_good(bench, tmp_path):
    if os.geteuid() == 0:
        pytest.skip("root needs nobody to make namespaces for it")
    with Launcher.spawn(str(tmp_path / "s"), backend="bubblewrap") as launcher:
        bench.launcher = launcher
        ran = bench.sh(
            "id -u; cat .env; echo x > made; cat /proc/sys/user/max_user_namespaces; grep Cap /proc/self/status; unshare -U true"
        )
    lines = ran.out.decode().split("\n")
    assert lines[0] == str(os.getuid())
    assert "planted" not in ran.out.decode()
    assert lines[1] == "0"
    assert all(line.split()[1].strip("0") == "" for line in lines if line.startswith("Cap"))
    assert os.path.exists(f"{bench.layer.upper}/made")
    assert [o for o in ran.execution.observations if o.kind == "refused-syscall"]


@pytest.mark.parametrize(
    ("folder", "expected"),
    [
        ("/opt/node/bin", "/opt/node"),
        ("/home/dev/.pyenv/versions/3.12/bin", "/home/dev/.pyenv/versions/3.12"),
        ("/home/dev/.cargo/bin", "/home/dev/.cargo/bin"),
        ("/home/dev/.local/bin", "/home/dev/.local/bin"),
        ("/home/dev/bin", "/home/dev/bin"),
        ("/opt/bin", "/opt/bin"),
        ("/home/dev", None),
        ("/home", None),
        ("/", None),
        ("/bin", "/bin"),
    ],
)
def test_a_toolchain_never_shows_a_home(folder, expected):
    assert toolchain_root(folder, "/home/dev") == expected


def test_a_folder_on_the_path_is_shown_whatever_programs_it_holds(tmp_path):
    home, folder = tmp_path / "home", tmp_path / "own" / "bin"
    for made in (home / "bin", folder, tmp_path / "empty"):
        made.mkdir(parents=True)
    (folder / "nobody-knows-it").write_text("")
    path = ":".join(
        map(
            str,
            (folder, home / "bin", home, tmp_path / "none", "relative", "/usr/bin", "/bin", "/"),
        )
    )
    found = find_toolchains(path, str(home), [])
    assert [(t.root, t.bin) for t in found] == [
        (str(home / "bin"), str(home / "bin")),
        (str(tmp_path / "own"), str(folder)),
    ]


def test_a_virtual_environments_interpreter_is_found(tmp_path):
    base = tmp_path / "py" / "bin"
    base.mkdir(parents=True)
    (base / "python3").write_text("")
    tree = tmp_path / "tree"
    (tree / ".venv").mkdir(parents=True)
    (tree / ".venv" / "pyvenv.cfg").write_text(f"home = {base}\nversion = 3\n")
    found = find_toolchains("", str(tmp_path / "home"), [str(tree)])
    assert [t.root for t in found] == [str(tmp_path / "py")]


def test_the_prepared_etc_holds_no_secret_and_is_made_once(tmp_path):
    first = gather_host_facts(str(tmp_path), path="/usr/bin").etc
    assert gather_host_facts(str(tmp_path), path="/usr/bin").etc == first
    names = set(os.listdir(first))
    assert not names & {
        "shadow",
        "gshadow",
        "sudoers",
        "sudoers.d",
        "ssh",
        "ssl/private",
        "environment",
        "pip.conf",
        "npmrc",
        "gitconfig",
    }
    assert {"passwd", "hosts", "resolv.conf", "nsswitch.conf"} <= names
    with open(f"{first}/resolv.conf", encoding="ascii") as file:
        assert file.readline() == "nameserver 127.0.0.1\n"


def test_identity_maps_are_one_to_one():
    for pair in ((0, 1_900_000_000), (1000, 1_900_000_000), (5, 5), (7, 6)):
        extents = idmap.swap(*pair)
        assert sum(count for _a, _b, count in extents) == idmap.TOP
        for first, second, _count in extents:
            assert any(a <= second < a + n for a, _b, n in extents)
            assert any(b <= first < b + n for _a, b, n in extents)
        where = next((a, b) for a, b, n in extents if a <= pair[0] < a + n)
        assert pair[0] - where[0] + where[1] == pair[1]


def test_what_each_landlock_abi_handles():
    assert landlock.handled(1) == ((1 << 13) - 1, 0)
    assert landlock.handled(2)[0] & landlock.REFER
    assert not landlock.handled(2)[0] & landlock.TRUNCATE
    assert landlock.handled(6) == ((1 << 16) - 1, 3)
    assert landlock.restrict([], version=1) == 0


def test_groups_of_launchers_that_are_gone_are_told_from_living_ones(tmp_path):
    (tmp_path / "ringfence.999999999.1").mkdir()
    (tmp_path / groups.own_name()).mkdir()
    (tmp_path / "ringfence.x").mkdir()
    (tmp_path / "other").mkdir()
    assert groups.stale(str(tmp_path), remove=False) == [f"{tmp_path}/ringfence.999999999.1"]
    assert groups.stale(str(tmp_path), remove=True) == []
    assert sorted(os.listdir(tmp_path)) == sorted([groups.own_name(), "other", "ringfence.x"])


@pytest.mark.needs_userns
def test_landlock_alone_stops_a_write_that_the_mounts_would_allow(tmp_path):
    if landlock.abi() < landlock.USABLE_ABI:
        pytest.skip("no Landlock here")
    (tmp_path / "free").mkdir()
    script = (
        f"import sys; sys.path[:0] = {sys.path!r}\n"
        "from ringfence.sandbox.inner import kernel, landlock\n"
        f"kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); landlock.restrict([{os.fsencode(tmp_path / 'free')!r}])\n"
        f"open({str(tmp_path / 'free' / 'a')!r}, 'w').close(); print('free')\n"
        f"open({str(tmp_path / 'b')!r}, 'w').close(); print('escaped')\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=60)
    assert done.stdout == "free\n"
    assert "PermissionError" in done.stderr
