"""Commands about data: importing what was measured elsewhere, and, by another module, surveys."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from auditor.cli import experiments, surveys
from auditor.cli.options import Storage
from auditor.cli.output import say

import_app = typer.Typer(name="import", help="Bring in what was measured elsewhere.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.add_typer(surveys.app)
    app.add_typer(experiments.app)
    app.add_typer(import_app)


@import_app.command("scores")
def import_scores(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="model,country,topic,method,score[,sample]")],
    survey: Annotated[str, typer.Option("--survey", metavar="S", help="A built-in survey or a file.")],
    audit: Annotated[str, typer.Option("--audit", metavar="NAME", help="The audit that is made of it.")],
    regions: Annotated[
        str, typer.Option("--regions", metavar="G", help="Groups of countries: built in, or a file: country,region.")
    ] = "western",
    storage: Storage = None,
) -> None:
    """Make an audit of scores that were measured elsewhere, with no call to any model.

    An empty score is a sample that failed. Several samples of a cell are averaged.

    Example: auditor import scores scores.csv --survey wvs7-sample --audit published
    """
    from auditor.imports import import_scores as import_

    counts = import_(file, survey=survey, audit=audit, storage=storage, regions=regions)
    made = f"{_plural(counts.scores, 'score')} of {_plural(counts.models, 'model')} in audit '{audit}'"
    say(f"{_plural(counts.rows, 'row')}: {made}{', which replaces what it held' if counts.replaced else ''}.")
    if counts.empty:
        say(f"  {_plural(counts.empty, 'row')} without a score: counted as failed samples.")
    if counts.not_in_survey:
        say(f"  {_plural(counts.not_in_survey, 'row')} about cells that the survey does not have: kept, not compared.")
    say(f"Next: auditor report {audit}")


@import_app.command("comparisons")
def import_comparisons(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="judge,context,item_a,item_b,relation,decision")],
    audit: Annotated[str, typer.Option("--audit", metavar="NAME", help="The audit that is made of it.")],
    people: Annotated[
        str | None, typer.Option("--people", metavar="JUDGE", help="The judge whose rows are people's decisions.")
    ] = None,
    items: Annotated[
        Path | None, typer.Option("--items", metavar="FILE", help="Texts and people's scores: item,context,text,human.")
    ] = None,
    criterion: Annotated[
        str,
        typer.Option("--criterion", help="What items were compared by: acceptability, preference, relevance, …"),
    ] = "preference",
    storage: Storage = None,
) -> None:
    """Measure how logical recorded comparisons are, with no call to any model.

    A row is one question with item_a shown first; relation is standard or negated; decision is A, B, TIE or empty,
    which is not measured. A column sample (0 is the answer, from 1 on repeats) gives self-agreement.

    Example: auditor import comparisons judged.csv --audit judged --people human
    """
    from auditor.comparing import import_comparisons as import_

    counts = import_(file, audit=audit, storage=storage, people=people, items=items, criterion=criterion)
    made = f"{_plural(counts.items, 'item')} in {_plural(counts.sets, 'set')}, {_plural(counts.judges, 'judge')}"
    say(f"{_plural(counts.rows, 'row')}: {made}, audit '{audit}'{', which it replaces' if counts.replaced else ''}.")
    if counts.empty:
        say(f"  {_plural(counts.empty, 'row')} without a decision: not measured.")
    say(f"Next: auditor report {audit}")


def _plural(n: int, noun: str) -> str:
    return f"{n} {noun}{'' if n == 1 else 's'}"
