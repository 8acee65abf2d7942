"""Compare how two audits settled the same conflicts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from auditor.metrics.unit_means import share_over_units
from auditor.reports.data.differences.schema import ResolutionDifferences, ResolutionFlipRow
from auditor.reports.data.differences.series_pairs import ScoreSeries, SeriesPair
from auditor.reports.data.sampling_units import sampling_units
from auditor.storage.conflict_status import ConflictStatus
from auditor.storage.database import Database
from auditor.storage.reviewed_conflicts import ReviewedConflict, load_reviewed_conflicts

ConflictKey = tuple[str, str, frozenset[str]]
"""Country, topic and the two models, in any order."""


def compare_resolutions(
    db: Database, pairs: Sequence[SeriesPair], renamed_models: Mapping[str, str], max_listed: int
) -> list[ResolutionDifferences]:
    """For each two audits among the pairs, compare how the conflicts that both have were settled.

    Args:
        pairs: the pairs whose audits are compared; paired models count as the same model, whatever their names.
        renamed_models: models with another name in the second audit, old name to new.
        max_listed: how many conflicts settled for different sides are listed.

    Returns:
        The differences between each two audits with a conflict in common.
    """
    pairs_by_audits: dict[tuple[int, int], list[SeriesPair]] = {}
    for pair in pairs:
        # pair[0] is the series of the reference audit, pair[1] the series compared with it.
        if pair[0].audit_id != pair[1].audit_id:
            pairs_by_audits.setdefault((pair[0].audit_id, pair[1].audit_id), []).append(pair)
    differences = [
        _compare_two_audits(db, audit_pairs, renamed_models, max_listed) for audit_pairs in pairs_by_audits.values()
    ]
    return [difference for difference in differences if difference.shared]


def _compare_two_audits(
    db: Database, pairs: Sequence[SeriesPair], renamed_models: Mapping[str, str], max_listed: int
) -> ResolutionDifferences:
    """Compare the conflicts of two audits; the first series of all pairs are of one, the second of the other."""
    first, second = pairs[0]
    new_names = {**renamed_models, **{first_series.model: second_series.model for first_series, second_series in pairs}}
    first_conflicts = _index_by_conflict(_load_resolved_conflicts(db, first), new_names)
    second_conflicts = _index_by_conflict(_load_resolved_conflicts(db, second), {})
    shared_keys = sorted(  # by country, topic, then the names of the two models
        first_conflicts.keys() & second_conflicts.keys(), key=lambda key: (key[0], key[1], sorted(key[2]))
    )
    shared_conflicts = [(first_conflicts[key], second_conflicts[key]) for key in shared_keys]
    has_winner = [  # per conflict: whether the first and the second audit settled it for a side
        (in_first.winner is not None, in_second.winner is not None) for in_first, in_second in shared_conflicts
    ]
    is_resolved_twice = [winners == (True, True) for winners in has_winner]
    is_flipped = [
        is_twice and new_names.get(str(in_first.winner), in_first.winner) != in_second.winner
        for is_twice, (in_first, in_second) in zip(is_resolved_twice, shared_conflicts, strict=True)
    ]
    units = sampling_units([key[0] for key in shared_keys], [key[1] for key in shared_keys])
    flips = [
        _build_flip_row(in_first, in_second)
        for (in_first, in_second), flipped in zip(shared_conflicts, is_flipped, strict=True)
        if flipped
    ]
    return ResolutionDifferences(
        first=first.audit,
        second=second.audit,
        shared=len(shared_keys),
        n=sum(is_resolved_twice),
        flipped=len(flips),
        share=share_over_units(is_flipped, is_resolved_twice, units),
        only_first=has_winner.count((True, False)),
        only_second=has_winner.count((False, True)),
        neither=has_winner.count((False, False)),
        flips=flips[:max_listed],
        not_listed=max(0, len(flips) - max_listed),
    )


def _build_flip_row(in_first: ReviewedConflict, in_second: ReviewedConflict) -> ResolutionFlipRow:
    """List a conflict that the two audits settled for different sides."""
    return ResolutionFlipRow(
        country=in_first.conflict.cell.country,
        topic=in_first.conflict.cell.topic,
        first_winner=in_first.winner or "",
        first_by=_resolved_by(in_first),
        second_winner=in_second.winner or "",
        second_by=_resolved_by(in_second),
    )


def _load_resolved_conflicts(db: Database, series: ScoreSeries) -> list[ReviewedConflict]:
    """Load the conflicts between models of the audit that a series is from, with people's ratings applied."""
    return [reviewed for reviewed in load_reviewed_conflicts(db, series.audit_id) if reviewed.conflict.kind.is_voted]


def _index_by_conflict(
    resolved_conflicts: Iterable[ReviewedConflict], new_names: Mapping[str, str]
) -> dict[ConflictKey, ReviewedConflict]:
    """Index conflicts by their key, with models renamed as in `new_names`."""
    return {
        (
            *resolved.conflict.cell,  # country, topic
            frozenset(new_names.get(model, model) for model in (resolved.conflict.left, resolved.conflict.right)),
        ): resolved
        for resolved in resolved_conflicts
    }


def _resolved_by(resolved_conflict: ReviewedConflict) -> Literal["majority", "person"]:
    """Who settled a conflict: `person` for human reviewers, else `majority` for the vote of the judges."""
    return "person" if resolved_conflict.status is ConflictStatus.PERSON else "majority"
