"""Entries from commands without a mission: through the supervisor or straight into the ledger, many at once, never others."""

import threading

import pytest

from ringfence.ledger.log import Ledger
from ringfence.model.entry import Entry, EntryKind
from ringfence.model.errors import LedgerError
from ringfence.model.ids import Micros
from ringfence.supervisor.paths import user_paths
from ringfence.supervisor.recording import Recording


def verdict(number):
    return Entry(
        kind=EntryKind.PROMOTION, time=Micros(1_790_000_000_000_000), body={"verdict": "refuse", "number": number}
    )


def test_many_at_once_without_a_supervisor_all_land(tmp_path):
    paths = user_paths(str(tmp_path))
    acks, threads = [], []
    for number in range(6):
        thread = threading.Thread(target=lambda n=number: acks.extend(Recording(paths).append([verdict(n)])))
        thread.start()
        threads.append(thread)
    for thread in threads:
        thread.join()
    assert len({ack.seq for ack in acks}) == 6
    with Ledger.open(paths.ledger) as ledger:
        kinds = [record.value["kind"] for record in ledger.read()]
    assert kinds.count("promotion.verdict") == 6


@pytest.mark.needs_userns
def test_with_a_supervisor_it_goes_through_it(cli):
    cli("run", "--", "true")
    (ack,) = Recording(user_paths(str(cli.root))).append([verdict(1)])
    assert f'"seq":{ack.seq}' in cli("ledger", "show", "--json").stdout.replace(" ", "")


def test_nothing_but_verdicts_comes_in_this_way(tmp_path):
    with pytest.raises(LedgerError, match="only promotion"):
        Recording(user_paths(str(tmp_path))).append([Entry(kind=EntryKind.INTENT, time=Micros(1_790_000_000_000_000))])
