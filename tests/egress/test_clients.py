"""Clients of other worlds against the test internet: ssh and git over it, go, cargo, Java. Each says why it was refused."""

import hashlib
import io
import json
import os
import shutil
import subprocess
import tarfile
import zipfile

import pytest

from ringfence.model.tier import Tier

GIT = "git.example.org"
SSHD = next((p for p in ("/usr/sbin/sshd", "/usr/local/sbin/sshd") if os.access(p, os.X_OK)), shutil.which("sshd"))


@pytest.fixture(scope="module")
def rig(world, kit):
    made = world.rig(kit.Rules(allow=(f"{GIT}:2022", "pkg.example.org:443", "example.org:80")))
    yield made
    made.close()


@pytest.fixture(scope="module")
def ssh(world, kit, tmp_path_factory):
    """A real server, with a repository."""
    folder = tmp_path_factory.mktemp("ssh")
    server = kit.double("sshd").Sshd(folder, world.internet.inside, SSHD)
    env = {"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_GLOBAL": "/dev/null"}
    for name in ("AUTHOR", "COMMITTER"):
        env |= {f"GIT_{name}_NAME": "a", f"GIT_{name}_EMAIL": "a@example.org"}
    server.env = {**env, "GIT_SSH_COMMAND": server.command}
    for words in (
        "init -q --bare bare.git",
        "init -q work",
        "-C work commit -q --allow-empty -m one",
        "-C work push -q ../bare.git HEAD:refs/heads/main",
        "-C bare.git symbolic-ref HEAD refs/heads/main",
    ):
        subprocess.run(["git", *words.split()], check=True, env=env, cwd=folder)
    yield server
    server.close()


@pytest.mark.skipif(SSHD is None, reason="no ssh server here")
def test_git_clones_and_pushes_over_ssh(rig, ssh):
    url, clone = f"ssh://coder@{GIT}{ssh.folder}/bare.git", str(ssh.folder / "clone")
    done = rig.box.run(["git", "clone", "-q", url, clone], env=ssh.env)
    assert done.returncode == 0, done.stderr
    subprocess.run(["git", "-C", clone, "commit", "-q", "--allow-empty", "-m", "two"], env=ssh.env, check=True)
    done = rig.box.run(["git", "-C", clone, "push", "-q", "origin", "HEAD:main"], env=ssh.env)
    assert done.returncode == 0, done.stderr
    assert rig.log(host=GIT, port=2022, protocol="ssh", tier=Tier.ALLOW, outcome="closed")


@pytest.mark.skipif(SSHD is None, reason="no ssh server here")
def test_ssh_carries_much_both_ways(rig, ssh):
    size = 8_000_000
    down = rig.box.run(["sh", "-c", f"{ssh.command} coder@{GIT} 'head -c {size} /dev/zero' | wc -c"], env=ssh.env)
    up = rig.box.run(["sh", "-c", f"head -c {size} /dev/zero | {ssh.command} coder@{GIT} wc -c"], env=ssh.env)
    assert (down.stdout.strip(), up.stdout.strip()) == (str(size), str(size)), (down.stderr, up.stderr)


@pytest.mark.skipif(SSHD is None, reason="no ssh server here")
def test_git_over_ssh_says_why_it_was_refused(rig, ssh):
    done = rig.box.run(["git", "ls-remote", f"ssh://coder@example.net{ssh.folder}/bare.git"], env=ssh.env)
    assert done.returncode != 0
    assert "ringfence refused example.net:2022, rule default" in done.stderr


