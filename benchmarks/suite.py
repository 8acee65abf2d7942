"""Every benchmark in turn, each in a process of its own; writes docs/benchmarks.json, and the table of its page.

    python benchmarks/suite.py [--quick] [--only audit,report] [--keep-docs]

Figures are ratios within one run wherever they can be. On a busy machine they are worth little. Beside each benchmark
its command, the load before it, the machine, the versions and all turns are printed and stored. With `--only`, the rows
of the other benchmarks stay as they are. `--quick` prints only. Without a peer to compare with, its rows say *not
measured*. Figures of an installed wheel only are published: `make bench` runs this script in its environment.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from string import ascii_uppercase
from typing import Any

from published_figures import SUITE, Bench, Figure
from turns import describe_machine, is_wheel

FOLDER = Path(__file__).resolve().parent
DOCS = FOLDER.parent / "docs"
BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"


def run_benchmark(bench: Bench, *, quick: bool) -> dict[str, Any]:
    """Run a script and return the JSON that it printed; `run` has its command, its turns and the machine before it."""
    arguments = bench.arguments(quick=quick)
    run: dict[str, Any] = {"command": " ".join(("python", f"benchmarks/{bench.script}", *arguments))}
    run |= {"turns": 1 if quick else bench.turns, "machine": describe_machine()}
    command = [sys.executable, str(FOLDER / bench.script), *arguments]
    process = subprocess.run(command, capture_output=True, text=True, check=False, cwd=FOLDER.parent)
    if process.returncode:
        raise SystemExit(f"{bench.script} failed:\n{process.stderr[-3000:]}")
    figures: dict[str, Any] = json.loads(process.stdout)
    return figures | {"run": run}


def build_details(figures_by_benchmark: dict[str, Any]) -> str:
    """Format for each benchmark its command, the machine and the load before it, the versions and all turns."""
    lines = []
    for name, figures in figures_by_benchmark.items():
        run, machine = figures["run"], figures["run"]["machine"]
        versions = machine["versions"] | figures.get("versions", {})
        lines.append(f"{name}: {run['command']}; {_format_system(machine)}; {_format_time(machine)}")
        lines.append(f"  versions: {json.dumps(versions)}")
        lines.append(
            f"  {json.dumps({key: value for key, value in figures.items() if key not in ('run', 'versions')})}"
        )
    return "\n".join(lines)


def _format_system(machine: dict[str, Any]) -> str:
    return f"{machine['processor']}, {machine['cores']} cores, Python {machine['python']}"


def _format_time(machine: dict[str, Any]) -> str:
    return f"{machine['at']}, {machine['load_before']}"


def build_table(figures_by_benchmark: dict[str, Any]) -> str:
    """Format the figures as a Markdown table, and how the benchmarks were measured.

    Figures of several machines are marked with a letter for each, since seconds of one do not compare with another's.
    """
    letters = _letter_systems(figures_by_benchmark)
    lines = [
        "| What | Figure | Median | Goal | |" + (" On |" if len(letters) > 1 else ""),
        "|---|---|---|---|---|" + ("---|" if len(letters) > 1 else ""),
    ]
    for name, figures in figures_by_benchmark.items():
        letter = [letters[_format_installation(figures["run"]["machine"])]] if len(letters) > 1 else []
        for figure in SUITE[name].figures:
            value, median = figure.value(figures), figure.median(figures)
            cells = (
                figure.label,
                "not measured" if value is None else _format_value(figure, value),
                "" if median is None else _format_value(figure, median),
                _format_goal(figure),
                _verdict(figure, value),
                *letter,
            )
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, "", _describe_runs(figures_by_benchmark)])


def _describe_runs(figures_by_benchmark: dict[str, Any]) -> str:
    """The machines, all versions, and when and at which loads the benchmarks ran."""
    letters = _letter_systems(figures_by_benchmark)
    systems = [f"{letter}: {system}" if len(letters) > 1 else system for system, letter in letters.items()]
    versions: dict[str, None] = {}
    machines = [figures["run"]["machine"] for figures in figures_by_benchmark.values()]
    for figures, machine in zip(figures_by_benchmark.values(), machines, strict=True):
        for name, number in (machine["versions"] | figures.get("versions", {})).items():
            if number:
                versions.setdefault(f"{name} {number}")
    days = sorted(machine["at"][:10] for machine in machines)
    loads = [float(machine["load_before"]) for machine in machines]
    return (
        f"{'; '.join(systems)}. Versions: {', '.join(versions)}. From {days[0]} to {days[-1]}, after a load of "
        f"{min(loads):g} to {max(loads):g}; each command, its turns, time and load are in `docs/benchmarks.json`."
    )


def _letter_systems(figures_by_benchmark: dict[str, Any]) -> dict[str, str]:
    """A letter for each machine, with how auditor was installed there, in the order of the benchmarks."""
    systems = dict.fromkeys(
        _format_installation(figures["run"]["machine"]) for figures in figures_by_benchmark.values()
    )
    return dict(zip(systems, ascii_uppercase, strict=False))


def _format_installation(machine: dict[str, Any]) -> str:
    source = machine.get("installed_from", "source")
    return f"{_format_system(machine)}, auditor {machine['versions']['auditor']} installed from {source}"


def _format_value(figure: Figure, value: float) -> str:
    number = f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"
    return f"{number} {figure.unit}".strip()


def _format_goal(figure: Figure) -> str:
    if figure.max_goal is not None:
        return f"≤ {figure.max_goal:g}"
    return "" if figure.min_goal is None else f"≥ {figure.min_goal:g}"


def _verdict(figure: Figure, value: float | None) -> str:
    if value is None or (figure.max_goal is None and figure.min_goal is None):
        return ""
    is_missed = (figure.max_goal is not None and value > figure.max_goal) or (
        figure.min_goal is not None and value < figure.min_goal
    )
    return "missed" if is_missed else "met"


def load_published() -> dict[str, Any]:
    """The figures in docs/benchmarks.json by benchmark; none of an earlier format, which lacks the command of each."""
    path = DOCS / "benchmarks.json"
    figures_by_benchmark = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return {name: figures_by_benchmark[name] for name in SUITE if "run" in figures_by_benchmark.get(name, {})}


def list_rows(name: str, figures: dict[str, Any]) -> list[dict[str, Any]]:
    """The published rows of a benchmark: figure and goal, and whether it was met."""
    rows = []
    for figure in SUITE[name].figures:
        value = figure.value(figures)
        rows.append(
            {
                "what": figure.label,
                "figure": value,
                "goal": _format_goal(figure) or None,
                "result": "not measured" if value is None else _verdict(figure, value) or None,
            }
        )
    return rows


def publish(figures_by_benchmark: dict[str, Any]) -> None:
    """Write the figures to docs/benchmarks.json, and the table to docs/benchmarks.md."""
    figures_by_benchmark = {
        name: figures | {"rows": list_rows(name, figures)} for name, figures in figures_by_benchmark.items()
    }
    (DOCS / "benchmarks.json").write_text(json.dumps(figures_by_benchmark, indent=1) + "\n", encoding="utf-8")
    page = DOCS / "benchmarks.md"
    before, _, remainder = page.read_text(encoding="utf-8").partition(BEGIN)
    after = remainder.partition(END)[2]
    page.write_text(f"{before}{BEGIN}\n\n{build_table(figures_by_benchmark)}\n\n{END}{after}", encoding="utf-8")


def main() -> None:
    """Run, print, publish."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that all of it works; prints only")
    parser.add_argument("--only", default=",".join(SUITE), help="some of " + ", ".join(SUITE))
    parser.add_argument("--keep-docs", action="store_true", help="print only")
    arguments = parser.parse_args()
    if unknown := set(arguments.only.split(",")) - set(SUITE):
        parser.error(f"--only: no benchmark {', '.join(sorted(unknown))}. How to fix: Name some of {', '.join(SUITE)}.")
    keeps_docs = arguments.keep_docs or arguments.quick
    if not keeps_docs and not is_wheel():
        parser.error("auditor is not installed from a wheel here. How to fix: Run make bench, or pass --keep-docs.")
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    measured: dict[str, Any] = {}
    for name in arguments.only.split(","):
        start = time.monotonic()
        measured[name] = run_benchmark(SUITE[name], quick=arguments.quick)
        print(f"{name}: {time.monotonic() - start:.0f} s", file=sys.stderr)
        if not keeps_docs:  # after each one, so that an interrupted run keeps what it has measured
            published = load_published() | measured
            publish({name: published[name] for name in SUITE if name in published})
    print(f"{build_table(measured)}\n\n{build_details(measured)}")


if __name__ == "__main__":
    main()
