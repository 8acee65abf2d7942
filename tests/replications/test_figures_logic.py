"""Figures of logical consistency: planted comparisons against a script of a few lines, and swaps that must not pass."""

from __future__ import annotations

import json
from itertools import combinations
from math import comb
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from auditor.probes.logic.figures.schema import LogicReport
from auditor.probes.logic.repair import repair_comparisons
from auditor.replications.joining import join_figures
from auditor.replications.presets import load_paper
from auditor.storage.database import open_database
from tests.support.cli_runner import auditor, fail, succeed
from tests.support.planted_comparisons import (
    CHOOSERS,
    SIZES,
    WORDING_ERRORS,
    Chooser,
    ask,
    cyclic,
    linear,
    make_wording,
    measure,
    repeats,
    write_csv,
)
from tests.support.stored_rows import find_part


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
    # The first answer of each question counts too; the judge prefers the item that comes first.
    expected = expect({"few": (5, 5), "many": (9, 15)})
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


def test_a_table_without_an_audit_says_so(tmp_path: Path) -> None:
    """The reason is not that no model of the user's is set beside a published one: none was asked."""
    audit = measure(tmp_path, "SummEval", ["j"], ask("j", "few", linear) + ask("j", "many", linear))
    cells, _ = join_figures(load_paper("logic"), None, [audit], {})
    reasons: dict[str, set[str | None]] = {}
    for cell in cells:
        reasons.setdefault(cell.published.table, set()).add(cell.not_run)
    assert reasons["3"] == reasons["6"] == reasons["7"] == {"no_audit"}
    assert reasons["5"] == {"no_audit", "not_published"}  # two cells have a dash
    assert reasons["1"] >= {None, "no_counterpart"}


def test_rankings_are_as_answered_or_calibrated(tmp_path: Path) -> None:
    """A judge that ties where the better item is shown second: averaged over both orders, it is always right."""
    rows = [(*row[:5], "TIE" if row[2] > row[3] else "A", *row[6:]) for name in SIZES for row in ask("j", name, linear)]
    audit = measure(tmp_path, "SummEval", ["j"], rows)
    cells, _ = join_figures(load_paper("logic"), "4", [audit], {})
    values = {cell.published.column: cell.recomputed.value for cell in cells if cell.recomputed}
    assert values["PairS calibrated"] == pytest.approx(1)
    assert (values["PairS"] or 1) < 0.9
    logic = find_part(audit.report, LogicReport)
    rows_by_method = {row.method: row for row in logic.rankings}
    for column, method in (("PairS", "PairS, greedy"), ("PairS calibrated", "PairS, greedy, calibrated")):
        assert (rows_by_method[method].people.value, rows_by_method[method].runs) == (values[column], 100)


def test_transitivity_falls_with_the_number_of_items(figures: dict[Any, float]) -> None:
    """Of the 10 triples of the small set, 5 are cycles; the large set has none."""
    for k, expected in ((3, (5 / 10 + 1) / 2), (5, (0 + 1) / 2)):
        assert figures["figure-9", "cyclic", f"s_tran({k})", "SummEval, mean over sets"] == pytest.approx(expected)
    pooled = {3: (5 + comb(12, 3)) / (10 + comb(12, 3)), 5: comb(12, 5) / (1 + comb(12, 5))}
    for k, expected in pooled.items():
        assert figures["figure-9", "cyclic", f"s_tran({k})", "SummEval, pooled"] == pytest.approx(expected)


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
    for wording, point in enumerate(points["mean over sets"], 1):
        row = ("figure-5", f"linear, wording {wording}")
        shown = [figures[*row, column, "SummEval-wordings"] for column in ("SummEval, s_comm", "SummEval, H.")]
        assert shown == pytest.approx(point)
    r = {averaging: np.corrcoef(np.array(of_averaging).T)[0, 1] for averaging, of_averaging in points.items()}
    assert abs(r["mean over sets"] - r["pooled"]) > 0.1
    for averaging, value in r.items():
        key = ("figure-5", "linear", "SummEval, r of s_comm and H.", f"SummEval-wordings, {averaging}")
        assert figures[key] == pytest.approx(value)


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
    result = succeed(
        "replicate", "logic", "--table", "2", "--data", f"Feedback-train={file}", "--json", "--storage", storage
    )
    recomputed = {
        (cell["published"]["row"], cell["published"]["column"]): cell["recomputed"]
        for cell in json.loads(result.stdout)["cells"]
        if cell["recomputed"]
    }
    values = {place: estimate["value"] for place, estimate in recomputed.items()}
    n_sets = {column: estimate["n"] for (_, column), estimate in recomputed.items()}
    assert n_sets == {"s_tran(5)": 1, "# Data": 2, "AvgComp/Inst": 2, "s_comm": 2}
    assert values["Raw data", "s_tran(5)"] == 0
    assert "50% of the pairs have a preference" in recomputed["Raw data", "s_tran(5)"]["reason"]
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


