"""Peer agreement: what the judges say of each model's traces, overall and by aspect."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from auditor.domain.review_aspects import REVIEW_ASPECTS
from auditor.metrics.confidence import CONFIDENCE_LEVEL
from auditor.metrics.estimate import ShareEstimate
from auditor.metrics.unit_means import ShareTable, shares_over_units
from auditor.reports.data.measurement_schema import PeerAgreementRow
from auditor.reports.data.report_source import FloatArray, ReportSource
from auditor.reports.data.sampling_units import sampling_units
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
    valid, given = counts.count_verdicts(is_valid), counts.count_verdicts(np.ones_like(is_valid))
    agreement = counts.estimate_shares(valid, given, "no verdict is usable")
    aspects = {aspect.name: _aspect_shares(source.votes, counts, aspect.name) for aspect in REVIEW_ASPECTS}
    return [
        PeerAgreementRow(
            model=model,
            given=int(given[counts.positions[model]].sum()),
            valid=int(valid[counts.positions[model]].sum()),
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
    valid, given = counts.count_verdicts(is_valid), counts.count_verdicts(np.ones_like(is_valid))
    shares = counts.estimate_shares(valid, given, "no verdict is usable", confidence_level)
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
