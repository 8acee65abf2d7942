"""Export an audit to Weights & Biases: a group with one run of the audit and one run per model."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from auditor import bootstrap
from auditor.atomic_files import make_folder, report_write_errors
from auditor.errors import UsageError
from auditor.exports.tracker_runs import TrackerRun, build_runs, compute_report_digest, write_artifacts
from auditor.extras import load_extra
from auditor.reports.data.report_schema import Report
from auditor.text_safety import slugify


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
        id=(
            f"{slugify(run.params['audit'])[:40]}-{slugify(run.name)[:40]}-{digest[:8]}-"
            f"{'a' if artifact_folder else 'm'}"
        ),
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
