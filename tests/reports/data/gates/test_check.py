"""Gates: both sides of each threshold, `confident` intervals, no pass for unfinished audits or missing figures."""

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
from auditor.reports.data.coverage.lost_samples import SampleCounts, bound_mae
from auditor.reports.data.gates.check import check_report, resolve_thresholds
from auditor.reports.data.gates.estimates import (
    Gate,
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
from tests.support.known import known
from tests.support.report_changes import change

PASSED, FAILED, UNDECIDED = GateStatus.PASSED, GateStatus.FAILED, GateStatus.UNDECIDED


def make_thresholds(**values: float | bool) -> CheckSection:
    return CheckSection.model_validate({"min_coverage": 0.5, **values})


def find_gate(report: Report, name: str, thresholds: CheckSection, subject: str | None = None) -> Gate:
    """The first gate of a name, or that of a subject."""
    gates = check_report(report, thresholds).gates
    return next(gate for gate in gates if gate.name == name and subject in (None, gate.subject))


@pytest.mark.parametrize("name", ["min_pearson", "max_mae"])
def test_confident_gates_compare_the_worse_end_of_the_interval(report: Report, name: str) -> None:
    row = report.alignment[0]
    estimate = row.pearson_r if name == "min_pearson" else row.mae
    value, worse_end = estimate.value, estimate.ci_low if name == "min_pearson" else estimate.ci_high
    assert worse_end is not None
    beyond = worse_end - 0.01 if name == "min_pearson" else worse_end + 0.01
    for confident, expected in ((False, [PASSED] * 3), (True, [FAILED, FAILED, PASSED])):
        thresholds = [
            make_thresholds(**{name: t, "confident": confident})
            for t in (known(value), (known(value) + worse_end) / 2, beyond)
        ]
        assert [find_gate(report, name, threshold).verdict for threshold in thresholds] == expected


@pytest.mark.parametrize(("name", "value"), [("max_mae", 0.1 + 0.2), ("min_pearson", 1 - 0.9)])
def test_a_figure_at_its_threshold_passes_although_its_last_digit_is_rounded(
    report: Report, name: str, value: float
) -> None:
    """The page would say: failed, 0.300, at most 0.3 allowed."""
    field = "mae" if name == "max_mae" else "pearson_r"
    at_threshold = change(report, **{f"alignment__each__{field}__value": value})
    assert value != round(value, 6)
    assert find_gate(at_threshold, name, make_thresholds(**{name: round(value, 6)})).verdict is PASSED
    beyond = round(value, 6) + (-1e-6 if name == "max_mae" else 1e-6)
    assert find_gate(at_threshold, name, make_thresholds(**{name: beyond})).verdict is FAILED


def test_every_threshold_has_a_gate_that_passes_and_one_that_fails(report: Report) -> None:
    minima = {"min_pearson": -1, "min_concordance": -1, "min_self_consistency": -1, "min_kappa": -1}
    easy = minima | {"min_peer_agreement": 0, "max_mae": 2, "max_region_gap": 2, "max_topic_mae": 2, "max_variance": 2}
    easy |= {"max_refused": 1, "max_open_conflicts": 10**6}
    hard = {name: 1 if name.startswith("min") else 0 for name in easy if name != "max_region_gap"}
    # Tested below, in tests/e2e/test_tasks.py, and in tests/e2e/test_distribution_probe.py.
    others = {"max_cost_usd", "max_served_models", "min_accuracy", "probes"}
    assert set(easy) == set(CheckSection.model_fields) - {"min_coverage", "confident"} - others
    for values, expected, code in ((easy, PASSED, 0), (hard, FAILED, 3)):
        check = check_report(report, make_thresholds(**values))
        decided = {gate.name for gate in check.gates if gate.verdict is expected}
        assert decided - {"complete", "min_coverage"} == set(values)
        assert check.exit_code == code


@pytest.mark.parametrize(
    ("served_models", "max_served_models", "expected"),
    [
        (["a"], 1, PASSED), (["a", "b"], 1, FAILED), (["a", "b"], 2, PASSED), (["a", None], 1, PASSED),
        ([None], 1, UNDECIDED), ([], 1, UNDECIDED),
    ],
)  # fmt: skip
def test_a_gate_can_limit_the_number_of_served_models(
    report: Report, served_models: list[str | None], max_served_models: int, expected: GateStatus
) -> None:
    rows = [
        ModelVersionRow(version=AnswerVersion("m", s, altered=""), answers=2, first_at="1", last_at="2")
        for s in served_models
    ]
    check = check_report(change(report, served=rows), make_thresholds(max_served_models=max_served_models))
    gate = next(g for g in check.gates if g.name == "max_served_models")
    assert (gate.verdict, check.verdict) == (expected, expected)
    assert gate.subject == ("m" if served_models else "audit")
    if expected is FAILED:
        cases = ElementTree.fromstring(render_junit(check)).iter("testcase")
        assert [case.get("name") for case in cases if case.find("failure") is not None] == ["max_served_models[m]"]
        assert "2 model versions answered" in gate.message


def test_coverage_below_a_set_minimum_fails_and_below_the_default_one_is_undecided(report: Report) -> None:
    for section, status, code, note in (
        (CheckSection(min_coverage=0.95), FAILED, 3, "at least 95% required"),
        (CheckSection(), UNDECIDED, 4, "required by default"),
    ):
        check = check_report(report, section)
        assert (check.verdict, check.exit_code, bool(check), check.has_thresholds) == (status, code, False, False)
        gates = [gate for gate in check.gates if gate.name == "min_coverage"]
        assert {gate.threshold for gate in gates} == {0.95}
        assert all(note in gate.message for gate in gates)


def test_each_model_is_decided_by_itself(report: Report) -> None:
    errors = {row.model: row.mae.value or 0.0 for row in report.alignment}
    best, *_, worst = sorted(errors, key=lambda model: errors[model])
    max_mae = (errors[best] + errors[worst]) / 2
    check = check_report(report, make_thresholds(max_mae=max_mae))
    rows = {row.model: row for row in check.models}
    assert set(rows) == set(errors)
    assert (rows[best].verdict, rows[worst].verdict, rows[worst].message) == (PASSED, FAILED, "failed: max_mae")
    assert (check.verdict, check.exit_code) == (FAILED, 3)
    only_best = check_report(report, make_thresholds(max_mae=max_mae), models=[best])
    assert ([row.model for row in only_best.models], only_best.exit_code) == ([best], 0)
    assert {gate.model for gate in only_best.gates} == {best, None}
    with_cost = check_report(report, make_thresholds(max_cost_usd=0), models=[best])
    assert (with_cost.models[0].verdict, with_cost.exit_code) == (PASSED, 3), "the audit's own gates count"
    with pytest.raises(UsageError, match=f"has no model 'x{best}'. Did you mean '{best}'"):
        check_report(report, make_thresholds(), models=[f"x{best}"])


def test_a_model_that_passes_does_not_make_up_for_one_with_low_coverage(report: Report) -> None:
    first = report.coverage.models[0].name
    rows = [row if row.name == first else change(row, ok=row.planned) for row in report.coverage.models]
    check = check_report(change(report, coverage__models=rows), CheckSection(min_pearson=-1))
    assert {row.model: row.verdict for row in check.models if row.verdict is not PASSED} == {first: UNDECIDED}
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
    missed_by_all = best + 1e-6 if name.startswith("min") else best - 1e-6
    cases = [(met, PASSED, UNDECIDED), ((best + value) / 2, FAILED, UNDECIDED)]
    cases += [(missed_by_all, FAILED, FAILED)] if 0 <= missed_by_all <= 1 else []
    for threshold, with_enough, with_too_few in cases:
        enough, too_few = make_thresholds(**{name: threshold}), CheckSection.model_validate({name: threshold})
        assert find_gate(report, name, enough, figure.subject).verdict is with_enough
        assert find_gate(report, name, too_few, figure.subject).verdict is with_too_few


def test_the_bounds_of_mae_over_lost_samples_are_those_of_the_best_and_worst_possible_answers() -> None:
    """Of two samples each: all usable; one lost, which can reach people's score; both lost; one that cannot."""
    counts = SampleCounts(np.array([2.0, 1, 0, 1]), np.full(4, 2.0), np.zeros(4, dtype=np.bool_))
    scores, truth = np.array([0.5, 0.4, np.nan, 1.0]), np.array([0.0, 0.1, -0.3, -0.5])
    expected = ((0.5 + 0 + 0 + 0.5) / 4, (0.5 + 0.6 + 1.3 + 1.5) / 4)
    assert bound_mae(counts.score_ranges(scores), truth, np.ones(4, dtype=np.bool_)) == pytest.approx(expected)
    assert bound_mae(counts.score_ranges(scores), truth, np.zeros(4, dtype=np.bool_)) is None


def test_figures_whose_own_answers_are_all_usable_fail_as_with_enough_coverage(report: Report) -> None:
    """Verdicts are lost, so the model's coverage is low; its scores are all there, and miss the threshold."""
    lost = change(report.alignment[0].lost_samples, lost=0, share=0.0)
    full = change(report, alignment__each__lost_samples=lost, alignment__each__worst_case=None)
    check = check_report(full, CheckSection(max_mae=0, min_pearson=-1))
    for name, status in (("max_mae", FAILED), ("min_pearson", UNDECIDED)):
        assert {gate.verdict for gate in check.gates if gate.name == name} == {status}
    assert check.exit_code == 3


def test_an_unfinished_audit_is_always_undecided(report: Report) -> None:
    unfinished = change(report, audit__complete=False, audit__stage="review", alignment=[])
    for thresholds in (make_thresholds(min_coverage=0, min_pearson=-1), make_thresholds(min_coverage=1, min_kappa=1)):
        check = check_report(unfinished, thresholds)
        assert check.exit_code == 4
        assert {gate.verdict for gate in check.gates} | {row.verdict for row in check.models} == {UNDECIDED}
        assert "stage: review" in check.gates[0].message
    gates = [g for g in check_report(unfinished, make_thresholds(max_mae=0.5)).gates if g.name == "max_mae"]
    assert [gate.model for gate in gates] == [row.model for row in report.alignment]
    assert all("not scored yet: the run is not finished" in gate.message for gate in gates)


def test_a_partly_unknown_cost_cannot_pass_but_can_fail(report: Report) -> None:
    assert report.cost.total.lower_bound
    for max_usd, status in ((1000.0, UNDECIDED), (0.0, FAILED)):
        assert find_gate(report, "max_cost_usd", make_thresholds(max_cost_usd=max_usd)).verdict is status


def test_a_gate_without_a_figure_is_undecided(report: Report) -> None:
    thresholds = make_thresholds(min_peer_agreement=0, min_pearson=-1, min_accuracy=0.5)
    check = check_report(change(report, peer_agreement=[], alignment=[]), thresholds)
    undecided = {gate.name: gate.message for gate in check.gates if gate.verdict is UNDECIDED}
    assert set(undecided) == {"min_pearson", "min_peer_agreement", "min_accuracy"}
    assert "does not measure it" in undecided["min_accuracy"]
    assert check.exit_code == 4


def test_the_regional_gap_gate_uses_the_absolute_gap(report: Report) -> None:
    gap = report.regions.gaps[0]
    estimate = replace(gap.mae_gap, value=-0.2, ci_low=-0.3, ci_high=0.1, reason=None)
    changed = change(report, regions__gaps=[change(gap, mae_gap=estimate, worst_case=None)])
    gate = find_gate(changed, "max_region_gap", make_thresholds(max_region_gap=0.25))
    assert (gate.value, gate.ci_low, gate.ci_high, gate.verdict) == (0.2, 0.0, 0.3, PASSED)


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [((-0.1, 0.2), UNDECIDED), ((0.05, 0.2), PASSED), ((-0.2, -0.05), PASSED), ((None, None), UNDECIDED)],
)
def test_a_gap_whose_sign_lost_samples_leave_open_decides_no_confident_gate(
    report: Report, bounds: tuple[float | None, float | None], expected: GateStatus
) -> None:
    gap = report.regions.gaps[0]
    estimate = replace(gap.mae_gap, value=0.1, ci_low=0.05, ci_high=0.2, reason=None)
    bounded = replace(known(gap.worst_case).mae, value=0.1, reason="too few", bound_low=bounds[0], bound_high=bounds[1])
    lossy = change(report, regions__gaps=[change(gap, mae_gap=estimate, worst_case__mae=bounded)])
    for confident, status in ((False, PASSED), (True, expected)):
        gate = find_gate(lossy, "max_region_gap", make_thresholds(max_region_gap=0.25, confident=confident))
        assert gate.verdict is status
    assert ("sign not known because of lost samples" in gate.message) is (expected is UNDECIDED)


