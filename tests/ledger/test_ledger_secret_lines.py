"""Secrets on any line of a text, behind any usual name, and in lists; ordinary commands stay as they are."""

import json
import random

import pytest

from ringfence.ledger import canonical, scrub
from ringfence.ledger.scrub import SecretScrubber

VALUE = "q7Wd" + "Zk3f9LmT" * 4
KEY = "-----{} RSA PRIVATE KEY-----"
NAMED = [
    "password=" + VALUE,
    "PGPASSWORD=" + VALUE,
    "MYSQL_PASS=" + VALUE,
    "passphrase: " + VALUE,
    "SECRET_KEY = '" + VALUE + "'",
    "X-API-Key: " + VALUE,
    "--api-key=" + VALUE,
    "--token " + VALUE,
    "NPM_TOKEN=" + VALUE,
    "authToken=" + VALUE,
    'token = "' + VALUE + '"',
    "password => " + VALUE,
    "Proxy-Authorization: ApiKey " + VALUE,
    "machine h login u password " + VALUE,
    "https://" + VALUE + "@example.org/r",
    "https://" + "u" * 90 + ":" + VALUE + "@example.org/r",
    "https://u:" + VALUE * 12 + "@example.org/r",
    "https://u:p@" + VALUE + "@example.org/r",
    "https://discord.com/api/webhooks/1234567890/" + VALUE * 2,
    "AKIA" + "Q7WDZK3F9LMTZK3F",
    "sk-ant-" + VALUE,
]


@pytest.fixture
def scrubber() -> SecretScrubber:
    return SecretScrubber(b"k" * 32, patterns=["^CORP-[0-9]{4}$", r"\bINT[0-9]{6}\b"])


@pytest.mark.parametrize("before", ["", "x\n", "x\t", "\r\n", "\x1b", "é\n", "x\\n"], ids=ascii)
@pytest.mark.parametrize("named", NAMED)
@pytest.mark.parametrize("wrap", [str, json.dumps, lambda text: json.dumps({"text": json.dumps(text)})])
def test_a_secret_is_replaced_on_every_line_and_however_often_it_was_quoted(scrubber, before, named, wrap):
    found = json.dumps(scrubber.scrub({"request": {"line": wrap(before + named)}}))
    assert "hmac:1:" in found
    assert VALUE not in found


@pytest.mark.parametrize("text", ["CORP-1234", "x\nINT123456 y"])
def test_a_pattern_of_the_policy_sees_the_edges_of_lines_and_texts(scrubber, text):
    assert "hmac:1:" in str(scrubber.scrub({"line": text})["line"])


def test_a_private_key_whose_lines_are_words_of_a_command_is_replaced(scrubber):
    words = ["printf", "%s", KEY.format("BEGIN"), VALUE, VALUE[::-1], KEY.format("END"), "after"]
    found = scrubber.scrub({"argv": words})["argv"]
    assert isinstance(found, list)
    assert (found[:2], found[-1]) == (["printf", "%s"], "after")
    assert VALUE not in found
    assert VALUE[::-1] not in found


@pytest.mark.parametrize(
    "line",
    [
        "git push --force-with-lease origin main",
        "docker run -u 1000:1000 --rm image",
        "generate --max-tokens 1000000000",
        "python -m pytest tests/test_token_store.py::test_secret_key",
        'grep -rn "password" src',
        "kubectl get secret my-secret-name-long",
        "pip install git+https://github.com/org/some-long-repository-name@main",
        "git clone git@github.com:org/repo.git",
        "token_count = len(tokens)",
        "psql postgres://localhost:5432/db",
        "see http://host:8080/x, mail me@example.org",
        "vault token lookup",
        "login shell password reset",
    ],
)
def test_an_ordinary_line_stays_as_it_is(scrubber, line):
    body = {"request": {"line": line, "argv": line.split()}}
    assert scrubber.scrub(body) == body


def test_the_rules_see_every_text_as_it_is():
    chance = random.Random(1)
    for _ in range(5000):
        text = "".join(chance.choice('ab"\\\n\t\r\b\f\x00\x1b\x1f\x7fé日nu0') for _ in range(chance.randint(0, 30)))
        assert scrub._unescaped(canonical.encode({"a": text})) == b'{"a":"' + text.encode() + b'"}'
