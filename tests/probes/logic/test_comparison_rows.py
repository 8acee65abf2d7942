"""Item sets and comparisons are loaded as they were saved."""

from __future__ import annotations

from pathlib import Path

from auditor.domain import ComparisonChoice, Outcome
from auditor.probes.logic import comparison_rows as comparisons
from auditor.probes.logic.comparisons import Comparison, Item, ItemSet, Relation
from auditor.storage.database import open_database
from auditor.storage.records import load_records, save_records
from tests.storage.test_database import fields_at_default, save_sample_audit


def test_sets_and_comparisons_come_back_whole(tmp_path: Path) -> None:
    item = Item("a", "To lie.", 0.5)
    item_set = ItemSet("context", "Some text.", "relevance", (item, Item("b", "To steal.", -0.5)), "de")
    comparison = Comparison(
        judge="j", context="context", item_a="a", item_b="b", relation=Relation.NEGATED, outcome=Outcome.OK,
        decision=ComparisonChoice.FIRST, paraphrase=1, sample=2, probability=0.75, people=ComparisonChoice.TIE, key="k",
        position=3, repeat_key="r", first_outcome=Outcome.REFUSED,
    )  # fmt: skip
    assert fields_at_default(item, item_set, comparison) == []
    with open_database(f"sqlite:///{tmp_path}/audit.db") as db:
        audit = save_sample_audit(db)
        comparisons.replace_item_sets(db, audit.id, [item_set])
        save_records(db, audit.id, [comparison])
        assert comparisons.load_item_sets(db, audit.id) == [item_set]
        assert load_records(db, audit.id, Comparison) == [comparison]
