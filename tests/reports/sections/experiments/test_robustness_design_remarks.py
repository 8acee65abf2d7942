"""The page of the experiment `robustness` with its design: at most 600 words in all, and a reason for few runs."""

from __future__ import annotations

import pytest

from auditor.metrics.designs.design_matrix import list_confounding, plan_levels
from auditor.reports.data.robustness import (
    WITHOUT_JUDGE,
    ConfoundingRow,
    DesignReport,
    PanelVariantRow,
    RobustnessReport,
)
from auditor.reports.document import Figure, Table
from auditor.reports.document.blocks import iterate_blocks
from auditor.reports.render.html import render_html
from auditor.reports.render.plain_text import render_text
from auditor.reports.sections.experiments.robustness import build_design_document
from benchmarks.coverage.worlds.run_worlds import MAIN_EFFECTS, RunWorld
from tests.e2e.test_report_length import count_words
from tests.reports.sections.experiments.test_robustness import MODELS, build_report

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


@pytest.mark.parametrize("world", [MAIN_EFFECTS, RunWorld("", {"form": 0.1}, model_shift=0.4, wording_sd=0.1)])
def test_a_page_on_eight_models_is_short_with_its_remarks(world: RunWorld) -> None:
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


def test_the_plan_has_all_levels_and_every_reason() -> None:
    text = " ".join(render_text(build_design_document(describe(FACTORS))).split())
    assert "scale: -1 to 1, 1 to 10, words." in text
    assert "answer (the model provider-oak-70b takes no structured answers)" in text
    assert "32 runs, 120 cells. Each cell is asked in 8 of the runs" in text


def test_few_runs_are_explained() -> None:
    remark = "They are all combinations: 16 runs would repeat some."
    few = render_text(build_design_document(describe({name: FACTORS[name] for name in ("direction", "role")})))
    assert remark in " ".join(few.split())
    assert "Each cell is asked in all of the runs" in " ".join(few.split())
    names = ("direction", "role", "answer", "temperature")
    many = render_text(build_design_document(describe({name: FACTORS[name] for name in names})))
    assert remark not in " ".join(many.split())
