"""Changes that look smaller than they are: moved into effect, or hidden from the reader."""

import json

import pytest

from ringfence.model.protected import PROTECTED_ASK, PROTECTED_DENY
from ringfence.promotion.blast.paths import ALWAYS_PROTECTED
from ringfence.promotion.globs import matches_any_case

REVIEW, HOLD, REFUSE = "human_review", "hold_for_explanation", "refuse"
DROP = (
    b"from alembic import op\nrevision = '2'\ndown_revision = '1'\n\n\n"
    b"def upgrade():\n    op.drop_table('baskets')\n\n\ndef downgrade():\n    pass\n"
)
BINDING = b"apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: c}\n"
PLAIN = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: elsewhere}\ndata: {A: b}\n"
USER = b'resource "aws_iam_user" "x" {}\n'
LAB = b"include:\n  - local: /ci/build.yml\n  - 'ci/more.yml'\n  - remote: https://example.org/x.yml\njob: {script: [make, bash ./ci/release.sh now]}\n"
FLOW = b"on: push\njobs:\n  a:\n    runs-on: x\n    steps:\n      - uses: ./tools/step\n      - uses: actions/checkout@v4\n      - {name: x, uses: ./tools/flow, with: {a: b}}\n"
BASE = {
    "attic/0002.py": DROP,
    "attic/binding.txt": BINDING,
    "attic/plain.yaml": PLAIN,
    "attic/user.txt": USER,
    "infra/k8s/other.yaml": PLAIN.replace(b"elsewhere", b"cart-staging"),
    "services/cart/old.py": "A = 1  # \u202e\n".encode(),
    ".gitlab-ci.yml": LAB,
    ".github/workflows/ci.yml": FLOW,
    "ci/build.yml": b"include: {local: ci/deep.yml}\nbuild: {script: [make]}\n",
    "ci/deep.yml": b"deep: {script: [make]}\n",
    "ci/more.yml": b"more: {script: [make]}\n",
    "ci/notes.txt": b"nothing\n",
    "tools/flow/run.sh": b"echo\n",
    "tools/step/run.sh": b"echo\n",
    "tools/step/action.yml": b"runs:\n  using: composite\n  steps:\n    - uses: ./tools/deeper\n",
    "tools/deeper/run.sh": b"echo\n",
}


@pytest.fixture(scope="module")
def fuller(double, tmp_path_factory):
    return double.Shop(tmp_path_factory.mktemp("disguise"), **BASE)


def told(verdict):
    return verdict.outcome.word, {reason.code for reason in verdict.reasons}


def moved(old, new):
    return {old: None, new: BASE[old]}


MOVES = {
    "a-drop-into-the-migrations": ("blast.schema", moved("attic/0002.py", "alembic/versions/0002.py")),
    "a-text-that-becomes-infrastructure": ("blast.cannot_tell", moved("attic/user.txt", "infra/user.tf")),
    "a-manifest-to-where-it-is-applied": ("blast.region", moved("attic/plain.yaml", "infra/k8s/plain.yaml")),
    "a-text-that-becomes-a-binding": ("blast.authz", moved("attic/binding.txt", "infra/k8s/binding.yaml")),
}


@pytest.mark.parametrize("name", MOVES)
def test_a_file_that_moves_into_effect_is_read_where_it_arrives(fuller, name):
    code, files = MOVES[name]
    outcome, codes = told(fuller.change(files).check())
    assert outcome == REFUSE
    assert code in codes


def test_a_manifest_renamed_in_its_folder_changes_nothing(fuller):
    files = moved("infra/k8s/other.yaml", "infra/k8s/another.yaml")
    assert told(fuller.change(files).check()) == (REVIEW, set())


UNREAD = {
    "src/Migrations/2024_x.cs": b'migrationBuilder.DropTable(name: "Baskets");\n',
    "src/migrations/2024_x.sh": b"psql -c 'drop table baskets'\n",
    "ops/app.yaml.j2": b"apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\n",
    "infra/MAIN.TF": b"resource\n",
    "infra/sam.yaml": b"Transform: AWS::Serverless-2016-10-31\nResources: {}\n",
    "db2/more.ddl": b"drop table baskets;\n",
    "serverless.ts": b"export default {}\n",
    "helmfile.yaml": b"releases: []\n",
    "infra/x.bicep": b"resource x 'Microsoft.Authorization/roleAssignments@2022-04-01' = {}\n",
    "infra/lib/stack.ts": b"import * as iam from 'aws-cdk-lib/aws-iam';\nnew iam.User(this, 'x');\n",
    "infra/__main__.py": b"import pulumi_aws as aws\naws.iam.User('x')\n",
    "infra/main.go": b'package main\n\nimport (\n\t"github.com/pulumi/pulumi-aws/sdk/v6/go/aws/iam"\n)\n',
    "infra/azure.json": b'{"$schema": "https://schema.management.azure.com/schemas/2019-04-01/deploymentTemplate.json#"}\n',
}


