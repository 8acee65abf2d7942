"""What sections share: names in sentences, findings, intervals in words, tables of records, and plots of estimates."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import compress
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar

from auditor.metrics.intervals.estimate import Estimate, Tested
from auditor.reports.charts.interval_plot import Axis, IntervalRow, difference_axis, interval_plot
from auditor.reports.data.report_model import (
    ReportModel,
    drop_none,
    find_attribute_type,
    get_attribute,
    list_publications,
)
from auditor.reports.data.report_source import has_rescaled_scores
from auditor.reports.document import (
    Cell,
    Code,
    Column,
    ColumnKind,
    CountShare,
    Figure,
    Inline,
    List,
    ListItem,
    Name,
    Row,
    Section,
    Status,
    Strong,
    Table,
    Text,
)
from auditor.reports.number_format import (
    NumberStyle,
    describe_estimate as describe_estimate,
    describe_interval as describe_interval,
    format_count,
    format_estimate,
    format_number,
    pluralize,
)
from auditor.text_safety import slugify

if TYPE_CHECKING:
    from auditor.reports.data.agreement.alignment import AlignmentRow
    from auditor.reports.data.report_schema import Report


# --- series of scores -------------------------------------------------------------------------------------------


class SeriesRow(Protocol):
    """A row of the report about one series of scores: one model by one method."""

    @property
    def method(self) -> str: ...
    @property
    def model(self) -> str: ...


@dataclass(frozen=True, slots=True)
class SeriesLabels:
    """Labels of the report's series of scores; unique in a report."""

    shows_method: bool
    """Whether the report has scores by several methods, so that a label needs the method."""

    @classmethod
    def of(cls, report: Report) -> Self:
        """The labels of a report."""
        return cls(len({row.method for row in report.alignment}) > 1)

    def label(self, row: SeriesRow) -> str:
        """Label of a row's series: the model, followed by the method if the report has several."""
        return f"{row.model} ({row.method})" if self.shows_method else row.model


def list_series_with_errors(report: Report) -> list[AlignmentRow]:
    """The series whose distance from people is known: those whose scores are not rescaled within the model."""
    return [row for row in report.alignment if not has_rescaled_scores(row.method)]


def slugify_unique(labels: Iterable[str]) -> list[str]:
    """The labels as parts of figure ids and file names, each a different one."""
    slugs: list[str] = []
    for label in labels:
        slug = slugify(label)
        candidates = (slug, *(f"{slug}-{i}" for i in range(2, len(slugs) + 3)))
        slugs.append(next(candidate for candidate in candidates if candidate not in slugs))
    return slugs


# --- sentences --------------------------------------------------------------------------------------------------


def join_texts(texts: Iterable[Text], separator: str = ", ") -> list[Inline]:
    """Join texts by commas or another separator."""
    nodes: list[Inline] = []
    for text in texts:
        nodes += [separator] if nodes else []
        nodes += text if isinstance(text, Sequence) and not isinstance(text, str) else [text]
    return nodes


def join_names(names: Iterable[str], separator: str = ", ") -> list[Inline]:
    """Join names by commas or another separator, each isolated from the text around it."""
    return join_texts(map(Name, names), separator)


def join_with_and(parts: Sequence[str]) -> str:
    """Join phrases by commas, and the last by "and"."""
    *others, last = parts
    return f"{', '.join(others)} and {last}" if others else last


def join_first(labels: Sequence[str], noun: str = "", max_labels: int = 4) -> str:
    """Join the first labels by commas, followed by the number of the others, such as "and 3 more models"."""
    n_others = len(labels) - max_labels
    others = pluralize(n_others, f"more {noun}") if noun else f"{format_count(n_others)} more"
    return ", ".join(labels[:max_labels]) + (f" and {others}" if n_others > 0 else "")


def list_counts(counts: Mapping[str, int]) -> str:
    """List counts with their causes, such as "3 refused, 1 rate limited"."""
    return ", ".join(f"{format_count(n)} {cause.replace('_', ' ')}" for cause, n in counts.items())


def name_finding(name: str, predicate: Text) -> list[Inline]:
    """A sentence whose subject is a name in bold, such as a model's, with a full stop."""
    return join_texts([Strong(Name(name)), " ", predicate, "."], separator="")


def build_finding(name: str, predicate: Text, status: Status = "neutral") -> ListItem:
    """A list's sentence whose subject is a name in bold, with the finding's status."""
    return ListItem(name_finding(name, predicate), status)


