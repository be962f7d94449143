"""Scopes: the strictest opinion wins, order does not matter, a scope only tightens what others have an opinion on."""

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringfence import Policy, Tier, ToolCall
from ringfence.model.box import Level
from ringfence.model.call import Context
from ringfence.model.tier import Scope
from ringfence.policy.compile import Scoped
from ringfence.policy.effective import make
from ringfence.policy.read_document import read_document

HEAD = "version: 1\nfail_closed: true\n"


def merged(root: Path, *scopes: tuple[Scope, str], trusted: bool = True) -> Policy:
    scoped = tuple(
        Scoped(
            scope=scope,
            document=read_document(HEAD + text, file=scope.value),
            trusted=trusted or scope is not Scope.REPOSITORY,
        )
        for scope, text in scopes
    )
    return Policy(make(scoped), root=str(root), home="/nonexistent")


def rules(allow: list[str], ask: list[str], deny: list[str]) -> str:
    def listed(names: list[str]) -> str:
        return "[" + ", ".join(f"{{argv_prefix: [{name}]}}" for name in names) + "]"

    return f"commands: {{allow: {listed(allow)}, ask: {listed(ask)}, deny: {listed(deny)}}}\n"


NAMES = ["aa", "bb", "cc", "dd"]
lists = st.lists(st.sampled_from(NAMES), unique=True, max_size=4)
documents = st.builds(rules, lists, lists, lists)
WIDER = [Scope.ORGANISATION, Scope.USER, Scope.REPOSITORY, Scope.MISSION]


def tiers(policy: Policy) -> list[Tier]:
    return [policy.decide(ToolCall.argv([name])).tier for name in NAMES]


def has_opinion(policy: Policy, name: str) -> bool:
    return any(reason.kind == "rule" for reason in policy.decide(ToolCall.argv([name])).reasons)


@settings(max_examples=40)
@given(st.lists(documents, min_size=1, max_size=4))
def test_merging_is_order_free(tmp_path: Path, texts: list[str]) -> None:
    scopes = list(zip(WIDER, texts, strict=False))
    results = {tuple(tiers(merged(tmp_path, *order))) for order in itertools.permutations(scopes)}
    assert len(results) == 1


@settings(max_examples=80)
@given(documents, documents)
def test_another_scope_only_tightens_an_opinion(tmp_path: Path, wide: str, narrow: str) -> None:
    before = merged(tmp_path, (Scope.USER, wide))
    after = merged(tmp_path, (Scope.USER, wide), (Scope.REPOSITORY, narrow))
    for name, old, new in zip(NAMES, tiers(before), tiers(after), strict=True):
        if has_opinion(before, name):
            assert new >= old


@settings(max_examples=60)
@given(documents, documents)
def test_an_untrusted_repository_allows_nothing(tmp_path: Path, wide: str, narrow: str) -> None:
    policy = merged(tmp_path, (Scope.USER, wide), (Scope.REPOSITORY, narrow), trusted=False)
    assert Tier.ALLOW not in tiers(policy)


@settings(max_examples=60)
@given(documents, documents)
def test_a_locked_section_gives_lower_scopes_no_allow(tmp_path: Path, wide: str, narrow: str) -> None:
    alone = merged(tmp_path, (Scope.ORGANISATION, wide + "locked: [commands]\n"))
    both = merged(tmp_path, (Scope.ORGANISATION, wide + "locked: [commands]\n"), (Scope.REPOSITORY, narrow))
    assert all(new >= old for old, new in zip(tiers(alone), tiers(both), strict=True))


def test_every_allow_of_an_untrusted_repository_is_ask(tmp_path: Path) -> None:
    policy = merged(tmp_path, (Scope.REPOSITORY, rules(["ls"], [], ["cat"])), trusted=False)
    decision = policy.decide(ToolCall.shell("ls"))
    assert decision.tier is Tier.ASK
    assert [reason.kind for reason in decision.deciding] == ["trust"]
    assert policy.decide(ToolCall.shell("cat x")).tier is Tier.DENY
    assert policy.decide(ToolCall.file("read", "x")).tier is Tier.ASK
    assert policy.with_trust(trusted=True).decide(ToolCall.shell("ls")).tier is Tier.ALLOW


