"""Commands that compare audits, check thresholds and estimate costs: compare, check, estimate."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from auditor.cli.options import AuditArgument, JsonOption, PageFileOption, StorageOption
from auditor.cli.output import print_json, print_message
from auditor.cli.page_output import present_document, print_document, resolve_page_format

if TYPE_CHECKING:
    from auditor.reports.data.cost.forecast import CostForecast


def register(app: typer.Typer) -> None:
    """Add the commands to the command-line app."""
    app.command()(compare)
    app.command()(check)
    app.command()(estimate)


def compare(
    targets: Annotated[
        list[str], typer.Argument(metavar="A [B …]", help="Audits, or AUDIT:MODEL for one model of an audit.")
    ],
    methods: Annotated[list[str] | None, typer.Option("--method", help="Use only scores of this method.")] = None,
    judges: Annotated[
        list[str] | None, typer.Option("--judge", help="Given twice: compare two judges on the same traces.")
    ] = None,
    all_pairs: Annotated[
        bool, typer.Option("--all-pairs", help="Compare all pairs, not only those with the first.")
    ] = False,
    model_renames: Annotated[
        list[str] | None,
        typer.Option("--map", metavar="OLD=NEW", help="A model with another name in the later audits."),
    ] = None,
    max_flips: Annotated[
        int, typer.Option("--flips", min=0, help="Maximum number of changed verdicts and resolutions to list per pair.")
    ] = 50,
    output: PageFileOption = None,
    storage: StorageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare models on the cells they share: what improved or declined, where, and with which certainty.

    One audit: all pairs of its models. Several audits: each is compared with the first, model by model, such as before
    and after fine-tuning; AUDIT:MODEL selects one model, and --map gives a model's later name. Two judges: --judge ONE
    --judge OTHER, in one audit or across two. Changed verdicts and conflict resolutions are listed.

    Example: auditor compare before after --map base=tuned -o comparison.html
    """
    from auditor.reports.data.comparison.compare import compare_targets
    from auditor.reports.data.comparison.series_pairs import parse_target
    from auditor.reports.sections.comparison import build_comparison_document
    from auditor.run import resolve_storage_url
    from auditor.storage.database import open_database

    resolve_page_format(output)
    with open_database(resolve_storage_url(storage), create=False) as db:
        comparison = compare_targets(
            db,
            [parse_target(text) for text in targets],
            methods=methods or (),
            all_pairs=all_pairs,
            judges=judges or (),
            max_listed=max_flips,
            renamed_models=dict(map(_parse_model_rename, model_renames or ())),
        )
    present_document(comparison.model_dump(mode="json"), build_comparison_document(comparison), output, as_json)


def _parse_model_rename(text: str) -> tuple[str, str]:
    """The old and the new name in OLD=NEW."""
    from auditor.errors import UsageError

    old, equals, new = text.partition("=")
    if not (old and equals and new):
        raise UsageError(f"--map: '{text}' is not OLD=NEW.", "Write the two names with = between them.")
    return old, new


