"""Hostile sizes end in an answer, in bounded time, and nothing beyond a cap is passed over."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringfence import Policy, Tier, ToolCall
from ringfence.policy.evaluate import MAX_REASONS
from ringfence.policy.facts import MAX_PATHS, path_fact

RULES = "commands: {allow: [{argv_prefix: [ls]}, {argv_prefix: [cat]}], deny: [{argv_prefix: [sudo]}]}\n"


HOSTILE = ["a", "ls; ", '"', "(", "$(", "a ", "* ", "../", "a=1 ", "<<E ", "\n", "`", "{a,", "\\\n", "${a[", "<(ls) "]


def judged(policy: Policy, piece: str, size: int) -> float:
    """CPU seconds that a line of this size takes to end in an answer that allows nothing by accident."""
    line = "ls " + piece * (size // len(piece))
    start = time.process_time()
    decision = policy.decide(ToolCall.shell(line))
    assert len(decision.reasons) <= MAX_REASONS + 1
    assert "judging failed" not in decision.reasons[0].because
    return time.process_time() - start


def test_a_hostile_line_ends_in_an_answer(policy_of: Callable[..., Policy]) -> None:
    policy = policy_of(RULES)
    assert {piece: seconds for piece in HOSTILE if (seconds := judged(policy, piece, 30_000)) > 5} == {}


@pytest.mark.slow
def test_a_megabyte_ends_in_an_answer(policy_of: Callable[..., Policy]) -> None:
    policy = policy_of(RULES)
    assert {piece: seconds for piece in HOSTILE if (seconds := judged(policy, piece, 1_000_000)) > 60} == {}


def test_a_denied_command_behind_much_padding_is_denied(policy_of: Callable[..., Policy]) -> None:
    policy = policy_of(RULES + "  \n")
    for padding in (" " * 50_000, "\n" * 50_000, "ls; " * 2_000, "# x\n" * 10_000):
        decision = policy.decide(ToolCall.shell(f"ls;{padding}sudo id"))
        assert "commands.deny-1" in {reason.rule for reason in decision.deciding}


def test_commands_beyond_the_cap_are_not_allowed_and_still_denied_by_name(policy_of: Callable[..., Policy]) -> None:
    policy = policy_of(RULES.replace("{allow", "{default: ask, allow"))
    assert policy.decide(ToolCall.shell("ls; " * 4_000)).tier is Tier.ALLOW
    assert policy.decide(ToolCall.shell("ls; " * 4_200)).tier is Tier.ASK
    assert policy.decide(ToolCall.shell("ls; " * 4_200 + "env sudo id")).tier is Tier.DENY


def test_more_paths_than_are_looked_at_are_denied(policy_of: Callable[..., Policy]) -> None:
    words = " ".join(f"f{number}" for number in range(MAX_PATHS + 10))
    decision = policy_of(RULES).decide(ToolCall.shell(f"cat {words}"))
    assert decision.tier is Tier.DENY
    assert {reason.kind for reason in decision.deciding} == {"fault"}


def test_a_pattern_that_names_too_many_files_is_not_allowed(policy_of: Callable[..., Policy], workspace: Path) -> None:
    many = workspace / "many"
    many.mkdir()
    for number in range(600):
        (many / f"f{number}").touch()
    assert policy_of(RULES).decide(ToolCall.shell("cat many/*")).tier is Tier.DENY
    assert policy_of(RULES).decide(ToolCall.shell("cat many/f1*")).tier is Tier.ALLOW


lines = st.one_of(
    st.text(max_size=120),
    st.text(alphabet="ls ca t\"'`$(){}[]<>|&;#\\\n\t*?~!=-/.x0", max_size=80),
    st.lists(
        st.sampled_from(
            [
                "ls",
                "cat",
                "sudo",
                "|",
                "&&",
                ";",
                "$(",
                ")",
                "`",
                "'",
                '"',
                "<<E\n",
                ">",
                "~",
                "*",
                "..",
                "/",
                "x",
                "\\\n",
                "{a,b}",
            ]
        ),
        max_size=14,
    ).map(" ".join),
)


@settings(max_examples=500)
@given(lines)
def test_no_line_crashes_or_hangs(policy_of: Callable[..., Policy], line: str) -> None:
    decision = policy_of(RULES).decide(ToolCall.shell(line))
    assert decision.reasons
    assert "judging failed" not in decision.reasons[0].because


@settings(max_examples=300)
@given(st.lists(st.text(max_size=30), max_size=6))
def test_no_argument_vector_crashes(policy_of: Callable[..., Policy], argv: list[str]) -> None:
    decision = policy_of(RULES).decide(ToolCall.argv(argv))
    assert "judging failed" not in decision.reasons[0].because
    if decision.tier is Tier.ALLOW:
        assert argv


@settings(max_examples=400)
@given(st.text(max_size=60))
def test_no_path_crashes(tmp_path: Path, text: str) -> None:
    fact = path_fact(f"/{text}", root=str(tmp_path))
    assert fact.real.startswith("/")


@pytest.mark.parametrize(
    "name", [".NPMRC", ".npmrc.", ".npmrc ", ".n\u200bpmrc", ".\uff4epmrc", ".git\u200c/hooks/x", ".GIT./config", "\u017fandbox_policy.yaml", "src/.\u200dgit/config"]
)  # fmt: skip
def test_a_protected_name_in_another_spelling_is_no_other_name(policy_of: Callable[..., Policy], name: str) -> None:
    policy = policy_of("commands: {default: ask, allow: [{argv_prefix: [tee]}]}\n")
    assert policy.decide(ToolCall.file("write", name)).tier.word == "deny"
    assert policy.decide(ToolCall.argv(["tee", name])).tier.word == "deny"
    assert policy.decide(ToolCall.argv(["tee", "notes\u0301.txt"])).tier.word == "allow"
