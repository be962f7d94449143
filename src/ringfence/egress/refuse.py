"""What a refused connection is told, in its own protocol, so that a program fails at once and a person reads why. Pure."""

import html
import struct

from ringfence.egress.tls import ACCESS_DENIED, NOT_REACHED

SSH_DISCONNECT, SSH_NOT_ALLOWED = 1, 1
NETWORK_FAULTS = frozenset({"egress/not-resolved", "egress/unreachable"})
"""Allowed, and not reached all the same: a program must not be told that it may not."""
ASK_A_PERSON = "Ask the person who owns this mission for a rule, or do without."
TRY_AGAIN = "The policy allows it; the network did not lead there. Try again later."


def refusal_bytes(protocol: str, host: str, port: int, rule: str, because: str) -> bytes:
    """Bytes to send before closing, empty where only a reset is understood."""
    if protocol == "tls":
        return NOT_REACHED if rule in NETWORK_FAULTS else ACCESS_DENIED
    if protocol == "http":
        return page(host, port, rule, because)
    if protocol == "ssh":
        return _farewell_of_ssh(f"ringfence refused {plain(host)}:{port}, rule {plain(rule)}: {plain(because)}")
    return b""


def _farewell_of_ssh(text: str) -> bytes:
    """A version line and a disconnect message, which programs show (RFC 4253, 4.2, 6 and 11.1)."""
    said = text.encode("ascii", "replace")[:380]
    payload = struct.pack(">BII", SSH_DISCONNECT, SSH_NOT_ALLOWED, len(said)) + said + struct.pack(">I", 0)
    padding = 8 - (len(payload) + 5) % 8
    padding += 8 if padding < 4 else 0
    return b"SSH-2.0-ringfence\r\n" + struct.pack(">IB", len(payload) + padding + 1, padding) + payload + bytes(padding)


def page(host: str, port: int, rule: str, because: str) -> bytes:
    """A 403 that names the destination, the rule and the reason; a 502 where the host is allowed and was not reached.

    Many programs show the words beside the status and nothing of the page.
    """
    faulty = rule in NETWORK_FAULTS
    text = (
        f"ringfence {'did not reach' if faulty else 'refused'} {plain(host)}:{port}\n"
        f"rule: {plain(rule)}\n"
        f"because: {plain(because)}\n"
        f"{TRY_AGAIN if faulty else ASK_A_PERSON}\n"
    )
    body = html.escape(text, quote=False).encode("ascii", "backslashreplace")
    status = "502 Not reached by ringfence" if faulty else "403 Refused by ringfence"
    head = (
        f"HTTP/1.1 {status}: {plain(rule)[:200]}\r\n"
        "Content-Type: text/plain; charset=us-ascii\r\n"
        "X-Content-Type-Options: nosniff\r\n"
        "Cache-Control: no-store\r\n"
        f"X-Ringfence-Rule: {plain(rule)[:200]}\r\n"
        f"Content-Length: {len(body)}\r\n"
        "Connection: close\r\n\r\n"
    )
    return head.encode("ascii", "replace") + body


def plain(text: str) -> str:
    """Untrusted text on one line of printable ASCII: no header, terminal or markup trick survives."""
    return "".join(c if 32 <= ord(c) < 127 else "?" for c in text)[:500]
