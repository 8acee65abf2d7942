"""An audit as runs of MLflow: a run of the whole with the report, and under it one of each model."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from auditor import bootstrap
from auditor.atomic_files import report_write_errors
from auditor.errors import UsageError
from auditor.exports.tracker_runs import TrackerRun, build_runs, report_digest, write_artifacts
from auditor.extras import load_extra
from auditor.reports.report_schema import Report

DIGEST_TAG, KIND_TAG = "auditor.report", "auditor.kind"
DEFAULT_URI = "sqlite:///mlflow.db"
MAX_PARAM_LENGTH = 6000
"""What MLflow keeps of a parameter."""


class MlflowExport(NamedTuple):
    """Where the runs are; `fresh` is False where the same report was there already."""

    uri: str
    experiment: str
    run_id: str
    runs: int
    fresh: bool


def export_mlflow(report: Report, *, uri: str | None = None, experiment: str = "auditor") -> MlflowExport:
    """Write an audit to an MLflow tracking store; the same report is never written twice.

    Args:
        uri: of the store; MLFLOW_TRACKING_URI where it is not given, else a file `mlflow.db` in this folder.
        experiment: its name; made where it is not there.

    Raises:
        UsageError: MLflow is not installed, or the store cannot be used.
    """
    bootstrap.prepare_environment()
    load_extra("mlflow.tracking", "mlflow")
    from mlflow.exceptions import MlflowException
    from mlflow.tracking import MlflowClient

    where = uri or os.environ.get("MLFLOW_TRACKING_URI") or DEFAULT_URI
    try:
        return _log_runs(MlflowClient(tracking_uri=where), where, experiment, report)
    except MlflowException as error:
        said = str(error).split("\n", 1)[0][:200]
        raise UsageError(
            f"MLflow at {where}: {said}.", "Name a store with --tracking-uri, such as a server's."
        ) from None


def _log_runs(client: Any, tracking_uri: str, experiment: str, report: Report) -> MlflowExport:
    known = client.get_experiment_by_name(experiment)
    number = known.experiment_id if known else client.create_experiment(experiment)
    digest = report_digest(report)
    whole, models = build_runs(report)
    query = f"tags.`{DIGEST_TAG}` = '{digest}' and tags.`{KIND_TAG}` = 'audit' and attributes.status = 'FINISHED'"
    if there := client.search_runs([number], query, max_results=1):
        return MlflowExport(tracking_uri, experiment, there[0].info.run_id, 1 + len(models), fresh=False)
    parent = _start_run(client, number, whole, {DIGEST_TAG: digest, KIND_TAG: "audit"})
    for model in models:
        run = _start_run(client, number, model, {DIGEST_TAG: digest, KIND_TAG: "model", "mlflow.parentRunId": parent})
        client.set_terminated(run)
    with report_write_errors("the report's files for MLflow"), tempfile.TemporaryDirectory() as folder:
        write_artifacts(report, Path(folder))
        client.log_artifacts(parent, folder)
    client.set_terminated(parent)  # last, so that one that broke off is not taken for whole
    return MlflowExport(tracking_uri, experiment, parent, 1 + len(models), fresh=True)


def _start_run(client: Any, experiment_id: str, run: TrackerRun, tags: dict[str, str]) -> str:
    from mlflow.entities import Metric, Param

    made: str = client.create_run(experiment_id, run_name=run.name, tags=tags).info.run_id
    now = int(time.time() * 1000)
    client.log_batch(
        made,
        metrics=[Metric(name, float(value), now, 0) for name, value in run.metrics.items()],
        params=[Param(name, value[:MAX_PARAM_LENGTH]) for name, value in run.params.items()],
    )
    return made
