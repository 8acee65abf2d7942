"""Figures that rest on people's labels on a random sample: corrected shares, and how well judges agree with people."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from auditor.metrics.intervals.estimate import Estimate
from auditor.metrics.intervals.paired import subtract_independent
from auditor.metrics.judges.accuracy import JudgeQuality, judge_quality, rogan_gladen
from auditor.metrics.judges.bias import regress_errors
from auditor.metrics.labels.calibration import confidence_calibration_error
from auditor.metrics.labels.prediction_powered import cross_fit_predictions, prediction_powered_mean
from benchmarks.coverage import naive
from benchmarks.coverage.estimates import to_interval
from benchmarks.coverage.figures import Figure, Study
from benchmarks.coverage.rule import Interval
from benchmarks.coverage.worlds.design import Bools, Floats
from benchmarks.coverage.worlds.label_worlds import LABEL_DESIGNS, LABEL_WORLDS, MAX_LABELS, LabelSample


def _correct(sample: LabelSample, judged: Floats, is_selected: Bools | None = None) -> Estimate:
    """The corrected share of these traces."""
    rows = np.ones(len(judged), dtype=np.bool_) if is_selected is None else is_selected
    return prediction_powered_mean(judged[rows], sample.labels[rows], strata=sample.strata[rows], bounds=(0.0, 1.0))


def _of_these_traces(sample: LabelSample) -> Interval:
    return to_interval(_correct(sample, sample.panel))


def _calibrated(sample: LabelSample) -> Interval:
    features = np.stack([sample.panel, sample.confidence, sample.length], axis=1)
    return to_interval(_correct(sample, cross_fit_predictions(features, sample.labels)))


def _over_other_units(sample: LabelSample) -> Interval:
    return to_interval(
        prediction_powered_mean(
            sample.panel,
            sample.labels,
            strata=sample.strata,
            clusters=sample.units,
            target="super",
            bounds=(0.0, 1.0),
        )
    )


def _difference(sample: LabelSample) -> Interval:
    first, second = (_correct(sample, sample.panel, sample.model == model) for model in (0, 1))
    return to_interval(subtract_independent(first, second))


def _difference_over_other_units(sample: LabelSample) -> Interval:
    rows = sample.model < 2
    is_first = sample.model[rows] == 0
    scale = np.where(is_first, 1 / is_first.mean(), -1 / (1 - is_first.mean()))
    centres = [_correct(sample, sample.panel, sample.model == model).value or 0.0 for model in (0, 1)]
    centre = np.where(is_first, *centres)
    deviation = prediction_powered_mean(
        (sample.panel[rows] - centre) * scale,
        (sample.labels[rows] - centre) * scale,
        strata=sample.strata[rows],
        clusters={unit: labels[rows] for unit, labels in sample.units.items()},
        target="super",
    )
    value, low, high = to_interval(deviation)
    shift = centres[0] - centres[1]
    return value + shift, None if low is None else low + shift, None if high is None else high + shift


def _rogan_gladen(sample: LabelSample) -> Interval:
    verdicts = (sample.panel > 0.5).astype(np.float64)
    return to_interval(rogan_gladen(verdicts, sample.labels, strata=sample.strata))


@lru_cache(maxsize=1)
def _measure_quality(sample: LabelSample) -> JudgeQuality:
    return judge_quality(sample.verdicts[0], sample.labels, strata=sample.strata)


def _quality(name: str) -> Callable[[LabelSample], Interval]:
    """One figure of the first judge."""
    return lambda sample: to_interval(getattr(_measure_quality(sample), name))


def _confidence(name: str) -> Callable[[LabelSample], Interval]:
    """Slope or intercept of the first judge's confidence in its verdicts."""

    def compute(sample: LabelSample) -> Interval:
        is_right = 1 - np.abs(sample.labels - sample.verdicts[0])
        calibration = confidence_calibration_error(sample.confidence, is_right, strata=sample.strata, n_resamples=1)
        return to_interval(getattr(calibration, name))

    return compute


def _error_factor(sample: LabelSample) -> Interval:
    """The change of the first judge's error with the length."""
    rows = ~np.isnan(sample.labels)
    sizes, n_labels = np.bincount(sample.strata), np.bincount(sample.strata[rows], minlength=sample.strata.max() + 1)
    languages = [(sample.language[rows] == language).astype(np.float64) for language in (1, 2)]
    effect = regress_errors(
        sample.verdicts[0][rows] - sample.labels[rows],
        np.stack([sample.length[rows], *languages], axis=1),
        {unit: labels[rows] for unit, labels in sample.units.items()},
        weights=(sizes / np.maximum(n_labels, 1))[sample.strata[rows]],
    )[0]
    return to_interval(effect)


def _judges_alone(sample: LabelSample) -> Interval:
    return naive.student_interval(sample.panel)


def _independent_labels(sample: LabelSample) -> Interval:
    """The judges' mean minus their mean error, as if the labelled traces were a simple random sample."""
    rows = ~np.isnan(sample.labels)
    error, low, high = naive.student_interval((sample.labels - sample.panel)[rows])
    assert low is not None
    assert high is not None
    mean = float(sample.panel.mean())
    return mean + error, mean + low, mean + high


def _unweighted_accuracy(sample: LabelSample) -> Interval:
    rows = ~np.isnan(sample.labels)
    return naive.student_interval(1 - np.abs(sample.labels - sample.verdicts[0])[rows])


def _judges_alone_difference(sample: LabelSample) -> Interval:
    return naive.welch_interval(*(sample.panel[sample.model == model] for model in (0, 1)))


IID_LABEL = "judges’ mean minus their mean error, labels as a simple random sample"


def _of_labels(
    key: str,
    compute: Callable[[LabelSample], Interval],
    control: Callable[[LabelSample], Interval] | None = None,
    label: str = "",
) -> Figure:
    """A figure whose interval is over other samples of the same traces: its oracle knows the number of labels."""
    return Figure(key, compute, control, label, count_units=lambda design: MAX_LABELS)


LABEL_FIGURES = (
    _of_labels(
        "corrected mean of these traces", _of_these_traces, _judges_alone, "judges alone, Student's over traces"
    ),
    Figure("corrected mean over other units", _over_other_units, _independent_labels, IID_LABEL),
    _of_labels("calibrated mean of these traces", _calibrated, _judges_alone, "judges alone, Student's over traces"),
    _of_labels("rogan-gladen share of these traces", _rogan_gladen),
    _of_labels(
        "corrected difference of these traces",
        _difference,
        _judges_alone_difference,
        "judges alone, Welch's over traces",
    ),
    Figure("corrected difference over other units", _difference_over_other_units),
    _of_labels("judge accuracy", _quality("accuracy"), _unweighted_accuracy, "Student's, over labels without weights"),
    _of_labels("judge sensitivity", _quality("sensitivity")),
    _of_labels("judge specificity", _quality("specificity")),
    _of_labels("kappa with people", _quality("kappa")),
    _of_labels("confidence slope", _confidence("slope")),
    _of_labels("confidence intercept", _confidence("intercept")),
    Figure("error factor", _error_factor),
)

LABEL_STUDY = Study("labels", __name__, LABEL_FIGURES, LABEL_WORLDS, LABEL_DESIGNS)
