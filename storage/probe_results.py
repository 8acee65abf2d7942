"""What probes read from answers, and counts of answers by outcome."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeAlias

import sqlalchemy as sa

from auditor.config import AuditConfig
from auditor.config.installed_probes import list_built_in_names, list_built_in_probes, load_built_in
from auditor.config.probe_section import BuiltInProbe, LabelForm
from auditor.domain import Outcome
from auditor.domain.labels import LabelKind
from auditor.probe_interface import ProbeResult
from auditor.storage.database import Database
from auditor.storage.row_classes import table_of

Columns: TypeAlias = Any
"""Columns of a table, as attributes."""
Condition: TypeAlias = Any
"""SQL condition on columns, made with `==`, `&` and `|`; SQLAlchemy types such expressions as Any."""
ANSWER_RECORDS: Mapping[str, type] = {name: load_built_in(name).answer_record() for name in list_built_in_names()}
"""Class of the records of a probe's answers, by the probe's name."""
PROBE_RECORDS: Mapping[str, list[type]] = {name: load_built_in(name).list_records() for name in list_built_in_names()}
"""Classes of all stored records of a probe, by the probe's name."""


class AnswerKind(NamedTuple):
    """How the answers of one class of records are declared invalid (`auditor.storage.exclusions`).

    Attributes:
        values: columns that an exclusion empties.
        model: column with the name of the model that answered.
        outcomes: columns with outcomes, which become `excluded`.
        is_about: returns the condition that an answer is about a country or topic, by "country" or "topic" and its
            value; None where columns of these names have them.
        rests_on: returns the condition that an answer was derived from a direct answer, by its columns; None where
            none is.
    """

    values: tuple[str, ...]
    model: str = "model"
    outcomes: tuple[str, ...] = ("outcome",)
    is_about: Callable[[str, str], sa.ColumnElement[bool]] | None = None
    rests_on: Callable[[Columns], sa.ColumnElement[bool]] | None = None


class RepeatedQuestions(NamedTuple):
    """The questions of a probe that one row of its coverage counts, for counts of those that were asked again.

    Attributes:
        method: `StageCoverage.method` of the row, or the column that names it.
        model: column with the name of the model that answered.
        first_outcome: column with the outcome before the question was asked again.
        outcome: column with the outcome.
        condition: which rows are counted; None for all.
    """

    method: str | sa.ColumnElement[Any] | None
    model: sa.ColumnElement[str]
    first_outcome: sa.ColumnElement[str | None]
    outcome: sa.ColumnElement[str]
    condition: sa.ColumnElement[bool] | None = None


def name_constant(value: str, name: str) -> sa.ColumnElement[str]:
    """Expression: a column of a query that has the same value in every row."""
    return sa.literal(value).label(name)


def as_text(number: sa.ColumnElement[int]) -> sa.ColumnElement[str]:
    """Expression: a number as a text, for comparisons with columns of texts."""
    return sa.cast(number, sa.String)


class AnswerCount(NamedTuple):
    """Number of recorded answers, and of those whose outcome is `ok`."""

    n: int
    ok: int


def count_answers(connection: sa.Connection, audit_id: int, record_class: type) -> AnswerCount:
    """Count an audit's records of a class with the column `outcome`."""
    c = table_of(record_class).c
    query = sa.select(c.outcome, sa.func.count()).where(c.audit_id == audit_id).group_by(c.outcome)
    n_by_outcome = {outcome: int(n) for outcome, n in connection.execute(query)}
    return AnswerCount(sum(n_by_outcome.values()), n_by_outcome.get(Outcome.OK.value, 0))


def count_probe_answers(connection: sa.Connection, audit_id: int) -> dict[str, AnswerCount]:
    """Count an audit's answers of each built-in probe, and of each other probe that has some, by the probe's name."""
    counts = {name: count_answers(connection, audit_id, record_class) for name, record_class in ANSWER_RECORDS.items()}
    c = table_of(ProbeResult).c
    is_ok = sa.case((c.outcome == Outcome.OK.value, 1), else_=0)
    query = sa.select(c.probe, sa.func.count(), sa.func.sum(is_ok)).where(c.audit_id == audit_id).group_by(c.probe)
    others = {name: AnswerCount(int(n), int(ok)) for name, n, ok in connection.execute(query.order_by(c.probe))}
    return {**counts, **others}


def name_answers(probe: str) -> str:
    """Name one answer of a probe, in the singular, for lists of what an audit has."""
    return load_built_in(probe).noun if probe in list_built_in_names() else f"{probe} answer"


def list_stored_probes(db: Database, audit_id: int) -> list[str]:
    """List the names of the probes that an audit has rows of in any table, such as answers, usable or not."""
    with db.read() as connection:
        return [
            name
            for name, record_classes in PROBE_RECORDS.items()
            if any(_has_rows(connection, audit_id, record_class) for record_class in record_classes)
        ]


def _has_rows(connection: sa.Connection, audit_id: int, record_class: type) -> bool:
    """Whether an audit has a record of a class."""
    c = table_of(record_class).c
    return connection.execute(sa.select(c.audit_id).where(c.audit_id == audit_id).limit(1)).first() is not None


def list_answering_models(db: Database, audit_id: int, probes: Iterable[str] = tuple(ANSWER_RECORDS)) -> list[str]:
    """List the names of the models with answers to some probes, in order.

    Judges, in tables with the column `judge`, are left out.
    """
    columns = [table_of(ANSWER_RECORDS[probe]).c for probe in probes]
    queries = [sa.select(c.model).where(c.audit_id == audit_id).distinct() for c in columns if "judge" not in c]
    with db.read() as connection:
        return sorted({name for query in queries for name in connection.execute(query).scalars()})


def apply_vote_weights(db: Database, audit_id: int, config: AuditConfig) -> AuditConfig:
    """Return the config with the votes' weights by the probe that `panel.weights_from` names, or unchanged without."""
    if config.panel.weights_from is None:
        return config
    weights = load_built_in(config.panel.weights_from).measure_vote_weights(db, audit_id, config)
    return config.model_copy(update={"panel": config.panel.model_copy(update={"weights": weights})})


def find_label_form(kind: LabelKind | str) -> LabelForm:
    """The declaration of the labels of a kind; LookupError for traces, whose labels belong to no probe."""
    form = find_labelled_probe(LabelKind(kind)).label_form
    assert form is not None
    return form


def list_label_forms() -> list[LabelForm]:
    """The labels that built-in probes declare, in the order of their stages."""
    return [probe.label_form for probe in list_built_in_probes() if probe.label_form is not None]


def list_label_kinds() -> list[LabelKind]:
    """List what people can label: traces, then what each probe declares."""
    return [LabelKind.TRACE, *(form.kind for form in list_label_forms())]


def find_labelled_probe(kind: LabelKind) -> BuiltInProbe:
    """The built-in probe that labels of a kind are about; LookupError for traces, which belong to none."""
    labelled = [
        probe for probe in list_built_in_probes() if probe.label_form is not None and probe.label_form.kind is kind
    ]
    if not labelled:
        raise LookupError(kind)
    return labelled[0]


def list_probes_with_results(db: Database, audit_id: int) -> list[str]:
    """List the names of the probes that an audit has results of in the common table, in order."""
    c = table_of(ProbeResult).c
    with db.read() as connection:
        query = sa.select(c.probe).where(c.audit_id == audit_id).distinct()
        return sorted(str(name) for name in connection.execute(query).scalars())
