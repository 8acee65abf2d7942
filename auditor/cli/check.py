"""The command `check`: test an audit against thresholds."""

from __future__ import annotations

import inspect
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias, get_type_hints

import typer
from pydantic import BaseModel

from auditor.atomic_files import write_files
from auditor.config import CheckSection, load_config
from auditor.config.base import read_field_descriptions
from auditor.config.installed_probes import list_built_in_probes
from auditor.console.options import (
    AuditModelArgument,
    JsonOption,
    StorageOption,
    UncorrectedOption,
    output_file,
    select_thresholds,
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
        callback=select_thresholds,
        help="Take [check] of this configuration instead of the audit's, such as that of the base branch.",
    ),
]
JunitOption: TypeAlias = Annotated[Path | None, output_file("Write JUnit XML.", "--junit")]
MarkdownOption: TypeAlias = Annotated[Path | None, output_file("Write Markdown.", "--markdown")]


def check(
    audit: AuditModelArgument,
    models: ModelsOption = None,
    confident: ConfidentOption = None,
    uncorrected: UncorrectedOption = False,
    thresholds_path: ThresholdsOption = None,
    junit_path: JunitOption = None,
    markdown_path: MarkdownOption = None,
    storage: StorageOption = None,
    as_json: JsonOption = False,
    **thresholds: float | None,
) -> None:
    """Test if each model of an audit meets your thresholds.

    Thresholds come from the section [check] of the audit's configuration, as it is now if AUDIT is its file, else as of
    the last run; or of that named by --thresholds; and from options, which take precedence. Each model is decided by
    itself; AUDIT:MODEL or --models selects some. Nothing passes in an audit that is not complete, or with too few
    usable answers. No model is asked. Exit codes: 0 all models passed, 3 a model failed, 4 undecided.

    Example: auditor check moral-alignment --min-pearson 0.6 --max-open-conflicts 0 --junit check.xml
    """
    audit_name, _, model = audit.partition(":")
    selected_models = [*([model] if model else []), *split_names("--models", models)]
    options = {name: value for name, value in {**thresholds, "confident": confident}.items() if value is not None}
    handle = open_audit(audit_name, storage=storage)
    if thresholds_path is not None:
        thresholds_of_file = load_config(thresholds_path, keeps_missing_probes=True).check
        handle = replace(handle, thresholds=thresholds_of_file)
    result = handle.check(models=selected_models, uncorrected=uncorrected, **options)
    _write_check(result, junit_path, markdown_path, as_json=as_json)
    raise typer.Exit(result.exit_code)


def _add_thresholds(section: type[BaseModel], successor: str) -> None:
    """Add an option for each threshold that a class declares, once, before the option `successor`."""
    signature = inspect.signature(check, eval_str=True)
    types = get_type_hints(section)
    added = [
        inspect.Parameter(
            name,
            inspect.Parameter.POSITIONAL_OR_KEYWORD,
            default=None,
            annotation=Annotated[types[name], typer.Option(help=" ".join(description.split()))],
        )
        for name, description in read_field_descriptions(section).items()
        if name not in signature.parameters and types[name] in (int | None, float | None)
    ]
    # Typer takes no parameter with two stars: these options are what it stands for.
    parameters = [option for option in signature.parameters.values() if option.kind is not option.VAR_KEYWORD]
    position = [option.name for option in parameters].index(successor)
    vars(check)["__signature__"] = signature.replace(
        parameters=[*parameters[:position], *added, *parameters[position:]]
    )


def add_thresholds_of_probes() -> None:
    """Add an option for each threshold that a built-in probe declares, once."""
    for probe in list_built_in_probes():
        _add_thresholds(probe.thresholds, "max_open_conflicts")


_add_thresholds(CheckSection, "confident")


def _write_check(result: CheckResult, junit_path: Path | None, markdown_path: Path | None, *, as_json: bool) -> None:
    """Write the result of a check to the named files, and print it."""
    document = build_check_document(result)
    text_by_path = {} if junit_path is None else {junit_path: render_junit(result)}
    if markdown_path is not None:
        text_by_path[markdown_path] = render_document(document, "markdown")
    write_files(text_by_path)
    for path in text_by_path:
        print_message(f"Written: {path.resolve()}")
    if as_json:
        print_json(result.model_dump(mode="json"))
        print_message(describe_result(result))
        if not result.has_thresholds:
            print_message(NO_THRESHOLDS_NOTE)
    else:
        print_document(document)
