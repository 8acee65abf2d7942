"""Answers that people declare invalid: they are lost, with the verdicts on them, until the declaration is undone.

A declaration is appended to the log and the hash chain. It applies to recorded answers and to those that are recorded
later. Rows are kept as they were, so that an undo restores them exactly.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Connection,
    String,
    Table,
    and_,
    case,
    cast,
    delete,
    exists,
    false,
    func,
    or_,
    select,
    true,
    update,
)

from auditor.config.installed_probes import is_installed, load_probe
from auditor.domain import (
    AlteredTraceVerdict,
    Contest,
    Guess,
    Outcome,
    Purpose,
    Restatement,
    SentencePairScore,
    Trace,
    Verdict,
    canonical_json,
)
from auditor.domain.comparisons import CELL_SEPARATOR, TRACE_ITEM_SEPARATOR, Comparison
from auditor.domain.exclusions import AnswerSelection, ExcludedContent, Exclusion, ExclusionAct
from auditor.domain.opinions import Opinion
from auditor.domain.semantic import MoralAnswerRecord, PairVerdict
from auditor.errors import UsageError
from auditor.probe_interface import Needs, ProbeResult
from auditor.storage import hash_chain
from auditor.storage.database import Database
from auditor.storage.ledger import utc_now
from auditor.storage.row_writing import select_records, table_of, upsert

DIRECT = "direct"
"""`AnswerSelection.probe` of direct answers."""


class AnswerKind(NamedTuple):
    """How the answers of one class of records are selected and emptied.

    Attributes:
        probe: name of the probe; None where a column names it.
        values: columns that an exclusion empties.
        model: column with the name of the model that answered.
        outcomes: columns with outcomes, which become `excluded`.
    """

    probe: str | None
    values: tuple[str, ...]
    model: str = "model"
    outcomes: tuple[str, ...] = ("outcome",)


ANSWER_KINDS: Mapping[type, AnswerKind] = {
    Trace: AnswerKind(DIRECT, ("score", "text", "answer")),
    SentencePairScore: AnswerKind("logprob", ("difference",)),
    Opinion: AnswerKind("distribution", ("shares", "n", "is_rescaled", "mass")),
    MoralAnswerRecord: AnswerKind("semantic", ("text", "rot"), outcomes=("outcome", "rot_outcome")),
    Comparison: AnswerKind("logic", ("decision", "probability"), model="judge"),
    ProbeResult: AnswerKind(None, ("value",)),
}
"""Classes of answers. Trace is the first: others are derived from traces."""
DEPENDENT_RECORDS: Sequence[type] = (Verdict, Guess, Restatement, AlteredTraceVerdict, Contest)
"""Classes of what judges say of a trace; an exclusion deletes them."""
_RECORD_CLASSES = {
    table_of(record_class).name: record_class for record_class in (*ANSWER_KINDS, *DEPENDENT_RECORDS, PairVerdict)
}


def exclude_answers(db: Database, audit_id: int, selection: AnswerSelection, reason: str) -> Exclusion:
    """Declare answers invalid; their rows and those that depend on them are changed in the same transaction.

    Raises:
        UsageError: no recorded answer matches, or all that match are excluded already.
        StorageError: nothing was saved.
    """

    def job(connection: Connection) -> int:
        if not any(
            _count_matches(connection, audit_id, record_class, selection, is_excluded=False)
            for record_class in ANSWER_KINDS
        ):
            raise UsageError(
                "no recorded answer matches that is not excluded already.",
                "Check the names: `auditor traces` lists the answers, `auditor exclude AUDIT --list` the exclusions. "
                "Scores that were imported without answers cannot be excluded: import a file without them.",
            )
        exclusion_id = hash_chain.append_entry(connection, audit_id, Exclusion(0, selection, reason, utc_now()))
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

    def job(connection: Connection) -> None:
        if exclusion_id not in [exclusion.id for exclusion in _load_in_force(connection, audit_id)]:
            raise UsageError(
                f"the audit has no exclusion {exclusion_id} in force.", "List them: auditor exclude AUDIT --list"
            )
        undo = Exclusion(0, AnswerSelection(), reason, utc_now(), act=ExclusionAct.UNDO, of=exclusion_id)
        hash_chain.append_entry(connection, audit_id, undo)
        _restore(connection, audit_id)
        apply_exclusions(connection, audit_id)

    db.write(job)


def load_exclusions(db: Database, audit_id: int) -> list[Exclusion]:
    """Load an audit's declarations in force, the oldest first."""
    with db.read() as connection:
        return [
            replace(
                exclusion,
                n_answers=sum(
                    _count_matches(connection, audit_id, record_class, exclusion.selection, is_excluded=True)
                    for record_class in ANSWER_KINDS
                ),
            )
            for exclusion in _load_in_force(connection, audit_id)
        ]


