"""Stored results: valid while the sources that they rest on are unchanged."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import pytest

from benchmarks.coverage import results
from benchmarks.coverage.results import ResultStore, find_modules, fingerprint
from benchmarks.coverage.rule import Summary
from benchmarks.coverage.runner import Result
from benchmarks.coverage.studies import to_results
from tests.support.known import known

FINE = Summary(300, 0, 0.95, 0.93, 0.97, 1.02, None, 10)


def test_results_come_back_as_they_were_stored(tmp_path: Path) -> None:
    result = Result("scores", "r", "gaussian", "5 × 5", FINE, FINE)
    rows = [asdict(result)]
    ResultStore(tmp_path / "results.json").save("scores/gaussian/5 × 5", "abc", rows)
    store = ResultStore(tmp_path / "results.json")
    stored = known(store.load("scores/gaussian/5 × 5", "abc"))
    assert to_results({"scores/gaussian/5 × 5": stored}) == ([result], [])


def test_results_of_other_sources_are_not_used(tmp_path: Path) -> None:
    store = ResultStore(tmp_path / "results.json")
    store.save("key", "abc", [])
    assert store.load("key", "abd") is None
    assert store.load("other key", "abc") is None


def test_a_figure_rests_on_the_metrics_that_it_imports_and_on_the_worlds() -> None:
    modules = find_modules("benchmarks.coverage.score_figures")
    assert "auditor.metrics.intervals.jackknife_interval" in modules  # through auditor.metrics.intervals.two_way
    assert "benchmarks.coverage.worlds.score_worlds" in modules
    assert "auditor.metrics.judges.bias" not in modules


def test_a_changed_source_changes_the_fingerprint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "auditor" / "metrics" / "mean.py"
    source.parent.mkdir(parents=True)
    source.write_text("x = 1\n")
    monkeypatch.setattr(results, "ROOT", tmp_path)
    first = fingerprint("auditor.metrics.mean")
    assert first == fingerprint("auditor.metrics.mean")
    source.write_text("x = 2\n")
    assert fingerprint("auditor.metrics.mean") != first
