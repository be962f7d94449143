"""One record as one OCSF event (version 1.3.0): every member that its class requires, and none that it does not have. Pure.

A view like the other rows: the record is in ``unmapped``, whole, its hash and number in ``metadata``. What a record does
not tell is not made up: a device is named by its ledger, a process by its call.
"""

import contextlib
import ipaddress
import json
from collections.abc import Mapping

from ringfence.ledger.described import is_violation, part, request_text, rules_of
from ringfence.model.entry import Json

OCSF_VERSION = "1.3.0"
PROCESS, FILE, NETWORK, API, FINDING, INCIDENT, ENTITY = 1007, 1001, 4001, 6003, 2004, 2005, 3004
_CLASSES = {
    PROCESS: "Process Activity",
    FILE: "File System Activity",
    NETWORK: "Network Activity",
    API: "API Activity",
    FINDING: "Detection Finding",
    INCIDENT: "Incident Finding",
    ENTITY: "Entity Management",
}
_CATEGORIES = {
    1: "System Activity",
    2: "Findings",
    3: "Identity & Access Management",
    4: "Network Activity",
    6: "Application Activity",
}
_BY_REQUEST = {"shell": PROCESS, "argv": PROCESS, "file": FILE, "network": NETWORK, "tool": API}
_FILE_ACTIVITIES = {"read": 2, "write": 3, "delete": 4}
_LAUNCH, _TERMINATE, _OPEN, _REFUSE, _CREATE, _OTHER = 1, 2, 1, 5, 1, 99
_SUCCESS, _FAILURE, _NEW = 1, 2, 1
_INFORMATIONAL, _LOW, _HIGH = 1, 2, 4
Fields = Mapping[str, Json]


def ocsf_class(record: Fields) -> int:
    """The OCSF class of a record."""
    fields, kind = part(record, "body"), str(record.get("kind"))
    if kind == "incident.change":
        return INCIDENT
    if is_violation(fields):
        return FINDING
    if kind == "egress.try":
        return NETWORK
    if kind == "tool.result":
        return PROCESS
    return _BY_REQUEST.get(str(part(fields, "request").get("kind")), ENTITY)


def ocsf(record: Fields, digest: str, *, log: str = "") -> str:
    """One event; ``log`` is the name of the log that the record is in."""
    fields, uid, kind = part(record, "body"), ocsf_class(record), str(record.get("kind"))
    tier = part(fields, "decision").get("tier", fields.get("tier"))
    activity = _activity(uid, kind, fields, tier)
    finding = uid in {FINDING, INCIDENT}
    failed = tier == "deny" or bool(fields.get("fault")) or fields.get("exit") not in {None, 0}
    event: dict[str, Json] = {
        "class_uid": uid,
        "class_name": _CLASSES[uid],
        "category_uid": uid // 1000,
        "category_name": _CATEGORIES[uid // 1000],
        "activity_id": activity,
        "type_uid": uid * 100 + activity,
        "time": int(str(record["time"])) // 1000,
        "severity_id": _HIGH if finding else _LOW if tier == "deny" else _INFORMATIONAL,
        "status_id": _NEW if finding else _OTHER if tier == "ask" else _FAILURE if failed else _SUCCESS,
        "message": request_text(fields)[:1024] or kind,
        "metadata": {
            "version": OCSF_VERSION,
            "product": {"name": "ringfence", "vendor_name": "ringfence"},
            "uid": digest,
            "sequence": record["seq"],
            "log_name": kind,
            "correlation_uid": str(record.get("mission", "")),
        },
        "unmapped": dict(record),
    }
    if activity == _OTHER:
        event["activity_name"] = kind
    if tier == "ask" and not finding:
        event["status"] = "waits for a person"
    return json.dumps({**event, **_of_class(uid, record, fields, digest, log)}, sort_keys=True)


def _activity(uid: int, kind: str, fields: Fields, tier: Json) -> int:
    if uid == PROCESS:
        return _TERMINATE if kind == "tool.result" else _LAUNCH
    if uid == FILE:
        return _FILE_ACTIVITIES.get(str(part(fields, "request").get("action")), _OTHER)
    if uid == NETWORK:
        return _REFUSE if tier == "deny" else _OPEN
    return _CREATE if uid in {FINDING, INCIDENT} else _OTHER


def _of_class(uid: int, record: Fields, fields: Fields, digest: str, log: str) -> dict[str, Json]:
    """The members that only events of this class have."""
    request = part(fields, "request")
    agent: dict[str, Json] = {"app_name": str(fields.get("agent") or "ringfence")}
    here: dict[str, Json] = {"actor": agent, "device": {"type_id": 0, "uid": log or "unknown"}}
    process: dict[str, Json] = {"uid": str(record.get("call") or digest)}
    if request_text(fields):
        process["cmd_line"] = request_text(fields)[:8192]
    if uid == PROCESS:
        code = fields.get("exit")
        return {**here, "process": process, **({"exit_code": code} if isinstance(code, int) else {})}
    if uid == FILE:
        path = str(request.get("path", ""))
        return {**here, "file": {"path": path, "name": path.rpartition("/")[2] or path, "type_id": 0}}
    if uid == NETWORK:
        return {
            "dst_endpoint": _endpoint(
                request.get("host") or fields.get("host"), request.get("port", fields.get("port"))
            )
        }
    if uid == API:
        api: dict[str, Json] = {
            "operation": str(request.get("tool", "")),
            "service": {"name": str(request.get("server", ""))},
        }
        return {"actor": agent, "api": api, "src_endpoint": {"uid": log or "unknown"}}
    if uid == ENTITY:
        return {"entity": {"uid": str(record.get("mission") or log or digest), "type": str(record.get("kind"))}}
    info: dict[str, Json] = {"uid": digest, "title": ", ".join(rules_of(fields)) or str(record.get("kind"))}
    if uid == INCIDENT:
        return {"finding_info_list": [info], "assignee": {"name": str(part(fields, "by").get("name") or "unassigned")}}
    return {"finding_info": info, "evidences": [{"process": process}]}


def _endpoint(host: Json, port: Json) -> dict[str, Json]:
    found: dict[str, Json] = {"hostname": str(host or "unknown")}
    with contextlib.suppress(ValueError):
        found = {"ip": str(ipaddress.ip_address(str(host)))}
    return {**found, "port": port} if isinstance(port, int) else found
