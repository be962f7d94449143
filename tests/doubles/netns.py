"""A box's network namespace for tests, prepared as docs/decisions/0070-egress-descriptors.md says.

Run as a program (``python netns.py FD OPTIONS-JSON``) it makes user, network and mount namespaces, prepares them, sends
the descriptors over the Unix socket FD and waits until that socket closes. ``Box`` is the test's side of it.
Standard library only, works for root and for an ordinary user; needs ``ip``, ``nft`` and ``nsenter``.
"""

import array
import contextlib
import ctypes
import json
import os
import socket
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence

CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWNET = 0x00020000, 0x10000000, 0x40000000
ANY_PORTS = (22, 80, 443, 8080, 8443)
NFLOG_GROUP = 3
SYSCTLS = {
    "net/ipv4/ip_unprivileged_port_start": "0",
    "net/ipv4/tcp_tw_reuse": "1",  # many short connections to one address would run out of ports otherwise
    "net/ipv4/icmp_echo_ignore_all": "1",
    "net/ipv6/icmp/echo_ignore_all": "1",
}
RULES = """
table inet ringfence {{
  chain capture {{ type nat hook output priority -100; policy accept;
    ip daddr 127.0.0.0/8 return
    ip6 daddr ::1 return
    meta l4proto tcp redirect to :{port}
  }}
  chain fence {{ type filter hook output priority 0; policy drop;
    ct state established,related accept
    ip daddr 127.0.0.0/8 accept
    ip6 daddr ::1 accept
    meta l4proto udp log prefix "rf-udp" group {group} reject with icmpx type admin-prohibited
    meta l4proto {{ icmp, ipv6-icmp }} log prefix "rf-icmp" group {group} reject with icmpx type admin-prohibited
    log prefix "rf-other" group {group} reject with icmpx type admin-prohibited
  }}
}}
"""


def enter_namespaces(flags: int) -> None:
    """New namespaces owned by the caller, who is uid 0 inside."""
    uid, gid = os.getuid(), os.getgid()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(flags):
        raise OSError(ctypes.get_errno(), "unshare")
    for name, text in (("setgroups", "deny"), ("uid_map", f"0 {uid} 1"), ("gid_map", f"0 {gid} 1")):
        with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
            file.write(text)


def prepare(options: dict[str, object]) -> dict[str, socket.socket]:
    """Steps of the decision page, in its order; returns the sockets by name."""
    for command in ("link set lo up", "route add local default dev lo", "-6 route add local default dev lo"):
        subprocess.run(["ip", *command.split()], check=True)
    for name, value in SYSCTLS.items():
        with open(f"/proc/sys/{name}", "w", encoding="ascii") as file:
            file.write(value)
    sockets: dict[str, socket.socket] = {}
    if options.get("nft", True):
        sockets["tcp4"] = listener(socket.AF_INET, ("127.0.0.1", 0))
        port = sockets["tcp4"].getsockname()[1]
        sockets["tcp6"] = listener(socket.AF_INET6, ("::1", port))
        sockets["nflog"] = nflog()
        subprocess.run(["nft", "-f", "-"], input=RULES.format(port=port, group=NFLOG_GROUP).encode(), check=True)
    else:
        for port in ANY_PORTS:
            sockets[f"any4:{port}"] = listener(socket.AF_INET, ("0.0.0.0", port))
            sockets[f"any6:{port}"] = listener(socket.AF_INET6, ("::", port))
    sockets["dns-udp"] = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sockets["dns-udp"].bind(("127.0.0.1", 53))
    for name, port in (("dns-tcp", 53), ("http-proxy", 3128), ("socks", 1080)):
        sockets[name] = listener(socket.AF_INET, ("127.0.0.1", port))
    for name, port in dict(options.get("endpoints", {})).items():
        sockets[f"endpoint:{name}"] = listener(socket.AF_INET, ("127.0.0.1", port))
    for port in options.get("host_ports", ()):
        sockets[f"host-port:{port}"] = listener(socket.AF_INET, ("127.0.0.1", port))
    for number in range(int(options.get("inbound", 0))):
        sockets[f"inbound:{number}"] = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    return sockets


def listener(family: int, address: tuple[str, int]) -> socket.socket:
    """A listening stream socket with the options of the decision page."""
    made = socket.socket(family, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if family == socket.AF_INET6:
        made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    made.bind(address)
    made.listen(4096)
    return made


def nflog() -> socket.socket:
    """A netlink socket that receives what the fence logs, bound by the namespace's owner."""
    made = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 12)
    made.bind((0, 0))
    settings = (
        (1, struct.pack("=B", 1)),  # bind the group
        (2, struct.pack(">IBx", 128, 2)),  # copy 128 bytes of each packet
        (5, struct.pack(">I", 1)),  # queue threshold: every packet at once
    )
    for kind, value in settings:
        attribute = struct.pack("=HH", 4 + len(value), kind) + value
        attribute += b"\0" * (-len(attribute) % 4)
        body = struct.pack("=BB", 0, 0) + struct.pack(">H", NFLOG_GROUP) + attribute
        made.send(struct.pack("=IHHII", 16 + len(body), (4 << 8) | 1, 1 | 4, kind, 0) + body)
        answer = made.recv(4096)
        if (code := struct.unpack_from("=i", answer, 16)[0]) != 0:
            raise OSError(-code, f"nflog setting {kind}")
    return made