def test_options_override_the_config_and_unknown_options_suggest_the_nearest() -> None:
    audit_config = AuditConfig.model_validate(
        config("http://127.0.0.1:1").model_dump(mode="json") | {"check": {"min_pearson": 0.6, "max_mae": 0.3}}
    )
    assert audit_config.hash == config("http://127.0.0.1:1").hash
    thresholds = resolve_thresholds(audit_config.check, {"min_pearson": 0.7})
    assert (thresholds.min_pearson, thresholds.max_mae) == (0.7, 0.3)
    with pytest.raises(UsageError, match="Did you mean 'min_pearson'"):
        resolve_thresholds(audit_config.check, {"min_person": 0.7})
    with pytest.raises(UsageError, match="'min_kappa'"):
        resolve_thresholds(audit_config.check, {"min_kappa": 7})


def test_a_minimum_coverage_stored_by_an_earlier_version_is_the_default_one() -> None:
    stored = config("http://127.0.0.1:1").model_dump(mode="json")
    stored["check"]["min_coverage"] = 0.95
    assert load_stored_config(json.dumps(stored)).check.min_coverage == 0.95
    del stored["check"]["probes"]
    assert load_stored_config(json.dumps(stored)).check.min_coverage is None


def change_coverage(report: Report, ok: int, losses: dict[str, int], missing: int = 0) -> Report:
    """The report with 50 planned answers of each model, of which `ok` are usable, and no verdicts."""
    update = {"planned": 50, "ok": ok, "losses": losses, "missing": missing}
    rows = [row.model_copy(update=update) for row in report.coverage.models if row.stage == "direct"]
    return change(report, coverage__models=rows)


