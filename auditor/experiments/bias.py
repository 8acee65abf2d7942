"""Experiment `bias`: do judges prefer the first position, longer traces, or their own?"""

from __future__ import annotations

from typing import Annotated

import typer

from auditor.experiments.declaration import AuditArgument, ExperimentContext, ExperimentResult


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
    from auditor.agents.judge_experiments import run_contests, run_padding, run_self_judging
    from auditor.experiments.stored_audit import ask_judges
    from auditor.reports.sections.experiments.judges import build_judge_bias_document

    panel = ask_judges(context, audit, sample, run_contests, run_padding, run_self_judging)
    data = {
        "padding": [{"judge": row.judge, "padding": row.padding} for row in panel.judges],
        "positions": panel.positions,
        "own_traces": panel.own_traces,
    }
    return ExperimentResult(data, build_judge_bias_document(audit, panel))
