"""The figures of a report: missing values never become numbers, and rescaled scores and few topics have no errors."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.stats import binomtest

from auditor.config import CheckSection
from auditor.domain import CellScore
from auditor.errors import StorageError
from auditor.metrics.intervals.estimate import proportion
from auditor.reports.data.build import build_report
from auditor.reports.data.gates.check import check_report
from auditor.reports.data.gates.estimates import GateStatus
from auditor.reports.data.report_schema import Report
from auditor.reports.output import render_report
from auditor.reports.report_files import render_junit, render_paper_files
from auditor.reports.sections.agreement_words import classify_alignment, describe_alignment
from auditor.reports.sections.weaknesses import list_weaknesses
from auditor.storage.database import Database, open_database
from auditor.surveys import group_countries
from tests.reports.conftest import import_scores, save_rows, survey_of
from tests.support.known import known

KEYS = [
    "audit", "coverage", "alignment", "sensitivity", "gain", "regions", "topics", "countries", "self_consistency",
    "panel", "peer_agreement", "conflicts", "cost", "served",
    "failures", "requests", "sampling", "environment",
    "baselines", "guesses", "donor_countries", "population", "structure", "ceiling", "nonresponse",
    "refusals", "repairs", "methods", "task", "tiers", "variance",
    "languages", "savings",
    "consistency_alignment", "shortfalls", "influence", "equal_series",
    "cultural_findings", "examples", "judge_quality", "pair_labels",
    "over_models", "designs", "attributes", "probes", "distribution", "semantic", "logic",
]  # fmt: skip


def test_report_keys_are_unchanged(report: Report) -> None:
    assert list(report.model_dump()) == KEYS


def test_no_such_audit(db: Database) -> None:
    with pytest.raises(StorageError, match="no audit 'nothing'"):
        build_report(db, "nothing")


def test_two_cells_have_no_r_but_a_reason(db: Database) -> None:
    report = import_scores(
        db,
        {("Egypt", "divorce"): 0.1, ("Japan", "divorce"): 0.3},
        {("m", "Egypt", "divorce"): 0.2, ("m", "Japan", "divorce"): 0.1},
    )
    row = report.alignment[0]
    assert (row.n, row.pearson_r.value, row.pearson_r.p_value, row.spearman_rho.value) == (2, None, None, None)
    assert row.pearson_r.reason
    assert row.mae.value == pytest.approx(0.15)


def test_imported_scores_need_no_config_and_no_traces(db: Database) -> None:
    rng = np.random.default_rng(3)
    truth = {(c, t): float(rng.uniform(-1, 1)) for c in ("Egypt", "Japan", "Atlantis") for t in "abcdefg"}
    scores = {("m", *cell): float(np.clip(value + rng.normal(0, 0.3), -1, 1)) for cell, value in truth.items()}
    report = import_scores(db, truth, scores)
    r = stats.pearsonr(list(scores.values()), list(truth.values()))
    assert report.alignment[0].pearson_r.value == pytest.approx(r.statistic, abs=1e-9)
    assert report.regions.ungrouped == ["Atlantis"]
    assert [(row.planned, row.ok) for row in report.coverage.total] == [(21, 21)]
    assert report.audit.models[0].model is None
    assert report.self_consistency[0].cosine.value is None


def test_missing_scores_never_become_numbers(db: Database) -> None:
    truth: dict[tuple[str, str], float | None] = {("Egypt", str(i)): i / 10 for i in range(8)}
    truth["Egypt", "7"] = None
    scores: dict[tuple[str, str, str], float | None] = {("m", *cell): 0.9 for cell in truth}
    scores["m", "Egypt", "3"] = None
    report = import_scores(db, truth, scores)
    row = report.alignment[0]
    assert (row.n, row.n_dropped, row.n_without_survey) == (6, 2, 1)
    assert row.mae.value == pytest.approx(np.mean([0.9 - i / 10 for i in (0, 1, 2, 4, 5, 6)]))
    cells = {c.topic: c for c in report.audit.cells}
    assert cells["3"].scores == {"direct": {"m": None}}
    assert cells["7"].survey is None
    assert (report.coverage.total[0].ok, report.coverage.total[0].missing) == (7, 1)


def test_a_cell_missing_from_the_survey(db: Database) -> None:
    report = import_scores(db, {("Egypt", "a"): 0.0}, {("m", "Egypt", "a"): 0.1, ("m", "Narnia", "b"): 1.0})
    assert [(cell.country, cell.survey) for cell in report.audit.cells] == [("Egypt", 0.0), ("Narnia", None)]
    assert report.alignment[0].n == 1


@pytest.mark.parametrize(
    ("people", "western", "other", "gap", "bounds"),
    [(0.1, 0.3, 0.32, 0.02, (-0.002, 0.108)), (-0.9, -0.85, 0.9, 1.75, (0.9 * 1.8 - 0.05, 0.9 * 1.8 + 0.19 - 0.05))],
)
def test_a_gap_has_bounds_where_samples_are_lost_and_a_mark_where_its_sign_is_open(
    db: Database, people: float, western: float, other: float, gap: float, bounds: tuple[float, float]
) -> None:
    """Two of twenty cells are lost in one region: a lost score is anything from people's to the end of the scale."""
    truth = {(country, str(i)): people for country in ("Germany", "Egypt") for i in range(20)}
    scores: dict[tuple[str, str, str], float | None] = {
        ("m", c, t): (western if c == "Germany" else other) if (c, t) not in (("Egypt", "1"), ("Egypt", "5")) else None
        for c, t in truth
    }
    row = import_scores(db, truth, scores).regions.gaps[0]
    assert (row.first, row.second) == ("Western", "Non-Western")
    assert row.worst_case is not None
    assert row.mae_gap.value == row.worst_case.mae.value == pytest.approx(gap)
    assert (row.worst_case.mae.bound_low, row.worst_case.mae.bound_high) == pytest.approx(bounds, abs=1e-9)
    is_open = bounds[0] < 0
    assert (row.mae_gap.reason or "").endswith("sign not known because of lost samples") is is_open
    assert (row.first_lost_samples.lost, row.second_lost_samples.lost) == (0, 2)


