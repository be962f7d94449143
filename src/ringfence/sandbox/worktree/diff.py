"""A layer's changes as text for a person's terminal.

Names and contents come from an agent: every control character, and everything that could reorder or hide text, is
shown as an escape.
"""

import difflib
import os
import stat
import unicodedata

from ringfence.sandbox.worktree import kernel
from ringfence.sandbox.worktree.change import Change, ChangeKind, Node, statistics

MAX_SHOWN = 512 * 1024
_SIGNS = {
    ChangeKind.ADDED: "A",
    ChangeKind.MODIFIED: "M",
    ChangeKind.DELETED: "D",
    ChangeKind.MODE: "m",
    ChangeKind.TYPE: "T",
    ChangeKind.SAME: "=",
}


def render(changes: tuple[Change, ...], upper: int, lower: int) -> str:
    """Counts and one line per change; then a unified diff of every text file."""
    shown = [c for c in changes if not c.implied]
    lines = [_line(change) for change in shown]
    total = statistics(changes)
    lines.append(
        f"{total.added} added, {total.modified} modified, {total.deleted} deleted, {total.size} bytes; "
        f"{total.ignored} ignored paths stay in the layer"
    )
    for change in shown:
        if not change.ignored and not change.fault:
            lines.extend(_unified(change, upper, lower))
    return "\n".join(lines) + "\n"


def escape(text: str) -> str:
    """``text`` safe to print: control, format and invalid characters become backslash escapes."""
    return "".join(c if _plain(c) else _escaped(c) for c in text)


def _line(change: Change) -> str:
    notes = []
    if change.kind is ChangeKind.MODE:
        notes.append(f"mode {change.mode:04o}")
    if change.node is Node.SYMLINK and change.kind is not ChangeKind.DELETED:
        notes.append(f"-> {escape(change.target)}")
    elif change.node is not Node.FILE:
        notes.append(change.node.value)
    if change.ignored:
        notes.append("ignored, stays in the layer")
    if change.fault:
        notes.append(f"cannot be committed: {change.fault}")
    return f"{_SIGNS[change.kind]} {escape(change.path)}" + (f"  ({'; '.join(notes)})" if notes else "")


def _unified(change: Change, upper: int, lower: int) -> list[str]:
    if Node.FILE not in {change.node, change.was} or change.kind in {ChangeKind.MODE, ChangeKind.SAME}:
        return []
    old = "" if change.was is not Node.FILE else _text(lower, change.path)
    new = "" if change.kind is ChangeKind.DELETED or change.node is not Node.FILE else _text(upper, change.path)
    name = escape(change.path)
    if old is None or new is None:
        return [f"--- {name}", f"+++ {name}", "(binary, unreadable or larger than is shown)"]
    before = f"a/{name}" if change.was is not None else "/dev/null"
    after = f"b/{name}" if change.kind is not ChangeKind.DELETED else "/dev/null"
    lines = difflib.unified_diff(old.splitlines(), new.splitlines(), before, after, lineterm="")
    return [escape(line) for line in lines]


def _text(fd: int, path: str) -> str | None:
    try:
        file = kernel.open_beneath(fd, path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    with open(file, "rb") as stream:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            return None
        data = stream.read(MAX_SHOWN + 1)
    if len(data) > MAX_SHOWN or b"\0" in data:
        return None
    return data.decode("utf-8", "backslashreplace")


def _plain(char: str) -> bool:
    return char == "\t" or (char.isprintable() and unicodedata.category(char) not in {"Cf", "Cs", "Co"})


def _escaped(char: str) -> str:
    code = ord(char)
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"
    if code < 0x100:
        return {"\n": "\\n", "\r": "\\r"}.get(char, f"\\x{code:02x}")
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
