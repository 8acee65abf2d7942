"""The command that converts official files, and tables of shares, to surveys."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from auditor.console.options import output_file, resolve_output
from auditor.console.output import print_message
from auditor.reports.number_format import pluralize

if TYPE_CHECKING:
    from auditor.domain import Survey
    from auditor.surveys.microdata import FileReading

MAX_VALUES_SHOWN = 8
"""Values that one line of an import lists; `surveys preview` lists all."""


def import_survey_file(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="The survey's official file, .csv or SPSS .sav; with --shares, a table of shares."
        ),
    ],
    mapping: Annotated[
        str,
        typer.Option(
            "--mapping", metavar="M", help="How the columns of FILE are read: a built-in mapping or a .toml file."
        ),
    ] = "wvs7",
    name: Annotated[
        str | None, typer.Option("--name", metavar="N", help="Name of the survey; by default that of the written file.")
    ] = None,
    output_path: Annotated[Path | None, output_file("File to write.", metavar="OUT.csv", replaces="a survey")] = None,
    seed: Annotated[
        int, typer.Option("--seed", min=0, help="Seed of the random numbers for imputation and split halves.")
    ] = 0,
    shares: Annotated[
        bool,
        typer.Option(
            "--shares",
            help="FILE has shares of answers, in the columns country,topic[,n][,dimension,group][,low,high],p1,...,pK.",
        ),
    ] = False,
    low: Annotated[
        int | None, typer.Option("--low", help="With --shares: code of the answer in the first column of shares, p1.")
    ] = None,
    high: Annotated[
        int | None, typer.Option("--high", help="With --shares: code of the answer in the last column of shares, pK.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace existing files.")] = False,
) -> None:
    """Convert an official file or a table of shares to a survey.

    Built-in mappings: wvs7, pew2013, evs-wvs-2017, wvs-trend-wave6. Three more files are written: a description, facts
    from the respondents' answers (kinds of nonresponse, scores under each treatment of it, and reliability), and the
    shares of answers by country, topic and group of respondents. `surveys preview` shows first what values become.

    Example: auditor surveys import WVS_Cross-National_Wave_7.csv --mapping wvs7 -o my_wvs.csv
    """
    from auditor.errors import UsageError

    target = resolve_output(output_path, f"{name or file.stem + '.survey'}.csv")
    if shares:
        _import_shares(file, target, name, low, high, overwrite=force)
        return
    if low is not None or high is not None:
        raise UsageError("--low and --high describe a table of shares.", "Add --shares, or remove them.")
    _import_microdata(file, target, name, mapping, seed, overwrite=force)


def _import_microdata(file: Path, target: Path, name: str | None, mapping: str, seed: int, *, overwrite: bool) -> None:
    """Import an official file of respondents, and print what was read."""
    from auditor.surveys import write_survey
    from auditor.surveys.importer import import_survey

    imported = import_survey(file, mapping, name=name or target.stem, seed=seed)
    written = write_survey(imported.survey, target, imported.facts, imported.distributions, overwrite=overwrite)
    survey, facts = imported.survey, imported.facts
    print_message(
        f"{pluralize(facts.respondents, 'respondent')}: {format_survey_size(survey)}, "
        f"{pluralize(len(survey.scores), 'cell')} with a score."
    )
    for reason, rows in facts.left_out.items():
        if rows:
            print_message(f"  {pluralize(rows, 'row')} left out: {reason}")
    if imported.reading is not None:
        print_reading(imported.reading)
    groups = imported.distributions.groups if imported.distributions is not None else {}
    if groups:
        print_message(f"  also written: shares of answers by {', '.join(groups)}")
    _print_written(facts.notes, written, target)


def print_reading(reading: FileReading) -> None:
    """Print in short how the columns of a file were read: countries, missing answers, weights, waves and groups."""
    named_values = [value for value in reading.country_values if value.country is not None]
    counts = Counter(value.source for value in named_values)
    print_message(f"  countries: {', '.join(f'{count} by {source}' for source, count in counts.items())}")
    unknown_values = [value for value in named_values if value.is_unknown]
    if unknown_values:
        names = [
            f"{value.country}: {value.describe_source()}, {pluralize(value.n_rows, 'row')}"
            for value in unknown_values[:MAX_VALUES_SHOWN]
        ]
        omitted = [f"and {len(unknown_values) - len(names)} more"] if len(unknown_values) > len(names) else []
        print_message(f"  names that are no known country: {'; '.join([*names, *omitted])}")
    missing = [f"{kind} {count}" for kind, count in reading.answer_counts.items() if count]
    print_message(f"  answers without a score: {', '.join(missing) or 'none'}")
    print_message(
        f"  empty answers: {reading.n_blank_asked} count as nonresponse, {reading.n_blank_not_asked} as not asked"
    )
    if reading.weight_range is not None:
        print_message("  weights: {:g} to {:g}".format(*reading.weight_range))
    for column, rows_by_wave in reading.rows_by_wave.items():
        waves = [f"{wave} ({pluralize(n, 'row')})" for wave, n in rows_by_wave.items()]
        print_message(f"  waves in {column}: {_shorten(waves)}")
    for dimension, rows_by_value in reading.ungrouped_values.items():
        values = [f"{value} ({pluralize(n, 'row')})" for value, n in rows_by_value.items()]
        print_message(f"  values in no group of {dimension}: {_shorten(values)}")


def _shorten(texts: Sequence[str]) -> str:
    """Texts separated by commas; of many the first, and the number of the others."""
    omitted = [f"and {len(texts) - MAX_VALUES_SHOWN} more"] if len(texts) > MAX_VALUES_SHOWN else []
    return ", ".join([*texts[:MAX_VALUES_SHOWN], *omitted])


def _import_shares(
    file: Path, target: Path, name: str | None, low: int | None, high: int | None, *, overwrite: bool
) -> None:
    """Import a table of shares, and print what was read."""
    from auditor.surveys import write_survey
    from auditor.surveys.share_tables import import_share_table

    imported = import_share_table(file, low, high, name or target.stem)
    written = write_survey(imported.survey, target, shares=imported.distributions, overwrite=overwrite)
    n_groups = sum(map(len, imported.distributions.groups.values()))
    print_message(
        f"{format_survey_size(imported.survey)}, {pluralize(len(imported.survey.cells), 'cell')}, "
        f"{pluralize(n_groups, 'group')}."
    )
    _print_written(imported.notes, written, target)


def _print_written(notes: Sequence[str], written: Sequence[Path], target: Path) -> None:
    """Print the notes of an import, the files, and the next command."""
    for note in notes:
        print_message(f"  {note}")
    print_message(f"Written: {', '.join(map(str, written))}")
    print_message(f"Next: auditor surveys check {target}")


def format_survey_size(survey: Survey) -> str:
    """The numbers of countries and topics, such as `55 countries × 19 topics`."""
    return f"{pluralize(len(survey.countries), 'country', 'countries')} × {pluralize(len(survey.topics), 'topic')}"