def test_a_ceiling_raises_what_lower_scopes_allow(tmp_path: Path) -> None:
    policy = merged(
        tmp_path,
        (Scope.ORGANISATION, "ceiling: ask\n" + rules(["ls"], [], [])),
        (Scope.REPOSITORY, rules(["cat"], [], [])),
    )
    assert tiers_of(policy, "ls", "cat x") == [Tier.ALLOW, Tier.ASK]
    assert "ceiling" in policy.decide(ToolCall.shell("cat x")).deciding[0].because


def tiers_of(policy: Policy, *lines: str) -> list[Tier]:
    return [policy.decide(ToolCall.shell(line)).tier for line in lines]


def test_the_strictest_default_counts(tmp_path: Path) -> None:
    policy = merged(
        tmp_path, (Scope.USER, "commands: {default: ask}\n"), (Scope.MISSION, "commands: {default: deny}\n")
    )
    assert tiers_of(policy, "nothing-known") == [Tier.DENY]
    assert tiers_of(merged(tmp_path, (Scope.USER, "commands: {default: ask}\n")), "nothing-known") == [Tier.ASK]
    assert tiers_of(merged(tmp_path, (Scope.USER, "")), "nothing-known") == [Tier.DENY]


def test_roots_of_every_scope_must_hold_a_path(tmp_path: Path) -> None:
    policy = merged(
        tmp_path,
        (Scope.REPOSITORY, rules(["ls"], [], []) + "working_tree: {allowed_roots: ['.']}\n"),
        (Scope.MISSION, "working_tree: {allowed_roots: [src]}\n"),
    )
    (tmp_path / "src").mkdir()
    assert policy.decide(ToolCall.file("read", "src/x")).tier is Tier.ALLOW
    assert policy.decide(ToolCall.file("read", "docs/x")).tier is Tier.DENY
    assert policy.roots == (str(tmp_path / "src"),)


def test_limits_are_the_narrowest_and_enforcement_the_strictest(tmp_path: Path) -> None:
    policy = merged(
        tmp_path,
        (Scope.USER, "process: {max_runtime_ms: 1000, max_output_bytes: 10}\nminimum_enforcement: landlock\n"),
        (Scope.REPOSITORY, "process: {max_runtime_ms: 500, max_processes: 7}\n"),
    )
    assert (policy.limits.runtime, policy.limits.output, policy.limits.processes) == (500, 10, 7)
    assert policy.minimum_level is Level.LANDLOCK
    raised = merged(
        tmp_path,
        (Scope.USER, "minimum_enforcement: landlock\n"),
        (Scope.REPOSITORY, "minimum_enforcement: namespaces\n"),
    )
    assert raised.minimum_level is Level.NAMESPACES
    lowered = merged(tmp_path, (Scope.REPOSITORY, "minimum_enforcement: landlock\n"))
    assert lowered.minimum_level is Level.NAMESPACES


def test_passed_variables_never_come_from_the_repository(tmp_path: Path) -> None:
    text = "process: {env: {pass: [SECRET], assign: [CI], set: {A: '1'}}}\n"
    assert merged(tmp_path, (Scope.REPOSITORY, text)).environment == ((), ("CI",), (("A", "1"),))
    assert merged(tmp_path, (Scope.USER, text)).environment[0] == ("SECRET",)


