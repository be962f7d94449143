"""A policy's own secret patterns keep what they find out of the ledger, in every file of it."""

import pytest

from ringfence.model.errors import LedgerError
from ringfence.supervisor import scrubbing as scrubbing_module
from ringfence.supervisor.scrubbing import Scrubbing

pytestmark = pytest.mark.needs_userns

SECRET = "corp-7f3a9c55e1d2"


def test_what_a_policys_pattern_finds_is_nowhere_in_the_ledger(cli):
    policy = cli.project / "sandbox_policy.yaml"
    policy.write_text(
        policy.read_text()
        + "patterns:\n  - {id: corp, on: [file.write.content], regex: 'corp-[0-9a-f]{12}', tier: deny}\n"
    )
    assert cli("policy", "trust", "--yes").returncode == 0
    cli.task(f"echo {SECRET} > leaked.txt\n")
    report = cli.json("run", "--json", "--", "sh", "task.sh")
    assert [item["path"] for item in report["gate"]["refused"]] == ["leaked.txt"], report["gate"]
    assert not (cli.project / "leaked.txt").exists()
    cli("run", "--", "cat", SECRET)
    cli("stop")
    found = [
        str(path)
        for path in (cli.root / "state" / "ledger").rglob("*")
        if path.is_file() and SECRET.encode() in path.read_bytes()
    ]
    assert found == []
    assert SECRET not in cli("ledger", "show").stdout


@pytest.mark.parametrize("words", [["gpg", "--passphrase"], ["zip", "-P"], ["sshpass", "-p"], ["frob", "--token"]])
def test_a_password_on_a_line_is_nowhere_in_the_ledger(cli, words):
    """Not among the paths that deciding looked for, and not in what a reason quotes."""
    secret = "Tr0ub4dorx9Q"
    assert cli("run", "--", *words, secret, "a.txt").returncode == 11
    assert cli("run", "-c", f"{' '.join(words)} {secret} a.txt; cat x").returncode == 11
    cli("stop")
    ledger = cli.root / "state" / "ledger"
    assert [str(path) for path in ledger.rglob("*") if path.is_file() and secret.encode() in path.read_bytes()] == []
    assert secret not in cli("ledger", "show", "--json").stdout


def test_a_credential_that_came_or_changed_while_the_supervisor_ran_is_kept_out_as_well(cli):
    assert cli("run", "--", "true").returncode == 0
    config = cli.root / "config"
    config.mkdir(mode=0o700)
    value = config / "value"
    settings = config / "network.yaml"
    settings.touch(0o600)
    settings.write_text(f"credentials: [{{name: a, host: a.example.org, source: {{file: {value}}}}}]\n")
    value.touch(0o600)
    for secret in ("plain words one", "plain words two"):
        value.write_text(f"{secret}\n")
        cli("run", "--", "cat", secret)
    cli("stop")
    segments = b"".join(path.read_bytes() for path in (cli.root / "state" / "ledger" / "segments").iterdir())
    assert segments.count(b'"kind":"tool.intent"') == 3
    assert b"plain words" not in segments


class Ledger:
    """Keeps the rules it is given."""

    def __init__(self, directory):
        (directory / "keys").mkdir()
        self.directory, self.secrets = str(directory), None

    def use_secrets(self, secrets):
        self.secrets = secrets


class Policy:
    secret_patterns = ("(",)


def test_a_value_that_only_its_use_reads_is_known_from_then_on(tmp_path):
    ledger = Ledger(tmp_path)
    scrubbing = Scrubbing(ledger, tuple)
    assert ledger.secrets is None
    scrubbing.learn_value("plain words one")
    scrubbing.learn_value("plain words two")
    assert "plain" not in ledger.secrets.clean("plain words one, plain words two")


def test_a_pattern_that_cannot_be_run_is_refused_each_time_and_spoils_nothing(tmp_path):
    ledger = Ledger(tmp_path)
    scrubbing = Scrubbing(ledger, tuple)
    for _ in range(2):
        with pytest.raises(LedgerError, match="not valid RE2"):
            scrubbing.learn(Policy())
    scrubbing.learn_value("plain words one")
    assert "plain" not in ledger.secrets.clean("plain words one")


def test_of_values_that_are_made_anew_for_ever_the_newest_are_known(tmp_path, monkeypatch):
    monkeypatch.setattr(scrubbing_module, "MOST_VALUES", 4)
    ledger = Ledger(tmp_path)
    scrubbing = Scrubbing(ledger, lambda: ("plain words of a file",))
    for number in range(6):
        scrubbing.learn_value(f"plain words {number:04}")
        if number == 1:
            assert "plain" not in ledger.secrets.clean("plain words 0000")
    for number in (2, 5):
        assert "plain" not in ledger.secrets.clean(f"plain words {number:04}")
    assert ledger.secrets.clean("plain words 0000") == "plain words 0000"
    scrubbing.look()
    assert "plain" not in ledger.secrets.clean("plain words of a file")
