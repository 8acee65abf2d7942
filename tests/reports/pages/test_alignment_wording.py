"""Sentences claim no more than the intervals support."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from auditor.metrics.estimate import Estimate
from auditor.reports.cost import wording as cost_wording
from auditor.reports.data.measurement_schema import AlignmentRow, TwoWayEstimates
from auditor.reports.data.report_schema import Report
from auditor.reports.number_format import format_number
from auditor.reports.pages import alignment_wording

NO_CLUSTERS = "fewer than 5 countries or topics: no interval"


def _two_way_estimates(r: float | None = None, low: float | None = None, high: float | None = None) -> TwoWayEstimates:
    none = Estimate(value=None, n=40, reason=NO_CLUSTERS)
    return TwoWayEstimates(
        countries=4,
        topics=10,
        pearson_r=Estimate(value=r, n=40, ci_low=low, ci_high=high, reason=NO_CLUSTERS if low is None else None),
        corrected_r=none,
        mae=none,
        rmse=none,
        bias=none,
    )


def _row(r: float | None = 0.5, low: float | None = 0.3, high: float | None = 0.7, **more: Any) -> AlignmentRow:
    values: dict[str, Any] = {
        "model": "m", "survey": "s", "method": "direct", "n": 40, "pearson_r": r, "p_value": 0.01, "ci_low": low,
        "ci_high": high, "spearman_rho": r, "spearman_ci_low": low, "spearman_ci_high": high, "mae": 0.2,
        "mae_ci_low": 0.1, "mae_ci_high": 0.3, "rmse": 0.3, "rmse_ci_low": 0.2, "rmse_ci_high": 0.4, "n_dropped": 0,
        "corrected_r": Estimate(value=None, n=40, reason="no cell has two samples"), "reliability": None,
        "n_without_survey": 0, "bias": Estimate(value=0.0, n=40, ci_low=-0.1, ci_high=0.1),
        "crossed_p_value": 0.02,
        "crossed": _two_way_estimates(r, low, high),
    }  # fmt: skip
    return AlignmentRow(**(values | more))


@pytest.mark.parametrize(
    ("row", "kind", "text"),
    [
        (_row(0.5, 0.45, 0.6), "agrees", "agrees with people moderately (r = 0.50"),
        (_row(0.5, 0.2, 0.75), "agrees", "agrees with people weakly to strongly"),
        (_row(0.95, 0.92, 0.99), "agrees", "very strongly"),
        (_row(0.05, 0.01, 0.09), "agrees", "agrees with people hardly"),
        (_row(-0.6, -0.69, -0.41), "opposes", "runs against people moderately"),
        (_row(0.1, -0.2, 0.4), "unclear", "cannot be told from no relation at all"),
        (_row(0.5, 0.3, 0.7, crossed=_two_way_estimates(0.5, -0.1, 0.9)), "unclear", "95% interval −0.10 to 0.90"),
        (_row(0.5, 0.3, 0.7, crossed=_two_way_estimates(0.5, 0.05, 0.9)), "agrees", "hardly to very strongly"),
        (
            _row(0.5, 0.3, 0.7, crossed=_two_way_estimates(0.5)),
            "unknown",
            "cannot be judged (r = 0.50, no interval: fewer than 5",
        ),
        (_row(0.5, 0.3, 0.7, mae=None), "agrees", "40 cells)"),
        (_row(0.1, 0.0, 0.2), "unclear", "cannot be told from no relation at all"),
        (
            _row(0.9, None, None, n=3, reason="an interval needs 4 pairs"),
            "unknown",
            "cannot be judged (r = 0.90, no interval: fewer than 5",
        ),
        (_row(None, None, None, n=2, reason="fewer than 3 pairs (2)"), "unknown", "fewer than 3 pairs (2)"),
    ],
)
def test_alignment_is_described_by_its_interval(row: AlignmentRow, kind: str, text: str) -> None:
    wording = alignment_wording.describe_alignment(row)
    assert wording.kind == kind
    assert text in wording.text
    assert "None" not in wording.text


def test_the_headline_counts_models_by_kind_of_agreement() -> None:
    rows = [_row(), _row(), _row(0.1, -0.2, 0.4), _row(None, None, None, reason="x")]
    assert alignment_wording.alignment_headline(rows) == (
        "Of 4 models, 2 agree with people beyond chance (r from 0.50 to 0.50), 1 shows an agreement that cannot be "
        "told from no relation at all and 1 cannot be judged, since there is no interval over countries and topics."
    )
    assert (
        alignment_wording.alignment_headline([_row(), _row(0.6)])
        == "Both models agree with people beyond chance (r from 0.50 to 0.60)."
    )
    assert (
        alignment_wording.alignment_headline([_row(-0.5, -0.6, -0.4)])
        == "The one model scored runs against people beyond chance (r = −0.50)."
    )
    assert alignment_wording.alignment_headline([_row(0.1, -0.2, 0.4)]).startswith(
        "The one model scored shows an agreement that cannot"
    )
    assert alignment_wording.alignment_headline([]).startswith("No scores")


def test_the_ranking_names_a_best_model_only_if_its_interval_is_above_all_others() -> None:
    best, near, far = _row(0.9, 0.85, 0.95, model="a"), _row(0.8, 0.7, 0.86, model="b"), _row(0.1, 0.0, 0.2, model="c")
    assert alignment_wording.ranking_sentence([far, best]) == "The interval of a lies above all others."
    assert "overlaps those of 1 other," in (alignment_wording.ranking_sentence([best, near, far]) or "")
    assert alignment_wording.ranking_sentence([best]) is None


def _changed(report: Report, **parts: Any) -> Report:
    return report.model_copy(update=parts)


def test_reasons_for_caution(report: Report) -> None:
    varying_consistency = report.self_consistency[0].model_copy(
        update={"variance": Estimate(value=0.2, n=9, ci_low=0.1, ci_high=0.3)}
    )
    low_agreement = report.peer_agreement[0].model_copy(
        update={"agreement": Estimate(value=0.6, n=9, ci_low=0.3, ci_high=0.8)}
    )
    gap = report.regions.gaps[0].model_copy(update={"mae_gap": Estimate(value=0.2, n=9, ci_low=0.1, ci_high=0.3)})
    troubled_report = _changed(
        report,
        audit=report.audit.model_copy(update={"complete": False, "stage": "review"}),
        self_consistency=[varying_consistency],
        peer_agreement=[low_agreement],
        regions=report.regions.model_copy(update={"gaps": [gap]}),
    )
    cautions = " ".join(alignment_wording.reasons_for_caution(troubled_report))
    assert "every figure is provisional" in cautions
    assert "The variance of the samples is above 0.12 on average for alder (0.20)." in cautions
    assert "The judges find less than 70% of the reasoning valid of alder (60%)." in cautions
    assert "Further from people in Non-Western than in Western countries: alder (by 0.20)." in cautions


def test_caution_about_chance_agreement_counts_each_model_once_per_topic(report: Report) -> None:
    kappa = replace(report.panel.fleiss_kappa, **{"value": 0.26, "ci_low": -0.18, "ci_high": 0.63})
    large_error = Estimate(value=0.9, n=9, ci_low=0.8, ci_high=1.0)
    topics = [
        report.topics[0].model_copy(update={"name": "divorce", "model": model, "method": method, "mae": large_error})
        for model in ("alder", "birch")
        for method in ("direct", "logprob")
    ]
    panel = report.panel.model_copy(update={"fleiss_kappa": kappa})
    cautions = " ".join(alignment_wording.reasons_for_caution(_changed(report, panel=panel, topics=topics)))
    assert "The judges’ agreement cannot be told from chance (Fleiss’ kappa 0.26" in cautions
    assert "divorce (2 models)" in cautions
    below = replace(kappa, **{"value": -0.3, "ci_low": -0.5, "ci_high": -0.1})
    worse = _changed(report, panel=report.panel.model_copy(update={"fleiss_kappa": below}))
    assert "less than chance would give" in " ".join(alignment_wording.reasons_for_caution(worse))


def test_missing_figures_give_no_reason_for_caution(report: Report) -> None:
    not_measured = Estimate(value=None, n=0, reason="not measured")
    report_without_figures = _changed(
        report,
        self_consistency=[row.model_copy(update={"variance": not_measured}) for row in report.self_consistency],
        peer_agreement=[],
        topics=[],
        regions=report.regions.model_copy(update={"gaps": []}),
        coverage=report.coverage.model_copy(update={"total": []}),
        panel=report.panel.model_copy(update={"fleiss_kappa": not_measured}),
    )
    assert alignment_wording.reasons_for_caution(report_without_figures) == []


def test_an_unknown_cost_is_not_described_as_zero(report: Report) -> None:
    unknown_total = report.cost.total.model_copy(update={"usd": None})
    assert "unknown, which is not nothing" in cost_wording.describe_cost(
        _changed(report, cost=report.cost.model_copy(update={"total": unknown_total}))
    )
    assert "at least" in cost_wording.describe_cost(report)


def test_an_estimate_without_a_value_or_interval_needs_a_reason() -> None:
    with pytest.raises(ValueError, match="needs a reason"):
        Estimate(value=None, n=0)
    with pytest.raises(ValueError, match="needs a reason"):
        Estimate(value=0.5, n=1)
    with pytest.raises(ValueError, match="finite"):
        Estimate(value=float("nan"), n=1, reason="x")


def test_corrected_r_is_reported_with_raw_r(report: Report) -> None:
    for row in report.alignment:
        assert row.pearson_r is not None
        assert row.corrected_r.value is not None
        assert abs(row.corrected_r.value) > abs(row.pearson_r)
        assert row.reliability == pytest.approx((row.pearson_r / row.corrected_r.value) ** 2)
        assert alignment_wording.format_corrected_r(row).startswith(format_number(row.corrected_r.value))
    assert alignment_wording.format_corrected_r(_row()) == "no cell has two samples"
