"""The one file of this room that reads files: the shipped tables, and folders of a user's own. Everything else is pure.

Texts are read when this module is imported; a file is parsed when a program in it is first asked for.
"""

import re
import tomllib
from collections.abc import Iterable
from importlib import resources

from ringfence.shell.programs.table import Table, TableError, build

_NAMES = re.compile(r"(?m)^(?:\[(?:\"([^\"]+)\"|([\w.+-]+))\]|also\s*=\s*\"([^\"]*)\")")
_VERSION = re.compile(
    r"(?:(python|pip|node|gcc|g\+\+|clang|clang\+\+|perl|ruby|php|lua|ld|go|java|pypy|emacs|vim|awk)[-\d.]+)\Z"
)


MAX_BUILT = 4096
"""Tables kept ready, known and unknown names together."""


class Tables:
    """All tables by program. Later sources replace a program of earlier ones whole."""

    def __init__(self, texts: Iterable[tuple[str, str]]) -> None:
        self._texts: dict[str, tuple[str, str]] = {}
        self._parsed: dict[str, dict[str, dict[str, object]]] = {}
        self._built: dict[str, Table | None] = {}
        for source, text in texts:
            for name in _programs(text):
                self._texts[name] = (source, text)

    def program(self, name: str) -> str:
        """The name that the table of ``name`` goes by; ``name`` itself where there is none."""
        if name in self._texts:
            return name
        match = _VERSION.match(name)
        return match[1] if match and match[1] in self._texts else name

    def table(self, program: str, *subcommand: str) -> Table | None:
        """The table of a program, or of a subcommand. Raises TableError for one that is not well written."""
        key = " ".join((program, *subcommand))
        built = self._built  # another thread may put an empty one in its place
        if key in built:
            return built[key]
        found = self._build(program, key)
        if len(self._built) >= MAX_BUILT:  # an agent may name as many unknown subcommands as it likes
            self._built = {}
        self._built[key] = found
        return found

    def has_subcommands(self, program: str) -> bool:
        """Whether subcommands of a program have tables, so that another one is an unknown one."""
        if program not in self._texts:
            return False
        head = next(
            (
                name
                for name, data in self._file(program).items()
                if program in (name, *str(data.get("also", "")).split())
            ),
            program,
        )
        return any(name.startswith(head + " ") for name in self._file(program))

    def names(self) -> tuple[str, ...]:
        """Every program that has a table."""
        return tuple(sorted(self._texts))

    def check(self) -> None:
        """Build every table; raises TableError with the source for the first that is not well written."""
        for program, (source, _) in self._texts.items():
            for head in self._file(program):
                try:
                    self.table(head.split(" ")[0], *head.split(" ")[1:])
                except (TableError, tomllib.TOMLDecodeError) as error:
                    raise TableError(f"{source}: {error}") from error

    def _file(self, program: str) -> dict[str, dict[str, object]]:
        source, text = self._texts[program]
        if source not in self._parsed:
            try:
                data = tomllib.loads(text)
            except tomllib.TOMLDecodeError as error:
                raise TableError(f"{source}: {error}") from error
            self._parsed[source] = {name: value for name, value in data.items() if isinstance(value, dict)}
        return self._parsed[source]

    def _build(self, program: str, key: str) -> Table | None:
        if program not in self._texts:
            return None
        tables = self._file(program)
        data = tables.get(key)
        if data is None:
            data = self._other_name(tables, program, key)
        if data is None:
            return None
        return build(key, self._complete(tables, key, data))

    def _complete(self, tables: dict[str, dict[str, object]], key: str, data: dict[str, object]) -> dict[str, object]:
        """A table's data with what it takes over from the one that it is ``like``."""
        seen = {key}
        while isinstance(like := data.get("like"), str):
            base = tables.get(like)
            if base is None or like in seen:
                raise TableError(f"table `{key}` is like `{like}`, which does not exist in its file or is like itself")
            seen.add(like)
            own = {name: value for name, value in data.items() if name != "like"}
            inherited = {name: value for name, value in base.items() if name != "also"}
            data = {**inherited, **_merged(base, own)}
        return data

    def _other_name(self, tables: dict[str, dict[str, object]], program: str, key: str) -> dict[str, object] | None:
        """The table that lists this name under ``also`` (for a subcommand: names of the subcommand)."""
        head, _, rest = key.partition(" ")
        for name, data in tables.items():
            others = str(data.get("also", "")).split()
            first, _, tail = name.partition(" ")
            if not rest and not tail and head in others:
                return data
            if rest and tail and first == head and rest in others:
                return data
            if rest and not tail and head in others:
                found = tables.get(f"{name} {rest}") or self._other_name(tables, name, f"{name} {rest}")
                if found is not None and name != program:
                    return found
        return None


def _programs(text: str) -> set[str]:
    """The programs that a file holds tables of, other names included, without parsing the whole."""
    names: set[str] = set()
    head = ""
    for match in _NAMES.finditer(text):
        if match[3] is None:
            head = match[1] or match[2]
            names.add(head.split(" ")[0])
        elif " " not in head:
            names.update(match[3].split())
    return names


def _merged(base: dict[str, object], own: dict[str, object]) -> dict[str, object]:
    """Option lists add up; everything else is replaced."""
    joined = {}
    for key, value in own.items():
        before = base.get(key)
        both = (
            isinstance(value, str)
            and isinstance(before, str)
            and key not in ("operands", "style", "reader", "scan", "stdin", "like")
        )
        joined[key] = f"{before} {value}" if both else value
    return joined


def _shipped() -> tuple[tuple[str, str], ...]:
    folder = resources.files("ringfence.shell.programs")
    files = sorted((item for item in folder.iterdir() if item.name.endswith(".toml")), key=lambda item: item.name)
    return tuple((item.name, item.read_text(encoding="utf-8")) for item in files)


SHIPPED = _shipped()
BUILTIN = Tables(SHIPPED)
