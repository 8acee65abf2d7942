"""Export an audit to trackers of experiments: MLflow, and Weights & Biases."""

from __future__ import annotations

import os
import tempfile
import time
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from auditor import bootstrap
from auditor.atomic_files import make_folder, report_write_errors, write_files
from auditor.domain import Method, Purpose
from auditor.errors import StorageError, UsageError
from auditor.exports.model_figures import select_figures
from auditor.exports.tables import export_paper
from auditor.extras import load_extra
from auditor.lazy_imports import import_when_used
from auditor.metrics.intervals.estimate import Estimate
from auditor.redaction import redact, register_secrets
from auditor.reports.data.report_schema import Report
from auditor.reports.output import REPORT_FORMATS, render_report
from auditor.storage.database import parse_sqlite_path
from auditor.storage.database_errors import DatabaseLibraryError
from auditor.storage.engine import redact_url
from auditor.storage.sqlite_file import holds_audits, refuse_links
from auditor.text_safety import slugify

if not TYPE_CHECKING:
    entities = import_when_used("mlflow.entities")
    exceptions = import_when_used("mlflow.exceptions")
    tracking = import_when_used("mlflow.tracking")
else:
    from mlflow import entities, exceptions, tracking

Params = dict[str, str]
Metrics = dict[str, float]
REPORT_FILES = {f"report{suffix}": name for suffix, name in REPORT_FORMATS.items() if name != "text"}


@dataclass(frozen=True, slots=True)
class TrackerRun:
    """A run of a model, or of the whole audit.

    Attributes:
        name: name of the model or of the audit.
        params: settings of the audit and the model, as text.
        metrics: figures by name; estimates also have `NAME_low`, `NAME_high` (95% CI) and `NAME_n`.
    """

    name: str
    params: Params
    metrics: Metrics


def build_runs(report: Report) -> tuple[TrackerRun, list[TrackerRun]]:
    """Build the run of the whole audit, and one run per audited model."""
    shared_params = _shared_params(report)
    audit_run = TrackerRun(report.audit.name, shared_params, _audit_metrics(report))
    models = [model for model in report.audit.models if model.audited]
    # Only where they differ between models.
    sampling_params = {name: {"sampling": label} for name, label in report.sampling.labels(Purpose.DIRECT).items()}
    return audit_run, [
        TrackerRun(
            model.name,
            shared_params
            | {"model": model.model or model.name, "model_name": model.name}
            | sampling_params.get(model.name, {}),
            _model_metrics(report, model.name),
        )
        for model in models
    ]


def compute_report_digest(report: Report) -> str:
    """SHA-256 of the report's JSON, by which an export recognises a report that it has written before."""
    return sha256(report.model_dump_json().encode()).hexdigest()


def write_artifacts(report: Report, folder: Path) -> None:
    """Write the report as HTML, JSON and Markdown, and the tables of the paper, to a folder."""
    write_files({folder / name: render_report(report, form) for name, form in REPORT_FILES.items()})
    export_paper(report, folder / "tables")


def _shared_params(report: Report) -> Params:
    """Settings of the audit that all of its runs have, as text; those without a value are left out."""
    audit = report.audit
    params = {
        "audit": audit.name,
        "auditor": audit.auditor,
        "stage": audit.stage,
        "survey": audit.survey.survey.title,
        "cells": None if report.task else audit.survey.asked,
        "task": report.task.task.source if report.task else None,
        "items": len(report.task.items) if report.task else None,
        "samples": audit.samples,
        "seed": audit.seed,
        "config_hash": audit.config_hash,
        "judges": ", ".join(model.name for model in audit.models if model.judge),
    }
    return {name: str(value) for name, value in params.items() if value not in (None, "")}


def _audit_metrics(report: Report) -> Metrics:
    """Metrics of the whole audit: agreement of the judges, conflicts, number of models, and cost."""
    metrics = _estimate_metrics("fleiss_kappa", report.panel.fleiss_kappa) | _estimate_metrics(
        "conflicts_settled", report.conflicts.settled
    )
    metrics |= {
        "models": len([model for model in report.audit.models if model.audited]),
        "conflicts": report.conflicts.total,
    }
    metrics["conflicts_open"] = report.conflicts.states.get("open", 0) + report.conflicts.states.get("disputed", 0)
    return metrics | _cost_metrics(report, None)


