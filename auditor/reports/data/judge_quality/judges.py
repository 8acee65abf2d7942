"""Accuracy and calibration of each judge, and its accuracy in groups of traces."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from auditor.metrics.confidence import NORMAL_QUANTILE
from auditor.metrics.confidence_calibration import ConfidenceCalibration, confidence_calibration_error
from auditor.metrics.difference_interval import subtract_independent
from auditor.metrics.effective_judges import panel_accuracy
from auditor.metrics.estimate import Estimate, Tested
from auditor.metrics.judge_accuracy import balanced_accuracy, judge_quality
from auditor.metrics.label_plan import detectable_difference
from auditor.metrics.multiple_testing import adjust_tests
from auditor.metrics.prediction_powered import prediction_powered_mean
from auditor.reports.data.adjusted_tests import adjust_rows
from auditor.reports.data.judge_quality.label_columns import Bools, LabelColumns
from auditor.reports.data.judge_quality.labelled_traces import LabelledTraces
from auditor.reports.data.judge_quality.schema import (
    Dimension,
    JudgeAccuracyRow,
    JudgeSplitRow,
    PanelAccuracyRow,
    RefusedSplitRow,
)
from auditor.reports.data.report_source import FloatArray

MIN_GROUP_LABELS = 30
"""Fewest labels of a group, and of the others, for a comparison: with 10 labels an accuracy is known to ± 30 points."""
Groups = Mapping[Dimension, NDArray[np.str_]]
"""For each dimension, the group of each trace, shape (traces,); empty text for none."""


def build_judge_rows(traces: LabelledTraces) -> list[JudgeAccuracyRow]:
    """Estimate the accuracy of each judge, in the order of the judges."""
    rows = [_build_judge_row(traces, i) for i in range(len(traces.matrix.judges))]
    return adjust_rows(rows, "balanced_accuracy", "balanced accuracies")


def build_panel_row(traces: LabelledTraces) -> PanelAccuracyRow | None:
    """Estimate the accuracy of the panel's majority, beside its best judge and independent judges."""
    columns = traces.select(~np.isnan(traces.panel_share))
    verdicts = traces.matrix.unconditional_verdicts[:, columns.rows]
    panel = panel_accuracy(verdicts, columns.labels, columns.units, 1 / columns.inclusion)
    if panel is None:
        return None
    share = traces.panel_share
    decided = traces.select(~np.isnan(share) & (share != 0.5))
    majority = (share[decided.rows] > 0.5).astype(np.float64)
    [balanced] = adjust_tests([_balanced_accuracy(majority, decided)], "balanced accuracy of the majority")
    return PanelAccuracyRow(
        majority=panel.majority,
        balanced_accuracy=balanced,
        best_judge=traces.matrix.judges[panel.best],
        gain=panel.gain,
        independent=panel.independent,
        loss=panel.loss,
    )


def _balanced_accuracy(judged: FloatArray, columns: LabelColumns) -> Tested:
    """The balanced accuracy of verdicts on the traces of these columns."""
    return balanced_accuracy(judged, columns.labels, columns.units, inclusion=columns.inclusion, strata=columns.strata)


def _build_judge_row(traces: LabelledTraces, judge: int) -> JudgeAccuracyRow:
    """Estimate the accuracy and calibration of one judge on the traces with its verdict."""
    verdicts = traces.matrix.unconditional_verdicts[judge]
    has_verdict = ~np.isnan(verdicts)
    columns = traces.select(has_verdict)
    judged = verdicts[columns.rows]
    quality = judge_quality(judged, columns.labels, inclusion=columns.inclusion, strata=columns.strata)
    worst, best = (
        _accuracy(traces, verdicts, traces.labels_if_unsure(answers)) for answers in (1 - verdicts, verdicts)
    )
    return JudgeAccuracyRow(
        judge=traces.matrix.judges[judge],
        traces=len(columns.rows),
        labels=columns.n,
        unsure=int((traces.n_unsure[columns.rows] > 0).sum()),
        sensitivity=quality.sensitivity,
        specificity=quality.specificity,
        accuracy=quality.accuracy,
        kappa=quality.kappa,
        excess=estimate_excess(judged, columns),
        balanced_accuracy=_balanced_accuracy(judged, columns),
        accuracy_if_unsure_disagree=worst,
        accuracy_if_unsure_agree=best,
        confidence=_calibrate(traces, judge),
    )


def _accuracy(traces: LabelledTraces, verdicts: FloatArray, labels: FloatArray) -> float | None:
    """The accuracy with other labels, shape (traces,)."""
    columns = traces.select(~np.isnan(verdicts), labels)
    quality = judge_quality(verdicts[columns.rows], columns.labels, inclusion=columns.inclusion, strata=columns.strata)
    return quality.accuracy.value


