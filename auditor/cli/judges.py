"""Experiments on judges: planted faults, the order of two sides and own traces, drift between runs, a hold-out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from auditor.cli.options import AsJson, Storage
from auditor.cli.output import put_json, say, table

if TYPE_CHECKING:
    from auditor.experiments.judges import Experiment
    from auditor.reports.panel.parts import PanelPart

Audit = Annotated[str, typer.Argument(metavar="AUDIT", help="The audit's name.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    for command in (planted, bias, drift, holdout):
        app.command()(command)


def planted(
    audit: Audit,
    sample: Annotated[int, typer.Option("--sample", min=1, help="Traces for each kind of fault at most.")] = 30,
    storage: Storage = None,
    as_json: AsJson = False,
) -> None:
    """Plant known faults in traces, and count which judges notice.

    A Western norm in a trace on another culture, a score that contradicts the reasoning, another country's norms, and a
    step that does not follow. Each judge's detection rate stands beside its false alarms on the same traces without
    the fault: a panel that cannot tell them apart repeats a shared bias instead of finding it. Judges are asked, which
    may cost money; what was asked before is not asked again.

    Example: auditor experiment planted my-audit --sample 40
    """
    part = _ask(audit, "planted", sample, storage)
    if as_json:
        put_json([row.model_dump(mode="json") for row in part.faults])
        return
    _show(part, "Planted faults")
    say(next(sentence for sentence in part.certificate if "planted" in sentence))


def bias(
    audit: Audit,
    sample: Annotated[int, typer.Option("--sample", min=1, help="Conflicts, and traces of each judge, at most.")] = 30,
    storage: Storage = None,
    as_json: AsJson = False,
) -> None:
    """Ask whether judges prefer what is shown first, and whether they are milder with themselves.

    Both sides of conflicts are shown in both orders, and each judge rules on traces of its own; neither counts in any
    vote. Leniency, verbosity, preference for a family and order effects are in the report without any experiment.

    Example: auditor experiment bias my-audit
    """
    part = _ask(audit, "bias", sample, storage)
    if as_json:
        whole = part.model_dump(mode="json")
        put_json({name: whole[name] for name in ("positions", "own_traces")})
        return
    _show(part, "Two traces")
    _show(part, "Judges on their own")


def drift(
    audit: Audit,
    other: Annotated[str, typer.Argument(metavar="OTHER", help="The later run: another audit of the same traces.")],
    other_storage: Annotated[
        str | None, typer.Option("--other-storage", metavar="URL", help="Where OTHER is, if not beside AUDIT.")
    ] = None,
    storage: Storage = None,
    as_json: AsJson = False,
) -> None:
    """Compare each judge's verdicts in two runs on the same traces.

    Within one database equal questions have one recorded answer, so a second run that is to ask anew needs a database
    of its own.

    Example: auditor experiment drift may june --other-storage sqlite:///june.db
    """
    from auditor.reports.experiments import drift_rows
    from auditor.reports.pages.numbers import with_interval
    from auditor.run import storage_url
    from auditor.storage.database import open_database

    urls = (storage_url(storage), storage_url(other_storage or storage))
    with open_database(urls[0], create=False) as db, open_database(urls[1], create=False) as later:
        rows = drift_rows(db, audit, later, other)
    if as_json:
        put_json([row.model_dump(mode="json") for row in rows])
        return
    columns = ["judge", "VALID before", "VALID after", "shift", "verdicts changed", "traces"]
    table(
        columns,
        [[r.judge, *map(with_interval, (r.valid, r.restated, r.shift, r.changed)), r.valid.n] for r in rows],
    )
    if not rows:
        say("No trace was judged by the same judge in both audits.")


def holdout(
    audit: Audit,
    splits: Annotated[int, typer.Option("--splits", min=20, help="How often the cells are split.")] = 500,
    storage: Storage = None,
    as_json: AsJson = False,
) -> None:
    """Ask whether peer agreement predicts agreement with people on cells and models that were not seen.

    Cells are split 80 to 20 many times: peer agreement on the larger part against r on the smaller, over models. And
    each model is left out in turn: what the others' line says of it, against what it is. No model is asked anything.

    Example: auditor experiment holdout my-audit
    """
    from auditor.reports.experiments import holdout_experiment
    from auditor.reports.pages.numbers import with_interval
    from auditor.run import storage_url
    from auditor.storage.database import open_database

    with open_database(storage_url(storage), create=False) as db:
        rows = holdout_experiment(db, audit, splits)
    if as_json:
        put_json([row.model_dump(mode="json") for row in rows])
        return
    table(
        ["method", "models", "r on unseen cells", "error on unseen models", "error of the mean of the others"],
        [[r.method, r.models, *map(with_interval, (r.unseen_cells, r.error, r.error_of_mean))] for r in rows],
    )
    for row in rows:
        say(row.sentence)


def _ask(audit: str, experiment: Experiment, sample: int, storage: str | None) -> PanelPart:
    from auditor.cli.progress import RunProgress
    from auditor.experiments.judges import run_experiment
    from auditor.run import open_audit

    with RunProgress() as progress:
        run_experiment(audit, experiment, sample, storage=storage, progress=progress, signals=True)
    say(f"{progress.asked} calls, {progress.recorded} known already; cost {progress.cost}.")
    return open_audit(audit, storage=storage).report().panel


def _show(part: PanelPart, caption: str) -> None:
    from auditor.reports.pages.numbers import with_interval
    from auditor.reports.panel.tables import panel_tables

    for shown in panel_tables(part):
        if shown.caption.startswith(caption):
            rows: list[list[Any]] = [[f if isinstance(f, str) else with_interval(f) for f in row] for row in shown.rows]
            table([name.lower() for name in shown.head], rows)
