"""The first section answers the question; the brief report is this section alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from auditor.metrics.intervals.estimate import Estimate
from auditor.reports.data.agreement.cultural_findings import ShortfallsReport
from auditor.reports.data.agreement.sensitivity import HalfErrorSizes
from auditor.reports.data.coverage.lost_samples import LostSamples
from auditor.reports.data.report_schema import Report
from auditor.reports.document import Callout, List, Paragraph, Section, Table
from auditor.reports.sections.caution import list_cautions
from auditor.reports.sections.page_one import (
    MAX_FINDINGS,
    MAX_STEPS,
    NEXT_STEPS,
    PAGE_ONE,
    build_summary_section,
    list_next_steps,
)
from auditor.reports.sections.report import build_report_document
from tests.reports.sections.alignment_rows import make_alignment_row
from tests.reports.sections.node_text import blocks_of, text_of, titled_cells_of
from tests.support.report_changes import change

MAX_WORDS = 900


def test_page_one_has_its_parts_in_the_fixed_order(report: Report) -> None:
    lead, question, overview, cautions, findings, steps = build_summary_section(report).blocks
    assert isinstance(lead, Paragraph)
    assert lead.role == "lead"
    closest = "Closest to people, on the cells that all answered: alder. Lost samples could reverse this for birch. "
    assert str(lead.content).startswith(f"{closest}Of 3 models, ")
    assert report.audit.survey.survey.wording in text_of(question)
    assert "That is not what most people say: where people are divided, " in text_of(question)
    assert isinstance(overview, Table)
    assert isinstance(cautions, Callout)
    assert [block.id for block in (findings, steps) if isinstance(block, Section)] == ["summary-findings", "next"]


MISSING = Estimate(None, 0, reason="not measured")
NO_FINDINGS: dict[str, Any] = {
    "guesses": [], "structure": [], "cultural_findings": None, "regions__gaps": [],
    "shortfalls": ShortfallsReport(compared=1, rows=[]),
}  # fmt: skip
NO_CAUTIONS: dict[str, Any] = {
    "alignment": [], "sensitivity": [], "self_consistency": [], "regions__gaps": [], "coverage__total": [],
    "refusals": None, "panel__krippendorff_alpha": MISSING,
}  # fmt: skip
PARTS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "_build_answer": ("survey", "on the cells that all answered: alder.", {"audit__survey__survey__title": ""}),
    "_build_overview": ("survey", "The models at a glance", {"alignment": []}),
    "_build_cautions": ("survey", "Reasons for caution", NO_CAUTIONS),
    "_build_findings": ("survey", "What else was found", NO_FINDINGS),
    "_build_judges": ("labels", "Can the judges be trusted?", {"judge_quality": None}),
    "_build_probes": ("semantic", "summary-semantic", {"semantic": None}),
}
"""By part of page one: a whole report that has it, its words, and changes after which the report must not have it."""


@pytest.mark.parametrize("part", PARTS)
def test_each_part_of_page_one_is_there_where_it_has_something_to_say(
    part: str, whole_report: Callable[[str], Report]
) -> None:
    kind, words, changes = PARTS[part]
    [build] = [build for build in PAGE_ONE if build.__name__ == part]
    assert words in text_of(list(build(whole_report(kind))))
    assert list(build(change(whole_report(kind), **changes))) == []


def test_every_part_of_page_one_has_a_case() -> None:
    assert list(PARTS) == [build.__name__ for build in PAGE_ONE]


def test_no_caution_is_cut_and_findings_are_at_most_four(report: Report) -> None:
    section = build_summary_section(report)
    [cautions] = blocks_of(section, Callout)
    [items] = [block.items for block in cautions.blocks if isinstance(block, List)]
    assert [text_of(item) for item in items] == list_cautions(report)
    [findings] = [block for block in section.blocks if isinstance(block, Section) and block.id == "summary-findings"]
    assert 0 < len(blocks_of(findings, List)[0].items) <= MAX_FINDINGS


def test_the_brief_report_is_page_one_and_short_with_eight_models(report: Report) -> None:
    document = build_report_document(report, is_brief=True)
    assert document.is_brief
    assert document.sections == [build_summary_section(report)]
    many = report.model_copy(update={"alignment": [make_alignment_row(model=f"model-{i}") for i in range(8)]})
    assert len(text_of(build_summary_section(many)).split()) <= MAX_WORDS


LOST = LostSamples(planned=100, lost=6, share=0.06)
STEPS: list[tuple[str, str, dict[str, Any], dict[str, Any]]] = [
    ("_finish_audit", "Finish the audit: auditor run with the same configuration", {"audit__complete": False}, {}),
    (
        "_enlarge_audit", "Ask about at least 5 countries and 5 topics. With fewer, no figure has a 95% CI",
        {"alignment__each__topics": 4}, {"alignment__0__topics": 4},
    ),
    (
        "_enlarge_audit", "Ask about at least 5 countries", {"alignment__each__topics": 4},
        {"alignment__each__topics": 0, "alignment__each__countries": 0},
    ),
    (
        "_explain_losses", "Find out why 3 calls failed, and repeat them: auditor errors 'my audit'.",
        {"failures__unusable": 3, "audit__name": "my audit"}, {"failures__unusable": 0},
    ),
    (
        "_explain_losses", "Find out why samples were lost",
        {"alignment__0__lost_samples": LOST, "failures__unusable": 0},
        {"alignment__0__lost_samples": LOST},
    ),
    (
        "_choose_model", "If you choose one model, prefer alder: its mean absolute error is lowest.",
        {"tiers__each__open_by_losses": []}, {"tiers__each__rows__1__may_be_best": True},
    ),
    (
        "_choose_model", "Do not choose between alder and birch by these data: lost samples could change their order.",
        {}, {"tiers__each__open_by_losses": []},
    ),
    (
        "_choose_model", "Do not choose between alder and birch by these data: each may have the lowest",
        {"tiers__each__open_by_losses": [], "tiers__each__rows__1__may_be_best": True}, {},
    ),
    (
        "_test_thresholds", "Test the thresholds of the configuration ([check]): auditor check population.",
        {"audit__thresholds": ["max_mae"]}, {},
    ),
    ("_test_thresholds", "population --max-mae YOURS --max-region-gap YOURS.", {}, {"regions__gaps": []}),
    ("_test_thresholds", "population --max-mae YOURS.", {"regions__gaps": []}, {}),
    ("_test_thresholds", "population --min-pearson YOURS.", {"alignment__each__mae": MISSING}, {}),
    (
        "_test_thresholds", "population --min-skill YOURS --min-variance-ratio YOURS.",
        {"alignment": [], "distribution": "figures"}, {},
    ),
    ("_test_thresholds", "population --min-coverage YOURS.", {"alignment": []}, {}),
    ("_test_thresholds", "population --min-accuracy YOURS.", {"alignment": [], "task": "a task"}, {"alignment": []}),
    (
        "_measure_judges", "of traces, not the conflicts: auditor review population --sample 55.",
        {"judge_quality__suggested_labels": 55}, {"judge_quality__suggested_labels": 55, "judge_quality__reason": "?"},
    ),
    (
        "_decide_conflicts",
        "Decide the 7 conflicts that the judges could not resolve: auditor review population. Your decisions do not "
        "change any model’s agreement with people.",
        {"conflicts__states": {"open": 3, "disputed": 4}}, {"conflicts__states": {"settled": 7}},
    ),
    (
        "_decide_conflicts", "Decide the 7 conflicts: auditor review population.",
        {"conflicts__states": {"open": 7}, "audit__models__each__judge": False}, {"conflicts__states": {"open": 7}},
    ),
    (
        "_halve_error",
        "To halve the standard error of the mean absolute error (alder), plan about 8 usable samples a cell",
        {"variance__each__to_halve": HalfErrorSizes(topic=None, country=None, sample=8)},
        {"variance__each__to_halve": None},
    ),
    ("_export_data", "Analyse every figure and answer as data: auditor export tables population.", {}, {}),
]  # fmt: skip
"""Kinds of steps: words, changes after which a report must have them, and changes after which it must not."""


@pytest.mark.parametrize(("kind", "words", "has", "lacks"), STEPS)
def test_a_step_is_named_where_it_is_due_and_nowhere_else(
    report: Report, kind: str, words: str, has: dict[str, Any], lacks: dict[str, Any]
) -> None:
    [build] = [build for build in NEXT_STEPS if build.__name__ == kind]
    assert words in text_of(list(build(change(report, **has))))
    others = build if has != lacks else list_next_steps  # the last is there only if others leave it a place
    assert words not in text_of(list(others(change(report, **lacks))))


def test_every_kind_of_step_has_a_case_and_the_first_four_are_named(report: Report) -> None:
    assert list(dict.fromkeys(kind for kind, *_ in STEPS)) == [build.__name__ for build in NEXT_STEPS]
    urgent = change(report, audit__complete=False, failures__unusable=3)
    steps = [step for build in NEXT_STEPS for step in build(urgent)]
    assert (len(steps) > MAX_STEPS, list_next_steps(urgent)) == (True, steps[:MAX_STEPS])


def test_an_audit_without_a_survey_shows_the_findings_of_its_probe(whole_report: Callable[[str], Report]) -> None:
    section = build_summary_section(whole_report("semantic"))
    assert section.title == "What did the audit find?"
    [findings] = [block for block in section.blocks if isinstance(block, Section) and block.id == "summary-semantic"]
    assert blocks_of(findings, List)[0].items


@pytest.mark.parametrize(
    ("usd", "is_lower_bound", "shown"), [(0.5, False, "$0.5000"), (0.5, True, "≥ $0.5000"), (None, True, "unknown")]
)
def test_the_overview_says_which_costs_are_not_known(
    usd: float | None, is_lower_bound: bool, shown: str, report: Report
) -> None:
    first = next(row for row in report.cost.rows if row.name == "alder")
    changed = change(first, usd=usd, lower_bound=is_lower_bound)
    section = build_summary_section(change(report, cost__rows=[changed]))
    [table] = [block for block in section.blocks if isinstance(block, Table)]
    costs = {cells["Model"]: cells["Cost"] for cells in titled_cells_of(table)}
    assert (costs["alder"], costs["birch"]) == (shown, "unknown")  # birch has no row
