"""The document of an audit's report has its sections in order, for audits of every size; each interval is simulated."""

from __future__ import annotations

import fnmatch
import json
import os
import pkgutil
import re
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, get_args

import pytest

from auditor.metrics.intervals.estimate import Estimate, Tested
from auditor.metrics.intervals.multiple_testing import MaxGap
from auditor.metrics.people.alignment import TwoWayEstimate
from auditor.metrics.people.survey_error import CorrectedCorrelation
from auditor.reports import sections
from auditor.reports.data.report_model import ReportModel
from auditor.reports.data.report_schema import Report
from auditor.reports.document import Callout, List, Name, Paragraph, Section, Table
from auditor.reports.sections.probe_sections import build_probe_sections
from auditor.reports.sections.report import SECTION_BUILDERS, build_report_document, list_key_figures
from auditor.storage.database import Database
from benchmarks.coverage.paths import iterate_estimates
from benchmarks.coverage.registry import find_figures, iterate_all_paths
from benchmarks.coverage.unit_kinds import find_simulation
from tests.e2e.test_golden_reports import DEMO_SEEDS, iter_differences, write_report
from tests.reports.hostile_report import NAME, hostile_report
from tests.reports.sections.node_text import assert_consistent, iterate_nodes, text_of
from tests.support.document_figures import NOT_SHOWN, assert_estimates_are_shown, iterate_values
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


@pytest.mark.parametrize("kind", ["survey", "two methods", "judges"])
def test_p_values_are_adjusted_where_their_column_says_so_and_nowhere_else(
    kind: str, whole_report: Callable[[str], Report]
) -> None:
    document = build_report_document(whole_report(kind))
    assert "“p (adjusted)” holds for all tests of its table (Holm), “p” for one." in text_of(document.opening)
    tables = [block for block in iterate_nodes(document) if isinstance(block, Table)]
    columns = [column for table in tables for column in table.columns if column.style == "p_value"]
    assert columns
    for column in columns:
        assert ("adjusted" in text_of(column.title).lower()) == ("adjusted" in (column.path or column.key)), column


def test_each_estimate_that_is_not_shown_is_one_of_a_whole_report() -> None:
    """That a report has it, and does not show it, is tested with the report."""
    assert {kind for kind, _ in NOT_SHOWN.values()} <= {*WHOLE_REPORTS, *DEMO_SEEDS}
    paths = list_all_paths()
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


# --- the estimates of whole reports and the simulations of their intervals -----------------------------------------

AUDIT_KINDS = ("survey", "judges", "logic", "semantic", "task")
"""Whole reports in which every table is filled."""
STATED_BY_ROWS = (Tested, TwoWayEstimate, MaxGap, CorrectedCorrelation)
"""Classes whose further figures rows state in fields of their own, such as `p_value` and `reliability`."""


@cache
def list_all_paths() -> frozenset[str]:
    """Paths of all estimates that the schema of a report has."""
    return frozenset(iterate_all_paths())


def iterate_rows(row: ReportModel) -> Iterator[ReportModel]:
    """A part of a report and all parts in it."""
    yield row
    for name in type(row).model_fields:
        for value in iterate_values(getattr(row, name)):
            if isinstance(value, ReportModel):
                yield from iterate_rows(value)


def list_classes(annotation: Any) -> list[Any]:
    """The classes that an annotation such as `list[Estimate | None]` names."""
    return [annotation, *(c for argument in get_args(annotation) for c in list_classes(argument))]


def iterate_intervals(report: Report) -> Iterator[tuple[str, Estimate]]:
    """The estimates of a report that have an interval, with their paths."""
    return ((path, estimate) for path, estimate in iterate_estimates(report) if estimate.ci_low is not None)


@pytest.mark.parametrize("kind", AUDIT_KINDS)
def test_the_estimates_of_a_full_report_are_those_of_its_schema(
    kind: str, whole_report: Callable[[str], Report]
) -> None:
    paths = {path for path, _ in iterate_estimates(whole_report(kind))}
    assert len(paths) > 15
    assert paths <= list_all_paths()


@pytest.mark.parametrize("kind", AUDIT_KINDS)
def test_a_field_has_the_type_of_its_estimates_so_that_json_has_all_their_figures(
    kind: str, whole_report: Callable[[str], Report]
) -> None:
    narrowed = {
        f"{type(row).__name__}.{name}": type(estimate).__name__
        for row in iterate_rows(whole_report(kind))
        for name, field in type(row).model_fields.items()
        for estimate in iterate_values(getattr(row, name))
        if isinstance(estimate, Estimate) and type(estimate) not in {*list_classes(field.annotation), *STATED_BY_ROWS}
    }
    assert narrowed == {}


@pytest.mark.parametrize(
    ("kind", "section"),
    [
        *((name, name) for name in ("logic", "semantic", "task", "languages", "designs")),
        ("labels", "judge_quality"), ("designs", "attributes"), ("two methods", "methods"), ("people", "population"),
    ],
)  # fmt: skip
def test_a_full_report_has_each_estimate_of_its_section(
    kind: str, section: str, whole_report: Callable[[str], Report]
) -> None:
    paths = {path for path in list_all_paths() if path.startswith(f".{section}") and not path.endswith("ci_low")}
    paths = {path for path in paths if not path.startswith(".semantic.people.")}  # those of `judgements`
    assert paths
    assert paths <= {path for path, _ in iterate_estimates(whole_report(kind))}


@pytest.mark.parametrize("kind", AUDIT_KINDS)
def test_each_interval_of_a_full_report_says_what_was_resampled(
    kind: str, whole_report: Callable[[str], Report]
) -> None:
    silent = {path for path, estimate in iterate_intervals(whole_report(kind)) if not estimate.resampled}
    assert silent == set()


@pytest.mark.parametrize("kind", AUDIT_KINDS)
def test_each_interval_is_over_the_kinds_of_units_of_its_simulation(
    kind: str, whole_report: Callable[[str], Report]
) -> None:
    other_kinds = {
        path: (figure, estimate.resampled)
        for path, estimate in iterate_intervals(whole_report(kind))
        for figure in find_figures(path)
        if find_simulation(figure, len(estimate.resampled)) is None
    }
    assert other_kinds == {}, "add them to benchmarks/coverage/unit_kinds.py, or map them to another figure"
