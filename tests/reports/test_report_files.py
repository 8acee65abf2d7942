"""Files of a report: JUnit, and plots as standalone pictures."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from auditor.errors import UsageError
from auditor.reports import report_files
from auditor.reports.data.gates.check import check_report
from auditor.reports.data.report_schema import Report
from auditor.reports.document import Document, Figure, Section
from auditor.reports.document.blocks import iterate_blocks
from auditor.reports.report_files import PlotFormat, render_junit, write_plots
from auditor.reports.sections.report import build_report_document
from auditor.text_safety import escape_invisible
from tests.reports.data.gates.test_check import make_thresholds
from tests.support.report_changes import change


def test_junit_is_valid_xml_with_one_case_per_gate_for_any_model_name(report: Report) -> None:
    nasty = 'a"<b>&\x1b[0m\ud800'
    row = change(report.alignment[0], model=nasty)
    check = check_report(change(report, alignment=[row]), make_thresholds(min_pearson=1, max_cost_usd=1000))
    suite, models = ElementTree.fromstring(render_junit(check).encode("utf-8"))
    assert [case.attrib["name"] for case in models] == [escape_invisible(row.model) for row in check.models]
    assert [case.tag for case in models.iter() if case.tag == "failure"] == ["failure"]
    assert len(suite) == len(check.gates) == int(suite.attrib["tests"])
    assert [case.tag for case in suite.iter() if case.tag in ("failure", "error")] == ["failure", "error"]
    assert any('a"<b>&' in case.attrib["name"] for case in suite)


@pytest.fixture
def one_plot(report: Report, monkeypatch: pytest.MonkeyPatch) -> Figure:
    """The plot of agreement, as the only one of any report."""
    blocks = iterate_blocks(build_report_document(report))
    figure = next(block for block in blocks if isinstance(block, Figure) and block.id == "agreement")
    document = Document("", "", "", [Section("answer", "", [figure])])
    monkeypatch.setattr(report_files, "build_report_document", lambda _: document)
    return figure


def test_every_figure_is_a_standalone_svg_named_by_its_id(report: Report, tmp_path: Path) -> None:
    paths = write_plots(report, tmp_path / "figures")
    figures = [block for block in iterate_blocks(build_report_document(report)) if isinstance(block, Figure)]
    assert [path.name for path in paths] == [f"{figure.id}.svg" for figure in figures]
    assert {"agreement", "regions", "self-consistency", "map", "map-alder", "scatter-alder"} <= {
        path.stem for path in paths
    }
    for path in paths:
        root = ElementTree.fromstring(path.read_bytes())
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert float(root.attrib["width"]) > 100
        assert "var(--" not in path.read_text(encoding="utf-8")
        assert path.parent == tmp_path / "figures"


@pytest.mark.usefixtures("one_plot")
@pytest.mark.parametrize("form", ["svg", "png", "pdf", "vega"])
def test_plots_replace_those_of_auditor_and_no_others(report: Report, tmp_path: Path, form: PlotFormat) -> None:
    [path] = write_plots(report, tmp_path, form)
    drawn = path.read_bytes()
    assert write_plots(report, tmp_path, form) == [path]
    user_file = drawn.replace(b"Drawn by auditor", b"Drawn by myself.")
    path.write_bytes(user_file)
    with pytest.raises(UsageError, match="is not recognized as a file of auditor"):
        write_plots(report, tmp_path, form)
    assert path.read_bytes() == user_file != drawn


def test_names_with_the_same_file_name_get_numbers(report: Report, tmp_path: Path) -> None:
    first, second = report.alignment[:2]
    rows = [change(first, model="../x"), change(second, model="./x")]
    cells = [change(cell, scores={"direct": {"../x": 0.1, "./x": 0.2}}) for cell in report.audit.cells]
    audit = change(report.audit, cells=cells)
    report_with_similar_names = change(report, alignment=rows, gain=None, audit=audit)
    names = {path.name for path in write_plots(report_with_similar_names, tmp_path, "vega")}
    assert {"scatter-x.vl.json", "scatter-x-2.vl.json"} <= names


@pytest.mark.usefixtures("one_plot")
@pytest.mark.parametrize(("form", "magic"), [("png", b"\x89PNG"), ("pdf", b"%PDF")])
def test_pictures_are_drawn_as_png_and_pdf(report: Report, tmp_path: Path, form: PlotFormat, magic: bytes) -> None:
    [path] = write_plots(report, tmp_path, form)
    assert path.name == f"agreement.{form}"
    assert path.read_bytes().startswith(magic)
    assert path.stat().st_size > 2000


def test_vega_lite_specs_contain_the_figures(report: Report, tmp_path: Path) -> None:
    paths = write_plots(report, tmp_path, "vega")
    assert all(json.loads(path.read_text(encoding="utf-8"))["$schema"] for path in paths)
    text = (tmp_path / "agreement.vl.json").read_text(encoding="utf-8")
    assert all(row.model in text for row in report.alignment)
    values = json.dumps([row.mae.value for row in report.alignment])[1:-1].split(", ")
    assert [value for value in values if value not in text] == []


@pytest.mark.usefixtures("one_plot")
def test_a_folder_that_cannot_be_made_is_a_usage_error(report: Report, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError):
        write_plots(report, tmp_path / "file" / "figures", "vega")
