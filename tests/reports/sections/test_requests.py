"""How models were asked: forms, dropped parameters, evidence, and marks where sampling settings were refused."""

from __future__ import annotations

import pytest

from auditor.domain import AnswerForm, Capability, Purpose
from auditor.metrics.intervals.estimate import Estimate
from auditor.probes.semantic.figures.schema import SemanticReport
from auditor.reports.data.coverage.counts import ModelVersionRow
from auditor.reports.data.failures import UnusableModel
from auditor.reports.data.gates.check import check_report
from auditor.reports.data.gates.estimates import GateStatus
from auditor.reports.data.report_schema import Report
from auditor.reports.data.requests import CapabilityReportRow, FormSplitRow, RequestFormRow, RequestsReport
from auditor.reports.document import Cell, Figure, Name, Table
from auditor.reports.sections.agreement import build_agreement_section
from auditor.reports.sections.caution import list_cautions
from auditor.reports.sections.requests import NO_MARKS, SamplingMarks, build_requests_subsection, describe_forms
from auditor.reports.sections.run_summary import build_run_summary
from auditor.reports.sections.self_comparisons import build_consistency_section
from auditor.storage.costs import AnswerVersion
from tests.reports.data.gates.test_check import make_thresholds
from tests.reports.sections.node_text import assert_consistent, iterate_nodes, tables_of, text_of, titled_cells_of
from tests.support.known import known
from tests.support.request_reports import DEFAULT_LABEL, refuse_temperature

EVIL = "<b>Unsupported value: 'temperature'</b>"


def make_report(report: Report, forms: dict[str, int], altered: tuple[str | None, ...] = ()) -> Report:
    """A report in which the server of alder refused parameters; forms with their numbers of answers."""
    capability = CapabilityReportRow(
        name="alder",
        capability=Capability(AnswerForm.TOOL, ("maxLength",), ("seed",), "max_completion_tokens", 4096),
        evidence=EVIL, litellm_version="1.106.2", created_at="2026-01-02",
    )  # fmt: skip
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


def capability_cells(report: Report) -> list[dict[str, Cell]]:
    section = known(build_requests_subsection(report))
    assert_consistent(section)
    return titled_cells_of(tables_of(section)["capabilities"])


def test_the_table_has_what_was_found_and_what_was_not_sent(report: Report) -> None:
    changed = make_report(report, {"tool": 40}, ("seed, temperature",))
    assert [list(row.values()) for row in capability_cells(changed)] == [
        ["alder", "tool call", "seed, temperature", "maxLength", "max_completion_tokens", 4096, Name(EVIL), "1.106.2"]
    ]
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
    _, row = capability_cells(changed.model_copy(update={"failures": failures}))
    assert {title: cell for title, cell in row.items() if cell is not None} == {
        "Model": "birch",
        "Form": "not detected",
    }


@pytest.mark.parametrize(
    ("altered", "not_sent"), [((), "seed"), (("",), "none"), (("", "seed"), "none or seed"), ((None,), "seed")]
)
def test_what_was_not_sent_is_read_from_the_answers_where_there_are_any(
    report: Report, altered: tuple[str | None, ...], not_sent: str
) -> None:
    [row] = capability_cells(make_report(report, {"tool": 40}, altered))
    assert row["Changed or left out"] == not_sent


def test_without_an_answer_in_use_the_form_is_the_found_one(report: Report) -> None:
    assert describe_forms(make_report(report, {}), "alder") is None
    assert capability_cells(make_report(report, {}))[0]["Form"] == "tool call"


LABELS = ["temperature 0.7", DEFAULT_LABEL, "temperature 0.7"]


@pytest.fixture
def refused(report: Report) -> Report:
    """A report in which birch was asked without the configured temperature."""
    return refuse_temperature(report, "birch")


def sampling_cells(table: Table) -> list[Cell]:
    return [row["Sampling"] for row in titled_cells_of(table)]


def test_equal_settings_leave_no_mark(report: Report) -> None:
    marks = SamplingMarks.of(report.sampling, Purpose.DIRECT)
    assert (marks.flag("b", "birch"), marks.flag_remark) == ("b", "")
    assert (marks.columns, marks.cells("birch"), marks.remark("Figures"), marks.mark("b", "birch")) == ([], [], "", "b")
    assert marks.label_by_model == NO_MARKS.label_by_model


def test_every_table_with_such_figures_has_the_settings(refused: Report) -> None:
    section = known(build_consistency_section(refused))
    assert_consistent(section)
    table = tables_of(section)["sample-consistency"]
    assert sampling_cells(table) == LABELS
    assert "Figures of models with different settings are not comparable." in text_of(table.caption)
    [figure] = [block for block in iterate_nodes(section) if isinstance(block, Figure)]
    assert "birch † 0." in figure.description
    assert "† Asked with other sampling settings, so not comparable." in text_of(figure.caption)
    assert sampling_cells(tables_of(build_agreement_section(refused))["alignment"]) == LABELS
    [summary] = [table for table in build_run_summary(refused) if table.id == "alignment"]
    assert sampling_cells(summary) == LABELS


@pytest.mark.parametrize("name", ["min_self_consistency", "max_variance"])
def test_a_gate_on_such_a_figure_is_undecided(report: Report, refused: Report, name: str) -> None:
    thresholds = make_thresholds(**{name: -1.0 if name.startswith("min") else 4.0})
    statuses = [gate.verdict for gate in check_report(report, thresholds).gates if gate.name == name]
    assert statuses == [GateStatus.PASSED] * 3
    gates = [gate for gate in check_report(refused, thresholds).gates if gate.name == name]
    assert [gate.verdict for gate in gates] == [GateStatus.PASSED, GateStatus.UNDECIDED, GateStatus.PASSED]
    assert f"not accepted, so it cannot be compared ({DEFAULT_LABEL})" in gates[1].message


def test_consistency_under_paraphrase_is_marked_by_its_own_settings(
    report: Report, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = refuse_temperature(report, "birch", "moral")
    assert SamplingMarks.of(refused.sampling, Purpose.DIRECT).columns == []
    assert SamplingMarks.of(refused.sampling, Purpose.declare("moral")).mark("b", "birch") == f"b ({DEFAULT_LABEL})"
    assert not any("paraphrase" in text for text in list_cautions(refused))
    monkeypatch.setattr("auditor.probes.semantic.probe.PROBE.find_key_finding", lambda self, report: None)
    semantic = SemanticReport.model_construct(models=[])  # type: ignore[call-arg]  # the rest is not read
    cautions = list_cautions(refused.model_copy(update={"semantic": semantic}))
    assert any(text.startswith("Consistency under paraphrase cannot be compared") for text in cautions)
