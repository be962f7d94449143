"""Tokens of many more issuers, values behind the usual names, and words of well-known commands; ordinary text stays."""

import base64
import json

import pytest

from ringfence.ledger.scrub import SecretScrubber
from ringfence.ledger.secret_forms import CORES, FORMS

MIXED = "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dE3fG5hI7jK9lM1nO3pQ5rS7tU9vW1xY3zA5bC7dE9fG1hI3jK" * 2
SMALL = "a1b2c3d4e5f6g7h8i9j0k1l2m3n4o5p6q7r8s9t0u1v2w3x4y5z6a7b8c9d0e1f2g3h4i5j6k7l8"
LARGE = "A1B2C3D4E5F6G7H8J9K0L1M2N3P4Q5R6S7T8U9V0W1X2Y3Z4A5B6C7D8E9F0G1H2J3K4L5M6N7P8"
DIGITS = "0123456789abcdef" * 12
NUMBER = "1234567890" * 3
UUID = f"{DIGITS[:8]}-{DIGITS[:4]}-{DIGITS[:4]}-{DIGITS[:4]}-{DIGITS[:12]}"
PEM = "-----{} {}PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC"
TOKENS = {
    "aws-bedrock": "ABSK" + MIXED[:60],
    "github-new": "ghs_" + MIXED[:20] + "." + MIXED[:40],
    "gitlab-routable": "glpat-" + MIXED[:27] + ".01." + SMALL[:9],
    "gitlab-oauth": "gloas-" + DIGITS[:64],
    "gitlab-runner": "glrt-" + MIXED[:20],
    "crates": "cio" + MIXED[:32],
    "nuget": "oy2" + SMALL[:43],
    "artifactory": "AKCp" + MIXED[:69],
    "slack-cookie": "xoxd-" + MIXED[:50] + "%2B" + MIXED[:8],
    "slack-workflow": "hooks.slack.com/workflows/T" + LARGE[:9] + "/A" + LARGE[:9] + "/" + NUMBER[:18],
    "stripe-organisation": "sk_org_live_" + MIXED[:30],
    "google-refresh": "1//0" + MIXED[:80],
    "azure-client": "Dnk8Q~" + MIXED[:34],
    "azure-devops": MIXED[:76] + "AZDO" + MIXED[:4],
    "azure-database": MIXED[:76] + "ACDb" + MIXED[:6] + "==",
    "jwe": "eyJhbGciOiJkaXIifQ.." + MIXED[:16] + "." + MIXED[:80] + "." + MIXED[:22],
    "heroku": "HRKU-" + MIXED[:60],
    "cloudflare": "cfut_" + MIXED[:40],
    "notion": "secret_" + MIXED[:43],
    "square": "EAAA" + MIXED[:60],
    "square-secret": "sq0csp-" + MIXED[:43],
    "paypal": "access_token$production$" + SMALL[:16] + "$" + DIGITS[:32],
    "vercel": "vcp_" + MIXED[:24],
    "netlify": "nfp_" + MIXED[:36],
    "render": "rnd_" + MIXED[:32],
    "neon": "napi_" + SMALL[:60],
    "grafana-cloud": "glc_" + MIXED[:100] + "==",
    "dynatrace": "dt0c01." + LARGE[:24] + "." + LARGE[:64],
    "snyk": "snyk_uat." + MIXED[:8] + "." + MIXED[:60],
    "sonar": "squ_" + DIGITS[:40],
    "buildkite": "bkct_" + DIGITS[:40],
    "atlassian": "ATCTT3" + MIXED[:90],
    "bitbucket": "ATBB" + MIXED[:32],
    "asana": "2/" + NUMBER[:16] + "/" + NUMBER[:16] + ":" + DIGITS[:32],
    "clickup": "pk_" + NUMBER[:8] + "_" + LARGE[:32],
    "fireworks": "fw_" + MIXED[:24],
    "together": "tgp_v1_" + MIXED[:43],
    "langsmith": "lsv2_pt_" + DIGITS[:32] + "_" + DIGITS[:10],
    "elevenlabs": "sk_" + DIGITS[:48],
    "cerebras": "csk-" + SMALL[:48],
    "tavily": "tvly-dev-" + MIXED[:32],
    "e2b": "e2b_" + DIGITS[:40],
    "cursor": "crsr_" + DIGITS[:64],
    "jina": "jina_" + MIXED[:60],
    "pinecone": "pcsk_" + MIXED[:70],
    "wandb": "wandb_v1_" + MIXED[:70],
    "alibaba": "LTAI" + MIXED[:20],
    "tencent": "AKID" + MIXED[:32],
    "dropbox": "sl.u." + MIXED[:130],
    "hubspot": "pat-na1-" + UUID,
    "brevo": "xkeysib-" + DIGITS[:64] + "-" + MIXED[:16],
    "resend": "re_" + MIXED[:8] + "_" + MIXED[:24],
    "mapbox": "sk.eyJ" + MIXED[:60] + "." + MIXED[:22],
    "razorpay": "rzp_live_" + MIXED[:14],
    "plaid": "access-production-" + UUID,
    "one-password": "A3-"
    + LARGE[:6]
    + "-"
    + LARGE[:6]
    + "-"
    + LARGE[:5]
    + "-"
    + LARGE[:5]
    + "-"
    + LARGE[:5]
    + "-"
    + LARGE[:5],
    "token in base64": base64.b64encode(("ghp_" + MIXED[:36]).encode()).decode(),
    **{
        f"{kind or 'plain '}key in base64": base64.b64encode(PEM.format("BEGIN", kind).encode()).decode()
        for kind in ("", "RSA ", "EC ", "OPENSSH ", "ENCRYPTED ", "DSA ")
    },
}
LINES = [
    "curl -u admin:{} https://h/",
    "curl -sSLu 'admin:{}' https://h/",
    "curl --user admin:{} https://h/",
    "curl -H 'Cookie: theme=dark; session={}' https://h/",
    "curl -b 'session={}' https://h/",
    "Set-Cookie: sid={}; HttpOnly",
    "mysql -u root -p{} shop",
    "MYSQL_PWD={} mysql shop",
    "sshpass -p {} ssh host",
    "redis-cli -h h -a {} ping",
    "REDISCLI_AUTH={} redis-cli",
    "docker login -u me -p {} registry.example.org",
    "echo '{}' | docker login --password-stdin",
    "helm registry login -p {} h",
    "openssl rsa -in key -passin pass:{}",
    "zip -r -P {} a.zip b",
    "7z x -p{} a.7z",
    "ldapsearch -x -D cn=admin -w {} -b dc=x",
    "htpasswd -cb file user {}",
    "gh secret set NAME --body {}",
    "kubectl create secret generic x --from-literal=key={}",
    "aws configure set aws_secret_access_key {}" + MIXED[:20],
    '{{"SecretAccessKey": "{}' + MIXED[:20] + '"}}',
    '{{"auths":{{"h":{{"auth":"{}"}}}}}}',
    "//registry.example.org/:_auth={}",
    "TF_TOKEN_app_terraform_io={} terraform init",
    "SECRET_KEY_BASE={}",
    "OPENAI_KEY={}",
    "ENCRYPTION_KEY={}",
    '{{"clientSecret": "{}"}}',
    "CREATE USER a WITH PASSWORD '{}'",
    "CREATE USER a IDENTIFIED BY '{}'",
    "Server=h;Uid=a;Pwd={};",
    "<server><password>{}</password></server>",
    "postgres%3A%2F%2Fuser%3A{}%40host%2Fdb",
    "https://h/?password%3D{}",
    "cat > .env <<EOF\nAPI_TOKEN={}\nEOF",
    "touch /tmp/token={}.txt",
]
VALUE = "q7WdZk3f9LmTq7WdZk3f"


