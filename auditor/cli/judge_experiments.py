"""Experiments on judges: planted faults, position and self-preference bias, drift between runs, and a hold-out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from auditor.cli.options import JsonOption, PageFileOption, StorageOption
from auditor.cli.output import print_message
from auditor.cli.page_output import present_document, resolve_page_format

if TYPE_CHECKING:
    from auditor.experiments.judge_tests import JudgeExperiment
    from auditor.reports.data.panel.schema import PanelReport

AuditArgument = Annotated[str, typer.Argument(metavar="AUDIT", help="The audit's name.")]


def register(app: typer.Typer) -> None:
    """Add the commands to the command-line app."""
    for command in (planted, bias, drift, holdout):
        app.command()(command)


def planted(
    audit: AuditArgument,
    sample: Annotated[
        int, typer.Option("--sample", min=1, help="Maximum number of traces for each kind of fault.")
    ] = 30,
    output: PageFileOption = None,
    storage: StorageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Test which judges notice known faults in traces.

    The faults are a Western norm in a trace on another culture, a score that contradicts the reasoning, norms of
    another country, and a step that does not follow. Each judge's detection rate is compared with its false alarms on
    the same traces without the fault. Judges are asked, which may cost money; recorded answers are reused.

    Example: auditor experiment planted my-audit --sample 40
    """
    from auditor.reports.sections.experiments.judges import build_fault_injection_document

    resolve_page_format(output)
    panel_report = _run_judge_experiment(audit, "planted", sample, storage)
    present_document(
        [row.model_dump(mode="json") for row in panel_report.faults],
        build_fault_injection_document(audit, panel_report),
        output,
        as_json,
    )


def bias(
    audit: AuditArgument,
    sample: Annotated[
        int, typer.Option("--sample", min=1, help="Maximum number of conflicts, of padded traces, and of own traces.")
    ] = 30,
    output: PageFileOption = None,
    storage: StorageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Test whether judges prefer the first position, longer traces, or their own.

    Both sides of conflicts are shown in both orders, traces are padded with sentences that have no content, and each
    judge reviews traces of its own; none of these counts in any vote. Leniency compared with the other judges, and
    associations with length, family and order, are in the report without an experiment.

    Example: auditor experiment bias my-audit
    """
    from auditor.reports.sections.experiments.judges import build_judge_bias_document

    resolve_page_format(output)
    panel_report = _run_judge_experiment(audit, "bias", sample, storage)
    panel_fields = panel_report.model_dump(mode="json")
    present_document(
        {
            "padding": [{"judge": row["judge"], "padding": row["padding"]} for row in panel_fields["judges"]],
            "positions": panel_fields["positions"],
            "own_traces": panel_fields["own_traces"],
        },
        build_judge_bias_document(audit, panel_report),
        output,
        as_json,
    )


def drift(
    audit: AuditArgument,
    other: Annotated[str, typer.Argument(metavar="OTHER", help="The later run: another audit of the same traces.")],
    other_storage: Annotated[
        str | None, typer.Option("--other-storage", metavar="URL", help="Database of OTHER, if not that of AUDIT.")
    ] = None,
    output: PageFileOption = None,
    storage: StorageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare each judge's verdicts on the same traces in two runs.

    In one database equal requests share one recorded answer. A second run with new answers needs a database of its
    own.

    Example: auditor experiment drift may june --other-storage sqlite:///june.db
    """
    from auditor.reports.data.panel.judge_experiments import measure_judge_drift
    from auditor.reports.sections.experiments.judges import build_judge_drift_document
    from auditor.run import resolve_storage_url
    from auditor.storage.database import open_database

    resolve_page_format(output)
    urls = (resolve_storage_url(storage), resolve_storage_url(other_storage or storage))
    with open_database(urls[0], create=False) as db, open_database(urls[1], create=False) as other_db:
        rows = measure_judge_drift(db, audit, other_db, other)
    present_document(
        [row.model_dump(mode="json") for row in rows], build_judge_drift_document(audit, other, rows), output, as_json
    )


def holdout(
    audit: AuditArgument,
    splits: Annotated[int, typer.Option("--splits", min=20, help="Number of random splits of the cells.")] = 500,
    output: PageFileOption = None,
    storage: StorageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Test whether peer agreement predicts agreement with people on unseen cells and unseen models.

    Cells are split 80 to 20 many times: peer agreement on the larger part is compared with r on the smaller part, over
    models. Each model is also left out in turn: its r is compared with the prediction from the other models. No model
    is asked.

    Example: auditor experiment holdout my-audit
    """
    from auditor.reports.data.panel.judge_experiments import run_holdout_experiment
    from auditor.reports.sections.experiments.judges import build_holdout_document
    from auditor.run import resolve_storage_url
    from auditor.storage.database import open_database

    resolve_page_format(output)
    with open_database(resolve_storage_url(storage), create=False) as db:
        rows = run_holdout_experiment(db, audit, splits)
    present_document(
        [row.model_dump(mode="json") for row in rows], build_holdout_document(audit, rows), output, as_json
    )


def _run_judge_experiment(audit: str, experiment: JudgeExperiment, sample: int, storage: str | None) -> PanelReport:
    """Ask the judges what an experiment needs, print calls and cost, and return the report's part on the panel."""
    from auditor.cli.progress import RunProgress
    from auditor.experiments.judge_tests import run_judge_experiment
    from auditor.run import open_audit

    with RunProgress() as progress:
        run_judge_experiment(audit, experiment, sample, storage=storage, progress=progress, signals=True)
    print_message(f"{progress.n_calls} calls, {progress.n_recorded} known already; cost {progress.cost_text}.")
    return open_audit(audit, storage=storage).report().panel
