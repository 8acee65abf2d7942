"""An audit as runs of MLflow: a run of the whole with the report, and under it one of each model."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from auditor import bootstrap
from auditor.atomic_files import writing
from auditor.errors import UsageError
from auditor.exports.tracker_runs import Run, digest_of, runs_of, write_artifacts
from auditor.extras import load_extra
from auditor.reports.report_schema import Report

TAG, KIND = "auditor.report", "auditor.kind"
DEFAULT_URI = "sqlite:///mlflow.db"
PARAM_LENGTH = 6000
"""What MLflow keeps of a parameter."""


class Logged(NamedTuple):
    """Where the runs are; `fresh` is False where the same report was there already."""

    uri: str
    experiment: str
    run_id: str
    runs: int
    fresh: bool


def export_mlflow(report: Report, *, uri: str | None = None, experiment: str = "auditor") -> Logged:
    """Write an audit to an MLflow tracking store; the same report is never written twice.

    Args:
        uri: of the store; MLFLOW_TRACKING_URI where it is not given, else a file `mlflow.db` in this folder.
        experiment: its name; made where it is not there.

    Raises:
        UsageError: MLflow is not installed, or the store cannot be used.
    """
    bootstrap.prepare()
    load_extra("mlflow.tracking", "mlflow")
    from mlflow.exceptions import MlflowException
    from mlflow.tracking import MlflowClient

    where = uri or os.environ.get("MLFLOW_TRACKING_URI") or DEFAULT_URI
    try:
        return _export(MlflowClient(tracking_uri=where), where, experiment, report)
    except MlflowException as error:
        said = str(error).split("\n", 1)[0][:200]
        raise UsageError(
            f"MLflow at {where}: {said}.", "Name a store with --tracking-uri, such as a server's."
        ) from None


def _export(client: Any, where: str, experiment: str, report: Report) -> Logged:
    known = client.get_experiment_by_name(experiment)
    number = known.experiment_id if known else client.create_experiment(experiment)
    digest = digest_of(report)
    whole, models = runs_of(report)
    query = f"tags.`{TAG}` = '{digest}' and tags.`{KIND}` = 'audit' and attributes.status = 'FINISHED'"
    if there := client.search_runs([number], query, max_results=1):
        return Logged(where, experiment, there[0].info.run_id, 1 + len(models), fresh=False)
    parent = _start(client, number, whole, {TAG: digest, KIND: "audit"})
    for model in models:
        run = _start(client, number, model, {TAG: digest, KIND: "model", "mlflow.parentRunId": parent})
        client.set_terminated(run)
    with writing("the report's files for MLflow"), tempfile.TemporaryDirectory() as folder:
        write_artifacts(report, Path(folder))
        client.log_artifacts(parent, folder)
    client.set_terminated(parent)  # last, so that one that broke off is not taken for whole
    return Logged(where, experiment, parent, 1 + len(models), fresh=True)


def _start(client: Any, experiment: str, run: Run, tags: dict[str, str]) -> str:
    from mlflow.entities import Metric, Param

    made: str = client.create_run(experiment, run_name=run.name, tags=tags).info.run_id
    now = int(time.time() * 1000)
    client.log_batch(
        made,
        metrics=[Metric(name, float(value), now, 0) for name, value in run.metrics.items()],
        params=[Param(name, value[:PARAM_LENGTH]) for name, value in run.params.items()],
    )
    return made
