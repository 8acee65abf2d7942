"""REPAIR: what it flips, its order by Elo, ratings of items, and its stages against counts made without it."""

from __future__ import annotations

import re
from itertools import combinations
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

from auditor.errors import UsageError
from auditor.metrics.logic.consistency import commutativity, negation_invariance
from auditor.metrics.logic.ranking import RatingMethod
from auditor.metrics.logic.transitivity import transitivity
from auditor.probes.logic.comparison_imports import import_comparisons
from auditor.probes.logic.repair import (
    RepairedAnswers,
    list_flips,
    rate_items,
    repair_comparisons,
    select_stage,
    summarize_stages,
)
from auditor.probes.logic.repair_command import summarize_repairs
from auditor.storage.database import Database, open_database
from tests.probes.logic.test_comparison_imports import write_rows
from tests.support.cli_runner import succeed
from tests.support.known import known
from tests.support.recorded_comparisons import NAMES, import_recorded_comparisons

K = 4


def test_a_ranking_with_a_tenth_flipped_is_repaired(db: Database) -> None:
    with db:
        repair_outcome = repair_comparisons(db, "judged")
    [m] = repair_outcome
    fixed = m.repair.preferences
    assert transitivity(fixed, k=3).value == transitivity(fixed, k=len(NAMES)).value == 1.0
    assert commutativity(fixed).value == negation_invariance(fixed, m.repair.negated).value == 1.0
    [o] = summarize_repairs(repair_outcome, summarize_stages(repair_outcome, k=3))
    assert known(o.people[1]) > known(o.people[0])
    assert o.flipped == len(list_flips(repair_outcome)) > 5
    for flip in list_flips(repair_outcome):
        assert flip.original_choice is not flip.repaired_choice


def test_noise_can_be_put_in_and_is_taken_out(storage: str, tmp_path: Path) -> None:
    import_recorded_comparisons(storage, tmp_path, 0.0)
    with open_database(storage, create=False) as db:
        assert list_flips(repair_comparisons(db, "judged")) == []
        repair_outcome = repair_comparisons(db, "judged", noise=0.1)
    [o] = summarize_repairs(repair_outcome, summarize_stages(repair_outcome, k=3))
    assert o.flipped >= 10
    assert known(o.people[1]) > 0.95
    assert o.commutativity[0] != o.commutativity[1] == 1.0


def test_a_missing_item_set_is_an_error(db: Database) -> None:
    with db, pytest.raises(UsageError, match="It has: j"):
        repair_comparisons(db, "judged", "k")


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
    result = succeed("logic", "repair", "wins", "--ratings", "--storage", storage, COLUMNS="160")
    assert len(re.findall(r"\d+\.\d \(\d+\.\d to \d+\.\d\)", result.stdout)) == 3


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
        tmp_path / "apart.csv", "j,c,a,b,standard,A", "j,c,x,y,standard,A",
        head="judge,context,item_a,item_b,relation,decision",
    )  # fmt: skip
    import_comparisons(separate_files, audit="apart", storage=storage)
    with open_database(storage, create=False) as reopened:
        assert "not compared with each other" in rate_items(repair_comparisons(reopened, "apart"))[1][0]


@pytest.fixture
def planted(storage: str, tmp_path: Path) -> list[tuple[str, str, str]]:
    """Sparse comparisons of 40 sets, each pair in one order: (set, winner, loser); a tenth of them is reversed."""
    rng = np.random.default_rng(3)
    wins, lines = [], ["judge,context,item_a,item_b,relation,decision"]
    for s in range(40):
        for a, b in combinations("abcdef", 2):
            if rng.random() < 0.5:
                winner, loser = (a, b) if rng.random() < 0.9 else (b, a)
                wins.append((f"s{s}", winner, loser))
                lines.append(f"j,s{s},{a},{b},standard,{'A' if winner == a else 'B'}")
    file = tmp_path / "x.csv"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    import_comparisons(file, audit="planted", storage=storage)
    return wins


def repaired(storage: str, noise: float) -> list[RepairedAnswers]:
    with open_database(storage, create=False) as db:
        return repair_comparisons(db, "planted", noise=noise, seed=5)


def acyclic_share(wins: list[tuple[str, str, str]]) -> float:
    """Mean over sets of the share of their subsets of K compared items without a cycle."""
    shares = []
    for name in sorted({s for s, _, _ in wins}):
        graph = nx.DiGraph([(winner, loser) for s, winner, loser in wins if s == name])
        subsets = list(combinations(graph, K))
        if subsets:
            shares.append(np.mean([nx.is_directed_acyclic_graph(graph.subgraph(subset)) for subset in subsets]))
    return float(np.mean(shares))


