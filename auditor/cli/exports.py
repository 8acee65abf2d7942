"""Commands that export decisions, tables, plots and runs for other programs."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import typer

from auditor.atomic_files import write_atomically
from auditor.console.options import (
    AuditArgument,
    JsonOption,
    StorageOption,
    label_kind_option,
    output_file,
    output_folder,
    resolve_output,
)
from auditor.console.output import print_data, print_json, print_message, print_missing_probes
from auditor.domain.labels import LabelKind
from auditor.errors import UsageError
from auditor.exports.inspect_logs import export_inspect as export
from auditor.lazy_imports import import_when_used
from auditor.probes.logic.training_export import export_training
from auditor.reports.number_format import pluralize
from auditor.reports.report_files import write_plots
from auditor.review.export import write_labels, write_ratings
from auditor.review.judge_weights import estimate_panel_weights, format_weights_toml, weights_to_dict
from auditor.run import open_audit, open_stored_audit, open_stored_database
from auditor.storage.sqlite_file import copy_database

if not TYPE_CHECKING:
    evidence = import_when_used("auditor.exports.evidence")
    tables = import_when_used("auditor.exports.tables")
    tracker_runs = import_when_used("auditor.exports.tracker_runs")
else:
    from auditor.exports import evidence, tables, tracker_runs


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
    tracked = tracker_runs.export_mlflow(
        open_audit(audit, storage=storage).report(), uri=tracking_uri, experiment=experiment
    )
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
    report = open_audit(audit, storage=storage).report()
    tracked = tracker_runs.export_wandb(
        report, resolve_output(output, f"{audit}-wandb"), project=project, online=online
    )
    if as_json:
        print_json(tracked._asdict())
    for run_folder in tracked.runs:
        print_message(run_folder)
    if not online:
        print_message(f"Next: wandb sync {' '.join(tracked.runs)}")


export_app = typer.Typer(
    name="export", help="Export decisions, tables and plots for other programs.", no_args_is_help=True
)

export_app.command("inspect")(export_inspect)
export_app.command("mlflow")(export_mlflow)
export_app.command("wandb")(export_wandb)
export_app.command("training")(export_training)


LogFormatOption: TypeAlias = Annotated[Literal["csv", "jsonl"], typer.Option("--format", "-f", help="csv or jsonl.")]
LogFileOption: TypeAlias = Annotated[Path | None, output_file()]
RawOption: TypeAlias = Annotated[
    bool, typer.Option("--raw", help="Do not escape texts that a spreadsheet would read as formulas.")
]


@export_app.command("ratings")
def export_ratings(
    audit: AuditArgument,
    file_format: LogFormatOption = "csv",
    output: LogFileOption = None,
    raw: RawOption = False,
    storage: StorageOption = None,
) -> None:
    """Write all human decisions, with their history.

    The oldest decisions come first, and decisions that were undone are included.

    Example: auditor export ratings moral-alignment -o ratings.csv
    """
    file = io.StringIO()
    with open_stored_audit(audit, storage) as (db, stored_audit):
        n_ratings = write_ratings(db, stored_audit, file, file_format, keep_formulas=raw)
    _write_log(file.getvalue(), output, pluralize(n_ratings, "rating"))


@export_app.command("labels")
def export_labels(
    audit: AuditArgument,
    kind: Annotated[str, label_kind_option("What was labelled: trace, answer_pair or comparison.")] = "trace",
    file_format: LogFormatOption = "csv",
    output: LogFileOption = None,
    raw: RawOption = False,
    storage: StorageOption = None,
) -> None:
    """Write people's labels of a random sample, with their history.

    The oldest labels come first. Labels that were undone are included, with false in the column in_force.

    Example: auditor export labels moral-alignment -o labels.csv
    """
    file = io.StringIO()
    with open_stored_audit(audit, storage) as (db, stored_audit):
        n_labels = write_labels(db, stored_audit, file, LabelKind(kind), file_format, keep_formulas=raw)
    _write_log(file.getvalue(), output, pluralize(n_labels, "label"))


def _write_log(text: str, output: Path | None, count: str) -> None:
    """Write an exported log to a file, and say so; to standard output without one."""
    if output is None:
        print_data(text)
        return
    write_atomically(text, output)
    print_message(f"{count}: {output.resolve()}")


@export_app.command("weights")
def export_weights(
    audit: AuditArgument,
    storage: StorageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write judges' weights, estimated from human decisions.

    The output is a section of a configuration: paste it at the end of your file. A conflict is then settled by more
    than half of the weight, instead of more than half of the judges. A weight is based on the log odds that the judge
    agrees with people's blind decisions: 1 is the average, 0 is no better than chance.

    Example: auditor export weights moral-alignment >> next-audit.toml
    """
    with open_stored_audit(audit, storage) as (db, stored_audit):
        panel_weights = estimate_panel_weights(db, stored_audit)
    if as_json:
        print_json(weights_to_dict(panel_weights))
    else:
        print_data(format_weights_toml(panel_weights))