def own_resolver(folder: str) -> None:
    """The box's own resolv.conf, hosts and nsswitch over the host's, in a private mount namespace."""
    libc = ctypes.CDLL(None, use_errno=True)
    files = {
        "resolv.conf": "nameserver 127.0.0.1\noptions timeout:2 attempts:2\n",
        "hosts": "127.0.0.1 localhost\n::1 localhost\n",
        "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
    }
    libc.mount(b"none", b"/", None, 0x44000, None)  # MS_REC | MS_PRIVATE
    for name, text in files.items():
        path = os.path.join(folder, name)
        with open(path, "w", encoding="ascii") as file:
            file.write(text)
        target = os.path.realpath(f"/etc/{name}")
        if os.path.exists(target) and libc.mount(path.encode(), target.encode(), None, 0x1000, None):
            raise OSError(ctypes.get_errno(), f"bind {target}")


class Box:
    """A prepared namespace: its descriptors, and a way to run programs in it."""

    def __init__(self, **options: object) -> None:
        """``nft``, ``endpoints`` (name to port), ``host_ports`` and ``inbound`` (a number) as ``prepare`` reads them."""
        near, far = socket.socketpair()
        with far:
            self.holder = subprocess.Popen(
                [sys.executable, "-I", "-S", os.path.abspath(__file__), str(far.fileno()), json.dumps(options)],
                pass_fds=[far.fileno()],
            )
        self._near = near
        near.settimeout(60)
        self.descriptors = receive(near)

    @property
    def prefix(self) -> tuple[str, ...]:
        """Words before a command line that make it run in the box."""
        return enter(self.holder.pid)

    def run(self, argv: Sequence[str], *, timeout: float = 300, **how: object) -> subprocess.CompletedProcess[str]:
        """Run a program in the box with an empty environment unless ``env`` says otherwise."""
        how.setdefault("env", {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/nonexistent"})
        how.setdefault("stdin", subprocess.DEVNULL)
        return subprocess.run(
            [*self.prefix, *argv], capture_output=True, text=True, timeout=timeout, check=False, errors="replace", **how
        )

    def python(self, code: str, *words: str, timeout: float = 300) -> subprocess.CompletedProcess[str]:
        """Run a piece of Python in the box."""
        return self.run([sys.executable, "-I", "-S", "-c", code, *words], timeout=timeout)

    def close(self) -> None:
        """End the holder; the namespace goes when the last descriptor does."""
        self._near.close()
        for descriptor in self.descriptors.values():
            with contextlib.suppress(OSError):
                os.close(descriptor)
        self.holder.wait(timeout=60)


def enter(pid: int) -> tuple[str, ...]:
    """The command prefix that enters the user, network and mount namespaces of ``pid``."""
    return ("nsenter", "-t", str(pid), "-U", "-n", "-m", "--preserve-credentials", "--")


@contextlib.contextmanager
def box(**options: object) -> Iterator[Box]:
    """A Box that is closed at the end."""
    made = Box(**options)
    try:
        yield made
    finally:
        made.close()


def receive(channel: socket.socket) -> dict[str, int]:
    """The descriptors by name, sent in pieces of at most 64."""
    found: dict[str, int] = {}
    while True:
        data, ancillary, _flags, _address = channel.recvmsg(65536, socket.CMSG_SPACE(64 * 4))
        if not data:
            raise RuntimeError("the namespace could not be prepared")
        message = json.loads(data)
        fds = array.array("i")
        for _level, _kind, raw in ancillary:
            fds.frombytes(raw)
        found.update(zip(message["names"], fds, strict=True))
        for descriptor in fds:
            os.set_inheritable(descriptor, False)
        if message["last"]:
            return found
        channel.send(b"+")


def hold(channel: socket.socket, options: dict[str, object]) -> None:
    """The program's side: prepare, send, keep nothing, wait."""
    enter_namespaces(CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWNS)
    with tempfile.TemporaryDirectory() as folder:
        own_resolver(folder)
        sockets = list(prepare(options).items())
        while sockets:
            part, sockets = sockets[:64], sockets[64:]
            message = json.dumps({"names": [name for name, _ in part], "last": not sockets}).encode()
            fds = array.array("i", [item.fileno() for _, item in part])
            channel.sendmsg([message], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)])
            if sockets:
                channel.recv(1)
            for _, item in part:
                item.close()
        channel.recv(1)


if __name__ == "__main__":
    hold(socket.socket(fileno=int(sys.argv[1])), json.loads(sys.argv[2]))
