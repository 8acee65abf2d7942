"""Plausibility checks of a survey: findings are not errors, but should be reviewed before an audit uses the survey."""

from __future__ import annotations

import difflib
import itertools
import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from auditor.domain import Survey, SurveyCell
from auditor.errors import pluralize
from auditor.lazy_imports import import_when_used
from auditor.surveys.countries import country_code, suggest_country
from auditor.surveys.regions import region_of
from auditor.surveys.survey_facts import SurveyFacts
from auditor.text_safety import truncate_text

if TYPE_CHECKING:
    from numpy.typing import NDArray

if not TYPE_CHECKING:
    np = import_when_used("numpy")
else:
    import numpy as np

MIN_RESPONDENTS = 100
MAX_NONRESPONSE = 0.3
"""Largest share of people without an answer; also the largest width of the bounds of a score of uncertain sign."""
OUTLIER_THRESHOLD_SD = 5.0
"""Distance from a topic's median, in robust standard deviations, above which a country is an outlier."""
SHARE_SUM_TOLERANCE = 0.011
"""Largest error of the sum of three shares that are each rounded to whole percent."""
MIN_RELIABILITY = 0.9
MAX_NAMES_SHOWN = 5
NAME_SIMILARITY_THRESHOLD = 0.92
"""Ratio of `difflib` above which two names are spelt almost alike."""
MAX_COMPARISON_COST = 80_000_000
"""Limit on the cost of comparing similar names, in units of about 20 ns; see `_comparison_cost`."""


def findings_by_check(survey: Survey, facts: SurveyFacts | None = None) -> list[list[str]]:
    """Check a survey; return one line per finding, as one list per check in the order of the checks.

    Args:
        survey: the survey.
        facts: the facts of its microdata, if available.
    """
    checks = (
        _check_countries,
        _check_similar_names,
        _check_coverage,
        _check_scale,
        _check_outliers,
        _check_respondents,
        _check_shares,
        _check_topic_words,
    )
    return [*(list(check(survey)) for check in checks), list(_check_microdata(facts)) if facts is not None else []]


def _check_countries(survey: Survey) -> Iterator[str]:
    """Yield a finding for countries that are unknown, and one for countries without a region."""
    unknown_countries = [country for country in survey.countries if country_code(country) is None]
    if unknown_countries:
        pairs = [(country, similar) for country in unknown_countries if (similar := suggest_country(country))]
        suggestions = [f"{similar} by '{truncate_text(country)}'" for country, similar in pairs[:MAX_NAMES_SHOWN]]
        advice = f" Did you mean {' or '.join(suggestions)}?" if suggestions else ""
        yield (
            f"{_format_names(unknown_countries)}: not a country in ISO 3166, so it has no region, and judges may "
            f"recognise it: only the name itself is hidden from them, not its people or cities.{advice}"
        )
    known_countries = set(survey.countries).difference(unknown_countries)
    ungrouped_countries = [
        country for country in survey.countries if country in known_countries and region_of(country) is None
    ]
    if ungrouped_countries:
        yield f"{_format_names(ungrouped_countries)}: not in any region of the grouping 'western'."


def describe_unknown_countries(survey: Survey) -> str:
    """Say which countries of a survey are not known, with the most similar known name; empty if all are known."""
    unknown_countries = [country for country in survey.countries if country_code(country) is None]
    if not unknown_countries:
        return ""
    names = []
    for country in unknown_countries[:MAX_NAMES_SHOWN]:
        suggestion = suggest_country(country)
        names.append(f"'{truncate_text(country)}'" + (f" (did you mean {suggestion}?)" if suggestion else ""))
    n_more = len(unknown_countries) - len(names)
    more = f" and {n_more} more" if n_more else ""
    return (
        f"Unknown {'country' if len(unknown_countries) == 1 else 'countries'} in the survey: {', '.join(names)}{more}. "
        "Without a known country, figures by region are missing, and only the name itself is hidden from judges. "
        "How to fix: Use English names or ISO 3166 codes."
    )


def _check_similar_names(survey: Survey) -> Iterator[str]:
    """Yield a finding per pair of topics or countries whose names are spelt almost alike."""
    for kind, names in (("topics", survey.topics), ("countries", survey.countries)):
        folded_names = [name.casefold() for name in names]
        matcher, remaining_cost = difflib.SequenceMatcher(None), MAX_COMPARISON_COST
        pairs = _find_candidate_pairs(folded_names)
        for n_compared, (i, j) in enumerate(map(tuple, pairs)):
            remaining_cost -= _comparison_cost(len(folded_names[i]), len(folded_names[j]))
            if remaining_cost < 0:
                yield f"Not checked for similar spelling: {pluralize(len(pairs) - n_compared, 'more pair')} of {kind}."
                break
            matcher.set_seqs(folded_names[i], folded_names[j])
            if matcher.ratio() > NAME_SIMILARITY_THRESHOLD:
                yield f"the {kind} '{names[i]}' and '{names[j]}' have similar spelling. Are they the same?"


