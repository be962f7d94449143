"""A secret ends where its quotes end, not at its first space or sign; what may be a command behind it stays in the record."""

import json

import pytest

from ringfence.ledger.scrub import SecretScrubber

ONE, TWO = "Zq7vbn4TxW", "kR2mLp9sEd"
LINES = [
    "curl -u 'admin:{}@{}' https://h/",
    'curl -u "admin:{}@{}" https://h/',
    "curl -u 'admin:{}\"{}' https://h/",
    'tool --password "{}@{}"',
    'tool --password="{}@{}" --other',
    "DB_PASSWORD='{}@{}' tool",
    'export DB_PASSWORD="{}@{}"',
    "DB_PASSWORD={}\\@{} tool",
    "DB_PASSWORD={},{} tool",
    "sshpass -p '{}@{}' ssh h",
    "mysql -p'{}@{}' db",
    "7z x -p'{}@{}' a.7z",
    "zip -P '{}@{}' a.zip b",
    "gpg --passphrase '{}@{}' -c x",
    "redis-cli -a '{}@{}' ping",
    "gh secret set NAME --body '{}@{}'",
    "kubectl create secret generic x --from-literal=password='{}@{}'",
    "psql \"host=h password='{}@{}' dbname=d\"",
    '{{"password": "{}@{}"}}',
    'password: "{}@{}"',
    "password = '''{}@{}'''",
    '<add key="x" password="{}@{}"/>',
    "vault kv put secret/x password='{}@{}'",
]
SIGNS = [" ", "&", ";", "(", "$", "|", "<", "!", "{", ",", " & "]
QUOTED = [line for line in LINES if "\\" not in line and ",{}" not in line]


@pytest.fixture(scope="module")
def scrubber() -> SecretScrubber:
    return SecretScrubber(b"k" * 32)


@pytest.mark.parametrize("sign", SIGNS)
@pytest.mark.parametrize("line", QUOTED)
def test_a_quoted_value_is_replaced_to_its_end(scrubber, line, sign):
    said = json.dumps(scrubber.scrub({"line": line.format(ONE, TWO).replace("@", sign, 1)}))
    nested = (
        sign.strip() in {"&", ";", "|", "<"} and "psql" in line
    )  # quotes inside quotes: a command could stand behind the sign
    assert ONE not in said
    assert nested or TWO not in said


@pytest.mark.parametrize("line", [line.format(ONE, TWO) for line in LINES if line not in QUOTED])
def test_a_word_goes_on_behind_a_backslash_or_a_comma(scrubber, line):
    said = json.dumps(scrubber.scrub({"line": line.replace("@", " ", 1)}))
    assert ONE not in said
    assert TWO not in said
    assert said.endswith(' tool"}')


def test_a_text_of_a_request_is_replaced_to_its_end_in_a_line_within_a_line(scrubber):
    said = json.dumps(scrubber.scrub({"argv": ["bash", "-c", f"DB_PASSWORD='{ONE} {TWO}' tool"]}))
    assert ONE not in said
    assert TWO not in said
    said = json.dumps(scrubber.scrub({"line": f'bash -c "tool --password \\"{ONE} {TWO}\\" x"'}))
    assert ONE not in said
    assert TWO not in said


@pytest.mark.parametrize(
    "words",
    [
        ["curl", "-u", f"admin:{ONE} & {TWO}", "https://h/"],
        ["mysql", f"-p{ONE} {TWO}", "db"],
        ["redis-cli", "-a", f"{ONE};{TWO}", "ping"],
        ["gpg", "--passphrase", f"{ONE} {TWO}", "-c", "x"],
        ["openssl", "rsa", "-passin", f"pass:{ONE} {TWO}"],
    ],
)
def test_a_word_of_a_vector_is_replaced_to_its_end(scrubber, words):
    said = json.dumps(scrubber.scrub({"argv": words}))
    assert ONE not in said
    assert TWO not in said


@pytest.mark.parametrize(
    "line",
    [
        f"tool --password {ONE}; danger",
        f"tool --password '{ONE}'; danger",
        f'tool --password "{ONE}$(danger)"',
        f'tool --password "{ONE} `danger`"',
        f'tool " --password "{ONE} ; danger ; echo "',
        f"tool ' --password '{ONE} ; danger ; echo '",
        f'tool --password \\"{ONE} ; danger ; echo \\"',
        f"tool --password '{ONE}\ndanger\n",
        f"tool --password {ONE}\\;x ; danger",
        f"curl -u admin:{ONE} h | danger",
        f"bash -c \"x ' --password '{ONE} ; danger ; echo ' '\"",
    ],
)
def test_what_may_be_a_command_behind_a_secret_stays(scrubber, line):
    said = json.dumps(scrubber.scrub({"line": line}))
    assert ONE not in said
    assert "danger" in said


def test_words_behind_the_value_of_a_shell_in_a_vector_stay(scrubber):
    said = json.dumps(scrubber.scrub({"argv": ["docker", "exec", "c", "sh", "-c", f"docker login -p {ONE} && danger"]}))
    assert ONE not in said
    assert "&& danger" in said


def test_quotes_that_end_far_away_belong_to_something_else(scrubber):
    said = json.dumps(scrubber.scrub({"line": f"tool --password '{ONE} " + "word " * 200 + "' x"}))
    assert ONE not in said
    assert "word" in said
