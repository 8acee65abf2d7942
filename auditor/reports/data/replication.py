"""Published figures, and the same figures computed here."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from auditor.metrics.intervals.estimate import Estimate, Tested
from auditor.reports.data.report_model import ClaimTest, ReportModel

Origin = Literal["paper", "summary", "release", "readme", "user"]
"""Where the quotes stand: in the paper, in a summary of it, in results that its authors released, or in the README of
their program; `user` in a file of yours, whose quotes this program does not know."""
NotRun = Literal[
    "not_in_folder",
    "not_published",
    "definition",
    "recorded_only",
    "no_audit",
    "no_file",
    "no_counterpart",
    "too_few_models",
    "no_value",
]
"""Why a published figure has none of ours beside it; all reasons there are.

- `not_in_folder`: the folder has no scores of it.
- `not_published`: nothing is printed in the cell, and we have no figure of it.
- `definition`: it is part of a definition, such as a cut-off, and no figure that could be measured.
- `recorded_only`: it is computed only from released scores.
- `no_audit`: it is of a survey or data set that no audit was run on.
- `no_file`: it needs a file that was not named.
- `no_counterpart`: it is of one model, and none of ours is set beside that model.
- `too_few_models`: a figure over models needs more models.
- `no_value`: the audit's report has no value, for a reason of its own.
"""
Mark = Literal["same_definition", "other_words", "other_definition", "not_run"]
"""Whether our figure is defined as the published one: as there; as there, with prompts written anew; or not."""


class PublishedCell(ReportModel):
    """One published figure."""

    table: str
    title: str
    """What the table shows."""
    row: str
    column: str
    form: str = ""
    """The form of the experiment that the row is of, such as with reasoning; empty if there is only one."""
    value: float | None
    """In the unit of the paper, such as percent; 89% is 0.89, 14.8K is 14800. Null for a dash or a misprint."""
    printed: str
    """The characters of the paper."""
    quote: str
    """The line of the source that holds it, word for word."""
    place: str
    origin: Origin
    note: str = ""
    """What is to be known about this row, such as an inconsistency; values are never corrected."""
    table_note: str = ""
    """What is to be known about the table: what its columns mean, and the unit of its figures."""
    is_definition: bool = False
    """Whether it is no result, but part of a definition, such as a cut-off."""
    scale: float = 1.0
    """The published value times this is in the unit of our reports, such as 0.01 for percent."""


class PaperCheck(ReportModel):
    """What is wrong in a preset of the user's."""

    file: str
    title: str
    tables: int
    published: int
    """Published figures with a value; 0 if there are problems."""
    problems: list[str]


class FigureName(ReportModel):
    """A name that a figure of a preset may have."""

    key: Literal["figure", "model_figure", "group_figure"]
    """The key that it stands under: a figure over all models, of one model, or of one model by group."""
    name: str
    meaning: str
    """What it is, in words."""


class FixedDeparture(ReportModel):
    """A departure of every audit: this program computes a figure in another way."""

    id: str
    """Name by which figures refer to it; of a setting without a published value, its key in the configuration."""
    description: str
    """What is different, with our value and the published one; of a published setting, its name in words."""
    size: float | None = None
    """How much the figure changed on one fixture; null if that was not measured."""
    size_note: str = "not measured"
    """Which figure and fixture the size is of, or why it cannot be measured."""


class Departure(FixedDeparture):
    """One way in which an audit differs from what a paper describes."""

    subject: str = ""
    """What is different, without the values."""
    measured: str = ""
    """Our value; empty where the departure is no setting."""
    published: str = ""
    audits: list[str] = Field(default_factory=list)
    """Names of the surveys or data sets whose audits have it, or of experiments on an audit."""
    is_wording: bool
    """Whether only the words of a prompt differ."""


