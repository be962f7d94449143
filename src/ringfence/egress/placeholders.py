"""Credentials as the worker sees them: a placeholder where the box put it, the real value only on its way out. Pure.

A placeholder anywhere else than at its own host, port and path is somebody trying to send a secret away.
"""

import base64
import binascii
import re
from dataclasses import dataclass

from ringfence.egress.asking import Binding
from ringfence.egress.http1 import Head
from ringfence.egress.opening import RefusedError

PREFIX = "ringfence-placeholder-"
ANY = re.compile(rb"ringfence-placeholder-[A-Za-z0-9_.-]{1,100}")
OVERLAP = len(PREFIX) + 101
TOKENS = re.compile(rb'"(input_tokens|prompt_tokens|output_tokens|completion_tokens)"\s*:\s*(\d{1,12})')


def placeholder_for(name: str, noise: str) -> str:
    """The text that stands for a credential in one mission. ``noise`` is random, so that it cannot be guessed."""
    return f"{PREFIX}{name}-{noise}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """One placeholder found in a request's headers, and the binding it belongs to."""

    binding: Binding
    header: str
    basic: bool


def find(head: Head, bindings: tuple[Binding, ...], host: str, port: int, path: str) -> Use | None:
    """The placeholder of a request that may be replaced, or ``None``. Raises RefusedError for one that is elsewhere.

    In another header than its own a value would be read, kept or said back by a server that takes it for something else.
    """
    found: list[Use] = []
    for name, value in head.headers:
        basic = _basic(value)
        text = value if basic is None else basic
        for match in ANY.findall(text.encode("latin-1", "replace")):
            binding = _binding(match, bindings)
            if binding is None or not fits(binding, host, port, path) or name.lower() != binding.header.lower():
                raise elsewhere(host, port)
            found.append(Use(binding=binding, header=name, basic=basic is not None))
    if ANY.search(head.target.encode("latin-1", "replace")):
        raise elsewhere(host, port)
    return found[0] if found else None


def no_placeholder(head: Head, host: str, port: int) -> None:
    """Raise RefusedError for a placeholder in a request in the clear: a credential never travels that way."""
    find(head, (), host, port, "")


def fits(binding: Binding, host: str, port: int, path: str) -> bool:
    """Whether a request goes where the credential belongs. Paths compare by whole components."""
    inside = path == binding.path or path.startswith(binding.path.rstrip("/") + "/")
    return (binding.host, binding.port) == (host, port) and inside


def scan(window: bytes, host: str, port: int) -> None:
    """Raise RefusedError where a stretch of a body holds a placeholder: bodies are never where one belongs."""
    if ANY.search(window):
        raise elsewhere(host, port)


@dataclass(slots=True)
class Watch:
    """Looks for placeholders in a body as it passes, across the seams of its pieces and of its chunks."""

    host: str
    port: int
    _raw: bytes = b""
    _plain: bytes = b""

    def see(self, raw: bytes, plain: bytes) -> None:
        """One piece with its framing, and its payload alone. Raises RefusedError."""
        self._raw = self._seam(self._raw + raw)
        self._plain = self._seam(self._plain + plain)

    def _seam(self, text: bytes) -> bytes:
        scan(text, self.host, self.port)
        return text[-OVERLAP:]


def elsewhere(host: str, port: int) -> RefusedError:
    """What a misplaced placeholder is answered with."""
    because = f"a credential's placeholder was sent to {host}:{port}, where that credential does not belong"
    return RefusedError("egress/placeholder-elsewhere", because, "http")


def rewrite(head: Head, target: str, host: str, use: Use | None, secret: str, *, drop: frozenset[str]) -> bytes:
    """The head as it leaves: target and Host given, the placeholder replaced, the headers of ``drop`` left out."""
    lines = [f"{head.method} {target} {head.version}", f"Host: {host}"]
    for name, value in head.headers:
        if name.lower() in drop or name.lower() == "host":
            continue
        if use is not None and name == use.header:
            value = _replaced(value, use, secret)
        lines.append(f"{name}: {value}")
    return "\r\n".join([*lines, "", ""]).encode("latin-1", "replace")


def tokens_in(data: bytes) -> tuple[int, int]:
    """The largest input and output token counts told in a stretch of a model's answer."""
    counts = {"in": 0, "out": 0}
    for name, number in TOKENS.findall(data):
        side = "in" if name in {b"input_tokens", b"prompt_tokens"} else "out"
        counts[side] = max(counts[side], int(number))
    return counts["in"], counts["out"]


def sent_by(head: Head, use: Use, secret: str) -> str:
    """The header's value that carries the secret outside."""
    return _replaced(
        next(value for name, value in head.headers if name == use.header and _holds(value, use)), use, secret
    )


def _holds(value: str, use: Use) -> bool:
    return use.binding.placeholder in ((_basic(value) or "") if use.basic else value)


def _replaced(value: str, use: Use, secret: str) -> str:
    if use.basic:
        scheme, _, _ = value.partition(" ")
        plain = (_basic(value) or "").replace(use.binding.placeholder, secret)
        return f"{scheme} {base64.b64encode(plain.encode()).decode('ascii')}"
    return value.replace(use.binding.placeholder, secret)


def _basic(value: str) -> str | None:
    """What a Basic authorization says in the clear, ``None`` for other values."""
    scheme, space, text = value.partition(" ")
    if not space or scheme.lower() != "basic":
        return None
    try:
        return base64.b64decode(text.strip(), validate=True).decode("utf-8")
    except (binascii.Error, ValueError):
        return None


def _binding(match: bytes, bindings: tuple[Binding, ...]) -> Binding | None:
    text = match.decode("ascii", "replace")
    return next((binding for binding in bindings if binding.placeholder == text), None)
