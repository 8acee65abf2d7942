"""The first section answers the question; the brief report is this section alone."""

from __future__ import annotations

import pytest

from auditor.metrics.estimate import Estimate
from auditor.reports.data.agreement.cultural_findings import CulturalFinding
from auditor.reports.data.build import build_report
from auditor.reports.data.coverage.lost_samples import LostSamples
from auditor.reports.data.report_schema import Report
from auditor.reports.document import Callout, Disclosure, Figure, List, ListItem, Paragraph, Section
from auditor.reports.sections.agreement import describe_alignment
from auditor.reports.sections.caution import list_cautions
from auditor.reports.sections.cultural_findings import build_findings_block, describe_cultural_finding
from auditor.reports.sections.next_steps import MAX_STEPS, list_next_steps
from auditor.reports.sections.report import build_report_document
from auditor.reports.sections.summary import MAX_BRIEF_ITEMS, MAX_BRIEF_MODELS, build_summary, build_summary_section
from auditor.storage.database import Database
from tests.reports.conftest import import_scores
from tests.reports.sections.alignment_rows import make_alignment_row
from tests.reports.sections.block_access import blocks_of
from tests.reports.sections.node_text import text_of
from tests.support.consistency_audits import save_semantic_audit

NO_LOSS = LostSamples(planned=10, lost=0, share=0.0)


def test_the_section_has_its_parts_in_order(report: Report) -> None:
    section = build_summary_section(report)
    assert section is not None
    lead, question, answers, plot, findings, guess, cautions, steps = section.blocks
    assert isinstance(lead, Paragraph)
    assert lead.role == "lead"
    assert str(lead.content).startswith(
        "Closest to people: alder. All 3 models agree with people beyond chance (r from"
    )
    assert report.audit.survey.wording in text_of(question)
    assert isinstance(answers, List)
    assert [item.status for item in answers.items if isinstance(item, ListItem)] == ["positive"] * 3
    assert isinstance(plot, Figure)
    assert [block.id for block in (findings, guess, steps) if isinstance(block, Section)] == [
        "findings",
        "guess",
        "next",
    ]
    assert isinstance(cautions, Callout)
    assert cautions.title == "Reasons for caution"


def test_the_plot_has_the_two_way_intervals_and_the_figures_in_words(report: Report) -> None:
    row = make_alignment_row(0.5, 0.1, 0.8)
    [figure] = blocks_of(build_summary(report.model_copy(update={"alignment": [row]})), Figure)
    spec = str(figure.spec)
    assert "'ci_low': 0.1, 'ci_high': 0.8" in spec
    assert "0.4" not in spec.split("'values'", 1)[1].split("]", 1)[0]
    [figure] = blocks_of(build_summary(report), Figure)
    assert all(f"{row.model} {describe_alignment(row)}" in figure.description for row in report.alignment)


def test_many_answers_are_in_a_disclosure_or_counted_in_the_brief_report(report: Report) -> None:
    many = report.model_copy(update={"alignment": [make_alignment_row(model=f"m{i}") for i in range(9)]})
    [disclosure] = [block for block in build_summary(many).blocks if isinstance(block, Disclosure)]
    assert disclosure.summary == "3 more models"
    brief = build_summary(many, is_brief=True)
    assert not blocks_of(brief, Disclosure)
    answers = next(block for block in brief.blocks if isinstance(block, List))
    assert len(answers.items) == MAX_BRIEF_MODELS
    assert "The full report has 4 more models." in text_of(brief)


def test_the_brief_report_has_the_summary_alone_and_counts_further_cautions(report: Report) -> None:
    document = build_report_document(report, is_brief=True)
    assert document.is_brief
    assert [section.id for section in document.sections] == ["summary"]
    n_cautions = len(list_cautions(report))
    assert n_cautions > MAX_BRIEF_ITEMS
    assert f"The full report has {n_cautions - MAX_BRIEF_ITEMS} more reason" in text_of(document.sections[0])