def win_loss_wins(wins: list[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
    """Every pair of one connected set of items that win-loss rates decide: (set, winner, loser)."""
    implied = []
    for name in sorted({s for s, _, _ in wins}):
        graph = nx.DiGraph([(winner, loser) for s, winner, loser in wins if s == name])
        rate = {i: (graph.out_degree(i) - graph.in_degree(i)) / graph.degree(i) for i in graph}
        for component in nx.weakly_connected_components(graph):
            implied += [
                (name, a, b) if rate[a] > rate[b] else (name, b, a)
                for a, b in combinations(sorted(component), 2)
                if abs(rate[a] - rate[b]) > 1e-9
            ]
    return implied


def test_stages_have_the_transitivity_and_the_counts_of_the_data(
    planted: list[tuple[str, str, str]], storage: str
) -> None:
    rows = {(row.stage, row.negated): row for row in summarize_stages(repaired(storage, 0.0), k=K)}
    implied = win_loss_wins(planted)
    assert set(rows) == {(s, n) for s in ("repaired", "size-matched") for n in (False, True)} | {("raw", False)}
    raw, full, matched = rows["raw", False], rows["repaired", False], rows["size-matched", False]
    assert raw.transitivity.value is not None
    assert raw.transitivity.value == pytest.approx(acyclic_share(planted), abs=1e-12)
    assert raw.transitivity.value < 0.99  # planted contradictions
    assert known(raw.transitivity.ci_low) < raw.transitivity.value
    assert raw.rows == len(planted)
    assert raw.rows_per_set.value == pytest.approx(len(planted) / 40)
    assert raw.commutativity.value is None
    assert raw.commutativity.reason == "no pair was asked about in both orders"
    assert (full.transitivity.value, full.commutativity.value, full.rows) == (1.0, 1.0, 2 * len(implied))
    assert rows["repaired", True].rows == 4 * len(implied)
    assert (matched.transitivity.value, matched.commutativity.value) == (1.0, 1.0)
    assert matched.rows == rows["size-matched", True].rows == len(planted)
    assert full.rows > len(planted)


def test_noise_is_a_stage_of_its_own_and_the_sample_follows_its_seed(
    planted: list[tuple[str, str, str]], storage: str
) -> None:
    noisy = repaired(storage, 0.1)
    rows = {row.stage: row for row in summarize_stages(noisy, k=K, negated=False)}
    n_reversed = sum(int((entry.raw.preferences == 1 - entry.original.preferences).sum()) for entry in noisy)
    assert n_reversed == round(0.1 * len(planted))
    assert rows["perturbed"].rows == rows["raw"].rows == len(planted)
    shares = {stage: row.transitivity.value for stage, row in rows.items()}
    assert shares["perturbed"] is not None
    assert shares["perturbed"] < known(shares["raw"]) < 1.0
    perturbed = [
        (f"s{s}", *((str(i), str(j)) if entry.original.preferences[i, j] == 1 else (str(j), str(i))))
        for s, entry in enumerate(noisy)
        for i, j in np.argwhere(~np.isnan(entry.original.preferences))
    ]
    assert shares["perturbed"] == pytest.approx(acyclic_share(perturbed), abs=1e-12)
    assert shares["repaired"] == 1.0

    def sample(seed: int) -> list[list[int]]:
        return [np.flatnonzero(~np.isnan(a.standard)).tolist() for a in select_stage(noisy, "size-matched", seed=seed)]

    assert sample(1) == sample(1) != sample(2)


def import_rows(storage: str, folder: Path, *rows: str) -> None:
    """Import comparisons of the judge `j` as the audit `planted`: set, first item, second item and decision."""
    file = folder / "rows.csv"
    lines = [",".join(("j", *row.split()[:3], "standard", row.split()[3])) for row in rows]
    file.write_text("\n".join(["judge,context,item_a,item_b,relation,decision", *lines]) + "\n", encoding="utf-8")
    import_comparisons(file, audit="planted", storage=storage)


def test_each_figure_counts_the_sets_that_it_is_of(storage: str, tmp_path: Path) -> None:
    """Of four sets, one has ties only, and two have too few items for K; one has both orders of a pair."""
    ties = [f"tied {a} {b} TIE" for a, b in combinations("abcd", 2)]
    order = [f"full {a} {b} A" for a, b in combinations("abcd", 2)]
    import_rows(storage, tmp_path, *ties, *order, "two a b A", "pair a b A", "pair b a B")
    rows = {row.stage: row for row in summarize_stages(repaired(storage, 0.0), k=K, negated=False)}
    assert (rows["raw"].transitivity.value, rows["raw"].transitivity.n) == (1.0, 1)
    assert (rows["raw"].commutativity.value, rows["raw"].commutativity.n) == (1.0, 1)
    assert (rows["raw"].rows, rows["raw"].rows_per_set.n) == (9, 4)
    assert (rows["repaired"].commutativity.value, rows["repaired"].commutativity.n) == (1.0, 3)


def test_noise_that_reverses_nothing_is_still_a_stage(storage: str, tmp_path: Path) -> None:
    """A tenth of four answers, rounded, is none."""
    import_rows(storage, tmp_path, "s a b A", "s b c A", "s c d A", "s a d A")
    rows = {row.stage: row for row in summarize_stages(repaired(storage, 0.1), k=K, negated=False)}
    assert rows["perturbed"].rows == rows["raw"].rows == 4
    assert rows["perturbed"].transitivity == rows["raw"].transitivity
    assert "perturbed" not in {row.stage for row in summarize_stages(repaired(storage, 0.0), k=K)}
