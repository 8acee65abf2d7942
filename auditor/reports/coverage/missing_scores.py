"""Why a series of scores has no figure: the cause that is recorded, not the first that arithmetic meets."""

from __future__ import annotations

import numpy as np

from auditor.domain import Method
from auditor.metrics.attenuation import Corrected
from auditor.metrics.correlation import Correlation
from auditor.reports.measurement_schema import Estimate
from auditor.reports.report_source import Source

FLAT = {
    "x constant": "the model gives every cell the same score",
    "y constant": "people say the same everywhere",
    "x and y constant": "the model gives every cell the same score, and people say the same everywhere",
}
"""A metric's words where its x is the model and its y the survey."""


def unscored(source: Source, column: int) -> str | None:
    """Why a series has no score on any cell that people were asked about; None where it has one."""
    method, model = source.columns[column]
    asked = ~np.isnan(source.truth)
    if not asked.any():
        return "people were asked about none of the cells"
    if (~np.isnan(source.matrix[column]) & asked).any():
        return None
    if method == Method.LOGPROB:
        return _unscaled(source, model)
    if method == Method.DIRECT and source.config is not None:
        some = any(t.model == model for t in source.traces)
        return "no sample has a usable score" if some else "no sample has been taken"
    return "no score is recorded"


def _unscaled(source: Source, model: str) -> str:
    mine = [s for s in source.scores if (s.method, s.model) == (Method.LOGPROB.value, model)]
    known = sum(s.raw is not None for s in mine)
    if known > 1:
        return "its log-probabilities differ equally on every cell: without a range they cannot be scaled to [-1, 1]"
    if known == 1:
        return "one cell only has all its comparisons: without a range it cannot be scaled to [-1, 1]"
    if not any(s.measure for s in mine):
        return "the model's log-probabilities cannot be measured"
    return "no cell has all its comparisons"


def why_no_r(found: Correlation | Corrected, unscored: str | None = None) -> str | None:
    """Why a correlation of a model with people, or its interval, is missing; None where nothing is."""
    if unscored is not None and found.r is None:
        return unscored
    return None if found.reason is None else FLAT.get(found.reason, found.reason)


def explained(found: Estimate, why: str | None) -> Estimate:
    """An estimate that says why it has no value, where that is known better."""
    return found if why is None or found.value is not None else found.model_copy(update={"reason": why})
