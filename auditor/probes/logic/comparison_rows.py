"""Pairwise comparisons of items: the item sets and the judges' answers, as rows and as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from auditor.domain import ComparisonChoice, Outcome
from auditor.metrics.logic.consistency import TIE_TOLERANCE, JudgeAnswers
from auditor.probes.logic.comparisons import (
    CELL_SEPARATOR,
    TRACE_ITEM_SEPARATOR,
    Comparison,
    ComparisonItem,
    Item,
    ItemSet,
    Relation,
)
from auditor.probes.logic.probe import COMPARISON
from auditor.storage.database import Database
from auditor.storage.labels import UnitQuery, list_part_names
from auditor.storage.probe_results import Columns, Condition, as_text
from auditor.storage.records import load_records, replace_records
from auditor.storage.row_classes import table_of

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement, Connection

Floats = NDArray[np.float64]
PREFERENCE_VALUES = {ComparisonChoice.FIRST: 1.0, ComparisonChoice.TIE: 0.5, ComparisonChoice.SECOND: 0.0}
"""Value of a decision in a preference array (`auditor.metrics.logic.consistency`)."""


@dataclass(frozen=True)
class ItemSetAnswers:
    """One judge's answers on one set of N items in one wording, as arrays for `auditor.metrics.logic.consistency`.

    Attributes:
        judge: name of the judge.
        paraphrase: number of the wording.
        item_set: the items compared.
        preferences, negated: answers to the standard and to the negated questions, shape (N, N), in [0, 1]: 1 chooses
            the row's item, 0 the column's; nan if a question was not asked or has no valid answer.
        asked: shape (2, N, N): which standard and which negated questions were asked.
        samples: answers to repeated questions, shape (questions, repeats).
        human_preferences: what people say of each pair, shape (N, N); nan where unknown.
        failures: number of questions without a valid answer by outcome, repeats included.
        n_questions: number of questions asked, repeats included.
        positions: rows of the answers in `preferences` in the imported file, shape (N, N); nan if there is none, None
            if the audit asked for them.
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
    positions: Floats | None = None

    @property
    def metric_input(self) -> JudgeAnswers:
        """The answers as the metrics take them.

        All wordings of a set have the same context, which names the cluster, since they are about the same items.
        """
        people = self.human_preferences
        return JudgeAnswers(self.preferences, self.negated, self.asked, self.samples, people, self.item_set.context)


def replace_item_sets(db: Database, audit_id: int, item_sets: Sequence[ItemSet]) -> None:
    """Store an audit's item sets in place of those it had."""
    db.write(lambda connection: _write_item_sets(connection, audit_id, item_sets))


def replace_comparisons(
    connection: Connection, audit_id: int, item_sets: Sequence[ItemSet], comparisons: Sequence[Comparison]
) -> None:
    """Store item sets and comparisons in place of those that an audit had, within a transaction."""
    _write_item_sets(connection, audit_id, item_sets)
    replace_records(connection, audit_id, Comparison, comparisons)


def _write_item_sets(connection: Connection, audit_id: int, item_sets: Sequence[ItemSet]) -> None:
    """Do what `replace_item_sets` does within a transaction."""
    items = [
        ComparisonItem(item_set.context, item.id, item.text, item.human)
        for item_set in item_sets
        for item in item_set.items
    ]
    replace_records(connection, audit_id, ItemSet, item_sets)
    replace_records(connection, audit_id, ComparisonItem, items)


def load_item_sets(db: Database, audit_id: int, context: str | None = None) -> list[ItemSet]:
    """Load an audit's item sets, in order, or the one of a context."""
    items: dict[str, list[Item]] = {}
    for stored in load_records(db, audit_id, ComparisonItem, context=context):
        items.setdefault(stored.context, []).append(Item(stored.item, stored.text, stored.human))
    return [
        replace(item_set, items=tuple(items.get(item_set.context, ())))
        for item_set in load_records(db, audit_id, ItemSet, context=context)
    ]


# --- as arrays --------------------------------------------------------------------------------------------------


def build_set_answers(item_sets: Sequence[ItemSet], comparisons: Sequence[Comparison]) -> list[ItemSetAnswers]:
    """Group comparisons by judge, wording and item set, in this order; a set without comparisons is left out."""
    set_index = {item_set.context: i for i, item_set in enumerate(item_sets)}
    groups: dict[tuple[str, int, int], list[Comparison]] = {}
    for comparison in comparisons:
        if comparison.context in set_index:
            key = (comparison.judge, comparison.paraphrase, set_index[comparison.context])
            groups.setdefault(key, []).append(comparison)
    return [_build_answers_of_judge(item_sets[key[2]], *key[:2], groups[key]) for key in sorted(groups)]


