"""The document on robustness: what it says is what was measured, in at most 600 words."""

from __future__ import annotations

import numpy as np
import pytest

from auditor.metrics.designs.design_matrix import list_confounding, plan_levels
from auditor.metrics.designs.robustness import DesignRun, DesignScore
from auditor.metrics.intervals.estimate import Tested
from auditor.reports.data.robustness import (
    WITHOUT_JUDGE,
    ConfoundingRow,
    DesignReport,
    PanelVariantRow,
    RobustnessReport,
    build_robustness,
)
from auditor.reports.document import Figure, Paragraph, Quote, Table
from auditor.reports.document.blocks import iterate_blocks
from auditor.reports.render.html import render_html
from auditor.reports.render.plain_text import render_text
from auditor.reports.sections.experiments.robustness import build_design_document, build_robustness_document
from benchmarks.coverage.worlds.design import Design
from benchmarks.coverage.worlds.run_worlds import RunWorld
from tests.e2e.test_report_pages import count_words

LEVEL_NAMES = {
    "direction": ("low end first", "high end first"),
    "form": ("from −1 to 1", "from 1 to 10"),
    "reasoning": ("before the score", "after the score"),
    "role": ("none", "respondent of the country"),
}
MODELS = [f"provider-{name}-70b" for name in ("oak", "ash", "elm", "fir", "yew", "bay", "box", "may")]


