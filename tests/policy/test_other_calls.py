"""File, network and tool calls, and patterns over all of them."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringfence import Policy, Tier, ToolCall
from ringfence.model.call import Context
from ringfence.policy.globs import PathPattern, split
from ringfence.policy.hosts import HostRule, address_of, normal_name

FILES = """
files:
  read: {deny: ["**/.env", "private/", "~/notes/**"]}
  write: {allow: ["src/**", "docs/"], ask: ["migrations/**"], deny: ["src/production/**"]}
  delete: {ask: ["**"]}
"""


def file(policy: Policy, action: str, path: str, cwd: str = ".") -> str:
    return policy.decide(ToolCall.file(action, path, cwd=cwd)).tier.word


class TestFiles:
    @pytest.mark.parametrize(
        ("action", "path", "answer"),
        [
            ("read", "README.md", "allow"),
            ("read", ".env", "deny"),
            ("read", "a/b/.ENV", "deny"),
            ("read", "private/x/y", "deny"),
            ("read", "private", "deny"),
            ("read", "privateer/x", "allow"),
            ("read", "~/notes/x", "deny"),
            ("read", "~/.ssh/id_rsa", "deny"),
            ("read", "../outside.txt", "deny"),
            ("read", "/etc/passwd", "deny"),
            ("read", "/proc/self/environ", "deny"),
            ("read", "src/../.env", "deny"),
            ("write", "src/app.py", "allow"),
            ("write", "docs/new/x.md", "allow"),
            ("write", "README.md", "deny"),
            ("write", "migrations/1.sql", "ask"),
            ("write", "src/production/x", "deny"),
            ("write", "SRC/Production/x", "deny"),
            ("write", "src/x/../production/y", "deny"),
            ("write", ".git/hooks/pre-commit", "deny"),
            ("write", ".git/config", "deny"),
            ("write", "sub/.git/config", "deny"),
            ("write", "sandbox_policy.yaml", "deny"),
            ("write", ".claude/settings.json", "deny"),
            ("write", "src/.envrc", "deny"),
            ("write", "src/.GIT/hooks/x", "deny"),
            ("delete", "src/app.py", "ask"),
            ("delete", ".", "deny"),
            ("delete", ".git", "deny"),
            ("delete", "src", "deny"),
            ("read", "", "deny"),
            ("read", "a\0b", "deny"),
        ],
    )
    def test_answers(self, policy_of: Callable[..., Policy], action: str, path: str, answer: str) -> None:
        assert file(policy_of(FILES), action, path) == answer

    def test_ci_files_ask_at_best(self, policy_of: Callable[..., Policy]) -> None:
        policy = policy_of("files: {write: {allow: ['**']}}\n")
        assert file(policy, "write", ".github/workflows/ci.yml") == "ask"
        assert file(policy, "delete", ".github/workflows") == "ask"
        assert file(policy, "delete", ".claude") == "deny"
        assert file(policy, "read", ".github/workflows/ci.yml") == "allow"

    def test_links_do_not_help(self, policy_of: Callable[..., Policy], workspace: Path) -> None:
        (workspace / "src" / "up").symlink_to("../..")
        (workspace / "innocent").symlink_to(".git")
        (workspace / "src" / "loop").symlink_to("loop")
        policy = policy_of(FILES)
        assert file(policy, "read", "src/up/outside.txt") == "deny"
        assert file(policy, "write", "src/up/project/README.md") == "deny"
        assert file(policy, "write", "innocent/config") == "deny"
        assert file(policy, "read", "src/loop") == "deny"

    def test_what_the_box_view_is_built_from(self, policy_of: Callable[..., Policy]) -> None:
        policy = policy_of(FILES)
        assert policy.read_denies("a/.env")
        assert not policy.read_denies("a/env")

    def test_an_absolute_rule_opens_a_folder_outside(self, policy_of: Callable[..., Policy]) -> None:
        policy = policy_of("files: {read: {allow: ['**', '/usr/include/**']}}\n")
        assert file(policy, "read", "/usr/include/stdio.h") == "allow"
        assert file(policy, "read", "/usr/include/../../etc/passwd") == "deny"
        assert file(policy, "write", "/usr/include/stdio.h") == "deny"

    def test_what_may_be_written_outside_may_be_removed_where_no_rule_speaks_of_removing(
        self, policy_of: Callable[..., Policy]
    ) -> None:
        policy = policy_of("files: {write: {allow: ['**', '/var/scratch/**']}}\n")
        assert file(policy, "delete", "/var/scratch/x") == "allow"
        assert file(policy, "delete", "/var/other/x") == "deny"
        policy = policy_of("files: {write: {allow: ['**', '/var/scratch/**']}, delete: {allow: ['**']}}\n")
        assert file(policy, "delete", "/var/scratch/x") == "deny"

    def test_a_rule_around_the_repository_does_not_open_its_neighbours(
        self, policy_of: Callable[..., Policy], workspace: Path
    ) -> None:
        policy = policy_of(f"files: {{read: {{allow: ['**', '{workspace.parent.parent}/**']}}}}\n")
        assert file(policy, "read", str(workspace.parent / "outside.txt")) == "deny"


names = st.sampled_from(["a", "b", "..", ".", "src", "SRC", "secret", "x.pem", "link", "hole"])


@settings(max_examples=300)
@given(st.lists(names, min_size=1, max_size=7), st.booleans())
def test_however_a_denied_path_is_spelled_it_is_denied(
    policy_of: Callable[..., Policy], workspace: Path, parts: list[str], doubled: bool
) -> None:
    """Dots, links, doubled slashes and the case of letters do not get around a path rule."""
    for name, target in (("link", "src"), ("hole", "..")):
        if not (workspace / name).is_symlink():
            (workspace / name).symlink_to(target)
    (workspace / "src" / "secret").mkdir(exist_ok=True)
    policy = policy_of("files: {read: {deny: ['src/secret/**', '**/*.pem']}}\n")
    path = ("//" if doubled else "/").join(parts)
    real = (workspace / "/".join(parts)).resolve()
    decision = policy.decide(ToolCall.file("read", path))
    relative = [part.lower() for part in real.parts[len(workspace.parts) :]] if real.is_relative_to(workspace) else None
    if relative is None or relative[:2] == ["src", "secret"] or real.suffix == ".pem":
        assert decision.tier is Tier.DENY
    else:
        assert decision.tier is Tier.ALLOW


class TestGlobs:
    @pytest.mark.parametrize(
        ("pattern", "path", "matches"),
        [
            ("**", "a/b", True),
            ("src/**", "src/a/b", True),
            ("src/**", "srcx/a", False),
            ("src/*", "src/a/b", False),
            ("*.py", "a/b.py", False),
            ("**/*.py", "b.py", True),
            ("a/**/z", "a/z", True),
            ("a/**/z", "a/b/c/z", True),
            ("a/", "a/b", True),
            ("a", "a/b", False),
            ("a/[bc]/?", "a/b/x", True),
            ("a/[!b]/x", "a/b/x", False),
        ],
    )
    def test_patterns(self, pattern: str, path: str, matches: bool) -> None:
        assert PathPattern(pattern).matches(split(path), loose=False) is matches

    def test_many_stars_stay_cheap(self) -> None:
        pattern = PathPattern("/".join(["**", "a"] * 30) + "/b")
        assert not pattern.matches(split("/".join(["a"] * 3000)), loose=True)
        assert not PathPattern("*a" * 30 + "b").matches(("a" * 200,), loose=False)


NETWORK = """
network:
  allow:
    - {host: "*.example.org", ports: [443]}
    - {host: "api.example.net", methods: [GET, HEAD], paths: ["/v1/**"]}
    - {host: "10.1.2.0/24", ports: [5432]}
    - {host: "127.0.0.1", ports: [8000]}
    - {host: "localhost", ports: [3000]}
  ask: [{host: "api.example.net", methods: [POST]}]
  deny: [{host: "gist.example.org"}]
