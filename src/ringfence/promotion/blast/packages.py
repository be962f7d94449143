"""Where packages would come from: hosts that a change brings into lock files and package lists, and digests that it drops. Pure.

Only lines that name a source count; a home page or a sponsor's address is none.
"""

import re
from collections.abc import Iterator

from ringfence.promotion.change import Change, Side, Touched
from ringfence.promotion.findings import Finding, finding
from ringfence.promotion.policy import Policy

_HOST = re.compile(rb"(?:[a-z+]+://(?:[^@/\s\"']*@)?|\bgit@)([A-Za-z0-9.-]+)")
_COMMENT = re.compile(rb"(?:^|\s)#.*")
_ANY = rb"^"
# File name to what a line holds that names a source.
_SOURCES = tuple(
    (re.compile(rf"(?:.*/)?{name}\Z", re.IGNORECASE), re.compile(line))
    for name, line in (
        (r"(?:package-lock|npm-shrinkwrap)\.json", rb'"resolved"\s*:'),
        (r"yarn\.lock", rb"^\s+resolved\b|^\s+resolution:"),
        (r"pnpm-lock\.yaml", rb"\b(?:tarball|registry):"),
        (r"bun\.lock", rb"https?://"),
        (r"(?:poetry|uv|pdm|pylock[^/]*|Cargo)\.(?:lock|toml)", rb"\b(?:url|registry|source|git|index)\s*="),
        (r"pyproject\.toml", rb"\b(?:url|git|index-url|extra-index-url|find-links)\s*=|\s@\s"),
        (r"Pipfile(?:\.lock)?", rb"\b(?:url|git)\"?\s*[=:]"),
        (r"(?:(?:requirements|constraints)[^/]*|requirements/[^/]*)\.(?:txt|in)", _ANY),
        (r"Gemfile(?:\.lock)?", rb"^\s*(?:remote:|source\b|git\b|gem\b.*\bgit:)"),
        (r"[^/]*\.gradle(?:\.kts)?", rb"\burl\b|\bmaven\b|\buri\("),
        (
            r"package\.json",
            rb'"(?!homepage|url|bugs|repository|license|author|\$schema)[^"]+"\s*:\s*"(?:git|ssh|https?)[:+]',
        ),
    )
)
_LOCKED = re.compile(r"(?:.*/)?(?:(?:package-lock|npm-shrinkwrap)\.json|yarn\.lock)\Z")


def measure_packages(change: Change, policy: Policy) -> list[Finding]:
    """Findings about hosts that neither the base's files nor its policy name, and about sources that lost their digest."""
    known = {host.rpartition(":")[0] or host for host in policy.egress.registry_hosts}
    known.update(host for item in change.touched for host in _hosts(item, item.old))
    found = []
    for item in change.touched:
        strange = sorted(set(_hosts(item, item.new)) - known)
        if strange:
            found.append(
                finding("packages.source", f"{item.path} takes packages from {', '.join(strange[:4])}", change.label)
            )
        elif _without_digest(item, item.new) > max(0, _without_digest(item, item.old)):
            found.append(finding("packages.source", f"{item.path} names sources without a digest", change.label))
    return found


def _hosts(item: Touched, side: Side | None) -> Iterator[str]:
    names = next((line for path, line in _SOURCES if path.match(item.path)), None)
    if names is None or side is None or side.content is None:
        return
    for whole in side.content.splitlines():
        line = _COMMENT.sub(b"", whole)
        if names.search(line):
            yield from (host.decode("ascii").casefold() for host in _HOST.findall(line))


def _without_digest(item: Touched, side: Side | None) -> int:
    if side is None or side.content is None or not _LOCKED.match(item.path):
        return 0
    return len(re.findall(rb'\bresolved\b"?:?\s', side.content)) - len(re.findall(rb"\bintegrity\b", side.content))
