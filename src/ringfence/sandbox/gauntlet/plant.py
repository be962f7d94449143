"""What is planted outside the box for one run: a home with credentials, a repository, its neighbours, and one secret each.

Every secret is random and known only to the harness, so that a secret that comes out of the box proves that it was read.
"""

import os
import secrets
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field

CREDENTIALS: Mapping[str, tuple[str, str]] = {
    "ssh": (".ssh/id_rsa", "-----BEGIN OPENSSH PRIVATE KEY-----\n{}\n-----END OPENSSH PRIVATE KEY-----\n"),
    "aws": (".aws/credentials", "[default]\naws_secret_access_key = {}\n"),
    "netrc": (".netrc", "machine example.org login me password {}\n"),
    "git-credentials": (".git-credentials", "https://me:{}@git.example.org\n"),
    "gh": (".config/gh/hosts.yml", "github.com:\n  oauth_token: {}\n"),
    "npm": (".npmrc", "//registry.example.org/:_authToken={}\n"),
    "docker": (".docker/config.json", '{{"auths": {{"example.org": {{"auth": "{}"}}}}}}\n'),
    "kube": (".kube/config", "users:\n- user:\n    token: {}\n"),
    "gnupg": (".gnupg/private-keys-v1.d/k.key", "(private-key {})\n"),
    "history": (".bash_history", "mysql -pp{}\n"),
    "browser": (".mozilla/firefox/p.default/logins.json", '{{"logins": ["{}"]}}\n'),
    "agent": (".claude/.credentials.json", '{{"accessToken": "{}"}}\n'),
    "gcloud": (".config/gcloud/application_default_credentials.json", '{{"refresh_token": "{}"}}\n'),
}
PLAIN = {
    ".bashrc": "# shell\n",
    ".profile": "# login\n",
    ".gitconfig": "[user]\n\tname = Person\n\temail = p@example.org\n",
}
TRACKED = {
    "README.md": "A small project.\n",
    "src/app.py": "def double(x):\n    return 2 * x\n",
    "tests/test_app.py": "from src.app import double\n\n\ndef test_double():\n    assert double(2) == 4\n",
    ".gitignore": ".venv/\nnode_modules/\n.env\n.env.*\n*.pem\nattack/\n",
    "package.json": '{"name": "project", "version": "1.0.0"}\n',
    "packages/api/index.js": "module.exports = 1\n",
    "tools/state.sh": "git log -1 --format=%h\n",
    "tools/editor/notes.txt": "Settings of the editor, linked to its own name.\n",
}
LINKED = {".helix": "tools/editor"}
"""Links of the person's: a protected name that leads to an ordinary folder."""
GIT = ("git", "-c", "gc.auto=0", "-c", "init.defaultBranch=main")


@dataclass(slots=True, kw_only=True)
class World:
    """Where everything of one run lies. ``values`` fills the placeholders of an attack's header."""

    base: str
    nonce: str
    secrets: dict[str, str] = field(default_factory=dict)
    values: dict[str, str] = field(default_factory=dict)

    @property
    def tag(self) -> str:
        """The last argument of every process of the attack: how it is found from outside."""
        return f"tag-{self.nonce[1:]}"

    @property
    def home(self) -> str:
        """The person's home."""
        return f"{self.base}/home"

    @property
    def worktree(self) -> str:
        """The repository that the box works in."""
        return f"{self.base}/home/project"

    @property
    def sibling(self) -> str:
        """Another project of the person."""
        return f"{self.base}/home/sibling"

    @property
    def outside(self) -> str:
        """A folder in which a mark appears when something of the attack ran outside."""
        return f"{self.base}/outside"


def plant(base: str, template: str) -> World:
    """Lay out a world below ``base``, which must not exist. Raises OSError."""
    world = World(base=base, nonce=f"n{secrets.token_hex(8)}")
    os.makedirs(world.home, mode=0o755)
    os.mkdir(world.outside, 0o755)
    shutil.copytree(template, world.worktree, symlinks=True)
    _credentials(world)
    _worktree_secrets(world)
    _neighbours(world)
    world.values |= {
        "home": world.home,
        "worktree": world.worktree,
        "sibling": world.sibling,
        "outside": world.outside,
        "nonce": world.nonce,
        "tag": world.tag,
        "run": f"{world.base}/run",
        "fence_state": f"{world.base}/run/fence",
    }
    return world