def apply_exclusions(connection: Connection, audit_id: int) -> None:
    """Exclude the rows that match a declaration in force; called in every transaction that writes answers."""
    for exclusion in _load_in_force(connection, audit_id):
        _withdraw(connection, audit_id, exclusion.selection)


# --- inside a transaction ---------------------------------------------------------------------------------------


def _load_in_force(connection: Connection, audit_id: int) -> list[Exclusion]:
    """Load an audit's declarations that were not undone, the oldest first."""
    c = table_of(Exclusion).c
    exclusions = select_records(connection, Exclusion, c.audit_id == audit_id, order_by=[c.id])
    undone = {exclusion.of for exclusion in exclusions if exclusion.act is ExclusionAct.UNDO}
    return [
        exclusion for exclusion in exclusions if exclusion.act is ExclusionAct.EXCLUDE and exclusion.id not in undone
    ]


def _is_selected(
    connection: Connection, audit_id: int, record_class: type, selection: AnswerSelection
) -> ColumnElement[bool] | None:
    """Condition: an answer matches a selection, or is derived from a direct answer that does; None if none can."""
    kind, c = ANSWER_KINDS[record_class], table_of(record_class).c
    conditions: list[ColumnElement[bool]] = []
    is_of_probe = selection.probe in (None, kind.probe) or record_class is ProbeResult
    if is_of_probe and (selection.sample is None or record_class is Trace):
        matches = [c[kind.model] == selection.model] if selection.model is not None else []
        matches += [c.probe == selection.probe] if record_class is ProbeResult and selection.probe is not None else []
        matches += [
            _is_about(record_class, name, value)
            for name, value in (("country", selection.country), ("topic", selection.topic))
            if value is not None
        ]
        matches += [c.sample == selection.sample] if selection.sample is not None else []
        conditions.append(and_(*matches))
    if selection.probe in (None, DIRECT):
        conditions += _is_derived(connection, audit_id, record_class, selection)
    return and_(c.audit_id == audit_id, or_(*conditions)) if conditions else None


def _is_about(record_class: type, name: str, value: str) -> ColumnElement[bool]:
    """Condition: an answer is about a country or a topic; see `AnswerSelection`."""
    c = table_of(record_class).c
    if record_class is MoralAnswerRecord:
        return c.question == value if name == "topic" else false()
    if record_class is ProbeResult:
        return c.unit.contains(canonical_json(value), autoescape=True)
    if record_class is not Comparison:
        return c[name] == value
    if name == "country":
        return or_(c.context == value, c.context.startswith(f"{value}{CELL_SEPARATOR}", autoescape=True))
    is_of_set = or_(c.context == value, c.context.endswith(f"{CELL_SEPARATOR}{value}", autoescape=True))
    return or_(is_of_set, c.item_a == value, c.item_b == value)


def _is_derived(
    connection: Connection, audit_id: int, record_class: type, selection: AnswerSelection
) -> list[ColumnElement[bool]]:
    """Condition: an answer rests on a direct answer that matches a selection; empty for a class whose answers do not.

    These are answers to a task's items that the probe `semantic` compares, comparisons of direct answers, and answers
    of probes of other packages that need the direct answers on a cell.
    """
    c, trace = table_of(record_class).c, table_of(Trace).c
    if record_class is ProbeResult:
        is_about = [
            _is_about(record_class, "country", value)
            for value in (selection.country, selection.topic)
            if value is not None
        ]
        is_of_model = [c.model == selection.model] if selection.model is not None else []
        return [and_(c.probe.in_(_list_probes_of_cells(connection, audit_id)), *is_of_model, *is_about)]
    if record_class not in (MoralAnswerRecord, Comparison):
        return []
    matches = [trace.audit_id == c.audit_id, *_match_columns(Trace, selection)]
    if record_class is MoralAnswerRecord:
        matches += [c.key.is_(None), trace.model == c.model, trace.topic == c.question, trace.sample == c.sample]
    else:
        item = trace.model + TRACE_ITEM_SEPARATOR + cast(trace.sample, String)
        matches += [c.context == trace.country + CELL_SEPARATOR + trace.topic, or_(c.item_a == item, c.item_b == item)]
    return [exists().where(*matches)]