def _model_metrics(report: Report, model_name: str) -> Metrics:
    """Metrics of one model; those of a method other than direct questions are named `METHOD.NAME`.

    Trackers put the metrics of all runs side by side, so self-consistency is left out for a model that was asked with
    other sampling settings than the others.
    """
    metrics: Metrics = {}
    for row in (report_row for report_row in report.alignment if report_row.model == model_name):
        prefix = "" if row.method == Method.DIRECT else f"{row.method}."
        for figure, estimate in select_figures(row).items():
            metrics |= _estimate_metrics(f"{prefix}{figure}", estimate)
    for task_row in (row for row in (report.task.models if report.task else ()) if row.model == model_name):
        for figure, estimate in select_figures(task_row).items():
            metrics |= _estimate_metrics(figure, estimate)
    for gap in (
        region_gap
        for region_gap in report.regions.gaps
        if region_gap.model == model_name and region_gap.method == Method.DIRECT
    ):
        metrics |= _estimate_metrics("region_gap_mae", gap.mae_gap)
    is_comparable = model_name not in report.sampling.refusing_models(Purpose.DIRECT)
    for consistency in (
        report_row for report_row in report.self_consistency if report_row.model == model_name and is_comparable
    ):
        metrics |= _estimate_metrics("self_consistency", consistency.cosine) | _estimate_metrics(
            "sample_variance", consistency.variance
        )
    for peers in (report_row for report_row in report.peer_agreement if report_row.model == model_name):
        metrics |= _estimate_metrics("peer_agreement", peers.agreement)
    for coverage in (
        report_row
        for report_row in report.coverage.models
        if report_row.name == model_name and report_row.stage == "direct"
    ):
        prefix = "" if coverage.method in (None, Method.DIRECT) else f"{coverage.method}."
        metrics |= {f"{prefix}answers_planned": coverage.planned, f"{prefix}answers_usable": coverage.ok}
    return metrics | _cost_metrics(report, model_name)


def _estimate_metrics(name: str, estimate: Estimate) -> Metrics:
    """Metrics of an estimate: `NAME`, `NAME_low` and `NAME_high` (95% CI) and `NAME_n`; empty if it has no value."""
    if estimate.value is None:
        return {}
    interval_ends = {f"{name}_low": estimate.ci_low, f"{name}_high": estimate.ci_high}
    known_ends = {key: value for key, value in interval_ends.items() if value is not None}
    return {name: estimate.value, **known_ends, f"{name}_n": estimate.n}


def _cost_metrics(report: Report, model_name: str | None) -> Metrics:
    """Counts of calls and requests; the cost in US dollars only if every price is known, since a part would mislead."""
    cost_rows = (
        [report.cost.total] if model_name is None else [row for row in report.cost.rows if row.name == model_name]
    )
    metrics: Metrics = {
        "calls": sum(row.sums.calls for row in cost_rows),
        "requests": sum(row.sums.attempts for row in cost_rows),
    }
    if cost_rows and all(row.usd is not None and not row.lower_bound for row in cost_rows):
        metrics["cost_usd"] = sum(row.usd or 0.0 for row in cost_rows)
    return metrics


DIGEST_TAG, KIND_TAG = "auditor.report", "auditor.kind"
DEFAULT_STORE = "mlflow.db"
DEFAULT_URI = f"sqlite:///{DEFAULT_STORE}"
MAX_PARAM_LENGTH = 6000
"""MLflow's limit on the length of a parameter's value, in characters; longer values are cut."""


class MlflowExport(NamedTuple):
    """Location of the runs, without its password.

    `fresh` is False if the same report had been exported before, so that nothing was written.

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
        UsageError: MLflow is not installed, or the store cannot be used, or is a database of audits, or the default one
            is a link: whoever made the folder may have chosen where it leads.
    """
    bootstrap.prepare_environment()
    load_extra("mlflow.tracking", "mlflow")

    tracking_uri = uri or os.environ.get("MLFLOW_TRACKING_URI") or DEFAULT_URI
    if tracking_uri == DEFAULT_URI:
        _refuse_links(Path(DEFAULT_STORE))
    if tracking_uri.startswith("sqlite:") and (path := parse_sqlite_path(tracking_uri)) and holds_audits(path):
        raise UsageError(
            f"{path}: is a database of audits, in which MLflow would make its tables.",
            "Name another file with --tracking-uri.",
        )
    shown_uri = redact_url(tracking_uri)
    try:
        register_secrets(urlsplit(tracking_uri).password)
    except ValueError as error:
        raise UsageError(f"{shown_uri}: is no address ({error}).", "Correct it in --tracking-uri.") from None
    try:
        return _log_runs(tracking.MlflowClient(tracking_uri=tracking_uri), shown_uri, experiment, report)
    except (exceptions.MlflowException, DatabaseLibraryError) as error:
        first_line = redact(str(error).replace(tracking_uri, shown_uri)).split("\n", 1)[0][:200]
        raise UsageError(
            f"MLflow at {shown_uri} cannot be used: {first_line}.", "Name a tracking server with --tracking-uri."
        ) from None


