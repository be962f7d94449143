"""Credentials and personal data in what a change brings: every blob of every commit, messages, and the run's records. Pure."""

from collections.abc import Iterable, Iterator

from ringfence.promotion.change import Change, Reader
from ringfence.promotion.credentials import Secret, find_secrets, is_key_file
from ringfence.promotion.decode import Unread
from ringfence.promotion.findings import Finding, finding
from ringfence.promotion.gather import NewBlob, new_blobs
from ringfence.promotion.objects import MAX_BLOB, BadObject, Node
from ringfence.promotion.personal import Personal, find_personal
from ringfence.promotion.sandbox_report import Report

MAX_SCANNED = 128 * 1024 * 1024
MAX_MESSAGE = 256 * 1024
_UNREAD = "leave it out, or bring what can be read (gzip, zip, text); else a person brings it in a change of their own"
"""The next step where something was not read: no credential is known that could be rotated."""


def scan_change(change: Change, reader: Reader) -> list[Finding]:
    """Findings of gate 1 about the change itself. A value that the base holds at the same path is not new."""
    found: list[Finding] = []
    budget = MAX_SCANNED
    for blob in new_blobs(change, reader):
        budget -= reader.size(blob.node.oid)
        if budget < 0:
            said = f"cannot tell: more than the {MAX_SCANNED} bytes that are scanned in one change"
            return [*found, finding("secrets.in_change", said, change.label, next_step=_UNREAD)]
        found.extend(_scan_blob(blob, reader))
    for commit in change.commits:
        if len(commit.message) > MAX_MESSAGE:
            where = f"message of commit {commit.oid[:12]}"
            found.append(finding("secrets.in_change", "cannot tell: too long to be scanned", where, next_step=_UNREAD))
            continue
        for secret in find_secrets(commit.message):
            where = f"message of commit {commit.oid[:12]}"
            found.append(finding("secrets.in_change", f"{secret.rule} ({secret.digest[:12]})", where))
    return found


def _scan_blob(blob: NewBlob, reader: Reader) -> Iterator[Finding]:
    where = f"{blob.path} in commit {blob.commit[:12]}"
    if is_key_file(blob.path):
        yield finding("secrets.in_change", "a file that holds credentials by its nature", where)
    if reader.size(blob.node.oid) > MAX_BLOB:
        said = f"cannot tell: larger than the {MAX_BLOB} bytes that are scanned"
        yield finding("secrets.in_change", said, where, next_step=_UNREAD)
        return
    raw = reader.blob(blob.node.oid)
    try:
        secrets, personal = find_secrets(raw), find_personal(raw)
        if secrets or personal.verdict():
            known, before = _old(blob.old, reader)
            secrets = [secret for secret in secrets if (secret.rule, secret.digest) not in known]
            personal = personal.minus(before)
    except Unread as error:
        yield finding("secrets.in_change", f"cannot tell: {error}", where, next_step=_UNREAD)
        return
    yield from _secret_findings(secrets, where)
    why = personal.verdict()
    if why:
        yield finding("pii.in_change", why, where)


def _old(node: Node | None, reader: Reader) -> tuple[set[tuple[str, str]], Personal]:
    try:
        raw = reader.blob(node.oid) if node is not None and node.mode != "160000" else b""
        return {(secret.rule, secret.digest) for secret in find_secrets(raw)}, find_personal(raw)
    except (BadObject, Unread):
        return set(), Personal()


def _secret_findings(secrets: list[Secret], where: str) -> Iterator[Finding]:
    for secret in secrets[:20]:
        line = f" line {secret.line}" if secret.line else ""
        wrapped = f", inside {secret.wrapped}" if secret.wrapped else ""
        yield finding("secrets.in_change", f"{secret.rule} ({secret.digest[:12]}{wrapped})", where + line)


def scan_records(report: Report, others: Iterable[tuple[str, bytes]]) -> list[Finding]:
    """Findings about what the run left behind: recorded outputs, prompt pack, and other files of the evidence folder."""
    texts = [("sandbox.json outputs", "\n".join(report.outputs).encode("utf-8", "replace"))]
    texts.append(("sandbox.json prompt pack", "\n".join(report.prompt_pack).encode("utf-8", "replace")))
    found = []
    for where, raw in (*texts, *others):
        try:
            secrets, why = find_secrets(raw), find_personal(raw).verdict()
        except Unread as error:
            found.append(finding("secrets.reachable", f"cannot tell: {error}", where))
            continue
        found.extend(finding("secrets.reachable", f"the run recorded a {secret.rule}", where) for secret in secrets[:5])
        if why:
            found.append(finding("pii.in_change", why, where))
    return found
