"""Commands about surveys: list, preview, import and check them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from auditor.atomic_files import write_atomically
from auditor.console.options import CountryCodesOption, JsonOption, output_file, resolve_output
from auditor.console.output import print_json, print_message, print_table
from auditor.errors import UsageError, format_count
from auditor.metrics.intervals.estimate import NORMAL_QUANTILE
from auditor.reports.number_format import pluralize
from auditor.surveys import (
    builtin_surveys,
    findings_by_check,
    get_grouping,
    group_countries,
    load_survey,
    load_survey_facts,
    select_cells,
    write_survey,
)
from auditor.surveys.countries import country_code, country_name
from auditor.surveys.country_columns import describe_unknown_names
from auditor.surveys.description import DESCRIPTION_SUFFIX
from auditor.surveys.importer import import_survey
from auditor.surveys.mapping import load_mapping
from auditor.surveys.mapping_draft import copy_mapping, draft_mapping
from auditor.surveys.preview import preview_file
from auditor.surveys.share_tables import import_share_table

if TYPE_CHECKING:
    from auditor.domain import Survey, SurveyCell
    from auditor.surveys.microdata import FileReading
    from auditor.surveys.preview import ColumnPreview, FilePreview
    from auditor.surveys.share_tables import ShareTableSurvey


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
    country_codes: CountryCodesOption = None,
    force: Annotated[bool, typer.Option("--force", help="Replace existing files.")] = False,
) -> None:
    """Convert an official file or a table of shares to a survey.

    Built-in mappings: wvs7, pew2013, evs-wvs-2017, wvs-trend-wave6. Three more files are written: a description, facts
    from the respondents' answers (kinds of nonresponse, scores under each treatment of it, and reliability), and the
    shares of answers by country, topic and group of respondents. `surveys preview` shows first what values become.

    Example: auditor surveys import WVS_Cross-National_Wave_7.csv --mapping wvs7 -o my_wvs.csv
    """
    target = resolve_output(output_path, f"{name or file.stem + '.survey'}.csv")
    if shares:
        imported = import_share_table(file, low, high, name or target.stem, country_codes)
        _write_shares(imported, target, overwrite=force)
        return
    if low is not None or high is not None:
        raise UsageError("--low and --high describe a table of shares.", "Add --shares, or remove them.")
    if country_codes is not None:
        raise UsageError(
            "--country-codes describes a table of shares.",
            f'Add --shares, or write country_codes = "{country_codes}" in the mapping.',
        )
    _import_microdata(file, target, name, mapping, seed, overwrite=force)


def _import_microdata(file: Path, target: Path, name: str | None, mapping: str, seed: int, *, overwrite: bool) -> None:
    """Import an official file of respondents, and print what was read."""
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
    _print_written(facts.notes, written, target, survey)


def print_reading(reading: FileReading) -> None:
    """Print in short how the columns of a file were read: countries, missing answers, weights, waves and groups."""
    named_values = [value for value in reading.country_values if value.country is not None]
    counts = Counter(value.source for value in named_values)
    print_message(f"  countries: {', '.join(f'{count} by {source}' for source, count in counts.items())}")
    if unknown_names := describe_unknown_names(named_values):
        print_message(f"  {unknown_names}")
    for ends, n_topics in reading.scale_ends.items():
        print_message(f"  scale of {pluralize(n_topics, 'topic')}: {ends}")
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


def _write_shares(imported: ShareTableSurvey, target: Path, *, overwrite: bool) -> None:
    """Write a survey that was made from a table of shares, and print what was read."""
    written = write_survey(imported.survey, target, shares=imported.distributions, overwrite=overwrite)
    n_groups = sum(map(len, imported.distributions.groups.values()))
    print_message(
        f"{format_survey_size(imported.survey)}, {pluralize(len(imported.survey.cells), 'cell')}, "
        f"{pluralize(n_groups, 'group')}."
    )
    _print_written(imported.notes, written, target, imported.survey)
    description_path = target.with_name(target.stem + DESCRIPTION_SUFFIX)
    print_message(f"Before you run an audit, edit title, source and wording in {description_path}: they are defaults.")
    print_message("The shares also allow the probe 'distribution': [probes.distribution] in the configuration.")


def _print_written(notes: Sequence[str], written: Sequence[Path], target: Path, survey: Survey) -> None:
    """Print the notes of an import, the files, the next command, and countries that are not spelt as usual."""
    for note in notes:
        print_message(f"  {note}")
    print_message(f"Written: {', '.join(map(str, written))}")
    print_message(f"Next: auditor surveys check {target}")
    names = {country: country_name(country_code(country) or "") for country in survey.countries}
    if spelled := [f"{country} ({name})" for country, name in names.items() if name not in (None, country)]:
        print_message(f"Models are asked about countries as the file spells them: {', '.join(spelled)}.")


def format_survey_size(survey: Survey) -> str:
    """The numbers of countries and topics, such as `55 countries × 19 topics`."""
    return f"{pluralize(len(survey.countries), 'country', 'countries')} × {pluralize(len(survey.topics), 'topic')}"


MAX_VALUES_PRINTED = 100
"""Values of a column that are printed; --json has all."""


def preview_survey_file(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The survey's official file, as for `import`.")],
    mapping: Annotated[
        str | None,
        typer.Option(
            "--mapping", metavar="M", help="Show what values become under this mapping: its name or .toml file."
        ),
    ] = None,
    columns: Annotated[
        list[str] | None,
        typer.Option(
            "--column", metavar="C", help="Show all values of this column; with --write, a topic. Repeatable."
        ),
    ] = None,
    write: Annotated[
        Path | None,
        output_file(
            "Write a mapping to start from; `import` refuses it until edited.",
            "--write",
            metavar="M.toml",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show the columns and values of a file, and what they become.

    Values are shown of columns that the mapping uses, of those named by --column, and of columns with at most 50
    different values. Without --mapping, columns of countries, weights, waves and ballots are recognized. Exit codes: 0
    an import would succeed, or without --mapping; 1 it would stop.

    Example: auditor surveys preview my_file.csv --write my.toml
    """
    preview = preview_file(file, None if mapping is None else load_mapping(mapping), columns or ())
    if as_json:
        print_json(_preview_to_dict(preview))
    else:
        _print_preview(preview)
    if write is not None:
        _write_draft(write, file, preview, mapping, columns or ())
    if preview.problem is not None:
        raise preview.problem


