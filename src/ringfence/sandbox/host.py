"""What the planner must know of this host, and the one folder it prepares: the box's /etc. Reads, never judges."""

import contextlib
import hashlib
import os
import pwd
import shutil
import sys
import tempfile
from collections.abc import Iterable

from ringfence.model.ids import Bytes
from ringfence.sandbox.facts import HostFacts, Toolchain, box_home, box_user

ROOT_NAMES = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
ETC_FILES = (
    "ld.so.cache", "ld.so.conf", "localtime", "timezone", "os-release", "debian_version", "lsb-release", "mime.types",
    "services", "protocols", "host.conf", "gai.conf", "inputrc", "bash.bashrc", "profile", "locale.alias", "locale.conf",
    "magic", "shells", "networks", "rpc", "ethertypes", "login.defs", "papersize", "manpath.config",
)  # fmt: skip
ETC_FOLDERS = (
    "alternatives", "ssl/certs", "pki/tls/certs", "pki/ca-trust/extracted", "ca-certificates", "ld.so.conf.d", "fonts",
    "python3", "python3.11", "python3.12", "python3.13", "perl", "terminfo", "maven", "skel", "java", "pki/java", "crypto-policies",
    "groff", "vim",
)  # fmt: skip
JAVA_PREFIX = "java-"
ETC_SINGLE = ("ssl/openssl.cnf", "ssl/cert.pem")
LARGEST_FILE = 4 * 1024 * 1024
TOOLS = ("python3", "python", "node", "npm", "java", "javac", "go", "rustc", "cargo", "git", "gcc", "cc", "make", "rg", "uv", "pnpm", "yarn", "bun", "deno", "ruff", "pytest", "mvn", "gradle", "ruby", "php")  # fmt: skip
OTHER = "programs"
"""Of a folder with other programs than these."""
USERS = (
    "root:x:0:0:root:/root:/bin/sh\n"
    "agent:x:{uid}:{gid}:agent:{home}:/bin/bash\n"
    "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
)


def gather_host_facts(state_dir: str, *, path: str, trees: Iterable[str] = ()) -> HostFacts:
    """Facts of this host as seen by the calling user.

    ``path`` is the caller's PATH, ``trees`` the worktrees whose virtual environments may name an interpreter.
    Prepares ``state_dir/view-…/etc`` once per content. Raises OSError when that cannot be written.
    """
    uid, gid = os.geteuid(), os.getegid()
    home = pwd.getpwuid(uid).pw_dir
    return HostFacts(
        uid=uid,
        gid=gid,
        home=home,
        links=tuple((f"/{n}", os.readlink(f"/{n}")) for n in ROOT_NAMES if os.path.islink(f"/{n}")),
        folders=tuple(f"/{n}" for n in ROOT_NAMES if os.path.isdir(f"/{n}") and not os.path.islink(f"/{n}")),
        etc=prepare_etc(state_dir),
        toolchains=find_toolchains(path, home, trees),
        path=path,
        memory=_memory(),
        umask=_umask(),
        timezone=_timezone(),
    )


def prepare_etc(state_dir: str) -> str:
    """The folder that becomes the box's /etc: copies of an allowlist, and our own resolver, hosts and names."""
    os.makedirs(state_dir, mode=0o700, exist_ok=True)
    digest = hashlib.sha256(repr(list(_stamps())).encode()).hexdigest()[:16]
    wanted = os.path.join(state_dir, f"view-{digest}")
    if os.path.isdir(wanted):
        return wanted
    made = tempfile.mkdtemp(prefix="view.", dir=state_dir)
    try:
        _copy_allowed(made)
        _open_to_the_box(made)
        with contextlib.suppress(OSError):  # another supervisor of this user was faster
            os.rename(made, wanted)
    finally:
        shutil.rmtree(made, ignore_errors=True)  # on a full disk each try would leave one
    return wanted


def _open_to_the_box(made: str) -> None:
    """Modes that the box's user can read by, whatever the umask of this process: nothing in it is private."""
    os.chmod(made, 0o755)  # noqa: S103  the box's user reads its own /etc
    for folder, folders, files in os.walk(made):
        for name in folders:
            if not os.path.islink(f"{folder}/{name}"):
                os.chmod(f"{folder}/{name}", 0o755)  # noqa: S103  the same
        for name in files:
            path = f"{folder}/{name}"
            if not os.path.islink(path):
                os.chmod(path, 0o755 if os.stat(path).st_mode & 0o100 else 0o644)


def _stamps() -> Iterable[tuple[str, float]]:
    yield f"{sys.version} {os.geteuid()} {os.getegid()}", 1
    for name in (*ETC_FILES, *ETC_FOLDERS, *ETC_SINGLE):
        try:
            yield name, os.stat(f"/etc/{name}").st_mtime
        except OSError:
            continue


