"""The benchmarks of `suite.py`: their scripts and arguments, and the figures of each that are published, with goals."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple


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


def _peer_figures(size: str, max_goal: float) -> tuple[Figure, ...]:
    """Rows of whole processes compared with promptfoo and Inspect AI."""
    return (
        Figure(
            f"Whole process, wall time compared with promptfoo, {size}",
            lambda f: f["wall_ratio_to_promptfoo"],
            "×",
            max_goal,
        ),
        Figure("The same, compared with Inspect AI", lambda f: f["wall_ratio_to_inspect_ai"], "×", max_goal=0.25),
        *(
            Figure(f"Start-up of {name} alone", lambda f, n=name: f[f"start_up_s_of_{n}"], "s")  # type: ignore[misc]
            for name in ("auditor", "promptfoo", "inspect_ai")
        ),
    )


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
                    ("seconds", "time", "s", 60.0 if name == "large" else None),
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
    "limits": Bench(
        "bench_limits.py",
        (),
        ("--seconds", "30"),
        (
            Figure(
                "CPU of 10,000 requests a minute, answers of 300 ms",
                lambda f: f["steady"]["cpu_per_wall"],
                "cores",
                1.0,
            ),
            Figure("Share of the permitted rate", lambda f: f["steady"]["share_of_permitted_rate"], "", min_goal=0.95),
            Figure("Slowest of four equal models, compared with the fastest", lambda f: f["steady"]["min_share"]),
            Figure(
                "Back to 95% of the permitted rate after 3 s of status 429",
                lambda f: max(f["bursts"]["recovery_s"]) if None not in f["bursts"]["recovery_s"] else math.inf,
                "s",
                max_goal=10,
            ),
        ),
    ),
    "peers": Bench("bench_peers.py", (), ("--items", "51", "--turns", "1"), _peer_figures("2,000 calls", 0.9)),
    "peers with 20,000 calls": Bench(
        "bench_peers.py",
        ("--items", "10200", "--turns", "1"),
        ("--items", "102", "--turns", "1"),
        _peer_figures("20,000 calls", 0.6),
    ),
    "tui": Bench(
        "bench_tui.py",
        (),
        ("--models", "8", "--ratings", "200"),
        (
            Figure(
                "Review of 100,000 conflicts: start to the first one, beside importing textual",
                lambda f: f["beside_textual_s"],
                "s",
                max_goal=1.0,
            ),
            Figure(
                "From a decision to the next conflict, median",
                lambda f: f["decision_to_next_ms"]["median"],
                "ms",
                max_goal=50,
            ),
        ),
    ),
}


def _per_call(figures: dict[str, Any], key: str) -> float:
    large_figure, middle_figure = (figures[name][key] / figures[name]["calls"] for name in ("large", "middle"))
    return float(large_figure / middle_figure)
