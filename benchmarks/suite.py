"""Every benchmark in turn, each in a process of its own; writes docs/benchmarks.json, and the table of its page.

    python benchmarks/suite.py [--quick] [--only audit,report] [--keep-docs]

Figures are ratios within one run wherever they can be. On a busy machine they are worth little: the load is noted.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

FOLDER = Path(__file__).resolve().parent
DOCS = FOLDER.parent / "docs"
BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"


class Figure(NamedTuple):
    """One row of the table.

    Attributes:
        label: description in the first column.
        extract: takes the figure from the JSON that the script printed; None if it was not measured.
        unit: unit of the figure.
        max_goal, min_goal: largest or smallest value that meets the goal; both None without a goal.
    """

    label: str
    extract: Callable[[dict[str, Any]], float | None]
    unit: str = ""
    max_goal: float | None = None
    min_goal: float | None = None


class Bench(NamedTuple):
    """A script, its arguments for a full and a quick run, and the figures that are published."""

    script: str
    full: tuple[str, ...]
    quick: tuple[str, ...]
    figures: tuple[Figure, ...]


SUITE = {
    "audit": Bench(
        "bench_audit.py",
        ("--samples", "20", "--turns", "3"),
        ("--samples", "2", "--turns", "1"),
        (
            Figure(
                "An audit, CPU compared with a bare litellm loop",
                lambda f: f["cpu_ratio_to_bare_litellm"],
                "×",
                max_goal=1.3,
            ),
            Figure("The same, wall time", lambda f: f["wall_ratio_to_bare_litellm"], "×"),
            Figure(
                "An audit, wall time compared with Inspect AI",
                lambda f: f.get("wall_ratio_to_inspect_ai"),
                "×",
                max_goal=0.25,
            ),
            Figure("The same, CPU", lambda f: f.get("cpu_ratio_to_inspect_ai"), "×"),
            Figure("CPU of the whole pipeline a call", lambda f: f["cpu_ms_per_call"], "ms"),
        ),
    ),
    "call": Bench(
        "bench_call.py",
        (),
        ("--calls", "100", "--turns", "1"),
        (
            Figure(
                "CPU of sending a call, compared with litellm's public function",
                lambda f: f["direct_ratio_to_public"],
                "×",
            ),
            Figure(
                "CPU saved a call by preparing each kind of request once",
                lambda f: f["saved_by_kinds_ms"],
                "ms",
                min_goal=0.5,
            ),
        ),
    ),
    "rate": Bench(
        "bench_rate.py",
        (),
        ("--calls", "1200"),
        (Figure("Share of the possible rate: 300 ms answers, 200 in flight", lambda f: f["share"], "", min_goal=0.95),),
    ),
    "rate of answers that differ": Bench(
        "bench_rate.py",
        ("--spread", "0.5"),
        ("--spread", "0.5", "--calls", "1200"),
        (Figure("The same, answers of 150 to 450 ms", lambda f: f["share"], "", min_goal=0.95),),
    ),
    "start": Bench(
        "bench_start.py",
        (),
        ("--turns", "2"),
        (
            Figure("`auditor --help`", lambda f: f["help_s"], "s", max_goal=0.3),
            *(
                Figure(f"{label}, CPU compared with importing {reference}", lambda f, n=name: f[n]["ratio"], "×", goal)  # type: ignore[misc]
                for name, label, reference, goal in (
                    ("status", "`auditor status`", "pydantic, sqlalchemy and numpy", 2.8),
                    ("estimate", "`auditor estimate`", "the same", 2.8),
                    ("report_json", "`auditor report --format json`", "the same", 3.5),
                    ("report_html", "`auditor report`", "the same", 5.5),
                    ("second_run", "A run whose answers are all recorded", "litellm", 0.6),
                )
            ),
        ),
    ),
    "report": Bench(
        "bench_report.py",
        (),
        ("--sizes", "small"),
        (
            *(
                Figure(
                    f"Report of {n_calls} calls, {quantity}",
                    lambda f, n=name, k=key: (f.get(n) or {}).get(k),  # type: ignore[misc]
                    unit,
                    max_goal,
                )
                for name, n_calls in (("small", "a thousand"), ("middle", "a hundred thousand"), ("large", "a million"))
                for key, quantity, unit, max_goal in (
                    ("seconds", "time", "s", None),
                    ("peak_memory_mb", "memory", "MB", 1500.0 if name == "large" else None),
                )
            ),
            Figure(
                "Time a call, a million compared with a hundred thousand",
                lambda f: _per_call(f, "seconds") if "large" in f else None,
                "×",
                max_goal=1.2,
            ),
        ),
    ),
    "metrics": Bench(
        "bench_metrics.py",
        (),
        ("--scale", "0.05"),
        (
            Figure("SaGE, compared with loops", lambda f: f["semantic_graph_entropy"]["ratio"], "× as fast"),
            Figure(
                "Transitivity of 200 items, compared with networkx",
                lambda f: f["transitivity_200"]["ratio"],
                "× as fast",
            ),
        ),
    ),
    "embeddings": Bench(
        "bench_embeddings.py",
        (),
        ("--texts", "90", "--turns", "1"),
        (Figure("Embedding, CPU compared with plain `encode`", lambda f: f["cpu_ratio_to_plain"], "×", max_goal=1.05),),
    ),
    "overlap": Bench(
        "bench_overlap.py",
        (),
        ("--calls", "80", "--turns", "1"),
        (
            Figure(
                "2,000 reasonings, wall time with embeddings compared with none",
                lambda f: f["wall_ratio"],
                "×",
                max_goal=1.2,
            ),
            Figure("99th percentile of the event loop's lag meanwhile", lambda f: f["lag_p99_ms"], "ms", max_goal=20),
        ),
    ),
    "tui": Bench(
        "bench_tui.py",
        (),
        ("--ratings", "200"),
        (Figure("First screen of the review, 10,000 conflicts", lambda f: f["first_screen_s"], "s"),),
    ),
}


def _per_call(figures: dict[str, Any], key: str) -> float:
    large_figure, middle_figure = (figures[name][key] / figures[name]["calls"] for name in ("large", "middle"))
    return float(large_figure / middle_figure)


def run_benchmark(bench: Bench, *, quick: bool) -> dict[str, Any]:
    """Run a script and return the JSON that it printed."""
    command = [sys.executable, str(FOLDER / bench.script), *(bench.quick if quick else bench.full)]
    process = subprocess.run(command, capture_output=True, text=True, check=False, cwd=FOLDER.parent)
    if process.returncode:
        raise SystemExit(f"{bench.script} failed:\n{process.stderr[-3000:]}")
    figures: dict[str, Any] = json.loads(process.stdout)
    return figures


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
    print(build_table(figures_by_benchmark))


if __name__ == "__main__":
    main()
