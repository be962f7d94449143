"""Folders of state and socket: made closed to others, and refused with a remedy where they cannot be."""

import os
import stat

import pytest

from ringfence.model.errors import RingfenceError
from ringfence.supervisor.paths import check_trusted, make_private


@pytest.fixture
def home(tmp_path):
    folder = tmp_path / "home"
    folder.mkdir(mode=0o700)
    return folder


@pytest.mark.parametrize("umask", [0o000, 0o002, 0o022, 0o077])
def test_every_folder_that_is_made_is_closed_whatever_the_umask(home, umask):
    before = os.umask(umask)
    try:
        made = make_private(f"{home}/.local/state/ringfence")
    finally:
        os.umask(before)
    for folder in (made, os.path.dirname(made), f"{home}/.local"):
        assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700


def test_a_link_to_a_folder_that_everybody_may_write_is_refused_and_the_folder_left_as_it_is(home):
    shared = home / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    (home / "state").symlink_to(shared)
    for refuse in (check_trusted, make_private):
        with pytest.raises(RingfenceError) as refused:
            refuse(f"{home}/state")
        assert refused.value.code == "unsafe-path"
    assert stat.S_IMODE(shared.stat().st_mode) == 0o1777


def test_a_folder_below_a_sticky_one_is_ours_alone(home):
    shared = home / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    assert make_private(f"{shared}/mine") == f"{shared}/mine"


@pytest.mark.parametrize("what", ["file", "dangling", "loop"])
def test_what_is_no_folder_is_named_with_a_remedy(home, what):
    place = home / "state"
    if what == "file":
        place.write_text("")
    else:
        place.symlink_to("state" if what == "loop" else "nowhere")
    with pytest.raises(RingfenceError) as refused:
        make_private(f"{place}")
    assert refused.value.code == "state-unusable"
    assert refused.value.where == str(place)
    assert refused.value.remedy