def _comparison_cost(length_a: int, length_b: int) -> int:
    """Estimate the cost of comparing two names of these lengths, in the units of `MAX_COMPARISON_COST`.

    It is the product of the lengths, but at most 30 times their sum, a rough bound: `difflib` ignores frequent letters
    in names of 200 letters or more.
    """
    return min(length_a * length_b, 30 * (length_a + length_b))


def _find_candidate_pairs(names: Sequence[str]) -> NDArray[np.intp]:
    """Return the positions of pairs of names that may be similar, by letters in common: shape (pairs, 2).

    A ratio r = 2M / T, of M letters in matching blocks and T letters in all, needs M letters in common in any order.
    Any two blocks have an unmatched letter between them, so there are T - 2M + 1 blocks at most, and they have
    M - (T - 2M + 1) pairs of neighbouring letters in common at least.
    """
    letter_counts, neighbour_counts = _count_parts(names), _count_parts([[*itertools.pairwise(name)] for name in names])
    lengths = np.array([len(name) for name in names])
    pairs = [np.empty((0, 2), dtype=np.intp)]
    for i in range(len(names)):
        others = np.arange(i + 1, len(names))
        total_lengths = np.maximum(lengths[others] + lengths[i], 1)
        others = others[2.0 * _count_shared_parts(letter_counts, i, others) / total_lengths > NAME_SIMILARITY_THRESHOLD]
        total_lengths = lengths[others] + lengths[i]
        # From M - (T - 2M + 1) = 3M - T - 1 with M = r T / 2: (1.5 r - 1) T - 1, with 1 of slack.
        others = others[
            _count_shared_parts(neighbour_counts, i, others) > (1.5 * NAME_SIMILARITY_THRESHOLD - 1) * total_lengths - 2
        ]
        pairs.append(np.column_stack([np.full_like(others, i), others]))
    return np.concatenate(pairs)


def _count_parts(texts: Sequence[Sequence[object]]) -> NDArray[np.int32]:
    """Count how often each part, such as a letter, occurs in each text: shape (distinct parts, texts)."""
    row_by_part: dict[object, int] = {}
    for text in texts:
        for part in text:
            row_by_part.setdefault(part, len(row_by_part))
    counts = np.zeros((len(row_by_part), len(texts)), dtype=np.int32)
    for i, text in enumerate(texts):
        for part, count in Counter(text).items():
            counts[row_by_part[part], i] = count
    return counts


