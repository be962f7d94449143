"""The decision table as a whole: every combination has an answer, and nothing gets better by getting worse."""

import itertools

import pytest

from ringfence.promotion.decide import GateState, Label, SandboxRun, Situation, TrustedRun, headline, judge, table
from ringfence.promotion.findings import KINDS, Finding, Outcome, finding, shown

GRID = [
    Situation(sandbox=s, trusted=t, gates=g, label=n)
    for s, t, g, n in itertools.product(SandboxRun, TrustedRun, GateState, Label)
]
AXES = ("sandbox", "trusted", "gates", "label")


def test_the_grid_is_whole():
    assert len(GRID) == 108
    assert {judge(s, table(s)) for s in GRID} == set(Outcome)


def test_exactly_one_square_goes_to_review_and_one_is_held():
    review = [s for s in GRID if judge(s, table(s)) is Outcome.HUMAN_REVIEW]
    held = [s for s in GRID if judge(s, table(s)) is Outcome.HOLD]
    assert [(s.sandbox, s.trusted, s.gates, s.label) for s in review] == [
        (SandboxRun.PASS, TrustedRun.PASSED, GateState.PASS, Label.SANDBOX)
    ]
    assert [(s.sandbox, s.trusted, s.gates, s.label) for s in held] == [
        (SandboxRun.FAIL, TrustedRun.PASSED, GateState.PASS, Label.SANDBOX)
    ]


@pytest.mark.parametrize("axis", AXES)
def test_making_one_input_worse_never_makes_the_outcome_better(axis):
    for one in GRID:
        for two in GRID:
            same = all(getattr(one, name) == getattr(two, name) for name in AXES if name != axis)
            if same and getattr(two, axis) > getattr(one, axis):
                assert judge(two, table(two)) >= judge(one, table(one)), (one, two)


def test_a_prod_label_is_always_rotated():
    assert all(judge(s, table(s)) is Outcome.ROTATE for s in GRID if s.label is Label.PROD)


def test_false_green_and_agreed_red_are_named():
    green = next(s for s in GRID if s.sandbox is SandboxRun.PASS and s.trusted is TrustedRun.FAILED)
    red = next(s for s in GRID if s.sandbox is SandboxRun.FAIL and s.trusted is TrustedRun.FAILED)
    assert headline(Outcome.REFUSE, green) == "false green"
    assert headline(Outcome.REFUSE, red) == "agreed red"
    assert "false green" in table(green)[0].found


def test_every_row_explains_itself():
    for situation in GRID:
        for row in table(situation):
            assert isinstance(row, Finding)
            assert row.asked
            assert row.found
            assert row.source
            assert row.next_step


def test_a_code_is_never_milder_than_its_kind():
    for code, kind in KINDS.items():
        assert finding(code, "x", "y", outcome=Outcome.HUMAN_REVIEW).outcome is kind.outcome


def test_text_shown_holds_nothing_that_moves_a_terminal():
    assert shown("a\x1b[2Jb\u202ec\nd") == "a\\u001b[2Jb\\u202ec\\u000ad"
    assert len(shown("x" * 1000)) == 300
