"""The blast radius of a whole change: every touched file read as what it is. Pure."""

from dataclasses import dataclass, field
from posixpath import dirname, splitext

from ringfence.promotion.blast.access import access_within, as_text
from ringfence.promotion.blast.alembic import looks_like_alembic, unknown_in_alembic
from ringfence.promotion.blast.documents import Unreadable, read_documents
from ringfence.promotion.blast.iam import compare_iam, looks_like_iam
from ringfence.promotion.blast.manifests import compare_manifests, is_kustomization, looks_like_manifest
from ringfence.promotion.blast.packages import measure_packages
from ringfence.promotion.blast.paths import measure_paths
from ringfence.promotion.blast.sql import compare_sql
from ringfence.promotion.blast.stacks import is_excepted, recognise
from ringfence.promotion.blast.suites import measure_suites
from ringfence.promotion.change import Change, Side, Touched
from ringfence.promotion.findings import Finding, finding
from ringfence.promotion.globs import matches_any_case
from ringfence.promotion.policy import Policy
from ringfence.promotion.strict import Value

_STRUCTURED = (".json", ".yaml", ".yml")
# Nothing applies these, wherever they lie.
_PROSE = (".md", ".rst", ".adoc")


@dataclass(slots=True)
class _Tally:
    """Filled while the files are read, then turned into findings once."""

    iam: set[str] = field(default_factory=set)
    iam_notes: int = 0
    namespaces: set[str] = field(default_factory=set)
    regions: set[str] = field(default_factory=set)
    clusters: set[str] = field(default_factory=set)
    drops: int = 0
    access: int = 0
    rotations: int = 0
    unread: int = 0
    found: list[Finding] = field(default_factory=list)


def measure(change: Change, policy: Policy) -> tuple[list[Finding], dict[str, int]]:
    """All findings of gate 4 but the flag's, and the numbers."""
    found, numbers = measure_paths(change, policy)
    found.extend(measure_packages(change, policy))
    fewer, counts = measure_suites(change)
    found.extend(fewer)
    numbers.update(counts)
    tally = _Tally()
    stayed = _renamed_in_place(change)
    for item in change.touched:
        if item.path in stayed:
            _read_moved(item, policy, tally)
        else:
            _read_file(item, policy, tally)
    found.extend(tally.found)
    found.extend(_places(tally, policy, change.label))
    numbers.update(
        iam_actions_added=len(tally.iam) + tally.iam_notes,
        regions=len(tally.regions),
        namespaces=len(tally.namespaces),
        clusters=len(tally.clusters),
        schema_drops=tally.drops,
        authz_changes=tally.access,
        secret_rotations=tally.rotations,
        not_understood=tally.unread,
    )
    caps = (
        ("blast.iam", "iam_actions_added", policy.limits.iam_actions_added),
        ("blast.schema", "schema_drops", policy.limits.schema_drops),
        ("blast.authz", "authz_changes", policy.limits.authz_changes),
        ("blast.secret_rotation", "secret_rotations", policy.limits.secret_rotations),
    )
    names = f": {', '.join(sorted(tally.iam)[:6])}" if tally.iam else ""
    for code, name, cap in caps:
        if numbers[name] > cap:
            tail = names if code == "blast.iam" else ""
            found.append(finding(code, f"{name} {numbers[name]} of {cap}{tail}", change.label))
    return found, numbers


def _renamed_in_place(change: Change) -> set[str]:
    """Both names of files that moved unchanged, stayed in their folder and are still read as the same kind.

    All others are gone from one place and new at another: what applies a file finds it by its folder and its suffix.
    """
    contents = {item.path: _content(item.new) or b"" for item in change.touched}
    return {
        name
        for new, old in change.sources.items()
        if dirname(new) == dirname(old)
        and splitext(new)[1] == splitext(old)[1]
        and recognise(new, contents[new]) == recognise(old, contents[new])
        for name in (new, old)
    }


def _read_moved(item: Touched, policy: Policy, tally: _Tally) -> None:
    """A file that moved unchanged grants nothing new, unless the move takes it into or out of what its path means."""
    kinds = policy.kinds
    for globs, count in (
        (kinds.authz, "access"),
        (kinds.secret_rotation, "rotations"),
        (kinds.sql, "drops"),
        (kinds.iam, "iam_notes"),
    ):
        if matches_any_case(item.path, globs):
            setattr(tally, count, getattr(tally, count) + 1)


def _read_file(item: Touched, policy: Policy, tally: _Tally) -> None:
    kinds, path = policy.kinds, item.path
    if path.casefold().endswith(_PROSE):
        return
    if matches_any_case(path, kinds.authz):
        tally.access += _differs(item)
    if matches_any_case(path, kinds.secret_rotation):
        tally.rotations += _differs(item)
    in_iam = matches_any_case(path, kinds.iam) is not None
    in_manifests = matches_any_case(path, kinds.manifests) is not None
    in_sql = matches_any_case(path, kinds.sql) is not None
    content = _content(item.new) or _content(item.old) or b""
    stack = recognise(path, content)
    if looks_like_alembic(path, content):
        _read_alembic(item, tally)
    elif path.casefold().endswith(".sql") or (in_sql and not stack):
        _read_sql(item, policy, tally)
    elif stack is not None and not (in_iam and stack == "cloudformation"):
        if not is_excepted(stack, path, policy):
            _cannot_tell(tally, f"{path}: {stack} is not read here", in_sql=in_sql)
    elif in_iam or in_manifests or is_kustomization(path) or path.casefold().endswith(_STRUCTURED):
        _read_structured(item, tally, in_iam=in_iam, in_manifests=in_manifests)