def _refuse_links(store: Path) -> None:
    """Raise UsageError if the default store is a link, or it or a file that SQLite keeps beside it has another name."""
    if store.is_symlink():
        raise UsageError(
            f"{store}: is a link, which the default store does not follow.",
            f"Delete the link. Or, if MLflow may use {store.resolve()}, name it with --tracking-uri.",
        )
    if store.exists() and store.stat().st_nlink > 1:
        raise UsageError(
            f"{store}: has a second name (a hard link), under which MLflow would write into it.",
            f"Delete it here. Or, if MLflow may use that file, name it with --tracking-uri sqlite:///{store.resolve()}.",
        )
    try:
        refuse_links(store)
    except StorageError as error:
        raise UsageError(error.message, error.how_to_fix) from None


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
    run_id: str = client.create_run(experiment_id, run_name=run.name, tags=tags).info.run_id
    now = int(time.time() * 1000)
    client.log_batch(
        run_id,
        metrics=[entities.Metric(name, float(value), now, 0) for name, value in run.metrics.items()],
        params=[entities.Param(name, value[:MAX_PARAM_LENGTH]) for name, value in run.params.items()],
    )
    return run_id


class WandbExport(NamedTuple):
    """Locations of the runs: URLs if `online`, else folders on this machine, for `wandb sync`."""

    runs: list[str]
    online: bool


def export_wandb(report: Report, folder: Path, *, project: str = "auditor", online: bool = False) -> WandbExport:
    """Write an audit as runs of Weights & Biases.

    The run ids derive from the report, so that a report that is sent twice appears once.

    Args:
        report: the audit's report.
        folder: where wandb stores the runs; created if missing.
        project: name of the project.
        online: send the runs now, with the key that wandb finds in the environment; else nothing leaves this machine.

    Raises:
        UsageError: wandb is not installed, or cannot write or send the runs.
    """
    bootstrap.prepare_environment()
    os.environ.setdefault("WANDB_ERROR_REPORTING", "false")
    wandb = load_extra("wandb", "wandb")
    digest = compute_report_digest(report)
    audit_run, model_runs = build_runs(report)
    make_folder(folder)
    try:
        with report_write_errors(folder):
            with tempfile.TemporaryDirectory() as artifact_folder:
                write_artifacts(report, Path(artifact_folder))
                run_locations = [_log_run(wandb, folder, project, online, audit_run, digest, artifact_folder)]
            run_locations += [
                _log_run(wandb, folder, project, online, model_run, digest, None) for model_run in model_runs
            ]
    except wandb.errors.Error as error:
        first_line = str(error).split("\n", 1)[0][:200]
        raise UsageError(
            f"Weights & Biases cannot be used: {first_line}.", "Check WANDB_API_KEY, or remove --online."
        ) from None
    return WandbExport(run_locations, online)


def _log_run(
    wandb: Any, folder: Path, project: str, online: bool, run: TrackerRun, digest: str, artifact_folder: str | None
) -> str:
    """Write one run and return its URL if `online`, else its folder.

    Args:
        wandb: the package, which is imported only when it is needed.
        folder, project, online: as in `export_wandb`.
        run: the run to write.
        digest: hash of the report, part of the run's id.
        artifact_folder: files to attach to the audit's run; None for the run of a model.
    """
    settings = wandb.Settings(
        console="off", disable_git=True, save_code=False, silent=True, x_disable_meta=True, x_disable_stats=True
    )
    wandb_run = wandb.init(
        project=project,
        dir=str(folder),
        mode="online" if online else "offline",
        id=_make_run_id(run, digest, "a" if artifact_folder else "m"),
        name=run.name,
        group=run.params["audit"],
        job_type="audit" if artifact_folder else "model",
        config=dict(run.params),
        settings=settings,
        reinit="create_new",
        resume="allow" if online else None,
    )
    try:
        wandb_run.summary.update(run.metrics)
        if artifact_folder:
            artifact = wandb.Artifact(f"{slugify(run.name)}-report", type="report")
            artifact.add_dir(artifact_folder)
            wandb_run.log_artifact(artifact)
        location = str(wandb_run.url) if online else str(Path(wandb_run.dir).parent)
    finally:
        wandb_run.finish()
    return location


def _make_run_id(run: TrackerRun, digest: str, kind: str) -> str:
    """The id of a run: equal for the same report, and different for models whose names are alike."""
    names_digest = sha256("\n".join([digest, run.params["audit"], run.name]).encode()).hexdigest()
    return f"{slugify(run.params['audit'])[:40]}-{slugify(run.name)[:40]}-{names_digest[:8]}-{kind}"
