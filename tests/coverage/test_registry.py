"""Every estimate that a report can print is in a simulation, and every interval says what was resampled."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

from auditor.metrics.intervals.estimate import Estimate, Tested
from auditor.metrics.intervals.multiple_testing import MaxGap
from auditor.metrics.people.alignment import TwoWayEstimate
from auditor.metrics.people.survey_error import CorrectedCorrelation
from auditor.reports.data.report_model import ReportModel
from auditor.reports.data.report_schema import Report
from benchmarks.coverage.figures import Study
from benchmarks.coverage.judge_figures import ITEM_JUDGE_STUDY, JUDGE_STUDY
from benchmarks.coverage.paths import iterate_estimates, iterate_schema_paths
from benchmarks.coverage.registry import (
    PATHS_BY_FIGURE,
    PATHS_WITHOUT_SIMULATION,
    find_figures,
    find_reasons,
    iterate_all_paths,
)
from benchmarks.coverage.studies import figures_by_key
from benchmarks.coverage.unit_kinds import FIGURES_OVER_ITEMS, find_simulation, list_simulated_kinds
from benchmarks.coverage.verdict_figures import ITEM_VERDICT_STUDY, VERDICT_STUDY
from tests.support.document_figures import iterate_values

AUDIT_KINDS = ("survey", "judges", "logic", "semantic", "task")
"""Whole reports in which every table is filled."""
Reports = Callable[[str], Report]
STATED_BY_ROWS = (Tested, TwoWayEstimate, MaxGap, CorrectedCorrelation)
"""Classes whose further figures rows state in fields of their own, such as `p_value` and `reliability`."""


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


def test_each_estimate_is_in_one_simulation_or_has_a_reason_why_not_and_each_entry_has_an_estimate() -> None:
    entries = {path: find_figures(path) + find_reasons(path) for path in iterate_all_paths()}
    not_one = {path: names for path, names in entries.items() if len(names) != 1}
    assert not not_one, "add each path to one figure of benchmarks/coverage/registry.py, which has these"
    unused = {*PATHS_BY_FIGURE, *PATHS_WITHOUT_SIMULATION}.difference(*entries.values())
    assert not unused, f"{unused} are figures of no estimate"
    assert set(PATHS_BY_FIGURE) <= set(figures_by_key())


@pytest.mark.parametrize("kind", AUDIT_KINDS)
def test_the_estimates_of_a_full_report_are_those_of_its_schema(kind: str, whole_report: Reports) -> None:
    paths = {path for path, _ in iterate_estimates(whole_report(kind))}
    assert len(paths) > 15
    assert paths <= set(iterate_all_paths())


@pytest.mark.parametrize("kind", AUDIT_KINDS)
def test_a_field_has_the_type_of_its_estimates_so_that_json_has_all_their_figures(
    kind: str, whole_report: Reports
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
def test_a_full_report_has_each_estimate_of_its_section(kind: str, section: str, whole_report: Reports) -> None:
    paths = {path for path in iterate_all_paths() if path.startswith(f".{section}") and not path.endswith("ci_low")}
    paths = {path for path in paths if not path.startswith(".semantic.people.")}  # those of `judgements`
    assert paths
    assert paths <= {path for path, _ in iterate_estimates(whole_report(kind))}


@pytest.mark.parametrize("kind", AUDIT_KINDS)
def test_each_interval_of_a_full_report_says_what_was_resampled(kind: str, whole_report: Reports) -> None:
    silent = {path for path, estimate in iterate_intervals(whole_report(kind)) if not estimate.resampled}
    assert silent == set()


@pytest.mark.parametrize("kind", AUDIT_KINDS)
def test_each_interval_is_over_the_kinds_of_units_of_its_simulation(kind: str, whole_report: Reports) -> None:
    other_kinds = {
        path: (figure, estimate.resampled)
        for path, estimate in iterate_intervals(whole_report(kind))
        for figure in find_figures(path)
        if find_simulation(figure, len(estimate.resampled)) is None
    }
    assert other_kinds == {}, "add them to benchmarks/coverage/unit_kinds.py, or map them to another figure"


def test_figures_over_items_are_simulated_over_one_kind_of_units() -> None:
    assert {list_simulated_kinds(figure) for figure in FIGURES_OVER_ITEMS.values()} == {frozenset({1})}
    assert {list_simulated_kinds(figure) for figure in FIGURES_OVER_ITEMS} == {frozenset({2})}
    assert (find_simulation("share", 2), find_simulation("share", 1)) == ("share", "item share")
    assert (find_simulation("kappa", 1), find_simulation("kappa", 2)) == ("kappa", "kappa")
    assert (find_simulation("r", 1), find_simulation("item share", 2)) == (None, None)


@pytest.mark.parametrize(
    "study", [VERDICT_STUDY, ITEM_VERDICT_STUDY, JUDGE_STUDY, ITEM_JUDGE_STUDY], ids=lambda s: s.name
)
def test_the_units_of_verdicts_are_of_as_many_kinds_as_the_study_says(study: Study) -> None:
    sample = study.worlds[0].draw(study.designs[0], np.random.default_rng(0))
    assert len(sample.units) == study.n_unit_kinds
    assert {len(labels) for labels in sample.units.values()} == {sample.verdicts.shape[1]}


def test_the_stored_schema_has_the_same_paths() -> None:
    schema = json.loads((Path(__file__).parents[2] / "docs" / "report.schema.json").read_text(encoding="utf-8"))
    assert set(iterate_schema_paths(schema)) <= set(iterate_all_paths())
