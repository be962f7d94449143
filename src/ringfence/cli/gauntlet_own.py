"""Our own box as a fence for the gauntlet: a supervisor of its own below the gauntlet's folder, a policy, the ledger."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass

from ringfence.ledger import scan
from ringfence.model.entry import Json
from ringfence.model.person import Person
from ringfence.policy.policy import Policy
from ringfence.policy.trust import TrustStore
from ringfence.sandbox.gauntlet.plant import World
from ringfence.supervisor.paths import make_private, user_paths

POLICY = """\
version: 1
fail_closed: true
working_tree:
  allowed_roots: ["."]
process:
  max_runtime_ms: 12000
  max_output_bytes: 1048576
  max_memory_bytes: 536870912
  max_processes: 128
  max_disk_bytes: 209715200
commands:
  allow:
    - argv_prefix: ["sh", "attack/go"]
files:
  read: {allow: ["**"], deny: ["**/.env", "**/.env.*", "**/*.pem"]}
  write: {allow: ["**"]}
  delete: {allow: ["**"]}
"""
"""Everything that a policy can allow is allowed, so that only what the fence itself refuses is measured."""
START = "import sys; sys.path[:] = {path!r}; from ringfence.cli.main import main; sys.exit(main(sys.argv[1:]))"
STARTED_BY_HARNESS = "attack/"
"""An exec of a program below this folder is the harness's own doing and proves no attempt."""
STOP_SECONDS = 30


@dataclass(slots=True)
class OwnBox:
    """``ringfence run`` with everything of ringfence kept below ``base``."""

    base: str
    name: str = "ringfence"

    @property
    def root(self) -> str:
        """Where this ringfence keeps its state, socket and configuration."""
        return f"{self.base}/ringfence"

    def files(self) -> dict[str, str]:
        """The policy that the repository carries."""
        return {"sandbox_policy.yaml": POLICY}

    def prepare(self, world: World) -> None:
        """Trust the repository's policy."""
        paths = user_paths(self.root)
        policy = Policy.load(f"{world.worktree}/sandbox_policy.yaml")
        person = Person(name="gauntlet", uid=os.getuid(), how="terminal")
        now = time.time_ns() // 1000
        TrustStore(make_private(f"{paths.state}/trust")).trust(policy.root, policy.trust_digest, person, now)
        world.values["fence_state"] = paths.state

    def command(self, world: World, argv: tuple[str, ...]) -> tuple[str, ...]:
        """``ringfence run`` in that repository."""
        del world
        return (*self._ringfence(), "run", "--", *argv)

    def mark(self) -> int:
        """The number of the ledger's next entry."""
        return 1 + max((entry.seq for entry in self._entries(0)), default=-1)

    def record(self, mark: int) -> str:
        """What the ledger holds since: results, observations, connections, gate; not the call itself, which is ours."""
        values = (entry.value for entry in self._entries(mark))
        return "\n".join(json.dumps(_told(value)) for value in values if value.get("kind") != "tool.intent")

    def close(self) -> None:
        """Stop the supervisor."""
        subprocess.run(
            [*self._ringfence(), "stop"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=STOP_SECONDS,
            check=False,
        )

    def _ringfence(self) -> tuple[str, ...]:
        return (sys.executable, "-c", START.format(path=sys.path), "--test-root", self.root)

    def _entries(self, start: int) -> list[scan.Stored]:
        folder = user_paths(self.root).ledger
        return list(scan.records(folder, start)) if os.path.isdir(f"{folder}/segments") else []


def _told(value: Mapping[str, Json]) -> dict[str, Json]:
    """What an entry tells of the box: without the controls' own words and without what the harness itself started."""
    body = value.get("body")
    kept = dict(body) if isinstance(body, dict) else {}
    for name in ("controls", "probes", "root", "task"):
        kept.pop(name, None)
    seen = kept.get("observations")
    if isinstance(seen, list):
        kept["observations"] = [item for item in seen if not _own_doing(item)]
    return {"kind": value.get("kind"), **kept}


def _own_doing(item: Json) -> bool:
    if not isinstance(item, dict) or item.get("kind") != "exec":
        return False
    return STARTED_BY_HARNESS in str(item.get("detail"))
