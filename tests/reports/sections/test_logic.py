"""The section on logical consistency names position bias only where its interval does, and shows every figure."""

from __future__ import annotations

import pytest

from auditor.metrics.estimate import Estimate
from auditor.reports.data.logic.schema import (
    JudgeConsistencyRow,
    LogicCorrelationRow,
    LogicEstimate,
    LogicReport,
    LogicRow,
    TransitivityRow,
)
from auditor.reports.data.report_schema import Report
from auditor.reports.document import CountShare, Section
from auditor.reports.sections.logic import build_logic_section
from tests.reports.hostile_report import NAME
from tests.reports.sections.block_access import cells_of
from tests.reports.sections.node_text import assert_consistent, findings_of, tables_of, text_of

SHARE = LogicEstimate(0.8, 90, 0.7, 0.9, lost=2, over="9 sets")
NOT_ASKED = LogicEstimate(None, 0, reason="not asked", lost=0, over="nothing")
NO_BIAS = Estimate(0.5, 90, 0.4, 0.6)


def make_row(
    judge: str = "j",
    *,
    first: Estimate = NO_BIAS,
    share: LogicEstimate = SHARE,
    transitivity: LogicEstimate = SHARE,
    wording: int | None = None,
    margin: float = 0.0,
) -> LogicRow:
    entries = [
        TransitivityRow(k=3, calibrated=calibrated, share=transitivity, decided=31, margin=margin)
        for calibrated in (False, True)
    ]
    return LogicRow(
        judge=judge, wording=wording, questions=100, ok=97, losses={"rate_limited": 3}, ties=4, first=first,
        transitivity=entries, commutativity=share, negation=share, negation_calibrated=share, self_agreement=NOT_ASKED,
        human_agreement=share, human_agreement_calibrated=share,
    )  # fmt: skip


def make_logic(judges: list[LogicRow], **changes: object) -> LogicReport:
    logic = LogicReport(
        criterion=["acceptability"], sets=1, items=10, contexts=["Germany"], judges=judges, wordings=[],
        contradictions=[], repairs=[], links=[], ledger=[], rankings=[],
    )  # fmt: skip
    return logic.model_copy(update=changes)


def build(report: Report, judges: list[LogicRow], **changes: object) -> Section:
    section = build_logic_section(report.model_copy(update={"logic": make_logic(judges, **changes)}))
    assert section is not None
    assert_consistent(section)
    return section


def make_judge_consistency(judge: str, weight: float | None, *, benched: bool = False) -> JudgeConsistencyRow:
    return JudgeConsistencyRow(
        judge=judge, transitivity=0.9, commutativity=0.8, negation=None, self_agreement=None, value=0.85, weight=weight,
        benched=benched, reason="its consistency is below 0.8" if benched else None,
    )  # fmt: skip


def test_no_section_where_nothing_was_compared(report: Report) -> None:
    assert build_logic_section(report) is None


@pytest.mark.parametrize(
    ("first", "finding"),
    [
        (Estimate(0.7, 90, 0.6, 0.8), "j favours the item shown first, in 70% (95% CI 60% to 80%) of its decisions; "),
        (
            Estimate(0.3, 90, 0.2, 0.4),
            "j favours the item shown second: it names the first in 30% (95% CI 20% to 40%) of its decisions; ",
        ),
        (NO_BIAS, "j "),
        (Estimate(None, 0, reason="no pair was answered in both orders"), "j "),
    ],
)
def test_position_bias_is_named_only_if_the_interval_excludes_one_half(
    report: Report, first: Estimate, finding: str
) -> None:
    [(text, _)] = findings_of(build(report, [make_row(first=first)]))
    assert text == (
        f"{finding}makes the same decision in both orders for 80% (95% CI 70% to 90%) of pairs; reverses its answer to "
        "80% (95% CI 70% to 90%) of negated questions; has no cycles in 80% (95% CI 70% to 90%) of subsets of 3 items."
    )


def test_a_judge_without_figures_gave_no_usable_answer(report: Report) -> None:
    section = build(report, [make_row(NAME, share=NOT_ASKED, transitivity=NOT_ASKED)])
    assert findings_of(section) == [(f"{NAME} gave no usable answer.", "neutral")]
    assert "Units of the 95% CIs" not in text_of(section)


def test_each_judge_and_wording_has_its_figures(report: Report) -> None:
    section = build(report, [make_row()], wordings=[make_row(wording=1)])
    tables = tables_of(section)
    assert cells_of(tables["logic-answers"])[1] == [
        "j, wording 2", 100, 97, CountShare(97, 100), "3 rate limited", 4, NO_BIAS,
    ]  # fmt: skip
    assert cells_of(tables["logic-shares"])[0] == ["j", SHARE, SHARE, SHARE, NOT_ASKED, SHARE, SHARE]
    assert "Units of the 95% CIs: 9 sets." in text_of(section)


def test_transitivity_has_a_row_for_each_judge_and_subset_size(report: Report) -> None:
    sampled, missing = make_row("s", margin=0.02), make_row("m", transitivity=NOT_ASKED)
    rows = cells_of(tables_of(build(report, [make_row(), sampled, missing]))["logic-transitivity"])
    assert list(rows) == [
        ["j", 3, "one order", SHARE, "all with answers", None, 31, 2],
        ["j", 3, "calibrated", SHARE, "all with answers", None, 31, 2],
        ["s", 3, "one order", SHARE, "random sample", 0.02, 31, 2],
        ["s", 3, "calibrated", SHARE, "random sample", 0.02, 31, 2],
        ["m", 3, "one order", NOT_ASKED, None, None, None, None],
        ["m", 3, "calibrated", NOT_ASKED, None, None, None, None],
    ]


@pytest.mark.parametrize(
    ("contexts", "is_named"), [(["Germany"], True), (list("abcde"), False), (["a long question " * 3], False)]
)
def test_contexts_are_named_if_they_are_few_and_short(report: Report, contexts: list[str], is_named: bool) -> None:
    text = text_of(
        build(report, [make_row()], contexts=contexts, criterion=["acceptability", "own criterion"]).blocks[0]
    )
    assert ("(10 items in total: " in text) == is_named
    assert "which is more acceptable to most people of the country, own criterion." in text


def test_correlations_between_figures_are_shown(report: Report) -> None:
    r = Estimate(0.4, 5, -0.2, 0.8)
    links = [LogicCorrelationRow(over="judges", x="commutativity", y="agreement with people", r=r)]
    rows = cells_of(tables_of(build(report, [make_row()], links=links))["logic-correlations"])
    assert rows == [["judges", "commutativity", "agreement with people", r]]


def test_the_effect_of_consistency_on_votes_is_stated(report: Report) -> None:
    unweighted = build(report, [make_row()], ledger=[make_judge_consistency("a", None)])
    assert "Votes are not weighted by these figures" in text_of(unweighted)
    judges = [make_judge_consistency("a", 0.85), make_judge_consistency("b", 0.0, benched=True)]
    weighted = build(report, [make_row()], ledger=judges)
    assert "Excluded from voting: b (its consistency is below 0.8)." in text_of(weighted)
    assert cells_of(tables_of(weighted)["logic-votes"]) == [
        ["a", 0.9, 0.8, None, None, 0.85, 0.85],
        ["b", 0.9, 0.8, None, None, 0.85, 0.0],
    ]
    assert "No judge is excluded from voting." in text_of(build(report, [make_row()], ledger=judges[:1]))
