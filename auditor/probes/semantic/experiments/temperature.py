"""Experiment `temperature`: does paraphrasing change answers more than sampling does?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from auditor.experiments.declaration import ExperimentContext, ExperimentResult

if TYPE_CHECKING:
    from auditor.probes.semantic.figures.experiment_rows import SemanticTemperatureRow
    from auditor.probes.semantic.group_scores import GroupScores

MoralAuditArgument: TypeAlias = Annotated[
    str, typer.Argument(metavar="AUDIT", help="An audit with the probe semantic.")
]


def temperature(
    context: ExperimentContext,
    audit: MoralAuditArgument,
    temperatures: Annotated[
        str, typer.Option("--temperatures", metavar="LIST", help="Temperatures, each in [0, 2].")
    ] = "0,0.5,1",
) -> ExperimentResult:
    """Compare variation over wordings and over repetitions.

    Models are asked, which may cost money; recorded answers are reused.

    Example: auditor experiment temperature moral --temperatures 0,0.7,1.4
    """
    from auditor.experiments.stored_audit import ask_models
    from auditor.probes.semantic.experiment_runs import SEMANTIC_PROBE, scores_by_temperature
    from auditor.probes.semantic.experiments.section_consistency import build_temperature_document
    from auditor.reports.data.adjusted_tests import adjust_rows

    values = parse_temperatures(temperatures)
    scores = ask_models(context, audit, (SEMANTIC_PROBE,), lambda run: scores_by_temperature(run, values))
    # Keys are (model, temperature, whether the answers are to paraphrases).
    rows = [
        _build_row(model, value, scores[model, value, False], scores[model, value, True])
        for model, value in dict.fromkeys((model, value) for model, value, _ in scores)
    ]
    adjusted_rows = adjust_rows(rows, "difference", "wordings compared with repeats")
    return ExperimentResult(adjusted_rows, build_temperature_document(audit, adjusted_rows))


def _build_row(model: str, value: float, same_words: GroupScores, other_words: GroupScores) -> SemanticTemperatureRow:
    """Compare repeated answers to one wording with answers to all wordings, at one temperature."""
    from auditor.probes.semantic.figures.answer_counts import build_count_rows
    from auditor.probes.semantic.figures.differences import difference_over_questions
    from auditor.probes.semantic.figures.experiment_rows import MeasureByWordingRow, SemanticTemperatureRow
    from auditor.probes.semantic.figures.measure_changes import compare_measures
    from auditor.probes.semantic.figures.score_table import mean_over_questions

    change = difference_over_questions(same_words.main, other_words.main)
    return SemanticTemperatureRow(
        model=model,
        temperature=value,
        same_words=mean_over_questions(same_words.main),
        other_words=mean_over_questions(other_words.main),
        difference=change,
        measures=compare_measures(MeasureByWordingRow, same_words.by_measure, other_words.by_measure),
        questions=len(same_words.main),
        counts=build_count_rows({"same_words": same_words.outcomes, "other_words": other_words.outcomes}),
    )


def parse_temperatures(text: str) -> list[float]:
    """Temperatures in [0, 2] from a comma-separated list, without duplicates."""
    from auditor.errors import UsageError

    try:
        parsed = [float(number) for number in text.split(",")]
    except ValueError:
        parsed = []
    if not parsed or not all(0 <= number <= 2 for number in parsed):
        raise UsageError(
            f"--temperatures: '{text}' is not a list of numbers from 0 to 2.", "Separate them by commas: 0,0.7,1.4"
        )
    return list(dict.fromkeys(parsed))
