"""Comparisons of items: what was compared, and what judges answered, as rows and as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, RowMapping, delete, func, insert, select
from sqlmodel import SQLModel

from auditor.domain import Comparison, ComparisonChoice, Item, ItemSet, Outcome, Relation
from auditor.storage.database import Database, table_of, upsert
from auditor.storage.tables import ComparisonItemRow, ComparisonRow, ComparisonSetRow

Floats = NDArray[np.float64]
PREFERENCE_VALUES = {ComparisonChoice.FIRST: 1.0, ComparisonChoice.TIE: 0.5, ComparisonChoice.SECOND: 0.0}
"""What a decision is in a preference array (`auditor.metrics.preference`)."""


@dataclass(frozen=True)
class ItemSetAnswers:
    """All that one judge answered on one set in one wording, as `auditor.metrics.preference` wants it.

    Attributes:
        preferences, negated: shape (N, N); nan where a question was not asked or has no valid answer.
        asked: shape (2, N, N): which standard and which negated questions were asked.
        samples: shape (questions, repeats).
        people: shape (N, N), what people say of each pair; nan where unknown.
        losses: questions by outcome, those that are not `ok`, repeats included.
        questions: all of them.
    """

    judge: str
    paraphrase: int
    item_set: ItemSet
    preferences: Floats
    negated: Floats
    asked: NDArray[np.bool_]
    samples: Floats
    human_preferences: Floats
    failures: dict[str, int]
    n_questions: int


def replace_item_sets(db: Database, audit_id: int, item_sets: Sequence[ItemSet]) -> None:
    """Store what an audit compares in place of what it had."""
    of_sets, of_items = [], []
    for position, one in enumerate(item_sets):
        whose = {"audit_id": audit_id, "context": one.context}
        facts = {"position": position, "text": one.text, "criterion": one.criterion, "language": one.language}
        of_sets.append(whose | facts)
        of_items += [
            whose | {"item": item.id, "position": i, "text": item.text, "human": item.human}
            for i, item in enumerate(one.items)
        ]

    def job(connection: Connection) -> None:
        for row, values in ((ComparisonSetRow, of_sets), (ComparisonItemRow, of_items)):
            table = table_of(row)
            connection.execute(delete(table).where(table.c.audit_id == audit_id))
            if values:
                connection.execute(insert(table), values)

    db.write(job)


def save_comparisons(db: Database, audit_id: int, comparisons: Sequence[Comparison]) -> None:
    """Store answers; the same question to the same judge replaces what was there."""
    values = [{"audit_id": audit_id, **asdict(comparison)} for comparison in comparisons]
    if values:
        db.write(lambda connection: upsert(connection, ComparisonRow, values))


def delete_comparisons(db: Database, audit_id: int) -> None:
    """Forget an audit's answers; the ledger keeps those that models gave."""
    table = table_of(ComparisonRow)
    db.write(lambda connection: connection.execute(delete(table).where(table.c.audit_id == audit_id)))


def load_item_sets(db: Database, audit_id: int) -> list[ItemSet]:
    """What an audit compares, in order."""
    items: dict[str, list[Item]] = {}
    for row in _load_rows(db, audit_id, ComparisonItemRow, "position"):
        items.setdefault(row["context"], []).append(Item(row["item"], row["text"], row["human"]))
    return [
        ItemSet(
            context=row["context"],
            text=row["text"],
            criterion=row["criterion"],
            items=tuple(items.get(row["context"], ())),
            language=row["language"],
        )
        for row in _load_rows(db, audit_id, ComparisonSetRow, "position")
    ]


def load_comparisons(db: Database, audit_id: int) -> list[Comparison]:
    """All answers of an audit, in the order of their key."""
    names = {f.name for f in fields(Comparison)}
    return [
        Comparison(**{name: _parse_column(name, value) for name, value in row.items() if name in names})
        for row in _load_rows(db, audit_id, ComparisonRow)
    ]


