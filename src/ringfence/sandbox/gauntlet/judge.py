"""Whether an attack passed, seen from outside: files on the host, servers' logs, the victim process, the terminal.

The attack's own word is never taken. Two kinds are judged by what came out of the box all the same, because it cannot be
made up there: a planted secret that only the harness knows, and (``proof``) the kernel's answer where nothing can be
seen outside.
"""

import base64
import hashlib
import os
import re
import socket
import stat
from collections.abc import Callable
from dataclasses import dataclass

from ringfence.sandbox.gauntlet.attack import Attack, fill
from ringfence.sandbox.gauntlet.plant import World, git_answer
from ringfence.sandbox.gauntlet.servers import Servers
from ringfence.sandbox.gauntlet.trial import Run
from ringfence.sandbox.gauntlet.victims import Standing

MIB = 1 << 20
Fingerprint = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """Everything that a judge may look at."""

    world: World
    servers: Servers
    run: Run
    before: Standing
    after: Standing
    prints: tuple[Fingerprint, Fingerprint]
    """Of the path in the attack's judge, before and after; empty where there is none."""
    other_terminal: bytes


def watched_path(attack: Attack, world: World) -> str:
    """The path on the host whose change would show that the attack passed; empty for other kinds."""
    if attack.judge[0] == "changed":
        return fill(attack.judge[1:2], world.values)[0]
    return ""


def fingerprint(path: str) -> Fingerprint:
    """Type, mode, owner, target and contents of what stands at the path, and below it; empty for nothing."""
    if not path:
        return ()
    lines: list[str] = []
    _describe(path, lines)
    if os.path.isdir(path) and not os.path.islink(path):
        for folder, directories, files in os.walk(path):
            directories.sort()
            for name in sorted([*directories, *files])[:500]:
                _describe(os.path.join(folder, name), lines)
    return tuple(lines)


def passed(attack: Attack, scene: Scene) -> bool:
    """Whether the attack's effect was seen. Raises ValueError for a kind that no judge knows."""
    kind, *arguments = fill(attack.judge, scene.world.values)
    if kind not in JUDGES:
        raise ValueError(f"{attack.name}: no judge called {kind!r}")
    return JUDGES[kind](scene, arguments)


def _loot(scene: Scene, names: list[str]) -> bool:
    return any(_came_out(scene.run.output, scene.world.secrets[name].encode()) for name in names)


def _came_out(output: bytes, secret: bytes) -> bool:
    """Plain, or as base64 of a text that begins with it, or as hexadecimal."""
    shapes = (secret, secret.hex().encode(), base64.b64encode(secret)[:32])
    return any(shape in output for shape in shapes)


def _digest(scene: Scene, arguments: list[str]) -> bool:
    """The digest of a file that only some may read came out; the contents themselves never do."""
    try:
        with open(arguments[0], "rb") as file:
            return hashlib.sha256(file.read()).hexdigest().encode() in scene.run.output
    except OSError:
        return False


def _changed(scene: Scene, _: list[str]) -> bool:
    return scene.prints[0] != scene.prints[1]


def _gone(scene: Scene, arguments: list[str]) -> bool:
    """A line that stood in the file before does not stand there any more."""
    path, name = arguments
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return scene.world.secrets[name] not in file.read()
    except OSError:
        return True


def _fired(scene: Scene, _: list[str]) -> bool:
    return bool(os.listdir(scene.world.outside))


def _hit(scene: Scene, arguments: list[str]) -> bool:
    server, word = arguments[0], arguments[1].encode() if len(arguments) > 1 else b""
    return scene.servers.reached(server, scene.run.started_at, word)


def _hurt(scene: Scene, _: list[str]) -> bool:
    return scene.before != scene.after


def _typed(scene: Scene, _: list[str]) -> bool:
    return scene.world.nonce.encode() in scene.run.typed


def _shown(scene: Scene, arguments: list[str]) -> bool:
    """The raw control sequence reached the person's terminal."""
    return re.search(arguments[0].encode(), scene.run.output) is not None


def _written(scene: Scene, _: list[str]) -> bool:
    return scene.world.nonce.encode() in scene.other_terminal


def _modes(scene: Scene, _: list[str]) -> bool:
    return scene.run.local_modes[0] != scene.run.local_modes[1]


def _outlived(scene: Scene, _: list[str]) -> bool:
    return scene.run.outlived


def _overran(scene: Scene, arguments: list[str]) -> bool:
    """A process of the attack was alive that many seconds after the start."""
    return scene.run.seen.last - scene.run.started_at >= float(arguments[0])


def _many(scene: Scene, arguments: list[str]) -> bool:
    return scene.run.seen.most >= int(arguments[0])


def _resident(scene: Scene, arguments: list[str]) -> bool:
    return scene.run.seen.resident >= int(arguments[0]) * MIB


def _shared(scene: Scene, arguments: list[str]) -> bool:
    return scene.run.seen.shared >= int(arguments[0]) * MIB


def _flooded(scene: Scene, arguments: list[str]) -> bool:
    return scene.run.count >= int(arguments[0]) * MIB


