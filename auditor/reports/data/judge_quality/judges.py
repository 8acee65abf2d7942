"""Accuracy and calibration of judges, what their errors go with, and shares of VALID corrected by people's labels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from auditor.metrics.intervals.estimate import NORMAL_QUANTILE, Estimate, Tested
from auditor.metrics.intervals.multiple_testing import adjust_tests
from auditor.metrics.intervals.paired import subtract_independent, widen_for_choice
from auditor.metrics.intervals.unit_means import share_over_units
from auditor.metrics.judges.accuracy import balanced_accuracy, judge_quality, rogan_gladen
from auditor.metrics.judges.bias import regress_errors
from auditor.metrics.judges.panels import panel_accuracy
from auditor.metrics.labels.calibration import ConfidenceCalibration, confidence_calibration_error
from auditor.metrics.labels.label_plan import detectable_difference
from auditor.metrics.labels.prediction_powered import DEFAULT_FOLDS, cross_fit_predictions, prediction_powered_mean
from auditor.reports.data.adjusted_tests import adjust_rows
from auditor.reports.data.judge_quality.labelled_traces import Bools, LabelColumns, LabelledTraces, compute_valid_shares
from auditor.reports.data.judge_quality.schema import (
    CorrectedDifferenceRow,
    CorrectedShareRow,
    Dimension,
    ErrorFactorRow,
    JudgeAccuracyRow,
    JudgeSplitRow,
    PanelAccuracyRow,
    RefusedSplitRow,
    TransportRow,
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
    matrix, columns = traces.matrix, traces.select(~np.isnan(traces.panel_share))
    # An adaptive panel asks until the majority of all its judges is certain, so all verdicts decide.
    share = compute_valid_shares(matrix.all_verdicts)
    panel = panel_accuracy(
        matrix.unconditional_verdicts[:, columns.rows],
        columns.labels,
        columns.units,
        1 / columns.inclusion,
        valid_shares=share[columns.rows],
        panels=matrix.is_assigned[:, columns.rows] if matrix.is_adaptive else None,
    )
    if panel is None:
        return None
    decided = traces.select(~np.isnan(share) & (share != 0.5))
    majority = (share[decided.rows] > 0.5).astype(np.float64)
    [balanced] = adjust_tests([_balanced_accuracy(majority, decided)], "balanced accuracy of the majority")
    return PanelAccuracyRow(accuracy=panel, balanced_accuracy=balanced, best_judge=matrix.judges[panel.best])


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


MIN_REGRESSION_LABELS = 50
"""Fewest labels of a judge's traces for the regression."""
MIN_FACTOR_LABELS = 10
"""Fewest labels of a language or region for its own coefficient; smaller ones are compared with nothing."""
TRANSPORT_DIMENSIONS: tuple[Dimension, ...] = ("model", "language")


def build_factor_rows(traces: LabelledTraces, groups: Groups) -> list[ErrorFactorRow]:
    """Regress each judge's errors on the properties of the traces; p-values are adjusted for all judges and factors."""
    judges = range(len(traces.matrix.judges))
    return adjust_rows(
        (row for judge in judges for row in _regress_judge(traces, judge, groups)),
        "effect",
        "factors of judges’ errors",
    )


def _regress_judge(traces: LabelledTraces, judge: int, groups: Groups) -> Iterator[ErrorFactorRow]:
    """Yield a row for each property; none with too few labels."""
    verdicts = traces.matrix.unconditional_verdicts[judge]
    columns = traces.select(~np.isnan(verdicts))
    is_labelled = ~np.isnan(columns.labels)
    if columns.n < MIN_REGRESSION_LABELS:
        return
    rows = columns.rows[is_labelled]
    factors = dict(_list_factors(traces, judge, rows, groups))
    if not factors:
        return
    units = {unit: np.asarray(names)[is_labelled].tolist() for unit, names in columns.units.items()}
    effects = regress_errors(
        verdicts[rows] - traces.labels[rows],
        np.stack(list(factors.values()), axis=1),
        units,
        weights=1 / columns.inclusion[is_labelled],
    )
    for factor, effect in zip(factors, effects, strict=True):
        yield ErrorFactorRow(judge=traces.matrix.judges[judge], factor=factor, effect=effect)


