"""What the user's own configuration opens: credentials that stay outside, and ports across the fence.

``network.yaml`` in the user's configuration folder, never anything of a repository. One mission may add port grants and
a learning span, given by a person when it starts.
"""

import datetime as dt
import functools
import os
import stat
from dataclasses import dataclass, replace

import msgspec

from ringfence.egress.authority import BUNDLES, make_authority, trust_environment
from ringfence.egress.credentials import Credential, environment, netrc, parse_credentials, read_secret
from ringfence.egress.options import Options
from ringfence.egress.placeholders import placeholder_for
from ringfence.model.box import Mount
from ringfence.model.errors import PolicyError, RingfenceError
from ringfence.model.ids import Micros
from ringfence.policy.policy import Policy
from ringfence.supervisor.missions import Mission
from ringfence.supervisor.paths import Paths, check_trusted, file_stamp

FILE_NAME = "network.yaml"
FIRST_ENDPOINT = 9870
"""Port in the box of the first model endpoint; the next ones follow."""
BUNDLE = "/run/ringfence-ca.crt"
WGETRC = "/run/ringfence-wgetrc"
"""wget knows no variable for certificates, but one for its settings."""


class HostPort(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A service of the host that boxes may reach as ``127.0.0.1:port``."""

    port: int
    to: str = ""


class Inbound(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A port of the box that the host may reach on its loopback; ``host`` 0 takes any free one."""

    box: int
    host: int = 0


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    version: int = 1
    credentials: list[object] = []
    host_ports: tuple[HostPort, ...] = ()
    inbound: tuple[Inbound, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The parsed file."""

    credentials: tuple[Credential, ...] = ()
    host_ports: tuple[HostPort, ...] = ()
    inbound: tuple[Inbound, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """What one box gets: for its plan (endpoints, ports, environment, files) and for its worker."""

    credentials: tuple[Credential, ...] = ()
    placeholders: tuple[tuple[str, str], ...] = ()
    authority: tuple[str, str] | None = None
    endpoints: tuple[tuple[str, int], ...] = ()
    host_ports: tuple[int, ...] = ()
    inbound: bool = False
    environment: tuple[tuple[str, str], ...] = ()
    mounts: tuple[Mount, ...] = ()
    options: Options = Options()


def load_settings(paths: Paths) -> Settings:
    """The user's settings; nothing where there is no file. Raises PolicyError for one that is not exactly right."""
    path = f"{paths.config}/{FILE_NAME}"
    try:
        info = os.lstat(path)
    except FileNotFoundError:
        return Settings()
    if not stat.S_ISREG(info.st_mode) or stat.S_IMODE(info.st_mode) & 0o077:
        raise _bad("the file must be a plain file that is yours alone", path, f"chmod 600 {path}")
    check_trusted(paths.config)
    return _read(path, file_stamp(path))


@functools.lru_cache(maxsize=4)
def _read(path: str, _stamp: tuple[int, ...]) -> Settings:
    """Read again once it has changed: this is asked for before every command."""
    import yaml

    try:
        with open(path, encoding="utf-8") as file:
            parsed = msgspec.convert(yaml.safe_load(file) or {}, _File, strict=True)
    except (OSError, UnicodeDecodeError, yaml.YAMLError, msgspec.ValidationError) as error:
        raise _bad(str(error), path, "docs/network.md shows every key") from error
    ports = [grant.port for grant in parsed.host_ports]
    ports += [number for grant in parsed.inbound for number in (grant.box, grant.host or grant.box)]
    if not all(0 < number < 65536 for number in ports):
        raise _bad("a port is out of range", path, "ports are 1 to 65535")
    return Settings(
        credentials=parse_credentials(parsed.credentials, where=path),
        host_ports=parsed.host_ports,
        inbound=parsed.inbound,
    )


def known_secrets(settings: Settings) -> tuple[str, ...]:
    """Values that can be read without a person (files), so that the ledger never keeps one by its exact text.

    Those behind a command or in a keyring are known from their first use on.
    """
    found = []
    for credential in settings.credentials:
        if credential.source.file:
            try:
                found.append(read_secret(credential))
            except RingfenceError:
                continue  # told when a connection wants it
    return tuple(found)


def opening_for(settings: Settings, policy: Policy, mission: Mission, *, home: str, now: Micros, noise: str) -> Opening:
    """What this mission's boxes get. ``home`` is the box's home, ``noise`` makes its placeholders unguessable."""
    credentials = settings.credentials
    placeholders = {item.name: placeholder_for(item.name, noise) for item in credentials}
    names = dict.fromkeys(item.endpoint for item in credentials if item.endpoint)
    endpoints = {name: FIRST_ENDPOINT + number for number, name in enumerate(names)}
    host_ports = (*settings.host_ports, *(HostPort(port=port) for port in mission.host_ports))
    inbound = (*settings.inbound, *(Inbound(box=port) for port in mission.inbound))
    opening = Opening(
        credentials=credentials,
        placeholders=tuple(placeholders.items()),
        endpoints=tuple(endpoints.items()),
        host_ports=tuple(dict.fromkeys(grant.port for grant in host_ports)),
        inbound=bool(inbound),
        environment=tuple(environment(credentials, endpoints).items()),
        options=Options(
            learning_until=Micros(mission.learning_until),
            inspection=policy.inspects_anything or bool(credentials),
            judge_bodies=policy.reads_bodies,
            host_ports=tuple(_host_port(grant) for grant in host_ports),
            inbound=tuple((grant.host, grant.box) for grant in inbound),
            ask_millis=0,
        ),
    )
    text = netrc(credentials, placeholders)
    if text:
        mount = Mount(kind="file", target=f"{home}/.netrc", content=text.encode(), mode=0o600)
        opening = replace(opening, mounts=(mount,))
    return _inspecting(opening, mission, now) if opening.options.inspection else opening


def _inspecting(opening: Opening, mission: Mission, now: Micros) -> Opening:
    """The mission's authority: its key for the worker alone, its certificate in a bundle that the box's programs read."""
    authority = make_authority(mission.id, dt.datetime.fromtimestamp(now / 1_000_000, dt.UTC))
    system = next((path for path in BUNDLES if os.path.isfile(path)), None)
    bundle = authority[0].encode()
    if system is not None:
        with open(system, "rb") as file:
            bundle = file.read() + b"\n" + bundle
    return replace(
        opening,
        authority=authority,
        environment=(*opening.environment, *trust_environment(BUNDLE).items(), ("WGETRC", WGETRC)),
        mounts=(
            *opening.mounts,
            Mount(kind="file", target=BUNDLE, content=bundle, mode=0o644),
            Mount(kind="file", target=WGETRC, content=f"ca_certificate = {BUNDLE}\n".encode(), mode=0o644),
        ),
    )


def _host_port(grant: HostPort) -> tuple[int, str, int]:
    address, _, port = (grant.to or f"127.0.0.1:{grant.port}").rpartition(":")
    return grant.port, address.strip("[]"), int(port)


def _bad(what: str, where: str, remedy: str) -> PolicyError:
    return PolicyError("bad-network-settings", what, where=where, remedy=remedy)
