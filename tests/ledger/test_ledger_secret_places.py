"""Tokens and passwords as people and agents write them in shell, code, manifests and commands; ordinary text stays.

Collected by writing lines first and asking the rules afterwards.
"""

import json
import shlex

import pytest

from ringfence.ledger.scrub import SecretScrubber

MIXED = "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dE3fG5hI7jK9lM1nO3pQ5rS7tU9vW1xY3zA5bC7dE9fG1hI3jK" * 2
SMALL = "a1b2c3d4e5f6g7h8i9j0k1l2m3n4o5p6q7r8s9t0u1v2w3x4y5z6a7b8c9d0e1f2g3h4i5j6k7l8"
LARGE = SMALL.upper()
DIGITS = "0123456789abcdef" * 12
UUID = f"{DIGITS[:8]}-{DIGITS[:4]}-{DIGITS[:4]}-{DIGITS[:4]}-{DIGITS[:12]}"
TOKENS = {
    "fly-old": "fo1_" + MIXED[:43],
    "fly-macaroon": "fm1r_" + MIXED[:100],
    "adafruit": "aio_" + MIXED[:28],
    "asana": "1/" + "1234567890123456" + ":" + DIGITS[:32],
    "clickhouse": "4b1d" + MIXED[:38],
    "clojars": "CLOJARS_" + SMALL[:60],
    "grafana-old": "eyJrIjoi" + MIXED[:90] + "==",
    "harness": "pat." + MIXED[:22] + "." + DIGITS[:24] + "." + MIXED[:20],
    "maxmind": MIXED[:6] + "_" + MIXED[:29] + "_mmk",
    "mailchimp": DIGITS[:32] + "-us12",
    "new-relic-insert": "NRII-" + MIXED[:32],
    "octopus": "API-" + LARGE[:26],
    "openshift": "sha256~" + MIXED[:43],
    "scalingo": "tk-us-" + MIXED[:48],
    "settlemint": "sm_pat_" + MIXED[:16],
    "yandex": "t1." + MIXED[:60] + "." + MIXED[:86],
    "yandex-secret": "YC" + MIXED[:38],
    "firecrawl": "fc-" + DIGITS[:32],
    "modal": "as-" + MIXED[:22],
    "langchain": "ls__" + DIGITS[:32],
    "voyage": "pa-" + MIXED[:43],
    "runpod": "rpa_" + LARGE[:44],
    "xata": "xau_" + MIXED[:44],
    "mailersend": "mlsn." + DIGITS[:64],
    "stytch": "secret-live-" + MIXED[:36] + "=",
    "statsig": "secret-" + MIXED[:43],
    "inngest": "signkey-prod-" + DIGITS[:64],
    "trigger": "tr_prod_" + MIXED[:24],
    "launch-darkly": "api-" + UUID,
    "circle-project": "CCIPRJ_" + MIXED[:22] + "_" + DIGITS[:40],
    "deno": "ddp_" + MIXED[:36],
    "packagist": "packagist_ort_" + DIGITS[:68],
    "gitlab-registration": "GR1348941" + MIXED[:20],
    "socket": "sktsec_" + MIXED[:44],
    "volcano": "AKLT" + MIXED[:44],
    "baidu": "bce-v3/ALTAK-" + MIXED[:21] + "/" + DIGITS[:40],
    "zhipu": DIGITS[:32] + "." + MIXED[:16],
    "paypal-access": "A21AA" + MIXED[:90],
    "checkout": "sk_sbox_" + SMALL[:27],
    "paddle": "pdl_live_apikey_" + SMALL[:26] + "_" + MIXED[:22] + "_" + MIXED[:3],
    "polar": "polar_oat_" + MIXED[:43],
    "trello": "ATTA" + DIGITS[:64] + LARGE[:8],
    "sanity": "sk" + MIXED[:140],
    "ghost": DIGITS[:24] + ":" + DIGITS[:64],
    "woocommerce": "cs_" + DIGITS[:40],
    "amazon-login": "amzn1.oa2-cs.v1." + DIGITS[:64],
    "amazon-refresh": "Atzr|" + MIXED,
    "amazon-market": "amzn.mws." + UUID,
    "aws-session": "IQoJb3JpZ2lu" + MIXED,
    "appsync": "da2-" + SMALL[:26],
    "firebase": "AAAA" + MIXED[:7] + ":APA91b" + MIXED[:134],
    "k3s": "K10" + DIGITS[:64] + "::server:" + DIGITS[:32],
    "rancher": "token-" + SMALL[:5] + ":" + SMALL[:54],
    "wallet": "xprv9s21" + MIXED[:103],
    "sourcegraph": "slk_" + DIGITS[:64],
    "hugging-face-org": "api_org_" + MIXED[:34],
    "swarm": "SWMTKN-1-" + SMALL[:50] + "-" + SMALL[:25],
    "confluent": "cflt" + MIXED[:60],
    "scaleway": "SCW" + LARGE[:17],
    "logfire": "pylf_v1_us_" + MIXED[:43],
    "browserbase": "bb_live_" + MIXED[:27],
    "brave": "BSA" + MIXED[:27],
    "llama-cloud": "llx-" + MIXED[:48],
    "mem0": "m0-" + MIXED[:40],
    "cursor": "key_" + DIGITS[:64],
    "google-hmac": "GOOG1E" + LARGE[:55],
    "bitwarden": "0." + UUID + "." + MIXED[:30] + ":" + MIXED[:22] + "==",
    "infisical": "st." + DIGITS[:24] + "." + DIGITS[:32] + "." + DIGITS[:32],
    "zapier": "mcp.zapier.com/api/mcp/s/" + MIXED[:60] + "/mcp",
}
SECRET = "Tr0ub4dorx9Q"
LONG = SECRET + "w7Zk3fLmT8p"
LINES = [
    # a line that goes on behind a backslash
    f"mysql -u root \\\n  --password \\\n  '{SECRET}' db",
    f"curl https://x.example \\\n  -u \\\n  admin:{SECRET}",
    f"docker login \\\n  -u me \\\n  -p {SECRET} \\\n  reg.example",
    f"redis-cli -h h \\\n  -a {SECRET} ping",
    f"gh secret set \\\n X \\\n --body {SECRET}",
    f"curl -H \\\n 'Authorization: Bearer {LONG}' https://x",
    # quoting of the shell
    f"frob --password $'{SECRET}'",
    f"PASSWORD=$'{SECRET}' frob",
    f'frob --password $"{SECRET}"',
    f"mysql -p'{SECRET}' db",
    # variables
    f"PASS={SECRET} ./deploy",
    f"PW={SECRET} ./deploy",
    f"PSWD={SECRET} ./deploy",
    f"STORAGE_ACCOUNT_KEY={LONG} x",
    f"APP_KEY=base64:{LONG}= php x",
    f"set -x API_TOKEN {SECRET}",
    f"setenv API_TOKEN {SECRET}",
    # code and manifests
    f'password: str = "{SECRET}"',
    f"define('DB_PASSWORD', '{SECRET}');",
    f'(:password "{SECRET}")',
    f'<add key="Password" value="{SECRET}"/>',
    f"- name: DB_PASSWORD\n  value: {SECRET}",
    f'{{"name":"DB_PASSWORD","value":"{SECRET}"}}',
    f"password: |\n  {SECRET}\n",
    f"password: >-\n  {SECRET}\n",
    f"os.environ['DB_PASSWORD'] = '{SECRET}'",
    f"os.environ.setdefault('API_KEY', '{SECRET}')",
    f"os.getenv('API_TOKEN', '{LONG}')",
    f'ENV["SECRET_KEY"]="{SECRET}"',
    f'$ENV{{PASSWORD}}="{SECRET}"',
    f"declare -A c=([password]={SECRET})",
    f"requests.get('h', auth=('me', '{SECRET}'))",
    f"sed -i 's|password: .*|password: {SECRET}|' c.yml",
    f'{{"kty":"EC","crv":"P-256","d":"{LONG}{LONG}","x":"abc"}}',
    f"MIIEvQIBADANBgkqhkiG9w0BAQEFAASC{LONG}\n{LONG * 3}",
    f"b3BlbnNzaC1rZXktdjEAAAAABG5vbmU{LONG}",
    # headers and addresses
    f"curl -H 'Authorization: {LONG}' h",
    f"curl -H 'Authorization: GenieKey {LONG}' h",
    f"curl -H 'Authorization: SSWS {LONG}' h",
    f"curl -H 'Ocp-Apim-Subscription-Key: {LONG}' h",
    f"curl 'h/?x=1&pwd={SECRET}'",
    f"mount.cifs //h/s /m -o user=me,pass={SECRET}",
    # words of commands
    f"unzip -P {SECRET} a.zip",
    f"sqlcmd -S h -U sa -P{SECRET}",
    f"ssh-keygen -t ed25519 -N {SECRET} -f k",
    f"ipmitool -H h -U me -P {SECRET} power",
    f"snmpwalk -v3 -A {SECRET} h",
    f"unrar x -p{SECRET} a.rar",
    f"mongosh -u me -p {SECRET} h",
    f"twine upload -u __token__ -p {SECRET} dist/*",
    f"useradd -p '{SECRET}' x",
    f"xfreerdp /u:me /p:{SECRET} /v:h",
    f"curl --pass {SECRET} --key k h",
    f"curl --oauth2-bearer {SECRET} h",
    f"openssl enc -aes-256-cbc -k {SECRET} -in x",
    f"doctl auth init -t {SECRET}",
    f"nmcli dev wifi connect X password {SECRET}",
    f"http -a me:{SECRET} h",
    f"etcdctl --user root:{SECRET} get x",
    f"lftp -u me,{SECRET} h",
    f"smbclient //h/s -U dom/me%{SECRET}",
    f"sqlplus me/{SECRET}@h/db",
    f"rabbitmqctl add_user me {SECRET}",
    f"composer config http-basic.r.example me {SECRET}",
    f"wpa_passphrase ssid {SECRET}",
    f"cargo login {SECRET}",
    f"vault login {SECRET}",
    f"bw unlock {SECRET}",
    f"nuget setapikey {SECRET}",
    f"gem push --key {SECRET}",
    f"ngrok config add-authtoken {SECRET}",
    f"npm config set //r.example/:_authToken {SECRET}",
    f"yarn config set npmAuthToken {SECRET}",
    f"poetry config pypi-token.r {SECRET}",
    f"mkpasswd -m sha-512 {SECRET}",
    f"ConvertTo-SecureString '{SECRET}' -AsPlainText -Force",
    f"flyctl secrets set DB={SECRET}",
    f"heroku config:set STRIPE={SECRET}",
    f"keytool -storepass {SECRET} -list",
    f"tailscale up --authkey {SECRET}",
    f"az storage blob list --account-key {SECRET}",
    f"jq --arg password {SECRET} -n x",
    f"echo root:{SECRET} | sudo chpasswd",
    f"echo {SECRET} | sudo -S id",
    f"echo {SECRET} | kinit me",
    f"echo {SECRET} | npx wrangler secret put X",
    f"echo -n me:{SECRET} | base64",
    f"sudo -S id <<< {SECRET}",
    f"pass insert -m x <<< '{SECRET}'",
]
ORDINARY = [
    "def f(secret):\n    return something_else(secret)",
    "[password]: https://docs.example.org/passwords",
    'f"{token}: the token of {user}"',
    "git commit -m 'fix authorization: check the role before the session'",
    "headers['Authorization'] = build_authorization_header(request)",
    "fields = ['password', 'created_at', 'updated_at']",
    "PASS=1 FAIL=0 make report",
    "echo hello-world | base64",
    "echo '2 passed' | tee report.txt",
    "ssh-keygen -lf ~/.ssh/id_ed25519.pub",
    "unzip -p archive.zip member.txt",
    "unzip -l archive.zip",
    "mongosh --port 27017 --eval 'db.stats()'",
    "http --auth-type=bearer GET example.org/items",
    "twine check dist/*",
    "openssl enc -d -aes-256-cbc -in x -out y",
    "cargo login --help",
    "vault login -method=oidc",
    "npm config set registry https://registry.example.org/",
    "composer config repositories.x vcs https://example.org/x",
    "heroku config:get STRIPE",
    "api-gateway-v2 as-needed pa-rt YC m0-1 fc-list",
    "sha256:" + DIGITS[:64],
    "git show " + DIGITS[:40],
    "docker pull h/x@sha256:" + DIGITS[:64],
    '"integrity": "sha512-' + MIXED[:86] + '=="',
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAA" + MIXED[:80],
    f"mission m-{DIGITS[:16]} call {UUID}",
    f"assets/index.{DIGITS[:8]}.js assets/{DIGITS[:32]}.woff2",
    "-----BEGIN CERTIFICATE-----\nMIIDdzCCAl+gAwIBAgIE" + MIXED[:60],
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI" + MIXED[:43] + " me@host",
    "response=200 signature=valid",
    "rabbitmqctl list_queues name messages",
    "nmcli dev wifi list",
    "sqlplus / as sysdba @scripts/report.sql",
    "make \\\n  CFLAGS=-O2 \\\n  all",
]


