"""Write the pages that show what was asked and answered: one for each cell, and one that lists them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from auditor.atomic_files import MANIFEST, replace_folder
from auditor.domain import Cell
from auditor.errors import UsageError
from auditor.exports.traces.reader import TraceReader
from auditor.reports.data.traces.schema import TracePages
from auditor.storage.database import Database
from auditor.text_safety import slugify

MAX_PAGES = 5_000
"""Pages of cells; further cells have none."""
INDEX_FILE = "index.html"
MANIFEST_FORMAT = "auditor traces"
MAX_SLUG_LENGTH = 60


@dataclass(frozen=True, slots=True)
class WrittenPages:
    """The pages that were written.

    Attributes:
        links: their URLs, relative to a page beside their folder.
        n_omitted_cells: number of cells without a page, because there are too many.
    """

    folder: Path
    links: TracePages
    n_omitted_cells: int


def write_trace_pages(
    db: Database, audit_name: str, folder: Path, report_file: str = "", max_pages: int = MAX_PAGES
) -> WrittenPages:
    """Write a page for each cell with the answers on it, and `index.html`; earlier pages in the folder are replaced.

    Either all pages are written or none. If there are too many cells, those with a page are spread evenly over
    countries and topics; the same audit gives the same choice.

    Args:
        folder: created if missing.
        report_file: name of the report beside the folder, to which the pages link; empty for none.

    Raises:
        StorageError: there is no such audit.
        UsageError: the audit has no answers, or the folder holds other files or cannot be written to.
    """
    from auditor.reports.render.html import render_html, write_search_page
    from auditor.reports.sections.traces.cell_page import PageAudit, PageLinks, build_cell_document
    from auditor.reports.sections.traces.index_page import build_index_document
    from auditor.reports.sections.traces.search import build_records, build_search

    reader = TraceReader(db, audit_name)
    selection = reader.select().limit(max_pages, reader.seed)
    if not selection.cells:
        raise UsageError(f"audit '{audit_name}' has no answers to show.", "Remove --traces, or run the audit.")
    audit = PageAudit(audit_name, reader.n_open_conflicts, reader.is_simulated)
    file_names = _name_files(selection.cells)
    report = f"../{quote(report_file, safe='')}" if report_file else ""
    counts, task = selection.counts, reader.survey.task
    search = build_search(reader.models, selection.cells, counts) if reader.has_answers else None
    index = build_index_document(
        audit, file_names, counts, task, search=search, report=report, n_omitted_cells=selection.n_omitted_cells
    )
    with replace_folder(folder, MANIFEST_FORMAT) as new_folder:
        with new_folder.open(INDEX_FILE) as index_file, write_search_page(index, index_file) as records:
            for i, cell_traces in enumerate(reader.iterate_cells(selection)):
                neighbours = [_link_cell(selection.cells, position, file_names) for position in (i - 1, i + 1)]
                links = PageLinks(report, INDEX_FILE, *neighbours)
                file_name = file_names[cell_traces.cell]
                new_folder.write(file_name, render_html(build_cell_document(cell_traces, audit, links)))
                if search:
                    records.write(build_records(cell_traces, search, file_name))
        files = [{"file": name} for name in (INDEX_FILE, *file_names.values())]
        manifest = {"format": MANIFEST_FORMAT, "audit": audit_name, "files": files}
        new_folder.write(MANIFEST, json.dumps(manifest, indent=2) + "\n")
    prefix = quote(folder.name, safe="")
    links_by_cell = {cell: f"{prefix}/{name}" for cell, name in file_names.items()}
    return WrittenPages(folder, TracePages(f"{prefix}/{INDEX_FILE}", links_by_cell), selection.n_omitted_cells)


def _name_files(cells: Sequence[Cell]) -> dict[Cell, str]:
    """A file name for each cell, which its number makes unique."""
    n_digits = len(str(len(cells)))
    return {
        cell: f"{number:0{n_digits}}-{slugify('-'.join(filter(None, cell)))[:MAX_SLUG_LENGTH]}.html"
        for number, cell in enumerate(cells, 1)
    }


def _link_cell(cells: Sequence[Cell], position: int, file_names: Mapping[Cell, str]) -> tuple[str, str]:
    """Text and URL of the page of the cell at a position; empty outside of the list."""
    if not 0 <= position < len(cells):
        return "", ""
    cell = cells[position]
    return ", ".join(filter(None, (cell.topic, cell.country))), file_names[cell]
