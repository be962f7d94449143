"""The record of a box keeps what matters, whatever else the box does before, between and after."""

import os

import pytest

from ringfence.sandbox.inner.watch import MANY_BEYOND, MANY_CHANGES, MANY_OTHERS, MANY_PROGRAMS, MANY_SPELLINGS, Record

FLOODS = {
    "exec": (MANY_PROGRAMS, "/usr/bin/true {}"),
    "egress": (MANY_OTHERS, "tcp 192.0.2.1 port {}"),
    "floor": (MANY_OTHERS, "tcp 169.254.169.254 port {}"),
    "hidden-path": (MANY_OTHERS, "/home/someone/{}"),
    "refused-syscall": (MANY_SPELLINGS, "unshare {}"),
}
AFTERWARDS = """
n=0; while [ $n -lt 1100 ]; do /usr/bin/true $n; n=$((n + 1)); done
cat /etc/shadow ~/.aws/credentials; mount -t tmpfs none /mnt; chmod 777 /etc
python3 -c 'import socket; socket.create_connection(("169.254.169.254", 80), 5)'
"""


@pytest.mark.parametrize("flood", sorted(FLOODS))
def test_no_flood_of_one_sort_takes_the_place_of_another(flood):
    record = Record()
    room, words = FLOODS[flood]
    for number in range(room + 10):
        record.add(flood, words.format(number))
    beyond = record.counts.pop((flood, "more below /home/someone"), 0)
    assert (len(record.counts), beyond + record.dropped) == (room, 10)
    assert (beyond == 10) is (flood == "hidden-path")
    others = {("decoy", "key"), ("limit", "processes, 64"), *((kind, "one") for kind in FLOODS if kind != flood)}
    assert all(record.add(*seen) for seen in others)
    assert record.add("refused-syscall", "mount")
    assert beyond + record.dropped == 10


def test_beyond_the_bound_a_path_is_told_by_its_folder_and_folders_are_bounded_too():
    record = Record()
    for number in range(MANY_CHANGES):
        record.add("refused-write", f"remove /usr/{number}")
    assert not record.add("refused-write", "open for writing /home/me/.ssh/authorized_keys")
    record.add("hidden-write", "rename /w/a/b/.env to '/srv/x y'", 2)
    record.add("refused-write", "chmod an open file")
    later = dict(list(record.counts.items())[MANY_CHANGES:])
    assert later == {
        ("refused-write", "more below /home/me/.ssh"): 1,
        ("hidden-write", "more below /w/a/b and /srv"): 2,
    }
    assert record.dropped == 1
    for number in range(MANY_BEYOND):
        record.add("refused-write", f"remove /{number}/x")
    record.add("refused-write", "remove /home/me/.ssh/id")
    assert len(record.counts) == MANY_CHANGES + MANY_BEYOND
    assert record.counts["refused-write", "more below /home/me/.ssh"] == 2
    assert record.dropped == 3


@pytest.mark.needs_userns
def test_what_follows_on_a_flood_of_programs_stands_in_the_record(bench):
    ran = bench.sh(AFTERWARDS)
    seen = {(o.kind, o.detail) for o in ran.execution.observations if o.kind != "exec"}
    home = bench.plan("true").home
    assert seen >= {
        *([("hidden-path", "/etc/shadow")] if os.access("/dev/fuse", os.W_OK) else []),
        ("decoy", f"{home}/.aws/credentials"),
        ("refused-syscall", "mount"),
        ("refused-write", "chmod /etc"),
        ("floor", "tcp 169.254.169.254 port 80"),
    }
    assert ran.execution.observations_dropped > 100
