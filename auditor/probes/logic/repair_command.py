"""The command `logic repair`: remove contradictions from comparisons, and write training data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeAlias

import numpy as np
import typer

from auditor.console.options import JsonOption, StorageOption, optional_audit, output_file
from auditor.console.output import format_command, print_json, print_message, print_table
from auditor.errors import UsageError, pluralize
from auditor.exports.training import check_suffix
from auditor.lazy_imports import import_when_used
from auditor.metrics.logic.ranking import measure_repair_effect
from auditor.probes.logic.judges import send_to_review
from auditor.probes.logic.repair import (
    RepairedAnswers,
    RepairStage,
    StageSummary,
    list_flips,
    rate_items,
    repair_comparisons,
    select_stage,
    summarize_stages,
)
from auditor.run import open_stored_audit

if TYPE_CHECKING:
    from auditor.probes.logic.repair import FlippedComparison
    from auditor.probes.logic.training_data import RepairSettings

if not TYPE_CHECKING:
    training_data = import_when_used("auditor.probes.logic.training_data")
else:
    from auditor.probes.logic import training_data


class RepairSummary(NamedTuple):
    """Effect of the repair on one judge's answers.

    Each pair of numbers is a share in [0, 1] before and after the repair, None where it cannot be measured.

    Attributes:
        sets: number of item sets.
        questions: number of answers to the standard question.
        flipped: number of those that the ranking reverses.
        transitivity, commutativity: see `StageSummary`; without the negated form.
        people: share of answers that agree with people, pooled over the questions that people, the judge and the
            ranking all decide (no ties).
    """

    judge: str
    sets: int
    questions: int
    flipped: int
    transitivity: tuple[float | None, float | None]
    commutativity: tuple[float | None, float | None]
    people: tuple[float | None, float | None]


def summarize_repairs(repaired: Sequence[RepairedAnswers], stages: Sequence[StageSummary]) -> list[RepairSummary]:
    """Summarize the effect of the repair on each judge's answers.

    Args:
        repaired: of any judges.
        stages: of the same judges, as `auditor.probes.logic.repair.summarize_stages` measures them.
    """
    return [
        _summarize_judge(judge, [entry for entry in repaired if entry.raw.judge == judge], stages)
        for judge in dict.fromkeys(entry.raw.judge for entry in repaired)
    ]


def _summarize_judge(judge: str, repaired: Sequence[RepairedAnswers], stages: Sequence[StageSummary]) -> RepairSummary:
    """Summarize one judge; see `summarize_repairs`."""
    of_stage = {stage.stage: stage for stage in stages if stage.judge == judge and not stage.negated}
    repaired_stage: RepairStage = "perturbed" if "perturbed" in of_stage else "raw"
    before, after = of_stage[repaired_stage], of_stage["repaired"]
    answers = [entry.original.metric_input for entry in repaired]
    effect = measure_repair_effect(answers, [entry.repair.preferences for entry in repaired])
    return RepairSummary(
        judge=judge,
        sets=len(repaired),
        questions=sum(int((~np.isnan(entry.original.preferences)).sum()) for entry in repaired),
        flipped=sum(len(entry.repair.flipped) for entry in repaired),
        transitivity=(before.transitivity.value, after.transitivity.value),
        commutativity=(before.commutativity.value, after.commutativity.value),
        people=(effect.before.value, effect.after.value),
    )


ComparisonsArgument: TypeAlias = Annotated[
    str, optional_audit("An audit with comparisons; the most recent audit if left out.")
]
OnlyJudgeOption: TypeAlias = Annotated[
    str | None, typer.Option("--judge", help="Use only the comparisons of this judge.")
]
DiffOption: TypeAlias = Annotated[
    bool, typer.Option("--diff", help="List the pairs on which the repair reverses the judge's answer.")
]
RowsOption: TypeAlias = Annotated[
    Path | None,
    output_file("Write the comparisons of --stage, as `auditor export training --from comparisons` does."),
]
RowFormatOption: TypeAlias = Annotated[
    str, typer.Option("--form", help="With -o: format of the rows: preference, chat, completion or chat-completion.")
]
NoiseOption: TypeAlias = Annotated[
    float,
    typer.Option("--noise", min=0, max=1, help="Reverse this share of the answers (0 to 1) first, to test the repair."),
]
RatingsOption: TypeAlias = Annotated[
    bool, typer.Option("--ratings", help="Show each item's rating: win-loss rate, Bradley-Terry model and Elo.")
]
MethodOption: TypeAlias = Annotated[
    str, typer.Option("--method", help="How items are rated: win-loss, elo or bradley-terry.")
]
StageOption: TypeAlias = Annotated[
    str,
    typer.Option(
        "--stage",
        help="With -o: the answers to write: raw, perturbed (with --noise), repaired, or size-matched (a random sample "
        "of the repaired answers, with as many as before the repair).",
    ),
]
NegatedOption: TypeAlias = Annotated[
    bool, typer.Option("--negated/--no-negated", help="With -o: write also the questions in negated form.")
]
AnswersOption: TypeAlias = Annotated[
    str, typer.Option("--answers", help="With -o: how answers are written, json or letter (A or B only).")
]
KOption: TypeAlias = Annotated[
    int, typer.Option("--k", min=3, help="Number of items in the groups that are checked for cycles.")
]
SeedOption: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--seed",
        min=0,
        help="Seed of the noise, of samples, and of the order of comparisons for elo (default: that of their file, or "
        "of the items).",
    ),
]
ToReviewOption: TypeAlias = Annotated[
    bool,
    typer.Option("--to-review", help="Have people decide the pairs on which the repair reverses the judge's answer."),
]


def repair(
    audit: ComparisonsArgument,
    judge: OnlyJudgeOption = None,
    diff: DiffOption = False,
    output: RowsOption = None,
    row_format: RowFormatOption = "preference",
    noise: NoiseOption = 0.0,
    method: MethodOption = "win-loss",
    stage: StageOption = "repaired",
    negated: NegatedOption = True,
    answers: AnswersOption = "json",
    k: KOption = 5,
    seed: SeedOption = None,
    show_ratings: RatingsOption = False,
    send_flips_to_review: ToReviewOption = False,
    storage: StorageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Remove contradictions from a judge's comparisons (REPAIR).

    Ranks the items of each set, and derives the answer to every question about a pair from the
    ranking. With -o, a description of the data is written too, FILE.md. REPAIR is the method of the paper Aligning with
    Logic (ICML 2025).

    Example: auditor logic repair moral-alignment --diff -o repaired.jsonl
    """
    settings = _read_settings(
        output, send_flips_to_review,
        stage=stage, method=method, noise=noise, k=k, seed=seed, negated=negated, answers=answers, form=row_format,
    )  # fmt: skip
    repaired_answers, n_sent = repair_stored_comparisons(
        audit, judge, settings, storage, has_rows=output is not None, is_for_review=send_flips_to_review
    )
    result = measure_repair(repaired_answers, settings)
    if as_json:
        print_json(result.to_json(k))
    else:
        _print_repair(result, k, with_flips=diff)
        if show_ratings:
            _print_ratings(repaired_answers)
    if output is not None:
        write_rows(audit, repaired_answers, result, settings, output)
    if n_sent is not None:
        print_message(
            f"The repair reversed the judge's answer on {pluralize(n_sent, 'pair')}, for you to decide: "
            f"{format_command('review', audit, storage=storage)}"
        )


