"""The command `logic repair`: remove contradictions from comparisons, and write training data."""

from __future__ import annotations

from dataclasses import dataclass
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

from auditor.cli.options import JsonOption, StorageOption
from auditor.cli.output import format_command, print_json, print_message, print_table
from auditor.cli.repair_options import (
    AnswersOption,
    ComparisonsArgument,
    DiffOption,
    KOption,
    MethodOption,
    NegatedOption,
    NoiseOption,
    OnlyJudgeOption,
    RatingsOption,
    RepairOptions,
    RowFormatOption,
    RowsOption,
    SeedOption,
    StageOption,
    ToReviewOption,
)

if TYPE_CHECKING:
    from auditor.logic.repair import FlippedComparison, RepairedAnswers
    from auditor.logic.repair_stages import StageSummary
    from auditor.logic.repair_summary import RepairSummary


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
    options = RepairOptions.read(
        row_format=row_format, method=method, stage=stage, answers=answers, noise=noise, k=k, seed=seed,
        is_negated=negated, output=output,
    )  # fmt: skip
    options.check(is_for_review=send_flips_to_review)
    repaired_answers, n_sent = _repair_stored_comparisons(audit, judge, options, storage, send_flips_to_review)
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
        _announce_review(n_sent, audit, storage)


def _announce_review(n_sent: int, audit: str, storage: str | None) -> None:
    """Say how many pairs wait for a decision."""
    print_message(
        f"{n_sent} pairs on which the repair reversed the judge's answer wait for your decision. To decide: "
        f"{format_command('review', audit, storage=storage)}"
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
            "stages": [stage.to_json() for stage in self.stages],
            "k": k,
        }


def _repair_stored_comparisons(
    audit: str, judge: str | None, options: RepairOptions, storage: str | None, is_for_review: bool
) -> tuple[list[RepairedAnswers], int | None]:
    """Repair an audit's comparisons; also the number of flipped ones that were sent to review, None if not asked."""
    from auditor.logic.flip_review import send_to_review
    from auditor.logic.repair import list_flips, repair_comparisons
    from auditor.logic.training_data import check_item_texts
    from auditor.run import open_stored_audit

    with open_stored_audit(audit, storage) as (db, stored_audit):
        repaired_answers = repair_comparisons(
            db, stored_audit.name, judge, noise=options.noise, seed=options.seed, method=options.method
        )
        if options.output is not None:
            check_item_texts(repaired_answers)
        n_sent = send_to_review(db, stored_audit.name, list_flips(repaired_answers)) if is_for_review else None
    return repaired_answers, n_sent


def _measure_repair(repaired_answers: list[RepairedAnswers], options: RepairOptions) -> RepairResult:
    """Measure the answers before and after the repair, and at each stage."""
    from auditor.logic.repair import list_flips
    from auditor.logic.repair_stages import summarize_stages
    from auditor.logic.repair_summary import summarize_repairs

    stages = summarize_stages(repaired_answers, k=options.k, seed=options.seed or 0, negated=options.is_negated)
    return RepairResult(summarize_repairs(repaired_answers, stages), stages, list_flips(repaired_answers))


def _write_rows(
    audit: str, repaired_answers: list[RepairedAnswers], result: RepairResult, options: RepairOptions, output: Path
) -> None:
    """Write the rows for preference tuning, and their data card."""
    from auditor.atomic_files import write_atomically
    from auditor.logic.data_card import RowSource, build_data_card
    from auditor.logic.repair_stages import select_stage
    from auditor.logic.training_data import build_training_rows, write_training_rows
    from auditor.reports.output import render_document

    answers = select_stage(repaired_answers, options.stage, negated=options.is_negated, seed=options.seed or 0)
    rows = build_training_rows(answers, options.answer_format)
    write_training_rows(rows, output, options.row_format)
    source = RowSource(
        options.stage, options.method, options.k, options.noise, options.seed, options.is_negated,
        options.answer_format, options.row_format,
    )  # fmt: skip
    card = build_data_card(audit, rows, source, result.summaries, result.stages)
    write_atomically(render_document(card, "markdown"), output.with_name(f"{output.name}.md"))
    print_message(f"Wrote {len(rows)} rows to {output.resolve()}, and a description of the data to {output.name}.md")


def _print_repair(result: RepairResult, k: int, *, with_flips: bool) -> None:
    """Print measures before and after the repair, the data of each stage, and the flipped comparisons."""
    from auditor.logic.data_card import STAGE_NOTE, format_change, format_stage, stage_columns

    columns = ["judge", "sets", "answers", "reversed", "agreement with people"]
    rows = [[s.judge, s.sets, s.questions, s.flipped, format_change(s.people)] for s in result.summaries]
    print_table(columns, rows)
    print_table(stage_columns(k), list(map(format_stage, result.stages)))
    print_message(STAGE_NOTE)
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
                _format_known(rating.win_loss, f"{rating.win_loss:+.2f}"),
                _format_known(rating.strength, f"{rating.strength:+.2f} ({rating.std_error:.2f})"),
                _format_known(rating.elo, f"{rating.elo:.0f} ({rating.elo_low:.0f} to {rating.elo_high:.0f})"),
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
