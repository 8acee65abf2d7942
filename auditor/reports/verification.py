"""Proof that an audit's records add up, and are as they were written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from auditor.domain import Outcome
from auditor.reports.coverage.section import CoverageUnit, StageCoverage, measure_coverage
from auditor.reports.report_source import load_source
from auditor.storage import count_queries as stored
from auditor.storage import hash_chain
from auditor.storage.database import Database

CANCELLED_OUTCOME = Outcome.OVER_BUDGET.value
"""What was given up without asking."""


@dataclass(frozen=True, slots=True)
class CallBalance:
    """What became of what was planned, of one model in one stage: planned = done + failed + cancelled + pending.

    Attributes:
        done: answered, usable or not: paid for, and never asked again.
        failed: asked in vain; the next run asks again.
        cancelled: not asked, for want of money; the next run asks if there is more.
        pending: not asked yet.
        stray: recorded, but not planned; anything but 0 is a fault of the program or of the database.
    """

    stage: str
    model: str
    planned: int
    done: int
    failed: int
    cancelled: int
    pending: int
    stray: int

    @property
    def is_consistent(self) -> bool:
        parts = self.done + self.failed + self.cancelled + self.pending
        return self.stray == 0 and self.pending >= 0 and parts == self.planned


@dataclass(frozen=True, slots=True)
class AuditVerification:
    """What came of a check.

    Attributes:
        unfounded: usable traces and verdicts whose answer is not recorded.
    """

    balances: Sequence[CallBalance]
    unfounded: int
    records: hash_chain.ChainCheck

    @property
    def is_consistent(self) -> bool:
        return all(b.is_consistent for b in self.balances) and not self.unfounded and not self.records.breaks


def verify_audit(db: Database, audit_name: str) -> AuditVerification:
    """Check an audit, and the records of the whole database.

    Raises:
        StorageError: there is no such audit.
    """
    source = load_source(db, audit_name)
    balances = [_balance_stage(tally, model) for tally in measure_coverage(source) for model in source.models]
    return AuditVerification(balances, stored.count_missing_answers(db, source.audit.id), hash_chain.verify_chain(db))


def _balance_stage(stage_coverage: StageCoverage, model: str) -> CallBalance:
    recorded, outcomes = Counter[CoverageUnit](), Counter[str]()
    for unit, outcome, n in stage_coverage.recorded:
        if unit.name == model:
            recorded[unit] += n
            outcomes[outcome] += n
    planned = {unit: n for unit, n in stage_coverage.planned.items() if unit.name == model}
    done = sum(n for outcome, n in outcomes.items() if Outcome(outcome).is_answer)
    stray = sum(max(0, n - planned.get(unit, 0)) for unit, n in recorded.items())
    return CallBalance(
        stage=stage_coverage.stage if stage_coverage.method is None else stage_coverage.method,
        model=model,
        planned=sum(planned.values()),
        done=done - stray,
        failed=outcomes.total() - done - outcomes[CANCELLED_OUTCOME],
        cancelled=outcomes[CANCELLED_OUTCOME],
        pending=sum(max(0, n - recorded[unit]) for unit, n in planned.items()),
        stray=stray,
    )