def _read_settings(output: Path | None, is_for_review: bool, **options: Any) -> RepairSettings:
    """The settings of the repair; UsageError for options that exclude each other, have no effect, or are unknown."""
    settings = training_data.RepairSettings(**options)
    if output is None:
        settings.require_no_row_options()
    else:
        check_suffix(output)
    if settings.noise and is_for_review:
        raise UsageError(
            "answers that --noise reversed are not verdicts of the judge.", "Leave out --noise or --to-review."
        )
    return settings


@dataclass(frozen=True)
class RepairResult:
    """What the command shows: measures before and after the repair, the data of each stage, and flipped comparisons."""

    summaries: list[RepairSummary]
    stages: list[StageSummary]
    flips: list[FlippedComparison]

    def to_json(self, k: int) -> dict[str, Any]:
        """The result for `--json`; k is the number of items in the subsets that were checked."""
        return {
            "judges": [summary._asdict() for summary in self.summaries],
            "flips": list(map(_flip_to_dict, self.flips)),
            "stages": [stage.to_json() for stage in self.stages],
            "k": k,
        }


def repair_stored_comparisons(
    audit: str,
    judge: str | None,
    settings: RepairSettings,
    storage: str | None,
    *,
    has_rows: bool,
    is_for_review: bool,
) -> tuple[list[RepairedAnswers], int | None]:
    """Repair an audit's comparisons; also the number of flipped ones that were sent to review, None if not asked."""
    with open_stored_audit(audit, storage) as (db, stored_audit):
        repaired_answers = repair_comparisons(
            db, stored_audit.name, judge, noise=settings.noise, seed=settings.seed, method=settings.method
        )
        if has_rows:
            training_data.check_item_texts(repaired_answers)
        n_sent = send_to_review(db, stored_audit.name, list_flips(repaired_answers)) if is_for_review else None
    return repaired_answers, n_sent


