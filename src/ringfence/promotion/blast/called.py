"""Files that the base's CI configuration names as parts of itself: includes, local actions and workflows, templates. Pure.

Only what is named in the files of the base counts. They are read as text, line by line: a name too many protects one
file more, a YAML trick that hides one would have to be on the base already.
"""

import re
from posixpath import dirname, join, normpath

from ringfence.promotion.change import Reader
from ringfence.promotion.objects import DIRECTORY, BadObject, find_path

_STARTS = (".gitlab-ci.yml", ".gitlab-ci.yaml", "azure-pipelines.yml", "azure-pipelines.yaml", ".circleci/config.yml")
_FOLDERS = (".github/workflows", ".gitea/workflows", ".forgejo/workflows")
_USES = re.compile(r"""\buses["']?\s*:\s*["']?\./([^"'\s#,}]+)""")
_INCLUDES = re.compile(r"""^\s*(?:-\s+)?["']?(?:local|include|template)["']?\s*:\s*["']?([^"'\s#{}\[\]:@]+\.ya?ml)""")
_ITEM = re.compile(r"""^\s*-\s+["']?([^"'\s#{}\[\]:@]+\.ya?ml)["']?\s*(?:#.*)?$""")
_FLOW = re.compile(r"""\b(?:local|template)["']?\s*:\s*["']?([^"'\s#{}\[\],]+)""")
_PATH_WORD = re.compile(r"[\w./@+-]+")
_ACTIONS = ("action.yml", "action.yaml")
"""What a folder of a local action begins with."""
_MOST = 2_000


def called_by_ci(tree: str, reader: Reader) -> tuple[str, ...]:
    """Globs of what the CI files of this tree pull in from the repository itself, and what those pull in.

    Raises BadObject where one of them cannot be read, or they name more than can be followed.
    """
    return tuple(glob for name in _pulled_in(tree, reader) for glob in (name, f"{name}/**"))


def mentioned_by_ci(tree: str, reader: Reader, paths: list[str]) -> tuple[str, ...]:
    """Those of the paths that a CI file of this tree names in whatever words: it runs or reads them, with rights of its own."""
    texts = [_text(path, tree, reader) for path in (*_starts(tree, reader), *_pulled_in(tree, reader))]
    words = {word.removeprefix("./") for text in texts for word in _PATH_WORD.findall(text)}
    return tuple(path for path in paths if path in words)


def _starts(tree: str, reader: Reader) -> list[str]:
    found = [path for path in _STARTS if _is_file(tree, path, reader)]
    for folder in _FOLDERS:
        node = find_path(tree, folder, reader.tree)
        if node is not None and node.mode == DIRECTORY:
            found.extend(f"{folder}/{name}" for name in reader.tree(node.oid))
    return found


def _pulled_in(tree: str, reader: Reader) -> list[str]:
    waiting = _starts(tree, reader)
    seen: dict[str, None] = {}
    while waiting:
        if len(seen) > _MOST:
            raise BadObject(f"the CI files of the base name more than {_MOST} files of the repository")
        for name in _named(waiting.pop(), tree, reader):
            if name not in seen:
                seen[name] = None
                waiting.append(name)
    return list(seen)


def _is_file(tree: str, path: str, reader: Reader) -> bool:
    node = find_path(tree, path, reader.tree)
    return node is not None and node.mode != DIRECTORY


def _named(path: str, tree: str, reader: Reader) -> list[str]:
    node = find_path(tree, path, reader.tree)
    if node is not None and node.mode == DIRECTORY:
        return [f"{path}/{name}" for name in _ACTIONS]
    lines = _text(path, tree, reader).splitlines()
    found: list[str] = []
    for line in lines:
        for pattern in (_USES, _INCLUDES, _ITEM, _FLOW):
            match = pattern.search(line)
            if match:
                found.extend(_inside(path, match.group(1), from_root=pattern is not _INCLUDES))
    return found


def _text(path: str, tree: str, reader: Reader) -> str:
    """What stands in a regular file, or nothing."""
    node = find_path(tree, path, reader.tree)
    plain = node is not None and node.mode in {"100644", "100755"}
    return reader.blob(node.oid).decode("utf-8", "replace") if node is not None and plain else ""


def _inside(path: str, name: str, *, from_root: bool) -> list[str]:
    """The name from the repository's root; a template may also be meant from its own folder."""
    bare = name.lstrip("/")
    places = (
        {normpath(bare)} if from_root or name.startswith("/") else {normpath(bare), normpath(join(dirname(path), bare))}
    )
    return sorted(place for place in places if not place.startswith("..") and place != ".")
