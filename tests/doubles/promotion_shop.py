"""A small shop whose repository, evidence and trust files are made in memory: one honest change that tests then break.

Git objects are written directly (no git process), so that trees git would refuse can be made too.
"""

import base64
import copy
import datetime as dt
import hashlib
import io
import json
import tarfile
import zlib
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

NOW = 1_790_000_000
GITHUB = "https://token.actions.githubusercontent.com"
GITLAB = "https://gitlab.example.org"
WORKFLOW = "orchard/trusted/.github/workflows/promotion.yml@refs/heads/main"
ROLLBACK = "git revert --no-edit -m 1 {merge}"
ARTIFACT = "cart.tar"

POLICY = {
    "version": 1,
    "evidence_file": "promotion.json",
    "artifact": {"name": ARTIFACT, "path": "services/cart", "reproducible": True},
    "services": {name: [f"services/{name}/**"] for name in ("cart", "stock", "mail", "find")},
    "limits": {"paths": 8, "services": 2, "added_bytes": 20_000},
    "allowed": {"regions": ["eu-north-1"], "namespaces": ["cart-staging"]},
    "protected_paths": ["CODEOWNERS", "promotion/**"],
    "kinds": {
        "iam": ["infra/iam/**"],
        "manifests": ["infra/k8s/**"],
        "sql": ["db/**"],
        "authz": ["infra/authz/**"],
        "secret_rotation": ["infra/secrets/**"],
    },
    "flags": "flags.json",
    "owners": "promotion/owners.json",
    "rollback_commands": [ROLLBACK, "scripts/back {service} {previous}"],
    "egress": {"allowlist_required": True, "registry_hosts": ["packages.example.org"]},
}
OWNERS = {
    "humans": {
        "@noor": {"name": "Noor", "channel": "#cart", "until": "2099-01-01"},
        "@lena": {"name": "Lena", "channel": "#cart", "until": "2020-01-01"},
        "@agent": {"name": "Agent", "channel": "#cart", "until": "2099-01-01"},
    },
    "not_humans": ["@cart-bot"],
}
IAM = {
    "Version": "2012-10-17",
    "Statement": [
        {
            "Sid": "A",
            "Effect": "Allow",
            "Action": ["s3:GetObject", "s3:ListBucket"],
            "Resource": "arn:aws:s3:::orchard/*",
        },
        {"Effect": "Deny", "Action": "s3:*", "Resource": "arn:aws:s3:::orchard/private/*"},
    ],
}
MANIFEST = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: cart
  namespace: cart-staging
  labels: {app: cart, topology.kubernetes.io/region: eu-north-1}
spec:
  replicas: 2
  template:
    spec:
      serviceAccountName: cart
      containers: [{name: app, image: "registry.example.org/cart:1.0"}]