def measure_repair(repaired_answers: list[RepairedAnswers], settings: RepairSettings) -> RepairResult:
    """Measure the answers before and after the repair, and at each stage."""
    stages = summarize_stages(repaired_answers, k=settings.k, seed=settings.seed or 0, negated=settings.negated)
    return RepairResult(summarize_repairs(repaired_answers, stages), stages, list_flips(repaired_answers))


def write_rows(
    audit: str, repaired_answers: list[RepairedAnswers], result: RepairResult, settings: RepairSettings, output: Path
) -> None:
    """Write the rows for preference tuning, and their data card."""
    answers = select_stage(repaired_answers, settings.stage, negated=settings.negated, seed=settings.seed or 0)
    rows = training_data.build_training_rows(answers, settings.answers)
    card = training_data.build_data_card(audit, rows, settings, result.summaries, result.stages)
    card_file = training_data.write_training_rows(rows, output, settings.form, card)
    print_message(
        f"Wrote {pluralize(len(rows), 'row')} to {output.resolve()}, and a description of the data to {card_file.name}"
    )


def _print_repair(result: RepairResult, k: int, *, with_flips: bool) -> None:
    """Print measures before and after the repair, the data of each stage, and the flipped comparisons."""
    columns = ["judge", "sets", "answers", "reversed", "agreement with people"]
    rows = [[s.judge, s.sets, s.questions, s.flipped, training_data.format_change(s.people)] for s in result.summaries]
    print_table(columns, rows)
    print_table(training_data.stage_columns(k), list(map(training_data.format_stage, result.stages)))
    print_message(training_data.STAGE_NOTE)
    if with_flips and result.flips:
        columns = ["judge", "set", "shown first (A)", "shown second (B)", "said", "follows"]
        print_table(columns, [list(_flip_to_dict(flip).values()) for flip in result.flips])


def _print_ratings(repaired: list[RepairedAnswers]) -> None:
    """Print the items by win-loss rate, by the Bradley-Terry model, and by Elo."""
    rows, notes = rate_items(repaired)
    columns = ["judge", "set", "item", "win-loss", "Bradley-Terry (std. error)", "Elo (range over orders)"]
    print_table(
        columns,
        [
            [
                rating.judge,
                rating.context,
                rating.item,
                _format_known(rating.win_loss, f"{rating.win_loss:+.2f}"),
                _format_known(rating.strength, f"{rating.strength:+.2f} ({rating.std_error:.2f})"),
                _format_known(rating.elo, f"{rating.elo:.1f} ({rating.elo_low:.1f} to {rating.elo_high:.1f})"),
            ]
            for rating in rows
        ],
    )
    for note in notes:
        print_message(f"{note}.")


def _format_known(rating: float, text: str) -> str | None:
    """The text of a rating; None where an item has none."""
    return None if isnan(rating) else text


def _flip_to_dict(flip: FlippedComparison) -> dict[str, str]:
    """A flipped comparison as a row: the items as they were shown, the judge's choice, and the choice that follows."""
    items = flip.item_set.items  # `flip.first` and `flip.second` are indices of the items, in the order shown
    return {
        "judge": flip.judge,
        "context": flip.item_set.context,
        "item_a": items[flip.first].id,
        "item_b": items[flip.second].id,
        "said": flip.original_choice.value,
        "follows": flip.repaired_choice.value,
    }
