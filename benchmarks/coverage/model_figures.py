"""Correlations over models, such as that of peer agreement with alignment: other models, or families, are resampled."""

from __future__ import annotations

from auditor.metrics.people.over_models import correlate_models
from benchmarks.coverage import naive
from benchmarks.coverage.estimates import to_interval
from benchmarks.coverage.figures import Figure, Study
from benchmarks.coverage.rule import Interval
from benchmarks.coverage.worlds.model_worlds import MODEL_DESIGNS, MODEL_WORLDS, ModelSample


def _correlate(sample: ModelSample, *, ranks: bool) -> Interval:
    return to_interval(correlate_models(sample.first, sample.second, list(map(str, sample.family)), ranks=ranks))


MODEL_FIGURES = (
    Figure(
        "correlation over models",
        lambda s: _correlate(s, ranks=False),
        lambda s: naive.fisher_interval(s.first, s.second),
        "Fisher's, over models without regard to families",
    ),
    Figure(
        "rank correlation over models",
        lambda s: _correlate(s, ranks=True),
        lambda s: naive.bonett_wright_interval(s.first, s.second),
        "Bonett and Wright's, over models without regard to families",
    ),
)

MODEL_STUDY = Study("models", __name__, MODEL_FIGURES, MODEL_WORLDS, MODEL_DESIGNS, n_unit_kinds=1)
