"""Answers that people declare invalid: they are lost, with the verdicts on them, until the declaration is undone.

A declaration is appended to the log and the hash chain. It applies to recorded answers and to those that are recorded
later. Rows are kept as they were, so that an undo restores them exactly.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, TypeVar

import sqlalchemy as sa

from auditor.config.installed_probes import is_installed, list_built_in_probes, load_probe
from auditor.domain import (
    AlteredTraceVerdict,
    Contest,
    Guess,
    Outcome,
    Restatement,
    SentencePairScore,
    Trace,
    Verdict,
    canonical_json,
)
from auditor.domain.audit_records import AnswerSelection, Audit, ExcludedContent, Exclusion, ExclusionAct
from auditor.errors import UsageError, did_you_mean
from auditor.probe_interface import Needs, ProbeResult
from auditor.storage import hash_chain
from auditor.storage.call_records import ChainLink
from auditor.storage.database import Database
from auditor.storage.ledger import utc_now
from auditor.storage.probe_results import AnswerKind
from auditor.storage.row_classes import conversion_of, select_records, table_of, upsert

R = TypeVar("R")
MAX_VALUES = 100
"""Values of a column that a query lists; old versions of SQLite allow 999 variables."""
DIRECT = "direct"
"""`AnswerSelection.probe` of direct answers."""


DEPENDENT_RECORDS: Sequence[type] = (Verdict, Guess, Restatement, AlteredTraceVerdict, Contest)
"""Classes of what judges say of a trace; an exclusion deletes them."""


@functools.cache
def list_answer_kinds() -> Mapping[type, AnswerKind]:
    """List the classes of answers. Trace is the first: others are derived from traces."""
    return {
        Trace: AnswerKind(("score", "text", "answer")),
        SentencePairScore: AnswerKind(("difference",)),
        **{probe.answer_record(): probe.answer_kind() for probe in list_built_in_probes()},
        ProbeResult: AnswerKind(("value",)),
    }


@functools.cache
def _list_probe_names() -> Mapping[type, str]:
    """List names of probes by the class of their answers. In answers of other packages, a column names the probe."""
    built_in = {probe.answer_record(): probe.name for probe in list_built_in_probes()}
    return {Trace: DIRECT, SentencePairScore: "logprob", **built_in}


@functools.cache
def _list_dependents() -> Mapping[type, sa.ColumnElement[bool]]:
    """List the classes of what rests on answers of built-in probes, with the condition that one is excluded."""
    return {
        record_class: condition
        for probe in list_built_in_probes()
        for record_class, condition in probe.list_dependents().items()
    }


def exclude_answers(db: Database, audit_id: int, selection: AnswerSelection, reason: str) -> Exclusion:
    """Declare answers invalid; their rows and those that depend on them are changed in the same transaction.

    Raises:
        UsageError: no recorded answer matches, or all that match are excluded already.
        StorageError: nothing was saved.
    """

    def job(connection: sa.Connection) -> int:
        if not any(
            _count_matches(connection, audit_id, record_class, selection, is_excluded=False)
            for record_class in list_answer_kinds()
        ):
            raise UsageError(
                "no recorded answer matches that is not excluded already.",
                _suggest_name(connection, audit_id, selection)
                or "Check the names: `auditor traces` lists answers, and `auditor exclude AUDIT --list` exclusions. "
                "Scores that were imported without answers cannot be excluded: import a file without them.",
            )
        exclusion_id = hash_chain.append_entry(connection, audit_id, Exclusion(0, selection, reason, utc_now()))
        with hash_chain.record_changes(connection, audit_id, _list_kinds(connection, audit_id)):
            _withdraw(connection, audit_id, selection)
        return exclusion_id

    exclusion_id = db.write(job)
    return next(exclusion for exclusion in load_exclusions(db, audit_id) if exclusion.id == exclusion_id)


def undo_exclusion(db: Database, audit_id: int, exclusion_id: int, reason: str = "") -> None:
    """Undo a declaration: its answers count again as before, unless another declaration includes them.

    Raises:
        UsageError: the audit has no such declaration in force.
        StorageError: nothing was saved.
    """

    def job(connection: sa.Connection) -> None:
        if exclusion_id not in [exclusion.id for exclusion in _load_in_force(connection, audit_id)]:
            raise UsageError(
                f"the audit has no exclusion {exclusion_id} in force.", "List them: auditor exclude AUDIT --list"
            )
        undo = Exclusion(0, AnswerSelection(), reason, utc_now(), act=ExclusionAct.UNDO, of=exclusion_id)
        hash_chain.append_entry(connection, audit_id, undo)
        with hash_chain.record_changes(connection, audit_id, _list_kinds(connection, audit_id)):
            _restore(connection, audit_id)
            apply_exclusions(connection, audit_id)

    db.write(job)


def _list_kinds(connection: sa.Connection, audit_id: int) -> list[str]:
    """Kinds of rows that an exclusion changes and that are in the hash chain."""
    audit = table_of(Audit).c
    config = connection.execute(sa.select(audit.config).where(audit.id == audit_id)).scalar_one()
    return hash_chain.input_kinds(is_imported=config is None)


def load_exclusions(db: Database, audit_id: int) -> list[Exclusion]:
    """Load an audit's declarations in force, the oldest first."""
    with db.read() as connection:
        return [
            replace(
                exclusion,
                n_answers=sum(
                    _count_matches(connection, audit_id, record_class, exclusion.selection, is_excluded=True)
                    for record_class in list_answer_kinds()
                ),
            )
            for exclusion in _load_in_force(connection, audit_id)
        ]


