"""The command `auditor demo`: a worked example with simulated models, whose properties are known."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from auditor.console.options import StorageOption, output_file, resolve_output
from auditor.console.output import format_command, format_storage_option, print_message, print_table

if TYPE_CHECKING:
    from auditor.config import AuditConfig
    from auditor.console.progress import RunProgress
    from auditor.reports.data.report_schema import Report

DEFAULT_SEED = 7
TRACES_PER_FAULT = 60
"""Traces with each planted fault: from 200 labelled traces on, a report compares the errors of judges."""


def demo(
    output: Annotated[Path | None, output_file("Where to write the report; default: NAME.html.")] = None,
    seed: Annotated[
        int, typer.Option("--seed", help="Seed of the simulated answers; another one makes another audit.")
    ] = DEFAULT_SEED,
    storage: StorageOption = None,
) -> None:
    """Audit simulated models with known properties.

    This takes half a minute, and needs no key, no network and no language model. The simulated models are audited as
    real ones are, and the properties that the report finds are compared with the known ones. The results say nothing
    about any real model, and every page says so. Some conflicts between models stay open, so that you can try `auditor
    review`.

    Example: auditor demo
    """
    from auditor.atomic_files import write_atomically
    from auditor.console.progress import RunProgress
    from auditor.errors import UsageError
    from auditor.reports.output import render_report

    config = build_demo_config(seed)
    output = resolve_output(output, f"{config.name}.html")
    if output.suffix != ".html":
        raise UsageError(f"--output: {output} is not an HTML file.", "Use a name that ends in .html.")
    print_message("Worked example with simulated models: their properties are known, and no real model is asked.")
    with RunProgress() as progress:
        report = run_worked_example(config, storage, progress)
    print_message(f"{progress.n_calls} simulated calls in {progress.elapsed_seconds:.0f} s; nothing was charged.")
    write_atomically(render_report(report, "html", command_options=format_storage_option(storage)), output)
    _print_findings(report)
    print_message(f"Report: {output.resolve()}")
    n_open = report.conflicts.states.get("open", 0)
    review_command = format_command("review", config.name, storage=storage)
    print_message(
        f"{n_open} of {report.conflicts.total} conflicts between models are open: the judges did not settle them. To "
        f"review them: {review_command}"
    )
    print_message("To audit real models: auditor init")


def build_demo_config(seed: int = DEFAULT_SEED) -> AuditConfig:
    """The configuration of the worked example: the file `demo.toml` of this package, with the seed in its name."""
    from auditor.config import load_config

    with resources.as_file(resources.files("auditor.cli") / "demo.toml") as path:
        config = load_config(path).with_folder(None)  # results are in the working folder, not in the package
    name = config.name if seed == DEFAULT_SEED else f"{config.name}-{seed}"
    return config.model_copy(update={"seed": seed, "name": name})


def run_worked_example(config: AuditConfig, storage: str | None, progress: RunProgress | None = None) -> Report:
    """Run an audit of simulated models, have its judges review traces with known faults, and return the report.

    Args:
        config: the configuration, as from `build_demo_config`.
        storage: database URL; None for the default.
        progress: receives every stage and answer.

    Raises:
        StorageError: the database cannot be used.
        RunInterrupted: a signal stopped the run.
    """
    from contextlib import nullcontext

    from auditor.agents.judge_experiments import run_fault_injection
    from auditor.experiments.declaration import ExperimentContext
    from auditor.experiments.stored_audit import JUDGES, SURVEY, ask_models
    from auditor.run import run_audit

    audit = run_audit(config, storage=storage, progress=progress, signals=progress is not None)
    context = ExperimentContext(storage, lambda **_: nullcontext(progress), handles_signals=progress is not None)
    ask_models(
        context,
        config.name,
        (JUDGES, SURVEY),
        lambda run_context: run_fault_injection(run_context, TRACES_PER_FAULT),
    )
    return audit.report()


def _print_findings(report: Report) -> None:
    """Print a table of the planted properties: in whom each was planted, with its estimate, and where it was found."""
    from auditor.cli.planted_findings import find_planted_properties
    from auditor.reports.number_format import format_interval, format_number

    rows: list[list[str]] = []
    for finding in find_planted_properties(report):
        label, found_in = finding.label, "as planted" if finding.is_found else ", ".join(finding.found_in) or "none"
        for name, (value, low, high) in finding.figures.items():
            rows.append([label, name, f"{format_number(value)} ({format_interval(low, high)})", found_in])
            label = found_in = ""  # shown once for each property
    print_table(["planted property (figure)", "planted in", "estimate (95% CI)", "found in"], rows, data=False)
