"""The pinned commit: the evidence commit adds the evidence file and nothing else, on top of what was re-run. Pure."""

from dataclasses import dataclass

from ringfence.promotion.change import Change, Reader
from ringfence.promotion.claim import Claim, read_claim
from ringfence.promotion.findings import Finding, finding
from ringfence.promotion.gather import is_on, unexplained_merge
from ringfence.promotion.globs import matches
from ringfence.promotion.objects import FILE, BadObject, Node, diff_trees, find_path


@dataclass(frozen=True, slots=True, kw_only=True)
class Pinned:
    """The claim read from the head tree, the commit under it, and the path it stands at."""

    claim: Claim | None
    commit: str
    path: str
    found: tuple[Finding, ...]


def read_pin(change: Change, evidence_file: str, reader: Reader) -> Pinned:
    """The evidence file as the head tree holds it, and everything wrong with its place."""
    evidence = change.evidence
    found: list[Finding] = []
    parent = evidence.parents[0] if len(evidence.parents) == 1 else ""
    under = diff_trees(reader.commit(parent).tree, evidence.tree, reader.tree) if parent else []
    path = _path(evidence_file, [item.path for item in under])
    where = f"{path} in the head tree"
    node = find_path(evidence.tree, path, reader.tree)
    claim = None
    if node is None or node.mode != FILE:
        found.append(finding("evidence.not_a_file", _what(node), where))
    else:
        claim, malformed = read_claim(reader.blob(node.oid), id_length=len(evidence.oid), where=where)
        found.extend(malformed)
        if (
            find_path(change.base.tree, path, reader.tree) == node
            or find_path(change.fork.tree, path, reader.tree) == node
        ):
            found.append(
                finding("evidence.stale", "it is on the base already: left behind by an earlier change", where)
            )
    others = [item.path for item in under if item.path != path]
    if others:
        found.append(
            finding("sha.content_after_pin", f"the last commit also changes {', '.join(others[:4])}", change.label)
        )
    found.extend(_check_parent(claim, parent, change, reader))
    return Pinned(claim=claim, commit=parent or evidence.oid, path=path, found=tuple(found))


def _path(evidence_file: str, changed: list[str]) -> str:
    """The file's path; a policy with a glob asks for one file per change."""
    if "*" not in evidence_file:
        return evidence_file
    named = [path for path in changed if matches(path, evidence_file)]
    return named[0] if len(named) == 1 else evidence_file.replace("*", "?")


def _what(node: Node | None) -> str:
    words = {"120000": "a symbolic link", "100755": "an executable file", "160000": "a submodule", "40000": "a folder"}
    return "nothing stands there" if node is None else words.get(node.mode, f"mode {node.mode}")


def _check_parent(claim: Claim | None, parent: str, change: Change, reader: Reader) -> list[Finding]:
    if claim is None or claim.git_sha == parent:
        inside = {commit.oid for commit in change.commits}
        if parent and parent not in inside and claim is not None:
            return [finding("sha.not_parent", "git_sha is a commit of the base, not of the change", change.label)]
        return []
    said = f"git_sha is {claim.git_sha[:40]!a}, the evidence commit's only parent is {parent[:12] or 'none'}"
    found = [finding("sha.not_parent", said, change.label)]
    pinned = next((commit for commit in change.commits if commit.oid == claim.git_sha), None)
    if pinned is not None:
        later = [item.path for item in diff_trees(pinned.tree, change.evidence.tree, reader.tree)]
        found.append(finding("sha.content_after_pin", f"changed after it: {', '.join(later[:4])}", change.label))
    return found


def tested_commit(sha: str, *, commit: str, change: Change, reader: Reader) -> str | None:
    """Why a token's ``sha`` does not stand for the pinned commit; None if it does.

    On pull requests GitHub tests a merge of the base and the head: two parents, the second is the pinned commit.
    """
    if sha == commit:
        return None
    said = f"is {sha[:40]!a}, not the pinned commit"
    try:
        merge = reader.commit(sha) if len(sha) == len(commit) else None
        if merge is None or len(merge.parents) != 2 or merge.parents[1] != commit:
            return f"{said} nor a merge of it"
        if not is_on(merge.parents[0], change.base.oid, reader):
            return f"{said}, but a merge of it with something that is not on the base"
        odd = unexplained_merge(merge, reader)
    except BadObject:
        return f"{said}, and no commit of this repository (fetch refs/pull/*/merge)"
    both = set(change.moved)
    strange = [path for path in odd if path not in both]
    return f"is a merge with content of its own: {', '.join(strange[:3])}" if strange else None
