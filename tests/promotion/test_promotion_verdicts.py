"""Whole changes through the whole gate: honest ones reach review without any reason, broken ones stop for the right one."""

import base64
import gzip
import hashlib
import json

import pytest

REVIEW, HOLD, REFUSE, ROTATE = "human_review", "hold_for_explanation", "refuse", "refuse_and_rotate"


def codes(verdict):
    return {reason.code for reason in verdict.reasons}


def iam(double, edit):
    document = json.loads(json.dumps(double.IAM))
    edit(document["Statement"])
    return {"infra/iam/cart.json": double.text(document)}


def manifest(double, old, new):
    return {"infra/k8s/cart.yaml": double.MANIFEST.replace(old, new).encode()}


def secret(word):
    return "ghp_" + base64.b32encode(hashlib.sha256(word.encode()).digest()).decode()[:36]


def luhn(digits):
    total = sum(d - 9 if (d := int(c) * (1 + (i % 2 == 0))) > 9 else d for i, c in enumerate(reversed(digits)))
    return digits + str(-total % 10)


CARDS = "name,mail,card\n" + "".join(
    f"P{i},p{i}@shop{i}.test,{luhn(f'453201511283{i * 37 + 11:03d}')}\n" for i in range(12)
)

HONEST_FILES = {
    "small-edit": lambda d: None,
    "docs": lambda d: {"README.md": b"# orchard\n\nMore.\n"},
    "removed-file": lambda d: {"services/mail/app.py": None},
    "moved-file": lambda d: {"services/cart/prices.py": d.APP.encode(), "services/cart/app.py": None},
    "at-the-cap-of-paths": lambda d: {f"services/cart/r{i}.py": b"R = 1\n" for i in range(7)},
    "two-services": lambda d: {"services/mail/app.py": b"MAIL = 2\n", "services/find/app.py": b"FIND = 2\n"},
    "large-file-small-edit": lambda d: {"services/cart/long.py": b"X = 1\n" * 3000},
    "manifest-replicas": lambda d: manifest(d, "replicas: 2", "replicas: 3"),
    "manifest-comment-names-other-region": lambda d: manifest(d, "spec:\n  rep", "# not us-east-1\nspec:\n  rep"),
    "manifest-hardening": lambda d: manifest(d, "name: app,", "name: app, securityContext: {runAsNonRoot: true},"),
    "manifest-new-config": lambda d: {
        "infra/k8s/c.yaml": b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: cart-staging}\ndata: {A: b}\n"
    },
    "roles-reordered": lambda d: {
        "infra/authz/roles.json": d.text(
            {"roles": {"clerk": ["basket.read", "basket.refund"], "guest": ["basket.read"]}}
        )
    },
    "iam-action-removed": lambda d: iam(d, lambda s: s[0].update(Action="s3:getobject")),
    "iam-condition-added": lambda d: iam(d, lambda s: s[0].update(Condition={"Bool": {"aws:SecureTransport": "true"}})),
    "iam-resource-narrowed": lambda d: iam(d, lambda s: s[0].update(Resource="arn:aws:s3:::orchard/public/*")),
    "iam-deny-added": lambda d: iam(d, lambda s: s.append({"Effect": "Deny", "Action": "*", "Resource": "*"})),
    "iam-statement-split": lambda d: iam(
        d, lambda s: s.__setitem__(slice(0, 1), [{**s[0], "Action": a, "Sid": a[-4:]} for a in s[0]["Action"]])
    ),
    "sql-new-table": lambda d: {
        "db/0002.sql": b"-- never DROP TABLE baskets\nCREATE TABLE notes (id int, why text DEFAULT 'drop column x');\n"
    },
    "sql-additions": lambda d: {
        "db/0002.sql": b"BEGIN;\nALTER TABLE baskets ADD COLUMN note text;\nCREATE INDEX CONCURRENTLY i ON baskets (mail);\n"
        b"ALTER TABLE baskets ADD CONSTRAINT c FOREIGN KEY (id) REFERENCES notes (id) ON DELETE CASCADE;\nCOMMIT;\n"
    },
    "sql-backfill": lambda d: {
        "db/0002.sql": b"ALTER TABLE baskets ADD COLUMN s text;\nUPDATE baskets SET s = 'open' WHERE s IS NULL;\n"
    },
    "sql-comment-in-old-migration": lambda d: {"db/0001.sql": b"-- baskets\n" + d.SQL.encode()},
    "local-connection-string": lambda d: {
        "services/cart/dev.env": b"URL=postgres://user:password@localhost:5432/x\nKEY=AKIAIOSFODNN7EXAMPLE\n"
    },
    "secrets-by-reference": lambda d: {
        "services/cart/conf.py": b"import os\nPASSWORD = os.environ['DB_PASSWORD']\nsecret_name = 'cart-db-credentials'\n"
    },
    "lock-file-hashes": lambda d: {
        "services/cart/lock.txt": b"".join(
            b"p==1 --hash=sha256:%s\n" % hashlib.sha256(b"%d" % i).hexdigest().encode() for i in range(30)
        )
    },
    "synthetic-people": lambda d: {
        "services/cart/people.csv": "".join(
            f"T{i},t{i}@example.org,+44 7700 900{i:03d},4111111111111111\n" for i in range(30)
        ).encode()
    },
    "two-authors": lambda d: {"AUTHORS": b"Noor <noor@orchard.io>\nLena <lena@orchard.io>\n"},
    "unicode": lambda d: {"services/cart/words.py": "HELLO = 'Grüße, 你好'\n".encode()},
    "windows-newlines": lambda d: {"services/cart/w.py": b"A = 1\r\nB = 2\r\n"},
    "executable": lambda d: {"services/cart/run.sh": ("100755", b"#!/bin/sh\necho hi\n")},
    "json-settings": lambda d: {"services/cart/s.json": d.text({"region": "eu-north-1", "password_min_length": 12})},
}


