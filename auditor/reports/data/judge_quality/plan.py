"""How many labels a wanted precision takes, and how precise the labels so far are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from auditor.domain.labels import UNSURE, Label, LabelUnit, SampledUnit
from auditor.domain.terms import Ruling
from auditor.metrics.betting_sequence import SequenceInterval, stratified_confidence_sequence
from auditor.metrics.estimate import Estimate
from auditor.metrics.label_plan import half_width_floor, labels_for_difference, labels_for_half_width
from auditor.reports.data.judge_quality.build import PLANNED_SD
from auditor.reports.data.judge_quality.corrected import MIN_MODEL_LABELS
from auditor.reports.data.judge_quality.labelled_traces import LabelledTraces, load_labelled_traces
from auditor.reports.data.panel.peer_agreement import compute_peer_agreement
from auditor.reports.data.report_model import ReportModel
from auditor.reports.data.report_source import ReportSource

PLANNED_TOPIC_SD = 0.1
"""Planned standard deviation over topics of the judges' error: it is not known before many topics are labelled."""


class ModelPlanRow(ReportModel):
    """Labels of one model."""

    model: str
    traces: int
    labelled: int
    needed: int
    """Labels in all for the wanted precision, those there are included."""


class LabelPlan(ReportModel):
    """Labels for a wanted precision of the corrected shares, and what the labels so far show."""

    half_width: float
    """Wanted half-width of the 95% interval of each model's corrected share, for these traces."""
    sd: float
    """Standard deviation of label minus verdict within strata that the plan uses."""
    is_sd_measured: bool
    """Whether it is that of the labels so far; else it is assumed."""
    models: list[ModelPlanRow]
    needed: int
    difference: float
    """Difference of two models that is to be shown in 80% of samples."""
    needed_for_difference: int
    """Labels of each model for it, corrected for the number of pairs."""
    topics: int
    floor_elsewhere: float | None
    """Half-width for other countries and topics that no number of labels passes, by the variation of the judges' shares
    over countries and topics; null with too few of them."""
    floor_of_error: float | None
    """The same for the judges' error, if it varies over topics with a standard deviation of 0.10."""
    labelled: int
    low: float | None
    high: float | None
    """People's share of VALID over all traces: ends of a confidence sequence, valid however often one looks. Null
    without a sample that was drawn here."""

    @property
    def may_stop(self) -> bool:
        """Whether the labels so far give people's share of VALID over all traces the wanted precision."""
        return self.low is not None and self.high is not None and (self.high - self.low) / 2 <= self.half_width


def plan_labels(source: ReportSource, half_width: float, difference: float) -> LabelPlan:
    """Plan the labels of an audit with verdicts.

    Args:
        half_width: wanted, of each model's corrected share, in (0, 1).
        difference: between two models that is to be shown, in (0, 1].
    """
    traces = load_labelled_traces(source)
    sd = None if traces is None else measure_sd(traces)
    used_sd = PLANNED_SD if sd is None else sd
    names = [key[0] for key in source.votes.traces]
    models = [model for model in source.models if model in names]
    labelled = [] if traces is None else traces.models[traces.n_ratings > 0].tolist()
    rows = [_plan_model(model, names.count(model), labelled.count(model), half_width, used_sd) for model in models]
    topics = len({key[2] for key in source.votes.traces})
    sequence = track_share(source.label_records.sample, source.label_records.labels)
    n_pairs = max(1, len(models) * (len(models) - 1) // 2)
    return LabelPlan(
        half_width=half_width,
        sd=used_sd,
        is_sd_measured=sd is not None,
        models=rows,
        needed=sum(row.needed for row in rows),
        difference=difference,
        needed_for_difference=labels_for_difference(difference, used_sd, n_comparisons=n_pairs),
        topics=topics,
        floor_elsewhere=_widest_half_width([row.agreement for row in compute_peer_agreement(source)]),
        floor_of_error=half_width_floor({"topic": PLANNED_TOPIC_SD}, {"topic": topics}) if topics > 1 else None,
        labelled=0 if sequence is None else sequence.n,
        low=None if sequence is None else sequence.low,
        high=None if sequence is None else sequence.high,
    )


def _plan_model(model: str, n_traces: int, n_labelled: int, half_width: float, sd: float) -> ModelPlanRow:
    """The labels of one model: at least as many as decisions need."""
    needed = max(min(MIN_MODEL_LABELS, n_traces), labels_for_half_width(half_width, sd, n_traces))
    return ModelPlanRow(model=model, traces=n_traces, labelled=n_labelled, needed=needed)


def measure_sd(traces: LabelledTraces) -> float | None:
    """Standard deviation within strata of label minus the panel's share of VALID; None with too few labels."""
    columns = traces.select(~np.isnan(traces.panel_share))
    is_labelled = ~np.isnan(columns.labels)
    n_strata = len(np.unique(columns.strata[is_labelled]))
    if columns.n - n_strata < MIN_MODEL_LABELS:
        return None
    strata = columns.strata[is_labelled]
    errors = columns.labels[is_labelled] - traces.panel_share[columns.rows][is_labelled]
    counts = np.bincount(strata)
    means = np.bincount(strata, errors) / np.maximum(counts, 1)
    return float((((errors - means[strata]) ** 2).sum() / (columns.n - n_strata)) ** 0.5)


def _widest_half_width(estimates: Sequence[Estimate]) -> float | None:
    """Half-width of the widest interval; None without any."""
    widths = [(row.ci_high - row.ci_low) / 2 for row in estimates if row.ci_low is not None and row.ci_high is not None]
    return max(widths, default=None)


def track_share(sample: Sequence[SampledUnit], labels: Sequence[Label]) -> SequenceInterval | None:
    """People's share of VALID over all traces, from the labels so far in the order of drawing.

    Of each stratum the labels count up to the first trace without one: a rater who picks traces would bias the rest.

    Returns:
        None without a sample, or if inclusion probabilities differ within a stratum, as an import may have them.
    """
    by_stratum: dict[tuple[str, ...], list[SampledUnit]] = {}
    for row in sorted(sample, key=lambda row: row.position):
        by_stratum.setdefault(row.stratum, []).append(row)
    if not by_stratum or any(len({row.inclusion for row in rows}) > 1 for rows in by_stratum.values()):
        return None
    answers: dict[LabelUnit, list[float]] = {}
    for label in labels:
        answers.setdefault(label.unit, [])
        if label.value != UNSURE:
            answers[label.unit].append(float(label.value == Ruling.VALID.value))
    samples = []
    for rows in by_stratum.values():
        n_prefix = next((i for i, row in enumerate(rows) if row.unit not in answers), len(rows))
        samples.append([float(np.mean(a)) if (a := answers[row.unit]) else np.nan for row in rows[:n_prefix]])
    return stratified_confidence_sequence(samples, [rows[0].n_in_stratum for rows in by_stratum.values()])