def _list_factors(
    traces: LabelledTraces, judge: int, rows: np.ndarray, groups: Groups
) -> Iterator[tuple[str, FloatArray]]:
    """Yield the name and the values, shape (labelled traces,), of each property that varies."""
    lengths = np.log1p(np.asarray(traces.matrix.votes.lengths, dtype=np.float64))[rows]
    recorded_at = traces.matrix.recorded_at[judge]
    order = np.full(len(recorded_at), np.nan)
    recorded = np.nonzero(~np.isnan(recorded_at))[0]
    order[recorded[np.argsort(recorded_at[recorded], kind="stable")]] = np.arange(len(recorded))
    for name, values in (("length", lengths), ("position in the run", order[rows])):
        if not np.isnan(values).any() and values.std() > 0:
            yield name, (values - values.mean()) / values.std()
    own_family = traces.matrix.is_same_family[judge][rows].astype(np.float64)
    if MIN_FACTOR_LABELS <= own_family.sum() <= len(rows) - MIN_FACTOR_LABELS:
        yield "own family", own_family
    for dimension in ("language", "region"):
        names, counts = np.unique(groups[dimension][rows], return_counts=True)
        reference = names[counts.argmax()] if len(names) else ""
        for name, n in zip(names.tolist(), counts.tolist(), strict=True):
            if name and name != reference and n >= MIN_FACTOR_LABELS:
                yield f"{dimension} {name}", (groups[dimension][rows] == name).astype(np.float64)


def build_transport_rows(traces: LabelledTraces, groups: Groups) -> list[TransportRow]:
    """Test by model and by language whether the panel's errors are equal in all groups."""
    rows = (_test_transport(traces, dimension, groups) for dimension in TRANSPORT_DIMENSIONS)
    return adjust_rows((row for row in rows if row is not None), "largest_excess", "equal errors of the panel")


def _test_transport(traces: LabelledTraces, dimension: Dimension, groups: Groups) -> TransportRow | None:
    """Compare the panel's excess in each group with that of the others; None if there is one group only."""
    panel, names = traces.panel_share, groups[dimension]
    is_usable = ~np.isnan(panel) & (names != "")
    is_labelled = is_usable & ~np.isnan(traces.labels)
    all_groups = [str(name) for name in np.unique(names[is_usable])]
    if len(all_groups) < 2:
        return None
    n_labels = {group: int((is_labelled & (names == group)).sum()) for group in all_groups}
    missing = sum(max(0, MIN_GROUP_LABELS - n) for n in n_labels.values())
    if missing:
        reason = f"the test needs {MIN_GROUP_LABELS} labels of each {dimension}"
        undefined = Tested(None, int(is_labelled.sum()), reason=reason)
        return TransportRow(
            dimension=dimension,
            groups=[],
            largest_excess=undefined,
            largest_group=None,
            missing=missing,
            reason=reason,
        )
    compared = all_groups if len(all_groups) > 2 else all_groups[:1]
    differences = [(_compare(traces, is_usable, names == group), group) for group in compared]
    estimate, group = min(differences, key=lambda row: 2.0 if row[0].p_value is None else row[0].p_value)
    p_value = None if estimate.p_value is None else min(1.0, estimate.p_value * len(compared))
    return TransportRow(
        dimension=dimension,
        groups=all_groups,
        largest_excess=Tested(**asdict(widen_for_choice(estimate, len(compared))) | {"p_value": p_value}),
        largest_group=group,
        missing=0,
        reason=estimate.reason,
    )


