"""Exports: the native bundle that verifies itself anywhere, and rows for other systems. Reads; writes only the bundle."""

import functools
import hashlib
import itertools
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping

from ringfence.ledger import export_ocsf, export_rows, note, proof, scan, tree
from ringfence.ledger.files import open_regular
from ringfence.ledger.standalone import VERIFIER
from ringfence.model.entry import Json
from ringfence.model.errors import LedgerError

README = """This folder is a ringfence audit ledger, exported.

Check it without ringfence, with Python 3.11 or newer and nothing else:

    python3 -I verify.py . --strict --anchor CHECKPOINT

CHECKPOINT is a head of this log that was kept outside of the machine that made it: ask whoever keeps the anchor for it.
Without one the verdict is NO_ANCHOR: nothing inside this folder can show that its end was not cut off. With one that was made
after this folder it is TRUNCATED: take an older one, or ask for a new export.
`anchors/` holds the heads that the exporting machine fetched from its anchors; take them from the anchor yourself. Where an N.tsr
lies beside, it is the time stamp (RFC 3161) of N.checkpoint, which needs the authority's own certificates and no trust in this folder:

    openssl ts -verify -data anchors/N.checkpoint -in anchors/N.tsr -CAfile ROOTS.pem

-I keeps Python from running any other file that lies here. verify.py came with this folder: read it (one file), take the same
file from ringfence itself, or write your own from the format document (docs/ledger-format.md of ringfence).
"""


def bundle(
    directory: str,
    out: str,
    *,
    anchored: Mapping[str, note.Checkpoint] | None = None,
    stamps: Mapping[str, bytes] | None = None,
) -> dict[str, Json]:
    """Copy the evidence into the new folder ``out`` with verifier and manifest; keys and personal data stay behind.

    ``anchored`` are heads by anchor name, ``stamps`` time stamps of them, to be put beside it. Works while a writer is at work. Raises LedgerError
    ``bad-export`` where ``out`` exists or cannot be written whole: then nothing is left there.
    """
    if os.path.lexists(out):
        raise LedgerError(
            "bad-export", "the folder of a bundle must be new", where=out, remedy="name one that is not there"
        )
    turns = itertools.count()

    def turn() -> dict[str, Json]:
        if next(turns):
            shutil.rmtree(out, ignore_errors=True)  # a purge came between
        return _bundle(directory, out, anchored or {}, stamps or {})

    return scan.undisturbed(directory, turn)


def _bundle(
    directory: str, out: str, anchored: Mapping[str, note.Checkpoint], stamps: Mapping[str, bytes]
) -> dict[str, Json]:
    try:
        checkpoint = _checkpoint(directory)  # before the segments, so that they hold at least what it signs for
    except FileNotFoundError as error:
        raise LedgerError(
            "ledger-missing",
            "there is no ledger here",
            where=directory,
            remedy="run something first: `ringfence run -- true`",
        ) from error
    try:
        return _fill(directory, out, checkpoint, anchored, stamps)
    except BaseException as error:
        shutil.rmtree(out, ignore_errors=True)  # half an export would look like a log that was cut
        if isinstance(error, OSError):
            raise _unwritten(error, out) from error
        raise


def _unwritten(error: OSError, out: str) -> LedgerError:
    return LedgerError(
        "bad-export",
        f"it could not be written: {os.strerror(error.errno or 0)}; nothing of it was kept",
        where=str(error.filename or out),
        remedy="name a place that has room and may be written",
    )


def _fill(
    directory: str, out: str, checkpoint: bytes, anchored: Mapping[str, note.Checkpoint], stamps: Mapping[str, bytes]
) -> dict[str, Json]:
    os.makedirs(f"{out}/segments", mode=0o700)
    for file in scan.segments(directory):
        _copy_segment(file, f"{out}/segments/{os.path.basename(file.path)}")
    _write(f"{out}/checkpoint", checkpoint)
    _write(f"{out}/README.txt", README.encode())
    shutil.copyfile(VERIFIER, f"{out}/verify.py")
    for number, (name, head) in enumerate(sorted(anchored.items())):
        os.makedirs(f"{out}/anchors", exist_ok=True)
        _write(f"{out}/anchors/{number}.checkpoint", head.text())
        _write(f"{out}/anchors/{number}.name", name.encode() + b"\n")
        if name in stamps:
            _write(f"{out}/anchors/{number}.tsr", stamps[name])
    records = sum(1 for _ in scan.lines(out))
    files: dict[str, Json] = dict(sorted(_digests(out)))
    manifest: dict[str, Json] = {"format": 1, "records": records, "files": files}
    _write(f"{out}/manifest.json", json.dumps(manifest, indent=1).encode() + b"\n")
    return {"out": out, "records": records, "files": len(files)}


