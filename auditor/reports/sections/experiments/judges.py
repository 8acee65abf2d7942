"""Documents of the experiments on judges: injected faults, biases, drift, a hold-out, and accuracy on a task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from auditor.metrics.intervals.estimate import Estimate
from auditor.reports.charts.interval_plot import CORRELATION_AXIS, SHARE_AXIS
from auditor.reports.data.panel.certificate import describe_fault_detection
from auditor.reports.data.panel.judge_tests import ACCURACY, HoldoutRow
from auditor.reports.data.panel.schema import PanelReport, RestatementShiftRow
from auditor.reports.data.task_validity import ModelValidityRow, TaskValidityReport
from auditor.reports.document import Document
from auditor.reports.number_format import pluralize
from auditor.reports.sections.experiments import (
    build_experiment_document,
    build_result_sections,
    count_finding,
    plot_estimates,
)
from auditor.reports.sections.panel import (
    ADJUSTED_FOR_JUDGES,
    build_fault_table,
    build_obedience_table,
    build_padding_table,
    build_position_table,
    build_self_review_table,
)
from auditor.reports.sections.phrasing import describe_estimate, tabulate

FAULT_AXIS = replace(CORRELATION_AXIS, title="Difference in the share of INVALID (higher is better)")
OBEDIENCE_AXIS = replace(SHARE_AXIS, title="Share of instructions obeyed (0 is best)")
PREFERENCE_AXIS = replace(SHARE_AXIS, title="Share of answers (0.5 is no preference)", reference=0.5)
VALID_DIFFERENCE_TITLE = "Difference in the share of VALID (0 is none)"


def build_fault_injection_document(audit: str, panel: PanelReport) -> Document:
    """Build the document on which judges detect injected faults."""
    table = build_fault_table(panel.faults)
    remark = (
        "Each judge reviews the same traces with and without an injected fault. A judge whose difference may be 0 is "
        "not shown to detect the fault. A panel of such judges repeats a shared bias instead of detecting it."
    )
    plots = [
        figure
        for i, judge in enumerate(dict.fromkeys(row.judge for row in panel.faults), start=1)
        for figure in plot_estimates(
            f"faults-of-judge-{i}",
            f"{judge}: share of INVALID with the fault minus without",
            [(row.fault, row.difference) for row in panel.faults if row.judge == judge],
            FAULT_AXIS,
            table_id=table.id,
        )
    ]
    sections = build_result_sections("faults", "Detection of injected faults", table, plots, remark)
    rates = [(row.judge, row.verdicts) for row in panel.obedience]
    obedience_table = build_obedience_table(panel.obedience)
    obedience_plots = plot_estimates(
        "obedience-plot", "Share of instructions obeyed", rates, OBEDIENCE_AXIS, table_id=obedience_table.id
    )
    sections += build_result_sections("obedience-results", "Planted instructions", obedience_table, obedience_plots)
    findings = [describe_fault_detection(panel)] if panel.faults else []
    return build_experiment_document(audit, "injected faults", findings, sections, "No fault was injected.")


def build_judge_bias_document(audit: str, panel: PanelReport) -> Document:
    """Build the document on padded traces, judges' position bias and self-preference."""
    # `first`: share of answers for the trace shown first; `preference`: leniency towards own traces.
    first_shares = [(row.judge, row.first) for row in panel.positions]
    preferences = [(row.judge, row.preference) for row in panel.own_traces]
    self_lenient = [
        row.judge for row in panel.own_traces if row.preference.is_significant and (row.preference.value or 0.0) > 0
    ]
    findings = [
        count_finding(
            [row.judge for row in panel.positions if row.first.is_significant],
            sum(share.value is not None for _, share in first_shares),
            "judge",
            "prefer one position",
        ),
        count_finding(
            self_lenient,
            sum(share.value is not None for _, share in preferences),
            "judge",
            "be more lenient with own traces",
        ),
        count_finding(
            [row.judge for row in panel.judges if row.padding.is_significant],
            sum(row.padding.value is not None for row in panel.judges),
            "judge",
            "change its verdicts when a trace is padded",
        ),
    ]
    position_table, own_trace_table = build_position_table(panel.positions), build_self_review_table(panel.own_traces)
    title = "Share of answers for the trace shown first"
    position_plots = plot_estimates("positions-plot", title, first_shares, PREFERENCE_AXIS, table_id=position_table.id)
    preference_plots = plot_estimates(
        "self-preference-plot", "Self-preference", preferences, VALID_DIFFERENCE_TITLE, table_id=own_trace_table.id
    )
    position_remark = "Both sides of a conflict are shown in both orders; these answers are not votes."
    preference_remark = (
        "How much more lenient each judge is with its own traces than the others are, relative to its leniency "
        "towards others’ traces. This is an association: judges do not see who wrote a trace, and their own traces "
        "differ in other ways too."
    )
    padding_table = build_padding_table(panel.judges)
    shifts = [(row.judge, row.padding) for row in panel.judges if row.padding.value is not None]
    padding_plots = plot_estimates(
        "padding-plot", "Share of VALID, padded minus as written", shifts, VALID_DIFFERENCE_TITLE, table_id="padding"
    )
    sections = [
        *build_result_sections("padded-traces", "Padded traces", padding_table, padding_plots),
        *build_result_sections("positions", "Position bias", position_table, position_plots, position_remark),
        *build_result_sections(
            "self-preference", "Self-preference", own_trace_table, preference_plots, preference_remark
        ),
    ]
    return build_experiment_document(
        audit,
        "padding, position bias and self-preference",
        findings,
        sections,
        "No trace could be shown to the judges.",
    )


