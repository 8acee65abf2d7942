"""Write the plots of an audit's report to files: as SVG, PNG, PDF, or Vega-Lite specifications."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal

from auditor.atomic_files import make_folder, write_files
from auditor.reports.data.report_schema import Report
from auditor.reports.document import Figure
from auditor.reports.document.traversal import iterate_blocks
from auditor.reports.render.figures import export_pdf, export_png, export_spec, export_svg
from auditor.reports.sections.report import build_report_document

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
        UsageError: the folder cannot be written to.
    """
    make_folder(folder)
    suffix, export = _EXPORTS[plot_format]
    figures = [block for block in iterate_blocks(build_report_document(report)) if isinstance(block, Figure)]
    write_files({folder / f"{figure.id}{suffix}": export(figure.spec) for figure in figures})
    return [folder / f"{figure.id}{suffix}" for figure in figures]
