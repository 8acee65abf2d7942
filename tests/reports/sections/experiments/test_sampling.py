"""The document of a sampling experiment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from auditor.metrics.intervals.estimate import Estimate
from auditor.reports.data.sampling import SamplingExperiment, SettingRow
from auditor.reports.document import Figure
from auditor.reports.document.blocks import iterate_blocks
from auditor.reports.render.plain_text import render_text
from auditor.reports.sections.experiments.sampling import build_sampling_document, describe_changes


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


@pytest.mark.parametrize(
    ("usd", "cost_title", "shown"), [(0.25, "US dollars", "$0.2500"), (None, "Calls", "unknown"), (0.0, "Calls", "$0")]
)
def test_the_plot_shows_cost_or_calls_where_a_price_is_unknown(usd: float | None, cost_title: str, shown: str) -> None:
    document = build_sampling_document(make_experiment(make_setting(0.7, usd=usd), varied="temperature"))
    [figure] = (block for block in iterate_blocks(document) if isinstance(block, Figure))
    assert cost_title in str(figure.spec)
    assert "alder, temperature 0.7: r 0.80 (0.75 to 0.85), 450 calls" in figure.description
    text = render_text(document, width=200)
    for number in ("0.70", "0.80 (0.75 to 0.85)", "0.17 (0.14 to 0.22)", "0.081", "99.6%", "450", shown):
        assert number in text


def test_missing_settings_are_reasons_for_caution() -> None:
    text = render_text(build_sampling_document(make_experiment(missing={"10": 930, "12": 0})), width=200)
    assert "samples = 10 is not available: missing 930 calls." in text
    assert "samples = 12 is not available: no model was asked." in text


def test_settings_without_r_have_no_plot() -> None:
    document = build_sampling_document(make_experiment(make_setting(1, Estimate(None, 0, reason="no scores"))))
    assert not [block for block in iterate_blocks(document) if isinstance(block, Figure)]
    assert "no scores" in render_text(document)