def count_outcomes(db: Database, audit_id: int) -> dict[str, int]:
    """Answers of an audit by outcome."""
    c = table_of(ComparisonRow).c
    query = select(c.outcome, func.count()).where(c.audit_id == audit_id).group_by(c.outcome).order_by(c.outcome)
    with db.read() as connection:
        return {outcome: int(n) for outcome, n in connection.execute(query)}


def _load_rows(
    db: Database, audit_id: int, row_class: type[SQLModel], order_column: str | None = None
) -> Sequence[RowMapping]:
    table = table_of(row_class)
    by = [table.c[order_column]] if order_column else list(table.primary_key)
    with db.read() as connection:
        query = select(table).where(table.c.audit_id == audit_id).order_by(*by)
        return connection.execute(query).mappings().all()


def _parse_column(name: str, value: Any) -> Any:
    kinds = {"relation": Relation, "outcome": Outcome, "decision": ComparisonChoice, "people": ComparisonChoice}
    return kinds[name](value) if value is not None and name in kinds else value


# --- as arrays --------------------------------------------------------------------------------------------------


def build_set_answers(item_sets: Sequence[ItemSet], comparisons: Sequence[Comparison]) -> list[ItemSetAnswers]:
    """One judge, wording and set after the other, in order; a set that nobody answered on is not there."""
    place = {one.context: i for i, one in enumerate(item_sets)}
    groups: dict[tuple[str, int, int], list[Comparison]] = {}
    for comparison in comparisons:
        if comparison.context in place:
            key = (comparison.judge, comparison.paraphrase, place[comparison.context])
            groups.setdefault(key, []).append(comparison)
    return [_build_answers_of_judge(item_sets[key[2]], *key[:2], groups[key]) for key in sorted(groups)]


def _build_answers_of_judge(
    item_set: ItemSet, judge: str, paraphrase: int, comparisons: Sequence[Comparison]
) -> ItemSetAnswers:
    index = {item.id: i for i, item in enumerate(item_set.items)}
    n = len(index)
    values, asked = np.full((2, n, n), np.nan), np.zeros((2, n, n), dtype=bool)
    people = people_preferences(item_set)
    repeats: dict[tuple[int, int, int], dict[int, float]] = {}
    losses: dict[str, int] = {}
    questions = 0
    for c in comparisons:
        if c.item_a not in index or c.item_b not in index:
            continue
        where = (int(c.relation is Relation.NEGATED), index[c.item_a], index[c.item_b])
        questions += 1
        if c.outcome is not Outcome.OK:
            losses[c.outcome.value] = losses.get(c.outcome.value, 0) + 1
        if c.people is not None:
            people[where[1:]] = PREFERENCE_VALUES[c.people]
        if c.sample == 0:
            asked[where], values[where] = True, preference_value(c)
        else:
            repeats.setdefault(where, {})[c.sample] = preference_value(c)
    width = max((max(r) for r in repeats.values()), default=0)
    samples = [[r.get(s, np.nan) for s in range(1, width + 1)] for _, r in sorted(repeats.items())]
    table = np.array(samples, dtype=float).reshape(len(samples), width)
    return ItemSetAnswers(judge, paraphrase, item_set, values[0], values[1], asked, table, people, losses, questions)


def preference_value(comparison: Comparison) -> float:
    """The answer in a preference array: the probability where there is one, else the decision; nan without either."""
    if comparison.probability is not None:
        return comparison.probability
    return np.nan if comparison.decision is None else PREFERENCE_VALUES[comparison.decision]


def people_preferences(item_set: ItemSet) -> Floats:
    """What people's scores of the items say of each pair, shape (N, N): 1, 0.5 or 0, nan where one is unknown."""
    scores = np.array([np.nan if i.human is None else i.human for i in item_set.items], dtype=float)
    gap = scores[:, None] - scores[None, :]
    return np.where(np.isnan(gap), np.nan, (np.sign(gap) + 1) / 2)
