"""Gates: both sides of each threshold, `confident` intervals, and no pass for unfinished audits or missing figures."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest

from auditor.config import AuditConfig, CheckSection, load_stored_config
from auditor.errors import UsageError
from auditor.reports.data.coverage.counts import ModelVersionRow
from auditor.reports.data.coverage.lost_samples import SampleCounts
from auditor.reports.data.gates.check import check_report, resolve_thresholds
from auditor.reports.data.gates.estimates import (
    GatedFigure,
    GateStatus,
    concordance_estimates,
    mae_estimates,
    pearson_estimates,
    peer_agreement_estimates,
    region_gap_estimates,
    worst_topic_estimates,
)
from auditor.reports.data.report_schema import Report
from auditor.reports.report_files import render_junit
from auditor.storage.costs import AnswerVersion
from tests.support.audit_configs import config


def make_thresholds(**values: float | bool) -> CheckSection:
    return CheckSection.model_validate({"min_coverage": 0.5, **values})


def figure_with_interval(report: Report, name: str) -> tuple[float, float, float]:
    """The first model's r or mean absolute error, with the ends of its 95% interval."""
    row = report.alignment[0]
    estimate = row.pearson_r if name == "min_pearson" else row.mae
    value, low, high = estimate.value, estimate.ci_low, estimate.ci_high
    assert value is not None
    assert low is not None
    assert high is not None
    return value, low, high


@pytest.mark.parametrize("name", ["min_pearson", "max_mae"])
def test_confident_gates_compare_the_worse_end_of_the_interval(report: Report, name: str) -> None:
    value, low, high = figure_with_interval(report, name)
    worse_end = low if name == "min_pearson" else high
    between = (value + worse_end) / 2
    beyond = worse_end - 0.01 if name == "min_pearson" else worse_end + 0.01
    gates_by_case = {
        (confident, t): check_report(report, make_thresholds(**{name: t, "confident": confident})).gates
        for confident in (False, True)
        for t in (value, between, beyond)
    }
    verdict_by_case = {
        key: next(gate for gate in gates if gate.name == name).verdict for key, gates in gates_by_case.items()
    }
    assert [verdict_by_case[False, t] for t in (value, between, beyond)] == [GateStatus.PASSED] * 3
    assert [verdict_by_case[True, t] for t in (value, between, beyond)] == [GateStatus.FAILED] * 2 + [GateStatus.PASSED]


def test_every_threshold_has_a_gate_that_passes_and_one_that_fails(report: Report) -> None:
    easy = {
        "min_pearson": -1,
        "min_concordance": -1,
        "max_mae": 2,
        "max_region_gap": 2,
        "max_topic_mae": 2,
        "min_self_consistency": -1,
    }
    easy |= {"max_refused": 1, "max_variance": 2, "min_peer_agreement": 0, "min_kappa": -1, "max_open_conflicts": 10**6}
    hard = {
        "min_pearson": 1,
        "min_concordance": 1,
        "max_mae": 0,
        "max_topic_mae": 0,
        "min_self_consistency": 1,
        "max_variance": 0,
    }
    hard |= {"max_refused": 0, "min_peer_agreement": 1, "min_kappa": 1, "max_open_conflicts": 0}
    # Tested below, in tests/e2e/test_tasks.py, and in tests/e2e/test_distribution_probe.py.
    others = {"max_cost_usd", "max_served_models", "min_accuracy", "probes"}
    fields = set(CheckSection.model_fields) - {"min_coverage", "confident"} - others
    assert set(easy) == fields
    passed = {
        gate.name for gate in check_report(report, make_thresholds(**easy)).gates if gate.verdict is GateStatus.PASSED
    }
    failed = {
        gate.name for gate in check_report(report, make_thresholds(**hard)).gates if gate.verdict is GateStatus.FAILED
    }
    assert passed - {"complete", "min_coverage"} == fields
    assert failed == set(hard)


