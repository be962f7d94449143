r"""What a box may send to a person's terminal: text, colour, movement; never clipboard, title, or a question. Pure.

A question would make the terminal type its answer as if the person had, and after the box has ended, into the person's
own shell. Two are let through or answered, since ordinary programs wait for them and the answer is plain numbers: the
cursor's place (``ESC [ 6 n``), and the primary attributes, which we answer ourselves.

Only whole sequences of a closed list are let through; every other ESC, and every byte that some terminal takes for the
start of a sequence, is taken out. So what is left when something was taken out can never join to a sequence, and a
terminal is in its ground state wherever text begins. What a box turned on is turned off again at its end.
"""

import re

HELD = 65536
"""An unfinished sequence longer than this is given up: what follows is text again."""
ATTRIBUTES = b"\x1b[?62;22c"
COLOURS = re.compile(rb"(?P<which>4|10|11|12|17|19)(?:;[^?]*)?\Z|1(?:04|10|11|12|17|19)(?:;[\d;]*)?\Z")
LINKS = re.compile(rb"8;[^;]*;(?:https?://.*|file://.*)?\Z|133;[A-D](?:;\d{1,3})?\Z")
"""Hyperlinks that a click opens in a browser or a viewer, and prompt marks without settings: some of those make clicks type.
Other schemes start programs."""

SHARP = rb"[\xc2][\xa0-\xbf]|[\xc3-\xdf][\x80-\xbf]|\xe0[\xa0-\xbf][\x80-\xbf]|[\xe1-\xef][\x80-\xbf]{2}"
WIDE = rb"\xf0[\x90-\xbf][\x80-\xbf]{2}|[\xf1-\xf3][\x80-\xbf]{3}|\xf4[\x80-\x8f][\x80-\xbf]{2}"
SEQUENCE = re.compile(
    rb"\x1b\](?P<osc>[^\x07\x1b\x18\x1a]*)(?P<bell>\x07|\x1b\\|\x18|\x1a|(?=\x1b[^\\]))"
    rb"|\x1b[PX^_][^\x1b\x18\x1a]*(?:\x1b\\|\x18|\x1a|(?=\x1b[^\\]))"
    rb"|\x1bk[^\x1b\x07\x18\x1a\n]*(?:\x1b\\|[\x07\x18\x1a\n]|(?=\x1b[^\\]))"
    rb"|\x1b\[(?P<par>[\x30-\x3f]*)(?P<mid>[\x20-\x2f]*)(?P<end>[\x40-\x7e])"
    rb"|\x1b(?P<esc>[\x20-\x2f]*[\x30-\x7e])"
    rb"|(?P<shift>[\x0e\x0f])"
    rb"|(?P<text>(?:" + SHARP + rb"|" + WIDE + rb")+)"
    rb"|\x1b|\x05|\xc2[\x80-\x9f]|[\x80-\x9f]"
)
UNFINISHED = re.compile(
    rb"(?:\x1b[\x20-\x2f]*|\x1b\][^\x07\x1b\x18\x1a]*\x1b?|\x1b[PX^_][^\x1b\x18\x1a]*\x1b?|\x1bk[^\x1b\x07\x18\x1a\n]*\x1b?"
    rb"|\x1b\[[\x30-\x3f]*[\x20-\x2f]*|[\xc2-\xf4]|[\xe0-\xf4][\x80-\xbf]|[\xf0-\xf4][\x80-\xbf]{2})\Z"
)
SUSPECT = re.compile(rb"[\x05\x0e\x0f\x1b\x80-\xff]")
PLAIN = frozenset(b"@ABCDEFGHIJKLMPSTXZ^`abdefgmrsu")
"""Ends of control sequences without prefix that move, write, erase and colour."""
ESCAPES = frozenset({b"7", b"8", b"=", b">", b"D", b"E", b"H", b"M", b"c"}) | {
    which + final for which in (b"(", b")", b"*", b"+") for final in (b"0", b"A", b"B")
}
"""Save and restore the cursor, keypad, line steps, tab stop, reset, and the three character sets of the C locale."""
INSERT = 4
DISPLAY = frozenset({5, 7, 12, 25, 45, 47, 69, 1047, 1048, 1049, 2026, 2027})
KEYBOARD = frozenset({1, 9, 66, 1000, 1001, 1002, 1003, 1004, 1005, 1006, 1007, 1015, 1016, 1034, 1036, 1039, 2004})
"""Modes that have the terminal type something other than keys as they are: mouse, focus, pasted text."""
ON_FROM_THE_START = frozenset({7, 25})
NUMBERS = re.compile(rb"(?:\d{0,5}[;:])*\d{0,5}")
"""What counts more than any screen has keeps some terminals busy for minutes."""
DEEP = 8
"""Keyboard settings that a box may stack."""


