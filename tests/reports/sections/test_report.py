"""The document of an audit's report has its sections in order, for audits of every size."""

from __future__ import annotations

import fnmatch
import json
import os
import pkgutil
import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest

from auditor.reports import sections
from auditor.reports.data.report_schema import Report
from auditor.reports.document import Callout, List, Name, Paragraph, Section
from auditor.reports.sections.probe_sections import build_probe_sections
from auditor.reports.sections.report import SECTION_BUILDERS, build_report_document, list_key_figures
from auditor.storage.database import Database
from benchmarks.coverage.registry import iterate_all_paths
from tests.e2e.test_golden_reports import DEMO_SEEDS, iter_differences, write_report
from tests.reports.hostile_report import NAME, hostile_report
from tests.reports.sections.node_text import assert_consistent, iterate_nodes, text_of
from tests.support.document_figures import NOT_SHOWN, assert_estimates_are_shown
from tests.support.table_cells import list_cells
from tests.support.whole_reports import WHOLE_REPORTS

CELLS_FOLDER = Path(__file__).with_name("golden_cells")
CELL_TOLERANCE = 1e-6
EMPTY_COLUMNS = {
    ("alignment", "MAE of one wording"),
    ("alignment", "Highest r"),
    ("consistency-alignment", "p"),
    ("peer-alignment", "p"),
    ("logic-transitivity", "Margin"),
    ("logic-correlations", "p"),
    ("direct-and-logprob", "Measure"),
}
"""Columns of which no whole report has a value, by the table: its figure is not asked for, or cannot be computed."""


@pytest.mark.parametrize("kind", WHOLE_REPORTS)
def test_every_estimate_is_shown_with_its_names_n_and_interval_in_every_form(
    kind: str, whole_report: Callable[[str], Report]
) -> None:
    report = whole_report(kind)
    assert_consistent(build_report_document(report))
    assert_estimates_are_shown(report, kind)


@pytest.mark.parametrize("kind", WHOLE_REPORTS)
def test_cells_of_tables_equal_those_of_the_record(kind: str, whole_report: Callable[[str], Report]) -> None:
    """To record them again after a deliberate change: AUDITOR_GOLDEN=write, and read the difference."""
    cells = list_cells(build_report_document(whole_report(kind)))
    path = CELLS_FOLDER / f"{kind.replace(' ', '_')}.json"
    if os.environ.get("AUDITOR_GOLDEN") == "write":
        write_report(path, cells)
    assert not list(iter_differences(json.loads(path.read_text(encoding="utf-8")), cells, CELL_TOLERANCE))


def test_no_column_is_empty_in_all_reports() -> None:
    missing: dict[tuple[str, str], bool] = {}
    for path in sorted(CELLS_FOLDER.glob("*.json")):
        for table_id, table in json.loads(path.read_text(encoding="utf-8")).items():
            for i, title in enumerate(table["columns"]):
                is_missing = all(row[i] is None for row in table["rows"] if len(row) == len(table["columns"]))
                missing[table_id, title] = is_missing and missing.get((table_id, title), True)
    assert {column for column, is_missing in missing.items() if is_missing} == EMPTY_COLUMNS


def test_each_estimate_that_is_not_shown_is_one_of_a_whole_report() -> None:
    """That a report has it, and does not show it, is tested with the report."""
    assert {kind for kind, _ in NOT_SHOWN.values()} <= {*WHOLE_REPORTS, *DEMO_SEEDS}
    paths = list(iterate_all_paths())
    for entry in NOT_SHOWN:
        assert fnmatch.filter(paths, entry.replace("[]", "[[]]")), f"no report has {entry}"


def test_sections_are_in_order_and_in_the_contents(report: Report) -> None:
    document = build_report_document(report)
    assert [section.id for section in document.sections] == [
        "summary", "map", "places", "examples", "answer", "worth", "prefer", "regions", "where", "scatter",
        "sensitivity", "variance", "consistency", "over-models", "panel",
        "conflicts", "refusals", "lost-samples", "coverage", "failures", "cost", "made",
    ]  # fmt: skip
    assert all(section.contents_title for section in document.sections)
    assert_consistent(document)


def test_each_section_starts_with_its_finding(report: Report) -> None:
    for section in build_report_document(report).sections:
        first = section.blocks[0]
        is_finding = isinstance(first, Paragraph) and first.role in ("lead", "finding")
        assert is_finding or (isinstance(first, List) and first.is_findings) or section.id == "made", section.id


def test_every_section_of_the_report_is_in_it() -> None:
    """Sections within a section take a part of the report, not the report."""
    builders = {
        function
        for module in pkgutil.iter_modules(sections.__path__, f"{sections.__name__}.")
        for name, function in vars(import_module(module.name)).items()
        if re.fullmatch("build_.*_section", name) and next(iter(function.__annotations__.values())) == "Report"
    }
    assert builders == set(SECTION_BUILDERS) - {build_probe_sections}


def test_the_document_opens_with_key_figures(report: Report) -> None:
    document = build_report_document(report)
    assert (document.kind, document.title) == ("Audit against a survey", report.audit.name)
    assert document.subtitle == ["Compared with ", Name(report.audit.survey.survey.title)]
    assert not [block for block in document.opening if isinstance(block, Callout)]
    labels = [label for label, _ in list_key_figures(report)]
    assert labels[:4] == ["models", "countries", "topics", "cells asked"]
    assert labels[-1] == "cost"
    assert report.audit.auditor in text_of(document.footer)


@pytest.mark.parametrize(
    ("simulated", "provider", "title"),
    [
        (True, "simulated", "Worked example: simulated models"),
        (False, "embedded", "Live demo: small local models"),
        (False, "openai", None),
    ],
)
def test_the_first_screen_says_which_models_the_figures_are_about(
    report: Report, simulated: bool, provider: str, title: str | None
) -> None:
    models = [model.model_copy(update={"model": f"{provider}/a"}) for model in report.audit.models]
    audit = report.audit.model_copy(update={"simulated": simulated, "models": models})
    document = build_report_document(report.model_copy(update={"audit": audit}))
    assert [block.title for block in document.opening if isinstance(block, Callout)] == [title] * (title is not None)
    assert ("simulated models" in document.kind) == simulated


def test_hostile_names_are_nodes_of_their_own(db: Database) -> None:
    document = build_report_document(hostile_report(db))
    names = [node.text for node in iterate_nodes(document) if isinstance(node, Name)]
    assert sum(NAME in name for name in names) > 20
    assert_consistent(document)
    ids = [node.id for node in iterate_nodes(document) if isinstance(node, Section)]
    assert not [name for name in ids if not name.replace("-", "").isalnum()]
