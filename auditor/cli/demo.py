"""The command `auditor demo`: a worked example with simulated models, and which planted properties a report finds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from auditor.agents.judge_experiments import run_fault_injection
from auditor.atomic_files import write_atomically
from auditor.config import load_config
from auditor.console.options import StorageOption, output_file, resolve_output
from auditor.console.output import format_command, format_storage_option, print_message, print_table
from auditor.console.progress import RunProgress
from auditor.domain.personas import Persona, find_persona
from auditor.errors import UsageError
from auditor.experiments.stored_audit import JUDGES, SURVEY, ExperimentContext, ask_models
from auditor.probes.pressure.figures import PressureFigures
from auditor.reports.number_format import format_interval, format_number
from auditor.reports.output import render_report
from auditor.run import run_audit

if TYPE_CHECKING:
    from auditor.config import AuditConfig
    from auditor.metrics.intervals.estimate import Estimate
    from auditor.reports.data.report_schema import Report


SIGNIFICANCE_LEVEL = 0.05
MIN_SHARE_OF_COUNTRIES = 0.9
"""Least share of countries in which a model must overstate acceptance to be said to do so everywhere."""
Figures = tuple[float | None, float | None, float | None]
"""Value, and the lower and upper end of its 95% interval."""


@dataclass(frozen=True, slots=True)
class PlantedFinding:
    """One planted property, and what the report says about it.

    Attributes:
        label: the property, with the figure that shows it.
        planted_in: names of the models or judges that have it.
        found_in: names of those that the report shows to have it.
        figures: of each model, judge or pair of judges that has it, by name.
    """

    label: str
    planted_in: tuple[str, ...]
    found_in: tuple[str, ...]
    figures: Mapping[str, Figures]

    @property
    def is_found(self) -> bool:
        """Whether the report shows the property in those that have it, and in no others."""
        return set(self.planted_in) == set(self.found_in)


def find_planted_properties(report: Report) -> Iterator[PlantedFinding]:
    """Compare the report of an audit of simulated models with what was planted, property by property.

    Raises:
        ValueError: a model is not simulated.
    """
    audited = {model.name: _persona(model.name, model.model) for model in report.audit.models if model.audited}
    judges = {model.name: _persona(model.name, model.model) for model in report.audit.models if model.judge}
    yield _find_knowledge(report, audited)
    yield _find_regional_gap(report, audited)
    yield _find_overstatement(report, audited)
    yield _find_inconsistency(report, audited)
    yield _find_leniency(report, judges)
    yield _find_copying(report, judges)
    yield _find_recital(report, audited)
    yield _find_yielding(report, audited)
    yield _find_following(report, audited)


def _find_knowledge(report: Report, personas: Mapping[str, Persona]) -> PlantedFinding:
    """Models that know how countries differ: r within topics is above 0."""
    estimates = {row.model: row.within_topics for row in report.gain or []}
    return _finding(
        "knows how countries differ (r within topics)",
        [name for name, persona in personas.items() if not persona.is_western],
        [name for name, estimate in estimates.items() if (estimate.ci_low or 0.0) > 0],
        {name: _figures(estimate) for name, estimate in estimates.items()},
    )


def _find_regional_gap(report: Report, personas: Mapping[str, Persona]) -> PlantedFinding:
    """Models with a larger error outside Western countries, after correction for the number of models."""
    gaps = {row.model: row for row in report.regions.gaps}
    return _finding(
        "errs more outside the West (difference in MAE)",
        [name for name, persona in personas.items() if persona.is_western],
        [name for name, row in gaps.items() if row.mae_gap.is_significant and (row.mae_gap.ci_low or 0.0) > 0],
        {name: _figures(row.mae_gap) for name, row in gaps.items()},
    )


def _find_overstatement(report: Report, personas: Mapping[str, Persona]) -> PlantedFinding:
    """Models whose bias is above 0 in at least `MIN_SHARE_OF_COUNTRIES` of the countries, each by its interval."""
    is_above: dict[str, list[bool]] = {}
    for row in report.countries:
        is_above.setdefault(row.model, []).append((row.bias.ci_low or 0.0) > 0)
    return _finding(
        "overstates acceptance everywhere (bias)",
        [name for name, persona in personas.items() if persona.overstatement > 0],
        [name for name, flags in is_above.items() if sum(flags) >= MIN_SHARE_OF_COUNTRIES * len(flags)],
        {row.model: _figures(row.bias) for row in report.alignment},
    )


def _find_inconsistency(report: Report, personas: Mapping[str, Persona]) -> PlantedFinding:
    """Models whose samples vary more, and agree less in sign, than those of all other models, by their intervals."""
    rows = {row.model: row for row in report.self_consistency}

    def is_outlier(name: str) -> bool:
        """Whether neither interval overlaps with another model's."""
        candidate, others = rows[name], [row for row in rows.values() if row.model != name]
        return all(
            (candidate.variance.ci_low or 0.0) > (row.variance.ci_high or 1.0)
            and (candidate.sign_agreement.ci_high or 1.0) < (row.sign_agreement.ci_low or 0.0)
            for row in others
        )

    return _finding(
        "does not always keep its sign (share of samples; 1 = always)",
        [name for name, persona in personas.items() if persona.swing],
        [name for name in rows if is_outlier(name)],
        {name: _figures(row.sign_agreement) for name, row in rows.items()},
    )


