"""Experiment `planted`: which judges notice known faults in traces, and which obey instructions in them?"""

from __future__ import annotations

from typing import Annotated

import typer

from auditor.experiments.declaration import AuditArgument, ExperimentContext, ExperimentResult


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
    from auditor.agents.judge_experiments import (
        run_fault_injection,
        run_planted_instructions,
        run_planted_preferences,
    )
    from auditor.experiments.stored_audit import ask_judges
    from auditor.reports.sections.experiments.judges import build_fault_injection_document

    panel = ask_judges(context, audit, sample, run_fault_injection, run_planted_instructions, run_planted_preferences)
    return ExperimentResult([*panel.faults, *panel.obedience], build_fault_injection_document(audit, panel))
