"""The files that ``promote init`` writes: a policy with caps and protected paths, owners, and an example of trust. Pure."""

import json

from ringfence.promotion.strict import Value


def starter_policy(services: list[str], artifact: str, artifact_path: str) -> str:
    """A strict policy: nothing that drops, grants or rotates, twenty files, two services, one region, a flag that is read."""
    policy: dict[str, Value] = {
        "version": 1,
        "evidence_file": "promotion.json",
        "artifact": {"name": artifact, "path": artifact_path, "reproducible": True},
        "services": {name.rsplit("/", 1)[-1]: [f"{name}/**"] for name in services},
        "limits": {
            "paths": 20,
            "services": 2,
            "added_bytes": 65_536,
            "iam_actions_added": 0,
            "regions": 1,
            "namespaces": 1,
            "clusters": 0,
            "schema_drops": 0,
            "authz_changes": 0,
            "secret_rotations": 0,
            "submodules": 0,
        },
        "allowed": {"regions": [], "namespaces": [], "clusters": []},
        "protected_paths": [
            ".github/**",
            ".gitlab-ci.yml",
            ".gitattributes",
            ".gitmodules",
            "CODEOWNERS",
            "promotion/**",
        ],
        "kinds": {
            "iam": ["infra/iam/**"],
            "manifests": ["infra/k8s/**", "deploy/**"],
            "sql": ["db/migrations/**", "migrations/**"],
            "authz": ["infra/authz/**"],
            "secret_rotation": ["infra/secrets/**"],
        },
        "flags": "flags/flags.json",
        "owners": "promotion/owners.json",
        "rollback_commands": ["git revert --no-edit -m 1 {merge}"],
        "egress": {"allowlist_required": True, "registry_hosts": []},
        "trusted_run": {"required": ["unit", "secret-scan"]},
        "flag_rules": {"must_be_read": True, "may_exist": False},
    }
    return json.dumps(policy, indent=2) + "\n"


def starter_owners() -> str:
    """An owners file that names nobody yet: until somebody is named, every change is refused."""
    return json.dumps({"humans": {}, "not_humans": []}, indent=2) + "\n"
