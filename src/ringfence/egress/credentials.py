"""Credentials that stay outside the box: where each is kept, where it may go, and what the box sees instead.

Only organisation, user or mission scope may configure them, never a repository. A value is read when it is needed, held
for a minute, and appears in no log, error or ledger entry.
"""

import os
import shlex
import stat
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from ringfence.egress.rules import BadHostError, canonical_host
from ringfence.model.errors import RingfenceError

SECONDS, KEEP_SECONDS, FAILED_SECONDS, MAX_SECRET = 20, 60.0, 5.0, 8192
RUN_USER = "/run/user"
KEYRING_CLIENT = "/usr/bin/secret-tool"
"""Asks the desktop's keyring (the freedesktop Secret Service) over the user's session bus."""


class Source(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where the value is kept: exactly one of a file, a command that prints it, or attributes of the desktop's keyring."""

    file: str = ""
    command: tuple[str, ...] = ()
    keyring: dict[str, str] = {}


class Credential(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One binding. The value goes to this host and port, to paths at or below ``path``, over TLS, and nowhere else."""

    name: str
    host: str
    source: Source
    port: int = 443
    path: str = "/"
    header: str = "authorization"
    """The one header that carries the value. An endpoint puts ``Bearer`` in front where it is ``authorization``."""
    endpoint: str = ""
    """Name of a loopback endpoint in the box that stands for this host, for programs that take a base URL."""
    variable: str = ""
    """Environment variable that tells the box the endpoint's base URL."""
    user: str = "x-access-token"
    """User name that goes with the placeholder in the box's netrc."""


@dataclass(slots=True)
class Vault:
    """Reads one credential's value when asked, at most once a minute."""

    credential: Credential
    on_secret: Callable[[str], None] | None = None
    """Told each value before anybody gets it."""
    _value: str = field(default="", repr=False)
    _read_at: float = -1e9
    _fault: RingfenceError | None = None

    def value(self) -> str:
        """The value. Raises RingfenceError that names the credential and the place, never what it holds.

        A place that did not give it is not asked again for some seconds: a keyring may wait for a person, and every
        connection of the mission would wait with it.
        """
        since = time.monotonic() - self._read_at
        if self._fault is not None and since <= FAILED_SECONDS:
            raise self._fault.with_traceback(None)  # told to every connection: else it would keep their stacks
        if self._fault is not None or since > KEEP_SECONDS:
            try:
                self._value, self._fault = read_secret(self.credential), None
            except RingfenceError as error:
                self._value, self._fault = "", error
            self._read_at = time.monotonic()
            if self._fault is not None:
                raise self._fault.with_traceback(None)
            if self.on_secret is not None:
                self.on_secret(self._value)
        return self._value


def parse_credentials(data: object, *, where: str) -> tuple[Credential, ...]:
    """The bindings of a configuration's ``credentials`` list. Raises RingfenceError for what is not exactly one."""
    try:
        found = msgspec.convert(data, tuple[Credential, ...], strict=True)
    except msgspec.ValidationError as error:
        raise _bad(str(error), where) from error
    names = [credential.name for credential in found]
    for credential in found:
        if names.count(credential.name) > 1 or not credential.name.replace("-", "").replace("_", "").isalnum():
            raise _bad(f"{credential.name!r} is used twice, or is no plain word", where)
        source = credential.source
        if sum(map(bool, (source.file, source.command, source.keyring))) != 1:
            raise _bad(f"{credential.name}: give one of file, command or keyring", where)
        try:
            canonical = canonical_host(credential.host)
        except BadHostError as error:
            raise _bad(f"{credential.name}: {error}", where) from error
        if canonical.text != credential.host or not credential.path.startswith("/") or not 0 < credential.port < 65536:
            raise _bad(f"{credential.name}: host, port or path is not in its plain form", where)
    return found


def read_secret(credential: Credential) -> str:
    """The value, without surrounding white space. Raises RingfenceError."""
    source = credential.source
    if source.file:
        text = _from_file(credential, source.file)
    elif source.command:
        text = _from_command(credential, source.command)
    else:
        text = _from_keyring(credential)
    value = text.strip()
    if not value or len(value) > MAX_SECRET or any(ord(c) < 32 for c in value):
        raise _unreadable(credential, "what is there is empty, too long or not one line")
    return value


def netrc(credentials: Sequence[Credential], placeholders: Mapping[str, str]) -> str:
    """A netrc for the box's home: git, curl and pip send the placeholder by themselves, with no variable set."""
    lines = [
        f"machine {credential.host} login {credential.user} password {placeholders[credential.name]}"
        for credential in credentials
        if not credential.endpoint
    ]
    return "".join(f"{line}\n" for line in lines)


def environment(credentials: Sequence[Credential], ports: Mapping[str, int]) -> dict[str, str]:
    """Base-URL variables for the box; ``ports`` gives each endpoint's port in the box."""
    return {
        credential.variable: f"http://127.0.0.1:{ports[credential.endpoint]}"
        for credential in credentials
        if credential.variable and credential.endpoint in ports
    }


def _from_file(credential: Credential, path: str) -> str:
    try:
        descriptor = os.open(os.path.expanduser(path), os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            info = os.fstat(file.fileno())
            if not stat.S_ISREG(info.st_mode) or info.st_uid not in {0, os.getuid()} or info.st_mode & 0o077:
                raise _unreadable(credential, "the file must be yours alone: chmod 600")
            return file.read(MAX_SECRET + 1).decode("utf-8", "replace")
    except OSError as error:
        raise _unreadable(credential, error.strerror or "unreadable") from None


def _from_command(credential: Credential, argv: tuple[str, ...]) -> str:
    if not argv[0].startswith("/"):
        raise _unreadable(credential, "the command must be an absolute path")
    try:
        done = _output_of(argv)
    except (OSError, subprocess.TimeoutExpired):
        raise _unreadable(credential, "the command did not run, or not in time") from None
    if done.returncode:
        raise _unreadable(credential, f"the command ended with {done.returncode}")
    return done.stdout[: MAX_SECRET + 1].decode("utf-8", "replace")


def _from_keyring(credential: Credential) -> str:
    """``secret-tool`` says nothing of an entry that is missing or locked, and complains where no keyring answers."""
    words = [word for pair in sorted(credential.source.keyring.items()) for word in pair]
    try:
        done = _output_of((KEYRING_CLIENT, "lookup", *words))
    except FileNotFoundError:
        remedy = "install it (Debian: libsecret-tools), or keep the value in a file or behind a command"
        raise _unreadable(credential, f"{KEYRING_CLIENT} is not installed", remedy) from None
    except subprocess.TimeoutExpired:
        remedy = "unlock the keyring, then try again"
        raise _unreadable(credential, f"the keyring did not answer within {SECONDS} s", remedy) from None
    except OSError as error:
        raise _unreadable(credential, f"{KEYRING_CLIENT} did not start: {error.strerror}") from None
    if done.returncode and done.stderr.strip():
        remedy = "log in to a session with a keyring (gnome-keyring, KWallet, KeePassXC), or keep the value in a file"
        raise _unreadable(credential, "no keyring answers on this user's session bus", remedy)
    if done.returncode:
        entry = shlex.join(words)
        remedy = f"unlock the keyring, or put it there: secret-tool store --label={credential.name} {entry}"
        raise _unreadable(credential, f"the keyring has no entry {entry} that is unlocked", remedy)
    return done.stdout[: MAX_SECRET + 1].decode("utf-8", "replace")


def _output_of(argv: tuple[str, ...]) -> subprocess.CompletedProcess[bytes]:
    env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": os.path.expanduser("~"), **session_environment()}
    return subprocess.run(
        argv, env=env, cwd="/", stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS, check=False
    )


def session_environment() -> dict[str, str]:
    """Where this user's session bus is: at its fixed place, since a supervisor that a client started has no environment.

    One that a person started (``ringfence serve``) may also know another place, and that counts where there is none here.
    """
    folder = f"{RUN_USER}/{os.getuid()}"
    found = {}
    try:
        info = os.lstat(folder)
        own = stat.S_ISDIR(info.st_mode) and info.st_uid == os.getuid() and not stat.S_IMODE(info.st_mode) & 0o077
        if own and stat.S_ISSOCK(os.lstat(f"{folder}/bus").st_mode):
            found = {"XDG_RUNTIME_DIR": folder, "DBUS_SESSION_BUS_ADDRESS": f"unix:path={folder}/bus"}
    except OSError:
        found = {}
    told = {name: os.environ[name] for name in ("DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR") if name in os.environ}
    return found or told


def _bad(what: str, where: str) -> RingfenceError:
    return RingfenceError(
        "credential-invalid",
        what,
        where=where,
        remedy="see docs/network.md, credentials",
    )


def _unreadable(credential: Credential, what: str, remedy: str = "") -> RingfenceError:
    return RingfenceError(
        "credential-unreadable",
        f"the credential {credential.name!r} could not be read: {what}",
        where=credential.source.file or " ".join(credential.source.command[:1]) or "keyring",
        remedy=remedy or "make it readable for you alone, then start the mission again",
    )
