"""Fixtures of the shell's tests: real bash with recorders, lines for it, and the ordinary lines."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

HERE = Path(__file__).parent


def load(name: str) -> ModuleType:
    """A helper module beside the tests, by its path."""
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, HERE / "soundness" / f"{name}.py")
        assert spec
        assert spec.loader
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return sys.modules[name]


@pytest.fixture(scope="session")
def bash_lines() -> ModuleType:
    """The generator of bash lines."""
    return load("bash_lines")


@pytest.fixture
def bash(tmp_path) -> object:
    """Real bash whose PATH holds recorders only."""
    return load("bash_recorders").Bash(tmp_path)


@pytest.fixture(scope="session")
def ordinary_lines() -> list[str]:
    """Lines of the kind that agents run all day."""
    text = (HERE / "ordinary_lines.txt").read_text()
    return [line.rstrip("\n") for line in text.split("\n%%\n")]
