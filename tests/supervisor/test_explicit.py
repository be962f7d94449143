"""Which ignored paths a policy names, and which it merely covers."""

import pytest

from ringfence.supervisor.explicit import Explicit

pytestmark = pytest.mark.usefixtures("no_io")


def test_a_folder_that_is_named_comes_with_what_is_in_it():
    explicit = Explicit(["build/**"])
    assert explicit("build/")
    assert explicit("build/out.bin")
    assert explicit("build/deep/")
    assert explicit("build/deep/x")


def test_a_folder_that_is_only_covered_stays_ignored():
    explicit = Explicit(["src/**", "**"])
    assert not explicit("src/cache/")
    assert not explicit("src/a.log")
    assert not explicit("node_modules/")


def test_a_folder_above_what_is_named_is_looked_into_and_only_that_comes_out():
    explicit = Explicit(["dist/app.js", "dist/maps/*.map"])
    assert explicit("dist/")
    assert explicit("dist/app.js")
    assert not explicit("dist/other.js")
    assert explicit("dist/maps/")
    assert explicit("dist/maps/a.map")


def test_one_file_by_its_name():
    explicit = Explicit(["notes.log"])
    assert explicit("notes.log")
    assert not explicit("other.log")


def test_no_rule_names_nothing():
    assert not Explicit([])("build/")
    assert not Explicit(["*", "[ab]/x"])("a/")
