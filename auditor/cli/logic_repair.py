"""The command `logic repair`: remove contradictions from comparisons, and write training data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, cast

import typer

from auditor.cli.options import JsonOption, StorageOption, optional_audit
from auditor.cli.output import format_command, print_json, print_message, print_table

if TYPE_CHECKING:
    from auditor.logic.repair import FlippedComparison, RepairedAnswers, RepairSummary
    from auditor.logic.repair_stages import StageAnswers, StageSummary
    from auditor.logic.training_data import RowSource

ComparisonsArgument: TypeAlias = Annotated[
    str, optional_audit("An audit with comparisons; the most recent audit if left out.")
]
RowsOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "-o",
        "--output",
        metavar="FILE",
        help="Write the repaired comparisons, for training a model (.jsonl or .parquet).",
    ),
]
RowFormatOption: TypeAlias = Annotated[
    str, typer.Option("--form", help="With -o: format of the rows, preference (texts) or chat (messages).")
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
        "--seed", help="Seed of the noise, of samples, and of the order of comparisons for elo (default: as stored)."
    ),
]
ToReviewOption: TypeAlias = Annotated[
    bool,
    typer.Option("--to-review", help="Have people decide the pairs on which the repair reverses the judge's answer."),
]


def repair(
    audit: ComparisonsArgument,
    judge: Annotated[str | None, typer.Option("--judge", help="Use only the comparisons of this judge.")] = None,
    diff: Annotated[
        bool, typer.Option("--diff", help="List the pairs on which the repair reverses the judge's answer.")
    ] = False,
    output: RowsOption = None,
    row_format: RowFormatOption = "preference",
    noise: NoiseOption = 0.0,
    method: MethodOption = "win-loss",
    stage: StageOption = "repaired",
    negated: NegatedOption = True,
    answer_form: AnswersOption = "json",
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
    from auditor.logic.flip_review import send_to_review
    from auditor.logic.repair import list_flips, repair_comparisons, summarize_repairs
    from auditor.logic.repair_stages import select_stage, summarize_stages
    from auditor.logic.training_data import RowSource
    from auditor.run import resolve_storage_url
    from auditor.storage.database import open_database

    _require_repair_options(row_format, noise, method, stage, answer_form, send_flips_to_review=send_flips_to_review)
    with open_database(resolve_storage_url(storage), create=False) as db:
        repaired_answers = repair_comparisons(db, audit, judge, noise=noise, seed=seed, method=cast("Any", method))
        flips = list_flips(repaired_answers)
        n_sent = send_to_review(db, audit, flips) if send_flips_to_review else None
    summaries = summarize_repairs(repaired_answers, k)
    stages = summarize_stages(repaired_answers, k=k, seed=seed or 0, negated=negated)
    if as_json:
        print_json(
            {
                "judges": [summary._asdict() for summary in summaries],
                "flips": list(map(_flip_to_dict, flips)),
                "stages": [row._asdict() for row in stages],
                "k": k,
            }
        )
    else:
        _print_repair(summaries, stages, k, flips if diff else [], repaired_answers if show_ratings else [])
    if output is not None:
        answers = select_stage(repaired_answers, cast("Any", stage), negated=negated, seed=seed or 0)
        source = RowSource(cast("Any", stage), cast("Any", method), k)
        _write_rows(audit, answers, source, summaries, stages, output, row_format, answer_form)
    if n_sent is not None:
        command = format_command("review", audit, storage=storage)
        print_message(
            f"{n_sent} pairs on which the repair reversed the judge's answer wait for your decision. To decide: "
            f"{command}"
        )


def _require_repair_options(
    row_format: str, noise: float, method: str, stage: str, answer_form: str, *, send_flips_to_review: bool
) -> None:
    """Raise UsageError for an unknown choice, or for options that exclude each other."""
    from auditor.errors import UsageError
    from auditor.logic.repair_stages import REPAIR_STAGES
    from auditor.metrics.preference_repair import RATING_METHODS

    for option, value, choices in (
        ("--form", row_format, ("preference", "chat")),
        ("--method", method, RATING_METHODS),
        ("--stage", stage, REPAIR_STAGES),
        ("--answers", answer_form, ("json", "letter")),
    ):
        if value not in choices:
            raise UsageError(f"{option}: '{value}' is unknown.", f"Use {', '.join(choices[:-1])} or {choices[-1]}.")
    if stage == "perturbed" and not noise:
        raise UsageError("--stage: 'perturbed' requires --noise.", "Add --noise 0.1, or use --stage raw.")
    if noise and send_flips_to_review:
        raise UsageError(
            "answers that --noise reversed are not verdicts of the judge.", "Leave out --noise or --to-review."
        )


def _write_rows(
    audit: str,
    answers: list[StageAnswers],
    source: RowSource,
    summaries: list[RepairSummary],
    stages: list[StageSummary],
    output: Path,
    row_format: str,
    answer_form: str,
) -> None:
    """Write the rows for preference tuning, and their data card."""
    from auditor.atomic_files import write_atomically
    from auditor.logic.training_data import build_data_card, build_training_rows, write_training_rows

    training_format: Literal["preference", "chat"] = "chat" if row_format == "chat" else "preference"
    rows = build_training_rows(answers, "letter" if answer_form == "letter" else "json")
    write_training_rows(rows, output, training_format)
    card = build_data_card(audit, rows, source, summaries, stages, training_format)
    write_atomically(card, output.with_name(f"{output.name}.md"))
    print_message(f"Wrote {len(rows)} rows to {output.resolve()}, and a description of the data to {output.name}.md")


def _print_repair(
    summaries: list[RepairSummary],
    stages: list[StageSummary],
    k: int,
    flipped_comparisons: list[FlippedComparison],
    rated_answers: list[RepairedAnswers],
) -> None:
    """Print measures before and after the repair, the data of each stage, the flipped comparisons, and ratings."""
    from auditor.logic.training_data import format_stage, stage_columns

    # transitivity, commutativity and people (agreement with people) are pairs: before and after the repair.
    columns = ["judge", "sets", "answers", "flipped", f"transitivity (K = {k})", "commutativity", "people"]
    rows = [
        [
            summary.judge,
            summary.sets,
            summary.questions,
            summary.flipped,
            *map(_format_change, (summary.transitivity, summary.commutativity, summary.people)),
        ]
        for summary in summaries
    ]
    print_table(columns, rows)
    print_table(stage_columns(k), list(map(format_stage, stages)))
    if flipped_comparisons:
        columns = ["judge", "set", "shown first (A)", "shown second (B)", "said", "follows"]
        print_table(columns, [list(_flip_to_dict(flip).values()) for flip in flipped_comparisons])
    if rated_answers:
        _print_ratings(rated_answers)


def _print_ratings(repaired: list[RepairedAnswers]) -> None:
    """Print the items by win-loss rate, by the Bradley-Terry model, and by Elo."""
    from auditor.logic.item_ratings import rate_items

    rows, notes = rate_items(repaired)
    columns = ["judge", "set", "item", "win-loss", "Bradley-Terry (std. error)", "Elo (range over orders)"]
    print_table(
        columns,
        [
            [
                rating.judge,
                rating.context,
                rating.item,
                f"{rating.win_loss:+.2f}",
                f"{rating.strength:+.2f} ({rating.std_error:.2f})",
                f"{rating.elo:.0f} ({rating.elo_low:.0f} to {rating.elo_high:.0f})",
            ]
            for rating in rows
        ],
    )
    for note in notes:
        print_message(f"{note}.")


def _format_change(before_and_after: tuple[float | None, float | None]) -> str:
    """A measure before and after the repair, with an arrow between them."""
    return " → ".join("–" if value is None else f"{value:.2f}" for value in before_and_after)


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
