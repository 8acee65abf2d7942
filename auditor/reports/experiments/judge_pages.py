"""Pages of the experiments on judges: planted faults, position and self-preference bias, drift, and a hold-out."""

from __future__ import annotations

from collections.abc import Sequence

from auditor.reports.data.panel.judge_experiments import HoldoutRow
from auditor.reports.data.panel.schema import PanelReport, RestatementShiftRow
from auditor.reports.experiments.page_building import (
    build_experiment_page,
    compare_interval_with,
    count_sentence,
    estimate_cells,
    plot_estimates,
)
from auditor.reports.number_format import format_count
from auditor.reports.pages.report_page import PageSection, PageTable, ReportPage
from auditor.reports.pages.svg_charts import CORRELATION_AXIS, SHARE_AXIS, Axis

JUDGE_DIFFERENCE_AXIS = Axis(-1, 1, (-1, -0.5, 0, 0.5, 1), "difference", 0.0)
PREFERENCE_AXIS = Axis(SHARE_AXIS.low, SHARE_AXIS.high, SHARE_AXIS.ticks, "share", 0.5)


def fault_injection_page(audit: str, panel: PanelReport) -> ReportPage:
    """Build the page on which judges notice planted faults."""
    # The certificate has sentences on several tests of the panel; those on faults say "planted".
    fault_sentences = [sentence for sentence in panel.certificate if "planted" in sentence]
    explanation = (
        "Each fault is planted in traces; a judge's objections to them stand beside its objections to the same traces "
        "without the fault. A judge whose difference may be 0 cannot see the fault, and a panel of such judges repeats "
        "a shared bias instead of finding it. n counts traces."
    )
    table = PageTable(
        "How often each judge objects.",
        ["Judge", "Fault", "With the fault", "Without it", "Difference", "n"],
        [
            [row.judge, row.fault, *estimate_cells(row.detected, row.false_alarms, row.difference)]
            for row in panel.faults
        ],
    )
    plots = [
        plot
        for judge in dict.fromkeys(row.judge for row in panel.faults)
        for plot in plot_estimates(
            ((row.fault, row.difference) for row in panel.faults if row.judge == judge),
            JUDGE_DIFFERENCE_AXIS,
            "difference",
            f"{judge}: objections with the fault less without",
        )
    ]
    section = PageSection("What judges notice", [explanation], plots=plots, tables=[table])
    return build_experiment_page(audit, "planted faults", fault_sentences[:1], [section], "No fault was planted.")


def judge_bias_page(audit: str, panel: PanelReport) -> ReportPage:
    """Build the page on judges' position bias and self-preference."""
    # `row.first`: share of answers for the side shown first; `row.preference`: how much milder with itself than others.
    position_biased = [row.judge for row in panel.positions if compare_interval_with(row.first, 0.5)]
    self_lenient = [row.judge for row in panel.own_traces if compare_interval_with(row.preference) > 0]
    no_position_bias, no_self_leniency = (
        "none is shown to prefer what stands first or last",
        "none is shown to be milder with itself",
    )
    headlines = (
        count_sentence(position_biased, len(panel.positions), "judges", "prefer a place", no_position_bias),
        count_sentence(self_lenient, len(panel.own_traces), "judges", "are milder with themselves", no_self_leniency),
    )
    sections = [
        section for section in (_position_section(panel), _self_preference_section(panel)) if section.tables[0].rows
    ]
    return build_experiment_page(
        audit, "order, and own traces", headlines, sections, "There was nothing to show to the judges."
    )


def _position_section(panel: PanelReport) -> PageSection:
    """Build the section on judges' preference for the side that is shown first; its table may have no rows."""
    explanation = (
        "Both sides of a conflict are shown in both orders, outside of any vote; 0.5 is no preference. n counts pairs."
    )
    table = PageTable(
        "What each judge prefers.",
        ["Judge", "Prefers the same side in both orders", "Prefers the first", "n"],
        [[row.judge, *estimate_cells(row.stable, row.first)] for row in panel.positions],
    )
    plots = plot_estimates(
        ((row.judge, row.first) for row in panel.positions), PREFERENCE_AXIS, "share", "Share of answers for the first"
    )
    return PageSection("The order of two traces", [explanation], plots=plots, tables=[table])


def _self_preference_section(panel: PanelReport) -> PageSection:
    """Build the section on how judges rule on their own traces; its table may have no rows."""
    explanation = (
        "How much milder each judge is with itself than the others are with it, beside how mild it is with the others."
    )
    table = PageTable(
        "What each judge says of its own traces, which no vote counts. n counts traces.",
        ["Judge", "Says VALID of its own", "Milder with itself", "n"],
        [[row.judge, *estimate_cells(row.valid, row.preference)] for row in panel.own_traces],
    )
    plots = plot_estimates(
        ((row.judge, row.preference) for row in panel.own_traces), None, "difference", "Milder with itself"
    )
    return PageSection("Judges on their own traces", [explanation], plots=plots, tables=[table])


def judge_drift_page(first_audit: str, second_audit: str, rows: Sequence[RestatementShiftRow]) -> ReportPage:
    """Build the page on drift of judges between two audits."""
    shifted_judges = [
        f"{row.judge} ({'milder' if compare_interval_with(row.shift) > 0 else 'stricter'})"
        for row in rows
        if compare_interval_with(row.shift)
    ]
    measured = [row for row in rows if row.shift.value is not None]
    headline = count_sentence(
        shifted_judges,
        len(measured),
        "judges",
        "have become another",
        "none is shown to have become milder or stricter",
    )
    table = PageTable(
        f"Verdicts on the same traces, in {first_audit} and in {second_audit}; n counts traces.",
        ["Judge", "VALID before", "VALID after", "Verdicts changed", "Shift", "n"],
        [[row.judge, *estimate_cells(row.valid, row.restated, row.changed, row.shift)] for row in rows],
    )
    plots = plot_estimates(
        ((row.judge, row.shift) for row in rows), None, "difference", "Share of VALID, later less before"
    )
    section = PageSection("The same traces, later", plots=plots, tables=[table])
    empty_headline = "No trace was judged by the same judge in both audits."
    return build_experiment_page(
        f"{first_audit} and {second_audit}", "drift of judges", [headline], [section], empty_headline
    )


def holdout_page(audit: str, rows: Sequence[HoldoutRow]) -> ReportPage:
    """Build the page on how well peer agreement predicts agreement with people on held-out cells and models."""
    explanation = (
        "Cells are split 80 to 20 many times: peer agreement on the larger part against r on the smaller, over models. "
        "And each model is left out in turn: what the line through the others says of it, against what it is."
    )
    table = PageTable(
        "Peer agreement as a prediction of agreement with people.",
        ["Scores by", "Splits", "r on unseen cells", "Error of the mean of the others", "Error on unseen models", "n"],
        [
            [
                row.method,
                format_count(row.splits),
                # Without the last cell, the n of the error: n is the number of models here.
                *estimate_cells(row.unseen_cells, row.error_of_mean, row.error)[:-1],
                format_count(row.models),
            ]
            for row in rows
        ],
    )
    plots = plot_estimates(((row.method, row.unseen_cells) for row in rows), CORRELATION_AXIS, "r", "r on unseen cells")
    section = PageSection("Held out", [explanation], plots=plots, tables=[table])
    empty_headline = "There are no verdicts to hold against people."
    return build_experiment_page(
        audit, "peers against people", [row.sentence for row in rows], [section], empty_headline
    )
