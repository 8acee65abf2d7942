"""Every benchmark is in the suite or run apart from it; that of survey imports runs on a small file.

Of the suite: only a wheel's figures are published, and a row without a figure says so.
"""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

BY_HAND = {"bench_savings.py", "bench_scale.py", "bench_surveys.py", "bench_trace_search.py"}
"""Run apart from the suite: for a table of the documentation, on a cluster, by the test below, and in a browser."""
BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "bench_surveys.py"
SCALE_BENCHMARK = BENCHMARK.with_name("bench_scale.py")


def test_the_benchmark_prints_time_and_memory_of_an_import() -> None:
    size = ["--rows", "2000", "--columns", "320"]
    process = subprocess.run([sys.executable, str(BENCHMARK), *size], check=True, capture_output=True, text=True)
    measurements = json.loads(process.stdout)
    assert measurements["respondents"] == 2000
    assert measurements["cells"] > 1000
    assert measurements["seconds_of_allowed"] > 0
    assert 0 < measurements["memory_of_allowed"] < 1


def test_the_benchmark_of_scale_refuses_too_few_samples() -> None:
    command = [sys.executable, str(SCALE_BENCHMARK), "--samples", "9"]
    process = subprocess.run(command, check=False, capture_output=True, text=True)
    assert process.returncode == 2
    assert "--samples: 9 is too few. How to fix: Give at least 10." in process.stderr


def test_every_benchmark_is_in_the_suite_or_run_apart() -> None:
    suite = (BENCHMARK.parent / "published_figures.py").read_text(encoding="utf-8")
    scripts = {path.name for path in BENCHMARK.parent.glob("bench_*.py")}
    assert scripts == set(re.findall(r'"(bench_\w+\.py)"', suite)) | BY_HAND


def test_names_of_benchmarks_can_be_listed_with_commas() -> None:
    suite = (BENCHMARK.parent / "published_figures.py").read_text(encoding="utf-8")
    names = re.findall(r'^    "([^"]+)": Bench\(', suite, re.MULTILINE)
    assert len(names) > 10
    assert not [name for name in names if "," in name], "`suite.py --only` takes a list, and all by default"


def test_figures_of_a_source_tree_are_not_published() -> None:
    command = [sys.executable, str(BENCHMARK.with_name("suite.py")), "--only", "metrics"]
    process = subprocess.run(command, check=False, capture_output=True, text=True)
    assert process.returncode == 2
    assert (
        "auditor is not installed from a wheel here. How to fix: Run make bench, or pass --keep-docs." in process.stderr
    )


def test_a_row_without_a_figure_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARK.parent))
    suite, turns = importlib.import_module("suite"), importlib.import_module("turns")
    run = {"command": "python benchmarks/bench_peers.py", "turns": 7, "machine": turns.describe_machine()}
    figures = {"run": run, "versions": {"promptfoo": "1.2.3", "deepeval": None}}
    figures |= turns.compare("wall_ratio_to_promptfoo", [9.0, 6.0, 7.0], [10.0, 10.0, 10.0])
    table = suite.build_table({"peers": figures})
    assert "with promptfoo, 2,000 calls | 0.6 × | 0.7 × | ≤ 0.85 | met |" in table
    assert "with Inspect AI, 2,000 calls | not measured |  | ≤ 0.2 |  |" in table
    results = {row["what"].split(", ")[1]: row["result"] for row in suite.list_rows("peers", figures)[:3]}
    assert results == {"wall time compared with promptfoo": "met", "CPU compared with promptfoo": "not measured"} | {
        "wall time compared with Inspect AI": "not measured"
    }
    missed = {"wall_ratio_to_promptfoo": 0.9}
    assert suite.list_rows("peers", missed)[0]["result"] == "missed"
    assert "with DeepEval, 2,000 calls | not measured |  |  |  |" in table
    assert ", promptfoo 1.2.3." in table
    assert "pydantic " in table
    assert "vl_convert " in table
    assert "deepeval" not in table
    elsewhere = {"run": run | {"machine": run["machine"] | {"processor": "Slow"}}, "growth": 1.05}
    table = suite.build_table({"peers": figures, "items": elsewhere})
    assert "with promptfoo, 2,000 calls | 0.6 × | 0.7 × | ≤ 0.85 | met | A |" in table
    assert "from 200 to 2,000 calls | 1.05 × |  | ≤ 1.1 | met | B |" in table
    assert "; B: Slow, " in table