"""
APP = "PRICES = {'apple': 3}\n\n\ndef price(name):\n    return PRICES[name]\n"
SQL = "CREATE TABLE baskets (id bigint PRIMARY KEY, mail text NOT NULL, cents bigint NOT NULL);\n"


def text(value):
    return (json.dumps(value, indent=1) + "\n").encode()


def flag(default="off", **more):
    return {"state": "ENABLED", "variants": {"on": True, "off": False}, "defaultVariant": default, **more}


def base_files():
    return {
        "README.md": b"# orchard\n",
        "services/cart/app.py": APP.encode(),
        "services/cart/test_app.py": b"from app import price\n\n\ndef test_price():\n    assert price('apple') == 3\n",
        "services/stock/app.py": b"STOCK = 1\n",
        "services/mail/app.py": b"MAIL = 1\n",
        "services/find/app.py": b"FIND = 1\n",
        "infra/iam/cart.json": text(IAM),
        "infra/k8s/cart.yaml": MANIFEST.encode(),
        "infra/authz/roles.json": text(
            {"roles": {"guest": ["basket.read"], "clerk": ["basket.read", "basket.refund"]}}
        ),
        "infra/secrets/rotation.json": text({"db": {"days": 30}}),
        "db/0001.sql": SQL.encode(),
        "flags.json": text({"flags": {"old-flag": flag()}}),
        "CODEOWNERS": b"* @noor\n",
        "promotion/policy.json": text(POLICY),
        "promotion/owners.json": text(OWNERS),
        "scripts/back": ("100755", b"#!/bin/sh\nexit 0\n"),
        "promotion.json": text({"git_sha": "0" * 40}),
    }


class Objects:
    """Writes loose objects of one repository."""

    def __init__(self, git_dir: Path):
        self.git_dir = git_dir
        for name in ("objects", "refs/heads"):
            (git_dir / name).mkdir(parents=True, exist_ok=True)
        (git_dir / "HEAD").write_text("ref: refs/heads/main\n")
        (git_dir / "config").write_text("[core]\n\trepositoryformatversion = 0\n\tbare = true\n")

    def write(self, kind: str, body: bytes) -> str:
        raw = f"{kind} {len(body)}".encode() + b"\0" + body
        oid = hashlib.sha1(raw).hexdigest()
        path = self.git_dir / "objects" / oid[:2] / oid[2:]
        if not path.exists():
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(zlib.compress(raw, 1))
        return oid

    def tree(self, files: dict) -> str:
        folders, entries = {}, {}
        for path, value in files.items():
            first, _, rest = path.partition("/")
            if rest:
                folders.setdefault(first, {})[rest] = value
            else:
                mode, body = value if isinstance(value, tuple) else ("100644", value)
                entries[first] = (mode, body if mode == "160000" else self.write("blob", body))
        for name, inner in folders.items():
            entries[name] = ("40000", self.tree(inner))
        return self.raw_tree([(mode, name.encode(), oid) for name, (mode, oid) in entries.items()])

    def raw_tree(self, entries: list, *, in_order: bool = True) -> str:
        if in_order:
            entries = sorted(entries, key=lambda e: e[1] + (b"/" if e[0] == "40000" else b""))
        return self.write("tree", b"".join(m.encode() + b" " + n + b"\0" + bytes.fromhex(o) for m, n, o in entries))

    def commit(self, tree: str, parents: list, *, name="Agent", message="change", when=NOW - 4000) -> str:
        who = f"{name} <{name.lower()}@orchard.example> {when} +0000"
        lines = [
            f"tree {tree}",
            *(f"parent {p}" for p in parents),
            f"author {who}",
            f"committer {who}",
            "",
            message,
            "",
        ]
        return self.write("commit", "\n".join(lines).encode())

    def ref(self, name: str, oid: str):
        path = self.git_dir / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(oid + "\n")


def b64(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


class Issuer:
    """A token issuer with one RSA key."""

    def __init__(self, name: str):
        self.name = name
        self.key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.kid = hashlib.sha256(name.encode()).hexdigest()[:16]

    def jwk(self) -> dict:
        numbers = self.key.public_key().public_numbers()
        size = (numbers.n.bit_length() + 7) // 8
        return {
            "kty": "RSA",
            "use": "sig",
            "alg": "RS256",
            "kid": self.kid,
            "n": b64(numbers.n.to_bytes(size, "big")),
            "e": "AQAB",
        }

    def token(self, claims: dict, header: dict | None = None) -> bytes:
        head = {"alg": "RS256", "typ": "JWT", "kid": self.kid, **(header or {})}
        body = f"{b64(json.dumps(head).encode())}.{b64(json.dumps(claims).encode())}"
        return f"{body}.{b64(self.key.sign(body.encode(), padding.PKCS1v15(), SHA256()))}".encode()


ISSUERS = {"github": Issuer("github"), "gitlab": Issuer("gitlab"), "stranger": Issuer("stranger")}
PEOPLE = {name: Ed25519PrivateKey.generate() for name in ("host", "gate", "Imre", "Agent")}
ROLES = {"host": ["ci"], "gate": ["gate"], "Imre": ["explainer", "break_glass"], "Agent": ["explainer"]}


def pem(name: str) -> bytes:
    return PEOPLE[name].private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def trust_files() -> dict:
    issuers = [
        {
            "platform": "github",
            "issuer": GITHUB,
            "jwks": "jwks-github.json",
            "algorithms": ["RS256"],
            "require": {
                "repository_id": "11",
                "repository_owner_id": "22",
                "job_workflow_ref": WORKFLOW,
                "runner_environment": "github-hosted",
            },
        },
        {
            "platform": "gitlab",
            "issuer": GITLAB,
            "jwks": "jwks-gitlab.json",
            "algorithms": ["RS256"],
            "require": {"project_id": "33", "ref_path": "refs/heads/main", "ref_protected": "true"},
        },
    ]
    keys = [
        {
            "keyid": name,
            "name": name,
            "roles": ROLES[name],
            "public_key": base64.b64encode(key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)).decode(),
        }
        for name, key in PEOPLE.items()
    ]
    return {
        "issuers.json": {"audience_prefix": "promotion+sha256:", "max_age_seconds": 86_400, "issuers": issuers},
        "keys.json": {"keys": keys},
        **{f"jwks-{name}.json": {"keys": [ISSUERS[name].jwk()]} for name in ("github", "gitlab")},
    }


def instant(when: int) -> str:
    return dt.datetime.fromtimestamp(when, dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def tar_of(files: dict, folder: str) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for path in sorted(files):
            value = files[path]
            body = value[1] if isinstance(value, tuple) else value
            if path.startswith(folder) and isinstance(body, bytes):
                info = tarfile.TarInfo(path)
                info.size = len(body)
                archive.addfile(info, io.BytesIO(body))
    return out.getvalue()


class Shop:
    """One repository with a base; ``change`` begins an honest change on it."""

    def __init__(self, folder: Path, policy: dict | None = None, **more_files):
        self.folder = folder
        self.git_dir = folder / "shop.git"
        self.objects = Objects(self.git_dir)
        self.files = base_files()
        if policy is not None:
            self.files["promotion/policy.json"] = text(policy)
        self.files.update(more_files)
        self.root = self.objects.commit(
            self.objects.tree({"README.md": b"# orchard\n"}), [], name="Noor", message="start"
        )
        self.base_tree = self.objects.tree(self.files)
        self.base = self.objects.commit(self.base_tree, [self.root], name="Noor", message="base")
        self.objects.ref("refs/heads/main", self.base)
        self.trust = folder / "trust"
        self.trust.mkdir()
        for name, value in trust_files().items():
            (self.trust / name).write_bytes(text(value))
        self.count = 0

    def change(self, files: dict | None = None, **options) -> "Case":
        self.count += 1
        return Case(self, self.count, files, **options)


class Case:
    """An honest change whose parts may be altered before ``write``: files, promo, sandbox, statements, claims, token."""

    def __init__(
        self,
        shop: Shop,
        number: int,
        files: dict | None,
        *,
        platform="github",
        parents=None,
        author="Agent",
        with_flag=True,
    ):
        self.shop, self.number, self.platform = shop, number, platform
        self.flag = f"agent-{number}"
        self.files = copy.copy(shop.files)
        if with_flag:
            self.files["flags.json"] = text({"flags": {"old-flag": flag(), self.flag: flag()}})
        changed = {"services/cart/app.py": APP.replace("3", "4").encode()} if files is None else files
        for path, value in changed.items():
            if value is None:
                self.files.pop(path)
            else:
                self.files[path] = value
        objects = shop.objects
        self.content = objects.commit(
            objects.tree(self.files), parents or [shop.base], name=author, message="the change"
        )
        self.tested = objects.commit(objects.tree(self.files), [shop.base, self.content], name="Forge", message="merge")
        self.artifacts = {run: tar_of(self.files, "services/cart") for run in ("sandbox", "trusted")}
        digest = hashlib.sha256(self.artifacts["trusted"]).hexdigest()
        self.run_id = str(9000 + number)
        self.issued = NOW - 600
        self.sandbox = {
            "run_id": f"box-{number}",
            "env_class": "sandbox",
            "git_sha": self.content,
            "result": "pass",
            "artifact": {"name": ARTIFACT, "sha256": digest},
            "egress": {"allowlist": ["packages.example.org:443"], "denied": []},
            "probe": {"readable_credential_stores": [], "credential_env_names": []},
        }
        self.promo = {
            "git_sha": self.content,
            "sandbox_run_id": f"box-{number}",
            "sandbox_artifact_sha256": digest,
            "trusted_ci_run_id": self.run_id,
            "trusted_ci_artifact_sha256": digest,
            "env_class_attested": "trusted_ci",
            "feature_flag": self.flag,
            "owner": "@noor",
            "rollback": ROLLBACK,
        }
        self.statements = self._statements(digest)
        self.claims = self._claims()
        self.entry = None  # files that the evidence commit adds, instead of promotion.json
        self.sign = ISSUERS[self.platform].token
        self.extra = {}  # further evidence files
        self.head = None
        self.proof = {}

    def _statements(self, digest: str) -> list:
        kind = "https://in-toto.io/Statement/v1"
        subject = [{"name": "change", "digest": {"gitCommit": self.content}}]
        if self.platform == "github":
            builder = f"https://github.com/{WORKFLOW}"
            invocation = f"https://github.com/orchard/shop/actions/runs/{self.run_id}/attempts/1"
        else:
            builder = f"{GITLAB}/orchard/trusted//promotion.yml@refs/heads/main"
            invocation = f"{GITLAB}/orchard/trusted/-/pipelines/{self.run_id}"
        provenance = {
            "buildDefinition": {
                "buildType": "https://promotion.example/rerun/v1",
                "externalParameters": {"pullRequest": self.number, "artifact": ARTIFACT},
                "resolvedDependencies": [
                    {"uri": "git+https://git.example.org/orchard/shop", "digest": {"gitCommit": self.content}}
                ],
            },
            "runDetails": {
                "builder": {"id": builder},
                "metadata": {"invocationId": invocation, "finishedOn": instant(self.issued - 5)},
            },
        }
        result = {"result": "PASSED", "configuration": [], "passedTests": ["unit", "secret-scan"], "failedTests": []}
        rehearsal = {
            "environment": "staging",
            "command": ROLLBACK,
            "exitCode": 0,
            "treeBefore": self.shop.base_tree,
            "treeAfter": self.shop.base_tree,
        }
        made = [{"name": ARTIFACT, "digest": {"sha256": digest}}]
        return [
            {
                "_type": kind,
                "subject": made,
                "predicateType": "https://slsa.dev/provenance/v1",
                "predicate": provenance,
            },
            {
                "_type": kind,
                "subject": subject,
                "predicateType": "https://in-toto.io/attestation/test-result/v0.1",
                "predicate": result,
            },
            {
                "_type": kind,
                "subject": subject,
                "predicateType": "https://promotion.example/rollback-rehearsal/v1",
                "predicate": rehearsal,
            },
        ]

    def _claims(self) -> dict:
        times = {"iat": self.issued, "nbf": self.issued - 300, "exp": self.issued + 300, "jti": f"token-{self.number}"}
        if self.platform == "github":
            return {
                **times,
                "iss": GITHUB,
                "sub": "repo:orchard@22/shop@11:pull_request",
                "ref": f"refs/pull/{self.number}/merge",
                "sha": self.tested,
                "repository": "orchard/shop",
                "repository_id": "11",
                "repository_owner": "orchard",
                "repository_owner_id": "22",
                "repository_visibility": "private",
                "run_id": self.run_id,
                "run_number": "1",
                "run_attempt": "1",
                "actor": "cart-bot",
                "actor_id": "44",
                "workflow": "promotion",
                "workflow_ref": f"orchard/shop/.github/workflows/x.yml@refs/pull/{self.number}/merge",
                "workflow_sha": self.tested,
                "job_workflow_ref": WORKFLOW,
                "job_workflow_sha": "c" * 40,
                "head_ref": "agent/x",
                "base_ref": "main",
                "event_name": "pull_request",
                "ref_type": "branch",
                "ref_protected": "false",
                "runner_environment": "github-hosted",
                "check_run_id": "55",
            }
        return {
            **times,
            "iss": GITLAB,
            "sub": "project_path:orchard/trusted:ref_type:branch:ref:main",
            "namespace_id": "7",
            "namespace_path": "orchard",
            "project_id": "33",
            "project_path": "orchard/trusted",
            "project_visibility": "private",
            "user_id": "1",
            "user_login": "cart-bot",
            "user_email": "cart-bot@orchard.example",
            "user_access_level": "developer",
            "user_identities": [],
            "groups_direct": ["orchard"],
            "pipeline_id": self.run_id,
            "pipeline_source": "pipeline",
            "job_id": "66",
            "ref": "main",
            "ref_type": "branch",
            "ref_path": "refs/heads/main",
            "ref_protected": "true",
            "runner_id": 1,
            "runner_environment": "self-hosted",
            "sha": "d" * 40,
            "ci_config_ref_uri": "gitlab.example.org/orchard/trusted//promotion.yml@refs/heads/main",
            "ci_config_sha": "d" * 40,
        }

    @property
    def evidence(self) -> Path:
        return self.shop.folder / f"evidence-{self.number}"

    def write(self) -> "Case":
        """Commit the evidence and write the folder."""
        objects = self.shop.objects
        promo = self.promo if isinstance(self.promo, bytes) else text(self.promo)
        entry = {"promotion.json": promo} if self.entry is None else self.entry
        if self.head is None:
            self.head = (
                objects.commit(objects.tree({**self.files, **entry}), [self.content], name="Bot", message="evidence")
                if entry
                else self.content
            )
        lines = "".join(json.dumps(s, sort_keys=True) + "\n" for s in self.statements).encode()
        claims = {"aud": "promotion+sha256:" + hashlib.sha256(lines).hexdigest(), **self.claims}
        self.proof = {"ci.intoto.jsonl": lines, "ci.jwt": self.sign(claims) + b"\n"}
        for run, body in self.artifacts.items():
            if body is not None:
                path = self.evidence / "artifacts" / run / ARTIFACT
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(body)
        self.evidence.mkdir(exist_ok=True)
        sandbox = self.sandbox if isinstance(self.sandbox, bytes) else text(self.sandbox)
        for name, raw in {"sandbox.json": sandbox, **self.proof, **self.extra}.items():
            if raw is not None:
                (self.evidence / name).parent.mkdir(parents=True, exist_ok=True)
                (self.evidence / name).write_bytes(raw)
        return self

    def check(self, **options):
        """The verdict on this change, at the shop's own clock."""
        from ringfence.promotion.check import check

        if not self.proof:
            self.write()
        options = {"at": NOW, **options}
        return check(
            str(self.shop.git_dir), self.shop.base, self.head, str(self.shop.trust), str(self.evidence), **options
        )
