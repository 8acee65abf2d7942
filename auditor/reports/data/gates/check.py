"""Gates: test the figures of an audit against the thresholds of its configuration or of a command."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

import pydantic

from auditor.config import CheckSection
from auditor.config.sections import DEFAULT_MIN_COVERAGE
from auditor.config.validation_messages import explain_validation_error
from auditor.errors import UsageError, did_you_mean
from auditor.metrics.intervals.estimate import Estimate
from auditor.metrics.intervals.jackknife_interval import CONSTANT_REASON
from auditor.reports.data.coverage.counts import (
    ASK_UNANSWERED_ADVICE,
    CoverageRow,
    count_versions_by_model,
    describe_unanswered,
)
from auditor.reports.data.coverage.lost_samples import has_unknown_sign
from auditor.reports.data.differences.schema import DifferenceReport, SeriesPairDifferences, UnpairedModel
from auditor.reports.data.gates.estimates import (
    COMPLETION_GATE,
    EXIT_CODES,
    NOT_PASSED,
    CheckResult,
    Gate,
    GatedFigure,
    GateStatus,
    ModelCheck,
    build_estimate_gate,
    build_estimate_gates,
    build_probe_gates,
    format_threshold,
    withhold_pass,
)
from auditor.reports.data.report_model import ROUNDING_ERROR, ReportModel
from auditor.reports.data.report_schema import Report
from auditor.reports.number_format import describe_estimate, format_percent, pluralize


def build_count_gates(
    report: Report, thresholds: CheckSection, models: Sequence[str], low_coverage_models: Collection[str] = ()
) -> Iterator[Gate]:
    """Yield the gates on unsettled conflicts, model versions and cost in USD, each only if its threshold is set.

    Args:
        models: all models of the audit; versions of others, such as judges, are gates of the whole audit.
        low_coverage_models: models with too few usable answers. What lost answers could add to a number of conflicts or
            versions is not known, so these gates can fail, but are undecided instead of passed.
    """
    if thresholds.max_open_conflicts is not None:
        states = report.conflicts.states
        n_unsettled = states.get("open", 0) + states.get("disputed", 0)
        description = f"{n_unsettled} of {report.conflicts.total} conflicts are not settled"
        gate = _build_count_gate(
            "max_open_conflicts", n_unsettled, thresholds.max_open_conflicts, description, report.conflicts.total
        )
        yield withhold_pass(gate) if low_coverage_models and gate.verdict is GateStatus.PASSED else gate
    if thresholds.max_served_models is not None:
        for gate in _served_model_gates(report, thresholds.max_served_models, models):
            is_withheld = gate.model in low_coverage_models and gate.verdict is GateStatus.PASSED
            yield withhold_pass(gate) if is_withheld else gate
    if thresholds.max_cost_usd is not None:
        cost = report.cost.total
        # None: some answers were paid for at an unknown price, and no price is known.
        spent = 0.0 if cost.usd is None and not cost.sums.unpriced else cost.usd
        is_over = spent is not None and spent > thresholds.max_cost_usd + ROUNDING_ERROR
        # A lower bound below the limit decides nothing; one above it fails.
        observed = None if cost.lower_bound and not is_over else spent
        cost_text = (
            "unknown"
            if spent is None
            else f"${spent:.4f}{' or more, since some prices are unknown' * cost.lower_bound}"
        )
        yield _build_count_gate(
            "max_cost_usd", observed, thresholds.max_cost_usd, f"cost {cost_text}", cost.sums.answers
        )


def _served_model_gates(report: Report, max_served_models: int, models: Sequence[str]) -> Iterator[Gate]:
    """Yield a gate for each model on the number of versions that its provider reported."""
    answer_counts = {
        name: sum(row.answers for row in report.served if row.version.name == name)
        for name in count_versions_by_model(report.served)
    }
    for name, n_versions in count_versions_by_model(report.served).items():
        description = (
            f"{pluralize(n_versions, 'model version')} answered, as far as the provider reports"
            if n_versions
            else "the provider does not report the model version"
        )
        gate = _build_count_gate(
            "max_served_models", n_versions or None, max_served_models, description, answer_counts[name], subject=name
        )
        yield gate.model_copy(update={"model": name if name in models else None})
    if not answer_counts:
        yield _build_count_gate("max_served_models", None, max_served_models, "no answer of a model is recorded", 0)


def _build_count_gate(
    name: str, observed: float | None, maximum: float, description: str, n: int, subject: str = "audit"
) -> Gate:
    """Test a number against a maximum; undecided if the number is not known.

    Args:
        observed: the tested number; None if unknown.
        description: the number in words, for the gate's message.
        n: what the number is counted over, such as all conflicts or answers.
    """
    verdict = (
        GateStatus.UNDECIDED
        if observed is None
        else GateStatus.PASSED
        if observed <= maximum + ROUNDING_ERROR
        else GateStatus.FAILED
    )
    return Gate(
        name=name,
        subject=subject,
        threshold=maximum,
        value=observed,
        ci_low=None,
        ci_high=None,
        n=n,
        verdict=verdict,
        message=f"{description}; at most {format_threshold(maximum)} allowed",
    )


def check_report(
    report: Report, thresholds: CheckSection, *, use_corrections: bool = True, models: Sequence[str] = ()
) -> CheckResult:
    """Test a report against thresholds, each model by itself.

    If the audit is not complete, every verdict is undecided, whatever the figures are: it has not finished, or more
    than 5% of some planned answers were never asked for, or more than 10% got no answer. Else a model fails if any of
    its gates failed, and is undecided if any could not be tested. A model below `min_coverage` fails if that threshold
    is set and its answers alone are why (refused, truncated, unreadable), and is undecided otherwise; its other gates
    then fail only if they fail whatever the lost answers would have been. With `confident`, the worse end of each
    interval must meet the threshold. This needs no correction for the number of gates, since a pass requires all of
    them (intersection-union test: Berger, Technometrics 24, 1982).

    Args:
        report: see `build_report`.
        thresholds: limits for the figures; None for those that are not tested.
        use_corrections: whether peer agreement is corrected by people's labels, if each model has enough of them.
        models: the models to decide about; empty for all. Gates of the whole audit, such as its cost, always count.

    Raises:
        UsageError: the audit has no such model.
    """
    names = (row.name for row in report.coverage.models if row.name is not None)
    scored, judged = (row.model for row in report.alignment), (row.model for row in report.peer_agreement)
    all_models = list(dict.fromkeys((*names, *scored, *judged)))
    selected = _select_models(report.audit.name, all_models, models)
    coverage_gates = [
        gate for gate in _coverage_gates(report, thresholds.min_coverage) if gate.model in (None, *selected)
    ]
    incomplete_rows = [] if report.audit.imported else [row for row in report.coverage.models if row.is_incomplete]
    incomplete_rows = [row for row in incomplete_rows if row.name in selected]
    is_complete = report.audit.complete and not incomplete_rows
    low_coverage = {gate.model for gate in coverage_gates if gate.model and gate.verdict is not GateStatus.PASSED}
    figure_gates = [
        *build_estimate_gates(report, thresholds, use_corrections=use_corrections, low_coverage_models=low_coverage),
        *build_probe_gates(report, thresholds, all_models, low_coverage),
        *build_count_gates(report, thresholds, all_models, low_coverage),
    ]
    gates = [*coverage_gates, *(gate for gate in figure_gates if gate.model in (None, *selected))]
    if not is_complete:
        gates = [_leave_undecided(gate) for gate in gates]
    gates.insert(0, _completion_gate(report, incomplete_rows))
    verdicts = {gate.verdict for gate in gates}
    return CheckResult(
        audit=report.audit.name,
        complete=is_complete,
        confident=thresholds.confident,
        verdict=_worst(verdicts),
        models=[_decide_model(model, gates) for model in selected],
        gates=gates,
    )


def _select_models(audit: str, all_models: Sequence[str], names: Sequence[str]) -> list[str]:
    """The named models in the order of the audit, or all; raises UsageError for a name that it does not have."""
    if unknown := [name for name in names if name not in all_models]:
        hint = did_you_mean(unknown[0], all_models, f"Its models: {', '.join(all_models) or 'none'}.")
        raise UsageError(f"the audit '{audit}' has no model '{unknown[0]}'.", hint)
    return [model for model in all_models if not names or model in names]


def _leave_undecided(gate: Gate) -> Gate:
    """The gate of an audit that has not finished: neither passed nor failed."""
    return gate if gate.verdict is GateStatus.SKIPPED else gate.model_copy(update={"verdict": GateStatus.UNDECIDED})


def _decide_model(model: str, gates: Sequence[Gate]) -> ModelCheck:
    """Decide about a model by its own gates, and by whether the audit is complete."""
    own_gates = [gate for gate in gates if gate.model == model or gate.name == COMPLETION_GATE]
    verdict = _worst({gate.verdict for gate in own_gates})
    parts = [
        f"{status}: {', '.join(dict.fromkeys(gate.name for gate in own_gates if gate.verdict is status))}"
        for status in NOT_PASSED
        if any(gate.verdict is status for gate in own_gates)
    ]
    return ModelCheck(model=model, verdict=verdict, message="; ".join(parts) or "every gate that applies passed")


def _worst(verdicts: Collection[GateStatus]) -> GateStatus:
    """Failed if any gate failed, else undecided if any is; passed otherwise."""
    return next((status for status in NOT_PASSED if status in verdicts), GateStatus.PASSED)


class ComparisonGate(ReportModel):
    """Outcome of a comparison as a gate: whether any pair is worse, or misses its margin."""

    verdict: GateStatus
    reasons: list[str]
    """Why it failed or is undecided, a sentence for each pair; and which regions the margin was not tested in."""

    @property
    def exit_code(self) -> int:
        """Exit code of `auditor compare` with a gate: 0 if all pairs passed, 3 if one failed, else 4."""
        return EXIT_CODES[self.verdict]


def decide_comparison(differences: DifferenceReport, *, fail_if_worse: bool) -> ComparisonGate:
    """Decide a comparison: failed if a pair is worse or not shown to be within its margin, else undecided if untested.

    Args:
        fail_if_worse: whether a pair fails whose mean absolute error is larger by its test, corrected for the number of
            pairs. It is undecided without a test, unless all errors are equal; if an audit has not finished; or if the
            losses of its samples could hide a change. Without it, only margins count, which are undecided for the last
            two reasons too. A model of a later audit that the first one does not have leaves both undecided.
    """
    notes: list[str] = []
    failed, undecided = [], [_describe_unpaired(model) for model in differences.unpaired if not model.is_reference]
    unfinished = {series.label for series in differences.series if not series.complete}
    for pair in differences.pairs if fail_if_worse else ():
        is_unfinished = bool({pair.first, pair.second} & unfinished)
        if reason := _find_untested_reason(pair, is_unfinished=is_unfinished):
            undecided.append(f"{pair.second} is not compared with {pair.first}: {reason}")
        elif pair.mae.change == "worse":
            figures = describe_estimate("", pair.mae.difference, digits=3, style="signed")
            failed.append(f"{pair.second} is worse than {pair.first}: mean absolute error {figures}")
    for report in differences.non_inferiority:
        tested = [row for row in report.rows if row.passes is not None]
        untested = [row.region for row in report.rows if row.passes is None and not row.is_hidden]
        if tested and untested:
            notes.append(f"{report.second} is not tested against {report.first} in {', '.join(untested)}")
        if missed := [row.region for row in tested if not row.passes]:
            failed.append(
                f"{report.second} is not shown to be within the margin of {report.first}: {', '.join(missed)}"
            )
        elif not tested and not any(row.is_hidden for row in report.rows):
            undecided.append(f"{report.second} is not tested against {report.first}: {report.reason}")
        elif {report.first, report.second} & unfinished:
            undecided.append(f"{report.second} is not tested against {report.first}: {UNFINISHED_REASON}")
        elif hidden := [row.region for row in report.rows if row.is_hidden]:
            undecided.append(
                f"{report.second} is not shown to be within the margin of {report.first} ({', '.join(hidden)}): "
                f"{HIDDEN_CHANGE_REASON}"
            )
    verdict = GateStatus.FAILED if failed else GateStatus.UNDECIDED if undecided else GateStatus.PASSED
    return ComparisonGate(verdict=verdict, reasons=[*failed, *undecided, *notes])


def _describe_unpaired(model: UnpairedModel) -> str:
    """Why a model of a later audit is not compared, and how to compare it or to leave it out."""
    return (
        f"{model.label} is not compared: the first audit has no model of this name. Add --map OLD={model.model} if it "
        "has another one there, or name the models to compare (AUDIT:MODEL)"
    )


UNFINISHED_REASON = "an audit has not finished"
HIDDEN_CHANGE_REASON = "more samples were lost than such a comparison allows, so a change could be hidden"
REVERSIBLE_REASON = "it is further from people on the cells that both answered, but lost samples could reverse this"


def _find_untested_reason(pair: SeriesPairDifferences, *, is_unfinished: bool) -> str | None:
    """Why a pair cannot be said to be worse, or not to be; None if it can."""
    if is_unfinished:
        return UNFINISHED_REASON
    if pair.mae.difference.adjusted_p_value is None and not _is_no_change(pair.mae.difference):
        return pair.mae.difference.reason or "there is no test"
    if pair.worst_case is None:
        return None
    if pair.mae.change != "worse":
        return HIDDEN_CHANGE_REASON
    return REVERSIBLE_REASON if has_unknown_sign(pair.worst_case.mae) else None


def _is_no_change(difference: Estimate) -> bool:
    """Whether errors are equal, whichever country or topic is left out, as of a model that gives the same answers."""
    return (
        difference.value is not None and abs(difference.value) < ROUNDING_ERROR and difference.reason == CONSTANT_REASON
    )


def resolve_thresholds(base: CheckSection, overrides: Mapping[str, object]) -> CheckSection:
    """Apply overrides, new thresholds by name, to the thresholds of a config.

    Raises:
        UsageError: a threshold is unknown, or its value is not allowed.
    """
    known = [*CheckSection.model_fields, *CheckSection.list_further_fields()]
    if unknown := [name for name in overrides if name not in known]:
        hint = did_you_mean(unknown[0], known, f"Known: {', '.join(known)}.")
        raise UsageError(f"there is no threshold '{unknown[0]}'.", hint)
    try:
        return CheckSection.model_validate(base.model_dump() | dict(overrides))
    except pydantic.ValidationError as error:
        raise UsageError(f"thresholds: {explain_validation_error(error, overrides, CheckSection)}") from None


def _completion_gate(report: Report, incomplete_rows: Sequence[CoverageRow]) -> Gate:
    """Gate on whether the audit is complete; undecided, not failed, if it is not.

    Args:
        incomplete_rows: coverage of the tested models with too many answers that were not asked for or got lost.
    """
    is_complete = report.audit.complete and not incomplete_rows
    if is_complete:
        progress = "is complete"
    elif not report.audit.complete:
        progress = f"is not complete (stage: {report.audit.stage}): run it again with the same command"
    else:
        causes = "; ".join(describe_unanswered(row) for row in incomplete_rows)
        progress = f"is not complete: {causes}. {ASK_UNANSWERED_ADVICE}"
    return Gate(
        name=COMPLETION_GATE,
        subject="audit",
        threshold=1,
        value=float(is_complete),
        ci_low=None,
        ci_high=None,
        n=1,
        verdict=GateStatus.PASSED if is_complete else GateStatus.UNDECIDED,
        message=f"the audit {progress}",
    )


def _coverage_gates(report: Report, min_coverage: float | None) -> Iterator[Gate]:
    """Gates on the coverage of each model's answers, and of the verdicts on them; undecided without planned answers."""
    for row in report.coverage.models:
        n_unanswered = 0 if report.audit.imported else row.never_asked + row.lost_requests
        yield _coverage_gate(row, min_coverage, n_unanswered)
    if all(row.stage == "review" for row in report.coverage.models):
        missing = GatedFigure("audit", Estimate(value=None, n=0, reason="no answer of a model is recorded"))
        yield build_estimate_gate("min_coverage", "min", min_coverage or DEFAULT_MIN_COVERAGE, missing, False)


