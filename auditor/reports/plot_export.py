"""Write the plots of an audit's report to files: as SVG, PNG, PDF, or Vega-Lite specifications."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal

from auditor.atomic_files import make_folder, write_atomically
from auditor.reports.data.report_schema import Report
from auditor.reports.document import Figure
from auditor.reports.document.traversal import iterate_blocks
from auditor.reports.render.figures import export_pdf, export_png, export_spec, export_svg
from auditor.reports.sections.report import build_report_document

PlotFormat = Literal["svg", "png", "pdf", "vega"]

FILE_SUFFIXES: Mapping[PlotFormat, str] = {"svg": ".svg", "png": ".png", "pdf": ".pdf", "vega": ".vl.json"}
_EXPORT_FUNCTIONS: Mapping[PlotFormat, Callable[[Mapping[str, object]], bytes]] = {
    "svg": export_svg,
    "png": export_png,
    "pdf": export_pdf,
    "vega": export_spec,
}


def write_plots(report: Report, folder: Path, plot_format: PlotFormat = "svg") -> list[Path]:
    """Write every figure of the report to a folder, each file atomically and named by the figure's id.

    Args:
        plot_format: `vega` is the Vega-Lite specification with its data.

    Returns:
        Paths of the files.

    Raises:
        UsageError: the folder cannot be written to.
    """
    document = build_report_document(report)
    make_folder(folder)
    paths: list[Path] = []
    for figure in (block for block in iterate_blocks(document) if isinstance(block, Figure)):
        path = folder / f"{figure.id}{FILE_SUFFIXES[plot_format]}"
        write_atomically(_EXPORT_FUNCTIONS[plot_format](figure.spec), path)
        paths.append(path)
    return paths
