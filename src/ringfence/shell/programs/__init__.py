"""Programs known by their options: tables as data, and the pure reading of a command with its table."""

from ringfence.shell.programs.load import Tables, load_tables
from ringfence.shell.programs.read import read_arguments
from ringfence.shell.programs.reading import Effect, EffectKind, HostUse, OptionUse, PathAccess, PathUse, Reading
from ringfence.shell.programs.table import TableError

__all__ = [
    "Effect",
    "EffectKind",
    "HostUse",
    "OptionUse",
    "PathAccess",
    "PathUse",
    "Reading",
    "TableError",
    "Tables",
    "load_tables",
    "read_arguments",
]
