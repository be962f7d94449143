"""The sandbox's run report (``sandbox.json``): what the monitor outside the box saw. Unsigned, so it can only make things worse. Pure."""

import ipaddress
import re

import msgspec

from ringfence.promotion.findings import Finding, Outcome, finding
from ringfence.promotion.policy import Policy
from ringfence.promotion.strict import Malformed, parse_object

_DESTINATION = re.compile(r"([A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?):([1-9]\d{0,4})\Z")
_HOST = re.compile(r"[A-Za-z0-9_.-]{1,253}\Z|\[[0-9A-Fa-f:.]{2,45}\]\Z")
WHERE = "sandbox.json"


class _Strict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class ReportedArtifact(_Strict, frozen=True):
    """What the sandbox built."""

    name: str
    sha256: str


class ReportedEgress(_Strict, frozen=True):
    """``network: none`` states that no interface existed; only then may the allowlist be empty."""

    denied: tuple[str, ...]
    allowlist: tuple[str, ...] | None = None
    network: str = "captured"


class ReportedProbe(_Strict, frozen=True):
    """What the probe found readable; names only, never values."""

    readable_credential_stores: tuple[str, ...]
    credential_env_names: tuple[str, ...]


class ReportedFiles(_Strict, frozen=True):
    """Paths that the run wrote or read outside its declared roots."""

    writes_outside: tuple[str, ...] = ()
    reads_outside: tuple[str, ...] = ()
    extra_volumes: tuple[str, ...] = ()


class Report(_Strict, frozen=True):
    """One sandbox run. ``result`` is ``pass`` or ``fail``; everything else counts as not run."""

    run_id: str
    env_class: str
    git_sha: str
    result: str
    egress: ReportedEgress
    probe: ReportedProbe
    artifact: ReportedArtifact | None = None
    files: ReportedFiles = ReportedFiles()
    outputs: tuple[str, ...] = ()
    prompt_pack: tuple[str, ...] = ()
    ledger_entry: str = ""


def parse_report(raw: bytes) -> Report:
    """The report; raises Malformed."""
    try:
        return msgspec.convert(parse_object(raw, limit=1_048_576), Report, strict=True)
    except msgspec.ValidationError as error:
        raise Malformed(str(error)) from None


def check_label(report: Report) -> list[Finding]:
    """Gate 0: an agent's host can prove no class but sandbox, so any other label is a lie or an incident."""
    if report.env_class == "sandbox":
        return []
    seen = (*report.probe.readable_credential_stores, *report.probe.credential_env_names)
    said = f"the agent's host calls itself {report.env_class[:40]!a} and proves nothing"
    if report.env_class == "prod" or seen:
        names = ", ".join(seen) or "every credential that the host could reach"
        return [
            finding("env.class_not_allowed", said, WHERE, outcome=Outcome.ROTATE, next_step=f"rotate: {names}"[:200])
        ]
    return [finding("env.class_not_allowed", said, WHERE)]


def check_secrets(report: Report) -> list[Finding]:
    """Gate 1: nothing that opens a door may have been readable from inside."""
    found = []
    if report.probe.readable_credential_stores:
        names = ", ".join(report.probe.readable_credential_stores)
        found.append(finding("secrets.reachable", f"readable: {names}", WHERE))
    if report.probe.credential_env_names:
        names = ", ".join(report.probe.credential_env_names)
        found.append(finding("secrets.reachable", f"in the environment: {names}", WHERE))
    return found


def check_egress(report: Report, policy: Policy) -> list[Finding]:
    """Gate 2: an allowlist was in force, and it named no more than the base's hosts."""
    egress = report.egress
    if egress.network == "none" and egress.allowlist == ():
        return _attempts(egress)
    if not egress.allowlist:
        return [finding("egress.no_allowlist", "none, or an empty one", WHERE), *_attempts(egress)]
    wide = [entry for entry in egress.allowlist if not _is_named(entry, policy.egress.registry_hosts)]
    found = [finding("egress.too_wide", f"{entry[:80]!a} is not a host of the base's policy", WHERE) for entry in wide]
    return [*found, *_attempts(egress)]


def check_files(report: Report) -> list[Finding]:
    """Gate 2: the run touched only what was declared."""
    listed = (
        ("wrote", report.files.writes_outside),
        ("read", report.files.reads_outside),
        ("mounted", report.files.extra_volumes),
    )
    return [finding("files.outside", f"{verb} {', '.join(paths)}", WHERE) for verb, paths in listed if paths]


def _is_named(entry: str, hosts: tuple[str, ...]) -> bool:
    """A host that the policy names without a port means port 443 of it; byte for byte, so nothing looks alike."""
    return _DESTINATION.match(entry) is not None and (entry in hosts or entry.removesuffix(":443") in hosts)


def _attempts(egress: ReportedEgress) -> list[Finding]:
    """A refused attempt shows the fence at work, unless it went for the metadata service or into private networks."""
    found = []
    for entry in egress.denied:
        host, _, port = entry.rpartition(":")
        if not host or not port.isdigit() or not _HOST.match(host):
            found.append(finding("evidence.malformed", f"denied holds {entry[:80]!a}, not host:port", WHERE))
        elif _is_floor(host.strip("[]").casefold()):
            found.append(finding("egress.violation", f"tried to reach {entry[:80]!a}", WHERE))
    return found


def _is_floor(host: str) -> bool:
    """Metadata services and private, link-local or reserved addresses; loopback inside a box is the box itself."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host in {"metadata.google.internal", "metadata", "instance-data"}
    return not address.is_global and not address.is_loopback