def find_first_finding(section: Section) -> ListItem | Text | None:
    """The first item of a section's first list of findings; None without any."""
    lists = (block for block in section.blocks if isinstance(block, List) and block.is_findings and block.items)
    return next((findings.items[0] for findings in lists), None)


def group_findings(findings: Iterable[tuple[str, str, Status]]) -> list[ListItem]:
    """One item for each predicate, with the names that it holds for, such as "a, b: each agrees well with people."."""
    names: dict[tuple[str, Status], list[str]] = {}
    for name, predicate, status in findings:
        names.setdefault((predicate, status), []).append(name)
    return [
        ListItem(
            name_finding(group[0], predicate)
            if len(group) == 1
            else [
                *join_texts([Strong(Name(name)) for name in group]),
                f": {'' if predicate.startswith('cannot') else 'each '}{predicate}.",
            ],
            status,
        )
        for (predicate, status), group in names.items()
    ]


def compare_interval(estimate: Estimate, reference: float | None = 0.0) -> Status:
    """Whether an interval lies above a reference (positive), below it (negative) or includes it (unclear).

    Neutral without an interval or a reference.
    """
    if reference is None or estimate.ci_low is None or estimate.ci_high is None:
        return "neutral"
    return "positive" if estimate.ci_low > reference else "negative" if estimate.ci_high < reference else "unclear"


def compare_test(test: Tested) -> Status:
    """Whether a tested figure is above 0 (positive) or below it (negative), given all tests of its family, or unclear.

    Neutral without a test.
    """
    if test.adjusted_p_value is None or test.value is None:
        return "neutral"
    return "unclear" if not test.is_significant else "positive" if test.value > 0 else "negative"


def describe_correction(test: Tested) -> str:
    """Say why a test is not significant though its interval, that of one test alone, excludes 0; else empty."""
    if test.adjusted_p_value is None or test.is_significant or compare_interval(test) == "unclear":
        return ""
    return f"; not beyond chance given all tests of this kind, p = {format_number(test.adjusted_p_value)}"


def mark_code(sentence: str) -> list[Inline]:
    """Convert the parts of a sentence that are between backticks to code; an empty list for an empty sentence."""
    return [Code(part) if i % 2 else part for i, part in enumerate(sentence.split("`")) if part]


Record = TypeVar("Record")
DerivedCells = Mapping[str, Callable[[Record], Cell]]
"""Functions that compute the cells of columns, by key."""
MAX_LONG_TABLE_ROWS = 5
"""Rows that pages show of a long table whose worst rows come first."""


def tabulate(
    table_id: str,
    label: str,
    caption: Text,
    records: Iterable[Record],
    columns: type[ReportModel] | Sequence[Column],
    derived: DerivedCells[Record] | None = None,
    total: Record | None = None,
    max_rows: int | None = None,
    more_columns: Sequence[Column] = (),
) -> Table:
    """Build a table with one row for each record; each column shows the attribute that its `path` or `key` names.

    Args:
        columns: the class of the records, whose fields have columns for this table; or the columns. A path may lead
            through several attributes, such as "score.mae", and is by default the title in lower case with underscores.
            Attributes of None are None.
        derived: functions that compute the cells of columns, by key, in place of an attribute.
        total: the record of the total row, if there is one.
        max_rows: see `Table`.
        more_columns: columns after those of the class.

    Raises:
        AttributeError: a key is neither derived nor an attribute of the records.
    """
    shown = [*(list_columns(columns, table_id) if isinstance(columns, type) else columns), *more_columns]
    getters = [_make_getter(column, derived or {}) for column in shown]
    cells = [[get_cell(record) for get_cell in getters] for record in (*records, *([] if total is None else [total]))]
    is_shown = [not column.is_optional or any(row[i] is not None for row in cells) for i, column in enumerate(shown)]
    rows = [Row(list(compress(row, is_shown))) for row in cells]
    if total is not None:
        rows[-1] = replace(rows[-1], is_total=True)
    shown = list(compress(shown, is_shown))
    parts = [caption] if isinstance(caption, Inline) else list(caption)
    notes = [f" {column.title}: {column.note}." for column in shown if column.note]
    return Table(table_id, label, ([*parts, *notes] if notes else caption), shown, rows, max_rows=max_rows)


