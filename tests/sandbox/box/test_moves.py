"""The queue of renames that a box's process 1 carries out, without a box."""

import marshal

from ringfence.sandbox.inner.moves import WAITING, Moves


class Init:
    def __init__(self):
        self.asked, self.answers, self.takes = [], [], True
        self.moves = Moves(self.ask, lambda identity, error: self.answers.append((identity, error)))

    def ask(self, request):
        if self.takes:
            self.asked.append(marshal.loads(request.removeprefix(b"rename ")))
        return self.takes

    def take(self, identity):
        return self.moves.take(identity, b"/a", b"/b", 1)


def test_one_at_a_time_in_order():
    init = Init()
    assert all(init.take(identity) for identity in (7, 8, 9))
    assert init.asked == [(7, b"/a", b"/b", 1)]
    init.moves.done(7, 0)
    init.moves.done(8, 39)
    assert [asked[0] for asked in init.asked] == [7, 8, 9]
    assert init.answers == [(7, 0), (8, 39)]


def test_more_than_may_wait_are_left_to_the_kernel():
    init = Init()
    assert all(init.take(identity) for identity in range(WAITING + 1))
    assert not init.take(999)


def test_an_init_that_cannot_be_asked_leaves_it_to_the_kernel():
    init = Init()
    assert init.take(1)
    assert init.take(2)
    init.takes = False
    init.moves.done(1, 0)
    assert init.answers == [(1, 0), (2, -1)]
    assert not init.take(3)
    init.takes = True
    assert init.take(4)
