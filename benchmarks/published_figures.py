"""The benchmarks of `suite.py`: their scripts and arguments, and the figures of each that are published, with goals."""

from __future__ import annotations

from typing import Any, NamedTuple


class Figure(NamedTuple):
    """One row of the table.

    Attributes:
        label: description in the first column.
        path: keys of the figure in the JSON that the script printed, joined by dots. `median_` before the last key is
            the key of its median over the turns.
        unit: unit of the figure.
        max_goal, min_goal: largest or smallest value that meets the goal; both None without a goal.
    """

    label: str
    path: str
    unit: str = ""
    max_goal: float | None = None
    min_goal: float | None = None

    def value(self, figures: dict[str, Any]) -> float | None:
        """The figure in a script's JSON; None if it was not measured."""
        return _look_up(figures, self.path)

    def median(self, figures: dict[str, Any]) -> float | None:
        """The figure's median over the turns; None if the script has none."""
        parent, _, key = self.path.rpartition(".")
        return _look_up(figures, f"{parent}.median_{key}".lstrip("."))


class Bench(NamedTuple):
    """A script, its arguments for a full and a quick run, the figures that are published, and the number of turns.

    `turns` is passed to the script in a full run.
    """

    script: str
    full: tuple[str, ...]
    quick: tuple[str, ...]
    figures: tuple[Figure, ...]
    turns: int = 7

    def arguments(self, *, quick: bool) -> tuple[str, ...]:
        """The script's arguments."""
        return self.quick if quick else (*self.full, "--turns", str(self.turns))


def _look_up(figures: dict[str, Any], path: str) -> float | None:
    """The value at a path of keys joined by dots; None if it is null or one of the keys is missing."""
    value: Any = figures
    for key in path.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    return None if value is None else float(value)


def _peer_figures(size: str, max_goal: float, *others: Figure) -> tuple[Figure, ...]:
    """Rows of whole processes compared with promptfoo; those of the small job have other peers, and all start-ups."""
    peers = ("auditor", "auditor"), ("promptfoo", "promptfoo"), ("inspect_ai", "Inspect AI"), ("deepeval", "DeepEval")
    return (
        Figure(f"Whole process, wall time compared with promptfoo, {size}", "wall_ratio_to_promptfoo", "×", max_goal),
        Figure(f"Whole process, CPU compared with promptfoo, {size}", "cpu_ratio_to_promptfoo", "×"),
        *others,
        *(
            Figure(f"Start-up of {name} alone: a job of one item", f"start_up_s_of_{tool}", "s")
            for tool, name in (peers if others else ())
        ),
    )


def _start_figures() -> tuple[Figure, ...]:
    """Rows of each command compared with an import that it needs."""
    light_import, heavy_import = "beside its imports", "compared with importing litellm"
    rows = (
        ("status", "`auditor status`", light_import, 1.64),
        ("estimate", "`auditor estimate`", light_import, 2.17),
        ("verify", "`auditor verify`", light_import, None),
        ("report_json", "`auditor report --format json`", light_import, 4.0),
        ("report_html", "`auditor report`", light_import, 5.8),
        ("second_run", "A run whose answers are all recorded", heavy_import, 0.54),
    )
    return tuple(
        figure
        for name, label, reference, goal in rows
        for figure in (
            Figure(f"{label}, CPU {reference}", f"{name}.ratio", "×", goal),
            Figure(f"{label}, wall time {reference}", f"{name}.wall_ratio", "×"),
        )
    )


def _report_figures() -> tuple[Figure, ...]:
    """Rows of reports of three sizes."""
    sizes = (("small", "a thousand"), ("middle", "a hundred thousand"), ("large", "a million"))
    return tuple(
        figure
        for name, n_calls in sizes
        for figure in (
            Figure(f"Report of {n_calls} calls, time", f"{name}.seconds", "s"),
            Figure(f"Report of {n_calls} calls, CPU", f"{name}.cpu_seconds", "s", 40.0 if name == "large" else None),
            Figure(
                f"Report of {n_calls} calls, memory",
                f"{name}.peak_memory_mb",
                "MB",
                1050.0 if name == "large" else None,
            ),
        )
    )


