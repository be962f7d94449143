"""Services across the fence: a port of the host seen in the box, a port of the box seen on the host, both logged."""

import contextlib
import http.server
import socket
import subprocess
import sys
import threading
import time

import pytest

from ringfence.model.tier import Tier

SERVER = """
import http.server, sys
class H(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(b"dev server " + self.path.encode())
    def log_message(self, *a): pass
print("up", flush=True)
http.server.HTTPServer(("127.0.0.1", 3000), H).serve_forever()
"""


def test_a_dev_server_of_the_box_is_seen_from_the_host_more_often_than_there_are_sockets(world, kit):
    rig = world.rig(kit.Rules(), {"inbound": ((0, 3000),)}, inbound=2)
    server = subprocess.Popen(
        [*rig.box.prefix, sys.executable, "-I", "-S", "-c", SERVER], stdout=subprocess.PIPE, text=True
    )
    try:
        assert server.stdout.readline() == "up\n"
        time.sleep(0.2)
        # The listener of a grant is on the host's own loopback; the worker's dials are inside the box.
        port = rig.worker.inbound_ports[3000]
        for number in range(5):
            with socket.create_connection(("127.0.0.1", port), 5) as sock:
                sock.sendall(b"GET /%d HTTP/1.0\r\n\r\n" % number)
                got = b""
                with contextlib.suppress(OSError):
                    while piece := sock.recv(4096):
                        got += piece
            assert b"dev server /%d" % number in got
            time.sleep(0.05)
        found = rig.log(entry="inbound", tier=Tier.ALLOW, rule="grant/inbound")
        assert found
        assert found[0].sent > 0
    finally:
        server.kill()
        server.wait()
        server.stdout.close()
        rig.close()


def test_a_port_of_the_box_without_a_server_is_refused_at_once(world, kit):
    rig = world.rig(kit.Rules(), {"inbound": ((0, 3001),)}, inbound=1)
    try:
        for _ in range(3):
            with (
                contextlib.suppress(ConnectionResetError),
                socket.create_connection(("127.0.0.1", rig.worker.inbound_ports[3001]), 5) as sock,
            ):
                assert sock.recv(10) == b""
            time.sleep(0.05)
        assert rig.log(entry="inbound", outcome="unreachable")
    finally:
        rig.close()


def test_a_service_of_the_host_is_seen_in_the_box_on_the_granted_port_alone(world, kit):
    rig = world.rig(kit.Rules(), {"host_ports": ((5432, "127.0.0.1", 8000),)}, host_ports=[5432])
    try:
        done = rig.curl("http://127.0.0.1:5432/db")
        assert "hello from 127.0.0.1:5432" in done.stdout
        assert rig.log(entry="host-port", port=5432, tier=Tier.ALLOW, rule="grant/host-port")
        assert rig.curl("http://127.0.0.1:8000/").returncode == 7
        assert rig.curl("-x", "http://127.0.0.1:3128", "-p", "http://127.0.0.1:8000/").returncode != 0
    finally:
        rig.close()


def test_without_grants_there_are_none(world, kit):
    rig = world.rig(kit.Rules())
    try:
        assert rig.worker.inbound_ports == {}
        assert rig.curl("http://127.0.0.1:5432/db").returncode == 7
    finally:
        rig.close()


@pytest.fixture(autouse=True)
def _no_server_left():
    yield
    assert threading.active_count() < 30
    assert http.server
