"""Tables run with simulated models: figures against numpy on the stored records, and why a figure is missing."""

from __future__ import annotations

import csv
import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any, get_args
from unittest import mock

import numpy as np
import pytest

from auditor.metrics.intervals.estimate import Estimate
from auditor.models.gateway import Gateway
from auditor.replications.definitions import MeasuredAudit
from auditor.replications.findings import check_findings
from auditor.replications.joining import join_figures, load_measured_audits
from auditor.replications.presets import load_paper
from auditor.replications.recorded import recompute_tables
from auditor.replications.survey_figures import NO_CONFLICT, NOT_MEASURED
from auditor.reports.data.replication import NotRun, RecomputedCell
from auditor.reports.document import Callout, List, Paragraph, Table
from auditor.reports.document.blocks import iterate_blocks
from auditor.reports.sections.replication import NOT_RUN
from auditor.reports.sections.replication_run import Replication, build_replication_document, summarize_findings
from auditor.surveys import region_of
from tests.replications.test_trials import join as join_made_up, measured as measure_made_up
from tests.reports.sections.node_text import assert_consistent, text_of
from tests.support.known import known
from tests.support.released_scores import write_released
from tests.support.replicated_audits import MODELS, N_CELLS, STORED_NAME, Experiment, replicate

KINDS = ("binary", "gradient", "outlier")
N_FEW = 12
"""Cells of replications with too few models."""


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


@pytest.fixture(scope="module")
def experiment(tmp_path_factory: pytest.TempPathFactory) -> Experiment:
    folder = tmp_path_factory.mktemp("replication")
    result = replicate(folder, "--json", "-o", str(folder / "figures.csv"))
    assert result.returncode == 0, result.stderr
    return Experiment(folder, json.loads(result.stdout))


@pytest.fixture(scope="module")
def measured(experiment: Experiment) -> list[MeasuredAudit]:
    return load_measured_audits(experiment.storage, experiment.audits)


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