"""


class TestNetwork:
    @pytest.mark.parametrize(
        ("host", "port", "method", "path", "answer"),
        [
            ("a.example.org", 443, None, None, "allow"),
            ("A.Example.Org.", 443, None, None, "allow"),
            ("a.example.org", 80, None, None, "deny"),
            ("example.org", 443, None, None, "deny"),
            ("a.b.example.org", 443, None, None, "deny"),
            ("evil-example.org", 443, None, None, "deny"),
            ("a.example.org.evil.test", 443, None, None, "deny"),
            ("gist.example.org", 443, None, None, "deny"),
            ("gist.example.org", 22, None, None, "deny"),
            ("api.example.net", 443, "GET", "/v1/x", "allow"),
            ("api.example.net", 443, "GET", "/v1", "allow"),
            ("api.example.net", 443, "GET", "/v2", "deny"),
            ("api.example.net", 443, "GET", "/v1/../v2", "deny"),
            ("api.example.net", 443, "GET", "/v1/%2e%2e/v2", "deny"),
            ("api.example.net", 443, "GET", "/v1/@scope%2Fname", "allow"),
            ("api.example.net", 443, "GET", "/v1/a%2Bb%20c", "allow"),
            ("api.example.net", 443, "GET", "/v1%2Fx", "deny"),
            ("api.example.net", 443, "GET", "/v1/%2Fx", "deny"),
            ("api.example.net", 443, "GET", "/v1/%252E%252E/x", "deny"),
            ("api.example.net", 443, "GET", "/v1/..%2Fx", "deny"),
            ("api.example.net", 443, "GET", "/v1/a%5Cb", "deny"),
            ("api.example.net", 443, "GET", "/v1/a%00", "deny"),
            ("api.example.net", 443, "GET", "/v1/a%3Fb", "deny"),
            ("api.example.net", 443, "GET", "/v1/a%zz", "deny"),
            ("api.example.net", 443, "GET", "/v1/a%3B", "deny"),
            ("api.example.net", 443, "GET", "/v1/a;b", "deny"),
            ("api.example.net", 443, "DELETE", "/v1/x", "deny"),
            ("api.example.net", 443, "POST", "/v1/x", "ask"),
            ("api.example.net", 443, None, None, "ask"),
            ("10.1.2.3", 5432, None, None, "allow"),
            ("10.1.3.3", 5432, None, None, "deny"),
            ("167838211", 5432, None, None, "allow"),
            ("127.0.0.1", 8000, None, None, "allow"),
            ("127.1", 8000, None, None, "allow"),
            ("0x7f000001", 8000, None, None, "allow"),
            ("127.0.0.1", 22, None, None, "deny"),
            ("2130706433", 22, None, None, "deny"),
            ("localhost", 3000, None, None, "allow"),
            ("localhost", 22, None, None, "deny"),
            ("169.254.169.254", 80, None, None, "deny"),
            ("[::ffff:169.254.169.254]", 80, None, None, "deny"),
            ("metadata.google.internal", 80, None, None, "deny"),
            ("ex\u00e4mple.org", 443, None, None, "deny"),
            ("a.example.org\n", 443, None, None, "deny"),
            ("a.example.org", 0, None, None, "deny"),
            ("a.example.org", 70000, None, None, "deny"),
            ("", 443, None, None, "deny"),
        ],
    )
    def test_answers(
        self, policy_of: Callable[..., Policy], host: str, port: int, method: str | None, path: str | None, answer: str
    ) -> None:
        call = ToolCall.network(host, port, method=method, path=path)
        assert policy_of(NETWORK).decide(call).tier.word == answer

    def test_a_glob_never_matches_an_address(self, policy_of: Callable[..., Policy]) -> None:
        policy = policy_of("network: {allow: [{host: '**'}]}\n")
        assert policy.decide(ToolCall.network("8.8.8.8", 443)).tier is Tier.DENY
        assert policy.decide(ToolCall.network("a.b.c.d.example", 443)).tier is Tier.ALLOW
        assert policy.decide(ToolCall.network("db.internal", 443)).tier is Tier.DENY

    def test_the_floor_is_lifted_by_a_literal_alone(self, policy_of: Callable[..., Policy]) -> None:
        policy = policy_of("network: {allow: [{host: '169.254.169.254', ports: [80]}]}\n")
        assert policy.decide(ToolCall.network("169.254.169.254", 80)).tier is Tier.ALLOW

    def test_a_range_of_the_whole_world_lifts_no_floor(self, policy_of: Callable[..., Policy]) -> None:
        policy = policy_of("network: {allow: [{host: '0.0.0.0/0'}, {host: '::/0'}, {host: '10.1.0.0/16'}]}\n")
        answers = {"8.8.8.8": Tier.ALLOW, "2606:4700::1": Tier.ALLOW, "10.1.2.3": Tier.ALLOW}
        answers |= dict.fromkeys(
            ("10.2.0.1", "127.0.0.1", "100.64.0.1", "169.254.169.254", "::1", "fd00::1"), Tier.DENY
        )
        for host, tier in answers.items():
            assert policy.decide(ToolCall.network(host, 443)).tier is tier, host

    def test_stars_in_hosts_stay_cheap(self, policy_of: Callable[..., Policy]) -> None:
        stars = "*a" * 30 + "b"
        policy = policy_of(f"network: {{deny: [{{host: '{stars}'}}, {{host: '{'**.a.' * 12}b'}}]}}\n")
        for host in ("a" * 60, ".".join("a" * 100)):
            assert policy.decide(ToolCall.network(host, 443)).tier is Tier.DENY

    def test_udp_is_not_covered(self, policy_of: Callable[..., Policy]) -> None:
        call = ToolCall.network("a.example.org", 443, protocol="udp")
        assert policy_of(NETWORK).decide(call).tier is Tier.DENY

    @pytest.mark.parametrize(
        ("spelling", "means"),
        [
            ("0177.0.0.1", "127.0.0.1"),
            ("0x7f.0.0.1", "127.0.0.1"),
            ("127.1", "127.0.0.1"),
            ("1.2.3", "1.2.0.3"),
            ("017700000001", "127.0.0.1"),
            ("::ffff:10.0.0.1", "10.0.0.1"),
            ("64:ff9b::a00:1", "10.0.0.1"),
            ("2002:a00:1::", "10.0.0.1"),
            ("::1", "::1"),
            ("fe80::1%eth0", "fe80::1"),
        ],
    )
    def test_one_address_has_many_spellings(self, spelling: str, means: str) -> None:
        assert str(address_of(spelling)) == means

    @pytest.mark.parametrize("name", ["256.1.1.1", "1.2.3.4.5", "09.1.1.1", "0xg.1", "1..2", "a.1", "-a.example"])
    def test_what_is_no_address_is_no_address(self, name: str) -> None:
        assert address_of(name) is None

    @settings(max_examples=300)
    @given(st.text(max_size=40), st.text(alphabet="ab*.-1x", min_size=1, max_size=20))
    def test_no_host_text_breaks_the_rules(self, host: str, rule: str) -> None:
        matched = HostRule(rule).matches(host)
        assert not matched or normal_name(host) is not None or address_of(host) is not None


class TestCommandsThatConnect:
    TEXT = (
        "commands: {default: ask, allow: [{argv_prefix: [curl]}, {argv_prefix: [git, fetch]}]}\n"
        "network: {allow: [{host: '*.example.org'}]}\n"
    )

    @pytest.mark.parametrize(
        ("line", "answer"),
        [
            ("curl https://a.example.org/x", "allow"),
            ("curl -s https://a.example.org/x", "allow"),
            ("curl https://b.example.net/x", "ask"),
            ("curl http://169.254.169.254/latest", "deny"),
            ("curl http://2852039166/", "deny"),
            ("curl https://a.example.org/x https://b.example.net", "ask"),
            ("curl -o ../x https://a.example.org", "ask"),
            ("curl -K ../x https://a.example.org", "ask"),
            ("git fetch", "allow"),
        ],
    )
    def test_hosts_on_the_line_meet_the_rules(
        self, policy_of: Callable[..., Policy], judge: Callable[..., str], line: str, answer: str
    ) -> None:
        assert judge(policy_of(self.TEXT), line) == answer

    def test_with_the_network_off_nothing_connects(
        self, policy_of: Callable[..., Policy], judge: Callable[..., str]
    ) -> None:
        policy = policy_of(self.TEXT.replace("{allow: [{host: '*.example.org'}]}", "{allow: false}"))
        assert judge(policy, "curl https://a.example.org/x") == "ask"
        assert judge(policy, "git fetch") == "ask"


TOOLS = """
tools:
  allow:
    - {server: github, tool: "get_*"}
    - {server: files, tool: write, arguments: {path: "src/*", "options.mode": [text, utf8]}}
  ask: [{server: github, tool: "create_*"}]
  deny: [{server: "*", tool: "*delete*"}, {server: github, tool: get_secret}]
