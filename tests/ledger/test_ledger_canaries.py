"""Canaries: tokens of forty issuers where they stand glued or quoted, known values in every usual spelling, and ordinary text."""

import base64
import html
import json
import shlex
import unicodedata
from urllib.parse import quote, quote_plus

import pytest

from ringfence.ledger.scrub import SecretScrubber

MIXED = "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dE3fG5hI7jK9lM1nO3pQ5rS7tU9vW1xY3zA5bC7dE9fG1hI3jK"
DIGITS = "0123456789abcdef" * 5
TOKENS = {
    "aws": "AKIA" + "IOSFODNN7EXAMPLQ",
    "github": "ghp_" + MIXED[:36],
    "github-fine": "github_pat_" + MIXED[:60],
    "gitlab": "glpat-" + MIXED[:20],
    "slack": "xoxb-" + "123456789012-" + MIXED[:24],
    "slack-app": "xapp-1-" + "A0123456789-" + MIXED[:40],
    "google": "AIza" + MIXED[:35],
    "google-oauth": "ya29." + MIXED[:40],
    "stripe": "sk_live_" + MIXED[:24],
    "openai": "sk-proj-" + MIXED[:48],
    "anthropic": "sk-ant-" + "api03-" + MIXED[:48],
    "pypi": "pypi-" + MIXED[:60],
    "npm": "npm_" + MIXED[:36],
    "docker": "dckr_pat_" + MIXED[:27],
    "hugging-face": "hf_" + MIXED[:34],
    "sendgrid": "SG." + MIXED[:22] + "." + MIXED[:43],
    "digitalocean": "dop_v1_" + DIGITS[:64],
    "jwt": "eyJ" + MIXED[:20] + ".eyJ" + MIXED[:30] + "." + MIXED[:43],
    "azure": "AccountKey=" + MIXED[:80] + "aBcD12==",
    "twilio": "SK" + DIGITS[:32],
    "telegram": "123456789:AA" + MIXED[:33],
    "discord": "M" + MIXED[:23] + "." + MIXED[:6] + "." + MIXED[:27],
    "shopify": "shpat_" + DIGITS[:32],
    "linear": "lin_api_" + MIXED[:40],
    "mailgun": "key-" + DIGITS[:32],
    "vault": "hvs." + MIXED[:48],
    "databricks": "dapi" + DIGITS[:32],
    "grafana": "glsa_" + MIXED[:32] + "_" + DIGITS[:8],
    "new-relic": "NRAK-" + "AB3DE5GH7JK9MN1PQ3ST5VW7YZ9",
    "atlassian": "ATATT3" + MIXED[:60],
    "planetscale": "pscale_tkn_" + MIXED[:32],
    "rubygems": "rubygems_" + DIGITS[:48],
    "age": "AGE-SECRET-KEY-1" + "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7LQPZRY9X8GF2TVDW0S3JN54KHCE",
    "groq": "gsk_" + MIXED[:52],
    "xai": "xai-" + MIXED[:80],
    "fly": "fm2_" + MIXED[:60],
    "doppler": "dp.pt." + MIXED[:43],
    "postman": "PMAK-" + DIGITS[:24] + "-" + DIGITS[:34],
    "figma": "figd_" + MIXED[:40],
    "airtable": "pat" + MIXED[:14] + "." + DIGITS[:64],
}
PLACES = (
    "{}",
    "curl -H 'X-Key: {}' https://h/",
    "/tmp/{}.txt",
    "KEY={}",
    "old_{}",
    "https://h/p?x={}",
    '{{"k":"{}"}}',
    '"{{\\"k\\":\\"{}\\"}}"',
    "error: bad token {}, try again",
)


@pytest.mark.parametrize("issuer", TOKENS)
def test_a_token_of_a_known_form_is_replaced_wherever_it_stands(issuer):
    scrubber = SecretScrubber(b"k" * 32)
    token = TOKENS[issuer]
    for place in PLACES:
        if issuer == "azure" and place == "old_{}":
            continue  # a name of its own
        found = json.dumps(scrubber.scrub({"a": [place.format(token)]}))
        assert token.removeprefix("AccountKey=")[-24:] not in found, place


