"""The search index: SQLite beside the log, never the truth, dropped and rebuilt at will.

It holds what one searches for and the number of each record; records themselves are read from the segments. Filling it
twice gives the same rows, which a test checks.
"""

import contextlib
import fcntl
import functools
import json
import os
import sqlite3
import time
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ringfence.ledger import frame, scan
from ringfence.ledger.described import describe
from ringfence.ledger.files import MAX_SEGMENT
from ringfence.ledger.frame import MAX_RECORD
from ringfence.model.errors import LedgerError

VERSION = 4
BATCH = 2000
PATIENCE = 300
"""Seconds to wait for another process that fills the index."""
_APART = {0x305, 0x30D, 0x30E, 0x310, *range(0x312, 0x31B), *range(0x31C, 0x323), *range(0x329, 0x32D), 0x32F}
_COMBINED = dict.fromkeys(set(range(0x300, 0x332)) - _APART)
"""Combining marks that SQLite's tokenizer takes off a letter; those in ``_APART`` it takes for the end of a word."""
_TABLES = """
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE records(seq INTEGER PRIMARY KEY, time INTEGER NOT NULL, kind TEXT NOT NULL, mission TEXT, call TEXT, tier TEXT,
    violation INTEGER NOT NULL, segment INTEGER NOT NULL, offset INTEGER NOT NULL, hash TEXT NOT NULL);
CREATE TABLE terms(field TEXT NOT NULL, value TEXT NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY(field, value, seq)) WITHOUT ROWID;
CREATE INDEX by_time ON records(time, seq);
CREATE INDEX by_kind ON records(kind, seq);
CREATE INDEX by_mission ON records(mission, seq) WHERE mission IS NOT NULL;
CREATE INDEX by_call ON records(call, seq) WHERE call IS NOT NULL;
CREATE INDEX by_tier ON records(tier, seq) WHERE tier IS NOT NULL;
CREATE VIRTUAL TABLE words USING fts5(text, content='', detail='none', columnsize=0);
"""
FIELDS = ("rule", "program", "path", "host", "tool", "agent")
"""What ``terms`` holds; a path stands there with each folder above it, so that a prefix is an equal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """What to look for; everything given must hold. ``before`` and ``after`` are record numbers, for paging."""

    kinds: tuple[str, ...] = ()
    mission: str = ""
    call: str = ""
    tier: str = ""
    rule: str = ""
    program: str = ""
    path: str = ""
    host: str = ""
    tool: str = ""
    agent: str = ""
    since: int = 0
    until: int = 0
    text: str = ""
    violations: bool = False
    after: int = -1
    before: int = -1
    newest_first: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Numbers of the records found, in the order asked for; ``more`` where the page did not end the list."""

    seqs: tuple[int, ...]
    more: bool


