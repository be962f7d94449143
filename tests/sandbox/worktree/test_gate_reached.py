"""Ordinary files that the person's git starts, or that a link of theirs makes a protected one, are protected as well."""

import os

import pytest

from ringfence.model.errors import RingfenceError
from ringfence.model.tier import Tier
from ringfence.sandbox.worktree.reached import Reached, look

pytestmark = pytest.mark.needs_userns

SETTINGS = {
    "hook folder": (("core.hooksPath", "dev/hooks"), "dev/hooks/post-commit"),
    "hook folder, other spelling": (("core.hooksPath", "./dev//Hooks"), "dev/hooks/pre-push"),
    "included file": (("include.path", "../shared.gitconfig"), "shared.gitconfig"),
    "included file under a condition": (("includeIf.onbranch:main.path", "../shared.gitconfig"), "shared.gitconfig"),
    "filter": (("filter.x.clean", "tools/clean.sh %f"), "tools/clean.sh"),
    "alias": (("alias.st", "!f() { sh tools/st.sh; }; f"), "tools/st.sh"),
    "text conversion": (("diff.x.textconv", "python3 ./tools/conv.py"), "tools/conv.py"),
    "monitor": (("core.fsmonitor", "tools/monitor"), "tools/monitor"),
    "credential helper": (("credential.helper", "!tools/helper get"), "tools/helper"),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_what_git_starts_from_the_tree_waits_for_a_person(bench, name):
    (key, value), path = SETTINGS[name]
    bench.git("config", key, value)
    bench.box(f"mkdir -p $(dirname {path}); echo x > {path}; echo x > other")
    report = bench.commit()
    assert [item.path for item in report.committed] == ["other"]
    assert [(item.path, item.rule) for item in report.held] == [(path, "protected/started-by-git")]


def test_a_hook_that_is_a_link_into_the_tree_and_its_folder_turned_into_a_link(bench):
    bench.write("dev/check.sh", "true\n")
    os.makedirs(f"{bench.root}/.git/hooks", exist_ok=True)
    os.symlink("../../dev/check.sh", f"{bench.root}/.git/hooks/pre-commit")
    bench.git("config", "filter.x.clean", "later/clean.sh")
    bench.box("echo evil >> dev/check.sh; mkdir real; echo x > real/clean.sh; ln -s real later")
    report = bench.commit()
    assert [item.path for item in report.held] == ["dev/check.sh"]
    assert [(item.path, item.rule) for item in report.refused] == [("later", "gate/link-stands-for")]


def test_the_persons_own_link_under_a_protected_name_protects_what_it_leads_to(bench):
    bench.write("tools/editor/readme.txt", "x\n")
    os.symlink("tools/editor", f"{bench.root}/.vscode")
    bench.write("p/q/env.txt", "x\n")
    os.symlink("env.txt", f"{bench.root}/p/q/.envrc")
    bench.git("add", "-A")
    bench.git("commit", "-qm", "links")
    bench.box("echo {} > tools/editor/tasks.json; echo evil > p/q/env.txt; echo x > tools/free")
    report = bench.commit()
    assert [item.path for item in report.committed] == ["tools/free"]
    assert {item.path for item in report.refused} == {"tools/editor/tasks.json", "p/q/env.txt"}


@pytest.mark.parametrize("index", ["--index-version=4", "--split-index", "--index-version=2"])
def test_links_are_found_in_every_form_of_gits_index(bench, index):
    bench.write("p/q/env.txt", "x\n")
    os.symlink("env.txt", f"{bench.root}/p/q/.envrc")
    bench.git("add", "-A")
    bench.git("commit", "-qm", "links")
    bench.git("update-index", index)
    bench.box("echo evil > p/q/env.txt; echo x > free")
    report = bench.commit()
    assert [item.path for item in report.committed] == ["free"]
    assert [item.path for item in report.refused] == ["p/q/env.txt"]


def test_where_git_does_not_tell_its_settings_nothing_is_applied(bench):
    bench.box("echo x > other")
    config = f"{bench.root}/.git/config"
    with open(config, encoding="utf-8") as file:
        sound = file.read()
    bench.write(".git/config", sound + "[broken\n")
    with pytest.raises(RingfenceError) as refused:
        bench.commit()
    assert refused.value.code == "git-settings-unreadable"
    assert not os.path.exists(f"{bench.root}/other")
    bench.write(".git/config", sound)
    assert [item.path for item in bench.commit().committed] == ["other"]


def test_settings_that_start_nothing_protect_nothing(bench):
    bench.git("config", "alias.last", "log -1")
    bench.git("config", "user.name", "a.txt")
    bench.git("config", "branch.main.description", "src/b.py")
    reached = look(bench.root, bench.tree.repository, b"")
    assert [path for path in ("log", "a.txt", "src/b.py") if reached.protection(path)] == []


@pytest.mark.usefixtures("no_io")
def test_nothing_is_reached_where_nothing_is_known():
    assert Reached().protection("a") is None
    found = Reached(files=frozenset({"a"})).protection("A")
    assert found is not None
    assert found.tier is Tier.ASK