def spellings(value: str) -> dict[str, str]:
    raw, wide = value.encode(), value.encode("utf-16-le")
    return {
        "plain": value,
        "base64": base64.b64encode(raw).decode(),
        "base64 of name and value": base64.b64encode(b"user:" + raw).decode(),
        "base64 for a URL": base64.urlsafe_b64encode(raw).decode(),
        "base64 of UTF-16": base64.b64encode("$x='".encode("utf-16-le") + wide).decode(),
        "hexadecimal": raw.hex(),
        "HEXADECIMAL": raw.hex().upper(),
        "with colons": raw.hex(":"),
        "as xxd prints": raw.hex(" "),
        "hexadecimal of UTF-16": wide.hex(),
        "UTF-16 read as Latin": wide.decode("latin-1")[:-1],
        "escaped bytes": "".join(f"\\x{byte:02x}" for byte in raw),
        "octal": "".join(f"\\{byte:03o}" for byte in raw),
        "escaped characters": "".join(f"\\u{ord(char):04x}" for char in value),
        "a URL's part": quote(value, safe=""),
        "a URL's path": quote(value),
        "a form": quote_plus(value),
        "in lowercase": quote(value, safe="").replace("%2F", "%2f").replace("%2B", "%2b").replace("%3F", "%3f"),
        "every byte": "".join(f"%{byte:02X}" for byte in raw),
        "JSON": json.dumps(value),
        "JSON in JSON": json.dumps(json.dumps(value)),
        "JSON in JSON as it is": json.dumps(json.dumps(value, ensure_ascii=False), ensure_ascii=False),
        "JSON with escaped slashes": json.dumps(value).replace("/", "\\/"),
        "ESCAPED characters": "".join(f"\\u{ord(char):04X}" for char in value),
        "HTML": html.escape(value),
        "HTML as scripts write it": html.escape(value).replace("&#x27;", "&#39;"),
        "HTML by number": "".join(f"&#{ord(char)};" for char in value),
        "HTML by hexadecimal number": "".join(f"&#x{ord(char):x};" for char in value),
        "an array of bytes": ", ".join(f"0x{byte:02x}" for byte in raw),
        "as xxd groups": " ".join(raw.hex()[at : at + 4] for at in range(0, len(raw.hex()), 4)),
        "as xxd groups behind a byte": ("20" + raw.hex()[:2] + " " + raw[1:].hex(" ", -2)),
        "hexadecimal of UTF-16, big end first": value.encode("utf-16-be").hex(),
        "base64 of UTF-16, big end first": base64.b64encode(value.encode("utf-16-be")).decode(),
        "by shlex": shlex.quote(value),
        "in a shell's $''": "$'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'",
        "Python": repr(value),
        "CSV": value.replace('"', '""'),
        "SQL": value.replace("'", "''"),
        "decomposed": unicodedata.normalize("NFD", value),
        "for a shell": "".join(char if char.isalnum() or char == "_" else f"\\{char}" for char in value),
        "in quotes for a shell": "'" + value.replace("'", "'\\''") + "'",
        "bytes": repr(raw),
    }


@pytest.mark.parametrize(
    "value", ["S3cr3tValue99xyz", "S3cr3t/Val+ue?x", 'with "quotes" and \\back', "pässwörd'ünïcode"]
)
def test_a_known_value_is_replaced_in_every_usual_spelling(value):
    scrubber = SecretScrubber(b"k" * 32, values=[value])
    for name, spelled in spellings(value).items():
        assert scrubber.scrub({"a": f"x {spelled} y"}) != {"a": f"x {spelled} y"}, name
        assert scrubber.scrub({spelled.encode("ascii", "ignore").decode(): 1}) != {"b": 1}


@pytest.mark.parametrize(
    "line",
    [
        "git log --oneline task-management-of-everything-here mask-all-the-long-words-of-this",
        "pip install types-pyyaml==6.0.12.20250402 --hash=sha256:" + DIGITS[:64],
        "docker pull registry.example.org/team/app@sha256:" + DIGITS[:64],
        "kubectl get pods -n risk-assessment-service-with-a-long-name",
        "echo key-value-store desk-organizer-for-the-whole-office",
        "pytest tests/test_sk_learn_pipeline_with_many_words_in_its_name.py",
        "python -c 'import hashlib; print(hashlib.sha256(b\"x\").hexdigest())'",
        "git checkout 0123456789abcdef0123456789abcdef01234567",
        "curl https://example.org/path/to/patient/records.json?page=12",
    ],
)
def test_ordinary_lines_stay_as_they_are(line):
    assert SecretScrubber(b"k" * 32).scrub({"line": line}) == {"line": line}