def _compare(traces: LabelledTraces, is_usable: Bools, is_in_group: Bools) -> Tested:
    """The panel's excess in a group minus that on the other traces."""
    panel = traces.panel_share
    sides = [traces.select(is_usable & side) for side in (is_in_group, ~is_in_group)]
    inside, outside = (estimate_excess(panel[columns.rows], columns) for columns in sides)
    return subtract_independent(inside, outside)


MIN_MODEL_LABELS = 30
"""Labels of each model from which decisions rest on the corrected shares. With as many, errors of at most 30% of the
judges leave an interval of ± 17 points; with fewer, Student's interval needs more normality than labels have."""
MIN_CALIBRATION_LABELS = 50
"""Fewest labels, of all models, for a calibration of votes and confidence: ten for each fold."""


def build_corrected_shares(traces: LabelledTraces, models: Sequence[str], seed: int) -> list[CorrectedShareRow]:
    """Correct the share of VALID of each model that judges ruled on, in the order of `models`."""
    calibrated = _calibrate_votes(traces, seed)
    present = set(traces.models.tolist())
    return [_correct_share(traces, model, calibrated) for model in models if model in present]


def measure_panel_excess(traces: LabelledTraces) -> Estimate:
    """The judges' share of VALID minus people's over all traces, for these traces."""
    panel = traces.panel_share
    columns = traces.select(~np.isnan(panel))
    return estimate_excess(panel[columns.rows], columns)


def _correct_share(traces: LabelledTraces, model: str, calibrated: FloatArray | None) -> CorrectedShareRow:
    """Correct the share of VALID of one model."""
    panel = traces.panel_share
    is_of_model = (traces.models == model) & ~np.isnan(panel)
    columns = traces.select(is_of_model)
    judged = panel[columns.rows]
    corrected = _correct(judged, columns)
    too_few = Estimate(None, columns.n, reason=f"a calibration needs {MIN_CALIBRATION_LABELS} labels of all models")
    if_unsure = [_correct_with_labels(traces, model, traces.labels_if_unsure(value)) for value in (0.0, 1.0)]
    missing = max(0, MIN_MODEL_LABELS - columns.n)
    return CorrectedShareRow(
        model=model,
        traces=len(columns.rows),
        labels=columns.n,
        unsure=int((traces.n_unsure[columns.rows] > 0).sum()),
        missing_labels=max(missing, 1) if corrected.ci_low is None else missing,
        judges=share_over_units(judged, np.ones_like(judged), columns.units, empty_reason="no verdict is usable"),
        people=_correct(np.zeros_like(judged), columns),
        corrected=corrected,
        calibrated=too_few if calibrated is None else _correct(calibrated[columns.rows], columns),
        corrected_elsewhere=_correct(judged, columns, elsewhere=True),
        people_elsewhere=_correct(np.zeros_like(judged), columns, elsewhere=True),
        rogan_gladen=rogan_gladen(
            (judged > 0.5).astype(np.float64), columns.labels, inclusion=columns.inclusion, strata=columns.strata
        ),
        excess=estimate_excess(judged, columns),
        corrected_if_unsure_invalid=if_unsure[0],
        corrected_if_unsure_valid=if_unsure[1],
    )


def _correct_with_labels(traces: LabelledTraces, model: str, labels: FloatArray) -> float | None:
    """The corrected share of a model with other labels, shape (traces,)."""
    panel = traces.panel_share
    columns = traces.select((traces.models == model) & ~np.isnan(panel), labels)
    return _correct(panel[columns.rows], columns).value


def _correct(judged: FloatArray, columns: LabelColumns, *, elsewhere: bool = False) -> Estimate:
    """The mean of people's labels, corrected from the judges' values, for these traces or other units."""
    return prediction_powered_mean(
        judged,
        columns.labels,
        inclusion=columns.inclusion,
        strata=columns.strata,
        clusters=columns.units if elsewhere else None,
        target="super" if elsewhere else "finite",
        bounds=(0.0, 1.0),
    )


