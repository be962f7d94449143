"""Policies that cannot be believed are refused with the place and the fix; broken bytes never become a permission."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringfence import Policy, Tier, ToolCall
from ringfence.model.errors import PolicyError
from ringfence.policy.yaml_tree import MAX_CHARACTERS, read_tree

HEAD = "version: 1\nfail_closed: true\n"

FAULTS = [
    ("version: 1\n", "fail-closed-missing", "1:1"),
    ("version: 1\nfail_closed: false\n", "fail-closed-false", "2:14"),
    ("version: 1\nfail_closed: yes\n", "wrong-type", "2:14"),
    ('version: 1\nfail_closed: "true"\n', "wrong-type", "2:14"),
    ("fail_closed: true\n", "version-missing", "1:1"),
    ("version: 2\nfail_closed: true\n", "out-of-range", "1:10"),
    ("version: '1'\nfail_closed: true\n", "wrong-type", "1:10"),
    ("", "version-missing", "1:1"),
    ("[]", "wrong-type", "1:1"),
    ("just text", "wrong-type", "1:1"),
    (HEAD + "comands: {}\n", "unknown-key", "3:1"),
    (HEAD + "commands: {alow: []}\n", "unknown-key", "3:12"),
    (HEAD + "commands:\n  allow: [{argv_prefix: [ls], id: a}]\n  allow: []\n", "duplicate-key", "5:3"),
    (HEAD + "commands:\n  allow:\n    - argv_prefix: ls\n", "wrong-type", "5:20"),
    (HEAD + "commands:\n  allow:\n    - argv_prefix: []\n", "empty-prefix", "5:20"),
    (HEAD + "commands:\n  allow:\n    - argv_prefix: [ls, []]\n", "empty-prefix", "5:25"),
    (HEAD + "commands:\n  allow:\n    - {}\n", "key-missing", "5:7"),
    (HEAD + "commands:\n  allow:\n    - argv_prefix: [timeout, 5]\n", "wrong-type", "5:30"),
    (HEAD + "commands:\n  allow:\n    - argv_prefix: [no]\n", "wrong-type", "5:21"),
    (HEAD + "commands:\n  allow:\n    - argv_prefix: ['']\n", "empty-text", "5:21"),
    (HEAD + "commands: {default: allow}\n", "wrong-value", "3:21"),
    (HEAD + "commands: {allow: [{argv_prefix: [ls], approvals: 2}]}\n", "wrong-value", "3:51"),
    (HEAD + "working_tree: {allowed_roots: [/]}\n", "root-too-broad", "3:32"),
    (HEAD + "working_tree: {allowed_roots: [/.//.]}\n", "root-too-broad", "3:32"),
    (HEAD + "working_tree: {allowed_roots: [../..]}\n", "root-too-broad", "3:32"),
    (HEAD + "working_tree: {allowed_roots: ['~']}\n", "root-too-broad", "3:32"),
    (HEAD + "working_tree: {allowed_roots: [/home]}\n", "root-too-broad", "3:32"),
    (HEAD + "working_tree: {allowed_roots: [/home/someone]}\n", "root-too-broad", "3:32"),
    (HEAD + "working_tree: {deny_path_prefixes: [~]}\n", "wrong-type", "3:37"),
    (HEAD + "network: {allow: true}\n", "network-too-broad", "3:18"),
    # what a reviewer does not see
    (HEAD + "# a note\u2028network: {allow: []}\n", "hidden-character", "3:9"),
    (HEAD + "# a note\rnetwork: {allow: []}\n", "hidden-character", "3:9"),
    (HEAD + "# a note\x85network: {allow: []}\n", "hidden-character", "3:9"),
    (HEAD + "# \u202e\n", "hidden-character", "3:3"),
    (HEAD + "commands: {deny: [{argv_prefix: [su\u200bdo]}]}\n", "hidden-character", "3:36"),
    (HEAD + "commands: {deny: [{argv_prefix: [su\u200ddo]}]}\n", "hidden-character", "3:36"),
    (HEAD + "\x00", "hidden-character", "3:1"),
    # an empty list holds for nothing, or for everything
    (HEAD + "commands: {allow: [{argv_prefix: [ls], any_args: []}]}\n", "empty-list", "3:50"),
    (HEAD + "commands: {deny: [{argv_prefix: [ls], when: {branch: []}}]}\n", "empty-list", "3:54"),
    (HEAD + "network: {allow: [{host: a.org, ports: []}]}\n", "empty-list", "3:40"),
    (HEAD + "network: {allow: [{host: a.org, methods: []}]}\n", "empty-list", "3:42"),
    (HEAD + "network: {deny: [{host: a.org, paths: []}]}\n", "empty-list", "3:39"),
    (HEAD + "patterns: [{id: a, on: [], regex: x, tier: deny}]\n", "empty-list", "3:24"),
    (HEAD + "tools: {allow: [{server: a, tool: b, arguments: {p: []}}]}\n", "empty-list", "3:53"),
    # what would be silently dead
    (HEAD + "commands: {deny: [{argv_prefix: ['rm -rf']}]}\n", "wrong-value", "3:34"),
    (HEAD + "commands: {deny: [{argv_prefix: ['mkfs*']}]}\n", "wrong-value", "3:34"),
    (HEAD + "commands: {deny: [{argv_prefix: [[sudo, 'su*']]}]}\n", "wrong-value", "3:34"),
    (HEAD + "files: {read: {deny: ['*.{pem,key}']}}\n", "wrong-value", "3:23"),
    (HEAD + "files: {read: {deny: ['!.env']}}\n", "wrong-value", "3:23"),
    (HEAD + "files: {read: {deny: ['@(a|b)']}}\n", "wrong-value", "3:23"),
    (HEAD + "files: {read: {deny: ['../x']}}\n", "wrong-value", "3:23"),
    (HEAD + "files: {read: {deny: [{path: 'a/../b'}]}}\n", "wrong-value", "3:30"),
    (HEAD + "files: {read: {deny: ['**.env']}}\n", "wrong-value", "3:23"),
    (HEAD + "files: {read: {deny: ['$HOME/x']}}\n", "wrong-value", "3:23"),
    (HEAD + "files: {read: {deny: ['.env ']}}\n", "wrong-value", "3:23"),
    # names that are taken, and what has no place of its own
    (HEAD + "commands: {allow: [{argv_prefix: [ls], id: builtin.protected}]}\n", "wrong-value", "3:44"),
    (HEAD + 'commands: {allow: [{argv_prefix: [ls], id: "a\\e[2J"}]}\n', "wrong-value", "3:44"),
    (HEAD + "extends: [git, nope]\n", "unknown-preset", "3:16"),
    (HEAD + "commands: {toolchains: [/]}\n", "root-too-broad", "3:25"),
    (HEAD + "network: {allow: [{host: 'https://x.org/'}]}\n", "wrong-value", "3:26"),
    (HEAD + "network: {allow: [{host: 'a..b'}]}\n", "wrong-value", "3:26"),
    (HEAD + "network: {allow: [{host: a.org, ports: [0]}]}\n", "out-of-range", "3:41"),
    (HEAD + "network: {allow: [{host: a.org, methods: [FETCH]}]}\n", "wrong-value", "3:42"),
    (HEAD + "network: {allow: [{preset: nonesuch}]}\n", "unknown-preset", "3:19"),
    (HEAD + "extends: [nonesuch]\n", "unknown-preset", ""),
    (HEAD + "process: {max_runtime_ms: -1}\n", "wrong-type", "3:27"),
    (HEAD + "process: {max_runtime_ms: 0}\n", "out-of-range", "3:27"),
    (HEAD + "process: {max_runtime_ms: 999999999999999999999999}\n", "out-of-range", "3:27"),
    (HEAD + "process: {env: {assign: ['A-B']}}\n", "wrong-value", "3:26"),
    (HEAD + "tools: {allow: [{server: a}]}\n", "key-missing", "3:17"),
    (HEAD + "patterns: [{on: [file.read.path], regex: '(', tier: deny}]\n", "bad-pattern", "3:12"),
    (HEAD + "patterns: [{on: [file.read.path], regex: '(?=a)', tier: deny}]\n", "bad-pattern", "3:12"),
    (HEAD + "patterns: [{on: [elsewhere], regex: a, tier: deny}]\n", "wrong-value", "3:17"),
    (HEAD + "patterns: [{on: [net.body], regex: a, tier: allow}]\n", "wrong-value", "3:45"),
    (HEAD + "files: {read: {allow: ['/**']}}\n", "root-too-broad", "3:24"),
    (HEAD + "files: {write: {allow: ['~/**']}}\n", "root-too-broad", "3:25"),
    (HEAD + "locked: [everything]\n", "wrong-value", "3:10"),
    (HEAD + "a: &x [1]\nb: *x\n", "yaml-anchor", "3:4"),
    (HEAD + "a: !!python/object:os.system x\n", "yaml-tag", "3:4"),
    (HEAD + "---\nversion: 1\n", "second-document", "3:1"),
    (HEAD + "a: " + "[" * 40 + "]" * 40, "nested-too-deep", "3:28"),
    (HEAD + "a: " + "[" * 5000, "not-yaml", ""),
    (HEAD + "a: {b\n", "not-yaml", ""),
    (HEAD + "\ta: b", "not-yaml", ""),
    (HEAD + "? [a]\n: b\n", "wrong-type", "3:3"),
]


@pytest.mark.parametrize(("text", "code", "at"), FAULTS)
def test_a_fault_names_its_place_and_the_fix(tmp_path: Path, text: str, code: str, at: str) -> None:
    with pytest.raises(PolicyError) as caught:
        Policy.parse(text, root=str(tmp_path))
    assert caught.value.code == code
    assert caught.value.remedy
    assert caught.value.where.startswith("sandbox_policy.yaml" + (f":{at}" if at else ""))


def test_every_code_has_a_heading_in_the_docs() -> None:
    docs = (Path(__file__).parents[2] / "docs" / "errors.md").read_text()
    source = Path(__file__).parents[2] / "src" / "ringfence" / "policy"
    import re

    found = re.compile(r'(?:PolicyError|\bfault)\(\s*"([a-z-]+)"')
    codes = {code for path in source.glob("*.py") for code in found.findall(path.read_text())}
    assert len(codes) > 15
    assert [code for code in sorted(codes) if f"\n## {code}\n" not in docs] == []


def test_aliases_cannot_blow_up(tmp_path: Path) -> None:
    bomb = "a: &a [x, x]\n" + "".join(
        f"{chr(98 + n)}: &{chr(98 + n)} [*{chr(97 + n)}, *{chr(97 + n)}]\n" for n in range(20)
    )
    with pytest.raises(PolicyError, match="anchors"):
        Policy.parse(HEAD + bomb, root=str(tmp_path))


def test_size_is_capped(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="at most"):
        Policy.parse(HEAD + "# " + "x" * MAX_CHARACTERS, root=str(tmp_path))


class TestFiles:
    def write(self, folder: Path, text: str = HEAD + "commands: {allow: [{argv_prefix: [ls]}]}\n") -> Path:
        path = folder / "sandbox_policy.yaml"
        path.write_text(text)
        path.chmod(0o644)
        return path

    def test_a_good_file_loads_and_names_itself(self, tmp_path: Path) -> None:
        policy = Policy.load(str(self.write(tmp_path)))
        decision = policy.decide(ToolCall.shell("ls"))
        assert decision.tier is Tier.ALLOW
        assert [str(reason.place) for reason in decision.reasons] == ["sandbox_policy.yaml:3:20"]

    def test_a_file_that_everyone_can_write_is_refused(self, tmp_path: Path) -> None:
        path = self.write(tmp_path)
        path.chmod(0o666)
        with pytest.raises(PolicyError, match="others can write"):
            Policy.load(str(path))

    @pytest.mark.needs_root
    @pytest.mark.skipif(os.getuid() != 0, reason="needs_root: gives a file to another user")
    def test_a_file_of_another_user_is_refused(self, tmp_path: Path) -> None:
        path = self.write(tmp_path)
        os.chown(path, 12345, 12345)
        with pytest.raises(PolicyError, match="uid 12345"):
            Policy.load(str(path))

    @pytest.mark.needs_root
    @pytest.mark.skipif(os.getuid() != 0, reason="needs_root: gives a folder to another user")
    def test_the_owner_of_the_repository_may_own_it(self, tmp_path: Path) -> None:
        path = self.write(tmp_path)
        os.chown(path, 12345, 12345)
        os.chown(tmp_path, 12345, 12345)
        assert Policy.load(str(path)).root == str(tmp_path)

    @pytest.mark.parametrize("kind", ["missing", "folder", "fifo", "dangling", "binary"])
    def test_what_is_no_text_file_is_refused(self, tmp_path: Path, kind: str) -> None:
        path = tmp_path / "sandbox_policy.yaml"
        if kind == "folder":
            path.mkdir()
        elif kind == "fifo":
            os.mkfifo(path)
        elif kind == "dangling":
            path.symlink_to("nowhere")
        elif kind == "binary":
            path.write_bytes(b"\xff\xfe\x00")
        with pytest.raises(PolicyError) as caught:
            Policy.load(str(path))
        assert caught.value.where == str(path)

    def test_the_organisations_file_must_belong_to_root_alone(self, tmp_path: Path) -> None:
        path = self.write(tmp_path)
        wide = tmp_path / "wide.yaml"
        wide.write_text(HEAD)
        wide.chmod(0o664)
        with pytest.raises(PolicyError):
            Policy.load(str(path), organisation=str(wide))

    def test_a_home_directory_is_no_root(self, tmp_path: Path, home: Path) -> None:
        with pytest.raises(PolicyError, match="more than one project"):
            Policy.load(str(self.write(home, HEAD + "working_tree: {allowed_roots: ['.']}\n")))


def allowed(policy: Policy) -> bool:
    calls = [ToolCall.shell("ls"), ToolCall.file("write", "x"), ToolCall.network("a.org", 443), ToolCall.tool("a", "b")]
    return any(policy.decide(call).tier is Tier.ALLOW for call in calls[:1] + calls[2:])


@settings(max_examples=400)
@given(st.one_of(st.text(max_size=200), st.binary(max_size=200).map(lambda b: b.decode("latin-1"))))
def test_broken_text_is_a_clear_error_and_no_permission(tmp_path: Path, text: str) -> None:
    for candidate in (text, HEAD + text):
        try:
            policy = Policy.parse(candidate, root=str(tmp_path))
        except PolicyError as error:
            told = (error.code, error.remedy)
        else:
            told = ("loaded", "loaded")
            assert not allowed(policy)
        assert all(told)


SMALL = HEAD + "commands:\n  allow:\n    - argv_prefix: [git, status]\n  deny: [{argv_prefix: [ls]}]\n"


@settings(max_examples=400)
@given(st.integers(0, len(SMALL) - 1), st.integers(0, 255), st.integers(0, 3))
def test_a_flipped_byte_never_widens(tmp_path: Path, at: int, byte: int, cut: int) -> None:
    text = SMALL[:at] + chr(byte) + SMALL[at + cut :]
    try:
        policy = Policy.parse(text, root=str(tmp_path))
    except PolicyError:
        return
    assert policy.decide(ToolCall.shell("rm -rf x")).tier is not Tier.ALLOW
    assert policy.decide(ToolCall.network("a.org", 443)).tier is not Tier.ALLOW


def test_the_tree_keeps_every_place() -> None:
    tree = read_tree('a: [1, "2"]\nb:\n  c: x\n', file="f")
    places = [(key.text, key.line, key.column) for key, _ in tree.pairs]
    assert places == [("a", 1, 1), ("b", 2, 1)]


def test_the_effective_policy_comes_back(policy_of: Callable[..., Policy]) -> None:
    policy = policy_of("extends: [coding-agent, python]\npatterns: [{on: [net.body], regex: a, tier: deny}]\n")
    again = Policy.from_effective(policy.effective())
    assert again.digest == policy.digest
    assert again.effective() == policy.effective()


@settings(max_examples=200)
@given(st.binary(max_size=300))
def test_a_broken_stored_policy_is_an_error(stored: bytes) -> None:
    with pytest.raises(PolicyError):
        Policy.from_effective(stored)


@pytest.mark.parametrize("text", ["\ufeff" + HEAD, (HEAD + "# caf\u00e9 \U0001f469\u200d\U0001f4bb\n").replace("\n", "\r\n"), HEAD + "files: {read: {deny: ['app/(group)/[id]/*', '{{cookie}}/x', '**/a b.md', 'x/**/y', '**']}}\n"])  # fmt: skip
def test_ordinary_files_of_other_editors_and_names_are_read(text):
    assert Policy.parse(text, root="/").digest


def test_bare_names_are_looked_up_in_toolchains_first_and_then_as_any_path_has_it(tmp_path: Path) -> None:
    policy = Policy.parse(HEAD + "commands: {toolchains: [/opt/b/bin, /usr/bin, /opt/a/bin]}\n", root=str(tmp_path))
    assert policy.trusted_directories == ("/opt/b/bin", "/usr/bin", "/opt/a/bin", "/usr/local/bin", "/bin")