def test_intervals_of_peers_and_consistency_are_over_countries_and_topics(report: Report) -> None:
    for peer in report.peer_agreement:
        agreement, binomial = peer.agreement, proportion(peer.valid, peer.given)
        assert agreement.value == pytest.approx(peer.valid / peer.given)
        assert agreement.n == peer.given
        assert agreement.reason is None
        assert None not in (agreement.ci_low, agreement.ci_high, binomial.ci_low, binomial.ci_high)
        assert (agreement.ci_low, agreement.ci_high) != (binomial.ci_low, binomial.ci_high)
    for row in report.self_consistency:
        assert all(e.ci_low is not None and e.reason is None for e in (row.cosine, row.variance))
    assert report.refusals is not None
    refused = report.refusals.total
    assert refused.reason == (
        "they occur in fewer than 5 countries and fewer than 5 topics, too few for an interval for other countries and "
        "topics"
    )
    exact = binomtest(6, refused.n).proportion_ci(0.95, "exact")
    assert (refused.cells_ci_low, refused.cells_ci_high) == pytest.approx((exact.low, exact.high))
    assert {row.share.resampled for row in report.refusals.topics} <= {("country",), ()}
    assert {row.share.resampled for row in report.refusals.countries} <= {("topic",), ()}


@pytest.fixture(scope="module")
def few_topics_report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """The report of 40 countries by 4 topics in which r is high only because of the topics' levels."""
    topics, rng = {"a": 0.4, "b": -0.3, "c": 0.2, "d": -0.5}, np.random.default_rng(1)
    truth = {(f"c{i}", t): level + 0.05 * rng.normal() for i in range(40) for t, level in topics.items()}
    scores = {("m", *cell): topics[cell[1]] * 0.9 + 0.05 * rng.normal() for cell in truth}
    with open_database(f"sqlite:///{tmp_path_factory.mktemp('few-topics')}/audit.db") as db:
        return import_scores(db, truth, scores)


def test_the_model_is_not_judged_without_an_interval(few_topics_report: Report) -> None:
    [row] = few_topics_report.alignment
    assert (row.pearson_r.ci_low, row.pearson_r.ci_high, row.pearson_r.p_value) == (None, None, None)
    assert (row.fisher_ci_low or 0) > 0.8, "Fisher's interval has a key of its own"
    assert classify_alignment(row) == "neutral"
    assert "no 95% CI: an interval needs at least 5 countries and 5 topics" in describe_alignment(row)
    for text in (render_report(few_topics_report, "html"), render_report(few_topics_report, "markdown")):
        assert "cannot be judged" in text
        assert "agrees with people" not in text


def test_confident_gates_are_undecided_and_others_compare_the_value(few_topics_report: Report) -> None:
    gates_by_confident = {}
    for confident in (False, True):
        thresholds = CheckSection.model_validate({"min_pearson": 0.3, "max_mae": 0.9, "confident": confident})
        gates_by_confident[confident] = {gate.name: gate for gate in check_report(few_topics_report, thresholds).gates}
    assert [gates_by_confident[False][n].verdict for n in ("min_pearson", "max_mae")] == [GateStatus.PASSED] * 2
    assert [gates_by_confident[True][n].verdict for n in ("min_pearson", "max_mae")] == [GateStatus.UNDECIDED] * 2
    assert "an interval needs at least 5 countries and 5 topics" in gates_by_confident[True]["min_pearson"].message


def build_regional_report(db: Database, grouping: str, worse_region: str = "", missing_region: str = "") -> Report:
    """The report of one model on 23 countries: four times the error in one region, no scores in another."""
    names = (
        "Germany,France,Spain,Poland,Sweden,Italy,Japan,China,India,Iran,Turkey,Thailand,Nigeria,Kenya,Egypt,Ghana,"
        "Ethiopia,Brazil,Chile,Mexico,Peru,Canada,Australia"
    )
    rng = np.random.default_rng(5)
    truth = {(name, f"topic {t}"): float(rng.uniform(-0.5, 0.5)) for name in names.split(",") for t in "abcdefgh"}
    survey = group_countries(replace(survey_of(truth), grouping=None), grouping)
    regions = known(survey.grouping).region_by_country
    errors = {
        c: 0.1 * float(rng.normal()) * (4 if regions.get(c.country) == worse_region else 1) for c in survey.scores
    }
    rows = [
        CellScore("m", cell, "direct", float(np.clip(score + errors[cell], -1, 1)), n_ok=1, n_planned=1)
        if not missing_region or regions.get(cell.country) != missing_region
        else CellScore("m", cell, "direct", None, n_ok=0, n_planned=1)
        for cell, score in survey.scores.items()
    ]
    return build_report(db, save_rows(db, survey, rows).audit.name)


