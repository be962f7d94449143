"""pip, npm and git against the test internet's index, registry and git host, with presets alone and no variable set."""

import base64
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile

import pytest

from ringfence.egress.presets import expand
from ringfence.egress.presets.clients import Index
from ringfence.egress.presets.lock import Pinned
from ringfence.model.tier import Tier

PIP = Index(client="pip", url="https://pkg.example.org/simple", host="pkg.example.org", port=443, source="test")
NPM = Index(client="npm", url="https://node.example.org/", host="node.example.org", port=443, source="test")
PINS = (Pinned(preset="pypi", index="pkg.example.org", hosts=("pkgfiles.example.net",), date="2026-11-29"),)


@pytest.fixture(scope="module")
def packages(world):
    """A wheel on a file host of its own, and an npm package."""
    wheel = io.BytesIO()
    with zipfile.ZipFile(wheel, "w") as archive:
        record = []
        for name, text in {
            "demo_pkg/__init__.py": "answer = 42\n",
            "demo_pkg-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: demo-pkg\nVersion: 1.0\n",
            "demo_pkg-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        }.items():
            archive.writestr(name, text)
            record.append(f"{name},,")
        archive.writestr("demo_pkg-1.0.dist-info/RECORD", "\n".join([*record, "demo_pkg-1.0.dist-info/RECORD,,", ""]))
    files = world.folder / "files"
    name = "demo_pkg-1.0-py3-none-any.whl"
    put(files / "pkgfiles.example.net" / "w" / name, wheel.getvalue())
    digest = hashlib.sha256(wheel.getvalue()).hexdigest()
    link = f'<html><body><a href="https://pkgfiles.example.net/w/{name}#sha256={digest}">{name}</a></body></html>'
    put(files / "pkg.example.org" / "simple" / "demo-pkg" / "index.html", link.encode())

    tarball = io.BytesIO()
    with tarfile.open(fileobj=tarball, mode="w:gz") as archive:
        for path, text in {
            "package/package.json": '{"name":"demo-js","version":"1.0.0"}',
            "package/index.js": "module.exports=42",
        }.items():
            info = tarfile.TarInfo(path)
            info.size = len(text)
            archive.addfile(info, io.BytesIO(text.encode()))
    put(files / "node.example.org" / "demo-js" / "-" / "demo-js-1.0.0.tgz", tarball.getvalue())
    integrity = "sha512-" + base64.b64encode(hashlib.sha512(tarball.getvalue()).digest()).decode()
    version = {
        "name": "demo-js",
        "version": "1.0.0",
        "dist": {"tarball": "https://node.example.org/demo-js/-/demo-js-1.0.0.tgz", "integrity": integrity},
    }
    document = {"name": "demo-js", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version}}
    # A registry serves the document at the bare name; the test server serves a folder's index.html there.
    put(files / "node.example.org" / "demo-js" / "index.html", json.dumps(document).encode())
    return files


def put(path, data):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


class PresetRules:
    """Decides by expanded preset rules: the strictest that speaks, by method and path where they are known."""

    def __init__(self, kit, *expansions):
        self.kit, self.rules = kit, [rule for expansion in expansions for rule in expansion.rules]

    def decide(self, call):
        request = call.request
        hits = {"allow": [], "ask": [], "deny": []}
        for rule in self.rules:
            if rule.host != request.host or request.port not in rule.ports:
                continue
            if rule.methods and request.method is not None and request.method not in rule.methods:
                continue
            if rule.paths and request.path is not None and not any(fits(glob, request.path) for glob in rule.paths):
                continue
            hits[rule.tier.word].append(f"{request.host}:{request.port}")
        return self.kit.Rules(allow=tuple(hits["allow"]), ask=tuple(hits["ask"]), deny=tuple(hits["deny"])).decide(call)


def fits(glob, path):
    import fnmatch

    return fnmatch.fnmatchcase(path, glob.replace("/**", "*"))


def home_of(tmp_path, bundle, **files):
    """A home as the box's owner set it up before the mission: client configuration, no variable."""
    home = tmp_path / "home"
    home.mkdir()
    for name, text in files.items():
        put(home / name, text.format(bundle=bundle).encode())
    return str(home)


