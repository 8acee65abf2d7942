"""The command that imports answers on a survey's own scale."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from auditor.console.options import (
    CountryCodesOption,
    NewAuditOption,
    RegionsOption,
    StorageOption,
    StrictOption,
    SurveyOption,
)
from auditor.console.output import format_command, print_message, print_unmatched_rows
from auditor.probes.distribution.opinion_imports import import_opinions as import_recorded_opinions
from auditor.reports.number_format import pluralize


def import_opinions(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="A file with the columns model,country,topic,mode[,dimension,group], and p1,...,pK or sample,answer.",
        ),
    ],
    survey: SurveyOption,
    audit: NewAuditOption,
    regions: RegionsOption = "western",
    country_codes: CountryCodesOption = None,
    strict: StrictOption = False,
    storage: StorageOption = None,
) -> None:
    """Create an audit from answers on the survey's own scale.

    No model is asked. The report compares the models' answers with the shares of people's answers. The column mode is
    verbalized (the model stated the shares), sampled (it answered as individual people) or tokens (probabilities of the
    answers as next tokens).

    Example: auditor import opinions opinions.csv --survey my_wvs.csv --audit published
    """
    counts = import_recorded_opinions(
        file,
        survey=survey,
        audit=audit,
        storage=storage,
        regions=regions,
        is_strict=strict,
        country_codes=country_codes,
    )
    print_message(
        f"{pluralize(counts.rows, 'answer')} of {pluralize(counts.models, 'model')} in audit '{audit}'"
        f"{', which replaces its previous contents' if counts.replaced else ''}."
    )
    notes = {
        "without a usable answer: counted as failed": counts.unusable,
        "of shares that were divided by their sum": counts.rescaled,
    }
    for note, n in notes.items():
        if n:
            print_message(f"  {pluralize(n, 'row')} {note}.")
    if counts.unknown_answer:
        print_message(f"  {counts.unknown_answer}")
    print_unmatched_rows(counts.unmatched)
    print_message(f"Next: {format_command('report', audit, storage=storage)}")
