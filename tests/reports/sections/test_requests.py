"""The subsection on how models were asked shows forms, dropped parameters and evidence, and figures by form."""

from __future__ import annotations

import pytest

from auditor.domain import AnswerForm, Capability
from auditor.metrics.intervals.estimate import Estimate
from auditor.reports.data.coverage.counts import ModelVersionRow
from auditor.reports.data.failures import UnusableModel
from auditor.reports.data.report_schema import Report
from auditor.reports.data.requests import (
    CapabilityReportRow,
    FormSplitRow,
    RequestFormRow,
    RequestsReport,
)
from auditor.reports.document import Name
from auditor.reports.sections.caution import list_cautions
from auditor.reports.sections.requests import build_requests_subsection, describe_forms
from auditor.storage.costs import AnswerVersion
from tests.reports.sections.block_access import cells_of
from tests.reports.sections.node_text import assert_consistent, tables_of, text_of

EVIL = "<b>Unsupported value: 'temperature'</b>"


def make_report(report: Report, forms: dict[str, int], altered: tuple[str | None, ...] = ()) -> Report:
    """A report in which the server of alder refused parameters; forms with their numbers of answers."""
    capability = CapabilityReportRow(
        name="alder",
        capability=Capability(AnswerForm.TOOL, ("maxLength",), ("seed",), "max_completion_tokens", 4096),
        evidence=EVIL,
        litellm_version="1.106.2",
        created_at="2026-01-02",
    )
    form_rows = [RequestFormRow(name="alder", purpose="direct", form=form, answers=n) for form, n in forms.items()]
    mae = Estimate(0.25, 8, 0.2, 0.3)
    split = [
        FormSplitRow(model="alder", form=form, answers=n, cells=8, pearson_r=Estimate(0.5, 8, 0.4, 0.6), mae=mae)
        for form, n in forms.items()
    ]
    served = [
        ModelVersionRow(version=AnswerVersion("alder", altered=entry), answers=2, first_at="1", last_at="2")
        for entry in altered
    ]
    requests = RequestsReport(capabilities=[capability], forms=form_rows, form_split=split if len(forms) > 1 else [])
    return report.model_copy(update={"requests": requests, "served": served})


def capability_cells(report: Report) -> list[object]:
    section = build_requests_subsection(report)
    assert section is not None
    assert_consistent(section)
    [row] = cells_of(tables_of(section)["capabilities"])
    return list(row)


def test_nothing_known_of_the_requests_gives_no_subsection(report: Report) -> None:
    assert build_requests_subsection(report.model_copy(update={"served": []})) is None


def test_the_table_has_what_was_found_and_what_was_not_sent(report: Report) -> None:
    changed = make_report(report, {"tool": 40}, ("seed, temperature",))
    assert capability_cells(changed) == [
        "alder", "tool call", "seed, temperature", "maxLength", "max_completion_tokens", 4096, Name(EVIL), "1.106.2",
    ]  # fmt: skip
    text = text_of(build_requests_subsection(changed))
    assert (
        "2 answered requests to alder were not sent as configured: seed was left out; temperature was left out." in text
    )
    assert "Structured answers of alder were requested in the form “tool call”, not as JSON schema." in text
    assert "“Why did requests fail?” quotes its responses" in text


def test_a_model_without_any_success_has_a_row(report: Report) -> None:
    changed = make_report(report, {"tool": 40})
    unusable = UnusableModel(name="birch", is_judge=False, planned=9, reason="HTTP 400: no", how_to_fix="")
    failures = changed.failures.model_copy(update={"unusable_models": [unusable]})
    section = build_requests_subsection(changed.model_copy(update={"failures": failures}))
    assert_consistent(section)
    rows = cells_of(tables_of(section)["capabilities"])
    assert [list(row)[:4] for row in rows][1] == ["birch", "not detected", None, None]
    assert set(list(rows[1])[2:]) == {None}


@pytest.mark.parametrize(
    ("altered", "not_sent"), [((), "seed"), (("",), "none"), (("", "seed"), "none or seed"), ((None,), "seed")]
)
def test_what_was_not_sent_is_read_from_the_answers_where_there_are_any(
    report: Report, altered: tuple[str | None, ...], not_sent: str
) -> None:
    assert capability_cells(make_report(report, {"tool": 40}, altered))[2] == not_sent


def test_several_forms_are_split_with_a_caution(report: Report) -> None:
    changed = make_report(report, {"json_schema": 40, "tool": 20})
    assert describe_forms(changed, "alder") == "JSON schema (40), tool call (20)"
    section = build_requests_subsection(changed)
    assert [row[:4] for row in cells_of(tables_of(section)["form-split"])] == [
        ["alder", "JSON schema", 40, 8],
        ["alder", "tool call", 20, 8],
    ]
    caution = "The structured answers of alder were requested in several forms (JSON schema (40), tool call (20))"
    assert any(text.startswith(caution) for text in list_cautions(changed))
    assert not any("several forms" in text for text in list_cautions(make_report(report, {"tool": 20})))


def test_without_an_answer_in_use_the_form_is_the_found_one(report: Report) -> None:
    assert describe_forms(make_report(report, {}), "alder") is None
    assert capability_cells(make_report(report, {}))[1] == "tool call"
