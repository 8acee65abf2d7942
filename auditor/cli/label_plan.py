"""`auditor review --plan`: how many labels a wanted precision takes, and how precise the labels so far are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from auditor.console.options import find_latest_audit
from auditor.console.output import format_command, print_data, print_message, print_table

if TYPE_CHECKING:
    from auditor.reports.data.judge_quality.plan import LabelPlan

DEFAULT_HALF_WIDTH = 0.1
DEFAULT_DIFFERENCE = 0.1


def print_label_plan(storage: str | None, audit: str | None, half_width: float, difference: float) -> None:
    """Print the plan of an audit's labels.

    Args:
        storage: database URL; None for the default.
        half_width: wanted, of each model's corrected share of VALID.
        difference: between two models that is to be shown.
    """
    from auditor.errors import ReviewError
    from auditor.reports.data.judge_quality.plan import plan_labels
    from auditor.reports.data.source_loading import load_source
    from auditor.run import open_stored_audit

    name = audit or find_latest_audit(storage)
    with open_stored_audit(name, storage) as (db, stored_audit):
        source = load_source(db, stored_audit.name)
        if not len(source.votes):
            raise ReviewError(
                f"audit '{name}' has no verdicts of judges to measure.", "Run an audit whose models are reviewed."
            )
        plan = plan_labels(source, half_width, difference)
    rows = [[row.model, str(row.traces), str(row.labelled), str(row.needed)] for row in plan.models]
    print_table(["model", "traces", "labelled", "needed"], rows)
    print_data("\n".join(describe_plan(plan)) + "\n")
    print_message(
        "To draw this sample and label it: "
        f"{format_command('review', name, '--sample', str(plan.needed), storage=storage)}"
    )


def print_label_progress(storage: str | None, audit: str) -> None:
    """Print what the labels of an audit's traces show so far; nothing without labels."""
    from auditor.domain.labels import LabelKind
    from auditor.reports.data.judge_quality.plan import track_share
    from auditor.run import open_stored_audit
    from auditor.storage.labels import load_label_sample, load_labels

    with open_stored_audit(audit, storage) as (db, stored_audit):
        sample = load_label_sample(db, stored_audit.id, LabelKind.TRACE)
        labels = load_labels(db, stored_audit.id, LabelKind.TRACE)
    sequence = track_share(sample, labels) if labels else None
    if sequence is not None and sequence.n:
        print_message(
            f"So far, people find {100 * sequence.low:.0f}% to {100 * sequence.high:.0f}% of all traces VALID "
            f"({sequence.n} labels; confidence sequence, valid however often you look)."
        )


def describe_plan(plan: LabelPlan) -> list[str]:
    """The plan in sentences."""
    sd = f"standard deviation {plan.sd:.2f} of label minus verdict, {'measured' if plan.is_sd_measured else 'assumed'}"
    lines = [
        f"{plan.needed} labels in all give each model's corrected share of VALID a 95% CI of ± "
        f"{100 * plan.half_width:.0f} points for these traces ({sd}).",
        f"{plan.needed_for_difference} labels of each model show a difference of {100 * plan.difference:.0f} points "
        "between two models in 80% of samples, corrected for the number of pairs.",
    ]
    if plan.floor_elsewhere is not None:
        lines.append(
            f"For other countries and topics, no number of labels gives less than about ± "
            f"{100 * plan.floor_elsewhere:.1f} points."
        )
    if plan.floor_of_error is not None:
        lines.append(
            f"If the judges' errors vary over topics with a standard deviation of 10 points, {plan.topics} topics "
            f"leave ± {100 * plan.floor_of_error:.1f} points, whatever the number of labels."
        )
    if plan.low is not None and plan.high is not None:
        lines.append(_describe_sequence(plan, plan.low, plan.high))
    return lines


def _describe_sequence(plan: LabelPlan, low: float, high: float) -> str:
    """What the labels so far show, and whether labelling may stop."""
    advice = "You may stop labelling" if plan.may_stop else "Go on labelling"
    return (
        f"So far: {plan.labelled} labels in the order of the sample. People find {100 * low:.0f}% to {100 * high:.0f}% "
        f"of all traces VALID (confidence sequence, valid however often you look). {advice}: "
        f"± {50 * (high - low):.0f} points reached, ± {100 * plan.half_width:.0f} wanted."
    )
