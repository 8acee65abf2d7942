"""The benchmark of survey imports runs on a small file."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "bench_surveys.py"


def test_the_benchmark_prints_time_and_memory_of_an_import() -> None:
    size = ["--rows", "2000", "--columns", "320"]
    process = subprocess.run([sys.executable, str(BENCHMARK), *size], check=True, capture_output=True, text=True)
    measurements = json.loads(process.stdout)
    assert measurements["respondents"] == 2000
    assert measurements["cells"] > 1000
    assert 0 < measurements["seconds_of_allowed"] < 1
    assert 0 < measurements["memory_of_allowed"] < 1
