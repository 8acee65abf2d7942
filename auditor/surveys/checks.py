"""What is odd in a survey: nothing here is an error, all of it is worth a look before an audit is built on it."""

from __future__ import annotations

import difflib
import itertools
import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from auditor.domain import Survey, SurveyCell
from auditor.surveys.countries import country_code
from auditor.surveys.regions import region_of
from auditor.surveys.survey_facts import SurveyFacts

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MIN_RESPONDENTS = 100
MAX_NONRESPONSE = 0.3
OUTLIER_THRESHOLD_SD = 5.0
"""Robust standard deviations from a topic's median at which a country stands out."""
SHARE_SUM_TOLERANCE = 0.011
"""Three shares rounded to whole percent may miss their sum by so much."""
MIN_RELIABILITY = 0.9
MAX_NAMES_SHOWN = 5
NAME_SIMILARITY_THRESHOLD = 0.92
"""Ratio of `difflib` above which two names are spelt almost alike."""
MAX_COMPARISON_COST = 80_000_000
"""Bound on the pairs of names that are compared letter by letter, in units of about 20 ns; see `_cost`."""


def check_survey(survey: Survey, facts: SurveyFacts | None = None) -> list[str]:
    """Odd things in a survey, one line each; an empty list is a survey with nothing odd.

    Args:
        survey: the survey.
        facts: what only the microdata tell, if there is any.
    """
    return [line for lines in findings_by_check(survey, facts) for line in lines]


def findings_by_check(survey: Survey, facts: SurveyFacts | None = None) -> list[list[str]]:
    """The lines of `check_survey`, those of each check together."""
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
    unknown = [c for c in survey.countries if country_code(c) is None]
    if unknown:
        yield f"{_format_names(unknown)}: no country of ISO 3166, so it has no region and only its own name is blinded."
    placed = set(survey.countries).difference(unknown)
    homeless = [c for c in survey.countries if c in placed and region_of(c) is None]
    if homeless:
        yield f"{_format_names(homeless)}: in no region of the grouping 'western'."


def _check_similar_names(survey: Survey) -> Iterator[str]:
    for kind, names in (("topics", survey.topics), ("countries", survey.countries)):
        folded = [name.casefold() for name in names]
        matcher, left = difflib.SequenceMatcher(None), MAX_COMPARISON_COST
        pairs = _find_candidate_pairs(folded)
        for done, (i, j) in enumerate(map(tuple, pairs)):
            left -= _comparison_cost(len(folded[i]), len(folded[j]))
            if left < 0:
                yield f"{len(pairs) - done:,} more pairs of {kind} may be spelt almost alike; they were not compared."
                break
            matcher.set_seqs(folded[i], folded[j])
            if matcher.ratio() > NAME_SIMILARITY_THRESHOLD:
                yield f"the {kind} '{names[i]}' and '{names[j]}' are spelt almost alike: are they one?"


def _comparison_cost(length_a: int, length_b: int) -> int:
    """What comparing two names takes; `difflib` passes over common letters in names of 200 letters and more."""
    return min(length_a * length_b, 30 * (length_a + length_b))


def _find_candidate_pairs(names: Sequence[str]) -> NDArray[np.intp]:
    """The pairs of positions whose names share enough letters and pairs of letters to be alike: shape (pairs, 2).

    A ratio r = 2M / T, of M letters in matching blocks and T letters in all, needs M letters in common in any order.
    Any two blocks have an unmatched letter between them, so there are T - 2M + 1 blocks at most, and they have
    M - (T - 2M + 1) pairs of neighbouring letters in common at least.
    """
    import numpy as np  # only here and below: all commands that load a survey import this module

    letters, neighbours = _count_parts(names), _count_parts([[*itertools.pairwise(name)] for name in names])
    lengths = np.array([len(name) for name in names])
    pairs = [np.empty((0, 2), dtype=np.intp)]
    for i in range(len(names)):
        others = np.arange(i + 1, len(names))
        total = np.maximum(lengths[others] + lengths[i], 1)
        others = others[2.0 * _count_shared_parts(letters, i, others) / total > NAME_SIMILARITY_THRESHOLD]
        total = lengths[others] + lengths[i]
        others = others[_count_shared_parts(neighbours, i, others) > (1.5 * NAME_SIMILARITY_THRESHOLD - 1) * total - 2]
        pairs.append(np.column_stack([np.full_like(others, i), others]))
    return np.concatenate(pairs)


def _count_parts(texts: Sequence[Sequence[object]]) -> NDArray[np.int32]:
    """How often each part occurs in each text, shape (different parts, texts)."""
    import numpy as np

    row: dict[object, int] = {}
    for text in texts:
        for part in text:
            row.setdefault(part, len(row))
    counts = np.zeros((len(row), len(texts)), dtype=np.int32)
    for i, text in enumerate(texts):
        for part, n in Counter(text).items():
            counts[row[part], i] = n
    return counts


def _count_shared_parts(counts: NDArray[np.int32], i: int, others: NDArray[np.intp]) -> NDArray[np.intp]:
    """How many parts text i shares with each of the others, whatever their order."""
    import numpy as np

    mine = np.flatnonzero(counts[:, i])
    shared: NDArray[np.intp] = np.minimum(counts[np.ix_(mine, others)], counts[mine, i, None]).sum(
        axis=0, dtype=np.intp
    )
    return shared


