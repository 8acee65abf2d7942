"""Tables run with simulated models: figures against numpy on the stored records."""

from __future__ import annotations

import csv
import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

from auditor.metrics.intervals.estimate import Estimate
from auditor.models.gateway import Gateway
from auditor.replications.definitions import MeasuredAudit
from auditor.replications.joining import join_figures
from auditor.replications.presets import load_paper
from auditor.replications.survey_figures import NO_CONFLICT, NOT_MEASURED
from auditor.reports.data.replication import RecomputedCell
from auditor.run import open_audit
from auditor.surveys import region_of
from tests.support.replicated_audits import MODELS, N_CELLS, STORED_NAME, Experiment, replicate

KINDS = ("binary", "gradient", "outlier")


class Records:
    """The stored scores and people's of one audit, read with sqlite3."""

    def __init__(self, folder: Path, survey: str) -> None:
        name = STORED_NAME.format(survey=survey.lower())
        with closing(sqlite3.connect(folder / "replication.db")) as db:
            self.rows = db.execute(
                "select s.model, s.country, s.topic, s.method, s.score, s.variance, c.score from score s "
                "join audit a on a.id = s.audit_id "
                "join survey_cell c on c.audit_id = a.id and c.country = s.country and c.topic = s.topic "
                "where a.name = ?",
                [name],
            ).fetchall()

    def column(self, model: str, method: str, index: int, *, western: bool | None = None) -> list[float]:
        return [
            row[index]
            for row in sorted(self.rows)
            if (row[0], row[3]) == (model, method) and western in (None, region_of(row[1]) == "Western")
        ]

    def mean_country_r(self, model: str, *, western: bool) -> float:
        """Mean over the countries of a group of r over each country's topics, of which r needs three."""
        pairs: dict[str, list[tuple[float, float]]] = {}
        for row in self.rows:
            if (row[0], row[3]) == (model, "direct") and western == (region_of(row[1]) == "Western"):
                pairs.setdefault(row[1], []).append((row[4], row[6]))
        return float(np.mean([np.corrcoef(np.array(values).T)[0, 1] for values in pairs.values() if len(values) > 2]))

    def r(self, model: str, method: str = "direct", *, western: bool | None = None) -> float:
        scores, people = (self.column(model, method, index, western=western) for index in (4, 6))
        return float(np.corrcoef(scores, people)[0, 1])


@pytest.mark.parametrize("survey", ["WVS", "PEW"])
def test_planted_figures_are_those_of_numpy_on_the_stored_scores(experiment: Experiment, survey: str) -> None:
    records = Records(experiment.folder, survey)
    direct = {model: records.r(model) for model in MODELS}
    deltas = [direct[model] - records.r(model, "logprob") for model in MODELS]
    value = experiment.value
    assert len(records.column(MODELS[0], "direct", 4)) == N_CELLS
    mean = value("1", "20 models, mean", "delta r", f"{survey}, mean of our models")
    assert mean == pytest.approx(np.mean(deltas))
    for end, choose in (("lowest", min), ("highest", max)):
        model = MODELS[deltas.index(choose(deltas))]
        extreme = value("1", f"20 models, {end}", "delta r", f"{survey}, {end} of our models, {model}")
        assert extreme == pytest.approx(choose(deltas))
    for model, delta in zip(MODELS, deltas, strict=True):
        assert value("1", model, "r, direct", survey) == pytest.approx(direct[model])
        assert value("1", model, "r, log-probability", survey) == pytest.approx(records.r(model, "logprob"))
        assert value("1", model, "delta r", survey) == pytest.approx(delta)
        assert value("log-probability", model, survey, survey) == pytest.approx(records.r(model, "logprob"))
    variances = np.concatenate([records.column(model, "direct", 5) for model in MODELS])
    assert value("variance", "20 models", "mean", survey) == pytest.approx(variances.mean())
    assert value("variance", "20 models", "standard deviation", survey) == pytest.approx(variances.std(ddof=1))
    means = [np.mean(records.column(model, "direct", 5)) for model in MODELS]
    expected = np.corrcoef(means, list(direct.values()))[0, 1]
    assert value("variance", "20 models", "r with alignment", survey) == pytest.approx(expected)
    western, others = (
        np.mean([records.r(model, western=is_western) for model in MODELS]) for is_western in (True, False)
    )
    assert value("regions", "20 models", "Western", survey) == pytest.approx(western)
    assert value("regions", "20 models", "non-Western", survey) == pytest.approx(others)
    assert value("regions", "20 models", "gap", survey) == pytest.approx(western - others)
    for name, is_western in (("Western", True), ("non-Western", False)):
        expected = np.mean([records.mean_country_r(model, western=is_western) for model in MODELS])
        assert value("regions-by-country", "all models", name, survey) == pytest.approx(expected)
    assert western - others > 0.1, "the model that answers as Western people do was planted"


