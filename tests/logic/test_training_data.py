"""Rows for preference tuning, and their data card."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from auditor.domain import Relation
from auditor.logic.repair import list_flips, repair_comparisons, summarize_repairs
from auditor.logic.training_data import build_data_card, build_training_rows, write_training_rows
from auditor.storage.database import Database


@pytest.mark.parametrize("form", ["preference", "chat"])
@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_rows_for_preference_tuning(db: Database, tmp_path: Path, form: str, suffix: str) -> None:
    with db:
        repair_outcome = repair_comparisons(db, "judged")
    rows = build_training_rows(repair_outcome)
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
    card = build_data_card("judged", rows, summarize_repairs(repair_outcome), form)  # type: ignore[arg-type]
    assert f"{len(rows)} rows" in card
    assert "1.00" in card
