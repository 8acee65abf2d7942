"""The section on failures quotes providers as text from outside, and names models without a usable answer."""

from __future__ import annotations

import pytest

from auditor.reports.data.failures import FailureGroup, FailuresReport, UnusableModel
from auditor.reports.data.report_schema import Report
from auditor.reports.document import Code, Name
from auditor.reports.render.html import render_html
from auditor.reports.sections.caution import list_cautions
from auditor.reports.sections.coverage import build_failures_section
from auditor.reports.sections.report import build_report_document
from tests.reports.sections.block_access import cells_of
from tests.reports.sections.node_text import assert_consistent, findings_of, tables_of, text_of

EVIL = "<script>alert(1)</script> \u202eInsufficient balance"


def make_report(report: Report, *, not_listed: int = 0, **unusable: bool) -> Report:
    """A report with one group of failures; models without a usable answer, and whether they are judges."""
    group = FailureGroup(
        name="alder", model="openai/alder-1", purposes=["direct"], outcome="client_error", status=402, message=EVIL,
        requests=5, unusable=3, first_at="1", last_at="2", how_to_fix="Set `rpm`.", payload=None,
    )  # fmt: skip
    failures = FailuresReport(
        groups=[group, group.model_copy(update={"name": "birch", "status": None, "how_to_fix": ""})],
        not_listed=not_listed,
        requests_not_listed=9 * not_listed,
        unusable=3,
        unusable_models=[
            UnusableModel(name=name, is_judge=is_judge, planned=3, reason="HTTP 402: no money.", how_to_fix="")
            for name, is_judge in unusable.items()
        ],
    )
    return report.model_copy(update={"failures": failures})


def test_no_section_where_nothing_failed(report: Report) -> None:
    failures = report.failures.model_copy(update={"groups": []})
    assert build_failures_section(report.model_copy(update={"failures": failures})) is None


def test_the_table_has_the_message_and_the_known_fix(report: Report) -> None:
    section = build_failures_section(make_report(report))
    assert section is not None
    assert_consistent(section)
    first, second = cells_of(tables_of(section)["failures"])
    assert first == ["alder", 5, 3, "client error", 402, Name(EVIL), ["Set ", Code("rpm"), "."]]
    assert second == ["birch", 5, 3, "client error", None, Name(EVIL), None]
    assert "10 requests failed." in text_of(section)
    assert "3 calls have no usable answer" in text_of(section)
    assert "auditor errors" not in text_of(section)


def test_further_reasons_are_counted_with_the_command_that_lists_them(report: Report) -> None:
    text = text_of(build_failures_section(make_report(report, not_listed=2)))
    assert "28 requests failed." in text
    assert f"To list 2 further reasons of 18 failed requests: auditor errors {report.audit.name}" in text


def test_a_providers_message_is_escaped_on_the_page(report: Report) -> None:
    page = render_html(build_report_document(make_report(report)))
    assert "&lt;script&gt;alert(1)" in page
    assert "<script>alert(1)" not in page
    assert "\u202eInsufficient" not in page


@pytest.mark.parametrize(("is_judge", "noun"), [(False, "answer"), (True, "verdict")])
def test_a_model_without_a_usable_answer_is_a_reason_for_caution(report: Report, is_judge: bool, noun: str) -> None:
    changed = make_report(report, alder=is_judge)
    assert (
        f"No {noun} of alder is usable; “What is missing?” and “Why did requests fail?” list the reasons."
        in list_cautions(changed)
    )
    assert not any("is usable; " in text for text in list_cautions(report))
    finding = f"alder has no usable {noun}: HTTP 402: no money."
    assert findings_of(build_failures_section(changed)) == [(finding, "negative")]