@pytest.mark.parametrize("name", HONEST_FILES)
def test_an_honest_change_reaches_review(shared_shop, double, name):
    verdict = shared_shop.change(HONEST_FILES[name](double)).check()
    assert (verdict.outcome.word, codes(verdict)) == (REVIEW, set()), verdict.reasons


def honest(edit):
    return edit


HONEST_PARTS = {
    "gitlab": (lambda c, d: None, {"platform": "gitlab"}),
    "tested-the-commit-itself": (lambda c, d: c.claims.update(sha=c.content), {}),
    "compact-evidence": (lambda c, d: setattr(c, "promo", json.dumps(c.promo).encode()), {}),
    "refused-attempt-in-the-box": (lambda c, d: c.sandbox["egress"].update(denied=["telemetry.example.net:443"]), {}),
    "no-network-in-the-box": (lambda c, d: c.sandbox["egress"].update(allowlist=[], network="none"), {}),
    "another-kind-of-statement": (
        lambda c, d: c.statements.append({**c.statements[0], "predicateType": "https://spdx.dev/Document"}),
        {},
    ),
    "rollback-by-script": (
        lambda c, d: (
            c.promo.update(rollback="scripts/back cart 1.4.0"),
            c.statements[2]["predicate"].update(command="scripts/back cart 1.4.0"),
        ),
        {},
    ),
}


@pytest.mark.parametrize("name", HONEST_PARTS)
def test_honest_evidence_in_another_form_reaches_review(shared_shop, double, name):
    edit, options = HONEST_PARTS[name]
    case = shared_shop.change(**options)
    edit(case, double)
    verdict = case.check()
    assert (verdict.outcome.word, codes(verdict)) == (REVIEW, set()), verdict.reasons


def sql(line):
    return lambda d: {"db/0002.sql": line.encode() + b"\n"}