def test_pip_installs_a_wheel_from_a_second_host_and_nothing_else(world, kit, packages, tmp_path):
    rig = world.rig(PresetRules(kit, expand("pypi", [PIP], pinned=PINS)))
    try:
        config = (
            "[global]\nindex-url = https://pkg.example.org/simple\ncert = {bundle}\ndisable-pip-version-check = true\n"
        )
        home = home_of(tmp_path, world.ca, **{".config/pip/pip.conf": config})
        target = str(tmp_path / "site")
        done = rig.box.run(
            [sys.executable, "-m", "pip", "install", "-q", "--no-cache-dir", "--target", target, "demo-pkg"],
            env={"PATH": "/usr/bin:/bin", "HOME": home},
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        assert os.path.exists(f"{target}/demo_pkg/__init__.py")
        assert {line.host for line in rig.log(tier=Tier.ALLOW, protocol="tls")} == {
            "pkg.example.org",
            "pkgfiles.example.net",
        }
        refused = rig.box.run(["curl", "-sS", "--max-time", "5", "https://upload.example.org/"])
        assert refused.returncode != 0
    finally:
        rig.close()


@pytest.mark.skipif(shutil.which("npm") is None, reason="no npm here")
def test_npm_installs_read_only_under_inspection(world, kit, packages, tmp_path):
    rig = world.rig(
        PresetRules(kit, expand("npm", [NPM], inspection=True)),
        {"inspection": True, "trusted": str(world.ca)},
        inspects=lambda host, port: host == "node.example.org",
    )
    try:
        bundle = tmp_path / "mission-ca.pem"
        bundle.write_text(rig.worker.authority)
        npmrc = "registry=https://node.example.org/\ncafile={bundle}\naudit=false\nfund=false\nupdate-notifier=false\n"
        home = home_of(tmp_path, bundle, **{".npmrc": npmrc})
        project = tmp_path / "project"
        put(project / "package.json", b'{"name":"x","version":"1.0.0","dependencies":{"demo-js":"1.0.0"}}')
        done = rig.box.run(
            ["sh", "-c", 'cd "$0" && exec npm install --no-audit', str(project)],
            env={"PATH": os.environ["PATH"], "HOME": home},
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        assert (project / "node_modules/demo-js/index.js").exists()
        published = rig.box.run(
            ["curl", "-sS", "--cacert", str(bundle), "-X", "PUT", "-d", "{}", "https://node.example.org/evil"]
        )
        assert "ringfence refused node.example.org:443" in published.stdout
    finally:
        rig.close()


def test_git_push_waits_for_a_person_and_clone_does_not(world, kit, tmp_path):
    bare = world.folder / "git" / "asked.git"
    env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "GIT_CONFIG_GLOBAL": "/dev/null"}
    for name in ("AUTHOR", "COMMITTER"):
        env |= {f"GIT_{name}_NAME": "a", f"GIT_{name}_EMAIL": "a@example.org"}

    def git(*words):
        subprocess.run(["git", *words], check=True, env=env, capture_output=True)

    work = str(tmp_path / "work")
    git("init", "-q", "--bare", str(bare))
    git("-C", str(bare), "config", "http.receivepack", "true")
    git("init", "-q", work)
    git("-C", work, "commit", "-q", "--allow-empty", "-m", "one")
    git("-C", work, "push", "-q", str(bare), "HEAD:refs/heads/main")
    git("-C", str(bare), "symbolic-ref", "HEAD", "refs/heads/main")
    asked, answers = [], [False, True]

    class Read:
        def decide(self, call):
            path = call.request.path or ""
            query = call.request.query or ""
            write = "git-receive-pack" in path or "git-receive-pack" in query
            target = ("git.example.org:443",)
            return kit.Rules(allow=target, ask=target if write else ()).decide(call)

    def approve(call, _decision, _seconds):
        asked.append((call.request.method, call.request.path))
        return answers[0] if len(asked) == 1 else answers[1]

    rig = world.rig(
        Read(),
        {"inspection": True, "trusted": str(world.ca), "ask_millis": 5000},
        inspects=lambda *_: True,
        approve=approve,
    )
    try:
        bundle = tmp_path / "mission-ca.pem"
        bundle.write_text(rig.worker.authority)
        box_env = {**env, "GIT_SSL_CAINFO": str(bundle), "GIT_TERMINAL_PROMPT": "0"}
        clone = str(tmp_path / "clone")
        done = rig.box.run(["git", "clone", "-q", "https://git.example.org/git/asked.git", clone], env=box_env)
        assert done.returncode == 0, done.stderr
        assert asked == []
        git("-C", clone, "commit", "-q", "--allow-empty", "-m", "two")
        push = ["git", "-C", clone, "push", "-q", "origin", "HEAD:main"]
        refused = rig.box.run(push, env=box_env)
        assert refused.returncode != 0
        assert rig.log(host="git.example.org", tier=Tier.ASK, outcome="refused")
        done = rig.box.run(push, env=box_env)
        assert done.returncode == 0, done.stderr
        assert ("POST", "/git/asked.git/git-receive-pack") in asked
    finally:
        rig.close()
