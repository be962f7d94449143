"""Finds the policy that is in force for a folder: the repository's file above it, the other scopes, and its trust."""

import os

from ringfence.model.errors import PolicyError
from ringfence.policy.load import FILE_NAME, load_organisation
from ringfence.policy.policy import NetworkPresets, Policy
from ringfence.policy.trust import TrustStore


def find_policy(start: str) -> str:
    """The path of the nearest policy file at or above a folder. Raises PolicyError (``policy-missing``)."""
    current = os.path.realpath(start)
    while True:
        candidate = os.path.join(current, FILE_NAME)
        if os.path.lexists(candidate):
            return candidate
        if current == "/" or os.path.lexists(os.path.join(current, ".git")):
            raise PolicyError(
                "policy-missing",
                f"there is no {FILE_NAME} in {start} or above",
                where=start,
                remedy="run `ringfence init` in the repository",
            )
        current = os.path.dirname(current)


def organisation_in_force(path: str, *, network_presets: NetworkPresets | None = None) -> Policy | None:
    """The organisation's policy alone; None where there is no file. Raises PolicyError where it cannot be used."""
    found = load_organisation(path, network_presets=network_presets)
    if found is None:
        return None
    root, home, effective = found
    return Policy(effective, root=root, home=home)


def policy_in_force(
    start: str,
    *,
    organisation: str | None,
    user: str | None,
    trust: str,
    mission: str | None = None,
    network_presets: NetworkPresets | None = None,
) -> Policy:
    """The policy for a folder with every scope, the repository's as trusted as its record in folder ``trust`` says."""
    path = find_policy(start)
    policy = Policy.load(
        path,
        trusted=False,
        organisation=organisation,
        user=user,
        mission=mission,
        network_presets=network_presets,
    )
    if TrustStore(trust).is_trusted(policy.root, policy.trust_digest):
        return policy.with_trust(trusted=True)
    return policy
