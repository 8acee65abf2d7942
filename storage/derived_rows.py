"""Rows that a run derives from recorded answers: copying what they are derived from, and comparing them in two
databases.
"""

from __future__ import annotations

import json
import math
import sqlite3
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import sqlalchemy as sa
from sqlalchemy.dialects import sqlite
from sqlalchemy.exc import DBAPIError

from auditor.domain import CellScore, Conflict, Outcome, SentencePairScore, SurveyCell, TaskItem, Trace, Verdict
from auditor.domain.audit_records import (
    AlteredTraceVerdict,
    Audit,
    Contest,
    DesignAnswer,
    ExcludedContent,
    Exclusion,
    Guess,
    Restatement,
)
from auditor.domain.labels import DrawnUnit, LabelDraw, LabelEntry
from auditor.domain.records import CallKey, RowPolicy
from auditor.errors import StorageError
from auditor.probe_interface import ProbeResult
from auditor.storage import audits, exclusions, schema
from auditor.storage.call_records import StoredAnswer, StoredAttempt
from auditor.storage.database import Database, open_database
from auditor.storage.probe_results import PROBE_RECORDS
from auditor.storage.row_classes import conversion_of, table_of
from auditor.storage.sqlite_file import insert_from_file, replace_private

COPIED_RECORDS = (SurveyCell, TaskItem, LabelDraw, DrawnUnit, LabelEntry)
"""Records besides the answers that results are derived from."""
ROWS_PER_CHUNK = 2_000
HASH_LENGTH = 64
"""Digits of a SHA-256."""
TOLERANCE = 1e-9
"""Largest difference between a stored and a derived number that is no difference."""
STAGES_BY_ORDER = ("measure", "detect", "resolve", audits.AWAITING_HUMAN, audits.REPORTING, audits.FINISHED)
"""Stages after all branches of the graph; the stages of branches come before them."""
CORE_STAGES = ("direct", "logprob", "review")
"""Stages that are no probe with records of its own; each may change all rows after it."""
READERS_BY_RECORD: Mapping[type, Sequence[str]] = {
    **dict.fromkeys((Trace, DesignAnswer), ("direct",)),
    SentencePairScore: ("logprob",),
    **dict.fromkeys((Verdict, Guess, Restatement, AlteredTraceVerdict, Contest), ("direct", "review")),
}
"""Stages whose readers determine the rows of a record class. All core stages do, for a core class that is left out."""
VOTE_COLUMNS = ("state", "seats", "votes_left", "votes_right", "winner")
"""Columns of a conflict that the votes determine, a stage after it is found."""
RowCallback: TypeAlias = Callable[[sa.Table, sa.RowMapping | None, sa.RowMapping | None], None]
"""Function that takes a table, a stored row and a derived one; one of the two may be missing."""
MAX_DIFFERENCES = 20
"""Differences that are described; all are counted."""


@dataclass(frozen=True, slots=True)
class RowDifference:
    """A stored row that is not what the recorded answers say; `problem` continues a sentence that names the row."""

    table: str
    row: str
    problem: str


@dataclass(slots=True)
class RowCheck:
    """How the derived rows of an audit differ from its stored ones.

    Attributes:
        compared: number of stored rows that were compared, by table.
        changed: number of them that differ, by table.
        differences: the first of them.
        by_probe: the same two numbers, and those read by other versions of the probe, by the probe's name.
        reread: number of rows that differ and were read by another version of a reader, by table: a note.
        left_out: number of stored results of probes that cannot be used, by the probe's name: they were not compared.
    """

    compared: dict[str, int] = field(default_factory=dict)
    changed: dict[str, int] = field(default_factory=dict)
    differences: list[RowDifference] = field(default_factory=list)
    by_probe: dict[str, dict[str, int]] = field(default_factory=dict)
    reread: dict[str, int] = field(default_factory=dict)
    left_out: dict[str, int] = field(default_factory=dict)

    def add(self, table: str, row: str, problem: str) -> None:
        """Count a difference, and describe it if it is one of the first."""
        _count(self.changed, table)
        if len(self.differences) < MAX_DIFFERENCES:
            self.differences.append(RowDifference(table, row, problem))


