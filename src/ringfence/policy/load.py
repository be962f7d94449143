"""Policy files from disk: who owns them, whether they can be believed, and what they become together."""

import errno
import os
import stat
from collections.abc import Callable, Iterable

from ringfence.model.errors import PolicyError
from ringfence.model.tier import Scope, Tier
from ringfence.policy import effective as effective_module
from ringfence.policy.compile import Scoped, check_roots
from ringfence.policy.document import Document, NetworkRule
from ringfence.policy.effective import Effective
from ringfence.policy.facts import home_of_user
from ringfence.policy.facts_index import join
from ringfence.policy.globs import PathPattern
from ringfence.policy.presets import expand
from ringfence.policy.read_document import read_document

MAX_BYTES = 4 << 20
FILE_NAME = "sandbox_policy.yaml"
FIXTURES_NAME = "sandbox_fixtures.json"

KNOWN_NETWORK_PRESETS = frozenset(
    [
        "android",
        "apk",
        "apt",
        "apt-ubuntu",
        "bazel",
        "bun",
        "composer",
        "conda",
        "cran",
        "crates",
        "dart",
        "deno",
        "docker",
        "dotnet",
        "ghcr",
        "github-api-read",
        "github-lfs",
        "github-raw",
        "github-read",
        "gitlab-read",
        "go",
        "go-toolchain",
        "gradle",
        "haskell",
        "hex",
        "homebrew",
        "huggingface",
        "jdk",
        "k8s",
        "llm-anthropic",
        "llm-google",
        "llm-openai",
        "maven",
        "mcr",
        "nix",
        "node",
        "node-postinstall",
        "npm",
        "nuget",
        "osv",
        "pki",
        "playwright",
        "puppeteer",
        "pypi",
        "pytorch",
        "quay",
        "rubygems",
        "rustup",
        "sigstore-verify",
        "terraform",
        "uv",
        "yarn",
    ]
)
"""Names that a policy may write; their hosts are the egress room's data and come through the hook."""


def load(
    path: str,
    *,
    trusted: bool,
    organisation: str | None,
    user: str | None,
    mission: str | None,
    network_presets: object,
    scope: Scope = Scope.REPOSITORY,
) -> tuple[str, str, Effective]:
    """Root, home and effective policy of a repository's policy file and those of the other scopes.

    ``scope`` is another one where somebody reviews a text that is to become, say, the organisation's.
    """
    name = os.path.basename(path)
    root = os.path.realpath(os.path.dirname(path) or ".")
    text = read_text(path, owners=_owners(root), follow=False)
    scopes = []
    wider = ((Scope.ORGANISATION, organisation), (Scope.USER, user), (Scope.MISSION, mission))
    for above, file in wider:
        if file is not None and is_there(file):
            scopes.append(_wider(above, file, network_presets))
    document = _document(text, name, network_presets, scope)
    scopes.append(Scoped(scope=scope, document=document, trusted=trusted))
    return _finish(root, tuple(scopes))


def load_organisation(file: str, *, network_presets: object) -> tuple[str, str, Effective] | None:
    """The organisation's policy alone, as it is in force; None where there is no file. Raises PolicyError."""
    if not is_there(file):
        return None
    return _finish("/", (_wider(Scope.ORGANISATION, file, network_presets),))


def _wider(scope: Scope, file: str, network_presets: object) -> Scoped:
    owners = frozenset({0}) if scope is Scope.ORGANISATION else frozenset({0, os.getuid()})
    return Scoped(scope=scope, document=_document(read_text(file, owners=owners), file, network_presets, scope))


def is_there(file: str) -> bool:
    """Whether a scope has a policy file. One that cannot be looked at is there: reading it is what fails."""
    try:
        os.lstat(file)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True


def parse(text: str, *, root: str, file: str, trusted: bool, network_presets: object) -> tuple[str, str, Effective]:
    """Root, home and effective policy of one text."""
    document = _document(text, file, network_presets, Scope.REPOSITORY)
    scoped = Scoped(scope=Scope.REPOSITORY, document=document, trusted=trusted)
    return _finish(os.path.realpath(root), (scoped,))


def _finish(root: str, scopes: tuple[Scoped, ...]) -> tuple[str, str, Effective]:
    home = home_of_user()
    for scoped in scopes:
        roots = scoped.document.roots
        if roots is not None:
            check_roots(roots, home, {item.path: os.path.realpath(join(root, item.path)) for item in roots})
    return root, home, effective_module.make(scopes)


def _document(text: str, file: str, network_presets: object, scope: Scope) -> Document:
    document = expand(read_document(text, file=file))
    _check(document)
    if document.retention is not None and scope is not Scope.ORGANISATION:
        raise PolicyError(
            "not-in-this-scope",
            f"`audit.retention` stands in the {scope.value}'s policy and counts in the organisation's alone",
            where=effective_module.at_text(document.retention.at),
            remedy="write it into /etc/ringfence/policy.yaml; one ledger keeps longer with `ringfence ledger retention`",
        )
    return _network_presets(document, network_presets)