def _copy_allowed(target: str) -> None:
    folders = [*ETC_FOLDERS, *(name for name in os.listdir("/etc") if name.startswith(JAVA_PREFIX))]
    for name in folders:
        if os.path.isdir(f"/etc/{name}"):
            shutil.copytree(f"/etc/{name}", f"{target}/{name}", symlinks=True, ignore=_unreadable, dirs_exist_ok=True)
    for name in (*ETC_FILES, *ETC_SINGLE):
        _copy_file(f"/etc/{name}", f"{target}/{name}")
    os.symlink("/proc/self/mounts", f"{target}/mtab")
    uid, gid = box_user(os.geteuid(), os.getegid())
    own = {
        "passwd": USERS.format(uid=uid, gid=gid, home=box_home(pwd.getpwuid(os.geteuid()).pw_dir)),
        "group": f"root:x:0:\nagent:x:{gid}:\nnogroup:x:65534:\n",
        "resolv.conf": "nameserver 127.0.0.1\noptions timeout:2 attempts:2\n",
        "hosts": "127.0.0.1 localhost box\n::1 localhost ip6-localhost ip6-loopback\n",
        "hostname": "box\n",
        "nsswitch.conf": "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\nservices: files\nprotocols: files\n",
    }
    for name, text in own.items():
        with open(f"{target}/{name}", "w", encoding="ascii") as file:
            file.write(text)


def _unreadable(folder: str, names: list[str]) -> list[str]:
    """What is private to root, too large or not a plain file stays out."""
    return [name for name in names if not _plain(os.path.join(folder, name))]


def _plain(path: str) -> bool:
    if os.path.islink(path) or os.path.isdir(path):
        return os.path.islink(path) or os.access(path, os.R_OK | os.X_OK)
    if not os.path.isfile(path):
        return False
    info = os.stat(path)
    return bool(info.st_mode & 0o004) and info.st_size <= LARGEST_FILE


def _copy_file(source: str, target: str) -> None:
    os.makedirs(os.path.dirname(target), exist_ok=True)
    if os.path.islink(source):
        os.symlink(os.readlink(source), target)
    elif _plain(source):
        shutil.copyfile(source, target)


def find_toolchains(path: str, home: str, trees: Iterable[str]) -> tuple[Toolchain, ...]:
    """Toolchains and folders on PATH that lie outside /usr, and the interpreters behind the trees' virtual environments."""
    found: dict[str, Toolchain] = {}
    for name in TOOLS:
        program = shutil.which(name, path=path)
        if program is not None and not program.startswith("/usr/"):
            _add(found, name, program, home)
    for folder in path.split(":"):
        if os.path.isdir(folder) and os.path.realpath(folder).split("/")[1] not in {"usr", *ROOT_NAMES}:
            _add(found, OTHER, os.path.join(folder, OTHER), home)
    for tree in trees:
        for folder in (".venv", "venv"):
            base = _venv_home(os.path.join(tree, folder, "pyvenv.cfg"))
            if base:
                _add(found, "python", os.path.join(base, "python3"), home)
    return tuple(found[key] for key in sorted(found))


def _add(found: dict[str, Toolchain], name: str, program: str, home: str) -> None:
    asked = os.path.dirname(os.path.abspath(program))
    folder = _behind_shims(asked)
    program = os.path.join(folder, os.path.basename(program))
    for place in {folder, os.path.dirname(os.path.realpath(program))}:
        root = toolchain_root(place, home)
        if root is not None and not place.startswith("/usr/") and root not in found:
            found[root] = Toolchain(name=name, root=root, bin=place, instead_of=asked if folder != asked else "")
    if name in {"rustc", "cargo"} and os.path.isdir(f"{home}/.rustup/toolchains"):
        found[f"{home}/.rustup"] = Toolchain(name="rustup", root=f"{home}/.rustup", bin="")


def _behind_shims(folder: str) -> str:
    """Pyenv's shims are scripts that need all of pyenv; the version that its global file names is what they start."""
    manager = os.path.dirname(folder)
    if os.path.basename(folder) != "shims" or not os.path.isdir(f"{manager}/versions"):
        return folder
    try:
        with open(f"{manager}/version", encoding="utf-8") as file:
            version = file.read().split()[0]
    except (OSError, IndexError):
        return folder
    wanted = f"{manager}/versions/{version}/bin"
    return wanted if "/" not in version and os.path.isdir(wanted) else folder


def toolchain_root(bin_folder: str, home: str) -> str | None:
    """The folder to show for a program's folder: its prefix, or the folder alone where the prefix holds more.

    A prefix that is the home, above it, or a dotted folder right in it (``~/.cargo`` keeps tokens) is never shown.
    """
    prefix = os.path.dirname(bin_folder) if os.path.basename(bin_folder) == "bin" else bin_folder
    top = prefix == home or home.startswith(prefix.rstrip("/") + "/") or prefix in {"/", "/opt", "/usr"}
    dotted = os.path.dirname(prefix) == home and os.path.basename(prefix).startswith(".")
    shared = prefix in {f"{home}/.local", f"{home}/.config"}
    if top or dotted or shared:
        above = bin_folder == home or home.startswith(bin_folder.rstrip("/") + "/") or bin_folder == "/"
        return None if above else bin_folder
    return prefix


def _venv_home(configuration: str) -> str:
    try:
        with open(configuration, encoding="utf-8", errors="replace") as file:
            for line in file:
                key, found, value = line.partition("=")
                if found and key.strip() == "home" and os.path.isabs(value.strip()):
                    return value.strip()
    except OSError:
        return ""
    return ""


def _memory() -> Bytes:
    return Bytes(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))


def _umask() -> int:
    with open("/proc/self/status", encoding="ascii", errors="replace") as file:
        for line in file:
            if line.startswith("Umask:"):
                return int(line.split()[1], 8)
    return 0o022


def _timezone() -> str:
    return os.environ.get("TZ", "")
