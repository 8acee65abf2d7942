"""How high agreement could be, and how high it is without any model: the ceiling, the baselines, the gain over them."""

from __future__ import annotations

import numpy as np

from auditor.errors import AuditorError
from auditor.metrics.bootstrap import MAE, PEARSON
from auditor.metrics.correlation import pearson
from auditor.metrics.jackknife import crossed_jackknife, paired_jackknife
from auditor.reports.estimates import resampled, unmeasured
from auditor.reports.measures import BaselineRow, CeilingRow, Estimate, GainRow
from auditor.reports.source import Floats, Source
from auditor.surveys.baselines import baselines as baselines_of
from auditor.surveys.facts import Reliability, SurveyFacts, load_facts

TOPIC_MEAN = "topic mean"


def ceiling(source: Source) -> list[CeilingRow]:
    """The survey's agreement with itself, over all its cells and within topics; null where no respondents are known."""
    facts = _facts(source)
    if isinstance(facts, str):
        return [CeilingRow(scope=s, reliability=unmeasured(facts), largest_r=None) for s in ("all", "within topics")]
    return [_ceiling("all", facts.reliability), _ceiling("within topics", facts.reliability_within_topics)]


def _facts(source: Source) -> SurveyFacts | str:
    """The facts beside the survey, or why there are none."""
    if source.config is None:
        return "scores were imported, and with them no respondents"
    if source.config.survey is None:
        return "the audit has no survey"
    try:
        facts = load_facts(source.config.survey.source)
    except AuditorError as error:
        return error.message
    return facts or "the survey came without its respondents, so it cannot be split in halves"


def _ceiling(scope: str, found: Reliability) -> CeilingRow:
    estimate = Estimate(
        value=found.reliability, n=found.n, ci_low=found.low, ci_high=found.high, reason=found.reason or None
    )
    return CeilingRow(scope=scope, reliability=estimate, largest_r=found.ceiling)


def baselines(source: Source) -> list[BaselineRow]:
    """Every baseline on the cells of every model."""
    return [
        _baseline(source, column, name, predicted)
        for column in range(len(source.columns))
        for name, predicted in _predictions(source).items()
    ]


def _baseline(source: Source, column: int, name: str, predicted: Floats) -> BaselineRow:
    method, model = source.columns[column]
    same_cells = np.where(np.isnan(source.matrix[column]), np.nan, predicted)
    table = (same_cells, source.truth, source.country_index, source.topic_index)
    r, error = (resampled(crossed_jackknife(statistic, *table)) for statistic in (PEARSON, MAE))
    return BaselineRow(model=model, method=method, baseline=name, pearson_r=r, mae=error)


def gain(source: Source) -> list[GainRow]:
    """What every model knows beyond the topics: its r less the topic mean's, on the same cells."""
    predicted = _predictions(source)[TOPIC_MEAN]
    return [_gain(source, column, predicted) for column in range(len(source.columns))]


def _gain(source: Source, column: int, predicted: Floats) -> GainRow:
    method, model = source.columns[column]
    scores, truth = source.matrix[column], source.truth
    there = ~np.isnan(scores) & ~np.isnan(truth) & ~np.isnan(predicted)
    more = paired_jackknife(PEARSON, scores, predicted, truth, source.country_index, source.topic_index)
    return GainRow(
        model=model,
        method=method,
        baseline=TOPIC_MEAN,
        gain=resampled(more),
        pearson_r=pearson(scores[there], truth[there]).r,
        baseline_r=pearson(predicted[there], truth[there]).r,
    )


def _predictions(source: Source) -> dict[str, Floats]:
    """Each baseline, shape (cells,); nan where it has nothing to go by."""
    return {
        name: np.array([scores.get(cell, np.nan) for cell in source.cells], dtype=float)
        for name, scores in baselines_of(source.survey).items()
    }
