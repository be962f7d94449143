"""Faults: what happened, where, and what to do. A denial is a Decision, never one of these."""


class RingfenceError(Exception):
    """Base of every fault.

    ``code`` is stable, lowercase and names a heading in ``docs/errors.md``; ``what`` says what happened, ``where`` the
    file, socket or call, ``remedy`` the next step for the person. None of them may hold a secret's value.
    """

    def __init__(self, code: str, what: str, *, where: str = "", remedy: str = "") -> None:
        """Keep the four parts apart; ``str()`` joins them for a log line."""
        super().__init__(what)
        self.code = code
        self.what = what
        self.where = where
        self.remedy = remedy

    def __str__(self) -> str:
        """Three lines for a person: the fault, the place, the remedy."""
        lines = [f"error[{self.code}]: {self.what}"]
        if self.where:
            lines.append(f"  --> {self.where}")
        lines.append(f"  fix: {self.remedy or f'see docs/errors.md#{self.code}'}")
        return "\n".join(lines)


class PolicyError(RingfenceError):
    """The policy or its fixtures cannot be used: exit 3."""


class BoxError(RingfenceError):
    """The box could not be built as promised, so nothing ran: exit 13."""


class LedgerError(RingfenceError):
    """The ledger could not be written or read, so nothing ran."""


class PromotionError(RingfenceError):
    """Evidence or repository could not be read: the gate refuses."""