def find_unknown_values(db: Database, audit_id: int) -> list[RowDifference]:
    """Find an audit's rows with values that no version writes, at most `MAX_DIFFERENCES`.

    These are no members of their column's enumeration, no numbers in a column of numbers, or no JSON of its kind.
    """
    differences: list[RowDifference] = []
    for record_class in [*schema.RECORDS, *(part for parts in PROBE_RECORDS.values() for part in parts)]:
        table = table_of(record_class)
        if "audit_id" not in table.c:
            continue
        with db.read() as connection:
            conditions = _list_unknown(connection, record_class, audit_id)
            for name, condition, problem in conditions:
                keys = [key for key in table.primary_key if key.name != "audit_id"]
                query = sa.select(*keys, sa.type_coerce(table.c[name], _ANY)).where(table.c.audit_id == audit_id)
                differences += [
                    RowDifference(table.name, ", ".join(map(str, key)), problem.format(name, _shorten(value)))
                    for *key, value in connection.execute(query.where(condition).limit(MAX_DIFFERENCES))
                ]
    return differences[:MAX_DIFFERENCES]


_ANY = sa.types.NullType()
"""Type of a column whose values are taken as they are."""


def _list_unknown(
    connection: sa.Connection, record_class: type[Any], audit_id: int
) -> list[tuple[str, sa.ColumnElement[bool], str]]:
    """Conditions of values of a class's table that no version writes: column, condition, and what is wrong."""
    table, conversion = table_of(record_class), conversion_of(record_class)
    unknown: list[tuple[str, sa.ColumnElement[bool], str]] = []
    for name, members in conversion.members_by_column.items():
        known = ["", *(member.value for member in members)]
        unknown.append((name, table.c[name].not_in(known), "has the unknown {} '{}'"))
    if connection.dialect.name == "sqlite":  # a server has nothing else in such a column
        for column in table.c:
            if column.type.python_type in (bool, int, float):
                is_other = sa.func.typeof(column).not_in(["integer", "real", "null"])
                unknown.append((column.name, is_other, "has {} = {}, which is no number"))
    is_any = sa.or_(*(condition for _, condition, _ in unknown), sa.false())
    first_unknown = sa.select(sa.literal(1)).where(table.c.audit_id == audit_id, is_any).limit(1)
    if connection.execute(first_unknown).first() is None:
        unknown = []
    for name, json_type in conversion.json_types_by_column.items():
        texts = connection.execute(sa.select(table.c[name]).where(table.c.audit_id == audit_id).distinct()).scalars()
        wrong = [text for text in texts if text is not None and not _is_json(text, json_type)]
        if wrong:
            is_wrong = table.c[name].in_(wrong[:MAX_DIFFERENCES])
            unknown.append((name, is_wrong, "has {} = {}, which is not the JSON of this column"))
    return unknown


def _is_json(text: str, json_type: type) -> bool:
    """Whether a text is JSON of a type."""
    try:
        return isinstance(json.loads(text), json_type)
    except (TypeError, ValueError):
        return False


def _count(counts: dict[str, int], name: str, n: int = 1) -> None:
    counts[name] = counts.get(name, 0) + n


# --- what rows are derived from ---------------------------------------------------------------------------------


@contextmanager
def open_temporary_database() -> Iterator[Database]:
    """Yield a new database that is deleted afterwards."""
    with (
        tempfile.TemporaryDirectory(prefix="auditor-") as folder,
        open_scratch_database(f"sqlite:///{Path(folder) / 'derived.db'}?uri=true") as db,
    ):
        yield db


