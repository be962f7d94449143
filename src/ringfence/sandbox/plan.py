"""From a call and the host's facts to a BoxPlan: what the box sees, what it may write, its limits. Pure.

The root is built from an allowlist, so what nobody named is simply not there. Mounts come in the order in which they
are made: the worktree and the home last, so that nothing is mounted below a place the box can rename.
"""

import posixpath as paths
from collections.abc import Mapping
from dataclasses import replace

from ringfence.model.box import BoxPlan, Layer, Level, Limits, Mount
from ringfence.model.errors import BoxError
from ringfence.model.ids import Bytes, CallId, Millis, MissionId
from ringfence.sandbox.environment import plan_environment
from ringfence.sandbox.facts import HostFacts, box_home, box_user
from ringfence.sandbox.gitconfig import LARGE_FILES

MIB = 1024 * 1024
CEILING = Limits(
    runtime=Millis(24 * 3600 * 1000),
    output=Bytes(64 * MIB),
    memory=Bytes(0),
    processes=4096,
    disk=Bytes(8 * 1024 * MIB),
    cpu=Millis(24 * 3600 * 1000),
    open_files=16_384,
    file_size=Bytes(0),
)
"""What a limit of 0 means; memory is three quarters of the machine's, a file may be as large as the disk limit."""
STANDARD_PATH = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")
DECOYS = (
    (".ssh/id_rsa", "-----BEGIN OPENSSH PRIVATE KEY-----\n{}\n-----END OPENSSH PRIVATE KEY-----\n"),
    (".ssh/id_ed25519", "-----BEGIN OPENSSH PRIVATE KEY-----\n{}\n-----END OPENSSH PRIVATE KEY-----\n"),
    (".aws/credentials", "[default]\naws_access_key_id = EXAMPLEDECOY\naws_secret_access_key = {}\n"),
    (".kube/config", "apiVersion: v1\nkind: Config\nusers:\n- name: decoy\n  user:\n    token: {}\n"),
    (".config/gcloud/application_default_credentials.json", '{{"type": "authorized_user", "refresh_token": "{}"}}\n'),
    (".git-credentials", "https://decoy:{}@git.example.org\n"),
    (".pypirc", "[pypi]\nusername = __token__\npassword = {}\n"),
    (".gnupg/private-keys-v1.d/decoy.key", "(private-key {})\n"),
    (".mozilla/firefox/default/logins.json", '{{"logins": [], "seed": "{}"}}\n'),
    (".mozilla/firefox/profiles.ini", "[Profile0]\nName={}\nIsRelative=1\nPath=default\n"),
    (".config/google-chrome/Default/Login Data", "{}\n"),
    (".config/chromium/Default/Login Data", "{}\n"),
    (".local/share/keyrings/login.keyring", "GnomeKeyring {}\n"),
    (".password-store/decoy.gpg", "{}\n"),
    (".ssh/id_ecdsa", "-----BEGIN OPENSSH PRIVATE KEY-----\n{}\n-----END OPENSSH PRIVATE KEY-----\n"),
    (".azure/msal_token_cache.json", '{{"AccessToken": {{}}, "seed": "{}"}}\n'),
    (".azure/accessTokens.json", "[]\n"),
    (".config/git/credentials", "https://decoy:{}@git.example.org\n"),
    (".gem/credentials", "---\n:rubygems_api_key: {}\n"),
    (".vault-token", "{}"),
    (".s3cfg", "[default]\naccess_key = EXAMPLEDECOY\nsecret_key = {}\n"),
    (".bitcoin/wallet.dat", "{}\n"),
    (".ethereum/keystore/UTC--decoy", '{{"crypto": "{}"}}\n'),
    (".config/solana/id.json", "[0]\n"),
    (".electrum/wallets/default_wallet", '{{"seed": "{}"}}\n'),
    (".config/google-chrome/Default/Cookies", "{}\n"),
    (".config/sops/age/keys.txt", "# {}\n"),
    (".config/doctl/config.yaml", "access-token: {}\n"),
    (".databrickscfg", "[DEFAULT]\ntoken = {}\n"),
    (".kaggle/kaggle.json", '{{"username": "decoy", "key": "{}"}}\n'),
)
"""Credentials that are worth nothing, where a thief looks first and ordinary tools do not look unasked."""
QUIET_DECOYS = (
    (".netrc", "# machine git.example.org login decoy password {}\n"),
    (".npmrc", "; //registry.example.org/:_authToken={}\n"),
    (".docker/config.json", "{{}}\n"),
    (".config/gh/hosts.yml", "# git.example.org: {{oauth_token: {}}}\n"),
    (".bash_history", "ls\n"),
    (".zsh_history", "ls\n"),
    (".python_history", ""),
    (".node_repl_history", ""),
    (".psql_history", ""),
    (".mysql_history", ""),
    (".pgpass", "# git.example.org:5432:decoy:decoy:{}\n"),
    (".my.cnf", "# password={}\n"),
    (".cargo/credentials.toml", "# token = {}\n"),
    (".terraform.d/credentials.tfrc.json", '{{"credentials": {{}}}}\n'),
    (".config/rclone/rclone.conf", "# pass = {}\n"),
    (".env", "# API_KEY={}\n"),
    (".m2/settings.xml", "<settings/>\n"),
    (".gradle/gradle.properties", "# token={}\n"),
    (".cache/huggingface/token", ""),
    (".config/composer/auth.json", "{{}}\n"),
    (".config/containers/auth.json", "{{}}\n"),
    (".config/github-copilot/apps.json", "{{}}\n"),
    (".local/share/opencode/auth.json", "{{}}\n"),
    (".gemini/oauth_creds.json", "{{}}\n"),
    (".codex/auth.json", "{{}}\n"),
    (".claude/.credentials.json", "{{}}\n"),
)
"""Files that ordinary programs open too, so opening one is recorded and no more; they change nothing for those programs."""
GIT_SETTINGS = (
    "[safe]\n\tdirectory = *\n[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n"
    "[core]\n\tcheckStat = minimal\n\ttrustctime = false\n" + LARGE_FILES
)
"""No collection may rewrite what the real repository keeps. Through an overlay, device, inode and owner of a file look
other than the index has them; comparing them would have git read every file again."""
SYSTEM_FOLDERS = ("/boot", "/dev", "/etc", "/home", "/proc", "/root", "/run", "/sys", "/tmp", "/usr", "/var")  # noqa: S108  names
VAR_LINKS = (("/var/tmp", "../tmp"), ("/var/run", "../run"))  # noqa: S108  the box's own


