"""The bundled starting points that ``extends`` names. Data files beside this one; read once, then kept.

A preset is a policy document without ``fail_closed``. Its rules join the scope of the document that extends it and
are part of that policy's digest as expanded, so that an upgrade of ringfence never changes a decision unseen.
"""

import functools
import importlib.resources

import msgspec

from ringfence.model.errors import PolicyError
from ringfence.policy.document import Document, FileRules, PathRule, ProcessRules

NAMES = ("coding-agent", "python", "node", "git")


@functools.cache
def load_preset(name: str) -> Document:
    """The document of one preset. Raises PolicyError for a name that is not bundled."""
    from ringfence.policy.read_document import read_document

    text = preset_text(name)
    version = text.split("\n", 1)[0].removeprefix("# version ").strip()
    document = read_document(text, file=f"preset:{name}@{version}", preset=True)
    return expand(document)


def preset_text(name: str) -> str:
    """The text of one preset, for people."""
    if name not in NAMES:
        raise PolicyError("unknown-preset", f"there is no preset `{name}`", remedy=f"presets: {', '.join(NAMES)}")
    return (importlib.resources.files("ringfence.policy") / "presets" / f"{name}.yaml").read_text(encoding="utf-8")


def expand(document: Document) -> Document:
    """The document with the rules of everything it extends in front of its own.

    Where a document and its presets both state a single value, the document's own counts.
    """
    merged = document
    for name in reversed(dict.fromkeys(document.extends)):
        try:
            merged = _join(load_preset(name), merged)
        except PolicyError as error:
            if not error.where:
                error.where = document.file
            raise
    return msgspec.structs.replace(merged, file=document.file, extends=document.extends)


def _join(base: Document, own: Document) -> Document:
    return msgspec.structs.replace(
        own,
        roots=own.roots if own.roots is not None else base.roots,
        deny_prefixes=base.deny_prefixes + own.deny_prefixes,
        network_off=own.network_off or base.network_off,
        default=own.default if own.default is not None else base.default,
        commands=base.commands + own.commands,
        substrings=base.substrings + own.substrings,
        aliases=base.aliases + own.aliases,
        toolchains=base.toolchains + own.toolchains,
        files=FileRules(
            read=_paths(base.files.read, own.files.read),
            write=_paths(base.files.write, own.files.write),
            delete=_paths(base.files.delete, own.files.delete),
        ),
        network=base.network + own.network,
        tools=base.tools + own.tools,
        patterns=base.patterns + own.patterns,
        process=_process(base, own),
        minimum_enforcement=own.minimum_enforcement or base.minimum_enforcement,
    )


def _paths(base: tuple[PathRule, ...] | None, own: tuple[PathRule, ...] | None) -> tuple[PathRule, ...] | None:
    if base is None:
        return own
    return base if own is None else base + own


def _process(base: Document, own: Document) -> ProcessRules:
    values = {}
    for field in base.process.__struct_fields__:
        mine, below = getattr(own.process, field), getattr(base.process, field)
        if isinstance(mine, tuple):
            values[field] = below + mine
        else:
            values[field] = below or mine if isinstance(mine, bool) else (below if mine is None else mine)
    return ProcessRules(**values)