class Screen:
    """The filter of one terminal. ``answer`` holds what the box asked and we answer for the terminal.

    ``keyboard``: the box has the terminal's keys too. Otherwise nothing is let through that has the terminal type.
    """

    def __init__(self, *, keyboard: bool = True) -> None:
        self.held = b""
        self.answer = b""
        self.keyboard = keyboard
        self._modes: dict[int, bool] = {}
        self._left: dict[str, bytes] = {}
        """What is on now, and the sequence that turns it off."""
        self._stacked = 0
        self._aside: dict[int, bool] = {}
        """What was on when the command was stopped."""

    def feed(self, data: bytes) -> bytes:
        """What of this may be shown now; a sequence still open is held back."""
        data = self.held + data
        self.held = b""
        if not SUSPECT.search(data):
            return data
        tail = UNFINISHED.search(data)
        if tail is not None:
            self.held = data[tail.start() :] if len(data) - tail.start() <= HELD else b""
            data = data[: tail.start()]
        return SEQUENCE.sub(self._judge, data)

    def cut(self) -> None:
        """Something was left out of the output here: a sequence never finished is not shown."""
        self.held = b""

    def rest(self) -> bytes:
        """At the end: turn off what the box turned on. A sequence never finished is not shown."""
        self.held = b""
        modes = sorted(mode for mode, on in self._modes.items() if on is not (mode in ON_FROM_THE_START))
        out = b"".join(b"\x1b[?%d%c" % (mode, b"lh"[mode in ON_FROM_THE_START]) for mode in modes)
        if self._stacked:
            out += b"\x1b[<%du" % self._stacked
        out += b"".join(self._left.values())
        self._modes, self._left, self._stacked = {}, {}, 0
        return out

    def set_aside(self) -> bytes:
        """The command is stopped and the shell has the keys: what turns off all that is on. Nothing is let through that types."""
        held, modes = self.held, self._modes
        off = self.rest()
        self.held, self._aside, self.keyboard = held, self._aside | modes, False
        return off

    def take_up(self) -> bytes:
        """The command goes on: turn its modes on again."""
        self.keyboard = True
        self._modes |= self._aside
        again = b"".join(b"\x1b[?%d%c" % (mode, b"lh"[on]) for mode, on in sorted(self._aside.items()))
        self._aside = {}
        return again

    def _judge(self, match: re.Match[bytes]) -> bytes:
        whole = match[0]
        if match["text"] is not None:
            return whole
        if match["osc"] is not None:
            return whole if match["bell"] in {b"\x07", b"\x1b\\"} and self._command(match["osc"]) else b""
        if match["end"] is not None:
            return whole if self._control(match["par"], match["mid"], match["end"]) else b""
        if match["esc"] is not None:
            return whole if self._escape(match["esc"]) else b""
        if match["shift"] is not None:
            self._note("shift", b"\x0f" if whole == b"\x0e" else b"")
            return whole
        return b""

    def _command(self, body: bytes) -> bool:
        if not body.isascii() or not body.decode("ascii").isprintable():
            return False
        colour = COLOURS.match(body)
        if colour is not None and colour["which"]:
            self._note(f"colour {int(colour['which'])}", b"\x1b]%d\x07" % (100 + int(colour["which"])))
        return colour is not None or LINKS.match(body) is not None

    def _escape(self, what: bytes) -> bool:
        if what not in ESCAPES:
            return False
        if what[:1] == b"(":
            self._note("characters", b"" if what == b"(B" else b"\x1b(B")
        elif what in {b"=", b">"}:
            self._note("keypad", b"\x1b>" if what == b"=" else b"")
        return True

    def _control(self, parameters: bytes, middle: bytes, end: bytes) -> bool:
        prefix = parameters[:1] if parameters[:1] in {b"<", b"=", b">", b"?"} else b""
        numbers = parameters[len(prefix) :]
        if not NUMBERS.fullmatch(numbers):
            return False
        if middle:
            if middle + end != b" q" or prefix:
                return False
            self._note("cursor", b"" if numbers in {b"", b"0"} else b"\x1b[0 q")
            return True
        if end in {b"h", b"l"}:
            return self._mode(prefix, numbers, on=end == b"h")
        if prefix:
            return (prefix == b"?" and end in {b"J", b"K"}) or (end == b"u" and self._keys(prefix, numbers))
        if end == b"c":
            if numbers in {b"", b"0"}:
                self.answer += ATTRIBUTES
            return False
        if end == b"n":
            return numbers == b"6" and self.keyboard
        if end == b"m":
            self._note("colour", b"" if numbers in {b"", b"0"} else b"\x1b[0m")
        elif end == b"r":
            self._note("region", b"\x1b7\x1b[r\x1b8" if numbers else b"")
        return end[0] in PLAIN

    def _mode(self, prefix: bytes, numbers: bytes, *, on: bool) -> bool:
        """Only modes of the closed list: one would end the language that this filter reads, another answers when set."""
        modes = [int(number) for number in numbers.split(b";") if number.isdigit() and len(number) < 6]
        if not prefix and modes == [INSERT]:
            self._note("insert", b"\x1b[4l" if on else b"")
            return True
        if prefix != b"?" or len(modes) != numbers.count(b";") + 1:
            return False
        if not (DISPLAY | KEYBOARD if self.keyboard else DISPLAY).issuperset(modes):
            return False
        self._modes |= dict.fromkeys(modes, on)
        return True

    def _keys(self, prefix: bytes, numbers: bytes) -> bool:
        """The keyboard's settings, stacked and unstacked; never more taken off than the box put on."""
        if not self.keyboard or prefix not in {b">", b"<"} or not re.fullmatch(rb"\d{0,2}", numbers):
            return False
        step = 1 if prefix == b">" else -int(numbers or b"1")
        if not 0 <= self._stacked + step <= DEEP:
            return False
        self._stacked += step
        return True

    def _note(self, what: str, undo: bytes) -> None:
        if undo:
            self._left[what] = undo
        else:
            self._left.pop(what, None)