def build_report(world: RunWorld, n_models: int = 3, seed: int = 0, shift: float = 0.3) -> RobustnessReport:
    sample = world.draw(Design(12, 10), np.random.default_rng(seed))
    runs = [
        DesignRun(
            i, {name: LEVEL_NAMES[name][int(level)] if name in LEVEL_NAMES else level for name, level in levels.items()}
        )
        for i, levels in enumerate(sample.runs)
    ]
    scores = [
        DesignScore(
            model, run, f"country {country}", f"topic {topic}", float(score) - shift if run or country else None,
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
    return build_report(RunWorld("", {"form": 0.1}, model_shift=0.6, wording_sd=0.05), shift=0.0)


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


def test_a_design_that_measures_nothing_finds_nothing_unchanged() -> None:
    """Where too few answers are usable, a missing figure is no finding that a choice has no effect."""
    report = build_report(RunWorld(""))
    missing = Tested(None, 0, reason="the runs with usable answers do not separate these levels")
    unmeasured = report.model_copy(
        update={
            "levels": [row.model_copy(update={"mae": missing}) for row in report.levels],
            "averages": [row.model_copy(update={"mae": missing}) for row in report.averages],
            "rankings": [row.model_copy(update={"change": missing}) for row in report.rankings],
        }
    )
    text = " ".join(render_text(build_robustness_document(unmeasured)).split())
    assert "is shown to change" not in text
    reason = "the runs with usable answers do not separate these levels"
    assert f"Whether a choice changes a model’s mean absolute error (MAE) is not known: {reason}." in text
    assert f"Whether a ranking of two models changes with the design is not known: {reason}." in text
    assert f"provider-oak-70b: not available ({reason})." in text


def test_a_design_without_effects_is_reported_as_such() -> None:
    report = build_report(RunWorld(""))
    text = " ".join(render_text(build_robustness_document(report)).split())
    assert "are not known" not in text
    assert "No ranking of two models is shown to change with the design (3 pairs of models, 8 choices)." in text
    assert "No choice is shown to change a model’s mean absolute error (MAE)." in text
    missing = Tested(None, 0, reason="too few answers")
    levels = [report.levels[0].model_copy(update={"mae": missing}), *report.levels[1:]]
    text = " ".join(render_text(build_robustness_document(report.model_copy(update={"levels": levels}))).split())
    assert f"error (MAE). 1 of {len(levels)} differences are not known: too few answers." in text


def test_cells_that_change_most_are_quoted_side_by_side(moved: RobustnessReport) -> None:
    blocks = list(iterate_blocks(build_robustness_document(moved)))
    quotes = [block for block in blocks if isinstance(block, Quote)]
    assert len(quotes) == 4
    changes = [row.change for row in moved.changed]
    assert str(quotes[0].text).startswith(f"Reasons for {changes[0].low_run}.")
    assert str(quotes[1].text).startswith(f"Reasons for {changes[0].high_run}.")
    sizes = [change.high_score - change.low_score for change in changes]
    assert sizes[0] == max(sizes)


def test_a_design_without_scores_has_a_page(moved: RobustnessReport) -> None:
    empty = build_robustness("views", [DesignRun(run.number, run.levels) for run in moved.runs], [])
    [lead] = build_robustness_document(empty).opening
    assert isinstance(lead, Paragraph)
    assert "No run of the design has a score" in str(lead.content)


MAX_WORDS = 600
FACTORS = {
    "wording": ["1", "2", "3", "4", "5"],
    "direction": ["low first", "high first"],
    "scale": ["-1 to 1", "1 to 10", "words"],
    "reasoning": ["before", "after", "none"],
    "answer": ["structured", "text"],
    "temperature": ["0.7", "0"],
    "language": ["en", "native"],
    "role": ["none", "resident"],
}
OMITTED = {
    "temperature": "the model provider-oak-70b takes no temperature",
    "answer": "the model provider-oak-70b takes no structured answers",
    "language=xx": "there are no prompts in the language 'xx'",
}


def describe(factors: dict[str, list[str]], figures: RobustnessReport | None = None) -> DesignReport:
    table = plan_levels([len(levels) for levels in factors.values()], seed=3)
    levels = {name: [names[i] for i in column] for (name, names), column in zip(factors.items(), table.T, strict=True)}
    panels = [("as audited", 90, 0), ("by Dawid and Skene’s model", 120, 40), ("by plain majority", 80, 20)]
    panels += [(f"{WITHOUT_JUDGE}{name}", 60 + i, 30 + i) for i, name in enumerate(MODELS)]
    return DesignReport(
        audit="views", factors=factors, omitted=OMITTED, runs=len(table), runs_per_cell=min(8, len(table)), cells=120,
        samples=1, planned=1920, recorded=1800, forecast="About 120 calls, 0.12 to 0.14 USD.",
        confounding=[
            ConfoundingRow(effect=row.effect, other=list(row.other), share=row.share)
            for row in list_confounding(levels)
        ],
        conflicts=300, panels=[PanelVariantRow(panel=name, settled=n, changed=m) for name, n, m in panels],
        figures=figures,
    )  # fmt: skip


def test_a_page_on_eight_models_is_short_with_its_remarks() -> None:
    world = RunWorld("", {"form": 0.1}, model_shift=0.4, wording_sd=0.1)
    document = build_design_document(describe(FACTORS, build_report(world, len(MODELS))))
    assert count_words(render_html(document))[1] <= MAX_WORDS
    blocks = list(iterate_blocks(document))
    assert [sum(isinstance(block, kind) for block in blocks) for kind in (Figure, Table)] == [1, 1]
    text = " ".join(render_text(document).split())
    for part in (
        "To be sent with --ask: About 120 calls",
        "Left out (why: --json): temperature, answer, language=xx.",
        "The panel settles 90 of 300 conflicts; by the recorded verdicts, 120 by Dawid and Skene’s model (40 changed), "
        "80 by plain majority (20 changed), 60 to 67 without any one judge (at most 37 changed).",
        "Partly confounded (largest squared correlation; at 1 inseparable): ",
    ):
        assert part in text


def test_few_runs_are_explained() -> None:
    remark = "They are all combinations: 16 runs would repeat some."
    few = render_text(build_design_document(describe({name: FACTORS[name] for name in ("direction", "role")})))
    assert remark in " ".join(few.split())
    assert "Each cell is asked in all of the runs" in " ".join(few.split())
    names = ("direction", "role", "answer", "temperature")
    many = render_text(build_design_document(describe({name: FACTORS[name] for name in names})))
    assert remark not in " ".join(many.split())