class Index:
    """The index of one ledger. Raises LedgerError ``index-unusable`` where SQLite cannot use its file."""

    def __init__(self, directory: str, *, path: str | None = None) -> None:
        """Open or make the index; a file that is none, or of another version, is replaced."""
        self._directory = directory
        self._path = path or f"{directory}/index.sqlite"
        with self._alone():
            try:
                self._database = self._open()
            except sqlite3.DatabaseError:
                self._remove()
                try:
                    self._database = self._open()
                except sqlite3.Error as error:
                    raise self._unusable(error) from error

    def close(self) -> None:
        """Let go of the file."""
        self._database.close()

    def __enter__(self) -> "Index":  # noqa: PYI034 - final in use
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def rebuild(self) -> int:
        """Drop everything and read the whole log again; returns how many records there are."""
        with self._alone():
            self._database.close()
            self._remove()
            self._database = self._open()
            return self._catch_up()

    def catch_up(self) -> int:
        """Read what the log has and the index has not; returns how many records the index has now."""
        with self._alone():
            if self._was_replaced():
                self._database.close()
                self._database = self._open()
            return self._catch_up()

    def _catch_up(self) -> int:
        try:
            files = scan.segments(self._directory)
            log = scan.header(files[-1]).log if files else ""
            with self._database:
                known, oldest = self._meta("log"), files[0].first if files else 0
                purged = self._database.execute("SELECT 1 FROM records WHERE seq < ? LIMIT 1", (oldest,)).fetchone()
                if known not in {"", log} or purged or not self._agrees(files):
                    self._clear()  # the words of what was purged must go as well
                self._database.execute("INSERT OR REPLACE INTO meta VALUES ('log', ?)", (log,))
            for batch in _batches(self._places(files, self._size())):
                with self._database:
                    self._insert(batch)
            return self._size()
        except sqlite3.Error as error:
            raise self._unusable(error) from error
        except (KeyError, TypeError, ValueError, OverflowError, EOFError) as error:
            raise LedgerError(
                "ledger-altered",
                f"a record cannot be read ({type(error).__name__})",
                where=self._directory,
                remedy="run `ringfence ledger verify`, which names the place",
            ) from error

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """One at a time makes or fills the file. Raises OSError where there is none to lock, ``index-unusable`` after minutes."""
        if self._path == ":memory:":
            yield
            return
        fd = os.open(f"{self._path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            ends = time.monotonic() + PATIENCE
            while not _locked(fd):
                if time.monotonic() > ends:
                    raise self._unusable(sqlite3.OperationalError("another process has been filling it for minutes"))
                time.sleep(0.02)
            yield
        finally:
            os.close(fd)

    def _was_replaced(self) -> bool:
        """Whether another process made the file again since it was opened here."""
        if self._path == ":memory:":
            return False
        try:
            return os.stat(self._path).st_ino != self._inode
        except FileNotFoundError:
            return True

    def _agrees(self, files: Sequence[scan.SegmentFile]) -> bool:
        """Whether the newest record of the index is the log's: a log that was put back may have gone on otherwise."""
        newest = "SELECT seq, segment, offset, hash FROM records ORDER BY seq DESC LIMIT 1"
        row = self._database.execute(newest).fetchone()
        file = next((file for file in files if row is not None and file.first == row[1]), None)
        if row is None or file is None:
            return row is None
        try:
            return bool(frame.record_hash(self._line(file, row[0], row[2])) == row[3])
        except LedgerError:
            return False

    def search(self, query: Query, *, limit: int = 50) -> Page:
        """One page of what the query finds. Raises LedgerError ``bad-query`` for a text that cannot be searched."""
        where, values = _conditions(query)
        if any(isinstance(value, str) and not _is_text(value) for value in values):
            return Page(seqs=(), more=False)  # no record holds text that is not Unicode
        order = "DESC" if query.newest_first else "ASC"
        sql = f"SELECT r.seq FROM {where} ORDER BY r.seq {order} LIMIT ?"  # noqa: S608 - names are ours, values are bound
        try:
            rows = self._database.execute(sql, [*values, limit + 1]).fetchall()
        except sqlite3.OperationalError as error:
            raise LedgerError("bad-query", f"the index cannot search for that: {error}") from error
        except sqlite3.Error as error:
            raise self._unusable(error) from error
        return Page(seqs=tuple(row[0] for row in rows[:limit]), more=len(rows) > limit)

    def read(self, seqs: Sequence[int]) -> Iterator[scan.Stored]:
        """The records of these numbers, in this order, from the segments."""
        files = {file.first: file for file in scan.segments(self._directory)}
        for seq in seqs:
            row = self._database.execute("SELECT segment, offset FROM records WHERE seq = ?", (seq,)).fetchone()
            if row is None or row[0] not in files:
                continue
            line = self._line(files[row[0]], seq, row[1])
            yield scan.Stored(seq=seq, line=line, value=scan.value_of(line, files[row[0]].path))

    def _line(self, file: scan.SegmentFile, seq: int, offset: object) -> bytes:
        """The record at a place. Raises ``index-unusable`` where another stands there: the log is right, not the index."""
        line = b""
        if isinstance(offset, int) and 0 <= offset < MAX_SEGMENT:
            with file.open() as stream:
                stream.seek(offset)
                line = stream.readline(MAX_RECORD + 1)
        ends = frame.ends(line)
        if ends is None or ends[1] != seq or line[:1] != b"{":
            raise self._unusable(sqlite3.DatabaseError(f"the place of record {seq} is wrong"))
        return line

    def dump(self) -> str:
        """Every row in order: equal indexes give equal texts."""
        rows = [
            *self._database.execute("SELECT * FROM meta ORDER BY key"),
            *self._database.execute("SELECT * FROM records ORDER BY seq"),
            *self._database.execute("SELECT * FROM terms ORDER BY field, value, seq"),
        ]
        return "\n".join(json.dumps(row) for row in rows)

    def _open(self) -> sqlite3.Connection:
        fresh = not os.path.exists(self._path)
        if fresh and self._path != ":memory:":
            os.close(os.open(self._path, os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
        database = sqlite3.connect(self._path, timeout=20, check_same_thread=False)
        try:
            database.execute("PRAGMA synchronous = OFF")  # what a crash spoils is rebuilt
            database.execute("PRAGMA temp_store = MEMORY")
            database.execute("PRAGMA secure_delete = ON")  # the words of what was purged go from the file, too
            (version,) = database.execute("PRAGMA user_version").fetchone()
            if version == VERSION and _schema(database) != _own_schema():
                raise sqlite3.DatabaseError("another schema")
            if version != VERSION:
                if database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                    raise sqlite3.DatabaseError("another version")
                database.executescript(f"BEGIN; {_TABLES} PRAGMA user_version = {VERSION}; COMMIT;")
            self._inode = os.stat(self._path).st_ino if self._path != ":memory:" else 0
        except BaseException:
            database.close()
            raise
        return database

    def _remove(self) -> None:
        for suffix in ("", "-journal", "-wal", "-shm"):
            if os.path.exists(self._path + suffix):
                os.unlink(self._path + suffix)

    def _clear(self) -> None:
        for table in ("meta", "records", "terms"):
            self._database.execute(f"DELETE FROM {table}")  # noqa: S608 - names are ours
        self._database.execute("INSERT INTO words(words) VALUES ('delete-all')")

    def _meta(self, key: str) -> str:
        row = self._database.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return str(row[0]) if row else ""

    def _size(self) -> int:
        (size,) = self._database.execute("SELECT coalesce(max(seq) + 1, 0) FROM records").fetchone()
        return int(size)

    def _places(self, files: Sequence[scan.SegmentFile], start: int) -> "Iterator[tuple[int, int, int, bytes]]":
        for position, file in enumerate(files):
            if position + 1 < len(files) and files[position + 1].first <= start:
                continue
            head = scan.header(file).line()
            seq = file.first
            offset = len(head)
            with file.open() as stream:
                for group in scan.groups(stream, offset=offset):
                    for line in group.lines:
                        if seq >= start:
                            yield seq, file.first, offset, line
                        seq += 1
                        offset += len(line)
                    offset = group.end

    def _insert(self, batch: Sequence[tuple[int, int, int, bytes]]) -> None:
        records, terms, words = [], [], []
        for seq, segment, offset, line in batch:
            found = describe(scan.value_of(line, "index"))
            records.append((seq, *found.columns, segment, offset, frame.record_hash(line)))
            terms += [(field, value, seq) for field, value in sorted(found.terms)]
            words.append((seq, found.text))
        self._database.executemany("INSERT INTO records VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", records)
        self._database.executemany("INSERT OR IGNORE INTO terms VALUES (?, ?, ?)", terms)
        self._database.executemany("INSERT INTO words(rowid, text) VALUES (?, ?)", words)

    def _unusable(self, error: sqlite3.Error) -> LedgerError:
        full = getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_FULL
        remedy = (
            "free space on the disk; until then `ringfence ledger show` does without"
            if full
            else "ringfence ledger rebuild-index"
        )
        return LedgerError("index-unusable", f"SQLite: {error}", where=self._path, remedy=remedy)


def _locked(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _schema(database: sqlite3.Connection) -> list[tuple[str, str, str]]:
    """What the database defines: a trigger or view of someone else's would hide or invent what is found."""
    return sorted(database.execute("SELECT type, name, coalesce(sql, '') FROM sqlite_master"))


@functools.cache
def _own_schema() -> list[tuple[str, str, str]]:
    fresh = sqlite3.connect(":memory:")
    try:
        fresh.executescript(_TABLES)
        return _schema(fresh)
    finally:
        fresh.close()


def _batches(rows: Iterator[tuple[int, int, int, bytes]]) -> "Iterator[list[tuple[int, int, int, bytes]]]":
    batch = []
    for row in rows:
        batch.append(row)
        if len(batch) == BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def _conditions(query: Query) -> tuple[str, list[object]]:
    tables, tests, values = ["records r"], ["1"], []
    for field in FIELDS:
        value = getattr(query, field)
        if value:
            value = value.lower() if field == "host" else value.rstrip("/") or "/" if field == "path" else value
            tables.append(f"terms t_{field}")
            tests.append(f"t_{field}.seq = r.seq AND t_{field}.field = ? AND t_{field}.value = ?")
            values += [field, value]
    for column in ("mission", "call", "tier"):
        if getattr(query, column):
            tests.append(f"r.{column} = ?")
            values.append(getattr(query, column))
    if query.kinds:
        tests.append(f"r.kind IN ({','.join('?' * len(query.kinds))})")
        values += query.kinds
    for column, sign, bound, unset in (
        ("time", ">=", query.since, 0),
        ("time", "<=", query.until, 0),
        ("seq", ">", query.after, -1),
        ("seq", "<", query.before, -1),
    ):
        if bound != unset:
            tests.append(f"r.{column} {sign} ?")
            values.append(bound)
    if query.violations:
        tests.append("r.violation = 1")
    if query.text:
        tests.append("r.seq IN (SELECT rowid FROM words WHERE words MATCH ?)")
        values.append(" ".join(_quoted(word) for word in query.text.split()) or '""')
    return f"{', '.join(tables)} WHERE {' AND '.join(tests)}", list(values)


def _is_text(value: str) -> bool:
    return not any("\ud800" <= char <= "\udfff" for char in value)


def _quoted(word: str) -> str:
    """A word of a search as the tokenizer splits it: every part must be there, operators mean nothing.

    Marks that are combined with a letter and that the tokenizer takes off are taken off.
    """
    composed = unicodedata.normalize("NFC", word).translate(_COMBINED)
    parts = "".join(char if char.isalnum() else " " for char in composed).split()
    return " ".join(f'"{part}"' for part in parts) or '""'
