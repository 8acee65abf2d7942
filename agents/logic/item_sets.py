"""What is compared: the topics of a country, the traces on a cell, or the items of a file."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from auditor.agents.call_builders import blind_trace
from auditor.agents.localization import country_name, topic_wording
from auditor.agents.run_context import RunContext
from auditor.config import AuditConfig, LogicProbe
from auditor.domain import ENGLISH, Cell, Item, ItemSet, Outcome, Survey, Trace, canonical_hash, derive_seed
from auditor.errors import ConfigError, ImportFileError
from auditor.storage import results
from auditor.surveys.languages import native_languages
from auditor.surveys.row_reader import read_rows

TOPIC_ITEMS, TRACE_ITEMS = "topics", "traces"
ACCEPTABILITY = "acceptability"
MAX_ID_LENGTH = 120


def build_item_sets(context: RunContext, probe: LogicProbe) -> list[ItemSet]:
    """The sets of an audit, each with no more items than the probe allows.

    Raises:
        ImportFileError: the file of items cannot be used.
    """
    config, survey = context.config, context.survey
    if probe.items == TOPIC_ITEMS:
        found = [build_topic_set(config, survey, country, context.cells) for country in chosen_countries(probe, survey)]
    elif probe.items == TRACE_ITEMS:
        found = build_trace_sets(context, probe)
    else:
        found = load_item_sets(Path(probe.items), probe.relation, _prompt_language(config))
    return [_subsample(one, probe.max_items, config.seed) for one in found if len(one.items) > 1]


def chosen_countries(probe: LogicProbe, survey: Survey) -> list[str]:
    """The countries that the probe names; the survey's first where it names none.

    Raises:
        ConfigError: a name is not among the survey's countries of this audit.
    """
    known = list(survey.countries)
    if probe.countries is None:
        return known[:1]
    if probe.countries == "all":
        return known
    for name in probe.countries:
        if name not in known:
            raise ConfigError(f"probes.logic.countries: the audit has no country '{name}'.", "Add it to the survey's.")
    return list(probe.countries)


def build_topic_set(config: AuditConfig, survey: Survey, country: str, cells: Iterable[Cell]) -> ItemSet:
    """The topics that people of a country were asked about; their scores are what people say."""
    language = _prompt_language(config, country)
    topics = [cell.topic for cell in cells if cell.country == country]
    items = tuple(Item(t, topic_wording(survey, t, language), survey.scores.get(Cell(country, t))) for t in topics)
    return ItemSet(country, country_name(country, language), ACCEPTABILITY, items, language)


def build_trace_sets(context: RunContext, probe: LogicProbe) -> list[ItemSet]:
    """All usable traces on each cell of the chosen countries, with author, country and topic taken out."""
    countries = set(chosen_countries(probe, context.survey))
    cells = [cell for cell in context.cells if cell.country in countries]
    of_cell: dict[Cell, list[Trace]] = {cell: [] for cell in cells}
    for trace in results.load_traces(context.db, context.audit_id, cells):
        if trace.outcome is Outcome.OK and trace.text:
            of_cell[trace.cell].append(trace)
    return [
        ItemSet(
            context=f"{cell.country} · {cell.topic}",
            text="",
            criterion=probe.relation,
            items=tuple(Item(f"{t.model} #{t.sample}", blind_trace(context.config, context.survey, t)) for t in traces),
            language=_prompt_language(context.config),
        )
        for cell, traces in of_cell.items()
    ]


def load_item_sets(file: Path, relation: str, language: str = ENGLISH) -> list[ItemSet]:
    """The sets in a file with `item[,context][,text][,human]`, in its order.

    `item` names an item, and is its text where there is no `text`; `context` is what judges are told of a set; `human`
    is people's score of the item, on any scale.

    Raises:
        ImportFileError: a row that cannot be used; the message names it.
    """
    sets: dict[str, dict[str, Item]] = {}
    rows = 0
    for row in read_rows(file, ["item"], ["context", "text", "human"]):
        rows += 1
        name, items = row.required_text("item"), sets.setdefault(row.cells["context"], {})
        item = Item(short_id(name), row.cells["text"] or name, row.number("human"))
        if item.id in items:
            raise ImportFileError(f"{row.location}: the item '{item.id}' is there twice in its set.", "Keep one.")
        items[item.id] = item
    if not rows:
        raise ImportFileError(f"{file}: has no rows.", "Is it the right file?")
    return [ItemSet(set_id(text), text, relation, tuple(items.values()), language) for text, items in sets.items()]


def short_id(text: str) -> str:
    """A text as a name: itself where it is short, else its beginning and a part of its hash."""
    if len(text) <= MAX_ID_LENGTH:
        return text
    return f"{' '.join(text[:60].split())} … {canonical_hash(text)[:10]}"


def set_id(context: str) -> str:
    """A set's name, from what its items have in common."""
    return short_id(context) or "items"


def check_items(config: AuditConfig, survey: Survey) -> None:
    """Make sure before the first call that what is to be compared is there, in every language it is asked in.

    Raises:
        ConfigError, ImportFileError: what is missing; the message names it.
    """
    probe = config.probes.logic
    if probe is None:
        return
    if probe.items not in (TOPIC_ITEMS, TRACE_ITEMS):
        load_item_sets(Path(probe.items), probe.relation)
        return
    for country in chosen_countries(probe, survey):
        for topic in survey.topics if probe.items == TOPIC_ITEMS else ():
            topic_wording(survey, topic, _prompt_language(config, country))


def _prompt_language(config: AuditConfig, country: str | None = None) -> str:
    """The audit's first language; for `native` the country's first, or English where there is none."""
    return config.languages_in(native_languages(country) if country else ())[0]


def _subsample(item_set: ItemSet, max_items: int, seed: int) -> ItemSet:
    """The set, or so many of its items, drawn at random, in their order."""
    n = len(item_set.items)
    if n <= max_items:
        return item_set
    drawn = np.random.default_rng(derive_seed(seed, "logic", item_set.context)).permutation(n)[:max_items]
    kept = tuple(item_set.items[i] for i in sorted(drawn))
    return ItemSet(item_set.context, item_set.text, item_set.criterion, kept, item_set.language)