@pytest.mark.parametrize("path", UNREAD)
def test_what_makes_infrastructure_in_other_languages_cannot_be_told(fuller, path):
    outcome, codes = told(fuller.change({path: UNREAD[path]}).check())
    assert outcome == REFUSE
    assert "blast.cannot_tell" in codes


STATEMENT = {"Effect": "Allow", "Action": "*", "Resource": "*"}
GRANTS = {
    "in-a-list-of-roles": {"roles": [{"name": "a", "policy": {"Statement": [STATEMENT]}}]},
    "a-bare-list": [STATEMENT],
    "in-a-string": {"policy": json.dumps({"Statement": [STATEMENT]})},
    "a-binding": {"bindings": [{"role": "roles/owner", "members": ["allUsers"]}]},
    "a-definition": {"Name": "x", "Actions": ["*"], "AssignableScopes": ["/"]},
}


@pytest.mark.parametrize("name", GRANTS)
def test_access_that_is_granted_inside_another_document_is_a_change_of_access(double, tmp_path, name):
    shop = double.Shop(tmp_path, **{"ops/kept.json": double.text(GRANTS[name])})
    outcome, codes = told(shop.change({"ops/x.json": double.text(GRANTS[name])}).check())
    assert (outcome, codes) == (REFUSE, {"blast.authz"})
    same = double.text({"more": 1, "roles": GRANTS[name]})
    assert told(shop.change({"ops/kept.json": same}).check()) == (REVIEW, set())


def test_a_kustomization_without_version_and_kind_is_read(fuller):
    outcome, codes = told(
        fuller.change({"more/kustomization.yaml": b"namespace: elsewhere\nresources: [a.yaml]\n"}).check()
    )
    assert outcome == REFUSE
    assert "blast.region" in codes


def test_grants_that_would_keep_the_gate_busy_cannot_be_told(fuller, double):
    for actions, resources in ([f"s3:A{i}*" for i in range(2000)], ["*"]), (["s3:" + "*a" * 5000], ["*"]):
        statement = {"Effect": "Allow", "Action": actions, "Resource": resources}
        files = {"infra/iam/wide.json": double.text({"Statement": [statement]})}
        verdict = fuller.change(files).check()
        assert told(verdict)[0] == REFUSE
        assert any(reason.code == "blast.iam" and "cannot tell" in reason.found for reason in verdict.reasons)


def test_code_that_only_speaks_of_infrastructure_is_code(fuller):
    files = {"services/cart/names.py": b"import os\n\nTOOLS = ('pulumi', 'aws-cdk-lib')  # known by name\n"}
    assert told(fuller.change(files).check()) == (REVIEW, set())


STEERING = (
    "ci/build.yml ci/deep.yml ci/more.yml tools/flow/run.sh tools/step/run.sh tools/step/action.yml tools/deeper/run.sh action.yaml x/y.gitlab-ci.yml "
    ".gitlab-ci/a.yml ci/Jenkinsfile Jenkinsfile.release .azure-pipelines/a.yml x/azure-pipelines.yml .tekton/a.yaml "
    ".semaphore/semaphore.yml .cirrus.yml appveyor.yml .woodpecker.yml cloudbuild.yaml buildspec.yml OWNERS "
    ".mergify.yml renovate.json .husky/pre-push lefthook.yml .vscode/tasks.json .devcontainer/devcontainer.json "
    "web/.husky/pre-push a/.travis.yml a/.pre-commit-config.yaml zuul.d/a.yaml .readthedocs.yaml netlify.toml .goreleaser.yaml "
    ".releaserc bamboo-specs/a.yml .cursorrules .clinerules .windsurf/a.md opencode.json .gitpod.yml .npmrc web/.yarnrc.yml "
    "pip.conf .cargo/config.toml .tool-versions"
).split()


@pytest.mark.parametrize("path", STEERING)
def test_what_steers_ci_reviews_or_a_persons_machine_is_protected(fuller, path):
    outcome, codes = told(fuller.change({path: b"{}\n"}).check())
    assert (outcome, codes & {"blast.protected_path"}) == (REFUSE, {"blast.protected_path"})


@pytest.mark.parametrize("pattern", [*PROTECTED_DENY, *PROTECTED_ASK])
def test_what_the_fence_keeps_an_agent_from_writing_does_not_come_in_by_a_change(pattern):
    place = pattern.replace("**/", "some/folder/", 1).replace("**", "deep/x").replace("*", "x")
    assert matches_any_case(place, ALWAYS_PROTECTED)


@pytest.mark.parametrize("place", [".vscode", ".github", "web/.husky", ".cursor", "promotion"])
def test_a_link_in_the_place_of_a_protected_folder_is_protected(double, tmp_path, place):
    """What lies where it leads is an ordinary file, and is obeyed."""
    policy = {**double.POLICY, "limits": {**double.POLICY["limits"], "symlinks": 2}}
    shop = double.Shop(tmp_path, policy)
    gone = {path: None for path in shop.files if path.startswith(f"{place}/")}
    case = shop.change({**gone, place: ("120000", b"services/cart"), "services/cart/tasks.json": b"{}\n"})
    found = [reason.found for reason in case.check().reasons if reason.code == "blast.protected_path"]
    assert any(said.startswith(f"{place} (") for said in found)


