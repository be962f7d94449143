"""Alembic migrations: an allowlist of calls in ``upgrade()``; anything else cannot be told. Pure."""

import ast

_OP_CALLS_WORDS = (
    "create_table add_column create_index create_foreign_key create_unique_constraint create_check_constraint "
    "create_primary_key create_table_comment f get_bind"
)
_OP_CALLS = frozenset(_OP_CALLS_WORDS.split())
_TYPE_MODULES = frozenset({"sa", "sqlalchemy", "postgresql", "mysql", "sqlite", "types"})
_HEADER = frozenset({"revision", "down_revision", "branch_labels", "depends_on"})


def looks_like_alembic(path: str, content: bytes) -> bool:
    """Whether a Python file is an Alembic revision."""
    return path.endswith(".py") and b"down_revision" in content and (b"alembic" in content or b"op." in content)


def unknown_in_alembic(content: bytes) -> list[str]:
    """What ``upgrade()`` and the module do beyond the allowlist; empty for an additive migration."""
    try:
        tree = ast.parse(content.decode("utf-8"))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ["not Python that can be read"]
    found: list[str] = []
    upgrade = None
    for node in tree.body:
        match node:
            case ast.Expr(value=ast.Constant()):
                continue
            case ast.Import(names=names) if {a.name for a in names} <= {"sqlalchemy"}:
                continue
            case ast.ImportFrom(module=module, names=names) if _known_import(module or "", names):
                continue
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if name in _HEADER and _is_plain(value):
                continue
            case ast.AnnAssign(target=ast.Name(id=name), value=value) if name in _HEADER and _is_plain(value):
                continue
            case ast.FunctionDef(name="upgrade", decorator_list=[]) if upgrade is None:
                upgrade = node
            case ast.FunctionDef(name="downgrade", decorator_list=[]):
                continue  # the way back may drop what the way there made
            case _:
                found.append(f"line {node.lineno}: {type(node).__name__} at module level")
    if upgrade is None:
        return [*found, "no upgrade()"]
    return [*found, *_unknown_calls(upgrade)]


def _known_import(module: str, names: list[ast.alias]) -> bool:
    roots = {
        "alembic": {"op"},
        "sqlalchemy.dialects": {"postgresql", "mysql", "sqlite"},
        "typing": {"Sequence", "Union"},
    }
    roots["collections.abc"] = {"Sequence"}
    return {a.name for a in names} <= roots.get(module, set()) and not any(a.asname for a in names)


def _is_plain(value: ast.expr | None) -> bool:
    return value is None or all(
        isinstance(node, (ast.Constant, ast.Tuple, ast.List, ast.Load)) for node in ast.walk(value)
    )


def _unknown_calls(function: ast.FunctionDef) -> list[str]:
    found = []
    if function.args.args or function.args.kwonlyargs or function.args.vararg or function.args.kwarg:
        found.append("upgrade() takes arguments")
    for statement in function.body:
        if not isinstance(statement, (ast.Expr, ast.Pass)):
            found.append(f"line {statement.lineno}: {type(statement).__name__}")
            continue
        for node in ast.walk(statement):
            if isinstance(node, ast.Call) and not _known_call(node.func):
                found.append(f"line {node.lineno}: {ast.unparse(node.func)[:60]}()")
            elif isinstance(node, (ast.Lambda, ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom, ast.GeneratorExp)):
                found.append(f"line {node.lineno}: {type(node).__name__}")
    return found


def _known_call(function: ast.expr) -> bool:
    match function:
        case ast.Attribute(value=ast.Name(id="op"), attr=name):
            return name in _OP_CALLS
        case ast.Attribute(value=ast.Name(id=module), attr=name):
            return module in _TYPE_MODULES and name not in {"text", "DDL", "literal_column", "event"}
        case _:
            return False
