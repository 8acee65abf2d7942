"""Ratings of items: win-loss rate, the Bradley–Terry model and Elo."""

from __future__ import annotations

from pathlib import Path

from auditor.probes.logic.comparison_imports import import_comparisons
from auditor.probes.logic.repair import rate_items, repair_comparisons
from auditor.storage.database import Database, open_database
from tests.probes.logic.test_comparison_imports import write_rows


def test_three_ratings_of_the_items(db: Database, storage: str, tmp_path: Path) -> None:
    with db:
        rows, notes = rate_items(repair_comparisons(db, "judged"))
    assert all("some items won or lost all" in note for note in notes)
    assert [r.win_loss for r in rows] == sorted((r.win_loss for r in rows), reverse=True)
    assert {rows[0].item, rows[-1].item} <= {"a", "b", "k", "l"}
    assert rows[0].strength > rows[-1].strength
    assert rows[0].elo_low <= rows[0].elo <= rows[0].elo_high
    with open_database(storage, create=False) as reopened:
        by_elo, _ = rate_items(repair_comparisons(reopened, "judged", method="elo"))
    assert {(r.judge, r.context, r.item): r.win_loss for r in by_elo} == {
        (r.judge, r.context, r.item): r.win_loss for r in rows
    }
    separate_files = write_rows(
        tmp_path / "apart.csv",
        "j,c,a,b,standard,A",
        "j,c,x,y,standard,A",
        head="judge,context,item_a,item_b,relation,decision",
    )
    import_comparisons(separate_files, audit="apart", storage=storage)
    with open_database(storage, create=False) as reopened:
        assert "not compared with each other" in rate_items(repair_comparisons(reopened, "apart"))[1][0]
