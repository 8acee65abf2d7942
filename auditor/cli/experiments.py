"""Commands that ask whether a result would be another under other choices, and what judges can be trusted with."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from auditor.cli import judge_experiments, semantic_experiments
from auditor.cli.options import AsJson, PageFile, Storage
from auditor.cli.page_output import form_of, present

if TYPE_CHECKING:
    from auditor.config import AuditConfig
    from auditor.reports.sampling.section import Settings

app = typer.Typer(name="experiment", help="Would another choice give another result?", no_args_is_help=True)


@app.callback()
def group() -> None:
    """Would another choice give another result?"""


judge_experiments.register(app)
semantic_experiments.register(app)


@app.command("nonresponse")
def nonresponse(
    audit: Annotated[str, typer.Argument(metavar="AUDIT", help="The audit's name.")],
    output: PageFile = None,
    storage: Storage = None,
    as_json: AsJson = False,
) -> None:
    """Compare the models with people under each treatment of respondents without an answer.

    drop leaves them out, neutral counts them as 0, low and high as never and as always acceptable, impute fills them in
    within their country. Whether the ranking of models holds under all is said at the end.

    Example: auditor experiment nonresponse my-audit
    """
    from auditor.reports.agreement.nonresponse import nonresponse_experiment
    from auditor.reports.experiments.nonresponse_page import nonresponse_page
    from auditor.run import storage_url
    from auditor.storage.database import open_database

    form_of(output)
    with open_database(storage_url(storage), create=False) as db:
        part = nonresponse_experiment(db, audit)
    present(part.model_dump(mode="json"), nonresponse_page(audit, part), output, as_json)


Ask: TypeAlias = Annotated[bool, typer.Option("--ask", help="Ask models for what is missing; this may cost money.")]


@app.command("samples")
def samples(
    audit: Annotated[str, typer.Argument(metavar="AUDIT", help="The audit's name.")],
    k: Annotated[list[int] | None, typer.Option("--k", min=1, help="Samples a cell; 3, 5 and 10 if not given.")] = None,
    ask: Ask = False,
    output: PageFile = None,
    storage: Storage = None,
    as_json: AsJson = False,
) -> None:
    """What more or fewer samples a cell buy: accuracy, stability and cost on one plot.

    Fewer samples are random subsets of the recorded ones. More are only asked for with --ask, as an audit of their own
    named AUDIT.kN, and of these only what is not recorded yet.

    Example: auditor experiment samples my-audit --k 3 --k 5 --k 10 -o samples.html
    """
    from auditor.experiments.sampling import experiment_samples, variant
    from auditor.run import storage_url
    from auditor.storage.database import open_database

    form_of(output)
    sizes, url = sorted(set(k or [3, 5, 10])), storage_url(storage)
    if ask:
        _ask(
            audit,
            url,
            lambda config: [variant(config, samples=max(sizes))] if max(sizes) > config.direct.samples else [],
        )
    with open_database(url, create=False) as db:
        found = experiment_samples(db, audit, sizes)
    _show(found, output, as_json)


@app.command("direct-temperature")
def direct_temperature(
    audit: Annotated[str, typer.Argument(metavar="AUDIT", help="The audit's name.")],
    at: Annotated[
        list[float] | None, typer.Option("--at", min=0, max=2, help="A temperature; 0, 0.7 and 1 if not given.")
    ] = None,
    ask: Ask = False,
    output: PageFile = None,
    storage: Storage = None,
    as_json: AsJson = False,
) -> None:
    """What the temperature of direct scores does to accuracy, stability and cost, on one plot.

    Other temperatures than the audit's own are only asked with --ask, each as an audit of its own named AUDIT.tT.

    Example: auditor experiment direct-temperature my-audit --at 0 --at 0.7 --at 1 --ask
    """
    from auditor.experiments.sampling import experiment_temperature, is_own, variant
    from auditor.run import storage_url
    from auditor.storage.database import open_database

    form_of(output)
    wanted, url = sorted(set([0.0, 0.7, 1.0] if at is None else at)), storage_url(storage)
    if ask:
        _ask(audit, url, lambda config: [variant(config, temperature=t) for t in wanted if not is_own(config, t)])
    with open_database(url, create=False) as db:
        found = experiment_temperature(db, audit, wanted)
    _show(found, output, as_json)


@app.command("savings")
def savings(
    audit: Annotated[str, typer.Argument(metavar="AUDIT", help="An audit of which everything was asked.")],
    target_width: Annotated[
        float, typer.Option("--target-width", min=0.001, max=2, help="Width of the interval of r to aim at.")
    ] = 0.1,
    output: PageFile = None,
    storage: Storage = None,
    as_json: AsJson = False,
) -> None:
    """What asking less would have changed: replayed from the answers of an audit, which asks nothing.

    Fewer judges a trace, adaptive panels, sampling until samples agree, cells until r is known closely, and all of them
    are set beside asking everything: calls, r, tiers, peer agreement, conflicts. See docs/savings.md.

    Example: auditor experiment savings my-audit
    """
    from auditor.reports.cost.savings_study import page_of, study
    from auditor.run import storage_url
    from auditor.storage.database import open_database

    form_of(output)
    with open_database(storage_url(storage), create=False) as db:
        found = study(db, audit, target_width)
    present(found.model_dump(mode="json"), page_of(found), output, as_json)


def _ask(audit: str, url: str, variants: Callable[[AuditConfig], list[AuditConfig]]) -> None:
    """Run the audits that an experiment needs."""
    from auditor.cli.progress import RunProgress
    from auditor.errors import UsageError
    from auditor.run import run_audit
    from auditor.storage import audits
    from auditor.storage.database import open_database

    with open_database(url, create=False) as db:
        stored = audits.get(db, audit).config
    if stored is None:
        raise UsageError(f"audit '{audit}' was imported: there is nothing to ask.", "Name one that was run.")
    from auditor.config import AuditConfig

    for config in variants(AuditConfig.model_validate_json(stored)):
        with RunProgress(judged=0) as progress:
            run_audit(config, storage=url, progress=progress, signals=True)


def _show(found: Settings, output: Path | None, as_json: bool) -> None:
    from auditor.reports.sampling.page import page_of

    present(found.model_dump(mode="json"), page_of(found), output, as_json)