BROKEN_FILES = {
    "too-many-paths": ("blast.paths", lambda d: {f"services/cart/r{i}.py": b"R = 1\n" for i in range(8)}),
    "three-services": (
        "blast.services",
        lambda d: {f"services/{s}/app.py": b"X = 2\n" for s in ("mail", "find", "stock")},
    ),
    "move-across-services": (
        "blast.services",
        lambda d: {
            "services/mail/app.py": None,
            "services/find/m.py": b"MAIL = 1\n",
            "services/stock/app.py": b"S = 2\n",
        },
    ),
    "unlisted-service": (
        "blast.services",
        lambda d: {"services/new/app.py": b"N\n", "services/mail/app.py": b"M\n", "services/find/app.py": b"F\n"},
    ),
    "bytes": ("blast.bytes", lambda d: {"services/cart/big.py": b"".join(b"A%d = 1\n" % i for i in range(3000))}),
    "binary": ("blast.bytes", lambda d: {"services/cart/x.so": b"\x7fELF\0\0\1"}),
    "large-file-store": (
        "blast.bytes",
        lambda d: {
            "m.bin": b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"a" * 64 + b"\nsize 900000000\n"
        },
    ),
    "link-to-policy": (
        "blast.protected_path",
        lambda d: {"services/cart/p": ("120000", b"../../promotion/policy.json")},
    ),
    "link-out": ("blast.bytes", lambda d: {"services/cart/p": ("120000", b"/etc/passwd")}),
    "submodule": ("blast.submodule", lambda d: {"vendor": ("160000", "b" * 40)}),
    "policy": ("blast.protected_path", lambda d: {"promotion/policy.json": d.text({**d.POLICY, "flags": "x.json"})}),
    "owners": ("blast.protected_path", lambda d: {"promotion/owners.json": d.text({"humans": {}})}),
    "workflow": ("blast.protected_path", lambda d: {".github/workflows/x.yml": b"on: push\n"}),
    "workflow-in-other-case": ("blast.protected_path", lambda d: {".GitHub/workflows/x.yml": b"on: push\n"}),
    "nested-attributes": ("blast.protected_path", lambda d: {"services/cart/.gitattributes": b"* -diff\n"}),
    "code-owners-elsewhere": ("blast.protected_path", lambda d: {"docs/CODEOWNERS": b"* @x\n"}),
    "code-owners-removed": ("blast.protected_path", lambda d: {"CODEOWNERS": None}),
    "agent-settings": ("blast.protected_path", lambda d: {"services/cart/.claude/settings.json": b"{}\n"}),
    "iam-wildcard": ("blast.iam", lambda d: iam(d, lambda s: s[0].update(Action="s3:Get*"))),
    "iam-star": ("blast.iam", lambda d: iam(d, lambda s: s[0].update(Action="*"))),
    "iam-resource": ("blast.iam", lambda d: iam(d, lambda s: s[0].update(Resource="*"))),
    "iam-not-action": (
        "blast.iam",
        lambda d: iam(d, lambda s: s.append({"Effect": "Allow", "NotAction": "a:b", "Resource": "*"})),
    ),
    "iam-deny-removed": ("blast.iam", lambda d: iam(d, lambda s: s.pop(1))),
    "iam-deny-narrowed": ("blast.iam", lambda d: iam(d, lambda s: s[1].update(Action="s3:GetObject"))),
    "iam-elsewhere": ("blast.iam", lambda d: {"services/cart/p.json": d.text(d.IAM)}),
    "iam-managed-policy": (
        "blast.iam",
        lambda d: {"infra/iam/cart.json": d.text({**d.IAM, "ManagedPolicyArns": ["x"]})},
    ),
    "namespace": ("blast.region", lambda d: manifest(d, "cart-staging", "cart")),
    "no-namespace": ("blast.region", lambda d: manifest(d, "  namespace: cart-staging\n", "")),
    "region": ("blast.region", lambda d: manifest(d, "eu-north-1", "us-east-1")),
    "second-document": (
        "blast.region",
        lambda d: manifest(d, "spec:\n  rep", "---\napiVersion: v1\nkind: X\nmetadata: {}\nspec:\n  rep"),
    ),
    "manifest-elsewhere": ("blast.region", lambda d: {"deploy.yaml": d.MANIFEST.replace("-staging", "").encode()}),
    "manifest-twice-a-key": (
        "blast.region",
        lambda d: manifest(d, "namespace: cart-staging", "namespace: prod\n  namespace: cart-staging"),
    ),
    "service-account": ("blast.authz", lambda d: manifest(d, "serviceAccountName: cart", "serviceAccountName: admin")),
    "privileged": (
        "blast.authz",
        lambda d: manifest(d, "name: app,", "name: app, securityContext: {privileged: true},"),
    ),
    "role-binding": (
        "blast.authz",
        lambda d: {
            "infra/k8s/r.yaml": b"apiVersion: x/v1\nkind: RoleBinding\nmetadata: {name: r, namespace: cart-staging}\n"
        },
    ),
    "kubernetes-secret": (
        "blast.secret_rotation",
        lambda d: {"infra/k8s/s.yaml": b"apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: cart-staging}\n"},
    ),
    "role-widened": ("blast.authz", lambda d: {"infra/authz/roles.json": d.text({"roles": {"guest": ["*"]}})}),
    "secret-rotation": (
        "blast.secret_rotation",
        lambda d: {"infra/secrets/rotation.json": d.text({"db": {"days": 31}})},
    ),
    "terraform": ("blast.cannot_tell", lambda d: {"main.tf": b'resource "x" "y" {}\n'}),
    "helm": ("blast.cannot_tell", lambda d: {"chart/templates/a.yaml": b"kind: {{ .Values.kind }}\n"}),
    "cloud-formation": ("blast.cannot_tell", lambda d: {"stack.yaml": b"AWSTemplateFormatVersion: x\nResources: {}\n"}),
    "django": ("blast.schema", lambda d: {"db/migrations/0002_x.py": b"class Migration:\n    operations = []\n"}),
    "alembic-drop": (
        "blast.schema",
        lambda d: {"db/x.py": b"from alembic import op\ndown_revision = 'a'\ndef upgrade():\n    op.drop_table('x')\n"},
    ),
    "sql-drop-in-pieces": ("blast.schema", sql("ALTER TABLE baskets\n dRoP /* x */ COLUMN mail;")),
    "sql-truncate": ("blast.schema", sql("TRUNCATE baskets;")),
    "sql-delete": ("blast.schema", sql("DELETE FROM baskets WHERE true;")),
    "sql-type": ("blast.schema", sql("ALTER TABLE baskets ALTER COLUMN cents TYPE int;")),
    "sql-rename": ("blast.schema", sql("ALTER TABLE baskets RENAME TO b;")),
    "sql-dynamic": ("blast.schema", sql("DO $$ BEGIN EXECUTE 'DROP TABLE baskets'; END $$;")),
    "sql-executable-comment": ("blast.schema", sql("/*!50000 DROP TABLE baskets */;")),
    "sql-client-command": ("blast.schema", sql("\\i other.sql")),
    "sql-in-a-query": (
        "blast.schema",
        sql("CREATE TABLE y AS WITH d AS (DELETE FROM baskets RETURNING *) SELECT * FROM d;"),
    ),
    "sql-function": ("blast.schema", sql("CREATE FUNCTION f() RETURNS void AS $$ DROP TABLE x $$ LANGUAGE sql;")),
    "sql-update-all": ("blast.schema", sql("UPDATE baskets SET mail = '';")),
    "sql-old-migration-removed": ("blast.schema", lambda d: {"db/0001.sql": None}),
    "sql-old-migration-edited": (
        "blast.schema",
        lambda d: {"db/0001.sql": d.SQL.replace("mail text NOT NULL, ", "").encode()},
    ),
    "sql-nonsense": ("blast.schema", sql("ALTR TABL x;")),
    "sql-grant": ("blast.authz", sql("GRANT ALL ON baskets TO public;")),
    "sql-row-security": ("blast.authz", sql("ALTER TABLE baskets DISABLE ROW LEVEL SECURITY;")),
    "connection-string": (
        "secrets.in_change",
        lambda d: {"x.env": b"U=postgres://cart:8f2c0d1e9b7a@db.prod.orchard.internal/x\n"},
    ),
    "token": ("secrets.in_change", lambda d: {"x.py": f"T = '{secret('a')}'\n".encode()}),
    "token-in-base64": (
        "secrets.in_change",
        lambda d: {"x.py": b"T = '" + base64.b64encode(("t=" + secret("b")).encode()) + b"'\n"},
    ),
    "token-in-gzip": ("secrets.in_change", lambda d: {"x.gz": gzip.compress(secret("c").encode(), mtime=0)}),
    "packed-and-not-read": ("secrets.in_change", lambda d: {"x.7z": b"7z\xbc\xaf\x27\x1c" + bytes(range(64))}),
    "token-in-pieces": (
        "secrets.in_change",
        lambda d: {"x.py": f"T = '{secret('d')[:9]}' + '{secret('d')[9:]}'\n".encode()},
    ),
    "token-over-two-lines": (
        "secrets.in_change",
        lambda d: {"x.py": f"T = '{secret('g')[:9]}' + \\\n    '{secret('g')[9:]}'\n".encode()},
    ),
    "token-in-utf16": ("secrets.in_change", lambda d: {"x.txt": f"t={secret('e')}\n".encode("utf-16")}),
    "key-file": ("secrets.in_change", lambda d: {"ops/id_ed25519": b"words\n"}),
    "cards": ("pii.in_change", lambda d: {"t.csv": CARDS.encode()}),
    "people": (
        "pii.in_change",
        lambda d: {
            "t.json": json.dumps(
                [{"mail": f"p{i}@post{i}.test", "tel": f"+44 7911 12{i:04d}"} for i in range(9)], indent=1
            ).encode()
        },
    ),
}