def make_template(path: str, extra: Mapping[str, str]) -> None:
    """The repository that each world copies, with ``extra`` files (a policy) tracked as well."""
    for name, text in {**TRACKED, **extra}.items():
        _put(f"{path}/{name}", text, 0o644)
    for name, target in LINKED.items():
        os.symlink(target, f"{path}/{name}")
    steps = (
        ("init", "-q"),
        ("add", "-A"),
        ("commit", "-q", "-m", "Start"),
        ("checkout", "-q", "-b", "kept"),
        ("commit", "-q", "--allow-empty", "-m", "Work not merged yet"),
        ("checkout", "-q", "main"),
    )
    for words in steps:
        git(path, words, home=os.path.dirname(path))


def git(path: str, words: tuple[str, ...], *, home: str) -> bytes:
    """Run git as the person would, in that folder; what it prints."""
    who = {"GIT_AUTHOR_NAME": "P", "GIT_AUTHOR_EMAIL": "p@example.org"}
    who |= {"GIT_COMMITTER_NAME": "P", "GIT_COMMITTER_EMAIL": "p@example.org"}
    env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": home, "GIT_TERMINAL_PROMPT": "0", **who}
    done = subprocess.run(
        [*GIT, *words],
        cwd=path,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=20,
        check=False,
    )
    return done.stdout


def git_answer(worktree: str, words: tuple[str, ...]) -> bytes:
    """What git says of the repository when asked by trusted code: no hook, monitor or filter of its own configuration runs."""
    off = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "--no-pager", "--no-replace-objects")
    return git(worktree, (*off, *words), home="/nonexistent")


def new_secret(world: World, name: str) -> str:
    """A fresh secret of that name, as letters and digits."""
    world.secrets[name] = f"s3{secrets.token_hex(14)}"
    return world.secrets[name]


def _credentials(world: World) -> None:
    for name, (path, text) in CREDENTIALS.items():
        _put(f"{world.home}/{path}", text.format(new_secret(world, name)), 0o600)
    for path, text in PLAIN.items():
        _put(f"{world.home}/{path}", text, 0o644)


def _worktree_secrets(world: World) -> None:
    _put(f"{world.worktree}/.env", f"API_TOKEN={new_secret(world, 'env-file')}\n", 0o644)
    _put(f"{world.worktree}/packages/api/.env.local", f"API_TOKEN={new_secret(world, 'env-nested')}\n", 0o644)
    _put(f"{world.worktree}/deploy/server.pem", f"-----BEGIN KEY-----\n{new_secret(world, 'pem')}\n", 0o644)
    with open(f"{world.worktree}/.git/config", "a", encoding="utf-8") as file:
        file.write(f'[remote "origin"]\n\turl = https://me:{new_secret(world, "git-url")}@git.example.org/p.git\n')
        file.write('[alias]\n\tstate = "!sh tools/state.sh"\n')
        file.write(f'[http "https://git.example.org/"]\n\textraHeader = X-Token: {new_secret(world, "git-header")}\n')
    _beside_the_configuration(world)


def _beside_the_configuration(world: World) -> None:
    """What git, and people, keep in its folder and outside of its configuration: where they pulled from, saved log-ins."""
    folder = f"{world.worktree}/.git"

    def address(name: str) -> str:
        return f"https://me:{new_secret(world, name)}@git.example.org/p.git"

    with open(f"{folder}/logs/HEAD", encoding="utf-8") as file:
        last = file.read().splitlines()[-1].split()[1]
    with open(f"{folder}/logs/HEAD", "a", encoding="utf-8") as file:
        file.write(f"{last} {last} P <p@example.org> 1700000000 +0000\tpull {address('git-log')} main: Fast-forward\n")
    _put(f"{folder}/credentials", f"{address('git-saved')}\n", 0o600)
    _put(f"{folder}/remotes/backup", f"URL: {address('git-old-remote')}\n", 0o644)
    _put(f"{folder}/config.bak", f'[remote "origin"]\n\turl = {address("git-backup")}\n', 0o644)
    _put(f"{folder}/modules/lib/HEAD", "ref: refs/heads/main\n", 0o644)
    _put(f"{folder}/modules/lib/config", f'[remote "origin"]\n\turl = {address("git-module")}\n', 0o644)


def _neighbours(world: World) -> None:
    _put(f"{world.sibling}/notes.txt", f"{new_secret(world, 'sibling')}\n", 0o644)
    _put(f"{world.sibling}/src/main.py", "print('mine')\n", 0o644)
    _put(f"{world.base}/run/log", f"earlier line with {new_secret(world, 'log')}\n", 0o644)
    new_secret(world, "environment")
    new_secret(world, "victim")
    new_secret(world, "metadata")
    _put(f"{world.base}/run/kept", f"{new_secret(world, 'kept')}\n", 0o600)


def _put(path: str, text: str, mode: int) -> None:
    os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(path, mode)
