"""Correlation of peer agreement with agreement with people, over models."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from auditor.metrics.correlation import pearson
from auditor.metrics.estimate import Estimate
from auditor.reports.data.agreement.alignment import AlignmentRow
from auditor.reports.data.measurement_schema import PeerAgreementRow
from auditor.reports.data.panel.schema import PeerAlignmentRow


def compute_peer_alignment(
    peer_rows: Sequence[PeerAgreementRow], alignment_rows: Sequence[AlignmentRow]
) -> list[PeerAlignmentRow]:
    """Correlate peer agreement with r against people over models, for each method."""
    agreement_by_model = {row.model: row.agreement.value for row in peer_rows}
    rows = []
    for method in dict.fromkeys(row.method for row in alignment_rows):
        method_rows = [row for row in alignment_rows if row.method == method and row.model in agreement_by_model]
        peer_shares = [
            np.nan if agreement_by_model[row.model] is None else agreement_by_model[row.model] for row in method_rows
        ]
        r_with_people = [np.nan if row.pearson_r is None else row.pearson_r for row in method_rows]
        correlation = pearson(np.array(peer_shares, dtype=float), np.array(r_with_people, dtype=float))
        reason_labels = {
            "x constant": "peers find all models equally VALID",
            "y constant": "all models agree alike with people",
        }
        reason = (
            None
            if correlation.reason is None
            else reason_labels.get(correlation.reason, correlation.reason.replace("pairs", "models"))
        )
        r = Estimate(
            value=correlation.r, n=correlation.n, ci_low=correlation.ci_low, ci_high=correlation.ci_high, reason=reason
        )
        rows.append(PeerAlignmentRow(method=method, r=r))
    return rows if peer_rows else []
