"""Commands that write tables out for other programs."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from auditor.cli.options import AsJson, Storage
from auditor.cli.output import put, put_json, say

export_app = typer.Typer(name="export", help="Write tables out for other programs.", no_args_is_help=True)


class Form(StrEnum):
    """File formats."""

    CSV = "csv"
    JSONL = "jsonl"


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.add_typer(export_app)


@export_app.command("ratings")
def export_ratings(
    audit: Annotated[str, typer.Argument(metavar="AUDIT", help="The audit's name.")],
    form: Annotated[Form, typer.Option("--format", "-f", help="csv or jsonl.")] = Form.CSV,
    output: Annotated[Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write to a file.")] = None,
    raw: Annotated[
        bool, typer.Option("--raw", help="Do not defuse texts that a spreadsheet would take for formulas.")
    ] = False,
    storage: Storage = None,
) -> None:
    """Write everything that people decided, oldest first, undone decisions included.

    Example: auditor export ratings moral-alignment -o ratings.csv
    """
    import io

    from auditor.reports.render import write_report
    from auditor.review.export import write_ratings
    from auditor.run import storage_url
    from auditor.storage import audits
    from auditor.storage.database import open_database

    text = io.StringIO()
    with open_database(storage_url(storage), create=False) as db:
        n = write_ratings(db, audits.get(db, audit), text, form.value, raw=raw)
    if output is None:
        sys.stdout.write(text.getvalue())
        return
    write_report(text.getvalue(), output)
    say(f"{n} ratings: {output.resolve()}")


@export_app.command("weights")
def export_weights(
    audit: Annotated[str, typer.Argument(metavar="AUDIT", help="The audit's name.")],
    storage: Storage = None,
    as_json: AsJson = False,
) -> None:
    """Write the weights of the judges' votes that people's blind decisions taught, as a part of a configuration.

    Paste it at the end of a config: then more than half of the weight, and not of the judges, settles a conflict. A
    judge's weight is the log odds of its saying what people say; 1 is the average, 0 no better than chance.

    Example: auditor export weights moral-alignment >> next-audit.toml
    """
    from auditor.review.weights import learnt_weights, weights_json, weights_toml
    from auditor.run import storage_url
    from auditor.storage import audits
    from auditor.storage.database import open_database

    with open_database(storage_url(storage), create=False) as db:
        learnt = learnt_weights(db, audits.get(db, audit))
    if as_json:
        put_json(weights_json(learnt))
    else:
        put(weights_toml(learnt))


class TableForm(StrEnum):
    """File formats of whole tables."""

    PARQUET = "parquet"
    JSONL = "jsonl"


@export_app.command("tables")
def export_tables(
    audit: Annotated[str, typer.Argument(metavar="AUDIT", help="The audit's name.")],
    form: Annotated[TableForm, typer.Option("--format", "-f", help="parquet or jsonl.")] = TableForm.PARQUET,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="DIR", help="A folder; AUDIT-tables if not given.")
    ] = None,
    names: Annotated[bool, typer.Option("--names", help="Keep people's names; else they are numbered.")] = False,
    storage: Storage = None,
    as_json: AsJson = False,
) -> None:
    """Write every table of an audit, typed, with a manifest of hashes and a card that says what the data are.

    Example: auditor export tables moral-alignment --format parquet -o moral-alignment-data
    """
    from auditor.exporting import export_tables as export
    from auditor.run import storage_url
    from auditor.storage.database import open_database

    with open_database(storage_url(storage), create=False) as db:
        found = export(db, audit, output or Path(f"{audit}-tables"), form.value, names=names)
    if as_json:
        put_json({"folder": str(found.folder), "rows": found.rows, "files": found.files})
    say(f"{sum(found.rows.values())} rows in {len(found.rows)} tables: {found.folder.resolve()}")


@export_app.command("paper")
def export_paper(
    audit: Annotated[str, typer.Argument(metavar="AUDIT", help="The audit's name.")],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="DIR", help="A folder; AUDIT-paper if not given.")
    ] = None,
    storage: Storage = None,
) -> None:
    """Write the tables of a paper: CSV in full precision, and one LaTeX file to include.

    Agreement, direct and log-probability scores with their difference, tiers, peer agreement beside alignment,
    conflicts by kind, regions and their gap, topics, countries.

    Example: auditor export paper moral-alignment -o tables
    """
    from auditor.exporting import export_paper as export
    from auditor.run import open_audit

    files = export(open_audit(audit, storage=storage).report(), output or Path(f"{audit}-paper"))
    for path in files:
        say(str(path))


class PlotForm(StrEnum):
    """Forms of pictures."""

    SVG = "svg"
    PNG = "png"
    PDF = "pdf"


@export_app.command("plots")
def export_plots(
    audit: Annotated[str, typer.Argument(metavar="AUDIT", help="The audit's name.")],
    form: Annotated[PlotForm, typer.Option("--format", "-f", help="svg; png and pdf need chromium.")] = PlotForm.SVG,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="DIR", help="A folder; AUDIT-plots if not given.")
    ] = None,
    storage: Storage = None,
) -> None:
    """Write the report's plots as pictures, each a file of its own.

    Example: auditor export plots moral-alignment --format svg -o figures
    """
    from auditor.reports.plots import write_plots
    from auditor.run import open_audit

    made = open_audit(audit, storage=storage).report()
    for path in write_plots(made, output or Path(f"{audit}-plots"), form.value):
        say(str(path))