def count_excluded_before_import(db: Database, audit_id: int) -> int:
    """Count the answers of an imported audit that the file called excluded, and no declaration here."""
    n_answers = 0
    with db.read() as connection:
        for table in map(table_of, list_answer_kinds()):
            is_excluded = sa.and_(table.c.audit_id == audit_id, table.c.outcome == Outcome.EXCLUDED.value)
            key_columns = [column for column in table.primary_key if column.name != "audit_id"]
            keys = {tuple(row) for row in connection.execute(sa.select(*key_columns).where(is_excluded))}
            n_answers += len(keys - read_excluded_keys(connection, audit_id, table)) if keys else 0
    return n_answers


def load_excluded(db: Database, audit_id: int, record_class: type[R]) -> list[R]:
    """Load the excluded records of a class as they were before."""
    c, conversion = table_of(ExcludedContent).c, conversion_of(record_class)
    query = sa.select(c.content).where(c.audit_id == audit_id, c.source == table_of(record_class).name)
    with db.read() as connection:
        rows = [json.loads(content) for content in connection.execute(query).scalars()]
    return [conversion.to_record([row[name] for name in conversion.column_names]) for row in rows]


def read_excluded_keys(connection: sa.Connection, audit_id: int, table: sa.Table) -> set[tuple[Any, ...]]:
    """Read the keys of a table's rows that are kept as they were, without the audit's id, which is their first part."""
    c = table_of(ExcludedContent).c
    rows = connection.execute(sa.select(c.row).where(c.audit_id == audit_id, c.source == table.name)).scalars()
    return {tuple(json.loads(row)[1:]) for row in rows}


def forget_excluded(
    connection: sa.Connection, audit_id: int, table: sa.Table, keys: Iterable[tuple[object, ...]]
) -> None:
    """Delete what is kept of rows with some keys, as of `read_excluded_keys`, so that no undo restores them."""
    contents = table_of(ExcludedContent)
    with hash_chain.record_changes(connection, audit_id, [contents.name]):
        for key in keys:
            is_row = contents.c.row == canonical_json([audit_id, *key])
            connection.execute(
                sa.delete(contents).where(contents.c.audit_id == audit_id, contents.c.source == table.name, is_row)
            )


def apply_exclusions(connection: sa.Connection, audit_id: int) -> None:
    """Exclude the rows that match a declaration in force, and what depends on them."""
    for exclusion in _load_in_force(connection, audit_id):
        _withdraw(connection, audit_id, exclusion.selection)


def apply_to_written(
    connection: sa.Connection, audit_id: int, record_class: type, rows: Sequence[Mapping[str, Any]]
) -> None:
    """Exclude those of some answers that match a declaration in force; called in every transaction that writes answers.

    Nothing depends on them yet, since excluded answers are not used. An index finds them, so that a batch does not read
    the answers of all batches before.

    Args:
        rows: that were written to the table of the class.
    """
    exclusions = _load_in_force(connection, audit_id) if record_class in list_answer_kinds() else []
    if exclusions:
        key_columns = [column for column in table_of(record_class).primary_key if column.name in rows[0]]
        values_by_column = {column: sorted({row[column.name] for row in rows}) for column in key_columns}
        is_written = [column.in_(values) for column, values in values_by_column.items() if len(values) <= MAX_VALUES]
        for exclusion in exclusions:
            _mark_answers(connection, audit_id, record_class, exclusion.selection, *is_written)


# --- inside a transaction ---------------------------------------------------------------------------------------


