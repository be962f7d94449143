"""A box's network: closed and logged, or captured with every socket handed out."""

import os
import socket
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringfence.model.errors import BoxError
from ringfence.sandbox.inner import nftables
from ringfence.sandbox.inner.refusals import describe, packets

CLIENT = """
import socket, sys
for family, address in ((2, ('192.0.2.7', 8123)), (10, ('2001:db8::7', 443))):
    s = socket.socket(family); s.settimeout(3)
    try:
        s.connect(address); s.sendall(b'hello'); print(s.recv(20).decode())
    except OSError as fault: print(type(fault).__name__, fault.errno)
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
try: s.sendto(b'x', ('192.0.2.9', 5353)); print('sent')
except OSError as fault: print(fault.errno)
"""


@pytest.mark.needs_userns
def test_without_a_network_every_try_fails_at_once_and_is_recorded(bench):
    line = (
        "/usr/bin/python3 -c \"import socket; s=socket.socket(); s.settimeout(60); print(s.connect_ex(('169.254.169.254',80)))\";"
        "getent hosts secrets.example.org; /usr/bin/python3 -c \"import socket; s=socket.socket(10); print(s.connect_ex(('2001:db8::1',25)))\""
    )
    ran = bench.sh(line)
    assert ran.execution.duration < 50_000_000
    seen = {(o.kind, o.detail): o.violation for o in ran.execution.observations if o.kind in {"egress", "floor"}}
    assert seen["floor", "tcp 169.254.169.254 port 80"] is True
    assert seen["egress", "name secrets.example.org"] is False
    assert seen["egress", "tcp 2001:db8::1 port 25"] is False


@pytest.mark.needs_userns
def test_captured_connections_arrive_with_their_destination(bench):
    kept = {}

    def keep(sockets):
        kept.update({name: os.dup(fd) for name, fd in sockets.items()})

    plan = bench.plan("/usr/bin/python3", "-c", CLIENT, network="captured", endpoints=(("model", 9000),), inbound=True)
    running = bench.begin(plan, on_network=keep)
    assert {
        "tcp4",
        "tcp6",
        "dns-udp",
        "dns-tcp",
        "http-proxy",
        "socks",
        "nflog",
        "endpoint:model",
        "inbound:15",
    } <= set(kept)
    try:
        for name, level, option, size in (("tcp4", socket.SOL_IP, 80, 16), ("tcp6", socket.IPPROTO_IPV6, 80, 28)):
            with socket.socket(fileno=os.dup(kept[name])) as listener:
                listener.settimeout(60)
                client, _peer = listener.accept()
                raw = client.getsockopt(level, option, size)
                assert client.recv(10) == b"hello"
                client.sendall(
                    f"{struct.unpack_from('>H', raw, 2)[0]} {raw[4:8].hex() if size == 16 else raw[8:24].hex()}".encode()
                )
                client.close()
        lines = running.finish().out.decode().split("\n")
    finally:
        for descriptor in kept.values():
            os.close(descriptor)
    assert lines[0] == "8123 c0000207"
    assert lines[1].startswith("443 20010db8")
    assert lines[2] == "1"


@pytest.mark.needs_userns
def test_nothing_runs_when_nobody_answers_the_network(bench):
    with pytest.raises(BoxError, match="somebody who answers"):
        bench.begin(bench.plan("true", network="captured"))

    def refuse(_sockets):
        raise BoxError("egress-worker-failed", "no worker")

    with pytest.raises(BoxError, match="no worker"):
        bench.begin(bench.plan("touch", "ran", network="captured"), on_network=refuse)
    assert not os.path.exists(f"{bench.layer.upper}/ran")


@pytest.mark.needs_userns
def test_the_box_cannot_change_its_rules(bench):
    ran = bench.sh("/usr/sbin/nft flush ruleset; ip route add 192.0.2.0/24 dev lo; ip link set lo down; echo $?")
    assert ran.out.strip() != b"0"
    assert any(o.detail.startswith("socket netlink") for o in ran.execution.observations)


def test_the_batch_is_whole():
    data, answers = nftables.batch(4000)
    assert answers == 1 + 1 + 3 + 1 + 7
    position = count = 0
    while position < len(data):
        length = struct.unpack_from("=I", data, position)[0]
        position += (length + 3) & ~3
        count += 1
    assert (position, count) == (len(data), answers + 2)


