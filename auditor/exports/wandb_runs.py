"""An audit as runs of Weights & Biases: a group with a run of the whole and one of each model."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from auditor import bootstrap
from auditor.atomic_files import make_folder, writing
from auditor.errors import UsageError
from auditor.exports.tracker_runs import Run, digest_of, runs_of, write_artifacts
from auditor.extras import load_extra
from auditor.reports.report_schema import Report
from auditor.text_safety import slug


class Synced(NamedTuple):
    """Where the runs are: folders on this machine, which `wandb sync` sends; or, online, their addresses."""

    runs: list[str]
    online: bool


def export_wandb(report: Report, folder: Path, *, project: str = "auditor", online: bool = False) -> Synced:
    """Write an audit as runs of Weights & Biases.

    The same report makes runs of the same ids, so that what is sent twice stands there once.

    Args:
        folder: where runs are kept; made if it is not there.
        project: the project's name.
        online: send them now, with the key that wandb finds in the environment; else nothing leaves this machine.

    Raises:
        UsageError: wandb is not installed, or cannot write or send the runs.
    """
    bootstrap.prepare()
    os.environ.setdefault("WANDB_ERROR_REPORTING", "false")
    wandb = load_extra("wandb", "wandb")
    digest = digest_of(report)
    whole, models = runs_of(report)
    make_folder(folder)
    try:
        with writing(folder):
            with tempfile.TemporaryDirectory() as files:
                write_artifacts(report, Path(files))
                done = [_run(wandb, folder, project, online, whole, digest, files)]
            done += [_run(wandb, folder, project, online, model, digest, None) for model in models]
    except wandb.errors.Error as error:
        said = str(error).split("\n", 1)[0][:200]
        raise UsageError(f"Weights & Biases: {said}.", "Check WANDB_API_KEY, or leave --online out.") from None
    return Synced(done, online)


def _run(wandb: Any, folder: Path, project: str, online: bool, run: Run, digest: str, files: str | None) -> str:
    settings = wandb.Settings(
        console="off", disable_git=True, save_code=False, silent=True, x_disable_meta=True, x_disable_stats=True
    )
    made = wandb.init(
        project=project,
        dir=str(folder),
        mode="online" if online else "offline",
        id=f"{slug(run.params['audit'])[:40]}-{slug(run.name)[:40]}-{digest[:8]}-{'a' if files else 'm'}",
        name=run.name,
        group=run.params["audit"],
        job_type="audit" if files else "model",
        config=dict(run.params),
        settings=settings,
        reinit="create_new",
        resume="allow" if online else None,
    )
    try:
        made.summary.update(run.metrics)
        if files:
            artifact = wandb.Artifact(f"{slug(run.name)}-report", type="report")
            artifact.add_dir(files)
            made.log_artifact(artifact)
        where = str(made.url) if online else str(Path(made.dir).parent)
    finally:
        made.finish()
    return where
