"""What the gate protects whatever a policy says: by every component, at any depth, in any spelling a file system folds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringfence.model.protected import PROTECTED_ASK, PROTECTED_DENY
from ringfence.model.spelling import fold
from ringfence.model.tier import Tier
from ringfence.sandbox.worktree.change import Change, ChangeKind, Node, covers, node_of, statistics
from ringfence.sandbox.worktree.diff import escape
from ringfence.sandbox.worktree.guard import git_internal, is_git_name, protection, stands_for_protected

DENIED = [
    ".git", ".git/config", ".git/hooks/pre-commit", ".git/info/attributes", ".git/info/grafts", ".git/info/exclude",
    ".git/objects/info/alternates", ".git/objects/info/http-alternates", ".git/modules/a/config", ".git/worktrees/x/HEAD",
    ".git/config.worktree", ".git/commondir", ".git/shallow", ".git/refs/replace/ab", "a/b/.git/HEAD", "a/.git",
    ".GIT/config", ".Git", "git~1", "GIT~1/hooks", ".git.", ".git ", ".git:x", ".gi\u200ct/config", "a/.g\u200bit",
    "sandbox_policy.yaml", "x/Sandbox_Policy.YAML", "sandbox_fixtures.json", ".claude/settings.json", "p/.codex/config.toml",
    ".gemini/x", ".cursor/rules", ".mcp.json", ".vscode/tasks.json", ".idea/w.xml", ".devcontainer/d.json", ".bashrc",
    "home/.profile", ".zshenv", "x/.bsp/sbt.json", ".lsp/config.edn", ".rvmrc", "gptme.toml", ".RData", ".envrc", ".gitconfig", ".ringfence/x",
]  # fmt: skip
ASKED = [".github/workflows/ci.yml", "x/.github/actions/a/action.yml", ".gitlab-ci.yml", "Jenkinsfile", ".circleci/config.yml",
         "azure-pipelines.yml", ".pre-commit-config.yaml", "sitecustomize.py", "src/sitecustomize/__init__.py",
         ".corepack.env", "latexmkrc", ".factorypath", "usercustomize.cpython-311-x86_64-linux-gnu.so", "x/usercustomize.pyc"]  # fmt: skip
FREE = ["a", "src/main.py", ".gitignore", ".gitattributes", "git/config", "hooks/pre-commit", ".github/README.md", "github",
        "docs/.bashrc.md", "legit", "a.git/x", ".gitkeep", "config", ".env.example", "é", "README"]  # fmt: skip
INTERNAL = [".git/HEAD", ".git/index", ".git/objects/ab/cd", ".git/refs/heads/main", ".git/logs/HEAD", ".git/COMMIT_EDITMSG",
            ".git/packed-refs", ".git/ORIG_HEAD"]  # fmt: skip


@pytest.mark.usefixtures("no_io")
@pytest.mark.parametrize("path", DENIED)
def test_protected(path):
    found = protection(path)
    assert found is not None
    assert found.tier is Tier.DENY
    assert found.because


@pytest.mark.usefixtures("no_io")
@pytest.mark.parametrize("path", ASKED)
def test_a_person_is_asked_at_least(path):
    assert protection(path).tier is Tier.ASK


@pytest.mark.usefixtures("no_io")
@pytest.mark.parametrize("pattern", [*PROTECTED_DENY, *PROTECTED_ASK])
def test_the_gate_knows_every_name_of_the_evaluators_list_in_any_spelling(pattern):
    path = pattern.removeprefix("**/").replace("/**", "/x").replace("*", "z")
    for spelling in (path, f"a/b/{path}", path.upper(), path + " ", path[:2] + "\u200b" + path[2:]):
        found = protection(spelling)
        assert found is not None, spelling
        assert found.tier is Tier.DENY or pattern in PROTECTED_ASK


@pytest.mark.usefixtures("no_io")
def test_a_link_stands_for_what_would_lie_below_it():
    assert stands_for_protected("x/.GITHUB")
    assert stands_for_protected(".yarn")
    assert not stands_for_protected("src")
    assert not stands_for_protected(".github/docs")


@pytest.mark.usefixtures("no_io")
@pytest.mark.parametrize("path", FREE)
def test_free(path):
    assert protection(path) is None


@pytest.mark.usefixtures("no_io")
@pytest.mark.parametrize("path", INTERNAL)
def test_gits_own_bookkeeping_is_history_not_files(path):
    assert git_internal(path)
    assert protection(path).tier is Tier.DENY  # as a file it never goes through


@given(
    before=st.lists(st.sampled_from(["a", "b.c", "ü"]), max_size=4),
    after=st.lists(st.sampled_from(["a", "x"]), max_size=3),
)
def test_a_protected_component_protects_at_any_depth(before, after):
    for name in (".git", ".claude", "sandbox_policy.yaml", ".vscode"):
        assert protection("/".join([*before, name, *after])).tier is Tier.DENY


@given(st.text(min_size=1, max_size=20))
def test_no_name_is_a_fault_and_folding_is_stable(name):
    name = name.replace("/", "_")
    assert fold(fold(name)) == fold(name)
    protection(name)
    is_git_name(name)


@given(st.text(max_size=60))
def test_escaped_text_can_be_printed(text):
    shown = escape(text)
    assert all(c == "\t" or c.isprintable() for c in shown)
    shown.encode("utf-8")


def test_selection_covers_what_lies_below():
    assert covers(frozenset({"src"}), "src/a")
    assert covers(frozenset({"src/"}), "src/a")
    assert covers(frozenset({"."}), "anything")
    assert not covers(frozenset({"src"}), "srcs/a")
    assert not covers(frozenset(), "a")


def test_counts():
    def change(path, kind, **more):
        return Change(path=path, kind=kind, node=Node.FILE, **more)

    total = statistics(
        (
            change("a", ChangeKind.ADDED, size=3),
            change("b", ChangeKind.MODIFIED, size=4),
            change("c", ChangeKind.DELETED, size=9),
            change("d", ChangeKind.ADDED, ignored=True, size=100),
            change("e", ChangeKind.ADDED, internal=True),
            change("f", ChangeKind.SAME),
            change("g", ChangeKind.TYPE, fault="x"),
        )
    )
    assert (total.added, total.modified, total.deleted, total.ignored, total.size) == (1, 2, 1, 1, 7)


def test_every_kind_of_node_has_a_name():
    modes = {
        0o100644: Node.FILE,
        0o040755: Node.DIRECTORY,
        0o120777: Node.SYMLINK,
        0o010644: Node.FIFO,
        0o140755: Node.SOCKET,
    }
    assert {mode: node_of(mode) for mode in modes} == modes
    assert node_of(0o020666) is Node.DEVICE
    assert node_of(0o060666) is Node.DEVICE
