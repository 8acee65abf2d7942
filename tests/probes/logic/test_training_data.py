"""Rows for preference tuning."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from auditor.domain.terms import short_id
from auditor.errors import UsageError
from auditor.probes.logic.comparison_imports import import_comparisons
from auditor.probes.logic.comparisons import Relation
from auditor.probes.logic.repair import list_flips, repair_comparisons, select_stage
from auditor.probes.logic.training_data import build_training_rows, check_item_texts, write_training_rows
from auditor.storage.database import Database, open_database


@pytest.mark.parametrize("form", ["preference", "chat"])
@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_rows_for_preference_tuning(db: Database, tmp_path: Path, form: str, suffix: str) -> None:
    with db:
        repair_outcome = repair_comparisons(db, "judged")
    rows = build_training_rows(select_stage(repair_outcome, "repaired"))
    known = int((~np.isnan(repair_outcome[0].repair.preferences)).sum())
    assert len(rows) == 2 * known
    assert sum(row.flipped for row in rows) == len(list_flips(repair_outcome))
    write_training_rows(rows, tmp_path / f"rows{suffix}", form)  # type: ignore[arg-type]
    file = tmp_path / f"rows{suffix}"
    read = (
        pq.read_table(file).to_pylist() if suffix == ".parquet" else list(map(json.loads, file.open(encoding="utf-8")))
    )
    assert len(read) == len(rows)
    for record, row in zip(read, rows, strict=True):
        text = record["prompt"] if form == "preference" else record["prompt"][-1]["content"]
        chosen = record["chosen"] if form == "preference" else record["chosen"][0]["content"]
        assert f"A: {row.item_a}\nB: {row.item_b}\n" in text
        assert ("worse" in text) == (row.relation is Relation.NEGATED)
        assert chosen == row.chosen != row.rejected


def test_answers_as_letters_ask_for_a_letter(db: Database) -> None:
    with db:
        answers = select_stage(repair_comparisons(db, "judged"), "repaired", negated=False)
    rows = build_training_rows(answers, "letter")
    assert {row.relation for row in rows} == {Relation.STANDARD}
    assert {(row.chosen, row.rejected) for row in rows} == {("A", "B"), ("B", "A")}
    assert all("Answer with one letter only" in row.messages[0].content for row in rows)


def test_items_whose_text_is_only_a_shortened_id_are_refused(storage: str, tmp_path: Path) -> None:
    """Comparisons of an older file have shortened ids instead of texts; a file of items has the texts."""
    long = {name: f"{name} " + " ".join(f"word{i}" for i in range(40)) for name in ("one", "two")}
    ids = {name: short_id(text) for name, text in long.items()}
    rows = tmp_path / "rows.csv"
    rows.write_text(
        f"judge,context,item_a,item_b,relation,decision\npeople,post,{ids['one']},{ids['two']},standard,A\n", "utf-8"
    )
    items = tmp_path / "items.csv"
    items.write_text("context,item,text\n" + "".join(f"post,{ids[name]},{long[name]}\n" for name in long), "utf-8")
    for file, is_refused in ((None, True), (items, False)):
        import_comparisons(rows, audit="old", storage=storage, items=file)
        with open_database(storage, create=False) as db:
            repaired = repair_comparisons(db, "old")
        if is_refused:
            with pytest.raises(UsageError, match="only the beginning of the item 'one word0"):
                check_item_texts(repaired)
        else:
            check_item_texts(repaired)
            prompt = build_training_rows(select_stage(repaired, "raw"))[0].messages[-1].content
            assert all(text in prompt for text in long.values())
