"""The box's name server, asked by hand: what it answers, what it does not, and that nothing is ever asked upstream."""

import struct

import pytest

from ringfence.model.tier import Tier

ASK = """
import socket, struct, sys
name, kind, over = sys.argv[1], int(sys.argv[2]), sys.argv[3]
message = struct.pack(">HHHHHH", 7, 0x0100, 1, 0, 0, 0)
message += b"".join(bytes([len(p)]) + p.encode() for p in name.split(".")) + b"\\0" + struct.pack(">HH", kind, 1)
if over == "udp":
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(30)
    s.sendto(message, ("127.0.0.1", 53)); reply = s.recv(4096)
else:
    s = socket.create_connection(("127.0.0.1", 53), 30)
    s.sendall(struct.pack(">H", len(message)) + message); reply = s.recv(4096)[2:]
print(reply.hex())
"""
A, AAAA = 1, 28


@pytest.fixture(scope="module")
def rig(rigs, kit):
    return rigs(kit.Rules(allow=("example.org:80", "*.wild.example.org:443")))


def ask(rig, name, kind=A, over="udp"):
    done = rig.box.python(ASK, name, str(kind), over)
    assert done.returncode == 0, done.stderr
    reply = bytes.fromhex(done.stdout.strip())
    flags, _questions, answers = struct.unpack_from(">HHH", reply, 2)
    return flags & 15, answers, reply


@pytest.mark.parametrize("over", ["udp", "tcp"])
def test_every_name_gets_one_synthetic_pair(rig, over):
    first, second = ask(rig, "one.example.net", A, over), ask(rig, "ONE.example.NET", A, over)
    assert first[0] == 0
    assert first[2][-4:] == second[2][-4:]
    assert first[2][-4:-2] in {b"\xc6\x12", b"\xc6\x13"}
    six = ask(rig, "one.example.net", AAAA, over)[2][-16:]
    assert six.startswith(bytes.fromhex("fd726e666365"))
    assert six[-2:] == first[2][-2:]
    assert ask(rig, "two.example.net")[2][-4:] != first[2][-4:]


@pytest.mark.parametrize("kind", [2, 5, 6, 12, 15, 16, 33, 35, 43, 48, 64, 65, 255])
def test_other_types_have_no_data_and_are_noted(rig, kind):
    code, answers, _ = ask(rig, f"type{kind}.example.org", kind)
    assert (code, answers) == (0, 0)
    assert rig.log(host=f"type{kind}.example.org", protocol="dns", rule="egress/no-data")


def test_a_zone_transfer_is_refused(rig):
    assert ask(rig, "example.org", 252, "tcp")[0] == 5
    assert rig.log(rule="egress/dns", tier=Tier.DENY)


def test_localhost_stays_in_the_box(rig):
    assert ask(rig, "localhost")[2][-4:] == b"\x7f\0\0\1"
    assert ask(rig, "db.localhost")[2][-4:] == b"\x7f\0\0\1"


def test_a_number_is_no_name(rig):
    assert ask(rig, "2852039166")[:2] == (3, 0)
    assert rig.log(host="169.254.169.254", rule="egress/dns", tier=Tier.DENY)


def test_a_name_that_is_no_hosts_is_refused_and_told(rig):
    mark = rig.world.internet.mark()
    assert ask(rig, "a+b/c=.example.org")[:2] == (3, 0)
    assert rig.log(host="a+b/c=.example.org", rule="egress/dns", tier=Tier.DENY)
    assert not rig.world.internet.contacts(mark)


def test_a_tunnel_gets_synthetic_answers_and_nothing_leaves(rig):
    mark = rig.world.internet.mark()
    for number in range(20):
        assert ask(rig, f"{'q7x2k9' * 9}{number:03}.tunnel.example.net")[1] == 1
    assert not rig.world.internet.contacts(mark)
    assert rig.log(protocol="dns", rule="egress/odd-labels", flags=("odd-labels",))


def test_the_pool_of_names_is_bounded(world, kit):
    rig = world.rig(kit.Rules())
    try:
        code = """
import socket, struct
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(30)
codes = {}
for i in range(20100):
    label = f"n{i}".encode()
    s.sendto(struct.pack(">HHHHHH", 7, 0x0100, 1, 0, 0, 0) + bytes([len(label)]) + label + b"\\4test\\0\\0\\1\\0\\1", ("127.0.0.1", 53))
    code = s.recv(512)[3] & 15
    codes[code] = codes.get(code, 0) + 1
print(codes)
"""
        assert rig.box.python(code, timeout=300).stdout.strip() == "{0: 20000, 5: 100}"
        assert rig.log(rule="egress/dns", tier=Tier.DENY)
    finally:
        rig.close()


def test_garbage_is_answered_format_error(rig):
    code = "import socket,os\ns=socket.socket(socket.AF_INET,socket.SOCK_DGRAM); s.settimeout(2)\nfor n in (1,5,12,40):\n s.sendto(b'\\x12\\x34'[:n]+os.urandom(n),('127.0.0.1',53)); r=s.recv(99); print(r[3]&15 if len(r)>3 else r)"
    assert set(rig.box.python(code).stdout.split()) <= {"1"}
    assert rig.log(host="(unreadable)", rule="egress/dns")