def changed_after(connection: sa.Connection, audit_id: int, link_id: int) -> bool:
    """Whether other answers of an audit are excluded now than when a link of the hash chain was appended."""
    link = table_of(ChainLink).c
    is_later = sa.and_(link.audit_id == audit_id, link.kind == table_of(Exclusion).name, link.id > link_id)
    later = set(connection.execute(sa.select(link.row).where(is_later)).scalars())
    now, before = _load_in_force(connection, audit_id), _load_in_force(connection, audit_id, left_out=later)
    return {exclusion.selection for exclusion in now} != {exclusion.selection for exclusion in before}


def _load_in_force(connection: sa.Connection, audit_id: int, left_out: Collection[str] = ()) -> list[Exclusion]:
    """Load an audit's declarations that were not undone, the oldest first; without rows of some ids, as texts."""
    c = table_of(Exclusion).c
    exclusions = select_records(connection, Exclusion, c.audit_id == audit_id, order_by=[c.id])
    exclusions = [exclusion for exclusion in exclusions if str(exclusion.id) not in left_out]
    undone = {exclusion.of for exclusion in exclusions if exclusion.act is ExclusionAct.UNDO}
    return [
        exclusion for exclusion in exclusions if exclusion.act is ExclusionAct.EXCLUDE and exclusion.id not in undone
    ]


def _is_selected(
    connection: sa.Connection, audit_id: int, record_class: type, selection: AnswerSelection
) -> sa.ColumnElement[bool] | None:
    """Condition: an answer matches a selection, or is derived from a direct answer that does; None if none can."""
    kind, c = list_answer_kinds()[record_class], table_of(record_class).c
    conditions: list[sa.ColumnElement[bool]] = []
    is_of_probe = selection.probe in (None, _list_probe_names().get(record_class)) or record_class is ProbeResult
    if is_of_probe and (selection.sample is None or record_class is Trace):
        matches = [c[kind.model] == selection.model] if selection.model is not None else []
        matches += [c.probe == selection.probe] if record_class is ProbeResult and selection.probe is not None else []
        matches += [
            _is_about(record_class, name, value)
            for name, value in (("country", selection.country), ("topic", selection.topic))
            if value is not None
        ]
        matches += [c.sample == selection.sample] if selection.sample is not None else []
        conditions.append(sa.and_(*matches))
    if selection.probe in (None, DIRECT):
        conditions += _is_derived(connection, audit_id, record_class, selection)
    return sa.and_(c.audit_id == audit_id, sa.or_(*conditions)) if conditions else None


def _is_about(record_class: type, name: str, value: str) -> sa.ColumnElement[bool]:
    """Condition: an answer is about a country or a topic; see `AnswerSelection`."""
    c = table_of(record_class).c
    if record_class is ProbeResult:
        return c.unit.contains(canonical_json(value), autoescape=True)
    is_about = list_answer_kinds()[record_class].is_about
    return c[name] == value if is_about is None else is_about(name, value)


def _is_derived(
    connection: sa.Connection, audit_id: int, record_class: type, selection: AnswerSelection
) -> list[sa.ColumnElement[bool]]:
    """Condition: an answer rests on a direct answer that matches a selection; empty for a class whose answers do not.

    These are answers that a built-in probe compares, and answers of probes of other packages that need the direct
    answers on a cell.
    """
    c = table_of(record_class).c
    if record_class is ProbeResult:
        is_about = [
            _is_about(record_class, "country", value)
            for value in (selection.country, selection.topic)
            if value is not None
        ]
        is_of_model = [c.model == selection.model] if selection.model is not None else []
        return [sa.and_(c.probe.in_(_list_probes_of_cells(connection, audit_id)), *is_of_model, *is_about)]
    rests_on = list_answer_kinds()[record_class].rests_on
    if rests_on is None:
        return []
    trace = table_of(Trace).c
    return [sa.exists().where(trace.audit_id == c.audit_id, *_match_columns(Trace, selection), rests_on(trace))]


def _list_probes_of_cells(connection: sa.Connection, audit_id: int) -> list[str]:
    """List the probes of other packages that an audit has results of, and that need the direct answers on a cell."""
    c = table_of(ProbeResult).c
    names = connection.execute(sa.select(c.probe).where(c.audit_id == audit_id).distinct()).scalars()
    return [name for name in names if is_installed(name) and load_probe(name).probe.needs is Needs.CELL_TRACES]


def _match_columns(record_class: type, selection: AnswerSelection) -> list[sa.ColumnElement[bool]]:
    """Conditions: the columns of a trace, or of what judges say of one, have the values of a selection."""
    c = table_of(record_class).c
    conditions = []
    for name, value in asdict(selection).items():
        if value is None:
            continue
        if record_class is Contest and name == "model":
            conditions.append(sa.or_(c.left == value, c.right == value))
        elif name in c:
            conditions.append(c[name] == value)
    return conditions


