"""A file in the small format means what its own checker says of wrappers; one key of the grown format, and they are looked through."""

import pytest

from ringfence.model.call import ToolCall
from ringfence.model.tier import Tier
from ringfence.policy.policy import Policy

SMALL = """\
version: 1
fail_closed: true
working_tree: {allowed_roots: ["."]}
network: {allow: false}
commands:
  allow:
    - argv_prefix: ["ls"]
  deny_substrings: ["sudo"]
"""
WRAPPED = ["bash -c 'ls'", "env ls", "timeout 5 ls", "nice ls"]


def tier(text, line, root):
    return Policy.parse(text, root=str(root)).decide(ToolCall.shell(line, cwd=str(root))).tier


@pytest.mark.parametrize("line", WRAPPED)
def test_a_wrapper_needs_a_rule_in_the_small_format(tmp_path, line):
    assert tier(SMALL, "ls", tmp_path) is Tier.ALLOW
    assert tier(SMALL, line, tmp_path) is Tier.DENY


@pytest.mark.parametrize("line", WRAPPED)
def test_one_key_of_the_grown_format_and_it_is_looked_through(tmp_path, line):
    assert tier(SMALL + "  default: deny\n", line, tmp_path) is Tier.ALLOW


@pytest.mark.parametrize("line", ["bash -c 'sudo ls'", "env sudo ls"])
def test_deny_sees_through_wrappers_in_both(tmp_path, line):
    assert tier(SMALL, line, tmp_path) is Tier.DENY
    assert tier(SMALL + "  default: ask\n", line, tmp_path) is Tier.DENY
