"""Papers and their published cells, read from the files in `presets`, and figures that differ only in a name."""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from importlib.resources import files
from itertools import product
from typing import Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict

from auditor.errors import UsageError
from auditor.replications.experiment import Experiment, Figures, FigureSource, Part
from auditor.reports.data.replication import Finding, Origin, PublishedCell, TableChart, TableLayout

NAME_PLACEHOLDER = re.compile(r"\{(\w+)\}")
FIGURE_KEYS = ("figure", "model_figure", "group_figure", "audit", "trial")
Members: TypeAlias = Mapping[str, Mapping[str, Sequence[Mapping[str, Any]]]]
"""By placeholder and name of the alternative: tables with `figure`, and perhaps `label`, `parts` and `departures`."""


def expand_templates(paper: Mapping[str, Any]) -> dict[str, Any]:
    """Copy a preset with its templates expanded by its table `alternatives`, which is left out.

    A key of `figures` or `forms`, such as `{metric}, answers`, becomes one key for each alternative of `metric`. A
    figure under it, such as `{metric}.answer`, becomes one for each table of that alternative: in the names of figure,
    audit and trial, `{metric}` is replaced by its `figure`, in a label by its `label`; its parts and departures are
    added. Of a key with placeholders, only the columns of the table are kept.
    `only = { metric = [NAMES] }` in a figure restricts it to some alternatives.
    """
    members = {name: _normalize(alternatives) for name, alternatives in paper.get("alternatives", {}).items()}
    tables = [
        {
            key: _expand_keys(value, {}, members, table.get("columns", ())) if key in ("figures", "forms") else value
            for key, value in table.items()
        }
        for table in paper.get("tables", ())
    ]
    return {key: value for key, value in paper.items() if key != "alternatives"} | {"tables": tables}


