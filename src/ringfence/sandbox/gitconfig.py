"""``.git/config`` as a box may see it: without credentials, helpers, programs, includes and extra headers. Pure."""

import re

KEPT = {
    "core": {
        "repositoryformatversion", "filemode", "bare", "logallrefupdates", "ignorecase", "precomposeunicode", "symlinks",
        "autocrlf", "eol", "safecrlf", "quotepath", "abbrev", "worktree", "sharedrepository", "compression", "untrackedcache",
        "sparsecheckout", "sparsecheckoutcone", "commentchar", "excludesfile", "whitespace", "preloadindex",
    },
    "branch": {"remote", "merge", "rebase", "description", "pushremote"},
    "remote": {"url", "fetch", "push", "pushurl", "tagopt", "prune", "mirror", "skipfetchall"},
    "submodule": {"url", "active", "branch", "path", "update", "ignore"},
    "user": {"name", "email"},
    "author": {"name", "email"},
    "committer": {"name", "email"},
    "init": {"defaultbranch"},
    "pull": {"rebase", "ff"},
    "push": {"default", "autosetupremote", "followtags"},
    "fetch": {"prune", "prunetags"},
    "merge": {"ff", "conflictstyle", "renamelimit"},
    "rebase": {"autosquash", "autostash", "updaterefs"},
    "diff": {"renames", "algorithm", "renamelimit", "mnemonicprefix", "nopreview"},
    "color": {"ui", "branch", "diff", "status"},
    "extensions": {"objectformat", "worktreeconfig", "refstorage", "partialclone", "preciousobjects"},
    "index": {"version", "threads"},
    "feature": {"manyfiles"},
    "status": {"showuntrackedfiles", "branch", "short"},
    "advice": {"detachedhead", "addignoredfile"},
    "lfs": {"repositoryformatversion"},
}  # fmt: skip
"""Section to keys that hold no credential and start no program. Everything else is left out."""

SECTION = re.compile(r'^\s*\[\s*([A-Za-z0-9.-]+)(?:\s+"((?:[^"\\]|\\.)*)")?\s*\]\s*(?:[#;].*)?$')
ENTRY = re.compile(r"^\s*([A-Za-z][A-Za-z0-9-]*)\s*(?:=\s*(.*))?$")
IN_URL = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*://)[^/\s]*@")
FILTER_KEYS = ("clean", "smudge", "process", "required")
KNOWN_FILTERS = re.compile(
    r'(?:cat|(?:\\")?(?:/[\w./-]*/)?(?:nbstripout|python[\d.]*(?:\\")? -m nbstripout))(?:\\")?|true', re.ASCII
)
"""Filters whose words say nothing but what they do. Others are programs with secrets, or words that may hold one."""
CLOSED = (
    "\"echo >&2 'ringfence: a filter of this repository does not run in a box: its files are for a person to add, outside'; "
    'exit 1"'
)
"""In place of any other filter: without one, git would take files into history as they lie, in plain text where it encrypts."""
STORED = (
    "\"echo >&2 'ringfence: a filter of this repository does not run in a box: a file is shown as it is stored'; cat\""
)
LARGE_FILES = (
    '[filter "lfs"]\n'
    '\tclean = "command -v git-lfs > /dev/null && exec git-lfs clean -- %f; '
    "echo >&2 'ringfence: git-lfs is not in the box: a file is taken as it lies'; cat\"\n"
    '\tsmudge = "command -v git-lfs > /dev/null && exec git-lfs smudge -- %f; '
    "echo >&2 'ringfence: git-lfs is not in the box: a file is shown as it is stored'; cat\"\n"
)
"""Usually in the person's own configuration, which no box has. As a process, a program that is not there would cost the file."""
FIXED = "[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n"
"""A background collection in a box would rewrite object files that the real repository keeps."""


def sanitise(text: str) -> str:
    """The configuration with only what the table keeps, and no user or password in any URL.

    ``git@host:path`` and ``ssh://git@host`` keep working: for ssh the user is part of the address, not a secret.
    What is not surely understood (continued lines, odd sections) is left out, never passed on.
    """
    out: list[str] = []
    section = name = ""
    skipping = False
    filters: dict[str, dict[str, str]] = {}
    for line in text.replace("\r\n", "\n").split("\n"):
        if skipping:
            skipping = line.endswith("\\")
            continue
        heading = SECTION.match(line)
        if heading:
            section = heading[1].lower()
            name = f'[{heading[1]} "{without_users(heading[2])}"]' if heading[2] is not None else f"[{heading[1]}]"
            out.append(name if section in KEPT else "")
            continue
        entry = ENTRY.match(line)
        skipping = line.endswith("\\")
        if section == "filter" and entry is not None and entry[1].lower() in FILTER_KEYS:
            filters.setdefault(name, {})[entry[1].lower()] = (entry[2] or "").strip()
            continue
        if entry is None or skipping or entry[1].lower() not in KEPT.get(section, ()):
            continue
        value = without_users(entry[2]) if entry[2] is not None else None
        if value is not None and _starts_program(value):
            continue
        out.append(f"\t{entry[1]}" if value is None else f"\t{entry[1]} = {value}")
    for name, programs in filters.items():
        if name != LARGE_FILES.partition("\n")[0]:
            out += [name, *(f"\t{key} = {text}" for key, text in _filter(programs).items())]
    return "\n".join(line for line in out if line) + "\n" + FIXED


def _filter(programs: dict[str, str]) -> dict[str, str]:
    """A filter as a box has it: one that works as outside, or one that takes no file into history."""
    if "process" not in programs and all(KNOWN_FILTERS.fullmatch(text) for text in programs.values()):
        return programs
    return {"required": "true", "clean": CLOSED, "smudge": STORED}


def without_users(text: str) -> str:
    """The text with no user or password in any URL in it; a bare user of ssh stays."""

    def keep(match: re.Match[str]) -> str:
        whole = match[0]
        is_ssh = match["scheme"].lower().startswith(("ssh://", "git+ssh://"))
        return whole if is_ssh and ":" not in whole[len(match["scheme"]) :] else match["scheme"]

    return IN_URL.sub(keep, text)


def _starts_program(value: str) -> bool:
    """``ext::`` and ``!`` values run a command."""
    bare = value.strip().strip('"')
    return bare.startswith(("!", "ext::")) or "::" in bare.split("/")[0]
