"""Verdicts side by side: of the same judges in two audits, or of two judges on the same traces."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.stats import binomtest

from auditor.domain import Ruling
from auditor.errors import UsageError
from auditor.metrics.agreement import fleiss_kappa
from auditor.reports.comparison_parts import FlipPart, VerdictsPart
from auditor.reports.comparison_series import Series, Target
from auditor.reports.estimates import unmeasured
from auditor.reports.measures import Estimate
from auditor.storage import audits
from auditor.storage.database import Database
from auditor.storage.flips import Verdicts, flips, splits

LISTED = 50
VALID, INVALID = Ruling.VALID.value, Ruling.INVALID.value


def same_judges(db: Database, first: Series, second: Series, listed: int) -> VerdictsPart | None:
    """The same judges' verdicts in both audits; two models of one audit have no traces in common."""
    if first.audit_id == second.audit_id:
        return None
    sides = (Verdicts(first.audit_id, model=first.model), Verdicts(second.audit_id, model=second.model))
    part = _verdicts(db, sides, (first.label, second.label), listed)
    return part if part.n else None


def between_judges(db: Database, targets: Sequence[Target], judges: Sequence[str], listed: int) -> list[VerdictsPart]:
    """Two judges in one audit, or the first in the first audit and the other in the second."""
    if len(judges) != 2 or len(targets) > 2:
        raise UsageError(
            "two judges are compared in one audit or across two.", "Give --judge twice, and one audit or two."
        )
    ids = [audits.get(db, t.audit).id for t in targets] * (2 if len(targets) == 1 else 1)
    models = [t.model for t in targets] * (2 if len(targets) == 1 else 1)
    sides = [Verdicts(i, judge, model) for i, judge, model in zip(ids, judges, models, strict=True)]
    part = _verdicts(db, (sides[0], sides[1]), (judges[0], judges[1]), listed)
    if not part.n:
        raise UsageError(
            f"no trace has a valid verdict of both '{judges[0]}' and '{judges[1]}'.",
            "`auditor report` names the judges of an audit.",
        )
    return [part]


def _verdicts(db: Database, sides: tuple[Verdicts, Verdicts], labels: tuple[str, str], listed: int) -> VerdictsPart:
    counts = splits(db, *sides)
    stayed = {word: counts.get((word, word), 0) for word in (VALID, INVALID)}
    up, down = counts.get((INVALID, VALID), 0), counts.get((VALID, INVALID), 0)
    n = sum(counts.values())
    return VerdictsPart(
        first=labels[0],
        second=labels[1],
        n=n,
        both_valid=stayed[VALID],
        both_invalid=stayed[INVALID],
        to_valid=up,
        to_invalid=down,
        change=_share_change(up, down, n),
        p_value=float(binomtest(up, up + down).pvalue) if up + down else None,
        kappa=_kappa(stayed[VALID], stayed[INVALID], up + down),
        flips=[FlipPart(**flip._asdict()) for flip in flips(db, *sides, listed)],
        not_listed=max(0, up + down - listed),
    )


def _share_change(up: int, down: int, n: int) -> Estimate:
    """Mean of +1 for a flip to VALID and -1 for one to INVALID, with the normal interval of a paired share."""
    if n == 0:
        return unmeasured("no trace has verdicts on both sides")
    value = (up - down) / n
    if n < 2 or up + down == 0:
        return Estimate(value=value, n=n, reason="no verdict flipped: no interval" if n > 1 else "one trace only")
    half = 1.96 * float(np.sqrt((up + down) / n - value**2) / np.sqrt(n))
    return Estimate(value=value, n=n, ci_low=max(-1.0, value - half), ci_high=min(1.0, value + half))


def _kappa(valid: int, invalid: int, split: int) -> Estimate:
    counts = np.repeat(np.array([[2, 0], [0, 2], [1, 1]]), [valid, invalid, split], axis=0)
    found = fleiss_kappa(counts)
    return Estimate(value=found.value, n=found.n_items, ci_low=found.ci_low, ci_high=found.ci_high, reason=found.reason)
