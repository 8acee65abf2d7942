"""Set the figures of audits' reports beside the published cells."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from auditor.config import load_stored_config
from auditor.errors import UsageError
from auditor.metrics.estimate import Estimate
from auditor.replications.definitions import MeasuredAudit, derive_mark
from auditor.replications.experiment import Experiment, FigureSource
from auditor.replications.figures import FIGURES, MODEL_FIGURES
from auditor.replications.planning import select_runnable_tables
from auditor.replications.presets import Paper, PublishedTable
from auditor.reports.data.build import build_report
from auditor.reports.data.replication import Departure, NotRun, PublishedCell, RecomputedCell
from auditor.storage import audits
from auditor.storage.database import open_database

NOTHING_PRINTED = ("", "-")
"""Of a cell without a figure; a misprint, such as `78,7`, has characters but no value."""
JoinedCell: TypeAlias = tuple[RecomputedCell, list[Departure]]
"""A cell, and the departures of the audit that its figure is of."""


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
    with open_database(storage, create=False) as db:
        for audit_name, stored_name in name_by_audit.items():
            config = load_stored_config(audits.get_audit(db, stored_name).config)
            if config is None and audit_name not in imported:
                raise UsageError(
                    f"audit '{stored_name}' was imported.", "Run it: auditor replicate PAPER --models FILE"
                )
            results = (trials or {}).get(audit_name, {})
            measured.append(MeasuredAudit(audit_name, config, build_report(db, stored_name), results))
    return measured


def match_models(paper: Paper, own_models: Sequence[str], pairs: Mapping[str, str]) -> dict[str, str]:
    """The model of ours that is set beside each published model.

    Args:
        own_models: names of the audited models.
        pairs: published model by ours, as the user says; models of equal names are set beside each other.

    Raises:
        UsageError: there is no such model of ours, or no such published one.
    """
    published = {row.model for table in paper.tables for row in table.rows if row.model}
    for own_model, published_model in pairs.items():
        for name, known, whose in (
            (own_model, set(own_models), "audited"),
            (published_model, published, "published"),
        ):
            if name not in known:
                listed = ", ".join(sorted(known)) or "none"
                raise UsageError(f"--as: there is no {whose} model '{name}'.", f"The {whose} models are: {listed}.")
    return {name: name for name in own_models if name in published} | {
        published_model: own_model for own_model, published_model in pairs.items()
    }


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
    joined: list[JoinedCell] = []
    runnable = {table.id for table in select_runnable_tables(paper, table_id)}
    for table in paper.select_tables(table_id):
        rows = {row.row: row for row in table.rows}
        for published in paper.iterate_cells(table.id):
            row = rows[published.row]
            sources = table.find_figures(row, published.column) if table.id in runnable else ()
            own_model = own_by_published.get(row.model)
            if sources and own_model is None and not any(source.figure for source in sources):
                joined.append((_explain(published, "no_counterpart", row.model), []))
            elif table.id in runnable and published.printed in NOTHING_PRINTED:
                joined.append((_explain(published, "not_published"), []))
            elif not sources:
                joined.append((_explain(published, "recorded_only"), []))
            else:
                for source in sources:
                    joined += _join_source(experiment, table, published, source, measured, own_model)
        if table.id in runnable:
            joined += _join_own_rows(paper, experiment, table, measured, own_by_published)
    departures = {(departure.id, departure.description): departure for _, of_cell in joined for departure in of_cell}
    return [cell for cell, _ in joined], list(departures.values())


def _join_own_rows(
    paper: Paper,
    experiment: Experiment,
    table: PublishedTable,
    measured: Sequence[MeasuredAudit],
    own_by_published: Mapping[str, str],
) -> Iterator[JoinedCell]:
    """Yield the cells of our models that no row of the table is of, in each form of the experiment."""
    models = dict.fromkeys(name for audit in measured for name in audit.models)
    for form, figures in (table.forms or {"": table.figures}).items():
        with_row = {own_by_published.get(row.model) for row in table.rows if row.form == form}
        for model in (name for name in models if name not in with_row):
            for column, source in ((column, source) for column, sources in figures.items() for source in sources):
                if not source.model_figure:
                    continue
                place = PublishedCell(
                    table=table.id, title=table.title, row=", ".join(filter(None, (model, form))), column=column,
                    value=None, printed="", quote="", place=table.place, origin=table.origin or paper.origin,
                    table_note=table.note,
                )  # fmt: skip
                for audit in _select_audits(experiment, source, measured):
                    if model not in {section.name for section in audit.config.models}:
                        continue
                    label = ", ".join(filter(None, (audit.name, source.label)))
                    cell, of_cell = _measure(experiment, table, place, source, audit, model, label)
                    yield cell.model_copy(update={"is_own_row": True}), of_cell


def _select_audits(
    experiment: Experiment, source: FigureSource, measured: Sequence[MeasuredAudit]
) -> list[MeasuredAudit]:
    """The audits that a figure is of."""
    name = experiment.trials[source.trial].audit if source.trial else source.audit
    return [audit for audit in measured if name in ("", audit.name)]


def _join_source(
    experiment: Experiment,
    table: PublishedTable,
    published: PublishedCell,
    source: FigureSource,
    measured: Sequence[MeasuredAudit],
    own_model: str | None,
) -> Iterator[JoinedCell]:
    """Yield one cell for each audit that a figure is of; none for a figure of one model if no model is ours."""
    if not source.figure and own_model is None:
        return
    selected = _select_audits(experiment, source, measured)
    if not selected:
        yield _explain(published, "no_audit", source.audit), []
    for audit in selected:
        model = own_model if source.model_figure else None
        label = ", ".join(filter(None, (audit.name, source.label, model)))
        yield _measure(experiment, table, published, source, audit, model, label)


def _measure(
    experiment: Experiment,
    table: PublishedTable,
    published: PublishedCell,
    source: FigureSource,
    audit: MeasuredAudit,
    model: str | None,
    label: str,
) -> JoinedCell:
    """A cell with the figure of an audit, of one model or (None) over all; or the reason why there is none."""
    n_models = len(audit.models)
    if source.trial and source.trial not in audit.trials:
        files = experiment.trials[source.trial].files.values()
        return _explain(published, "no_file", f"{label}: {', '.join(files)}"), []
    if model is not None:
        estimate = MODEL_FIGURES[source.model_figure](audit, model)
    elif audit.stored_config is not None and n_models < source.min_models:
        return _explain(published, "too_few_models", f"{label}: {n_models} of {source.min_models}"), []
    else:
        estimate = FIGURES[source.figure](audit)
    if estimate.value is None:
        return _explain(published, "no_value", f"{label}: {estimate.reason}"), []
    return _fill(experiment, table, published, source, audit, estimate, label)


def _fill(
    experiment: Experiment,
    table: PublishedTable,
    published: PublishedCell,
    source: FigureSource,
    audit: MeasuredAudit,
    estimate: Estimate,
    label: str,
) -> JoinedCell:
    """A cell with our figure, and the departures of its audit."""
    mark, departures = derive_mark(experiment, table.parts, source, audit)
    assert estimate.value is not None
    difference = (
        None
        if published.value is None
        else estimate.value - published.value * table.find_scale(published.row, published.column)
    )
    cell = RecomputedCell(
        published=published,
        recomputed=estimate,
        difference=difference,
        detail=label,
        audit=audit.report.audit.name,
        mark=mark,
        departures=[departure.id for departure in departures],
    )
    return cell, departures


def _explain(published: PublishedCell, reason: NotRun, detail: str = "") -> RecomputedCell:
    """A cell without a figure of ours."""
    return RecomputedCell(
        published=published, recomputed=None, difference=None, not_run=reason, detail=detail, mark="not_run"
    )