def _calibrate_votes(traces: LabelledTraces, seed: int) -> FloatArray | None:
    """Predict each trace's label from votes, confidence and length, shape (traces,); None with too few labels."""
    panel, labels = traces.panel_share, traces.labels
    rows = np.nonzero(~np.isnan(panel) & (traces.strata >= 0))[0]
    columns = traces.select(~np.isnan(panel))
    if columns.n < max(MIN_CALIBRATION_LABELS, DEFAULT_FOLDS):
        return None
    verdicts, confidence = traces.matrix.unconditional_verdicts, traces.matrix.confidence
    support = np.where(verdicts == 1, confidence, 1 - confidence)
    is_stated = ~np.isnan(support) & ~np.isnan(verdicts)
    n_stated = is_stated.sum(axis=0)
    means = np.where(is_stated, support, 0.0).sum(axis=0) / np.maximum(n_stated, 1)
    features = np.stack([panel, np.where(n_stated > 0, means, traces.panel_share), _log_lengths(traces)], axis=1)
    predictions = np.full(len(panel), np.nan)
    predictions[rows] = cross_fit_predictions(
        features[rows], labels[rows], weights=1 / np.nan_to_num(columns.inclusion, nan=1.0), seed=seed
    )
    return predictions


def _log_lengths(traces: LabelledTraces) -> FloatArray:
    """Logarithm of the traces' lengths, shape (traces,); its mean where the length is not known."""
    lengths = np.log1p(np.asarray(traces.matrix.votes.lengths, dtype=np.float64))
    is_known = ~np.isnan(lengths)
    return np.where(is_known, lengths, lengths[is_known].mean() if is_known.any() else 0.0)


# --- differences between models ---------------------------------------------------------------------------------


def build_corrected_differences(
    traces: LabelledTraces, shares: Sequence[CorrectedShareRow]
) -> list[CorrectedDifferenceRow]:
    """Compare all pairs of models that have enough labels; p-values are adjusted for their number."""
    usable = [row for row in shares if row.is_usable]
    rows = [_compare_models(traces, first, second) for first, second in combinations(usable, 2)]
    return adjust_rows(rows, "corrected", "corrected shares of models")


def _compare_models(
    traces: LabelledTraces, first: CorrectedShareRow, second: CorrectedShareRow
) -> CorrectedDifferenceRow:
    """Compare the shares of VALID of two models; their samples are independent."""
    return CorrectedDifferenceRow(
        first=first.model,
        second=second.model,
        judges=(first.judges.value or 0.0) - (second.judges.value or 0.0),
        corrected=subtract_independent(first.corrected, second.corrected),
        corrected_elsewhere=_subtract_elsewhere(traces, first, second),
    )


def _subtract_elsewhere(traces: LabelledTraces, first: CorrectedShareRow, second: CorrectedShareRow) -> Estimate:
    """The difference for other countries and topics, which both models share.

    Deviations from a model's share times N / N_1 for the N_1 traces of the first model, and -N / N_2 for the others,
    have the difference of the deviations as their mean: the linearized difference of two ratios, which does not vary
    with the numbers of traces of a country.
    """
    panel, is_first = traces.panel_share, traces.models == first.model
    is_selected = (is_first | (traces.models == second.model)) & ~np.isnan(panel)
    columns = traces.select(is_selected, groups=traces.models)
    of_first = is_first[columns.rows]
    scale = np.where(of_first, 1 / of_first.mean(), -1 / (1 - of_first.mean()))
    centres = first.corrected.value or 0.0, second.corrected.value or 0.0
    centre = np.where(of_first, *centres)
    deviation = prediction_powered_mean(
        (panel[columns.rows] - centre) * scale,
        (columns.labels - centre) * scale,
        inclusion=columns.inclusion,
        strata=columns.strata,
        clusters=columns.units,
        target="super",
    )
    shift = centres[0] - centres[1]
    value, low, high = (
        None if end is None else end + shift for end in (deviation.value, deviation.ci_low, deviation.ci_high)
    )
    return replace(deviation, value=value, ci_low=low, ci_high=high)
