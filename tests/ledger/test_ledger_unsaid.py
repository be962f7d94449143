"""A secret that was replaced in a call is not told by what deciding noted about the same call."""

import pytest

from ringfence.ledger.scrub import SecretScrubber

SECRET = "Tr0ub4dorx9Q"
CWD = "/home/dev/project"


@pytest.fixture
def scrubber() -> SecretScrubber:
    return SecretScrubber(b"k" * 32)


def intent(line, paths=(), *, programs=(), globs=(), reasons=()):
    return {
        "request": {"kind": "shell", "line": line},
        "cwd": CWD,
        "facts": {
            "cwd": CWD,
            "home": "/home/dev",
            "root": CWD,
            "paths": [{"asked": f"{CWD}/{path}", "kind": kind, "real": f"{CWD}/{real}"} for path, kind, real in paths],
            "programs": [{"name": name, "real": real} for name, real in programs],
            "globs": [{"asked": f"{CWD}/{asked}", "matches": list(matches)} for asked, matches in globs],
        },
        "decision": {"tier": "deny", "policy": "0" * 64, "reasons": [dict(reason) for reason in reasons]},
    }


@pytest.mark.parametrize(
    ("line", "name"),
    [
        (f"gpg --passphrase {SECRET} -d x", SECRET),
        (f"htpasswd -bc f user {SECRET}", SECRET),
        (f"sshpass -p {SECRET} ssh host", SECRET),
        (f"mongosh mongodb+srv://me:{SECRET}@h/db", f"mongodb+srv:/me:{SECRET}@h/db"),
        (f"aws configure set aws_secret_access_key {SECRET}//{'a' * 26}", f"{SECRET}/{'a' * 26}"),
        (f"frob --token={SECRET}/xyz12", f"{SECRET}/xyz12"),
    ],
)
def test_a_word_that_was_replaced_is_no_path_of_the_facts(scrubber, line, name):
    paths = [(name, "absent", name), ("x", "absent", "x")]
    found = scrubber.scrub(intent(f"{line}; cat x", paths, globs=[(name, ())]))
    assert SECRET not in repr(found)
    assert found["facts"]["paths"][1]["asked"] == f"{CWD}/x"
    assert found["facts"]["paths"][0]["asked"].startswith(f"{CWD}/")
    assert found["decision"]["tier"] == "deny"


def test_a_word_that_was_replaced_is_no_program(scrubber):
    found = scrubber.scrub(intent(f"frob --password {SECRET}", programs=[(SECRET, None), ("frob", None)]))
    assert SECRET not in repr(found)
    assert found["facts"]["programs"][1] == {"name": "frob", "real": None}


@pytest.mark.parametrize("kind", ["file", "directory", "other"])
def test_the_name_of_what_is_there_stays(scrubber, kind):
    """Else an agent could hide what it touched by calling it a password as well."""
    line = "cat src/production --password production"
    body = intent(line, [("src/production", kind, "src/production")], programs=[("production", "/usr/bin/production")])
    found = scrubber.scrub({**body, "facts": {**body["facts"], "globs": [{"asked": "production", "matches": ["a"]}]}})
    assert found["facts"]["paths"] == body["facts"]["paths"]
    assert found["facts"]["programs"] == body["facts"]["programs"]
    assert found["facts"]["globs"] == [{"asked": "production", "matches": ["a"]}]
    assert found["request"]["line"] == "cat src/production --password " + scrubber.mark("production")


@pytest.mark.parametrize(
    ("line", "matched"),
    [
        (f"zip -P {SECRET} a.zip b", f"-P {SECRET}"),
        (f"mysql -u root -p{SECRET} db", f"-p{SECRET}"),
        (f"docker login -p '{SECRET}' host", f"`-p` {SECRET}"),
        (f"frob --password={SECRET}{'a' * 300}", f"frob --password={SECRET}…"),
    ],
)
def test_a_reason_does_not_quote_it(scrubber, line, matched):
    reason = {"rule": "commands.default", "tier": "deny", "matched": matched, "because": f"`{matched}` is not known"}
    found = scrubber.scrub(intent(line, reasons=[reason]))
    assert SECRET not in repr(found)
    assert found["decision"]["reasons"][0]["because"].endswith("is not known")
    assert found["decision"]["reasons"][0]["rule"] == "commands.default"


def test_of_a_call_without_a_secret_nothing_is_withheld(scrubber):
    body = intent("cat x", [("y", "absent", "y")], reasons=[{"matched": "cat x", "because": "no rule", "tier": "deny"}])
    assert scrubber.scrub(body) is body
    elsewhere = {**body, "task": f"--password {SECRET}"}
    found = scrubber.scrub(elsewhere)
    assert {**found, "task": ""} == {**body, "task": ""}
    assert SECRET not in found["task"]


def test_parts_of_another_shape_are_left_alone(scrubber):
    body = {
        "request": {"argv": ["x", "--password", SECRET]},
        "facts": {"paths": "kept", "homes": [["a", "/b"]], "globs": [3]},
    }
    found = scrubber.scrub({**body, "decision": {"tier": "deny", "reasons": ["x"]}})
    assert found["facts"] == body["facts"]
    assert found["decision"] == {"tier": "deny", "reasons": ["x"]}
