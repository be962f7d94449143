"""The nouns: strictness is max, digests name what runs, an answer has reasons."""

import pytest

from ringfence.model.call import FileAction, ToolCall
from ringfence.model.decision import Decision, Place, Reason
from ringfence.model.errors import RingfenceError
from ringfence.model.ids import CallId, RuleId, Sha256
from ringfence.model.tier import Scope, Tier

pytestmark = pytest.mark.usefixtures("no_io")


def reason(tier):
    return Reason(
        rule=RuleId("r"), scope=Scope.USER, place=Place(file="p", line=3), tier=tier, matched="m", because="b"
    )


def test_the_strictest_reason_decides():
    decision = Decision(
        call_id=CallId("c"),
        policy_digest=Sha256("0"),
        reasons=(reason(Tier.ALLOW), reason(Tier.DENY), reason(Tier.ASK)),
    )
    assert decision.tier is Tier.DENY
    assert [r.tier for r in decision.deciding] == [Tier.DENY]


def test_a_decision_without_reasons_cannot_be_made():
    with pytest.raises(ValueError, match="at least one reason"):
        Decision(call_id=CallId("c"), policy_digest=Sha256("0"), reasons=())


CALLS = {
    "shell": ToolCall.shell("ls", cwd="/a"),
    "argv": ToolCall.argv(["ls"], cwd="/a"),
    "read": ToolCall.file("read", "x", cwd="/a"),
    "write": ToolCall.file(FileAction.WRITE, "x", cwd="/a", content="1"),
    "network": ToolCall.network("example.org", 443, cwd="/a"),
    "tool": ToolCall.tool("github", "get_issue", {"b": 1, "a": 2}, cwd="/a"),
    "elsewhere": ToolCall.shell("ls", cwd="/b"),
    "other line": ToolCall.shell("ls ", cwd="/a"),
}


def test_every_call_has_a_digest_of_its_own():
    assert len({call.digest() for call in CALLS.values()}) == len(CALLS)


def test_the_digest_does_not_depend_on_id_or_order_of_arguments():
    assert ToolCall.tool("s", "t", {"a": 1, "b": 2}).digest() == ToolCall.tool("s", "t", {"b": 2, "a": 1}).digest()


def test_kinds_have_names():
    assert [call.kind for call in CALLS.values()] == [
        "shell",
        "argv",
        "file",
        "file",
        "network",
        "tool",
        "shell",
        "shell",
    ]


def test_an_unknown_file_action_is_refused():
    with pytest.raises(ValueError, match="chmod"):
        ToolCall.file("chmod", "x")


def test_an_error_says_what_where_and_what_to_do():
    text = str(RingfenceError("code", "it broke", where="file:1", remedy="mend it"))
    assert text == "error[code]: it broke\n  --> file:1\n  fix: mend it"


def test_places_leave_out_what_is_not_known():
    assert [str(Place(file="f")), str(Place(file="f", line=2)), str(Place(file="f", line=2, column=3))] == [
        "f",
        "f:2",
        "f:2:3",
    ]
