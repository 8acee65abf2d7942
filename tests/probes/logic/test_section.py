"""The section on logical consistency names position bias only where its interval does, and shows every figure."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from auditor.metrics.intervals.items import Averaging
from auditor.metrics.logic.consistency import LogicEstimate
from auditor.metrics.logic.transitivity import PartialTransitivity
from auditor.metrics.people.over_models import ModelCorrelation
from auditor.probes.logic.figures.schema import (
    InstanceMeans,
    JudgeConsistencyRow,
    LogicCorrelationRow,
    LogicReport,
    LogicRow,
    TransitivityRow,
)
from auditor.probes.logic.section import build_logic_section
from auditor.reports.data.report_schema import Report
from auditor.reports.document import CountShare, Section
from tests.reports.hostile_report import NAME
from tests.reports.sections.node_text import assert_consistent, cells_of, findings_of, tables_of, text_of


def make_share(
    value: float = 0.8, n: int = 90, low: float = 0.7, high: float = 0.9, *, averaged: Averaging = "pooled"
) -> LogicEstimate:
    return LogicEstimate(
        value=value, n=n, ci_low=low, ci_high=high, resampled=("set",), averaged=averaged, sets=9, lost=2, ties=10,
        coverage=0.9,
    )  # fmt: skip


def make_unknown(reason: str) -> LogicEstimate:
    return LogicEstimate(
        value=None, n=0, reason=reason, averaged="pooled", sets=0, lost=0, ties=0, coverage=None
    )  # fmt: skip


SHARE = make_share()
MEAN = make_share(0.75, 9, averaged="instances")
NOT_ASKED = make_unknown("not asked")
NO_BIAS = make_share(0.5, 90, 0.4, 0.6)
PARTIAL = PartialTransitivity(
    value=0.95, n=9, ci_low=0.9, ci_high=0.97, resampled=("set",), averaged="instances", sets=9, pairs_present=0.6,
    answered_subsets=0.7,
)  # fmt: skip


def make_row(
    judge: str = "j",
    *,
    first: LogicEstimate = NO_BIAS,
    share: LogicEstimate = SHARE,
    mean: LogicEstimate = MEAN,
    transitivity: LogicEstimate = SHARE,
    wording: int | None = None,
    margin: float = 0.0,
    sizes: Sequence[int] = (3,),
) -> LogicRow:
    entries = [
        TransitivityRow(
            k=k, calibrated=calibrated, share=transitivity, instances=mean, partial=PARTIAL, partial_instances=PARTIAL,
            decided=31, tied=4, unanswered=2, margin=margin,
            margin_instances=1.5 * margin, all_subsets=not margin,
        )
        for k in sizes
        for calibrated in (False, True)
    ]  # fmt: skip
    instances = InstanceMeans(
        commutativity=mean, position_consistency=mean, negation=mean,
        negation_calibrated=mean, self_agreement=NOT_ASKED, human_agreement=mean,
        human_agreement_calibrated=mean,
    )  # fmt: skip
    return LogicRow(
        judge=judge, wording=wording, questions=100, ok=97, losses={"rate_limited": 3}, ties=4, first=first,
        transitivity=entries, commutativity=share, position_consistency=share, negation=share,
        negation_calibrated=share, self_agreement=NOT_ASKED,
        human_agreement=share, human_agreement_calibrated=share, instances=instances,
    )  # fmt: skip


def make_logic(judges: list[LogicRow], **changes: object) -> LogicReport:
    logic = LogicReport(
        criterion=["acceptability"], sets=1, max_sets=None, items=10, labelled_pairs=0, contexts=["Germany"],
        judges=judges, wordings=[], contradictions=[], repairs=[], links=[], ledger=[], rankings=[],
    )  # fmt: skip
    return logic.model_copy(update=changes)


def build(report: Report, judges: list[LogicRow], **changes: object) -> Section:
    section = build_logic_section(report.model_copy(update={"logic": make_logic(judges, **changes)}))
    assert section is not None
    assert_consistent(section)
    return section


def make_judge_consistency(judge: str, weight: float | None, *, benched: bool = False) -> JudgeConsistencyRow:
    return JudgeConsistencyRow(
        judge=judge, transitivity=0.9, commutativity=0.8, negation=None, self_agreement=None, decided_share=0.95,
        side_share=0.5, value=0.85, above_chance=0.6, weight=weight, benched=benched,
        reason="its consistency is below 0.8" if benched else None,
    )  # fmt: skip


def test_no_section_where_nothing_was_compared(report: Report) -> None:
    assert build_logic_section(report) is None


@pytest.mark.parametrize(
    ("first", "finding"),
    [
        (make_share(0.7, 90, 0.6, 0.8),
         "j names the item shown first in 70% (95% CI 60% to 80%) of its decisions, where 50% is no position bias; "),
        (make_share(0.5, 90, 0.4, 0.6),
         "j names the item shown first in 50% (95% CI 40% to 60%) of its decisions, where 50% is no position bias; "),
        (make_unknown("no pair was answered in both orders"), "j "),
    ],
)  # fmt: skip
def test_each_judge_has_its_share_of_first_items_whether_or_not_the_interval_excludes_one_half(
    report: Report, first: LogicEstimate, finding: str
) -> None:
    [(text, _)] = findings_of(build(report, [make_row(first=first)]))
    assert text == (
        f"{finding}makes the same decision in both orders for 80% (95% CI 70% to 90%) of decided pairs "
        "(commutativity), and gives the same answer for 80% (95% CI 70% to 90%) of pairs answered in both orders, "
        "ties among them (position consistency); reverses its answer to 80% (95% CI 70% to 90%) of decided negated "
        "questions; has no cycles in 80% (95% CI 70% to 90%) of "
        "fully decided subsets of 3 items."
    )


def test_a_judge_without_figures_has_unknown_consistency_or_no_usable_answer(report: Report) -> None:
    row = make_row(NAME, first=NOT_ASKED, share=NOT_ASKED, transitivity=NOT_ASKED)
    unknown = PartialTransitivity(
        value=None, n=0, reason="not asked", averaged="pooled", sets=0, pairs_present=None, answered_subsets=None
    )
    entries = [entry.model_copy(update={"partial": unknown}) for entry in row.transitivity]
    unmeasured = row.model_copy(update={"transitivity": entries})
    [(finding, _)] = findings_of(build(report, [unmeasured]))
    assert finding == f"{NAME} decided no pair in both orders or forms, so that its consistency is not known."
    section = build(report, [unmeasured.model_copy(update={"ok": 0})])
    assert findings_of(section) == [(f"{NAME} gave no usable answer.", "neutral")]
    assert "The 95% CIs generalize" not in text_of(section)


def test_usable_and_decided_answers_are_shares_of_all(report: Report) -> None:
    tables = tables_of(build(report, [make_row()]))
    assert CountShare(97, 100) in cells_of(tables["logic-answers"])[0]
    assert CountShare(90, 100) in cells_of(tables["logic-shares"])[0]


def test_the_population_of_the_intervals_is_stated(report: Report) -> None:
    over_sets = text_of(build(report, [make_row()]))
    assert "The 95% CIs generalize to other item sets like these." in over_sets
    assert "they do not generalize to other sets" not in over_sets
    over_items = LogicEstimate(
        value=0.8, n=90, ci_low=0.7, ci_high=0.9, resampled=("item",), averaged="pooled", sets=1, lost=0, ties=0,
        coverage=1.0,
    )  # fmt: skip
    text = text_of(build(report, [make_row(share=over_items)]))
    assert "generalize to other item sets like these or other items like these" in text
    assert "they do not generalize to other sets" in text


def test_transitivity_has_a_row_for_each_judge_and_subset_size(report: Report) -> None:
    sampled, missing = make_row("s", margin=0.02), make_row("m", transitivity=NOT_ASKED)
    cells = cells_of(tables_of(build(report, [sampled, missing]))["logic-transitivity"])
    assert [row[5:7] for row in cells] == [["random sample", 0.03]] * 2 + [[None, None]] * 2


def test_transitivity_is_shown_by_size_whatever_the_order_of_the_configuration(report: Report) -> None:
    tables = tables_of(build(report, [make_row(sizes=(5, 3, 4))]))
    for name in ("logic-transitivity", "logic-partial"):
        assert [row[1] for row in cells_of(tables[name])] == [3, 3, 4, 4, 5, 5]


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
    r = ModelCorrelation(0.4, 5, reason="too few judges: an interval needs at least 8", p_value=0.3, models=5)
    links = [
        LogicCorrelationRow(over="judges", averaged="instances", x="commutativity", y="agreement with people", r=r)
    ]
    rows = cells_of(tables_of(build(report, [make_row()], links=links))["logic-correlations"])
    assert rows == [["judges", "commutativity", "agreement with people", "mean over sets", r, 0.3]]


def test_drawn_sets_and_labels_are_stated(report: Report) -> None:
    text = text_of(build(report, [make_row()]).blocks[0])
    assert "drawn" not in text
    assert "labelled" not in text
    text = text_of(build(report, [make_row()], max_sets=200, labelled_pairs=12).blocks[0])
    assert "Sets were drawn at random, at most 200. People labelled 12 of the pairs." in text


def test_the_effect_of_consistency_on_votes_is_stated(report: Report) -> None:
    unweighted = build(report, [make_row()], ledger=[make_judge_consistency("a", None)])
    assert "Votes are not weighted by these figures" in text_of(unweighted)
    judges = [make_judge_consistency("a", 0.6), make_judge_consistency("b", 0.0, benched=True)]
    weighted = build(report, [make_row()], ledger=judges)
    assert "Excluded from voting: b (its consistency is below 0.8)." in text_of(weighted)
    assert cells_of(tables_of(weighted)["logic-votes"]) == [
        ["a", 0.9, 0.8, None, None, 0.85, 0.6, 0.95, 0.5, 0.6, None],
        ["b", 0.9, 0.8, None, None, 0.85, 0.6, 0.95, 0.5, 0.0, "its consistency is below 0.8"],
    ]
    assert "No judge is excluded from voting." in text_of(build(report, [make_row()], ledger=judges[:1]))