"""


class TestTools:
    @pytest.mark.parametrize(
        ("server", "tool", "arguments", "answer"),
        [
            ("github", "get_issue", {}, "allow"),
            ("github", "create_issue", {}, "ask"),
            ("github", "Create_Issue", {}, "ask"),
            ("github", "delete_repo", {}, "deny"),
            ("other", "DeleteAll", {}, "deny"),
            ("github", "get_secret", {}, "deny"),
            ("github", "list", {}, "deny"),
            ("GitHub", "get_issue", {}, "deny"),
            ("files", "write", {"path": "src/a", "options": {"mode": "text"}}, "allow"),
            ("files", "write", {"path": "etc/a", "options": {"mode": "text"}}, "deny"),
            ("files", "write", {"path": "src/a"}, "deny"),
            ("files", "write", {"path": ["src/a", "etc/b"], "options": {"mode": "text"}}, "deny"),
            ("files", "write", {"path": ["src/a"], "options": {"mode": "utf8"}}, "allow"),
            ("files", "write", [], "deny"),
        ],
    )
    def test_answers(
        self, policy_of: Callable[..., Policy], server: str, tool: str, arguments: object, answer: str
    ) -> None:
        assert policy_of(TOOLS).decide(ToolCall.tool(server, tool, arguments)).tier.word == answer

    @pytest.mark.parametrize("arguments", ['{"a": 1, "a": 2}', "{", "nonsense", '{"a": ' + "[" * 100_000])
    def test_arguments_that_cannot_be_read_are_denied(self, policy_of: Callable[..., Policy], arguments: str) -> None:
        import dataclasses

        call = ToolCall.tool("github", "get_issue")
        call = dataclasses.replace(call, request=dataclasses.replace(call.request, arguments=arguments))
        assert policy_of(TOOLS).decide(call).tier is Tier.DENY


PATTERNS = """
commands: {allow: [{argv_prefix: [echo]}, {argv_prefix: [cat]}]}
network: {allow: [{host: "*.example.org"}]}
tools: {allow: [{server: a, tool: b}]}
files: {write: {allow: ["**"]}}
patterns:
  - {id: prod-env, on: [file.write.path], regex: "/production/.*\\\\.env", tier: deny}
  - {id: key, on: [file.write.content, tool.arguments, net.body, net.query, command.argument], regex: "AKIA[0-9A-Z]{16}", tier: deny}
  - {id: careful, on: command.line, regex: "(?i)drop table", tier: ask, when: {agent: "cl*"}}
