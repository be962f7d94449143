"""Folders that real tools move: an overlay answers EXDEV for a lower folder, so they copy, and the gate must see through it."""

import os
import shutil
import zipfile

import pytest

pytestmark = pytest.mark.needs_userns


def expected_after(bench, script, tmp_path):
    """What the same script makes of a plain copy of the tree, without overlay and gate."""
    import subprocess

    from ringfence.sandbox.worktree.tree import Worktree  # noqa: F401 - the same interpreter paths as the box

    copy = tmp_path / "plain"
    shutil.copytree(bench.root, copy, symlinks=True)
    env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "GIT_CONFIG_NOSYSTEM": "1"}
    identity = {
        "GIT_AUTHOR_NAME": "A",
        "GIT_AUTHOR_EMAIL": "a@example.org",
        "GIT_COMMITTER_NAME": "A",
        "GIT_COMMITTER_EMAIL": "a@example.org",
    }
    subprocess.run(
        ["bash", "-euc", script], cwd=copy, env={**env, **identity}, check=True, capture_output=True, timeout=120
    )
    real, bench.root = bench.root, str(copy)
    try:
        return {
            path: entry for path, entry in bench.snapshot().items() if not path.startswith(("node_modules", ".venv"))
        }
    finally:
        bench.root = real


def same_as_plain(bench, script, tmp_path):
    wanted = expected_after(bench, script, tmp_path)
    bench.box(script)
    report = bench.commit()
    assert report.clean, report
    assert bench.snapshot() == wanted
    return report


REBASE = """git checkout -qb o; mv src lib; git add -A; git commit -qm o; git checkout -q main; echo x >> a.txt
git commit -qam m; git rebase -q o"""


@pytest.mark.parametrize(
    "script",
    [
        "mv src lib",
        "mv src lib; mv lib other; mv other src",
        "mv src/deep .; mv deep src/again",
        "mkdir wrap; mv src wrap/; mv wrap src",
        "mkdir t; echo t > t/t; mv src u; mv t src; mv u t",
        "cp -r src copy; rm -r src; mv copy src",
        "rm -rf src; mkdir src; echo only > src/only",
        "mv src/b.py src/c.py; ln -s c.py src/b.py",
        "rm -r src; ln -s a.txt src",
        "mv a.txt src/deep/a.txt; rm -r src/deep/c.py; chmod 700 src/deep",
        "mv run.sh RUN.sh",
        "python3 -c 'import shutil; shutil.move(\"src\", \"lib\")'",
        "python3 -c 'import os; os.makedirs(\"n/m\"); os.rename(\"n\", \"k\"); os.replace(\"a.txt\", \"k/m/a\")'",
        "tar cf t.tar src; rm -r src; tar xf t.tar; rm t.tar",
        "git rm -rq src; git commit -qm gone; git reset -q --hard HEAD~1; echo x >> src/b.py",
        "git checkout -qb other; mv src lib; git add -A; git commit -qm o; git checkout -q main; git merge -q other",
        REBASE,
        "git stash list; echo x >> a.txt; git stash -q; git stash pop -q",
        "for i in 1 2 3; do mv src s$i; mv s$i src; echo $i >> src/b.py; done",
    ],
)  # fmt: skip
def test_folder_moves_arrive_as_they_would_without_an_overlay(bench, tmp_path, script):
    same_as_plain(bench, script, tmp_path)


def wheel(folder, version):
    path = f"{folder}/demo-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("demo/__init__.py", f"version = {version!r}\n")
        archive.writestr(f"demo/only_in_{version.replace('.', '_')}.py", "x = 1\n")
        info = f"demo-{version}.dist-info"
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: demo\nVersion: {version}\n")
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{info}/RECORD", f"demo/__init__.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n")
    return path


def test_pip_installs_and_replaces_a_vendored_package(bench, tmp_path):
    pip = "/usr/bin/python3 -m pip install -q --no-index --no-deps --no-compile --no-cache-dir --disable-pip-version-check"
    old, new = wheel(tmp_path, "1.0"), wheel(tmp_path, "2.0")
    bench.box(f"HOME={tmp_path} {pip} --target vendor {old}")
    assert bench.commit().clean
    assert bench.read("vendor/demo/__init__.py") == "version = '1.0'\n"
    bench.box(f"HOME={tmp_path} {pip} --upgrade --target vendor {new}")
    report = bench.commit()
    assert report.clean, report
    assert sorted(os.listdir(f"{bench.root}/vendor/demo")) == ["__init__.py", "only_in_2_0.py"]