@pytest.mark.parametrize("survey", ["WVS", "PEW"])
def test_conflicts_are_counted_by_cell_and_by_pair(experiment: Experiment, survey: str) -> None:
    records = Records(experiment.folder, survey)
    scores = np.array([records.column(model, "direct", 4) for model in MODELS])
    differences = np.array([scores[i] - scores[j] for i, j in combinations(range(len(MODELS)), 2)])
    is_conflict = np.abs(differences) >= 0.38 - 1e-9
    n_cells, n_pairs = is_conflict.any(axis=0).sum(), is_conflict.sum()
    assert n_cells < n_pairs
    assert experiment.value("conflicts", "both surveys", "conflicts", f"{survey}, by cell") == n_cells
    assert experiment.value("conflicts", "both surveys", "conflicts", f"{survey}, by pair") == n_pairs
    for unit in ("by cell", "by pair"):
        kinds = [experiment.value("conflicts", "both surveys", kind, f"{survey}, {unit}") for kind in KINDS]
        assert sum(kinds) == pytest.approx(1)


def test_conflicts_of_both_surveys_are_added(experiment: Experiment) -> None:
    for unit in ("by cell", "by pair"):
        counts = [
            experiment.value("conflicts", "both surveys", "conflicts", f"{survey}, {unit}") for survey in ("WVS", "PEW")
        ]
        total = experiment.value("conflicts", "both surveys", "conflicts", f"WVS, PEW, {unit}")
        assert total == sum(counts)
        for column in (*KINDS, "settled by majority"):
            shares = [
                experiment.value("conflicts", "both surveys", column, f"{survey}, {unit}") for survey in ("WVS", "PEW")
            ]
            pooled = experiment.value("conflicts", "both surveys", column, f"WVS, PEW, {unit}")
            assert pooled == pytest.approx(np.average(shares, weights=counts))


def test_a_second_run_makes_no_call_and_its_csv_file_has_all_figures_of_the_first(experiment: Experiment) -> None:
    path = experiment.folder / "figures.csv"
    with mock.patch.object(Gateway, "complete", side_effect=AssertionError("a call was sent")):
        result = replicate(experiment.folder, "-o", str(path))
    assert result.returncode == 0, result.stderr
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(experiment.output["cells"])
    for row, cell in zip(rows, experiment.output["cells"], strict=True):
        assert (row["table"], row["mark"]) == (cell["published"]["table"], cell["mark"])
        if cell["recomputed"]:
            assert float(row["ours"]) == cell["recomputed"]["value"]
            assert int(row["ours_n"]) == cell["recomputed"]["n"]
        if cell["difference"] is not None:
            assert float(row["published_value"]) == pytest.approx(float(row["ours"]) - float(row["difference"]))


def test_the_option_as_compares_a_model_with_a_published_one(experiment: Experiment) -> None:
    result = replicate(
        experiment.folder, "--json", "--as", "western-everywhere=GPT-4o", "--as", "inconsistent=Claude-3-Opus"
    )
    report = open_audit(experiment.audits["PEW"], storage=experiment.storage).report()
    [agreement] = [row.agreement.value for row in report.peer_agreement if row.model == "western-everywhere"]
    mapped = Experiment(experiment.folder, json.loads(result.stdout))
    assert mapped.value("peer", "GPT-4o", "A", "PEW, western-everywhere") == agreement
    r = {
        survey: [
            row.pearson_r.value
            for row in open_audit(name, storage=experiment.storage).report().alignment
            if (row.model, row.method) == ("inconsistent", "direct")
        ]
        for survey, name in experiment.audits.items()
    }
    assert [mapped.value("1", "Claude-3-Opus", "r, direct", "WVS, inconsistent")] == r["WVS"], "beside 0.90"
    assert [mapped.value("1", "Claude-3-Opus", "r, direct", "PEW")] == r["PEW"], "nothing is published of it"
    best = max(report.peer_agreement, key=lambda row: row.agreement.value or 0.0)
    highest = experiment.value("peer", "20 models, highest", "A", f"PEW, highest of our models, {best.model}")
    assert highest == best.agreement.value != agreement


