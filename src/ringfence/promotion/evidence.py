"""Reads the two folders a check is given: evidence and trust. Links are not followed, sizes are capped, nothing else is done."""

import os
import stat
from dataclasses import dataclass

from ringfence.promotion.strict import Malformed

MAX_ARTIFACT = 512 * 1024 * 1024
MAX_FILE = 4 * 1024 * 1024
MAX_FILES = 500
_KNOWN = frozenset(
    {"sandbox.json", "ci.intoto.jsonl", "ci.jwt", "ci.dsse.json", "explanation.dsse.json", "break-glass.dsse.json"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What the runs left behind: known files by name, artefacts by run, and everything else for the scanners."""

    files: dict[str, bytes]
    sandbox_artifact: bytes | None
    trusted_artifact: bytes | None
    others: tuple[tuple[str, bytes], ...]


def read_evidence(folder: str, artifact: str) -> Evidence:
    """The evidence in a folder; raises Malformed or OSError where it cannot be read."""
    if not os.path.isdir(folder):
        raise Malformed("the evidence folder does not exist")
    files, others = {}, []
    for name in _listed(folder):
        if name.startswith("artifacts/"):
            continue
        raw = read_regular(os.path.join(folder, name), MAX_FILE)
        if name in _KNOWN:
            files[name] = raw
        else:
            others.append((name, raw))
    sandbox, trusted = (_artifact(folder, run, artifact) for run in ("sandbox", "trusted"))
    return Evidence(files=files, sandbox_artifact=sandbox, trusted_artifact=trusted, others=tuple(others))


def read_folder(folder: str) -> dict[str, bytes]:
    """Regular JSON files directly in a folder, by name; raises Malformed or OSError."""
    if not os.path.isdir(folder):
        raise Malformed("the trust folder does not exist")
    names = sorted(name for name in os.listdir(folder) if name.endswith(".json"))[:MAX_FILES]
    return {name: read_regular(os.path.join(folder, name), MAX_FILE) for name in names}


def read_regular(path: str, limit: int) -> bytes:
    """The bytes of a regular file that is no link; a FIFO cannot stall it, a device cannot flood it."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        info = os.fstat(file.fileno())
        if not stat.S_ISREG(info.st_mode) or info.st_size > limit:
            raise Malformed(f"{os.path.basename(path)[:80]!a} is not a regular file of at most {limit} bytes")
        raw = file.read(limit + 1)
    if len(raw) > limit:
        raise Malformed(f"{os.path.basename(path)[:80]!a} is larger than {limit} bytes")
    return raw


def _artifact(folder: str, run: str, name: str) -> bytes | None:
    if not name or "/" in name or name.startswith("."):
        raise Malformed("the policy's artifact name is not a plain file name")
    for part in ("artifacts", f"artifacts/{run}"):
        if os.path.islink(os.path.join(folder, part)):
            raise Malformed(f"{part} is a link")
    try:
        return read_regular(os.path.join(folder, "artifacts", run, name), MAX_ARTIFACT)
    except FileNotFoundError:
        return None


def _listed(folder: str) -> list[str]:
    names: list[str] = []
    for root, folders, files in os.walk(folder, followlinks=False):
        links = [name for name in folders if os.path.islink(os.path.join(root, name))]
        names.extend(os.path.relpath(os.path.join(root, name), folder) for name in (*files, *links))
        if len(names) > MAX_FILES:
            raise Malformed(f"more than {MAX_FILES} files")
    return sorted(names)