def _count_shared_parts(counts: NDArray[np.int32], i: int, others: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the number of parts that text i shares with each of the other texts, in any order: shape (others,).

    Args:
        counts: shape (distinct parts, texts), as returned by `_count_parts`.
        others: shape (others,), positions of the other texts.
    """
    parts_of_text = np.flatnonzero(counts[:, i])
    shared: NDArray[np.intp] = np.minimum(counts[np.ix_(parts_of_text, others)], counts[parts_of_text, i, None]).sum(
        axis=0, dtype=np.intp
    )
    return shared


def _check_coverage(survey: Survey) -> Iterator[str]:
    """Yield findings for countries and topics with far fewer scored cells than the one with most."""
    scored = set(survey.scores)
    # A cell is (country, topic): `key_index` selects one of them.
    for kind, names, key_index in (("country", survey.countries, 0), ("topic", survey.topics, 1)):
        n_scored_by_name = Counter(cell[key_index] for cell in scored)
        max_scored = max(n_scored_by_name.values(), default=0)
        sparse_names = [name for name in names if n_scored_by_name[name] < 0.5 * max_scored]
        if sparse_names:
            yield (
                f"{_format_names(sparse_names)}: the {kind} has scores in fewer than half as many cells as the "
                "one with the most."
            )


def _check_scale(survey: Survey) -> Iterator[str]:
    """Yield findings that suggest a wrong scale: no negative score, scores of exactly -1 or +1, or equal scores."""
    scores = list(survey.scores.values())
    if len(scores) >= 3 and min(scores) >= 0:
        yield "no score is below 0. Check that the scale is -1 (never acceptable) to +1 (always), not 0 to 1."
    extreme_cells = [f"{cell.country} × {cell.topic}" for cell, score in survey.scores.items() if abs(score) == 1]
    if extreme_cells:
        yield f"{_format_names(extreme_cells)}: the score is exactly -1 or +1, as if all respondents agreed."
    for topic, cells in _group_by_topic(survey).items():
        if len(cells) >= 3 and len({cell.score for cell in cells}) == 1:
            yield f"'{topic}': all countries have the same score."


def _check_outliers(survey: Survey) -> Iterator[str]:
    """Yield a finding per cell whose score is far from its topic's median; topics with under 8 scores are skipped."""
    for topic, cells in _group_by_topic(survey).items():
        scores = [cell.score for cell in cells if cell.score is not None]
        if len(scores) < 8:
            continue
        median = statistics.median(scores)
        # For normally distributed scores, 1.4826 times the median absolute deviation estimates the standard deviation.
        robust_sd = 1.4826 * statistics.median(abs(score - median) for score in scores)
        for cell in cells:
            if (
                cell.score is not None
                and robust_sd > 0
                and abs(cell.score - median) > max(OUTLIER_THRESHOLD_SD * robust_sd, 0.5)
            ):
                yield (
                    f"{cell.cell.country} × {topic}: {cell.score:.2f} is far from the median of all countries "
                    f"({median:.2f})."
                )


def _check_respondents(survey: Survey) -> Iterator[str]:
    """Yield findings for scored cells with few respondents, and for those with much nonresponse."""
    scored_cells = [cell for cell in survey.cells if cell.score is not None]
    small_cells = [
        f"{_format_cell(cell)} ({cell.n})" for cell in scored_cells if cell.n is not None and cell.n < MIN_RESPONDENTS
    ]
    if small_cells:
        yield f"{_format_names(small_cells)}: fewer than {MIN_RESPONDENTS} respondents."
    nonresponse_cells = [
        f"{_format_cell(cell)} ({cell.nonresponse:.0%})"
        for cell in scored_cells
        if cell.nonresponse is not None and cell.nonresponse > MAX_NONRESPONSE
    ]
    if nonresponse_cells:
        yield f"{_format_names(nonresponse_cells)}: more than {MAX_NONRESPONSE:.0%} gave no answer."


def _check_shares(survey: Survey) -> Iterator[str]:
    """Yield findings for cells whose shares of answers add up to more than 1, or do not give the score."""
    excess_cells, inconsistent_cells = [], []
    for cell in survey.cells:
        shares = (cell.acceptable, cell.not_a_moral_issue, cell.unacceptable)
        if cell.score is None or None in shares:
            continue
        acceptable, not_moral_issue, unacceptable = (share or 0.0 for share in shares)
        answered_share = acceptable + not_moral_issue + unacceptable
        if answered_share + (cell.nonresponse or 0.0) > 1 + SHARE_SUM_TOLERANCE:
            excess_cells.append(_format_cell(cell))
        # A survey's score may be a mean over all people who were asked, or over those who answered.
        possible_scores = [acceptable - unacceptable] + (
            [(acceptable - unacceptable) / answered_share] if answered_share else []
        )
        if min(abs(cell.score - possible_score) for possible_score in possible_scores) > SHARE_SUM_TOLERANCE:
            inconsistent_cells.append(_format_cell(cell))
    if excess_cells:
        yield f"{_format_names(excess_cells)}: the shares sum to more than 1."
    if inconsistent_cells:
        yield f"{_format_names(inconsistent_cells)}: the score does not match the shares."


def _check_topic_words(survey: Survey) -> Iterator[str]:
    """Yield a finding for topics with fewer than two words that reveal them in a text."""
    topics_without_words = [topic for topic in survey.topics if len(survey.words.get(topic, ())) < 2]
    if topics_without_words:
        yield (
            f"{_format_names(topics_without_words)}: no list of words that give the topic away, so reviewers may "
            "recognise it."
        )


def _check_microdata(facts: SurveyFacts) -> Iterator[str]:
    """Yield findings from the microdata: unusable rows, notes, low reliability, and scores of uncertain sign."""
    for reason, count in facts.left_out.items():
        yield f"{pluralize(count, 'row')} of the file excluded: {reason}."
    yield from facts.notes
    reliability = facts.reliability.reliability
    if reliability is None:
        yield f"split-half reliability is not available: {facts.reliability.reason}."
    elif reliability < MIN_RELIABILITY:
        ceiling = facts.reliability.ceiling
        yield f"split-half reliability is {reliability:.2f}: a perfect model would reach about r = {ceiling:.2f}."
    uncertain_cells = [
        f"{cell.country} × {cell.topic} ({cell.low:.2f} to {cell.high:.2f})"
        for cell in facts.cells
        if cell.low is not None
        and cell.high is not None
        and cell.low < 0 < cell.high
        and cell.high - cell.low > MAX_NONRESPONSE
    ]
    if uncertain_cells:
        yield f"{_format_names(uncertain_cells)}: nonresponse could change the sign of the score."


def _group_by_topic(survey: Survey) -> dict[str, list[SurveyCell]]:
    """Return the cells that have a score by topic, with an empty list for a topic without any."""
    cells_by_topic: dict[str, list[SurveyCell]] = {topic: [] for topic in survey.topics}
    for cell in survey.cells:
        if cell.score is not None:
            cells_by_topic[cell.cell.topic].append(cell)
    return cells_by_topic


def _format_cell(cell: SurveyCell) -> str:
    """Return `country × topic`."""
    return f"{cell.cell.country} × {cell.cell.topic}"


def _format_names(names: Sequence[str]) -> str:
    """Join up to `MAX_NAMES_SHOWN` names by commas, followed by the number of those omitted."""
    omitted_count = f" and {len(names) - MAX_NAMES_SHOWN} more" if len(names) > MAX_NAMES_SHOWN else ""
    return ", ".join(names[:MAX_NAMES_SHOWN]) + omitted_count
