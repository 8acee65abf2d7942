"""Experiment commands: does a result depend on a choice, and how reliable are the judges?"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from auditor.cli import judge_experiments, semantic_experiments
from auditor.cli.options import JsonOption, PageFileOption, StorageOption
from auditor.cli.page_output import present_document, resolve_page_format

if TYPE_CHECKING:
    from auditor.config import AuditConfig
    from auditor.reports.data.sampling.experiment import SamplingExperiment

app = typer.Typer(name="experiment", help="Test whether another choice would change the result.", no_args_is_help=True)


@app.callback()
def experiment_group() -> None:
    """Test whether another choice would change the result."""


judge_experiments.register(app)
semantic_experiments.register(app)


@app.command("nonresponse")
def nonresponse(
    audit: Annotated[str, typer.Argument(metavar="AUDIT", help="The audit's name.")],
    output: PageFileOption = None,
    storage: StorageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Test whether the treatment of survey respondents without an answer changes the result.

    drop excludes them, neutral counts them as 0, low and high count them as never and as always acceptable, and impute
    imputes their answers within their country. The ranking of models is compared between the treatments.

    Example: auditor experiment nonresponse my-audit
    """
    from auditor.reports.data.agreement.nonresponse import run_nonresponse_experiment
    from auditor.reports.sections.experiments.nonresponse import build_nonresponse_document
    from auditor.run import resolve_storage_url
    from auditor.storage.database import open_database

    resolve_page_format(output)
    with open_database(resolve_storage_url(storage), create=False) as db:
        nonresponse_report = run_nonresponse_experiment(db, audit)
    document = build_nonresponse_document(audit, nonresponse_report)
    present_document(nonresponse_report.model_dump(mode="json"), document, output, as_json)


AskOption: TypeAlias = Annotated[
    bool, typer.Option("--ask", help="Ask models for what is missing; this may cost money.")
]


@app.command("samples")
def samples(
    audit: Annotated[str, typer.Argument(metavar="AUDIT", help="The audit's name.")],
    sample_counts: Annotated[
        list[int] | None, typer.Option("--k", min=1, help="Samples per cell; by default 3, 5 and 10.")
    ] = None,
    ask: AskOption = False,
    output: PageFileOption = None,
    storage: StorageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare accuracy, stability and cost with more or fewer samples per cell.

    Fewer samples are random subsets of the recorded ones. More samples need --ask: they are an audit of their own named
    AUDIT.kN, which asks only for what is not recorded yet.

    Example: auditor experiment samples my-audit --k 3 --k 5 --k 10 -o samples.html
    """
    from auditor.experiments.sampling import build_variant, load_sample_size_experiment
    from auditor.run import resolve_storage_url
    from auditor.storage.database import open_database

    resolve_page_format(output)
    sample_sizes, url = sorted(set(sample_counts or [3, 5, 10])), resolve_storage_url(storage)
    if ask:
        _run_variants(
            audit,
            url,
            lambda config: (
                [build_variant(config, samples=max(sample_sizes))] if max(sample_sizes) > config.direct.samples else []
            ),
        )
    with open_database(url, create=False) as db:
        experiment = load_sample_size_experiment(db, audit, sample_sizes)
    _present_sampling(experiment, output, as_json)


@app.command("direct-temperature")
def direct_temperature(
    audit: Annotated[str, typer.Argument(metavar="AUDIT", help="The audit's name.")],
    temperatures: Annotated[
        list[float] | None, typer.Option("--at", min=0, max=2, help="A temperature; by default 0, 0.7 and 1.")
    ] = None,
    ask: AskOption = False,
    output: PageFileOption = None,
    storage: StorageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare accuracy, stability and cost of direct scores at several temperatures.

    Temperatures other than the audit's need --ask; each is an audit of its own named AUDIT.tT.

    Example: auditor experiment direct-temperature my-audit --at 0 --at 0.7 --at 1 --ask
    """
    from auditor.experiments.sampling import build_variant, load_temperature_experiment, uses_temperature
    from auditor.run import resolve_storage_url
    from auditor.storage.database import open_database

    resolve_page_format(output)
    sorted_temperatures, url = (
        sorted(set([0.0, 0.7, 1.0] if temperatures is None else temperatures)),
        resolve_storage_url(storage),
    )
    if ask:
        _run_variants(
            audit,
            url,
            lambda config: [
                build_variant(config, temperature=temperature)
                for temperature in sorted_temperatures
                if not uses_temperature(config, temperature)
            ],
        )
    with open_database(url, create=False) as db:
        experiment = load_temperature_experiment(db, audit, sorted_temperatures)
    _present_sampling(experiment, output, as_json)


@app.command("savings")
def savings(
    audit: Annotated[str, typer.Argument(metavar="AUDIT", help="An audit with all answers and verdicts.")],
    target_width: Annotated[
        float, typer.Option("--target-width", min=0.001, max=2, help="Target width of the 95% CI of r.")
    ] = 0.1,
    output: PageFileOption = None,
    storage: StorageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Replay a complete audit under smaller sampling plans; no model is asked.

    Plans with fewer judges per trace, adaptive panels, sampling until samples agree, fewer cells, and combinations are
    compared with the full design: calls, r, tiers, peer agreement, conflicts. See docs/savings.md.

    Example: auditor experiment savings my-audit
    """
    from auditor.reports.data.cost.savings_study import run_savings_study
    from auditor.reports.sections.experiments.sampling import build_savings_document
    from auditor.run import resolve_storage_url
    from auditor.storage.database import open_database

    resolve_page_format(output)
    with open_database(resolve_storage_url(storage), create=False) as db:
        savings_study = run_savings_study(db, audit, target_width)
    document = build_savings_document(savings_study)
    present_document(savings_study.model_dump(mode="json"), document, output, as_json)


def _run_variants(audit: str, url: str, variants: Callable[[AuditConfig], list[AuditConfig]]) -> None:
    """Run variants of an audit, to get the answers that an experiment lacks.

    Args:
        audit: the audit's name.
        url: database URL.
        variants: makes the configurations of the variants from that of the audit.

    Raises:
        UsageError: the audit was imported, so that it has no configuration.
    """
    from auditor.cli.progress import RunProgress
    from auditor.errors import UsageError
    from auditor.run import run_audit
    from auditor.storage import audits
    from auditor.storage.database import open_database

    with open_database(url, create=False) as db:
        stored_config = audits.get_audit(db, audit).config
    if stored_config is None:
        raise UsageError(f"audit '{audit}' was imported: there is nothing to ask.", "Name one that was run.")
    from auditor.config import load_stored_config

    for config in variants(load_stored_config(stored_config)):
        with RunProgress(expected_reviews=0) as progress:
            run_audit(config, storage=url, progress=progress, signals=True)


def _present_sampling(experiment: SamplingExperiment, output: Path | None, as_json: bool) -> None:
    """Print a sampling experiment, or write its page to a file; see `present_document`."""
    from auditor.reports.sections.experiments.sampling import build_sampling_document

    present_document(experiment.model_dump(mode="json"), build_sampling_document(experiment), output, as_json)