@pytest.mark.parametrize("name", BROKEN_FILES)
def test_a_broken_change_is_refused_for_that_reason(shared_shop, double, name):
    code, files = BROKEN_FILES[name]
    verdict = shared_shop.change(files(double)).check()
    assert verdict.outcome.word == REFUSE, verdict
    assert code in codes(verdict), verdict.reasons


BROKEN_PARTS = {
    # gate 0
    "prod-label": (ROTATE, "env.class_not_allowed", lambda c, d: c.sandbox.update(env_class="prod")),
    "ci-label": (REFUSE, "env.class_not_allowed", lambda c, d: c.sandbox.update(env_class="trusted_ci")),
    "ci-label-with-credentials": (
        ROTATE,
        "env.class_not_allowed",
        lambda c, d: (
            c.sandbox.update(env_class="trusted_ci"),
            c.sandbox["probe"].update(credential_env_names=["TOKEN"]),
        ),
    ),
    "attested-by-sandbox": (REFUSE, "env.class_not_allowed", lambda c, d: c.promo.update(env_class_attested="sandbox")),
    "no-token": (REFUSE, "identity.missing", lambda c, d: c.extra.update({"ci.jwt": None})),
    "stranger": (REFUSE, "identity.bad_signature", lambda c, d: setattr(c, "sign", d.ISSUERS["stranger"].token)),
    "stranger-under-right-kid": (
        REFUSE,
        "identity.bad_signature",
        lambda c, d: setattr(c, "sign", lambda k: d.ISSUERS["stranger"].token(k, {"kid": d.ISSUERS["github"].kid})),
    ),
    "fork": (
        REFUSE,
        "identity.wrong_claims",
        lambda c, d: c.claims.update(repository_id="99", repository_owner_id="98"),
    ),
    "own-workflow": (
        REFUSE,
        "identity.wrong_claims",
        lambda c, d: c.claims.update(job_workflow_ref=c.claims["workflow_ref"]),
    ),
    "other-commit-tested": (REFUSE, "identity.wrong_claims", lambda c, d: c.claims.update(sha=c.shop.base)),
    "audience-of-others": (
        REFUSE,
        "identity.not_bound",
        lambda c, d: c.claims.update(aud="https://github.com/orchard"),
    ),
    "audience-as-list": (
        REFUSE,
        "identity.not_bound",
        lambda c, d: setattr(c, "sign", lambda k: d.ISSUERS["github"].token({**k, "aud": [k["aud"]]})),
    ),
    "old-token": (
        REFUSE,
        "identity.expired",
        lambda c, d: c.claims.update(iat=d.NOW - 90_000, nbf=d.NOW - 90_300, exp=d.NOW - 89_000),
    ),
    "token-of-tomorrow": (REFUSE, "identity.expired", lambda c, d: c.claims.update(iat=d.NOW + 900, exp=d.NOW + 999)),
    "issued-after-its-end": (REFUSE, "identity.expired", lambda c, d: c.claims.update(exp=c.issued - 1)),
    "finished-after-the-token": (
        REFUSE,
        "identity.expired",
        lambda c, d: c.statements[0]["predicate"]["runDetails"]["metadata"].update(finishedOn=d.instant(d.NOW)),
    ),
    "other-run": (REFUSE, "identity.wrong_claims", lambda c, d: c.promo.update(trusted_ci_run_id="1")),
    "other-pull-request": (
        REFUSE,
        "identity.wrong_claims",
        lambda c, d: c.statements[0]["predicate"]["buildDefinition"]["externalParameters"].update(pullRequest=4711),
    ),
    # gate 1 and 2
    "credential-store": (
        REFUSE,
        "secrets.reachable",
        lambda c, d: c.sandbox["probe"].update(readable_credential_stores=["~/.aws"]),
    ),
    "credential-variable": (
        REFUSE,
        "secrets.reachable",
        lambda c, d: c.sandbox["probe"].update(credential_env_names=["DB_URL"]),
    ),
    "no-report": (REFUSE, "secrets.reachable", lambda c, d: c.extra.update({"sandbox.json": None})),
    "secret-in-recorded-output": (REFUSE, "secrets.reachable", lambda c, d: c.sandbox.update(outputs=[secret("out")])),
    "people-in-prompt-pack": (REFUSE, "pii.in_change", lambda c, d: c.sandbox.update(prompt_pack=[CARDS])),
    "secret-in-log-file": (
        REFUSE,
        "secrets.reachable",
        lambda c, d: c.extra.update({"logs/run.txt": secret("log").encode()}),
    ),
    "no-allowlist": (REFUSE, "egress.no_allowlist", lambda c, d: c.sandbox["egress"].pop("allowlist")),
    "empty-allowlist": (REFUSE, "egress.no_allowlist", lambda c, d: c.sandbox["egress"].update(allowlist=[])),
    "star": (REFUSE, "egress.too_wide", lambda c, d: c.sandbox["egress"].update(allowlist=["*"])),
    "range": (REFUSE, "egress.too_wide", lambda c, d: c.sandbox["egress"].update(allowlist=["0.0.0.0/0:443"])),
    "other-host": (
        REFUSE,
        "egress.too_wide",
        lambda c, d: c.sandbox["egress"]["allowlist"].append("paste.example.net:443"),
    ),
    "metadata-attempt": (
        REFUSE,
        "egress.violation",
        lambda c, d: c.sandbox["egress"].update(denied=["169.254.169.254:80"]),
    ),
    "wrote-outside": (REFUSE, "files.outside", lambda c, d: c.sandbox.update(files={"writes_outside": ["~/.bashrc"]})),
    # gate 3
    "ci-failed": (
        REFUSE,
        "ci.failed",
        lambda c, d: c.statements[1]["predicate"].update(result="FAILED", failedTests=["unit"]),
    ),
    "ci-warned": (REFUSE, "ci.failed", lambda c, d: c.statements[1]["predicate"].update(result="WARNED")),
    "ci-ran-no-test": (
        REFUSE,
        "ci.not_run",
        lambda c, d: c.statements[1]["predicate"].update(passedTests=["secret-scan"]),
    ),
    "ci-result-missing": (REFUSE, "ci.not_run", lambda c, d: c.statements.pop(1)),
    "statement-of-other-commit": (
        REFUSE,
        "sha.statement_mismatch",
        lambda c, d: c.statements[1]["subject"][0]["digest"].update(gitCommit="e" * 40),
    ),
    "sandbox-of-other-commit": (REFUSE, "sha.statement_mismatch", lambda c, d: c.sandbox.update(git_sha="e" * 40)),
    "sandbox-failed": (HOLD, "delta.unexplained", lambda c, d: c.sandbox.update(result="fail")),
    "sandbox-skipped": (REFUSE, "sandbox.not_run", lambda c, d: c.sandbox.update(result="skipped")),
    "sandbox-without-digest": (REFUSE, "digest.format", lambda c, d: c.sandbox.pop("artifact")),
    "bytes-lost": (REFUSE, "digest.mismatch", lambda c, d: c.artifacts.update(trusted=None)),
    "bytes-swapped": (REFUSE, "digest.mismatch", lambda c, d: c.artifacts.update(trusted=b"other")),
    "digest-of-nothing": (
        REFUSE,
        "digest.format",
        lambda c, d: c.promo.update(sandbox_artifact_sha256=hashlib.sha256(b"").hexdigest()),
    ),
    "digest-in-capitals": (
        REFUSE,
        "digest.format",
        lambda c, d: c.promo.update(sandbox_artifact_sha256=c.promo["sandbox_artifact_sha256"].upper()),
    ),
    "digest-invented": (
        REFUSE,
        "digest.mismatch",
        lambda c, d: c.promo.update(trusted_ci_artifact_sha256=hashlib.sha256(b"x").hexdigest()),
    ),
    "base-pinned": (REFUSE, "sha.not_parent", lambda c, d: c.promo.update(git_sha=c.shop.base)),
    "short-id": (REFUSE, "sha.format", lambda c, d: c.promo.update(git_sha=c.content[:12])),
    "long-id": (REFUSE, "sha.format", lambda c, d: c.promo.update(git_sha=c.content + "0" * 24)),
    "no-evidence": (REFUSE, "evidence.stale", lambda c, d: setattr(c, "entry", {})),
    "evidence-link": (
        REFUSE,
        "evidence.not_a_file",
        lambda c, d: setattr(c, "entry", {"promotion.json": ("120000", b"flags.json")}),
    ),
    "evidence-executable": (
        REFUSE,
        "evidence.not_a_file",
        lambda c, d: setattr(c, "entry", {"promotion.json": ("100755", d.text(c.promo))}),
    ),
    "evidence-in-other-case": (
        REFUSE,
        "evidence.stale",
        lambda c, d: setattr(c, "entry", {"Promotion.json": d.text(c.promo)}),
    ),
    "evidence-and-code": (
        REFUSE,
        "sha.content_after_pin",
        lambda c, d: setattr(c, "entry", {"promotion.json": d.text(c.promo), "services/cart/app.py": b"x\n"}),
    ),
    "key-twice": (
        REFUSE,
        "evidence.malformed",
        lambda c, d: setattr(c, "promo", d.text(c.promo)[:-2] + b',"owner":"@noor"}'),
    ),
    "byte-order-mark": (
        REFUSE,
        "evidence.malformed",
        lambda c, d: setattr(c, "promo", b"\xef\xbb\xbf" + d.text(c.promo)),
    ),
    "key-of-its-own": (REFUSE, "evidence.malformed", lambda c, d: c.promo.update(approved="yes")),
    "key-missing": (REFUSE, "evidence.malformed", lambda c, d: c.promo.pop("owner")),
    "null": (REFUSE, "evidence.placeholder", lambda c, d: c.promo.update(sandbox_run_id=None)),
    "invisible": (REFUSE, "evidence.placeholder", lambda c, d: c.promo.update(owner="\u3164\u200b")),
    "todo": (REFUSE, "evidence.placeholder", lambda c, d: c.promo.update(feature_flag=" ToDo ")),
    # gate 4, the flag
    "flag-unknown": (REFUSE, "flag.missing", lambda c, d: c.promo.update(feature_flag="agent-none-such")),
    "flag-of-before": (REFUSE, "flag.missing", lambda c, d: c.promo.update(feature_flag="old-flag")),
    # gate 5
    "owner-bot": (REFUSE, "owner.unknown", lambda c, d: c.promo.update(owner="@cart-bot")),
    "owner-left": (REFUSE, "owner.unknown", lambda c, d: c.promo.update(owner="@lena")),
    "owner-is-author": (REFUSE, "owner.unknown", lambda c, d: c.promo.update(owner="@agent")),
    "owner-lookalike": (REFUSE, "owner.unknown", lambda c, d: c.promo.update(owner="@n\u043eor")),
    "owner-not-applicable": (REFUSE, "owner.unknown", lambda c, d: c.promo.update(owner="N/A")),
    "rollback-words": (REFUSE, "rollback.not_a_command", lambda c, d: c.promo.update(rollback="ask the model")),
    "rollback-shell": (REFUSE, "rollback.not_a_command", lambda c, d: c.promo.update(rollback=d.ROLLBACK + "; true")),
    "rollback-other-service": (
        REFUSE,
        "rollback.not_a_command",
        lambda c, d: c.promo.update(rollback="scripts/back pay 1"),
    ),
    "rehearsal-missing": (REFUSE, "rollback.unproven", lambda c, d: c.statements.pop(2)),
    "rehearsal-elsewhere": (
        REFUSE,
        "rollback.unproven",
        lambda c, d: c.statements[2]["predicate"].update(environment="laptop"),
    ),
    "rehearsal-half": (
        REFUSE,
        "rollback.unproven",
        lambda c, d: c.statements[2]["predicate"].update(treeAfter="a" * 40),
    ),
    "rehearsal-failed": (REFUSE, "rollback.unproven", lambda c, d: c.statements[2]["predicate"].update(exitCode=1)),
    "rehearsal-of-other-tree": (
        REFUSE,
        "rollback.unproven",
        lambda c, d: c.statements[2]["predicate"].update(treeBefore="a" * 40, treeAfter="a" * 40),
    ),
}