@given(st.binary(max_size=200))
def test_no_packet_makes_the_reader_fail(data):
    describe(data, b"rf-name")
    describe(data, b"rf-udp")
    packets(data)


@pytest.mark.needs_userns
def test_the_owner_of_a_connection_is_found(bench):
    script = (
        "import socket, time\n"
        "server = socket.create_server(('127.0.0.1', 8081)); c = socket.create_connection(('127.0.0.1', 8081))\n"
        "print(c.getsockname()[1], flush=True); time.sleep(60)\n"
    )
    running = bench.begin(bench.plan("/bin/sh", "-c", f'/usr/bin/python3 -c "{script}"; true'))
    import time

    while b"\n" not in running.parts[0]:
        time.sleep(0.01)
    port = int(running.parts[0])
    found = running.box.owners(("127.0.0.1", port), ("127.0.0.1", 8081))
    assert [os.path.basename(owner.program)[:7] for owner in found] == ["python3"]
    assert running.box.owners(("127.0.0.1", 1), ("127.0.0.1", 8081)) == ()
    running.box.kill("seen")
    running.finish()


@pytest.mark.needs_userns
def test_tries_on_loopback_where_nobody_listens_are_recorded(bench):
    script = (
        "import socket\n"
        "for family, host in ((2, '127.0.0.1'), (10, '::1')):\n"
        "    print(socket.socket(family).connect_ex((host, 5999)))\n"
        "    s = socket.socket(family, socket.SOCK_DGRAM); s.sendto(b'x', (host, 5998))\n"
        "server = socket.create_server(('127.0.0.1', 0)); c = socket.create_connection(server.getsockname()); c.close()\n"
    )
    ran = bench.run("/usr/bin/python3", "-c", script)
    seen = {o.detail for o in ran.execution.observations if o.kind == "egress"}
    assert seen == {f"{p}, nobody listens" for p in (
        "tcp 127.0.0.1 port 5999", "tcp ::1 port 5999", "udp 127.0.0.1 port 5998", "udp ::1 port 5998")}  # fmt: skip


FLOOD = """
import os, socket
def shoot(first):
    end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    for n in range(20_000):
        try: end.sendto(b"x", ("198.51.%d.%d" % (first, n % 250), 1 + n % 60_000))
        except OSError: pass
for first in range(4):
    if os.fork() == 0:
        shoot(first)
        os._exit(0)
for n in range(20):
    end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try: end.sendto(b"x", ("169.254.169.254", 80 + n))
    except OSError: pass
while True:
    try: os.wait()
    except ChildProcessError: break
"""


@pytest.mark.needs_userns
def test_no_flood_hides_a_try_on_metadata_and_all_is_counted(bench):
    ran = bench.run("/usr/bin/python3", "-c", FLOOD)
    assert ran.execution.exit == 0, ran.err
    seen = {(o.kind, o.detail): o.count for o in ran.execution.observations if o.kind in {"egress", "floor"}}
    assert {detail for kind, detail in seen if kind == "floor"} == {
        f"udp 169.254.169.254 port {80 + n}" for n in range(20)
    }
    counted = sum(seen.values()) + ran.execution.observations_dropped
    assert counted <= 80_020
    assert counted > 79_000 or ("egress", "more than could be logged") in seen


@pytest.mark.needs_userns
def test_what_waits_in_the_log_when_the_box_ends_is_still_read(bench):
    ran = bench.run("/usr/bin/python3", "-c", """
import os, socket
end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for n in range(150):
    try: end.sendto(b"x", ("192.0.2.1", 1 + n))
    except OSError: pass
os.kill(1, 9)
""")  # fmt: skip
    seen = [o.count for o in ran.execution.observations if o.kind == "egress"]
    assert sum(seen) == 150


@pytest.mark.needs_userns
def test_a_refusal_is_heard_at_once_by_either_address_family(bench):
    ran = bench.run("/usr/bin/python3", "-c", """
import socket
for family, address in ((2, "192.0.2.1"), (10, "2001:db8::1"), (10, "fd00:ec2::254")):
    end = socket.socket(family)
    end.connect_ex((address, 25))
""")  # fmt: skip
    seen = {(o.kind, o.detail): o.count for o in ran.execution.observations if o.kind in {"egress", "floor"}}
    assert seen == {
        ("egress", "tcp 192.0.2.1 port 25"): 1,
        ("egress", "tcp 2001:db8::1 port 25"): 1,
        ("floor", "tcp fd00:ec2::254 port 25"): 1,
    }
