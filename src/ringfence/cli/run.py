"""``ringfence run``: decide a command and run it in a box. The hot path: parsed by hand, no argparse, few imports.

The command's own exit status or signal is passed through. What the fence itself says goes to standard error, and to
``--report FILE`` for programs that must tell the two apart.
"""

import _signal  # type: ignore[import-not-found]  # the C module: ``signal`` would bring enum along
import _socket
import os
import sys

from ringfence.cli.text import one_line
from ringfence.model.errors import RingfenceError
from ringfence.supervisor import client, protocol
from ringfence.supervisor.paths import Paths

USAGE = """usage: ringfence run [options] -- COMMAND [ARGUMENT…]
       ringfence run [options] -c 'LINE'

Decide the command by the policy of this repository, run it in a box if it is allowed, apply its changes.

options:
  -c LINE            a line for bash, instead of a command after --
  --json             print one JSON object with the decision, the execution and the captured output
  --report FILE      write that object, without the output, to FILE
  --mission ID       run as part of this mission
  --review           keep the changes back; see `ringfence mission diff` and `ringfence mission commit`
  --interactive      give the box a terminal (the default when standard input and output are one)
  --no-interactive   never give it one
"""
PASSED_VARIABLES = frozenset({
    "AGENT_ENV_CLASS", "CARGO_TERM_COLOR", "CI", "CLICOLOR", "CLICOLOR_FORCE", "COLORTERM", "COLUMNS", "FORCE_COLOR", "LANG",
    "LANGUAGE", "LINES", "NO_COLOR", "PYTHONDONTWRITEBYTECODE", "PYTHONHASHSEED", "PYTHONUNBUFFERED", "SOURCE_DATE_EPOCH", "TERM", "TZ",
})  # fmt: skip
"""Sent to the supervisor beside LC_*; which of them reach the box is the policy's and the plan's business."""
SIGNALS = (
    *(_signal.SIGINT, _signal.SIGTERM, _signal.SIGHUP, _signal.SIGQUIT),
    *(_signal.SIGUSR1, _signal.SIGUSR2, _signal.SIGTSTP),
)
WANTS_KEYS = (_signal.SIGTTIN, _signal.SIGTTOU)
LOOK_SECONDS = 0.2
"""Between two looks whether a job that runs has come to the front."""


class Options:
    """What the words after ``run`` mean."""

    __slots__ = ("argv", "interactive", "json", "line", "mission", "report", "review")

    def __init__(self) -> None:
        self.argv: list[str] | None = None
        self.line: str | None = None
        self.json = False
        self.report: str | None = None
        self.mission: str | None = None
        self.review = False
        self.interactive: bool | None = None


def parse(words: list[str]) -> Options:
    """Read the words after ``run``. Raises RingfenceError with exit 2 for a usage fault."""
    options = Options()
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word == "--":
            options.argv = rest
            break
        if word in {"-h", "--help"}:
            print(USAGE, end="")
            raise SystemExit(0)
        if word in {"--json", "--review"}:
            setattr(options, word[2:], True)
        elif word in {"--interactive", "--no-interactive"}:
            options.interactive = word == "--interactive"
        elif word in {"-c", "--report", "--mission"}:
            if not rest:
                raise _usage(f"{word} needs a value")
            setattr(options, "line" if word == "-c" else word[2:], rest.pop(0))
        elif word.startswith(("--report=", "--mission=")):
            name, _, value = word.partition("=")
            setattr(options, name[2:], value)
        elif word.startswith("-"):
            raise _usage(f"there is no option {word}; write `--` in front of the command")
        else:
            options.argv = [word, *rest]
            break
    if (options.line is None) == (options.argv is None or not options.argv):
        raise _usage("give a command after `--`, or a line with -c, and not both")
    return options


