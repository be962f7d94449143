"""What reading a line has found so far: commands, redirections, assignments, and what is not explained. Pure."""

import re

from msgspec.structs import replace

from ringfence.shell.places import Places
from ringfence.shell.syntax import Assignment, Directory, Redirection, SimpleCommand, Unexplained, Word

MAX_NOTES = 50
MAX_VALUES = 64
MAX_FOLLOWED = 100
INTEGERS = frozenset({
    "RANDOM", "SRANDOM", "SECONDS", "OPTIND", "HISTCMD", "EPOCHSECONDS", "EPOCHREALTIME", "LINENO", "BASHPID", "BASH_ARGV0",
    "BASH_SUBSHELL", "PPID", "UID", "EUID", "OPTERR", "COMP_CWORD", "BASH_COMMAND", "FUNCNAME", "DIRSTACK",
})  # fmt: skip
"""Variables with a meaning to bash itself; some evaluate what is assigned to them."""
_NUMBER = re.compile(r"-?\d+\Z|\$\(\([^`]*\)\)\Z", re.ASCII)


class Pattern(str):
    """The only value of a loop's variable that is one of the names a pattern stands for, and where it was expanded."""

    __slots__ = ("places",)
    places: Places

    @classmethod
    def seen_from(cls, text: str, places: Places) -> "Pattern":
        """A pattern that is expanded in these places."""
        pattern = cls(text)
        pattern.places = places
        return pattern


class Stop(Exception):
    """The text cannot be read any further; what was read so far stays."""

    def __init__(self, position: int, why: str) -> None:
        super().__init__(why)
        self.position = position
        self.why = why


class Collected:
    """Filled by the readers of one line and of every script inside it."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.commands: list[SimpleCommand] = []
        self.redirections: list[Redirection] = []
        self.directories: list[Directory] = []
        self.assignments: list[Assignment] = []
        self.loops: list[Assignment] = []
        """Loop variables: free names that code may be found under all the same (``for PATH in``)."""
        self.functions: list[str] = []
        self.unexplained: list[Unexplained] = []
        self.bodies: dict[int, tuple[Redirection, str | None]] = {}
        self.shells_read = 0
        self.arithmetic: list[tuple[str, int, int]] = []
        self.values: dict[str, tuple[str, ...]] = {}
        self.not_numeric: set[str] = set()
        self.assigned: set[str] = set()
        self.arrays: set[str] = set()
        self.work = 0
        self.budget = 100_000 + 6 * len(source)
        self.salvages = 0
        self._once: dict[str, bool] = {}

    def spend(self, amount: int, position: int) -> None:
        """Count text that is read more than once. Nested scripts and doubtful arithmetic could otherwise multiply it."""
        self.work += amount
        if self.work > self.budget:
            raise Stop(position, "scripts inside scripts that together are too long to read")

    def note(self, start: int, end: int, text: str, why: str) -> None:
        """Say that a part is not explained. The first notes stand for all: one is enough to not allow the line."""
        if len(self.unexplained) < MAX_NOTES:
            self.unexplained.append(Unexplained(start=start, end=end, text=text[:200], why=why))

    def assign(
        self, name: str, value: Word | None, start: int, end: int, scope: str, *, numeric: bool = False
    ) -> Assignment:
        """Record an assignment that stays set."""
        assignment = Assignment(name=name, value=value, start=start, end=end, scope=scope)
        self.assignments.append(assignment)
        self.set_value(name, value, numeric=numeric)
        if name == "PS4" and (value is None or value.dynamic or "$" in value.text or "`" in value.text):
            self.note(start, end, name, "`PS4` is expanded before every command that is traced")
        if name in INTEGERS and not numeric and (value is None or not _NUMBER.match(value.text)):
            self.note(start, end, name, f"`{name}` evaluates what it is set to as arithmetic")
        return assignment

    def evaluate(self, name: str, start: int, end: int, *, sets: bool) -> None:
        """A variable in arithmetic: its value is evaluated, and it may be set there."""
        self.arithmetic.append((name, start, end))
        if sets:
            self.assign(name, None, start, end, "shell", numeric=True)

    def lent(self, assignment: Assignment) -> None:
        """A variable that is set for one command, which may evaluate it."""
        self.assigned.add(assignment.name)
        if assignment.value is None or not _NUMBER.match(assignment.value.text):
            self.not_numeric.add(assignment.name)

    def set_value(self, name: str, value: Word | None, *, numeric: bool = False) -> None:
        """Remember what a variable may hold, for arithmetic."""
        self.assigned.add(name)
        self.forget(name)
        if not numeric and (value is None or not _NUMBER.match(value.text)):
            self.not_numeric.add(name)

    def loop_variable(self, name: str, values: tuple[str, ...], start: int, end: int, *, numeric: bool) -> None:
        """The variable of a loop. Where its list is closed and nothing else names it, its values are followed."""
        self.assigned.add(name)
        if not numeric:
            self.not_numeric.add(name)
        if name in INTEGERS and not numeric:
            self.note(start, end, name, f"`{name}` evaluates what it is set to as arithmetic")
        self.loops.append(Assignment(name=name, value=None, start=start, end=end, scope="loop"))
        if values and len(values) <= MAX_VALUES and self.only_once(name):
            self.follow(name, values)
        else:
            self.forget(name)

    def unknown_directory(self, first: int) -> None:
        """The commands from ``first`` on run in a directory that depends on the round of a loop."""
        for index in range(first, len(self.commands)):
            self.commands[index] = replace(self.commands[index], directory=Directory(path=None))

    def follow(self, name: str, values: tuple[str, ...]) -> None:
        """Remember the closed set of values of a variable. The table is replaced, never changed: others hold it."""
        if len(self.values) < MAX_FOLLOWED or name in self.values:
            self.values = {**self.values, name: values}

    def forget(self, name: str) -> None:
        """The values of a variable are no longer known."""
        if name in self.values:
            self.values = {known: values for known, values in self.values.items() if known != name}

    def values_of(self, name: str) -> tuple[str, ...]:
        """The closed set of values of a variable, where one is known here."""
        return self.values.get(name, ())

    def was_assigned(self, *names: str) -> bool:
        """Whether the line sets one of these anywhere before."""
        return any(name in self.assigned for name in names)

    def only_once(self, name: str) -> bool:
        """Whether the name stands only once on the line except behind ``$``: nothing else can set it by name."""
        if name not in self._once:
            found = re.compile(rf"(?<![\w$])(?<!\$\{{){re.escape(name)}(?!\w)").finditer(self.source)
            self._once[name] = (
                len(self._once) < MAX_FOLLOWED and next(found, None) is not None and next(found, None) is None
            )
        return self._once[name]

    def finish_arithmetic(self) -> None:
        """A name that arithmetic evaluates must hold a number wherever the line sets it."""
        for name, start, end in self.arithmetic:
            if name in self.not_numeric:
                self.note(start, end, name, "arithmetic evaluates the value of a variable, which may run commands")
