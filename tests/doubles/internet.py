"""A small internet for tests: two network namespaces joined by a veth pair, documentation addresses, real servers.

``python internet.py CONFIG.json`` makes a user namespace, the *uplink* namespace (where an egress worker runs) and the
*internet* namespace (where the servers of this file run). No packet can leave either. Every server answers on every
address, tells by name what it is, and writes what reached it as JSON lines into the configuration's ``contacts`` file.
"""

import contextlib
import ctypes
import http.server
import json
import os
import socket
import socketserver
import ssl
import struct
import subprocess
import sys
import threading
import time
import urllib.parse
from collections.abc import Iterator
from pathlib import Path

CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000
SERVED4 = ("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "10.0.0.0/8", "100.64.0.0/10", "169.254.0.0/16")
SERVED6 = ("2001:db8::/32", "fd00:ec2::/64", "fe80::/10")
WEB, TLS, SSH, ECHO, BANNER, SILENT, RESET, FLOOD, BULK = (80, 8080), (443, 8443), 22, 7, 2525, 2600, 2601, 2602, 2700
NAMESERVER = "192.0.2.53"
ZEROS = memoryview(bytes(1 << 20))


class Contacts:
    """Appends what reached a server, one JSON line each."""

    def __init__(self, path: str) -> None:
        self.file = open(path, "a", encoding="utf-8", buffering=1)
        self.lock = threading.Lock()

    def note(self, server: str, **what: object) -> None:
        with self.lock:
            self.file.write(json.dumps({"server": server, **what}) + "\n")


class Web(http.server.BaseHTTPRequestHandler):
    """Plain pages, redirects, downloads, packages and git, by path."""

    protocol_version = "HTTP/1.1"
    contacts: Contacts
    folder: str
    secure = False

    def log_message(self, *_words: object) -> None: ...

    def do_GET(self) -> None:
        self._serve()

    def do_POST(self) -> None:
        self._serve()

    do_HEAD = do_PUT = do_DELETE = do_TRACE = do_POST  # noqa: N815 - http.server looks for these names

    def _serve(self) -> None:
        length = int(self.headers.get("content-length") or 0)
        chunked = "chunked" in self.headers.get("transfer-encoding", "")
        if self.path.endswith("lazy"):
            body = b""  # a server that expects none, and takes it for the next request
        else:
            body = self._chunks() if chunked else self.rfile.read(length)
        host = self.headers.get("host", "")
        seen = {key.lower(): value for key, value in self.headers.items()}
        self.contacts.note(
            "https" if self.secure else "http",
            host=host,
            method=self.command,
            path=self.path,
            address=self.connection.getsockname()[0],
            headers=seen,
            body=body[:2000].decode("latin-1"),
        )
        url = urllib.parse.urlsplit(self.path)
        if url.path == "/redirect":
            self._answer(302, b"", location=urllib.parse.parse_qs(url.query)["to"][0])
        elif url.path.startswith("/bytes/"):
            self._answer(200, bytes(int(url.path.rpartition("/")[2])))
        elif url.path.startswith("/drip/"):
            self._drip(int(url.path.rpartition("/")[2]))
        elif url.path.startswith("/git/"):
            self._git(url, body)
        elif url.path.endswith("/echo"):
            self._answer(
                200, json.dumps(seen).encode(), content_type="application/json", allow_origin=seen.get("origin", "-")
            )
        elif url.path == "/v1/messages":
            usage = {"usage": {"input_tokens": 11, "output_tokens": 7}}
            self._answer(200, json.dumps(usage).encode(), content_type="application/json")
        elif url.path == "/websocket" and seen.get("upgrade") == "websocket":
            self._upgrade()
        elif (path := self._file(url.path)) is not None:
            self._answer(200, path.read_bytes(), content_type=_type(path))
        else:
            self._answer(200, f"hello from {host}\n".encode())

    def _chunks(self) -> bytes:
        found = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            found += self.rfile.read(size)
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass
        return found

    def _file(self, name: str) -> Path | None:
        host = (self.headers.get("host") or "").partition(":")[0]
        path = Path(self.folder, "files", host, urllib.parse.unquote(name).lstrip("/"))
        if path.is_dir():
            path /= "index.html"
        return path if path.is_file() else None

    def _answer(self, status: int, body: bytes, *, content_type: str = "text/plain", **headers: str) -> None:
        self.send_response(status)
        self.send_header("content-type", content_type)
        self.send_header("content-length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            with contextlib.suppress(OSError):
                self.wfile.write(body)

    def _drip(self, pieces: int) -> None:
        """A long answer in small pieces, four a second."""
        self.send_response(200)
        self.send_header("content-length", str(pieces * 5))
        self.end_headers()
        for _ in range(pieces):
            self.wfile.write(b"drip\n")
            time.sleep(0.25)

    def _upgrade(self) -> None:
        self.send_response(101)
        self.send_header("upgrade", "websocket")
        self.send_header("connection", "upgrade")
        self.end_headers()
        self.wfile.write(b"echo:" + self.connection.recv(1000))
        self.close_connection = True

    def _git(self, url: urllib.parse.SplitResult, body: bytes) -> None:
        env = {
            "PATH": "/usr/bin:/bin",
            "GIT_PROJECT_ROOT": f"{self.folder}/git",
            "GIT_HTTP_EXPORT_ALL": "1",
            "PATH_INFO": url.path.removeprefix("/git"),
            "QUERY_STRING": url.query,
            "REQUEST_METHOD": self.command,
            "CONTENT_TYPE": self.headers.get("content-type", ""),
            "HTTP_CONTENT_ENCODING": self.headers.get("content-encoding", ""),
            "REMOTE_USER": "someone",
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "safe.directory",
            "GIT_CONFIG_VALUE_0": "*",
        }
        done = subprocess.run(["git", "http-backend"], input=body, env=env, capture_output=True, check=False)
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n") if ": " in line)
        status = int(headers.pop("Status", "200").split()[0])
        self._answer(status, content, content_type=headers.get("Content-Type", "text/plain"))


def _type(path: Path) -> str:
    return {".html": "text/html", ".json": "application/json"}.get(path.suffix, "application/octet-stream")


class Server(socketserver.ThreadingMixIn, socketserver.TCPServer):
    """A dual-stack server whose threads die with it."""

    address_family = socket.AF_INET6
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 512
    context: ssl.SSLContext | None = None

    def server_bind(self) -> None:
        self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        super().server_bind()

    def finish_request(self, request: socket.socket, client: object) -> None:
        if self.context is not None:
            request.settimeout(20)
            request = self.context.wrap_socket(request, server_side=True)
        super().finish_request(request, client)

    def handle_error(self, *_words: object) -> None: ...


def raw(contacts: Contacts, port: int) -> None:
    """Servers that are not the web's: echo, banner first, silent, resetting, flooding, and an ssh greeting."""

    class Raw(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            sock = self.request
            sock.settimeout(30)
            if port != BULK:
                contacts.note("raw", port=port, address=sock.getsockname()[0])
            if port == BULK:
                while line := sock.makefile("rb").readline():
                    left = int(line)
                    while left:
                        left -= sock.send(ZEROS[:left])
            elif port == RESET:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            elif port == SILENT:
                sock.recv(1)
                time.sleep(30)
            elif port == FLOOD:
                with contextlib.suppress(OSError):
                    while True:
                        sock.sendall(os.urandom(65536))
            else:
                if port in {SSH, BANNER}:
                    sock.sendall(b"SSH-2.0-test\r\n" if port == SSH else b"220 ready\r\n")
                while data := sock.recv(65536):
                    contacts.note("raw", port=port, first=data[:40].decode("latin-1"))
                    sock.sendall(data)

    threading.Thread(target=Server(("::", port), Raw).serve_forever, daemon=True).start()


def name_server(contacts: Contacts, zone: dict[str, list[object]]) -> None:
    """A DNS server over the zone: addresses, ``cname:NAME``, ``slow``, ``truncate``, and lists that take turns."""
    turns: dict[str, int] = {}

    def answer(message: bytes, *, stream: bool) -> bytes | None:
        labels, at = [], 12
        while message[at]:
            labels.append(message[at + 1 : at + 1 + message[at]].decode("latin-1"))
            at += 1 + message[at]
        name, kind = ".".join(labels).lower(), struct.unpack_from(">H", message, at + 1)[0]
        contacts.note("dns", name=name, type=kind)
        question = message[12 : at + 5]
        found = zone.get(name)
        if found is None and (parent := "*." + name.partition(".")[2]) in zone:
            found = zone[parent]
        if found is None:
            return message[:2] + struct.pack(">HHHHH", 0x8183, 1, 0, 0, 0) + question
        if found and isinstance(found[0], list):
            turn = turns.get(f"{name}/{kind}", 0)
            turns[f"{name}/{kind}"] = turn + 1
            found = found[min(turn, len(found) - 1)]
        if "slow" in found:
            return None
        if "truncate" in found and not stream:
            return message[:2] + struct.pack(">HHHHH", 0x8380, 1, 0, 0, 0) + question
        records, owner = [], b"\xc0\x0c"
        for item in found:
            if item.startswith("cname:"):
                target = b"".join(bytes([len(p)]) + p.encode() for p in item[6:].split(".")) + b"\0"
                records.append(owner + struct.pack(">HHIH", 5, 1, 60, len(target)) + target)
                owner = target
                found = found + zone[item[6:]]
        for item in found:
            if ":" in item and not item.startswith("cname:") and kind == 28:
                records.append(owner + struct.pack(">HHIH", 28, 1, 1, 16) + socket.inet_pton(socket.AF_INET6, item))
            elif item[:1].isdigit() and ":" not in item and kind == 1:
                records.append(owner + struct.pack(">HHIH", 1, 1, 1, 4) + socket.inet_aton(item))
        return message[:2] + struct.pack(">HHHHH", 0x8180, 1, len(records), 0, 0) + question + b"".join(records)

    class Stream(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            message = self.rfile.read(int.from_bytes(self.rfile.read(2), "big"))
            reply = answer(message, stream=True)
            if reply:
                self.wfile.write(len(reply).to_bytes(2, "big") + reply)

    threading.Thread(target=Server(("::", 53), Stream).serve_forever, daemon=True).start()

    def datagrams() -> None:
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sock.bind((NAMESERVER, 53))
        while True:
            message, peer = sock.recvfrom(4096)
            with contextlib.suppress(IndexError, struct.error, OSError):
                reply = answer(message, stream=False)
                if reply:
                    sock.sendto(reply, peer)

    threading.Thread(target=datagrams, daemon=True).start()


def serve(config: dict[str, object]) -> None:
    """Everything of the internet namespace."""
    contacts = Contacts(str(config["contacts"]))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(str(config["certificate"]), str(config["key"]))

    def remember(_sock: ssl.SSLObject, name: str | None, _context: ssl.SSLContext) -> None:
        contacts.note("hello", name=name)

    context.sni_callback = remember
    for port in (*WEB, *TLS):
        secure = port in TLS
        handler = type("Handler", (Web,), {"contacts": contacts, "folder": config["folder"], "secure": secure})
        server = Server(("::", port), handler)
        server.context = context if secure else None
        threading.Thread(target=server.serve_forever, daemon=True).start()
    for port in (SSH, ECHO, BANNER, SILENT, RESET, FLOOD, BULK):
        raw(contacts, port)
    name_server(contacts, config["zone"])


def run(command: str) -> None:
    subprocess.run(["ip", *command.split()], check=True)


def unshare(flags: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(flags):
        raise OSError(ctypes.get_errno(), "unshare")


def main(path: str) -> None:
    """Parent: the uplink namespace. Child: the internet namespace and its servers. Both end with standard input."""
    config = json.loads(Path(path).read_text(encoding="utf-8"))
    uid, gid = os.getuid(), os.getgid()
    unshare(CLONE_NEWUSER | CLONE_NEWNET)
    for name, text in (("setgroups", "deny"), ("uid_map", f"0 {uid} 1"), ("gid_map", f"0 {gid} 1")):
        Path(f"/proc/self/{name}").write_text(text, encoding="ascii")
    to_child, to_parent = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        ctypes.CDLL(None).prctl(1, 9, 0, 0, 0)  # die with the parent
        unshare(CLONE_NEWNET)
        os.write(to_parent[1], b"1")
        os.read(to_child[0], 1)
        for command in ("link set lo up", "addr add 192.168.77.2/30 dev net0", "link set net0 up"):
            run(command)
        run("-6 addr add fd00:77::2/126 dev net0 nodad")
        for network in SERVED4:
            run(f"route add local {network} dev lo")
        for network in SERVED6:
            run(f"-6 route add local {network} dev lo")
        serve(config)
        os.write(to_parent[1], b"2")
        while True:
            time.sleep(3600)
    os.read(to_parent[0], 1)
    run(f"link add up0 type veth peer name net0 netns {child}")
    for command in ("link set lo up", "addr add 192.168.77.1/30 dev up0", "link set up0 up"):
        run(command)
    run("-6 addr add fd00:77::1/126 dev up0 nodad")
    run("addr add 203.0.113.200/32 dev lo")
    # Thousands of short connections to one address would run out of ports otherwise.
    Path("/proc/sys/net/ipv4/tcp_tw_reuse").write_text("1", encoding="ascii")
    Path("/proc/sys/net/ipv4/ip_local_port_range").write_text("1024 65000", encoding="ascii")
    os.write(to_child[1], b"1")
    os.read(to_parent[0], 1)
    run("route add default via 192.168.77.2")
    run("-6 route add default via fd00:77::2")
    # Services of the machine the worker runs on: reached only if the floor fails, or by a grant.
    contacts = Contacts(config["contacts"])
    handler = type("Own", (Web,), {"contacts": contacts, "folder": config["folder"]})
    threading.Thread(target=Server(("::", 8000), handler).serve_forever, daemon=True).start()
    print("ready", child, flush=True)
    sys.stdin.read()
    os.kill(child, 9)
    os.waitpid(child, 0)


class Internet:
    """The test's side: starts the namespaces, and tells what reached their servers."""

    def __init__(self, folder: Path, zone: dict[str, list[object]], certificate: Path, key: Path) -> None:
        """``folder`` holds ``files/HOST/…`` and ``git/…`` to be served."""
        self.folder = folder
        self._contacts = folder / "contacts.jsonl"
        config = {
            "contacts": str(self._contacts),
            "folder": str(folder),
            "zone": zone,
            "certificate": str(certificate),
            "key": str(key),
        }
        (folder / "internet.json").write_text(json.dumps(config), encoding="utf-8")
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-S", os.path.abspath(__file__), str(folder / "internet.json")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        ready = self.process.stdout.readline().split()
        if ready[:1] != [b"ready"]:
            raise RuntimeError("the test internet did not start")
        self._servers = int(ready[1])

    @property
    def uplink(self) -> tuple[str, ...]:
        """The command prefix that enters the uplink namespace."""
        return self._enter(self.process.pid)

    @property
    def inside(self) -> tuple[str, ...]:
        """The command prefix that enters the namespace of the servers."""
        return self._enter(self._servers)

    def _enter(self, pid: int) -> tuple[str, ...]:
        return ("nsenter", "-t", str(pid), "-U", "-n", "--preserve-credentials", "--")

    def mark(self) -> int:
        """A point in the contacts to count from."""
        return self._contacts.stat().st_size

    def contacts(self, since: int = 0) -> list[dict[str, object]]:
        """What reached the servers after a mark."""
        with self._contacts.open("rb") as file:
            file.seek(since)
            return [json.loads(line) for line in file.read().splitlines()]

    def close(self) -> None:
        """End both namespaces."""
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait(timeout=60)


@contextlib.contextmanager
def internet(folder: Path, zone: dict[str, list[object]], certificate: Path, key: Path) -> Iterator[Internet]:
    """An Internet that is closed at the end."""
    made = Internet(folder, zone, certificate, key)
    try:
        yield made
    finally:
        made.close()


if __name__ == "__main__":
    main(sys.argv[1])