@pytest.mark.parametrize("name", BROKEN_PARTS)
def test_broken_evidence_stops_for_that_reason(shared_shop, double, name):
    word, code, edit = BROKEN_PARTS[name]
    case = shared_shop.change()
    edit(case, double)
    verdict = case.check()
    assert verdict.outcome.word == word, verdict.reasons
    assert code in codes(verdict), verdict.reasons


FLAGS = {
    "on": {"defaultVariant": "on"},
    "off-means-on": {"variants": {"on": False, "off": True}},
    "no-default": {"defaultVariant": None},
    "targeted": {"targeting": {"if": [True, "on", "off"]}},
    "split": {"targeting": {"fractional": [["on", 1], ["off", 99]]}},
    "by-reference": {"targeting": {"$ref": "rule"}},
    "unknown-member": {"rollout": 100},
}


@pytest.mark.parametrize("name", FLAGS)
def test_a_flag_that_can_be_on_for_somebody_is_refused(shared_shop, double, name):
    number = shared_shop.count + 1
    flags = {"flags": {"old-flag": double.flag(), f"agent-{number}": double.flag(**FLAGS[name])}}
    verdict = shared_shop.change({"flags.json": double.text(flags)}).check()
    assert (verdict.outcome.word, codes(verdict)) == (REFUSE, {"flag.not_off"})


