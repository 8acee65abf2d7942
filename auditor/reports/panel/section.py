"""Consistency of each model, what the others say of it, and how far the judges agree."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from auditor.domain import Method, Outcome
from auditor.metrics.two_way_means import two_way_mean, two_way_share
from auditor.reports.coverage.section import count_reviewable_traces
from auditor.reports.estimate_conversion import clustered_to_estimate
from auditor.reports.measurement_schema import AlignmentRow, ConsistencyRow, Estimate, PeerAgreementRow
from auditor.reports.panel.certificate import write_certificate
from auditor.reports.panel.judge_statistics import (
    agreement_estimate,
    build_judge_rows,
    build_vote_rows,
    compute_agreement,
    compute_peer_alignment,
    compute_prevalence,
)
from auditor.reports.panel.judge_tests import (
    build_blinding_rows,
    build_fault_rows,
    build_position_rows,
    build_restatement_rows,
    build_self_review_rows,
)
from auditor.reports.panel.schema import PanelReport
from auditor.reports.panel.verdict_matrix import build_verdict_matrix
from auditor.reports.report_source import FloatArray, ReportSource
from auditor.storage.count_queries import PeerVerdictCounts

OK = Outcome.OK.value


def compute_self_consistency(source: ReportSource) -> list[ConsistencyRow]:
    """One row for each model and method."""
    few = "no cell has two usable samples"
    if source.config and source.config.probes.direct and source.config.direct.samples < 2:
        few = "one sample of each cell is taken, which differs from nothing"
    plain = source.config is not None and source.config.embedding.model == "none"
    return [
        ConsistencyRow(
            model=model,
            method=method,
            cosine=_mean_over_cells(
                source,
                source.self_consistency_matrix[i],
                -1.0,
                "the configuration names no sentence encoder" if plain else few,
            ),
            variance=_mean_over_cells(source, source.variance_matrix[i], 0.0, few),
            sign_agreement=_mean_over_cells(source, source.column_values("sign_agreement", i), 0.0, few),
            straddling=_straddling_share(source, source.column_values("straddles", i), few),
        )
        for i, (method, model) in enumerate(source.columns)
        if method != Method.LOGPROB  # one value that the weights determine, with nothing to differ from
    ]


def _mean_over_cells(
    source: ReportSource, cell_scores: FloatArray, lower_bound: float, missing_reason: str
) -> Estimate:
    """Over cells, of values that are 1 at most."""
    return clustered_to_estimate(
        two_way_mean(cell_scores, source.country_index, source.topic_index, (lower_bound, 1.0)), missing_reason
    )


def _straddling_share(source: ReportSource, straddles: FloatArray, missing_reason: str) -> Estimate:
    known = np.where(np.isnan(straddles), 0.0, 1.0)
    found = two_way_share(np.nan_to_num(straddles), known, source.country_index, source.topic_index)
    return clustered_to_estimate(found, missing_reason)


def compute_peer_agreement(source: ReportSource) -> list[PeerAgreementRow]:
    """One row for each model that was judged."""
    rows = []
    for model in source.models:
        if not any(j.model == model for j in source.judge_counts):
            continue
        mine = [t for t in source.peer_verdict_counts if t.model == model]
        shares = {
            name: _peer_share(mine, name, f"n_{name}")
            for name in ("cultural_accuracy", "logical_consistency", "score_fit")
        }
        given, valid = sum(t.n for t in mine), sum(t.valid for t in mine)
        rows.append(
            PeerAgreementRow(model=model, given=given, valid=valid, agreement=_peer_share(mine, "valid", "n"), **shares)
        )
    return rows


def _peer_share(peer_counts: Sequence[PeerVerdictCounts], hits_field: str, total_field: str) -> Estimate:
    found = two_way_share(
        [getattr(t, hits_field) for t in peer_counts],
        [getattr(t, total_field) for t in peer_counts],
        [t.country for t in peer_counts],
        [t.topic for t in peer_counts],
    )
    return clustered_to_estimate(found, "nothing to count")


def build_panel_report(
    source: ReportSource, alignment_rows: Sequence[AlignmentRow], peer_rows: Sequence[PeerAgreementRow]
) -> PanelReport:
    """The judges, one by one and together."""
    ballots = build_verdict_matrix(source)
    kappa, alpha, ac1 = compute_agreement(ballots, source.seed)
    asked = sum(j.n for j in source.judge_counts)
    part = PanelReport(
        judges=build_judge_rows(source, ballots),
        fleiss_kappa=agreement_estimate(kappa),
        verdicts=kappa.n_ratings,
        repeated=source.n_repeated_verdicts,
        single=kappa.n_dropped,
        krippendorff_alpha=agreement_estimate(alpha),
        gwet_ac1=agreement_estimate(ac1),
        prevalence=compute_prevalence(ballots, source.seed),
        votes=build_vote_rows(source, ballots),
        asked=asked,
        seats=_count_assignments(source, asked),
        adaptive=source.config is not None and source.config.panel.adaptive,
        judges_per_trace=source.config.panel.judges_per_trace if source.config else None,
        peer_alignment=compute_peer_alignment(peer_rows, alignment_rows),
        guesses=build_blinding_rows(source.judge_names, source.author_guesses),
        rewriting=build_restatement_rows(ballots, source.judge_tests),
        faults=build_fault_rows(source.judge_names, source.judge_tests),
        positions=build_position_rows(source.judge_names, source.position_tests),
        own_traces=build_self_review_rows(ballots, source.judge_tests),
        certificate=[],
    )
    return part.model_copy(update={"certificate": write_certificate(part, is_task=source.survey.task is not None)})


def _count_assignments(source: ReportSource, n_asked: int) -> int:
    """Verdicts that whole panels would give on the traces that went before one."""
    if source.config is None:
        return n_asked
    seats = {m.name: source.config.panel_size(m.name) for m in source.config.models}
    return sum(
        seats[unit.name] * n
        for unit, n in count_reviewable_traces(source.config, source.trace_counts, source.scored_traces).items()
    )