def test_the_largest_gap_of_several_groups_is_reported(db: Database) -> None:
    report = build_regional_report(db, "un_m49", worse_region="Europe")
    mae = {row.region: row.mae.value or 0.0 for row in report.regions.rows}
    assert set(mae) == {"Africa", "Americas", "Asia", "Europe", "Oceania"}
    [gap] = report.regions.gaps
    assert (gap.second, gap.left_out) == ("Europe", ["Oceania"])
    assert gap.mae_gap.value == pytest.approx(mae["Europe"] - mae[gap.first])
    assert (gap.mae_gap.ci_low or 0) > 0
    text = render_report(report, "markdown")
    for words in ("United Nations M49 regions", f"Europe minus {gap.first}", "fewer than five countries: Oceania."):
        assert words in text
    sentence = f"The mean absolute error is larger in Europe than in {gap.first} for m"
    assert sentence in " ".join(list_weaknesses(report))


def test_a_gap_without_the_scores_of_a_region_has_bounds(db: Database) -> None:
    [gap] = build_regional_report(db, "western", missing_region="Western").regions.gaps
    assert (gap.mae_gap.value, gap.r_gap.value) == (None, None)
    assert known(gap.worst_case).mae.bound_low is not None


RESCALED = "log-probability scores are rescaled"
ERROR_GATES = CheckSection.model_validate({"max_mae": 2, "max_topic_mae": 2, "max_region_gap": 2, "min_pearson": 0})


@pytest.fixture
def two_methods(whole_report: Callable[[str], Report]) -> Report:
    """A report with direct and rescaled log-probability scores of each model."""
    return whole_report("two methods")


def test_r_of_rescaled_scores_is_reported_and_every_error_is_missing_with_a_reason(two_methods: Report) -> None:
    places: list[Any] = [*two_methods.topics, *two_methods.countries, *two_methods.regions.rows]
    errors = [row.mae for row in places if row.method == "logprob"]
    errors += [gap.mae_gap for gap in two_methods.regions.gaps if gap.method == "logprob"]
    for row in two_methods.alignment:
        if row.method == "logprob":
            assert (row.pearson_r.value or 0) > 0.5
            assert row.pearson_r.ci_low is not None
            errors += [row.bias, row.mae, row.rmse]
    assert len(errors) > 20
    assert all(error.value is None and RESCALED in (error.reason or "") for error in errors)
    assert all(row.mae.value is not None for row in places if row.method == "direct")
    tiers = [(tier.by, bool(tier.rows)) for tier in two_methods.tiers if tier.method == "logprob"]
    assert tiers == [("r", True), ("MAE", False)]


def test_pages_report_no_errors_of_rescaled_scores(two_methods: Report) -> None:
    page, text = render_report(two_methods, "html"), render_report(two_methods, "markdown")
    assert "alder (direct): score minus people’s score" in page
    assert "alder (logprob): score minus people’s score" not in page
    assert re.search(r"alder \(logprob\).*: each has no mean absolute error, and orders countries and topics", text)
    topics = dict(render_paper_files(two_methods))["topics.csv"].splitlines()
    [line] = [line for line in topics if ",alder,logprob," in line and line.startswith("divorce")]
    assert re.fullmatch(r"divorce,alder,logprob,\d,,,,,,,(0\.\d+,){2}0\.\d+", line), "r alone"


def test_error_gates_are_skipped_for_rescaled_scores_and_undecided_if_all_are(
    two_methods: Report, db: Database
) -> None:
    check = check_report(two_methods, ERROR_GATES.model_copy(update={"min_coverage": 0.5}))
    skipped = [gate for gate in check.gates if gate.verdict is GateStatus.SKIPPED]
    models = [row.model for row in two_methods.alignment if row.method == "logprob"]
    names = ("max_mae", "max_topic_mae", "max_region_gap")
    assert {(gate.name, gate.subject) for gate in skipped} == {(n, f"{m} (logprob)") for n in names for m in models}
    assert all(RESCALED in gate.message for gate in skipped)
    assert f'skipped="{len(skipped)}"' in render_junit(check)
    truth = {(country, t): i / 10 for i, country in enumerate(("Germany", "Egypt")) for t in "abcdef"}
    check = check_report(import_scores(db, truth, {("m", *c): s for c, s in truth.items()}, "logprob"), ERROR_GATES)
    assert check.exit_code == 4
    assert {gate.name for gate in check.gates if gate.verdict is GateStatus.UNDECIDED} >= set(names)
