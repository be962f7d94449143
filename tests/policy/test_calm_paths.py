"""Most paths are told at once, without a look at every pattern; the short way never says less than the long one."""

import itertools
import pathlib

from ringfence.policy import protected
from ringfence.policy.globs import PathPattern, PatternIndex, Views
from ringfence.policy.policy import Policy

EXAMPLE = pathlib.Path(__file__).parents[2] / "examples" / "sandbox_policy.yaml"
NAMES = (
    "a",
    "src",
    ".git",
    ".GIT",
    "sitecustomize.so",
    "SiteCustomize.py",
    "sitecustomize",
    "x.code-workspace",
    ".env",
    "keys",
)


def test_the_shipped_lists_leave_the_short_way_open(tmp_path):
    compiled = Policy.parse(EXAMPLE.read_text(), root=str(tmp_path))._compiled
    assert all(compiled.calm[access] is not None for access in ("read", "write", "maybe"))


def test_what_passes_the_short_way_is_covered_by_no_pattern():
    patterns = [
        *protected.HIDDEN,
        *(pattern for pattern, _ in protected.PROTECTED),
        "**/begin*",
        "**/*.end",
        "**/made.*",
    ]
    index = PatternIndex([(PathPattern(pattern), pattern) for pattern in patterns], loose=True)
    passed = 0
    for parts in itertools.product((*NAMES, "begins", "an.end", "made.x", "unmade.x"), repeat=2):
        path = "/root/" + "/".join(parts)
        if index.calm.passes(path.lower()):
            passed += 1
            assert not index.find(Views(path, roots=[("root",)], home=("home", "me"))), path
    assert passed > 10


def test_a_pattern_of_another_shape_keeps_the_long_way():
    index = PatternIndex([(PathPattern("**/a*b"), None)], loose=True)
    assert index.calm is None
