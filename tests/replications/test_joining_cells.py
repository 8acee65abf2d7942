"""Why a published figure has none of ours beside it: each reason goes away with what is missing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import get_args

import pytest

from auditor.metrics.intervals.estimate import Estimate
from auditor.replications.definitions import MeasuredAudit
from auditor.replications.joining import join_figures, load_measured_audits
from auditor.replications.presets import load_paper
from auditor.replications.recorded import recompute_tables
from auditor.reports.data.replication import NotRun, RecomputedCell
from auditor.reports.sections.replication_table import NOT_RUN
from tests.replications.test_trials import join as join_made_up, measured as measure_made_up
from tests.support.released_scores import write_released
from tests.support.replicated_audits import MODELS, STORED_NAME, replicate

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
    assert replicate(folder, "--table", "variance", models=MODELS[:2]).returncode == 0
    name = STORED_NAME.format(survey="wvs-variance")
    few = load_measured_audits(f"sqlite:///{folder}/replication.db", {"WVS": name})
    return join(few, "variance", "r with alignment"), join(measured, "variance", "r with alignment")


def supply_value(measured: list[MeasuredAudit], _folder: Path) -> BeforeAndAfter:
    panel = {"fleiss_kappa": Estimate(None, 0, reason="none")}
    without = [
        MeasuredAudit(
            audit.name,
            audit.config,
            audit.report.model_copy(update={"panel": audit.report.panel.model_copy(update=panel)}),
        )
        for audit in measured
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
    assert replicate(tmp_path, models_file=tmp_path / "one.toml").returncode == 0
    name = STORED_NAME.format(survey="wvs")
    [single] = load_measured_audits(f"sqlite:///{tmp_path}/replication.db", {"WVS": name})
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
