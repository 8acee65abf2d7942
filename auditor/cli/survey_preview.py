"""The command that shows a respondents' file, and what its values become, before it is imported."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from auditor.cli.survey_imports import print_reading
from auditor.console.options import JsonOption, output_file
from auditor.console.output import print_json, print_message, print_table
from auditor.reports.number_format import pluralize

if TYPE_CHECKING:
    from auditor.surveys.preview import ColumnPreview, FilePreview

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
    from auditor.surveys.mapping import load_mapping
    from auditor.surveys.preview import preview_file

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
    from auditor.atomic_files import write_atomically
    from auditor.surveys.mapping_draft import copy_mapping, draft_mapping

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
        print_message(f"… and {len(values) - len(printed):,} more values of {column.name}; --json lists all.")


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
