"""Settings given on git's line (``git -c NAME=VALUE``): which of them start nothing and reach nowhere. Pure."""

import re
from typing import TYPE_CHECKING

from ringfence.shell.programs.reading import EffectKind
from ringfence.shell.syntax import Word

if TYPE_CHECKING:
    from ringfence.shell.programs.read import Reader

_HARMLESS = frozenset({
    "user.name", "user.email", "author.name", "author.email", "committer.name", "committer.email", "init.defaultbranch",
    "core.abbrev", "core.autocrlf", "core.commentchar", "core.eol", "core.filemode", "core.ignorecase", "core.precomposeunicode",
    "core.quotepath", "core.safecrlf", "core.whitespace", "diff.algorithm", "diff.colormoved", "diff.context", "diff.indentheuristic",
    "diff.interhunkcontext", "diff.mnemonicprefix", "diff.noprefix", "diff.renamelimit", "diff.renames", "fetch.prune", "gc.auto",
    "grep.fullname", "grep.linenumber", "log.abbrevcommit", "log.date", "log.decorate", "log.follow", "merge.conflictstyle", "merge.ff",
    "merge.renamelimit", "pull.ff", "pull.rebase", "push.default", "rebase.autosquash", "rebase.autostash", "rerere.enabled",
})  # fmt: skip
_HARMLESS_SECTIONS = ("advice.", "color.", "column.", "status.")
_OFF = re.compile(
    r"(?:core\.pager|pager\.[\w-]+)=(?:cat|false)?|(?:commit|tag|push)\.gpgsign=false|log\.showsignature=false"
)


def read_setting(reader: "Reader", value: Word, words: tuple[int, ...], name: str) -> None:
    """One setting: an effect unless it is known to name no program, file or host."""
    text = value.prefix if value.dynamic else value.text
    key, equals, _ = text.lower().partition("=")
    complete = not value.dynamic or (bool(equals) and not value.may_split)
    harmless = complete and (key in _HARMLESS or key.startswith(_HARMLESS_SECTIONS))
    if not harmless and (value.dynamic or not _OFF.fullmatch(text.lower())):
        reader.effect(EffectKind.EXECUTES, name, words, reader.table.why[name])
