"""An audit in MLflow's and Weights & Biases' own stores, on this machine."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from auditor.errors import UsageError
from auditor.exports.tracker_runs import build_runs
from auditor.reports.build import build_report
from auditor.reports.report_schema import Report
from tests.support.inspect_logs import Made


@pytest.fixture(scope="module")
def report(made_audit: Made) -> Report:
    return build_report(made_audit.db, "population")


def test_every_figure_has_its_interval_and_n_and_nothing_is_made_up(report: Report) -> None:
    whole, models = build_runs(report)
    assert [run.name for run in models] == ["alder", "birch", "cedar"]
    for run, row in zip(models, report.alignment, strict=True):
        for name in ("pearson_r", "mae", "self_consistency", "peer_agreement"):
            assert {name, f"{name}_low", f"{name}_high", f"{name}_n"} <= run.metrics.keys()
        assert run.metrics["pearson_r"] == row.pearson_r
        assert run.metrics["pearson_r_low"] == row.crossed.pearson_r.ci_low
        assert all(math.isfinite(value) for value in run.metrics.values())
    assert whole.metrics["conflicts"] == report.conflicts.total
    assert "cost_usd" in models[0].metrics
    assert "cost_usd" not in models[2].metrics  # its price is not known
    assert "cost_usd" not in whole.metrics


def test_what_could_not_be_measured_is_no_metric(report: Report) -> None:
    [blank, *rest] = report.alignment
    update = {"pearson_r": None, "ci_low": None, "ci_high": None, "reason": "none"}
    none = blank.crossed.pearson_r.model_copy(update={"value": None, "ci_low": None, "ci_high": None, "reason": "none"})
    row = blank.model_copy(update={**update, "crossed": blank.crossed.model_copy(update={"pearson_r": none})})
    _, models = build_runs(report.model_copy(update={"alignment": [row, *rest]}))
    assert not [name for name in models[0].metrics if name.startswith("pearson_r")]


@pytest.mark.slow
def test_mlflow_has_a_run_a_model_under_one_of_the_whole(report: Report, tmp_path: Path) -> None:
    tracking = pytest.importorskip("mlflow.tracking", reason="the extra 'mlflow' is not installed")
    from auditor.exports.mlflow_runs import export_mlflow

    uri = f"sqlite:///{tmp_path}/mlflow.db"
    client = tracking.MlflowClient(tracking_uri=uri)
    client.create_experiment("moral", artifact_location=(tmp_path / "artifacts").as_uri())
    made = export_mlflow(report, uri=uri, experiment="moral")
    assert (made.runs, made.fresh) == (4, True)
    number = client.get_experiment_by_name("moral").experiment_id
    runs = {run.info.run_name: run for run in client.search_runs([number])}
    assert runs.keys() == {"population", "alder", "birch", "cedar"}
    _, models = build_runs(report)
    assert dict(runs["alder"].data.metrics) == pytest.approx(models[0].metrics)
    assert runs["alder"].data.params["model"] == "openai/alder-1"
    assert runs["alder"].data.tags["mlflow.parentRunId"] == made.run_id
    assert {run.info.status for run in runs.values()} == {"FINISHED"}
    files = {f.path for f in client.list_artifacts(made.run_id)}
    assert files == {"report.html", "report.json", "report.md", "tables"}
    page = Path(client.download_artifacts(made.run_id, "report.html", str(tmp_path)))
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    again = export_mlflow(report, uri=uri, experiment="moral")
    assert (again.run_id, again.fresh) == (made.run_id, False)
    assert len(client.search_runs([number])) == 4
    with pytest.raises(UsageError, match=r"MLflow at nosuch://here: .*--tracking-uri"):
        export_mlflow(report, uri="nosuch://here")


@pytest.fixture
def quiet_wandb(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Any]:
    wandb = pytest.importorskip("wandb", reason="the extra 'wandb' is not installed")
    for name in ("WANDB_CONFIG_DIR", "WANDB_CACHE_DIR", "WANDB_DATA_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name))
    yield wandb
    wandb.teardown()


def records(log: bytes) -> Iterator[bytes]:
    """What wandb wrote: LevelDB's log format in blocks of 32 KiB, after a header of seven bytes."""
    at, whole = 7, b""
    while at + 7 <= len(log):
        if 32_768 - at % 32_768 < 7:
            at += 32_768 - at % 32_768
            continue
        size, kind = int.from_bytes(log[at + 4 : at + 6], "little"), log[at + 6]
        whole = (b"" if kind in (1, 2) else whole) + log[at + 7 : at + 7 + size]
        at += 7 + size
        if kind in (1, 4):
            yield whole


@pytest.mark.slow
def test_wandb_keeps_runs_on_this_machine(report: Report, tmp_path: Path, quiet_wandb: Any) -> None:
    from wandb.proto.wandb_internal_pb2 import Record

    from auditor.exports.wandb_runs import export_wandb

    made = export_wandb(report, tmp_path / "runs")
    assert (len(made.runs), made.online) == (4, False)
    _, models = build_runs(report)
    [log] = Path(made.runs[1]).glob("*.wandb")
    summary: dict[str, float] = {}
    started = None
    for data in records(log.read_bytes()):
        record = Record()
        record.ParseFromString(data)
        kind = record.WhichOneof("record_type")
        if kind == "summary":
            summary |= {(i.key or ".".join(i.nested_key)): json.loads(i.value_json) for i in record.summary.update}
        started = record.run if kind == "run" else started
    assert started is not None
    assert (started.display_name, started.run_group) == ("alder", "population")
    assert {name: summary[name] for name in models[0].metrics} == pytest.approx(models[0].metrics)


@pytest.mark.parametrize("name", ["mlflow", "wandb"])
def test_without_the_package_its_extra_is_named(
    report: Report, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    from auditor.exports.mlflow_runs import export_mlflow
    from auditor.exports.wandb_runs import export_wandb

    monkeypatch.setitem(sys.modules, "mlflow.tracking", None)
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(UsageError, match=rf"auditor\[{name}\]"):
        export_mlflow(report) if name == "mlflow" else export_wandb(report, tmp_path)