def main(words: list[str], paths: Paths) -> int:
    """Run one command; the exit code is the command's own, or the fence's (10 ask, 11 denied, 13 cannot enforce)."""
    options = parse(words)
    report = None if options.report is None else os.open(options.report, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
    output = _descriptors(capture=options.json)
    request = _request(options)
    connection, reader = client.ask(paths, request, output)
    try:
        interactive = bool(request["interactive"])
        forwarding = _Forwarding(connection, interactive=interactive)
        with forwarding, _Keyboard(enabled=interactive) as keyboard:
            message = client.answer(reader, paths, keyboard.say)
            while "event" in message:
                if message["event"] == "begun":
                    keyboard.begin()
                else:
                    protocol.send(connection, keyboard.stop_with_the_box(message.get("signal")))
                    forwarding.look_for_the_front()
                message = client.answer(reader, paths, keyboard.say)
    finally:
        connection.close()
    return _finish(message, options, output, report)


def _request(options: Options) -> dict[str, object]:
    interactive = options.interactive
    if interactive is None:
        interactive = not options.json and os.isatty(0) and os.isatty(1)
    columns, rows = os.get_terminal_size(1) if interactive and os.isatty(1) else (80, 24)
    passed = {name: value for name, value in os.environ.items() if name in PASSED_VARIABLES or name.startswith("LC_")}
    environment = {name: value for name, value in passed.items() if _is_text(name + value)}
    umask = os.umask(0)
    os.umask(umask)
    behind = is_behind()  # then its terminal is set as that other job wants it
    message: dict[str, object] = {
        "verb": "run",
        "version": protocol.VERSION,
        "cwd": os.getcwd(),
        "env": environment,
        "umask": umask,
        "interactive": interactive,
        "rows": rows,
        "columns": columns,
        "modes": _modes() if interactive and not behind else (),
        "stops": any(_group_in_front(stream) > 0 for stream in (0, 1, 2)),
        "behind": behind,
        "review": options.review,
    }
    if options.mission is not None:
        message["mission"] = options.mission
    if options.line is not None:
        message["line"] = options.line
    else:
        message["argv"] = options.argv
    return message


def _is_text(value: str) -> bool:
    """Whether it is UTF-8: what is not names no locale or terminal, and is left behind."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _descriptors(*, capture: bool) -> tuple[int, int, int]:
    if not capture:
        return (0, 1, 2)
    return (0, os.memfd_create("stdout"), os.memfd_create("stderr"))


def _finish(message: dict[str, object], options: Options, output: tuple[int, int, int], file: int | None = None) -> int:
    report = dict(message)
    if file is not None or options.json:
        import json
    if file is not None:
        _write(json.dumps(report, indent=2), file, str(options.report), message)
    if options.json:
        for name, descriptor in (("stdout", output[1]), ("stderr", output[2])):
            report[name] = _contents(descriptor)
        _write(json.dumps(report, indent=2), 1, "standard output", message)
    else:
        for line in _lines(message):
            print(one_line(line), file=sys.stderr)
        if options.review and message.get("ran"):
            kept = message.get("mission")
            print(
                one_line(f"kept back: see `ringfence mission diff {kept}`, then `ringfence mission commit {kept}`"),
                file=sys.stderr,
            )
    return _status(message, raise_signal=not options.json)


def _write(text: str, file: int, name: str, message: dict[str, object]) -> None:
    """Write a report. Raises RingfenceError saying what came of the command, which nobody can read there now."""
    try:
        with open(file, "w", encoding="utf-8", closefd=file > 2) as stream:
            stream.write(text + "\n")
    except OSError as error:
        came = f"exit {message.get('exit')}" if message.get("signal") is None else f"signal {message.get('signal')}"
        raise RingfenceError(
            "report-not-written",
            f"the command {f'ran ({came})' if message.get('ran') else 'did not run'}, and its report cannot be written: "
            f"{error.strerror or error}",
            where=name,
            remedy="see `ringfence ledger show`, which has it; free space, or name another file",
        ) from error


def _contents(descriptor: int) -> str:
    size = os.lseek(descriptor, 0, os.SEEK_END)
    return os.pread(descriptor, size, 0).decode("utf-8", "backslashreplace")


def _lines(message: dict[str, object]) -> list[str]:
    lines = message.get("messages")
    return [str(line) for line in lines] if isinstance(lines, list) else []


def _status(message: dict[str, object], *, raise_signal: bool) -> int:
    code, number = message.get("exit"), message.get("signal")
    if isinstance(number, int) and number > 0:
        if raise_signal and message.get("ended_by") == "":
            _die_of(number)
        return 128 + number
    if code == 0 and message.get("ended_by"):
        return 1  # the command's success is not the whole truth
    return code if isinstance(code, int) else 1


def _die_of(number: int) -> None:
    """End by the same signal as the command, so that a caller sees what it would have seen."""
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sys.stdout.flush()
    if number not in {_signal.SIGKILL, _signal.SIGSTOP}:
        _signal.signal(number, _signal.SIG_DFL)
        _signal.pthread_sigmask(_signal.SIG_UNBLOCK, {number})
    os.kill(os.getpid(), number)


class _Forwarding:
    """While the command runs, signals to this process go to the box, and so do changes of the window's size."""

    def __init__(self, connection: _socket.socket, *, interactive: bool) -> None:
        self._connection = connection
        self._interactive = interactive
        self._old: dict[int, object] = {}

    def __enter__(self) -> None:
        for number in SIGNALS:
            if _signal.getsignal(number) != _signal.SIG_IGN:  # else its caller wants it not to count, as nohup does
                self._old[number] = _signal.signal(number, self._forward)
        self._old[_signal.SIGWINCH] = _signal.signal(_signal.SIGWINCH, self._resize)
        self.look_for_the_front()

    def __exit__(self, *_: object) -> None:
        for number, handler in self._old.items():
            _signal.signal(number, handler)

    def _forward(self, number: int, _: object) -> None:
        self._tell({"signal": number})

    def look_for_the_front(self) -> None:
        """A shell's ``fg`` tells nothing to a job that runs; one with a terminal of its own is told when it wants a key."""
        if not self._interactive and is_behind():
            import threading

            threading.Thread(target=self._wait_for_the_front, daemon=True).start()

    def _wait_for_the_front(self) -> None:
        import time

        while is_behind():
            time.sleep(LOOK_SECONDS)
        self._tell({"go_on": True})

    def _resize(self, *_: object) -> None:
        if os.isatty(1):
            columns, rows = os.get_terminal_size(1)
            self._tell({"rows": rows, "columns": columns})

    def _tell(self, message: dict[str, object]) -> None:
        try:
            protocol.send(self._connection, message)
        except OSError:
            return  # the answer says that the supervisor is gone


class _Keyboard:
    """While a box has a terminal, the person's keys go to it unread; until its command has begun, Ctrl-C is for this process.

    Behind another job nothing is taken: what is typed is for that one.
    """

    def __init__(self, *, enabled: bool) -> None:
        self._enabled = enabled and os.isatty(0)
        self._begun = False
        self._saved: list[int | list[bytes | int]] = []

    def __enter__(self) -> "_Keyboard":  # noqa: PYI034 - Self lives in typing, which this file does not import
        self._take()
        return self

    def __exit__(self, *_: object) -> None:
        self._give_back()

    def say(self, text: str) -> None:
        """A word of the fence's own to the person, while the command waits."""
        print(f"ringfence: {one_line(text)}", file=sys.stderr, end="\r\n" if self._saved else "\n", flush=True)

    def begin(self) -> None:
        """The command runs."""
        self._begun = True
        self._take()

    def stop_with_the_box(self, number: object) -> dict[str, object]:
        """The command stopped: give the terminal back and stop as well. Returns the word by which the command goes on.

        One that ran behind stops when it wants the keys; if its job has come to the front meanwhile, it gets them.
        """
        if number not in WANTS_KEYS or self._saved or is_behind():
            self._give_back()
            _stop(0 if self._enabled else os.getpid())
        self._take()
        return {"go_on": True, "behind": is_behind()}

    def _take(self) -> None:
        if not self._enabled or is_behind():
            return
        import termios

        self._saved = self._saved or termios.tcgetattr(0)
        raw = termios.tcgetattr(0)
        raw[0] &= ~(termios.BRKINT | termios.ICRNL | termios.INPCK | termios.ISTRIP | termios.IXON)
        raw[1] &= ~termios.OPOST
        raw[3] &= ~(termios.ECHO | termios.ICANON | termios.IEXTEN | (termios.ISIG if self._begun else 0))
        raw[6][termios.VMIN], raw[6][termios.VTIME] = 1, 0
        termios.tcsetattr(0, termios.TCSADRAIN, raw)

    def _give_back(self) -> None:
        """Flush what was typed ahead: an answer that the box provoked must not be typed into the person's shell."""
        if self._saved:
            import termios

            termios.tcsetattr(0, termios.TCSAFLUSH, self._saved)
            self._saved = []


def is_behind() -> bool:
    """Whether standard input is a terminal whose keys another job has now."""
    return _group_in_front(0) not in {0, os.getpgrp()}


def _group_in_front(stream: int) -> int:
    """The process group that has the keys of the terminal behind a stream; 0 for one that does not control this process."""
    try:
        return os.tcgetpgrp(stream)
    except OSError:
        return 0


def _modes() -> tuple[int, ...]:
    """How the person's terminal is set, for the box's to be like it: input, output, local modes, control characters."""
    if not os.isatty(0):
        return ()
    import termios

    entered, shown, _control, local, _in, _out, keys = termios.tcgetattr(0)
    return (entered, shown, local, *(key if isinstance(key, int) else key[0] for key in keys))


def _stop(target: int) -> None:
    """Stop this process, or with 0 its job as a whole, as the key would: the job's shell takes the terminal then.

    Returns when it is continued. In front, the kernel stops nothing that no shell continues, and nothing that ignores the key.
    """
    old = _signal.getsignal(_signal.SIGTSTP)
    if old != _signal.SIG_IGN:
        _signal.signal(_signal.SIGTSTP, _signal.SIG_DFL)
    os.kill(target, _signal.SIGSTOP if is_behind() else _signal.SIGTSTP)
    _signal.signal(_signal.SIGTSTP, old)


def _usage(text: str) -> RingfenceError:
    error = RingfenceError("usage", text, remedy="ringfence run -- COMMAND, or ringfence run -c 'LINE'")
    error.exit = 2  # type: ignore[attr-defined]  # read by cli/main.py
    return error
