"""Kinds of files whose effect the gate cannot read: recognised, counted and refused unless the base excepts them. Pure."""

import re

import re2

from ringfence.promotion.globs import matches_any
from ringfence.promotion.policy import Policy

_BY_NAME = (  # matched with case folded: what applies a file may not mind
    ("terraform", re.compile(r".*\.(?:tf|tf\.json|tfvars|tfvars\.json|hcl|tofu)\Z|(?:.*/)?\.terraform\.lock\.hcl\Z")),
    ("helm", re.compile(r"(?:.*/)?(?:Chart\.ya?ml|values[^/]*\.ya?ml|templates/.*\.(?:ya?ml|tpl))\Z")),
    ("pulumi", re.compile(r"(?:.*/)?Pulumi[^/]*\.ya?ml\Z")),
    ("cdk", re.compile(r"(?:.*/)?cdk\.json\Z")),
    ("serverless", re.compile(r"(?:.*/)?serverless\.(?:ya?ml|json|js|cjs|ts)\Z")),
    ("sst", re.compile(r"(?:.*/)?sst\.config\.[cm]?[jt]s\Z")),
    ("helm", re.compile(r"(?:.*/)?helmfile(?:\.d/.*)?\.(?:ya?ml|gotmpl)\Z|(?:.*/)?helmfile\.d/.*\Z")),
    ("other sql", re.compile(r".*\.(?:ddl|dml|psql|pgsql|plsql|pks|pkb|prc)\Z")),
    ("ansible", re.compile(r"(?:.*/)?(?:playbooks?|roles)/.*\.ya?ml\Z")),
    ("liquibase", re.compile(r"(?:.*/)?(?:db\.)?changelog[^/]*\.(?:xml|ya?ml|json)\Z|.*\.liquibase\..*\Z")),
    ("prisma", re.compile(r".*\.prisma\Z")),
    (
        "migration",
        re.compile(
            r"(?:.*/)?(?:migrations?|migrate)/.*\.(?:py|rb|js|ts|mjs|cjs|mts|cts|java|kt|scala|groovy|clj|go|rs|php|ex|exs|xml|"
            r"cs|fs|vb|swift|dart|lua|pl|sh|bash|ps1|psql|pgsql|ddl)\Z",
            re.IGNORECASE,
        ),
    ),
    ("migration", re.compile(r"(?:.*/)?db/(?:schema\.rb|structure\.sql)\Z")),
    ("bicep", re.compile(r".*\.bicep(?:param)?\Z")),
    ("nomad", re.compile(r".*\.nomad\Z")),
    ("jsonnet", re.compile(r".*\.(?:jsonnet|libsonnet|cue|dhall)\Z")),
    ("rego", re.compile(r".*\.(?:rego|cedar)\Z")),
)
_BY_CONTENT = (
    (
        "cloudformation",
        re2.compile(
            rb'(?m)^[ \t]*"?AWSTemplateFormatVersion"?\s*:|"?\bTransform"?\s*:\s*[\["\s-]*AWS::|"?Type"?\s*:\s*"?AWS::[A-Za-z0-9]+::'
        ),
    ),
    ("arm", re2.compile(rb"schema\.management\.azure\.com/schemas/")),
    ("helm", re2.compile(rb"\{\{-?\s*(?:\.Values|\.Release|include|template|toYaml|range|if|with)\b")),
)
# Programs that make infrastructure when they run.
_CODE = (".py", ".ts", ".js", ".mjs", ".cjs", ".mts", ".cts", ".go", ".java", ".kt", ".cs", ".fs")
_MAKES = re2.compile(
    rb"(?m)^[ \t]*(?:import|from|using|open|const|let|var|\}[ \t]*from|[a-z]*[ \t]*\")\b?.*"
    rb"(?:aws-cdk-lib|@aws-cdk/|\baws_cdk\b|aws-cdk-go|\bawscdk\b|Amazon\.CDK|\bcdk8s\b|\bcdktf\b|"
    rb"@pulumi/|\bpulumi(?:_[a-z_]+)?\b|Pulumi\.)"
)
# Files from which such documents are made.
_TEMPLATE = re.compile(r".*\.(?:ya?ml|json)\.(?:j2|jinja2?|erb|tmpl|tpl|gotmpl|mustache|hbs|liquid|ejs|template)\Z")
_MADE = re2.compile(rb"\bapiVersion\b|AWS::|[\"']?\bEffect\b[\"']?\s*:")
_NO_EFFECT = frozenset({"__init__.py"})


def recognise(path: str, content: bytes) -> str | None:
    """The kind of a file that cannot be read here, or None."""
    if path.rsplit("/", 1)[-1] in _NO_EFFECT and not content.strip():
        return None
    folded = path.casefold()
    for kind, name in _BY_NAME:
        if name.match(path) or name.match(folded):
            return kind
    if folded.endswith(_CODE) and _MAKES.search(content):
        return "infrastructure code"
    if _TEMPLATE.match(folded) and _MADE.search(content):
        return "template"
    if folded.endswith((".yaml", ".yml", ".json", ".template", ".tpl")):
        return next((kind for kind, pattern in _BY_CONTENT if pattern.search(content)), None)
    return None


def is_excepted(kind: str, path: str, policy: Policy) -> bool:
    """Whether the base lets this kind through on this path."""
    return any(item.kind == kind and matches_any(path, item.paths) for item in policy.cannot_tell_exceptions)
