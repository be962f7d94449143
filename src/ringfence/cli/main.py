"""Entry point: find the subcommand's file, parse, call, turn errors into exit codes. Nothing else does the latter.

A subcommand is one module in this package with ``configure(parser)`` and ``run(args, paths) -> int``; its name is
added to COMMANDS below with one line of help. Modules are imported only when asked for.
"""

import sys

from ringfence.cli.text import escape
from ringfence.model.errors import BoxError, LedgerError, PolicyError, RingfenceError
from ringfence.supervisor.paths import user_paths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

    from ringfence.cli.usage import Parser

CLEAN, FAULT, USAGE, POLICY_INVALID = 0, 1, 2, 3
INTERRUPTED = -1
ASKED, DENIED, ALTERED, CANNOT_ENFORCE, NOT_PROVEN, REFUSED, ROTATE = 10, 11, 12, 13, 14, 20, 21

COMMANDS: dict[str, tuple[str, str]] = {
    "init": ("init", "write a starting policy and fixtures, and trust them"),
    "check": ("check", "run the policy's fixtures"),
    "why": ("why", "show how a command is judged, and by which rule"),
    "run": ("run", "decide a command and run it in a box"),
    "policy": ("policy", "trust, lint, schema, diff, presets"),
    "doctor": ("doctor", "what this host can enforce, and what is missing"),
    "smoke": ("smoke", "probe a box before anything runs in one"),
    "gauntlet": ("gauntlet", "put a sandbox through the hostile suite"),
    "serve": ("serve", "run the supervisor in the foreground"),
    "stop": ("stop", "end the supervisor"),
    "teardown": ("teardown", "remove everything that boxes left"),
    "mission": ("mission", "start, list, show, diff, commit, discard, end"),
    "ledger": ("ledger", "show, verify, export, archive, purge, hold"),
    "egress": ("egress", "the log of every connection tried"),
    "promote": ("promote", "the gate before an agent's change is reviewed"),
}

_EXITS = (
    "Exit codes: 0 clean, 1 findings or a fault, 2 usage, 3 unusable policy, 10 held, 11 denied, 12 ledger altered, 13 cannot "
    "enforce, 14 not proven, 20 promotion refused, 21 refused and a secret to rotate. `run` passes on the command's own."
)


def main(argv: list[str] | None = None) -> int:
    """Run one subcommand and return its exit code."""
    arguments = sys.argv[1:] if argv is None else argv
    try:
        return _dispatch(arguments)
    except RingfenceError as error:
        print(escape(str(error)), file=sys.stderr)
        return exit_code(error)
    except BrokenPipeError:
        sys.stdout = None
        return FAULT
    except OSError as error:
        print(escape(str(_of_the_system(error))), file=sys.stderr)
        return FAULT


def program() -> None:
    """Be the program: run, flush, and leave without taking the interpreter apart, which would cost every command time."""
    import os

    _open_standard_streams()
    try:
        code = main()
    except KeyboardInterrupt:
        code = INTERRUPTED
    except SystemExit as leaving:  # a parser that printed its help or a fault of usage
        code = leaving.code if isinstance(leaving.code, int) else CLEAN if leaving.code is None else FAULT
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except OSError:
            code = code or FAULT  # nobody reads any more
    if code == INTERRUPTED:
        _interrupt()
    os._exit(code)


def _interrupt() -> None:
    """End by the signal, so that a script that started this ends as well."""
    import os
    import signal

    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGINT)


def _open_standard_streams() -> None:
    """Nothing that is opened later takes the number of a standard stream, and no letter is beyond the terminal's set."""
    import os

    while (null := os.open(os.devnull, os.O_RDWR)) <= 2:  # the lowest free number: one of the three was closed
        pass
    os.close(null)
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, "w" if number else "r", encoding="utf-8", closefd=False))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # both are text streams here


def _of_the_system(error: OSError) -> RingfenceError:
    """What the system refused, as a fault with a place."""
    if error.filename is None and isinstance(error, FileNotFoundError):  # only a working directory has no name
        return RingfenceError("no-directory", "the working directory does not exist any more", remedy="cd elsewhere")
    return RingfenceError(
        "file-unusable",
        f"a file cannot be read or written: {error.strerror or error}",
        where=str(error.filename or ""),
        remedy="look at the path, its permissions and the space on its disk",
    )


def exit_code(error: RingfenceError) -> int:
    """The exit code of a fault; an error that carries its own (``exit``) keeps it."""
    own = getattr(error, "exit", None)
    if isinstance(own, int):
        return own
    if isinstance(error, PolicyError):
        return POLICY_INVALID
    if isinstance(error, BoxError):
        return CANNOT_ENFORCE
    if isinstance(error, LedgerError) and error.code == "ledger-altered":
        return ALTERED
    return FAULT


def build_parser(only: str | None = None) -> "Parser":
    """The parser; with ``only``, just that subcommand's module is imported (completion and docs want all)."""
    import argparse

    from ringfence import __version__
    from ringfence.cli.usage import Parser

    parser = Parser(prog="ringfence", description="A fail-closed fence around coding agents.", epilog=_EXITS)
    parser.add_argument("--version", action="version", version=f"ringfence {__version__}")
    parser.add_argument("--test-root", default=None, help=argparse.SUPPRESS)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, (module_name, text) in COMMANDS.items():
        sub = commands.add_parser(name, help=text)
        if name != "run" and (only is None or name == only):
            _module(module_name).configure(sub)
    return parser


def _dispatch(arguments: list[str]) -> int:
    if arguments[:1] == ["run"]:
        return _run(arguments[1:], None)
    if arguments[:1] == ["--test-root"] and arguments[2:3] == ["run"]:
        return _run(arguments[3:], arguments[1])
    name = next((word for word in arguments if word in COMMANDS), None)
    parser = build_parser(only=name or "check")
    args, unknown = parser.parse_known_args(arguments)
    if unknown:
        parser.refuse(f"ringfence {args.command}", f"not understood: {' '.join(unknown)}")
    paths = user_paths(args.test_root)
    code = _module(COMMANDS[args.command][0]).run(args, paths)
    return int(code)


def _run(words: list[str], test_root: str | None) -> int:
    """The hot path: a command is parsed by hand and reaches the supervisor with few imports, and nothing to collect."""
    import gc

    gc.disable()
    from ringfence.cli import run

    return run.main(words, user_paths(test_root))


def _module(name: str) -> "ModuleType":
    import importlib

    return importlib.import_module(f"ringfence.cli.{name}")


if __name__ == "__main__":
    program()