SUITE = {
    "audit": Bench(
        "bench_audit.py",
        ("--samples", "20"),
        ("--samples", "2", "--turns", "1"),
        (
            Figure("An audit, CPU compared with a bare litellm loop", "cpu_ratio_to_bare_litellm", "×", max_goal=1.3),
            Figure("An audit, wall time compared with a bare litellm loop", "wall_ratio_to_bare_litellm", "×"),
            Figure("An audit, wall time compared with Inspect AI", "wall_ratio_to_inspect_ai", "×", max_goal=0.25),
            Figure("An audit, CPU compared with Inspect AI", "cpu_ratio_to_inspect_ai", "×"),
            Figure("CPU of the whole pipeline a call", "cpu_ms_per_call", "ms"),
        ),
    ),
    "call": Bench(
        "bench_call.py",
        (),
        ("--calls", "100", "--turns", "1"),
        (
            Figure("CPU of sending a call, compared with litellm's public function", "direct_ratio_to_public", "×"),
            Figure("CPU saved a call by preparing each kind of request once", "saved_by_kinds_ms", "ms"),
            Figure(
                "The saving compared with a call by litellm's public function and its defaults",
                "saved_by_kinds_share",
                "×",
                min_goal=0.1,
            ),
        ),
    ),
    "rate": Bench(
        "bench_rate.py",
        (),
        ("--calls", "1200", "--turns", "1"),
        (Figure("Share of the possible rate: 300 ms answers, 200 in flight", "share", "", min_goal=0.95),),
        turns=3,
    ),
    "rate of answers that differ": Bench(
        "bench_rate.py",
        ("--spread", "0.5"),
        ("--spread", "0.5", "--calls", "1200", "--turns", "1"),
        (Figure("Share of the possible rate: answers of 150 to 450 ms", "share", "", min_goal=0.95),),
        turns=3,
    ),
    "start": Bench(
        "bench_start.py",
        (),
        ("--turns", "1"),
        (Figure("`auditor --help`, wall time", "help.wall_s", "s", max_goal=0.3), *_start_figures()),
    ),
    "report": Bench(
        "bench_report.py",
        (),
        ("--sizes", "small,middle", "--turns", "1"),
        (
            *_report_figures(),
            Figure(
                "Time a call, a million compared with a hundred thousand", "large_to_middle.ratio", "×", max_goal=1.2
            ),
        ),
        turns=5,
    ),
    "verify": Bench(
        "bench_verify.py",
        (),
        ("--samples", "1", "--turns", "1"),
        (
            Figure("`auditor verify` of a hundred thousand calls, time", "verify_seconds", "s"),
            Figure("`auditor verify`, time compared with its report", "ratio", "×", max_goal=2.0),
            Figure("`auditor verify`, memory of a process", "verify_peak_memory_mb", "MB"),
        ),
        turns=3,
    ),
    "metrics": Bench(
        "bench_metrics.py",
        (),
        ("--scale", "0.05", "--turns", "1"),
        (
            Figure("SaGE, compared with loops", "semantic_graph_entropy.ratio", "× as fast"),
            Figure("Transitivity of 200 items, compared with networkx", "transitivity_200.ratio", "× as fast"),
        ),
    ),
    "embeddings": Bench(
        "bench_embeddings.py",
        (),
        ("--texts", "90", "--turns", "1"),
        (Figure("Embedding, CPU compared with plain `encode`", "cpu_ratio_to_plain", "×", max_goal=1.05),),
    ),
    "overlap": Bench(
        "bench_overlap.py",
        (),
        ("--calls", "80", "--turns", "1"),
        (
            Figure("2,000 reasonings, wall time with embeddings compared with none", "wall_ratio", "×", max_goal=1.1),
            Figure("99th percentile of the event loop's lag meanwhile", "lag_p99_ms", "ms", max_goal=20),
        ),
        turns=5,
    ),
    "overlap with an instant server": Bench(
        "bench_overlap.py",
        ("--instant",),
        ("--instant", "--calls", "80", "--turns", "1"),
        (
            Figure(
                "2,000 reasonings of an instant server, CPU compared with plain `encode` of all after the run",
                "cpu_ratio",
                "×",
                max_goal=1.0,
            ),
        ),
        turns=5,
    ),
    "limits": Bench(
        "bench_limits.py",
        ("--only", "steady"),
        ("--only", "steady", "--seconds", "20", "--turns", "1"),
        (
            Figure("CPU of 10,000 requests a minute, answers of 300 ms", "steady.cpu_per_wall", "cores", max_goal=1.0),
            Figure("Share of the permitted rate", "steady.share_of_permitted_rate", "", min_goal=0.95),
            Figure("Answers of the slowest of four equal models, compared with the fastest", "steady.min_share", "×"),
        ),
        turns=3,
    ),
    "limits after bursts": Bench(
        "bench_limits.py",
        ("--only", "bursts", "--seconds", "60"),
        ("--only", "bursts", "--seconds", "30", "--turns", "1"),
        (
            Figure(
                "Back to 95% of the permitted rate after 3 s of status 429", "bursts.max_recovery_s", "s", max_goal=10
            ),
        ),
        turns=3,
    ),
    "peers": Bench(
        "bench_peers.py",
        ("--form", "task", "--items", "1000"),
        ("--form", "task", "--items", "51", "--turns", "1"),
        _peer_figures(
            "2,000 calls",
            0.85,
            Figure(
                "Whole process, wall time compared with Inspect AI, 2,000 calls",
                "wall_ratio_to_inspect_ai",
                "×",
                max_goal=0.2,
            ),
            Figure("Whole process, wall time compared with DeepEval, 2,000 calls", "wall_ratio_to_deepeval", "×"),
        ),
    ),
    "peers with ten times the calls": Bench(
        "bench_peers.py",
        ("--form", "task", "--items", "10000", "--only", "auditor,promptfoo"),
        ("--form", "task", "--items", "102", "--turns", "1", "--only", "auditor,promptfoo"),
        _peer_figures("20,000 calls", 0.45),
        turns=3,
    ),
    "items": Bench(
        "bench_items.py",
        (),
        ("--items", "10,20,40", "--turns", "1"),
        (
            Figure("CPU of a call of a large audit, from 2,000 to 20,000 calls", "cpu_ms_per_call", "ms", max_goal=2.4),
            Figure("The same compared with a small audit, from 200 to 2,000 calls", "growth", "×", max_goal=1.1),
        ),
        turns=3,
    ),
    "machines": Bench(
        "check_machines.py",
        ("--only", "rate"),
        ("--only", "rate", "--workers", "1", "--samples", "2"),
        (
            Figure(
                "Answers recorded a second by the driver of Ray workers: 300 ms answers, 400 in flight",
                "answers_per_s",
                "",
                min_goal=1000,
            ),
            Figure(
                "CPU of the driver for each answer, with PostgreSQL on another host",
                "driver_cpu_ms",
                "ms",
                max_goal=0.5,
            ),
            Figure("CPU of the workers for each answer", "worker_cpu_ms", "ms"),
        ),
        turns=1,
    ),
    "tui": Bench(
        "bench_tui.py",
        (),
        ("--models", "8", "--ratings", "200", "--turns", "1"),
        (
            Figure(
                "Review of 100,000 conflicts: start to the first one, beside importing textual",
                "beside_textual_s",
                "s",
                max_goal=1.0,
            ),
            Figure("From a decision to the next conflict, median", "decision_to_next_ms.median", "ms", max_goal=50),
        ),
    ),
}
