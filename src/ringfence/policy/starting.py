"""The policy and fixtures that ``ringfence init`` writes, after a look at what the repository holds."""

import json
import os

_PYTHON = ("pyproject.toml", "setup.py", "setup.cfg", "requirements.txt", "tox.ini", "Pipfile", "uv.lock")
_NODE = ("package.json", "pnpm-lock.yaml", "yarn.lock", "deno.json")


def detect(root: str) -> tuple[str, ...]:
    """The presets that fit a repository."""
    names = set(os.listdir(root))
    found = ["coding-agent", "git"]
    if names & set(_PYTHON) or any(name.endswith(".py") for name in names):
        found.append("python")
    if names & set(_NODE):
        found.append("node")
    return tuple(found)


def starting_policy(presets: tuple[str, ...]) -> str:
    """The text of a starting policy."""
    listed = ", ".join(presets)
    return f"""\
# What an agent may do in this repository. Every key: docs/policy.md. After a change: `ringfence check`,
# then `ringfence policy trust`, which shows what the policy would allow.
version: 1
fail_closed: true
extends: [{listed}]

working_tree:
  allowed_roots: ["."]

network: {{allow: false}}

process:
  max_runtime_ms: 600000
  max_output_bytes: 262144

commands:
  default: ask          # what no rule covers waits for a person; `deny` where nobody is there to answer
  allow: []
    # - id: own-tool
    #   argv_prefix: ["./scripts/build"]
    #   because: "the project's own build"
  ask: []
  deny: []
"""


def starting_fixtures(presets: tuple[str, ...]) -> str:
    """Fixtures that the starting policy passes: ordinary work, a path escape, a network case, an extra subcommand."""
    rows: list[dict[str, object]] = [
        {"command": "git status", "expect_allow": True},
        {"command": "git diff | head -n 40", "expect_allow": True},
        {"command": "git push origin main", "expect": "ask", "because": "it leaves the box"},
        {"command": "git push --force origin main", "expect": "deny", "because": "it rewrites what others have"},
        {"command": "ls ../secrets", "expect_allow": False, "because": "outside the repository"},
        {"command": "cat ~/.ssh/config", "expect": "deny", "because": "credentials are hidden"},
        {"command": "curl https://example.com", "expect_allow": False, "because": "the network is off"},
        {"command": "sudo ls", "expect": "deny"},
        {"kind": "file", "action": "write", "path": ".git/hooks/pre-commit", "expect": "deny"},
        {"kind": "file", "action": "write", "path": "notes.txt", "expect": "allow"},
        {"kind": "network", "host": "example.com", "expect": "deny"},
        {"kind": "tool", "server": "anything", "tool": "do", "expect": "not_allow"},
    ]
    if "python" in presets:
        rows.append({"command": "python -m pytest -q", "expect_allow": True})
    if "node" in presets:
        rows.append({"command": "npm test", "expect_allow": True})
    return "[\n" + ",\n".join("  " + json.dumps(row) for row in rows) + "\n]\n"
