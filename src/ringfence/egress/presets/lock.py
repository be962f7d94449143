"""File hosts of package indexes, learned from the indexes' own pages and pinned with a date.

An index names its files by URL, often on another host. ``presets_lock`` reads a few pages and writes down which hosts those
are; a host that appears later is not allowed by itself but listed as new, which is ASK.
"""

import contextlib
import json
import os
import re
import tempfile
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterable

import msgspec

from ringfence.egress.presets.clients import Index
from ringfence.egress.rules import BadHostError, canonical_host
from ringfence.model.errors import PolicyError

PAGES = {"pip": ("pip", "setuptools", "wheel"), "npm": ("npm", "typescript", "semver")}
PRESET = {"pip": "pypi", "npm": "npm"}
MAX_PAGE = 16 * 1024 * 1024
LINK = re.compile(r"""<a\s[^>]*?href\s*=\s*["']([^"']+)["']""", re.IGNORECASE)
ACCEPT = "application/vnd.pypi.simple.v1+json, text/html;q=0.5, application/json;q=0.9"

Fetch = Callable[[str], tuple[str, bytes]]
"""Gets a URL; returns the URL it ended at and the body. Raises OSError."""


class Pinned(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What was learned of one index. ``new`` appeared after ``hosts`` were pinned and is ASK until pinned as well."""

    preset: str
    index: str
    hosts: tuple[str, ...]
    new: tuple[str, ...] = ()
    date: str


class Lock(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The file that keeps them."""

    version: int = 1
    pinned: tuple[Pinned, ...] = ()


def presets_lock(
    indexes: Iterable[Index],
    *,
    today: str,
    before: Lock | None = None,
    accept_new: bool = False,
    fetch: Fetch | None = None,
    pages: dict[str, tuple[str, ...]] | None = None,
) -> tuple[Lock, tuple[str, ...]]:
    """The lock for these indexes, and what a person should be told.

    With ``before``, hosts that were not there go to ``new`` unless ``accept_new``. An index that cannot be read keeps what
    was pinned of it. ``today`` is an ISO date; ``pages`` names the packages to look at, by client.
    """
    old = {(pin.preset, pin.index): pin for pin in (before or Lock()).pinned}
    told: list[str] = []
    found = dict(old)
    for index in indexes:
        preset = PRESET.get(index.client)
        if preset is None:
            continue
        names = (pages or PAGES).get(index.client, ())
        hosts = _learn(index, names, fetch or fetch_url, told)
        key = (preset, index.host)
        if not hosts:
            told.append(f"{index.host}: no page of it could be read; nothing was changed")
            continue
        kept = old.get(key)
        if kept is None or accept_new:
            found[key] = Pinned(preset=preset, index=index.host, hosts=tuple(sorted(hosts)), date=today)
            continue
        new = sorted(hosts - set(kept.hosts))
        told += [f"{index.host}: new file host {name}, ASK until pinned with --accept-new" for name in new]
        found[key] = Pinned(preset=preset, index=index.host, hosts=kept.hosts, new=tuple(new), date=kept.date)
    return Lock(pinned=tuple(found[key] for key in sorted(found))), tuple(told)


def read_lock(path: str) -> Lock:
    """The lock file, empty where there is none. Raises PolicyError for one that cannot be read."""
    try:
        with open(path, "rb") as file:
            return msgspec.json.decode(file.read(1_000_000), type=Lock)
    except FileNotFoundError:
        return Lock()
    except (OSError, msgspec.MsgspecError) as error:
        raise PolicyError(
            "preset-lock-unreadable",
            f"the pinned hosts of presets cannot be read: {error}",
            where=path,
            remedy="remove the file and run: ringfence policy presets lock",
        ) from error


def write_lock(path: str, lock: Lock) -> None:
    """Replace the lock file in one step, mode 0600."""
    text = msgspec.json.format(msgspec.json.encode(lock), indent=2)
    handle, temporary = tempfile.mkstemp(dir=os.path.dirname(path), prefix=".presets-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(text + b"\n")
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def links_of(body: bytes, base: str) -> tuple[str, ...]:
    """URLs of files in one index page: HTML links, the JSON form of the simple index, or a registry's document."""
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        text = body.decode("utf-8", "replace")
        return tuple(urllib.parse.urljoin(base, link) for link in LINK.findall(text))
    found: list[str] = []
    if isinstance(data, dict):
        files = data.get("files")
        if isinstance(files, list):
            found += [item["url"] for item in files if isinstance(item, dict) and isinstance(item.get("url"), str)]
        versions = data.get("versions")
        if isinstance(versions, dict):
            for item in versions.values():
                dist = item.get("dist") if isinstance(item, dict) else None
                if isinstance(dist, dict) and isinstance(dist.get("tarball"), str):
                    found.append(dist["tarball"])
    return tuple(urllib.parse.urljoin(base, link) for link in found)


def fetch_url(url: str) -> tuple[str, bytes]:
    """Get a page over the host's own network: no proxy of the environment, 20 seconds, 16 MiB."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    request = urllib.request.Request(url, headers={"Accept": ACCEPT, "User-Agent": "ringfence"})  # noqa: S310 - scheme checked by the caller
    with opener.open(request, timeout=20) as answer:
        return answer.geturl(), answer.read(MAX_PAGE)


def _learn(index: Index, names: Iterable[str], fetch: Fetch, told: list[str]) -> set[str]:
    hosts: set[str] = set()
    for name in names:
        url = f"{index.url.rstrip('/')}/{name}" + ("/" if index.client == "pip" else "")
        try:
            final, body = fetch(url)
        except (OSError, ValueError) as error:
            told.append(f"{index.host}: {name}: {type(error).__name__}")
            continue
        for link in (final, *links_of(body, final)):
            parts = urllib.parse.urlsplit(link)
            if parts.scheme == "https":
                with contextlib.suppress(BadHostError, ValueError):
                    hosts.add(canonical_host(parts.hostname or "").text)
    return hosts
