"""Missions as stored, and their table of moves."""

import pytest

from ringfence.model.errors import RingfenceError
from ringfence.model.ids import Micros, MissionId
from ringfence.supervisor.missions import TRANSITIONS, Mission, Missions, State, move


def mission(**changes):
    fields = {
        "id": "m-0123456789abcdef",
        "root": "/r",
        "task": "t",
        "agent": "a",
        "policy_digest": "0",
        "started": 1,
        "until": 0,
    }
    return Mission(**(fields | changes))


def test_a_mission_is_kept_and_found(tmp_path):
    missions = Missions(str(tmp_path))
    missions.store(mission())
    assert missions.load(MissionId("m-0123456789abcdef")) == mission()
    assert missions.all() == (mission(),)


@pytest.mark.parametrize("name", ["../../etc", "m-xyz", "", "m-0123456789abcdef/..", "m-" + "0" * 64])
def test_a_name_that_is_no_id_is_refused(tmp_path, name):
    with pytest.raises(RingfenceError, match="not a mission"):
        Missions(str(tmp_path)).load(MissionId(name))


def test_a_broken_file_is_a_clear_fault_and_does_not_hide_the_others(tmp_path):
    missions = Missions(str(tmp_path))
    missions.store(mission())
    missions.store(mission(id="m-1123456789abcdef"))
    (tmp_path / "m-0123456789abcdef" / "mission.json").write_text('{"id": 3}')
    with pytest.raises(RingfenceError, match="cannot be read"):
        missions.load(MissionId("m-0123456789abcdef"))
    assert [one.id for one in missions.all()] == ["m-1123456789abcdef"]


@pytest.mark.parametrize("state", State)
@pytest.mark.parametrize("event", ["pause", "resume", "end", "terminate", "dance"])
def test_only_the_table_moves_a_mission(state, event):
    expected = TRANSITIONS.get((state, event))
    if expected is None:
        with pytest.raises(RingfenceError, match="cannot"):
            move(mission(state=state), event, Micros(5))
    else:
        after = move(mission(state=state), event, Micros(5))
        assert after.state is expected
        assert after.ended == (5 if expected in {State.COMPLETED, State.TERMINATED} else 0)
