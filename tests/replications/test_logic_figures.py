"""Figures of logical consistency: planted comparisons against a script of a few lines, and swaps that must not pass."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from auditor.config import AuditConfig
from auditor.imports.comparisons import import_comparisons
from auditor.replications.definitions import MeasuredAudit
from auditor.replications.joining import join_figures
from auditor.replications.presets import load_paper
from auditor.reports.data.build import build_report
from auditor.storage.database import open_database
from tests.support.cli_runner import auditor

SIZES = {"few": 5, "many": 12}
"""Items of each set: people prefer the item with the lower number."""
Chooser = Callable[[int, int, int], bool]
"""Whether the first of two items is chosen, from the size of the set and the positions of the items as shown."""


def linear(_: int, first: int, second: int) -> bool:
    """As people do."""
    return first < second


def cyclic(size: int, first: int, second: int) -> bool:
    """In cycles in the small set: each item is preferred to the next two."""
    return (second - first) % 5 in (1, 2) if size == SIZES["few"] else first < second


def first_shown(size: int, first: int, second: int) -> bool:
    """The item shown first, in the large set."""
    return size == SIZES["many"] or first < second


CHOOSERS: dict[str, Chooser] = {"linear": linear, "cyclic": cyclic, "first-shown": first_shown}


def write_csv(path: Path, header: str, rows: list[tuple[Any, ...]]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([header.split(","), *rows])
    return path


def ask(model: str, set_name: str, choose: Chooser, paraphrase: int = 0) -> list[tuple[Any, ...]]:
    """Answers of a model on a set, in both orders. In the small set, negated questions get the other answer."""
    size = SIZES[set_name]
    rows: list[tuple[Any, ...]] = []
    for i, j in ((i, j) for i in range(size) for j in range(size) if i != j):
        is_first = choose(size, i, j)
        is_first_negated = not is_first if set_name == "few" else is_first
        for relation, answer in (("standard", is_first), ("negated", is_first_negated)):
            rows.append((model, set_name, f"{i:02}", f"{j:02}", relation, "A" if answer else "B", 0, paraphrase))
    return rows


def repeats(model: str) -> list[tuple[Any, ...]]:
    """Four repeats of one question of the small set, all equal, and of three of the large set, half of them equal."""
    asked = [("few", 0, 1), *(("many", 0, j) for j in (1, 2, 3))]
    return [
        (model, name, f"{i:02}", f"{j:02}", "standard", "A" if name == "few" or sample % 2 else "B", sample, 0)
        for name, i, j in asked
        for sample in range(1, 5)
    ]


def measure(folder: Path, audit: str, models: list[str], rows: list[tuple[Any, ...]]) -> MeasuredAudit:
    """An audit with these comparisons."""
    storage = f"sqlite:///{folder}/planted.db"
    columns = "judge,context,item_a,item_b,relation,decision,sample,paraphrase"
    comparisons = write_csv(folder / f"{audit}.csv", columns, rows)
    items = [(f"{i:02}", name, size - i) for name, size in SIZES.items() for i in range(size)]
    people = write_csv(folder / "people.csv", "item,context,human", items)
    import_comparisons(comparisons, audit=audit, storage=storage, items=people)
    sections = [{"name": name, "model": f"openai/{name}"} for name in models]
    config = {"name": audit, "judges": [], "models": sections, "probes": {"logic": {"items": str(people)}}}
    with open_database(storage, create=False) as db:
        return MeasuredAudit(audit, AuditConfig.model_validate(config), build_report(db, audit))


@pytest.fixture(scope="module")
def figures(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str, str, str], float | None]:
    """Our figures by table, row, column and what they are of."""
    folder = tmp_path_factory.mktemp("planted")
    rows = [row for model, choose in CHOOSERS.items() for name in SIZES for row in ask(model, name, choose)]
    planted = measure(folder, "SummEval", list(CHOOSERS), rows + repeats("linear"))
    worded = [
        row
        for wording in range(3)
        for name in SIZES
        for row in ask("linear", name, make_wording(name, wording), wording)
    ]
    with_wordings = measure(folder, "SummEval-wordings", ["linear"], worded)
    cells, _ = join_figures(load_paper("logic"), None, [planted, with_wordings], {})
    return {
        (cell.published.table, cell.published.row, cell.published.column, cell.detail): cell.recomputed.value
        for cell in cells
        if cell.recomputed
    }


WORDING_ERRORS = {"few": ((0, 0), (2, 0), (4, 1)), "many": ((0, 0), (40, 0), (0, 30))}
"""Of each wording, the pairs of a set of which the first is chosen, and those that are decided against people."""


def make_wording(set_name: str, wording: int) -> Chooser:
    """A model that decides the last pairs of a set as people do."""
    pairs = list(combinations(range(SIZES[set_name]), 2))
    n_first, n_wrong = WORDING_ERRORS[set_name][wording]
    by_position, wrong = pairs[:n_first], pairs[n_first : n_first + n_wrong]

    def choose(_: int, first: int, second: int) -> bool:
        pair = (min(first, second), max(first, second))
        return pair in by_position or (first < second) != (pair in wrong)

    return choose


def is_acyclic(items: tuple[int, ...], size: int, choose: Chooser) -> bool:
    """Whether the items can be put in an order of preference: each has another number of wins."""
    return len({sum(choose(size, i, j) for j in items if j != i) for i in items}) == len(items)


def expect(share_by_set: dict[str, tuple[int, int]]) -> dict[str, float]:
    """Shares from the hits and cases of each set."""
    hits, cases = zip(*share_by_set.values(), strict=True)
    return {"mean over sets": float(np.mean(np.divide(hits, cases))), "pooled": sum(hits) / sum(cases)}


def test_transitivity_and_agreement_of_a_judge_with_cycles(figures: dict[Any, float]) -> None:
    subsets = {name: list(combinations(range(size), 5)) for name, size in SIZES.items()}
    transitivity = expect(
        {n: (sum(is_acyclic(s, SIZES[n], cyclic) for s in subsets[n]), len(subsets[n])) for n in SIZES}
    )
    pairs = {name: list(combinations(range(size), 2)) for name, size in SIZES.items()}
    agreement = expect({n: (sum(cyclic(SIZES[n], i, j) for i, j in pairs[n]), len(pairs[n])) for n in SIZES})
    assert agreement["mean over sets"] == pytest.approx(0.85)
    for column, expected in (("SummEval, s_tran(5)", transitivity), ("SummEval, H.", agreement)):
        assert abs(expected["mean over sets"] - expected["pooled"]) >= 0.1
        for averaging, value in expected.items():
            assert figures["1", "cyclic, direct", column, f"SummEval, {averaging}"] == pytest.approx(value)


def test_commutativity_and_negation_of_a_judge_that_prefers_the_first(figures: dict[Any, float]) -> None:
    commutativity = expect({"few": (10, 10), "many": (0, 66)})
    negation = expect({"few": (20, 20), "many": (0, 132)})
    assert commutativity["mean over sets"] == negation["mean over sets"] == 0.5
    for column, expected in (("SummEval, s_comm", commutativity), ("SummEval, s_neg", negation)):
        assert abs(expected["mean over sets"] - expected["pooled"]) >= 0.1
        for averaging, value in expected.items():
            assert figures["1", "first-shown, direct", column, f"SummEval, {averaging}"] == pytest.approx(value)


def test_self_agreement_is_averaged_over_sets_and_pooled(figures: dict[Any, float]) -> None:
    expected = expect({"few": (4, 4), "many": (6, 12)})
    assert abs(expected["mean over sets"] - expected["pooled"]) >= 0.1
    for averaging, value in expected.items():
        key = ("figure-4", "linear", "SummEval, self-agreement", f"SummEval, {averaging}")
        assert figures[key] == pytest.approx(value)


def test_a_consistent_judge_ranks_as_people_do(figures: dict[Any, float]) -> None:
    for column in ("PairS", "PairS calibrated"):
        assert figures["4", "linear", column, "SummEval"] == pytest.approx(1)
    for column in ("PairS", "PairS calibrated"):
        assert figures["4", "cyclic", column, "SummEval"] < 0.95
    assert figures["4", "first-shown", "PairS", "SummEval"] < 0.9


def test_transitivity_falls_with_the_number_of_items(figures: dict[Any, float]) -> None:
    """Of the 10 triples of the small set, 5 are cycles; the large set has none."""
    for k, expected in ((3, (5 / 10 + 1) / 2), (5, (0 + 1) / 2)):
        assert figures["figure-9", "cyclic", f"s_tran({k})", "SummEval"] == pytest.approx(expected)


def test_commutativity_is_correlated_with_agreement_over_wordings(figures: dict[Any, float]) -> None:
    """Both are means over sets."""
    points: dict[str, list[tuple[float, float]]] = {"mean over sets": [], "pooled": []}
    n_pairs = {name: size * (size - 1) // 2 for name, size in SIZES.items()}
    for wording in range(3):
        errors = {name: WORDING_ERRORS[name][wording] for name in SIZES}
        commutativity = expect({name: (n_pairs[name] - errors[name][0], n_pairs[name]) for name in SIZES})
        agreement = expect({n: (2 * n_pairs[n] - errors[n][0] - 2 * errors[n][1], 2 * n_pairs[n]) for n in SIZES})
        for averaging, of_averaging in points.items():
            of_averaging.append((commutativity[averaging], agreement[averaging]))
    r = {averaging: np.corrcoef(np.array(of_averaging).T)[0, 1] for averaging, of_averaging in points.items()}
    assert abs(r["mean over sets"] - r["pooled"]) > 0.1
    key = ("figure-5", "linear", "SummEval, r of s_comm and H.", "SummEval-wordings")
    assert figures[key] == pytest.approx(r["mean over sets"])


def test_a_size_that_was_not_measured_has_no_figure(figures: dict[Any, float]) -> None:
    assert not any(key[:3] == ("figure-9", "cyclic", "s_tran(8)") for key in figures)


# --- REPAIR: people's comparisons, without a model ------------------------------------------------------------------


def test_the_stages_of_repair_need_no_model(tmp_path: Path) -> None:
    """One cycle of five items, asked in one order; and a set of three."""
    cycle = [(i, (i + 1) % 5) for i in range(5)]
    chain = [(0, 1), (1, 2), (0, 2)]
    rows = [
        ("people", name, str(i), str(j), "standard", "A")
        for name, pairs in (("cycle", cycle), ("chain", chain))
        for i, j in pairs
    ]
    file = write_csv(tmp_path / "labels.csv", "judge,context,item_a,item_b,relation,decision", rows)
    storage = f"sqlite:///{tmp_path}/repair.db"
    result = auditor(
        "replicate", "logic", "--table", "2", "--data", f"Feedback-train={file}", "--json", "--storage", storage
    )
    assert result.returncode == 0, result.stderr
    recomputed = {
        (cell["published"]["row"], cell["published"]["column"]): cell["recomputed"]
        for cell in json.loads(result.stdout)["cells"]
        if cell["recomputed"]
    }
    values = {place: estimate["value"] for place, estimate in recomputed.items()}
    n_sets = {column: estimate["n"] for (_, column), estimate in recomputed.items()}
    assert n_sets == {"s_tran(5)": 1, "# Data": 2, "AvgComp/Inst": 2, "s_comm": 2}
    assert values["Raw data", "s_tran(5)"] == 0
    assert values["Raw data", "# Data"] == values["Perturbed data", "# Data"] == len(rows)
    assert values["Raw data", "AvgComp/Inst"] == len(rows) / 2
    # The items of the cycle win as often as they lose: only the pairs of the chain have an answer, in both orders.
    n_flipped = round(0.1 * len(rows))
    assert n_flipped == 1
    stages = repair_stages("rep-logic-feedback-train", storage)
    assert values["REPAIR-ed data", "# Data"] == stages["repaired", False]["rows"]
    assert values["REPAIR-ed data+Neg.", "# Data"] == 2 * values["REPAIR-ed data", "# Data"]
    assert values["REPAIR-ed data", "s_comm"] == 1
    assert values["Perturbed data", "s_tran(5)"] == stages["perturbed", False]["transitivity"]


def repair_stages(audit: str, storage: str) -> dict[tuple[str, bool], dict[str, Any]]:
    """What the command of REPAIR prints for an audit."""
    result = auditor("logic", "repair", audit, "--noise", "0.1", "--seed", "0", "--json", "--storage", storage)
    assert result.returncode == 0, result.stderr
    return {(stage["stage"], stage["negated"]): stage for stage in json.loads(result.stdout)["stages"]}


def test_a_missing_file_is_named(tmp_path: Path, storage: str) -> None:
    models = tmp_path / "models.toml"
    models.write_text(
        'name = "x"\njudges = []\n[[models]]\nname = "a"\nmodel = "openai/a"\n[probes]\nlogic = { items = "i.csv" }\n',
        encoding="utf-8",
    )
    for table, file in (("2", "Feedback-train"), ("4", "SummEval"), ("5", "MS-MARCO"), ("6", "Feedback")):
        result = auditor("replicate", "logic", "--models", models, "--table", table, AUDITOR_STORAGE=storage)
        assert result.returncode == 2
        assert f"--data {file}=FILE." in result.stderr
