"""What every reading of a text shares: where it stands, what it notes, and what the later files supply. Pure."""

import re
from collections.abc import Sequence

from ringfence.shell.braces import Piece
from ringfence.shell.collect import Collected, Stop
from ringfence.shell.places import START, Flow, Places
from ringfence.shell.syntax import Assignment, Redirection, Word

MAX_DEPTH = 50
BLANK = re.compile(r"(?:[ \t]+|\\\n)+")
NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
BODY = re.compile(r"[^\\$`]+")
NUMERIC_OUTPUT = re.compile(
    r"\"?\$\((?:[^'\"\\#$`;&\n()]*\|)? *(?:wc -[lwcm]+(?: *< *[\w./-]+)?|date \+%s(?:%N)?|nproc|grep -c [\w./ -]+) *\)\"?\Z"
)
"""A substitution that surely prints one number, so that evaluating it as arithmetic is harmless."""
_RESERVED = re.compile(
    r"(?:if|then|else|elif|fi|while|until|do|done|for|select|case|esac|function|time|coproc|in|\[\[|\]\]|[{}!])(?=[\s;&|<>()]|\Z)"
)
CLOSERS = frozenset({"then", "else", "elif", "fi", "do", "done", "esac", "}", "in", "]]"})
KEYWORDS = CLOSERS | {"if", "while", "until", "for", "select", "case", "function", "time", "coproc", "[[", "{", "!"}


class Reader:
    """A place in a text. The files above add, one by one: arithmetic, expansions, words, redirections, commands, lists."""

    def __init__(
        self, text: str, collected: Collected, *, base: int = 0, span: tuple[int, int] | None = None, depth: int = 0
    ) -> None:
        self.text = text
        self.size = len(text)
        self.pos = 0
        self.collected = collected
        self.base = base
        self.span = span
        self.depth = depth
        self.places: Places = START
        self.bash = True
        """False for sh, dash and the like, which do not know all of bash's forms."""
        self.pending: list[tuple[str, bool, bool, Redirection]] = []
        self.substituting = 0
        """How many ``$(`` and ``<(`` are open here."""
        self.loops = 0
        self.conditional = 0

    # Notes.

    def place(self, position: int) -> int:
        """``position`` of this text in the line that the caller has."""
        return self.span[0] if self.span else position + self.base

    def note(self, start: int, end: int, why: str) -> None:
        """Say that a part is not explained."""
        first, last = self.span or (min(start, self.size) + self.base, min(end, self.size) + self.base)
        self.collected.note(first, last, self.text[start:end], why)

    def bash_only(self, start: int, form: str) -> None:
        """A form of bash that a plain sh reads differently."""
        if not self.bash:
            self.note(start, self.pos, f"{form}: sh reads this differently from bash")

    def deeper(self) -> None:
        """One level of nesting more."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise Stop(self.pos, f"nested deeper than {MAX_DEPTH} levels")

    # Blanks, comments, newlines.

    def blanks(self) -> None:
        """Blanks, joined lines, and a comment."""
        match = BLANK.match(self.text, self.pos)
        if match:
            self.pos = match.end()
        if self.pos < self.size and self.text[self.pos] == "#":
            end = self.text.find("\n", self.pos)
            self.pos = end if end >= 0 else self.size

    def newlines(self) -> None:
        """Blanks and newlines; a newline first brings the bodies of the here-documents that wait."""
        self.blanks()
        while self.pos < self.size and self.text[self.pos] == "\n":
            self.newline()
            self.blanks()

    def newline(self) -> None:
        """One newline."""
        self.pos += 1
        if self.pending:
            self.bodies()

    def reserved(self) -> str:
        """The reserved word at ``pos``, or nothing."""
        match = _RESERVED.match(self.text, self.pos)
        return match[0] if match else ""

    def expect(self, word: str) -> None:
        """The reserved word that must come next."""
        self.newlines()
        if self.reserved() != word:
            raise Stop(self.pos, f"`{word}` expected here")
        self.pos += len(word)

    # What later files supply.

    def nested_list(self, closer: str) -> None:
        """Read a list of commands up to ``closer``, in a shell of its own."""
        raise NotImplementedError

    def nested_text(self, text: str, start: int, *, exact: bool) -> None:
        """Read ``text`` as a script of its own (backticks)."""
        raise NotImplementedError

    def run(self, *, top: bool = True) -> Flow:
        """Read the whole text; a stop becomes a note and a search of the rest."""
        raise NotImplementedError

    def salvage(self, stop: Stop) -> None:
        """Note a stop and search the rest of the text."""
        raise NotImplementedError

    def check_text(self, start: int, end: int) -> None:
        """A part that is only data."""
        raise NotImplementedError

    def command(
        self, words: list[Word], assignments: list[Assignment], redirections: list[Redirection], start: int
    ) -> Flow:
        """Record one simple command."""
        raise NotImplementedError

    def sequence(self, closer: str) -> Flow:
        """Read commands up to a closing sign or word."""
        raise NotImplementedError

    def any_command(self) -> Flow:
        """Read one command, simple or compound."""
        raise NotImplementedError

    def bodies(self) -> None:
        """Read the here-documents that wait."""
        raise NotImplementedError

    def dollar(self, *, quoted: bool) -> list[Piece]:
        """Read what begins with ``$``."""
        raise NotImplementedError

    def backtick(self, *, quoted: bool) -> Piece:
        """Read the old substitution."""
        raise NotImplementedError

    def single(self) -> Piece:
        """Read a single-quoted part."""
        raise NotImplementedError

    def double(self) -> list[Piece]:
        """Read a double-quoted part."""
        raise NotImplementedError

    def pieces(self) -> list[Piece]:
        """Read the pieces of a word."""
        raise NotImplementedError

    def one(self, pieces: Sequence[Piece], start: int) -> Word:
        """Make one word of its pieces."""
        raise NotImplementedError
