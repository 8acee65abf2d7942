"""The command `logic repair`: remove contradictions from comparisons, and write training data."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from auditor.cli.options import JsonOption, StorageOption, optional_audit
from auditor.cli.output import format_command, print_json, print_message, print_table

if TYPE_CHECKING:
    from auditor.logic.repair import FlippedComparison, RepairedAnswers, RepairSummary
    from auditor.logic.repair_stages import StageSummary

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
        "--seed",
        help="Seed of the noise, of samples, and of the order of comparisons for elo (default: in the order of items).",
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
    options = RepairOptions(
        row_format, noise, method, stage, answer_form, k, seed, is_negated=negated, is_for_review=send_flips_to_review
    )
    options.check()
    repaired_answers, n_sent = _repair_stored_comparisons(audit, judge, options, storage)
    result = _measure_repair(repaired_answers, options)
    if as_json:
        print_json(result.to_json(k))
    else:
        _print_repair(result, k, with_flips=diff)
        if show_ratings:
            _print_ratings(repaired_answers)
    if output is not None:
        _write_rows(audit, repaired_answers, result, options, output)
    if n_sent is not None:
        command = format_command("review", audit, storage=storage)
        print_message(
            f"{n_sent} pairs on which the repair reversed the judge's answer wait for your decision. To decide: "
            f"{command}"
        )


@dataclass(frozen=True)
class RepairOptions:
    """The options of the command that bear on the repair and its data; see the help of each."""

    row_format: Any
    noise: float
    method: Any
    stage: Any
    answer_form: Any
    k: int
    seed: int | None
    is_negated: bool
    is_for_review: bool

    def check(self) -> None:
        """Raise UsageError for an unknown choice, or for options that exclude each other."""
        from auditor.errors import UsageError
        from auditor.logic.repair_stages import REPAIR_STAGES
        from auditor.metrics.preference_repair import RATING_METHODS

        for option, value, choices in (
            ("--form", self.row_format, ("preference", "chat")),
            ("--method", self.method, RATING_METHODS),
            ("--stage", self.stage, REPAIR_STAGES),
            ("--answers", self.answer_form, ("json", "letter")),
        ):
            if value not in choices:
                raise UsageError(f"{option}: '{value}' is unknown.", f"Use {', '.join(choices[:-1])} or {choices[-1]}.")
        if self.stage == "perturbed" and not self.noise:
            raise UsageError("--stage: 'perturbed' requires --noise.", "Add --noise 0.1, or use --stage raw.")
        if self.noise and self.is_for_review:
            raise UsageError(
                "answers that --noise reversed are not verdicts of the judge.", "Leave out --noise or --to-review."
            )


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
            "stages": [stage._asdict() for stage in self.stages],
            "k": k,
        }


def _repair_stored_comparisons(
    audit: str, judge: str | None, options: RepairOptions, storage: str | None
) -> tuple[list[RepairedAnswers], int | None]:
    """Repair an audit's comparisons; also the number of flipped ones that were sent to review, None if not asked."""
    from auditor.logic.flip_review import send_to_review
    from auditor.logic.repair import list_flips, repair_comparisons
    from auditor.run import resolve_storage_url
    from auditor.storage.database import open_database

    with open_database(resolve_storage_url(storage), create=False) as db:
        repaired_answers = repair_comparisons(
            db, audit, judge, noise=options.noise, seed=options.seed, method=options.method
        )
        n_sent = send_to_review(db, audit, list_flips(repaired_answers)) if options.is_for_review else None
    return repaired_answers, n_sent


def _measure_repair(repaired_answers: list[RepairedAnswers], options: RepairOptions) -> RepairResult:
    """Measure the answers before and after the repair, and at each stage."""
    from auditor.logic.repair import list_flips, summarize_repairs
    from auditor.logic.repair_stages import summarize_stages

    return RepairResult(
        summarize_repairs(repaired_answers, options.k),
        summarize_stages(repaired_answers, k=options.k, seed=options.seed or 0, negated=options.is_negated),
        list_flips(repaired_answers),
    )


def _write_rows(
    audit: str, repaired_answers: list[RepairedAnswers], result: RepairResult, options: RepairOptions, output: Path
) -> None:
    """Write the rows for preference tuning, and their data card."""
    from auditor.atomic_files import write_atomically
    from auditor.logic.repair_stages import select_stage
    from auditor.logic.training_data import RowSource, build_data_card, build_training_rows, write_training_rows

    answers = select_stage(repaired_answers, options.stage, negated=options.is_negated, seed=options.seed or 0)
    rows = build_training_rows(answers, options.answer_form)
    write_training_rows(rows, output, options.row_format)
    source = RowSource(options.stage, options.method, options.k)
    card = build_data_card(audit, rows, source, result.summaries, result.stages, options.row_format)
    write_atomically(card, output.with_name(f"{output.name}.md"))
    print_message(f"Wrote {len(rows)} rows to {output.resolve()}, and a description of the data to {output.name}.md")


def _print_repair(result: RepairResult, k: int, *, with_flips: bool) -> None:
    """Print measures before and after the repair, the data of each stage, and the flipped comparisons."""
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
        for summary in result.summaries
    ]
    print_table(columns, rows)
    print_table(stage_columns(k), list(map(format_stage, result.stages)))
    if with_flips and result.flips:
        columns = ["judge", "set", "shown first (A)", "shown second (B)", "said", "follows"]
        print_table(columns, [list(_flip_to_dict(flip).values()) for flip in result.flips])


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
