"""Every estimate that a report can print is in one simulation, or has a reason why not."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks.coverage.figures import Study
from benchmarks.coverage.judge_figures import ITEM_JUDGE_STUDY, JUDGE_STUDY
from benchmarks.coverage.paths import iterate_schema_paths
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


def test_each_estimate_is_in_one_simulation_or_has_a_reason_why_not_and_each_entry_has_an_estimate() -> None:
    entries = {path: find_figures(path) + find_reasons(path) for path in iterate_all_paths()}
    not_one = {path: names for path, names in entries.items() if len(names) != 1}
    assert not not_one, "add each path to one figure of benchmarks/coverage/registry.py, which has these"
    unused = {*PATHS_BY_FIGURE, *PATHS_WITHOUT_SIMULATION}.difference(*entries.values())
    assert not unused, f"{unused} are figures of no estimate"
    assert set(PATHS_BY_FIGURE) <= set(figures_by_key())


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
