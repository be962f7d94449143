"""Presets of the network allowlist: versioned data with a reason, a risk and a review date for every host.

``expand`` turns a name into host rules. Presets never open what cannot be kept read-only: where requests are not inspected,
hosts that also take uploads become ASK. Reading the data files is the only I/O here.
"""

import datetime as dt
import difflib
import hashlib
import importlib.resources
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

from ringfence.egress.presets.clients import Index
from ringfence.egress.presets.lock import Pinned
from ringfence.model.errors import PolicyError
from ringfence.model.tier import Tier

FILES = ("git", "python", "node", "languages", "jvm-dotnet", "containers", "systems", "models", "clients")
READ = ("GET", "HEAD")
MAX_HOSTS = 25


@dataclass(frozen=True, slots=True, kw_only=True)
class PresetHost:
    """One host of a preset. ``without`` says what breaks when it is missing."""

    host: str
    without: str
    ports: tuple[int, ...] = (443,)
    methods: tuple[str, ...] = READ
    paths: tuple[str, ...] = ("/**",)
    moved_from: tuple[str, ...] = ()
    seen_in: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """One entry of the catalogue. ``client`` names the program whose configuration gives the hosts, or is empty."""

    name: str
    title: str
    version: int
    reviewed: dt.date
    review_by: dt.date
    name_only: bool
    """Whether filtering by host name alone keeps it read-only enough."""
    risk: str
    client: str = ""
    hosts: tuple[PresetHost, ...] = ()
    deny: tuple[tuple[str, str], ...] = ()
    """(method, path glob) denied on every host of the preset."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostRule:
    """One rule that a preset stands for. Empty ``methods`` and ``paths`` mean any."""

    preset: str
    tier: Tier
    host: str
    ports: tuple[int, ...]
    methods: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    because: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expansion:
    """The rules of one preset, with what the policy's digest covers."""

    preset: str
    version: int
    rules: tuple[HostRule, ...]
    notes: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        """SHA-256 over the rules: the same rules, the same digest."""
        return hashlib.sha256(repr((self.preset, self.version, self.rules)).encode()).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Danger:
    """A class of hosts that is never offered as ALLOW."""

    name: str
    because: str
    hosts: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    wildcards_only: bool = False
    below: bool = True
    """Whether a wildcard over part of a listed suffix is as dangerous as one over the whole."""


def expand(
    name: str,
    client_config: Iterable[Index] = (),
    *,
    inspection: bool = False,
    pinned: Iterable[Pinned] = (),
) -> Expansion:
    """The host rules of a preset. Raises PolicyError for an unknown name.

    ``client_config`` holds what ``clients.read_indexes`` found; only the indexes of the preset's own client count.
    ``inspection`` says whether the requests of this preset are inspected: then every host is limited by method and path;
    where not, hosts that also take uploads are ASK.
    """
    preset = find(name)
    hosts, notes = list(preset.hosts), []
    asks: list[PresetHost] = []
    if preset.client:
        indexes = [index for index in client_config if index.client == preset.client]
        learned = [pin for pin in pinned if pin.preset == name and pin.index in {index.host for index in indexes}]
        hosts, asks = _client_hosts(indexes, learned)
        if not indexes:
            notes.append(f"{preset.client} is not there, or names no index: the preset allows nothing")
        elif preset.client != "apt" and not learned:
            notes.append(f"the file hosts of {name} are not pinned: run `ringfence policy presets lock`")
    open_tier = Tier.ALLOW if inspection or preset.name_only else Tier.ASK
    because = preset.title
    if open_tier is Tier.ASK:
        because = f"{preset.title}; requests are not inspected here, and {preset.risk}"
    rules = [_rule(preset, host, open_tier, because, inspection=inspection) for host in hosts]
    asked = "a file host that is new since the index was pinned"
    rules += [_rule(preset, host, Tier.ASK, asked, inspection=inspection) for host in asks]
    if inspection:
        rules += _denials(preset, [*hosts, *asks])
    return Expansion(preset=name, version=preset.version, rules=tuple(rules), notes=tuple(notes))


def find(name: str) -> Preset:
    """A preset by name. Raises PolicyError that names the nearest one."""
    presets = catalogue()
    if name not in presets:
        near = difflib.get_close_matches(name, presets, n=1)
        raise PolicyError(
            "unknown-preset",
            f"there is no preset {name!r}",
            remedy=f"did you mean {near[0]!r}?" if near else "list them with: ringfence policy presets list",
        )
    return presets[name]


@cache
def catalogue() -> dict[str, Preset]:
    """Every preset by name, in the order of the files."""
    found: dict[str, Preset] = {}
    for file in FILES:
        for name, data in _load(file).items():
            found[name] = _preset(name, data)
    return found