@pytest.mark.parametrize("min_coverage", [0.3, 0.95, None])
@pytest.mark.parametrize(
    ("ok", "losses", "missing"),
    [
        (31, {"over_budget": 19}, 0), (9, {"server_error": 20, "client_error": 21}, 0), (44, {"rate_limited": 6}, 0),
        (20, {"timeout": 10, "refused": 20}, 0), (40, {}, 10),
    ],
)  # fmt: skip
def test_what_was_not_asked_or_got_lost_leaves_an_audit_incomplete(
    report: Report, min_coverage: float | None, ok: int, losses: dict[str, int], missing: int
) -> None:
    lossy = change_coverage(report, ok, losses, missing)
    check = check_report(lossy, CheckSection(min_coverage=min_coverage, max_mae=0))
    assert (check.exit_code, check.complete) == (4, False)
    assert {row.verdict for row in check.models} == {UNDECIDED}
    for words in ("the audit is not complete", f"of 50 answers of {report.alignment[0].model}", "`auditor run CONFIG`"):
        assert words in check.gates[0].message


@pytest.mark.parametrize(
    ("ok", "losses", "code", "is_complete"),
    [
        (45, {"refused": 5}, 3, True),
        (45, {"refused": 4, "timeout": 1}, 3, False),  # refusals alone miss the requirement
        (47, {"refused": 1, "timeout": 2}, 4, False),  # the lost answers decide
        (48, {"timeout": 2}, 0, True),
    ],
)
def test_what_the_model_causes_counts_against_it(
    report: Report, ok: int, losses: dict[str, int], code: int, is_complete: bool
) -> None:
    check = check_report(change_coverage(report, ok, losses), CheckSection(min_coverage=0.95))
    assert check.exit_code == code
    assert not is_complete or check.complete
    assert ("2 were lost with their requests (2 timeout)" in str(check)) is (code == 4)


def test_refusals_have_a_gate_that_fails_only_whatever_the_lost_answers_are(report: Report) -> None:
    row = known(report.refusals).models[0]
    assert row.share.value is not None
    for section, status in (
        (make_thresholds(max_refused=row.share.value - 0.001), FAILED),
        (make_thresholds(max_refused=row.share.value + 0.001), PASSED),
        (CheckSection(max_refused=row.share.value - 1e-6), UNDECIDED),  # the lost answers need not be refusals
    ):
        [gate] = [g for g in check_report(report, section, models=[row.name]).gates if g.name == "max_refused"]
        assert (gate.verdict, gate.model) == (status, row.name), gate.message
