"""Stages of the data of REPAIR on planted comparisons, against counts made without the package."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

from auditor.probes.logic.comparison_imports import import_comparisons
from auditor.probes.logic.repair import RepairedAnswers, repair_comparisons, select_stage, summarize_stages
from auditor.storage.database import open_database

K = 4


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
    assert raw.transitivity.ci_low is not None
    assert raw.transitivity.ci_low < raw.transitivity.value
    assert raw.rows == len(planted)
    assert raw.rows_per_set.value == pytest.approx(len(planted) / 40)
    assert raw.commutativity.value is None
    assert raw.commutativity.reason == "not asked"  # each pair was asked in one order
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
    assert shares["raw"] is not None
    assert shares["perturbed"] < shares["raw"] < 1.0
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
