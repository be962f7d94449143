"""A program table: which options exist, what their values are, what operands are. Built from data, used purely.

The written form is described in docs/program-tables.md.
"""

import re
from dataclasses import dataclass, field

ROLES = frozenset({
    "flags", "text", "read", "write", "delete", "execute", "directory", "executes", "runs", "code", "writes", "network",
    "host", "pattern", "script", "indirect", "refuse", "recursive", "exits", "plugin", "coverage", "upload", "suffix", "stem", "setting", "mode",
})  # fmt: skip
"""What an option does or what its value is; each is a key of a table that lists options."""

_NO_VALUE = frozenset({"flags", "runs", "writes", "network", "recursive", "exits", "refuse"})
DANGEROUS = frozenset({"write", "delete", "execute", "executes", "runs", "code", "writes", "network", "host", "script", "directory", "indirect"})  # fmt: skip
_KEYS = frozenset({
    "also", "operands", "style", "numbers", "reader", "fulfils", "scan", "abbreviate", "harmless", "subcommands", "edits",
    "why", "words", "plain", "target", "stdin", "like", "recursive_always", "equals", "plus", "networked", "packs",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Option:
    """One option. ``value``: none, next (or attached), or attached only."""

    name: str
    role: str
    takes: bool
    optional: bool = False
    harmless: bool = False
    skip: int = 0
    """Words between the option and its value (``jq --slurpfile NAME FILE``)."""


@dataclass(frozen=True, slots=True)
class Table:
    """How one program, or one subcommand of it, reads its arguments."""

    name: str
    options: dict[str, Option]
    longs: tuple[str, ...]
    operands: tuple[str, ...]
    repeat: int
    """Index of the operand role that repeats, or -1."""
    style: str = "gnu"
    numbers: bool = False
    reader: str = ""
    fulfils: frozenset[str] = frozenset()
    scan: str = ""
    abbreviate: bool = True
    subcommands: bool = False
    edits: bool = False
    """Options of role ``writes`` turn the path operands into writes."""
    target: frozenset[str] = frozenset()
    """Options that name the destination, so that every operand is a source."""
    stdin: str = ""
    plain: bool = False
    """No option of it does harm, so that a word that may be an option does none."""
    why: dict[str, str] = field(default_factory=dict)
    recursive: bool = False
    equals: bool = False
    """``-o=value`` is read as ``value``."""
    packs: bool = False
    """It replaces files by packed ones and back, under a name that is longer or shorter by an ending."""
    networked: bool = False
    """It opens connections in its plain form."""
    plus: bool = False
    """Words that begin with ``+`` are options or formats, not operands."""


class TableError(ValueError):
    """A table that is not well written; says where and what."""


def build(name: str, data: dict[str, object]) -> Table:
    """The table of ``name`` from its data; raises TableError on anything it does not know."""
    options: dict[str, Option] = {}
    harmless = frozenset(str(data.get("harmless", "")).split())
    for key, value in data.items():
        if key in ROLES:
            for spelled in _text(name, key, value).split():
                option = _option(spelled, key, harmless)
                options[option.name] = option
        elif key not in _KEYS and not isinstance(value, dict):
            raise TableError(f"table `{name}`: unknown key `{key}`")
    for spelled in harmless:
        options.setdefault(spelled, Option(spelled, "flags", takes=False, harmless=True))
    operands = tuple(_text(name, "operands", data.get("operands", "text...")).split())
    repeat = next((index for index, role in enumerate(operands) if role.endswith("...")), -1)
    plain = bool(data.get("plain", not any(option.role in DANGEROUS for option in options.values())))
    return Table(
        name=name,
        options=options,
        longs=tuple(option for option in options if option.startswith("--")),
        operands=tuple(role.removesuffix("...").removesuffix("?") for role in operands),
        repeat=repeat,
        style=_text(name, "style", data.get("style", "gnu")),
        numbers=bool(data.get("numbers", False)),
        reader=_text(name, "reader", data.get("reader", "")),
        fulfils=frozenset(_text(name, "fulfils", data.get("fulfils", "")).split()),
        scan=_text(name, "scan", data.get("scan", "")),
        abbreviate=bool(data.get("abbreviate", True)),
        subcommands=bool(data.get("subcommands", False)),
        edits=bool(data.get("edits", False)),
        target=frozenset(_text(name, "target", data.get("target", "")).split()),
        stdin=_text(name, "stdin", data.get("stdin", "")),
        plain=plain,
        why=_reasons(name, data.get("why", {})),
        recursive=bool(data.get("recursive_always", False)),
        equals=bool(data.get("equals", False)),
        plus=bool(data.get("plus", False)),
        packs=bool(data.get("packs", False)),
        networked=bool(data.get("networked", False)),
    )


def _option(spelled: str, role: str, harmless: frozenset[str]) -> Option:
    optional = spelled.endswith("[]")
    skip = len(spelled) - len(spelled.rstrip("+")) if len(spelled) > 2 else 0
    name = spelled[: len(spelled) - skip].removesuffix("[]").removesuffix("=")
    takes = role not in _NO_VALUE or spelled.endswith("=")
    if optional and role in _NO_VALUE:
        takes = True
    if name in ("-", "--") or not re.fullmatch(r"-{1,2}[^\s=]+|[^\s-][^\s=]*", name):
        raise TableError(f"`{spelled}` is no option")
    return Option(name, role, takes=takes, optional=optional, harmless=name in harmless, skip=skip)


def _text(name: str, key: str, value: object) -> str:
    if not isinstance(value, str):
        raise TableError(f"table `{name}`: `{key}` must be text")
    return value


def _reasons(name: str, value: object) -> dict[str, str]:
    if not isinstance(value, dict):
        raise TableError(f"table `{name}`: `why` must be a table of option and reason")
    return {str(key): str(text) for key, text in value.items()}
