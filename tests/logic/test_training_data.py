"""Rows for preference tuning, and their data card."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from auditor.domain import Relation
from auditor.logic.repair import list_flips, repair_comparisons, summarize_repairs
from auditor.logic.repair_stages import select_stage, summarize_stages
from auditor.logic.training_data import RowSource, build_data_card, build_training_rows, write_training_rows
from auditor.storage.database import Database


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
    card = build_data_card(
        "judged",
        rows,
        RowSource("repaired", "win-loss", 4),
        summarize_repairs(repair_outcome, 4),
        summarize_stages(repair_outcome, k=4),
        form,  # type: ignore[arg-type]
    )
    assert card.count("transitivity (K = 4)") == 2
    assert f"{len(rows)} rows" in card
    assert "1.00" in card


def test_answers_as_letters_ask_for_a_letter(db: Database) -> None:
    with db:
        answers = select_stage(repair_comparisons(db, "judged"), "repaired", negated=False)
    rows = build_training_rows(answers, "letter")
    assert {row.relation for row in rows} == {Relation.STANDARD}
    assert {(row.chosen, row.rejected) for row in rows} == {("A", "B"), ("B", "A")}
    assert all("Answer with one letter only" in row.messages[0].content for row in rows)
