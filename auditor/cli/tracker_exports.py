"""The commands `export inspect`, `export mlflow` and `export wandb`: audits for other evaluation tools."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from auditor.console.options import AuditArgument, JsonOption, StorageOption, output_folder, resolve_output
from auditor.console.output import print_json, print_message
from auditor.reports.number_format import pluralize


def export_inspect(
    audit: AuditArgument,
    output: Annotated[Path | None, output_folder("Folder to write; AUDIT-inspect by default.")] = None,
    storage: StorageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write the answers as logs of Inspect AI.

    There is one log for each model: open the logs with `inspect view --log-dir DIR`. In Inspect's terms, a sample is a
    cell (a country and a topic), and an epoch is one answer to it. The scores are the audit's own and those of every
    judge; an answer without a score has none in the log. Needs: pip install 'auditor[inspect]'.

    Example: auditor export inspect moral-alignment -o logs
    """
    from auditor.exports.inspect_logs import export_inspect as export
    from auditor.run import open_stored_audit

    folder = resolve_output(output, f"{audit}-inspect")
    with open_stored_audit(audit, storage) as (db, stored_audit):
        logs = export(db, stored_audit.name, folder)
    if as_json:
        print_json(
            [{"file": str(log.path), "model": log.model, "samples": log.samples, "scored": log.scored} for log in logs]
        )
    for log in logs:
        print_message(f"{log.model}: {pluralize(log.samples, 'answer')}, {log.scored} with a score: {log.path}")
    print_message(f"Next: inspect view --log-dir {folder}")


def export_mlflow(
    audit: AuditArgument,
    tracking_uri: Annotated[
        str | None,
        typer.Option(
            "--tracking-uri",
            metavar="URI",
            help="Address of the tracking server. Default: MLFLOW_TRACKING_URI, or sqlite:///mlflow.db.",
        ),
    ] = None,
    experiment: Annotated[
        str, typer.Option("--experiment", metavar="NAME", help="Name of the experiment in MLflow.")
    ] = "auditor",
    storage: StorageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write an audit as runs of MLflow.

    MLflow gets one run for each model, with the report's figures and intervals, under a parent run for the audit. The
    artifacts of the parent run are the report and tables for a paper. Needs: pip install 'auditor[mlflow]'.

    Example: auditor export mlflow moral-alignment --tracking-uri http://localhost:5000
    """
    from auditor.exports.mlflow_runs import export_mlflow as export
    from auditor.run import open_audit

    tracked = export(open_audit(audit, storage=storage).report(), uri=tracking_uri, experiment=experiment)
    if as_json:
        print_json(tracked._asdict())
    print_message(
        f"{pluralize(tracked.runs, 'run')} in the experiment '{tracked.experiment}' at {tracked.uri}"
        + ("" if tracked.fresh else " (unchanged)")
    )


def export_wandb(
    audit: AuditArgument,
    output: Annotated[Path | None, output_folder("Folder to write; AUDIT-wandb by default.")] = None,
    project: Annotated[
        str, typer.Option("--project", metavar="NAME", help="Name of the Weights & Biases project.")
    ] = "auditor",
    online: Annotated[bool, typer.Option("--online", help="Send the runs now; by default nothing is sent.")] = False,
    storage: StorageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write an audit as runs of Weights & Biases.

    Weights & Biases gets one run for each model, with the report's figures, and one for the audit. Unless --online is
    given, runs stay on this machine until you send them with `wandb sync`. Needs: pip install 'auditor[wandb]'.

    Example: auditor export wandb moral-alignment -o runs
    """
    from auditor.exports.wandb_runs import export_wandb as export
    from auditor.run import open_audit

    report = open_audit(audit, storage=storage).report()
    tracked = export(report, resolve_output(output, f"{audit}-wandb"), project=project, online=online)
    if as_json:
        print_json(tracked._asdict())
    for run_folder in tracked.runs:
        print_message(run_folder)
    if not online:
        print_message(f"Next: wandb sync {' '.join(tracked.runs)}")
