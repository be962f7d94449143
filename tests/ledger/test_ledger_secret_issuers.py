"""Tokens of some eighty more issuers, and secrets that are put into a store; names that look like a token's prefix stay."""

import json

import pytest

from ringfence.ledger.scrub import SecretScrubber

MIXED = "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dE3fG5hI7jK9lM1nO3pQ5rS7tU9vW1xY3zA5bC7dE9fG1hI3jK" * 4
SMALL = "a1b2c3d4e5f6g7h8i9j0k1l2m3n4o5p6q7r8s9t0u1v2w3x4y5z6a7b8c9d0e1f2g3h4i5j6k7l8" * 2
LARGE = "A1B2C3D4E5F6G7H8J9K0L1M2N3P4Q5R6S7T8U9V0W1X2Y3Z4A5B6C7D8E9F0G1H2J3K4L5M6N7P8"
DIGITS = "0123456789abcdef" * 16
NUMBER = "1234567890" * 3
UUID = f"{DIGITS[:8]}-{DIGITS[:4]}-{DIGITS[:4]}-{DIGITS[:4]}-{DIGITS[:12]}"
TOKENS = [
    "bedrock-api-key-" + MIXED[:90],
    "AQ.Ab8" + MIXED[:47],
    "https://hook.eu1.make.com/" + SMALL[:32],
    "https://maker.ifttt.com/trigger/x/with/key/" + MIXED[:22],
    "https://open.feishu.cn/open-apis/bot/v2/hook/" + UUID,
    "https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key=" + UUID,
    "shptka_" + DIGITS[:32],
    "lin_oauth_" + DIGITS[:64],
    "figu_" + MIXED[:40],
    "sgp_" + MIXED[:64],
    "sgamp_user_" + LARGE[:26] + "_" + DIGITS[:64],
    "dt0s16." + LARGE[:8] + "." + LARGE[:64],
    "snyk_uat." + MIXED[:8] + "." + MIXED[:20] + "." + MIXED[:43],
    "xsmtpsib-" + DIGITS[:64] + "-" + MIXED[:16],
    "dp.st.dev." + MIXED[:43],
    "AGE-SECRET-KEY-PQ-1" + LARGE[:58],
    "hcxik_01" + SMALL[:56],
    "st." + UUID + "." + DIGITS[:32] + "." + DIGITS[:32],
    "ctx7sk-" + UUID,
    "depot_project_" + DIGITS[:64],
    "ucat_" + LARGE[:26],
    "nbp_" + MIXED[:36],
    "ddapp_" + MIXED[:34],
    "cxtp_" + MIXED[:30],
    "rootly_" + DIGITS[:64],
    "cnvca" + MIXED[:47],
    "dG9rO" + MIXED[:60] + "=",
    "AQE" + MIXED[:60] + "-" + MIXED[:40] + "=",
    "npg_" + MIXED[:12],
    "mdb_sa_sk_" + MIXED[:40],
    "CCDB1_" + MIXED[:22] + "_" + MIXED[:40],
    "standard_" + DIGITS[:256],
    "prod:happy-animal-123|" + MIXED[:60],
    "dbtc_" + MIXED[:42],
    "IGQV" + MIXED[:140],
    "WPL_AP1." + MIXED[:16] + "." + MIXED[:8] + "==",
    NUMBER[:15] + "|" + MIXED[:27],
    "M.C507_BL2.0.U." + MIXED[:160],
    "RWRTY0Iy" + MIXED[:200],
    "SWMKEY-1-" + MIXED[:43],
    "apify_api_" + MIXED[:36],
    "scp-live-" + DIGITS[:32],
    "ramp_tok_" + MIXED[:48],
    "secret_team_" + DIGITS[:32] + "." + MIXED[:32],
    "api_live." + MIXED[:11] + "." + MIXED[:32],
    "aph0_" + MIXED[:60],
    "v1:" + MIXED[:24] + ":" + MIXED[:24],
    "sec-c-" + MIXED[:48],
    "private_" + MIXED[:27] + "=",
    "os_v2_app_" + SMALL[:100],
    "KEY01" + LARGE[:27] + "_" + MIXED[:22],
    "nyk_v0_" + MIXED[:64],
    "cal_live_" + DIGITS[:32],
    "configcat-sdk-1/" + MIXED[:22] + "/" + MIXED[22:44],
    "secret_user_" + MIXED[:40],
    "dvc_server_" + MIXED[:40],
    "tr_pat_" + SMALL[:40],
    "testsk_" + MIXED[:32],
    "zpka_" + DIGITS[:32] + "_" + DIGITS[:8],
    "unkey_" + MIXED[:22],
    "kpat_" + MIXED[:49],
    "service:graph:" + MIXED[:22],
    "user:gh.me:" + MIXED[:22],
    "AIK_SECRET_" + MIXED[:64],
    "hawk." + MIXED[:20] + "." + MIXED[:20],
    "censys_" + MIXED[:8] + "_" + MIXED[:32],
    "vera01es-" + DIGITS[:128],
    "gb_api_" + MIXED[:40],
    "PMAT-" + LARGE[:26],
    "v4.local." + MIXED[:120],
    "k4.secret." + MIXED[:80],
    "ptr_" + MIXED[:43] + "=",
    "2" + MIXED[:26] + "_" + MIXED[:21],
    "xaat-" + UUID,
    "u123456-" + DIGITS[:24],
    "live_" + MIXED[:30],
    "00D" + MIXED[:12] + "!" + MIXED[:90],
    "sk_" + MIXED[:32],
    "pk_" + DIGITS[:34],
    "pk_prod_" + LARGE[:28],
    "dose" + DIGITS[:32],
    "11" + DIGITS[:32],
    "cu_" + DIGITS[:32],
    "ion_" + MIXED[:42],
    "0.A" + MIXED[:200],
    "A" * 21 + MIXED[:30] + "%3D" + MIXED[:50],
    DIGITS[:32] + "-" + DIGITS[:8] + "-" + DIGITS[:8],
    DIGITS[:10] + "msh" + DIGITS[:15] + "p1" + DIGITS[:5] + "jsn" + DIGITS[:12],
    DIGITS[:32] + "-" + UUID,
    "rel-" + UUID,
]
STORED = [
    "echo '{}' | gh secret set NAME",
    "echo {} | vercel env add KEY production",
    "echo -n '{}' | gcloud secrets create x --data-file=-",
    "printf '{}' | secret-tool store --label=x a b",
    "echo '{}' | pass insert -e x",
    "aws ssm put-parameter --name /x --type SecureString --value '{}'",
    "aws secretsmanager create-secret --name x --secret-string '{}'",
    "az keyvault secret set --vault-name v --name n --value {}",
    "security add-generic-password -a u -s s -w {}",
    "security unlock-keychain -p {} login.keychain",
    "redis-cli AUTH {}",
    "redis-cli CONFIG SET requirepass {}",
    "netlify env:set KEY {}",
    "doppler secrets set KEY={}",
    "vault kv put secret/x value={}",
    "aws configure set aws_session_token {}",
    "snmpget -v3 -X {} h",
    "STRIPE_KEY={}",
    "GITHUB_PAT={}",
    "DB_CREDENTIALS={}",
    "PresharedKey = {}abcdefghij",
    "<key>password</key><string>{}</string>",
    "cat > .pgpass <<EOF\nh:5432:db:u:{}\nEOF",
    "echo '{} with words' | sudo -S id",
    "psql -c \"ALTER USER u PASSWORD '{} with words'\"",
    "<password>{} with words</password>",
    "tool --password 'abc {} def'",
    "DB_PASSWORD='abc {} def' tool",
]
ORDINARY = [
    "sk_learn_model_selection_and_cross_validation",
    "live_reload_server_with_websocket_proxy",
    "secret_santa_generator_for_the_office_party",
    "private_methods_of_the_class=",
    "standard_deviation_of_the_whole_sample",
    "service:postgres:/var/lib/postgresql/data",
    "user:password in the documentation",
    "h:5432:ready",
    "v1:latest",
    "dev:up",
    "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    "echo 'some words' | sort",
    "vault kv get secret/x",
    "ssm get-parameter --name /x",
    "CACHE_KEY=v1-linux-" + DIGITS[:40],
    "tool --password-file 'a file with spaces'",
    DIGITS[:32],
    DIGITS[:40],
    DIGITS[:64],
    UUID,
    "sha512-" + MIXED[:86] + "==",
]


@pytest.fixture(scope="module")
def scrubber() -> SecretScrubber:
    return SecretScrubber(b"k" * 32)


@pytest.mark.parametrize("token", TOKENS)
@pytest.mark.parametrize("place", ["{}", "curl -H 'X: {}' h", 'say "{}"\n', "a\n{}\nb", "f('{}', x)"])
def test_a_token_is_replaced_wherever_it_stands(scrubber, token, place):
    found = scrubber.scrub({"request": {"line": place.format(token), "argv": ["x", token]}})
    assert token[-16:] not in json.dumps(found)


@pytest.mark.parametrize("line", STORED)
def test_what_is_put_into_a_store_is_replaced(scrubber, line):
    value = "q7WdZk3f9LmTq7WdZk3f"
    found = json.dumps(scrubber.scrub({"line": line.format(value)}))
    assert value not in found
    assert "with words" not in found


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_text_stays(scrubber, text):
    body = {"line": f"tool {text} x", "argv": ["tool", text]}
    assert scrubber.scrub(body) == body
