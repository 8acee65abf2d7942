"""The commands `auditor experiment NAME`: one for each experiment of the registry."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from pydantic_core import to_jsonable_python
from typer.models import ArgumentInfo

from auditor.console.options import JsonOption, PageFileOption, StorageOption, optional_audit, resolve_audit_name
from auditor.console.output import print_message
from auditor.console.page_output import present_document, resolve_page_format
from auditor.console.progress import RunProgress
from auditor.experiments.registry import EXPERIMENTS
from auditor.experiments.stored_audit import Experiment, ExperimentContext
from auditor.reports.number_format import pluralize

app = typer.Typer(
    name="experiment",
    help="Test whether other choices would change the results.",
    no_args_is_help=True,
)


def _run_experiment(
    experiment: Experiment,
    output: PageFileOption = None,
    storage: StorageOption = None,
    as_json: JsonOption = False,
    **arguments: Any,
) -> None:
    """Run an experiment with its own arguments and options, and print its result or write it to a file."""
    resolve_page_format(output)
    result = experiment(ExperimentContext(storage, open_progress, print_message, handles_signals=True), **arguments)
    present_document(to_jsonable_python(result.data), result.document, output, as_json)


@contextmanager
def open_progress(*, prints_cost: bool = False) -> Iterator[RunProgress]:
    """Show a progress bar, and then the number of calls and their cost if `prints_cost`."""
    with RunProgress() as progress:
        yield progress
    if prints_cost:
        print_message(
            f"{pluralize(progress.n_calls, 'call')}, {progress.n_recorded} already recorded; cost {progress.cost_text}."
        )


def _build_command(experiment: Experiment) -> Callable[..., None]:
    """A command with the parameters of an experiment but its context, and then those of `_run_experiment`."""

    def command(**arguments: Any) -> None:
        _run_experiment(experiment, **arguments)

    _, *declared = inspect.signature(experiment, eval_str=True).parameters.values()
    declared = _accept_configs(declared)
    _, *shared, _ = inspect.signature(_run_experiment, eval_str=True).parameters.values()
    command.__signature__ = inspect.Signature([*declared, *shared])  # type: ignore[attr-defined]  # typer reads it
    return command


def _accept_configs(parameters: Sequence[inspect.Parameter]) -> list[inspect.Parameter]:
    """Let AUDIT be a config's path; and be left out of a command without other arguments, since it is clear which."""
    arguments = {
        parameter.name: details
        for parameter in parameters
        for details in getattr(parameter.annotation, "__metadata__", ())
        if isinstance(details, ArgumentInfo)
    }
    annotations: dict[str, Any] = {}
    for name, details in arguments.items():
        if details.metavar == "AUDIT":
            annotations[name] = Annotated[
                str, typer.Argument(metavar="AUDIT", help=details.help, callback=resolve_audit_name)
            ]
    if list(arguments) == ["audit"]:
        help_text = f"{(arguments['audit'].help or '').rstrip('.')}; the most recent audit if left out."
        annotations["audit"] = Annotated[str, optional_audit(help_text)]
    return [
        parameter.replace(annotation=annotations.get(parameter.name, parameter.annotation)) for parameter in parameters
    ]


for _experiment in EXPERIMENTS:
    app.command(_experiment.__name__.replace("_", "-"), help=_experiment.__doc__)(_build_command(_experiment))