@pytest.mark.parametrize(
    "path", ["AGENTS.md", "web/agents.md", "CLAUDE.md", "CLAUDE.local.md", "GEMINI.md", "a/x.prompt.md"]
)
def test_instructions_to_agents_are_held_until_somebody_read_them(fuller, path):
    assert told(fuller.change({path: b"Run the tests first.\n"}).check()) == (HOLD, {"agents.instructed"})


def test_a_document_that_only_speaks_of_agents_is_a_document(fuller):
    assert told(fuller.change({"docs/agents-and-us.md": b"We use them.\n"}).check()) == (REVIEW, set())


def test_a_script_that_ci_names_is_told_to_the_reviewer(fuller):
    verdict = fuller.change({"ci/release.sh": b"echo more\n"}).check()
    assert told(verdict) == (REVIEW, set())
    assert "the base's CI names 1 of the changed files" in " ".join(verdict.notes)


def test_a_file_beside_what_ci_includes_is_an_ordinary_file(fuller):
    assert told(fuller.change({"ci/notes.txt": b"something\n"}).check()) == (REVIEW, set())


@pytest.mark.parametrize(
    "path",
    [
        "makefile",
        "GNUmakefile",
        "noxfile.py",
        ".coveragerc",
        "jest.config.js",
        "pom.xml",
        "vendor/x.c",
        "a/__snapshots__/b.snap",
        ".trivyignore",
    ],
)
def test_altered_inputs_are_named_for_the_reviewer(fuller, path):
    verdict = fuller.change({path: b"x\n"}).check()
    assert told(verdict) == (REVIEW, set())
    assert any(path in note for note in verdict.notes)


HIDDEN = {
    "override": "ACCESS = 'user\u202e'\n",
    "open-isolate": "ACCESS = 'user\u2066# only\u2069 \u2066'\n",
    "tags": "A = 1  # " + "".join(chr(0xE0000 + ord(c)) for c in "do as I say") + "\n",
    "filler-as-a-name": "def f(\u3164=1):\n    return \u3164\n",
    "variants-of-nothing": "A = 'x\U000e0101\U000e0102'\n",
    "variants-in-a-row": "A = '\ufe00\ufe0f\ufe01'\n",
    "a-return-that-is-a-line": "A = 1  # fine\rimport os\n",
    "a-separator-that-is-a-line": "// fine\u2028evil()\n",
    "a-next-line": "# fine\x85import os\n",
    "a-word-divided": "ad\u200bmin = 1\n",
    "a-word-joined": "is_ad\u200dmin = 1\n",
    "out-of-sight": "A = 1" + " " * 300 + "; import os\n",
    "out-of-sight-on-an-empty-line": " " * 300 + "import os\n",
    "letters-that-look-alike": "def is_\u0430dmin(): pass\n",
    "concealed": "# \x1b[8mhidden\x1b[0m\n",
    "taken-back": "# evil()\x08\x08\x08\x08\n",
}


@pytest.mark.parametrize("name", HIDDEN)
def test_text_that_a_reviewer_does_not_see_is_refused(fuller, name):
    verdict = fuller.change({"services/cart/app.py": HIDDEN[name].encode()}).check()
    assert told(verdict) == (REFUSE, {"blast.bytes"})
    assert "U+" in verdict.reasons[0].found


SEEN = {
    "hebrew-in-isolates": "HELLO = '\u2068\u05e9\u05dc\u05d5\u05dd\u2069, {name}'\n",
    "ideographic-variant": "NAME = '\u845b\U000e0100'\n",
    "flag-of-a-region": "FLAG = '\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f'\n",
    "joined-emoji": "TEAM = '\U0001f469\u200d\U0001f4bb'\n",
    "colours-as-they-came": "SHOWN = '\x1b[1;32mok\x1b[0m'\n",
    "a-page-break": "\x0c\nA = 1\n",
    "windows-lines": "A = 1\r\nB = 2\r\n",
    "greek-names": "\u0394x = \u03bcs = 1  # \u03b1-test\n",
    "two-scripts": "A = 1  # HTTP-\u0437\u0430\u043f\u0440\u043e\u0441, SQL\u0437\u0430\u043f\u0440\u043e\u0441\n",
    "emoji-variant": "OK = '\u2714\ufe0f'\n",
    "soft-hyphen-and-mark": "WORD = 'Donau\u00addampf \u200f'\n",
}


def test_a_wide_table_of_a_document_is_a_table(fuller):
    files = {"docs/table.md": b"| a |" + b" " * 300 + b"| b |\n"}
    assert told(fuller.change(files).check()) == (REVIEW, set())


@pytest.mark.parametrize("name", SEEN)
def test_marks_of_ordinary_text_reach_review(fuller, name):
    assert told(fuller.change({"services/cart/app.py": SEEN[name].encode()}).check()) == (REVIEW, set())


def test_what_the_base_hides_already_is_not_the_changes_doing(fuller):
    files = {"services/cart/old.py": BASE["services/cart/old.py"] + b"B = 2\n"}
    assert told(fuller.change(files).check()) == (REVIEW, set())
