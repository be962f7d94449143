"""SQL migrations: nothing may be dropped, and what is not understood counts as a drop. Pure but for loading sqlglot.

Two readings must agree: sqlglot's syntax tree against an allowlist of statement kinds, and an own scan for words that
drop, outside comments and strings. Comments that a server executes are refused.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from ringfence.promotion.blast.documents import Unreadable

DIALECTS = frozenset({"postgres", "mysql", "sqlite", "tsql", "oracle", "bigquery", "snowflake", "redshift"})
_LIMIT = 262_144
# What sqlglot hands on as text although it only adds: whole statements, one name each.
_KNOWN_COMMAND = re.compile(
    r"(?i)(?:ALTER TABLE [\w.\"]+ VALIDATE CONSTRAINT [\w\"]+|ALTER TYPE [\w.\"]+ ADD VALUE (?:IF NOT EXISTS )?'[^']*'|"
    r"CREATE EXTENSION (?:IF NOT EXISTS )?\"?(?:pg_trgm|pgcrypto|uuid-ossp|citext|btree_gin|btree_gist|unaccent)\"?)\Z"
)
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_$]*")
_DOLLAR = re.compile(r"\$[A-Za-z_]{0,64}\$")
_DROPPING = frozenset(
    {
        "drop",
        "truncate",
        "rename",
        "delete",
        "replace",
        "merge",
        "execute",
        "exec",
        "call",
        "do",
        "copy",
        "load",
        "vacuum",
    }
)
_ACCESS = frozenset(
    {"grant", "revoke", "policy", "role", "owner", "security", "authorization", "privileges", "user", "login"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlDelta:
    """``drops`` and ``access`` say what each refused statement does; ``cannot_tell`` what was not understood."""

    drops: tuple[str, ...] = ()
    access: tuple[str, ...] = ()
    cannot_tell: tuple[str, ...] = ()


def load_sqlglot() -> ModuleType:
    """sqlglot, or Unreadable with the remedy where the extra is not installed."""
    try:
        import sqlglot
        import sqlglot.parser
    except ImportError:
        raise Unreadable("sqlglot is not installed: pip install 'ringfence[promotion]'") from None
    # It warns on standard error about each statement it cannot parse; here that is a finding.
    sqlglot.parser.logger.setLevel("CRITICAL")
    return sqlglot


def compare_sql(old: bytes | None, new: bytes | None, dialect: str) -> SqlDelta:
    """What a new, edited or removed migration does beyond the old text. Raises Unreadable."""
    if new is None:
        return SqlDelta(drops=("a migration file was removed",))
    try:
        return _compare(old, new, dialect)
    except Unreadable:
        raise
    except Exception as error:  # noqa: BLE001 - whatever the parser stumbles over, in reading or in writing back
        raise Unreadable(f"not SQL that can be read ({type(error).__name__})") from None


def _compare(old: bytes | None, new: bytes, dialect: str) -> SqlDelta:
    before = _statements(old, dialect) if old is not None else []
    after = _statements(new, dialect)
    known = [_key(statement) for statement in before]
    kept = [_key(statement) for statement in after]
    drops: list[str] = []
    if any(key not in kept for key in known):
        drops.append("statements of an existing migration were changed or removed")
    access: list[str] = []
    unknown: list[str] = []
    for statement in after:
        if _key(statement) not in known:
            _judge(statement, drops, access, unknown)
    _second_opinion(new, old or b"", drops, access, unknown)
    return SqlDelta(drops=tuple(drops), access=tuple(access), cannot_tell=tuple(unknown))


def _statements(raw: bytes, dialect: str) -> list[Any]:
    sqlglot = load_sqlglot()
    if dialect not in DIALECTS:
        raise Unreadable(f"SQL dialect {dialect[:40]!a} is not known")
    if len(raw) > _LIMIT:
        raise Unreadable(f"a migration larger than {_LIMIT} bytes")
    parsed = sqlglot.parse(raw.decode("utf-8"), read=dialect, error_level=sqlglot.ErrorLevel.RAISE)
    return [statement for statement in parsed if statement is not None and type(statement).__name__ != "Semicolon"]


def _key(statement: Any) -> str:
    return str(statement.sql(comments=False))


def _judge(statement: Any, drops: list[str], access: list[str], unknown: list[str]) -> None:
    kind = type(statement).__name__
    said = statement.sql(comments=False)[:80]
    match kind:
        case "Create":
            why = _judge_create(statement)
        case "Alter":
            why = _judge_alter(statement)
        case "Insert":
            why = _judge_insert(statement)
        case "Update":
            why = _judge_update(statement)
        case "Transaction" | "Commit" | "Comment":
            why = ""
        case "Set":
            why = (
                ""
                if re.match(
                    r"(?i)SET\s+(?:LOCAL\s+|SESSION\s+)?(?:lock_timeout|statement_timeout|client_encoding|NAMES)\b",
                    said,
                )
                else "sets what is not known"
            )
        case "Drop" | "TruncateTable" | "Delete" | "Merge":
            why = "drops schema or data"
        case "Grant" | "Revoke":
            access.append(said)
            return
        case "Command" if _KNOWN_COMMAND.match(_key(statement)):
            why = ""
        case _:
            unknown.append(said)
            return
    if why:
        drops.append(f"{said}: {why}")


def _judge_insert(statement: Any) -> str:
    conflict = statement.args.get("conflict")
    nothing = conflict is not None and re.search(r"(?i)\bDO NOTHING\Z", str(conflict.sql(dialect="postgres")))
    return "overwrites rows" if statement.args.get("overwrite") or (conflict is not None and not nothing) else ""


def _judge_create(statement: Any) -> str:
    made = str(statement.args.get("kind", "")).upper()
    if statement.args.get("replace"):
        return "replaces what may hold something else"
    if made in {"TABLE", "INDEX", "SEQUENCE", "SCHEMA", "TYPE", "VIEW"}:
        return ""
    return f"creates a {made.lower()}, whose body cannot be told"


def _judge_alter(statement: Any) -> str:
    actions = statement.args.get("actions") or []
    if str(statement.args.get("kind", "")).upper() != "TABLE" or not actions:
        return "alters what is not known"
    for action in actions:
        kind = type(action).__name__
        if kind == "AlterColumn" and (
            action.args.get("dtype") or action.args.get("drop") or action.args.get("allow_null")
        ):
            return "changes a column's type or drops what it holds to"
        if kind == "AlterColumn" and not action.args.get("default") and action.args.get("allow_null") is None:
            return "alters a column in a way that is not known"
        if kind not in {"AlterColumn", "ColumnDef", "AddConstraint", "AddPartition", "ColumnPosition"}:
            return f"does {kind}"
    return ""


def _judge_update(statement: Any) -> str:
    """An update passes only as a backfill: a condition on a column, and nothing set to nothing."""
    where = statement.args.get("where")
    if where is None or not any(type(node).__name__ == "Column" for node in where.walk()):
        return "updates every row"
    if any(type(node).__name__ in {"Or", "Not"} for node in where.walk()):
        has_is_null = any(type(node).__name__ == "Is" for node in where.walk())
        if not has_is_null:
            return "updates rows by a condition that cannot be told"
    for assignment in statement.args.get("expressions") or []:
        value = assignment.args.get("expression")
        if type(value).__name__ == "Null" or (type(value).__name__ == "Literal" and not str(value.this)):
            return "sets a column to nothing"
    return ""


def _second_opinion(new: bytes, old: bytes, drops: list[str], access: list[str], unknown: list[str]) -> None:
    text = new.decode("utf-8", "replace")
    if text.count("/*!") > old.count(b"/*!") or text.count("/*M!") > old.count(b"/*M!"):
        unknown.append("a comment that MySQL executes")
    words = _words(text, unknown)
    known = _words(old.decode("utf-8", "replace"), [])
    for word in sorted(_DROPPING):
        if words.count(word) > known.count(word) and not drops:
            drops.append(f"the word {word.upper()} outside comments and strings")
    for word in sorted(_ACCESS & {"grant", "revoke", "policy", "security", "authorization"}):
        if words.count(word) > known.count(word) and not access:
            access.append(f"the word {word.upper()} outside comments and strings")
    if re.search(r"(?m)^[ \t]*\\", text) and not re.search(rb"(?m)^[ \t]*\\", old):
        unknown.append("a psql command")


def _words(text: str, unknown: list[str]) -> list[str]:
    return list(_bare_words(text, unknown))


def _bare_words(text: str, unknown: list[str]) -> Iterator[str]:
    """Words outside comments and strings, in one pass; what is opened and not closed is unknown."""
    before, at = "", 0
    while at < len(text):
        word = _WORD.match(text, at)
        if word is None:
            end = _end_of_quiet(text, at, unknown)
            if not text[at:end].isspace() and not text.startswith("--", at):
                before = ""
            at = end
            continue
        name, at = word.group().casefold(), word.end()
        # What a foreign key does, and an insert that gives way, are not what this statement drops.
        if not (before == "on" and name in {"delete", "update"}) and not (name == "do" and _gives_way(text, at)):
            yield name
        before = name


def _end_of_quiet(text: str, at: int, unknown: list[str]) -> int:
    """Where a comment, string, quoted name or other character that begins here ends."""
    if text.startswith("--", at):
        end = text.find("\n", at)
        return len(text) if end < 0 else end
    opened = _DOLLAR.match(text, at)
    closer = {"'": "'", '"': '"', "`": "`"}.get(text[at], "*/" if text.startswith("/*", at) else "")
    if opened is not None:
        unknown.append("a body in dollar quotes")
        closer = opened.group()
    if not closer:
        return at + 1
    start = at + (len(closer) if opened or closer == "*/" else 1)
    end = text.find(closer, start)
    if end < 0:
        unknown.append("a comment or string without an end")
        return len(text)
    if closer == "*/" and "/*" in text[start:end]:
        unknown.append("a comment inside a comment")
    if closer in {"'", '"'} and text[end - 1] == "\\":
        unknown.append("a backslash before a quote, which servers read differently")
    return end + len(closer)


def _gives_way(text: str, at: int) -> bool:
    return re.match(r"(?i)\s+nothing\b", text[at : at + 40]) is not None
