"""Papers and their published cells, read from the files in `presets`."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from decimal import Decimal
from importlib.resources import files
from typing import Literal

from pydantic import BaseModel, ConfigDict

from auditor.errors import UsageError
from auditor.replications.experiment import Experiment, Figures, FigureSource, Part
from auditor.replications.figure_templates import expand_templates
from auditor.reports.data.replication import Origin, PublishedCell, TableChart, TableLayout

PLACEHOLDER = re.compile(r"\{([^{}]+)\}")
NUMBER = re.compile(r"([+-]?\d+(?:\.\d+)?|[+-]?\.\d+)(K|%)?")
NOTHING_PRINTED = ("", "-")
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

    model_config = ConfigDict(extra="forbid")

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

    model_config = ConfigDict(extra="forbid")

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

    model_config = ConfigDict(extra="forbid")

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
            if row.quote and not re.search(rf"(?<![\d.]){re.escape(printed)}(?!\d|\.\d)", row.quote):
                raise ValueError(f"table {self.id}: the quote of '{row.row}' does not have the value {printed}")
        return {column: row.values[column] for column in self.columns if column in row.values}

    def _read_sentence(self, quote: str, read: str) -> dict[str, str]:
        names = PLACEHOLDER.findall(read)
        literals = [re.escape(text) for text in PLACEHOLDER.split(read)[::2]]
        match = re.search(r"(-?[\d.]+[K%]?)".join(literals), quote)
        if match is None or not set(names) <= set(self.columns):
            raise ValueError(f"table {self.id}: the quote does not have the form '{read}'")
        printed = dict(zip(names, match.groups(), strict=True))
        return {column: printed[column] for column in self.columns if column in printed}


class Finding(BaseModel):
    """A finding of a paper, in a form that can be tested on other data.

    Attributes:
        claim: what the paper finds, as a sentence.
        quote: the words of the paper.
        figure: what is compared, one of `FINDING_FIGURES`.
        direction: the sign of the figure if the finding holds.
        compared: what the figure is, in words.
        audits: names of the surveys or data sets that it is of; empty for all.
    """

    model_config = ConfigDict(extra="forbid")

    id: str
    claim: str
    quote: str
    place: str = ""
    figure: FindingFigure
    direction: Literal["positive", "negative"]
    compared: str
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

    model_config = ConfigDict(extra="forbid")

    id: str
    title: str
    source: str
    origin: Origin = "user"
    tables: tuple[PublishedTable, ...]
    released_answers: str = ""
    experiment: Experiment | None = None
    findings: tuple[Finding, ...] = ()

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


def load_paper(paper_id: str) -> Paper:
    """Load a paper by its name; UsageError if there is none of this name."""
    if paper_id not in list_paper_ids():
        listed = ", ".join(list_paper_ids())
        raise UsageError(
            f"There is no paper '{paper_id}'.", f"Use one of: {listed}. Their tables: auditor replicate list"
        )
    text = (files("auditor.replications") / "presets" / f"{paper_id}.toml").read_text("utf-8")
    return Paper.model_validate({"id": paper_id, **expand_templates(tomllib.loads(text))})


def parse_figure(printed: str) -> float | None:
    """The number that a figure is printed as; None for a dash, nothing, or characters that are no number."""
    match = NUMBER.fullmatch(printed.strip())
    return None if match is None else float(Decimal(match[1]) * FACTORS[match[2]])