def _build_answers_of_judge(
    item_set: ItemSet, judge: str, paraphrase: int, comparisons: Sequence[Comparison]
) -> ItemSetAnswers:
    """Fill the arrays with one judge's comparisons on one set in one wording.

    Samples after 0 are repeats. So is sample 0 of an imported question that has others: whoever made the file asked it
    in the same way, while an audit asks its repeats at a temperature of their own.
    """
    index = {item.id: i for i, item in enumerate(item_set.items)}
    n = len(index)
    answers, asked = np.full((2, n, n), np.nan), np.zeros((2, n, n), dtype=bool)
    positions, label_sums, n_labels = np.full((n, n), np.nan), np.zeros((n, n)), np.zeros((n, n))
    repeats_by_question: dict[tuple[int, int, int], dict[int, float]] = {}
    failures: dict[str, int] = {}
    n_questions = 0
    for comparison in comparisons:
        if comparison.item_a not in index or comparison.item_b not in index:
            continue
        question = (int(comparison.relation is Relation.NEGATED), index[comparison.item_a], index[comparison.item_b])
        n_questions += 1
        if comparison.outcome is not Outcome.OK:
            failures[comparison.outcome.value] = failures.get(comparison.outcome.value, 0) + 1
        if comparison.people is not None:
            label_sums[question[1:]] += PREFERENCE_VALUES[comparison.people]
            n_labels[question[1:]] += 1
        if comparison.sample == 0:
            asked[question], answers[question] = True, preference_value(comparison)
            if comparison.relation is Relation.STANDARD and comparison.position is not None:
                positions[question[1:]] = comparison.position
        if comparison.sample or comparison.position is not None:
            repeats_by_question.setdefault(question, {})[comparison.sample] = preference_value(comparison)
    repeats = [by_sample for _, by_sample in sorted(repeats_by_question.items()) if max(by_sample)]
    numbers = sorted({number for by_sample in repeats for number in by_sample})
    samples = np.array([[by_sample.get(number, np.nan) for number in numbers] for by_sample in repeats], dtype=float)
    samples = samples.reshape(len(repeats), len(numbers))
    human_preferences = _prefer_labels(compute_people_preferences(item_set), label_sums, n_labels)
    return ItemSetAnswers(
        judge, paraphrase, item_set, answers[0], answers[1], asked, samples, human_preferences, failures, n_questions,
        None if np.isnan(positions).all() else positions,
    )  # fmt: skip


def _prefer_labels(by_scores: Floats, label_sums: Floats, n_labels: Floats) -> Floats:
    """People's preferences, shape (N, N): the mean label of a pair in both orders, else that of people's scores.

    A label of one order is one of the other: else a score would contradict it there, and the pair would be a tie.
    """
    n_of_pair = n_labels + n_labels.T
    means = (label_sums + n_labels.T - label_sums.T) / np.maximum(n_of_pair, 1)
    return np.where(n_of_pair > 0, means, by_scores)


def preference_value(comparison: Comparison) -> float:
    """Value of a comparison in a preference array: its probability, else its decision; nan if it has neither.

    Where both letters are equally probable, and the paper's form decides for the first, the value is just above a tie.
    """
    if comparison.probability == 0.5 and comparison.decision is ComparisonChoice.FIRST:
        return 0.5 + 2 * TIE_TOLERANCE
    if comparison.probability is not None:
        return comparison.probability
    return np.nan if comparison.decision is None else PREFERENCE_VALUES[comparison.decision]


def compute_people_preferences(item_set: ItemSet) -> Floats:
    """Preferences implied by people's scores of the items, shape (N, N).

    1 if the row's item has the higher score, 0.5 for a tie, 0 if lower, nan if a score is unknown.
    """
    scores = np.array([np.nan if item.human is None else item.human for item in item_set.items], dtype=float)
    gaps = scores[:, None] - scores[None, :]
    return np.where(np.isnan(gaps), np.nan, (np.sign(gaps) + 1) / 2)


# --- conditions and queries ---------------------------------------------------------------------------------------


def is_about(name: str, value: str) -> Condition:
    """Condition: a comparison is of a "country" or "topic": that of its set, or an item."""
    c = table_of(Comparison).c
    if name == "country":
        is_of_country = c.context.startswith(f"{value}{CELL_SEPARATOR}", autoescape=True)
        return is_of_country | (c.context == value)
    is_of_set = (c.context == value) | c.context.endswith(f"{CELL_SEPARATOR}{value}", autoescape=True)
    return is_of_set | (c.item_a == value) | (c.item_b == value)


def rests_on(trace: Columns) -> Condition:
    """Condition: a direct answer is an item of a comparison."""
    c = table_of(Comparison).c
    item = trace.model + TRACE_ITEM_SEPARATOR + as_text(trace.sample)
    is_item = (c.item_a == item) | (c.item_b == item)
    return is_item & (c.context == trace.country + CELL_SEPARATOR + trace.topic)


def query_label_units(audit_id: int) -> UnitQuery:
    """Query the comparisons that a judge was asked about in their standard form, in the order of items as shown."""
    comparison, items = table_of(Comparison), table_of(ComparisonItem)
    first, second, c = items.alias(), items.alias(), comparison.c

    def is_item(item: Any, name: ColumnElement[str]) -> Condition:
        """Condition: an item is the one of the comparison with this name."""
        is_of_set = (item.c.audit_id == c.audit_id) & (item.c.context == c.context)
        return is_of_set & (item.c.item == name)

    key_columns = {name: c[name] for name in list_part_names(COMPARISON)}
    joined = comparison.join(first, is_item(first, c.item_a)).join(second, is_item(second, c.item_b))
    query = joined.select().with_only_columns(
        *key_columns.values(), first.c.text.label("content_first"), second.c.text.label("content_second")
    )
    query = query.where(c.audit_id == audit_id, c.relation == Relation.STANDARD.value)
    return query.distinct(), key_columns
