"""The small format loads unchanged and means what it says; what we allow, a naive prefix checker allows too."""

import json
import shlex
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ringfence import Policy, Tier, ToolCall
from ringfence.policy.fixtures import read_fixtures, run_fixtures

EXAMPLES = Path(__file__).parents[2] / "examples"
TEXT = (EXAMPLES / "sandbox_policy.yaml").read_text()
PLAIN = yaml.safe_load(TEXT)


def naive(words: list[str]) -> bool:
    """The rule a small checker applies: substrings, network programs, word prefixes, then argv prefixes."""
    if not words:
        return False
    line = " ".join(words)
    if any(text in line for text in PLAIN["commands"]["deny_substrings"]):
        return False
    if words[0] in {"curl", "wget", "ssh", "scp", "nc"}:
        return False
    for prefix in PLAIN["working_tree"]["deny_path_prefixes"]:
        if any(word.startswith(prefix) for word in words[1:]):
            return False
    prefixes = [rule["argv_prefix"] for rule in PLAIN["commands"]["allow"]]
    return any(words[: len(prefix)] == prefix for prefix in prefixes)


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Policy:
    return Policy.parse(TEXT, root=str(tmp_path_factory.mktemp("repo")))


def test_the_seven_fixtures_pass(example: Policy) -> None:
    fixtures = read_fixtures((EXAMPLES / "sandbox_fixtures.json").read_bytes(), file="f")
    assert len(fixtures) == 7
    assert run_fixtures(example, fixtures) == ()


def test_limits_are_those_of_the_file(example: Policy) -> None:
    assert (example.limits.runtime, example.limits.output) == (15_000, 65_536)


def test_network_is_off(example: Policy) -> None:
    decision = example.decide(ToolCall.network("example.com", 443))
    assert decision.tier is Tier.DENY
    assert [reason.place.line for reason in decision.deciding] == [7]


words = st.one_of(
    st.sampled_from(
        "git status diff push python python3 -m pytest ls rg -c -n --stat .. ../x ~ ~/x ~root /etc /etc/passwd /home/u"
        " /tmp x src/a.py . .. '' --pre=x -rf rm sudo curl wget ssh ..x ~x -- a..b --file=../x /etcetera".split()
    ),
    st.text(alphabet="abc./~-= '\"$*\\", max_size=8),
)


@settings(max_examples=600, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(words, min_size=1, max_size=5))
def test_what_we_allow_a_prefix_checker_allows(example: Policy, argv: list[str]) -> None:
    """But for absolute words inside a root, which the small format did not know of."""
    decision = example.decide(ToolCall.argv(argv))
    if decision.tier is Tier.ALLOW:
        inside = [word for word in argv if not word.startswith(example.root)]
        assert naive(inside)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(words, min_size=1, max_size=5))
def test_a_quoted_line_is_judged_as_its_words(example: Policy, argv: list[str]) -> None:
    """A line of quoted words is never allowed where the argument vector is not."""
    line = shlex.join(argv)
    if example.decide(ToolCall.shell(line)).tier is Tier.ALLOW:
        assert example.decide(ToolCall.argv(argv)).tier is Tier.ALLOW


def test_an_absolute_word_inside_the_root_is_not_denied_by_a_prefix_above_it(tmp_path: Path) -> None:
    text = TEXT.replace('"/home"', json.dumps(str(tmp_path)))
    root = tmp_path / "project"
    root.mkdir()
    policy = Policy.parse(text, root=str(root))
    assert policy.decide(ToolCall.shell(f"ls {root}/src")).tier is Tier.ALLOW
    assert policy.decide(ToolCall.shell(f"ls {tmp_path}/other")).tier is Tier.DENY


@pytest.mark.parametrize("line", ["ls ~", "ls ~/x", "ls ..", "rg x ../y", "ls '~'", "ls ..x", "ls $HOME/x"])
def test_prefixes_are_judged_on_the_word_as_written(example: Policy, line: str) -> None:
    assert example.decide(ToolCall.shell(line)).tier is Tier.DENY


def test_substrings_are_searched_in_line_and_words(example: Policy) -> None:
    assert example.decide(ToolCall.shell("ls 'a  rm -rf b'")).tier is Tier.DENY
    assert example.decide(ToolCall.shell("ls rm   -rf")).tier is Tier.DENY
    assert example.decide(ToolCall.shell("ls # rm -rf")).tier is Tier.DENY