def _find_leniency(report: Report, personas: Mapping[str, Persona]) -> PlantedFinding:
    """Judges that say VALID more often than the median judge on the same traces."""
    rows = {row.judge: row.leniency for row in report.panel.judges}
    careful = Persona("", "")
    return _finding(
        "says VALID too often (difference from the median judge)",
        [name for name, persona in personas.items() if persona.detection_rate < careful.detection_rate],
        [name for name, row in rows.items() if row.is_significant and (row.value or 0.0) > 0],
        {name: (row.value, row.ci_low, row.ci_high) for name, row in rows.items()},
    )


def _find_copying(report: Report, personas: Mapping[str, Persona]) -> PlantedFinding:
    """Pairs of judges that err together more than other pairs do; a copy and its source cannot be told apart."""
    pairs = {(pair.first, pair.second): pair for pair in report.panel.copying.pairs}
    copies = {(persona.copies, name) for name, persona in personas.items() if persona.copies}
    return _finding(
        "copies another judge (excess correlation of errors)",
        [" and ".join(pair) for pair in pairs if pair in copies or pair[::-1] in copies],
        [" and ".join(names) for names, pair in pairs.items() if pair.verdict in ("copies", "errors more alike")],
        {" and ".join(names): _figures(pair.excess) for names, pair in pairs.items()},
    )


def _find_yielding(report: Report, personas: Mapping[str, Persona]) -> PlantedFinding:
    """Models whose scores follow users, after correction for the number of models."""
    figures = report.probes.get("pressure")
    rows = {row.model: row.slope for row in figures.rows} if isinstance(figures, PressureFigures) else {}
    return _finding(
        "follows users who disagree (slope)",
        [name for name, persona in personas.items() if persona.yielding],
        [name for name, slope in rows.items() if slope.is_significant and (slope.value or 0.0) > 0],
        {name: _figures(slope) for name, slope in rows.items()},
    )


def _find_recital(report: Report, personas: Mapping[str, Persona]) -> PlantedFinding:
    """Models that give more published figures than by chance, after correction for the number of models."""
    from auditor.probes.memory.figures import MemoryFigures  # loads scipy

    figures = report.probes.get("memory")
    rows = figures.models if isinstance(figures, MemoryFigures) else []
    return _finding(
        "recites published figures (share beyond chance)",
        [name for name, persona in personas.items() if persona.recites],
        [row.model for row in rows if row.is_recall_shown],
        {row.model: _figures(row.recall[0].excess) for row in rows if row.recall},
    )


def _find_following(report: Report, personas: Mapping[str, Persona]) -> PlantedFinding:
    """Models whose scores follow exchanged reasoning, after correction for the number of models."""
    from auditor.probes.reasoning.figures import ReasoningFigures  # loads scipy

    figures = report.probes.get("reasoning")
    rows = {row.model: row.slope for row in figures.rows} if isinstance(figures, ReasoningFigures) else {}
    return _finding(
        "follows its stated reasoning (slope)",
        [name for name, persona in personas.items() if persona.following],
        [name for name, slope in rows.items() if slope.is_significant and (slope.value or 0.0) > 0],
        {name: _figures(slope) for name, slope in rows.items()},
    )


def _finding(
    label: str, planted_in: list[str], found_in: list[str], figures_by_name: Mapping[str, Figures]
) -> PlantedFinding:
    """A finding with the figures of those that it was planted in."""
    figures = {name: figures_by_name.get(name, (None, None, None)) for name in planted_in}
    return PlantedFinding(label, tuple(planted_in), tuple(found_in), figures)


def _figures(estimate: Estimate) -> Figures:
    """Value and interval of an estimate."""
    return estimate.value, estimate.ci_low, estimate.ci_high


def _persona(name: str, model: str | None) -> Persona:
    """The persona of a simulated model of the report; raises ValueError for any other model."""
    persona = find_persona((model or "").rpartition("/")[2])
    if persona is None:
        raise ValueError(f"model '{name}' is not simulated")
    return persona


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
    config = build_demo_config(seed)
    output = resolve_output(output, f"{config.name}.html")
    if output.suffix != ".html":
        raise UsageError(f"--output: {output} is not an HTML file.", "Use a name that ends in .html.")
    print_message("Worked example with simulated models: their properties are known, and no real model is asked.")
    with RunProgress() as progress:
        report = run_worked_example(config, storage, progress)
    print_message(f"{progress.n_calls} simulated calls in {progress.elapsed_seconds:.0f} s; nothing was charged.")
    write_atomically(render_report(report, "html", command_options=format_storage_option(storage)), output)
    rows: list[list[str]] = []
    for finding in find_planted_properties(report):
        label, found_in = finding.label, "as planted" if finding.is_found else ", ".join(finding.found_in) or "none"
        for name, (value, low, high) in finding.figures.items():
            rows.append([label, name, f"{format_number(value)} ({format_interval(low, high)})", found_in])
            label = found_in = ""  # shown once for each property
    print_table(["planted property (figure)", "planted in", "estimate (95% CI)", "found in"], rows, data=False)
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
    audit = run_audit(config, storage=storage, progress=progress, signals=progress is not None)
    context = ExperimentContext(storage, lambda **_: nullcontext(progress), handles_signals=progress is not None)
    ask_models(
        context,
        config.name,
        (JUDGES, SURVEY),
        lambda run_context: run_fault_injection(run_context, TRACES_PER_FAULT),
    )
    return audit.report()
