"""Sentences on the model to prefer follow the tiers; tables have every model."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from auditor.metrics.intervals.estimate import Estimate
from auditor.reports.data.agreement.tiers import ALL_COUNTRIES, TierRanking, TierRow
from auditor.reports.data.report_schema import Report
from auditor.reports.document import Disclosure, List, Reason, Table
from auditor.reports.sections.agreement import build_tiers_section, describe_preference, list_preferences
from tests.reports.sections.block_access import cells_of

CELLS = "The comparison uses the 40 cells that all models share."


def make_tier_row(
    model: str, tier: int | None = 1, value: float | None = 0.2, may_be_best: bool | None = True
) -> TierRow:
    value_from_best = -0.05 if may_be_best else 0.1
    low, high = (-0.1, 0.0) if may_be_best else (0.0, 0.2)
    from_best = (
        Estimate(value_from_best, 40, reason="too few")
        if tier is None
        else Estimate(value_from_best, 40, low, high, resampled=("country", "topic"))
    )
    return TierRow(
        model=model, value=value, tier=tier, rank_low=tier, rank_high=tier, from_best=from_best, may_be_best=may_be_best
    )


def make_ranking(
    *rows: TierRow, scope: str = ALL_COUNTRIES, by: Literal["r", "MAE"] = "MAE", **more: Any
) -> TierRanking:
    values: dict[str, Any] = {"cells": 40, "countries": 8, "topics": 5, "left_out": {}, "reason": None}
    return TierRanking(scope=scope, method="direct", by=by, rows=list(rows), **(values | more))


@pytest.mark.parametrize(
    ("ranking", "text"),
    [
        (
            make_ranking(make_tier_row("a"), make_tier_row("b", 2, may_be_best=False)),
            "Over all countries, prefer a: its mean absolute error is the lowest (0.20). The next model, b, is "
            f"shown to be worse: by 0.05, and by at most 0.10 (95% CI). {CELLS}",
        ),
        (
            # In one tier, but the comparison with the best alone tells b from a.
            make_ranking(make_tier_row("a"), make_tier_row("b", may_be_best=False)),
            "Over all countries, prefer a: its mean absolute error is the lowest (0.20). The next model, b, is "
            f"shown to be worse: by 0.05, and by at most 0.10 (95% CI). {CELLS}",
        ),
        (
            make_ranking(
                make_tier_row("a"), make_tier_row("b"), make_tier_row("c", 2, may_be_best=False), scope="Western"
            ),
            "For Western countries, a has the lowest mean absolute error (0.20), but b may be the best as well. The "
            f"other model is worse. {CELLS}",
        ),
        (
            make_ranking(*map(make_tier_row, "abcdefg"), scope="Europe"),
            "For Europe, a has the lowest mean absolute error (0.20), but b, c, d, e and 2 more may be the best as "
            f"well. {CELLS}",
        ),
        (
            make_ranking(make_tier_row("a", None, may_be_best=None), reason="too few"),
            "Over all countries, a has the lowest mean absolute error (0.20). It is not known whether it is the "
            f"best: too few. {CELLS}",
        ),
        (
            make_ranking(
                make_tier_row("a", value=0.96).model_copy(
                    update={"from_best": Estimate(0.09, 40, 0.0, 0.15, resampled=("country", "topic"))}
                ),
                make_tier_row("b", 2, 0.87, may_be_best=False),
                by="r",
                left_out={"c": "has a score on 3% of the cells"},
            ),
            "Over all countries, a has the highest r (0.96). The next model, b, is shown to be worse: by 0.09, and "
            "by at most 0.15 (95% CI). The comparison uses the 40 cells that all ranked models share.",
        ),
        (
            make_ranking(make_tier_row("a")),
            "Over all countries, a is the only model with enough scores (mean absolute error 0.20, 40 cells).",
        ),
        (make_ranking(), "Over all countries, no model can be preferred: none has scores on enough cells."),
        (
            make_ranking(make_tier_row("a", None, None, None), reason="rescaled"),
            "Over all countries, no model can be preferred: rescaled.",
        ),
    ],
)
def test_a_preference_claims_no_more_than_the_tiers(ranking: TierRanking, text: str) -> None:
    assert describe_preference(ranking) == text


def test_preferences_are_by_error_and_unclear_without_tiers(report: Report) -> None:
    assert [item.status for item in list_preferences(report)] == ["positive", "unclear", "unclear"]


def test_each_ranking_has_a_table_with_all_models(report: Report) -> None:
    left_out = {"dune": "has a score on 3% of the cells"}
    ranking = make_ranking(make_tier_row("a"), left_out=left_out)
    section = build_tiers_section(report.model_copy(update={"tiers": [*report.tiers, ranking]}))
    assert section is not None
    disclosures = [block for block in section.blocks if isinstance(block, Disclosure)]
    assert [disclosure.is_open for disclosure in disclosures] == [True, False, False, False, False]
    tables = [block for disclosure in disclosures for block in disclosure.blocks if isinstance(block, Table)]
    assert [table.id for table in tables] == [f"tiers-{i}" for i in range(1, 6)]
    assert cells_of(tables[-1]) == [
        ["a", 1, 0.2, 1, 1, ranking.rows[0].from_best, "yes"],
        ["dune", Reason("not ranked: has a score on 3% of the cells", 6)],
    ]


def test_the_section_starts_with_the_preferences_of_all_regions(report: Report) -> None:
    rankings = [make_ranking(make_tier_row("a"), scope=f"region {i}") for i in range(5)]
    section = build_tiers_section(report.model_copy(update={"tiers": rankings}))
    assert section is not None
    preferences = section.blocks[0]
    assert isinstance(preferences, List)
    assert len(preferences.items) == 5


def test_one_model_has_no_tiers(report: Report) -> None:
    assert build_tiers_section(report.model_copy(update={"tiers": []})) is None
