"""The parser of every subcommand: a mistake in the words is answered with what was wrong and where the help is."""

import argparse
import difflib
import sys
from typing import Any, NoReturn

from ringfence.cli.text import escape


class _Subparsers(argparse._SubParsersAction):  # type: ignore[type-arg]  # noqa: SLF001 - it cannot be subscripted when it runs
    """Adds subcommands whose own help begins with what the list says of them."""

    def add_parser(self, name: str, **given: Any) -> "Parser":
        """One subcommand."""
        text = str(given.get("help", ""))
        made: Parser = super().add_parser(name, **{"description": text[:1].upper() + text[1:] + ".", **given})
        return made


class Parser(argparse.ArgumentParser):
    """As argparse's, with a way out in every error of usage (exit 2)."""

    def __init__(self, **given: Any) -> None:
        """Takes what argparse takes."""
        super().__init__(**given)
        self.register("action", "parsers", _Subparsers)

    def error(self, message: str) -> NoReturn:
        """Print the usage, the mistake and the remedy, and exit."""
        self.print_usage(sys.stderr)
        self.refuse(self.prog, message)

    def refuse(self, command: str, message: str) -> NoReturn:
        """Exit with the mistake and the remedy, without the usage."""
        self.exit(2, escape(f"{command}: error: {message}\n  fix: `{command} --help` says what there is") + "\n")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """A subcommand that is misspelled is answered with the one that is nearest."""
        near = difflib.get_close_matches(str(value), [str(choice) for choice in action.choices or ()], 1)
        if near and value not in (action.choices or ()):
            raise argparse.ArgumentError(action, f"{value!a} is none of them; did you mean `{near[0]}`?")
        super()._check_value(action, value)