@pytest.mark.parametrize(
    ("when", "context", "tier"),
    [
        ("{agent: claude}", Context(agent="claude"), Tier.ALLOW),
        ("{agent: claude}", Context(), Tier.DENY),
        ("{agent: [codex, 'cl*']}", Context(agent="claude"), Tier.ALLOW),
        ("{env_class: sandbox}", Context(env_class="prod"), Tier.DENY),
        ("{interactive: true}", Context(interactive=True), Tier.ALLOW),
        ("{interactive: true}", Context(), Tier.DENY),
        ("{branch: 'agent/*'}", Context(branch="agent/x"), Tier.ALLOW),
        ("{branch: 'agent/*'}", Context(), Tier.DENY),
        ("{cwd: src}", Context(), Tier.DENY),
        ("{cwd: .}", Context(), Tier.ALLOW),
    ],
)
def test_a_condition_that_is_not_known_holds_for_no_allow(
    tmp_path: Path, when: str, context: Context, tier: Tier
) -> None:
    policy = merged(tmp_path, (Scope.USER, f"commands: {{allow: [{{argv_prefix: [ls], when: {when}}}]}}\n"))
    assert policy.decide(ToolCall.shell("ls", context=context)).tier is tier


def test_a_condition_that_is_not_known_holds_for_every_deny(tmp_path: Path) -> None:
    text = "commands: {allow: [{argv_prefix: [ls]}], deny: [{argv_prefix: [ls], when: {branch: main}}]}\n"
    policy = merged(tmp_path, (Scope.USER, text))
    assert policy.decide(ToolCall.shell("ls")).tier is Tier.DENY
    assert policy.decide(ToolCall.shell("ls", context=Context(branch="dev"))).tier is Tier.ALLOW


PUSH = """
commands:
  default: deny
  allow: [{argv_prefix: [git, push], when: {branch: 'agent/*', remote: origin}}]
  ask: [{argv_prefix: [git, push]}]
network: {allow: [{host: example.org}]}
"""


@pytest.mark.parametrize(
    "line",
    [
        "git push origin main",
        "git push origin agent/x:main",
        "git push origin HEAD:refs/heads/main",
        "git push origin +agent/x",
        "git push origin :agent/x",
        "git push --all origin",
        "git push --tags origin",
        "git push elsewhere agent/x",
        "git push https://example.org/x agent/x",
        "git -C sub push origin agent/x",
        "git push origin agent/x $MORE",
        "git push origin 'refs/tags/v1'",
        "git push origin agent/x main",
    ],
)
def test_a_push_elsewhere_is_not_covered_by_the_branch_that_is_checked_out(tmp_path: Path, line: str) -> None:
    policy = merged(
        tmp_path, (Scope.USER, PUSH.replace("ask:", "x_ask:").replace("  x_ask: [{argv_prefix: [git, push]}]\n", ""))
    )
    context = Context(
        branch="agent/x", remotes=(("origin", "https://example.org/o"), ("elsewhere", "https://example.org/e"))
    )
    assert policy.decide(ToolCall.shell(line, context=context)).tier is not Tier.ALLOW


def test_the_digest_covers_scopes_and_trust(policy_of: Callable[..., Policy]) -> None:
    text = "commands: {allow: [{argv_prefix: [ls]}]}\n"
    assert policy_of(text).digest == policy_of(text).digest
    assert policy_of(text).digest != policy_of(text, trusted=False).digest
    assert policy_of(text).trust_digest == policy_of("# a comment\n" + text, trusted=False).trust_digest
    assert policy_of(text).trust_digest != policy_of(text.replace("ls", "cat")).trust_digest


def test_a_narrower_scope_gives_no_new_names_to_what_a_wider_one_allows(tmp_path: Path) -> None:
    alias = "commands: {aliases: {ls: [evil]}, deny: [{argv_prefix: [cat]}]}\n"
    policy = merged(tmp_path, (Scope.USER, rules(["ls"], [], [])), (Scope.REPOSITORY, alias))
    assert tiers_of(policy, "ls", "evil") == [Tier.ALLOW, Tier.DENY]
    own = merged(tmp_path, (Scope.USER, alias), (Scope.REPOSITORY, rules(["ls"], [], [])))
    assert tiers_of(own, "evil") == [Tier.ALLOW]
