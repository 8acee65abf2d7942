"""An audit as runs of Weights & Biases: a group with a run of the whole and one of each model."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from auditor import bootstrap
from auditor.atomic_files import make_folder, report_write_errors
from auditor.errors import UsageError
from auditor.exports.tracker_runs import TrackerRun, build_runs, report_digest, write_artifacts
from auditor.extras import load_extra
from auditor.reports.report_schema import Report
from auditor.text_safety import slugify


class WandbExport(NamedTuple):
    """Where the runs are: folders on this machine, which `wandb sync` sends; or, online, their addresses."""

    runs: list[str]
    online: bool


def export_wandb(report: Report, folder: Path, *, project: str = "auditor", online: bool = False) -> WandbExport:
    """Write an audit as runs of Weights & Biases.

    The same report makes runs of the same ids, so that what is sent twice stands there once.

    Args:
        folder: where runs are kept; made if it is not there.
        project: the project's name.
        online: send them now, with the key that wandb finds in the environment; else nothing leaves this machine.

    Raises:
        UsageError: wandb is not installed, or cannot write or send the runs.
    """
    bootstrap.prepare_environment()
    os.environ.setdefault("WANDB_ERROR_REPORTING", "false")
    wandb = load_extra("wandb", "wandb")
    digest = report_digest(report)
    whole, models = build_runs(report)
    make_folder(folder)
    try:
        with report_write_errors(folder):
            with tempfile.TemporaryDirectory() as files:
                write_artifacts(report, Path(files))
                done = [_log_run(wandb, folder, project, online, whole, digest, files)]
            done += [_log_run(wandb, folder, project, online, model, digest, None) for model in models]
    except wandb.errors.Error as error:
        said = str(error).split("\n", 1)[0][:200]
        raise UsageError(f"Weights & Biases: {said}.", "Check WANDB_API_KEY, or leave --online out.") from None
    return WandbExport(done, online)


def _log_run(
    wandb: Any, folder: Path, project: str, online: bool, run: TrackerRun, digest: str, artifact_folder: str | None
) -> str:
    settings = wandb.Settings(
        console="off", disable_git=True, save_code=False, silent=True, x_disable_meta=True, x_disable_stats=True
    )
    made = wandb.init(
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
        made.summary.update(run.metrics)
        if artifact_folder:
            artifact = wandb.Artifact(f"{slugify(run.name)}-report", type="report")
            artifact.add_dir(artifact_folder)
            made.log_artifact(artifact)
        where = str(made.url) if online else str(Path(made.dir).parent)
    finally:
        made.finish()
    return where
