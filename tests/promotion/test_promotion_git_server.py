"""End to end on plain git: a server with the pre-receive hook, a pushed change, evidence bound by the host's pinned key."""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

HOOK = Path(__file__).parents[2] / "integrations" / "git-hooks" / "pre-receive"
ENV = {
    "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_TERMINAL_PROMPT": "0",
    **{
        f"GIT_{role}_{part}": value
        for role in ("AUTHOR", "COMMITTER")
        for part, value in (("NAME", "Agent"), ("EMAIL", "agent@orchard.example"))
    },
}


def run(folder, *words, ok=True, env=None):
    done = subprocess.run(
        [*map(str, words)], cwd=folder, env=env or ENV, capture_output=True, text=True, timeout=120, check=False
    )
    if ok:
        assert done.returncode == 0, done.stderr
    return done


def git(folder, *words, ok=True):
    return run(folder, "git", *words, ok=ok)


def ringfence(folder, *words, ok=True):
    return run(
        folder, sys.executable, "-m", "ringfence.cli.main", "--test-root", folder / "state", "promote", *words, ok=ok
    )


@pytest.fixture
def server(shop, double, tmp_path):
    """A git daemon on loopback that serves the shop, with the gate as its hook."""
    shutil.copy(HOOK, shop.git_dir / "pre-receive")
    (shop.git_dir / "hooks").mkdir()
    (shop.git_dir / "pre-receive").rename(shop.git_dir / "hooks" / "pre-receive")
    program = tmp_path / "ringfence"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m ringfence.cli.main --test-root {tmp_path}/state "$@"\n')
    program.chmod(0o755)
    for name, value in (
        ("ringfence.trust", shop.trust),
        ("ringfence.program", program),
        ("daemon.receivepack", "true"),
    ):
        git(shop.git_dir, "config", name, value)
    daemon, port = next(served for _ in range(5) if (served := _serve(tmp_path)) is not None)
    yield f"git://127.0.0.1:{port}/shop.git"
    daemon.terminate()
    daemon.wait(timeout=60)