@pytest.fixture(scope="module")
def packages(world):
    """A Go module and a crate, as a module proxy and a sparse index serve them."""
    files = world.folder / "files" / "pkg.example.org"
    module = "module example.com/demo\n\ngo 1.19\n"
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as made:
        made.writestr("example.com/demo@v1.0.0/go.mod", module)
        made.writestr("example.com/demo@v1.0.0/demo.go", "package demo\n\nconst Answer = 42\n")
    for name, data in {
        "list": b"v1.0.0\n",
        "v1.0.0.info": b'{"Version":"v1.0.0","Time":"2026-01-01T00:00:00Z"}',
        "v1.0.0.mod": module.encode(),
        "v1.0.0.zip": archive.getvalue(),
    }.items():
        put(files / "example.com/demo/@v" / name, data)
    crate = io.BytesIO()
    with tarfile.open(fileobj=crate, mode="w:gz") as made:
        for name, text in {
            "Cargo.toml": '[package]\nname = "demo-crate"\nversion = "1.0.0"\nedition = "2021"\n',
            "src/lib.rs": "pub fn answer() -> i32 { 42 }\n",
        }.items():
            info = tarfile.TarInfo(f"demo-crate-1.0.0/{name}")
            info.size = len(text)
            made.addfile(info, io.BytesIO(text.encode()))
    put(files / "crates/demo-crate/1.0.0/download", crate.getvalue())
    put(files / "index/config.json", json.dumps({"dl": "https://pkg.example.org/crates"}).encode())
    digest = hashlib.sha256(crate.getvalue()).hexdigest()
    line = {"name": "demo-crate", "vers": "1.0.0", "deps": [], "cksum": digest, "features": {}, "yanked": False}
    put(files / "index/de/mo/demo-crate", json.dumps(line).encode() + b"\n")
    return files


def put(path, data):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


@pytest.mark.skipif(shutil.which("go") is None, reason="no go here")
def test_go_takes_a_module_from_its_proxy_and_says_why_another_is_refused(rig, world, packages, tmp_path):
    put(tmp_path / "m/go.mod", b"module m\n\ngo 1.19\n")
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "SSL_CERT_FILE": str(world.ca),
        "GONOSUMDB": "*",
        "GOFLAGS": "-mod=mod -modcacherw",
        "GOTOOLCHAIN": "local",
    }
    get = ["sh", "-c", 'cd "$0" && exec go get example.com/demo@v1.0.0', str(tmp_path / "m")]
    refused = rig.box.run(get, env={**env, "GOPROXY": "https://example.net"}, timeout=120)
    assert "tls: access denied" in refused.stderr
    done = rig.box.run(get, env={**env, "GOPROXY": "https://pkg.example.org"}, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "example.com/demo v1.0.0" in (tmp_path / "m/go.mod").read_text()


@pytest.mark.skipif(shutil.which("cargo") is None, reason="no cargo here")
def test_cargo_takes_a_crate_from_its_index_and_says_why_another_is_refused(rig, world, packages, tmp_path):
    put(tmp_path / "c/Cargo.toml", b'[package]\nname = "c"\nversion = "0.1.0"\n[dependencies]\ndemo-crate = "1"\n')
    put(tmp_path / "c/src/lib.rs", b"")
    env = {**os.environ, "CARGO_HOME": str(tmp_path / "cargo"), "CARGO_HTTP_CAINFO": str(world.ca)}

    def fetch(host):
        config = f'[source.crates-io]\nreplace-with = "own"\n[source.own]\nregistry = "sparse+https://{host}/index/"\n'
        put(tmp_path / "cargo/config.toml", f"{config}[net]\nretry = 0\n".encode())
        return rig.box.run(["sh", "-c", 'cd "$0" && exec cargo fetch', str(tmp_path / "c")], env=env, timeout=120)

    assert "access denied" in fetch("example.net").stderr
    done = fetch("pkg.example.org")
    assert done.returncode == 0, done.stderr
    assert list((tmp_path / "cargo").rglob("demo-crate-1.0.0"))


JAVA = """
import java.net.URI;
import java.net.http.*;
public class Fetch {
  public static void main(String[] words) throws Exception {
    var request = HttpRequest.newBuilder(URI.create(words[0])).build();
    System.out.println(HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString()).body());
  }
}
"""


@pytest.mark.skipif(shutil.which("javac") is None, reason="no java here")
def test_the_client_of_java_gets_through_and_says_why_it_was_refused(rig, tmp_path):
    put(tmp_path / "Fetch.java", JAVA.encode())
    run = ["java", "-XX:TieredStopAtLevel=1", str(tmp_path / "Fetch.java")]
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    assert "hello from example.org" in rig.box.run([*run, "http://example.org/"], env=env, timeout=120).stdout
    refused = rig.box.run([*run, "http://example.net/"], env=env, timeout=120).stdout
    assert "rule: default" in refused
