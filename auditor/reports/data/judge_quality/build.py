"""Assemble the figures of judges that rest on people's labels on a random sample of traces."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from auditor.config import LabelSection
from auditor.domain.labels import RaterKind
from auditor.metrics.label_plan import labels_for_half_width
from auditor.reports.data.judge_quality.corrected import (
    MIN_MODEL_LABELS,
    build_corrected_differences,
    build_corrected_shares,
    measure_panel_excess,
)
from auditor.reports.data.judge_quality.error_factors import build_factor_rows, build_transport_rows
from auditor.reports.data.judge_quality.judges import (
    Groups,
    build_judge_rows,
    build_panel_row,
    build_split_rows,
    count_refused_splits,
)
from auditor.reports.data.judge_quality.labelled_traces import load_labelled_traces
from auditor.reports.data.judge_quality.people import build_annotator_tests, measure_rater_agreement
from auditor.reports.data.judge_quality.schema import JudgeQualityReport
from auditor.reports.data.report_source import ReportSource
from auditor.storage.votes import VoteArrays
from auditor.surveys.regions import get_grouping

SUGGESTED_HALF_WIDTH = 0.1
"""Half-width of the interval of each model's corrected share that the suggested number of labels gives."""
PLANNED_SD = 0.4
"""Planned standard deviation of labels within the strata of one verdict: of judges that are wrong on 20%."""


def build_judge_quality(source: ReportSource) -> JudgeQualityReport | None:
    """Assemble the figures; without labels only the number that would do. None without verdicts."""
    if not len(source.votes):
        return None
    traces = load_labelled_traces(source)
    if traces is None or not (traces.n_ratings.any() or traces.n_unsure.any()):
        return _without_labels(source)
    groups = group_traces(source, source.votes)
    shares = build_corrected_shares(traces, source.models, source.seed)
    return JudgeQualityReport(
        labels=int((traces.n_ratings > 0).sum()),
        unsure=int((traces.n_unsure > 0).sum()),
        not_used=traces.n_not_used,
        raters=list(traces.raters),
        sampled=int((~np.isnan(traces.inclusion)).sum()),
        traces=len(source.votes.traces),
        suggested_labels=suggest_labels(source),
        min_labels=MIN_MODEL_LABELS,
        excess=measure_panel_excess(traces),
        judges=build_judge_rows(traces),
        panel=build_panel_row(traces),
        splits=build_split_rows(traces, groups),
        refused_splits=count_refused_splits(traces, groups),
        ceiling=measure_rater_agreement(traces),
        factors=build_factor_rows(traces, groups),
        models=shares,
        differences=build_corrected_differences(traces, shares),
        transport=build_transport_rows(traces, groups),
        replacement=build_annotator_tests(traces),
        rater_kind=_find_rater_kind(source),
    )


def _without_labels(source: ReportSource) -> JudgeQualityReport:
    """The report before anything is labelled, or if the labels cannot be used."""
    records = source.label_records
    return JudgeQualityReport(
        not_used=len(records.labels),
        sampled=len(records.sample),
        traces=len(source.votes.traces),
        suggested_labels=suggest_labels(source),
        min_labels=MIN_MODEL_LABELS,
        rater_kind=_find_rater_kind(source),
        reason=records.reason,
    )


def _find_rater_kind(source: ReportSource) -> RaterKind:
    """The configured kind of rater; the strictest one of an audit that was imported."""
    return (LabelSection() if source.config is None else source.config.labels).rater_kind


def suggest_labels(source: ReportSource) -> int:
    """Labels that give each model's corrected share an interval of ± 10 points, for these traces."""
    models = [key[0] for key in source.votes.traces]
    return sum(
        max(
            min(MIN_MODEL_LABELS, models.count(model)),
            labels_for_half_width(SUGGESTED_HALF_WIDTH, PLANNED_SD, models.count(model)),
        )
        for model in sorted(set(models))
    )


def group_traces(source: ReportSource, votes: VoteArrays) -> Groups:
    """The model, language, region and topic of each trace; empty text where there is none."""
    has_countries = any(key[1] for key in votes.traces)
    region_by_country = get_grouping(source.survey).region_by_country if has_countries else {}
    return {
        "model": _to_array([key[0] for key in votes.traces]),
        "language": _to_array([language or "" for language in votes.languages]),
        "region": _to_array([region_by_country.get(key[1], "") for key in votes.traces]),
        "topic": _to_array([key[2] if has_countries else "" for key in votes.traces]),
    }


def _to_array(names: list[str]) -> NDArray[np.str_]:
    return np.array(names, dtype=np.str_)