@pytest.mark.parametrize(
    ("finding", "text"),
    [
        (
            {"kind": "topic", "name": "divorce", "bias": Estimate(0.3, 10, 0.1, 0.5), "n_same_sign": 9},
            "is more permissive than people on divorce, in 9 of 10 countries (mean difference = +0.30, 95% CI +0.10 to "
            "+0.50)",
        ),
        (
            {"kind": "country", "name": "Egypt", "bias": Estimate(-0.3, 8, -0.5, -0.1), "n_same_sign": 8},
            "is stricter than people in Egypt, on 8 of 8 topics (mean difference = −0.30, 95% CI −0.50 to −0.10)",
        ),
        (
            {
                "kind": "country", "name": "Japan", "bias": Estimate(0.3, 10, 0.2, 0.4), "n_same_sign": 10,
                "n_places": 12, "n_places_same_sign": 12,
            },
            "is more permissive than people in all 12 countries, most clearly in Japan (mean difference = +0.30, "
            "95% CI +0.20 to +0.40)",
        ),
        (
            {
                "kind": "topic", "name": "divorce", "bias": Estimate(0.3, 10, 0.2, 0.4), "n_same_sign": 10,
                "n_places": 8, "n_places_same_sign": 3,
            },
            "is more permissive than people on 3 of 8 topics, most clearly on divorce (mean difference = +0.30, "
            "95% CI +0.20 to +0.40)",
        ),
        (
            {
                "kind": "distance", "name": "Nigeria", "nearest": "Sweden", "mae": Estimate(0.4, 8, 0.3, 0.5),
                "nearest_mae": Estimate(0.1, 8, 0.05, 0.2), "lost_samples": LostSamples(planned=8, lost=2, share=0.25),
            },
            "is closest to people in Sweden (mean absolute error = 0.10, 95% CI 0.05 to 0.20) and furthest from "
            "people in Nigeria (mean absolute error = 0.40, 95% CI 0.30 to 0.50). Of the planned samples for Nigeria, "
            "25% have no usable score",
        ),
    ],
)  # fmt: skip
def test_a_finding_is_a_sentence_with_its_intervals(finding: dict[str, object], text: str) -> None:
    row = CulturalFinding.model_validate(
        {"model": "m", "method": "direct", "margin": 0.1, "lost_samples": NO_LOSS, **finding}
    )
    assert describe_cultural_finding(row) == text


def test_three_findings_are_shown_with_the_number_compared(report: Report) -> None:
    assert report.cultural_findings is not None
    row = report.cultural_findings.rows[0]
    findings = report.cultural_findings.model_copy(update={"rows": [row] * 5})
    block = build_findings_block(report.model_copy(update={"cultural_findings": findings}))
    assert block is not None
    [shown] = blocks_of(block, List)
    assert len(shown.items) == 3
    assert (
        f"These findings were selected from {findings.compared} figures, each for one country or one topic."
        in text_of(block)
    )


def test_no_finding_and_a_small_audit_have_different_sentences(report: Report) -> None:
    assert report.cultural_findings is not None
    for update, text in (
        ({"rows": []}, "No difference is statistically distinguishable from zero when all"),
        ({"rows": [], "reason": "too few topics"}, "The audit is too small for a finding on one country or topic: too"),
    ):
        findings = report.cultural_findings.model_copy(update=update)
        block = build_findings_block(report.model_copy(update={"cultural_findings": findings}))
        assert block is not None
        assert text_of(block.blocks[0]).startswith(text)


def test_steps_name_commands_and_are_few(report: Report) -> None:
    steps = [text_of(step) for step in list_next_steps(report)]
    assert len(steps) == MAX_STEPS
    n_open = report.conflicts.states["open"] + report.conflicts.states["disputed"]
    assert (
        f"To measure the judges, decide the {n_open} conflicts that they could not resolve: auditor review "
        "population. Your decisions do not change any model’s agreement with people."
    ) in steps
    assert any(step.startswith("If you choose one model, prefer alder") for step in steps)


def test_an_unfinished_and_a_small_audit_have_their_own_first_steps(db: Database, report: Report) -> None:
    audit = report.audit.model_copy(update={"complete": False, "name": "my audit"})
    steps = list_next_steps(report.model_copy(update={"audit": audit}))
    assert text_of(steps[0]).startswith("Finish the audit: auditor run")
    assert "'my audit'" in text_of(steps)
    small = import_scores(db, {("Egypt", "a"): 0.1}, {("m", "Egypt", "a"): 0.9})
    assert text_of(list_next_steps(small)[0]).startswith("Ask about at least 5 countries and 5 topics.")


def test_an_audit_without_a_survey_shows_the_findings_of_its_probe(db: Database) -> None:
    report = build_report(db, save_semantic_audit(db).name)
    section = build_summary(report)
    assert section.title == "What did the audit find?"
    [findings] = [block for block in section.blocks if isinstance(block, Section) and block.id == "summary-semantic"]
    assert blocks_of(findings, List)[0].items
