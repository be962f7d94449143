"""Fixtures are read strictly; broken bytes are a clear error, never an empty success."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringfence.model.errors import PolicyError
from ringfence.model.tier import Tier
from ringfence.policy.fixtures import as_expected, call_of, read_calls, read_fixtures

GOOD = json.dumps(
    [{"command": "git status", "expect_allow": True}, {"kind": "file", "action": "read", "path": "x", "expect": "deny"}]
)


@settings(max_examples=400)
@given(st.one_of(st.binary(max_size=200), st.text(max_size=200).map(str.encode)))
def test_broken_bytes_are_an_error(data: bytes) -> None:
    for read in (read_fixtures, read_calls):
        try:
            found = read(data, file="f")
        except PolicyError as error:
            assert error.code == "bad-fixture"  # noqa: PT017 - either end is right, and both are checked
        else:
            assert all(call_of(fixture).digest() for fixture in found)


@settings(max_examples=300)
@given(st.integers(0, len(GOOD) - 1), st.binary(max_size=2))
def test_a_changed_byte_never_turns_an_expectation_into_none(at: int, replacement: bytes) -> None:
    data = GOOD.encode()
    changed = data[:at] + replacement + data[at + 1 :]
    try:
        found = read_fixtures(changed, file="f")
    except PolicyError:
        return
    for fixture in found:
        assert (fixture.expect is None) != (fixture.expect_allow is None)


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ({"command": "ls"}, "expect"),
        ({"command": "ls", "expect": "allow", "expect_allow": True}, "expect"),
        ({"command": "ls", "expect": "maybe"}, "maybe"),
        ({"command": 1, "expect": "allow"}, "int"),
        ({"kind": "argv", "argv": [], "expect": "allow"}, "empty"),
        ({"kind": "network", "expect": "allow"}, "host"),
        ({"kind": "other", "command": "ls", "expect": "allow"}, "other"),
        ({"command": "ls", "expect": "allow", "context": {"remotes": []}}, "remotes"),
    ],
)
def test_each_fault_is_named(row: dict[str, object], says: str) -> None:
    with pytest.raises(PolicyError) as caught:
        read_fixtures(json.dumps([row]), file="f")
    assert says in caught.value.what
    assert "fixture 1" in caught.value.what


def test_expectations() -> None:
    (plain,) = read_fixtures('[{"command": "ls", "expect_allow": false}]', file="f")
    assert [as_expected(plain, tier) for tier in Tier] == [False, True, True]
    (exact,) = read_fixtures('[{"command": "ls", "expect": "ask"}]', file="f")
    assert [as_expected(exact, tier) for tier in Tier] == [False, True, False]
    (either,) = read_fixtures('[{"command": "ls", "expect": "not_allow"}]', file="f")
    assert [as_expected(either, tier) for tier in Tier] == [False, True, True]
