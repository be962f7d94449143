"""How far a secret reaches of which a rule found the first word: to the end of its quotes, and over what a backslash joins. Pure.

What follows that word is secret too, but no command may go out of the record with it: where the quotes could be others
than those that a shell sees, the value ends before whatever may begin a command.
"""

import re
from collections.abc import Set as AbstractSet

LONGEST = 512
"""Characters of a value; a quote that ends further away belongs to something else."""
_OPENED = re.compile(r"(\\*)([\"'])([^\s\"'\\]*)\Z")
_BEFORE = frozenset(" \t\n=([{,:$")
_QUOTED = re.compile(r"\\.|('[^']*'|\"(?:\\.|[^\"\\])*\")", re.DOTALL)
_COMMAND = re.compile(r"[;|&<>`\n]|\$\(|\\n")
_SUBSTITUTED = re.compile(r"`|\$\(")
_JOINED = re.compile(r"(?:\\[^\w\"'\\\n][^\s\"'\\;|&<>(){}$`,]*|,[^\s\"'\\;|&<>(){}$`,=:]+(?!\S))*")


def quotes_of(text: str) -> AbstractSet[tuple[int, int]]:
    """Places of what a shell would take for quoted, with the quotes."""
    return {match.span(1) for match in _QUOTED.finditer(text) if match.start(1) >= 0}


def end_of(text: str, quotes: AbstractSet[tuple[int, int]], *, began: int, start: int, stop: int) -> int:
    """Where the value ends whose first word stands from ``start`` to ``stop``, in what a rule found from ``began`` on."""
    opened = _OPENED.search(text, max(began, start - LONGEST), start)
    if opened is None or (opened[3] and text[max(opened.start() - 1, 0)] not in _BEFORE):
        joined = _JOINED.match(text, stop)
        return stop if joined is None else joined.end()
    escapes, quote = opened[1], opened[2]
    closed = _closed(text, escapes, quote, stop)
    if closed < 0:
        return stop
    sure = not escapes and (opened.start(), closed + 1) in quotes
    if sure and quote == "'":
        return closed
    cut = (_SUBSTITUTED if sure else _COMMAND).search(text, stop, closed)
    return closed if cut is None else cut.start()


def _closed(text: str, escapes: str, quote: str, stop: int) -> int:
    """Where the quotes end that were spelled with these backslashes, or -1."""
    mark = escapes + quote
    at = text.find(mark, stop, stop + LONGEST)
    while at > 0 and text[at - 1] == "\\" and (escapes or quote == '"'):
        at = text.find(mark, at + 1, stop + LONGEST)
    return at