def plan_box(
    *,
    call_id: CallId,
    argv: tuple[str, ...],
    cwd: str,
    facts: HostFacts,
    layer: Layer | None,
    limits: Limits,
    mission: MissionId | None = None,
    caller_env: Mapping[str, str] | None = None,
    env_pass: tuple[str, ...] = (),
    env_set: Mapping[str, str] | None = None,
    run_id: str = "",
    git_sha: str = "",
    network: str = "none",
    endpoints: tuple[tuple[str, int], ...] = (),
    host_ports: tuple[int, ...] = (),
    inbound: bool = False,
    pty: bool = False,
    size: tuple[int, int] = (24, 80),
    modes: tuple[int, ...] = (),
    stops: bool = False,
    behind: bool = False,
    home_upper: str = "",
    read_only: tuple[str, ...] = (),
    identity: tuple[str, str] = ("agent", "agent@example.org"),
    decoy_seed: str = "",
    umask: int | None = None,
) -> BoxPlan:
    """The plan of one box. Raises BoxError for a call that no box can serve as asked.

    ``layer`` is the worktree (``None``: no worktree at all), ``read_only`` further paths the policy grants for reading,
    ``identity`` git's author in the box. ``caller_env`` is filtered here; secrets in it never pass.
    """
    if not argv or any("\0" in word for word in argv):
        raise BoxError("box-command", "an empty command, or one with a NUL byte, cannot run", where=str(argv)[:200])
    if layer is not None:
        _check_layer(layer, facts)
    limits = effective(limits, facts.memory)
    bins = tuple(dict.fromkeys(t.bin for t in facts.toolchains if t.bin))
    own = _own_environment(
        cwd=cwd, facts=facts, bins=bins, run_id=run_id or str(mission or call_id), git_sha=git_sha, layer=layer
    )
    return BoxPlan(
        call_id=call_id,
        mission=mission,
        argv=argv,
        cwd=cwd,
        env=plan_environment(caller_env or {}, passed=env_pass, settings=env_set, own=own),
        mounts=(
            *_system(facts, limits, layer.target if layer else "/"),
            *_granted(facts, read_only),
            *_home(box_home(facts.home), limits, home_upper, identity, decoy_seed),
        ),
        layer=layer,
        limits=limits,
        network=network,
        endpoints=endpoints,
        host_ports=host_ports,
        inbound=inbound,
        pty=pty,
        home=box_home(facts.home),
        home_upper=home_upper,
        required=Level.NAMESPACES,
        user=box_user(facts.uid, facts.gid),
        umask=facts.umask if umask is None else umask,
        size=size,
        modes=modes,
        stops=stops,
        behind=behind,
    )


