"""Links whose meaning a later change could bend out of the tree."""

import pytest

from ringfence.sandbox.worktree.links import is_winding


@pytest.mark.parametrize(
    "target", ["near/../../x", "a/..", "../a/../b", "./a/./../b", "/abs/../etc", "a//..//b", "../../a/b/../.."]
)
def test_a_step_up_after_a_step_in_is_winding(target):
    assert is_winding(target)


@pytest.mark.parametrize(
    "target", ["x", "../x", "../../pkg/bin/x.js", "./a/b", "..", "../..", "/abs/inside", "a..b/c", "...", ""]
)
def test_steps_up_that_come_first_are_not(target):
    assert not is_winding(target)
