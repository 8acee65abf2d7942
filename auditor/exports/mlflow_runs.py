"""Export an audit to MLflow: a parent run of the audit with its report, and a child run of each model."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from auditor import bootstrap
from auditor.atomic_files import report_write_errors
from auditor.errors import UsageError
from auditor.exports.tracker_runs import TrackerRun, build_runs, compute_report_digest, write_artifacts
from auditor.extras import load_extra
from auditor.reports.data.report_schema import Report
from auditor.storage.database import parse_sqlite_path
from auditor.storage.sqlite_file import holds_audits

DIGEST_TAG, KIND_TAG = "auditor.report", "auditor.kind"
DEFAULT_URI = "sqlite:///mlflow.db"
MAX_PARAM_LENGTH = 6000
"""MLflow's limit on the length of a parameter's value, in characters; longer values are cut."""


class MlflowExport(NamedTuple):
    """Location of the runs; `fresh` is False if the same report had been exported before, so that nothing was written.

    `run_id` is the parent run's; `runs` counts it and the runs of the models.
    """

    uri: str
    experiment: str
    run_id: str
    runs: int
    fresh: bool


def export_mlflow(report: Report, *, uri: str | None = None, experiment: str = "auditor") -> MlflowExport:
    """Write an audit to an MLflow tracking store, unless the same report is there already.

    Args:
        report: the audit's report.
        uri: address of the store; default: MLFLOW_TRACKING_URI, else a file `mlflow.db` in the current folder.
        experiment: name of the experiment; created if missing.

    Raises:
        UsageError: MLflow is not installed, or the store cannot be used, or is a database of audits.
    """
    bootstrap.prepare_environment()
    load_extra("mlflow.tracking", "mlflow")
    from mlflow.exceptions import MlflowException
    from mlflow.tracking import MlflowClient

    tracking_uri = uri or os.environ.get("MLFLOW_TRACKING_URI") or DEFAULT_URI
    if tracking_uri.startswith("sqlite:") and (path := parse_sqlite_path(tracking_uri)) and holds_audits(path):
        raise UsageError(
            f"{path}: is a database of audits, in which MLflow would make its tables.",
            "Name another file with --tracking-uri.",
        )
    try:
        return _log_runs(MlflowClient(tracking_uri=tracking_uri), tracking_uri, experiment, report)
    except MlflowException as error:
        first_line = str(error).split("\n", 1)[0][:200]
        raise UsageError(
            f"MLflow at {tracking_uri} cannot be used: {first_line}.", "Name a tracking server with --tracking-uri."
        ) from None


def _log_runs(client: Any, tracking_uri: str, experiment: str, report: Report) -> MlflowExport:
    """Write the parent run and its child runs, unless a finished parent run of the same report exists.

    `client` is an `MlflowClient`.
    """
    existing_experiment = client.get_experiment_by_name(experiment)
    experiment_id = existing_experiment.experiment_id if existing_experiment else client.create_experiment(experiment)
    digest = compute_report_digest(report)
    audit_run, model_runs = build_runs(report)
    query = f"tags.`{DIGEST_TAG}` = '{digest}' and tags.`{KIND_TAG}` = 'audit' and attributes.status = 'FINISHED'"
    if finished_runs := client.search_runs([experiment_id], query, max_results=1):
        return MlflowExport(tracking_uri, experiment, finished_runs[0].info.run_id, 1 + len(model_runs), fresh=False)
    parent_id = _start_run(client, experiment_id, audit_run, {DIGEST_TAG: digest, KIND_TAG: "audit"})
    for model_run in model_runs:
        run_id = _start_run(
            client, experiment_id, model_run, {DIGEST_TAG: digest, KIND_TAG: "model", "mlflow.parentRunId": parent_id}
        )
        client.set_terminated(run_id)
    with report_write_errors("the report's files for MLflow"), tempfile.TemporaryDirectory() as folder:
        write_artifacts(report, Path(folder))
        client.log_artifacts(parent_id, folder)
    client.set_terminated(parent_id)  # last, so that an interrupted export is not mistaken for a complete one
    return MlflowExport(tracking_uri, experiment, parent_id, 1 + len(model_runs), fresh=True)


def _start_run(client: Any, experiment_id: str, run: TrackerRun, tags: dict[str, str]) -> str:
    """Create a run with its metrics and parameters and return its id; the run is left open."""
    from mlflow.entities import Metric, Param

    run_id: str = client.create_run(experiment_id, run_name=run.name, tags=tags).info.run_id
    now = int(time.time() * 1000)
    client.log_batch(
        run_id,
        metrics=[Metric(name, float(value), now, 0) for name, value in run.metrics.items()],
        params=[Param(name, value[:MAX_PARAM_LENGTH]) for name, value in run.params.items()],
    )
    return run_id
