"""Self-consistency of models, peer agreement with people's, and the panel section."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from auditor.config import AuditConfig
from auditor.domain import Method, Purpose
from auditor.domain.decisions import REVIEW_ASPECTS
from auditor.metrics.answers.samples import influences
from auditor.metrics.intervals.estimate import CONFIDENCE_LEVEL, Estimate, ShareEstimate, bonferroni_level
from auditor.metrics.intervals.unit_means import ShareTable, mean_over_units, shares_over_units
from auditor.metrics.people.over_models import ModelCorrelation, correlate_models
from auditor.reports.data.agreement.alignment import AlignmentRow
from auditor.reports.data.coverage.counts import count_reviewable_traces
from auditor.reports.data.coverage.lost_samples import replace_reason
from auditor.reports.data.judge_quality.schema import JudgeQualityReport
from auditor.reports.data.measurement_schema import ConsistencyAlignmentRow, ConsistencyRow, PeerAgreementRow
from auditor.reports.data.panel.certificate import JudgeEvidence, write_certificate
from auditor.reports.data.panel.copying import build_copying_report, find_groups
from auditor.reports.data.panel.judge_statistics import (
    agreement_estimate,
    build_judge_rows,
    compute_agreement,
    compute_prevalence,
)
from auditor.reports.data.panel.judge_tests import (
    build_blinding_rows,
    build_fault_rows,
    build_obedience_rows,
    build_position_rows,
    build_restatement_rows,
    build_self_review_rows,
)
from auditor.reports.data.panel.schema import PanelReport, PeerAlignmentRow
from auditor.reports.data.panel.verdict_matrix import build_verdict_matrix, build_vote_rows, find_family
from auditor.reports.data.report_source import FloatArray, ReportSource, cell_units, sampling_units
from auditor.reports.data.requests import SamplingReport
from auditor.storage import audits
from auditor.storage.votes import VoteArrays


def compute_peer_agreement(source: ReportSource) -> list[PeerAgreementRow]:
    """Compute the share of VALID verdicts, and of those that find each aspect met, for each model that was judged.

    Only verdicts of judges that were asked in any case count: an adaptive panel asks its other judges about disputed
    traces only.
    """
    judged_models = {count.model for count in source.judge_counts}
    models = [model for model in source.models if model in judged_models]
    counts = _CellCounts(source.votes, models)
    is_valid = source.votes.valid == 1
    n_valid, n_usable = counts.count_verdicts(is_valid), counts.count_verdicts(np.ones_like(is_valid))
    agreement = counts.estimate_shares(n_valid, n_usable, "no verdict is usable")
    aspects = {aspect.name: _aspect_shares(source.votes, counts, aspect.name) for aspect in REVIEW_ASPECTS}
    return [
        PeerAgreementRow(
            model=model,
            given=int(n_usable[counts.positions[model]].sum()),
            valid=int(n_valid[counts.positions[model]].sum()),
            agreement=agreement[i],
            **{name: shares[i] for name, shares in aspects.items()},
        )
        for i, model in enumerate(models)
    ]


def estimate_valid_shares(source: ReportSource, confidence_level: float) -> dict[str, ShareEstimate]:
    """The shares of VALID verdicts of `compute_peer_agreement` by model, with intervals at another level."""
    judged_models = {count.model for count in source.judge_counts}
    models = [model for model in source.models if model in judged_models]
    counts = _CellCounts(source.votes, models)
    is_valid = source.votes.valid == 1
    n_valid, n_usable = counts.count_verdicts(is_valid), counts.count_verdicts(np.ones_like(is_valid))
    shares = counts.estimate_shares(n_valid, n_usable, "no verdict is usable", confidence_level)
    return dict(zip(models, shares, strict=True))


def _aspect_shares(votes: VoteArrays, counts: _CellCounts, aspect: str) -> list[ShareEstimate]:
    """Shares of verdicts that find an aspect met, among those that rate it, one per model."""
    is_met = np.array([ratings.get(aspect, False) for ratings in votes.ratings], dtype=np.bool_)
    is_rated = np.array([aspect in ratings for ratings in votes.ratings], dtype=np.bool_)
    met, rated = (counts.count_verdicts(flags[votes.rating_index]) for flags in (is_met, is_rated))
    return counts.estimate_shares(met, rated, "no verdict rates this aspect")


class _CellCounts:
    """Counts of the verdicts that were asked for in any case, by model judged and cell.

    Attributes:
        positions: positions of each model's cells in the counts, by model.
        units: countries and topics, or items, of each model's cells, by model.
        n_traces: number of traces with a counted verdict, shape (counts,).
    """

    def __init__(self, votes: VoteArrays, models: Sequence[str]) -> None:
        keys = sorted({trace[:3] for trace in votes.traces})  # model, country, topic
        index_by_key = {key: i for i, key in enumerate(keys)}
        self._votes = votes
        self._index_by_trace = np.array([index_by_key[trace[:3]] for trace in votes.traces], dtype=np.intp)
        self._n_counts = len(keys)
        self.positions = {
            model: np.array([i for i, key in enumerate(keys) if key[0] == model], int) for model in models
        }
        self.units = {
            model: sampling_units([keys[i][1] for i in positions], [keys[i][2] for i in positions])
            for model, positions in self.positions.items()
        }
        self.n_traces = self._count(np.unique(votes.trace_index[votes.always]))

    def _count(self, traces: NDArray[np.intp]) -> FloatArray:
        """Count by model and cell, shape (counts,), from the position in `votes.traces` of each case."""
        return np.bincount(self._index_by_trace[traces], minlength=self._n_counts).astype(float)

    def count_verdicts(self, is_hit: NDArray[np.bool_]) -> FloatArray:
        """Number of counted verdicts that are hits, shape (counts,); `is_hit` has the shape (verdicts,)."""
        return self._count(self._votes.trace_index[self._votes.always & is_hit])

    def estimate_shares(
        self,
        hits: FloatArray,
        totals: FloatArray,
        missing_reason: str,
        confidence_level: float = CONFIDENCE_LEVEL,
    ) -> list[ShareEstimate]:
        """Shares of hits, one per model; `hits` and `totals` have the shape (counts,).

        Verdicts on one trace are not independent of each other, so the independent cases are the traces.
        """
        tables = [
            ShareTable(hits[positions], totals[positions], self.units[model], self.n_traces[positions])
            for model, positions in self.positions.items()
        ]
        return shares_over_units(tables, empty_reason=missing_reason, confidence_level=confidence_level)


MIN_MODELS = 3
"""Fewest models for a row on self-consistency: a correlation needs as many."""
EQUAL_ALIGNMENT_REASON = "all models agree equally with people"


def compute_peer_alignment(
    config: AuditConfig | None, peer_rows: Sequence[PeerAgreementRow], alignment_rows: Sequence[AlignmentRow]
) -> list[PeerAlignmentRow]:
    """Correlate peer agreement with r against people over models, for each method."""
    agreement_by_model = {row.model: row.agreement.value for row in peer_rows}
    return [
        PeerAlignmentRow(
            method=method,
            r=_correlate_with_alignment(
                config, agreement_by_model, method, alignment_rows, "judges find all models equally VALID"
            ),
        )
        for method in dict.fromkeys(row.method for row in alignment_rows)
        if peer_rows
    ]


def compute_consistency_alignment(
    config: AuditConfig | None,
    consistency_rows: Sequence[ConsistencyRow],
    alignment_rows: Sequence[AlignmentRow],
) -> list[ConsistencyAlignmentRow]:
    """Correlate self-consistency, and the variance of the samples, with r against people over models, by method.

    Empty for fewer than three models with both.
    """
    rows = []
    for method in dict.fromkeys(row.method for row in consistency_rows):
        method_rows = [row for row in consistency_rows if row.method == method]
        for figure, values in (
            ("cosine", {row.model: row.cosine.value for row in method_rows}),
            ("variance", {row.model: row.variance.value for row in method_rows}),
        ):
            r = _correlate_with_alignment(
                config, values, method, alignment_rows, "all models are equally consistent with themselves"
            )
            if r.models >= MIN_MODELS:
                rows.append(ConsistencyAlignmentRow(method=method, figure=figure, r=r))
    return rows


def _correlate_with_alignment(
    config: AuditConfig | None,
    figure_by_model: Mapping[str, float | None],
    method: str,
    alignment_rows: Sequence[AlignmentRow],
    constant_reason: str,
) -> ModelCorrelation:
    """Correlate a figure with r against people, by one method, over models that have both.

    Args:
        constant_reason: why there is no correlation where the figure is the same for all models.
    """
    method_rows = [row for row in alignment_rows if row.method == method and row.model in figure_by_model]
    figures, r_with_people = (
        np.array([np.nan if value is None else value for value in values], dtype=np.float64)
        for values in (
            [figure_by_model[row.model] for row in method_rows],
            [row.pearson_r.value for row in method_rows],
        )
    )
    families = [find_family(config, row.model) for row in method_rows]
    correlation = correlate_models(figures, r_with_people, families)
    return replace_reason(correlation, {"x constant": constant_reason, "y constant": EQUAL_ALIGNMENT_REASON})


MAX_VARIANCE = 2.0
"""Sample variance of two scores at opposite ends of the scale."""
NOT_COMPARED = "no reasonings of about the same length about different countries were compared"


def compute_self_consistency(source: ReportSource, sampling: SamplingReport) -> list[ConsistencyRow]:
    """Compute how alike the samples of a cell are, one row per model and method, except log-probabilities."""
    too_few_reason = "no cell has two usable samples"
    if source.config and source.config.probes.direct and source.config.direct.samples < 2:
        too_few_reason = "only one sample of each cell, so there is nothing to compare"
    cosine_reason = too_few_reason
    if source.config is None:
        cosine_reason = "the scores were imported, and no reasoning was compared"
    elif source.config.embedding.model == "none":
        cosine_reason = "the configuration names no sentence encoder"
    # Log-probabilities are deterministic: one value a cell, so there is no variation to measure.
    columns = [i for i, (method, _) in enumerate(source.columns) if method != Method.LOGPROB]
    straddles = [source.column_values("straddles", column) for column in columns]
    units = cell_units(source.cells)
    tables = [ShareTable(np.nan_to_num(cells), (~np.isnan(cells)).astype(float), units) for cells in straddles]
    straddling = shares_over_units(tables, empty_reason=too_few_reason)
    sign_reasons = {i: _sign_reason(source.variance_matrix[i], too_few_reason) for i in columns}
    return [
        ConsistencyRow(
            model=source.columns[i][1],
            method=source.columns[i][0],
            cosine=_mean_over_cells(
                source,
                source.self_consistency_matrix[i],
                (-1.0, 1.0),
                cosine_reason,
            ),
            **_compare_cells(source, i, cosine_reason, bonferroni_level(len(columns))),
            variance=_mean_over_cells(
                source, source.variance_matrix[i], bound_variances(source.variance_matrix[i]), too_few_reason
            ),
            sign_agreement=_mean_over_cells(
                source, source.column_values("sign_agreement", i), (0.0, 1.0), sign_reasons[i]
            ),
            straddling=replace_reason(share, {too_few_reason: sign_reasons[i]}),
            sampling=sampling.labels(Purpose.DIRECT).get(source.columns[i][1]),
        )
        for i, share in zip(columns, straddling, strict=True)
    ]


def _compare_cells(
    source: ReportSource, column: int, missing_reason: str, confidence_level: float
) -> dict[str, Estimate]:
    """Similarities of reasonings about different cells, and how far self-consistency is above them, as fields of a row.

    Args:
        confidence_level: of the interval of the difference.
    """
    consistency, units = source.self_consistency_matrix[column], cell_units(source.cells)
    chance = influences(source.column_values("chance_similarity", column))
    same_topic = influences(source.column_values("topic_similarity", column), source.topic_index)
    reason = missing_reason if np.isnan(consistency).all() else NOT_COMPARED
    above = mean_over_units(consistency - chance, units, empty_reason=reason, confidence_level=confidence_level)
    return {
        "chance": _limit_to_cosines(mean_over_units(chance, units, empty_reason=reason)),
        "same_topic": _limit_to_cosines(mean_over_units(same_topic, units, empty_reason=reason)),
        "above_chance": above,
    }


def _limit_to_cosines(estimate: Estimate) -> Estimate:
    """The estimate with an interval that is within [-1, 1]."""
    if estimate.ci_low is None or estimate.ci_high is None:
        return estimate
    return replace(estimate, ci_low=max(-1.0, estimate.ci_low), ci_high=min(1.0, estimate.ci_high))


def _mean_over_cells(
    source: ReportSource, cell_scores: FloatArray, bounds: tuple[float, float], missing_reason: str
) -> Estimate:
    """Mean over cells of values between two bounds, with an interval over countries and topics."""
    return mean_over_units(cell_scores, cell_units(source.cells), bounds, empty_reason=missing_reason)


def _sign_reason(variances: FloatArray, missing_reason: str) -> str:
    """Why a model and method have no signs: with variances there are samples, of which the signs are not recorded."""
    has_samples = bool((~np.isnan(variances)).any())
    return "the signs of the samples are not recorded" if has_samples else missing_reason


def bound_variances(variances: FloatArray) -> tuple[float, float]:
    """Smallest and largest possible sample variance of scores in [-1, 1]: 2 for two samples at opposite ends.

    The variance of a cell in several languages is scaled up, and may be larger.
    """
    return 0.0, float(np.nanmax(variances, initial=MAX_VARIANCE))


def build_panel_report(
    source: ReportSource,
    alignment_rows: Sequence[AlignmentRow],
    peer_rows: Sequence[PeerAgreementRow],
    quality: JudgeQualityReport | None,
) -> PanelReport:
    """Build the section on the judges and the panel as a whole; `quality` is what people's labels show of them."""
    matrix = build_verdict_matrix(source)
    kappa, alpha, ac1 = compute_agreement(matrix)
    n_asked = sum(count.n for count in source.judge_counts)
    copying = build_copying_report(source, matrix)
    report = PanelReport(
        judges=build_judge_rows(source, matrix),
        fleiss_kappa=agreement_estimate(kappa),
        verdicts=kappa.n_ratings,
        repeated=sum(count.duplicates for count in source.verdict_counts),
        single=kappa.n_dropped,
        unjudged=matrix.n_unjudged,
        krippendorff_alpha=agreement_estimate(alpha),
        gwet_ac1=agreement_estimate(ac1),
        prevalence=compute_prevalence(matrix),
        votes=build_vote_rows(source, matrix, find_groups(matrix.judges, copying.pairs)),
        copying=copying,
        asked=n_asked,
        # Verdicts that there would be if every assigned judge were asked.
        seats=_count_assignments(source, n_asked),
        adaptive=source.config is not None and source.config.panel.adaptive,
        judges_per_trace=source.config.panel.judges_per_trace if source.config else None,
        peer_alignment=compute_peer_alignment(source.config, peer_rows, alignment_rows),
        guesses=build_blinding_rows(source.judge_names, source.author_guesses),
        rewriting=build_restatement_rows(matrix, source.judge_tests),
        faults=build_fault_rows(source.judge_names, source.judge_tests),
        obedience=build_obedience_rows(source.judge_names, source.judge_tests),
        positions=build_position_rows(source.judge_names, source.position_tests),
        own_traces=build_self_review_rows(matrix, source.judge_tests),
        certificate=[],
    )
    is_complete = source.audit.stage in (*audits.FINAL_STAGES, audits.REPORTING)
    evidence = JudgeEvidence(report, quality, is_task=source.survey.task is not None, is_complete=is_complete)
    certificate = write_certificate(evidence)
    return report.model_copy(update={"certificate": certificate})


def _count_assignments(source: ReportSource, n_asked: int) -> int:
    """Count the verdicts that complete panels would give on the reviewed traces."""
    if source.config is None:
        return n_asked
    panel_sizes = {model.name: source.config.panel_size(model.name) for model in source.config.models}
    return sum(
        panel_sizes[unit.name] * n
        for unit, n in count_reviewable_traces(source.config, source.trace_counts, source.scored_traces).items()
    )
