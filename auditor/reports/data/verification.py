"""Check that an audit's records are complete and consistent, and that they were not changed after writing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from auditor.domain import Outcome
from auditor.reports.data.coverage.build import measure_coverage
from auditor.reports.data.coverage.counts import CoverageUnit, StageCoverage
from auditor.reports.data.probe_reports import build_probe_reports, load_recorded_probes, measure_probe_coverage
from auditor.reports.data.report_source import load_source
from auditor.reports.data.requests import build_sampling_report
from auditor.storage import audits, count_queries as stored, hash_chain
from auditor.storage.database import Database
from auditor.storage.derived_rows import RowDifference, find_unknown_values

CANCELLED_OUTCOME = Outcome.OVER_BUDGET.value
"""Outcome of calls that were cancelled because the budget was spent."""


@dataclass(frozen=True, slots=True)
class CallBalance:
    """Planned calls of one model in one stage by what happened to them: planned = done + failed + cancelled + pending.

    Attributes:
        done: answered, usable or not; paid for, and never repeated.
        failed: requested without an answer; the next run repeats them.
        cancelled: not requested because the budget was spent; the next run requests them if the budget allows.
        pending: not requested yet.
        stray: recorded but not planned; any number but 0 is an error of the program or the database.
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
        """Whether the numbers add up to the planned one, and nothing unplanned is recorded."""
        n_accounted_for = self.done + self.failed + self.cancelled + self.pending
        return self.stray == 0 and self.pending >= 0 and n_accounted_for == self.planned


@dataclass(frozen=True, slots=True)
class AuditVerification:
    """Outcome of `verify_audit`.

    Attributes:
        balances: planned against recorded calls, by stage and model.
        unfounded: number of usable traces, verdicts and answers of probes whose answer is not recorded.
        records: check of the hash chain over all records of the database.
        unknown: rows with a value that no version of the program has written; then no calls are balanced, and neither
            are they where the row of the audit, with its configuration and survey, was changed.
        uncovered: number of rows that neither the chain nor recorded answers confirm, by table.
    """

    balances: Sequence[CallBalance]
    unfounded: int
    records: hash_chain.ChainCheck
    unknown: Sequence[RowDifference] = ()
    uncovered: Mapping[str, int] = field(default_factory=dict)

    @property
    def is_consistent(self) -> bool:
        """Whether all balances and the hash chain are consistent, and every usable record has its answer."""
        is_balanced = all(balance.is_consistent for balance in self.balances)
        return is_balanced and not self.unfounded and not self.records.breaks and not self.unknown


def verify_audit(
    db: Database,
    audit_name: str,
    records: hash_chain.ChainCheck | None = None,
    unknown: Sequence[RowDifference] | None = None,
) -> AuditVerification:
    """Check the calls of one audit, and the hash chain over the records of the whole database.

    Args:
        db: the database.
        audit_name: the audit's name.
        records: outcome of `hash_chain.verify_chain`, if it was checked before.
        unknown: what `find_unknown_values` returns, if it was called before.

    Raises:
        StorageError: there is no such audit.
    """
    audit = audits.get_audit(db, audit_name)
    records, uncovered = records or hash_chain.verify_chain(db), hash_chain.find_uncovered(db, audit.id)
    unknown = find_unknown_values(db, audit.id) if unknown is None else unknown
    if unknown or not hash_chain.is_audit_intact(db, audit.id):
        return AuditVerification([], 0, records, unknown, uncovered)
    # The cost, the single votes and what judges were shown are not checked, and take most of the time.
    source = load_source(db, audit_name, left_out=["call_counts", "votes", "n_shortened_traces"])
    probe_reports = build_probe_reports(db, source, build_sampling_report(source.config, source.call_counts))
    balances = [_balance_stage(stage, model) for stage in measure_coverage(source) for model in source.models]
    balances += [
        _balance_stage(stage, name)
        for stage in measure_probe_coverage(probe_reports, load_recorded_probes(db, source))
        for name in dict.fromkeys(unit.name for unit in stage.planned)
    ]
    unfounded = stored.count_missing_answers(db, source.audit.id)
    return AuditVerification(balances, unfounded, records, uncovered=uncovered)


def _balance_stage(stage_coverage: StageCoverage, model: str) -> CallBalance:
    """Compare planned with recorded calls of one model in one stage; a unit is one model (or judge), country and topic.

    The `stage` of the result is the method of scoring where the stage has one.
    """
    recorded_by_unit, counts_by_outcome = Counter[CoverageUnit](), Counter[str]()
    for unit, outcome, n in stage_coverage.recorded:
        if unit.name == model:
            recorded_by_unit[unit] += n
            counts_by_outcome[outcome] += n
    # Where answers decide how many items are asked for, those that were recorded were planned, up to the most.
    max_planned = stage_coverage.planned if stage_coverage.max_planned is None else stage_coverage.max_planned
    planned_by_unit = {
        unit: min(stage_coverage.planned_totals[unit], n) for unit, n in max_planned.items() if unit.name == model
    }
    n_answered = sum(n for outcome, n in counts_by_outcome.items() if Outcome(outcome).is_answer)
    n_stray = sum(max(0, n - planned_by_unit.get(unit, 0)) for unit, n in recorded_by_unit.items())
    return CallBalance(
        stage=stage_coverage.stage if stage_coverage.method is None else stage_coverage.method,
        model=model,
        planned=sum(planned_by_unit.values()),
        done=n_answered - n_stray,
        failed=counts_by_outcome.total() - n_answered - counts_by_outcome[CANCELLED_OUTCOME],
        cancelled=counts_by_outcome[CANCELLED_OUTCOME],
        pending=sum(max(0, n - recorded_by_unit[unit]) for unit, n in planned_by_unit.items()),
        stray=n_stray,
    )
