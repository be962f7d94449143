"""The socket protocol: whole frames, descriptors, and a clear fault for anything broken."""

import contextlib
import json
import os
import resource
import socket
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringfence.supervisor import protocol, requests, server


@pytest.fixture
def pair():
    left, right = socket.socketpair()
    with left, right:
        left.settimeout(5)
        right.settimeout(5)
        yield left, right


def test_a_message_arrives_whole(pair):
    left, right = pair
    protocol.send(left, {"verb": "status", "text": "é\u2028" * 10})
    assert protocol.Reader(right).receive() == {"verb": "status", "text": "é\u2028" * 10}


def test_a_command_of_a_megabyte_arrives(pair):
    left, right = pair
    import threading

    line = "\x01" * (1 << 20)
    thread = threading.Thread(target=protocol.send, args=(left, {"line": line}))
    thread.start()
    assert protocol.Reader(right).receive() == {"line": line}
    thread.join()


def test_descriptors_come_along_and_are_closed_when_nobody_takes_them(pair):
    left, right = pair
    read, write = os.pipe()
    protocol.send(left, {"a": 1}, (write,))
    os.close(write)
    reader = protocol.Reader(right)
    assert reader.receive() == {"a": 1}
    assert len(reader.descriptors) == 1
    reader.close_descriptors()
    assert os.read(read, 1) == b""
    os.close(read)


def test_descriptors_are_sent_while_other_programs_of_this_user_have_many_on_their_way(pair):
    """Counted for the whole user, and measured by the sender's own limit. Root is not measured, so the child is not root."""
    left, right = pair
    child = os.fork()
    if child == 0:
        try:
            if os.geteuid() == 0:
                os.setresuid(*[1_900_000_001] * 3)
            resource.setrlimit(resource.RLIMIT_NOFILE, (64, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
            hog, _other = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
            with contextlib.suppress(OSError):
                while True:
                    socket.send_fds(hog, [b"x"], [0] * 200)
            protocol.send(left, {"a": 1}, (0,))
            os._exit(resource.getrlimit(resource.RLIMIT_NOFILE)[0] != 64)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    reader = protocol.Reader(right)
    assert reader.receive() == {"a": 1}
    assert len(reader.descriptors) == 1
    reader.close_descriptors()


def test_too_many_descriptors_are_a_fault(pair):
    left, right = pair
    null = os.open("/dev/null", os.O_RDONLY)
    protocol.send(left, {"a": 1}, (null,) * 5)
    os.close(null)
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(protocol.ProtocolError):
        protocol.Reader(right).receive()
    assert len(os.listdir("/proc/self/fd")) == before


def test_the_end_of_the_stream_is_none_and_a_cut_frame_is_a_fault(pair):
    left, right = pair
    left.sendall(struct.pack(">I", 10) + b"{}")
    left.close()
    with pytest.raises(protocol.ProtocolError):
        protocol.Reader(right).receive()


def test_a_huge_claim_is_refused_before_anything_is_read(pair):
    left, right = pair
    left.sendall(struct.pack(">I", 0xFFFFFFFF))
    with pytest.raises(protocol.ProtocolError, match="claims"):
        protocol.Reader(right).receive()


@given(st.binary(max_size=200))
def test_broken_bytes_are_a_protocol_fault_and_nothing_else(body):
    try:
        value = protocol.decode(body)
    except protocol.ProtocolError:
        value = {}
    assert isinstance(value, dict)


@given(st.binary(max_size=200))
def test_broken_requests_are_a_protocol_fault_and_nothing_else(body):
    with pytest.raises(protocol.ProtocolError):
        requests.parse(body)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(), lambda v: st.lists(v) | st.dictionaries(st.text(), v)
    )
)
def test_json_that_is_no_request_is_a_protocol_fault(value):
    body = json.dumps({"verb": "run", "version": protocol.VERSION, "cwd": "/", "surprise": value}).encode()
    with pytest.raises(protocol.ProtocolError):
        requests.parse(body)


def test_every_verb_parses_with_what_it_needs():
    good = {
        "status": {},
        "stop": {},
        "decide": {"cwd": "/", "line": "ls"},
        "run": {"cwd": "/", "argv": ["ls"]},
        "trust": {"root": "/r", "digest": "0"},
        "mission": {"action": "list"},
        "ledger": {"action": "checkpoint"},
        "smoke": {},
        "teardown": {},
        "promotion": {"body": {}},
    }
    for verb, fields in good.items():
        parsed = requests.parse(json.dumps({"verb": verb, "version": protocol.VERSION, **fields}).encode())
        assert type(parsed).__struct_config__.tag == verb


def test_deep_nesting_is_a_fault():
    with pytest.raises(protocol.ProtocolError):
        protocol.decode(b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}")


def test_the_other_side_is_who_the_kernel_says(pair):
    assert protocol.peer(pair[0]) == (os.getpid(), os.getuid(), os.getgid())


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_an_answer_is_read_as_it_was_meant_whatever_is_in_it(value):
    assert protocol.decode(server._encoded({"value": value})) == {"value": value}


def test_names_that_are_not_utf_8_and_large_numbers_are_answered_too():
    value = {"path": os.fsdecode(b"\xff"), "count": 1 << 70}
    assert protocol.decode(server._encoded(value)) == value


@pytest.mark.parametrize("version", [0, 1, protocol.VERSION + 1, 10**30])
def test_a_request_of_another_version_is_told_so_whatever_else_is_in_it(version):
    asked = {"verb": "a-verb-to-come", "version": version, "more": [1]}
    with pytest.raises(protocol.ProtocolError) as refused:
        requests.parse(json.dumps(asked).encode())
    assert refused.value.code == "other-version"
    assert "ringfence stop" in refused.value.remedy


def test_stop_is_understood_from_any_version():
    asked = {"verb": "stop", "version": protocol.VERSION + 7, "when": "now"}
    assert isinstance(requests.parse(json.dumps(asked).encode()), requests.Stop)


@pytest.mark.parametrize(
    ("name", "value"),
    [("rows", 65_536), ("columns", -1), ("umask", 0o1000), ("umask", -1), ("rows", 1.5), ("umask", None)],
)
def test_numbers_that_the_kernel_does_not_take_are_no_request(name, value):
    asked = {"verb": "run", "version": protocol.VERSION, "cwd": "/", "argv": ["ls"], name: value}
    with pytest.raises(protocol.ProtocolError) as refused:
        requests.parse(json.dumps(asked).encode())
    assert name in refused.value.what


@pytest.mark.parametrize("said", [{"signal": 65}, {"signal": -1}, {"rows": 70_000}, {"columns": -5}, {"more": 1}])
def test_what_is_no_signal_or_size_is_not_passed_on(said):
    with pytest.raises(protocol.ProtocolError):
        requests.parse_signal(json.dumps(said).encode())
