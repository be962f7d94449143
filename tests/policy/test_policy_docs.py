"""Every example of docs/policy.md loads, and its fixtures hold."""

import re
from pathlib import Path

import pytest

from ringfence import Policy
from ringfence.policy.fixtures import read_fixtures, report, run_fixtures

TEXT = (Path(__file__).parents[2] / "docs" / "policy.md").read_text()
HEAD = "version: 1\nfail_closed: true\n"
BLOCKS = re.findall(r"```(yaml|json)\n(.*?)```", TEXT, re.DOTALL)
EXAMPLES = [
    (text, BLOCKS[number + 1][1] if number + 1 < len(BLOCKS) and BLOCKS[number + 1][0] == "json" else "[]")
    for number, (kind, text) in enumerate(BLOCKS)
    if kind == "yaml"
]


def test_the_page_has_its_examples() -> None:
    assert len(EXAMPLES) >= 8
    assert sum(fixtures != "[]" for _, fixtures in EXAMPLES) >= 8


@pytest.mark.parametrize(("text", "fixtures"), EXAMPLES)
def test_an_example_means_what_the_page_says(workspace: Path, home: Path, text: str, fixtures: str) -> None:
    policy = Policy.parse(text if "version:" in text else HEAD + text, root=str(workspace))
    assert report(run_fixtures(policy, read_fixtures(fixtures, file="docs/policy.md"))) == []


def test_every_key_is_on_the_page() -> None:
    from ringfence.policy.schema import policy_schema

    missing: list[str] = []

    def walk(value: object) -> None:
        if isinstance(value, dict):
            for key, inner in value.get("properties", {}).items():
                if f"`{key}`" not in TEXT and not re.search(rf"(^|[\s{{.`]){key}:?", TEXT):
                    missing.append(key)
                walk(inner)
            for inner in value.values():
                walk(inner)
        elif isinstance(value, list):
            for inner in value:
                walk(inner)

    walk(policy_schema())
    assert missing == []