def test_turning_another_flag_on_is_refused(shared_shop, double):
    number = shared_shop.count + 1
    flags = {"flags": {"old-flag": double.flag("on"), f"agent-{number}": double.flag()}}
    verdict = shared_shop.change({"flags.json": double.text(flags)}).check()
    assert codes(verdict) == {"flag.not_off"}


def test_different_bytes_are_held_with_the_members_that_differ(shared_shop, double):
    case = shared_shop.change()
    case.artifacts["sandbox"] = double.tar_of({**case.files, "services/cart/app.py": b"other\n"}, "services/cart")
    digest = hashlib.sha256(case.artifacts["sandbox"]).hexdigest()
    case.sandbox["artifact"]["sha256"] = case.promo["sandbox_artifact_sha256"] = digest
    verdict = case.check()
    assert (verdict.outcome.word, codes(verdict)) == (HOLD, {"digest.differ", "delta.unexplained"})
    assert any("services/cart/app.py" in reason.found for reason in verdict.reasons)


def test_a_secret_removed_again_in_the_next_commit_is_still_found(shared_shop, double):
    files = {**shared_shop.files, "x.env": f"T={secret('early')}\n".encode()}
    early = shared_shop.objects.commit(shared_shop.objects.tree(files), [shared_shop.base])
    verdict = shared_shop.change(parents=[early]).check()
    assert (verdict.outcome.word, codes(verdict)) == (REFUSE, {"secrets.in_change"})