@pytest.fixture(scope="module")
def scrubber() -> SecretScrubber:
    return SecretScrubber(b"k" * 32)


@pytest.mark.parametrize("issuer", TOKENS)
@pytest.mark.parametrize("place", ["{}", "curl -H 'X: {}' h", "/tmp/{}", "KEY={}", 'say "{}"\n', "a\n{}\nb"])
def test_a_token_is_replaced_wherever_it_stands(scrubber, issuer, place):
    found = scrubber.scrub({"request": {"line": place.format(TOKENS[issuer]), "argv": ["x", TOKENS[issuer]]}})
    assert TOKENS[issuer][-16:] not in json.dumps(found)


@pytest.mark.parametrize("line", LINES)
def test_what_a_command_or_a_name_shows_to_be_secret_is_replaced(scrubber, line):
    assert VALUE not in json.dumps(scrubber.scrub({"line": line.format(VALUE)}))
    assert VALUE not in json.dumps(scrubber.scrub({"line": f'bash -c "{line.format(VALUE)}"'}))


@pytest.mark.parametrize("line", [line for line in LINES if not set("'\"|\n%") & set(line) and line[0].islower()])
def test_it_is_so_in_an_argument_vector(scrubber, line):
    words = line.format(VALUE).split()
    found = scrubber.scrub({"argv": words})["argv"]
    assert VALUE not in json.dumps(found)
    assert len(found) == len(words)
    assert found[0] == words[0]


