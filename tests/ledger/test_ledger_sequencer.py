"""Who writes: a lone caller itself, many by one thread, in the order in which they came, one group at a time."""

import threading
import time
from collections.abc import Callable

import pytest

from ringfence.ledger.request import Prepared, Rank, Request
from ringfence.ledger.sequencer import Sequencer
from ringfence.model.errors import LedgerError


class Book:
    """Acknowledges; remembers groups and who wrote them. With ``gate`` a write waits until it is set."""

    def __init__(self) -> None:
        self.groups: list[list[bytes]] = []
        self.writers: list[str] = []
        self.gate = threading.Event()
        self.gate.set()
        self.entered = threading.Event()
        self.inside = 0
        self.during: Callable[[list[bytes]], object] = lambda _: None
        self.sequencer = Sequencer("here", commit=self.commit, check=lambda: None)

    def commit(self, batch: list[Request], let_go: Callable[[], None]) -> None:
        self.inside += 1
        assert self.inside == 1
        self.writers.append(threading.current_thread().name)
        self.groups.append([one.head for request in batch for one in request.prepared])
        self.entered.set()
        let_go()
        self.during(self.groups[-1])
        assert self.gate.wait(30)
        for request in batch:
            request.acks = []
        self.inside -= 1

    def submit(self, name: bytes) -> Request:
        request = Request([Prepared(name, 0, Rank.REST)])
        self.sequencer.submit(request)
        assert request.done
        return request

    def wait_for(self, count: int) -> None:
        while len(self.sequencer._queue) != count:
            time.sleep(0.001)


@pytest.fixture
def book():
    made = Book()
    yield made
    made.sequencer.stop()
    assert not [thread for thread in threading.enumerate() if thread.name == "ledger-sequencer"]


def start(work, *arguments) -> threading.Thread:
    thread = threading.Thread(target=work, args=arguments)
    thread.start()
    return thread


def held_up(book: Book, *names: bytes) -> list[threading.Thread]:
    """The first is being written and stays so; the others wait behind it, in order."""
    book.gate.clear()
    threads = [start(book.submit, names[0])]
    assert book.entered.wait(30)
    for count, name in enumerate(names[1:], 1):
        threads.append(start(book.submit, name))
        book.wait_for(count)
    return threads


def let_go(book: Book, threads: list[threading.Thread]) -> None:
    book.gate.set()
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()


def test_a_lone_caller_writes_itself_and_no_thread_is_started(book):
    book.submit(b"a")
    book.submit(b"b")
    assert book.groups == [[b"a"], [b"b"]]
    assert set(book.writers) == {threading.current_thread().name}


def test_who_comes_meanwhile_shares_one_group_in_order_and_a_lone_caller_writes_itself_again(book):
    let_go(book, held_up(book, b"a", b"b", b"c", b"d"))
    assert book.groups == [[b"a"], [b"b", b"c", b"d"]]
    assert book.writers[1] == "ledger-sequencer"
    while book.sequencer._taken:
        time.sleep(0.001)
    book.submit(b"e")
    assert book.writers[2] == threading.current_thread().name


def test_who_was_answered_goes_on_while_the_next_group_is_written(book):
    went_on = threading.Event()

    def submit_and_go_on() -> None:
        book.submit(b"b")
        went_on.set()

    def during(names: list[bytes]) -> None:
        if names == [b"b"]:
            threads.append(start(book.submit, b"c"))
            book.wait_for(1)
        if names == [b"c"]:
            assert went_on.wait(30)

    book.during = during
    threads = held_up(book, b"a")
    threads.append(start(submit_and_go_on))
    book.wait_for(1)
    let_go(book, threads)
    assert book.groups == [[b"a"], [b"b"], [b"c"]]


def test_without_a_thread_the_caller_that_writes_does_so_for_all(book, monkeypatch):
    threads = held_up(book, b"a", b"b", b"c")
    monkeypatch.setattr(threading.Thread, "start", lambda _: (_ for _ in ()).throw(RuntimeError("no more threads")))
    let_go(book, threads)
    monkeypatch.undo()
    assert book.groups == [[b"a"], [b"b", b"c"]]
    assert book.writers[1] == book.writers[0]


def test_who_asks_to_be_alone_comes_in_order_and_others_wait_meanwhile(book):
    alone, go = threading.Event(), threading.Event()

    def be_alone() -> None:
        with book.sequencer.alone():
            alone.set()
            assert go.wait(30)
            book.groups.append([b"alone"])

    threads = held_up(book, b"a", b"b")
    threads.append(start(be_alone))
    book.wait_for(2)
    threads.append(start(book.submit, b"c"))
    book.wait_for(3)
    book.gate.set()
    assert alone.wait(30)
    book.wait_for(1)
    go.set()
    let_go(book, threads)
    assert book.groups == [[b"a"], [b"b"], [b"alone"], [b"c"]]


def test_who_waits_to_be_alone_gives_up_too_and_the_turn_is_not_lost(book, monkeypatch):
    monkeypatch.setattr("ringfence.ledger.sequencer.WAIT_SECONDS", 0.05)
    threads = held_up(book, b"a")
    with pytest.raises(LedgerError) as slow, book.sequencer.alone():
        raise AssertionError("was alone")
    assert slow.value.code == "ledger-slow"
    let_go(book, threads)
    with book.sequencer.alone():
        pass
    book.submit(b"b")
    assert book.groups == [[b"a"], [b"b"]]


def test_a_group_has_a_largest_size(book, monkeypatch):
    monkeypatch.setattr("ringfence.ledger.sequencer.MAX_GROUP", 2)
    let_go(book, held_up(book, b"a", b"b", b"c", b"d"))
    assert book.groups == [[b"a"], [b"b", b"c"], [b"d"]]


def test_many_at_once_and_some_alone_lose_no_turn(book):
    def work(name: int) -> None:
        for number in range(100):
            if number % 10 == name:
                with book.sequencer.alone():
                    assert book.inside == 0
            book.submit(b"%d.%d" % (name, number))

    threads = [start(work, name) for name in range(6)]
    let_go(book, threads)
    written = [head for group in book.groups for head in group]
    assert len(written) == len(set(written)) == 600
    for name in range(6):
        own = [int(head.split(b".")[1]) for head in written if head.startswith(b"%d." % name)]
        assert own == list(range(100))