def test_what_was_not_read_is_refused_with_a_way_out_and_not_rotated(shared_shop, double):
    _, change = BROKEN_FILES["packed-and-not-read"]
    files = {**shared_shop.files, **change(double)}
    early = shared_shop.objects.commit(shared_shop.objects.tree(files), [shared_shop.base])
    verdict = shared_shop.change(parents=[early]).check()
    (found,) = (item for item in verdict.reasons if item.code == "secrets.in_change")
    assert "cannot tell: packed as 7z" in found.found
    assert "rotate" not in found.next_step


def test_a_secret_in_a_commit_message_is_found(shared_shop):
    early = shared_shop.objects.commit(shared_shop.base_tree, [shared_shop.base], message=f"use {secret('msg')}")
    assert "secrets.in_change" in codes(shared_shop.change(parents=[early]).check())


def test_code_pushed_on_top_of_the_evidence_is_refused(shared_shop, double):
    case = shared_shop.change().write()
    later = {**case.files, "promotion.json": double.text(case.promo), "services/cart/app.py": b"evil\n"}
    case.head = shared_shop.objects.commit(shared_shop.objects.tree(later), [case.head])
    verdict = case.check()
    assert {"sha.not_parent", "sha.content_after_pin"} <= codes(verdict)


def test_without_evidence_it_is_a_dry_run_that_never_passes(shared_shop, double):
    from ringfence.promotion.check import check

    case = shared_shop.change().write()
    verdict = check(str(shared_shop.git_dir), "main", case.head, None, None, at=double.NOW)
    assert verdict.dry_run
    assert verdict.outcome.word == REFUSE
    assert {"identity.missing", "ci.not_run"} <= codes(verdict)
    assert not codes(verdict) & {"blast.paths", "owner.unknown", "secrets.in_change"}


def test_every_reason_says_what_was_asked_found_and_from_where(shared_shop):
    verdict = shared_shop.change({"services/cart/x.so": b"\0"}).check()
    for reason in verdict.to_json()["reasons"]:
        assert set(reason) == {"code", "gate", "asked", "found", "from", "next"}
        assert all(str(value) for value in reason.values())