def _write_draft(target: Path, file: Path, preview: FilePreview, mapping: str | None, columns: Sequence[str]) -> None:
    """Write a draft of a mapping: a copy of the given one, or one made from the file."""
    text = draft_mapping(file, preview, columns) if mapping is None else copy_mapping(mapping)
    write_atomically(text, target)
    print_message(f"Written: {target}")
    print_message(f"Next: correct it, then auditor surveys preview {file} --mapping {target}")


def _print_preview(preview: FilePreview) -> None:
    """Print the columns, the values of each, and how the file is read."""
    print_message(f"{pluralize(preview.n_rows, 'row')}, {pluralize(len(preview.columns), 'column')}")
    print_table(
        ["column", "use", "different values", "empty"],
        [[column.name, column.role or None, column.n_values, column.n_empty] for column in preview.columns],
    )
    for column in preview.columns:
        if column.values is not None or column.number_range is not None:
            _print_column(column)
    if preview.reading is not None:
        print_message("An import would read the file as follows:")
        print_reading(preview.reading)


def _print_column(column: ColumnPreview) -> None:
    """Print the values of a column with their counts, and what they become."""
    if column.number_range is not None:
        print_table([column.name], [["{:g} to {:g}".format(*column.number_range)]])
        return
    values = column.values or ()
    # Values that stop an import are shown in any case.
    printed = [value for i, value in enumerate(values) if i < MAX_VALUES_PRINTED or value.is_problem]
    has_meanings = any(value.meaning for value in values)
    print_table(
        [column.name, "rows", *(["becomes"] if has_meanings else [])],
        [
            [value.value, value.n_rows, *([_mark(value.meaning, value.is_problem)] if has_meanings else [])]
            for value in printed
        ],
    )
    if len(printed) < len(values):
        print_message(
            f"… and {pluralize(len(values) - len(printed), 'more value')} of {column.name}; --json lists all."
        )


def _mark(meaning: str, is_problem: bool) -> str:
    """What a value becomes; marked if an import stops because of it."""
    return f"STOPS: {meaning}" if is_problem else meaning