def estimate_excess(judged: FloatArray, columns: LabelColumns) -> Estimate:
    """Mean of the judge's values minus people's, for these traces."""
    corrected = prediction_powered_mean(
        judged, columns.labels, inclusion=columns.inclusion, strata=columns.strata, bounds=(0.0, 1.0)
    )
    mean = float(judged.mean()) if len(judged) else 0.0
    if corrected.value is None:
        return corrected
    low, high = (None if end is None else mean - end for end in (corrected.ci_high, corrected.ci_low))
    return replace(corrected, value=mean - corrected.value, ci_low=low, ci_high=high)


def _calibrate(traces: LabelledTraces, judge: int) -> ConfidenceCalibration:
    """Compare the judge's confidence in its verdicts with how often people agree with them."""
    verdicts, confidence = traces.matrix.unconditional_verdicts[judge], traces.matrix.confidence[judge]
    has_confidence = ~np.isnan(verdicts) & ~np.isnan(confidence)
    columns = traces.select(has_confidence)
    is_right = 1 - np.abs(columns.labels - verdicts[columns.rows])
    calibration = confidence_calibration_error(
        confidence[columns.rows], is_right, inclusion=columns.inclusion, strata=columns.strata
    )
    reason = calibration.reason if has_confidence.any() else "the judge states no confidence"
    return replace(calibration, reason=reason)


# --- groups of traces -------------------------------------------------------------------------------------------


def build_split_rows(traces: LabelledTraces, groups: Groups) -> list[JudgeSplitRow]:
    """Compare each judge's accuracy between groups of traces that have enough labels."""
    compared = [
        (judge, dimension, group)
        for dimension, names in groups.items()
        for judge in range(len(traces.matrix.judges))
        for group in _list_compared_groups(names)
        if _has_enough_labels(traces, judge, names == group)
    ]
    rows = [
        _compare_group(traces, judge, dimension, group, groups[dimension] == group, len(compared))
        for judge, dimension, group in compared
    ]
    return adjust_rows(rows, "difference", "accuracy of judges by group")


def count_refused_splits(traces: LabelledTraces, groups: Groups) -> list[RefusedSplitRow]:
    """Count the groups that have too few labels of any judge's traces to be compared."""
    rows = []
    is_labelled = ~np.isnan(traces.labels)
    for dimension, names in groups.items():
        n_labels = [int((is_labelled & (names == group)).sum()) for group in _list_groups(names)]
        missing = [max(0, MIN_GROUP_LABELS - n) for n in n_labels]
        if len(n_labels) > 1 and any(missing):
            n_refused = sum(n > 0 for n in missing)
            rows.append(
                RefusedSplitRow(dimension=dimension, groups=len(n_labels), refused=n_refused, missing=sum(missing))
            )
    return rows


def _list_groups(names: NDArray[np.str_]) -> Iterator[str]:
    """The names of groups, in order."""
    return (str(name) for name in np.unique(names) if name)


def _list_compared_groups(names: NDArray[np.str_]) -> list[str]:
    """The groups that are compared with the others; of two the first, since the second is all others."""
    groups = list(_list_groups(names))
    return groups[:1] if len(groups) == 2 else groups


def _has_enough_labels(traces: LabelledTraces, judge: int, is_in_group: Bools) -> bool:
    """Whether the group and the other traces each have enough labelled traces with the judge's verdict."""
    is_labelled = ~np.isnan(traces.labels) & ~np.isnan(traces.matrix.unconditional_verdicts[judge])
    n_inside, n_outside = (int((is_labelled & side).sum()) for side in (is_in_group, ~is_in_group))
    return min(n_inside, n_outside) >= MIN_GROUP_LABELS


def _compare_group(
    traces: LabelledTraces, judge: int, dimension: Dimension, group: str, is_in_group: Bools, n_compared: int
) -> JudgeSplitRow:
    """Compare a judge's accuracy in a group with that on the other traces."""
    inside, outside = (_measure_accuracy(traces, judge, side) for side in (is_in_group, ~is_in_group))
    difference = subtract_independent(inside, outside)
    smallest = None
    if difference.ci_low is not None and difference.ci_high is not None:
        std_error = (difference.ci_high - difference.ci_low) / 2 / NORMAL_QUANTILE
        smallest = min(1.0, detectable_difference(std_error, n_comparisons=n_compared))
    return JudgeSplitRow(
        judge=traces.matrix.judges[judge],
        dimension=dimension,
        group=group,
        labels=inside.n,
        accuracy=inside,
        difference=difference,
        smallest_difference=smallest,
    )


def _measure_accuracy(traces: LabelledTraces, judge: int, is_selected: Bools) -> Estimate:
    """A judge's accuracy on some of the traces."""
    verdicts = traces.matrix.unconditional_verdicts[judge]
    columns = traces.select(~np.isnan(verdicts) & is_selected)
    return judge_quality(
        verdicts[columns.rows], columns.labels, inclusion=columns.inclusion, strata=columns.strata
    ).accuracy