def _coverage_gate(row: CoverageRow, min_coverage: float | None, n_unanswered: int) -> Gate:
    """Gate on the usable share of one coverage row.

    Args:
        min_coverage: None for the default one: the gate is then undecided, not failed, if the share is too low.
        n_unanswered: items that were never asked for or got lost; the gate is undecided if these decide it.
    """
    threshold = DEFAULT_MIN_COVERAGE if min_coverage is None else min_coverage
    usable_share, usable_percent = row.ok / row.planned if row.planned else 0.0, format_percent(row.ok, row.planned)
    could_pass = not row.planned or (row.ok + n_unanswered) / row.planned >= threshold
    if usable_share >= threshold:
        verdict = GateStatus.PASSED
    else:
        verdict = GateStatus.UNDECIDED if min_coverage is None or could_pass else GateStatus.FAILED
    is_decided_by_unanswered = bool(n_unanswered) and could_pass and verdict is GateStatus.UNDECIDED
    note = f"; undecided, since {describe_unanswered(row)}" if is_decided_by_unanswered else ""
    return Gate(
        name="min_coverage",
        subject=row.name or "audit",
        model=row.name,
        threshold=threshold,
        value=usable_share,
        ci_low=None,
        ci_high=None,
        n=row.planned,
        verdict=verdict,
        message=(
            f"{row.ok} of {row.planned} {row.counted_label} are usable ({usable_percent}); "
            f"at least {threshold:.0%} required{' by default' * (min_coverage is None)}{note}"
        ),
    )
