"""Every benchmark in turn, each in a process of its own; writes docs/benchmarks.json, and the table of its page.

    python benchmarks/suite.py [--quick] [--only audit,report] [--keep-docs]

Figures are ratios within one run wherever they can be. On a busy machine they are worth little. Beside each benchmark
its command, the load before it, the versions and all turns are printed and stored. Without a peer to compare with, its
rows say *not measured*.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from datetime import UTC, datetime
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from published_figures import SUITE, Bench, Figure

FOLDER = Path(__file__).resolve().parent
DOCS = FOLDER.parent / "docs"
BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"


PACKAGES = ("auditor", "litellm", "numpy", "sqlalchemy", "textual", "torch")
"""Packages whose versions are printed."""


def run_benchmark(bench: Bench, *, quick: bool) -> dict[str, Any]:
    """Run a script and return the JSON that it printed, with its command and the load before it as `run`."""
    load_before = os.getloadavg()[0]
    command = [sys.executable, str(FOLDER / bench.script), *(bench.quick if quick else bench.full)]
    process = subprocess.run(command, capture_output=True, text=True, check=False, cwd=FOLDER.parent)
    if process.returncode:
        raise SystemExit(f"{bench.script} failed:\n{process.stderr[-3000:]}")
    figures: dict[str, Any] = json.loads(process.stdout)
    arguments = " ".join((f"benchmarks/{bench.script}", *(bench.quick if quick else bench.full)))
    return figures | {"run": {"command": f"python {arguments}", "load_before": round(load_before, 1)}}


def build_details(figures_by_benchmark: dict[str, Any]) -> str:
    """Format the versions and, for each benchmark, its command, the load before it and its turns."""
    lines = [f"versions: {json.dumps(figures_by_benchmark['machine']['versions'])}"]
    for name in SUITE:
        if (figures := figures_by_benchmark.get(name)) is None:
            continue
        lines.append(f"{name}: {figures['run']['command']}; load before: {figures['run']['load_before']}")
        raw = {key: figures[key] for key in ("versions", "turns", "start_up") if key in figures} or {
            key: value for key, value in figures.items() if key != "run"
        }
        lines.append(f"  {json.dumps(raw)}")
    return "\n".join(lines)


def describe_machine() -> dict[str, Any]:
    """Describe the machine and its load."""
    model = next(
        (line.split(":", 1)[1].strip() for line in _read_lines("/proc/cpuinfo") if line.startswith("model name")), None
    )
    return {
        "at": datetime.now(UTC).isoformat(timespec="minutes"),
        "processor": model or platform.processor() or "unknown",
        "cores": os.cpu_count(),
        "load_before": round(os.getloadavg()[0], 1),
        "python": platform.python_version(),
        "versions": {name: version(name) for name in PACKAGES if find_spec(name)},
        "system": platform.system(),
    }


def _read_lines(path: str) -> list[str]:
    return Path(path).read_text().splitlines() if Path(path).exists() else []


def build_table(figures_by_benchmark: dict[str, Any]) -> str:
    """Format the figures as a Markdown table."""
    machine = figures_by_benchmark["machine"]
    description = f"{machine['processor']}, {machine['cores']} cores, Python {machine['python']}, {machine['at']}"
    lines = [
        f"{description}; load before the run: {machine['load_before']}.",
        "",
        "| What | Figure | Goal | |",
        "|---|---|---|---|",
    ]
    for name, bench in SUITE.items():
        for figure in bench.figures if name in figures_by_benchmark else ():
            value = figure.extract(figures_by_benchmark[name])
            goal = (
                f"≤ {figure.max_goal:g}"
                if figure.max_goal is not None
                else f"≥ {figure.min_goal:g}"
                if figure.min_goal
                else ""
            )
            formatted = "not measured" if value is None else f"{value:.3g} {figure.unit}".strip()
            lines.append(f"| {figure.label} | {formatted} | {goal} | {_verdict(figure, value)} |")
    return "\n".join(lines)


def _verdict(figure: Figure, value: float | None) -> str:
    if value is None or (figure.max_goal is None and figure.min_goal is None):
        return ""
    is_missed = (figure.max_goal is not None and value > figure.max_goal) or (
        figure.min_goal is not None and value < figure.min_goal
    )
    return "missed" if is_missed else "met"


def publish(figures_by_benchmark: dict[str, Any]) -> None:
    """Write the figures to docs/benchmarks.json, and the table to docs/benchmarks.md."""
    (DOCS / "benchmarks.json").write_text(json.dumps(figures_by_benchmark, indent=1) + "\n", encoding="utf-8")
    page = DOCS / "benchmarks.md"
    before, _, remainder = page.read_text(encoding="utf-8").partition(BEGIN)
    after = remainder.partition(END)[2]
    page.write_text(f"{before}{BEGIN}\n\n{build_table(figures_by_benchmark)}\n\n{END}{after}", encoding="utf-8")


def main() -> None:
    """Run, print, publish."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that all of it works")
    parser.add_argument("--only", default=",".join(SUITE), help="some of " + ", ".join(SUITE))
    parser.add_argument("--keep-docs", action="store_true", help="print only")
    arguments = parser.parse_args()
    figures_by_benchmark: dict[str, Any] = {"machine": describe_machine(), "quick": arguments.quick}
    for name in arguments.only.split(","):
        start = time.monotonic()
        figures_by_benchmark[name] = run_benchmark(SUITE[name], quick=arguments.quick)
        print(f"{name}: {time.monotonic() - start:.0f} s", file=sys.stderr)
    if not arguments.keep_docs:
        publish(figures_by_benchmark)
    print(f"{build_table(figures_by_benchmark)}\n\n{build_details(figures_by_benchmark)}")


if __name__ == "__main__":
    main()
