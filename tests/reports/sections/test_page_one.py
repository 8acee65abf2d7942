"""The first section answers the question; the brief report is this section alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from auditor.metrics.intervals.estimate import Estimate
from auditor.reports.data.agreement.cultural_findings import ShortfallsReport
from auditor.reports.data.report_schema import Report
from auditor.reports.document import Callout, List, Paragraph, Section, Table
from auditor.reports.sections.caution import list_cautions
from auditor.reports.sections.page_one import (
    MAX_FINDINGS,
    MAX_STEPS,
    PAGE_ONE,
    _iterate_steps,
    build_summary_section,
    list_next_steps,
)
from auditor.reports.sections.report import build_report_document
from auditor.storage.database import Database
from tests.reports.conftest import import_scores
from tests.reports.sections.alignment_rows import make_alignment_row
from tests.reports.sections.node_text import blocks_of, text_of
from tests.support.report_changes import change

MAX_WORDS = 900


def test_page_one_has_its_parts_in_the_fixed_order(report: Report) -> None:
    lead, question, overview, cautions, findings, steps = build_summary_section(report).blocks
    assert isinstance(lead, Paragraph)
    assert lead.role == "lead"
    assert str(lead.content).startswith("Closest to people: alder. Of 3 models, ")
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
    "refusals": None, "panel__fleiss_kappa": MISSING,
}  # fmt: skip
PARTS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "_build_answer": ("survey", "Closest to people: alder.", {"audit__survey__survey__title": ""}),
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


def test_steps_name_commands_and_are_few(report: Report) -> None:
    steps = [text_of(step) for step in list_next_steps(report)]
    assert len(steps) == MAX_STEPS
    n_open = report.conflicts.states["open"] + report.conflicts.states["disputed"]
    labels = report.judge_quality.suggested_labels if report.judge_quality is not None else 0
    measure = (
        "To measure the judges, label a random sample of traces, not the conflicts: "
        f"auditor review population --sample {labels}."
    )
    assert measure in steps
    steps += [text_of(step) for step in list_next_steps(report.model_copy(update={"judge_quality": None}))]
    decide = (
        f"Decide the {n_open} conflicts that the judges could not resolve: auditor review population. "
        "Your decisions do not change any model’s agreement with people."
    )
    assert decide in steps
    assert any(step.startswith("If you choose one model, prefer alder") for step in steps)


def test_the_step_on_thresholds_names_only_what_can_be_tested(report: Report) -> None:
    def find_step(changed: Report) -> str:
        [step] = [text_of(step) for step in _iterate_steps(changed) if "auditor check" in text_of(step)]
        return step

    without_gaps = report.model_copy(update={"regions": report.regions.model_copy(update={"gaps": []})})
    assert find_step(without_gaps).endswith("auditor check population --max-mae YOURS.")
    audit = report.audit.model_copy(update={"thresholds": ["max_mae"]})
    configured = report.model_copy(update={"audit": audit})
    assert find_step(configured) == "Test the thresholds of the configuration ([check]): auditor check population."


def test_an_unfinished_and_a_small_audit_have_their_own_first_steps(db: Database, report: Report) -> None:
    audit = report.audit.model_copy(update={"complete": False, "name": "my audit"})
    steps = list_next_steps(report.model_copy(update={"audit": audit}))
    assert text_of(steps[0]).startswith("Finish the audit: auditor run")
    assert "'my audit'" in text_of(steps)
    small = import_scores(db, {("Egypt", "a"): 0.1}, {("m", "Egypt", "a"): 0.9})
    assert text_of(list_next_steps(small)[0]).startswith("Ask about at least 5 countries and 5 topics.")


def test_an_audit_without_a_survey_shows_the_findings_of_its_probe(whole_report: Callable[[str], Report]) -> None:
    section = build_summary_section(whole_report("semantic"))
    assert section.title == "What did the audit find?"
    [findings] = [block for block in section.blocks if isinstance(block, Section) and block.id == "summary-semantic"]
    assert blocks_of(findings, List)[0].items
