"""Gate 5: a named person who can be reached, and a way back that was walked once. Pure."""

import re
import shlex
from datetime import UTC, date, datetime

from ringfence.promotion.change import Change
from ringfence.promotion.findings import Finding, finding
from ringfence.promotion.policy import Owners, Policy
from ringfence.promotion.statements import Rehearsal

_PLACE = re.compile(r"\{([a-z_]+)\}")
_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}\Z")


def check_owner(owner: str, *, owners: Owners, change: Change, actor: str, at: int, where: str) -> list[Finding]:
    """Findings about the claimed owner, who is a key of the base's directory, compared byte for byte."""
    if owner in owners.not_humans:
        return [finding("owner.unknown", f"{owner[:60]!a} is listed as no person", where)]
    person = owners.humans.get(owner)
    if person is None:
        return [finding("owner.unknown", f"{owner[:60]!a} is not in the base's directory", where)]
    found = []
    if not person.name.strip() or not person.channel.strip():
        found.append(finding("owner.unknown", f"{owner} has no name or channel", where))
    today = datetime.fromtimestamp(at, UTC).date()
    try:
        until = date.fromisoformat(person.until)
    except ValueError:
        until = date.min
    if until < today:
        found.append(finding("owner.unknown", f"{owner} counted until {person.until[:20]!a}", where))
    if wrote(change, person.name, person.emails) or (actor and owner == f"@{actor}"):
        found.append(finding("owner.unknown", f"{owner} is the author of this change", where))
    return found


def wrote(change: Change, name: str, emails: tuple[str, ...]) -> bool:
    """Whether a commit of the change carries the person's name or mail as author."""
    return any(c.author[0] == name or c.author[1] in emails for c in change.commits)


def matching_template(command: str, policy: Policy) -> tuple[str, ...] | None:
    """The argument vector of a rollback command that the base allows, or None.

    A template's words are compared one by one; ``{merge}`` stays as it is, because no merge exists yet.
    """
    for template in policy.rollback_commands:
        words, wanted = command.split(" "), template.split(" ")
        if len(words) == len(wanted) and all(map(_fits, words, wanted, [policy] * len(words))):
            return tuple(words)
    return None


def _fits(word: str, wanted: str, policy: Policy) -> bool:
    if word == wanted:
        return True
    place = _PLACE.fullmatch(wanted)
    match place.group(1) if place else "":
        case "service":
            return word in policy.services
        case "previous":
            return bool(_WORD.match(word))
        case _:
            return False


def check_rollback(
    command: str,
    *,
    policy: Policy,
    change: Change,
    rehearsals: tuple[Rehearsal, ...] | None,
    commit: str,
    where: str,
) -> list[Finding]:
    """Findings about the claimed command and its rehearsal. ``rehearsals`` None: no proved statements."""
    argv = matching_template(command, policy)
    if argv is None or shlex.split(command) != list(argv):
        return [finding("rollback.not_a_command", f"{command[:120]!a} is none of the base's commands", where)]
    found = []
    if any(item.path == argv[0] for item in change.touched):
        found.append(finding("rollback.unproven", f"{argv[0]} is itself part of the change", change.label))
    for_it = [item for item in rehearsals or () if item.command == command]
    if not for_it:
        return [*found, finding("rollback.unproven", "no proved rehearsal of that command", "ci.intoto.jsonl")]
    whys = [why for item in for_it if (why := _why_unproven(item, change, commit))]
    return [*found, *(finding("rollback.unproven", why, "ci.intoto.jsonl") for why in whys)]


def _why_unproven(item: Rehearsal, change: Change, commit: str) -> str:
    if item.commits != (commit,):
        return "it was rehearsed for another commit"
    if item.environment != "staging":
        return f"rehearsed in {item.environment[:40]!a}, not in staging"
    if item.exit_code != 0:
        return f"it ended with exit code {item.exit_code}"
    if item.tree_before not in {change.base.tree, change.fork.tree}:
        return "it did not begin from the base's tree"
    if item.tree_after != item.tree_before:
        return "the tree after it is not the tree before the change"
    return ""
