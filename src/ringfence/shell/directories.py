"""What cd, pushd and popd do to the places where the shell may stand. Pure."""

import re
from collections.abc import Sequence

from ringfence.shell.places import UNKNOWN, Flow, Places, change, change_back, merge, pop, push
from ringfence.shell.syntax import Word


def changed(name: str, words: Sequence[Word], places: Places, *, assigned: bool) -> Flow:
    """cd, pushd, popd."""
    index, logical = 1, True
    while index < len(words) and re.fullmatch(r"-[LPe@n]+|--", words[index].text) and not words[index].dynamic:
        logical = "P" not in words[index].text if words[index].text != "--" else logical
        index += 1
        if words[index - 1].text == "--":
            break
    rest = words[index:]
    if assigned or any(word.dynamic and not word.values for word in rest) or len(rest) > 1:
        return Flow(UNKNOWN, places)
    if name == "popd":
        return pop(places) if not rest else Flow(UNKNOWN, places)
    if not rest:
        return change(places, "~") if name != "pushd" else Flow(UNKNOWN, places)
    word = rest[0]
    if word.text == "-" and name != "pushd":
        return change_back(places)
    targets = word.values or (word.text,)
    flows = [_target(name, target, word, places, logical=logical) for target in targets]
    return Flow(merge(*(flow.ok for flow in flows)), places)


def _target(name: str, target: str, word: Word, places: Places, *, logical: bool) -> Flow:
    if word.tilde and target.startswith(("~+", "~-")):
        target = "." + target[2:] if target.startswith("~+") else ""
    elif not word.tilde and target.startswith("~"):
        target = "./" + target
    if not target or (name == "pushd" and re.match(r"[-+]\d", target)):
        return Flow(UNKNOWN if target or word.tilde else places, places)
    return push(places, target) if name == "pushd" else change(places, target, logical=logical)