def test_the_csv_file_has_all_figures(experiment: Experiment) -> None:
    with (experiment.folder / "figures.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for row, cell in zip(rows, experiment.output["cells"], strict=True):
        assert (row["table"], row["mark"]) == (cell["published"]["table"], cell["mark"])
        if cell["recomputed"]:
            assert float(row["ours"]) == cell["recomputed"]["value"]
            assert int(row["ours_n"]) == cell["recomputed"]["n"]
        if cell["difference"] is not None:
            assert float(row["published_value"]) == pytest.approx(float(row["ours"]) - float(row["difference"]))


@pytest.fixture(scope="module")
def mapped(experiment: Experiment) -> Experiment:
    """The experiment, run again without a call, with two models compared with published ones, and with its page."""
    pairs = ("--as", "western-everywhere=GPT-4o", "--as", "inconsistent=Claude-3-Opus")
    with mock.patch.object(Gateway, "complete", side_effect=AssertionError("a call was sent")):
        result = replicate(experiment.folder, "--json", *pairs, "-o", str(experiment.folder / "replication.html"))
    assert result.returncode == 0, result.stderr
    return Experiment(experiment.folder, json.loads(result.stdout))


def test_a_second_run_makes_no_call_and_compares_a_model_with_a_published_one(
    experiment: Experiment, mapped: Experiment, measured: list[MeasuredAudit]
) -> None:
    reports = {survey: audit.report for survey, audit in zip(experiment.audits, measured, strict=True)}
    report = reports["PEW"]
    [agreement] = [row.agreement.value for row in report.peer_agreement if row.model == "western-everywhere"]
    assert mapped.value("peer", "GPT-4o", "A", "PEW, western-everywhere") == agreement
    r = {
        survey: [
            row.pearson_r.value for row in of_survey.alignment if (row.model, row.method) == ("inconsistent", "direct")
        ]
        for survey, of_survey in reports.items()
    }
    assert [mapped.value("1", "Claude-3-Opus", "r, direct", "WVS, inconsistent")] == r["WVS"], "beside 0.90"
    assert [mapped.value("1", "Claude-3-Opus", "r, direct", "PEW")] == r["PEW"], "nothing is published of it"
    best = max(report.peer_agreement, key=lambda row: row.agreement.value or 0.0)
    highest = experiment.value("peer", "20 models, highest", "A", f"PEW, highest of our models, {best.model}")
    assert highest == best.agreement.value != agreement


def test_the_document_has_a_mark_in_every_row_and_the_heat_maps(experiment: Experiment, mapped: Experiment) -> None:
    text = (mapped.folder / "replication.html").read_text("utf-8")
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
    total = known(list_of_both([without, measured[1]])["conflicts", "by cell"].recomputed)
    assert total.value == measured[1].report.conflicts.by_cell.cells  # type: ignore[union-attr]


Cells = list[RecomputedCell]
BeforeAndAfter = tuple[Cells, Cells]


def join(measured: list[MeasuredAudit], table: str, column: str, **own_by_published: str) -> Cells:
    """The published cells of a column of a table with our figures."""
    cells, _ = join_figures(load_paper("evalmoraal"), table, measured, own_by_published)
    return [cell for cell in cells if cell.published.column == column and cell.published.printed]


def recompute(folder: Path, table: str, row: str) -> Cells:
    """The cell of a row of a table from released scores on WVS."""
    cells = recompute_tables(load_paper("evalmoraal"), table, folder, f"sqlite:///{folder}/recorded.db").cells
    return [cell for cell in cells if (cell.published.row, cell.published.column) == (row, "WVS")]


def supply_file(_measured: list[MeasuredAudit], folder: Path) -> BeforeAndAfter:
    before = recompute(write_released(folder, ["gpt2-large"]), "log-probability", "gpt2")
    return before, recompute(write_released(folder, ["gpt2"]), "log-probability", "gpt2")


def supply_unpublished_model(_measured: list[MeasuredAudit], folder: Path) -> BeforeAndAfter:
    model = "bigscience_bloomz-560m"
    before = recompute(write_released(folder, ["gpt2"]), "log-probability", model)
    return before, recompute(write_released(folder, [model]), "log-probability", model)


def supply_released_scores(measured: list[MeasuredAudit], folder: Path) -> BeforeAndAfter:
    before = join(measured, "ramezani-xu", "WVS")
    write_released(folder, ["GPT-3"], "wvs_w7_gpt3.csv", score="gpt3_score_mean")
    write_released(folder, ["GPT-3"], "wvs_w7_gpt3_token_pairs.csv", score="log prob difference")
    rows = [cell.published.row for cell in before]
    return before, [cell for row in rows for cell in recompute(folder, "ramezani-xu", row)]


def supply_audit(measured: list[MeasuredAudit], _folder: Path) -> BeforeAndAfter:
    column = "r with alignment, PEW"
    return join(measured[:1], "peer", column), join(measured, "peer", column)


def supply_data(_measured: list[MeasuredAudit], _folder: Path) -> BeforeAndAfter:
    return join_made_up("2", measure_made_up()), join_made_up("2", measure_made_up(rules=0.3))


def supply_counterpart(measured: list[MeasuredAudit], _folder: Path) -> BeforeAndAfter:
    before, after = (
        [cell for cell in join(measured, "peer", "A", **pairs) if cell.published.row == "GPT-4o"]
        for pairs in ({}, {"GPT-4o": "inconsistent"})
    )
    assert {cell.detail for cell in after} == {"WVS, inconsistent", "PEW, inconsistent"}
    return before, after


def supply_models(measured: list[MeasuredAudit], folder: Path) -> BeforeAndAfter:
    few = measure_few(folder, "wvs-variance", "--table", "variance", models=MODELS[:2])
    return join(few, "variance", "r with alignment"), join(measured, "variance", "r with alignment")


def measure_few(folder: Path, survey: str, *words: str, **models: Any) -> list[MeasuredAudit]:
    """The audit on a survey of a replication with a few cells."""
    assert replicate(folder, *words, **models, limit=N_FEW).returncode == 0
    name = STORED_NAME.format(survey=survey).replace(str(N_CELLS), str(N_FEW))
    return load_measured_audits(f"sqlite:///{folder}/replication.db", {"WVS": name})


def supply_value(measured: list[MeasuredAudit], _folder: Path) -> BeforeAndAfter:
    panel = {"fleiss_kappa": Estimate(None, 0, reason="none")}
    panels = [audit.report.panel.model_copy(update=panel) for audit in measured]
    without = [
        replace(audit, report=audit.report.model_copy(update={"panel": changed}))
        for audit, changed in zip(measured, panels, strict=True)
    ]
    before = join(without, "peer", "Fleiss kappa")
    assert before[0].detail == "WVS: none"
    return before, join(measured, "peer", "Fleiss kappa")


SUPPLIES: dict[NotRun, Callable[[list[MeasuredAudit], Path], BeforeAndAfter]] = {
    "not_in_folder": supply_file,
    "not_published": supply_unpublished_model,
    "recorded_only": supply_released_scores,
    "no_audit": supply_audit,
    "no_file": supply_data,
    "no_counterpart": supply_counterpart,
    "too_few_models": supply_models,
    "no_value": supply_value,
}
"""By reason: what is missing, as cells without it and with it."""


def test_every_reason_has_words_and_a_test() -> None:
    assert set(NOT_RUN) == {*SUPPLIES, "definition"} == set(get_args(NotRun))


def test_a_definition_is_printed_and_never_repeated_as_if_it_were_measured(measured: list[MeasuredAudit]) -> None:
    cells, _ = join_figures(load_paper("evalmoraal"), None, measured, {})
    definitions = [cell for cell in cells if cell.published.is_definition]
    assert {(cell.published.table, cell.published.printed) for cell in definitions} == {
        *(("tiers", cut_off) for cut_off in ("0.90", "0.85", "0.80", "0.75", "0.70", "0.65")),
        ("peer", "0.70"), ("topics", "0.4"),
    }  # fmt: skip
    assert {(cell.not_run, cell.recomputed) for cell in definitions} == {("definition", None)}


@pytest.mark.parametrize("reason", SUPPLIES)
def test_a_figure_is_not_run_until_what_is_missing_is_supplied(
    reason: NotRun, measured: list[MeasuredAudit], tmp_path: Path
) -> None:
    before, after = SUPPLIES[reason](measured, tmp_path)
    assert {cell.not_run for cell in before} == {reason}
    assert {(cell.recomputed, cell.mark) for cell in before} == {(None, "not_run")}
    assert after
    assert {cell.not_run for cell in after} == {None}
    assert all(cell.recomputed is not None and cell.recomputed.value is not None for cell in after)


def test_conflicts_and_extremes_of_a_single_model_are_not_run(tmp_path: Path) -> None:
    """A single model differs from no other one, and is no extreme."""
    judge = '[[judges]]\nname = "careful-judge-1"\nmodel = "simulated/careful-judge-1"\n'
    model = '[[models]]\nname = "inconsistent"\nmodel = "simulated/inconsistent"\n'
    (tmp_path / "one.toml").write_text(model + judge, encoding="utf-8")
    [single] = measure_few(tmp_path, "wvs", models_file=tmp_path / "one.toml")
    cells, _ = join_figures(load_paper("evalmoraal"), None, [single], {})
    reasons = {
        (cell.published.table, cell.published.row, cell.published.column): cell.not_run
        for cell in cells
        if cell.data == "WVS" and not cell.is_own_row and not cell.published.is_definition
    }
    for key, reason in reasons.items():
        over_several = key[0] == "conflicts" or key[1].endswith(("lowest", "highest", "GPT-4o, WVS"))
        if over_several or "alignment" in key[2]:
            assert reason == "too_few_models", key


def test_an_experiment_leads_with_its_findings(experiment: Experiment, measured: list[MeasuredAudit]) -> None:
    paper = load_paper("evalmoraal")
    rows = check_findings(paper, measured)
    assert [row["result"] for row in experiment.output["findings"]] == [row.result for row in rows]
    by_id = {row.id: row for row in rows}
    gap = by_id["worse-outside-the-west"]
    assert {(test.data, test.model) for test in gap.tests} == {(data, m) for data in ("WVS", "PEW") for m in MODELS}
    assert all(test.r_gap is not None and test.corrected_r_gap is not None for test in gap.tests)
    assert by_id["variable-models-disagree"].result == "cannot be compared"  # 3 models
    warning = Callout("Reasons for caution", [])
    replication = Replication(paper.title, paper.source, [], findings=rows, callouts=[warning])
    document = build_replication_document(replication)
    assert_consistent(document)
    assert document.opening[:2] == [Paragraph(summarize_findings(rows), "lead"), warning]
    [section] = document.sections
    text = text_of(section)
    assert all(finding.quote in text for finding in paper.findings)
    gaps = next(block for block in iterate_blocks(document) if isinstance(block, Table) and block.id == "finding-gaps")
    assert [str(column.title) for column in gaps.columns[3:6]] == [
        "Gap in r (not tested)",
        "Gap in r corrected for range (not tested)",
        "Gap in MAE",
    ]
    assert isinstance(section.blocks[0], List)