def test_whatever_a_rule_finds_has_its_core(scrubber):
    rules = dict(FORMS)
    assert CORES.keys() <= rules.keys()
    for name in ("azure-client", "azure-devops", "azure-database"):
        assert scrubber.suspects(json.dumps({"a": TOKENS[name]}).encode())
    for text in ("123456789:AA" + MIXED[:33], MIXED[:14] + ".atlasv1." + MIXED[:67], "amqp://:" + VALUE + "@h"):
        assert scrubber.suspects(json.dumps({"a": text}).encode())
        assert scrubber.scrub({"a": text}) != {"a": text}


@pytest.mark.parametrize(
    "line",
    [
        "curl -XPUT https://host:8443/index -H 'Content-Type: application/json'",
        "curl -fsSLo out.tar.gz https://host:8080/a/b",
        "curl -b cookies.txt -c cookies.txt https://h/",
        "curl --url https://host:8443/path --output u:file",
        "docker run -u node:node -p 8080:80 --name login image",
        "docker compose run login-service -p 8080:80",
        "mysql -u root -p shop",
        "sshpass -e ssh -p 2222 host",
        "mkdir -p src/components/forms && zip -r out.zip src",
        "unzip a.zip && cp -P link target-of-link",
        "kubectl create secret tls web --cert=tls.crt --key=tls.key",
        "kubectl apply -f imagePullSecret: registry-credentials",
        "const STORAGE_KEY = 'my-application-preferences-v1'",
        "cache_key: deps-linux-x64-0123456789abcdef0123",
        "foreign_key='organization_membership_identifier'",
        "token_endpoint=https://login.example.org/oauth2/token",
        "fetch(url, { credentials: 'same-origin' })",
        "document.cookie = name + '=' + value",
        "--- PASS: TestSomethingLong (0.00s)",
        "GOOGLE_APPLICATION_CREDENTIALS=/home/u/key.json x",
        "OLD_PWD=/home/user/project cd -",
        "<token>abc</token> and <secret/>",
        "npm config set //registry.example.org/:always-auth true",
        "ssh-keygen -t ed25519 -f keys/deploy -N ''",
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI" + MIXED[:42] + " me@host",
        "-----BEGIN PUBLIC KEY----- MCowBQYDK2VwAyEA" + MIXED[:43],
        "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAA" + MIXED,
        '"integrity": "sha512-' + MIXED[:86] + '=="',
        "pip install x --hash=sha256:" + DIGITS[:64],
        "h1:" + MIXED[:43] + "= golang.org/x/crypto v0.31.0/go.mod",
        "https://u.example.org/a/b/c?page=2&sort=name%3Aasc",
        f"kubectl delete pod web-{UUID}",
        "conda install numpy=1.26.4=py311h" + DIGITS[:7] + "_0",
        "/nix/store/" + SMALL[:32] + "-python3-3.11.9/bin/python",
    ],
)
def test_ordinary_text_stays_as_it_is(scrubber, line):
    body = {"line": line, "argv": line.split()}
    assert scrubber.scrub(body) is body or scrubber.scrub(body) == body