def _preview_to_dict(preview: FilePreview) -> dict[str, Any]:
    """A preview as JSON data."""
    return {
        "rows": preview.n_rows,
        "problem": None if preview.problem is None else str(preview.problem),
        "reading": None if preview.reading is None else preview.reading.to_dict(),
        "columns": [
            {
                "name": column.name,
                "use": column.role,
                "empty": column.n_empty,
                "different_values": column.n_values,
                "range": column.number_range,
                "values": None
                if column.values is None
                else [
                    {"value": value.value, "rows": value.n_rows, "becomes": value.meaning, "stops": value.is_problem}
                    for value in column.values
                ],
            }
            for column in preview.columns
        ],
    }


app = typer.Typer(
    name="surveys", help="List, preview, import and check surveys of people's answers.", no_args_is_help=True
)

PLOT_WIDTH = 41
"""Characters of a plot from -1 to +1; odd, so that zero has a column."""
MAX_FINDINGS_SHOWN = 20
"""Limit of the shown findings of one check."""
SurveyArgument = Annotated[
    str, typer.Argument(metavar="SURVEY", help="A built-in survey, or the path of a survey file.")
]


@app.command("list")
def list_surveys(as_json: JsonOption = False) -> None:
    """List the built-in surveys.

    Example: auditor surveys list
    """
    survey_rows = [
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
        print_json(survey_rows)
        return
    columns = ["name", "title", "countries", "topics", "cells"]
    print_table(columns, [[survey_row[column] for column in columns] for survey_row in survey_rows])


app.command("preview")(preview_survey_file)
app.command("import")(import_survey_file)


@app.command("show")
def show_survey(
    source: SurveyArgument,
    country: Annotated[str | None, typer.Option("--country", metavar="C", help="Only this country.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Show a survey's scores by country and topic.

    Scores are from -1 (never acceptable) to +1 (always acceptable).

    Example: auditor surveys show wvs7-sample --country Japan
    """
    survey = load_survey(source)
    if country is not None:
        survey = select_cells(survey, countries=[country])
    if as_json:
        names = ("score", "n", "standard_error", "nonresponse", "acceptable", "not_a_moral_issue", "unacceptable")
        cells = [
            survey_cell.cell._asdict() | {name: getattr(survey_cell, name) for name in names}
            for survey_cell in survey.cells
        ]
        print_json({"name": survey.name, "title": survey.title, "source": survey.source, "cells": cells})
    elif country is not None:
        _print_country(survey)
    else:
        _print_all_countries(survey)


@app.command("check")
def check_survey_command(source: SurveyArgument, as_json: JsonOption = False) -> None:
    """Check a survey for implausible values.

    The first 20 findings of each kind are shown; --json has all. Exit codes: 0 nothing found, 1 something found.

    Example: auditor surveys check my_wvs.csv
    """
    survey = load_survey(source)
    by_check = findings_by_check(survey, load_survey_facts(source))
    n_findings = sum(map(len, by_check))
    if as_json:
        print_json({"survey": survey.name, "odd": [line for lines in by_check for line in lines]})
    else:
        rows = [[line] for lines in by_check for line in _limit_findings(lines)]
        print_table(["finding"], rows) if rows else None
        findings = pluralize(n_findings, "implausible value") if n_findings else "no implausible values"
        print_message(f"{survey.name}: {format_survey_size(survey)}; {findings}.")
    if n_findings:
        raise typer.Exit(1)


def _limit_findings(lines: Sequence[str]) -> list[str]:
    """The first findings of one check, and a line with the number of omitted ones."""
    n_omitted = len(lines) - MAX_FINDINGS_SHOWN
    return [
        *lines[:MAX_FINDINGS_SHOWN],
        *([f"… and {format_count(n_omitted)} more of this kind; --json lists all."] if n_omitted > 0 else []),
    ]


@app.command("regions")
def show_regions(
    source: SurveyArgument,
    grouping: Annotated[
        str,
        typer.Option(
            "--regions",
            metavar="G",
            help="A built-in grouping of countries, or a file with the columns country,region.",
        ),
    ] = "western",
    as_json: JsonOption = False,
) -> None:
    """Show the groups that a survey's countries are in.

    Built-in groupings: western, un_m49, un_m49_subregions, inglehart_welzel. An audit compares the groups that
    `survey.regions` names in its configuration.

    Example: auditor surveys regions wvs7-sample --regions un_m49
    """
    survey = load_survey(source)
    country_groups = get_grouping(group_countries(survey, grouping))
    ungrouped = [country for country in survey.countries if country not in country_groups.region_by_country]
    if as_json:
        print_json(
            {
                "grouping": country_groups.name,
                "regions": {group.name: group.countries for group in country_groups.regions},
                "none": ungrouped,
            }
        )
        return
    print_message(
        f"{country_groups.title}: {pluralize(len(survey.countries), 'country', 'countries')} of {survey.name}"
    )
    print_table(
        ["region", "countries", "which"],
        [[group.name, len(group.countries), ", ".join(group.countries)] for group in country_groups.regions],
    )
    if ungrouped:
        print_message(f"Countries in no region, and therefore in no comparison of regions: {', '.join(ungrouped)}")


# --- output ------------------------------------------------------------------------------------------------------


def _print_country(survey: Survey) -> None:
    """Print one country's scores by topic, each with its interval and a plot."""
    rows: list[list[object]] = []
    for survey_cell in survey.cells:
        low, high = compute_score_interval(survey_cell)
        interval = None if low is None or high is None else f"{low:.2f} to {high:.2f}"
        plot = None if survey_cell.score is None else draw_score_plot(survey_cell.score, low, high)
        # `nonresponse` is the share of respondents without an answer, from 0 to 1.
        missing = None if survey_cell.nonresponse is None else f"{100 * survey_cell.nonresponse:.0f}%"
        rows.append([survey_cell.cell.topic, _format_score(survey_cell.score), interval, survey_cell.n, missing, plot])
    print_message(f"{survey.title}: {', '.join(survey.countries)}")
    print_table(
        *_drop_empty_columns(
            ["topic", "score", "95%", "n", "no answer", "-1" + "0".center(PLOT_WIDTH - 4) + "+1"], rows
        )
    )


def _drop_empty_columns(columns: list[str], rows: list[list[object]]) -> tuple[list[str], list[list[object]]]:
    """The columns, and rows, without columns whose values are all None."""
    filled_columns = [i for i in range(len(columns)) if any(row[i] is not None for row in rows)]
    return [columns[i] for i in filled_columns], [[row[i] for i in filled_columns] for row in rows]


def _print_all_countries(survey: Survey) -> None:
    """Print scores of all countries by topic, then mean and range of each topic over countries."""
    scores, topics = survey.scores, survey.topics
    by_cell = {(cell.country, cell.topic): score for cell, score in scores.items()}
    rows = [
        [country, *(_format_score(by_cell.get((country, topic))) for topic in topics)] for country in survey.countries
    ]
    print_message(f"{survey.title}: {format_survey_size(survey)}")
    print_table(["country", *map(str, range(1, len(topics) + 1))], rows)
    lines: list[list[object]] = []
    for number, topic in enumerate(topics, start=1):
        topic_scores = [score for cell, score in scores.items() if cell.topic == topic]
        mean = sum(topic_scores) / len(topic_scores) if topic_scores else None
        plot = draw_score_plot(mean, min(topic_scores), max(topic_scores)) if mean is not None else None
        lines.append([number, topic, _format_score(mean), plot])
    print_table(["", "topic", "mean", "-1" + "lowest to highest country".center(PLOT_WIDTH - 4) + "+1"], lines)


def _format_score(score: float | None) -> str | None:
    """A score with two decimals; None if there is none."""
    return None if score is None else f"{score:.2f}"


def compute_score_interval(cell: SurveyCell) -> tuple[float | None, float | None]:
    """95% confidence interval of a score from its standard error, clipped to [-1, 1]; (None, None) if it is unknown."""
    if cell.score is None or cell.standard_error is None:
        return None, None
    half_width = NORMAL_QUANTILE * cell.standard_error
    return max(-1.0, cell.score - half_width), min(1.0, cell.score + half_width)


def draw_score_plot(score: float, low: float | None = None, high: float | None = None) -> str:
    """Draw a score from -1 to +1 in one line: the score as a dot, its interval as a line, zero as a bar."""
    line = [" "] * PLOT_WIDTH
    line[_plot_column(0.0)] = "│"
    if low is not None and high is not None:
        for column in range(_plot_column(low), _plot_column(high) + 1):
            line[column] = "─"
    line[_plot_column(score)] = "●"
    return "".join(line)


def _plot_column(score: float) -> int:
    """Index of the character for a score in [-1, 1]."""
    return round((score + 1) / 2 * (PLOT_WIDTH - 1))