def _copy_segment(file: scan.SegmentFile, target: str) -> None:
    """Copy committed bytes only: what a writer has in flight, and the zeros ahead, are no evidence."""
    if file.archived:
        with open_regular(file.path) as packed, open(target, "wb") as copy:
            shutil.copyfileobj(packed, copy, 1 << 20)
        return
    with file.open() as source, open(target, "wb") as copy:
        head = source.readline(8192)
        end = len(head)
        for group in scan.groups(source, offset=end):
            end = group.end
        source.seek(0)
        while end > 0:
            block = source.read(min(end, 1 << 20))
            if not block:
                raise LedgerError("bad-export", "the segment changed while it was copied", where=file.path)
            copy.write(block)
            end -= len(block)


def _checkpoint(directory: str) -> bytes:
    """The bytes of the log's own checkpoint. Raises LedgerError ``ledger-altered`` where a link or pipe is in its place."""
    with open_regular(f"{directory}/checkpoint") as stream:
        return stream.read(note.LONGEST)


def _write(path: str, data: bytes) -> None:
    with open(path, "wb") as stream:
        stream.write(data)


def _digests(out: str) -> Iterator[tuple[str, str]]:
    for folder, _, names in os.walk(out):
        for name in names:
            path = f"{folder}/{name}"
            with open(path, "rb") as stream:
                yield os.path.relpath(path, out), hashlib.file_digest(stream, "sha256").hexdigest()


def rows(directory: str, form: str, *, mission: str = "") -> Iterator[str]:
    """Lines of one form (``ocsf``, ``cef``, ``csv``, ``in-toto``), of all records or of one mission.

    Raises LedgerError ``bad-export`` for another form, or a statement without a mission.
    """
    if form == "in-toto":
        yield json.dumps(statement(directory, mission), sort_keys=True)
        return
    writers: dict[str, Callable[[Mapping[str, Json], str], str]] = {
        "ocsf": functools.partial(export_ocsf.ocsf, log=_log(directory)),
        "cef": export_rows.cef,
        "csv": export_rows.csv,
    }
    if form not in writers:
        raise LedgerError("bad-export", f"there is no export form {form!r}", remedy="bundle, ocsf, cef, csv or in-toto")
    if form == "csv":
        yield export_rows.csv_head()
    for record in scan.records(directory):
        if not mission or record.value.get("mission") == mission:
            yield writers[form](record.value, tree.leaf_hash(record.line).hex())


def _log(directory: str) -> str:
    files = scan.segments(directory)
    return scan.header(files[0]).log if files else ""


def write_rows(found: Iterator[str], out: str) -> None:
    """Write lines to the new file ``out``, for its owner alone, whole or not at all. Raises LedgerError ``bad-export``."""
    try:
        fd = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        raise LedgerError(
            "bad-export", "the file exists and is not overwritten", where=out, remedy="name one that is not there"
        ) from None
    except OSError as error:
        raise _unwritten(error, out) from error
    try:
        with open(fd, "w", encoding="utf-8") as stream:
            stream.writelines(f"{row}\n" for row in found)
    except BaseException as error:
        os.unlink(out)
        if isinstance(error, OSError):
            raise _unwritten(error, out) from error
        raise


def statement(directory: str, mission: str) -> dict[str, Json]:
    """An in-toto statement about a mission: every record with its proof of inclusion in the signed head.

    The subject is the mission's set of record hashes; whoever wants it signed wraps it in a DSSE envelope.
    """
    if not mission:
        raise LedgerError("bad-export", "an in-toto statement is about one mission", remedy="give --mission")
    return scan.undisturbed(directory, lambda: _statement(directory, mission))


def _statement(directory: str, mission: str) -> dict[str, Json]:
    head = _checkpoint(directory)
    parsed = note.parse(head)
    if parsed is None:
        raise LedgerError("ledger-altered", "the checkpoint is not a signed note", where=f"{directory}/checkpoint")
    leaves = proof.leaves_of(directory)
    own = [r for r in scan.records(directory) if r.value.get("mission") == mission and r.seq < parsed.size]
    if not own:
        raise LedgerError(
            "bad-export", f"no signed entry is of mission {mission!a}", remedy="see `ringfence mission list`"
        )
    entries: list[Json] = [
        {"record": record.line.decode(), "proof": proof.inclusion(leaves, record.seq, parsed.size)} for record in own
    ]
    digest = hashlib.sha256(b"".join(tree.leaf_hash(record.line) for record in own)).hexdigest()
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": f"ringfence-mission:{mission}", "digest": {"sha256": digest}}],
        "predicateType": "urn:ringfence:mission-ledger:v1",
        "predicate": {"checkpoint": head.decode(), "entries": entries, **_summary(own)},
    }


def _summary(own: list[scan.Stored]) -> dict[str, Json]:
    tiers = {"allow": 0, "ask": 0, "deny": 0}
    policies: set[str] = set()
    for record in own:
        body = record.value.get("body")
        decision = body.get("decision") if isinstance(body, dict) else None
        if isinstance(decision, dict) and record.value.get("kind") == "tool.intent":
            tiers[str(decision.get("tier"))] = tiers.get(str(decision.get("tier")), 0) + 1
            policies.add(str(decision.get("policy")))
    digests: list[Json] = [*sorted(policies)]
    return {"decisions": dict(tiers), "policies": digests}
