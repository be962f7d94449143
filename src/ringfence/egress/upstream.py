"""Where the worker asks for addresses: the host's name servers and hosts file, read once when a worker starts."""

import contextlib
import ipaddress
from dataclasses import dataclass

from ringfence.egress.rules import BadHostError, canonical_host

MAX_HOSTS = 500
"""Names taken from a hosts file. Block lists hold thousands; what lies beyond is asked of the name servers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Upstream:
    """Name servers (address, port), and names whose addresses are fixed."""

    nameservers: tuple[tuple[str, int], ...]
    hosts: tuple[tuple[str, tuple[str, ...]], ...] = ()


def system_upstream() -> Upstream:
    """What the host itself uses. Without a readable resolv.conf nothing resolves, and every dial fails."""
    return Upstream(nameservers=read_resolv(_text("/etc/resolv.conf")), hosts=read_hosts(_text("/etc/hosts")))


def read_resolv(text: str) -> tuple[tuple[str, int], ...]:
    """The nameserver lines that hold an address."""
    found = []
    for line in text.splitlines():
        words = line.split()
        if len(words) >= 2 and words[0] == "nameserver":
            with contextlib.suppress(ValueError):
                found.append((str(ipaddress.ip_address(words[1].partition("%")[0])), 53))
    return tuple(found)


def read_hosts(text: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Names of a hosts file with their addresses. The floor applies to them as to any other."""
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        words = line.partition("#")[0].split()
        with contextlib.suppress(ValueError, IndexError):
            address = str(ipaddress.ip_address(words[0].partition("%")[0]))
            for word in words[1:]:
                with contextlib.suppress(BadHostError):
                    found.setdefault(canonical_host(word).text, []).append(address)
    return tuple((name, tuple(addresses)) for name, addresses in found.items())[:MAX_HOSTS]


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(1_000_000)
    except OSError:
        return ""
