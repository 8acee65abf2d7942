"""Settings of the probe `logic` that published ones are compared with, where they follow from several keys."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from auditor.metrics.ranking_methods import PAIRS_GREEDY
from auditor.probes.logic.figures.schema import LogicReport
from auditor.probes.logic.settings import LogicProbe
from auditor.reports.data.report_schema import Report


def _describe_answers(probe: LogicProbe, _report: Report) -> str:
    """The form of an answer about two items."""
    if probe.answer == "probability":
        return "letter"
    return "JSON after reasoning" if probe.cot else "JSON"


def _describe_choices(probe: LogicProbe, _report: Report) -> str:
    """The answers that a model may give to any question."""
    asks_json = probe.answer == "structured" or probe.sample_answer == "cot"
    return "A, B, TIE" if asks_json and probe.form == "standard" else "A, B"


def _describe_pairs(probe: LogicProbe, _report: Report) -> str:
    """Which pairs of a set are compared."""
    return "all" if probe.max_pairs is None else f"at most {probe.max_pairs} of a set"


def _count_sets(_probe: LogicProbe, report: Report) -> int:
    """Number of sets of items."""
    return logic.sets if (logic := report.find(LogicReport)) else 0


def _describe_sizes(_probe: LogicProbe, report: Report) -> str:
    """Number of items of a set; of sets of several sizes, the smallest."""
    sizes = {row.items for row in logic.contradictions} if (logic := report.find(LogicReport)) else {0}
    return f"{min(sizes)}" if len(sizes) == 1 else f"{min(sizes)} or more"


def _count_starts(_probe: LogicProbe, report: Report) -> int:
    """Number of starting orders of PairS in each set; 0 where it was not computed."""
    rows = logic.rankings if (logic := report.find(LogicReport)) else []
    return next((row.runs for row in rows if row.method == PAIRS_GREEDY), 0)


LOGIC_SETTINGS: Mapping[str, Callable[[LogicProbe, Report], Any]] = {
    "logic.answer": _describe_answers,
    "logic.choices": _describe_choices,
    "logic.pairs": _describe_pairs,
    "logic.sets": _count_sets,
    "logic.items": _describe_sizes,
    "logic.starts": _count_starts,
}
"""Readers of the probe's settings and of the audit's report, by the keys that presets use."""
