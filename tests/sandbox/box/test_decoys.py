"""Decoys tell who opens them, and ordinary tools neither open them nor behave otherwise because of them."""

import errno
import os
import shutil

import pytest

from ringfence.model.box import ControlState
from ringfence.sandbox.controls import decoys_in
from ringfence.sandbox.inner import init, kernel
from ringfence.sandbox.inner.init import WATCHED
from ringfence.sandbox.inner.loop import Loop
from ringfence.sandbox.inner.watch import Decoys
from ringfence.sandbox.plan import DECOYS, QUIET_DECOYS

pytestmark = pytest.mark.needs_userns
TOOLS = {
    "node": 'node -e \'require("fs").writeFileSync("n", "1")\' && echo \'process.exit(0)\' | node -i > /dev/null',
    "npm": "npm init -y > /dev/null && npm config list > /dev/null && npm ls && npm run 2>&1",
    "git": "git init -q . && git add -A && git commit -qm x && git status && git config --list && git remote add o https://x.example/y",
    "gpg": "gpg --batch --list-keys && gpg --batch --list-secret-keys && gpg --batch --version",
    "python3": "python3 -m pip --version; python3 -c 'import netrc, urllib.request' && echo 'print(1)' | python3 -i",
    "psql": "psql --version && psql -h /nowhere -c 'select 1'; true",
    "cargo": "cargo init -q --vcs none --name x . && cargo metadata -q --offline --format-version 1 > /dev/null",
    "ssh": "ssh -V && ssh -G example.org > /dev/null",
}


def test_each_decoy_tells_when_it_is_opened(bench):
    names = " ".join(f"'{path}'" for path, _text in (*DECOYS, *QUIET_DECOYS))
    ran = bench.sh(
        f'cd && for name in {names}; do test "$(stat -c %a "$name")" = 600 && cat "$name" > /dev/null || exit 1; done'
    )
    assert ran.execution.exit == 0, ran.err
    home = bench.plan("true").home
    seen = {(o.kind, o.detail) for o in ran.execution.observations if o.kind in {"decoy", "credential-read"}}
    assert seen == {
        *(("decoy", f"{home}/{path}") for path, _text in DECOYS),
        *(("credential-read", f"{home}/{path}") for path, _text in QUIET_DECOYS),
    }


def test_the_folders_of_decoys_are_private(bench):
    ran = bench.sh("cd && find . -mindepth 1 -type d ! -perm 700")
    assert ran.out == b""


@pytest.mark.parametrize("tool", sorted(TOOLS))
def test_ordinary_tools_work_and_touch_no_decoy(bench, tool):
    if shutil.which(tool, path="/usr/bin:/bin") is None:
        pytest.skip(f"{tool} is not installed for everybody here")
    ran = bench.sh(TOOLS[tool])
    assert ran.execution.exit == 0, ran.err
    assert b"decoy" not in ran.out + ran.err
    assert [o.detail for o in ran.execution.observations if o.kind == "decoy"] == []


def test_a_decoy_that_is_gone_is_forgotten_without_being_told(tmp_path):
    told = []
    decoys = Decoys(Loop())
    for name in ("gone", "there"):
        (tmp_path / name).write_text("")
    watches = [
        (kernel.inotify_add_watch(decoys.descriptor, os.fsencode(tmp_path / name), WATCHED), "decoy", name)
        for name in ("gone", "there")
    ]
    decoys.add(watches, lambda *what: told.append(what))
    (tmp_path / "gone").unlink()
    decoys.read()
    assert [what[1] for what in decoys.watched.values()] == ["there"]
    assert told == []
    os.close(decoys.descriptor)


@pytest.mark.parametrize(("error", "told"), [(errno.ENOSPC, True), (errno.ENOTDIR, False)])
def test_decoys_that_cannot_be_watched_are_told_but_for_what_the_agent_blocked(tmp_path, monkeypatch, error, told):
    def refused(*_arguments):
        raise OSError(error, os.strerror(error))

    files = [(os.fsencode(tmp_path / name), b"x", 0o600, kind) for name, kind in (("a", "decoy"), ("b", ""))]
    monkeypatch.setattr(kernel, "inotify_add_watch", refused)
    watches, unwatched = init._own_files(files, -1)
    assert watches == []
    assert unwatched == (f"1 of 1 ({os.strerror(error)})" if told else "")
    assert (tmp_path / "a").read_bytes() == b"x"


def test_the_control_says_whether_all_are_watched(bench):
    plan = bench.plan("true")
    (seen,) = decoys_in(plan, "")
    (unseen,) = decoys_in(plan, "1 of 27 (No space left on device)")
    assert (seen.state, unseen.state) == (ControlState.ENFORCED, ControlState.DOWNGRADED)
    assert "1 of 27" in unseen.detail
    assert seen in bench.run("/bin/true").execution.controls
