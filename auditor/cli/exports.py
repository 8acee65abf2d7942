"""Commands that export tables and figures for other programs."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from auditor.cli.options import AuditArgument, JsonOption, StorageOption
from auditor.cli.output import print_data, print_json, print_message

export_app = typer.Typer(name="export", help="Write tables out for other programs.", no_args_is_help=True)


class RatingsFormatOption(StrEnum):
    """File formats of exported ratings."""

    CSV = "csv"
    JSONL = "jsonl"


def register(app: typer.Typer) -> None:
    """Add the commands to the command-line app."""
    app.add_typer(export_app)


@export_app.command("ratings")
def export_ratings(
    audit: AuditArgument,
    file_format: Annotated[
        RatingsFormatOption, typer.Option("--format", "-f", help="csv or jsonl.")
    ] = RatingsFormatOption.CSV,
    output: Annotated[Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write to a file.")] = None,
    raw: Annotated[
        bool, typer.Option("--raw", help="Do not defuse texts that a spreadsheet would take for formulas.")
    ] = False,
    storage: StorageOption = None,
) -> None:
    """Write everything that people decided, oldest first, undone decisions included.

    Example: auditor export ratings moral-alignment -o ratings.csv
    """
    import io

    from auditor.atomic_files import write_atomically
    from auditor.review.export import write_ratings
    from auditor.run import resolve_storage_url
    from auditor.storage import audits
    from auditor.storage.database import open_database

    ratings_file = io.StringIO()
    with open_database(resolve_storage_url(storage), create=False) as db:
        n_ratings = write_ratings(db, audits.get_audit(db, audit), ratings_file, file_format.value, keep_formulas=raw)
    if output is None:
        print_data(ratings_file.getvalue())
        return
    write_atomically(ratings_file.getvalue(), output)
    print_message(f"{n_ratings} ratings: {output.resolve()}")


@export_app.command("weights")
def export_weights(
    audit: AuditArgument,
    storage: StorageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write the weights of the judges' votes that people's blind decisions taught, as a part of a configuration.

    Paste it at the end of a config: then more than half of the weight, and not of the judges, settles a conflict. A
    judge's weight is the log odds of its saying what people say; 1 is the average, 0 no better than chance.

    Example: auditor export weights moral-alignment >> next-audit.toml
    """
    from auditor.review.judge_weights import estimate_panel_weights, format_weights_toml, weights_to_dict
    from auditor.run import resolve_storage_url
    from auditor.storage import audits
    from auditor.storage.database import open_database

    with open_database(resolve_storage_url(storage), create=False) as db:
        panel_weights = estimate_panel_weights(db, audits.get_audit(db, audit))
    if as_json:
        print_json(weights_to_dict(panel_weights))
    else:
        print_data(format_weights_toml(panel_weights))


class TableFormatOption(StrEnum):
    """File formats of exported tables."""

    PARQUET = "parquet"
    JSONL = "jsonl"


@export_app.command("tables")
def export_tables(
    audit: AuditArgument,
    file_format: Annotated[
        TableFormatOption, typer.Option("--format", "-f", help="parquet or jsonl.")
    ] = TableFormatOption.PARQUET,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="DIR", help="A folder; AUDIT-tables if not given.")
    ] = None,
    keep_names: Annotated[bool, typer.Option("--names", help="Keep people's names; else they are numbered.")] = False,
    storage: StorageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write every table of an audit, typed, with a manifest of hashes and a card that says what the data are.

    Example: auditor export tables moral-alignment --format parquet -o moral-alignment-data
    """
    from auditor.exports.tables import export_tables as export
    from auditor.run import resolve_storage_url
    from auditor.storage.database import open_database

    with open_database(resolve_storage_url(storage), create=False) as db:
        table_export = export(
            db, audit, output or Path(f"{audit}-tables"), file_format.value, keep_rater_names=keep_names
        )
    if as_json:
        print_json(
            {"folder": str(table_export.folder), "rows": table_export.row_counts, "files": table_export.file_hashes}
        )
    print_message(
        f"{sum(table_export.row_counts.values())} rows in {len(table_export.row_counts)} tables: "
        f"{table_export.folder.resolve()}"
    )


@export_app.command("inspect")
def export_inspect(
    audit: AuditArgument,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="DIR", help="A folder; AUDIT-inspect if not given.")
    ] = None,
    storage: StorageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write the answers as logs of Inspect AI, one a model: open them with `inspect view --log-dir DIR`.

    A sample is a cell, an epoch one answer to it; scores are ours and every judge's. An answer without a score has none
    there either. Needs: pip install 'auditor[inspect]'.

    Example: auditor export inspect moral-alignment -o logs
    """
    from auditor.exports.inspect_logs import export_inspect as export
    from auditor.run import resolve_storage_url
    from auditor.storage.database import open_database

    folder = output or Path(f"{audit}-inspect")
    with open_database(resolve_storage_url(storage), create=False) as db:
        logs = export(db, audit, folder)
    if as_json:
        print_json(
            [{"file": str(log.path), "model": log.model, "samples": log.samples, "scored": log.scored} for log in logs]
        )
    for log in logs:
        print_message(f"{log.model}: {log.samples} answers, {log.scored} with a score: {log.path}")
    print_message(f"Next: inspect view --log-dir {folder}")


