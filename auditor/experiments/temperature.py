"""Experiment `temperature`: does paraphrasing change answers more than sampling does?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from auditor.experiments.declaration import ExperimentContext, ExperimentResult, MoralAuditArgument

if TYPE_CHECKING:
    from auditor.agents.semantic.group_scores import GroupScores
    from auditor.reports.data.semantic.experiment_rows import SemanticTemperatureRow


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
    from auditor.agents.semantic.experiments import scores_by_temperature
    from auditor.experiments.stored_audit import SEMANTIC_PROBE, ask_models
    from auditor.reports.data.adjusted_tests import adjust_rows
    from auditor.reports.sections.experiments.consistency import build_temperature_document

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
    from auditor.reports.data.semantic.answer_counts import build_count_rows
    from auditor.reports.data.semantic.differences import difference_over_questions
    from auditor.reports.data.semantic.experiment_rows import MeasureByWordingRow, SemanticTemperatureRow
    from auditor.reports.data.semantic.measure_changes import compare_measures
    from auditor.reports.data.semantic.score_table import mean_over_questions

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
