"""Papers: the list of them, and those of the user with their checks."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import pydantic

from auditor.config.validation_messages import explain_validation_error
from auditor.errors import ConfigError, ImportFileError, did_you_mean
from auditor.input_files import open_text, read_toml, require_columns
from auditor.replications.experiment import EACH_MODEL, FigureSource
from auditor.replications.figures import FIGURES, GROUP_FIGURES, MODEL_FIGURES, describe_figure
from auditor.replications.planning import PRESET_FILE_PREFIX
from auditor.replications.presets import (
    NOTHING_PRINTED,
    Paper,
    PublishedRow,
    PublishedTable,
    expand_templates,
    list_paper_ids,
    load_paper,
)
from auditor.reports.data.replication import FigureName, PaperCheck, PublishedTableInfo

PRESET_SUFFIX = ".toml"
REQUIRED_COLUMNS = ("table", "row", "column", "value")
OPTIONAL_COLUMNS = ("quote", "model", "place", "note")
PAPER_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
SEE_EXAMPLE = "docs/own-paper.md shows such a file."
LIST_FIGURES = "To list all names: auditor replicate figures"


def find_paper(name: str) -> Paper:
    """Load a paper by its name, or from a preset of the user's, such as `mine.toml`.

    Raises:
        UsageError: there is no paper of this name.
        ConfigError: the file cannot be read, or something in it is wrong; the message has all problems.
    """
    if not name.endswith(PRESET_SUFFIX):
        return load_paper(name)
    path = Path(name)
    paper = _parse_paper(path)
    if problems := list_problems(paper):
        raise ConfigError(f"{path}: {' '.join(problems)}", f"To check it again: auditor replicate check {path}")
    return paper


def check_paper(path: Path) -> PaperCheck:
    """Check a preset of the user's: its form, the names of its figures, and its quotes.

    Raises:
        ConfigError: the file cannot be read, or does not have the form of a preset.
    """
    paper = _parse_paper(path)
    problems = list_problems(paper)
    cells = [] if problems else list(paper.iterate_cells())
    return PaperCheck(
        file=str(path),
        title=paper.title,
        tables=len(paper.tables),
        published=sum(cell.value is not None for cell in cells),
        problems=problems,
    )


def _parse_paper(path: Path) -> Paper:
    """Read a preset without a check of its names and quotes."""
    data = _locate_files(read_toml(path, ConfigError), path.parent.absolute())
    if path.stem in list_paper_ids() or not PAPER_ID.fullmatch(path.stem):
        reason = (
            "is built-in" if path.stem in list_paper_ids() else "has other characters than letters, digits, - and _"
        )
        raise ConfigError(f"{path}: a paper has the name of its file, and '{path.stem}' {reason}.", "Rename the file.")
    try:
        return Paper.model_validate({"id": path.stem, **expand_templates(data)})
    except pydantic.ValidationError as error:
        raise ConfigError(f"{path}: {explain_validation_error(error, data, Paper)}", SEE_EXAMPLE) from None
    except (KeyError, TypeError, AttributeError) as error:
        problem = f"the figures of a table do not have the form of a preset ({error})."
        raise ConfigError(f"{path}: {problem}", SEE_EXAMPLE) from None


def _locate_files(value: Any, folder: Path) -> Any:
    """A copy of nested values in which `preset:NAME` is the path of a file beside the preset."""
    if isinstance(value, dict):
        return {key: _locate_files(item, folder) for key, item in value.items()}
    if isinstance(value, list):
        return [_locate_files(item, folder) for item in value]
    is_file = isinstance(value, str) and value.startswith(PRESET_FILE_PREFIX)
    return str(folder / value.removeprefix(PRESET_FILE_PREFIX)) if is_file else value


def list_problems(paper: Paper) -> list[str]:
    """Sentences on what is wrong with the names and the quotes of a paper; empty if nothing is."""
    problems = [problem for table in paper.tables for problem in _list_table_problems(paper, table)]
    return list(dict.fromkeys(problems))


def _list_table_problems(paper: Paper, table: PublishedTable) -> Iterator[str]:
    """Yield what is wrong with a table's figures and rows."""
    for source in table.list_sources():
        yield from _list_source_problems(paper, table, source)
    columns = {*table.columns, EACH_MODEL}
    for figures in table.list_figures():
        for column in set(figures) - columns:
            yield f"Table {table.id} has figures of '{column}', which is no column. {did_you_mean(column, columns, '')}"
    for row in table.rows:
        try:
            table.read_row(row)
        except ValueError as error:
            yield f"{str(error)[:1].upper()}{str(error)[1:]}."


def _list_source_problems(paper: Paper, table: PublishedTable, source: FigureSource) -> Iterator[str]:
    """Yield unknown names in a figure, each with the nearest known one."""
    experiment = paper.experiment
    audits = {*experiment.audits, *experiment.imports} if experiment else set()
    trials = set(experiment.trials) if experiment else set()
    for kind, name, known in (
        ("figure", source.figure, FIGURES),
        ("model_figure", source.model_figure, MODEL_FIGURES),
        ("group_figure", source.group_figure, GROUP_FIGURES),
        ("audit", source.audit, audits),
        ("trial", source.trial, trials),
    ):
        if name and name not in known:
            yield f"Table {table.id}: there is no {kind} '{name}'. {did_you_mean(name, known, LIST_FIGURES + '.')}"