@cache
def dangers() -> tuple[Danger, ...]:
    """The classes that are never offered as ALLOW."""
    return tuple(
        Danger(
            name=name,
            because=data["because"],
            hosts=tuple(data.get("hosts", ())),
            labels=tuple(data.get("labels", ())),
            wildcards_only=data.get("wildcards_only", False),
            below=data.get("below", True),
        )
        for name, data in _load("dangers").items()
    )


def danger_of(host: str) -> Danger | None:
    """The dangerous class that a rule's host glob opens, or ``None``.

    A wildcard is dangerous when it covers a listed name or suffix; a plain name when it is listed or lies below a
    listed suffix (but a plain name below a shared suffix, such as one bucket, is not).
    """
    wildcard = host.startswith("*")
    bare = host.lstrip("*.")
    for danger in dangers():
        for entry in danger.hosts:
            suffix = entry.removeprefix("*.")
            below = bare == suffix or bare.endswith("." + suffix)
            covers = wildcard and ((below and danger.below) or suffix.endswith("." + bare) or suffix == bare)
            plain = not wildcard and not danger.wildcards_only and (bare == entry or (entry != suffix and below))
            if covers or plain:
                return danger
        if not wildcard and bare.partition(".")[0] in danger.labels:
            return danger
    return None


def near_misses(host: str) -> tuple[str, ...]:
    """Catalogue hosts that a host looks like without being one: a typing error, or somebody hoping for one."""
    known = {entry.host for preset in catalogue().values() for entry in preset.hosts}
    return () if host in known else tuple(difflib.get_close_matches(host, known, n=3, cutoff=0.85))


def moved(host: str) -> tuple[tuple[str, str], ...]:
    """(preset, present name) for a host that a preset's host moved away from."""
    return tuple(
        (preset.name, entry.host)
        for preset in catalogue().values()
        for entry in preset.hosts
        if host in entry.moved_from
    )


def overdue(today: dt.date) -> tuple[str, ...]:
    """Presets whose review date has passed."""
    return tuple(name for name, preset in catalogue().items() if preset.review_by < today)


def presets_list() -> tuple[Preset, ...]:
    """The whole catalogue, for listing."""
    return tuple(catalogue().values())


def _client_hosts(indexes: list[Index], learned: list[Pinned]) -> tuple[list[PresetHost], list[PresetHost]]:
    hosts = [
        PresetHost(
            host=index.host,
            without=f"the index that {index.client} is configured for ({index.source})",
            ports=(index.port,),
        )
        for index in indexes
    ]
    known = {host.host for host in hosts}
    asks = []
    for pin in learned:
        for name in pin.hosts:
            if name not in known:
                known.add(name)
                hosts.append(PresetHost(host=name, without=f"files of {pin.index}, pinned {pin.date}"))
        asks += [PresetHost(host=name, without=f"files of {pin.index}, new") for name in pin.new if name not in known]
    return hosts, asks


def _rule(preset: Preset, host: PresetHost, tier: Tier, because: str, *, inspection: bool) -> HostRule:
    return HostRule(
        preset=preset.name,
        tier=tier,
        host=host.host,
        ports=host.ports,
        methods=host.methods if inspection else (),
        paths=host.paths if inspection and host.paths != ("/**",) else (),
        because=because,
    )


def _denials(preset: Preset, hosts: list[PresetHost]) -> list[HostRule]:
    names = dict.fromkeys((host.host, host.ports) for host in hosts)
    return [
        HostRule(
            preset=preset.name,
            tier=Tier.DENY,
            host=name,
            ports=ports,
            methods=(method,),
            paths=(path,),
            because=f"{preset.name} is read-only",
        )
        for name, ports in names
        for method, path in preset.deny
    ]


def _load(file: str) -> dict[str, Any]:
    text = importlib.resources.files(__package__).joinpath(f"{file}.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def _preset(name: str, data: dict[str, Any]) -> Preset:
    return Preset(
        name=name,
        title=data["title"],
        version=data["version"],
        reviewed=dt.date.fromisoformat(data["reviewed"]),
        review_by=dt.date.fromisoformat(data["review_by"]),
        name_only=data["name_only"],
        risk=data["risk"],
        client=data.get("client", ""),
        hosts=tuple(_host(item) for item in data.get("hosts", ())),
        deny=tuple((item["method"], item["path"]) for item in data.get("deny", ())),
    )


def _host(item: dict[str, Any]) -> PresetHost:
    return PresetHost(
        host=item["host"],
        without=item["without"],
        ports=tuple(item.get("ports", (443,))),
        methods=tuple(item.get("methods", READ)),
        paths=tuple(item.get("paths", ("/**",))),
        moved_from=tuple(item.get("moved_from", ())),
        seen_in=item.get("seen_in", 0),
    )
