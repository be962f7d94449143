"""Planning is pure: what a box sees, its environment, its limits; and what is refused."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringfence.model.box import Layer, Limits, Mount
from ringfence.model.errors import BoxError
from ringfence.model.ids import Bytes, CallId, Millis
from ringfence.sandbox.environment import looks_secret, plan_environment
from ringfence.sandbox.facts import BOX_UID, HostFacts, Toolchain
from ringfence.sandbox.gitconfig import CLOSED, sanitise
from ringfence.sandbox.orders import compile_order, middle_path
from ringfence.sandbox.plan import DECOYS, effective, plan_box

FACTS = HostFacts(
    uid=1000,
    gid=1000,
    home="/home/dev",
    links=(("/bin", "usr/bin"),),
    folders=(),
    etc="/state/view-1",
    toolchains=(Toolchain(name="node", root="/opt/node", bin="/opt/node/bin"),),
    path="/opt/node/bin:/usr/bin:/home/dev/bin:/home/dev/project/.venv/bin",
    memory=Bytes(8 << 30),
)
LAYER = Layer(lower="/home/dev/project", upper="/s/u", work="/s/w", target="/home/dev/project", owner=(1000, 1000))


def plan(**options):
    options = {
        "argv": ("true",),
        "cwd": "/home/dev/project",
        "layer": LAYER,
        "limits": Limits(),
        "facts": FACTS,
        **options,
    }
    return plan_box(call_id=CallId("c-1"), **options)


def test_planning_touches_nothing(no_io):
    assert plan() == plan()


def test_only_the_allowlist_is_mounted():
    kinds = {(m.kind, m.target) for m in plan().mounts if m.kind not in {"file", "decoy", "watched"}}
    assert kinds == {
        ("ro", "/usr"), ("ro", "/etc"), ("link", "/bin"), ("link", "/var/tmp"), ("link", "/var/run"), ("proc", "/proc"),
        ("dir", "/dev"), ("tmpfs", "/tmp"), ("tmpfs", "/dev/shm"), ("mqueue", "/dev/mqueue"), ("tmpfs", "/run"), ("granted", "/opt/node"),
        ("tmpfs", "/home/agent"),
    }  # fmt: skip
    assert next(m.source for m in plan().mounts if m.target == "/etc") == "/state/view-1"


def test_the_real_home_and_nothing_of_it_is_there():
    assert not [m for m in plan().mounts if m.source.startswith("/home/dev") or m.target.startswith("/home/dev")]


def test_decoys_stand_where_thieves_look_and_hold_nothing():
    decoys = {m.target: m.content for m in plan(decoy_seed="seed").mounts if m.kind == "decoy"}
    assert len(decoys) == len(DECOYS) >= 10
    assert b"seed" in decoys["/home/agent/.ssh/id_rsa"]


def test_a_home_that_is_the_callers_own_path_is_avoided():
    facts = replace(FACTS, home="/home/agent", path="/usr/bin")
    made = plan(facts=facts, cwd="/home/agent/project", layer=replace(LAYER, target="/home/agent/project"))
    assert made.home == "/home/fenced"
    assert dict(made.env)["HOME"] == "/home/fenced"


def test_path_keeps_what_the_box_can_see():
    path = dict(plan().env)["PATH"].split(":")
    assert path[:3] == ["/opt/node/bin", "/usr/bin", "/home/dev/project/.venv/bin"]
    assert "/home/dev/bin" not in path


@pytest.mark.parametrize(
    "target", ["/", "/home", "/home/dev", "/usr", "/tmp", "/etc", "/proc/1", "relative", "/home/dev/../dev/x", "/var"]
)
def test_a_worktree_that_is_too_wide_is_refused(target):
    with pytest.raises(BoxError) as fault:
        plan(layer=replace(LAYER, target=target))
    assert fault.value.code == "box-worktree"


@pytest.mark.parametrize("argv", [(), ("a\0b",)])
def test_a_command_that_cannot_be_is_refused(argv):
    with pytest.raises(BoxError) as fault:
        plan(argv=argv)
    assert fault.value.code == "box-command"


def test_root_gets_an_unprivileged_user_and_everyone_else_their_own():
    assert plan().user == (1000, 1000)
    assert plan(facts=replace(FACTS, uid=0, gid=0, home="/root")).user == (BOX_UID, BOX_UID)
    with pytest.raises(BoxError) as fault:
        compile_order(replace(plan(), user=(0, 5)), root=True)
    assert fault.value.code == "box-identity"


def test_zero_means_a_ceiling_and_nothing_exceeds_it():
    limits = effective(Limits(runtime=Millis(0), memory=Bytes(1 << 50), output=Bytes(0)), Bytes(8 << 30))
    assert limits.memory == 6 << 30
    assert all(getattr(limits, name) > 0 for name in limits.__slots__)
    assert effective(Limits(disk=Bytes(5)), Bytes(8 << 30)).file_size == 5


def test_a_mount_below_a_place_the_box_may_rename_is_refused():
    for target in ("/home/dev/project/.git/config", "/home/agent/x"):
        bad = replace(plan(), mounts=(*plan().mounts, Mount(kind="ro", target=target, source="/x")))
        with pytest.raises(BoxError) as fault:
            compile_order(bad, root=False)
        assert fault.value.code == "box-mount"
    with pytest.raises(BoxError, match="cannot be made"):
        compile_order(replace(plan(), mounts=(Mount(kind="magic", target="/x"),)), root=False)


def test_the_worktree_is_attached_last_and_the_mask_lies_between():
    order = compile_order(plan(layer=replace(LAYER, masked=(".env",), middle="/s/m")), root=True)
    kind, target, lowers, upper, _work, told = order["steps"][-1]
    assert (kind, target, upper) == ("overlay", b"/home/dev/project", b"/s/u")
    assert lowers[0].startswith(b"/s/m/")
    assert lowers[1] == b"/home/dev/project"
    assert told == [b".env"]
    assert order["owner"] == (1000, 1000)
    assert not order["map_user"]


def test_names_that_are_not_utf8_leave_as_they_came():
    order = compile_order(plan(argv=("ls", "\udcff\udcfe")), root=False)
    assert order["argv"] == [b"ls", b"\xff\xfe"]


def test_another_mask_never_takes_the_place_of_one():
    first = replace(LAYER, masked=("a", "b"), middle="/m")
    assert middle_path(first) == middle_path(replace(first, masked=("b", "a")))
    assert middle_path(first) != middle_path(replace(first, masked=("a",)))


@pytest.mark.parametrize(
    "name",
    ["GH_TOKEN", "AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY_ID", "DB_PASSWORD", "NPM_AUTH", "API_KEY", "MY_APIKEY", "SSH_KEY_PATH",
     "GOOGLE_APPLICATION_CREDENTIALS", "SESSION_COOKIE", "SENTRY_DSN", "DATABASE_URL", "PGPASSWORD", "GITHUB_PAT"],
)  # fmt: skip
def test_secret_names_never_pass_even_when_asked_for(name):
    made = plan_environment({name: "x"}, passed=[name], settings={name: "y"}, own={})
    assert made == ()


@pytest.mark.parametrize(
    "name", ["KEYBOARD", "PATHEXT", "MONKEY_PATCH", "TERM", "CI", "LC_ALL", "TZ", "AUTHOR_NAME", "COMPASS"]
)
def test_ordinary_names_do_not_look_secret(name):
    assert not looks_secret(name, "value")


@pytest.mark.parametrize(
    "value", ["AKIAABCDEFGHIJKLMNOP", "ghp_" + "a" * 30, "https://user:word@host/x", "-----BEGIN RSA PRIVATE KEY-----"]
)
def test_secret_values_never_pass(value):
    assert plan_environment({"LANG": value}, own={}) == ()


@pytest.mark.parametrize(
    "name", ["EDITOR", "GIT_PAGER", "JAVA_HOME", "LD_PRELOAD", "MAKEFLAGS", "PAGER", "PYTHONPATH", "VIRTUAL_ENV"]
)
def test_what_names_programs_and_code_passes_only_where_the_policy_says_so(name):
    assert plan_environment({name: "x"}, own={}) == ()
    assert plan_environment({name: "x"}, passed=[name], own={}) == ((name, "x"),)


@given(st.dictionaries(st.text(max_size=20), st.text(max_size=20), max_size=20))
def test_only_listed_names_pass(caller):
    for name, _value in plan_environment(caller, own={"PATH": "/usr/bin"}):
        assert name == "PATH" or name in caller
        assert name == "PATH" or name.startswith("LC_") or name.isupper()


CONFIG = """[core]
\trepositoryformatversion = 0
\tfsmonitor = /tmp/evil
\thooksPath = /tmp/hooks
\tsshCommand = evil
\tpager = evil
[remote "origin"]
\turl = https://user:ghp_secret@github.com/a/b.git
\tfetch = +refs/heads/*:refs/remotes/origin/*
\tuploadpack = evil
[remote "ssh"]
\turl = git@github.com:a/b.git
\tpushurl = ssh://git@github.com/a/b.git
[remote "ext"]
\turl = ext::sh -c evil
[http "https://github.com/"]
\textraheader = AUTHORIZATION: basic c2VjcmV0
[credential]
\thelper = store
[include]
\tpath = ../.gitconfig-secret
[includeIf "gitdir:~/"]
\tpath = other
[alias]
\tst = !evil
[filter "lfs"]
\tclean = evil
[user]
\tname = Dev
[branch "main"]
\tremote = origin
[core]
\teditor = evil \\
\tbare = true
"""


def test_git_configuration_is_seen_without_credentials_and_programs():
    text = sanitise(CONFIG)
    for word in ("secret", "evil", "ghp_", "helper", "include", "extraheader", "hooksPath", "alias", "bare"):
        assert word not in text, word
    for line in ("url = https://github.com/a/b.git", "url = git@github.com:a/b.git", "pushurl = ssh://git@github.com/a/b.git",
                 "name = Dev", "remote = origin", "repositoryformatversion = 0", "auto = 0"):  # fmt: skip
        assert line in text


@pytest.mark.parametrize(
    ("clean", "known"),
    [
        ("nbstripout", True),
        (r"\"/home/dev/.venv/bin/python3\" -m nbstripout", True),
        (r"\"git-crypt\" clean", False),
        ("openssl enc -aes-256-cbc -k hunter2", False),
        ("python3 -c evil", False),
        (r"\"nbstripout\" \"; evil", False),
    ],
)
def test_a_filter_works_in_a_box_as_outside_or_takes_nothing_into_history(clean, known):
    text = sanitise(f'[filter "x"]\n\tclean = {clean}\n\tsmudge = cat\n')
    assert (f"\tclean = {clean}\n" in text) is known
    assert (CLOSED in text) is not known
    assert "\tprocess" not in sanitise('[filter "x"]\n\tprocess = cat\n')


def test_the_filter_of_large_files_is_the_fences_own():
    (own,) = (m for m in plan().mounts if m.target.endswith("/.gitconfig"))
    assert b"exec git-lfs clean -- %f" in own.content
    assert "lfs" not in sanitise('[filter "lfs"]\n\tprocess = git-lfs filter-process\n\trequired = true\n').lower()


@given(st.text(max_size=400))
def test_no_text_makes_it_fail_or_pass_a_helper_on(text):
    made = sanitise(text + "\n[credential]\n\thelper = store\n")
    assert "helper" not in made


def test_the_programs_behind_shims_take_their_place_on_the_path():
    pyenv = Toolchain(name="python", root="/p/versions/3", bin="/p/versions/3/bin", instead_of="/p/shims")
    facts = replace(FACTS, toolchains=(pyenv,), path="/p/shims:/usr/bin")
    assert dict(plan(facts=facts).env)["PATH"].split(":")[:2] == ["/p/versions/3/bin", "/usr/bin"]
