"""Missions with a limit in time, on a host whose clock jumps: what is over stays over, what cannot be told is refused."""

import types

import pytest

from ringfence.model.errors import RingfenceError
from ringfence.supervisor import requests
from ringfence.supervisor.missions import CommitAt, Mission, Missions
from ringfence.supervisor.runner import Runner

HOUR = 3600 * 1_000_000
START = 1_800_000_000 * 1_000_000
ID = "m-0123456789abcdef"


@pytest.fixture
def missions(tmp_path):
    return Missions(str(tmp_path))


@pytest.fixture
def at(missions):
    """Ask for the mission at some time; the code of the fault, or nothing."""
    clock = [START]
    door = types.SimpleNamespace(now=lambda: clock[0])
    nothing = dict.fromkeys(("readiness", "gatekeeper", "paths", "new_id"))
    runner = Runner(door=door, missions=missions, **nothing)

    def ask(time):
        clock[0] = time
        try:
            found = runner._mission(requests.Run(version=2, cwd="/r", argv=("ls",), mission=ID), "/r")
            return "learns" if found.learning_until > time else ""
        except RingfenceError as error:
            return error.code

    return ask


def mission(missions, **limits):
    missions.store(
        Mission(id=ID, root="/r", task="", agent="", policy_digest="", started=START, commit=CommitAt.CALL, **limits)
    )


@pytest.mark.parametrize("limits", [{"until": START + HOUR}, {"until": 0, "learning_until": START + HOUR}])
def test_before_a_mission_with_a_limit_began_nothing_runs_in_it(missions, at, limits):
    mission(missions, **limits)
    assert at(START - 1) == "clock-set-back"
    assert at(START) in {"", "learns"}


def test_what_was_over_does_not_begin_again(missions, at):
    mission(missions, until=START + HOUR)
    assert at(START + HOUR) == ""
    assert at(START + HOUR + 1) == "mission-over"
    assert at(START + 5) == "mission-over"


def test_what_was_learnt_long_enough_is_not_learnt_again(missions, at):
    mission(missions, until=0, learning_until=START + HOUR)
    assert at(START + 5) == "learns"
    assert at(START + HOUR) == ""
    assert at(START + 5) == ""


def test_without_a_limit_the_clock_does_not_matter(missions, at):
    mission(missions, until=0)
    assert at(START - 1000 * HOUR) == ""
