"""Which package index pip, uv, npm and apt are set up for, from system and user configuration only.

What a project holds (.npmrc, uv.toml, pyproject, a virtual environment's pip.conf) and what variables say is never read:
the agent can write those. Where nothing is set, the client itself is asked for its built-in default, with an empty
environment and in ``/``.
"""

import configparser
import contextlib
import glob
import os
import pwd
import re
import subprocess
import tomllib
import urllib.parse
from collections.abc import Iterator
from dataclasses import dataclass

from ringfence.egress.rules import BadHostError, canonical_host

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
SECONDS = 30
SOURCE_LINE = re.compile(r"^deb(?:-src)?\s+(?:\[[^\]]*\]\s+)?(\S+)")
DEFAULT = re.compile(r"\(default:?\s+(https?://[^\s)]+)\)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Index:
    """One index that a client would ask. ``url`` carries no user and no password."""

    client: str
    """``pip``, ``npm`` or ``apt``."""
    url: str
    host: str
    port: int
    source: str
    """Where it is written, or ``built-in default``."""


def read_indexes(*, home: str | None = None, root: str = "/", path: str = PATH) -> tuple[Index, ...]:
    """Every index of every client that is there. ``home`` is the passwd entry's unless given; ``root`` is for tests."""
    home = home or pwd.getpwuid(os.getuid()).pw_dir
    found = [*_pip(home, root, path), *_npm(home, root, path), *_apt(root)]
    seen: dict[tuple[str, str, int], Index] = {}
    for index in found:
        seen.setdefault((index.client, index.host, index.port), index)
    return tuple(seen.values())


def _pip(home: str, root: str, path: str) -> Iterator[Index]:
    configured = [*_pip_files(home, root), *_uv_files(home, root)]
    yield from configured
    if not any(index.source.endswith(":index-url") or ":index" in index.source for index in configured):
        text = _ask(("pip", "install", "--help"), home, path) or _ask(("pip3", "install", "--help"), home, path)
        for url in DEFAULT.findall(text)[:1]:
            yield from _index("pip", url, "built-in default")


def _pip_files(home: str, root: str) -> Iterator[Index]:
    files = [
        os.path.join(root, "etc/xdg/pip/pip.conf"),
        os.path.join(root, "etc/pip.conf"),
        os.path.join(home, ".pip/pip.conf"),
        os.path.join(home, ".config/pip/pip.conf"),
    ]
    # As pip reads them, the later file wins for each key.
    values: dict[str, tuple[str, str]] = {}
    for file in files:
        parser = configparser.RawConfigParser()
        with contextlib.suppress(configparser.Error, UnicodeError):
            parser.read_string(_text(file))
        for section in ("global", "install"):
            for key in ("index-url", "extra-index-url"):
                if parser.has_option(section, key):
                    values[key] = parser.get(section, key), f"{file}:{key}"
    for text, source in values.values():
        for url in text.split():
            yield from _index("pip", url, source)


def _uv_files(home: str, root: str) -> Iterator[Index]:
    for file in (os.path.join(root, "etc/uv/uv.toml"), os.path.join(home, ".config/uv/uv.toml")):
        try:
            data = tomllib.loads(_text(file))
        except tomllib.TOMLDecodeError:
            continue
        urls = [data.get("index-url"), *data.get("extra-index-url", [])]
        urls += [item.get("url") for item in data.get("index", []) if isinstance(item, dict)]
        for url in urls:
            if isinstance(url, str):
                yield from _index("pip", url, f"{file}:index")


def _npm(home: str, root: str, path: str) -> Iterator[Index]:
    """User file, then global file, then what npm says is its own default; scoped registries as well."""
    registries: dict[str, tuple[str, str]] = {}
    for file in (os.path.join(root, "etc/npmrc"), os.path.join(root, "usr/etc/npmrc"), os.path.join(home, ".npmrc")):
        for line in _text(file).splitlines():
            key, equals, value = line.partition("=")
            key = key.strip()
            if equals and (key == "registry" or key.endswith(":registry")):
                registries[key] = value.strip().strip("\"'"), file
    if "registry" not in registries:
        text = _ask(("npm", "config", "get", "registry"), home, path).strip()
        if text:
            registries["registry"] = text.splitlines()[-1], "built-in default"
    for url, source in registries.values():
        yield from _index("npm", url, source)


def _apt(root: str) -> Iterator[Index]:
    folder = os.path.join(root, "etc/apt")
    for file in [f"{folder}/sources.list", *sorted(glob.glob(f"{folder}/sources.list.d/*.list"))]:
        for line in _text(file).splitlines():
            if (match := SOURCE_LINE.match(line.strip())) is not None:
                yield from _index("apt", match[1], file)
    for file in sorted(glob.glob(f"{folder}/sources.list.d/*.sources")):
        for block in re.split(r"\n\s*\n", _text(file)):
            fields = dict(re.findall(r"(?m)^([A-Za-z-]+):[ \t]*((?:.*)(?:\n[ \t]+.*)*)", block))
            if fields.get("Enabled", "yes").strip().lower() != "no":
                for url in fields.get("URIs", "").split():
                    yield from _index("apt", url, file)


def _index(client: str, url: str, source: str) -> Iterator[Index]:
    """The index a URL names, if it is one on the network that we can judge."""
    try:
        parts = urllib.parse.urlsplit(url)
        port = parts.port or {"https": 443, "http": 80}[parts.scheme]
        host = canonical_host(parts.hostname or "").text
    except (ValueError, KeyError, BadHostError):
        return
    bare = urllib.parse.urlunsplit((parts.scheme, f"{host}:{port}" if parts.port else host, parts.path, "", ""))
    yield Index(client=client, url=bare, host=host, port=port, source=source)


def _ask(argv: tuple[str, ...], home: str, path: str) -> str:
    """What a client prints, run with nothing of ours around it; empty where it is not there or fails."""
    program = next((p for d in path.split(":") if os.access(p := os.path.join(d, argv[0]), os.X_OK)), None)
    if program is None:
        return ""
    # npm keeps the logs of its last ten runs in the home: ours would push out the person's.
    env = {"HOME": home, "PATH": path, "COLUMNS": "4000", "npm_config_logs_max": "0"}
    try:
        done = subprocess.run(
            [program, *argv[1:]],
            env=env,
            cwd="/",
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout[:200_000].decode("utf-8", "replace") if done.returncode == 0 else ""


def _text(file: str) -> str:
    try:
        with open(file, encoding="utf-8", errors="replace") as handle:
            return handle.read(1_000_000)
    except OSError:
        return ""
