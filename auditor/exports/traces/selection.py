"""Select answers by model, country, topic and outcome."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from auditor.domain import Cell, Outcome, Survey, SurveyCell
from auditor.errors import UsageError, did_you_mean
from auditor.storage.count_queries import OutcomeCount
from auditor.surveys.selection import limit_cells, resolve_names
from auditor.text_safety import truncate_text


@dataclass(frozen=True, slots=True)
class TraceFilter:
    """Which answers are selected: those that match one name of each kind; an empty sequence restricts nothing.

    Attributes:
        countries: the survey's spelling, another common one, or ISO 3166 codes.
        topics: in any case; in an audit of a task, ids of items.
        outcomes: values of `Outcome`.
        addressing_judge: whether only traces that address their judge are selected.
    """

    models: Sequence[str] = ()
    countries: Sequence[str] = ()
    topics: Sequence[str] = ()
    outcomes: Sequence[str] = ()
    addressing_judge: bool = False


@dataclass(frozen=True, slots=True)
class TraceSelection:
    """The selected answers, counted.

    Attributes:
        models: names of models, in the order of the audit.
        cells: cells that have selected answers, in the order of the survey.
        counts: number of selected answers by model, cell and outcome.
        n_omitted_cells: number of cells that were left out because there are too many.
        addressing_judge: as in `TraceFilter`.
    """

    models: Sequence[str]
    cells: Sequence[Cell]
    counts: Sequence[OutcomeCount]
    n_omitted_cells: int = 0
    addressing_judge: bool = False

    @property
    def n_traces(self) -> int:
        """Number of the selected answers."""
        return sum(count.n for count in self.counts)

    def models_by_cell(self) -> dict[Cell, list[str]]:
        """Models that have selected answers on each cell, in the order of the audit."""
        pairs = {(Cell(count.country, count.topic), count.model) for count in self.counts}
        rank = {model: i for i, model in enumerate(self.models)}
        by_cell: dict[Cell, list[str]] = {cell: [] for cell in self.cells}
        for cell, model in sorted(pairs, key=lambda pair: rank[pair[1]]):
            by_cell[cell].append(model)
        return by_cell

    def limit(self, max_cells: int, seed: int) -> TraceSelection:
        """Keep at most `max_cells` cells, spread over countries and topics; equal seeds give equal cells."""
        if len(self.cells) <= max_cells:
            return self
        limited = limit_cells(_survey_of(self.cells), max_cells, seed)
        kept_cells = {survey_cell.cell for survey_cell in limited.cells}
        return replace(
            self,
            cells=[cell for cell in self.cells if cell in kept_cells],
            counts=[count for count in self.counts if Cell(count.country, count.topic) in kept_cells],
            n_omitted_cells=len(self.cells) - len(kept_cells),
        )


def select_traces(
    counts: Sequence[OutcomeCount], survey: Survey, models: Sequence[str], trace_filter: TraceFilter
) -> TraceSelection:
    """Select the answers that match a filter.

    Args:
        counts: number of the audit's answers by model, cell and outcome; if only those that address their judge are
            selected, of these.
        survey: the audit's survey, whose order the cells have; answers may be on further cells.
        models: names of the audited models, in the order of the audit.

    Raises:
        UsageError, SurveyError: the audit has no such model, outcome, country or topic; the message suggests others.
    """
    answered_cells = {Cell(count.country, count.topic) for count in counts}
    survey_cells = [survey_cell.cell for survey_cell in survey.cells if survey_cell.cell in answered_cells]
    cells = [*survey_cells, *sorted(answered_cells.difference(survey_cells))]
    countries, topics = resolve_names(
        _survey_of(cells, survey.name), trace_filter.countries or "all", trace_filter.topics or "all"
    )
    selected_models = _match_names("no model", trace_filter.models, models)
    outcomes = _match_names(
        "no answers with the outcome", trace_filter.outcomes, [outcome.value for outcome in Outcome]
    )
    selected_counts = [
        count
        for count in counts
        if count.country in countries
        and count.topic in topics
        and count.model in selected_models
        and count.outcome in outcomes
    ]
    selected_cells = {Cell(count.country, count.topic) for count in selected_counts}
    selected = [cell for cell in cells if cell in selected_cells]
    return TraceSelection(models, selected, selected_counts, addressing_judge=trace_filter.addressing_judge)


def _match_names(missing: str, names: Sequence[str], available_names: Sequence[str]) -> Collection[str]:
    """The available names that are named, in any case; all if none is named.

    Args:
        missing: what the audit does not have, for the error message.

    Raises:
        UsageError: there is no such name.
    """
    by_folded_name = {name.casefold(): name for name in available_names}
    for name in names:
        if name.casefold() not in by_folded_name:
            hint = did_you_mean(name, available_names, f"Use one of: {', '.join(available_names)}.")
            raise UsageError(f"the audit has {missing} '{truncate_text(name)}'.", hint)
    return {by_folded_name[name.casefold()] for name in names} or set(available_names)


def _survey_of(cells: Sequence[Cell], name: str = "") -> Survey:
    """A survey that consists of these cells, for functions that select cells of a survey."""
    survey_cells = tuple(SurveyCell(cell, 0.0) for cell in cells)
    return Survey(name=name, title="", source="", wording="", scale=("", ""), cells=survey_cells)
