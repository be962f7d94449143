"""The console script: what a person's PYTHONPATH names is often the worktree, and nothing of ringfence comes from there."""

import os
import pathlib
import subprocess
import sys

import pytest

SCRIPT = pathlib.Path(__file__).parents[2] / "bin" / "ringfence"
SHADOWED = (
    "argparse",
    "contextlib",
    "json",
    "msgspec",
    "resource",
    "ringfence",
    "signal",
    "subprocess",
    "tempfile",
    "time",
)


def typed(*words, cwd, path, script=SCRIPT):
    words = [sys.executable, str(script), *words]
    environment = {**os.environ, "PYTHONPATH": path}
    return subprocess.run(words, cwd=cwd, env=environment, capture_output=True, text=True, check=False, timeout=60)


@pytest.fixture
def worktree(tmp_path):
    made = tmp_path / "worktree"
    for folder in (made, made / "src"):
        folder.mkdir()
        for name in SHADOWED:
            (folder / f"{name}.py").write_text(f"open({str(tmp_path / 'owned')!r}, 'w').close()\n")
    return made


@pytest.mark.parametrize("path", [".", "", "src", "src:.", ":/nowhere", "{}", "{}/src/", "{}/../worktree"])
@pytest.mark.parametrize("words", [("--help",), ("run", "--", "true"), ("why", "--", "ls")])
def test_nothing_is_imported_from_a_worktree_that_pythonpath_names(worktree, tmp_path, path, words):
    (tmp_path / "state").mkdir(mode=0o700)
    done = typed("--test-root", f"{tmp_path}/state", *words, cwd=worktree, path=path.format(worktree))
    assert not (tmp_path / "owned").exists(), done.stderr
    assert "Traceback" not in done.stderr
    typed("--test-root", f"{tmp_path}/state", "stop", cwd=worktree, path="")


def test_an_installation_that_only_pythonpath_names_is_still_found(tmp_path):
    bare = subprocess.run(
        [sys.executable, "-S", str(SCRIPT), "--version"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(folder for folder in sys.path if os.path.isabs(folder))},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert bare.stdout.startswith("ringfence "), bare.stderr
