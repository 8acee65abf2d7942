"""Order of comparisons in REPAIR by Elo: the examples of appendix N of Aligning with Logic, and the seed."""

from __future__ import annotations

from pathlib import Path

import pytest

from auditor.imports.comparisons import import_comparisons
from auditor.logic.repair import repair_comparisons
from auditor.metrics.preference_repair import RatingMethod
from auditor.storage.database import open_database


def rank(storage: str, folder: Path, wins: list[str], method: RatingMethod, seed: int | None = None) -> str:
    """The items of comparisons such as "AB" (A is preferred to B), best first."""
    rows = [f"j,s,{first},{second},standard,A" for first, second in map(tuple, wins)]
    file = folder / "wins.csv"
    file.write_text("\n".join(["judge,context,item_a,item_b,relation,decision", *rows]), encoding="utf-8")
    import_comparisons(file, audit="wins", storage=storage)
    with open_database(storage, create=False) as db:
        [repaired] = repair_comparisons(db, "wins", method=method, seed=seed)
    return "".join(repaired.raw.item_set.items[i].text for i in repaired.repair.order)


@pytest.mark.parametrize(("wins", "order"), [(["AB", "AC"], "ACB"), (["AC", "AB"], "ABC")])
def test_without_a_seed_the_examples_of_the_paper_come_back(
    storage: str, tmp_path: Path, wins: list[str], order: str
) -> None:
    assert rank(storage, tmp_path, wins, "elo") == order


def test_a_seed_draws_another_order(storage: str, tmp_path: Path) -> None:
    orders = [rank(storage, tmp_path, ["AB", "AC"], "elo", seed) for seed in range(8)]
    assert orders == [rank(storage, tmp_path, ["AB", "AC"], "elo", seed) for seed in range(8)]
    assert set(orders) == {"ACB", "ABC"}


def test_the_other_methods_do_not_depend_on_the_order(storage: str, tmp_path: Path) -> None:
    chain = ["AB", "BC", "CD"]
    for method in ("win-loss", "bradley-terry"):
        assert len({rank(storage, tmp_path, chain, method, seed) for seed in (None, 0, 1)}) == 1
    assert rank(storage, tmp_path, chain, "bradley-terry") == "ABCD"