"""
KEY = "AKIA" + "A1B2" * 4


class TestPatterns:
    def calls(self) -> list[tuple[ToolCall, str, str]]:
        return [
            (ToolCall.file("write", "x", content=f"key = {KEY}"), "deny", "key"),
            (ToolCall.file("write", "x", content="nothing"), "allow", ""),
            (ToolCall.file("write", "deploy/production/a.env"), "deny", "prod-env"),
            (ToolCall.tool("a", "b", {"x": [KEY]}), "deny", "key"),
            (ToolCall.network("a.example.org", 443, body=KEY), "deny", "key"),
            (ToolCall.network("a.example.org", 443, query=f"k={KEY}"), "deny", "key"),
            (ToolCall.shell(f"echo {KEY}"), "deny", "key"),
            (ToolCall.shell("echo a > deploy/production/b.env"), "deny", "prod-env"),
            (ToolCall.shell("echo 'DROP TABLE x'", context=Context(agent="claude")), "ask", "careful"),
            (ToolCall.shell("echo 'DROP TABLE x'", context=Context(agent="other")), "allow", ""),
            (ToolCall.shell("echo 'DROP TABLE x'"), "ask", "careful"),
        ]

    def test_answers(self, policy_of: Callable[..., Policy]) -> None:
        policy = policy_of(PATTERNS)
        for call, answer, rule in self.calls():
            decision = policy.decide(call)
            assert (decision.tier.word, call) == (answer, call)
            assert not rule or rule in {reason.rule for reason in decision.deciding}

    def test_what_was_found_is_not_shown(self, policy_of: Callable[..., Policy]) -> None:
        decision = policy_of(PATTERNS).decide(ToolCall.file("write", "x", content=KEY))
        assert KEY not in json.dumps([str(reason) for reason in decision.reasons])

    def test_no_pattern_can_stall(self, policy_of: Callable[..., Policy]) -> None:
        policy = policy_of(
            "files: {write: {allow: ['**']}}\npatterns: [{on: file.write.content, regex: '(a+)+$', tier: deny}]\n"
        )
        assert policy.decide(ToolCall.file("write", "x", content="a" * 200_000 + "b")).tier is Tier.ALLOW

    def test_a_text_too_large_to_search_is_denied(self, policy_of: Callable[..., Policy]) -> None:
        policy = policy_of(
            "files: {write: {allow: ['**']}}\npatterns: [{on: file.write.content, regex: 'zzz', tier: ask}]\n"
        )
        decision = policy.decide(ToolCall.file("write", "x", content="a" * (17 << 20)))
        assert (decision.tier, decision.deciding[0].kind) == (Tier.DENY, "fault")
