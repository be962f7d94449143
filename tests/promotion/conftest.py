"""The shop that promotion tests break, from tests/doubles, and the ways to make one."""

import importlib.util
import sys
from pathlib import Path

import pytest


def _load():
    path = Path(__file__).parent.parent / "doubles" / "promotion_shop.py"
    spec = importlib.util.spec_from_file_location("promotion_shop_double", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["promotion_shop_double"] = module
    spec.loader.exec_module(module)
    return module


_MODULE = sys.modules.get("promotion_shop_double") or _load()


@pytest.fixture(scope="session")
def double():
    """The module with the shop, its constants and keys."""
    return _MODULE


@pytest.fixture
def shop(tmp_path):
    """A repository of its own for one test."""
    return _MODULE.Shop(tmp_path)


@pytest.fixture(scope="session")
def shared_shop(tmp_path_factory):
    """One repository for tests that only add changes to it."""
    return _MODULE.Shop(tmp_path_factory.mktemp("shop"))