def _suggest_name(connection: sa.Connection, audit_id: int, selection: AnswerSelection) -> str:
    """A question that names the recorded name closest to a selected one that no answer has; empty if none is close."""
    for column in ("model", "country", "topic"):
        if (name := getattr(selection, column)) is None:
            continue
        tables = [table for table in map(table_of, list_answer_kinds()) if column in table.c]
        queries = [sa.select(table.c[column]).where(table.c.audit_id == audit_id).distinct() for table in tables]
        known_names = {str(known) for query in queries for known in connection.execute(query).scalars()}
        if name not in known_names and (hint := did_you_mean(name, sorted(known_names), "")):
            return hint
    return ""


def _count_matches(
    connection: sa.Connection, audit_id: int, record_class: type, selection: AnswerSelection, *, is_excluded: bool
) -> int:
    """Count the answers of a class that match, those that are excluded or those that are not."""
    table, condition = table_of(record_class), _is_selected(connection, audit_id, record_class, selection)
    if condition is None:
        return 0
    is_counted = (table.c.outcome == Outcome.EXCLUDED.value) == is_excluded
    query = sa.select(sa.func.count()).select_from(table).where(condition, is_counted)
    return int(connection.execute(query).scalar_one())


def _withdraw(connection: sa.Connection, audit_id: int, selection: AnswerSelection) -> None:
    """Mark matching answers as excluded, and delete what depends on them; all rows are kept as they were."""
    for record_class in list_answer_kinds():
        _mark_answers(connection, audit_id, record_class, selection)
    dependents = DEPENDENT_RECORDS if selection.probe in (None, DIRECT) else ()
    conditions = {
        record_class: sa.and_(sa.true(), *_match_columns(record_class, selection)) for record_class in dependents
    }
    for record_class, condition in {**conditions, **_list_dependents()}.items():
        table = table_of(record_class)
        is_dependent = sa.and_(table.c.audit_id == audit_id, condition)
        if _keep_rows(connection, audit_id, table, is_dependent):
            connection.execute(sa.delete(table).where(is_dependent))


def _mark_answers(
    connection: sa.Connection,
    audit_id: int,
    record_class: type,
    selection: AnswerSelection,
    *is_among: sa.ColumnElement[bool],
) -> None:
    """Mark the matching answers of a class as excluded, of those that meet some conditions; see `_withdraw`."""
    table, kind = table_of(record_class), list_answer_kinds()[record_class]
    condition = _is_selected(connection, audit_id, record_class, selection)
    if condition is None:
        return
    is_new = sa.and_(condition, table.c.outcome != Outcome.EXCLUDED.value, *is_among)
    if _keep_rows(connection, audit_id, table, is_new):
        marked = {
            name: sa.case((table.c[name].is_not(None), Outcome.EXCLUDED.value), else_=None) for name in kind.outcomes
        }
        connection.execute(sa.update(table).where(is_new).values(**marked, **dict.fromkeys(kind.values)))


def _keep_rows(connection: sa.Connection, audit_id: int, table: sa.Table, condition: sa.ColumnElement[bool]) -> int:
    """Store the rows that match a condition as they are, and return their number."""
    key_names = [column.name for column in table.primary_key]
    rows = connection.execute(sa.select(table).where(condition)).mappings().all()
    contents = [
        {
            "audit_id": audit_id,
            "source": table.name,
            "row": canonical_json([row[name] for name in key_names]),
            "content": json.dumps(dict(row)),
        }
        for row in rows
    ]
    upsert(connection, ExcludedContent, contents)
    return len(contents)


def _restore(connection: sa.Connection, audit_id: int) -> None:
    """Write all excluded rows of an audit as they were."""
    table = table_of(ExcludedContent)
    query = sa.select(table.c.source, table.c.content).where(table.c.audit_id == audit_id)
    contents: dict[str, list[dict[str, Any]]] = {}
    for source, content in connection.execute(query):
        contents.setdefault(source, []).append(json.loads(content))
    record_classes = (*list_answer_kinds(), *DEPENDENT_RECORDS, *_list_dependents())
    class_by_table = {table_of(record_class).name: record_class for record_class in record_classes}
    for source, rows in contents.items():
        if source in class_by_table:  # not of a rereading
            upsert(connection, class_by_table[source], rows)
    connection.execute(sa.delete(table).where(table.c.audit_id == audit_id, table.c.source.in_(list(class_by_table))))
