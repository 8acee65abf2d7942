"""The first section answers the question; the brief report is this section alone."""

from __future__ import annotations

import pytest

from auditor.metrics.intervals.estimate import Estimate, Tested
from auditor.reports.data.agreement.cultural_findings import CulturalFinding
from auditor.reports.data.build import build_report
from auditor.reports.data.coverage.lost_samples import LostSamples
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
from auditor.reports.sections.weaknesses import (
    build_findings_block,
    describe_cultural_finding,
)
from auditor.storage.database import Database
from tests.reports.conftest import import_scores
from tests.reports.sections.alignment_rows import make_alignment_row
from tests.reports.sections.block_access import blocks_of
from tests.reports.sections.node_text import text_of
from tests.support.consistency_audits import save_semantic_audit

MAX_WORDS = 900
NO_LOSS = LostSamples(planned=10, lost=0, share=0.0)


def test_page_one_has_its_parts_in_the_fixed_order(report: Report) -> None:
    section = build_summary_section(report)
    lead, question, overview, cautions, findings, steps = section.blocks
    assert isinstance(lead, Paragraph)
    assert lead.role == "lead"
    assert str(lead.content).startswith("Closest to people: alder. Of 3 models, ")
    assert "mean absolute error" in str(lead.content)
    assert report.audit.survey.wording in text_of(question)
    assert "That is not what most people say: where people are divided, " in text_of(question)
    assert isinstance(overview, Table)
    assert isinstance(cautions, Callout)
    assert cautions.title == "Reasons for caution"
    assert [block.id for block in (findings, steps) if isinstance(block, Section)] == ["summary-findings", "next"]
    assert len(PAGE_ONE) == 6


def test_the_table_has_a_row_for_each_series_by_mean_absolute_error(report: Report) -> None:
    [overview] = [table for table in blocks_of(build_summary_section(report), Table) if table.id == "overview"]
    titles = [str(column.title) for column in overview.columns]
    assert titles[:5] == ["Model", "MAE", "Bias", "Concordance", "Usable"]
    by_error = sorted(report.alignment, key=lambda row: row.mae.value or 0.0)
    assert [row[:2] for row in overview.rows if isinstance(row, list)] == [[row.model, row.mae] for row in by_error]


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
            "is more permissive than people in all 12 countries, with the strongest evidence in Japan (mean "
            "difference = +0.30, 95% CI +0.20 to +0.40)",
        ),
        (
            {
                "kind": "topic", "name": "divorce", "bias": Estimate(0.3, 10, 0.2, 0.4), "n_same_sign": 10,
                "n_places": 8, "n_places_same_sign": 3,
            },
            "is more permissive than people on 3 of 8 topics, with the strongest evidence on divorce (mean "
            "difference = +0.30, 95% CI +0.20 to +0.40)",
        ),
        (
            {
                "kind": "distance", "name": "Nigeria", "mae": Estimate(0.4, 8, 0.3, 0.5),
                "mae_ratio": Tested(3.1, 8, 2.0, 4.8, p_value=1e-4, adjusted_p_value=0.01),
                "lost_samples": LostSamples(planned=8, lost=2, share=0.25),
            },
            "is further from people in Nigeria than in its other countries (mean absolute error = 0.40, 95% CI 0.30 to "
            "0.50; 3.10 times that of the others, 95% CI 2.00 to 4.80). Of the planned samples for Nigeria, 25% have "
            "no usable score",
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
        f"These findings were selected from {findings.compared} mean differences, each for one country or one topic, "
        f"and from {findings.compared_distances} distances in single countries." in text_of(block)
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


def test_an_audit_without_a_survey_shows_the_findings_of_its_probe(db: Database) -> None:
    report = build_report(db, save_semantic_audit(db).name)
    section = build_summary_section(report)
    assert section.title == "What did the audit find?"
    [findings] = [block for block in section.blocks if isinstance(block, Section) and block.id == "summary-semantic"]
    assert blocks_of(findings, List)[0].items
