"""Does a command rule speak about a command? Allow rules compare exactly, deny and ask rules loosely. Pure."""

import fnmatch
import re
from collections.abc import Sequence

from ringfence.model.tier import Tier
from ringfence.policy.compile import Command
from ringfence.policy.globs import text_matches
from ringfence.policy.prepare import PreparedCommand
from ringfence.policy.yaml_tree import show

_GLOB = frozenset("*?[")
Texts = Sequence[str | None]
"""Words after quote removal; None where the value is not known before the command runs."""


def match_prefix(command: Command, texts: Texts, canonical: Texts) -> int:
    """How many words (program included) of ``canonical`` the prefix names; 0 where it does not speak about the command.

    ``canonical`` are the words without options between program and subcommand, the very same object where none stand
    there. A match of the words as written that is none of the canonical ones counts as naming the program alone.
    """
    rest = command.rest
    if _begins(rest, canonical):
        return len(rest) + 1
    if canonical is not texts and _begins(rest, texts):
        return 1
    if command.tier is not Tier.ALLOW and rest and _loosely(rest, texts):
        return len(rest) + 1
    return 0


def _begins(rest: tuple[tuple[str, ...], ...], texts: Texts) -> bool:
    if len(texts) <= len(rest):
        return False
    at = 1
    for alternatives in rest:
        if texts[at] not in alternatives:
            return False
        at += 1
    return True


def _loosely(rest: tuple[tuple[str, ...], ...], texts: Texts) -> bool:
    """The prefix with options between its words, clusters and abbreviations of its own options included."""
    at = 1
    for alternatives in rest:
        if any(word.startswith("-") for word in alternatives):
            region = at
            while region < len(texts) and (texts[region] or "").startswith("-"):
                region += 1
            options = [text for text in texts[at:region] if text]
            if not any(has_option(wanted, options) for wanted in alternatives):
                return False
            continue
        found = _positional(alternatives, texts, at)
        if found < 0:
            return False
        at = found + 1
    return True


def _positional(alternatives: tuple[str, ...], texts: Texts, at: int) -> int:
    """The place of the next word of the prefix, with options and one value of each skipped; -1 where another stands."""
    after_option = False
    while at < len(texts):
        text = texts[at]
        if text in alternatives:
            return at
        if text is None:
            return -1
        if text.startswith("-") and len(text) > 1:
            after_option = "=" not in text
        elif after_option:
            after_option = False
        else:
            return -1
        at += 1
    return -1


def has_option(wanted: str, options: Sequence[str]) -> bool:
    """Whether options hold the wanted one: itself, with a joined value, in a cluster, or as an abbreviation."""
    if wanted.startswith("--"):
        for option in options:
            name = option.partition("=")[0]
            if name == wanted or (len(name) > 4 and name.startswith("--") and wanted.startswith(name)):
                return True
        return False
    letters = wanted[1:]
    if wanted in options:
        return True
    if not letters.isalpha() or len(letters) > 3:
        return False  # find's `-delete` and the like are words, not clusters
    clusters = [option[1:] for option in options if option.startswith("-") and option[1:].isalnum()]
    together = "".join(cluster for cluster in clusters if len(cluster) <= 6)
    return all(letter in together for letter in letters)


def has_argument(wanted: Sequence[str], texts: Texts, *, widens: bool, patterns: int = 0) -> bool:
    """Whether one of the wanted arguments is among a command's, each an exact word, an option or a glob.

    ``widens`` says that a yes makes the policy softer: then options are compared exactly, and a word whose value is not
    known is none of the wanted ones. Otherwise clusters and abbreviations count, and such a word could be any of them.
    """
    known = [text for text in texts if text is not None]
    for argument in wanted:
        if argument in known:
            return True
        if _GLOB.intersection(argument):
            if any(text_matches((argument,), text) for text in known):
                return True
            if not widens and argument.startswith("--") and any(_shortens(text, argument) for text in known):
                return True
        elif argument.startswith("-") and _is_option(argument, known, widens=widens):
            return True
    return not widens and len(known) + patterns < len(texts)


def doubt(rule: Command, prepared: PreparedCommand) -> str:
    """What to say where a strict rule speaks only because a word's value is not known."""
    wanted = rule.rule.any_args
    unknown = [word.raw for word, text in zip(prepared.command.words, prepared.texts, strict=True) if text is None]
    known = [text for text in prepared.texts if text is not None]
    if rule.tier is Tier.ALLOW or not wanted or not unknown or has_argument(wanted, known, widens=False):
        return ""
    return f" (`{show(unknown[0], 40)}` is not known before it runs and may be one of its words: write the value out)"


def names_may_be(wanted: Sequence[str], pattern: str) -> bool:
    """Whether a name that a pattern of the shell stands for may be one of the wanted arguments.

    Names begin as the pattern does; behind a leading star stands neither a root, a home nor a hidden name.
    """
    begins = re.split(r"[*?\[\\]", pattern, maxsplit=1)[0]
    for argument in wanted:
        literal = re.split(r"[*?\[]", argument, maxsplit=1)[0]
        if not begins and literal[:1] in {"/", "~", "."} and literal:
            continue
        if literal == argument:
            if fnmatch.fnmatchcase(argument, pattern):
                return True
        elif literal.startswith(begins) or begins.startswith(literal):
            return True
    return False


def _shortens(text: str, argument: str) -> bool:
    """Whether an option may be short for one that a glob such as ``--post-data*`` stands for."""
    name = text.partition("=")[0]
    return len(name) > 4 and name.startswith("--") and re.split(r"[*?\[]", argument, maxsplit=1)[0].startswith(name)


def _is_option(argument: str, known: Sequence[str], *, widens: bool) -> bool:
    return any(text.startswith(argument + "=") for text in known) if widens else has_option(argument, known)
