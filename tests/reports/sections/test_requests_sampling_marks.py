"""Where a server refuses the configured sampling settings, figures on the spread of answers are marked everywhere."""

from __future__ import annotations

import pytest

from auditor.domain import Purpose
from auditor.metrics.intervals.estimate import Estimate
from auditor.probes.semantic.figures.schema import SemanticReport
from auditor.reports.data.gates.check import check_report
from auditor.reports.data.gates.estimates import GateStatus
from auditor.reports.data.report_schema import Report
from auditor.reports.document import Document, Figure
from auditor.reports.render.table_files import render_csv
from auditor.reports.sections.agreement import build_agreement_section
from auditor.reports.sections.caution import list_cautions
from auditor.reports.sections.report import build_report_document
from auditor.reports.sections.requests import NO_MARKS, SamplingMarks
from auditor.reports.sections.run_summary import build_run_summary
from auditor.reports.sections.self_comparisons import build_consistency_section
from tests.reports.data.gates.test_check_gate_check import make_thresholds
from tests.reports.sections.block_access import cells_of
from tests.reports.sections.node_text import assert_consistent, iterate_blocks, tables_of, text_of
from tests.support.request_reports import DEFAULT_LABEL, refuse_temperature

LABELS = ["temperature 0.7", DEFAULT_LABEL, "temperature 0.7"]


@pytest.fixture
def refused(report: Report) -> Report:
    """A report in which birch was asked without the configured temperature."""
    return refuse_temperature(report, "birch")


def sampling_cells(table: object) -> list[object]:
    [index] = [i for i, column in enumerate(table.columns) if column.title == "Sampling"]  # type: ignore[attr-defined]
    return [row[index] for row in cells_of(table)]  # type: ignore[arg-type]


def test_equal_settings_leave_no_mark(report: Report) -> None:
    marks = SamplingMarks.of(report.sampling, Purpose.DIRECT)
    assert (marks.flag("b", "birch"), marks.flag_remark) == ("b", "")
    assert (marks.columns, marks.cells("birch"), marks.remark("Figures"), marks.mark("b", "birch")) == ([], [], "", "b")
    assert marks.label_by_model == NO_MARKS.label_by_model


def test_every_table_with_such_figures_has_the_settings(refused: Report) -> None:
    section = build_consistency_section(refused)
    assert section is not None
    assert_consistent(section)
    table = tables_of(section)["sample-consistency"]
    assert sampling_cells(table) == LABELS
    assert "Figures of models with different settings are not comparable." in text_of(table.caption)
    [figure] = [block for block in iterate_blocks(section) if isinstance(block, Figure)]
    assert "birch † 0." in figure.description
    assert "† Asked with other sampling settings, so not comparable." in text_of(figure.caption)
    assert sampling_cells(tables_of(build_agreement_section(refused))["alignment"]) == LABELS
    [summary] = [table for table in build_run_summary(refused) if table.id == "alignment"]
    assert sampling_cells(summary) == LABELS


def test_the_first_page_says_that_the_models_cannot_be_compared(report: Report, refused: Report) -> None:
    caution = (
        "Self-consistency and the variance of samples cannot be compared between models: the configured sampling "
        f"settings were not accepted for birch ({DEFAULT_LABEL})."
    )
    assert caution in list_cautions(refused)
    assert not any("compared between models" in text for text in list_cautions(report))
    document = build_report_document(refused)
    assert isinstance(document, Document)
    assert caution in text_of(document.sections[0])


def test_json_and_csv_have_the_settings(refused: Report) -> None:
    assert refused.model_dump()["sampling"]["sampling_settings_differ"] is True
    assert [row.sampling for row in refused.self_consistency] == LABELS
    section = build_consistency_section(refused)
    text = render_csv(tables_of(section)["sample-consistency"])
    assert text.splitlines()[0].endswith("sampling")
    assert DEFAULT_LABEL in text


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


def test_missing_figures_are_no_reason_for_caution(refused: Report) -> None:
    missing = Estimate(None, 0, reason="one sample")
    rows = [row.model_copy(update={"variance": missing, "cosine": missing}) for row in refused.self_consistency]
    cautions = list_cautions(refused.model_copy(update={"self_consistency": rows}))
    assert not any("compared between models" in text for text in cautions)