@contextmanager
def open_scratch_database(url: str) -> Iterator[Database]:
    """Yield a SQLite database of which nothing has to survive a crash of the machine.

    Args:
        url: of the database; if it shows rows of another file (see `_show_rows`), with `?uri=true`.
    """

    def prepare(connection: sqlite3.Connection, _: Any) -> None:
        connection.execute("PRAGMA synchronous=OFF")
        if shown.exists():
            file, view = json.loads(shown.read_text(encoding="utf-8"))
            connection.execute("ATTACH DATABASE ? AS source", [file])
            connection.execute(view)

    with open_database(url) as db:
        shown = _file_of_shown_rows(db)
        sa.event.listen(db.engine, "connect", prepare)
        db.engine.dispose()  # the connections that were opened before
        yield db


@contextmanager
def open_copy(source: Database, audit: Audit, models: set[str]) -> Iterator[Database]:
    """Yield a temporary database with an audit and what its results are derived from, but for exclusions.

    Args:
        source: the database of the audit.
        audit: the audit.
        models: model strings whose answers are copied; of a finished audit those answers that it could use.
    """
    with open_temporary_database() as copy:
        audit_table, answers = table_of(Audit), table_of(StoredAnswer)
        is_usable: sa.ColumnElement[bool] = answers.c.model.in_(sorted(models))
        if audit.finished_at is not None:
            is_usable &= answers.c.created_at <= _last_usable_time(source, audit.id, audit.finished_at)
        if not _show_rows(source, copy, answers, is_usable):  # first: the writer's connection is not made again
            _copy_rows(source, copy, answers, is_usable)
        _copy_rows(source, copy, audit_table, audit_table.c.id == audit.id)
        for record_class in COPIED_RECORDS:
            table = table_of(record_class)
            _copy_rows(source, copy, table, table.c.audit_id == audit.id)
        yield copy


def _last_usable_time(source: Database, audit_id: int, finished_at: str) -> str:
    """When the last answer was recorded that a finished audit could use.

    It is after `finished_at` if the machine's clock was ahead when the audit's own answers were recorded, and set back.
    """
    answers, attempts = table_of(StoredAnswer), table_of(StoredAttempt)
    # A call that failed in this audit may have an answer in another one.
    outcomes = [outcome.value for outcome in Outcome if outcome.is_answer]
    own_keys = sa.select(attempts.c.key).where(attempts.c.audit_id == audit_id, attempts.c.outcome.in_(outcomes))
    statement = sa.select(sa.func.max(answers.c.created_at)).where(answers.c.key.in_(own_keys))
    with source.read() as connection:
        return max(finished_at, connection.execute(statement).scalar() or "")