def effective(limits: Limits, memory: Bytes) -> Limits:
    """Limits with every 0 replaced by its ceiling and none above it."""

    def capped(name: str, ceiling: int) -> int:
        asked = int(getattr(limits, name))
        return min(asked, ceiling) if asked else ceiling

    disk = capped("disk", CEILING.disk)
    return replace(
        limits,
        runtime=Millis(capped("runtime", CEILING.runtime)),
        output=Bytes(capped("output", CEILING.output)),
        memory=Bytes(capped("memory", memory * 3 // 4)),
        processes=capped("processes", CEILING.processes),
        disk=Bytes(disk),
        cpu=Millis(capped("cpu", CEILING.cpu)),
        open_files=capped("open_files", CEILING.open_files),
        file_size=Bytes(capped("file_size", disk)),
    )


def _check_layer(layer: Layer, facts: HostFacts) -> None:
    target = layer.target
    if not paths.isabs(target) or paths.normpath(target) != target or "\0" in target:
        raise BoxError("box-worktree", "the worktree's path must be absolute and without '..'", where=ascii(target))
    too_wide = target in {"/", facts.home} or facts.home.startswith(target.rstrip("/") + "/")
    system = target in {*SYSTEM_FOLDERS, *dict(facts.links), *facts.folders}
    if too_wide or system or target.startswith(("/proc/", "/dev/", "/sys/")):
        raise BoxError(
            "box-worktree",
            f"{target!a} holds more than one project: a box over it would fence nothing",
            where=ascii(target),
            remedy="run in the folder of one repository, below the home",
        )


def _own_environment(
    *, cwd: str, facts: HostFacts, bins: tuple[str, ...], run_id: str, git_sha: str, layer: Layer | None
) -> dict[str, str]:
    shown = (*bins, "/usr")
    tree = (layer.target,) if layer is not None else ()
    instead = {t.instead_of: t.bin for t in facts.toolchains if t.instead_of}
    wanted = [instead.get(p, p) for p in facts.path.split(":")]
    kept = [p for p in wanted if p in STANDARD_PATH or _below(p, shown) or (p and _below(p, tree))]
    own = {
        "PATH": ":".join(dict.fromkeys((*kept, *bins, *STANDARD_PATH[:4]))),
        "HOME": box_home(facts.home),
        "USER": "agent",
        "LOGNAME": "agent",
        "SHELL": "/bin/bash",
        "PWD": cwd,
        "TMPDIR": "/tmp",  # noqa: S108  the box's own
        "AGENT_ENV_CLASS": "sandbox",
        "AGENT_RUN_ID": run_id,
        "AGENT_GIT_SHA": git_sha,
    }
    if facts.timezone:
        own["TZ"] = facts.timezone
    rustup = next((t.root for t in facts.toolchains if t.name == "rustup"), "")
    if rustup:
        own["RUSTUP_HOME"] = rustup
        own["CARGO_HOME"] = f"{box_home(facts.home)}/.cargo"
    return own


def _below(path: str, roots: tuple[str, ...]) -> bool:
    return any(path == root or path.startswith(root.rstrip("/") + "/") for root in roots)


def _system(facts: HostFacts, limits: Limits, tree: str) -> tuple[Mount, ...]:
    room = Bytes(min(limits.disk, max(facts.memory // 2, 64 * MIB)))
    links = (*facts.links, *(link for link in VAR_LINKS if not _below(tree, (link[0],))))
    return (
        Mount(kind="ro", target="/usr", source="/usr"),
        *(Mount(kind="ro", target=folder, source=folder) for folder in facts.folders),
        Mount(kind="ro", target="/etc", source=facts.etc),
        *(Mount(kind="link", target=target, source=source) for target, source in links),
        Mount(kind="proc", target="/proc"),
        Mount(kind="dir", target="/dev"),
        Mount(kind="tmpfs", target="/tmp", mode=0o1777, size=room),  # noqa: S108  the box's own
        Mount(kind="tmpfs", target="/dev/shm", mode=0o1777, size=room),  # noqa: S108  the box's own
        Mount(kind="mqueue", target="/dev/mqueue"),
        Mount(kind="tmpfs", target="/run", mode=0o755, size=Bytes(64 * MIB)),
    )


def _granted(facts: HostFacts, read_only: tuple[str, ...]) -> tuple[Mount, ...]:
    roots: list[str] = []
    for root in sorted({t.root for t in facts.toolchains} | set(read_only)):
        if not _below(root, (*roots, "/usr")):
            roots.append(root)
    return tuple(Mount(kind="granted", target=root, source=root) for root in roots)


def _home(home: str, limits: Limits, upper: str, identity: tuple[str, str], seed: str) -> tuple[Mount, ...]:
    name, email = (part.replace("\n", " ").replace('"', "'") for part in identity)
    git = f'[user]\n\tname = "{name}"\n\temail = "{email}"\n{GIT_SETTINGS}'
    folder = (
        Mount(kind="rw", target=home, source=upper, mode=0o700)
        if upper
        else Mount(kind="tmpfs", target=home, mode=0o700, size=limits.disk)
    )
    decoys = (
        Mount(kind="decoy", target=f"{home}/{path}", content=text.format(seed or "decoy").encode(), mode=0o600)
        for path, text in DECOYS
    )
    watched = (
        Mount(kind="watched", target=f"{home}/{path}", content=text.format(seed or "decoy").encode(), mode=0o600)
        for path, text in QUIET_DECOYS
    )
    own = Mount(kind="file", target=f"{home}/.gitconfig", content=git.encode(), mode=0o644)
    return (folder, own, *decoys, *watched)