class RecomputedCell(ReportModel):
    """A published figure, and the same figure of our reports: of released scores, or of an audit."""

    published: PublishedCell
    """Of a row of ours, only the place in the table: no figure is published."""
    is_own_row: bool = False
    """Whether no figure is published in its place: it is in a row of a model of ours, or in an empty place."""
    recomputed: Estimate | None
    """The figure of our report; null if it was not computed."""
    difference: float | None
    """Our figure minus the published one, in the unit of our reports."""
    not_run: NotRun | None = None
    """Why there is no recomputed figure; null if there is one."""
    detail: str = ""
    """What our figure is of, such as a survey, a model or a unit; or more on why there is none."""
    data: str = ""
    """Name of the survey or data set that our figure is of, or would be of."""
    unit: str = ""
    """What tells our figure from another one of the cell, such as what is counted."""
    model: str = ""
    """The model of ours that the figure is of, also where it is the lowest or the highest of several."""
    is_extreme: bool = False
    """Whether it is the lowest or the highest of several models; the interval is then that of this model by itself."""
    audit: str | None = None
    """The audit whose report has our figure; several are separated by commas."""
    mark: Mark
    departures: list[str] = Field(default_factory=list)
    """Ids of the departures of the audit that bear on this figure."""


class FindingTest(ReportModel):
    """The figure of a finding in one audit, of one model or over all."""

    data: str = ""
    """Name of the survey or data set."""
    model: str = ""
    """Empty for a figure over models."""
    figure: Tested
    pair: str = ""
    """What is compared, such as the regions "Non-Western minus Western", or another measure."""
    r_gap: Estimate | None = None
    """The gap in r between the regions, which is not tested."""
    corrected_r_gap: Estimate | None = None
    """The same, corrected for the range of people's scores; not tested either."""


class Finding(ReportModel):
    """A finding of a paper, in a form that can be tested on other data."""

    id: str
    claim: str
    """What the paper finds, as a sentence."""
    quote: str
    """The words of the paper."""
    place: str = ""
    direction: Literal["positive", "negative"]
    """Sign of the figures if the finding holds."""
    compared: str
    """What the figures are, in words."""


class FindingRow(Finding, ClaimTest):
    """A finding of the paper, tested on one's own data."""

    result: Literal["holds", "does not hold", "cannot be compared"]
    reason: str | None
    """Why it cannot be compared."""
    supporting: int
    """Tests that by themselves support it at the 5% level."""
    tests: list[FindingTest]


class ChartPoint(ReportModel):
    """A point of a chart: the figures of a model in a table.

    The models of a chart of lines are its series; a point of a chart without lines is a model.
    """

    x: float | str
    """A number, or a column of the table."""
    y: str
    """A column of the table."""
    form: str = ""
    """The form of the experiment whose rows have the figures."""
    series: str = ""
    """What tells a line from another one of the same model."""


class TableChart(ReportModel):
    """A chart that is drawn from the figures of a table, as the paper draws one."""

    x: str
    """Title of the axis to the right."""
    y: str
    """Title of the axis upwards."""
    points: tuple[ChartPoint, ...]
    """Of each model: one for a scatter plot, and several for a line."""
    data: str = ""
    """The survey or data set, where columns are of several."""
    unit: str = ""
    """See `RecomputedCell`; by default the first unit of each figure."""


class TableLayout(ReportModel):
    """How the figures of a table are shown besides as a table."""

    columns: tuple[str, ...] = ()
    """In the order of the paper."""
    charts: tuple[TableChart, ...] = ()
    heat_map: Literal["", "correlation", "error"] = ""
    """What the colours of a heat map show; empty for none."""


class PublishedTableInfo(ReportModel):
    """A published table, as the list of papers shows it."""

    paper: str
    table: str
    title: str
    place: str
    origin: Origin
    n_cells: int
    n_run: int
    """Figures that an audit gives (`auditor replicate PAPER --models FILE`); for a picture without numbers, those of
    each model."""
    released: list[str]
    """Names of the files with the scores behind the table, if the authors released them."""
    needs: str = ""
    """What the user provides for the experiment of the paper."""
    cost: str = ""
    """Calls of one model in the full form of the whole experiment."""
