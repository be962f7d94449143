"""An independent grammar reads the same lines: every command it finds was found here too, or the line is not explained."""

import pytest
import tree_sitter
import tree_sitter_bash

from ringfence.shell.parse import parse_line
from ringfence.shell.reader import KEYWORDS

PARSER = tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))


def commands(line):
    """Where tree-sitter sees a command begin, in characters; None where it sees an error."""
    source = line.encode()
    tree = PARSER.parse(source)
    if tree.root_node.has_error:
        return None
    found, waiting = [], [tree.root_node]
    while waiting:
        node = waiting.pop()
        if node.type == "command":
            name = node.child_by_field_name("name")
            if name is not None and name.text not in (b"time", b"coproc"):  # words of the grammar to bash
                found.append((len(source[: name.start_byte].decode()), name.text.decode()))
        waiting.extend(node.children)
    return found


def check(line):
    read = parse_line(line)
    seen = commands(line)
    if read.unexplained or seen is None:
        return False
    ours = {command.words[0].start for command in read.commands}
    # Words of bash's grammar and numbers are no programs: where the other grammar takes them for one, it has lost its way.
    missing = [name for start, name in seen if start not in ours and name not in KEYWORDS and not name.isdigit()]
    assert missing == [], line
    return True


def test_ordinary_lines(ordinary_lines):
    agreed = sum(check(line) for line in ordinary_lines)
    assert agreed > len(ordinary_lines) * 0.9


@pytest.mark.parametrize("line", ["echo ${X:-`id`}", 'echo "$\\\n(id)"', "[[ -v 'a[$(id)]' ]]", ": >& '$(id)'"])
def test_what_the_other_grammar_is_known_to_miss(line):
    """These start ``id`` in bash. Should a new release of the grammar see it, this test says so."""
    assert not any(name == "id" for _, name in commands(line) or [])
    read = parse_line(line)
    assert any(command.words[0].text == "id" for command in read.commands)
