"""Export of an audit to a local MLflow store."""

from __future__ import annotations

from pathlib import Path

import pytest

from auditor.errors import UsageError
from auditor.exports.tracker_runs import build_runs, export_mlflow
from auditor.reports.data.report_schema import Report
from auditor.storage.database import open_database


@pytest.mark.slow
def test_mlflow_has_one_run_per_model_nested_under_the_audits_run(report: Report, tmp_path: Path) -> None:
    tracking = pytest.importorskip("mlflow.tracking", reason="the extra 'mlflow' is not installed")
    uri = f"sqlite:///{tmp_path}/mlflow.db"
    client = tracking.MlflowClient(tracking_uri=uri)
    client.create_experiment("moral", artifact_location=(tmp_path / "artifacts").as_uri())
    export = export_mlflow(report, uri=uri, experiment="moral")
    assert (export.runs, export.fresh) == (4, True)
    experiment_id = client.get_experiment_by_name("moral").experiment_id
    runs = {run.info.run_name: run for run in client.search_runs([experiment_id])}
    assert runs.keys() == {"population", "alder", "birch", "cedar"}
    _, models = build_runs(report)
    assert dict(runs["alder"].data.metrics) == pytest.approx(models[0].metrics)
    assert runs["alder"].data.params["model"] == "openai/alder-1"
    assert runs["alder"].data.tags["mlflow.parentRunId"] == export.run_id
    assert {run.info.status for run in runs.values()} == {"FINISHED"}
    files = {f.path for f in client.list_artifacts(export.run_id)}
    assert files == {"report.html", "report.json", "report.md", "tables"}
    page = Path(client.download_artifacts(export.run_id, "report.html", str(tmp_path)))
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    second_export = export_mlflow(report, uri=uri, experiment="moral")
    assert (second_export.run_id, second_export.fresh) == (export.run_id, False)
    assert len(client.search_runs([experiment_id])) == 4
    with pytest.raises(UsageError, match=r"MLflow at nosuch://here cannot be used: .*--tracking-uri"):
        export_mlflow(report, uri="nosuch://here")


def test_mlflow_makes_no_tables_in_a_database_of_audits(report: Report, tmp_path: Path) -> None:
    pytest.importorskip("mlflow.tracking", reason="the extra 'mlflow' is not installed")
    path = tmp_path / "auditor.db"
    with open_database(f"sqlite:///{path}"):
        pass
    before = path.read_bytes()
    with pytest.raises(UsageError, match="is a database of audits"):
        export_mlflow(report, uri=f"sqlite:///{path}")
    assert path.read_bytes() == before
