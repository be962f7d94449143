"""A policy's own secret patterns keep what they find out of the ledger, in every file of it."""

import pytest

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