def test_the_document_has_a_mark_in_every_row_and_the_heat_maps(experiment: Experiment) -> None:
    page = experiment.folder / "replication.html"
    assert replicate(experiment.folder, "-o", str(page)).returncode == 0
    text = page.read_text("utf-8")
    for phrase in ("other definition", "Worked example: simulated models", "Distribution of absolute errors"):
        assert phrase in text
    results = [cell for cell in experiment.output["cells"] if not cell["published"]["is_definition"]]
    assert {cell["mark"] for cell in results} == {"other_definition", "not_run"}
    contents = text[text.index("<nav") : text.index("</nav>")]
    for name in (
        ">Table 1. Correlation with the survey: chain of thought (direct) against log-probabilities<",
        ">Figures over models, audit WVS<", ">Figures over models, audit PEW<", ">Departures<",
    ):  # fmt: skip
        assert name in contents
    for survey in ("WVS", "PEW"):
        assert f"Correlation with people in each country, {survey}" in text
        assert f"Mean absolute error on each topic, {survey}" in text
    assert text.count("r with people against Peer agreement (A)") >= 2, "figure 3 is drawn for each survey"
    counts = [cell for cell in experiment.output["cells"] if cell["published"]["column"] == "conflicts"]
    differences = [f"{int(cell['recomputed']['value']) - 348:+}".replace("-", "\u2212") for cell in counts]
    assert [difference for difference in differences if f"<td>{difference}</td>" not in text] == []


def change_conflicts(audit: MeasuredAudit, counts: dict[str, Any] | None) -> MeasuredAudit:
    """An audit with other counts of conflicts, or (None) without."""
    conflicts = audit.report.conflicts
    assert conflicts.by_cell is not None
    by_cell = None if counts is None else conflicts.by_cell.model_copy(update=counts)
    changed = conflicts.model_copy(update={"by_cell": by_cell, "settled": Estimate(None, 0, reason="nothing to count")})
    return replace(audit, report=audit.report.model_copy(update={"conflicts": changed}))


def list_of_both(measured: list[MeasuredAudit]) -> dict[tuple[str, str], RecomputedCell]:
    """Figures of both surveys together, by column and unit."""
    cells, _ = join_figures(load_paper("evalmoraal"), "conflicts", measured, {})
    return {(cell.published.column, cell.unit): cell for cell in cells if cell.data == "WVS, PEW"}


def test_a_survey_that_was_not_measured_is_never_left_out_of_a_figure_of_both(measured: list[MeasuredAudit]) -> None:
    of_both = list_of_both([change_conflicts(measured[0], None), measured[1]])
    columns = ("conflicts", *KINDS)
    for cell in (of_both[column, unit] for column in columns for unit in ("by cell", "by pair")):
        assert (cell.recomputed, cell.not_run) == (None, "no_value")
        assert cell.detail == f"WVS, {cell.unit}: {NOT_MEASURED}"


def test_a_survey_without_conflicts_has_no_weight_and_one_reason(measured: list[MeasuredAudit]) -> None:
    none: dict[str, Any] = {"cells": 0, "pairs": 0, "kind_shares": {}, "pair_kind_shares": {}, "settled_share": None}
    without = change_conflicts(measured[0], none)
    for column in (*KINDS, "settled by majority"):
        for unit in ("by cell", "by pair"):
            cells, _ = join_figures(load_paper("evalmoraal"), "conflicts", [without, measured[1]], {})
            by_data = {cell.data: cell for cell in cells if (cell.published.column, cell.unit) == (column, unit)}
            assert by_data["WVS"].detail == f"WVS, {unit}: {NO_CONFLICT}"
            both, pew = by_data["WVS, PEW"].recomputed, by_data["PEW"].recomputed
            assert both is not None
            assert pew is not None
            assert both.n == pew.n
            assert both.value == pytest.approx(pew.value)
    total = list_of_both([without, measured[1]])["conflicts", "by cell"].recomputed
    assert total is not None
    assert total.value == measured[1].report.conflicts.by_cell.cells  # type: ignore[union-attr]