def _check(document: Document) -> None:
    """What can only be checked with the whole document at hand. Raises PolicyError."""
    from ringfence.policy.self_test import check_examples

    for rules in (document.files.read, document.files.write, document.files.delete):
        for rule in rules or ():
            pattern = PathPattern(rule.pattern)
            if rule.tier is Tier.ALLOW and (pattern.absolute or pattern.home) and pattern.everything:
                raise PolicyError(
                    "root-too-broad",
                    f"`{rule.pattern}` allows the whole {'home' if pattern.home else 'file system'}",
                    where=effective_module.at_text(rule.at),
                    remedy="name the folders that are needed",
                )
    if document.patterns:
        from ringfence.policy.judge_patterns import Pattern

        for pattern_rule in document.patterns:
            Pattern(pattern_rule, Scope.REPOSITORY)
    check_examples(document)


def _network_presets(document: Document, hook: object) -> Document:
    import msgspec

    if not any(rule.preset for rule in document.network):
        return document
    found: list[NetworkRule] = []
    for rule in document.network:
        if not rule.preset:
            found.append(rule)
        elif callable(hook):
            found += [
                msgspec.structs.replace(
                    rule,
                    tier=max(
                        rule.tier, given.tier
                    ),  # a preset may ask or deny where the rule allows, never the reverse
                    host=given.host,
                    ports=given.ports,
                    methods=given.methods,
                    paths=given.paths,
                    because=given.because or rule.because,
                )
                for given in _given(hook, rule)
            ]
        elif rule.preset in KNOWN_NETWORK_PRESETS:
            found.append(rule)
        else:
            raise PolicyError(
                "unknown-preset",
                f"there is no network preset `{rule.preset}`",
                where=effective_module.at_text(rule.at),
                remedy=f"presets: {', '.join(sorted(KNOWN_NETWORK_PRESETS))}",
            )
    return msgspec.structs.replace(document, network=tuple(found))


def _given(hook: Callable[..., Iterable[NetworkRule]], rule: NetworkRule) -> Iterable[NetworkRule]:
    """What a network preset stands for. A fault in it is one of the line that names it."""
    try:
        return hook(rule.preset, inspect=rule.inspect)
    except PolicyError as error:
        error.where = error.where or effective_module.at_text(rule.at)
        raise


def _owners(root: str) -> frozenset[int]:
    """Who may own a repository's policy: this user, root, and whoever owns the repository."""
    try:
        return frozenset({0, os.getuid(), os.stat(root).st_uid})
    except OSError:
        return frozenset({0, os.getuid()})


def read_text(path: str, *, owners: frozenset[int], follow: bool = True) -> str:
    """The text of a file that only these owners can have written. Raises PolicyError.

    A repository's policy is not followed through a symbolic link: what a person reviews must be what is read.
    """
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | (0 if follow else os.O_NOFOLLOW)
    try:
        descriptor = os.open(path, flags)
    except OSError as error:
        raise _unopened(path, error) from None
    try:
        _check_file(path, os.fstat(descriptor), owners)
        data = _read_all(descriptor)
    finally:
        os.close(descriptor)
    if len(data) > MAX_BYTES:
        raise PolicyError(
            "policy-too-large", f"the file is larger than {MAX_BYTES} bytes", where=path, remedy="shorten the file"
        )
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise PolicyError("not-yaml", "the file is not UTF-8 text", where=path, remedy="save it as UTF-8") from None


def _unopened(path: str, error: OSError) -> PolicyError:
    if isinstance(error, FileNotFoundError):
        remedy = "name a file that is there, or write one with `ringfence init`"
        return PolicyError("policy-missing", "there is no such file", where=path, remedy=remedy)
    if error.errno == errno.ELOOP:
        remedy = "put the file itself there: what is reviewed must be what is read"
        return PolicyError("policy-unreadable", "the file is a symbolic link", where=path, remedy=remedy)
    what = f"the file cannot be read: {error.strerror}"
    return PolicyError("policy-unreadable", what, where=path, remedy="make the file readable")


def _read_all(descriptor: int) -> bytes:
    chunks, size = [], 0
    while size <= MAX_BYTES and (chunk := os.read(descriptor, 1 << 20)):
        chunks.append(chunk)
        size += len(chunk)
    return b"".join(chunks)


def _check_file(path: str, found: os.stat_result, owners: frozenset[int]) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise PolicyError("policy-unreadable", "not a regular file", where=path, remedy="put a file there")
    if found.st_uid not in owners:
        raise PolicyError(
            "policy-owner",
            f"the file belongs to uid {found.st_uid}, which is neither you, root nor the owner of the repository",
            where=path,
            remedy=f"look at it, then take it over: chown {os.getuid()} {path}",
        )
    loose = stat.S_IWOTH if 0 not in owners or len(owners) > 1 else stat.S_IWOTH | stat.S_IWGRP
    if found.st_mode & loose:
        raise PolicyError(
            "policy-writable",
            f"others can write the file (mode {stat.S_IMODE(found.st_mode):04o})",
            where=path,
            remedy=f"chmod go-w {path}",
        )
