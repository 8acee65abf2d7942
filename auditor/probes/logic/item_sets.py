"""Item sets to compare: the topics of a country, the traces on a cell, or the items of a file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from auditor.agents.call_builders import blind_trace
from auditor.agents.localization import country_name, topic_wording
from auditor.agents.run_context import RunContext
from auditor.config import AuditConfig
from auditor.domain import ENGLISH, Cell, Outcome, Survey, Trace, derive_seed
from auditor.domain.terms import short_id
from auditor.errors import ConfigError, ImportFileError
from auditor.probes.logic.comparisons import CELL_SEPARATOR, TRACE_ITEM_SEPARATOR, Item, ItemSet
from auditor.probes.logic.settings import LogicProbe
from auditor.storage import exclusions, results
from auditor.storage.records import load_records
from auditor.surveys.countries import native_languages
from auditor.surveys.row_reader import read_rows

TOPIC_ITEMS, TRACE_ITEMS = "topics", "traces"
ACCEPTABILITY = "acceptability"


def build_item_sets(context: RunContext, probe: LogicProbe) -> list[ItemSet]:
    """Build the item sets of an audit: at most `sets`, each with at most `max_items` items.

    Sets with one item are dropped before sets are drawn.

    Raises:
        ImportFileError: the file of items is invalid.
    """
    config, survey = context.config, context.survey
    if probe.items == TOPIC_ITEMS:
        item_sets = [
            build_topic_set(config, survey, country, context.cells) for country in configured_countries(probe, survey)
        ]
    elif probe.items == TRACE_ITEMS:
        item_sets = build_trace_sets(context, probe)
    else:
        item_sets = load_item_sets(Path(probe.items), probe.relation, prompt_language(config))
    comparable_sets = [item_set for item_set in item_sets if len(item_set.items) > 1]
    drawn_sets = draw_sets(comparable_sets, probe.sets, config.seed)
    return [_subsample(item_set, probe.max_items, config.seed) for item_set in drawn_sets]


def draw_sets(item_sets: Sequence[ItemSet], max_sets: int | None, seed: int) -> list[ItemSet]:
    """Draw `max_sets` sets at random, in their original order; all if there are no more, or without a maximum.

    Each set has its own random number, so that a larger maximum keeps the sets of a smaller one, and the order of a
    file has no effect.
    """
    ranked = sorted(item_sets, key=lambda item_set: derive_seed(seed, "logic", "sets", item_set.context))
    drawn_contexts = {item_set.context for item_set in ranked[:max_sets]}
    return [item_set for item_set in item_sets if item_set.context in drawn_contexts]


def configured_countries(probe: LogicProbe, survey: Survey) -> list[str]:
    """The countries configured for the probe; by default the survey's first one.

    Raises:
        ConfigError: a country is not in this audit, or none is listed.
    """
    survey_countries = list(survey.countries)
    if probe.countries is None:
        return survey_countries[:1]
    if probe.countries == "all":
        return survey_countries
    if not probe.countries:
        raise ConfigError("probes.logic.countries: the list is empty, so nothing is compared.", "Name a country.")
    for name in probe.countries:
        if name not in survey_countries:
            raise ConfigError(
                f"probes.logic.countries: the audit has no country '{name}'.", "Add it to survey.countries."
            )
    return list(dict.fromkeys(probe.countries))


def build_topic_set(config: AuditConfig, survey: Survey, country: str, cells: Iterable[Cell]) -> ItemSet:
    """Build the set of a country's topics, with the survey scores as people's scores.

    Args:
        cells: all cells of the audit.
    """
    language = prompt_language(config, country)
    topics = [cell.topic for cell in cells if cell.country == country]
    items = tuple(
        Item(topic, topic_wording(survey, topic, language), survey.scores.get(Cell(country, topic))) for topic in topics
    )
    return ItemSet(country, country_name(country, language), ACCEPTABILITY, items, language)


def build_trace_sets(context: RunContext, probe: LogicProbe) -> list[ItemSet]:
    """Build one set for each cell of the configured countries, with the blinded texts of its `ok` traces.

    A trace that was excluded since stays an item, so that the same questions are planned (`list_excluded_items`).
    """
    countries = set(configured_countries(probe, context.survey))
    cells = [cell for cell in context.cells if cell.country in countries]
    traces_by_cell: dict[Cell, list[Trace]] = {cell: [] for cell in cells}
    excluded = {
        (trace.model, trace.cell, trace.sample): trace
        for trace in exclusions.load_excluded(context.db, context.audit_id, Trace)
    }
    for stored in results.load_traces(context.db, context.audit_id, cells):
        trace = excluded.get((stored.model, stored.cell, stored.sample), stored)
        if trace.outcome is Outcome.OK and trace.text:
            traces_by_cell[trace.cell].append(trace)
    return [
        ItemSet(
            context=_name_cell(cell),
            text="",
            criterion=probe.relation,
            items=tuple(
                Item(_name_trace(trace), blind_trace(context.config, context.survey, trace)) for trace in traces
            ),
            language=prompt_language(context.config),
        )
        for cell, traces in traces_by_cell.items()
    ]


def list_excluded_items(context: RunContext, probe: LogicProbe) -> set[tuple[str, str]]:
    """List the context and the id of each item that is an excluded trace: nothing is asked about it."""
    if probe.items != TRACE_ITEMS:
        return set()
    traces = load_records(context.db, context.audit_id, Trace, outcome=Outcome.EXCLUDED.value)
    return {(_name_cell(trace.cell), _name_trace(trace)) for trace in traces}


def _name_cell(cell: Cell) -> str:
    return f"{cell.country}{CELL_SEPARATOR}{cell.topic}"


def _name_trace(trace: Trace) -> str:
    return f"{trace.model}{TRACE_ITEM_SEPARATOR}{trace.sample}"


def load_item_sets(file: Path, relation: str, language: str = ENGLISH) -> list[ItemSet]:
    """Load the sets of a file with the columns `item[,context][,text][,human]`, in its order.

    `item` is the id of an item, and its text if `text` is empty; `context` is the description of its set that judges
    are shown; `human` is people's score of the item, on any scale.

    Raises:
        ImportFileError: the file is empty or a row is invalid; the message names the row.
    """
    sets: dict[str, dict[str, Item]] = {}
    n_rows = 0
    for row in read_rows(file, ["item"], ["context", "text", "human"]):
        n_rows += 1
        name, items = row.required_text("item"), sets.setdefault(row.cells["context"], {})
        item = Item(short_id(name), row.cells["text"] or name, row.number("human"))
        if item.id in items:
            raise ImportFileError(f"{row.location}: the item '{item.id}' occurs twice in its set.", "Keep one.")
        items[item.id] = item
    if not n_rows:
        raise ImportFileError(f"{file}: has no rows.", "Check that it is the right file.")
    return [
        ItemSet(set_id(context), context, relation, tuple(items.values()), language) for context, items in sets.items()
    ]


def set_id(context: str) -> str:
    """Id of a set, from the description of what its items have in common."""
    return short_id(context) or "items"


def prompt_language(config: AuditConfig, country: str | None = None) -> str:
    """The audit's first language; with `native` the country's first language, or English if it has none."""
    return config.languages_in(native_languages(country) if country else ())[0]


def _subsample(item_set: ItemSet, max_items: int, seed: int) -> ItemSet:
    """Return the set with `max_items` items drawn at random if it has more, in their original order."""
    n_items = len(item_set.items)
    if n_items <= max_items:
        return item_set
    drawn_indices = np.random.default_rng(derive_seed(seed, "logic", item_set.context)).permutation(n_items)[:max_items]
    drawn_items = tuple(item_set.items[index] for index in sorted(drawn_indices))
    return ItemSet(item_set.context, item_set.text, item_set.criterion, drawn_items, item_set.language)
