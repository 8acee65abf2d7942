"""Select the countries and topics of a survey that an audit covers."""

from __future__ import annotations

import dataclasses
import difflib
import itertools
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Literal

from auditor.domain import Cell, Survey, derive_seed
from auditor.errors import SelectionError, pluralize
from auditor.surveys.countries import COUNTRY_NAME_ADVICE, country_code, is_country_number

NameSelection = Literal["all"] | Sequence[str]
NUMBER_ADVICE = f"A number means another country in another list. {COUNTRY_NAME_ADVICE}"


def select_cells(survey: Survey, countries: NameSelection = "all", topics: NameSelection = "all") -> Survey:
    """Keep some countries and topics of a survey, in the survey's own order.

    Args:
        countries: `all`, or countries by the survey's spelling, another common spelling, or ISO 3166 code.
        topics: `all`, or topics by the survey's spelling, in any case.

    Raises:
        SelectionError: the survey has no such country or topic (the message suggests similar names), or no cell of the
            selection has a score.
    """
    kept_countries, kept_topics = resolve_names(survey, countries, topics)
    cells = tuple(
        survey_cell
        for survey_cell in survey.cells
        if survey_cell.cell.country in kept_countries and survey_cell.cell.topic in kept_topics
    )
    if all(cell.score is None for cell in cells):
        raise SelectionError(
            f"the selection from survey '{survey.name}' is empty: no cell of "
            f"{pluralize(len(kept_countries), 'country', 'countries')} and "
            f"{pluralize(len(kept_topics), 'topic')} has a score.",
            'Select others, or write "all".',
        )
    words = {topic: words for topic, words in survey.words.items() if topic in kept_topics}
    return dataclasses.replace(survey, cells=cells, words=words)


def resolve_names(
    survey: Survey, countries: NameSelection, topics: NameSelection
) -> tuple[frozenset[str], frozenset[str]]:
    """The survey's own names of countries and of topics that a selection means; see `select_cells`.

    Raises:
        SelectionError: the survey has no such country or topic; the message suggests similar names.
    """
    # Topics have no other spellings: the function always says no.
    return (
        _resolve_selection(countries, survey.countries, "country", survey.name, _is_same_country),
        _resolve_selection(topics, survey.topics, "topic", survey.name, lambda requested_name, survey_topic: False),
    )


def limit_cells(survey: Survey, max_cells: int, seed: int) -> Survey:
    """Keep at most `max_cells` of the cells that models are asked about, spread evenly over countries and topics.

    Countries and topics are shuffled. Then cells are taken along the diagonals of their grid, so that each country, and
    each topic, comes up again only after all others. The cells of a smaller limit are always among those of a larger.

    Args:
        survey: the survey, or the items of a task.
        max_cells: number of cells to keep, at least 1.
        seed: seed of the shuffles.
    """
    askable_cells = set(survey.asked_cells)
    return keep_cells(survey, set(itertools.islice(_iterate_diagonals(survey, askable_cells, seed), max_cells)))


def keep_cells(survey: Survey, selected_cells: Collection[Cell]) -> Survey:
    """Keep only the selected cells of a survey; the others count as not planned."""
    cells = tuple(survey_cell for survey_cell in survey.cells if survey_cell.cell in selected_cells)
    n_unplanned = sum(cell not in selected_cells for cell in survey.asked_cells)
    if not n_unplanned:
        return survey
    topics = {survey_cell.cell.topic for survey_cell in cells}
    countries = {survey_cell.cell.country for survey_cell in cells}
    task = survey.task and dataclasses.replace(
        survey.task, items={name: item for name, item in survey.task.items.items() if name in topics}
    )
    return dataclasses.replace(
        survey,
        cells=cells,
        words={topic: words for topic, words in survey.words.items() if topic in topics},
        native={country: codes for country, codes in survey.native.items() if country in countries},
        task=task,
        n_unplanned=n_unplanned,
    )


def add_donors(survey: Survey, whole_survey: Survey) -> Survey:
    """The survey with the scores of all other cells of its file as donors for estimates from similar countries."""
    selected = {survey_cell.cell for survey_cell in survey.cells}
    donors = {cell: score for cell, score in whole_survey.scores.items() if cell not in selected}
    return dataclasses.replace(survey, donors=donors)


def _iterate_diagonals(survey: Survey, cells: Collection[Cell], seed: int) -> Iterator[Cell]:
    """Yield the cells along the diagonals of the grid of shuffled countries and topics."""
    countries, topics = list(survey.countries), list(survey.topics)
    for names, label in ((countries, "countries"), (topics, "topics")):
        names.sort(key=lambda name, label=label: derive_seed(seed, label, name))  # type: ignore[misc]
    steps_per_lap = math.lcm(len(countries), len(topics)) if countries and topics else 0
    for step in range(len(countries) * len(topics)):
        lap = step // steps_per_lap  # after a lap the diagonal would repeat itself, so it moves on by one topic
        cell = Cell(countries[step % len(countries)], topics[(step + lap) % len(topics)])
        if cell in cells:
            yield cell


def _resolve_selection(
    selection: NameSelection,
    available_names: Sequence[str],
    kind: str,
    survey_name: str,
    is_same_name: Callable[[str, str], bool],
) -> frozenset[str]:
    """Return the names of the survey that a selection means.

    Args:
        kind: `country` or `topic`, for the error message.
        is_same_name: whether a requested name means a name of the survey, though spelt otherwise.

    Raises:
        SelectionError: a requested name is not in the survey.
    """
    if selection == "all":
        return frozenset(available_names)
    if isinstance(selection, str):
        selection = [selection]
    return frozenset(_match_name(name, available_names, kind, survey_name, is_same_name) for name in selection)


def _match_name(
    name: str, available_names: Sequence[str], kind: str, survey_name: str, is_same_name: Callable[[str, str], bool]
) -> str:
    """Return the available name that `name` means: equal, else equal in any case, else by `is_same_name`."""
    if name in available_names:
        return name
    folded_name = name.strip().casefold()
    for candidate in available_names:
        if candidate.casefold() == folded_name:
            return candidate
    for candidate in available_names:
        if is_same_name(name, candidate):
            return candidate
    is_number = kind == "country" and is_country_number(name)
    advice = NUMBER_ADVICE if is_number else _suggest_names(folded_name, available_names)
    raise SelectionError(f"survey '{survey_name}' has no {kind} '{name}'.", advice)


def _is_same_country(requested_name: str, survey_country: str) -> bool:
    """Whether two names are spellings or codes of the same country; False for an unknown country, and for a number."""
    code = None if is_country_number(requested_name) else country_code(requested_name)
    return code is not None and code == country_code(survey_country)


def _suggest_names(normalized_name: str, available_names: Iterable[str]) -> str:
    """Return a hint with up to three similar names, or up to 20 of all names if none is similar."""
    name_by_folded = {name.casefold(): name for name in available_names}
    containing = [name for folded, name in name_by_folded.items() if normalized_name and normalized_name in folded]
    suggestions = containing or [
        name_by_folded[folded] for folded in difflib.get_close_matches(normalized_name, name_by_folded, n=3, cutoff=0.7)
    ]
    if suggestions:
        return f"Did you mean {' or '.join(repr(name) for name in suggestions[:3])}?"
    all_names = list(name_by_folded.values())
    omitted_count = f" and {len(all_names) - 20} more" if len(all_names) > 20 else ""
    return f"It has {', '.join(all_names[:20])}{omitted_count}."
