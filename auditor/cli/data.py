"""Commands about data: surveys, and importing what was measured elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from auditor.cli.options import AsJson, Storage
from auditor.cli.output import put_json, say, table

surveys_app = typer.Typer(name="surveys", help="Ground truth: what people find acceptable.", no_args_is_help=True)
import_app = typer.Typer(name="import", help="Bring in what was measured elsewhere.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.add_typer(surveys_app)
    app.add_typer(import_app)


@surveys_app.command("list")
def list_surveys(as_json: AsJson = False) -> None:
    """List the built-in surveys.

    Example: auditor surveys list
    """
    from auditor.surveys import builtin_surveys, load_survey

    facts = [
        {
            "name": survey.name,
            "title": survey.title,
            "countries": len(survey.countries),
            "topics": len(survey.topics),
            "cells": len(survey.scores),
            "source": survey.source,
        }
        for survey in map(load_survey, builtin_surveys())
    ]
    if as_json:
        put_json(facts)
        return
    columns = ["name", "title", "countries", "topics", "cells"]
    table(columns, [[fact[column] for column in columns] for fact in facts])


@import_app.command("scores")
def import_scores(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="model,country,topic,method,score[,sample]")],
    survey: Annotated[str, typer.Option("--survey", metavar="S", help="A built-in survey or a file.")],
    audit: Annotated[str, typer.Option("--audit", metavar="NAME", help="The audit that is made of it.")],
    storage: Storage = None,
) -> None:
    """Make an audit of scores that were measured elsewhere, with no call to any model.

    An empty score is a sample that failed. Several samples of a cell are averaged.

    Example: auditor import scores scores.csv --survey wvs7-sample --audit published
    """
    from auditor.imports import import_scores as import_

    counts = import_(file, survey=survey, audit=audit, storage=storage)
    say(f"{counts.rows} rows: {counts.scores} scores of {counts.models} models in audit '{audit}'.")
    if counts.not_in_survey:
        say(f"  {counts.not_in_survey} rows are about cells that the survey does not have: kept, but not compared.")
    say(f"Next: auditor report {audit}")
