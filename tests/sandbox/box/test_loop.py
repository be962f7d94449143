"""The launcher's loop: timers come when they are due, and one that is cancelled never does."""

from ringfence.sandbox.inner.loop import Loop


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
