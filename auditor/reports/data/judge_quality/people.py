"""Agreement of people with each other, and whether a judge may replace one of them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from auditor.domain.labels import RaterKind
from auditor.metrics.annotator_test import MIN_ITEMS, AnnotatorTest, alternative_annotator_test
from auditor.metrics.estimate import Estimate
from auditor.metrics.unit_means import share_over_units
from auditor.reports.data.judge_quality.labelled_traces import LabelledTraces
from auditor.reports.data.judge_quality.schema import AnnotatorTestRow, RaterAgreementRow

EPSILON_BY_RATER_KIND: Mapping[RaterKind, float] = {"expert": 0.2, "skilled": 0.15, "crowd": 0.1}
"""What the lower cost of a judge is worth, by the kind of rater (Calderon, Reichart & Dror, ACL 2025)."""
MIN_RATERS = 3
"""Fewest labels of a trace for the test: with two, a rater is compared with a single other one."""
CHANCE_REASON = "raters agree on at most half of the traces, so the limit is not known"


def measure_rater_agreement(traces: LabelledTraces) -> RaterAgreementRow:
    """Estimate how often two random raters of a trace agree, and the limit that this sets to any judge."""
    n = traces.n_ratings
    n_valid = np.nansum(traces.ratings, axis=0)
    is_shared = n >= 2
    n_pairs = np.where(is_shared, n * (n - 1), 1)
    agreement = (n_valid * (n_valid - 1) + (n - n_valid) * (n - n_valid - 1)) / n_pairs
    units = {unit: np.asarray(names)[is_shared].tolist() for unit, names in traces.matrix.units.items()}
    share = share_over_units(
        agreement[is_shared], np.ones(int(is_shared.sum())), units, empty_reason="no trace has labels of two raters"
    )
    return RaterAgreementRow(
        raters=len(traces.raters),
        shared=int(is_shared.sum()),
        agreement=share,
        max_accuracy=_limit_accuracy(share),
    )


def _limit_accuracy(agreement: Estimate) -> Estimate:
    """The largest accuracy that any verdicts can have against a random rater, from the agreement of two raters.

    If a share p of the raters says VALID, two of them agree with probability A = 1 - 2p(1 - p), and the better verdict
    is right with probability (1 + √(2A - 1)) / 2, which is concave in A: by Jensen's inequality it bounds the mean.
    """
    if agreement.value is None:
        return Estimate(None, agreement.n, reason=agreement.reason)
    if agreement.value <= 0.5:
        return Estimate(None, agreement.n, reason=CHANCE_REASON)
    value, low, high = (
        None if end is None else (1 + max(0.0, 2 * end - 1) ** 0.5) / 2
        for end in (agreement.value, agreement.ci_low, agreement.ci_high)
    )
    return Estimate(value, agreement.n, low, high, agreement.reason, agreement.resampled)


def build_annotator_tests(traces: LabelledTraces) -> list[AnnotatorTestRow]:
    """Test for each judge and kind of rater whether it may replace one; the test over topics decides."""
    return [
        _test_judge(traces, judge, kind) for judge in range(len(traces.matrix.judges)) for kind in EPSILON_BY_RATER_KIND
    ]


def _test_judge(traces: LabelledTraces, judge: int, rater_kind: RaterKind) -> AnnotatorTestRow:
    """Test one judge, over traces and over topics, or items of a task."""
    epsilon = EPSILON_BY_RATER_KIND[rater_kind]
    verdicts = traces.matrix.unconditional_verdicts[judge]
    clusters = np.asarray(list(traces.matrix.units.values())[-1])
    plain, clustered = (
        alternative_annotator_test(traces.ratings, verdicts, epsilon=epsilon, min_raters=MIN_RATERS, clusters=labels)
        for labels in (None, clusters)
    )
    return AnnotatorTestRow(
        judge=traces.matrix.judges[judge],
        rater_kind=rater_kind,
        epsilon=epsilon,
        min_raters=MIN_RATERS,
        passed=clustered.passed,
        winning_rate=clustered.winning_rate,
        advantage_probability=clustered.advantage_probability,
        passed_over_traces=plain.passed,
        winning_rate_over_traces=plain.winning_rate,
        traces=clustered.n,
        missing=_count_missing(traces, verdicts, clustered),
        reason=clustered.reason,
    )


def _count_missing(traces: LabelledTraces, verdicts: np.ndarray, test: AnnotatorTest) -> int:
    """Further labels for a test of three raters on as few traces as it needs; 0 if it was possible.

    Traces that already have most labels come first, since they lack the fewest.
    """
    if test.passed is not None:
        return 0
    n_ratings = np.sort(traces.n_ratings[~np.isnan(verdicts)])[::-1][:MIN_ITEMS]
    return max(1, int(np.maximum(MIN_RATERS - n_ratings, 0).sum()))
