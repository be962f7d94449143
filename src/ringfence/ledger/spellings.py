"""How a known secret is also spelled: percent-encoded, escaped, in base64, in hexadecimal, in JSON inside JSON. Pure."""

import base64
import html
import json
import re
from urllib.parse import quote, quote_plus

MIN_VALUE = 6
"""Characters of the shortest exact value: shorter ones would tear up ordinary text."""


def spellings(value: str) -> set[str]:
    """A secret as it also appears: percent-encoded, escaped, in base64, in hexadecimal, inside JSON inside a text."""
    raw = value.encode("utf-8", "surrogatepass")
    wide = value.encode("utf-16-le", "surrogatepass")
    found = {
        value,
        html.escape(value),
        re.sub(r"([^\w])", r"\\\1", value),
        value.replace("'", "'\\''"),
        repr(raw)[2:-1],
    }
    for inner in (value, json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]):
        found |= {json.dumps(inner)[1:-1], json.dumps(inner, ensure_ascii=False)[1:-1]}
    for spelled in (quote(value, safe=""), quote(value), quote_plus(value), "".join(f"%{byte:02X}" for byte in raw)):
        found |= {spelled, re.sub("%[0-9A-F]{2}", lambda escape: escape[0].lower(), spelled)}
    for digits in (raw.hex(), wide.hex(), raw.hex(":"), raw.hex(" "), raw.hex("-")):
        found |= {digits, digits.upper()}
    found |= {"".join(f"{form % byte}" for byte in raw) for form in ("\\x%02x", "\\x%02X", "\\%03o")}
    found |= {"".join(f"\\u{ord(char):04x}" for char in value), "\x00".join(value)}
    return {spelling for spelling in found | _in_base64(raw) | _in_base64(wide) if len(spelling) >= MIN_VALUE}


def _in_base64(raw: bytes) -> set[str]:
    """Base64 of a longer text that holds the secret shows it in one of three spellings; the ends depend on neighbours."""
    found: set[str] = set()
    for shift in range(3):
        spelled = base64.b64encode(b"\x00" * shift + raw).decode().rstrip("=")
        inner = spelled[(0, 2, 3)[shift] : len(spelled) - (1 if (len(raw) + shift) % 3 else 0)]
        if len(inner) >= MIN_VALUE + 2:
            found |= {inner, inner.replace("+", "-").replace("/", "_")}
    return found
