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

HERE = Path(__file__).resolve().parent
DOCS = HERE.parent / "docs"
BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"


class Figure(NamedTuple):
    """One line of the table.

    Attributes:
        of: takes it out of what its script printed; None where that was not measured.
        most, least: the goal; None where there is none.
    """

    what: str
    of: Callable[[dict[str, Any]], float | None]
    unit: str = ""
    most: float | None = None
    least: float | None = None


class Bench(NamedTuple):
    """A script, what it is given, and what is told of it."""

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
            Figure("An audit, CPU beside a bare litellm loop", lambda f: f["cpu_ratio_to_bare_litellm"], "×", most=1.3),
            Figure("The same, wall time", lambda f: f["wall_ratio_to_bare_litellm"], "×"),
            Figure(
                "An audit, wall time beside Inspect AI",
                lambda f: f.get("wall_ratio_to_inspect_ai"),
                "×",
                most=0.25,
            ),
            Figure("The same, CPU", lambda f: f.get("cpu_ratio_to_inspect_ai"), "×"),
            Figure("CPU of the whole pipeline a call", lambda f: f["cpu_ms_per_call"], "ms"),
        ),
    ),
    "rate": Bench(
        "bench_rate.py",
        (),
        ("--calls", "1200"),
        (Figure("Share of the possible rate: 300 ms answers, 200 in flight", lambda f: f["share"], "", least=0.95),),
    ),
    "rate of answers that differ": Bench(
        "bench_rate.py",
        ("--spread", "0.5"),
        ("--spread", "0.5", "--calls", "1200"),
        (Figure("The same, answers of 150 to 450 ms", lambda f: f["share"], "", least=0.95),),
    ),
    "start": Bench(
        "bench_start.py",
        (),
        ("--turns", "2"),
        (Figure("`auditor --help`", lambda f: f["help_s"], "s", most=0.3),),
    ),
    "report": Bench(
        "bench_report.py",
        (),
        ("--sizes", "small"),
        (
            *(
                Figure(f"Report of {told} calls, {what}", lambda f, n=name, k=key: (f.get(n) or {}).get(k), unit, most)  # type: ignore[misc]
                for name, told in (("small", "a thousand"), ("middle", "a hundred thousand"), ("large", "a million"))
                for key, what, unit, most in (
                    ("seconds", "time", "s", None),
                    ("peak_memory_mb", "memory", "MB", 1500.0 if name == "large" else None),
                )
            ),
            Figure(
                "Time a call, a million beside a hundred thousand",
                lambda f: _per_call(f, "seconds") if "large" in f else None,
                "×",
                most=1.2,
            ),
        ),
    ),
    "metrics": Bench(
        "bench_metrics.py",
        (),
        ("--scale", "0.05"),
        (
            Figure("SaGE, beside loops", lambda f: f["semantic_graph_entropy"]["ratio"], "× as fast"),
            Figure("Transitivity of 200 items, beside networkx", lambda f: f["transitivity_200"]["ratio"], "× as fast"),
        ),
    ),
    "embeddings": Bench(
        "bench_embeddings.py",
        (),
        ("--texts", "90", "--turns", "1"),
        (Figure("Embedding, CPU beside plain `encode`", lambda f: f["cpu_ratio_to_plain"], "×", most=1.05),),
    ),
    "tui": Bench(
        "bench_tui.py",
        (),
        ("--ratings", "200"),
        (Figure("First screen of the review, 10,000 conflicts", lambda f: f["first_screen_s"], "s"),),
    ),
}


def _per_call(found: dict[str, Any], what: str) -> float:
    large, middle = (found[name][what] / found[name]["calls"] for name in ("large", "middle"))
    return float(large / middle)


def run(bench: Bench, *, quick: bool) -> dict[str, Any]:
    """What a script printed."""
    command = [sys.executable, str(HERE / bench.script), *(bench.quick if quick else bench.full)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=HERE.parent)
    if done.returncode:
        raise SystemExit(f"{bench.script} failed:\n{done.stderr[-3000:]}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def machine() -> dict[str, Any]:
    """Where and how busy."""
    model = next(
        (line.split(":", 1)[1].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")), None
    )
    return {
        "at": datetime.now(UTC).isoformat(timespec="minutes"),
        "processor": model or platform.processor() or "unknown",
        "cores": os.cpu_count(),
        "load_before": round(os.getloadavg()[0], 1),
        "python": platform.python_version(),
        "system": platform.system(),
    }


def _lines(path: str) -> list[str]:
    return Path(path).read_text().splitlines() if Path(path).exists() else []


def table(found: dict[str, Any]) -> str:
    """The figures as Markdown."""
    where = found["machine"]
    told = f"{where['processor']}, {where['cores']} cores, Python {where['python']}, {where['at']}"
    lines = [
        f"{told}; load before the run: {where['load_before']}.",
        "",
        "| What | Figure | Goal | |",
        "|---|---|---|---|",
    ]
    for name, bench in SUITE.items():
        for figure in bench.figures if name in found else ():
            value = figure.of(found[name])
            goal = f"≤ {figure.most:g}" if figure.most is not None else f"≥ {figure.least:g}" if figure.least else ""
            shown = "not measured" if value is None else f"{value:.3g} {figure.unit}".strip()
            lines.append(f"| {figure.what} | {shown} | {goal} | {_verdict(figure, value)} |")
    return "\n".join(lines)


def _verdict(figure: Figure, value: float | None) -> str:
    if value is None or (figure.most is None and figure.least is None):
        return ""
    missed = (figure.most is not None and value > figure.most) or (figure.least is not None and value < figure.least)
    return "missed" if missed else "met"


def publish(found: dict[str, Any]) -> None:
    """Into the documentation."""
    (DOCS / "benchmarks.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    page = DOCS / "benchmarks.md"
    before, _, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    page.write_text(f"{before}{BEGIN}\n\n{table(found)}\n\n{END}{after}", encoding="utf-8")


def main() -> None:
    """Run, print, publish."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that all of it works")
    parser.add_argument("--only", default=",".join(SUITE), help="some of " + ", ".join(SUITE))
    parser.add_argument("--keep-docs", action="store_true", help="print only")
    given = parser.parse_args()
    found: dict[str, Any] = {"machine": machine(), "quick": given.quick}
    for name in given.only.split(","):
        began = time.monotonic()
        found[name] = run(SUITE[name], quick=given.quick)
        print(f"{name}: {time.monotonic() - began:.0f} s", file=sys.stderr)
    if not given.keep_docs:
        publish(found)
    print(table(found))


if __name__ == "__main__":
    main()
