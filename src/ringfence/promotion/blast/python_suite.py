"""The tests of one Python file as pytest and unittest would collect them: by the syntax tree, not by the look of a line. Pure.

A test that is nested in a function, written within a string, given the name of an earlier one, or left without a body
is none. Collecting is by the runners' own defaults; what a project configures is looked at elsewhere.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

_LIMIT = 512 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonTests:
    """Names of the tests, a class's with the class before them, and how many of them hang on a condition."""

    names: frozenset[str]
    conditional: int


def python_tests(content: bytes) -> PythonTests | None:
    """None for what this Python cannot parse, or what is too large to be."""
    if len(content) > _LIMIT:
        return None
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    found = list(_collect(tree.body, "", conditional=False))
    return PythonTests(
        names=frozenset(name for name, _ in found),
        conditional=len({name for name, conditional in found if conditional}),
    )


def _collect(body: list[ast.stmt], prefix: str, *, conditional: bool) -> Iterator[tuple[str, bool]]:
    for node in body:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                if node.name.startswith("test") and _says_something(node.body):
                    yield prefix + node.name, conditional
            case ast.ClassDef() if _is_collected(node):
                yield from _collect(node.body, f"{prefix}{node.name}.", conditional=conditional)
            case ast.If(test=ast.Constant(value=value)):
                yield from _collect(node.body if value else node.orelse, prefix, conditional=conditional)
            case ast.If():
                for part in (node.body, node.orelse):
                    yield from _collect(part, prefix, conditional=True)
            case ast.Try():
                for part in (node.body, node.orelse, *(handler.body for handler in node.handlers)):
                    yield from _collect(part, prefix, conditional=conditional)
            case ast.With():
                yield from _collect(node.body, prefix, conditional=conditional)
            case _:
                pass


def _is_collected(node: ast.ClassDef) -> bool:
    """``Test…`` without a constructor; or with a base class, which may be unittest's."""
    constructs = any(isinstance(item, ast.FunctionDef) and item.name == "__init__" for item in node.body)
    return bool(node.bases) or (node.name.startswith("Test") and not constructs)


def _says_something(body: list[ast.stmt]) -> bool:
    """Whether anything is done before the test is over."""
    for node in body:
        if isinstance(node, ast.Pass) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            continue
        return not isinstance(node, ast.Return)
    return False
