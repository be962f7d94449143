"""What a refused connection is told, in its own protocol, so that a program fails at once and a person reads why. Pure."""

import html

from ringfence.egress.tls import ACCESS_DENIED


def refusal_bytes(protocol: str, host: str, port: int, rule: str, because: str) -> bytes:
    """Bytes to send before closing, empty where only a reset is understood."""
    if protocol == "tls":
        return ACCESS_DENIED
    if protocol == "http":
        return page(host, port, rule, because)
    if protocol == "ssh":
        # Before its version line a server may send other lines, which ssh shows to the user (RFC 4253, 4.2).
        return f"ringfence: {plain(host)}:{port} is not allowed by {plain(rule)}\r\n".encode()
    return b""


def page(host: str, port: int, rule: str, because: str) -> bytes:
    """A 403 that names the destination, the rule and the reason, in a header and in a short text."""
    text = (
        f"ringfence refused {plain(host)}:{port}\n"
        f"rule: {plain(rule)}\n"
        f"because: {plain(because)}\n"
        "Ask the person who owns this mission for a rule, or do without.\n"
    )
    body = html.escape(text, quote=False).encode("ascii", "backslashreplace")
    head = (
        "HTTP/1.1 403 Forbidden\r\n"
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