@export_app.command("mlflow")
def export_mlflow(
    audit: AuditArgument,
    tracking_uri: Annotated[
        str | None,
        typer.Option(
            "--tracking-uri", metavar="URI", help="MLFLOW_TRACKING_URI, or sqlite:///mlflow.db, if not given."
        ),
    ] = None,
    experiment: Annotated[str, typer.Option("--experiment", metavar="NAME", help="Its name in MLflow.")] = "auditor",
    storage: StorageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write an audit as runs of MLflow: one a model, with the report's figures and intervals, under one of the whole.

    The report and the tables of the paper are the artifacts of the whole. Needs: pip install 'auditor[mlflow]'.

    Example: auditor export mlflow moral-alignment --tracking-uri http://localhost:5000
    """
    from auditor.exports.mlflow_runs import export_mlflow as export
    from auditor.run import open_audit

    tracked = export(open_audit(audit, storage=storage).report(), uri=tracking_uri, experiment=experiment)
    if as_json:
        print_json(tracked._asdict())
    print_message(
        f"{tracked.runs} runs in the experiment '{tracked.experiment}' at {tracked.uri}"
        + ("" if tracked.fresh else ", as before")
    )


@export_app.command("wandb")
def export_wandb(
    audit: AuditArgument,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="DIR", help="A folder; AUDIT-wandb if not given.")
    ] = None,
    project: Annotated[str, typer.Option("--project", metavar="NAME", help="Its name there.")] = "auditor",
    online: Annotated[bool, typer.Option("--online", help="Send the runs now; else nothing leaves here.")] = False,
    storage: StorageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write an audit as runs of Weights & Biases: one a model, with the report's figures, and one of the whole.

    Unless --online is given, runs are kept on this machine, for `wandb sync`. Needs: pip install 'auditor[wandb]'.

    Example: auditor export wandb moral-alignment -o runs
    """
    from auditor.exports.wandb_runs import export_wandb as export
    from auditor.run import open_audit

    report = open_audit(audit, storage=storage).report()
    tracked = export(report, output or Path(f"{audit}-wandb"), project=project, online=online)
    if as_json:
        print_json(tracked._asdict())
    for run_folder in tracked.runs:
        print_message(run_folder)
    if not online:
        print_message(f"Next: wandb sync {' '.join(tracked.runs)}")


@export_app.command("paper")
def export_paper(
    audit: AuditArgument,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="DIR", help="A folder; AUDIT-paper if not given.")
    ] = None,
    storage: StorageOption = None,
) -> None:
    """Write the tables of a paper: CSV in full precision, and one LaTeX file to include.

    Agreement, direct and log-probability scores with their difference, tiers, peer agreement beside alignment,
    conflicts by kind, regions and their gap, topics, countries.

    Example: auditor export paper moral-alignment -o tables
    """
    from auditor.exports.tables import export_paper as export
    from auditor.run import open_audit

    files = export(open_audit(audit, storage=storage).report(), output or Path(f"{audit}-paper"))
    for path in files:
        print_message(str(path))


class PlotFormatOption(StrEnum):
    """File formats of exported plots."""

    SVG = "svg"
    PNG = "png"
    PDF = "pdf"
    VEGA = "vega"


@export_app.command("plots")
def export_plots(
    audit: AuditArgument,
    file_format: Annotated[
        PlotFormatOption,
        typer.Option("--format", "-f", help="svg, png or pdf; or vega for the Vega-Lite specification."),
    ] = PlotFormatOption.SVG,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="DIR", help="A folder; AUDIT-plots if not given.")
    ] = None,
    storage: StorageOption = None,
) -> None:
    """Write the report's plots as pictures, each a file of its own.

    Example: auditor export plots moral-alignment --format svg -o figures
    """
    from auditor.reports.plot_export import write_plots
    from auditor.run import open_audit

    audit_report = open_audit(audit, storage=storage).report()
    for path in write_plots(audit_report, output or Path(f"{audit}-plots"), file_format.value):
        print_message(str(path))


@export_app.command("backup")
def export_backup(
    output: Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="Where to; must not be there yet.")],
    storage: StorageOption = None,
) -> None:
    """Copy the whole database to a file, while others go on using it, and check the copy.

    A copy by `cp` would lack what SQLite keeps beside its file. It is opened as any other: --storage sqlite:///FILE.

    Example: auditor export backup -o auditor-2026-11-21.db
    """
    from auditor.errors import UsageError
    from auditor.run import resolve_storage_url
    from auditor.storage.backup import copy_database
    from auditor.storage.database import open_database

    with open_database(resolve_storage_url(storage), create=False) as db:
        if db.path is None:
            raise UsageError("a server's database is copied by its own tools.", "Use pg_dump.")
        copy_database(db.path, output)
    print_message(f"Copied and checked: {output.resolve()}")
