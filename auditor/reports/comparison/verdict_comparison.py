"""Verdicts side by side: of the same judges in two audits, or of two judges on the same traces."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from auditor.domain import Ruling
from auditor.errors import UsageError
from auditor.metrics.verdict_flips import flips_by_cell
from auditor.reports.comparison.schema import VerdictComparison, VerdictFlipRow
from auditor.reports.comparison.series_pairs import ComparisonTarget, ScoreSeries
from auditor.reports.estimate_conversion import to_estimate
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
"""Columns of `flips_by_cell`, by what the first and the second say."""


def compare_same_judges(
    db: Database, first: ScoreSeries, second: ScoreSeries, max_listed: int
) -> VerdictComparison | None:
    """The same judges' verdicts in both audits; two models of one audit have no traces in common."""
    if first.audit_id == second.audit_id:
        return None
    sides = (VerdictSelection(first.audit_id, model=first.model), VerdictSelection(second.audit_id, model=second.model))
    part = _compare_verdicts(db, sides, (first.label, second.label), max_listed)
    return part if part.n else None


def compare_two_judges(
    db: Database, targets: Sequence[ComparisonTarget], judges: Sequence[str], max_listed: int
) -> list[VerdictComparison]:
    """Two judges in one audit, or the first in the first audit and the other in the second."""
    if len(judges) != 2 or len(targets) > 2:
        raise UsageError(
            "two judges are compared in one audit or across two.", "Give --judge twice, and one audit or two."
        )
    ids = [audits.get_audit(db, t.audit).id for t in targets] * (2 if len(targets) == 1 else 1)
    models = [t.model for t in targets] * (2 if len(targets) == 1 else 1)
    sides = [VerdictSelection(i, judge, model) for i, judge, model in zip(ids, judges, models, strict=True)]
    part = _compare_verdicts(db, (sides[0], sides[1]), (judges[0], judges[1]), max_listed)
    if not part.n:
        raise UsageError(
            f"no trace has a valid verdict of both '{judges[0]}' and '{judges[1]}'.",
            "`auditor report` names the judges of an audit.",
        )
    return [part]


def _compare_verdicts(
    db: Database, sides: tuple[VerdictSelection, VerdictSelection], labels: tuple[str, str], max_listed: int
) -> VerdictComparison:
    """Figures are of verdicts on the same answers; where no answer is the same, of those on the same cells."""
    found = count_ruling_pairs(db, *sides)
    same = any(split.same_answer for split in found)
    cells: dict[tuple[str, str], list[int]] = {}
    for split, k in found.items():
        if split.same_answer or not same:
            cells.setdefault((split.country, split.topic), [0] * len(COLUMN_OF_VERDICTS))[
                COLUMN_OF_VERDICTS[split.first, split.second]
            ] += k
    tallies = np.array([cells[cell] for cell in sorted(cells)], dtype=np.intp).reshape(-1, len(COLUMN_OF_VERDICTS))
    both_valid, up, down, both_invalid = tallies.sum(axis=0).tolist()
    measured = flips_by_cell(tallies)
    flipped = sum(k for split, k in found.items() if split.first != split.second)
    return VerdictComparison(
        first=labels[0],
        second=labels[1],
        about="answers" if same else "cells",
        n=int(tallies.sum()),
        traces=count_paired_traces(db, *sides, same_answer=same),
        both_valid=both_valid,
        both_invalid=both_invalid,
        to_valid=up,
        to_invalid=down,
        other_answers=sum(found.values()) - int(tallies.sum()),
        change=to_estimate(measured.change),
        p_value=measured.p_value,
        kappa=to_estimate(measured.kappa),
        flips=[VerdictFlipRow(**flip._asdict()) for flip in load_verdict_flips(db, *sides, max_listed)],
        not_listed=max(0, flipped - max_listed),
    )