def _check_coverage(survey: Survey) -> Iterator[str]:
    scored = set(survey.scores)
    for kind, names, place in (("country", survey.countries, 0), ("topic", survey.topics, 1)):
        have = Counter(cell[place] for cell in scored)
        most = max(have.values(), default=0)
        few = [name for name in names if have[name] < 0.5 * most]
        if few:
            yield f"{_format_names(few)}: the {kind} has a score in fewer than half as many cells as the fullest one."


def _check_scale(survey: Survey) -> Iterator[str]:
    scores = list(survey.scores.values())
    if len(scores) >= 3 and min(scores) >= 0:
        yield "no score is below 0: is the scale from 0 to 1, and not from -1 (never acceptable) to +1 (always)?"
    extreme = [f"{c.country} × {c.topic}" for c, s in survey.scores.items() if abs(s) == 1]
    if extreme:
        yield f"{_format_names(extreme)}: the score is exactly -1 or +1, as if all people said the same."
    for topic, cells in _group_by_topic(survey).items():
        if len(cells) >= 3 and len({c.score for c in cells}) == 1:
            yield f"'{topic}': all countries have the same score."


def _check_outliers(survey: Survey) -> Iterator[str]:
    for topic, cells in _group_by_topic(survey).items():
        scores = [c.score for c in cells if c.score is not None]
        if len(scores) < 8:
            continue
        median = statistics.median(scores)
        # 1.4826 makes the median absolute deviation a standard deviation where scores are normal.
        spread = 1.4826 * statistics.median(abs(s - median) for s in scores)
        for cell in cells:
            if (
                cell.score is not None
                and spread > 0
                and abs(cell.score - median) > max(OUTLIER_THRESHOLD_SD * spread, 0.5)
            ):
                yield f"{cell.cell.country} × {topic}: {cell.score:.2f} is far from the other countries ({median:.2f})."


def _check_respondents(survey: Survey) -> Iterator[str]:
    scored = [c for c in survey.cells if c.score is not None]
    few = [f"{_format_cell(c)} ({c.n})" for c in scored if c.n is not None and c.n < MIN_RESPONDENTS]
    if few:
        yield f"{_format_names(few)}: fewer than {MIN_RESPONDENTS} respondents."
    silent = [
        f"{_format_cell(c)} ({c.nonresponse:.0%})"
        for c in scored
        if c.nonresponse is not None and c.nonresponse > MAX_NONRESPONSE
    ]
    if silent:
        yield f"{_format_names(silent)}: more than {MAX_NONRESPONSE:.0%} gave no answer."


def _check_shares(survey: Survey) -> Iterator[str]:
    over, apart = [], []
    for cell in survey.cells:
        parts = (cell.acceptable, cell.not_a_moral_issue, cell.unacceptable)
        if cell.score is None or None in parts:
            continue
        acceptable, neither, unacceptable = (p or 0.0 for p in parts)
        answered = acceptable + neither + unacceptable
        if answered + (cell.nonresponse or 0.0) > 1 + SHARE_SUM_TOLERANCE:
            over.append(_format_cell(cell))
        # The score may be of all people asked, or of those who answered.
        ways = [acceptable - unacceptable] + ([(acceptable - unacceptable) / answered] if answered else [])
        if min(abs(cell.score - way) for way in ways) > SHARE_SUM_TOLERANCE:
            apart.append(_format_cell(cell))
    if over:
        yield f"{_format_names(over)}: the shares add up to more than 1."
    if apart:
        yield f"{_format_names(apart)}: the score is not what the shares give."


def _check_topic_words(survey: Survey) -> Iterator[str]:
    bare = [topic for topic in survey.topics if len(survey.words.get(topic, ())) < 2]
    if bare:
        yield f"{_format_names(bare)}: no list of words that give the topic away, so reviewers may recognise it."


def _check_microdata(facts: SurveyFacts) -> Iterator[str]:
    for reason, count in facts.left_out.items():
        yield f"{count} rows of the file could not be used: {reason}."
    yield from facts.notes
    whole = facts.reliability.reliability
    if whole is None:
        yield f"no split-half reliability: {facts.reliability.reason}."
    elif whole < MIN_RELIABILITY:
        ceiling = facts.reliability.ceiling
        yield f"split-half reliability is {whole:.2f}: no model can be expected to reach r above {ceiling:.2f}."
    moved = [
        f"{c.country} × {c.topic} ({c.low:.2f} to {c.high:.2f})"
        for c in facts.cells
        if c.low is not None and c.high is not None and c.low < 0 < c.high and c.high - c.low > MAX_NONRESPONSE
    ]
    if moved:
        yield f"{_format_names(moved)}: people without an answer could turn the score's sign."


def _group_by_topic(survey: Survey) -> dict[str, list[SurveyCell]]:
    scored: dict[str, list[SurveyCell]] = {topic: [] for topic in survey.topics}
    for cell in survey.cells:
        if cell.score is not None:
            scored[cell.cell.topic].append(cell)
    return scored


def _format_cell(cell: SurveyCell) -> str:
    return f"{cell.cell.country} × {cell.cell.topic}"


def _format_names(names: Sequence[str]) -> str:
    more = f" and {len(names) - MAX_NAMES_SHOWN} more" if len(names) > MAX_NAMES_SHOWN else ""
    return ", ".join(names[:MAX_NAMES_SHOWN]) + more