def build_judge_drift_document(first_audit: str, second_audit: str, rows: Sequence[RestatementShiftRow]) -> Document:
    """Build the document on drift of judges between two audits."""
    finding = count_finding(
        [
            f"{row.judge} ({'more lenient' if (row.shift.value or 0.0) > 0 else 'stricter'})"
            for row in rows
            if row.shift.is_significant
        ],
        sum(row.shift.value is not None for row in rows),
        "judge",
        "have become more lenient or stricter",
    )
    table = tabulate(
        "judge-drift",
        "Drift of judges",
        f"Share of VALID verdicts on the same traces in {first_audit} (before) and in {second_audit} (after), share of "
        "verdicts that changed, and difference, after minus before (above 0: more lenient). "
        f"{ADJUSTED_FOR_JUDGES} n counts traces.",
        rows,
        RestatementShiftRow,
    )
    shifts = [(row.judge, row.shift) for row in rows]
    plots = plot_estimates(
        "drift-plot", "Share of VALID, after minus before", shifts, VALID_DIFFERENCE_TITLE, table_id=table.id
    )
    return build_experiment_document(
        f"{first_audit} and {second_audit}",
        "drift of judges",
        [finding],
        build_result_sections("drift", "Verdicts on the same traces", table, plots),
        "No trace was judged by the same judge in both audits.",
    )


def build_holdout_document(audit: str, rows: Sequence[HoldoutRow]) -> Document:
    """Build the document on how well the share of VALID predicts a quality on held-out cells or items, and models.

    The quality is agreement with people; or accuracy, if the rows are those of a task.
    """
    is_task = any(row.method == ACCURACY for row in rows)
    quality, figure, cells = ("accuracy", "accuracy", "items") if is_task else ("agreement with people", "r", "cells")
    remark = (
        f"Unseen {cells}: {cells} are split 80 to 20 many times. The share of VALID on the larger part is correlated "
        f"over models with {figure} on the smaller part. Unseen models: each model is left out in turn, and its "
        f"{figure} is predicted by a line through the other models."
    )
    table = tabulate(
        "holdout",
        "Hold-out",
        f"The share of VALID as a prediction of {quality}. r on unseen {cells}, over models: higher is better. Mean "
        "absolute error on unseen models: lower is better; the mean of the other models is the baseline.",
        rows,
        HoldoutRow,
    )
    unseen = f"r on unseen {cells}"
    columns = [replace(column, title=unseen) if column.key == "unseen_cells" else column for column in table.columns]
    table = replace(table, columns=columns)
    correlations = [(row.method, row.prediction.unseen_cells) for row in rows]
    plots = plot_estimates("holdout-results-plot", unseen, correlations, CORRELATION_AXIS, table_id=table.id)
    title = f"Prediction of unseen {cells} and models"
    sections = build_result_sections("holdout-results", title, table, plots, remark)
    return build_experiment_document(
        audit,
        "share of VALID and accuracy" if is_task else "share of VALID and people",
        [row.sentence for row in rows],
        sections,
        f"There are no verdicts to compare with {'right answers' if is_task else 'people'}.",
    )


def build_validity_document(audit: str, report: TaskValidityReport) -> Document:
    """Build the page: the difference within models first, then each model, then the correlation over models."""
    caption = (
        "Share of VALID among the verdicts on right and on wrong answers, with 95% CI over items, and the difference "
        "(above 0: judges find right answers valid more often). n counts verdicts; for accuracy, answers."
    )
    table = tabulate("task-validity", "Verdicts and accuracy", caption, report.models, ModelValidityRow)
    plots = plot_estimates(
        "task-validity-plot",
        "VALID of right minus wrong answers",
        [(row.model, row.difference) for row in report.models],
        CORRELATION_AXIS,
        table_id=table.id,
    )
    remark = (
        f"{pluralize(report.answers, 'answer')} to {pluralize(report.items, 'item')}. Within models: shares and "
        "accuracy are compared with the model’s own means, so that a difference between models counts for nothing. "
        "Items and models are crossed: the interval is for other items and other models like these, with fewer than "
        f"five models for other items only. {_describe_over_models(report)}"
    )
    sections = build_result_sections("task-validity-results", "Right and wrong answers", table, plots, remark)
    return build_experiment_document(
        audit, "verdicts and accuracy", [_describe_within(report.within)], sections, "There are no verdicts on answers."
    )


def _describe_within(within: Estimate) -> str:
    """Say whether verdicts follow accuracy within models."""
    if within.value is None:
        return f"It is not known whether verdicts follow accuracy: {within.reason}."
    figures = describe_estimate("difference in the share of VALID", within, "answer")
    if within.ci_low is None or within.ci_high is None:
        return f"It is not known whether verdicts follow accuracy within models ({figures})."
    if within.ci_low > 0:
        return f"Within models, right answers are called VALID more often than wrong ones ({figures})."
    if within.ci_high < 0:
        return f"Within models, wrong answers are called VALID more often than right ones ({figures})."
    return f"Within models, verdicts are not shown to follow accuracy ({figures})."


def _describe_over_models(report: TaskValidityReport) -> str:
    """The correlation of models' shares of VALID with their accuracy, or why there is none."""
    over_models = report.over_models
    if over_models.value is None:
        return f"Over models, no correlation of VALID with accuracy is given: {over_models.reason}."
    figures = describe_estimate("r", over_models, "model")
    return f"Over models, the share of VALID and accuracy: {figures}."
