"""Every experiment as a page: its answer says what the intervals show and no more, and every figure has its n."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from auditor.cli.app import app
from auditor.errors import UsageError
from auditor.reports.experiments import consistency_pages as consistency
from auditor.reports.experiments import judge_pages as judges
from auditor.reports.measurement_schema import Estimate
from auditor.reports.pages.report_page import ReportPage, render_page_html, render_page_markdown
from auditor.reports.panel.schema import FaultDetectionRow, PositionBiasRow, RestatementShiftRow, SelfReviewRow
from auditor.reports.report_schema import Report
from auditor.reports.semantic.experiment_schema import (
    ConsistencyAccuracyRow,
    HumanCorrelationRow,
    HumanJudgementReport,
    RuleFollowingRow,
    SemanticTemperatureRow,
)
from auditor.storage.database import open_database
from tests.support.synthetic_audit import populate

HOSTILE = "<b>judge|a</b>"


def e(value: float | None, half: float = 0.1, n: int = 40) -> Estimate:
    if value is None:
        return Estimate(value=None, n=0, reason="nothing was given")
    return Estimate(value=value, n=n, ci_low=value - half, ci_high=value + half)


def told(page: ReportPage) -> str:
    """The answer; both forms can be made, and what models are called is no markup in either."""
    html, markdown = render_page_html(page), render_page_markdown(page)
    assert HOSTILE not in html
    assert HOSTILE not in markdown
    for text in (html, markdown):
        assert "None" not in text
        assert "nan" not in text
    return page.headline


def shift(judge: str, value: float | None) -> RestatementShiftRow:
    return RestatementShiftRow(judge=judge, valid=e(0.7), restated=e(0.5), shift=e(value), changed=e(0.2))


def test_only_a_shift_that_is_more_than_chance_is_told() -> None:
    page = judges.judge_drift_page(
        "may", "june", [shift("a", -0.3), shift("b", 0.05), shift(HOSTILE, 0.2), shift("d", None)]
    )
    assert told(page) == f"2 of 3 judges have become another: a (stricter), {HOSTILE} (milder)."
    [grid] = page.sections[0].tables
    assert grid.rows[0][-2:] == ["−0.30 (−0.40 to −0.20)", "40"]
    assert grid.rows[3][-2:] == ["nothing was given", "0"]
    assert len(page.sections[0].plots) == 1
    none = judges.judge_drift_page("may", "june", [shift("a", 0.01)])
    assert told(none) == "Of 1 judges, none is shown to have become milder or stricter."
    assert told(judges.judge_drift_page("may", "june", [])) == "No trace was judged by the same judge in both audits."


def test_a_preference_for_a_place_is_away_from_a_half_and_not_from_zero(report: Report) -> None:
    places = [
        PositionBiasRow(judge=name, first=e(first), stable=e(0.9)) for name, first in (("a", 0.5), (HOSTILE, 0.8))
    ]
    own = [SelfReviewRow(judge=name, valid=e(0.9), preference=e(p)) for name, p in (("a", 0.3), ("b", -0.3))]
    part = report.panel.model_copy(update={"positions": places, "own_traces": own})
    answer = told(judges.judge_bias_page("x", part))
    assert answer == f"1 of 2 judges prefer a place: {HOSTILE}. 1 of 2 judges are milder with themselves: a."


def test_planted_faults_say_what_the_certificate_says(report: Report) -> None:
    row = FaultDetectionRow(
        judge=HOSTILE, fault="Western norm", detected=e(0.9), false_alarms=e(0.2), difference=e(0.7)
    )
    part = report.panel.model_copy(
        update={"faults": [row], "certificate": ["Of 1 pair of a judge and a planted fault …"]}
    )
    assert told(judges.fault_injection_page("x", part)) == "Of 1 pair of a judge and a planted fault …"
    nothing = report.panel.model_copy(update={"certificate": []})
    assert told(judges.fault_injection_page("x", nothing)) == "No fault was planted."


def test_words_beside_dice() -> None:
    rows = [
        SemanticTemperatureRow(
            model=m, temperature=t, same_words=e(0.9), other_words=e(0.7), difference=e(d), p_value=0.001
        )
        for m, t, d in (("a", 0.0, -0.2), (HOSTILE, 1.0, -0.05))
    ]
    assert told(consistency.temperature_page("x", rows)) == (
        "1 of 2 settings change more with other words than with the dice: a at 0."
    )


def test_a_rule_may_help_or_harm() -> None:
    rows = [
        RuleFollowingRow(model=m, before=e(0.5), after=e(0.7), change=e(c), p_value=None)
        for m, c in (("a", 0.2), (HOSTILE, -0.2), ("c", 0.0), ("d", None))
    ]
    assert told(consistency.rules_page("x", rows)) == (
        f"1 of 3 models are more consistent with a rule: a. 1 of 3 models are less so: {HOSTILE}."
    )


def test_right_where_consistent() -> None:
    rows = [
        ConsistencyAccuracyRow(
            model=m, accuracy=e(0.6), consistency=e(0.5), n=30, r=r, p_value=0.02, ci_low=low, ci_high=high, reason=why
        )
        for m, r, low, high, why in (("a", 0.4, 0.1, 0.6, None), (HOSTILE, None, None, None, "all are right"))
    ]
    assert told(consistency.accuracy_page("x", rows)) == (
        f"a: r = 0.40 (0.10 to 0.60; 30 questions). {HOSTILE}: cannot be told (all are right)."
    )


def test_the_measure_that_goes_with_people_most() -> None:
    of = {"n": 20, "ci_low": 0.1, "ci_high": 0.8, "r_entropy": None}
    rows = [
        HumanCorrelationRow(text="answers", metric="SaGE", r=0.5, **of),
        HumanCorrelationRow(text="rules", metric=HOSTILE, r=None, reason="flat", **of),
    ]
    part = HumanJudgementReport(
        questions=20, judgements=80, alpha=e(0.6), entropy=e(0.3), correlations=rows, differences=[]
    )
    assert told(consistency.judgements_page("x", part)) == (
        "Of 1 measure, SaGE of answers goes with people's judgements most: r = 0.50 (0.10 to 0.80)."
    )


@pytest.mark.parametrize("name", ["holdout", "nonresponse"])
def test_a_page_is_written_where_a_file_is_named(tmp_path: Path, name: str) -> None:
    storage, run = f"sqlite:///{tmp_path}/audit.db", CliRunner()
    with open_database(storage) as db:
        audit = populate(db, models=4, countries=8, topics=5, samples=2, judges=2).name
    with pytest.raises(UsageError, match="no suffix of a page"):
        run.invoke(app, ["experiment", name, audit, "--storage", storage, "-o", "x.txt"], catch_exceptions=False)
    for suffix in ("html", "md"):
        words = ["experiment", name, audit, "--storage", storage, "-o", str(tmp_path / f"page.{suffix}")]
        assert run.invoke(app, words, catch_exceptions=False).exit_code == 0
        assert audit in (tmp_path / f"page.{suffix}").read_text(encoding="utf-8")
    shown = run.invoke(app, ["experiment", name, audit, "--storage", storage], catch_exceptions=False)
    assert shown.exit_code == 0
    assert shown.output.strip()
