"""Which of a caller's variables reach the box."""

import pytest

from ringfence.cli.run import PASSED_VARIABLES
from ringfence.sandbox.environment import PASSED


def test_the_client_sends_what_may_pass():
    assert PASSED_VARIABLES == PASSED | {"AGENT_ENV_CLASS"}


@pytest.mark.needs_userns
def test_the_list_and_what_the_users_policy_passes_reach_the_box_and_nothing_else(cli):
    (cli.root / "config").mkdir()
    (cli.root / "config" / "policy.yaml").write_text(
        "version: 1\nfail_closed: true\nprocess: {env: {pass: [STAGE, EDITOR, GH_TOKEN]}}\n"
        "commands:\n  default: deny\n  allow: [{argv_prefix: [sh]}]\n"
    )
    cli.task("env\n")
    given = {"CI": "yes", "STAGE": "two", "EDITOR": "ed", "PAGER": "cat", "GH_TOKEN": "x", "OTHER": "y", "LC_TIME": "C"}
    said = cli("run", "--", "sh", "task.sh", env=given)
    seen = dict(line.split("=", 1) for line in said.stdout.splitlines())
    assert said.returncode == 0, said.stderr
    assert {name: seen.get(name) for name in given} == {
        "CI": "yes", "STAGE": "two", "EDITOR": "ed", "PAGER": None, "GH_TOKEN": None, "OTHER": None, "LC_TIME": "C",
    }  # fmt: skip