def _normalize(alternatives: Sequence[str] | Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """Alternatives as tables by name; a list of names stands for figures of the same names, a text for a figure."""
    by_name = alternatives if isinstance(alternatives, Mapping) else {name: name for name in alternatives}
    return {name: [{"figure": value}] if isinstance(value, str) else list(value) for name, value in by_name.items()}


def _expand_keys(
    table: Mapping[str, Any], names: Mapping[str, str], members: Members, columns: Sequence[str]
) -> dict[str, Any]:
    """Expand the keys of a table, and what is under them; columns are those of the published table, in its order.

    Args:
        names: of the alternatives that the keys around the table stand for, by placeholder.
    """
    order = {column: i for i, column in enumerate(columns)}
    expanded: dict[str, Any] = {}
    for key, value in table.items():
        placeholders = [name for name in dict.fromkeys(NAME_PLACEHOLDER.findall(key)) if name not in names]
        for chosen in product(*(members[placeholder] for placeholder in placeholders)):
            all_names = {**names, **dict(zip(placeholders, chosen, strict=True))}
            name = key.format(**all_names)
            if isinstance(value, Mapping):
                expanded[name] = _expand_keys(value, all_names, members, columns)
            elif name in order or not placeholders:
                expanded[name] = [figure for source in value for figure in _expand_source(source, all_names, members)]
    return dict(sorted(expanded.items(), key=lambda item: order.get(item[0], len(order))))


def _expand_source(source: Mapping[str, Any], names: Mapping[str, str], members: Members) -> Iterator[dict[str, Any]]:
    """Yield a figure for each combination of the tables that its placeholders stand for."""
    allowed: Mapping[str, Sequence[str]] = source.get("only", {})
    if any(names[placeholder] not in chosen for placeholder, chosen in allowed.items()):
        return
    placeholders = list(dict.fromkeys(NAME_PLACEHOLDER.findall(" ".join(source.get(key, "") for key in FIGURE_KEYS))))
    default_label = ", ".join(f"{{{placeholder}}}" for placeholder in placeholders)
    for chosen in product(*(members[placeholder][names[placeholder]] for placeholder in placeholders)):
        by_placeholder = dict(zip(placeholders, chosen, strict=True))
        figures = {key: member["figure"] for key, member in by_placeholder.items()}
        labels = {key: member.get("label", "") for key, member in by_placeholder.items()}
        label = source.get("label", default_label).format(**labels)
        expanded = {key: value for key, value in source.items() if key != "only"}
        expanded |= {key: source[key].format(**figures) for key in FIGURE_KEYS if key in source}
        expanded |= {"label": ", ".join(filter(None, label.split(", ")))}
        expanded |= {key: _join_lists([source, *chosen], key) for key in ("parts", "departures")}
        yield expanded


def _join_lists(tables: Iterable[Mapping[str, Any]], key: str) -> list[str]:
    """The lists under a key of tables, one after another."""
    return [item for table in tables for item in table.get(key, ())]


PLACEHOLDER = re.compile(r"\{([^{}]+)\}")
NUMBER = re.compile(r"([+-]?\d+(?:\.\d+)?|[+-]?\.\d+)(K|%)?")
MINUS_SIGN = re.compile(r"(?<![\w%)\]])[−–-](?=\.?\d)")
"""A minus as papers print it; between two numbers it is a range, as in 5%–7%, and after a word a part of a name."""
THOUSANDS = re.compile(r"(?<![\d.,])\d{1,3}(?:,\d{3})+(?![\d,])")
LEADING_ZERO = re.compile(r"(?<![\d.])0(?=\.\d)")
NOTHING_PRINTED = ("", "-", "–", "—")
"""Of a cell without a figure; a misprint, such as `78,7`, has characters but no value."""
FindingFigure = Literal[
    "delta_r", "regions.gap", "self_consistency.alignment", "variance.alignment", "peer_agreement.alignment",
    "people.advantage", "people.advantage_over_answers", "rules.change", "transitivity.self_agreement",
    "commutativity.people",
]  # fmt: skip
"""Figures that findings may compare."""
FACTORS = {None: Decimal(1), "K": Decimal(1000), "%": Decimal("0.01")}


class PublishedRow(BaseModel):
    """A row of a published table.

    Attributes:
        quote: the words of the paper; of a preset of your own, it may be empty where `values` are given.
        values: the printed figures by column, each of which stands in the quote. Without it, they are read from it.
        label: how the row begins in the quote; by default its name.
        read: text of the quote with the columns of its figures in braces, where the quote is a sentence. Without it,
            the quote is a row of a table: its label, and then a figure for each column.
        model: the model, if the row is of one.
        place, origin: of the quote, where it does not stand with those of the table.
        is_definition: see `PublishedCell`.
        form: the form of the experiment that the row is of; a key of the table's `forms`.
        figures: as those of the table, for this row.
        scales: as that of the table, for columns in which this row has another unit.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    row: str
    quote: str = ""
    values: dict[str, str] = {}
    label: str | None = None
    read: str = ""
    note: str = ""
    model: str = ""
    place: str = ""
    origin: Origin | None = None
    is_definition: bool = False
    form: str = ""
    figures: dict[str, tuple[FigureSource, ...]] = {}
    scales: dict[str, float] = {}


class ReleasedFiles(BaseModel):
    """Files with the scores that the authors of a table released.

    Attributes:
        files: pattern of the names of the files; `{model}` stands for the model's name.
        model: the model, where the names do not say it.
        column: column of the published table that the files belong to; files of one column make one audit.
        country, topic, survey_score, score: columns of the files. Survey scores are in [-1, 1].
        skipped_countries: values of the column of countries that are no country.
        topic_names: names of topics in the files of the same column, by that in these files where it differs.
        is_rescaled: whether a model's scores are min-max scaled to [-1, 1] first, since they have no bounds.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    files: str
    column: str
    survey_score: str
    score: str
    model: str = ""
    country: str = "country"
    topic: str = "topic"
    skipped_countries: tuple[str, ...] = ()
    topic_names: dict[str, str] = {}
    is_rescaled: bool = False


class PublishedTable(BaseModel):
    """A published table, or figures from the text.

    Attributes:
        place: where it stands in the source.
        columns: names of the figures of a row.
        rows: empty for a figure of the paper that prints no numbers.
        scale: a published figure times this is the figure of our reports, such as 0.01 for percent.
        ignore: regular expression of what is not read from the quotes, such as a gain in parentheses.
        separator: between the figures of a row; by default white space.
        note: what the columns mean, and the unit of the figures.
        released: where the authors released the scores behind the table: a row is a model, a figure its Pearson r.
        parts: parts of the experiment that the figures depend on.
        figures: by column, the figures of our reports; a column without any is computed only from released scores.
        charts, heat_map: see `TableLayout`.
        forms: the same for the rows of each form of the experiment, such as with and without reasoning. Where figures
            are of single models, each of ours that no row is of gets a row of its own in each form.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str
    title: str
    place: str
    columns: tuple[str, ...]
    rows: tuple[PublishedRow, ...]
    scale: float = 1.0
    ignore: str = ""
    separator: str | None = None
    origin: Origin | None = None
    note: str = ""
    released: tuple[ReleasedFiles, ...] = ()
    parts: frozenset[Part] = frozenset()
    figures: dict[str, tuple[FigureSource, ...]] = {}
    charts: tuple[TableChart, ...] = ()
    heat_map: Literal["", "correlation", "error"] = ""
    forms: dict[str, dict[str, tuple[FigureSource, ...]]] = {}

    @property
    def layout(self) -> TableLayout:
        """How its figures are shown besides as a table."""
        return TableLayout(columns=self.columns, charts=self.charts, heat_map=self.heat_map)

    def find_figures(self, row: PublishedRow, column: str) -> tuple[FigureSource, ...]:
        """The figures of our reports that are set beside a cell; empty if only released scores give it."""
        by_form = self.forms.get(row.form, self.figures)
        return row.figures.get(column, by_form.get(column, ()))

    def list_figures(self) -> list[Figures]:
        """All figures of our reports, by column: the table's, those of its forms and those of single rows."""
        return [self.figures, *self.forms.values(), *(row.figures for row in self.rows)]

    def list_sources(self) -> list[FigureSource]:
        """The figures of our reports in the order of `list_figures`."""
        return [source for figures in self.list_figures() for sources in figures.values() for source in sources]

    def list_parts(self) -> frozenset[Part]:
        """The parts of the experiment that any of its figures depends on."""
        return self.parts.union(*(source.parts for source in self.list_sources()))

    def read_row(self, row: PublishedRow) -> dict[str, str]:
        """The printed figures of a row by column.

        Raises:
            ValueError: the quote does not have the form that the file says.
        """
        quote = re.sub(self.ignore, "", row.quote) if self.ignore else row.quote
        if row.values:
            return self._check_values(row)
        if row.read:
            return self._read_sentence(quote, row.read)
        label = row.row if row.label is None else row.label
        figures = quote.removeprefix(label)
        if not quote.startswith(label):
            raise ValueError(f"table {self.id}: the quote of '{row.row}' does not begin with '{label}'")
        printed = figures.split() if self.separator is None else figures.split(self.separator)[1:]
        if len(printed) != len(self.columns):
            raise ValueError(f"table {self.id}: '{row.row}' has {len(printed)} figures for {len(self.columns)} columns")
        return dict(zip(self.columns, printed, strict=True))

    def _check_values(self, row: PublishedRow) -> dict[str, str]:
        """The figures that a row states, each of which must stand in its quote, if it has one."""
        if unknown := set(row.values) - set(self.columns):
            raise ValueError(f"table {self.id}: '{row.row}' has a value for '{min(unknown)}', which is no column")
        for column, printed in row.values.items():
            if parse_figure(printed) is None and printed not in NOTHING_PRINTED:
                raise ValueError(f"table {self.id}: '{row.row}' has '{printed}' for '{column}', which is no number")
            if row.quote and not has_figure(row.quote, printed):
                raise ValueError(f"table {self.id}: the quote of '{row.row}' does not have the value {printed}")
        return {column: row.values[column] for column in self.columns if column in row.values}

    def _read_sentence(self, quote: str, read: str) -> dict[str, str]:
        names = PLACEHOLDER.findall(read)
        literals = [re.escape(text) for text in PLACEHOLDER.split(read)[::2]]
        match = re.search(r"([-−–]?[\d.]+[K%]?)".join(literals), quote)
        if match is None or not set(names) <= set(self.columns):
            raise ValueError(f"table {self.id}: the quote does not have the form '{read}'")
        printed = dict(zip(names, match.groups(), strict=True))
        return {column: printed[column] for column in self.columns if column in printed}


class PresetFinding(Finding):
    """A finding with the figures that it is about.

    Attributes:
        figure: what is compared, one of `FINDING_FIGURES`.
        audits: names of the surveys or data sets that it is of; empty for all.
    """

    figure: FindingFigure
    audits: tuple[str, ...] = ()


class Paper(BaseModel):
    """A paper with its published tables.

    Attributes:
        id: name in the command.
        source: where it was published.
        origin: of tables that do not say otherwise.
        released_answers: what can be done with the answers of models that the authors released, in words; empty if
            they released none.
        experiment: how the tables are run; None if they cannot be.
        findings: what the paper concludes; each is tested on the audits of the experiment.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str
    title: str
    source: str
    origin: Origin = "user"
    tables: tuple[PublishedTable, ...]
    released_answers: str = ""
    experiment: Experiment | None = None
    findings: tuple[PresetFinding, ...] = ()

    def iterate_cells(self, table_id: str | None = None) -> Iterator[PublishedCell]:
        """Yield the published cells of one table or of all, in the order of the paper.

        Raises:
            UsageError: the paper has no table with this id.
        """
        for table in self.select_tables(table_id):
            for row in table.rows:
                yield from self.iterate_row(table, row)

    def iterate_row(self, table: PublishedTable, row: PublishedRow) -> Iterator[PublishedCell]:
        """Yield the published cells of a row."""
        for column, printed in table.read_row(row).items():
            yield self.build_place(table, row.row, column, row.form).model_copy(
                update={
                    "value": parse_figure(printed),
                    "printed": printed,
                    "quote": row.quote,
                    "place": row.place or table.place,
                    "origin": row.origin or table.origin or self.origin,
                    "note": row.note,
                    "is_definition": row.is_definition,
                    "scale": row.scales.get(column, table.scale),
                }
            )

    def build_place(self, table: PublishedTable, row_name: str, column: str, form: str = "") -> PublishedCell:
        """A place in a table, without a published figure."""
        return PublishedCell(
            table=table.id,
            title=table.title,
            row=row_name,
            column=column,
            form=form,
            value=None,
            printed="",
            quote="",
            place=table.place,
            origin=table.origin or self.origin,
            table_note=table.note,
            scale=table.scale,
        )

    def select_tables(self, table_id: str | None) -> tuple[PublishedTable, ...]:
        """The table with this id, or all; UsageError if there is none."""
        if table_id is None:
            return self.tables
        tables = tuple(table for table in self.tables if table.id == table_id)
        if not tables:
            listed = ", ".join(table.id for table in self.tables)
            raise UsageError(f"--table: '{self.id}' has no table '{table_id}'.", f"Use one of: {listed}.")
        return tables


def list_paper_ids() -> list[str]:
    """Names of the papers, in alphabetical order."""
    folder = files("auditor.replications") / "presets"
    return sorted(entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml"))


@functools.cache
def load_paper(paper_id: str) -> Paper:
    """Load a paper by its name, once; UsageError if there is none of this name."""
    if paper_id not in list_paper_ids():
        listed = ", ".join(list_paper_ids())
        raise UsageError(
            f"There is no paper '{paper_id}'.", f"Use one of: {listed}. Their tables: auditor replicate list"
        )
    text = (files("auditor.replications") / "presets" / f"{paper_id}.toml").read_text("utf-8")
    return Paper.model_validate({"id": paper_id, **expand_templates(tomllib.loads(text))})


def parse_figure(printed: str) -> float | None:
    """The number that a figure is printed as; None for a dash, nothing, or characters that are no number."""
    match = NUMBER.fullmatch(MINUS_SIGN.sub("-", printed.strip()))
    return None if match is None else float(Decimal(match[1]) * FACTORS[match[2]])


def has_figure(quote: str, printed: str) -> bool:
    """Whether a quote has a figure: the same sign and digits, in any spelling of its minus, point and thousands."""
    figure = _unify_spelling(printed.strip())
    return re.search(rf"(?<![\d.−]){re.escape(figure)}(?!\d|\.\d)", _unify_spelling(quote)) is not None


def _unify_spelling(text: str) -> str:
    """A text whose numbers have one form of minus, no commas of thousands and no 0 before the point."""
    text = THOUSANDS.sub(lambda match: match[0].replace(",", ""), MINUS_SIGN.sub("−", text))
    return LEADING_ZERO.sub("", text)