def add_published_rows(paper: Paper, path: Path) -> Paper:
    """A paper with further published rows, from a table `table,row,column,value[,quote,model,place,note]`.

    Each value must stand in its quote, if it has one.

    Raises:
        ImportFileError: the file cannot be read, a table, column or row is not as the paper needs it, or a quote
            does not have its value.
    """
    new_rows: dict[str, list[PublishedRow]] = {}
    for (table_id, row_name), cells in groupby(_read_cells(path, paper), key=lambda cell: (cell["table"], cell["row"])):
        of_row = list(cells)
        first = of_row[0]
        rows = new_rows.setdefault(table_id, [])
        values = {cell["column"]: cell["value"] for cell in of_row}
        quote = " ".join(dict.fromkeys(cell["quote"] for cell in of_row if cell["quote"]))
        if len(values) < len(of_row) or row_name in {row.row for row in rows}:
            raise ImportFileError(
                f"{path}: row '{row_name}' of table {table_id} has a column twice, or its lines are apart.",
                "Put the lines of a row one after another, one for each column.",
            )
        rows.append(
            PublishedRow(
                row=row_name,
                quote=quote,
                values=values,
                model=first["model"],
                place=first["place"],
                note=first["note"],
                origin="user",
            )
        )
    tables = tuple(
        table.model_copy(update={"rows": (*table.rows, *_name_apart(table, new_rows.get(table.id, []), path))})
        for table in paper.tables
    )
    extended = paper.model_copy(update={"tables": tables})
    if problems := list_problems(extended):
        raise ImportFileError(f"{path}: {' '.join(problems)}", "Correct the value or its quote.")
    return extended


def _name_apart(table: PublishedTable, rows: list[PublishedRow], path: Path) -> list[PublishedRow]:
    """The new rows of a table, whose names must differ from those that the paper has."""
    if taken := {row.row for row in table.rows} & {row.row for row in rows}:
        raise ImportFileError(
            f"{path}: table {table.id} has a row '{min(taken)}' already.", "Rename the row, or leave it out."
        )
    return rows


def _read_cells(path: Path, paper: Paper) -> Iterator[dict[str, str]]:
    """Yield the lines of a table of published figures, with all columns; ImportFileError for a wrong one."""
    with open_text(path, ImportFileError) as file:
        reader = csv.DictReader(file, strict=True)
        header = [name.strip().lower() for name in reader.fieldnames or []]
        require_columns(header, str(path), ImportFileError)
        if missing := [name for name in REQUIRED_COLUMNS if name not in header]:
            raise ImportFileError(
                f"{path}: the column '{missing[0]}' is missing.", f"The columns are {', '.join(REQUIRED_COLUMNS)}."
            )
        if unknown := [name for name in header if name not in (*REQUIRED_COLUMNS, *OPTIONAL_COLUMNS)]:
            hint = did_you_mean(unknown[0], OPTIONAL_COLUMNS, f"Further columns are {', '.join(OPTIONAL_COLUMNS)}.")
            raise ImportFileError(f"{path}: there is no column '{unknown[0]}'.", hint)
        reader.fieldnames = header
        columns_by_table = {table.id: table.columns for table in paper.tables}
        try:
            for line in reader:
                cell = {name: (line.get(name) or "").strip() for name in (*REQUIRED_COLUMNS, *OPTIONAL_COLUMNS)}
                place = f"{path}, line {reader.line_num}"
                table_id, column = cell["table"], cell["column"]
                if table_id not in columns_by_table:
                    listed = ", ".join(columns_by_table)
                    raise ImportFileError(f"{place}: the paper has no table '{table_id}'.", f"Its tables are {listed}.")
                if column not in columns_by_table[table_id]:
                    listed = ", ".join(f"'{name}'" for name in columns_by_table[table_id])
                    raise ImportFileError(
                        f"{place}: table {table_id} has no column '{column}'.", f"Its columns are {listed}."
                    )
                if not cell["row"] or not cell["value"]:
                    raise ImportFileError(
                        f"{place}: the row's name or the value is empty.", "Fill it in, or delete the line."
                    )
                yield cell
        except csv.Error as error:
            raise ImportFileError(f"{path}, line {reader.line_num}: {error}.", "Correct the line.") from None


def list_figure_names() -> list[FigureName]:
    """All names that the figures of a preset may have, by the key that they stand under."""
    return [
        *(FigureName(key="model_figure", name=name, meaning=describe_figure(name)) for name in MODEL_FIGURES),
        *(FigureName(key="figure", name=name, meaning=describe_figure(name)) for name in FIGURES),
        *(FigureName(key="group_figure", name=name, meaning=describe_figure(name)) for name in GROUP_FIGURES),
    ]


def list_published_tables() -> list[PublishedTableInfo]:
    """All published tables, by paper and in the order of the paper."""
    return [
        PublishedTableInfo(
            paper=paper.id,
            table=table.id,
            title=table.title,
            place=table.place,
            origin=table.origin or paper.origin,
            n_cells=sum(cell.printed not in NOTHING_PRINTED for cell in paper.iterate_cells(table.id)),
            n_run=_count_runnable(table),
            released=[released.files for released in table.released],
            needs=paper.experiment.needs if paper.experiment else "",
            cost=paper.experiment.cost if paper.experiment else "",
        )
        for paper in map(load_paper, list_paper_ids())
        for table in paper.tables
    ]


def _count_runnable(table: PublishedTable) -> int:
    """Number of published figures that audits give; of a table without any, those of one model."""
    n_published = sum(
        printed not in NOTHING_PRINTED and bool(table.find_figures(row, column))
        for row in table.rows
        if not row.is_definition
        for column, printed in table.read_row(row).items()
    )
    return n_published or sum(map(len, table.list_figures()))
