"""Documents on samples, temperatures, nonresponse and savings state what changes, and what is missing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from auditor.metrics.intervals.estimate import Estimate
from auditor.reports.data.measurement_schema import NonresponseReport, NonresponseTreatmentRow
from auditor.reports.data.report_schema import Report
from auditor.reports.data.sampling import SamplingExperiment, SettingRow
from auditor.reports.data.savings_study import SamplingPlanRow, SavingsStudy
from auditor.reports.document import Figure
from auditor.reports.document.blocks import iterate_blocks
from auditor.reports.render.plain_text import render_text
from auditor.reports.sections.experiments.sampling import (
    build_sampling_document,
    build_savings_document,
    describe_changes,
    describe_cheapest_plan,
    describe_nonresponse,
)
from tests.reports.sections.node_text import cells_of, tables_of
from tests.support.document_figures import assert_figures_are_shown


def make_setting(setting: float, r: Estimate | None = None, **changes: Any) -> SettingRow:
    """Figures of one model at one setting."""
    figures = {"model": "alder", "samples": 5, "spread": 0.081, "scored": 0.996, "calls": 450, "usd": 0.25}
    mae = Estimate(0.17, 62, 0.14, 0.22)
    return SettingRow.model_validate(
        {**figures, "setting": setting, "r": r or Estimate(0.8, 62, 0.75, 0.85), "mae": mae, **changes}
    )


def make_experiment(
    *rows: SettingRow, varied: str = "samples", missing: Mapping[str, int] | None = None
) -> SamplingExperiment:
    """An experiment with these rows."""
    return SamplingExperiment.model_validate(
        {"audit": "x", "what": varied, "cells": 62, "rows": rows, "missing": missing or {}}
    )


def test_the_lead_compares_the_smallest_and_the_largest_setting() -> None:
    experiment = make_experiment(make_setting(1), make_setting(5, Estimate(0.9, 62, None, None, "one subset")))
    assert describe_changes(experiment) == (
        "alder: r is 0.80 with 1 sample per cell and 0.90 with 5 samples per cell; the scatter of a cell’s score is "
        "0.081 and 0.081."
    )
    assert describe_changes(make_experiment(make_setting(1))) == "Fewer than two settings can be compared."


def test_no_table_without_rows_follows_what_is_missing() -> None:
    document = build_sampling_document(make_experiment(missing={"0": 150}, varied="temperature"))
    text = render_text(document)
    assert "temperature = 0 is not available: missing 150 calls." in text
    assert "Scatter" not in text


@pytest.mark.parametrize(
    ("usd", "cost_title", "shown"), [(0.25, "US dollars", "$0.2500"), (None, "Calls", "unknown"), (0.0, "Calls", "$0")]
)
def test_the_plot_shows_cost_or_calls_where_a_price_is_unknown(usd: float | None, cost_title: str, shown: str) -> None:
    document = build_sampling_document(make_experiment(make_setting(0.7, usd=usd), varied="temperature"))
    [figure] = (block for block in iterate_blocks(document) if isinstance(block, Figure))
    assert cost_title in str(figure.spec)
    assert "alder, temperature 0.7: r 0.80 (0.75 to 0.85), 450 calls" in figure.description
    assert_figures_are_shown(document)
    assert shown in render_text(document)


def test_missing_settings_are_reasons_for_caution() -> None:
    text = render_text(build_sampling_document(make_experiment(missing={"10": 930, "12": 0})), width=200)
    assert "samples = 10 is not available: missing 930 calls." in text
    assert "samples = 12 is not available: no model was asked." in text


def test_settings_without_r_have_no_plot() -> None:
    document = build_sampling_document(make_experiment(make_setting(1, Estimate(None, 0, reason="no scores"))))
    assert not [block for block in iterate_blocks(document) if isinstance(block, Figure)]
    assert "no scores" in render_text(document)


def make_nonresponse(report: Report, rankings: dict[str, list[str]], *, holds: bool | None) -> NonresponseReport:
    """A report on treatments that all have the alignment of `report`."""
    return NonresponseReport(
        treatments=[
            NonresponseTreatmentRow(treatment=treatment, alignment=report.alignment, ranking=ranking)
            for treatment, ranking in rankings.items()
        ],
        not_possible={"drop": "no counts.", "impute": "no counts."},
        bounds=[],
        ranking_holds=holds,
        reason=None if holds is not None else "fewer than two models",
    )


def test_the_lead_states_whether_the_ranking_depends_on_the_treatment(report: Report) -> None:
    equal = {"as audited": ["a", "b"], "low": ["a", "b"]}
    different = {"as audited": ["a", "b"], "low": ["b", "a"]}
    assert describe_nonresponse(make_nonresponse(report, equal, holds=True)) == (
        "The ranking of models by MAE is the same under all treatments (low): a > b."
    )
    assert describe_nonresponse(make_nonresponse(report, different, holds=False)) == (
        "The ranking of models by MAE depends on the treatment. As audited: a > b. Others: b > a (low)."
    )
    assert "cannot be compared between treatments: fewer than two models." in describe_nonresponse(
        make_nonresponse(report, {"as audited": ["a"]}, holds=None)
    )


def make_plan(name: str, **changes: Any) -> SamplingPlanRow:
    """A sampling plan without verdicts that changes nothing."""
    figures = {"direct": 0.9, "review": None, "calls": 0.996, "shift": 0.0, "largest": 0.0, "corrected_shift": None}
    figures |= {"corrected_largest": None, "same_tiers": None, "peers": None, "same_winners": None}
    return SamplingPlanRow.model_validate({"name": name, **figures, **changes})


def test_the_lead_names_the_cheapest_plan_that_keeps_every_r() -> None:
    plans = [
        make_plan("slow", calls=0.8, largest=0.01), make_plan("cheap", calls=0.4, largest=0.009),
        make_plan("wrong", calls=0.2, largest=0.011), make_plan("noisy", calls=0.1, corrected_largest=0.02),
    ]  # fmt: skip
    assert describe_cheapest_plan(plans) == (
        "With cheap, every model’s r stays within 0.01 of the full design, for 40% of the calls."
    )
    assert describe_cheapest_plan(plans[2:]) == "No sampling plan keeps every model’s r within 0.01 of the full design."
    assert "No sampling plan" in describe_cheapest_plan([])


def test_the_table_has_every_figure_of_every_plan() -> None:
    plan = make_plan("few", shift=-0.0123, largest=0.0456, same_tiers=0.987, peers=0.0071, same_winners=0.5)
    study = SavingsStudy(audit="x", models=1, cells=9, samples=5, full=1234, rows=[plan])
    document = build_savings_document(study)
    assert_figures_are_shown(document)
    [table] = tables_of(document).values()
    assert {value for _, value in plan if value is not None} <= {cell for row in cells_of(table) for cell in row}
