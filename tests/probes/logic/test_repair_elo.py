"""Order of comparisons in REPAIR by Elo: the examples of appendix N of Aligning with Logic, and the seed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from auditor.metrics.logic.ranking import RatingMethod
from auditor.probes.logic.comparison_imports import import_comparisons
from auditor.probes.logic.repair import repair_comparisons
from auditor.storage.database import open_database
from tests.support.cli_runner import auditor


def rank(storage: str, folder: Path, wins: list[str], method: RatingMethod, seed: int | None = None) -> str:
    """The items of comparisons such as "AB" or "BA:B" (A is preferred to B, also if B is shown first), best first."""
    rows = [f"j,s,{win[0]},{win[1]},standard,{win[3:] or 'A'}" for win in wins]
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


def test_without_a_seed_comparisons_are_rated_in_the_order_of_their_rows(storage: str, tmp_path: Path) -> None:
    rows = ["CB:A", "DA:A", "DC:B", "AC:A", "AB:B"]
    assert rank(storage, tmp_path, rows, "elo") == rate_by_hand(rows) == "CBDA"
    assert rank(storage, tmp_path, rows[::-1], "elo") == rate_by_hand(rows[::-1]) != "CBDA"


def rate_by_hand(rows: list[str]) -> str:
    """The items by Elo (K = 16), best first, from comparisons in their order."""
    ratings = dict.fromkeys("ABCD", 1000.0)
    for row in rows:
        winner, loser = (row[0], row[1]) if row.endswith("A") else (row[1], row[0])
        change = 16 * (1 - 1 / (1 + 10 ** ((ratings[loser] - ratings[winner]) / 400)))
        ratings[winner] += change
        ratings[loser] -= change
    return "".join(sorted(ratings, key=lambda item: -ratings[item]))


def test_a_seed_draws_another_order(storage: str, tmp_path: Path) -> None:
    orders = [rank(storage, tmp_path, ["AB", "AC"], "elo", seed) for seed in range(8)]
    assert orders == [rank(storage, tmp_path, ["AB", "AC"], "elo", seed) for seed in range(8)]
    assert set(orders) == {"ACB", "ABC"}


def test_the_other_methods_do_not_depend_on_the_order(storage: str, tmp_path: Path) -> None:
    chain = ["AB", "BC", "CD"]
    for method in ("win-loss", "bradley-terry"):
        assert len({rank(storage, tmp_path, chain, method, seed) for seed in (None, 0, 1)}) == 1
    assert rank(storage, tmp_path, chain, "bradley-terry") == "ABCD"


def test_ratings_have_a_decimal_since_orders_change_them_by_less_than_a_point(storage: str, tmp_path: Path) -> None:
    rank(storage, tmp_path, ["AB", "AC", "BC"], "elo")
    result = auditor("logic", "repair", "wins", "--ratings", "--storage", storage, COLUMNS="160")
    assert result.returncode == 0, result.stderr
    assert len(re.findall(r"\d+\.\d \(\d+\.\d to \d+\.\d\)", result.stdout)) == 3