def _list_probes_of_cells(connection: Connection, audit_id: int) -> list[str]:
    """List the probes of other packages that an audit has results of, and that need the direct answers on a cell."""
    c = table_of(ProbeResult).c
    names = connection.execute(select(c.probe).where(c.audit_id == audit_id).distinct()).scalars()
    return [name for name in names if is_installed(name) and load_probe(name).probe.needs is Needs.CELL_TRACES]


def _match_columns(record_class: type, selection: AnswerSelection) -> list[ColumnElement[bool]]:
    """Conditions: the columns of a trace, or of what judges say of one, have the values of a selection."""
    c = table_of(record_class).c
    conditions = []
    for name, value in asdict(selection).items():
        if value is None:
            continue
        if record_class is Contest and name == "model":
            conditions.append(or_(c.left == value, c.right == value))
        elif name in c:
            conditions.append(c[name] == value)
    return conditions


def _judges_excluded_pair() -> ColumnElement[bool]:
    """Condition: a verdict is about a pair of answers of the probe `semantic`, one of which is excluded."""
    c, answer = table_of(PairVerdict).c, table_of(MoralAnswerRecord).c
    number = case((c.purpose == Purpose.CONSISTENCY.value, answer.sample), else_=answer.wording)
    is_original = case((c.purpose == Purpose.CONSISTENCY.value, answer.wording == 0), else_=answer.wording > 0)
    return exists().where(
        answer.audit_id == c.audit_id,
        answer.model == c.model,
        answer.question == c.question,
        answer.outcome == Outcome.EXCLUDED.value,
        is_original,
        or_(number == c.left, number == c.right),
    )


def _count_matches(
    connection: Connection, audit_id: int, record_class: type, selection: AnswerSelection, *, is_excluded: bool
) -> int:
    """Count the answers of a class that match, those that are excluded or those that are not."""
    table, condition = table_of(record_class), _is_selected(connection, audit_id, record_class, selection)
    if condition is None:
        return 0
    is_counted = (table.c.outcome == Outcome.EXCLUDED.value) == is_excluded
    query = select(func.count()).select_from(table).where(condition, is_counted)
    return int(connection.execute(query).scalar_one())


def _withdraw(connection: Connection, audit_id: int, selection: AnswerSelection) -> None:
    """Mark matching answers as excluded, and delete what depends on them; all rows are kept as they were."""
    for record_class, kind in ANSWER_KINDS.items():
        table, condition = table_of(record_class), _is_selected(connection, audit_id, record_class, selection)
        if condition is None:
            continue
        is_new = and_(condition, table.c.outcome != Outcome.EXCLUDED.value)
        if _keep_rows(connection, audit_id, table, is_new):
            marked = {
                name: case((table.c[name].is_not(None), Outcome.EXCLUDED.value), else_=None) for name in kind.outcomes
            }
            connection.execute(update(table).where(is_new).values(**marked, **dict.fromkeys(kind.values)))
    dependents = DEPENDENT_RECORDS if selection.probe in (None, DIRECT) else ()
    conditions = {record_class: and_(true(), *_match_columns(record_class, selection)) for record_class in dependents}
    for record_class, condition in {**conditions, PairVerdict: _judges_excluded_pair()}.items():
        table = table_of(record_class)
        is_dependent = and_(table.c.audit_id == audit_id, condition)
        if _keep_rows(connection, audit_id, table, is_dependent):
            connection.execute(delete(table).where(is_dependent))


def _keep_rows(connection: Connection, audit_id: int, table: Table, condition: ColumnElement[bool]) -> int:
    """Store the rows that match a condition as they are, and return their number."""
    key_names = [column.name for column in table.primary_key]
    rows = connection.execute(select(table).where(condition)).mappings().all()
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


def _restore(connection: Connection, audit_id: int) -> None:
    """Write all excluded rows of an audit as they were."""
    table = table_of(ExcludedContent)
    query = select(table.c.source, table.c.content).where(table.c.audit_id == audit_id)
    contents: dict[str, list[dict[str, Any]]] = {}
    for source, content in connection.execute(query):
        contents.setdefault(source, []).append(json.loads(content))
    for source, rows in contents.items():
        upsert(connection, _RECORD_CLASSES[source], rows)
    connection.execute(delete(table).where(table.c.audit_id == audit_id))