@export_app.command("tables")
def export_tables(
    audit: AuditArgument,
    file_format: Annotated[
        Literal["parquet", "jsonl"], typer.Option("--format", "-f", help="parquet or jsonl.")
    ] = "parquet",
    output: Annotated[Path | None, output_folder("Folder to write; AUDIT-tables by default.")] = None,
    keep_names: Annotated[
        bool, typer.Option("--names", help="Keep the names of human reviewers; by default they are numbered.")
    ] = False,
    storage: StorageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write all tables of an audit, as Parquet or JSONL.

    The table cells has what most analyses need: a row for each model and cell, with both scores, numbers of samples,
    conflict and verdicts. The folder also gets a description of the data, and a list of all tables and files.

    Example: auditor export tables moral-alignment --format parquet -o moral-alignment-data
    """
    with open_stored_audit(audit, storage) as (db, stored_audit):
        folder = resolve_output(output, f"{audit}-tables")
        table_export = tables.export_tables(db, stored_audit.name, folder, file_format, keep_rater_names=keep_names)
        print_missing_probes(stored_audit.config)
    for reason in table_export.left_out:
        print_message(reason)
    if as_json:
        print_json(
            {"folder": str(table_export.folder), "rows": table_export.row_counts, "files": table_export.file_hashes}
        )
    print_message(
        f"{pluralize(sum(table_export.row_counts.values()), 'row')} in "
        f"{pluralize(len(table_export.row_counts), 'table')}: "
        f"{table_export.folder.resolve()}"
    )


@export_app.command("paper")
def export_paper(
    audit: AuditArgument,
    output: Annotated[Path | None, output_folder("Folder to write; AUDIT-paper by default.")] = None,
    storage: StorageOption = None,
) -> None:
    """Write tables for a paper, as CSV and LaTeX.

    The CSV files have full precision; one LaTeX file has all tables: accuracy (of a task), alignment,
    direct-and-logprob (r by each method and their difference), tiers, cut-off-tiers, over-models (means and ranges,
    such as of the difference in r), self-consistency, peer-agreement, judge-agreement, correlations, conflicts,
    regions, regional-gap (of the error and of r), topics, countries (with r), and coverage.

    Example: auditor export paper moral-alignment -o tables
    """
    report, folder = open_audit(audit, storage=storage).report(), resolve_output(output, f"{audit}-paper")
    files = tables.export_paper(
        report, folder, lambda path: print_message(f"Removed, since this audit has no such table: {path}")
    )
    for path in files:
        print_message(str(path))


@export_app.command("plots")
def export_plots(
    audit: AuditArgument,
    file_format: Annotated[
        Literal["svg", "png", "pdf", "vega"],
        typer.Option("--format", "-f", help="svg, png or pdf; or vega for the Vega-Lite specification."),
    ] = "svg",
    output: Annotated[Path | None, output_folder("Folder to write; AUDIT-plots by default.")] = None,
    storage: StorageOption = None,
) -> None:
    """Write the report's plots as image files.

    Example: auditor export plots moral-alignment --format svg -o figures
    """
    audit_report = open_audit(audit, storage=storage).report()
    for path in write_plots(audit_report, resolve_output(output, f"{audit}-plots"), file_format):
        print_message(str(path))


@export_app.command("evidence")
def export_evidence(
    audit: AuditArgument,
    output: Annotated[Path, output_file("File to write (.zip).")],
    storage: StorageOption = None,
) -> None:
    """Write an audit as one file that others can check.

    The file has the configuration, prompts, survey, all records of the audit with their hash chain, the report as JSON,
    and versions. It has no key and no folder of this machine, but names of reviewers. To check it, without this
    database: auditor verify FILE.zip. The same records give the same bytes.

    Example: auditor export evidence moral-alignment -o evidence.zip
    """
    if output.suffix.lower() != ".zip":
        raise UsageError(f"{output}: an archive of evidence ends in .zip.", "Name it so, such as -o evidence.zip")
    with open_stored_audit(audit, storage) as (db, stored_audit):
        summary = evidence.export_evidence(db, stored_audit, output)
        print_missing_probes(stored_audit.config)
    if summary.raters:
        print_message(
            f"Warning: the file names {pluralize(len(summary.raters), 'human reviewer')}, since the hash chain covers "
            f"their names: {', '.join(summary.raters)}. Ask them before you publish it."
        )
    for path in summary.weights:
        print_message(f"Warning: the file has the path of weights, which is a part of recorded requests: {path}")
    if not summary.derivation.is_consistent:
        print_message("Warning: recorded results differ from the recorded answers; see `auditor verify`.")
    withheld = (
        f", and hashes of {pluralize(summary.n_withheld, 'record')} of other audits" if summary.n_withheld else ""
    )
    print_message(f"{pluralize(summary.n_rows, 'record')}{withheld}: {output.resolve()}")
    print_message(f"To show later that they are unchanged, sign the file, or publish this checksum: {summary.head}")


@export_app.command("backup")
def export_backup(
    output: Annotated[Path, output_file("File to write; it must not exist yet.")],
    storage: StorageOption = None,
) -> None:
    """Copy the database to a file, and check the copy.

    The database may be in use meanwhile. (A copy by `cp` would lack the logs that SQLite keeps in separate files.) To
    open the copy: --storage sqlite:///FILE.

    Example: auditor export backup -o auditor-2026-11-21.db
    """
    with open_stored_database(storage) as db:
        if db.path is None:
            raise UsageError("this command copies SQLite files only.", "Use pg_dump for a PostgreSQL database.")
        copy_database(db.path, output)
    print_message(f"Copied and checked: {output.resolve()}")
