"""The box's environment: a short list of names that may pass, what the policy adds, and our own. Pure.

A name that looks like a secret never passes, whoever asked for it: credentials reach the network only behind the fence.
"""

import re
from collections.abc import Iterable, Mapping

PASSED = frozenset({
    "CARGO_TERM_COLOR", "CI", "CLICOLOR", "CLICOLOR_FORCE", "COLORTERM", "COLUMNS", "FORCE_COLOR", "LANG", "LANGUAGE", "LINES",
    "NO_COLOR", "PYTHONDONTWRITEBYTECODE", "PYTHONHASHSEED", "PYTHONUNBUFFERED", "SOURCE_DATE_EPOCH", "TERM", "TZ",
})  # fmt: skip
"""None that names a program, a folder of code or options: what a line may not set in front of a command, a caller's environment
does not bring in either. Others pass where the policy says so."""
PASSED_PREFIXES = ("LC_",)
SECRET = re.compile(
    r"(?:^|_)(?:TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|PASS|PWD|CREDENTIALS?|AUTH|APIKEY|COOKIE|SESSION|DSN|NETRC|PAT)S?(?:_|$|\d)"
    r"|KEY(?:S|_ID|_FILE|_PATH|_DATA|_BASE64)?$|_KEY_|SECRET|TOKEN|PASSWORD|CREDENTIAL|PRIVATE|CONNECTION_STRING|DATABASE_URL",
    re.IGNORECASE,
)
NOT_SECRET = frozenset({"PWD", "OLDPWD", "GIT_TERMINAL_PROMPT"})
SECRET_VALUES = re.compile(
    r"AKIA[0-9A-Z]{16}|ASIA[0-9A-Z]{16}|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_|glpat-|xox[abprs]-|sk-[A-Za-z0-9_-]{16,}"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY|eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.|://[^/\s:@]+:[^/\s@]+@"
)


def looks_secret(name: str, value: str = "") -> bool:
    """Whether a variable's name, or what it holds, looks like a credential."""
    return name not in NOT_SECRET and bool(SECRET.search(name) or SECRET_VALUES.search(value))


def plan_environment(
    caller: Mapping[str, str],
    *,
    passed: Iterable[str] = (),
    settings: Mapping[str, str] | None = None,
    own: Mapping[str, str],
) -> tuple[tuple[str, str], ...]:
    """Sorted pairs: what may pass of the caller's, over it the policy's ``set``, over all of it our own."""
    allowed = PASSED | frozenset(passed)
    result = {
        name: value
        for name, value in caller.items()
        if (name in allowed or name.startswith(PASSED_PREFIXES)) and not looks_secret(name, value) and "\0" not in value
    }
    result.update({name: value for name, value in (settings or {}).items() if not looks_secret(name, value)})
    result.update(own)
    return tuple(sorted(result.items()))
