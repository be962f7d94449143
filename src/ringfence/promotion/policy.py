"""The promotion policy and the owners file, as the base's tree holds them. Pure: bytes in, frozen values out."""

from typing import TypeVar

import msgspec

from ringfence.promotion.strict import Malformed, parse_object

POLICY_PATH = "promotion/policy.json"
_T = TypeVar("_T")


class _Strict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class Artifact(_Strict, frozen=True):
    """What both runs build. ``reproducible`` false compares tables of members instead of bytes."""

    name: str
    path: str
    reproducible: bool = True


class Limits(_Strict, frozen=True):
    """Caps; a change at the cap passes, one above is refused. What is not named is 0, except bytes and paths."""

    paths: int
    services: int
    added_bytes: int
    iam_actions_added: int = 0
    regions: int = 1
    namespaces: int = 1
    clusters: int = 0
    schema_drops: int = 0
    authz_changes: int = 0
    secret_rotations: int = 0
    submodules: int = 0
    opaque_files: int = 0
    symlinks: int = 0
    commits: int = 500


class Allowed(_Strict, frozen=True):
    """Where a change may land."""

    regions: tuple[str, ...] = ()
    namespaces: tuple[str, ...] = ()
    clusters: tuple[str, ...] = ()


class Kinds(_Strict, frozen=True):
    """Which paths hold what. Files that look like one of these are read as such wherever they are."""

    iam: tuple[str, ...] = ()
    manifests: tuple[str, ...] = ()
    sql: tuple[str, ...] = ()
    authz: tuple[str, ...] = ()
    secret_rotation: tuple[str, ...] = ()


class Egress(_Strict, frozen=True):
    """Hosts that a sandbox run may have been allowed to reach."""

    allowlist_required: bool = True
    registry_hosts: tuple[str, ...] = ()


class TrustedRun(_Strict, frozen=True):
    """Names that must be among the passed tests. Empty: at least one test and one scanner (a name with ``scan``)."""

    required: tuple[str, ...] = ()


class FlagRules(_Strict, frozen=True):
    """``must_be_read``: the flag's name must occur in changed code. ``may_exist``: a flag already on the base will do."""

    must_be_read: bool = False
    may_exist: bool = False


class Excepted(_Strict, frozen=True):
    """A kind of change the gate cannot read, let through by the base for named paths. It names no command."""

    kind: str
    paths: tuple[str, ...]
    because: str


class RemovedGate(_Strict, frozen=True):
    """A gate taken away by the base where every changed path is one of ``only_paths``: ``flag``, ``owner``, ``rollback``."""

    gate: str
    only_paths: tuple[str, ...]
    because: str


class Policy(_Strict, frozen=True):
    """Everything the gate asks of a change. Only the base's copy is ever read."""

    version: int
    evidence_file: str
    artifact: Artifact
    services: dict[str, tuple[str, ...]]
    limits: Limits
    allowed: Allowed
    protected_paths: tuple[str, ...]
    kinds: Kinds
    flags: str
    owners: str
    rollback_commands: tuple[str, ...]
    egress: Egress
    trusted_run: TrustedRun = TrustedRun()
    flag_rules: FlagRules = FlagRules()
    sql_dialect: str = "postgres"
    cannot_tell_exceptions: tuple[Excepted, ...] = ()
    removed_gates: tuple[RemovedGate, ...] = ()
    break_glass: bool = False


class Human(_Strict, frozen=True):
    """A person who can be reached: a chat channel, and the last day (ISO date, UTC) the entry counts."""

    name: str
    channel: str
    until: str
    emails: tuple[str, ...] = ()


class Owners(_Strict, frozen=True):
    """The base's directory. A handle in ``not_humans`` is never an owner, whatever else says so."""

    humans: dict[str, Human]
    not_humans: tuple[str, ...] = ()


REMOVABLE = frozenset({"flag", "owner", "rollback"})


def parse_policy(raw: bytes) -> Policy:
    """The policy; raises Malformed naming the first thing wrong with it."""
    policy = _convert(raw, Policy)
    if policy.version != 1:
        raise Malformed(f"version {policy.version}, only 1 is known")
    numbers = [getattr(policy.limits, name) for name in Limits.__struct_fields__]
    if any(number < 0 for number in numbers):
        raise Malformed("a limit is negative")
    if not policy.egress.allowlist_required:
        raise Malformed("egress.allowlist_required must be true: a missing allowlist is a deny")
    if not policy.evidence_file or policy.evidence_file.startswith("/") or ".." in policy.evidence_file.split("/"):
        raise Malformed("evidence_file is not a path inside the repository")
    for removed in policy.removed_gates:
        if removed.gate not in REMOVABLE or not removed.only_paths or not removed.because.strip():
            raise Malformed("removed_gates: only flag, owner or rollback, with only_paths and because")
    for excepted in policy.cannot_tell_exceptions:
        if not excepted.paths or not excepted.because.strip():
            raise Malformed("cannot_tell_exceptions: paths and because are needed")
    return policy


def parse_owners(raw: bytes) -> Owners:
    """The owners; raises Malformed."""
    return _convert(raw, Owners)


def _convert(raw: bytes, kind: type[_T]) -> _T:
    try:
        return msgspec.convert(parse_object(raw, limit=1_048_576), kind, strict=True)
    except msgspec.ValidationError as error:
        raise Malformed(str(error)) from None
