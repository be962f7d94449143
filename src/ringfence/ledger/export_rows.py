"""One record as one line for another system: OCSF JSON, CEF, CSV. Pure.

These are views: they carry the record's number and hash, so that the evidence behind a line can be found and checked.
"""

import io
import json
import re
from collections.abc import Mapping
from csv import writer as csv_writer

from ringfence.ledger.frame import VERSION
from ringfence.model.entry import Json

OCSF_VERSION = "1.3.0"
PROCESS, FILE, NETWORK, API, FINDING, INCIDENT, ENTITY = 1007, 1001, 4001, 6003, 2004, 2005, 3004
_BY_REQUEST = {"shell": PROCESS, "argv": PROCESS, "file": FILE, "network": NETWORK, "tool": API}
_CATEGORY = {
    1: "System Activity",
    2: "Findings",
    3: "Identity & Access Management",
    4: "Network Activity",
    6: "Application Activity",
}
_ACTIVITY = {"shell": 1, "argv": 1, "read": 2, "write": 3, "delete": 4, "network": 1, "tool": 99}
_COLUMNS = ("seq", "time", "kind", "mission", "call", "tier", "rules", "request", "exit", "signal", "record")
_FORMULA = re.compile('(^|;)([\\s"]*)(?=[=+@\uff1d\uff0b\uff0d\uff20-])')
"""Where a spreadsheet begins to compute: at these, full width too, with spaces and quotes before them skipped by some; at the beginning
of a cell, and behind a semicolon, which ends a cell where the comma is for decimals."""


def _body(record: Mapping[str, Json]) -> Mapping[str, Json]:
    body = record.get("body")
    return body if isinstance(body, dict) else {}


def _part(fields: Mapping[str, Json], name: str) -> Mapping[str, Json]:
    value = fields.get(name)
    return value if isinstance(value, dict) else {}


def _rules(fields: Mapping[str, Json]) -> list[str]:
    reasons = _part(fields, "decision").get("reasons")
    return [str(r["rule"]) for r in reasons if isinstance(r, dict) and "rule" in r] if isinstance(reasons, list) else []


def request_text(fields: Mapping[str, Json]) -> str:
    """What was asked for, as one text."""
    request = _part(fields, "request")
    for name in ("line", "argv", "path", "host", "tool"):
        value = request.get(name)
        if isinstance(value, list):
            return " ".join(str(word) for word in value)
        if value is not None:
            return str(value) if isinstance(value, str) else json.dumps(value, sort_keys=True)
    return ""


def is_violation(fields: Mapping[str, Json]) -> bool:
    """Whether a record tells of a violation: a denial by more than a default, or something seen that is one."""
    reasons = _part(fields, "decision").get("reasons")
    explicit = (
        [
            r
            for r in reasons
            if isinstance(r, dict)
            and r.get("tier") == "deny"
            and r.get("kind", "rule") in {"rule", "protected", "hidden", "floor"}
        ]
        if isinstance(reasons, list)
        else []
    )
    observations = fields.get("observations")
    seen = (
        [o for o in observations if isinstance(o, dict) and o.get("violation")]
        if isinstance(observations, list)
        else []
    )
    return bool(explicit or seen or fields.get("violation"))


def ocsf_class(record: Mapping[str, Json]) -> int:
    """The OCSF class of a record."""
    fields, kind = _body(record), str(record.get("kind"))
    if kind == "incident.change":
        return INCIDENT
    if is_violation(fields):
        return FINDING
    if kind == "egress.try":
        return NETWORK
    if kind == "tool.result":
        return PROCESS
    return _BY_REQUEST.get(str(_part(fields, "request").get("kind")), ENTITY)


def ocsf(record: Mapping[str, Json], digest: str) -> str:
    """One OCSF event. Our record is in ``unmapped``, whole."""
    fields, uid = _body(record), ocsf_class(record)
    request = _part(fields, "request")
    activity = _ACTIVITY.get(str(request.get("action") or request.get("kind")), 99)
    if uid in {FINDING, INCIDENT}:
        activity = 1
    tier = _part(fields, "decision").get("tier", fields.get("tier"))
    event: dict[str, Json] = {
        "class_uid": uid,
        "category_uid": uid // 1000,
        "category_name": _CATEGORY[uid // 1000],
        "activity_id": activity,
        "type_uid": uid * 100 + activity,
        "time": int(str(record["time"])) // 1000,
        "severity_id": 4 if uid in {FINDING, INCIDENT} else 2 if tier == "deny" else 1,
        "status_id": 2 if tier == "deny" or fields.get("fault") else 1,
        "message": request_text(fields)[:1024] or str(record.get("kind")),
        "metadata": {
            "version": OCSF_VERSION,
            "product": {"name": "ringfence", "vendor_name": "ringfence"},
            "uid": digest,
            "sequence": record["seq"],
            "log_name": str(record.get("kind")),
            "correlation_uid": str(record.get("mission", "")),
        },
        "unmapped": dict(record),
    }
    if uid in {PROCESS, FINDING} and request_text(fields):
        event["process"] = {"cmd_line": request_text(fields)[:8192]}
    if uid in {FINDING, INCIDENT}:
        event["finding_info"] = {"uid": digest, "title": ", ".join(_rules(fields)) or str(record.get("kind"))}
    if uid == NETWORK:
        event["dst_endpoint"] = {
            "hostname": str(request.get("host") or fields.get("host") or ""),
            "port": request.get("port", fields.get("port")),
        }
    if uid == FILE:
        event["file"] = {"path": str(request.get("path", "")), "type_id": 0}
    return json.dumps(event, sort_keys=True)


def cef(record: Mapping[str, Json], digest: str) -> str:
    """One CEF line: header fields escape backslash and bar, extensions backslash, equals sign and line ends."""
    fields = _body(record)
    tier = str(_part(fields, "decision").get("tier", fields.get("tier", "")))
    severity = 8 if is_violation(fields) else 5 if tier == "deny" else 2
    kind = str(record.get("kind"))
    name = ", ".join(_rules(fields)) or kind
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
        "dhost": _part(fields, "request").get("host") or fields.get("host") or "",
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
    fields = _body(record)
    cells = [
        record["seq"],
        record["time"],
        record.get("kind"),
        record.get("mission", ""),
        record.get("call", ""),
        _part(fields, "decision").get("tier", fields.get("tier", "")),
        " ".join(_rules(fields)),
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