def list_columns(row_class: type[ReportModel], table_id: str = "", prefix: str = "") -> list[Column]:
    """The columns of a table that annotate the fields of its row class, in the order of the fields.

    Args:
        prefix: path of the row in the records of the table, with a dot at its end; empty if it is the record.
    """
    shown = (column for column in _read_columns(row_class) if column.table in ("", table_id))
    return [replace(column, path=f"{prefix}{column.path}") for column in shown]


@cache
def _read_columns(row_class: type[ReportModel]) -> list[Column]:
    """The columns that annotate the fields of a class, with the kind, key and path of the attribute that each shows."""
    columns = []
    for name, field in row_class.model_fields.items():
        for column in field.metadata:
            if isinstance(column, Column):
                kind = _infer_kind(field.annotation, column.part) if column.kind == "text" else column.kind
                path = column.path or (f"{name}.{column.part}" if column.part else name)
                publication = list_publications(row_class).get(name)
                published_key = publication.keys.get(column.part) if publication and not publication.base else None
                columns.append(replace(column, kind=kind, key=column.key or published_key or path, path=path))
    return columns


def _infer_kind(annotation: Any, path: str) -> ColumnKind:
    """The kind of the cells of a field's type, or of the type of an attribute of its value."""
    cell_type = drop_none(find_attribute_type(annotation, path))
    if not isinstance(cell_type, type):
        return "text"
    if issubclass(cell_type, CountShare):
        return "share"
    is_number = issubclass(cell_type, (int, float)) and cell_type is not bool
    return "estimate" if issubclass(cell_type, Estimate) else "number" if is_number else "text"


def _make_getter(column: Column, derived: DerivedCells[Any]) -> Callable[[Any], Cell]:
    """The function that returns a record's cell in a column."""
    key = column.key or str(column.title).lower().replace(" ", "_")
    return derived.get(key) or partial(get_attribute, path=column.path or key)


def sort_by_p_value(records: Iterable[Record], get_test: Callable[[Record], Tested]) -> list[Record]:
    """The records by adjusted p-value, smallest first; those without one are the last."""
    p_values = ((get_test(record).adjusted_p_value, record) for record in records)
    return [record for _, record in sorted(p_values, key=lambda pair: 2.0 if pair[0] is None else pair[0])]


def make_columns(kind: ColumnKind, titles: Mapping[str, str], style: NumberStyle = "decimal") -> list[Column]:
    """Columns of one kind, from their titles by key."""
    return [Column(title, kind, key, style=style) for key, title in titles.items()]


def tabulate_matrix(
    table_id: str,
    label: str,
    caption: Text,
    first_column: Column,
    cells: Mapping[str, Mapping[str, Cell]],
    column_names: Iterable[str] = (),
    style: NumberStyle = "decimal",
    max_rows: int | None = None,
) -> Table:
    """Build a table of estimates with one row and one column for each name, such as a country and a model.

    Args:
        first_column: has the names of the rows.
        cells: by row, then by column; those that a row lacks are missing values.
        column_names: by default all columns of the cells, in the order of their first cell.
        max_rows: see `Table`.
    """
    names = list(column_names) or list(dict.fromkeys(name for row in cells.values() for name in row))
    columns = [first_column, *(Column(Name(name), "estimate", style=style) for name in names)]
    rows = [[name, *(by_column.get(column) for column in names)] for name, by_column in cells.items()]
    return Table(table_id, label, caption, columns, rows, max_rows=max_rows)


LabelledEstimate = tuple[str, Estimate]


def build_interval_figure(
    figure_id: str,
    title: str,
    rows: Sequence[LabelledEstimate],
    axis: Axis | str,
    *,
    table_id: str,
    caption: Text = "",
    description: str = "",
) -> Figure:
    """Build an interval plot with a row for each estimate, described by the figures in words.

    Args:
        axis: the axis, or the title of one that is symmetric around 0 and fits the values.
        table_id: the table that has the figures.
        description: the figures in words; by default each label with its estimate.
    """
    if isinstance(axis, str):
        axis = difference_axis((end for _, row in rows for end in (row.value, row.ci_low, row.ci_high)), axis)
    intervals = [IntervalRow(label, row.value, row.ci_low, row.ci_high) for label, row in rows]
    spec, narrow_spec = (interval_plot(intervals, axis, is_narrow=is_narrow) for is_narrow in (False, True))
    description = description or "; ".join(f"{label} {format_estimate(estimate)}" for label, estimate in rows)
    return Figure(figure_id, spec, title, description, caption, table_id, narrow_spec)