def _cannot_tell(tally: _Tally, said: str, *, in_sql: bool = False) -> None:
    tally.unread += 1
    tally.found.append(finding("blast.cannot_tell", said, "head tree"))
    if in_sql:
        tally.found.append(finding("blast.schema", f"cannot tell: {said}", "head tree"))


def _read_alembic(item: Touched, tally: _Tally) -> None:
    unknown = (
        unknown_in_alembic(_content(item.new) or b"")
        if item.old is None
        else ["an existing revision was changed or removed"]
    )
    tally.drops += len(unknown)
    tally.found.extend(finding("blast.schema", f"{item.path}: {said}", "head tree") for said in unknown[:5])


def _read_sql(item: Touched, policy: Policy, tally: _Tally) -> None:
    try:
        if any(side is not None and side.content is None for side in (item.old, item.new)):
            raise Unreadable("too large to read, or not a file")
        delta = compare_sql(_content(item.old), _content(item.new), policy.sql_dialect)
    except Unreadable as error:
        tally.drops += 1
        tally.found.append(finding("blast.schema", f"{item.path}: cannot tell: {error}", "head tree"))
        return
    tally.drops += len(delta.drops) + len(delta.cannot_tell)
    tally.access += len(delta.access)
    unsure = (f"cannot tell: {said}" for said in delta.cannot_tell)
    tally.found.extend(finding("blast.schema", f"{item.path}: {said}", "head tree") for said in (*delta.drops, *unsure))
    tally.found.extend(finding("blast.authz", f"{item.path}: {said}", "head tree") for said in delta.access)


def _read_structured(item: Touched, tally: _Tally, *, in_iam: bool, in_manifests: bool) -> None:
    try:
        old, new = _documents(item.path, item.old), _documents(item.path, item.new)
    except Unreadable as error:
        for wanted, code in ((in_iam, "blast.iam"), (in_manifests, "blast.region")):
            if wanted:
                tally.found.append(finding(code, f"{item.path}: cannot tell: {error}", "head tree"))
        if not (in_iam or in_manifests) and _smells(item):
            _cannot_tell(tally, f"{item.path}: {error}")
        return
    if in_iam or any(looks_like_iam(document) for document in (*old, *new)):
        _tally_iam(item.path, old, new, tally)
    elif access_within(new) - access_within(old):
        tally.access += 1
        tally.found.append(finding("blast.authz", f"{item.path}: grants access inside another document", "head tree"))
    if in_manifests or is_kustomization(item.path) or looks_like_manifest(old) or looks_like_manifest(new):
        _tally_manifests(item.path, old, new, tally)


def _tally_iam(path: str, old: list[Value], new: list[Value], tally: _Tally) -> None:
    try:
        if max(len(old), len(new)) > 1:
            raise Unreadable("several documents")
        delta = compare_iam(old[0] if old else None, new[0] if new else None)
    except Unreadable as error:
        tally.iam_notes += 1
        tally.found.append(finding("blast.iam", f"{path}: cannot tell: {error}", "head tree"))
        return
    tally.iam |= delta.actions
    tally.iam_notes += len(delta.notes)
    tally.found.extend(finding("blast.iam", f"{path}: {note}", "base and head trees") for note in delta.notes)


def _tally_manifests(path: str, old: list[Value], new: list[Value], tally: _Tally) -> None:
    try:
        delta = compare_manifests(old, new)
    except Unreadable as error:
        tally.found.append(finding("blast.region", f"{path}: cannot tell: {error}", "head tree"))
        return
    tally.namespaces |= delta.namespaces
    tally.regions |= delta.regions
    tally.clusters |= delta.clusters
    tally.access += len(delta.access)
    tally.rotations += len(delta.secrets)
    tally.found.extend(finding("blast.authz", f"{path}: {said}", "base and head trees") for said in delta.access)
    tally.found.extend(
        finding("blast.secret_rotation", f"{path}: {said}", "base and head trees") for said in delta.secrets
    )


def _places(tally: _Tally, policy: Policy, label: str) -> list[Finding]:
    allowed, limits = policy.allowed, policy.limits
    checks = (
        ("namespaces", tally.namespaces, allowed.namespaces, limits.namespaces),
        ("regions", tally.regions, allowed.regions, limits.regions),
        ("clusters", tally.clusters, allowed.clusters, limits.clusters),
    )
    found = []
    for name, seen, known, cap in checks:
        outside = sorted(seen - set(known))
        if outside:
            found.append(finding("blast.region", f"{name} outside the base's list: {', '.join(outside)}", label))
        elif len(seen) > cap:
            found.append(finding("blast.region", f"{name} {len(seen)} of {cap}", label))
    return found


def _documents(path: str, side: Side | None) -> list[Value]:
    if side is None:
        return []
    if side.content is None or side.mode not in {"100644", "100755"}:
        raise Unreadable("too large to read, or not a file")
    return read_documents(path, side.content)


def _smells(item: Touched) -> bool:
    """Whether a file that cannot be parsed speaks of clusters or access all the same."""
    content = _content(item.new) or b""
    return any(word in content for word in (b"apiVersion", b"AWS::", b'"Effect"', b"Effect:"))


def _content(side: Side | None) -> bytes | None:
    return side.content if side is not None else None


def _differs(item: Touched) -> bool:
    """Whether both sides mean something else: a reordered or reindented document is no change."""
    if item.old is None or item.new is None or item.old.content is None or item.new.content is None:
        return True
    if item.old.mode != item.new.mode:
        return True
    try:
        return as_text(read_documents(item.path, item.old.content)) != as_text(
            read_documents(item.path, item.new.content)
        )
    except Unreadable:
        return item.old.content != item.new.content
