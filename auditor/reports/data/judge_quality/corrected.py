"""Shares of VALID of each model and their differences, corrected by people's labels on a random sample."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from auditor.metrics.cross_fitting import DEFAULT_FOLDS, cross_fit_predictions
from auditor.metrics.difference_interval import subtract_independent
from auditor.metrics.estimate import Estimate, ShareEstimate
from auditor.metrics.judge_accuracy import rogan_gladen
from auditor.metrics.prediction_powered import prediction_powered_mean
from auditor.metrics.unit_means import share_over_units
from auditor.reports.data.adjusted_tests import adjust_rows
from auditor.reports.data.judge_quality.judges import estimate_excess
from auditor.reports.data.judge_quality.label_columns import LabelColumns
from auditor.reports.data.judge_quality.labelled_traces import LabelledTraces
from auditor.reports.data.judge_quality.schema import CorrectedDifferenceRow, CorrectedShareRow
from auditor.reports.data.report_source import FloatArray

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
    return CorrectedShareRow(
        model=model,
        traces=len(columns.rows),
        labels=columns.n,
        unsure=int((traces.n_unsure[columns.rows] > 0).sum()),
        missing_labels=_count_missing(columns.n, corrected),
        judges=_judge_share(judged, columns),
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


def _count_missing(n_labels: int, corrected: Estimate) -> int:
    """Labels that are missing before decisions rest on a corrected share; at least 1 where it has no interval."""
    missing = max(0, MIN_MODEL_LABELS - n_labels)
    return max(missing, 1) if corrected.ci_low is None else missing


def _judge_share(judged: FloatArray, columns: LabelColumns) -> ShareEstimate:
    """Mean over traces of the share of VALID, with an interval over other countries and topics."""
    return share_over_units(judged, np.ones_like(judged), columns.units, empty_reason="no verdict is usable")


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
    features = np.stack([panel, _mean_support(traces), _log_lengths(traces)], axis=1)
    predictions = np.full(len(panel), np.nan)
    predictions[rows] = cross_fit_predictions(
        features[rows], labels[rows], weights=1 / np.nan_to_num(columns.inclusion, nan=1.0), seed=seed
    )
    return predictions


def _mean_support(traces: LabelledTraces) -> FloatArray:
    """Mean over judges of the stated probability of VALID, shape (traces,); the votes where none is stated."""
    verdicts, confidence = traces.matrix.unconditional_verdicts, traces.matrix.confidence
    support = np.where(verdicts == 1, confidence, 1 - confidence)
    is_stated = ~np.isnan(support) & ~np.isnan(verdicts)
    n_stated = is_stated.sum(axis=0)
    means = np.where(is_stated, support, 0.0).sum(axis=0) / np.maximum(n_stated, 1)
    return np.where(n_stated > 0, means, traces.panel_share)


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
