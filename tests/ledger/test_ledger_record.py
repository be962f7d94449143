"""Bodies of records: what goes in comes back the same, so that a decision can be made again."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringfence.cli import ledger_show
from ringfence.egress.record import ConnectionLog
from ringfence.ledger import canonical, record
from ringfence.ledger.described import describe, request_text
from ringfence.model.box import Control, ControlState, Execution, Level, Observation
from ringfence.model.call import Argv, Context, FileAccess, FileAction, NetworkAccess, ShellLine, ToolCall, ToolUse
from ringfence.model.decision import Decision, Place, Reason
from ringfence.model.entry import EntryKind
from ringfence.model.facts import GlobFact, PathFact, PathFacts, PathKind, ProgramFact
from ringfence.model.ids import CallId, Micros, RuleId, Sha256
from ringfence.model.tier import Scope, Tier

DECISION = Decision(
    call_id=CallId("c-1"),
    policy_digest=Sha256("ab" * 32),
    reasons=(
        Reason(
            rule=RuleId("tests"),
            scope=Scope.REPOSITORY,
            place=Place(file="sandbox_policy.yaml", line=3, column=5),
            tier=Tier.ALLOW,
            matched="git status",
            because="reads only",
        ),
    ),
)
FACTS = PathFacts(
    cwd="/r",
    home="/h",
    root="/r",
    paths=(PathFact(asked="/r/a\udcff", real="/r/b", kind=PathKind.FILE, links=2, via_symlink=True),),
    programs=(ProgramFact(name="git", real="/usr/bin/git"), ProgramFact(name="no", real=None)),
    globs=(GlobFact(asked="/r/*", matches=("/r/a", "/r/b"), complete=False),),
    homes=(("bob", "/home/bob"),),
)
text = st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from(["\udc80", "\udcff"]), max_size=20)
calls = st.one_of(
    st.builds(lambda line: ToolCall.shell(line, cwd="/r"), text),
    st.builds(lambda argv: ToolCall.argv(argv, cwd="/r"), st.lists(text)),
    st.builds(
        lambda a, p, c: ToolCall.file(a, p, cwd="/r", content=c), st.sampled_from(FileAction), text, st.none() | text
    ),
    st.builds(
        lambda h, p, m, b: ToolCall.network(h, p, method=m, body=b, cwd="/r", context=Context(agent="x", branch=h)),
        text,
        st.integers(1, 65535),
        st.none() | text,
        st.none() | text,
    ),
    st.builds(lambda s, t, a: ToolCall.tool(s, t, a, cwd="/r"), text, text, st.dictionaries(text, text)),
)


@given(calls)
def test_any_call_and_its_facts_survive_the_record(call):
    body = canonical.decode(canonical.encode(record.intent_body(call, FACTS, DECISION, extra={"agent": "a"})))
    stored = {"call": "", "body": body}
    assert record.call_from_record(stored) == call
    assert record.facts_from_record(stored) == FACTS


MARK = "hmac:1:" + "0" * 32


@pytest.mark.parametrize(
    "call", [ToolCall.shell(f"git diff # {MARK}", cwd="/r"), ToolCall.argv(["x", MARK], cwd=f"/{MARK}")]
)
def test_what_looks_like_a_replaced_secret_and_was_typed_is_told_from_one(call):
    body = record.intent_body(call, FACTS, DECISION)
    assert MARK not in canonical.encode(body).decode()
    assert record.call_from_record({"body": body, "call": ""}) == call
    assert MARK in request_text(body)


def test_a_long_text_that_is_no_unicode_is_read_back_from_where_it_was_moved(make_ledger, make_entry):
    call = ToolCall.shell("echo \udcff" + "x" * 70_000, cwd="/r")
    body = record.intent_body(call, FACTS, DECISION)
    with make_ledger() as ledger:
        ledger.append([make_entry(body=body, call="")])
        stored = list(ledger.read())[-1].value
        kept = stored["personal"]
        again = record.call_from_record({**stored, "call": ""}, lambda name: ledger.keeper.load(kept[name]))
    assert again == call


def test_what_is_no_unicode_is_read_and_found_all_the_same():
    call = ToolCall.argv(["/usr/bin/cu\udcffrl", "secrets.example.org\udcff"], cwd="/r")
    stored = {"body": record.intent_body(call, FACTS, DECISION), "time": 1, "kind": "tool.intent", "seq": 7}
    assert request_text(stored["body"]) == "/usr/bin/cu\\xffrl secrets.example.org\\xff"
    found = describe(stored)
    assert ("program", "cu\\xffrl") in found.terms
    assert "secrets.example.org" in found.text
    line = ledger_show.line({**stored, "time": 1_800_000_000_000_000})
    assert "secrets.example.org" in line
    far = ledger_show.line(
        {**stored, "time": 10**15, "body": {"decision": {}, "request": {"line": "a" * 900 + "; rm x"}}}
    )
    assert "; rm x" in far
    assert len(far) < 300


def test_a_part_that_was_moved_aside_is_loaded_or_named():
    call = ToolCall.file("write", "x", content="long", cwd="/r")
    body = record.intent_body(call, FACTS, DECISION)
    body["request"]["content"] = {"kept": "content"}
    stored = {"body": body}
    assert record.call_from_record(stored, {"content": "long"}.get) == call
    with pytest.raises(record.NotReplayable, match="content"):
        record.call_from_record(stored)


@pytest.mark.parametrize("stored", [{}, {"body": []}, {"body": {"request": {"kind": "other"}}}, {"body": {"facts": 1}}])
def test_records_that_say_too_little_are_not_replayable(stored):
    with pytest.raises(record.NotReplayable):
        record.call_from_record(stored)
    with pytest.raises(record.NotReplayable):
        record.facts_from_record(stored)


def test_a_result_says_how_it_ended_which_controls_stood_and_what_was_seen():
    execution = Execution(
        call_id=CallId("c-1"),
        level=Level.NAMESPACES,
        controls=(Control(name="network", state=ControlState.ENFORCED),),
        exit=None,
        signal=9,
        ended_by="runtime, 15000 ms",
        duration=Micros(7),
        observations=(Observation(kind="decoy", detail="~/.ssh/id_rsa", violation=True),),
        changes_digest=Sha256("cd" * 32),
    )
    body = record.result_body(execution, gate={"committed": ["a"]})
    assert canonical.decode(canonical.encode(body)) == body
    assert (body["signal"], body["ended_by"], body["level"]) == (9, "runtime, 15000 ms", "namespaces")
    assert body["controls"] == [{"name": "network", "state": "enforced"}]
    assert body["observations"][0]["violation"] is True
    assert record.observed_body(execution.observations[0])["detail"] == "~/.ssh/id_rsa"


def test_the_page_of_the_format_names_every_member_that_records_of_calls_and_connections_have():
    """A reader that a stranger writes from the page must not have to guess."""
    page = (Path(__file__).parents[2] / "docs" / "ledger-format.md").read_text()
    nouns = (ShellLine, Argv, FileAccess, NetworkAccess, ToolUse, Context, PathFacts, PathFact, ProgramFact, GlobFact)
    told = {name for noun in (*nouns, Control, Observation, ConnectionLog) for name in noun.__annotations__}
    told -= {"time", "mission", "call"}  # members of the record itself
    assert sorted(name for name in told if f"`{name}`" not in page) == []
    assert (
        sorted(kind.value for kind in EntryKind if f"| `{kind.value}`" not in page and f", `{kind.value}`" not in page)
        == []
    )
