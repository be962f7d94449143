"""What a decision needs to know of the file system. Values only; ``facts`` goes and looks."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Questions:
    """Paths (absolute, as asked), patterns and program names of one call."""

    paths: tuple[str, ...] = ()
    globs: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    roots: tuple[str, ...] = ()
    """Allowed roots as written, to be resolved against the repository's root."""
    directories: tuple[str, ...] = ()
    """Where bare program names are looked up."""
    working: tuple[str, ...] = ()
    """Directories in which commands run: asked whether git takes them for a repository of its own."""
