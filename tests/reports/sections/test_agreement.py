"""Findings on agreement with people, and on the model to prefer, claim no more than intervals and tiers support."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from auditor.metrics.intervals.estimate import BoundedEstimate, Estimate
from auditor.reports.data.agreement.tiers import ALL_COUNTRIES, TierRanking, TierRow
from auditor.reports.data.coverage.lost_samples import WorstCaseFigures
from auditor.reports.data.report_schema import Report
from auditor.reports.sections.agreement import (
    build_alignment_remarks,
    describe_closest,
    describe_preference,
    list_preferences,
)
from auditor.reports.sections.agreement_words import classify_alignment, describe_alignment, summarize_alignment
from tests.reports.sections.alignment_rows import make_alignment_row, make_concordance
from tests.support.report_changes import change


@pytest.mark.parametrize(
    ("low", "high", "status", "text"),
    [
        (0.05, 0.4, "negative", "hardly agrees with people"),
        (-0.4, 0.4, "negative", "hardly agrees with people"),
        (-0.6, -0.1, "negative", "contradicts people: its scores fall where theirs rise"),
        (0.2, 0.6, "unclear", "agrees with people somewhere between hardly and partly"),
        (0.51, 0.7, "positive", "agrees partly with people"),
        (0.6, 0.85, "positive", "agrees partly to well with people"),
        (0.75, 0.89, "positive", "agrees well with people"),
        (0.8, 0.95, "positive", "agrees well to closely with people"),
        (0.9, 0.99, "positive", "agrees closely with people"),
        (0.3, 0.95, "unclear", "agrees with people somewhere between hardly and closely"),
        (None, None, "neutral", "cannot be judged without a 95% CI of its concordance"),
    ],
)
def test_words_hold_for_the_whole_interval_of_the_concordance(
    low: float | None, high: float | None, status: str, text: str
) -> None:
    row = make_alignment_row(**make_concordance(0.5, low, high))
    assert classify_alignment(row) == status
    assert describe_alignment(row).startswith(
        f"{text} (mean absolute error = 0.20, 95% CI 0.10 to 0.30, 40 cells; bias"
    )
    assert "None" not in describe_alignment(row)


@pytest.mark.parametrize(
    ("low", "high", "p_value", "text"),
    [
        (0.3, 0.7, 0.01, "It orders countries and topics as people do, to some degree (r = 0.50, 95% CI 0.30 to 0.70)"),
        (-0.7, -0.3, 0.01, "It orders countries and topics against people (r = −0.50"),
        (-0.1, 0.7, 0.2, "It is not shown to order countries and topics as people do (r = 0.50"),
        (0.05, 0.8, 0.24,
         "It is not shown to order countries and topics as people do (r = 0.50, 95% CI 0.05 to 0.80; not beyond chance "
         "given all tests of this kind, p = 0.24)"),
        (None, None, None, "Whether it orders countries and topics as people do cannot be judged (r = 0.50"),
    ],
)  # fmt: skip
def test_r_says_how_a_model_orders_countries_and_topics_given_the_tests_of_all_models(
    low: float | None, high: float | None, p_value: float | None, text: str
) -> None:
    row = make_alignment_row(-0.5 if (high or 0) < 0 else 0.5, low, high)
    assert f". {text}" in describe_alignment(change(row, pearson_r__adjusted_p_value=p_value))


def test_constant_perfect_and_reversed_models_have_words_of_their_own() -> None:
    constant = make_alignment_row(None, None, None, reason="x", **make_concordance(0))
    perfect = make_alignment_row(1.0, None, None, mae=Estimate(0.0, 40, reason="x"), **make_concordance(1))
    reversed_row = make_alignment_row(-1.0, None, None, **make_concordance(-0.5, -0.9, 0.2))
    for row, status, text in (
        (constant, "negative", "hardly agrees with people: it gives every cell the same score"),
        (perfect, "positive", "has people’s score in every cell"),
        (reversed_row, "negative", "reverses people: its scores fall exactly where theirs rise"),
    ):
        assert classify_alignment(row) == status
        assert describe_alignment(row).startswith(text)
        assert summarize_alignment([row]).startswith(f"The model {text}")
        named = summarize_alignment([make_alignment_row(), change(row, model="elm")])
        assert named.startswith(f"elm {text} (mean absolute error")
        assert "The other model agrees with people at least partly" in named


def test_a_model_with_peoples_score_wherever_it_answered_does_not_have_it_in_every_cell() -> None:
    exact = make_alignment_row(1.0, None, None, mae=Estimate(0.0, 40, reason="x"), n_dropped=9, **make_concordance(1))
    assert summarize_alignment([exact]).startswith("The model has people’s score in every cell that it answered (mean")
    assert summarize_alignment([exact, exact]).startswith("m, m have people’s score in every cell that they answered")
    unasked = change(exact, n_without_survey=9)
    assert summarize_alignment([unasked]).startswith("The model has people’s score in every cell (mean")


def test_a_model_is_not_called_constant_because_people_are() -> None:
    """People’s score is the same in every cell: r is undefined and the concordance 0, however the model scores."""
    flat = make_alignment_row(
        None, None, None, reason="people’s score is the same in every cell", **make_concordance(0)
    )
    text = "cannot be judged by the concordance: people’s score is the same in every cell"
    assert (classify_alignment(flat), describe_alignment(flat).startswith(text)) == ("neutral", True)
    assert summarize_alignment([flat]) == f"The model {text} (mean absolute error 0.20)."
    assert summarize_alignment([flat, flat]).startswith(f"m, m {text} (mean")
    rounded = change(flat, mae=Estimate(3e-17, 40, reason="x"))
    assert summarize_alignment([rounded]) == "The model has people’s score in every cell (mean absolute error 0.00)."


def test_scores_on_another_scale_have_r_only() -> None:
    missing = Estimate(None, 40, reason="another scale")
    figures: dict[str, Any] = {"mae": missing, "concordance": missing, "concordance_simultaneous": missing}
    assert describe_alignment(make_alignment_row(0.5, 0.3, 0.7, **figures)) == (
        "It orders countries and topics as people do, to some degree (r = 0.50, 95% CI 0.30 to 0.70, 40 cells); it has "
        "no mean absolute error: another scale"
    )
    none = make_alignment_row(None, None, None, reason="few pairs", **figures)
    assert describe_alignment(none) == "cannot be compared with people: few pairs"


def test_the_headline_counts_models_by_kind_of_agreement() -> None:
    rows = [
        *[make_alignment_row()] * 2,
        make_alignment_row(**make_concordance(0.4, 0.2, 0.6)),
        make_alignment_row(**make_concordance(0.4)),
    ]
    assert summarize_alignment(rows) == (
        "Of 4 models, 2 agree with people at least partly (mean absolute error 0.20), 1 may agree with "
        "people at least partly, or hardly at all (mean absolute error 0.20) and 1 cannot be judged without a 95% CI "
        "(mean absolute error 0.20)."
    )
    assert summarize_alignment(rows[:2]).startswith("Both models agree with people at least partly (mean")
    assert summarize_alignment(rows[:1]) == ("The model agrees partly to well with people (mean absolute error 0.20).")
    assert summarize_alignment([]).startswith("Agreement with people is not available: no scores")


def test_the_headline_does_not_count_a_model_without_an_answer() -> None:
    missing = Estimate(None, 0, reason="no sample has a usable score")
    figures: dict[str, Any] = {"mae": missing, "concordance": missing, "concordance_simultaneous": missing}
    silent = make_alignment_row(None, None, None, reason="no sample has a usable score", n=0, **figures)
    for n_scored, beginning in (
        (1, "The model with usable scores agrees partly to well with people"),
        (2, "Both models with usable scores agree with people"),
        (3, "All 3 models with usable scores agree with people"),
    ):
        assert summarize_alignment([*[make_alignment_row()] * n_scored, silent]).startswith(beginning)


def test_the_headline_has_the_bounds_of_models_that_lost_samples() -> None:
    mae = BoundedEstimate(0.2, 40, 0.1, 0.8, resampled=("country", "topic"), bound_low=0.15, bound_high=0.7)
    lossy = make_alignment_row(model="elm", worst_case=WorstCaseFigures(pearson_r=mae, mae=mae, bias=mae))
    bounds = " Whatever scores the lost samples would have had, the mean absolute error is 0.10 to 0.80 for elm."
    assert summarize_alignment([lossy, make_alignment_row()]).endswith(bounds)
    assert summarize_alignment([lossy]).endswith(bounds)
    assert "Whatever" not in summarize_alignment([make_alignment_row()])


def test_words_use_the_interval_that_holds_for_all_series() -> None:
    wide = make_concordance(0.6, 0.4, 0.8)["concordance"]
    row = make_alignment_row(**make_concordance(0.6, 0.55, 0.7) | {"concordance_simultaneous": wide})
    assert classify_alignment(row) == "unclear"
    assert describe_alignment(row).startswith("agrees with people somewhere between hardly and well")


def test_the_headline_of_a_small_audit_states_the_size_that_is_needed() -> None:
    small = make_alignment_row(0.5, None, None, countries=4, **make_concordance(0.5))
    assert (
        summarize_alignment([small, small])
        == "This audit is too small to judge the models: it needs scores on at least 5 countries and 5 topics."
    )
    no_variation = Estimate(None, 1, reason="too few cells, or no variation among them")
    one_cell = make_alignment_row(
        None, None, None, reason="x", countries=1, topics=1,
        concordance=no_variation, concordance_simultaneous=no_variation,
    )  # fmt: skip
    assert summarize_alignment([one_cell]).startswith("This audit is too small to judge the model: ")
    no_r = make_alignment_row(None, None, None, reason="x", countries=0)
    assert "too small" not in summarize_alignment([small, no_r])


def test_the_remark_counts_cells_without_people_only_where_there_are_any(report: Report) -> None:
    for n_unasked, text in ((0, "People were asked in every cell."), (3, "In 3 cells, people were not asked.")):
        changed = change(report, audit__survey__asked=report.audit.survey.cells - n_unasked)
        assert text in str(build_alignment_remarks(changed).content)


CELLS = "The comparison uses the 40 cells that all models share."


def make_tier_row(
    model: str, tier: int | None = 1, value: float | None = 0.2, may_be_best: bool | None = True
) -> TierRow:
    units = ("country", "topic")
    equal, worse = Estimate(-0.05, 40, -0.1, 0.0, None, units), Estimate(0.1, 40, 0.0, 0.2, None, units)
    from_best = Estimate(-0.05, 40, reason="too few") if tier is None else equal if may_be_best else worse
    return TierRow(
        model=model, value=value, tier=tier, rank_low=tier, rank_high=tier, from_best=from_best, may_be_best=may_be_best
    )


def make_ranking(
    *rows: TierRow, scope: str = ALL_COUNTRIES, by: Literal["r", "MAE"] = "MAE", **more: Any
) -> TierRanking:
    values: dict[str, Any] = {"cells": 40, "countries": 8, "topics": 5, "left_out": {}, "reason": None}
    return TierRanking(scope=scope, method="direct", by=by, rows=list(rows), **(values | more))


PREFERRED = (
    "Over all countries, prefer a: its mean absolute error is the lowest (0.20). The next model, b, is shown to be "
    f"worse: by 0.05, and by at most 0.10 (95% CI). {CELLS}"
)
A, B, C = make_tier_row("a"), make_tier_row("b"), make_tier_row("c", 2, may_be_best=False)
BEST_BY_R = change(make_tier_row("a", value=0.96), from_best=Estimate(0.09, 40, 0.0, 0.15, None, ("country", "topic")))


@pytest.mark.parametrize(
    ("ranking", "text"),
    [
        (make_ranking(A, make_tier_row("b", 2, may_be_best=False)), PREFERRED),
        (make_ranking(A, make_tier_row("b", may_be_best=False)), PREFERRED),  # the comparison with the best tells them
        (make_ranking(A, make_tier_row("b", 2, may_be_best=False), open_by_losses=["b"]),
         "Over all countries, a has the lowest mean absolute error (0.20). The next model, b, is shown to be worse: by "
         f"0.05, and by at most 0.10 (95% CI). Lost samples could reverse this for b. {CELLS}"),
        (make_ranking(A, B, C, scope="Western"),
         "For Western countries, a has the lowest mean absolute error (0.20), but b may be the best as well. The other "
         f"model is worse. {CELLS}"),
        (make_ranking(*map(make_tier_row, "abcdefg"), scope="Europe"),
         "For Europe, a has the lowest mean absolute error (0.20), but b, c, d, e and 2 more may be the best as well. "
         f"{CELLS}"),
        (make_ranking(make_tier_row("a", None, may_be_best=None), reason="too few"),
         "Over all countries, a has the lowest mean absolute error (0.20). It is not known whether it is the best: too "
         f"few. {CELLS}"),
        (make_ranking(BEST_BY_R, make_tier_row("b", 2, 0.87, may_be_best=False), by="r", left_out={"c": "has few"}),
         "Over all countries, a has the highest r (0.96). The next model, b, is shown to be worse: by 0.09, and by at "
         "most 0.15 (95% CI). The comparison uses the 40 cells that all ranked models share. Not compared: c (few)."),
        (make_ranking(A),
         "Over all countries, a is the only model with enough scores (mean absolute error 0.20, 40 cells)."),
        (make_ranking(), "Over all countries, no model can be preferred: none has scores on enough cells."),
        (make_ranking(make_tier_row("a", None, None, None), reason="rescaled"),
         "Over all countries, no model can be preferred: rescaled."),
    ],
)  # fmt: skip
def test_a_preference_claims_no_more_than_the_tiers(ranking: TierRanking, text: str) -> None:
    assert describe_preference(ranking) == text


LEFT_OUT = {"p": "has a score on 70% of the cells"}
NOT_COMPARED = "Not compared: p (a score on 70% of the cells)."


@pytest.mark.parametrize(
    ("ranking", "text"),
    [
        (make_ranking(A, C), "Closest to people: a."),
        (make_ranking(A, C, open_by_losses=["c"]),
         "Closest to people, on the cells that all answered: a. Lost samples could reverse this for c."),
        (make_ranking(A, C, left_out=LEFT_OUT), f"Closest to people of 2 compared models: a. {NOT_COMPARED}"),
        (make_ranking(A, B, left_out=LEFT_OUT),
         f"No compared model is shown to be closer to people than another. {NOT_COMPARED}"),
        (make_ranking(A, B, C, left_out=LEFT_OUT),
         "Closest to people of 3 compared models: a, b. No one of them is shown to be closer than the others. "
         f"{NOT_COMPARED}"),
        *((make_ranking(*rows, left_out=LEFT_OUT),
          "The models are not compared with each other, for lack of scores: p (a score on 70% of the cells).")
          for rows in ([], [A])),
    ],
)  # fmt: skip
def test_the_closest_is_so_of_the_compared_models_and_the_others_are_named(
    report: Report, ranking: TierRanking, text: str
) -> None:
    """A model that is closer on its own cells, which are too few to be compared, stands above it in the table."""
    for tiers in ([ranking], [make_ranking(), ranking], [make_ranking(left_out=LEFT_OUT), ranking]):
        assert describe_closest(change(report, tiers=tiers)) == text


def test_preferences_are_by_error_and_unclear_without_tiers(report: Report) -> None:
    without_losses = change(report, tiers__each__open_by_losses=[])
    assert [item.status for item in list_preferences(without_losses)] == ["positive", "unclear", "unclear"]
    assert {item.status for item in list_preferences(report)} == {"unclear"}
