"""How the words of wrappers are read: their options, their operands, where the command begins. Data only. Pure."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """How a wrapper's own words are read: options with a value (short letters, long names), then operands, then the command."""

    short: str = ""
    """Letters of options that take a value."""
    flags: str = ""
    long: frozenset[str] = frozenset()
    """Long options whose value may stand in the next word."""
    long_flags: frozenset[str] = frozenset()
    operands: int = 0
    """Own operands before the command begins."""
    assignments: bool = False
    privileged: bool = False
    covered: bool = False
    numbers: bool = False
    """``-10`` is an option."""
    refuse: str = ""
    """Options that end in no start of a command, or change what is started: named so that they are not sure."""


def spec(short: str = "", flags: str = "", long: str = "", long_flags: str = "", **more: object) -> Spec:
    """A spec from words separated by blanks."""
    return Spec(
        short=short, flags=flags, long=frozenset(long.split()), long_flags=frozenset(long_flags.split()), **more  # type: ignore[arg-type]
    )  # fmt: skip


SPECS: dict[str, Spec] = {
    "timeout": spec("ks", "v", "kill-after signal", "foreground preserve-status verbose", operands=1),
    "nice": spec("n", "", "adjustment", "", numbers=True),
    "nohup": spec(),
    "setsid": spec("", "cfw", "", "ctty fork wait"),
    "stdbuf": spec("ioe", "", "input output error", ""),
    "time": spec("fo", "apvq", "format output", "append portability verbose quiet"),
    "ionice": spec("cn", "t", "class classdata", "ignore"),
    "command": spec("", "p"),
    "builtin": spec(),
    "exec": spec("a", "cl"),
    "sudo": spec(
        "CDghpRrTtUu", "ABbEHknPSsiNKl",
        "close-from chdir group host prompt chroot role command-timeout type other-user user",
        "askpass bell background preserve-env set-home login non-interactive preserve-groups stdin shell reset-timestamp",
        assignments=True, privileged=True,
    ),
    "doas": spec("uCa", "nsL", privileged=True),
    "pkexec": spec("", "", "user", "disable-internal-agent keep-cwd", privileged=True),
    "chroot": spec("", "", "userspec groups", "skip-chdir", operands=1, privileged=True),
    "unshare": spec(
        "SGRw", "muinpUCTfrc", "setuid setgid root wd propagation setgroups map-user map-group map-users map-groups kill-child monotonic boottime",
        "mount uts ipc net pid user cgroup time fork map-root-user map-current-user map-auto mount-proc keep-caps",
        privileged=True,
    ),
    "nsenter": spec("tSGrwW", "amuinpUCTFZ", "target setuid setgid", "all mount no-fork preserve-credentials", privileged=True),
    "setpriv": spec("", "", "reuid regid groups inh-caps ambient-caps bounding-set securebits pdeathsig", "clear-groups keep-groups init-groups reset-env no-new-privs nnp", privileged=True),
    "capsh": spec(privileged=True),
    "systemd-run": spec("pEutMHP", "qdGS", "property setenv unit slice uid gid machine host working-directory description", "user system scope wait pipe pty quiet collect shell", privileged=True),
    "flock": spec("wEc", "senuoxFv", "timeout wait conflict-exit-code command", "shared exclusive unlock nonblock nb close no-fork verbose", operands=1, covered=True),
    "taskset": spec("", "acp", "", "all-tasks cpu-list pid", operands=1),
    "chrt": spec("TPD", "bdfiormavR", "sched-runtime sched-period sched-deadline", "batch deadline fifo idle other rr max all-tasks verbose reset-on-fork", operands=1),
    "numactl": spec("CNlmpiP", "sH", "interleave membind cpunodebind physcpubind preferred", "localalloc show hardware"),
    "prlimit": spec("p", "", "pid output", "noheadings raw verbose"),
    "busybox": spec(covered=True),
    "toybox": spec(covered=True),
    "xvfb-run": spec("efnspw", "al", "error-file auth-file server-num server-args xauth-protocol wait", "auto-servernum listen-tcp", covered=True),
    "dbus-run-session": spec("", "", "config-file dbus-daemon", "", covered=True),
    "unbuffer": spec("", "p", covered=True),
    "fakeroot": spec("lfibus", "u", "", "", covered=True),
    "strace": spec("aAbeEIoOpPsSuUX", "cCdfFhiknqrtTvVwxyYzZD", "output expr trace env user", "follow-forks", covered=True),
    "ltrace": spec("aADeFlnopsuwxX", "bcCfhiLrStTV", "output", "", covered=True),
    "valgrind": spec(covered=True),
    "perf": spec(covered=True),
    "gdb": spec(covered=True),
    "faketime": spec("f", "m", "", "", operands=1, covered=True),
    "torsocks": spec(covered=True), "torify": spec(covered=True), "proxychains": spec("f", "q", covered=True),
    "proxychains4": spec("f", "q", covered=True), "catchsegv": spec(covered=True), "rlwrap": spec(covered=True),
    "firejail": spec(covered=True), "bwrap": spec(covered=True), "entr": spec("", "acdnprsz", covered=True),
    "npx": spec("pc", "yq", "package call", "yes no quiet ignore-existing no-install", covered=True),
    "bunx": spec("p", "", "package", "bun verbose silent", covered=True),
    "uvx": spec("pwc", "qvn", "python from with with-editable with-requirements index-url index extra-index-url", "isolated offline quiet verbose no-cache refresh", covered=True),
    "doppler": spec(covered=True), "dotenv": spec("f", "", covered=True), "direnv": spec(covered=True),
}  # fmt: skip

