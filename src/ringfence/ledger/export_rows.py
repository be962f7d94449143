"""One record as one line for another system: CEF, CSV. Pure.

These are views: they carry the record's number and hash, so that the evidence behind a line can be found and checked.
"""

import io
import re
from collections.abc import Mapping
from csv import writer as csv_writer

from ringfence.ledger.described import is_violation, part, request_text, rules_of
from ringfence.ledger.frame import VERSION
from ringfence.model.entry import Json

_COLUMNS = ("seq", "time", "kind", "mission", "call", "tier", "rules", "request", "exit", "signal", "record")
_FORMULA = re.compile('(^|;)([\\s"]*)(?=[=+@\uff1d\uff0b\uff0d\uff20-])')
"""Where a spreadsheet begins to compute: at these, full width too, with spaces and quotes before them skipped by some; at the beginning
of a cell, and behind a semicolon, which ends a cell where the comma is for decimals."""


def cef(record: Mapping[str, Json], digest: str) -> str:
    """One CEF line: header fields escape backslash and bar, extensions backslash, equals sign and line ends."""
    fields = part(record, "body")
    tier = str(part(fields, "decision").get("tier", fields.get("tier", "")))
    severity = 8 if is_violation(fields) else 5 if tier == "deny" else 2
    kind = str(record.get("kind"))
    name = (", ".join(rules_of(fields)) or kind)[:512]  # no collector takes more
    head = "|".join(
        ["CEF:0", "ringfence", "ringfence", *(_cef_head(t) for t in (str(VERSION), kind, name)), str(severity)]
    )
    extension: dict[str, object] = {
        "rt": int(str(record["time"])) // 1000,
        "externalId": record["seq"],
        "act": tier,
        "msg": request_text(fields)[:1000],
        "cs1Label": "mission",
        "cs1": record.get("mission", ""),
        "cs2Label": "record",
        "cs2": digest,
        "dhost": part(fields, "request").get("host") or fields.get("host") or "",
    }
    pairs = [f"{key}={_cef_value(str(value))}" for key, value in extension.items() if value not in ("", None)]
    return f"{head}|{' '.join(pairs)}"


def _cef_head(text: str) -> str:
    return _one_line(text).replace("\\", "\\\\").replace("|", "\\|")


def _cef_value(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("=", "\\=").replace("\r", "\\r").replace("\n", "\\n")
    return _one_line(escaped)


def _one_line(text: str) -> str:
    return "".join(char if char.isprintable() else " " for char in text)


def csv_head() -> str:
    """The header line."""
    return ",".join(_COLUMNS)


def csv(record: Mapping[str, Json], digest: str) -> str:
    """One CSV line (RFC 4180, one physical line); no cell begins with what a spreadsheet would compute."""
    fields = part(record, "body")
    cells = [
        record["seq"],
        record["time"],
        record.get("kind"),
        record.get("mission", ""),
        record.get("call", ""),
        part(fields, "decision").get("tier", fields.get("tier", "")),
        " ".join(rules_of(fields)),
        request_text(fields),
        fields.get("exit", ""),
        fields.get("signal", ""),
        digest,
    ]
    out = io.StringIO()
    csv_writer(out, lineterminator="").writerow([_cell(cell) for cell in cells])
    return out.getvalue()


def _cell(value: Json) -> str:
    if isinstance(value, int):
        return str(value)
    return "" if value is None else _FORMULA.sub(r"\1'\2", _one_line(str(value)))
