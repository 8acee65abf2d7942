"""Labels on comparisons: a comparison as a rater sees it, and what the judges say of each."""

from __future__ import annotations

from collections import defaultdict

from auditor.domain import Outcome
from auditor.domain.labels import LabelUnit
from auditor.probes.logic import comparison_rows
from auditor.probes.logic.comparison_rows import query_label_units as query_label_units
from auditor.probes.logic.comparisons import Comparison, Relation
from auditor.probes.logic.probe import COMPARISON
from auditor.probes.logic.questions import render_question
from auditor.reports.data.judge_quality.build import Decisions
from auditor.review.label_sampling import NO_SUCH_UNIT, LabelItem, LabelItemLoader
from auditor.storage.database import Database
from auditor.storage.records import load_records

COMPARISON_QUESTION = "Which of the two answers the question?"


def load_label_item(loader: LabelItemLoader, unit: LabelUnit) -> LabelItem:
    """Load a comparison of two items, with the criterion's question in its standard form."""
    context, item_a, item_b = unit.parts
    item_set = next(iter(comparison_rows.load_item_sets(loader.db, loader.audit.id, context)), None)
    ids = [item.id for item in item_set.items] if item_set is not None else []
    if item_set is None or not {item_a, item_b} <= set(ids):
        return LabelItem(unit, COMPARISON_QUESTION, missing=NO_SUCH_UNIT)
    messages = render_question(item_set, ids.index(item_a), ids.index(item_b), Relation.STANDARD)
    return loader.fill_in(unit, COMPARISON_QUESTION, messages)


def load_pair_decisions(db: Database, audit_id: int) -> Decisions:
    """Load the judges' first answers to the question that people are shown: its first wording, not negated."""
    decisions: defaultdict[tuple[str, str], dict[LabelUnit, str]] = defaultdict(dict)
    for row in load_records(db, audit_id, Comparison):
        is_shown = row.relation is Relation.STANDARD and row.paraphrase == 0 and row.sample == 0
        if is_shown and row.outcome is Outcome.OK and row.decision is not None:
            unit = LabelUnit(COMPARISON, (row.context, row.item_a, row.item_b))
            decisions[row.judge, "comparison"][unit] = row.decision.value
    return decisions
