"""Every estimate that a report can print is in a simulation, and every interval says what was resampled."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

from auditor.metrics.intervals.estimate import Estimate, Tested
from auditor.metrics.intervals.multiple_testing import MaxGap
from auditor.metrics.people.alignment import TwoWayEstimate
from auditor.metrics.people.survey_error import CorrectedCorrelation
from auditor.reports.data.build import build_report
from auditor.reports.data.report_model import ReportModel
from auditor.reports.data.report_schema import Report
from auditor.run import open_audit, run_audit
from auditor.storage.audits import Audit
from auditor.storage.database import Database, open_database
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
from benchmarks.coverage.unit_kinds import (
    FIGURES_OVER_ITEMS,
    find_simulation,
    list_simulated_kinds,
)
from benchmarks.coverage.verdict_figures import ITEM_VERDICT_STUDY, VERDICT_STUDY
from tests.support.audit_configs import KEY, KEY_VARIABLE
from tests.support.consistency_audits import save_logic_audit, save_semantic_audit
from tests.support.fake_server import FakeServer
from tests.support.judge_test_audits import save_judge_test_audit
from tests.support.scripted_tasks import audit, solver
from tests.support.synthetic_audit import populate

SYNTHETIC_AUDITS: Mapping[str, Callable[[Database], Audit]] = {
    "survey": populate,
    "judges": save_judge_test_audit,
    "logic": save_logic_audit,
    "semantic": save_semantic_audit,
}
AUDIT_KINDS = (*SYNTHETIC_AUDITS, "task")


STATED_BY_ROWS = (Tested, TwoWayEstimate, MaxGap, CorrectedCorrelation)
"""Classes whose further figures rows state in fields of their own, such as `p_value` and `reliability`."""


@pytest.fixture(scope="module")
def full_reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Report]:
    """One report of each kind of audit, in which every table is filled."""
    folder = tmp_path_factory.mktemp("coverage")
    reports = {"task": report_on_task(folder)}
    for kind, save in SYNTHETIC_AUDITS.items():
        with open_database(f"sqlite:///{folder}/{kind}.db") as db:
            reports[kind] = build_report(db, save(db).name)
    return reports


def report_on_task(folder: Path) -> Report:
    """The report of a task whose answers are scores, solved by scripted models."""
    storage = f"sqlite:///{folder}/task.db"
    with FakeServer(solver) as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv(KEY_VARIABLE, KEY)
        patch.setenv("AUDITOR_TRUST", f"{KEY_VARIABLE}@127.0.0.1")
        run_audit(audit(server.url, folder, "score", probes={"direct": {"samples": 2}}), storage=storage)
    return open_audit("sums", storage=storage).report()


def iterate_values(value: Any) -> Iterator[Any]:
    """A value, or those of a list or mapping."""
    if isinstance(value, Mapping | list | tuple):
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from iterate_values(item)
    else:
        yield value


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


@pytest.mark.parametrize("path", list(iterate_all_paths()))
def test_each_estimate_is_in_one_simulation_or_has_a_reason_why_not(path: str) -> None:
    entries = find_figures(path) + find_reasons(path)
    assert len(entries) == 1, f"add {path} to one figure of benchmarks/coverage/registry.py, which has {entries}"


def test_each_entry_of_the_registry_is_a_figure_of_the_study_and_has_a_path() -> None:
    paths = list(iterate_all_paths())
    assert set(PATHS_BY_FIGURE) <= set(figures_by_key())
    for table, find in ((PATHS_BY_FIGURE, find_figures), (PATHS_WITHOUT_SIMULATION, find_reasons)):
        for key in table:
            assert any(key in find(path) for path in paths), f"{key} is the figure of no estimate"


@pytest.mark.parametrize("kind", AUDIT_KINDS)
def test_the_estimates_of_a_full_report_are_those_of_its_schema(kind: str, full_reports: dict[str, Report]) -> None:
    paths = {path for path, _ in iterate_estimates(full_reports[kind])}
    assert len(paths) > 15
    assert paths <= set(iterate_all_paths())


@pytest.mark.parametrize("kind", AUDIT_KINDS)
def test_a_field_has_the_type_of_its_estimates_so_that_json_has_all_their_figures(
    kind: str, full_reports: dict[str, Report]
) -> None:
    narrowed = {
        f"{type(row).__name__}.{name}": type(estimate).__name__
        for row in iterate_rows(full_reports[kind])
        for name, field in type(row).model_fields.items()
        for estimate in iterate_values(getattr(row, name))
        if isinstance(estimate, Estimate) and type(estimate) not in {*list_classes(field.annotation), *STATED_BY_ROWS}
    }
    assert narrowed == {}


@pytest.mark.parametrize("kind", ["logic", "semantic", "task"])
def test_a_full_report_has_each_estimate_of_its_section(kind: str, full_reports: dict[str, Report]) -> None:
    paths = {path for path in iterate_all_paths() if path.startswith(f".{kind}") and not path.endswith("ci_low")}
    paths = {path for path in paths if not path.startswith(".semantic.people.")}  # those of `judgements`
    assert len(paths) > 5
    assert paths <= {path for path, _ in iterate_estimates(full_reports[kind])}


@pytest.mark.parametrize("kind", AUDIT_KINDS)
def test_each_interval_of_a_full_report_says_what_was_resampled(kind: str, full_reports: dict[str, Report]) -> None:
    silent = {path for path, estimate in iterate_intervals(full_reports[kind]) if not estimate.resampled}
    assert silent == set()


@pytest.mark.parametrize("kind", AUDIT_KINDS)
def test_each_interval_is_over_the_kinds_of_units_of_its_simulation(kind: str, full_reports: dict[str, Report]) -> None:
    other_kinds = {
        path: (figure, estimate.resampled)
        for path, estimate in iterate_intervals(full_reports[kind])
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


def test_a_path_that_is_nowhere_is_noticed() -> None:
    assert find_figures(".panel.new_figure") == []
    assert find_reasons(".panel.new_figure") == []


def test_the_stored_schema_has_the_same_paths() -> None:
    schema = json.loads((Path(__file__).parents[2] / "docs" / "report.schema.json").read_text(encoding="utf-8"))
    assert set(iterate_schema_paths(schema)) <= set(iterate_all_paths())