@pytest.mark.parametrize(
    ("served_models", "max_served_models", "expected"),
    [
        (["a"], 1, GateStatus.PASSED), (["a", "b"], 1, GateStatus.FAILED), (["a", "b"], 2, GateStatus.PASSED),
        (["a", None], 1, GateStatus.PASSED), ([None], 1, GateStatus.UNDECIDED), ([], 1, GateStatus.UNDECIDED),
    ],
)  # fmt: skip
def test_a_gate_can_limit_the_number_of_served_models(
    report: Report, served_models: list[str | None], max_served_models: int, expected: GateStatus
) -> None:
    rows = [
        ModelVersionRow(version=AnswerVersion("m", s, altered=""), answers=2, first_at="1", last_at="2")
        for s in served_models
    ]
    check = check_report(
        report.model_copy(update={"served": rows}), make_thresholds(max_served_models=max_served_models)
    )
    gate = next(g for g in check.gates if g.name == "max_served_models")
    assert (gate.verdict, check.verdict) == (expected, expected)
    assert gate.subject == ("m" if served_models else "audit")
    if expected is GateStatus.FAILED:
        case = next(
            c for c in ElementTree.fromstring(render_junit(check)).iter("testcase") if c.find("failure") is not None
        )
        assert case.get("name") == "max_served_models[m]"
        assert "2 model versions answered" in gate.message


def test_exit_code_is_3_for_a_failed_gate_and_0_if_all_pass(report: Report) -> None:
    assert check_report(report, make_thresholds(min_pearson=-1)).exit_code == 0
    assert check_report(report, make_thresholds(min_pearson=1)).exit_code == 3


def test_coverage_below_a_set_minimum_fails_and_below_the_default_one_is_undecided(report: Report) -> None:
    set_check = check_report(report, CheckSection(min_coverage=0.95))
    default_check = check_report(report, CheckSection())
    assert (set_check.verdict, set_check.exit_code, bool(set_check)) == (GateStatus.FAILED, 3, False)
    assert (default_check.verdict, default_check.exit_code) == (GateStatus.UNDECIDED, 4)
    for check, threshold_note in ((set_check, "at least 95% required"), (default_check, "required by default")):
        gates = [gate for gate in check.gates if gate.name == "min_coverage"]
        assert {gate.threshold for gate in gates} == {0.95}
        assert all(threshold_note in gate.message for gate in gates)
        assert not check.has_thresholds


def test_each_model_is_decided_by_itself(report: Report) -> None:
    errors = {row.model: row.mae.value or 0.0 for row in report.alignment}
    best, worst = min(errors, key=lambda model: errors[model]), max(errors, key=lambda model: errors[model])
    max_mae = (errors[best] + errors[worst]) / 2
    check = check_report(report, make_thresholds(max_mae=max_mae))
    rows = {row.model: row for row in check.models}
    assert set(rows) == set(errors)
    assert (rows[best].verdict, rows[worst].verdict) == (GateStatus.PASSED, GateStatus.FAILED)
    assert rows[worst].message == "failed: max_mae"
    assert (check.verdict, check.exit_code) == (GateStatus.FAILED, 3)
    only_best = check_report(report, make_thresholds(max_mae=max_mae), models=[best])
    assert ([row.model for row in only_best.models], only_best.exit_code) == ([best], 0)
    assert {gate.model for gate in only_best.gates} == {best, None}
    with_cost = check_report(report, make_thresholds(max_cost_usd=0), models=[best])
    assert (with_cost.models[0].verdict, with_cost.exit_code) == (GateStatus.PASSED, 3), "the audit's own gates count"
    with pytest.raises(UsageError, match=f"has no model 'x{best}'. Did you mean '{best}'"):
        check_report(report, make_thresholds(), models=[f"x{best}"])


def test_a_model_that_passes_does_not_make_up_for_one_with_low_coverage(report: Report) -> None:
    first = report.coverage.models[0].name
    rows = [row if row.name == first else row.model_copy(update={"ok": row.planned}) for row in report.coverage.models]
    lossy = report.model_copy(update={"coverage": report.coverage.model_copy(update={"models": rows})})
    check = check_report(lossy, CheckSection(min_pearson=-1))
    assert {row.model for row in check.models if row.verdict is GateStatus.UNDECIDED} == {first}
    assert {row.model for row in check.models if row.verdict is not GateStatus.PASSED} == {first}
    assert check.exit_code == 4