def _grew(_: Scene, arguments: list[str]) -> bool:
    """Files below the path hold that many bytes on the host (apparent size)."""
    total = 0
    for folder, _folders, files in os.walk(arguments[0]):
        total += sum(os.lstat(os.path.join(folder, name)).st_size for name in files)
    return total >= int(arguments[1]) * MIB


def _root(scene: Scene, _: list[str]) -> bool:
    return 0 in scene.run.seen.effective_uids


def _nested(scene: Scene, _: list[str]) -> bool:
    return len(scene.run.seen.namespaces) > 1


def _mounted(scene: Scene, _: list[str]) -> bool:
    return bool(scene.run.seen.mounts)


def _holds(scene: Scene, arguments: list[str]) -> bool:
    return any(word in name for word in arguments for name in scene.run.seen.descriptors)


def _special(_: Scene, arguments: list[str]) -> bool:
    """On the host the path is a device, pipe or socket, or carries a set-uid or set-gid bit."""
    try:
        mode = os.lstat(arguments[0]).st_mode
    except OSError:
        return False
    plain = stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode)
    return not plain or bool(mode & (stat.S_ISUID | stat.S_ISGID))


def _listed(_: Scene, arguments: list[str]) -> bool:
    """On the host one of the paths has an access list of its own."""
    return any(name.startswith("system.posix_acl") for path in arguments for name in _attributes(path))


def _entitled(_: Scene, arguments: list[str]) -> bool:
    """On the host the file gives who starts it rights."""
    return "security.capability" in _attributes(arguments[0])


def _attributes(path: str) -> list[str]:
    try:
        return os.listxattr(path, follow_symlinks=False)
    except OSError:
        return []


def _leads_out(scene: Scene, _: list[str]) -> bool:
    """A link in the worktree on the host leads out of it."""
    root = os.path.realpath(scene.world.worktree)
    for folder, folders, files in os.walk(root):
        for name in (*folders, *files):
            path = os.path.join(folder, name)
            if os.path.islink(path) and os.path.commonpath([root, os.path.realpath(path)]) != root:
                return True
    return False


def _history(scene: Scene, arguments: list[str]) -> bool:
    """A path that matches is in the trees of the branches on the host."""
    listed = git_answer(scene.world.worktree, ("log", "--all", "--name-only", "--format=", "-m"))
    return re.search(arguments[0].encode(), listed, re.MULTILINE) is not None


def _logged(scene: Scene, arguments: list[str]) -> bool:
    """What the branches and tags on the host say in their messages matches."""
    said = git_answer(scene.world.worktree, ("log", "--all", "--format=%an %B"))
    return re.search(arguments[0].encode(), said) is not None


def _broken(scene: Scene, _: list[str]) -> bool:
    """The repository on the host fails git's own check."""
    answer = git_answer(scene.world.worktree, ("fsck", "--full", "--strict"))
    return b"error" in answer or b"fatal" in answer or b"corrupt" in answer


def _unresolved(scene: Scene, arguments: list[str]) -> bool:
    """A name that stood in the repository does not lead to a commit any more."""
    answer = git_answer(scene.world.worktree, ("rev-parse", "--verify", "-q", arguments[0] + "^{commit}"))
    return len(answer.strip()) < 40


def _renamed(scene: Scene, _: list[str]) -> bool:
    return scene.world.nonce in socket.gethostname()


def _gains(scene: Scene, _: list[str]) -> bool:
    """The kernel would let the attack's programs gain rights by set-uid files."""
    return scene.run.seen.may_gain


def _answered(scene: Scene, _: list[str]) -> bool:
    return scene.run.seen.answered


def _proof(scene: Scene, arguments: list[str]) -> bool:
    return re.search(arguments[0].encode(), scene.run.output, re.MULTILINE) is not None


JUDGES: dict[str, Callable[[Scene, list[str]], bool]] = {
    "loot": _loot,
    "digest": _digest,
    "changed": _changed,
    "gone": _gone,
    "fired": _fired,
    "hit": _hit,
    "hurt": _hurt,
    "typed": _typed,
    "shown": _shown,
    "written": _written,
    "modes": _modes,
    "outlived": _outlived,
    "overran": _overran,
    "many": _many,
    "resident": _resident,
    "shared": _shared,
    "flooded": _flooded,
    "grew": _grew,
    "root": _root,
    "nested": _nested,
    "mounted": _mounted,
    "holds": _holds,
    "special": _special,
    "listed": _listed,
    "entitled": _entitled,
    "leads-out": _leads_out,
    "history": _history,
    "logged": _logged,
    "broken": _broken,
    "unresolved": _unresolved,
    "renamed": _renamed,
    "gains": _gains,
    "answered": _answered,
    "proof": _proof,
}


def _describe(path: str, lines: list[str]) -> None:
    try:
        info = os.lstat(path)
    except OSError:
        return
    line = f"{path} {info.st_mode:o} {info.st_uid} {info.st_nlink if stat.S_ISREG(info.st_mode) else 0}"
    if stat.S_ISLNK(info.st_mode):
        line += f" -> {os.readlink(path)}"
    elif stat.S_ISREG(info.st_mode):
        line += f" {info.st_size} {_contents(path)}"
    lines.append(line)


def _contents(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return hashlib.sha256(file.read(MIB)).hexdigest()
    except OSError as error:
        return str(error.errno)
