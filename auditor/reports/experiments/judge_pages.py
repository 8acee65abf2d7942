"""Experiments on judges as pages: planted faults, the order of two sides and own traces, drift, a hold-out."""

from __future__ import annotations

from collections.abc import Sequence

from auditor.reports.experiments.judge_experiments import HoldoutRow
from auditor.reports.experiments.page_building import (
    build_experiment_page,
    compare_interval_with,
    count_sentence,
    estimate_cells,
    plot_estimates,
)
from auditor.reports.pages.number_format import format_count
from auditor.reports.pages.report_page import PageSection, PageTable, ReportPage
from auditor.reports.pages.svg_charts import CORRELATION_AXIS, SHARE_AXIS, Axis
from auditor.reports.panel.schema import PanelReport, RestatementShiftRow

JUDGE_DIFFERENCE_AXIS = Axis(-1, 1, (-1, -0.5, 0, 0.5, 1), "difference", 0.0)
PREFERENCE_AXIS = Axis(SHARE_AXIS.low, SHARE_AXIS.high, SHARE_AXIS.ticks, "share", 0.5)


def fault_injection_page(audit: str, part: PanelReport) -> ReportPage:
    """Which judges notice faults that are known to be there."""
    told = [sentence for sentence in part.certificate if "planted" in sentence]
    method = (
        "Each fault is planted in traces; a judge's objections to them stand beside its objections to the same traces "
        "without the fault. A judge whose difference may be 0 cannot see the fault, and a panel of such judges repeats "
        "a shared bias instead of finding it. n counts traces."
    )
    grid = PageTable(
        "How often each judge objects.",
        ["Judge", "Fault", "With the fault", "Without it", "Difference", "n"],
        [[f.judge, f.fault, *estimate_cells(f.detected, f.false_alarms, f.difference)] for f in part.faults],
    )
    plots = [
        drawn
        for judge in dict.fromkeys(f.judge for f in part.faults)
        for drawn in plot_estimates(
            ((f.fault, f.difference) for f in part.faults if f.judge == judge),
            JUDGE_DIFFERENCE_AXIS,
            "difference",
            f"{judge}: objections with the fault less without",
        )
    ]
    chapter = PageSection("What judges notice", [method], plots=plots, tables=[grid])
    return build_experiment_page(audit, "planted faults", told[:1], [chapter], "No fault was planted.")


def judge_bias_page(audit: str, part: PanelReport) -> ReportPage:
    """Whether judges prefer a place, or themselves."""
    places = [p.judge for p in part.positions if compare_interval_with(p.first, 0.5)]
    milder = [s.judge for s in part.own_traces if compare_interval_with(s.preference) > 0]
    no_place, not_milder = "none is shown to prefer what stands first or last", "none is shown to be milder with itself"
    answers = (
        count_sentence(places, len(part.positions), "judges", "prefer a place", no_place),
        count_sentence(milder, len(part.own_traces), "judges", "are milder with themselves", not_milder),
    )
    kept = [chapter for chapter in (_position_section(part), _self_preference_section(part)) if chapter.tables[0].rows]
    return build_experiment_page(
        audit, "order, and own traces", answers, kept, "There was nothing to show to the judges."
    )


def _position_section(part: PanelReport) -> PageSection:
    how = (
        "Both sides of a conflict are shown in both orders, outside of any vote; 0.5 is no preference. n counts pairs."
    )
    grid = PageTable(
        "What each judge prefers.",
        ["Judge", "Prefers the same side in both orders", "Prefers the first", "n"],
        [[p.judge, *estimate_cells(p.stable, p.first)] for p in part.positions],
    )
    plots = plot_estimates(
        ((p.judge, p.first) for p in part.positions), PREFERENCE_AXIS, "share", "Share of answers for the first"
    )
    return PageSection("The order of two traces", [how], plots=plots, tables=[grid])


def _self_preference_section(part: PanelReport) -> PageSection:
    how = (
        "How much milder each judge is with itself than the others are with it, beside how mild it is with the others."
    )
    grid = PageTable(
        "What each judge says of its own traces, which no vote counts. n counts traces.",
        ["Judge", "Says VALID of its own", "Milder with itself", "n"],
        [[s.judge, *estimate_cells(s.valid, s.preference)] for s in part.own_traces],
    )
    plots = plot_estimates(((s.judge, s.preference) for s in part.own_traces), None, "difference", "Milder with itself")
    return PageSection("Judges on their own traces", [how], plots=plots, tables=[grid])


def judge_drift_page(first_audit: str, second_audit: str, rows: Sequence[RestatementShiftRow]) -> ReportPage:
    """Whether judges say the same later."""
    moved = [
        f"{r.judge} ({'milder' if compare_interval_with(r.shift) > 0 else 'stricter'})"
        for r in rows
        if compare_interval_with(r.shift)
    ]
    seen = [r for r in rows if r.shift.value is not None]
    answer = count_sentence(
        moved, len(seen), "judges", "have become another", "none is shown to have become milder or stricter"
    )
    grid = PageTable(
        f"Verdicts on the same traces, in {first_audit} and in {second_audit}; n counts traces.",
        ["Judge", "VALID before", "VALID after", "Verdicts changed", "Shift", "n"],
        [[r.judge, *estimate_cells(r.valid, r.restated, r.changed, r.shift)] for r in rows],
    )
    plots = plot_estimates(((r.judge, r.shift) for r in rows), None, "difference", "Share of VALID, later less before")
    chapter = PageSection("The same traces, later", plots=plots, tables=[grid])
    none = "No trace was judged by the same judge in both audits."
    return build_experiment_page(f"{first_audit} and {second_audit}", "drift of judges", [answer], [chapter], none)


def holdout_page(audit: str, rows: Sequence[HoldoutRow]) -> ReportPage:
    """Whether peer agreement tells anything about what was not seen."""
    method = (
        "Cells are split 80 to 20 many times: peer agreement on the larger part against r on the smaller, over models. "
        "And each model is left out in turn: what the line through the others says of it, against what it is."
    )
    grid = PageTable(
        "Peer agreement as a prediction of agreement with people.",
        ["Scores by", "Splits", "r on unseen cells", "Error of the mean of the others", "Error on unseen models", "n"],
        [
            [
                r.method,
                format_count(r.splits),
                *estimate_cells(r.unseen_cells, r.error_of_mean, r.error)[:-1],
                format_count(r.models),
            ]
            for r in rows
        ],
    )
    plots = plot_estimates(((r.method, r.unseen_cells) for r in rows), CORRELATION_AXIS, "r", "r on unseen cells")
    chapter = PageSection("Held out", [method], plots=plots, tables=[grid])
    none = "There are no verdicts to hold against people."
    return build_experiment_page(audit, "peers against people", [r.sentence for r in rows], [chapter], none)