def test_npm_installs_into_the_layer_and_the_lock_file_arrives(bench, tmp_path):
    bench.write("package.json", '{"name": "app", "version": "1.0.0", "dependencies": {}}\n')
    bench.write("one/package.json", '{"name": "one", "version": "1.0.0", "main": "i.js"}\n')
    bench.write("one/i.js", "module.exports = 1\n")
    npm = f"HOME={tmp_path} npm_config_cache={tmp_path}/npm npm --offline --no-audit --no-fund --no-update-notifier --install-links"
    bench.box(f"{npm} install ./one >/dev/null")
    report = bench.commit()
    assert report.clean, report
    assert sorted(i.path for i in report.committed) == ["package-lock.json", "package.json"]
    assert bench.box("node -p 'require(\"one\")'") == "1\n"
    bench.box(
        f"echo 'module.exports = 2' > one/i.js; sed -i s/1.0.0/2.0.0/ one/package.json; {npm} install ./one >/dev/null"
    )
    assert bench.commit().clean
    assert bench.box("node -p 'require(\"one\")'") == "2\n"
    assert not os.path.exists(f"{bench.root}/node_modules")


def test_npm_moves_folders_of_a_committed_node_modules(bench, tmp_path):
    bench.write(".gitignore", "")
    bench.write("package.json", '{"name": "app", "version": "1.0.0", "dependencies": {}}\n')
    bench.write("one/package.json", '{"name": "one", "version": "1.0.0", "main": "i.js"}\n')
    bench.write("one/i.js", "module.exports = 1\n")
    npm = f"HOME={tmp_path} npm_config_cache={tmp_path}/npm npm --offline --no-audit --no-fund --no-update-notifier --install-links"
    bench.box(f"{npm} install ./one >/dev/null")
    assert bench.commit().clean
    assert bench.read("node_modules/one/i.js") == "module.exports = 1\n"
    bench.write("one/package.json", '{"name": "one", "version": "2.0.0", "main": "i.js"}\n')
    bench.write("one/i.js", "module.exports = 2\n")
    bench.box(f"{npm} install ./one >/dev/null; {npm} prune > /dev/null")
    report = bench.commit()
    assert report.clean, report
    assert bench.read("node_modules/one/i.js") == "module.exports = 2\n"


CARGO = """
mkdir -p target/debug/deps target/debug/.fingerprint/app
for i in 1 2 3; do echo bin$i > target/debug/deps/.tmp$i; mv target/debug/deps/.tmp$i target/debug/deps/app-$i; done
ln target/debug/deps/app-1 target/debug/app; touch target/CACHEDIR.TAG
"""


def test_cargo_links_in_an_ignored_target_stay_and_in_another_are_named(bench):
    """A build links its products: fine in the layer, and refused by name where the folder is not ignored."""
    bench.box(CARGO)
    report = bench.commit()
    assert sorted(i.path for i in report.refused) == ["target/debug/app", "target/debug/deps/app-1"]
    bench.tree.discard(bench.layer)
    bench.write(".gitignore", "target/\n")
    shutil.rmtree(f"{bench.root}/target")
    bench.box(CARGO)
    report = bench.commit()
    assert (report.clean, report.committed, report.ignored) == (True, (), 1)
    assert bench.box("stat -c %h target/debug/app") == "2\n"


def real_cargo():
    path = shutil.which("cargo")
    return path if path and os.access(os.path.realpath(path), os.X_OK) else None


@pytest.mark.skipif(real_cargo() is None, reason="this host has no Rust; the pattern above stands for it")
def test_a_real_cargo_build(bench, tmp_path):
    bench.write(".gitignore", "target/\n")
    bench.write("Cargo.toml", '[package]\nname = "app"\nversion = "0.1.0"\nedition = "2021"\n')
    bench.write("src/main.rs", 'fn main() { println!("built"); }\n')
    home = os.path.expanduser("~")
    script = (
        f"export PATH={os.path.dirname(real_cargo())}:$PATH CARGO_HOME={tmp_path}/cargo RUSTUP_HOME={home}/.rustup;"
        "cargo build -q --offline && target/debug/app"
    )
    assert "built" in bench.box(script)
    report = bench.commit()
    assert report.clean, report
    assert [i.path for i in report.committed] == ["Cargo.lock"]
    assert bench.box("target/debug/app") == "built\n"
