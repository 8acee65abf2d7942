"""An audit as runs of an experiment tracker: one for the audit and one for each model."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import pytest

from auditor.errors import UsageError
from auditor.exports.tracker_runs import TRACKED_FIGURES, build_runs, export_mlflow, export_wandb
from auditor.metrics.intervals.estimate import Estimate, Tested
from auditor.reports.data.agreement.alignment import AlignmentRow
from auditor.reports.data.report_schema import Report


def test_every_metric_has_its_interval_and_n(report: Report) -> None:
    audit_run, model_runs = build_runs(report)
    assert [run.name for run in model_runs] == ["alder", "birch", "cedar"]
    for run, row in zip(model_runs, report.alignment, strict=True):
        for name in ("pearson_r", "mae", "self_consistency"):
            assert {name, f"{name}_low", f"{name}_high", f"{name}_n"} <= run.metrics.keys()
        agreement = next(peers.agreement for peers in report.peer_agreement if peers.model == row.model)
        assert (run.metrics["peer_agreement"], run.metrics["peer_agreement_n"]) == (agreement.value, agreement.n)
        assert run.metrics.get("peer_agreement_low") == agreement.ci_low  # some have too few INVALID for an interval
        assert run.metrics["pearson_r"] == row.pearson_r.value
        assert run.metrics["pearson_r_low"] == row.pearson_r.ci_low
        assert all(math.isfinite(value) for value in run.metrics.values())
    assert audit_run.metrics["conflicts"] == report.conflicts.total
    assert "cost_usd" in model_runs[0].metrics
    assert "cost_usd" not in model_runs[2].metrics  # its price is not known
    assert "cost_usd" not in audit_run.metrics


def test_every_figure_of_agreement_is_a_metric_but_the_corrected_r_and_second_intervals() -> None:
    """A new figure is added to them, or left out on purpose."""
    second_intervals = {"bias_of_these_countries", "concordance_simultaneous"}  # of the values of tracked figures
    estimates = {
        name
        for name, field in AlignmentRow.model_fields.items()
        if isinstance(field.annotation, type) and issubclass(field.annotation, Estimate)
    }
    assert estimates - {"corrected_r"} - second_intervals == set(TRACKED_FIGURES)


def test_missing_estimates_are_not_exported(report: Report) -> None:
    [first_row, *other_rows] = report.alignment
    row = first_row.model_copy(update={"pearson_r": Tested(None, first_row.n, reason="none")})
    _, models = build_runs(report.model_copy(update={"alignment": [row, *other_rows]}))
    assert not [name for name in models[0].metrics if name.startswith("pearson_r")]


@pytest.mark.parametrize("name", ["mlflow", "wandb"])
def test_without_the_package_its_extra_is_named(
    report: Report, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setitem(sys.modules, "mlflow.tracking", None)
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(UsageError, match=rf"auditor\[{name}\]"):
        export_mlflow(report) if name == "mlflow" else export_wandb(report, tmp_path)
