"""The command that imports comparisons of items in pairs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from auditor.console.options import NewAuditOption, StorageOption
from auditor.console.output import format_command, print_message
from auditor.reports.number_format import pluralize


def import_comparisons(
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="A file with the columns judge,context,item_a,item_b,relation,decision."),
    ],
    audit: NewAuditOption,
    people: Annotated[
        str | None,
        typer.Option("--people", metavar="JUDGE", help="The name that marks decisions by people in the column judge."),
    ] = None,
    items: Annotated[
        Path | None,
        typer.Option(
            "--items", metavar="FILE", help="A file of the items' texts and people's scores: item,context,text,human."
        ),
    ] = None,
    criterion: Annotated[
        str,
        typer.Option(
            "--criterion", help="Criterion by which items were compared, such as acceptability or preference."
        ),
    ] = "preference",
    storage: StorageOption = None,
) -> None:
    """Create an audit from comparisons of items in pairs.

    The report shows how logical the comparisons are; no model is asked. A row is one question with item_a shown first;
    relation is standard or negated; decision is A, B, TIE or empty (not measured). The column sample numbers
    repetitions of a question from 0, for self-agreement.

    Example: auditor import comparisons judged.csv --audit judged --people human
    """
    from auditor.probes.logic.comparison_imports import import_comparisons as import_recorded_comparisons

    counts = import_recorded_comparisons(
        file, audit=audit, storage=storage, people=people, items=items, criterion=criterion
    )
    counted_items = (
        f"{pluralize(counts.items, 'item')} in {pluralize(counts.sets, 'set')}, {pluralize(counts.judges, 'judge')}"
    )
    print_message(
        f"{pluralize(counts.rows, 'row')}: {counted_items}, audit '{audit}'"
        f"{', which replaces its previous contents' if counts.replaced else ''}."
    )
    if counts.empty:
        print_message(f"  {pluralize(counts.empty, 'row')} without a decision: stored as missing answers of the judge.")
    print_message(f"Next: {format_command('report', audit, storage=storage)}")
