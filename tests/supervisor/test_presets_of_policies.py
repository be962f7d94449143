"""Network presets in a policy: unknown names fail, what a preset only asks about stays a question, inspection narrows."""

import pytest

from ringfence.model.call import ToolCall
from ringfence.model.errors import PolicyError
from ringfence.model.tier import Tier
from ringfence.policy.policy import Policy
from ringfence.supervisor.paths import user_paths
from ringfence.supervisor.presets import Presets


def policy(tmp_path, rule):
    text = f"version: 1\nfail_closed: true\nnetwork: {{allow: [{rule}]}}\n"
    return Policy.parse(text, root=str(tmp_path), network_presets=Presets(user_paths(str(tmp_path / "state"))))


def tier(found, host, port=443, **request):
    return found.decide(ToolCall.network(host, port, **request)).tier


def test_a_preset_that_is_safe_by_name_allows_its_hosts_and_no_other(tmp_path):
    found = policy(tmp_path, "{preset: crates}")
    assert tier(found, "static.crates.io") is Tier.ALLOW
    assert tier(found, "static.crates.io", 80) is Tier.DENY
    assert tier(found, "crates.io") is Tier.DENY


def test_a_preset_that_also_takes_uploads_is_a_question_without_inspection(tmp_path):
    assert tier(policy(tmp_path, "{preset: github-read}"), "github.com") is Tier.ASK


def test_with_inspection_it_reads_and_does_not_write(tmp_path):
    found = policy(tmp_path, "{preset: github-read, inspect: true}")
    assert found.inspects("github.com", 443)
    assert tier(found, "github.com", method="GET", path="/owner/name/info/refs") is Tier.ALLOW
    assert tier(found, "github.com", method="POST", path="/owner/name/issues") is Tier.DENY
    assert tier(found, "github.com") is not Tier.ALLOW


def test_an_unknown_preset_is_an_error(tmp_path):
    with pytest.raises(PolicyError, match="preset"):
        policy(tmp_path, "{preset: gihub-read}")
