"""Files of a report or of a check: plots, tables for papers, and JUnit."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal
from xml.etree import ElementTree as xml

from auditor.atomic_files import make_folder, write_files
from auditor.errors import UsageError
from auditor.input_files import open_text
from auditor.reports.data.gates.estimates import CheckResult, Gate, GateStatus, ModelCheck
from auditor.reports.data.report_schema import Report
from auditor.reports.document import Figure, Table
from auditor.reports.document.blocks import iterate_blocks
from auditor.reports.render.figures import FILE_MARK, export_pdf, export_png, export_spec, export_svg
from auditor.reports.render.table_files import render_csv, render_latex
from auditor.reports.sections.paper_tables import build_paper_tables
from auditor.reports.sections.report import build_report_document
from auditor.text_safety import escape_invisible

PAPER_LATEX = "tables.tex"


def render_paper_files(report: Report) -> list[tuple[str, str]]:
    """Render the paper's files as (name, text): a CSV for every table that has rows, and one TeX file with all."""
    tables = [table for table in build_paper_tables(report) if table.rows]
    return [*((_name_paper_file(table), render_csv(table)) for table in tables), (PAPER_LATEX, render_latex(tables))]


def list_stale_paper_files(report: Report, folder: Path) -> list[Path]:
    """List the files of an earlier export whose tables have no rows in this report; files with other columns are not.

    Raises:
        UsageError: a file cannot be read.
    """
    stale_files = []
    for table in build_paper_tables(report):
        path = folder / _name_paper_file(table)
        if not table.rows and path.is_file():
            with open_text(path, UsageError, errors="replace") as file:
                header = file.readline(100_000)
            if _list_csv_columns(header) == _list_csv_columns(render_csv(table)):
                stale_files.append(path)
    return stale_files


def _list_csv_columns(text: str) -> list[str]:
    """The columns of a CSV file, but for the intervals over cells, which only some audits have."""
    columns = next(csv.reader(text.splitlines()[:1]), [])
    return [column for column in columns if not column.endswith(("_cells_low", "_cells_high"))]


def _name_paper_file(table: Table) -> str:
    """File name of a table of the paper."""
    return f"{table.id.replace('-', '_')}.csv"


PlotFormat = Literal["svg", "png", "pdf", "vega"]

_EXPORTS: Mapping[PlotFormat, tuple[str, Callable[[Mapping[str, object]], bytes]]] = {
    "svg": (".svg", export_svg),
    "png": (".png", export_png),
    "pdf": (".pdf", export_pdf),
    "vega": (".vl.json", export_spec),
}
"""Suffix of the files of each format, and the function that renders a specification."""


def write_plots(report: Report, folder: Path, plot_format: PlotFormat = "svg") -> list[Path]:
    """Write every figure of the report to a folder, each file atomically and named by the figure's id.

    Args:
        plot_format: `vega` is the Vega-Lite specification with its data.

    Returns:
        Paths of the files.

    Raises:
        UsageError: the folder cannot be written to, or has a file of such a name that auditor did not write.
    """
    make_folder(folder)
    suffix, export = _EXPORTS[plot_format]
    figures = [block for block in iterate_blocks(build_report_document(report)) if isinstance(block, Figure)]
    paths = [folder / f"{figure.id}{suffix}" for figure in figures]
    content = [export(figure.spec) for figure in figures]
    write_files(dict(zip(paths, content, strict=True)), dict.fromkeys(paths, FILE_MARK))
    return paths


def render_junit(check_result: CheckResult) -> str:
    """Render as JUnit XML: a test suite with a case per gate, and one with a case per model.

    Failed is a failure, undecided an error.
    """
    audit, gates, models = check_result.audit, check_result.gates, check_result.models
    verdicts = [*(gate.verdict for gate in gates), *(row.verdict for row in models)]
    suites = xml.Element("testsuites", {"name": "auditor check", **_count_verdicts(verdicts)})
    suite = _add_suite(suites, audit, [gate.verdict for gate in gates])
    for gate in gates:
        _add_test_case(suite, f"auditor.{audit}", f"{gate.name}[{gate.subject}]", gate.name, gate)
    suite = _add_suite(suites, f"{audit} models", [row.verdict for row in models])
    for row in models:
        _add_test_case(suite, f"auditor.{audit}.models", row.model, "model", row)
    xml.indent(suites)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + xml.tostring(suites, encoding="unicode") + "\n"


def _add_suite(suites: xml.Element, name: str, verdicts: Sequence[GateStatus]) -> xml.Element:
    """Append a JUnit test suite."""
    return xml.SubElement(suites, "testsuite", {"name": escape_invisible(name), **_count_verdicts(verdicts)})


def _count_verdicts(verdicts: Sequence[GateStatus]) -> dict[str, str]:
    """The attributes of a suite that count its cases by verdict."""
    counts = Counter(verdicts)
    return {
        "tests": str(len(verdicts)),
        "failures": str(counts[GateStatus.FAILED]),
        "errors": str(counts[GateStatus.UNDECIDED]),
        "skipped": str(counts[GateStatus.SKIPPED]),
        "time": "0",
    }


def _add_test_case(suite: xml.Element, class_name: str, name: str, kind: str, row: Gate | ModelCheck) -> None:
    """Append a JUnit test case for a gate or a model; one that did not pass gets a child element with its message."""
    names = {"classname": escape_invisible(class_name), "name": escape_invisible(name), "time": "0"}
    test_case, message = xml.SubElement(suite, "testcase", names), escape_invisible(row.message)
    tag = {GateStatus.FAILED: "failure", GateStatus.UNDECIDED: "error", GateStatus.SKIPPED: "skipped"}.get(row.verdict)
    attributes = {"message": message, "type": kind} if tag else {}
    xml.SubElement(test_case, tag or "system-out", attributes).text = message
