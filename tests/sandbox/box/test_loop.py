"""The launcher's loop: timers, and listeners of calls that are waited for beside all else, however many there are."""

import os

import pytest

from ringfence.sandbox.inner.loop import NEAR, READ, Loop


@pytest.fixture
def pipes():
    made = [os.pipe() for _ in range(2 * NEAR + 2)]
    yield made
    for pair in made:
        for end in pair:
            os.close(end)


def watched(loop, pipes, seen):
    """Each is read a byte at a time; the loop ends with the second byte of the last one."""
    for number, (reader, _writer) in enumerate(pipes):

        def ready(_events, number=number, reader=reader):
            seen.append((number, os.read(reader, 1)))
            loop.running = len(seen) < 2 * len(pipes)

        if number % 2:
            loop.watch(reader, READ, ready)
        else:
            loop.watch_calls(reader, ready)


def test_all_are_heard_in_turn_whether_near_or_not(pipes):
    loop, seen = Loop(), []
    watched(loop, pipes, seen)
    for word in (b"a", b"b"):
        for _reader, writer in pipes:
            os.write(writer, word)
    loop.run()
    assert sorted(seen) == sorted((number, word) for number in range(len(pipes)) for word in (b"a", b"b"))


def test_one_that_waits_always_keeps_no_other_and_no_timer_waiting(pipes):
    loop, rounds = Loop(), []
    os.write(pipes[0][1], b"x")
    loop.watch_calls(pipes[0][0], lambda _events: rounds.append("flood"))  # never read: ready in each turn
    loop.watch(pipes[1][0], READ, lambda _events: rounds.append(os.read(pipes[1][0], 1)))
    os.write(pipes[1][1], b"y")
    loop.after(0.0, lambda: setattr(loop, "running", False))
    loop.run()
    assert rounds == ["flood", b"y"]


def test_what_is_forgotten_is_heard_no_more(pipes):
    loop, seen = Loop(), []
    watched(loop, pipes, seen)
    for reader, writer in pipes:
        os.write(writer, b"x")
        loop.forget(reader)
        loop.forget(reader)
    loop.after(0.0, lambda: setattr(loop, "running", False))
    loop.run()
    assert seen == []


def test_one_near_may_be_closed_by_another_in_the_same_turn(pipes):
    loop, seen = Loop(), []
    near, other = pipes[0], pipes[1]
    loop.watch_calls(near[0], lambda _events: seen.append("near"))
    loop.watch(other[0], READ, lambda _events: (seen.append("other"), loop.forget(near[0]), loop.forget(other[0])))
    os.write(near[1], b"x"), os.write(other[1], b"x")
    loop.after(0.01, lambda: setattr(loop, "running", False))
    loop.run()
    assert seen == ["near", "other"]


@pytest.mark.parametrize("near", [True, False])
@pytest.mark.parametrize("calls", [True, False])
def test_a_number_that_is_anothers_by_its_turn_tells_that_one_nothing_of_the_first(pipes, near, calls):
    loop, seen = Loop(), []
    (first, first_in), (second, second_in), (third, third_in) = pipes[:3]

    def watch(descriptor, handler, as_call):
        loop.watch_calls(descriptor, handler) if as_call else loop.watch(descriptor, READ, handler)

    def heard(events):
        seen.append(events)
        loop.running = False

    def replace(other):
        loop.forget(first), loop.forget(second)
        os.dup2(third, other)  # as of the next box, which has nothing to say yet
        watch(other, heard, calls)
        loop.running = False  # after this turn, in which the other one was ready as well

    watch(first, lambda _events: replace(second), near)
    watch(second, lambda _events: replace(first), near)
    os.write(first_in, b"x"), os.write(second_in, b"x")
    loop.run()
    assert seen == []
    os.write(third_in, b"x")
    loop.running = True
    loop.run()
    assert seen == [READ]


def test_timers_come_in_order_but_for_the_cancelled_ones():
    loop, came = Loop(), []

    def end():
        loop.running = False

    loop.after(0.03, end)
    loop.after(0.02, lambda: came.append("second"))
    never = loop.after(0.01, lambda: came.append("never"))
    loop.after(0.0, lambda: came.append("first"))
    loop.cancel(never)
    loop.cancel(never)
    loop.run()
    assert came == ["first", "second"]
