"""The organisation's policy file and the ledger: what it says, and what happens when it cannot be believed."""

import os

import pytest

from ringfence.policy.store import PolicyStore
from ringfence.supervisor.organisation import OrganisationPolicy
from ringfence.supervisor.paths import user_paths

HEAD = "version: 1\nfail_closed: true\n"
KEEP = "audit: {retention: {operational_days: 120, compliance_days: 730}}\n"
as_root = pytest.mark.skipif(os.getuid() != 0, reason="only root can write an organisation's policy")


@pytest.fixture
def place(tmp_path):
    root = tmp_path / "ringfence"
    (root / "etc").mkdir(parents=True, mode=0o755)
    return user_paths(str(root)), root / "etc" / "policy.yaml"


def put(path, text, mode=0o644):
    path.write_text(text)
    path.chmod(mode)


def test_no_file_is_no_organisation(place):
    paths, _ = place
    found = OrganisationPolicy(paths, PolicyStore(paths.policies)).retention()
    assert (found.there, found.fault, found.stated.days) == (False, "", {})


@as_root
def test_the_file_is_read_again_when_it_changes_and_kept_by_digest(place):
    paths, file = place
    policy = OrganisationPolicy(paths, PolicyStore(paths.policies))
    put(file, HEAD + KEEP)
    found = policy.retention()
    assert found.stated.days == {"operational_days": 120, "compliance_days": 730}
    assert PolicyStore(paths.policies).get(found.policy)
    assert policy.retention() is found
    put(file, HEAD)
    assert policy.retention().stated.days == {}
    put(file, HEAD + "audit: {retention: {compliance_days: 30}}\n")
    assert "out-of-range" in policy.retention().fault
    put(file, HEAD + KEEP, 0o666)
    assert "policy-writable" in policy.retention().fault
    put(file, HEAD + KEEP)
    assert policy.retention().fault == ""
    file.unlink()
    assert not policy.retention().there


@pytest.mark.skipif(os.getuid() == 0, reason="root's file is the organisation's")
def test_a_file_that_is_not_roots_is_a_fault(place):
    paths, file = place
    put(file, HEAD + KEEP)
    found = OrganisationPolicy(paths, PolicyStore(paths.policies)).retention()
    assert found.there
    assert "policy-owner" in found.fault


@as_root
@pytest.mark.needs_userns
@pytest.mark.parametrize("running", [True, False], ids=["supervisor", "alone"])
def test_the_command_line_shows_keeps_longer_and_refuses_less(cli, running):
    (cli.root / "etc").mkdir(exist_ok=True)
    put(cli.root / "etc" / "policy.yaml", HEAD + KEEP + "commands: {allow: [{argv_prefix: ['true']}]}\n")
    assert cli("run", "--", "true").returncode == 0
    if not running:
        assert cli("stop").returncode == 0
    shown = cli.json("ledger", "retention", "--json")
    assert (shown["operational_days"], shown["compliance_days"]) == (120, 730)
    assert shown["source"]["compliance_days"] == "organisation"
    for given in (["--compliance-days", "365"], ["--operational-days", "0"]):
        low = cli("ledger", "retention", *given)
        assert low.returncode == 1
        assert "retention-below-organisation" in low.stderr
        assert "fix:" in low.stderr
    assert cli.json("ledger", "retention", "--compliance-days", "800", "--json")["compliance_days"] == 800
    assert cli("ledger", "purge", "--dry-run").returncode == 0
    put(cli.root / "etc" / "policy.yaml", "broken: [\n")
    refused = cli("ledger", "purge")
    assert refused.returncode == 1
    assert "retention-unknown" in refused.stderr
    assert "not-yaml" in refused.stderr
    assert cli.json("ledger", "retention", "--json")["compliance_days"] == 800
    assert cli("ledger", "verify").returncode == 14