@pytest.mark.parametrize(
    ("name", "list_figures", "met"),
    [
        ("min_pearson", pearson_estimates, -1.0),
        ("min_concordance", concordance_estimates, -1.0),
        ("max_mae", mae_estimates, 2.0),
        ("max_topic_mae", lambda report: worst_topic_estimates(report, confident=False), 2.0),
        ("max_region_gap", region_gap_estimates, 2.0),
        ("min_peer_agreement", peer_agreement_estimates, 0.0),
    ],
)
def test_with_low_coverage_a_gate_fails_only_whatever_the_lost_answers_are(
    report: Report, name: str, list_figures: Callable[[Report], list[GatedFigure]], met: float
) -> None:
    figure = list_figures(report)[0]
    value, best = figure.estimate.value, figure.bound_high if name.startswith("min") else figure.bound_low
    assert figure.lost > 0
    assert value is not None
    assert best is not None
    assert best > value if name.startswith("min") else best < value
    cases = [(met, GateStatus.PASSED, GateStatus.UNDECIDED)]
    cases.append(((best + value) / 2, GateStatus.FAILED, GateStatus.UNDECIDED))
    missed_by_all = best + 1e-6 if name.startswith("min") else best - 1e-6
    if 0 <= missed_by_all <= 1:
        cases.append((missed_by_all, GateStatus.FAILED, GateStatus.FAILED))
    for threshold, with_enough, with_too_few in cases:
        for thresholds in (make_thresholds(**{name: threshold}), CheckSection.model_validate({name: threshold})):
            gates = check_report(report, thresholds).gates
            gate = next(gate for gate in gates if (gate.name, gate.subject) == (name, figure.subject))
            assert gate.verdict is (with_too_few if thresholds.min_coverage is None else with_enough), gate.message


def test_the_smallest_mae_over_lost_samples_is_that_of_the_best_possible_answers() -> None:
    """Of two samples each: all usable; one lost, which can reach people's score; both lost; one that cannot."""
    counts = SampleCounts(np.array([2.0, 1, 0, 1]), np.full(4, 2.0), np.zeros(4, dtype=np.bool_))
    scores, truth = np.array([0.5, 0.4, np.nan, 1.0]), np.array([0.0, 0.1, -0.3, -0.5])
    assert counts.bound_mae_below(scores, truth, np.ones(4, dtype=np.bool_)) == pytest.approx((0.5 + 0 + 0 + 0.5) / 4)
    assert counts.bound_mae_below(scores, truth, np.zeros(4, dtype=np.bool_)) is None


def test_figures_whose_own_answers_are_all_usable_fail_as_with_enough_coverage(report: Report) -> None:
    """Verdicts are lost, so the model's coverage is low; its scores are all there, and miss the threshold."""
    lost = report.alignment[0].lost_samples.model_copy(update={"lost": 0, "share": 0.0})
    rows = [row.model_copy(update={"lost_samples": lost, "worst_case": None}) for row in report.alignment]
    check = check_report(report.model_copy(update={"alignment": rows}), CheckSection(max_mae=0, min_pearson=-1))
    assert {gate.verdict for gate in check.gates if gate.name == "max_mae"} == {GateStatus.FAILED}
    assert {gate.verdict for gate in check.gates if gate.name == "min_pearson"} == {GateStatus.UNDECIDED}
    assert check.exit_code == 3


def test_an_unfinished_audit_is_always_undecided(report: Report) -> None:
    unfinished_report = report.model_copy(
        update={"audit": report.audit.model_copy(update={"complete": False, "stage": "review"})}
    )
    for thresholds in (make_thresholds(min_coverage=0, min_pearson=-1), make_thresholds(min_coverage=1, min_pearson=1)):
        check = check_report(unfinished_report, thresholds)
        assert check.exit_code == 4
        verdicts = {gate.verdict for gate in check.gates} | {row.verdict for row in check.models}
        assert verdicts == {GateStatus.UNDECIDED}
        assert "stage: review" in check.gates[0].message


def test_a_partly_unknown_cost_cannot_pass_but_can_fail(report: Report) -> None:
    assert report.cost.total.lower_bound
    verdicts = [
        next(
            gate
            for gate in check_report(report, make_thresholds(max_cost_usd=max_usd)).gates
            if gate.name == "max_cost_usd"
        ).verdict
        for max_usd in (1000.0, 0.0)
    ]
    assert verdicts == [GateStatus.UNDECIDED, GateStatus.FAILED]


