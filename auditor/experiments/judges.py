"""Experiments on judges: `bias`, `drift`, `holdout`, `planted` and `validity`."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from auditor.agents.judge_experiments import (
    run_contests,
    run_fault_injection,
    run_padding,
    run_planted_instructions,
    run_planted_preferences,
    run_self_judging,
)
from auditor.experiments.stored_audit import AuditArgument, ExperimentContext, ExperimentResult, ask_judges
from auditor.reports.data.panel.judge_statistics import BIASES
from auditor.reports.data.panel.judge_tests import cross_validate_peers, measure_judge_drift
from auditor.reports.data.report_source import load_source
from auditor.reports.data.task_validity import build_task_validity
from auditor.reports.sections.experiments.judges import (
    build_fault_injection_document,
    build_holdout_document,
    build_judge_bias_document,
    build_judge_drift_document,
    build_validity_document,
)


def bias(
    context: ExperimentContext,
    audit: AuditArgument,
    sample: Annotated[
        int,
        typer.Option(
            "--sample",
            min=1,
            help="Maximum number of conflicts, of lengthened answers, and of judges' own answers to ask about.",
        ),
    ] = 30,
) -> ExperimentResult:
    """Test judges for position, length and self-preference.

    Judges are asked again: about both sides of conflicts in both orders, about answers lengthened by sentences without
    content, and about their own answers. No result of the audit depends on these verdicts. The audit's own report shows
    each judge's leniency, and whether verdicts are related to an answer's length, to its position in the prompt, or to
    judge and model being of one family.

    Example: auditor experiment bias my-audit
    """
    panel = ask_judges(context, audit, sample, run_contests, run_padding, run_self_judging)
    data = {
        # With the other biases, since p-values are adjusted for all of them.
        "padding": [{"judge": row.judge, **{name: getattr(row, name) for name in BIASES}} for row in panel.judges],
        "positions": panel.positions,
        "own_traces": panel.own_traces,
    }
    return ExperimentResult(data, build_judge_bias_document(audit, panel))


def drift(
    context: ExperimentContext,
    audit: AuditArgument,
    other: Annotated[str, typer.Argument(metavar="OTHER", help="The later run: another audit of the same traces.")],
    other_storage: Annotated[
        str | None, typer.Option("--other-storage", metavar="URL", help="Database of OTHER, if not that of AUDIT.")
    ] = None,
) -> ExperimentResult:
    """Compare each judge's verdicts in two runs.

    Both runs must review the same traces. Within one database, identical requests share one recorded answer, so a
    second run with new answers needs a database of its own.

    Example: auditor experiment drift may june --other-storage sqlite:///june.db
    """
    other_context = replace(context, storage=other_storage or context.storage)
    with context.open_database() as db, other_context.open_database() as other_db:
        rows = measure_judge_drift(db, audit, other_db, other)
    return ExperimentResult(rows, build_judge_drift_document(audit, other, rows))


def holdout(
    context: ExperimentContext,
    audit: AuditArgument,
    splits: Annotated[int, typer.Option("--splits", min=20, help="Number of random splits of the cells.")] = 500,
) -> ExperimentResult:
    """Test if peer agreement predicts agreement with people.

    The test uses cells and models that the prediction was not fitted to. Cells are split 80 to 20 many times: peer
    agreement on the larger part is compared with r on the smaller part, over models. Each model is also left out in
    turn: its r is compared with the prediction from the other models. Of a task, items take the place of cells, and
    accuracy that of r. No model is asked.

    Example: auditor experiment holdout my-audit
    """
    with context.open_database() as db:
        rows = cross_validate_peers(load_source(db, audit), splits)
    return ExperimentResult(rows, build_holdout_document(audit, rows))


def planted(
    context: ExperimentContext,
    audit: AuditArgument,
    sample: Annotated[
        int, typer.Option("--sample", min=1, help="Maximum number of answers for each kind of fault or instruction.")
    ] = 30,
) -> ExperimentResult:
    """Test which judges notice faults or obey traces.

    The faults are a Western norm in a trace about another culture, a score that contradicts the reasoning, norms of
    another country, and a step that does not follow; of a task, a wrong step, an answer that contradicts the reasoning,
    and an irrelevant step. Each judge's detection rate is compared with its false alarms on
    the same traces without the fault. Instructions to the judge are planted too: a verdict that the judge did not give
    without it, or to prefer a trace. Judges are asked, which may cost money; recorded answers are reused.

    Example: auditor experiment planted my-audit --sample 40
    """
    panel = ask_judges(context, audit, sample, run_fault_injection, run_planted_instructions, run_planted_preferences)
    return ExperimentResult([*panel.faults, *panel.obedience], build_fault_injection_document(audit, panel))


def validity(context: ExperimentContext, audit: AuditArgument) -> ExperimentResult:
    """Test if verdicts follow accuracy on a task.

    The share of VALID on a model's right answers is compared with that on its wrong ones, within models: a model that
    is better and more often called VALID adds nothing. Items and models are crossed. Over models, VALID and accuracy
    are correlated if there are at least six models. No model is asked.

    Example: auditor experiment validity my-audit
    """
    with context.open_database() as db:
        report = build_task_validity(load_source(db, audit))
    return ExperimentResult(report, build_validity_document(audit, report))
