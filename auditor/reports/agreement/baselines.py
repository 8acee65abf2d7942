"""How high agreement could be, how high it is without any model, and what a model knows beyond that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from auditor.domain import Cell
from auditor.errors import AuditorError
from auditor.metrics.bootstrap import MAE, PEARSON
from auditor.metrics.jackknife import crossed_jackknife
from auditor.metrics.within_topic import within_topics
from auditor.reports.coverage.missing_scores import explained, unscored
from auditor.reports.estimate_conversion import resampled, unmeasured
from auditor.reports.measurement_schema import BaselineRow, CeilingRow, Estimate, GainRow
from auditor.reports.report_source import Floats, Source
from auditor.surveys.baselines import baselines as baselines_of
from auditor.surveys.baselines import fitted_baselines
from auditor.surveys.survey_facts import Reliability, SurveyFacts, load_facts

FLAT = {
    "scores constant within topics": "the model says the same of a topic in every country",
    "truth constant within topics": "people say the same of a topic in every country",
    "scores and truth constant within topics": "neither the model nor people differ between countries on any topic",
}


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
    left_out, full = baselines_of(source.survey), fitted_baselines(source.survey)
    return [
        _baseline(source, column, name, _array(source, others), _array(source, full[name]))
        for column in range(len(source.columns))
        for name, others in left_out.items()
    ]


def _baseline(source: Source, column: int, name: str, left_out: Floats, full: Floats) -> BaselineRow:
    method, model = source.columns[column]
    missing = np.isnan(source.matrix[column]) | np.isnan(left_out)
    r, error = (
        resampled(
            crossed_jackknife(
                statistic, np.where(missing, np.nan, scores), source.truth, source.country_index, source.topic_index
            )
        )
        for statistic, scores in ((PEARSON, full), (MAE, left_out))
    )
    why = unscored(source, column)
    return BaselineRow(
        model=model, method=method, baseline=name, pearson_r=explained(r, why), mae=explained(error, why)
    )


def gain(source: Source) -> list[GainRow]:
    """What every model knows beyond what each topic is like everywhere."""
    return [_gain(source, column) for column in range(len(source.columns))]


def _gain(source: Source, column: int) -> GainRow:
    method, model = source.columns[column]
    found = within_topics(source.matrix[column], source.truth, source.country_index, source.topic_index)
    told = replace(found, reason=FLAT.get(found.reason or "", found.reason))
    within = explained(resampled(told), unscored(source, column))
    return GainRow(model=model, method=method, within_topics=within, p_value=found.p_value)


def _array(source: Source, scores: Mapping[Cell, float]) -> Floats:
    """Predictions, shape (cells,); nan where there is nothing to go by."""
    return np.array([scores.get(cell, np.nan) for cell in source.cells], dtype=float)
