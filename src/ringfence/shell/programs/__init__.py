"""Programs known by their options: tables as data, and the pure reading of a command with its table."""

from ringfence.shell.programs.load import SHIPPED, Tables
from ringfence.shell.programs.read import read_arguments
from ringfence.shell.programs.reading import Effect, EffectKind, HostUse, OptionUse, PathAccess, PathUse, Reading
from ringfence.shell.programs.table import TableError

__all__ = [
    "SHIPPED",
    "Effect",
    "EffectKind",
    "HostUse",
    "OptionUse",
    "PathAccess",
    "PathUse",
    "Reading",
    "TableError",
    "Tables",
    "read_arguments",
]