def check(
    audit: AuditArgument,
    min_pearson: Annotated[float | None, typer.Option(help="Minimum r of every model.")] = None,
    max_mae: Annotated[float | None, typer.Option(help="Maximum mean absolute error of every model.")] = None,
    max_region_gap: Annotated[
        float | None, typer.Option(help="Maximum difference of mean absolute error between regions.")
    ] = None,
    max_topic_mae: Annotated[float | None, typer.Option(help="Maximum mean absolute error on any topic.")] = None,
    min_self_consistency: Annotated[
        float | None, typer.Option(help="Minimum mean cosine similarity of a model's reasoning.")
    ] = None,
    max_variance: Annotated[float | None, typer.Option(help="Maximum variance of a model's samples.")] = None,
    min_peer_agreement: Annotated[
        float | None, typer.Option(help="Minimum share of valid verdicts on a model's reasoning.")
    ] = None,
    min_kappa: Annotated[float | None, typer.Option(help="Minimum Fleiss' kappa of the judges.")] = None,
    min_accuracy: Annotated[float | None, typer.Option(help="Minimum accuracy, for a task.")] = None,
    max_open_conflicts: Annotated[int | None, typer.Option(help="Maximum number of open conflicts.")] = None,
    max_served_models: Annotated[
        int | None, typer.Option(help="Maximum number of model versions that answered under one name.")
    ] = None,
    max_cost_usd: Annotated[float | None, typer.Option(help="Maximum cost of the audit, in US dollars.")] = None,
    min_coverage: Annotated[float | None, typer.Option(help="Minimum usable share; by default 0.95.")] = None,
    confident: Annotated[
        bool | None, typer.Option("--confident/--no-confident", help="Test the worse end of each 95% CI.")
    ] = None,
    junit_path: Annotated[Path | None, typer.Option("--junit", metavar="FILE", help="Write JUnit XML.")] = None,
    markdown_path: Annotated[Path | None, typer.Option("--markdown", metavar="FILE", help="Write Markdown.")] = None,
    storage: StorageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Test an audit against thresholds, for continuous integration; no model is asked.

    Thresholds come from the config's [check] and from options, which take precedence. An audit that is not complete, or
    with too few usable answers, cannot pass. Exit codes: 0 passed, 3 a gate failed, 4 no verdict.

    Example: auditor check moral-alignment --min-pearson 0.6 --max-open-conflicts 0 --junit check.xml
    """
    from auditor.atomic_files import write_atomically
    from auditor.reports.junit import render_junit
    from auditor.reports.output import render_document
    from auditor.reports.sections.check import build_check_document, describe_verdict
    from auditor.run import open_audit

    options = {
        "min_pearson": min_pearson, "max_mae": max_mae, "max_region_gap": max_region_gap,
        "max_topic_mae": max_topic_mae, "min_self_consistency": min_self_consistency, "max_variance": max_variance,
        "min_peer_agreement": min_peer_agreement, "min_kappa": min_kappa, "min_accuracy": min_accuracy,
        "max_open_conflicts": max_open_conflicts, "max_served_models": max_served_models,
        "max_cost_usd": max_cost_usd, "min_coverage": min_coverage, "confident": confident,
    }  # fmt: skip
    changes = {name: value for name, value in options.items() if value is not None}
    result = open_audit(audit, storage=storage).check(**changes)
    document = build_check_document(result)
    if junit_path is not None:
        write_atomically(render_junit(result), junit_path)
        print_message(f"Written: {junit_path.resolve()}")
    if markdown_path is not None:
        write_atomically(render_document(document, "markdown"), markdown_path)
        print_message(f"Written: {markdown_path.resolve()}")
    if as_json:
        print_json(result.model_dump(mode="json"))
        print_message(describe_verdict(result))
    else:
        print_document(document)
    raise typer.Exit(result.exit_code)


def estimate(
    config: Annotated[Path | None, typer.Argument(metavar="[CONFIG]", help="The audit's TOML or YAML file.")] = None,
    audit_name: Annotated[
        str | None,
        typer.Option(
            "--compare", metavar="AUDIT", help="Instead of CONFIG: an audit to compare with its recorded cost."
        ),
    ] = None,
    output: PageFileOption = None,
    storage: StorageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Estimate the calls, tokens and cost of an audit: low, expected and high, by model and stage.

    No model is asked, and no key is needed. Lengths come from the real prompts, and from recorded answers if there are
    enough.

    Example: auditor estimate audit.toml
    """
    from auditor import bootstrap
    from auditor.errors import UsageError

    bootstrap.prepare_environment()
    resolve_page_format(output)
    if (config is None) == (audit_name is None):
        raise UsageError("estimate needs either a config file or --compare AUDIT.", "Give one of the two.")
    from auditor.reports.sections.forecast import build_forecast_document

    forecast = (
        _estimate_past_audit(audit_name, storage)
        if audit_name is not None
        else _estimate_config(config or Path(), storage)
    )
    present_document(forecast.model_dump(mode="json"), build_forecast_document(forecast), output, as_json)


def _estimate_config(path: Path, storage: str | None) -> CostForecast:
    """Estimate the cost of a config's audit; recorded answers are used if the database exists and is not empty."""
    from auditor.config import load_config
    from auditor.cost_estimation.audit_estimate import estimate_audit
    from auditor.errors import EmptyStorageError
    from auditor.run import load_planned_survey, planned_cells, resolve_storage_url
    from auditor.storage.database import open_database, parse_sqlite_path

    config = load_config(path)
    survey = load_planned_survey(config)
    url = resolve_storage_url(storage, config)
    file = parse_sqlite_path(url)
    if file is not None and not file.exists():
        return estimate_audit(config, survey, planned_cells(survey))
    try:
        with open_database(url, create=False) as db:
            return estimate_audit(config, survey, planned_cells(survey), db)
    except EmptyStorageError:
        return estimate_audit(config, survey, planned_cells(survey))


def _estimate_past_audit(audit: str, storage: str | None) -> CostForecast:
    """Estimate the cost of an audit that was run, for comparison with its actual cost."""
    from auditor.cost_estimation.audit_estimate import estimate_past_audit
    from auditor.run import resolve_storage_url
    from auditor.storage.database import open_database

    with open_database(resolve_storage_url(storage), create=False) as db:
        return estimate_past_audit(db, audit)
