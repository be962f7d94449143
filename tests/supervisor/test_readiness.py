"""A host below the policy's minimum, and a smoke test that failed or is stale, let nothing run."""

import threading
import types

import pytest

from ringfence.model.box import Level
from ringfence.model.entry import Ack
from ringfence.model.errors import BoxError
from ringfence.model.ids import Micros, Sha256
from ringfence.policy.policy import Policy
from ringfence.supervisor import readiness
from ringfence.supervisor.readiness import FRESH, Readiness

MINUTE = 60_000_000


class Recording:
    """A door that only remembers what it was told."""

    def __init__(self):
        self.noted = []

    def note(self, kind, body, **_):
        self.noted.append((kind, body))
        return Ack(seq=len(self.noted), record=Sha256("0"))


class Host:
    """A scripted host: its level, and whether its smoke tests pass."""

    def __init__(self, monkeypatch, level=Level.NAMESPACES):
        self.now = Micros(1_000_000_000)
        self.level, self.passes, self.smokes = level, True, 0
        report = types.SimpleNamespace(
            level=level, causes=("no profile is loaded",), remedies=("load the profile",), controls=()
        )
        monkeypatch.setattr(readiness, "run_smoke", self.smoke)
        self.door = Recording()
        self.readiness = Readiness(
            door=self.door, launcher=object(), host=report, state="/nowhere", now=lambda: self.now
        )

    def smoke(self, launcher, *, state):
        self.smokes += 1
        probe = types.SimpleNamespace(name="no secrets reachable", passed=self.passes, detail="found one", duration=1)
        return types.SimpleNamespace(passed=self.passes, probes=(probe,))


@pytest.fixture
def policy(tmp_path):
    return Policy.parse(
        "version: 1\nfail_closed: true\ncommands:\n  allow: [{argv_prefix: [ls]}]\n", root=str(tmp_path)
    )


@pytest.mark.parametrize("level", [Level.NONE, Level.LANDLOCK])
def test_a_host_below_the_minimum_is_refused_with_the_remedy(monkeypatch, policy, level):
    host = Host(monkeypatch, level)
    with pytest.raises(BoxError) as caught:
        host.readiness.require(policy)
    assert caught.value.code == "below-minimum"
    assert "load the profile" in caught.value.remedy
    assert "no profile is loaded" in caught.value.what
    assert host.smokes == 0


def test_one_smoke_test_counts_for_fifteen_minutes_and_not_longer(monkeypatch, policy):
    host = Host(monkeypatch)
    for _ in range(3):
        host.readiness.require(policy)
    assert host.smokes == 1
    host.now = Micros(host.now + FRESH)
    host.readiness.require(policy)
    assert host.smokes == 1
    host.now = Micros(host.now + MINUTE)
    host.readiness.require(policy)
    assert host.smokes == 2


def test_a_clock_that_goes_back_does_not_keep_a_smoke_test_fresh(monkeypatch, policy):
    host = Host(monkeypatch)
    host.readiness.require(policy)
    host.now = Micros(host.now - MINUTE)
    host.readiness.require(policy)
    assert host.smokes == 2


def test_another_policy_wants_a_smoke_test_of_its_own(monkeypatch, policy, tmp_path):
    host = Host(monkeypatch)
    host.readiness.require(policy)
    host.readiness.require(Policy.parse("version: 1\nfail_closed: true\n", root=str(tmp_path)))
    assert host.smokes == 2


def test_a_failed_smoke_test_lets_nothing_run_and_is_recorded(monkeypatch, policy):
    host = Host(monkeypatch)
    host.passes = False
    for _ in range(2):
        with pytest.raises(BoxError, match="no secrets reachable"):
            host.readiness.require(policy)
    assert host.smokes == 2
    assert [body["passed"] for _, body in host.door.noted] == [False, False]


def other(tmp_path):
    return Policy.parse("version: 1\nfail_closed: true\n", root=str(tmp_path))


def test_a_test_that_failed_for_one_policy_lets_nothing_run_under_another_that_had_passed(
    monkeypatch, policy, tmp_path
):
    host = Host(monkeypatch)
    host.readiness.require(policy)
    host.passes = False
    for judged in (other(tmp_path), policy):
        with pytest.raises(BoxError, match="no secrets reachable"):
            host.readiness.require(judged)
    host.passes = True
    host.readiness.require(policy)
    assert host.smokes == 4


@pytest.mark.parametrize("changed", ["boot", "version", "level"])
def test_what_was_proved_for_another_boot_version_or_level_does_not_count(monkeypatch, policy, changed):
    host = Host(monkeypatch)
    low = types.SimpleNamespace(minimum_level=Level.LANDLOCK, digest=policy.digest, root="/")
    host.readiness.require(low)
    match changed:
        case "boot":
            host.readiness._boot = "another"
        case "version":
            monkeypatch.setattr(readiness, "__version__", "another")
        case _:
            host.readiness._host.level = Level.LANDLOCK
    host.readiness.require(low)
    assert host.smokes == 2


def test_many_that_come_at_once_are_let_in_by_one_test(monkeypatch, policy):
    host = Host(monkeypatch)
    callers = [threading.Thread(target=host.readiness.require, args=(policy,)) for _ in range(8)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(60)
    assert host.smokes == 1
