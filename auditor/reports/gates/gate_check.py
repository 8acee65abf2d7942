"""Gates: what a configuration or a command asks of an audit, and whether its figures meet it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from html import escape
from typing import Literal

import pydantic

from auditor.config import AuditConfig, CheckSection
from auditor.config.validation_messages import explain
from auditor.errors import UsageError, did_you_mean
from auditor.reports.coverage.model_versions import stood_behind
from auditor.reports.coverage.schema import CoverageRow
from auditor.reports.estimate_conversion import STRETCHED
from auditor.reports.gates.gate_estimates import Rows, gaps, mae, pearson, series_name, topics
from auditor.reports.measurement_schema import Estimate, Part
from auditor.reports.pages.number_format import interval, number, plural, share
from auditor.reports.report_schema import Report
from auditor.text_safety import visible

Side = Literal["min", "max"]


class Verdict(StrEnum):
    """What came of a gate, or of all."""

    PASSED = "passed"
    FAILED = "failed"
    UNDECIDED = "undecided"
    """There is no figure, no interval where one is asked for, or too little coverage."""
    SKIPPED = "skipped"
    """Scores without a distance from people, beside others that have one."""


NOT_MET = (Verdict.FAILED, Verdict.UNDECIDED)


class Gate(Part):
    """One threshold, tested on one model or on the audit."""

    name: str
    """The threshold's name, such as `min_pearson`."""
    subject: str
    """The model and, where there are several, the method; the audit for what concerns all."""
    threshold: float
    value: float | None
    ci_low: float | None
    ci_high: float | None
    n: int
    verdict: Verdict
    message: str
    """What was found, in one line."""


class CheckResult(Part):
    """Whether an audit meets what is asked of it."""

    audit: str
    complete: bool
    confident: bool
    verdict: Verdict
    gates: list[Gate]

    @property
    def passed(self) -> bool:
        """Whether every gate was passed, by an audit that is whole."""
        return self.verdict is Verdict.PASSED

    def __bool__(self) -> bool:
        return self.passed

    @property
    def exit_code(self) -> int:
        """0 passed, 3 a gate failed, 4 coverage too low for a verdict."""
        return {Verdict.PASSED: 0, Verdict.FAILED: 3, Verdict.UNDECIDED: 4}[self.verdict]

    def _repr_html_(self) -> str:
        cells = [[g.verdict, g.name, g.subject, g.message] for g in self.gates]
        rows = "".join(f"<tr>{''.join(f'<td>{escape(visible(c))}</td>' for c in row)}</tr>" for row in cells)
        return f"<table><caption>{escape(self.audit)}: {self.verdict}</caption><tbody>{rows}</tbody></table>"

    def __str__(self) -> str:
        bad = [f"{g.name} {g.subject}: {g.message}" for g in self.gates if g.verdict in NOT_MET]
        return f"{self.audit} {self.verdict}" + "".join(f"\n  {line}" for line in bad)


def check(report: Report, wanted: CheckSection) -> CheckResult:
    """Test a report against thresholds.

    Coverage goes first: where the audit has not run to its end, or less is usable than `min_coverage`, there is no
    verdict, whatever the figures say. Then any gate that failed decides, then any that could not be tested. With
    `confident` the worse end of each interval must meet the threshold; that all gates do so at once needs no
    correction for their number, since a pass takes every one of them (intersection-union test: Berger, Technometrics
    24, 1982).

    Args:
        report: see `build_report`.
        wanted: the thresholds.
    """
    gates = [_complete(report), *_coverage(report, wanted.min_coverage), *_figures(report, wanted)]
    gates += _counts(report, wanted)
    first = [g for g in gates if g.name in ("complete", "min_coverage")]
    if any(g.verdict is not Verdict.PASSED for g in first):
        verdict = Verdict.UNDECIDED
    else:
        found = {g.verdict for g in gates}
        verdict = next((v for v in NOT_MET if v in found), Verdict.PASSED)
    return CheckResult(
        audit=report.audit.name,
        complete=report.audit.complete,
        confident=wanted.confident,
        verdict=verdict,
        gates=gates,
    )


def thresholds(config: AuditConfig | None, changes: Mapping[str, object]) -> CheckSection:
    """A config's thresholds, with changes; the defaults where there is no config, as for imported scores.

    Raises:
        UsageError: there is no such threshold, or it cannot have that value.
    """
    base = config.check if config else CheckSection()
    if unknown := [name for name in changes if name not in CheckSection.model_fields]:
        hint = did_you_mean(unknown[0], CheckSection.model_fields, f"Known: {', '.join(CheckSection.model_fields)}.")
        raise UsageError(f"there is no threshold '{unknown[0]}'.", hint)
    try:
        return CheckSection.model_validate(base.model_dump() | dict(changes))
    except pydantic.ValidationError as error:
        raise UsageError(f"thresholds: {explain(error, changes, CheckSection)}") from None


# --- coverage ---------------------------------------------------------------------------------------------------


def _complete(report: Report) -> Gate:
    done = report.audit.complete
    found = "ran to its end" if done else f"has not run to its end (stage: {report.audit.stage})"
    return Gate(
        name="complete",
        subject="audit",
        threshold=1,
        value=float(done),
        ci_low=None,
        ci_high=None,
        n=1,
        verdict=Verdict.PASSED if done else Verdict.UNDECIDED,
        message=f"the audit {found}",
    )


def _coverage(report: Report, least: float) -> Iterator[Gate]:
    """All that every model said, and all verdicts; an audit without any has no coverage."""
    rows = [row for row in report.coverage.models if row.stage != "review"]
    reviews = [row for row in report.coverage.total if row.stage == "review"]
    for row in [*rows, *reviews]:
        yield _covered(row, least)
    if not rows:
        yield _gate(
            "min_coverage",
            "audit",
            "min",
            least,
            Estimate(value=None, n=0, reason="nothing that a model said is there"),
            False,
        )


