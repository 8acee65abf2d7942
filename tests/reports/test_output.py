"""Every output format shows the same figures; JSON loads neither renderers nor sections."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import is_dataclass
from typing import get_args

import pytest

from auditor.errors import UsageError
from auditor.reports.data.report_schema import Report
from auditor.reports.document import Block, Cell, Inline, Section, Table
from auditor.reports.document.blocks import iterate_blocks
from auditor.reports.output import render_document, render_report
from tests.support.document_figures import assert_figures_are_shown, iterate_cells, iterate_figures
from tests.support.sample_document import sample_document

FORMATS = ("html", "markdown", "text")


def test_every_figure_is_in_every_format() -> None:
    document = sample_document()
    assert_figures_are_shown(document)
    figures = list(iterate_figures(document))
    assert len(figures) > 35
    assert {"0.62", "0.50 to 0.74", "n 1\u202f254", "< 0.001", "87%", "≥ $0.0123"} <= {
        number for figure in figures for number in figure.numbers
    }


def test_the_sample_document_has_every_kind_of_block_and_cell() -> None:
    blocks = list(iterate_blocks(sample_document()))
    assert {type(block) for block in blocks} == {Section, *get_args(Block)}
    cells = [cell for table in blocks if isinstance(table, Table) for _, _, cell in iterate_cells(table)]
    kinds_of_cells = {kind for kind in get_args(Cell) if is_dataclass(kind)} - {*get_args(Inline)}
    assert kinds_of_cells <= {type(cell) for cell in cells}


@pytest.mark.parametrize("output_format", FORMATS)
def test_equal_documents_give_equal_texts(output_format: str) -> None:
    assert render_document(sample_document(), output_format) == render_document(sample_document(), output_format)


@pytest.mark.parametrize("output_format", FORMATS)
def test_python_values_are_never_printed(output_format: str) -> None:
    text = render_document(sample_document(), output_format)
    assert "None" not in text
    assert "Estimate(" not in text


def test_json_is_the_report(report: Report) -> None:
    text = render_report(report, "json")
    dumped = report.model_dump(mode="json")
    assert dumped.pop("probes") == {}  # left out of JSON without probes of other packages
    assert json.loads(text) == dumped


def test_json_loads_no_renderers_charts_or_sections() -> None:
    program = (
        "import sys\n"
        "from auditor.reports.output import render_report\n"
        "from auditor.reports.data.report_schema import Report\n"
        "render_report(Report.model_construct(), 'json')\n"
        "print(*[name for name in sys.modules if name.startswith('auditor.reports.')])"
    )
    modules = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout
    packages = {name.split(".")[2] for name in modules.split()}
    assert "data" in packages
    assert not packages & {"render", "charts", "sections"}


def test_unknown_formats_are_named_with_the_known_ones(report: Report) -> None:
    with pytest.raises(UsageError, match=r"'pdf' is not an output format\. Use html, markdown or text\."):
        render_document(sample_document(), "pdf")
    with pytest.raises(UsageError, match=r"'pdf' is not a report format\. Use html, markdown, text or json\."):
        render_report(report, "pdf")