def _serve(folder):
    """The daemon once it listens, and its port; None where somebody else took the port meanwhile."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = ["git", "daemon", "--export-all", "--reuseaddr", "--listen=127.0.0.1", f"--port={port}"]
    daemon = subprocess.Popen(
        [*words, f"--base-path={folder}", str(folder)], env=ENV, stderr=subprocess.DEVNULL, start_new_session=True
    )
    while daemon.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return daemon, port
        time.sleep(0.05)
    return None


@pytest.fixture
def work(server, tmp_path):
    git(tmp_path, "clone", "-q", server, "work")
    return tmp_path / "work"


def commit(work, message):
    git(work, "add", "-A")
    git(work, "commit", "-q", "-m", message)
    return git(work, "rev-parse", "HEAD").stdout.strip()


def content(work, double, flag="agent-push"):
    (work / "services/cart/app.py").write_text(double.APP.replace("3", "5"))
    (work / "flags.json").write_bytes(double.text({"flags": {"old-flag": double.flag(), flag: double.flag()}}))
    return commit(work, "the change")


def attest(work, double, pinned, base, tmp_path, results='{"results": {"unit": "passed", "secret-scan": "passed"}}'):
    """What the plain-git CI host does: rehearse, state, sign. Then the evidence goes to the server beside the branch."""
    evidence, out = tmp_path / "evidence", tmp_path / "out"
    shutil.rmtree(evidence, ignore_errors=True)
    out.mkdir(exist_ok=True)
    artifact = out / double.ARTIFACT
    artifact.write_bytes(
        double.tar_of({p: (work / p).read_bytes() for p in ("services/cart/app.py",)}, "services/cart")
    )
    (out / "results.json").write_text(results)
    (out / "host.pem").write_bytes(double.pem("host"))
    ringfence(
        tmp_path,
        "rehearse",
        "--repo",
        work,
        "--base",
        base,
        "--head",
        pinned,
        "--command",
        double.ROLLBACK,
        "--out",
        out / "r.json",
    )
    ringfence(
        tmp_path, "attest", "--platform", "key", "--commit", pinned, "--artifact", artifact, "--results", out / "results.json",
        "--rehearsal", out / "r.json", "--evidence", evidence, "--key", out / "host.pem", "--keyid", "host", "--run-id", "run-1",
    )  # fmt: skip
    import hashlib

    digest = hashlib.sha256(artifact.read_bytes()).hexdigest()
    for side in ("sandbox", "trusted"):
        (evidence / "artifacts" / side).mkdir(parents=True)
        shutil.copy(artifact, evidence / "artifacts" / side)
    report = {
        "run_id": "box-1",
        "env_class": "sandbox",
        "git_sha": pinned,
        "result": "pass",
        "artifact": {"name": double.ARTIFACT, "sha256": digest},
        "egress": {"allowlist": ["packages.example.org:443"], "denied": []},
        "probe": {"readable_credential_stores": [], "credential_env_names": []},
    }
    (evidence / "sandbox.json").write_bytes(double.text(report))
    tree = work.parent / "evidence-tree"
    shutil.rmtree(tree, ignore_errors=True)
    git(work, "worktree", "add", "-q", "--detach", tree, "HEAD")
    git(tree, "rm", "-rq", ".")
    shutil.copytree(evidence, tree, dirs_exist_ok=True)
    git(tree, "add", "-A", "-f")
    written = git(tree, "write-tree").stdout.strip()
    git(work, "worktree", "remove", "--force", tree)
    orphan = git(work, "commit-tree", written, "-m", "evidence").stdout.strip()
    git(work, "push", "-q", "origin", f"{orphan}:refs/ringfence/evidence/{pinned}")
    return digest


def claim(work, double, pinned, digest, flag="agent-push", **altered):
    value = {
        "git_sha": pinned,
        "sandbox_run_id": "box-1",
        "sandbox_artifact_sha256": digest,
        "trusted_ci_run_id": "run-1",
        "trusted_ci_artifact_sha256": digest,
        "env_class_attested": "trusted_ci",
        "feature_flag": flag,
        "owner": "@noor",
        "rollback": double.ROLLBACK,
        **altered,
    }
    (work / "promotion.json").write_text(json.dumps(value))
    return commit(work, "evidence")


def test_an_honest_change_is_received_and_a_broken_one_is_not(work, shop, double, tmp_path):
    base = shop.base
    pinned = content(work, double)
    # 1. The content alone is refused on the protected branch, whatever the client says.
    refused = git(work, "push", "--no-verify", "-q", "origin", "HEAD:main", ok=False)
    assert refused.returncode
    assert "evidence.stale" in refused.stderr
    assert "not promoted" in refused.stderr
    # 2. Other branches are not the gate's business.
    git(work, "push", "-q", "origin", "HEAD:agent/x")
    # 3. Evidence that claims another digest is refused.
    digest = attest(work, double, pinned, base, tmp_path)
    claim(work, double, pinned, digest, owner="@cart-bot")
    refused = git(work, "push", "-q", "origin", "HEAD:main", ok=False)
    assert refused.returncode
    assert "owner.unknown" in refused.stderr
    # 4. The same content with true evidence, attested once more (a token vouches for one head), is received.
    git(work, "reset", "-q", "--hard", pinned)
    git(work, "push", "-q", "origin", f":refs/ringfence/evidence/{pinned}")
    digest = attest(work, double, pinned, base, tmp_path)
    head = claim(work, double, pinned, digest)
    git(work, "push", "-q", "origin", "HEAD:main")
    assert git(shop.git_dir, "rev-parse", "refs/heads/main").stdout.strip() == head
    # 5. The protected branch is neither rewound to nothing nor deleted.
    assert git(work, "push", "-q", "origin", ":main", ok=False).returncode


def test_a_red_rerun_is_not_received(work, shop, double, tmp_path):
    pinned = content(work, double)
    red = '{"results": {"unit": "failed", "secret-scan": "passed"}}'
    digest = attest(work, double, pinned, shop.base, tmp_path, results=red)
    claim(work, double, pinned, digest)
    refused = git(work, "push", "-q", "origin", "HEAD:main", ok=False)
    assert refused.returncode
    assert "false green" in refused.stderr


def test_a_server_without_trust_promotes_nothing(work, shop, double):
    git(shop.git_dir, "config", "--unset", "ringfence.trust")
    content(work, double)
    refused = git(work, "push", "-q", "origin", "HEAD:main", ok=False)
    assert "nothing can be promoted" in refused.stderr


def test_a_push_that_does_not_stand_on_the_branch_is_not_received(work, shop, double, tmp_path):
    """What the branch gained meanwhile would be lost with it, even where the paths do not meet."""
    fork = shop.base
    pinned = content(work, double)
    digest = attest(work, double, pinned, fork, tmp_path)
    claim(work, double, pinned, digest)
    mended = {**shop.files, "services/mail/app.py": b"MAIL = 2  # mended\n"}
    newer = shop.objects.commit(shop.objects.tree(mended), [fork], name="Noor", message="a hole is mended")
    shop.objects.ref("refs/heads/main", newer)
    refused = git(work, "push", "-q", "--force", "origin", "HEAD:main", ok=False)
    assert refused.returncode
    assert "does not stand on" in refused.stderr
    assert git(shop.git_dir, "rev-parse", "refs/heads/main").stdout.strip() == newer


@pytest.mark.parametrize("protected", ["refs/heads/main", "refs/heads/trunk"])
def test_another_name_of_the_protected_branch_is_that_branch(work, shop, double, protected):
    git(shop.git_dir, "symbolic-ref", "refs/heads/trunk", "refs/heads/main")
    git(shop.git_dir, "config", "ringfence.branch", protected)
    content(work, double)
    for name in ("trunk", "main"):
        refused = git(work, "push", "-q", "origin", f"HEAD:refs/heads/{name}", ok=False)
        assert refused.returncode
        assert "not promoted" in refused.stderr
    assert git(shop.git_dir, "rev-parse", "refs/heads/main").stdout.strip() == shop.base
