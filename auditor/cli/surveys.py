"""Commands about surveys: list them, preview and import files, show scores, and check for anomalies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from auditor.cli.survey_imports import format_survey_size, import_survey_file
from auditor.cli.survey_preview import preview_survey_file
from auditor.console.options import JsonOption
from auditor.console.output import print_json, print_message, print_table
from auditor.metrics.confidence import NORMAL_QUANTILE
from auditor.reports.number_format import pluralize

if TYPE_CHECKING:
    from auditor.domain import Survey, SurveyCell

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
    from auditor.surveys import builtin_surveys, load_survey

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
    from auditor.surveys import load_survey, select_cells

    survey = load_survey(source)
    if country is not None:
        survey = select_cells(survey, countries=[country])
    if as_json:
        print_json(_survey_to_dict(survey))
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
    from auditor.surveys import findings_by_check, load_survey, load_survey_facts

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
        *([f"… and {n_omitted:,} more of this kind; --json lists all."] if n_omitted > 0 else []),
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
    from auditor.surveys import get_grouping, group_countries, load_survey

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


def _survey_to_dict(survey: Survey) -> dict[str, Any]:
    """A survey as JSON data: its description and its cells."""
    names = ("score", "n", "standard_error", "nonresponse", "acceptable", "not_a_moral_issue", "unacceptable")
    cells = [
        survey_cell.cell._asdict() | {name: getattr(survey_cell, name) for name in names}
        for survey_cell in survey.cells
    ]
    return {"name": survey.name, "title": survey.title, "source": survey.source, "cells": cells}


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
