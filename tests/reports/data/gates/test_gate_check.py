"""Gates: both sides of each threshold, `confident` intervals, and no pass for unfinished audits or missing figures."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree

import pytest

from auditor.config import AuditConfig, CheckSection
from auditor.errors import UsageError
from auditor.reports.data.coverage.model_versions import ModelVersionRow
from auditor.reports.data.gates.gate_check import check_report, resolve_thresholds
from auditor.reports.data.gates.schema import GateStatus
from auditor.reports.data.report_schema import Report
from auditor.reports.junit import render_junit
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
    easy |= {"max_variance": 2, "min_peer_agreement": 0, "min_kappa": -1, "max_open_conflicts": 10**6}
    hard = {
        "min_pearson": 1,
        "min_concordance": 1,
        "max_mae": 0,
        "max_topic_mae": 0,
        "min_self_consistency": 1,
        "max_variance": 0,
    }
    hard |= {"min_peer_agreement": 1, "min_kappa": 1, "max_open_conflicts": 0}
    # Tested below, in tests/e2e/test_tasks.py, and in tests/e2e/test_distribution_probe.py.
    others = {"max_cost_usd", "max_served_models", "min_accuracy"}
    others |= {"min_skill", "min_variance_ratio", "max_order_effect", "probes"}
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
        ModelVersionRow(name="m", served_model=s, fingerprint=None, altered="", answers=2, first_at="1", last_at="2")
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


def test_low_coverage_overrides_other_gates(report: Report) -> None:
    check = check_report(report, make_thresholds(min_pearson=1, min_coverage=0.99))
    assert (check.verdict, check.exit_code, bool(check)) == (GateStatus.UNDECIDED, 4, False)


def test_an_unfinished_audit_cannot_pass(report: Report) -> None:
    unfinished_report = report.model_copy(
        update={"audit": report.audit.model_copy(update={"complete": False, "stage": "review"})}
    )
    check = check_report(unfinished_report, make_thresholds(min_coverage=0, min_pearson=-1))
    assert check.exit_code == 4
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


def test_thresholds_are_not_part_of_the_config_hash() -> None:
    plain = config("http://127.0.0.1:1")
    strict = AuditConfig.model_validate(plain.model_dump(mode="json") | {"check": {"min_pearson": 0.9}})
    assert plain.hash == strict.hash
