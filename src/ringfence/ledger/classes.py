"""For how long records are kept, and who says so: the organisation's policy, this ledger's own setting, the defaults. Pure.

The organisation's days are a floor: this ledger may keep longer, never shorter. Where the organisation's policy cannot be
known, nothing is shortened: what it asked for last goes on to count, and nothing may leave.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ringfence.model.entry import Json
from ringfence.model.errors import LedgerError

OPERATIONAL, COMPLIANCE = "operational_days", "compliance_days"
DEFAULTS = {OPERATIONAL: 90, COMPLIANCE: 365}
LEAST_COMPLIANCE_DAYS = 365


@dataclass(frozen=True, slots=True, kw_only=True)
class Classes:
    """Days that records stay at hand, and days that they stay at all."""

    operational_days: int = DEFAULTS[OPERATIONAL]
    compliance_days: int = DEFAULTS[COMPLIANCE]

    def __post_init__(self) -> None:
        """A year is the least that compliance keeps, and nothing leaves before it was archived."""
        least = max(LEAST_COMPLIANCE_DAYS, self.operational_days)
        if self.operational_days < 1 or self.compliance_days < least:
            raise LedgerError(
                "bad-retention",
                f"operational {self.operational_days} and compliance {self.compliance_days} days are not possible",
                remedy="operational at least 1, compliance at least 365 and not less than operational",
            )

    @property
    def days(self) -> dict[str, int]:
        """Both, by name."""
        return {OPERATIONAL: self.operational_days, COMPLIANCE: self.compliance_days}


@dataclass(frozen=True, slots=True, kw_only=True)
class Stated:
    """Days as one source states them. ``None``: it does not say."""

    operational_days: int | None = None
    compliance_days: int | None = None

    @property
    def days(self) -> dict[str, int]:
        """What is stated, by name."""
        both = {OPERATIONAL: self.operational_days, COMPLIANCE: self.compliance_days}
        return {name: days for name, days in both.items() if days is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Organisation:
    """What the organisation's policy says: found and read, not there, or (``fault``) not to be used."""

    file: str = ""
    there: bool = False
    stated: Stated = Stated()
    policy: str = ""
    """Digest of the organisation's policy."""
    fault: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """What the log last told of: the days in force, where each came from, and what the organisation asked for."""

    classes: Classes = Classes()
    sources: Mapping[str, str] = field(default_factory=lambda: dict.fromkeys(DEFAULTS, "default"))
    organisation: Stated = Stated()
    policy: str = ""
    """Digest of the organisation's policy; empty where there was none."""

    def body(self) -> dict[str, Json]:
        """As entries and ``retention.json`` hold it."""
        found: dict[str, Json] = {**self.classes.days, "source": dict(self.sources)}
        if self.organisation.days:
            found["organisation"] = dict(self.organisation.days)
        if self.policy:
            found["policy"] = self.policy
        return found

    def same_as(self, other: "Recorded") -> bool:
        """Whether nothing changed but, perhaps, other parts of the organisation's policy."""
        return (self.classes, self.sources, self.organisation) == (other.classes, other.sources, other.organisation)


@dataclass(frozen=True, slots=True, kw_only=True)
class InForce:
    """The days in force now; ``problem`` says why nothing may leave, and is empty where it may."""

    now: Recorded
    problem: str = ""
    remedy: str = ""

    @property
    def classes(self) -> Classes:
        """The days."""
        return self.now.classes


def in_force(organisation: Organisation, local: Stated, last: Recorded | None) -> InForce:
    """What counts now: the organisation's days, kept longer where this ledger says so, else the defaults.

    ``last`` is what was recorded last: it says what an organisation's policy asked for that is not there any more.
    """
    asked, policy, problem, remedy = organisation.stated, organisation.policy, "", ""
    before = last.organisation if last is not None else Stated()
    if organisation.fault:
        problem = f"the organisation's policy cannot be used, so nobody knows how long to keep: {organisation.fault}"
        remedy = "repair the organisation's policy; until then nothing is archived or removed"
    elif not organisation.there and before.days:
        problem = "the organisation's policy is gone, which asked for " + _spelled(before)
        remedy = "put it back; an organisation that asks for nothing any more says so by a policy without `audit`"
    if problem:
        asked, policy = before, last.policy if last is not None else ""
    return InForce(now=_joined(asked, policy, local), problem=problem, remedy=remedy)


def _joined(asked: Stated, policy: str, local: Stated) -> Recorded:
    days, sources = _days(asked, local)
    if days[COMPLIANCE] < days[OPERATIONAL]:  # the organisation took back what allowed the longer operational days
        days[COMPLIANCE], sources[COMPLIANCE] = days[OPERATIONAL], sources[OPERATIONAL]
    return Recorded(classes=Classes(**days), sources=sources, organisation=asked, policy=policy)


def _days(asked: Stated, local: Stated) -> tuple[dict[str, int], dict[str, str]]:
    days, sources = dict(DEFAULTS), dict.fromkeys(DEFAULTS, "default")
    for name in DEFAULTS:
        floor, own = asked.days.get(name), local.days.get(name)
        if floor is not None:
            days[name], sources[name] = floor, "organisation"
        if own is not None and (floor is None or own > floor):
            days[name], sources[name] = own, "local"
    return days, sources


def kept_longer(present: Stated, given: Stated, organisation: Organisation) -> Stated:
    """The ledger's own days with those given put in.

    Raises ``retention-below-organisation`` for fewer than the organisation's, ``bad-retention`` for what cannot be.
    """
    _refuse_below(organisation.stated, given, file=organisation.file)
    merged = Stated(**{**present.days, **given.days})
    Classes(**_days(organisation.stated, merged)[0])
    return merged


def _refuse_below(asked: Stated, given: Stated, *, file: str) -> None:
    for name, least in asked.days.items():
        if given.days.get(name, least) < least:
            raise LedgerError(
                "retention-below-organisation",
                f"{name} {given.days[name]} is less than the {least} that the organisation's policy asks for",
                where=file,
                remedy=f"give {least} or more, or have the organisation change `audit.retention` in its policy",
            )


def read_recorded(value: object) -> Recorded | None:
    """What ``Recorded.body`` made; None where it is nothing of the kind. Raises ``bad-retention`` for days that cannot be."""
    if not isinstance(value, Mapping) or OPERATIONAL not in value or COMPLIANCE not in value:
        return None
    asked, told = (found if isinstance(found := value.get(key), Mapping) else {} for key in ("organisation", "source"))
    return Recorded(
        classes=Classes(**stated(value).days),
        sources={name: str(told.get(name, "local")) for name in DEFAULTS},
        organisation=stated(asked),
        policy=str(value.get("policy", "")),
    )


def stated(value: Mapping[str, object]) -> Stated:
    """The days in a mapping; other keys are left alone. Raises ValueError or TypeError for what is no number."""
    found = {name: int(str(value[name])) for name in DEFAULTS if value.get(name) is not None}
    return Stated(**found)


def _spelled(asked: Stated) -> str:
    return " and ".join(f"{name} {days}" for name, days in asked.days.items())
