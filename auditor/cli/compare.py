"""The command `compare`: compare models on the cells that they share."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, TypeAlias

import typer

from auditor.console.options import (
    JsonOption,
    PageFileOption,
    StorageOption,
    UncorrectedOption,
    find_latest_audit,
    resolve_target_names,
)
from auditor.console.output import print_message
from auditor.console.page_output import present_document, resolve_page_format
from auditor.errors import UsageError
from auditor.reports.data.differences.compare import compare_targets
from auditor.reports.data.differences.schema import DifferenceReport
from auditor.reports.data.differences.series_pairs import parse_target
from auditor.reports.data.gates.check import ComparisonGate, decide_comparison
from auditor.reports.data.gates.estimates import GateStatus
from auditor.reports.data.probe_reports import measure_probes_of_audits
from auditor.reports.sections.differences_document import build_difference_document, build_probe_difference_document
from auditor.reports.sections.probe_sections import compare_installed_probes
from auditor.run import open_stored_database

TargetsArgument: TypeAlias = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="A B …",
        help="Audits to compare, by name or config file; AUDIT:MODEL for one model of an audit.",
        callback=resolve_target_names,
    ),
]
MethodOption: TypeAlias = Annotated[
    list[str] | None, typer.Option("--method", help="Use only scores measured in this way: direct (stated) or logprob.")
]
JudgeOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--judge", help="Name of a judge; give this option twice to compare two judges on the same traces."),
]
AllPairsOption: TypeAlias = Annotated[
    bool, typer.Option("--all-pairs", help="Compare each audit with every other, not only with the first.")
]
RenameOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--map", metavar="OLD=NEW", help="OLD=NEW, if a model has another name in the later audits."),
]
FullOption: TypeAlias = Annotated[
    bool,
    typer.Option("--full", help="Also show coverage, and differences by region, country and topic, in the terminal."),
]
FlipsOption: TypeAlias = Annotated[
    int,
    typer.Option(
        "--flips", min=0, help="Maximum number of changed verdicts and conflict resolutions to list per pair of models."
    ),
]

MarginOption: TypeAlias = Annotated[
    float | None,
    typer.Option(
        "--non-inferiority",
        metavar="MARGIN",
        min=0,
        max=2,
        help="Test in which regions the later audit's mean absolute error is less than MARGIN above the first's.",
    ),
]
FailIfWorseOption: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--fail-if-worse",
        help="Fail if a later model's mean absolute error is larger by its adjusted test; for continuous integration.",
    ),
]


def compare(
    targets: TargetsArgument = None,
    methods: MethodOption = None,
    judges: JudgeOption = None,
    all_pairs: AllPairsOption = False,
    model_renames: RenameOption = None,
    max_flips: FlipsOption = 50,
    uncorrected: UncorrectedOption = False,
    margin: MarginOption = None,
    fail_if_worse: FailIfWorseOption = False,
    full: FullOption = False,
    output: PageFileOption = None,
    storage: StorageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare models, or two versions of a model.

    Shows where agreement with people improved or declined, and how certain that is. With one audit (by default the most
    recent), all pairs of its models are compared. With several audits, each is compared with the first, model by model,
    such as before and after fine-tuning. AUDIT:MODEL selects one model, and --map gives a model's later name. To
    compare two judges, in one audit or across two: --judge ONE --judge OTHER. The terminal shows the overall figures;
    --full, a page (-o) and --json add the others, changed verdicts and conflict resolutions. Figures of probes that
    all audits have are compared too, also where there are no scores. Shares of VALID verdicts
    are corrected by people's labels if each model has enough labels. With --non-inferiority, a region passes if the 95%
    interval of its change in mean absolute error ends below MARGIN, corrected for the number of regions (Holm); all
    countries together are a test of their own. With this option or --fail-if-worse, exit codes: 0 passed, 3 a model
    is worse or misses the margin, 4 not comparable.

    Example: auditor compare before after --map base=tuned -o comparison.html
    """
    resolve_page_format(output)
    names = targets or [find_latest_audit(storage)]
    audit_names = list(dict.fromkeys(parse_target(name).audit for name in names))
    differences, unpaired = None, ""
    with open_stored_database(storage) as db:
        figures = measure_probes_of_audits(db, audit_names) if len(audit_names) > 1 else []
        probe_sections = [*compare_installed_probes(figures)] if figures else []
        try:
            differences = compare_targets(
                db,
                [parse_target(name) for name in names],
                methods=methods or (),
                all_pairs=all_pairs,
                judges=judges or (),
                max_listed=max_flips,
                use_corrections=not uncorrected,
                margin=margin,
                renamed_models=dict(map(_parse_model_rename, model_renames or ())),
            )
        except UsageError as error:
            if judges or not probe_sections:
                raise
            unpaired = str(error)
    is_brief = output is None and not full
    if differences is None:
        document = build_probe_difference_document(audit_names, unpaired, probe_sections)
    else:
        document = build_difference_document(differences, is_brief=is_brief)
        document = replace(document, sections=[*document.sections, *probe_sections])
    data = {} if differences is None else differences.model_dump(mode="json")
    if probe_sections:
        audits_figures = [{name: one.model_dump(mode="json") for name, one in by_probe.items()} for by_probe in figures]
        data["probes"] = dict(zip(audit_names, audits_figures, strict=True))
    gate = None
    if fail_if_worse or margin is not None:
        gate = _decide(differences, unpaired, fail_if_worse=fail_if_worse)
        data["gate"] = gate.model_dump(mode="json")
    present_document(data, document, output, as_json)
    if is_brief and differences is not None and differences.pairs and not as_json:
        print_message("For more figures: add --full, or write a page with -o comparison.html")
    if gate is not None:
        print_message("\n".join([f"Gate: {gate.verdict}.", *(f"  {reason}." for reason in gate.reasons)]))
        raise typer.Exit(gate.exit_code)


def _decide(differences: DifferenceReport | None, unpaired: str, *, fail_if_worse: bool) -> ComparisonGate:
    """The gate of a comparison; undecided if no scores can be paired, as `unpaired` says."""
    if differences is None:
        return ComparisonGate(verdict=GateStatus.UNDECIDED, reasons=[unpaired.rstrip(".")])
    if fail_if_worse and not differences.pairs:
        raise UsageError(
            "--fail-if-worse compares scores of two series, and judges alone have none.", "Name two audits."
        )
    return decide_comparison(differences, fail_if_worse=fail_if_worse)


def _parse_model_rename(text: str) -> tuple[str, str]:
    """The old and the new name in OLD=NEW."""
    old, equals, new = text.partition("=")
    if not (old and equals and new):
        raise UsageError(f"--map: '{text}' is not OLD=NEW.", "Write the two names with = between them.")
    return old, new