def test_a_gate_without_a_figure_is_undecided(report: Report) -> None:
    report_without_figures = report.model_copy(update={"peer_agreement": [], "alignment": []})
    check = check_report(report_without_figures, make_thresholds(min_peer_agreement=0, min_pearson=-1))
    undecided = [gate.name for gate in check.gates if gate.verdict is GateStatus.UNDECIDED]
    assert undecided == ["min_pearson", "min_peer_agreement"]
    assert check.exit_code == 4


def test_the_regional_gap_gate_uses_the_absolute_gap(report: Report) -> None:
    gap = report.regions.gaps[0]
    gap_estimate = replace(gap.mae_gap, value=-0.2, ci_low=-0.3, ci_high=0.1, reason=None)
    changed = gap.model_copy(update={"mae_gap": gap_estimate, "worst_case": None})
    negative_gap = report.regions.model_copy(update={"gaps": [changed]})
    check = check_report(report.model_copy(update={"regions": negative_gap}), make_thresholds(max_region_gap=0.25))
    gate = next(g for g in check.gates if g.name == "max_region_gap")
    assert (gate.value, gate.ci_low, gate.ci_high, gate.verdict) == (0.2, 0.0, 0.3, GateStatus.PASSED)


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [
        ((-0.1, 0.2), GateStatus.UNDECIDED),
        ((0.05, 0.2), GateStatus.PASSED),
        ((-0.2, -0.05), GateStatus.PASSED),
        ((None, None), GateStatus.UNDECIDED),
    ],
)
def test_a_gap_whose_sign_lost_samples_leave_open_decides_no_confident_gate(
    report: Report, bounds: tuple[float | None, float | None], expected: GateStatus
) -> None:
    gap = report.regions.gaps[0]
    assert gap.worst_case is not None
    estimate = replace(gap.mae_gap, value=0.1, ci_low=0.05, ci_high=0.2, reason=None)
    bounded = replace(gap.worst_case.mae, value=0.1, reason="too few", bound_low=bounds[0], bound_high=bounds[1])
    worst_case = gap.worst_case.model_copy(update={"mae": bounded})
    changed = gap.model_copy(update={"mae_gap": estimate, "worst_case": worst_case})
    lossy = report.model_copy(update={"regions": report.regions.model_copy(update={"gaps": [changed]})})
    gates = {
        confident: next(
            gate
            for gate in check_report(lossy, make_thresholds(max_region_gap=0.25, confident=confident)).gates
            if gate.name == "max_region_gap"
        )
        for confident in (False, True)
    }
    assert (gates[False].verdict, gates[True].verdict) == (GateStatus.PASSED, expected)
    assert ("sign not known because of lost samples" in gates[True].message) is (expected is GateStatus.UNDECIDED)


def test_options_override_the_config_and_unknown_options_suggest_the_nearest() -> None:
    audit_config = AuditConfig.model_validate(
        config("http://127.0.0.1:1").model_dump(mode="json") | {"check": {"min_pearson": 0.6, "max_mae": 0.3}}
    )
    thresholds = resolve_thresholds(audit_config, {"min_pearson": 0.7})
    assert (thresholds.min_pearson, thresholds.max_mae) == (0.7, 0.3)
    with pytest.raises(UsageError, match="Did you mean 'min_pearson'"):
        resolve_thresholds(audit_config, {"min_person": 0.7})
    with pytest.raises(UsageError, match="'min_kappa'"):
        resolve_thresholds(audit_config, {"min_kappa": 7})


def test_a_minimum_coverage_stored_by_an_earlier_version_is_the_default_one() -> None:
    stored = config("http://127.0.0.1:1").model_dump(mode="json")
    stored["check"]["min_coverage"] = 0.95
    assert load_stored_config(json.dumps(stored)).check.min_coverage == 0.95
    del stored["check"]["probes"]
    assert load_stored_config(json.dumps(stored)).check.min_coverage is None


