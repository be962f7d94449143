"""A box that makes the launcher wait waits in its turn, and no other box does."""

import time

from ringfence.sandbox.inner.turns import PATIENCE, SLOW, Turns


def test_who_makes_us_wait_waits_for_longer():
    turns = Turns()
    assert turns.take(lambda: time.sleep(4 * SLOW)) == 0.0
    assert turns.take(lambda: time.sleep(4 * SLOW)) >= 4 * SLOW * PATIENCE


def test_work_of_our_own_and_a_busy_processor_are_nobody_s_fault():
    turns = Turns()
    turns.take(lambda: time.sleep(4 * SLOW))

    def work():
        until = time.thread_time() + 4 * SLOW
        while time.thread_time() < until:
            pass

    assert turns.take(work) == 0.0
    assert turns.take(lambda: None) == 0.0
