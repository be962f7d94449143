"""The pause of a box as the launcher holds it: told when all stands still, ended when it does not."""

import time

import pytest

from ringfence.sandbox.inner import standstill


class Freezer:
    def __init__(self, *, freezes, looks):
        self.freezes, self.looks, self.frozen = freezes, looks, False

    def freeze(self):
        self.frozen = self.freezes
        return self.freezes

    def settled(self):
        self.looks -= 1
        return self.looks < 0

    def thaw(self):
        was, self.frozen = self.frozen, False
        return was


class Ward:
    def __init__(self, *, freezes=True, looks=0):
        self.said, self.orders, self.killed, self.timers = [], [], [], []
        self.standstill = standstill.Standstill(
            Freezer(freezes=freezes, looks=looks), to_init=self.orders.append, tell=self.said.append,
            kill=self.killed.append, after=lambda seconds, handler: self.timers.append(handler),
        )  # fmt: skip

    def pass_timers(self):
        while self.timers:
            self.timers.pop(0)()


def test_it_is_told_only_when_every_task_has_come_to_a_stop():
    ward = Ward(looks=3)
    ward.standstill.begin()
    assert ward.said == []
    ward.pass_timers()
    assert (ward.said, ward.killed) == (["paused"], [])


def test_a_tree_that_never_stands_still_is_ended(monkeypatch):
    monkeypatch.setattr(standstill, "SECONDS", 0.0)
    ward = Ward(looks=10**9)
    ward.standstill.begin()
    ward.pass_timers()
    assert ward.said == []
    assert ward.killed == ["it did not stand still while it was paused"]


@pytest.mark.parametrize("still", [True, False])
def test_without_a_freezer_process_1_is_asked_and_says_what_came_of_it(still):
    ward = Ward(freezes=False)
    ward.standstill.begin()
    assert (ward.orders, ward.said) == ([b"pause"], [])
    ward.standstill.found(still=still)
    assert (ward.said, len(ward.killed)) == ((["paused"], 0) if still else ([], 1))


def test_a_word_of_something_awake_that_comes_after_the_end_ends_nothing():
    ward = Ward(freezes=False)
    ward.standstill.begin()
    ward.standstill.end()
    ward.standstill.found(still=False)
    assert ward.killed == []


def test_what_is_sent_to_a_paused_command_waits():
    ward = Ward(freezes=False)
    ward.standstill.begin()
    ward.standstill.send(b"signal 18")
    assert ward.orders == [b"pause"]
    ward.standstill.end()
    ward.standstill.send(b"signal 2")
    assert ward.orders == [b"pause", b"resume", b"signal 18", b"signal 2"]


def test_time_is_taken_once(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    ward = Ward()
    ward.standstill.begin()
    now[0] += 5
    assert ward.standstill.take_seconds() == 5.0
    now[0] += 2
    ward.standstill.end()
    now[0] += 9
    assert [ward.standstill.take_seconds(), ward.standstill.take_seconds()] == [2.0, 0.0]
