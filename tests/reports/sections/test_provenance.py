"""The section on how the audit was made names the question, the models, their versions and the settings."""

from __future__ import annotations

from auditor.reports.data.coverage.counts import ModelVersionRow
from auditor.reports.data.report_schema import Report, RewordingReport
from auditor.reports.sections.page_one import build_summary_section
from auditor.reports.sections.provenance import build_provenance_section
from auditor.storage.costs import AnswerVersion
from tests.reports.sections.node_text import text_of


def make_row(served: str, fingerprint: str | None = None, altered: str | None = "") -> ModelVersionRow:
    """Two answers of model m by one version."""
    return ModelVersionRow(
        version=AnswerVersion("m", served, fingerprint, altered), answers=2, first_at="1", last_at="2"
    )


def section_text(report: Report, rows: list[ModelVersionRow]) -> str:
    """The sentences of the section on a report with these versions."""
    return text_of(build_provenance_section(report.model_copy(update={"served": rows})))


def test_changed_versions_and_altered_requests_are_stated(report: Report) -> None:
    text = section_text(report, [make_row("a", "f1"), make_row("b", altered="seed, temperature=1")])
    assert "Model versions that answered" in text
    assert "The version of m changed: the provider reports a (f1) for 2 answers, b for 2 answers." in text
    assert "2 answered requests to m were not sent as configured: seed was left out; temperature" in text
    assert "temperature was sent as 1." in text


def test_one_unaltered_version_is_not_mentioned(report: Report) -> None:
    assert "version" not in section_text(report, [make_row("a")]).replace("Settings and versions", "")


def test_the_question_its_source_and_its_rewordings_are_stated(report: Report) -> None:
    rewording = RewordingReport(wording="How bad?", scale=("bad", "good"), topics={"divorce": "ending a marriage"})
    survey = report.audit.survey.model_copy(update={"rephrased": {"fr": rewording}})
    audit = report.audit.model_copy(update={"survey": survey})
    text = text_of(build_provenance_section(report.model_copy(update={"audit": audit})))
    assert survey.survey.wording in text_of(build_summary_section(report))
    assert survey.survey.source in text
    assert "in “fr”: “How bad?”, from “bad” to “good”; “divorce” as “ending a marriage”." in text
