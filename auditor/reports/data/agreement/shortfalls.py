"""Shortfalls: figures of the models that are beyond a threshold of EvalMORAAL (arXiv 2510.05942) with their interval.

Three thresholds are tested: the mean absolute error on each topic, the variance of the samples of a cell, and the share
of VALID verdicts. The intervals of all of them hold together (Bonferroni over models, thresholds and topics), so that
a page lists any false shortfall in at most 5% of audits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np

from auditor.domain import Method
from auditor.metrics.cell_statistics import MAE
from auditor.metrics.confidence import bonferroni_level
from auditor.metrics.estimate import Estimate
from auditor.metrics.unit_means import mean_over_units
from auditor.reports.data.agreement.groups import estimate_over_cells
from auditor.reports.data.panel.build import bound_variances
from auditor.reports.data.panel.peer_agreement import estimate_valid_shares
from auditor.reports.data.report_model import ReportModel
from auditor.reports.data.report_source import ReportSource
from auditor.reports.data.rescaled_scores import has_rescaled_scores
from auditor.reports.data.sampling_units import cell_units

Threshold = Literal["topic error", "variance", "valid share"]
MAX_TOPIC_MAE = 0.4
MAX_VARIANCE = 0.12
MIN_PEER_AGREEMENT = 0.7
"""Thresholds of failure, as in EvalMORAAL (arXiv 2510.05942)."""


class Shortfall(ReportModel):
    """A figure of one model that is beyond a threshold with its whole interval."""

    model: str
    method: str
    """`direct` for the share of VALID verdicts."""
    threshold: Threshold
    """`topic error`: mean absolute error on a topic above 0.4; `variance`: mean variance of the samples of a cell above
    0.12; `valid share`: share of VALID verdicts below 0.7."""
    topic: str | None
    """Null unless the threshold is that of a topic."""
    figure: Estimate
    """With an interval that holds for all compared figures together (Bonferroni)."""


class ShortfallsReport(ReportModel):
    """Figures beyond a threshold, among all that are compared with one."""

    compared: int
    """Number of figures: topics and variances of all series of scores, and shares of VALID of all models."""
    rows: list[Shortfall]


def find_shortfalls(source: ReportSource) -> ShortfallsReport:
    """Find the figures that are beyond their threshold, given how many are compared."""
    columns = [i for i, (method, _) in enumerate(source.columns) if not has_rescaled_scores(method)]
    varying = [i for i in columns if not np.isnan(source.variance_matrix[i]).all()]
    judged = sorted({count.model for count in source.judge_counts})
    n_compared = len(columns) * len(source.topics) + len(varying) + len(judged)
    if not n_compared:
        return ShortfallsReport(compared=0, rows=[])
    level = bonferroni_level(n_compared)
    rows = [
        *(row for column in columns for row in _compare_topics(source, column, n_compared)),
        *_compare_variances(source, varying, level),
        *_compare_valid_shares(source, level),
    ]
    return ShortfallsReport(compared=n_compared, rows=rows)


def _compare_topics(source: ReportSource, column: int, n_compared: int) -> Iterator[Shortfall]:
    """Yield the topics with a mean absolute error that is shown to be above `MAX_TOPIC_MAE`."""
    method, model = source.columns[column]
    scores, truth = source.score_matrix[column], source.survey_scores
    has_both, clusters = ~(np.isnan(scores) | np.isnan(truth)), source.cluster_countries(scores, truth)
    for position, topic in enumerate(source.topics):
        is_compared = has_both & (source.topic_index == position)
        error = estimate_over_cells(MAE, scores[is_compared], truth[is_compared], clusters[is_compared], n_compared)
        if error.ci_low is not None and error.ci_low > MAX_TOPIC_MAE:
            yield Shortfall(model=model, method=method, threshold="topic error", topic=topic, figure=error)


def _compare_variances(source: ReportSource, columns: Sequence[int], level: float) -> Iterator[Shortfall]:
    """Yield the series whose samples of a cell are shown to vary by more than `MAX_VARIANCE` on average."""
    for column in columns:
        method, model = source.columns[column]
        variance = mean_over_units(
            source.variance_matrix[column], cell_units(source.cells), bound_variances(source.variance_matrix[column]),
            confidence_level=level,
        )  # fmt: skip
        if variance.ci_low is not None and variance.ci_low > MAX_VARIANCE:
            yield Shortfall(model=model, method=method, threshold="variance", topic=None, figure=variance)


def _compare_valid_shares(source: ReportSource, level: float) -> Iterator[Shortfall]:
    """Yield the models whose share of VALID verdicts is shown to be below `MIN_PEER_AGREEMENT`."""
    for model, share in estimate_valid_shares(source, level).items():
        if share.ci_high is not None and share.ci_high < MIN_PEER_AGREEMENT:
            yield Shortfall(model=model, method=Method.DIRECT.value, threshold="valid share", topic=None, figure=share)