def test_a_limit_draws_sets_of_people_s_comparisons(tmp_path: Path, storage: str) -> None:
    """The same ones with the same limit, and those of a smaller limit among those of a larger one."""
    rows = [("people", f"set {s}", str(i), str(i + 1), "standard", "A") for s in range(9) for i in range(s + 2)]
    file = write_csv(tmp_path / "labels.csv", "judge,context,item_a,item_b,relation,decision", rows)
    drawn = {}
    for limit in (None, 2, 4, 10):
        words = ["replicate", "logic", "--table", "2", "--data", f"Feedback-train={file}", "--json"]
        words += ["--limit", str(limit)] if limit else []
        result = succeed(*words, "--storage", storage)
        output = json.loads(result.stdout)
        [cell] = [
            cell for cell in output["cells"]
            if (cell["published"]["row"], cell["published"]["column"]) == ("Raw data", "# Data")
        ]  # fmt: skip
        drawn[limit] = list_sets("rep-logic-feedback-train" + (f"-limit-{limit}" if limit else ""), storage)
        assert len(drawn[limit]) == cell["recomputed"]["n"] == min(limit or 9, 9)
        assert cell["recomputed"]["value"] == sum(row[1] in drawn[limit] for row in rows)
        departures = {departure["id"]: departure["description"] for departure in output["departures"]}
        texts = {2: "at most 2, drawn at random", 4: "at most 4, drawn at random"}
        assert texts.get(limit or 0, "") in departures.get("repair-sets", "")
        assert ("repair-sets" in departures) == ("repair-sets" in cell["departures"]) == (limit in texts)
    assert drawn[2] < drawn[4] < drawn[10] == drawn[None]
    assert list_sets("rep-logic-feedback-train", storage) == drawn[None]  # a limit has an audit of its own


def list_sets(audit: str, storage: str) -> set[str]:
    with open_database(storage, create=False) as db:
        return {entry.raw.item_set.context for entry in repair_comparisons(db, audit)}


def repair_stages(audit: str, storage: str) -> dict[tuple[str, bool], dict[str, Any]]:
    """What the command of REPAIR prints for an audit."""
    result = succeed("logic", "repair", audit, "--noise", "0.1", "--seed", "0", "--json", "--storage", storage)
    return {(stage["stage"], stage["negated"]): stage for stage in json.loads(result.stdout)["stages"]}


def test_a_document_says_which_data_are_made_up(tmp_path: Path, storage: str) -> None:
    note = "Made-up data of the program instead of the paper's: Feedback-train."
    page = tmp_path / "page.md"
    words = ("replicate", "logic", "--small", "--table", "2", "-o", page)
    succeed(*words, AUDITOR_STORAGE=storage)
    assert note in page.read_text("utf-8")
    own_file = tmp_path / "own.csv"
    own_file.write_text(
        "judge,context,item_a,item_b,relation,decision\npeople,s,a,b,standard,A\npeople,s,b,c,standard,A\n", "utf-8"
    )
    succeed(*words, "--data", f"Feedback-train={own_file}", AUDITOR_STORAGE=storage)
    assert "Made-up data" not in page.read_text("utf-8")


def test_comparisons_of_another_judge_than_people_are_refused(tmp_path: Path, storage: str) -> None:
    rows = [("ann", "s", "a", "b", "standard", "A")]
    file = write_csv(tmp_path / "labels.csv", "judge,context,item_a,item_b,relation,decision", rows)
    words = ("replicate", "logic", "--table", "2", "--data", f"Feedback-train={file}", "--storage", storage)
    result = fail(*words, code=2, message="has no judge 'people'")
    assert "The column `judge` of the file must read 'people'." in " ".join(result.stderr.split())


def test_a_table_that_does_not_exist_is_named_first() -> None:
    fail("replicate", "logic", "--table", "9", code=2, message="'logic' has no table '9'")


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
