"""How a known secret is also spelled: percent-encoded, escaped, in base64, in hexadecimal, in JSON inside JSON. Pure."""

import base64
import html
import json
import re
import unicodedata
from urllib.parse import quote, quote_plus

MIN_VALUE = 6
"""Characters of the shortest exact value: shorter ones would tear up ordinary text."""


def spellings(value: str) -> set[str]:
    """A secret as it also appears: percent-encoded, escaped, in base64, in hexadecimal, inside JSON inside a text."""
    raw = value.encode("utf-8", "surrogatepass")
    wide = [value.encode(form, "surrogatepass") for form in ("utf-16-le", "utf-16-be")]
    found = {value, "\x00".join(value), *_escaped(value), *_in_json(value), *_in_percent(value, raw)}
    for data in (raw, *wide):
        found |= _in_hexadecimal(data) | _in_base64(data)
    found |= {"".join(f"{form % byte}" for byte in raw) for form in ("\\x%02x", "\\x%02X", "\\%03o")}
    return {spelling for spelling in found if len(spelling) >= MIN_VALUE}


def _escaped(value: str) -> set[str]:
    """For HTML, a shell, Python, CSV, SQL; and as another system composes its letters."""
    quoted, apostrophe = value.replace("\\", "\\\\"), html.escape(value)
    return {
        apostrophe,
        apostrophe.replace("&#x27;", "&#39;"),
        apostrophe.replace("&#x27;", "'"),
        "".join(f"&#{ord(char)};" for char in value),
        *("".join(f"&#x{form % ord(char)};" for char in value) for form in ("%x", "%X", "%02x")),
        re.sub(r"([^\w])", r"\\\1", value),
        value.replace("'", "'\\''"),
        value.replace("'", "'\"'\"'"),
        quoted.replace("'", "\\'"),
        repr(value)[1:-1],
        repr(value.encode("utf-8", "surrogatepass"))[2:-1],
        value.replace('"', '""'),
        value.replace("'", "''"),
        *(unicodedata.normalize(form, value) for form in ("NFC", "NFD")),
    }


def _in_json(value: str) -> set[str]:
    """Inside JSON, and inside JSON that is a text in JSON; every character as its number."""
    found = set()
    for inner in (value, json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]):
        for spelled in (json.dumps(inner)[1:-1], json.dumps(inner, ensure_ascii=False)[1:-1]):
            found |= {spelled, spelled.replace("/", "\\/")}
    return found | {"".join(f"\\u{form % ord(char)}" for char in value) for form in ("%04x", "%04X")}


def _in_percent(value: str, raw: bytes) -> set[str]:
    found = set()
    for spelled in (quote(value, safe=""), quote(value), quote_plus(value), "".join(f"%{byte:02X}" for byte in raw)):
        found |= {spelled, re.sub("%[0-9A-F]{2}", lambda escape: escape[0].lower(), spelled)}
    return found


def _in_hexadecimal(data: bytes) -> set[str]:
    """As dumps and arrays of bytes print it; pairs of bytes may begin at either of the first two."""
    found = {data.hex(sign) for sign in (":", " ", "-")} | {data.hex()}
    found |= {data.hex(" ", -2), f"{data[:1].hex()} {data[1:].hex(' ', -2)}"}
    found |= {joint.join(f"0x{byte:02x}" for byte in data) for joint in (", ", ",", " ")}
    return found | {digits.upper().replace("0X", "0x") for digits in found}


def _in_base64(raw: bytes) -> set[str]:
    """Base64 of a longer text that holds the secret shows it in one of three spellings; the ends depend on neighbours."""
    found: set[str] = set()
    for shift in range(3):
        spelled = base64.b64encode(b"\x00" * shift + raw).decode().rstrip("=")
        inner = spelled[(0, 2, 3)[shift] : len(spelled) - (1 if (len(raw) + shift) % 3 else 0)]
        if len(inner) >= MIN_VALUE + 2:
            found |= {inner, inner.replace("+", "-").replace("/", "_")}
    return found
