"""Set the figures of audits' reports beside the published cells."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from auditor.config import load_stored_config
from auditor.errors import UsageError
from auditor.metrics.intervals.estimate import Estimate, pool_shares, sum_counts
from auditor.probes.semantic.figures.build import count_wordings
from auditor.replications.definitions import MeasuredAudit, derive_mark, merge_departures
from auditor.replications.experiment import EACH_MODEL, Experiment, FigureSource, Part
from auditor.replications.figures import FIGURES, GROUP_FIGURES, MODEL_FIGURES
from auditor.replications.presets import NOTHING_PRINTED, Paper, PublishedRow, PublishedTable
from auditor.replications.survey_figures import EXTREME_FIGURES, MIN_MODELS, NO_CONFLICT
from auditor.reports.data.build import build_report
from auditor.reports.data.replication import Departure, Mark, NotRun, PublishedCell, RecomputedCell
from auditor.run import open_stored_database
from auditor.storage import audits


def fill_cell(
    published: PublishedCell,
    estimate: Estimate,
    measured: Sequence[MeasuredAudit],
    source: FigureSource,
    model: str,
    mark: Mark,
    departures: Sequence[Departure],
) -> RecomputedCell:
    """A cell with our figure, or with the reason why the report has none."""
    data = ", ".join(audit.name for audit in measured)
    if estimate.value is None:
        return explain_cell(published, "no_value", source, data=data, model=model, detail=estimate.reason or "")
    is_published = published.value is not None
    return RecomputedCell(
        published=published,
        recomputed=estimate,
        difference=estimate.value - (published.value or 0) * published.scale if is_published else None,
        detail=", ".join(filter(None, (data, source.label, model if published.printed else ""))),
        data=data,
        unit=source.label,
        model=model,
        audit=", ".join(audit.report.audit.name for audit in measured),
        mark=mark,
        departures=[departure.id for departure in departures],
    )


def explain_cell(
    published: PublishedCell,
    reason: NotRun,
    source: FigureSource | None = None,
    *,
    data: str = "",
    model: str = "",
    detail: str = "",
) -> RecomputedCell:
    """A cell without a figure of ours.

    Args:
        data: name of the survey or data set.
        detail: more on the reason.
    """
    unit = source.label if source else ""
    place = "" if reason == "no_audit" else ", ".join(filter(None, (data, unit, model if published.printed else "")))
    return RecomputedCell(
        published=published,
        recomputed=None,
        difference=None,
        not_run=reason,
        detail=": ".join(filter(None, (place, detail))),
        data=data,
        unit=unit,
        model=model,
        mark="not_run",
    )


ALL_MODELS = "all models"
"""Row of figures over our models, in a table without published rows."""


def load_measured_audits(
    storage: str,
    name_by_audit: Mapping[str, str],
    imported: Collection[str] = (),
    trials: Mapping[str, Mapping[str, Any]] | None = None,
) -> list[MeasuredAudit]:
    """Load the reports and the stored configurations of audits, by name of the survey or data set.

    Args:
        storage: URL of the database.
        imported: names of the data sets whose audits were imported: they have no configuration.
        trials: results of the trials of each audit, by name of the survey or data set and of the trial.
    """
    measured = []
    with open_stored_database(storage) as db:
        for audit_name, stored_name in name_by_audit.items():
            audit = audits.get_audit(db, stored_name)
            config = load_stored_config(audit.config)
            if config is None and audit_name not in imported:
                raise UsageError(
                    f"audit '{stored_name}' was imported.", "Run it: auditor replicate PAPER --models FILE"
                )
            survey_cells = audits.load_audit_survey(db, audit).cells
            measured.append(
                MeasuredAudit(
                    audit_name,
                    config,
                    build_report(db, stored_name),
                    (trials or {}).get(audit_name, {}),
                    wordings=count_wordings(db, audit.id),
                    n_unknown_nonresponse=sum(bool(cell.score) and cell.nonresponse is None for cell in survey_cells),
                )
            )
    return measured


def join_figures(
    paper: Paper, table_id: str | None, measured: Sequence[MeasuredAudit], own_by_published: Mapping[str, str]
) -> tuple[list[RecomputedCell], list[Departure]]:
    """Set the reports' figures beside the published cells of the tables.

    Returns:
        The cells, several for a published one where audits or units differ, then those of our models that no published
        row is of; and all departures that occur.
    """
    experiment = paper.experiment
    assert experiment is not None
    cells = [
        cell
        for table in paper.select_tables(table_id)
        for cell in TableJoiner(paper, experiment, table, measured, own_by_published).join()
    ]
    return cells, list_departures(paper, measured, cells)


def list_departures(
    paper: Paper, measured: Sequence[MeasuredAudit], cells: Sequence[RecomputedCell]
) -> list[Departure]:
    """The departures that cells name, each with the audits that have it."""
    experiment = paper.experiment
    assert experiment is not None
    all_parts = frozenset[Part]().union(
        *(setting.parts for setting in experiment.settings), *experiment.bears_on.values()
    )
    all_departures = tuple(departure.id for departure in experiment.departures)
    occurring = []
    for audit in measured:
        named = {name for cell in cells if audit.name in cell.data.split(", ") for name in cell.departures}
        settings = tuple(setting for setting in experiment.settings if setting.id in named)  # others may not apply
        relevant = experiment.model_copy(update={"settings": settings})
        for trial in ("", *audit.trials):
            source = FigureSource(trial=trial, departures=all_departures)
            _, departures = derive_mark(relevant, all_parts, source, audit)
            occurring += [
                departure.model_copy(update={"audits": departure.audits or [audit.name]})
                for departure in departures
                if departure.id in named
            ]
    return merge_departures(occurring)


@dataclass(frozen=True, slots=True)
class TableJoiner:
    """Joins the figures of one published table.

    Attributes:
        own_by_published: the model of ours that is set beside each published one.
    """

    paper: Paper
    experiment: Experiment
    table: PublishedTable
    measured: Sequence[MeasuredAudit]
    own_by_published: Mapping[str, str]

    def join(self) -> Iterator[RecomputedCell]:
        """Yield the published cells with our figures, and then those of our models without a published row."""
        for row in self.table.rows:
            for published in self.paper.iterate_row(self.table, row):
                yield from self._join_cell(row, published)
            yield from self._join_unpublished_columns(row)
        yield from self._join_own_rows()

    def _join_cell(self, row: PublishedRow, published: PublishedCell) -> Iterator[RecomputedCell]:
        """Yield our figures of a published cell, or why there is none."""
        sources = self.table.find_figures(row, published.column)
        own_model = self.own_by_published.get(row.model)
        cells = [cell for source in sources for cell in self._join_source(published, source, own_model)]
        if published.printed in NOTHING_PRINTED:
            cells = [cell for cell in cells if cell.recomputed is not None]
        if cells:
            yield from cells
        elif published.printed in NOTHING_PRINTED:
            yield explain_cell(published, "not_published")
        elif published.is_definition:
            yield explain_cell(published, "definition")
        elif not sources:
            yield explain_cell(published, "recorded_only")
        elif not any(map(self._select_audits, self.table.list_sources())):
            yield explain_cell(published, "no_audit", sources[0], data=sources[0].audit, detail=sources[0].audit)
        else:
            yield explain_cell(published, "no_counterpart", detail=row.model)

    def _join_unpublished_columns(self, row: PublishedRow) -> Iterator[RecomputedCell]:
        """Yield the figures of our model beside a row that no published figure is of: of other columns or surveys."""
        own_model = self.own_by_published.get(row.model)
        if own_model is None:
            return
        joined = {
            (column, audit.name)
            for other in self.table.rows
            if other.row == row.row
            for column in self.table.read_row(other)
            for source in self.table.find_figures(other, column)
            for audit in self._select_audits(source)
        }
        for column, sources in self.table.forms.get(row.form, self.table.figures).items():
            for source in sources:
                place = self.paper.build_place(self.table, row.row, column, row.form)
                for cell in self._join_model(place, source, own_model):
                    if (column, cell.data) not in joined:
                        yield cell

    def _join_own_rows(self) -> Iterator[RecomputedCell]:
        """Yield the cells of our models that no row of the table is of, in each form of the experiment.

        A table without published rows has a row of figures over all models.
        """
        models = dict.fromkeys(name for audit in self.measured for name in audit.models)
        for form, figures in (self.table.forms or {"": self.table.figures}).items():
            with_row = {self.own_by_published.get(row.model) for row in self.table.rows if row.form == form}
            sources = [(column, source) for column, of_column in figures.items() for source in of_column]
            for model in (name for name in models if name not in with_row):
                row_name = ", ".join(filter(None, (model, form)))
                for column, source in sources:
                    place = self.paper.build_place(self.table, row_name, column, form)
                    yield from self._join_model(place, source, model)
            for column, source in sources:
                if source.group_figure:
                    yield from self._join_groups(source, column, list(models))
                elif source.figure and not self.table.rows:
                    place = self.paper.build_place(
                        self.table, ", ".join(filter(None, (ALL_MODELS, form))), column, form
                    )
                    for cell in self._join_source(place, source, None):
                        yield cell.model_copy(update={"is_own_row": True})

    def _join_groups(self, source: FigureSource, column: str, models: Sequence[str]) -> Iterator[RecomputedCell]:
        """Yield the figures of our models by group."""
        for audit in self._select_audits(source):
            for model in (name for name in models if name in audit.models):
                mark, departures = derive_mark(self.experiment, self.table.parts, source, audit, model)
                for group, estimate in GROUP_FIGURES[source.group_figure](audit, model).items():
                    row, name = (group, model) if column == EACH_MODEL else (f"{model}, {group}", column)
                    place = self.paper.build_place(self.table, row, name)
                    cell = fill_cell(place, estimate, [audit], source, model, mark, departures)
                    yield cell.model_copy(update={"is_own_row": True})

    def _join_model(self, place: PublishedCell, source: FigureSource, model: str) -> Iterator[RecomputedCell]:
        """Yield the figure of a model of ours in a place without a published figure, for each audit of the model."""
        if not source.model_figure:
            return
        for audit in self._select_audits(source):
            if model in audit.models:
                yield self._measure(place, source, audit, model).model_copy(update={"is_own_row": True})

    def _select_audits(self, source: FigureSource) -> list[MeasuredAudit]:
        """The audits that a figure is of."""
        name = self.experiment.trials[source.trial].audit if source.trial else source.audit
        return [audit for audit in self.measured if name in ("", audit.name)]

    def _join_source(
        self, published: PublishedCell, source: FigureSource, own_model: str | None
    ) -> Iterator[RecomputedCell]:
        """Yield one cell for each audit that a figure is of; none for a figure of one model if no model is ours."""
        if not source.figure and own_model is None:
            return
        selected = self._select_audits(source)
        if source.over_audits:
            yield self._measure_over_audits(published, source, selected)
        elif not selected:
            yield explain_cell(published, "no_audit", source, data=source.audit, detail=source.audit)
        else:
            for audit in selected:
                yield self._measure(published, source, audit, None if source.figure else own_model)

    def _measure(
        self, published: PublishedCell, source: FigureSource, audit: MeasuredAudit, model: str | None
    ) -> RecomputedCell:
        """A cell with the figure of an audit, of one model or (None) over all; or the reason why there is none."""
        n_models, min_models = len(audit.models), MIN_MODELS.get(source.figure, 1)
        data = audit.name
        if source.trial and source.trial not in audit.trials:
            files = ", ".join(self.experiment.trials[source.trial].files.values())
            return explain_cell(published, "no_file", source, data=data, detail=files)
        if isinstance(error := audit.trials.get(source.trial), UsageError):
            return explain_cell(published, "no_value", source, data=data, detail=error.message)
        if model is None and audit.stored_config is not None and n_models < min_models:
            detail = f"{n_models} of {min_models}"
            return explain_cell(published, "too_few_models", source, data=data, detail=detail)
        if model is not None:
            estimate = MODEL_FIGURES[source.model_figure](audit, model)
        else:
            estimate = FIGURES[source.figure](audit)
        mark, departures = derive_mark(self.experiment, self.table.parts, source, audit, model)
        is_extreme = model is None and source.figure in EXTREME_FIGURES
        if is_extreme:
            model = EXTREME_FIGURES[source.figure].find_model(audit.report)
        cell = fill_cell(published, estimate, [audit], source, model or "", mark, departures)
        return cell.model_copy(update={"is_extreme": is_extreme and cell.recomputed is not None})

    def _measure_over_audits(
        self, published: PublishedCell, source: FigureSource, selected: Sequence[MeasuredAudit]
    ) -> RecomputedCell:
        """A cell with the counts of all audits together, or with the share in all that is counted."""
        missing = [name for name in self.experiment.audits if name not in {audit.name for audit in selected}]
        data = ", ".join(audit.name for audit in selected)
        if missing:
            return explain_cell(published, "no_audit", source, data=data, detail=", ".join(missing))
        by_audit = [self._measure(published, source, audit, None) for audit in selected]
        estimates = [cell.recomputed or Estimate(None, 0, reason=cell.detail) for cell in by_audit]
        lacking = [cell for cell in by_audit if cell.recomputed is None]
        has_share = source.over_audits == "share" and len(lacking) < len(by_audit)
        if lacking and not (has_share and all(cell.detail.endswith(NO_CONFLICT) for cell in lacking)):
            return lacking[0].model_copy(update={"data": data})
        total = sum_counts(estimates) if source.over_audits == "sum" else pool_shares(estimates)
        marks = [derive_mark(self.experiment, self.table.parts, source, audit) for audit in selected]
        departures = merge_departures(departure for _, of_audit in marks for departure in of_audit)
        mark = max((mark for mark, _ in marks), key=get_args(Mark).index)
        return fill_cell(published, total, selected, source, "", mark, departures)
