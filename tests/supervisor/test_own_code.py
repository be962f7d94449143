"""The fence's own code and an allowed root never overlap, whichever of the two holds the other."""

import os
import sys
import types

import msgspec
import pytest

import ringfence
from ringfence.model.errors import PolicyError
from ringfence.supervisor.door import refuse_own_home_inside

PACKAGE = os.path.realpath(os.path.dirname(ringfence.__file__))
LIBRARY = os.path.dirname(os.path.realpath(os.__file__))
DEPENDENCIES = os.path.dirname(os.path.dirname(os.path.realpath(msgspec.__file__)))


def refused(root):
    policy = types.SimpleNamespace(root=root, roots=(root,))
    try:
        refuse_own_home_inside(policy)
    except PolicyError as error:
        return error.code
    return ""


@pytest.mark.parametrize(
    "root",
    [
        PACKAGE,
        f"{PACKAGE}/policy",
        f"{os.path.dirname(PACKAGE)}/beside",
        os.path.dirname(PACKAGE),
        f"{LIBRARY}/json",
        LIBRARY,
        os.path.dirname(LIBRARY),
        DEPENDENCIES,
        f"{DEPENDENCIES}/msgspec",
        os.path.realpath(sys.prefix),
        os.path.dirname(os.path.realpath(sys.executable)),
        "/",
    ],
)
def test_a_root_in_which_an_agent_could_edit_its_judge_is_refused(root):
    assert refused(root) == "fence-inside-root"


@pytest.mark.parametrize("root", ["/home/somebody/project", "/usr/src/project", f"{LIBRARY}-other"])
def test_any_other_root_is_not(root):
    assert refused(root) == ""
