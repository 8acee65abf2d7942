"""An official file into a survey: microdata in, weighted means with their errors and nonresponse out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from auditor.domain import SCORE_MAX, SCORE_MIN, Cell, Survey, SurveyCell
from auditor.surveys.description import topic_words
from auditor.surveys.estimates import bounds, neutral, share, weighted_mean
from auditor.surveys.imputation import Pooled, imputed_means
from auditor.surveys.mapping import Mapping, load_mapping
from auditor.surveys.microdata import ANSWERED, Microdata, read_microdata
from auditor.surveys.reliability import SPLITS, half_scores, reliability
from auditor.surveys.survey_facts import CellFacts, SurveyFacts

IMPUTATIONS = 20
NAMED_SHARES = ("acceptable", "not_a_moral_issue", "unacceptable")


@dataclass(frozen=True, slots=True)
class Imported:
    """A survey made of an official file, and what only the microdata tell."""

    survey: Survey
    facts: SurveyFacts


def import_survey(
    path: str | Path,
    mapping: str | Path = "wvs7",
    name: str | None = None,
    seed: int = 0,
    imputations: int = IMPUTATIONS,
    splits: int = SPLITS,
) -> Imported:
    """Read an official file, as downloaded.

    Scores are weighted means of those who answered; every other treatment of nonresponse is in the facts. Only the
    columns that the mapping names are read.

    Args:
        path: a `.csv` or SPSS `.sav` file.
        mapping: a built-in mapping's name (`builtin_mappings()`), or path of a mapping file.
        name: the survey's name; the file's own without it.
        seed: of imputation and split halves.
        imputations: completed copies for `impute`; 0 leaves it out.
        splits: random halves for the reliability.

    Raises:
        SurveyError: there is no such mapping, or it cannot be used.
        ImportFileError: the file cannot be used; the message names row and column.
    """
    path, rules = Path(path), load_mapping(mapping)
    data = read_microdata(path, rules)
    pairs = list(_cells(data, np.random.default_rng(seed), imputations))
    halves = half_scores(data, seed, splits)
    facts = SurveyFacts(
        respondents=data.weight.size,
        left_out=data.left_out,
        notes=data.notes,
        reliability=reliability(halves),
        reliability_within_topics=reliability(halves, within_topics=True),
        cells=tuple(f for _, f in pairs),
    )
    return Imported(_survey(name or path.stem, rules, tuple(c for c, _ in pairs)), facts)


def _survey(name: str, rules: Mapping, cells: tuple[SurveyCell, ...]) -> Survey:
    return Survey(
        name=name,
        title=rules.title,
        source=rules.source,
        wording=rules.wording,
        scale=rules.scale,
        cells=cells,
        words={topic: topic_words(topic, rules) for topic in rules.topics.values()},
    )


def _cells(data: Microdata, rng: np.random.Generator, times: int) -> Iterator[tuple[SurveyCell, CellFacts]]:
    # The last row is for ANSWERED, which is -1.
    was_asked = np.array([*data.asked, True])
    for country, start, end in zip(data.countries, data.starts[:-1], data.starts[1:], strict=True):
        one = slice(start, end)
        asked = was_asked[data.kind[one]]
        imputed = imputed_means(data.answers[one], asked, data.weight[one], rng, times)
        for topic, name in enumerate(data.topics):
            yield _cell(data, one, topic, Cell(country, name), asked[:, topic], imputed[topic])


def _cell(
    data: Microdata,
    one: slice,
    topic: int,
    cell: Cell,
    asked: np.ndarray[tuple[int], np.dtype[np.bool_]],
    imputed: Pooled,
) -> tuple[SurveyCell, CellFacts]:
    everybody, kind, answers = data.weight[one], data.kind[one, topic], data.answers[one, topic]
    x, weight = answers[asked], everybody[asked]
    score, filled, ends = weighted_mean(x, weight), neutral(x, weight), bounds(x, weight)
    shares = {n: share(x == data.choices[n], weight) for n in NAMED_SHARES if n in data.choices}
    kinds = {name: share(kind == place, everybody) or 0.0 for place, name in enumerate(data.kinds)}
    measured = score.mean is not None
    return (
        SurveyCell(
            cell=cell,
            score=_on_scale(score.mean),
            n=score.n,
            standard_error=score.standard_error,
            nonresponse=share(kind[asked] != ANSWERED, weight),
            **(shares if measured else {}),
        ),
        CellFacts(
            country=cell.country,
            topic=cell.topic,
            kinds=kinds,
            design_error=score.design_error,
            n_effective=score.n_effective,
            neutral=_on_scale(filled.mean),
            neutral_error=filled.standard_error,
            low=_on_scale(ends[0]) if ends else None,
            high=_on_scale(ends[1]) if ends else None,
            imputed=_on_scale(imputed.mean),
            imputed_error=imputed.standard_error,
            missing_information=imputed.missing_information,
        ),
    )


def _on_scale(score: float | None) -> float | None:
    """Rounding may carry a mean of equal answers past the end of the scale by a hair."""
    return None if score is None else min(SCORE_MAX, max(SCORE_MIN, score))
