r"""What a box may send to a person's terminal: text, colour, movement; never clipboard, title, or a question. Pure.

A question would make the terminal type its answer as if the person had, and after the box has ended, into the person's
own shell. Two are let through or answered, since ordinary programs wait for them and the answer is plain numbers: the
cursor's place (``ESC [ 6 n``), and the primary attributes, which we answer ourselves.
"""

import re

HELD = 65536
"""An unfinished sequence longer than this is given up: what follows is text again."""
COLOURS = re.compile(rb"(?:4|10|11|12|17|19|104|110|111|112);?[^?]*\Z")
LINKS = (b"8;", b"133;")
"""Hyperlinks and prompt marks."""
ATTRIBUTES = b"\x1b[?62;22c"

SEQUENCE = re.compile(
    rb"\x1b\](?P<osc>[^\x07\x1b]*)(?:\x07|\x1b\\|(?=\x1b[^\\]))"
    rb"|\x1b[PX^_][^\x1b]*(?:\x1b\\|(?=\x1b[^\\]))"
    rb"|\x1b\[(?P<par>[\x30-\x3f]*)(?P<mid>[\x20-\x2f]*)(?P<end>[\x40-\x7e])"
    rb"|\x1bZ|\x05|\xc2[\x80-\x9f]"
)
UNFINISHED = re.compile(rb"(?:\x1b|\x1b\][^\x07\x1b]*\x1b?|\x1b[PX^_][^\x1b]*\x1b?|\x1b\[[\x20-\x3f]*|\xc2)\Z")
SUSPECT = re.compile(rb"[\x1b\x05\xc2]")


class Screen:
    """The filter of one terminal. ``answer`` holds what the box asked and we answer for the terminal."""

    def __init__(self) -> None:
        self.held = b""
        self.answer = b""

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

    def rest(self) -> bytes:
        """At the end: a sequence never finished is not shown."""
        self.held = b""
        return b""

    def _judge(self, match: re.Match[bytes]) -> bytes:
        whole = match[0]
        if match["osc"] is not None:
            shown = match["osc"].startswith(LINKS) or COLOURS.match(match["osc"])
            return whole if shown else b""
        if match["end"] is None:
            return b""
        return whole if self._control(match["par"], match["mid"], match["end"]) else b""

    def _control(self, parameters: bytes, middle: bytes, end: bytes) -> bool:
        if end == b"c":
            if parameters in {b"", b"0"}:
                self.answer += ATTRIBUTES
            return False
        if end == b"n":
            return parameters == b"6"
        # Window operations report the title; x, $p, >q and u? ask for settings; $y, *y and the like report back.
        if end in {b"t", b"x"} or (end in {b"p", b"w", b"y"} and middle):
            return False
        return not (
            end in {b"q", b"u", b"m"} and parameters[:1] in {b">", b"?"} and (end != b"u" or parameters == b"?")
        )