# Programs whose subcommand starts another program: allow needs a rule for the whole, deny looks inside.
RUNNERS: dict[tuple[str, ...], Spec] = {
    ("uv", "run"): spec("pwC", "qvn", "python with extra group project directory env-file package no-group only-group index with-requirements with-editable", "frozen locked no-sync isolated offline quiet verbose all-extras dev no-dev active no-project refresh", covered=True),
    ("uv", "tool", "run"): spec("pw", "qv", "python from with", "isolated", covered=True),
    ("pipx", "run"): spec("", "qv", "spec python index-url pip-args", "no-cache verbose quiet", covered=True),
    ("poetry", "run"): spec(covered=True), ("pipenv", "run"): spec(covered=True), ("pdm", "run"): spec("p", "", covered=True),
    ("hatch", "run"): spec(covered=True), ("hatch", "env", "run"): spec("ei", "", "env include exclude filter force-continue", "", covered=True),
    ("tox", "exec"): spec("ec", "", "conf workdir root", "", covered=True), ("tox", "e"): spec("ec", "", "conf workdir root", "", covered=True), ("rye", "run"): spec(covered=True), ("pixi", "run"): spec("e", "", covered=True),
    ("conda", "run"): spec("np", "v", "name prefix cwd", "no-capture-output live-stream", covered=True),
    ("mamba", "run"): spec("np", "v", "name prefix cwd", "", covered=True),
    ("npm", "exec"): spec("pcw", "y", "package call workspace", "yes no", covered=True),
    ("npm", "x"): spec("pcw", "y", "package call workspace", "yes no", covered=True),
    ("pnpm", "exec"): spec("", "rc", "", "", covered=True), ("pnpm", "dlx"): spec("", "c", "package", "", covered=True),
    ("yarn", "exec"): spec(covered=True), ("yarn", "dlx"): spec("p", "q", "package", "", covered=True),
    ("bundle", "exec"): spec(covered=True), ("mise", "exec"): spec(covered=True), ("asdf", "exec"): spec(covered=True),
    ("go", "run"): spec(covered=True), ("docker", "run"): spec(covered=True), ("docker", "exec"): spec(covered=True),
    ("podman", "run"): spec(covered=True), ("podman", "exec"): spec(covered=True), ("rustup", "run"): spec(operands=1, covered=True),
}  # fmt: skip

SHELLS = frozenset({"bash", "sh", "dash", "zsh", "ksh", "ash", "mksh", "rbash", "fish", "csh", "tcsh", "yash"})