def test_thresholds_are_not_part_of_the_config_hash() -> None:
    plain = config("http://127.0.0.1:1")
    strict = AuditConfig.model_validate(plain.model_dump(mode="json") | {"check": {"min_pearson": 0.9}})
    assert plain.hash == strict.hash


def change_coverage(report: Report, ok: int, losses: dict[str, int], missing: int = 0) -> Report:
    """The report with 50 planned answers of each model, of which `ok` are usable, and no verdicts."""
    update = {"planned": 50, "ok": ok, "losses": losses, "missing": missing}
    rows = [row.model_copy(update=update) for row in report.coverage.models if row.stage == "direct"]
    return report.model_copy(update={"coverage": report.coverage.model_copy(update={"models": rows})})


@pytest.mark.parametrize("min_coverage", [0.3, 0.95, None])
@pytest.mark.parametrize(
    ("ok", "losses", "missing"),
    [
        (31, {"over_budget": 19}, 0),
        (9, {"server_error": 20, "client_error": 21}, 0),
        (44, {"rate_limited": 6}, 0),
        (20, {"timeout": 10, "refused": 20}, 0),
        (40, {}, 10),
    ],
)
def test_what_was_not_asked_or_got_lost_leaves_an_audit_incomplete(
    report: Report, min_coverage: float | None, ok: int, losses: dict[str, int], missing: int
) -> None:
    lossy = change_coverage(report, ok, losses, missing)
    check = check_report(lossy, CheckSection(min_coverage=min_coverage, max_mae=0))
    assert (check.exit_code, check.complete) == (4, False)
    assert {row.verdict for row in check.models} == {GateStatus.UNDECIDED}
    message = check.gates[0].message
    assert "the audit is not complete" in message
    assert f"of 50 answers of {report.alignment[0].model}" in message
    assert "`auditor run CONFIG`" in message


def test_what_the_model_causes_counts_against_it(report: Report) -> None:
    refusing = check_report(change_coverage(report, 45, {"refused": 5}), CheckSection(min_coverage=0.95))
    assert (refusing.exit_code, refusing.complete) == (3, True)
    both = check_report(change_coverage(report, 45, {"refused": 4, "timeout": 1}), CheckSection(min_coverage=0.95))
    assert both.exit_code == 3, "refusals alone miss the requirement"
    lost = check_report(change_coverage(report, 47, {"refused": 1, "timeout": 2}), CheckSection(min_coverage=0.95))
    assert lost.exit_code == 4, "the lost answers decide"
    assert "2 were lost with their requests (2 timeout)" in str(lost)
    assert check_report(change_coverage(report, 48, {"timeout": 2}), CheckSection(min_coverage=0.95)).exit_code == 0


def test_refusals_have_a_gate_that_fails_only_whatever_the_lost_answers_are(report: Report) -> None:
    assert report.refusals is not None
    row = report.refusals.models[0]
    assert row.share.value is not None
    for limit, status in ((row.share.value - 0.001, GateStatus.FAILED), (row.share.value + 0.001, GateStatus.PASSED)):
        check = check_report(report, make_thresholds(max_refused=limit), models=[row.name])
        [gate] = [gate for gate in check.gates if gate.name == "max_refused"]
        assert (gate.verdict, gate.model) == (status, row.name), gate.message
    low_coverage = check_report(report, CheckSection(max_refused=row.share.value - 1e-6), models=[row.name])
    [gate] = [gate for gate in low_coverage.gates if gate.name == "max_refused"]
    assert gate.verdict is GateStatus.UNDECIDED, "the lost answers need not be refusals"


def test_the_reason_of_a_missing_figure_is_that_the_audit_is_unfinished(report: Report) -> None:
    audit = report.audit.model_copy(update={"complete": False, "stage": "direct"})
    unfinished = report.model_copy(update={"audit": audit, "alignment": [], "peer_agreement": []})
    check = check_report(unfinished, make_thresholds(max_mae=0.5, min_accuracy=0.5))
    gates = {name: [gate for gate in check.gates if gate.name == name] for name in ("max_mae", "min_accuracy")}
    assert [gate.model for gate in gates["max_mae"]] == [row.model for row in report.alignment]
    assert all("not scored yet: the run is not finished" in gate.message for gate in gates["max_mae"])
    assert "does not measure it" in gates["min_accuracy"][0].message
