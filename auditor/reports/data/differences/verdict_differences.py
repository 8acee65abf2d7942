"""Compare verdicts: of the same judges in two audits, or of two judges on the same traces."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from auditor.domain import Ruling
from auditor.errors import UsageError
from auditor.metrics.verdict_flips import compare_verdicts_over_units
from auditor.reports.data.differences.schema import VerdictDifferences
from auditor.reports.data.differences.series_pairs import ScoreSeries, SeriesTarget
from auditor.reports.data.sampling_units import sampling_units
from auditor.storage import audits
from auditor.storage.database import Database
from auditor.storage.paired_verdicts import (
    VerdictSelection,
    count_paired_traces,
    count_ruling_pairs,
    load_verdict_flips,
)

DEFAULT_MAX_LISTED = 50
VALID, INVALID = Ruling.VALID.value, Ruling.INVALID.value
COLUMN_OF_VERDICTS = {(VALID, VALID): 0, (INVALID, VALID): 1, (VALID, INVALID): 2, (INVALID, INVALID): 3}
"""Column of the input of `compare_verdicts_over_units`, by the verdicts of the first and the second side."""


def compare_same_judges(
    db: Database, first: ScoreSeries, second: ScoreSeries, max_listed: int
) -> VerdictDifferences | None:
    """Compare the same judges' verdicts on the two series' models in two audits.

    Returns:
        None for two series of one audit, whose models have no traces in common, and if there are no pairs of verdicts.
    """
    if first.audit_id == second.audit_id:
        return None
    selections = (
        VerdictSelection(first.audit_id, model=first.model),
        VerdictSelection(second.audit_id, model=second.model),
    )
    difference = _compare_verdicts(db, selections, (first.label, second.label), max_listed)
    return difference if difference.n else None


def compare_two_judges(
    db: Database, targets: Sequence[SeriesTarget], judges: Sequence[str], max_listed: int
) -> list[VerdictDifferences]:
    """Compare two judges in one audit, or the first judge in the first audit with the second in the second.

    Raises:
        StorageError: there is no such audit.
        UsageError: not two judges, more than two targets, or no trace with a verdict of both judges.
    """
    if len(judges) != 2 or len(targets) > 2:
        raise UsageError(
            "--judge compares exactly two judges, in one audit or across two.",
            "Write --judge ONE --judge OTHER, and name one audit or two.",
        )
    # With one target, both judges are taken from it.
    audit_ids = [audits.get_audit(db, target.audit).id for target in targets] * (2 if len(targets) == 1 else 1)
    models = [target.model for target in targets] * (2 if len(targets) == 1 else 1)
    selections = [
        VerdictSelection(audit_id, judge, model)
        for audit_id, judge, model in zip(audit_ids, judges, models, strict=True)
    ]
    difference = _compare_verdicts(db, (selections[0], selections[1]), (judges[0], judges[1]), max_listed)
    if not difference.n:
        raise UsageError(
            f"no trace has valid verdicts of both '{judges[0]}' and '{judges[1]}'.",
            "Name two judges of the same traces: `auditor report` lists the judges of an audit.",
        )
    return [difference]


def _compare_verdicts(
    db: Database, sides: tuple[VerdictSelection, VerdictSelection], labels: tuple[str, str], max_listed: int
) -> VerdictDifferences:
    """Compare the verdicts of two sides on identical answers; if no answer is identical, on the same cells."""
    ruling_pair_counts = count_ruling_pairs(db, *sides)
    has_same_answers = any(split.same_answer for split in ruling_pair_counts)
    counts_by_cell: dict[tuple[str, str], list[int]] = {}
    for split, n in ruling_pair_counts.items():
        if split.same_answer or not has_same_answers:
            # Counts of one cell in the order of `COLUMN_OF_VERDICTS`.
            counts_by_cell.setdefault((split.country, split.topic), [0] * len(COLUMN_OF_VERDICTS))[
                COLUMN_OF_VERDICTS[split.first, split.second]
            ] += n
    cells = sorted(counts_by_cell)
    cell_counts = np.array([counts_by_cell[cell] for cell in cells], dtype=np.intp).reshape(-1, len(COLUMN_OF_VERDICTS))
    n_both_valid, n_to_valid, n_to_invalid, n_both_invalid = cell_counts.sum(axis=0).tolist()
    flips = compare_verdicts_over_units(
        cell_counts, sampling_units([country for country, _ in cells], [topic for _, topic in cells])
    )
    n_flipped = sum(n for split, n in ruling_pair_counts.items() if split.first != split.second)
    return VerdictDifferences(
        first=labels[0],
        second=labels[1],
        about="answers" if has_same_answers else "cells",
        n=int(cell_counts.sum()),
        traces=count_paired_traces(db, *sides, same_answer=has_same_answers),
        both_valid=n_both_valid,
        both_invalid=n_both_invalid,
        to_valid=n_to_valid,
        to_invalid=n_to_invalid,
        other_answers=sum(ruling_pair_counts.values()) - int(cell_counts.sum()),
        change=flips.change,
        kappa=flips.kappa,
        flips=load_verdict_flips(db, *sides, max_listed),
        not_listed=max(0, n_flipped - max_listed),
    )
