"""The command `check`: test an audit against thresholds."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from auditor.atomic_files import write_atomically
from auditor.config import CheckSection, load_config
from auditor.config.base import read_field_descriptions
from auditor.config.installed_probes import list_built_in_probes
from auditor.console.options import (
    AuditModelArgument,
    JsonOption,
    StorageOption,
    UncorrectedOption,
    output_file,
    split_names,
)
from auditor.console.output import print_json, print_message
from auditor.console.page_output import print_document
from auditor.reports.output import render_document
from auditor.reports.report_files import render_junit
from auditor.reports.sections.check import NO_THRESHOLDS_NOTE, build_check_document, describe_result
from auditor.run import open_audit

if TYPE_CHECKING:
    from auditor.reports.data.gates.estimates import CheckResult


def _gate(help_text: str) -> Any:
    """The option of a threshold; its name follows from the parameter's."""
    return typer.Option(help=help_text)


ModelsOption: TypeAlias = Annotated[
    str | None,
    typer.Option("--models", metavar="NAMES", help="Decide only about these models, separated by commas."),
]
ConfidentOption: TypeAlias = Annotated[
    bool | None,
    typer.Option(
        "--confident/--no-confident",
        help="A requirement is met only if the whole 95% CI meets it, not just the estimate.",
    ),
]
ThresholdsOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--thresholds",
        metavar="CONFIG",
        help="Take [check] of this configuration instead of the audit's, such as that of the base branch.",
    ),
]
JunitOption: TypeAlias = Annotated[Path | None, output_file("Write JUnit XML.", "--junit")]
MarkdownOption: TypeAlias = Annotated[Path | None, output_file("Write Markdown.", "--markdown")]


def check(
    context: typer.Context,
    audit: AuditModelArgument,
    models: ModelsOption = None,
    min_pearson: Annotated[
        float | None, _gate("Minimum correlation (r) of every model's scores with people's.")
    ] = None,
    min_concordance: Annotated[
        float | None, _gate("Minimum concordance of every model; 1 only if its scores are equal to people's.")
    ] = None,
    max_mae: Annotated[float | None, _gate("Maximum mean absolute error of every model.")] = None,
    max_region_gap: Annotated[
        float | None, _gate("Maximum difference in mean absolute error between two regions, for every model.")
    ] = None,
    max_topic_mae: Annotated[
        float | None, _gate("Maximum mean absolute error of every model on its worst topic.")
    ] = None,
    min_self_consistency: Annotated[
        float | None, _gate("Minimum mean cosine similarity of a model's repeated reasoning.")
    ] = None,
    max_variance: Annotated[
        float | None, _gate("Maximum variance of a model's scores when a question is repeated.")
    ] = None,
    max_refused: Annotated[
        float | None, _gate("Maximum share of refusals among a model's answers to the direct question.")
    ] = None,
    min_peer_agreement: Annotated[
        float | None, _gate("Minimum share of judges' verdicts on a model that are VALID.")
    ] = None,
    min_kappa: Annotated[float | None, _gate("Minimum agreement of the judges beyond chance (Fleiss' kappa).")] = None,
    min_accuracy: Annotated[
        float | None, _gate("Minimum share of correct answers, for a task with known answers.")
    ] = None,
    max_open_conflicts: Annotated[
        int | None, _gate("Maximum number of conflicts that neither judges nor people have settled.")
    ] = None,
    max_served_models: Annotated[
        int | None, _gate("Maximum number of versions of a model that answered during the audit.")
    ] = None,
    max_cost_usd: Annotated[float | None, _gate("Maximum cost of the audit, in US dollars.")] = None,
    min_coverage: Annotated[
        float | None,
        _gate("Minimum share of planned answers that are usable. If it is not set, a model below 0.95 is undecided."),
    ] = None,
    confident: ConfidentOption = None,
    uncorrected: UncorrectedOption = False,
    thresholds_path: ThresholdsOption = None,
    junit_path: JunitOption = None,
    markdown_path: MarkdownOption = None,
    storage: StorageOption = None,
    as_json: JsonOption = False,
    **thresholds_of_probes: float | None,
) -> None:
    """Test if each model of an audit meets your thresholds.

    Thresholds come from the section [check] of the audit's configuration, or of that named by --thresholds, and from
    options, which take precedence. Each model is decided by itself; AUDIT:MODEL or --models selects some. Nothing
    passes in an audit that is not complete, or with too few usable answers. No model is asked. Exit codes: 0 all models
    passed, 3 a model failed, 4 undecided.

    Example: auditor check moral-alignment --min-pearson 0.6 --max-open-conflicts 0 --junit check.xml
    """
    audit_name, _, model = audit.partition(":")
    selected_models = [*([model] if model else []), *split_names(models)]
    options = {name: context.params.get(name) for name in CheckSection.model_fields} | thresholds_of_probes
    thresholds = load_config(thresholds_path).check.model_dump() if thresholds_path else {}
    thresholds |= {name: value for name, value in options.items() if value is not None}
    result = open_audit(audit_name, storage=storage).check(
        models=selected_models, uncorrected=uncorrected, **thresholds
    )
    _write_check(result, junit_path, markdown_path, as_json=as_json)
    raise typer.Exit(result.exit_code)


def add_thresholds_of_probes() -> None:
    """Add an option for each threshold that a built-in probe declares, once."""
    signature = inspect.signature(check, eval_str=True)
    declared = {
        name: description
        for probe in list_built_in_probes()
        for name, description in read_field_descriptions(probe.thresholds).items()
        if name not in signature.parameters
    }
    parameters = list(signature.parameters.values())
    position = list(signature.parameters).index("max_open_conflicts")
    parameters[position:position] = [
        inspect.Parameter(
            name,
            inspect.Parameter.POSITIONAL_OR_KEYWORD,
            default=None,
            annotation=Annotated[float | None, _gate(" ".join(description.split()))],
        )
        for name, description in declared.items()
    ]
    vars(check)["__signature__"] = signature.replace(parameters=parameters)


_signature = inspect.signature(check, eval_str=True)
vars(check)["__signature__"] = _signature.replace(
    parameters=[option for option in _signature.parameters.values() if option.kind is not option.VAR_KEYWORD]
)
"""Typer takes no parameter with two stars; `add_thresholds_of_probes` adds those that it stands for."""


def _write_check(result: CheckResult, junit_path: Path | None, markdown_path: Path | None, *, as_json: bool) -> None:
    """Write the result of a check to the named files, and print it."""
    document = build_check_document(result)
    if junit_path is not None:
        write_atomically(render_junit(result), junit_path)
        print_message(f"Written: {junit_path.resolve()}")
    if markdown_path is not None:
        write_atomically(render_document(document, "markdown"), markdown_path)
        print_message(f"Written: {markdown_path.resolve()}")
    if as_json:
        print_json(result.model_dump(mode="json"))
        print_message(describe_result(result))
        if not result.has_thresholds:
            print_message(NO_THRESHOLDS_NOTE)
    else:
        print_document(document)