def _covered(row: CoverageRow, least: float) -> Gate:
    found, usable = row.ok / row.planned if row.planned else 0.0, share(row.ok, row.planned)
    enough = found >= least
    return Gate(
        name="min_coverage",
        subject=row.name or "audit",
        threshold=least,
        value=found,
        ci_low=None,
        ci_high=None,
        n=row.planned,
        verdict=Verdict.PASSED if enough else Verdict.UNDECIDED,
        message=f"{row.ok} of {row.planned} {row.what} usable ({usable}), at least {least:.0%} asked",
    )


# --- figures ----------------------------------------------------------------------------------------------------


def _figures(report: Report, wanted: CheckSection) -> Iterator[Gate]:
    sources: Mapping[str, tuple[Side, Callable[[Report], Rows]]] = {
        "min_pearson": ("min", pearson),
        "max_mae": ("max", mae),
        "max_region_gap": ("max", gaps),
        "max_topic_mae": ("max", lambda r: topics(r, wanted.confident)),
        "min_self_consistency": ("min", lambda r: [(series_name(r, c), c.cosine) for c in r.self_consistency]),
        "max_variance": ("max", lambda r: [(series_name(r, c), c.variance) for c in r.self_consistency]),
        "min_peer_agreement": ("min", lambda r: [(p.model, p.agreement) for p in r.peer_agreement]),
        "min_accuracy": ("min", lambda r: [(m.model, m.accuracy) for m in r.task.models] if r.task else []),
        "min_kappa": ("min", lambda r: [("panel", r.panel.fleiss_kappa)]),
    }
    for name, (side, rows_of) in sources.items():
        threshold = getattr(wanted, name)
        if threshold is None:
            continue
        rows = rows_of(report)
        nothing = Estimate(value=None, n=0, reason="the audit has no such figure")
        tested = any(estimate.reason != STRETCHED for _, estimate in rows)
        for subject, estimate in rows or [("audit", nothing)]:
            gate = _gate(name, subject, side, threshold, estimate, wanted.confident)
            skipped = tested and estimate.reason == STRETCHED
            yield gate.model_copy(update={"verdict": Verdict.SKIPPED}) if skipped else gate


def _gate(name: str, subject: str, side: Side, threshold: float, found: Estimate, confident: bool) -> Gate:
    tested = (found.ci_low if side == "min" else found.ci_high) if confident else found.value
    if tested is None:
        verdict = Verdict.UNDECIDED
    else:
        met = tested >= threshold if side == "min" else tested <= threshold
        verdict = Verdict.PASSED if met else Verdict.FAILED
    return Gate(
        name=name,
        subject=subject,
        threshold=threshold,
        value=found.value,
        ci_low=found.ci_low,
        ci_high=found.ci_high,
        n=found.n,
        verdict=verdict,
        message=_message(side, threshold, found, confident),
    )


def _message(side: Side, threshold: float, found: Estimate, confident: bool) -> str:
    bound = f"{'at least' if side == 'min' else 'at most'} {_exact(threshold)} asked"
    if found.value is None:
        return f"not measurable: {found.reason}; {bound}"
    between = interval(found.ci_low, found.ci_high, 3) if found.ci_low is not None else f"no interval: {found.reason}"
    where = f"{'lower' if side == 'min' else 'upper'} end of the interval tested, " if confident else ""
    return f"{number(found.value, 3)} ({between}, n {found.n}); {where}{bound}"


def _exact(value: float) -> str:
    return f"{value:g}".replace("-", "\u2212")


# --- counts -----------------------------------------------------------------------------------------------------


def _counts(report: Report, wanted: CheckSection) -> Iterator[Gate]:
    if wanted.max_open_conflicts is not None:
        states = report.conflicts.states
        unsettled = states.get("open", 0) + states.get("disputed", 0)
        found = f"{unsettled} of {report.conflicts.total} conflicts unsettled"
        yield _count("max_open_conflicts", unsettled, wanted.max_open_conflicts, found, report.conflicts.total)
    if wanted.max_served_models is not None:
        yield from _served(report, wanted.max_served_models)
    if wanted.max_cost_usd is not None:
        cost = report.cost.total
        spent = 0.0 if cost.usd is None and not cost.unpriced else cost.usd
        over = spent is not None and spent > wanted.max_cost_usd
        known = None if cost.lower_bound and not over else spent
        told = "unknown" if spent is None else f"${spent:.4f}{' or more: some prices are unknown' * cost.lower_bound}"
        yield _count("max_cost_usd", known, wanted.max_cost_usd, f"cost {told}", cost.answers)


def _served(report: Report, most: int) -> Iterator[Gate]:
    answers = {name: sum(r.answers for r in report.served if r.name == name) for name in stood_behind(report.served)}
    for name, n in stood_behind(report.served).items():
        found = f"{plural(n, 'thing')} served it, as far as the provider says" if n else "the provider does not say"
        yield _count("max_served_models", n or None, most, found, answers[name], subject=name)
    if not answers:
        yield _count("max_served_models", None, most, "nobody was asked here", 0)


def _count(name: str, value: float | None, most: float, found: str, n: int, subject: str = "audit") -> Gate:
    verdict = Verdict.UNDECIDED if value is None else Verdict.PASSED if value <= most else Verdict.FAILED
    return Gate(
        name=name,
        subject=subject,
        threshold=most,
        value=value,
        ci_low=None,
        ci_high=None,
        n=n,
        verdict=verdict,
        message=f"{found}; at most {_exact(most)} asked",
    )
