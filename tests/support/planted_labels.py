"""People's labels on a stratified random sample of an audit's traces, with known errors of the panel."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

import numpy as np

from auditor.domain import Ruling
from auditor.domain.labels import UNSURE, Label, LabelKind, LabelUnit, UnitToLabel
from auditor.reports.data.report_source import LabelRecords
from auditor.storage.votes import TraceKey, VoteArrays

LABELLED_AT = datetime(2026, 3, 4, tzinfo=UTC)


def plant_truth(votes: VoteArrays, error_rate: float, seed: int = 0) -> dict[TraceKey, bool]:
    """Whether people find each trace VALID: what most judges say, but for a share of errors of the panel."""
    rng = np.random.default_rng(seed)
    return {key: bool(verdict != (rng.random() < error_rate)) for key, verdict in find_majorities(votes).items()}


def find_majorities(votes: VoteArrays) -> dict[TraceKey, bool]:
    """Whether more than half of the verdicts on each trace are VALID."""
    n = np.bincount(votes.trace_index, minlength=len(votes.traces))
    n_valid = np.bincount(votes.trace_index, votes.valid, minlength=len(votes.traces))
    return {key: bool(2 * valid > n_verdicts) for key, valid, n_verdicts in zip(votes.traces, n_valid, n, strict=True)}


def plant_labels(
    votes: VoteArrays,
    truth: Mapping[TraceKey, bool],
    *,
    n_each: int = 15,
    raters: int = 1,
    rater_error: float = 0.0,
    unsure_share: float = 0.0,
    seed: int = 1,
) -> LabelRecords:
    """Draw a sample stratified by model and majority verdict, and label it.

    Args:
        n_each: sampled traces of each stratum.
        raters: raters of each trace, who err independently.
    """
    rng = np.random.default_rng(seed)
    majorities = find_majorities(votes)
    stratum_of = {key: (key[0], Ruling.VALID if majorities[key] else Ruling.INVALID) for key in votes.traces}
    frame = [(to_unit(key), (model, verdict.value)) for key, (model, verdict) in stratum_of.items()]
    sample: list[UnitToLabel] = []
    labels: list[Label] = []
    for stratum in sorted(set(stratum_of.values())):
        keys = [key for key in votes.traces if stratum_of[key] == stratum]
        drawn = [keys[i] for i in rng.permutation(len(keys))[:n_each]]
        for key in drawn:
            names = (stratum[0], stratum[1].value)
            sample.append(UnitToLabel(to_unit(key), names, len(keys), len(drawn) / len(keys), len(sample)))
            for rater in range(raters):
                is_valid = truth[key] != (rng.random() < rater_error)
                is_unsure = bool(rng.random() < unsure_share)
                labels.append(make_label(key, is_valid=bool(is_valid), is_unsure=is_unsure, rater=f"rater {rater + 1}"))
    return LabelRecords(sample, labels, frame)


def make_label(key: TraceKey, *, is_valid: bool, is_unsure: bool = False, rater: str = "rater 1") -> Label:
    value = UNSURE if is_unsure else Ruling.VALID.value if is_valid else Ruling.INVALID.value
    return Label(to_unit(key), rater, value, LABELLED_AT)


def to_unit(key: TraceKey) -> LabelUnit:
    return LabelUnit(LabelKind.TRACE, tuple(map(str, key)))
