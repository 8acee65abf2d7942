"""The document on robustness: what it says is what was measured."""

from __future__ import annotations

import numpy as np
import pytest

from auditor.metrics.designs.robustness import DesignRun, DesignScore
from auditor.reports.data.robustness import RobustnessReport, build_robustness
from auditor.reports.document import Paragraph, Quote, Table
from auditor.reports.document.blocks import iterate_blocks
from auditor.reports.render.plain_text import render_text
from auditor.reports.render.tables import iterate_rows
from auditor.reports.sections.experiments.robustness import build_robustness_document
from benchmarks.coverage.worlds.design import Design
from benchmarks.coverage.worlds.run_worlds import RunWorld

LEVEL_NAMES = {
    "direction": ("low end first", "high end first"),
    "form": ("from −1 to 1", "from 1 to 10"),
    "reasoning": ("before the score", "after the score"),
    "role": ("none", "respondent of the country"),
}
MODELS = [f"provider-{name}-70b" for name in ("oak", "ash", "elm", "fir", "yew", "bay", "box", "may")]


def build_report(world: RunWorld, n_models: int = 3, seed: int = 0) -> RobustnessReport:
    sample = world.draw(Design(12, 10), np.random.default_rng(seed))
    runs = [
        DesignRun(
            i, {name: LEVEL_NAMES[name][int(level)] if name in LEVEL_NAMES else level for name, level in levels.items()}
        )
        for i, levels in enumerate(sample.runs)
    ]
    scores = [
        DesignScore(
            model, run, f"country {country}", f"topic {topic}", float(score) - 0.3 if run or country else None,
            float(truth), "ok" if run or country else "refused",
        )
        for m, model in enumerate(MODELS[:n_models])
        for cell, (country, topic, truth) in enumerate(zip(sample.country, sample.topic, sample.survey, strict=True))
        for run, score in enumerate(sample.scores[m % 3, cell])
        if not np.isnan(score)
    ]  # fmt: skip
    regions = {f"country {i}": "south" if i >= 6 else "north" for i in range(12)}
    return build_robustness(
        "views", runs, scores, regions=regions, load_text=lambda *place: f"Reasons for {place[1]}. " + "word " * 90
    )


@pytest.fixture(scope="module")
def moved() -> RobustnessReport:
    return build_report(RunWorld("", {"form": 0.1}, model_shift=0.5, wording_sd=0.1))


def test_a_changed_ranking_is_stated_with_both_levels(moved: RobustnessReport) -> None:
    text = " ".join(render_text(build_robustness_document(moved)).split())
    assert (
        "The ranking of provider-oak-70b and provider-ash-70b changes with the direction: provider-oak-70b is closer "
        "to people with “low end first”, provider-ash-70b with “high end first” (" in text
    )
    assert (
        "With “high end first” instead of “low end first” (direction), the MAE of provider-oak-70b is larger (" in text
    )
    assert "sampling alone would give" in text
    assert "Variance of absolute errors: models" in text
    assert "are usable (" in text


def test_a_design_without_effects_is_reported_as_such() -> None:
    text = " ".join(render_text(build_robustness_document(build_report(RunWorld("")))).split())
    assert "No ranking of two models is shown to change with the design (3 pairs of models, 8 choices)." in text
    assert "No choice is shown to change a model’s mean absolute error (MAE)." in text


def test_cells_that_change_most_are_quoted_side_by_side(moved: RobustnessReport) -> None:
    blocks = list(iterate_blocks(build_robustness_document(moved)))
    quotes = [block for block in blocks if isinstance(block, Quote)]
    assert len(quotes) == 4
    changes = [row.change for row in moved.changed]
    assert str(quotes[0].text).startswith(f"Reasons for {changes[0].low_run}.")
    assert str(quotes[1].text).startswith(f"Reasons for {changes[0].high_run}.")
    sizes = [change.high_score - change.low_score for change in changes]
    assert sizes[0] == max(sizes)


def test_the_table_has_correlations_next_to_errors_and_the_number_of_all_rows(moved: RobustnessReport) -> None:
    [table] = [block for block in iterate_blocks(build_robustness_document(moved)) if isinstance(block, Table)]
    titles = [str(column.title) for column in table.columns]
    assert titles == ["Model", "Choice", "Levels", "MAE", "Bias", "Gap in MAE", "Gap in bias", "r", "Concordance"]
    first = min(moved.levels, key=lambda row: row.mae.adjusted_p_value or 0.0)
    row = next(iterate_rows(table))
    assert list(row.cells)[-2:] == [first.pearson_r, first.concordance]
    assert f"of {len(moved.levels)} rows; all: --json" in str(table.caption)


def test_figures_are_of_all_models_runs_and_levels(moved: RobustnessReport) -> None:
    assert (moved.cells, moved.answers, len(moved.designs)) == (120, 3 * 120 * 8, 3 * 16)
    assert moved.lost["refused"] > 0
    assert {(row.model, row.factor) for row in moved.levels} == {
        (model, factor) for model in MODELS[:3] for factor in (*LEVEL_NAMES, "structure", "temperature", "language")
    }
    assert moved.random_factors == ["wording"]
    assert moved.regions == {model: ["south", "north"] for model in MODELS[:3]}
    assert {row.source for row in moved.sources} >= {"model", "wording", "model × direction", "cell", "residual"}
    assert all(row.lowest_mae is not None and row.lowest_mae <= (row.mae.value or 0) for row in moved.averages)
    assert moved.rankings[0].model_dump()["p_value"] is not None


def test_a_design_without_scores_has_a_page(moved: RobustnessReport) -> None:
    empty = build_robustness("views", [DesignRun(run.number, run.levels) for run in moved.runs], [])
    [lead] = build_robustness_document(empty).opening
    assert isinstance(lead, Paragraph)
    assert "No run of the design has a score" in str(lead.content)