@pytest.fixture(scope="module")
def scrubber() -> SecretScrubber:
    return SecretScrubber(b"k" * 32)


@pytest.mark.parametrize("name", TOKENS)
def test_a_token_is_replaced_where_it_stands_alone_and_quoted(scrubber, name):
    token = TOKENS[name]
    for line in (f"frob upload {token} now", f"frob '{token}'", f"X={token}\n", f'{{"x": "{token}"}}'):
        assert token[-16:] not in json.dumps(scrubber.scrub({"line": line})), line
    assert token[-16:] not in json.dumps(scrubber.scrub({"argv": ["frob", token]}))


@pytest.mark.parametrize("line", LINES)
def test_a_secret_is_replaced_where_people_write_it(scrubber, line):
    assert SECRET not in scrubber.clean(line)
    assert SECRET not in json.dumps(scrubber.scrub({"request": {"kind": "shell", "line": line}}))
    told = f"/bin/bash -c {line!a} (parent box-init)"
    quoted = f"bash -c {shlex.quote(line)}"
    arguments = json.dumps({"command": line})
    body = {"observations": [{"detail": told}], "request": {"kind": "tool", "arguments": arguments}, "line": quoted}
    assert SECRET not in json.dumps(scrubber.scrub(body))


@pytest.mark.parametrize(
    "line", [line for line in LINES if line.split()[0].islower() and not set(line) & set('|<;>$("{')]
)
def test_the_same_as_an_argument_vector(scrubber, line):
    words = shlex.split(line.replace("\\\n", " "))
    assert SECRET not in json.dumps(scrubber.scrub({"request": {"kind": "argv", "argv": words}}))


@pytest.mark.parametrize("line", ORDINARY)
def test_ordinary_text_stays(scrubber, line):
    assert scrubber.clean(line) == line


def test_places_stay_where_a_line_goes_on(scrubber):
    line = f"frob \\\n  --password \\\n  {SECRET} \\\n  --verbose"
    assert scrubber.clean(line) == line.replace(SECRET, scrubber.mark(SECRET))
