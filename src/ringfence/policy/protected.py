"""What ringfence protects and hides whatever a policy says. Pure data; part of the policy digest.

Protected: reads inside the tree stay possible, a write or removal never goes through silently. Each of these can run
code later, outside the fence, or changes what the fence allows. Hidden: credentials and the fence's own state.
"""

from ringfence.model.protected import PROTECTED_ASK, PROTECTED_DENY
from ringfence.model.tier import Tier

PROTECTED: tuple[tuple[str, Tier], ...] = (
    *((pattern, Tier.DENY) for pattern in PROTECTED_DENY),
    *((pattern, Tier.ASK) for pattern in PROTECTED_ASK),
)

HIDDEN: tuple[str, ...] = (
    "~/.ssh/**",
    "~/.gnupg/**",
    "~/.aws/**",
    "~/.azure/**",
    "~/.config/gcloud/**",
    "~/.config/gh/**",
    "~/.config/hub",
    "~/.config/glab-cli/**",
    "~/.kube/**",
    "~/.docker/**",
    "~/.oci/**",
    "~/.terraform.d/**",
    "~/.terraformrc",
    "~/.vault-token",
    "~/.netrc",
    "~/.git-credentials",
    "~/.config/git/credentials",
    "~/.npmrc",
    "~/.yarnrc",
    "~/.yarnrc.yml",
    "~/.pypirc",
    "~/.config/pip/**",
    "~/.pip/**",
    "~/.cargo/credentials*",
    "~/.gem/credentials",
    "~/.m2/settings.xml",
    "~/.gradle/gradle.properties",
    "~/.pgpass",
    "~/.my.cnf",
    "~/.mysql_history",
    "~/.psql_history",
    "~/.bash_history",
    "~/.zsh_history",
    "~/.python_history",
    "~/.node_repl_history",
    "~/.mozilla/**",
    "~/.config/google-chrome/**",
    "~/.config/chromium/**",
    "~/.config/BraveSoftware/**",
    "~/.config/microsoft-edge/**",
    "~/.thunderbird/**",
    "~/.password-store/**",
    "~/.local/share/keyrings/**",
    "~/.local/share/kwalletd/**",
    "~/.config/op/**",
    "~/.claude/.credentials.json",
    "~/.claude.json",
    "~/.codex/auth.json",
    "~/.gemini/oauth_creds.json",
    "~/.gemini/google_accounts.json",
    "~/.config/github-copilot/**",
    "~/.copilot/**",
    "~/.local/share/opencode/auth.json",
    "~/.config/cursor/**",
    "~/.cursor/**",
    "~/.config/ringfence/**",
    "~/.local/state/ringfence/**",
    "/etc/ringfence/**",
    "/etc/shadow",
    "/etc/gshadow",
    "/etc/sudoers",
    "/etc/sudoers.d/**",
    "/etc/ssh/*_key",
    "/proc/*/environ",
    "/proc/*/mem",
    "/proc/*/maps",
    "/proc/*/root/**",
    "/proc/*/cwd/**",
    "/proc/*/fd/**",
    "/proc/*/task/**",
    "/proc/kcore",
    "/proc/keys",
    "/run/docker.sock",
    "/var/run/docker.sock",
    "/run/containerd/**",
    "/run/podman/**",
    "/run/secrets/**",
    "/run/user/**",
    "/var/run/secrets/**",
)

FREE_TO_WRITE = frozenset({"/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/full"})
FREE_TO_READ = FREE_TO_WRITE | {"/dev/zero", "/dev/random", "/dev/urandom"}
"""Devices that hold nothing and keep nothing."""

OWN_COMMANDS = frozenset({"check", "why", "doctor", "--version", "--help"})
"""What an agent may ask of ``ringfence`` itself."""

EVALUATOR_VERSION = 3
"""Counted up whenever the same policy and facts could give another decision."""

_HARMLESS_ENV = frozenset({"example", "sample", "template", "dist", "defaults", "schema"})


def like_env(name: str) -> bool:
    """Whether a file of this name holds a program's secrets by custom, as ``.env``, ``.env.local``, ``.env.production``.

    The examples that projects publish (``.env.example``) do not.
    """
    folded = name.casefold()
    if folded == ".env":
        return True
    return folded.startswith(".env.") and folded.rpartition(".")[2] not in _HARMLESS_ENV