@contextmanager
def note_queried_hashes(hashes: set[str] | None, *databases: Database) -> Iterator[None]:
    """Add to a set, if there is one, all SHA-256 that are parameters of queries in the block, such as keys of calls."""

    def note(_connection: Any, _cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        if hashes is not None and statement.startswith("SELECT"):
            hashes.update(value for value in parameters if isinstance(value, str) and len(value) == HASH_LENGTH)

    for db in databases:
        sa.event.listen(db.engine, "before_cursor_execute", note)
    try:
        yield
    finally:
        for db in databases:
            sa.event.remove(db.engine, "before_cursor_execute", note)


def apply_copied_exclusions(source: Database, copy: Database, audit_id: int) -> None:
    """Copy an audit's declarations of invalid answers, and apply those in force."""
    table = table_of(Exclusion)
    _copy_rows(source, copy, table, table.c.audit_id == audit_id)
    copy.write(lambda connection: exclusions.apply_exclusions(connection, audit_id))


def _copy_rows(source: Database, target: Database, table: sa.Table, condition: sa.ColumnElement[bool]) -> None:
    """Copy the rows of a table that meet a condition: within SQLite, or a chunk at a time."""
    if (
        source.path is not None
        and target.path is not None
        and _copy_within_sqlite(source.path, target.path, table, condition)
    ):
        return
    with source.read() as connection:
        rows = connection.execution_options(yield_per=ROWS_PER_CHUNK).execute(sa.select(table).where(condition))
        for chunk in rows.mappings().partitions():
            _insert_rows(target, table, [dict(row) for row in chunk])


def _show_rows(source: Database, target: Database, table: sa.Table, condition: sa.ColumnElement[bool]) -> bool:
    """Let a scratch database show the rows of a table that meet a condition, instead of copying them.

    Each of its connections attaches the source, which cannot be written through it, and has a view in place of the
    table. False if SQLite cannot do so, as with a server, and with a file in a folder that cannot be written to.
    """
    if source.path is None:
        return False
    view = f'CREATE TEMP VIEW "{table.name}" AS {_select_in_source(table, condition)}'
    shown = _file_of_shown_rows(target)
    replace_private(shown, json.dumps([f"{source.path.absolute().as_uri()}?mode=ro", view]))
    target.engine.dispose()  # connections without the view
    try:
        with target.read() as connection:
            connection.execute(sa.select(table.c[0]).limit(1))
    except (StorageError, DBAPIError):
        shown.unlink()
        return False
    return True


def _file_of_shown_rows(db: Database) -> Path:
    """File beside a scratch database with the URI of its source, and the statement of its view of it."""
    assert db.path is not None
    return db.path.with_name("shown_rows.json")


def _select_in_source(table: sa.Table, condition: sa.ColumnElement[bool]) -> str:
    """Text of a query of the rows of a table, in an attached database, that meet a condition."""
    conditions = condition.compile(dialect=sqlite.dialect(), compile_kwargs={"literal_binds": True})
    columns = ", ".join(f'"{column.name}"' for column in table.columns)
    return f'SELECT {columns} FROM source."{table.name}" AS "{table.name}" WHERE {conditions}'


def _copy_within_sqlite(source: Path, target: Path, table: sa.Table, condition: sa.ColumnElement[bool]) -> bool:
    """Copy rows between files, in a sixth of the time of reading them here; False if SQLite cannot read the source."""
    columns = ", ".join(f'"{column.name}"' for column in table.columns)
    insertion = f'INSERT INTO main."{table.name}" ({columns}) {_select_in_source(table, condition)}'
    return insert_from_file(source, target, insertion)


def _insert_rows(db: Database, table: sa.Table, rows: list[dict[str, Any]]) -> None:
    db.write(lambda connection: connection.execute(sa.insert(table), rows))


# --- check ------------------------------------------------------------------------------------------------------


def compare_derived_rows(
    stored: Database,
    derived: Database,
    audit: Audit,
    *,
    is_unasked: Callable[[str], bool],
    is_foreign: Callable[[str, sa.RowMapping], bool],
    missing_probes: Collection[str] = (),
    other_readers: Collection[str] = (),
    has_present_readers: bool = False,
    on_reread: RowCallback = lambda *_: None,
    names: Collection[str] = (),
) -> RowCheck:
    """Compare all rows of an audit that a run derives, in the order of their keys.

    Args:
        stored: the database of the audit.
        derived: a database with its rows, derived again.
        audit: the audit as it is stored; a row that is missing is a difference only once its stage is over.
        is_unasked: whether neither an answer nor a failed request is recorded for a call's key.
        is_foreign: whether a stored row, of a table, was not written by a run, so that it is not derived.
        missing_probes: names of probes that cannot be used, so that their results are not derived.
        other_readers: stages whose results were read by another version of their reader.
        has_present_readers: whether the audit was last run with the present versions of all readers: then a result that
            names another version is a difference.
        on_reread: is called with each row that another version of its reader reads otherwise: its table, the stored
            row and the derived one.
        names: of the audit's models and judges, by which calls are attributed.
    """
    check = RowCheck()
    order = STAGES_BY_ORDER.index(audit.stage) if audit.stage in STAGES_BY_ORDER else -1
    for table in map(table_of, schema.list_record_classes(RowPolicy.DERIVED)):
        is_over = order >= _order_of_last_stage(table)
        if not is_over and table in (table_of(CellScore), table_of(Conflict)):
            continue
        has_votes = order >= STAGES_BY_ORDER.index(audits.AWAITING_HUMAN)
        has_other_reader = bool(set(other_readers) & set(_list_readers(table)))
        rules = _TableRules(
            *(table, is_over, has_votes, is_unasked, is_foreign, missing_probes, has_other_reader),
            *(has_present_readers, on_reread, partial(_load_askers, stored, audit.id), frozenset(names)),
        )
        with stored.read() as stored_rows, derived.read() as derived_rows:
            is_shown = _file_of_shown_rows(derived).exists() and table is not table_of(ProbeResult)
            if is_shown and (n_equal := _count_equal(derived_rows, table, audit.id)):
                check.compared[table.name] = n_equal
                continue
            for stored_row, derived_row in _merge(table, audit.id, stored_rows, derived_rows):
                rules.compare(check, stored_row, derived_row)
    return check


def _list_readers(table: sa.Table) -> Sequence[str]:
    """The stages whose readers determine the rows of a table. A probe may ask about traces."""
    probe = next((name for name, classes in PROBE_RECORDS.items() if table in map(table_of, classes)), None)
    if probe is not None:
        return [probe, "direct"]
    readers = (stages for record_class, stages in READERS_BY_RECORD.items() if table_of(record_class) is table)
    return next(readers, CORE_STAGES)


def _load_askers(stored: Database, audit_id: int, key: str) -> set[str | None]:
    """The models or judges of which an audit itself requested a call, by the call's key."""
    attempt = table_of(StoredAttempt).c
    query = sa.select(attempt.name).where(attempt.key == key, attempt.audit_id == audit_id).distinct()
    with stored.read() as connection:
        return set(connection.execute(query).scalars())


def _order_of_last_stage(table: sa.Table) -> int:
    """Position in `STAGES_BY_ORDER` of the first stage in which a table is complete."""
    if table is table_of(CellScore):
        return STAGES_BY_ORDER.index("detect")
    return STAGES_BY_ORDER.index("resolve" if table is table_of(Conflict) else "measure")


def _count_equal(derived: sa.Connection, table: sa.Table, audit_id: int) -> int:
    """Number of an audit's rows of a table if a copy and the source that it shows have the same ones; else 0.

    SQLite compares them in a fifth of the time that it takes here.
    """
    columns, keys = table.c.keys(), [column.name for column in table.primary_key]
    on = " AND ".join(f'a."{name}" = b."{name}"' for name in keys)
    same = " AND ".join(f'a."{name}" IS b."{name}"' for name in columns if name not in keys) or "1"
    n_equal = f'SELECT count(*) FROM main."{table.name}" a JOIN source."{table.name}" b ON {on} WHERE a.audit_id = :id'
    counts = [f'SELECT count(*) FROM {schema}."{table.name}" WHERE audit_id = :id' for schema in ("main", "source")]
    query = sa.text(f"SELECT ({n_equal} AND {same}), ({counts[0]}), ({counts[1]})")
    equal, *totals = derived.execute(query, {"id": audit_id}).one()
    return int(equal) if totals == [equal, equal] else 0


def _merge(
    table: sa.Table, audit_id: int, stored: sa.Connection, derived: sa.Connection
) -> Iterator[tuple[sa.Row[Any] | None, sa.Row[Any] | None]]:
    """Yield the rows of a table in two databases, pair by pair; None for one that is missing in a database."""
    key_names = [column.name for column in table.primary_key if column.name != "audit_id"]
    positions = [list(table.c.keys()).index(name) for name in key_names]
    query = sa.select(table).where(table.c.audit_id == audit_id).order_by(*(table.c[name] for name in key_names))
    stored_rows, derived_rows = (
        iter(connection.execution_options(yield_per=ROWS_PER_CHUNK).execute(query)) for connection in (stored, derived)
    )

    def key_of(row: sa.Row[Any]) -> list[tuple[int, Any]]:
        """Key of a row, as it is ordered."""
        return [_sortable(row[position]) for position in positions]

    left, right = next(stored_rows, None), next(derived_rows, None)
    while left is not None or right is not None:
        is_pair = left is not None and right is not None and all(left[i] == right[i] for i in positions)
        if is_pair:
            yield left, right
            left, right = next(stored_rows, None), next(derived_rows, None)
        elif right is None or (left is not None and key_of(left) < key_of(right)):
            yield left, None
            left = next(stored_rows, None)
        else:
            yield None, right
            right = next(derived_rows, None)


def _sortable(value: Any) -> tuple[int, Any]:
    """A value of a key in the order of SQLite: numbers, then texts by their bytes."""
    return (1, value.encode("utf-8", "surrogatepass")) if isinstance(value, str) else (0, value)


@dataclass(frozen=True)
class _TableRules:
    """How the rows of one table are compared.

    Attributes:
        is_over: whether the stage that writes them is over, so that a missing row is a difference.
        has_votes: whether the votes on conflicts are counted.
        has_other_reader: whether another version of a reader read the rows, so that a difference is a note.
        has_present_readers: see `compare_derived_rows`.
        load_askers: returns the models or judges of which a call was requested, by its key.
        names: of the audit's models and judges.
    """

    table: sa.Table
    is_over: bool
    has_votes: bool
    is_unasked: Callable[[str], bool]
    is_foreign: Callable[[str, sa.RowMapping], bool]
    missing_probes: Collection[str]
    has_other_reader: bool
    has_present_readers: bool
    on_reread: RowCallback
    load_askers: Callable[[str], set[str | None]]
    names: frozenset[str | None]

    def compare(self, check: RowCheck, stored: sa.Row[Any] | None, derived: sa.Row[Any] | None) -> None:
        """Compare a stored row with the derived one."""
        name = self.table.name
        if stored == derived and self.table is not table_of(ProbeResult):
            _count(check.compared, name)
            return
        stored_row = None if stored is None else stored._mapping
        derived_row = None if derived is None else derived._mapping
        if stored_row is None:
            assert derived_row is not None
            if self.is_over and not self._was_not_asked(derived_row) and self.table is not table_of(ExcludedContent):
                self._add(check, None, derived_row, "is gone: the recorded answers give it")
            return
        if derived_row is None:
            if self.table is table_of(ProbeResult) and stored_row["probe"] in self.missing_probes:
                _count(check.left_out, stored_row["probe"])
            elif not self.is_foreign(name, stored_row):
                _count(check.compared, name)
                self._add(check, stored_row, None, "has no recorded answer behind it")
            return
        _count(check.compared, name)
        if self.table is table_of(ProbeResult) and self._has_other_reader(check, stored_row, derived_row):
            return
        problem = self._find_problem(stored_row, derived_row)
        if problem is not None:
            self._add(check, stored_row, derived_row, problem)
        if self.table is table_of(ProbeResult):
            counts = check.by_probe.setdefault(stored_row["probe"], {})
            _count(counts, "read", int(stored_row["outcome"] != Outcome.EXCLUDED.value))
            _count(counts, "changed", int(problem is not None))

    def _add(
        self, check: RowCheck, stored_row: sa.RowMapping | None, derived_row: sa.RowMapping | None, problem: str
    ) -> None:
        """Count a row that differs: as a difference, or as one that another version of its reader read."""
        if self.has_other_reader:
            problem = self._find_call_of_another(stored_row) if stored_row is not None else ""
        if not problem:
            _count(check.reread, self.table.name)
            self.on_reread(self.table, stored_row, derived_row)
            return
        row = stored_row if stored_row is not None else derived_row
        assert row is not None
        check.add(self.table.name, self._describe_key(row), problem)

    def _has_other_reader(self, check: RowCheck, stored_row: sa.RowMapping, derived_row: sa.RowMapping) -> bool:
        """Whether a result was read by another version of its probe's reader; such a row is counted."""
        if self.has_present_readers or stored_row["reader_version"] == derived_row["reader_version"]:
            return False
        _count(check.by_probe.setdefault(stored_row["probe"], {}), "earlier")
        _count(check.reread, self.table.name)
        self.on_reread(self.table, stored_row, derived_row)
        return True

    def _find_problem(self, stored_row: sa.RowMapping, derived_row: sa.RowMapping) -> str | None:
        """Say how a stored row differs from the derived one; None if it does not."""
        for column, value in stored_row.items():
            other = derived_row[column]
            if is_equal_value(value, other) or (not self.has_votes and column in VOTE_COLUMNS):
                continue
            if _is_failure(stored_row) and any(map(self.is_unasked, self._list_call_keys(derived_row))):
                return None
            if not self.is_over and _is_failure(stored_row):
                return None  # a run that was stopped has recorded an answer that it has not read yet
            return f"has {column} = {_shorten(value)}, and the recorded answers give {_shorten(other)}"
        return None

    def _find_call_of_another(self, row: sa.RowMapping) -> str:
        """Say that a row has a call of another model or judge, which no reader does; empty if it has none.

        A model that has another name now has the calls of its earlier name, which is no name of the audit's any more.
        """
        for column in self.table.c:
            reference: CallKey | None = column.info.get(CallKey)
            if reference is not None and row[column.name] is not None:
                askers = self.load_askers(row[column.name])
                if askers and row[reference.name_column] not in askers and askers <= self.names:
                    others = ", ".join(sorted(map(str, askers)))
                    return f"has {column.name} = {_shorten(row[column.name])}, a call of {others}"
        return ""

    def _was_not_asked(self, row: sa.RowMapping) -> bool:
        """Whether a derived row stands for a first call of which nothing is recorded."""
        return any(map(self.is_unasked, self._list_call_keys(row)[:1]))

    def _list_call_keys(self, row: sa.RowMapping) -> list[str]:
        """Keys of the calls that a row was read from, the first one first."""
        return [row[column.name] for column in self.table.c if CallKey in column.info and row[column.name] is not None]

    def _describe_key(self, row: sa.RowMapping) -> str:
        return ", ".join(str(row[column.name]) for column in self.table.primary_key if column.name != "audit_id")


def _is_failure(row: sa.RowMapping) -> bool:
    """Whether a row says that its call failed."""
    outcome = row.get("outcome")
    return outcome in {member.value for member in Outcome} and not Outcome(outcome).is_answer


def is_equal_value(value: Any, other: Any) -> bool:
    """Whether two values of a column are equal; numbers within the tolerance, also in texts of JSON."""
    if value == other:
        return True
    if isinstance(value, bool | int | float) and isinstance(other, bool | int | float):
        return math.isclose(value, other, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    if isinstance(value, str) and isinstance(other, str) and value[:1] in "[{" and other[:1] in "[{":
        try:
            return _is_equal_json(json.loads(value), json.loads(other))
        except ValueError:
            return False
    return False


def _is_equal_json(value: Any, other: Any) -> bool:
    if isinstance(value, dict) and isinstance(other, dict):
        return value.keys() == other.keys() and all(_is_equal_json(value[key], other[key]) for key in value)
    if isinstance(value, list) and isinstance(other, list):
        return len(value) == len(other) and all(map(_is_equal_json, value, other))
    return (
        type(value) is type(other) and is_equal_value(value, other)
        if isinstance(value, str)
        else is_equal_value(value, other)
    )


def _shorten(value: Any) -> str:
    text = "nothing" if value is None else str(value)
    return text if len(text) <= 60 else f"{text[:60]}…"
