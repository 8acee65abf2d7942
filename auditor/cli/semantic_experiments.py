"""Experiments on consistency: temperature, rules of thumb, accuracy, and human judgements of answer pairs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from auditor.cli.options import JsonOption, PageFileOption, StorageOption
from auditor.cli.page_output import present_document, resolve_page_format

SemanticAuditArgument = Annotated[str, typer.Argument(metavar="AUDIT", help="An audit with the probe semantic.")]


def register(app: typer.Typer) -> None:
    """Add the commands to the command-line app."""
    for command in (temperature, rules, accuracy, judgements):
        app.command()(command)


def temperature(
    audit: SemanticAuditArgument,
    temperatures: Annotated[
        str, typer.Option("--temperatures", metavar="LIST", help="Temperatures, each in [0, 2].")
    ] = "0,0.5,1",
    output: PageFileOption = None,
    storage: StorageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare the variation between paraphrases with the variation between samples of one wording.

    Models are asked, which may cost money; recorded answers are reused.

    Example: auditor experiment temperature moral --temperatures 0,0.7,1.4
    """
    from auditor.cli.progress import RunProgress
    from auditor.experiments.consistency import run_temperature_experiment
    from auditor.reports.sections.experiments.consistency import build_temperature_document

    resolve_page_format(output)
    temperature_values = _parse_temperatures(temperatures)
    with RunProgress() as progress:
        rows = run_temperature_experiment(audit, temperature_values, storage=storage, progress=progress, signals=True)
    present_document(
        [row.model_dump(mode="json") for row in rows], build_temperature_document(audit, rows), output, as_json
    )


def rules(
    audit: SemanticAuditArgument,
    output: PageFileOption = None,
    storage: StorageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Test whether a model is more consistent when it follows its own rule of thumb.

    Each question is asked again in all its wordings, with the first rule of thumb that the model gave for it. Models
    are asked, which may cost money; recorded answers are reused.

    Example: auditor experiment rules moral
    """
    from auditor.cli.progress import RunProgress
    from auditor.experiments.consistency import run_rule_experiment
    from auditor.reports.sections.experiments.consistency import build_rules_document

    resolve_page_format(output)
    with RunProgress() as progress:
        rows = run_rule_experiment(audit, storage=storage, progress=progress, signals=True)
    present_document([row.model_dump(mode="json") for row in rows], build_rules_document(audit, rows), output, as_json)


def accuracy(
    audit: SemanticAuditArgument,
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="question_id,question,choices,correct[,paraphrase]; choices by |.")
    ],
    output: PageFileOption = None,
    storage: StorageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Test whether a model is right where it is consistent, on questions with a known answer in several wordings.

    The models, the encoder and the score are the audit's. Models are asked, which may cost money; recorded answers are
    reused.

    Example: auditor experiment accuracy moral facts.csv
    """
    from auditor.cli.progress import RunProgress
    from auditor.experiments.consistency import run_accuracy_experiment
    from auditor.reports.sections.experiments.consistency import build_accuracy_document

    resolve_page_format(output)
    with RunProgress() as progress:
        rows = run_accuracy_experiment(audit, file, storage=storage, progress=progress, signals=True)
    present_document(
        [row.model_dump(mode="json") for row in rows], build_accuracy_document(audit, rows), output, as_json
    )


def judgements(
    audit: SemanticAuditArgument,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="rater,model,question_id,left,right,judgement")],
    output: PageFileOption = None,
    storage: StorageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare each measure of consistency with human judgements of pairs of answers; no model is asked.

    Each row says whether the answers to the wordings left and right say the same: Y, N, or NA (cannot say).

    Example: auditor experiment judgements moral people.csv
    """
    from auditor.experiments.human_judgements import compare_with_human_judgements
    from auditor.reports.sections.experiments.consistency import build_judgements_document

    resolve_page_format(output)
    part = compare_with_human_judgements(audit, file, storage=storage)
    present_document(part.model_dump(mode="json"), build_judgements_document(audit, part), output, as_json)


def _parse_temperatures(text: str) -> list[float]:
    """Temperatures in [0, 2] from a comma-separated list, without duplicates."""
    from auditor.errors import UsageError

    try:
        parsed = [float(number) for number in text.split(",")]
    except ValueError:
        parsed = []
    if not parsed or not all(0 <= number <= 2 for number in parsed):
        raise UsageError(f"--temperatures: '{text}' is no list of numbers in [0, 2].", "Such as 0,0.7,1.4.")
    return list(dict.fromkeys(parsed))
