"""Self-consistency of models, peer agreement, and the panel section."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from auditor.domain import Method, Outcome, Purpose
from auditor.metrics.estimate import Estimate
from auditor.metrics.two_way_means import two_way_mean, two_way_share
from auditor.reports.data.agreement.alignment import AlignmentRow
from auditor.reports.data.coverage.build import count_reviewable_traces
from auditor.reports.data.estimate_conversion import clustered_to_estimate
from auditor.reports.data.measurement_schema import ConsistencyRow, PeerAgreementRow
from auditor.reports.data.panel.certificate import write_certificate
from auditor.reports.data.panel.judge_statistics import (
    agreement_estimate,
    build_judge_rows,
    compute_agreement,
    compute_prevalence,
)
from auditor.reports.data.panel.judge_tests import (
    build_blinding_rows,
    build_fault_rows,
    build_position_rows,
    build_restatement_rows,
    build_self_review_rows,
)
from auditor.reports.data.panel.peer_alignment import compute_peer_alignment
from auditor.reports.data.panel.schema import PanelReport
from auditor.reports.data.panel.verdict_matrix import build_verdict_matrix
from auditor.reports.data.panel.voting_rules import build_vote_rows
from auditor.reports.data.report_source import FloatArray, ReportSource
from auditor.reports.data.requests.sampling_settings import SamplingReport
from auditor.storage.count_queries import PeerVerdictCounts

OK = Outcome.OK.value


def compute_self_consistency(source: ReportSource, sampling: SamplingReport) -> list[ConsistencyRow]:
    """Compute how alike the samples of a cell are, one row per model and method, except log-probabilities."""
    too_few_reason = "no cell has two usable samples"
    if source.config and source.config.probes.direct and source.config.direct.samples < 2:
        too_few_reason = "one sample of each cell is taken, which differs from nothing"
    has_no_encoder = source.config is not None and source.config.embedding.model == "none"
    return [
        ConsistencyRow(
            model=model,
            method=method,
            cosine=_mean_over_cells(
                source,
                source.self_consistency_matrix[i],
                -1.0,
                "the configuration names no sentence encoder" if has_no_encoder else too_few_reason,
            ),
            variance=_mean_over_cells(source, source.variance_matrix[i], 0.0, too_few_reason),
            sign_agreement=_mean_over_cells(source, source.column_values("sign_agreement", i), 0.0, too_few_reason),
            straddling=_straddling_share(source, source.column_values("straddles", i), too_few_reason),
            sampling=sampling.labels(Purpose.DIRECT).get(model),
        )
        for i, (method, model) in enumerate(source.columns)
        if method != Method.LOGPROB  # deterministic: one value a cell, so there is no variation to measure
    ]


def _mean_over_cells(
    source: ReportSource, cell_scores: FloatArray, lower_bound: float, missing_reason: str
) -> Estimate:
    """Mean over cells of values between `lower_bound` and 1, with an interval over countries and topics."""
    return clustered_to_estimate(
        two_way_mean(cell_scores, source.country_index, source.topic_index, (lower_bound, 1.0)), missing_reason
    )


def _straddling_share(source: ReportSource, straddles: FloatArray, missing_reason: str) -> Estimate:
    """Share of cells whose samples fall on both sides of zero, with an interval over countries and topics."""
    is_known = np.where(np.isnan(straddles), 0.0, 1.0)
    share = two_way_share(np.nan_to_num(straddles), is_known, source.country_index, source.topic_index)
    return clustered_to_estimate(share, missing_reason)


def compute_peer_agreement(source: ReportSource) -> list[PeerAgreementRow]:
    """Compute the share of VALID verdicts, overall and by criterion, for each model that was judged."""
    rows = []
    for model in source.models:
        if not any(count.model == model for count in source.judge_counts):
            continue
        model_counts = [counts for counts in source.peer_verdict_counts if counts.model == model]
        shares = {
            name: _peer_share(model_counts, name, f"n_{name}")
            for name in ("cultural_accuracy", "logical_consistency", "score_fit")
        }
        n_verdicts, n_valid = sum(counts.n for counts in model_counts), sum(counts.valid for counts in model_counts)
        rows.append(
            PeerAgreementRow(
                model=model,
                given=n_verdicts,  # valid verdicts on its traces
                valid=n_valid,
                agreement=_peer_share(model_counts, "valid", "n"),
                **shares,
            )
        )
    return rows


def _peer_share(peer_counts: Sequence[PeerVerdictCounts], hits_field: str, total_field: str) -> Estimate:
    """Share of hits among verdicts, summed over cells, with an interval over countries and topics.

    Args:
        hits_field: field of `PeerVerdictCounts` with the number of hits.
        total_field: field with the number of verdicts.
    """
    share = two_way_share(
        [getattr(counts, hits_field) for counts in peer_counts],
        [getattr(counts, total_field) for counts in peer_counts],
        [counts.country for counts in peer_counts],
        [counts.topic for counts in peer_counts],
    )
    return clustered_to_estimate(
        share, "no verdict is usable" if total_field == "n" else "no verdict rates this aspect"
    )


def build_panel_report(
    source: ReportSource, alignment_rows: Sequence[AlignmentRow], peer_rows: Sequence[PeerAgreementRow]
) -> PanelReport:
    """Build the section on the judges and the panel as a whole."""
    matrix = build_verdict_matrix(source)
    kappa, alpha, ac1 = compute_agreement(matrix)
    n_asked = sum(count.n for count in source.judge_counts)
    report = PanelReport(
        judges=build_judge_rows(source, matrix),
        fleiss_kappa=agreement_estimate(kappa),
        verdicts=kappa.n_ratings,
        repeated=source.n_repeated_verdicts,
        single=kappa.n_dropped,
        krippendorff_alpha=agreement_estimate(alpha),
        gwet_ac1=agreement_estimate(ac1),
        prevalence=compute_prevalence(matrix),
        votes=build_vote_rows(source, matrix),
        asked=n_asked,
        # Verdicts that there would be if every assigned judge were asked.
        seats=_count_assignments(source, n_asked),
        adaptive=source.config is not None and source.config.panel.adaptive,
        judges_per_trace=source.config.panel.judges_per_trace if source.config else None,
        peer_alignment=compute_peer_alignment(peer_rows, alignment_rows),
        guesses=build_blinding_rows(source.judge_names, source.author_guesses),
        rewriting=build_restatement_rows(matrix, source.judge_tests),
        faults=build_fault_rows(source.judge_names, source.judge_tests),
        positions=build_position_rows(source.judge_names, source.position_tests),
        own_traces=build_self_review_rows(matrix, source.judge_tests),
        certificate=[],
    )
    return report.model_copy(update={"certificate": write_certificate(report, is_task=source.survey.task is not None)})


def _count_assignments(source: ReportSource, n_asked: int) -> int:
    """Count the verdicts that complete panels would give on the reviewed traces."""
    if source.config is None:
        return n_asked
    panel_sizes = {model.name: source.config.panel_size(model.name) for model in source.config.models}
    return sum(
        panel_sizes[unit.name] * n
        for unit, n in count_reviewable_traces(source.config, source.trace_counts, source.scored_traces).items()
    )
