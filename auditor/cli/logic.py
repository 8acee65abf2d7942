"""Commands about pairwise comparisons: repair them, convert published data sets, and rank items."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import typer

from auditor.cli.options import JsonOption, StorageOption, optional_audit
from auditor.cli.output import format_command, print_json, print_message, print_table

if TYPE_CHECKING:
    from auditor.logic.ranking import JudgeRanking
    from auditor.logic.repair import FlippedComparison, RepairedAnswers, RepairSummary

logic_app = typer.Typer(
    name="logic", help="Repair, convert and rank comparisons of items in pairs.", no_args_is_help=True
)


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
ToReviewOption: TypeAlias = Annotated[
    bool,
    typer.Option("--to-review", help="Have people decide the pairs on which the repair reverses the judge's answer."),
]


@logic_app.command("repair")
def repair(
    audit: ComparisonsArgument,
    judge: Annotated[str | None, typer.Option("--judge", help="Use only the comparisons of this judge.")] = None,
    diff: Annotated[
        bool, typer.Option("--diff", help="List the pairs on which the repair reverses the judge's answer.")
    ] = False,
    output: RowsOption = None,
    row_format: RowFormatOption = "preference",
    noise: NoiseOption = 0.0,
    show_ratings: RatingsOption = False,
    send_flips_to_review: ToReviewOption = False,
    storage: StorageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Remove contradictions from a judge's comparisons (REPAIR).

    Ranks the items of each set by win-loss rate, and derives the answer to every question about a pair from the
    ranking. With -o, a description of the data is written too, FILE.md. REPAIR is the method of the paper Aligning with
    Logic (ICML 2025).

    Example: auditor logic repair moral-alignment --diff -o repaired.jsonl
    """
    from auditor.logic.flip_review import send_to_review
    from auditor.logic.repair import list_flips, repair_comparisons, summarize_repairs
    from auditor.run import resolve_storage_url
    from auditor.storage.database import open_database

    _require_repair_options(row_format, noise, send_flips_to_review=send_flips_to_review)
    with open_database(resolve_storage_url(storage), create=False) as db:
        repaired_answers = repair_comparisons(db, audit, judge, noise=noise)
        flips, summaries = list_flips(repaired_answers), summarize_repairs(repaired_answers)
        n_sent = send_to_review(db, audit, flips) if send_flips_to_review else None
    if as_json:
        print_json({"judges": [summary._asdict() for summary in summaries], "flips": list(map(_flip_to_dict, flips))})
    else:
        _print_repair(summaries, flips if diff else [], repaired_answers if show_ratings else [])
    if output is not None:
        _write_repaired_rows(audit, repaired_answers, summaries, output, row_format)
    if n_sent is not None:
        command = format_command("review", audit, storage=storage)
        print_message(
            f"{n_sent} pairs on which the repair reversed the judge's answer wait for your decision. To decide: "
            f"{command}"
        )


def _require_repair_options(row_format: str, noise: float, *, send_flips_to_review: bool) -> None:
    """Raise UsageError for an unknown format of rows, or for options that exclude each other."""
    from auditor.errors import UsageError

    if row_format not in ("preference", "chat"):
        raise UsageError(f"--form: '{row_format}' is not a format of training data.", "Use preference or chat.")
    if noise and send_flips_to_review:
        raise UsageError(
            "answers that --noise reversed are not verdicts of the judge.", "Leave out --noise or --to-review."
        )


def _write_repaired_rows(
    audit: str, repaired_answers: list[RepairedAnswers], summaries: list[RepairSummary], output: Path, row_format: str
) -> None:
    """Write the rows for preference tuning, and their data card."""
    from auditor.atomic_files import write_atomically
    from auditor.logic.training_data import build_data_card, build_training_rows, write_training_rows

    training_format: Literal["preference", "chat"] = "chat" if row_format == "chat" else "preference"
    rows = build_training_rows(repaired_answers)
    write_training_rows(rows, output, training_format)
    write_atomically(build_data_card(audit, rows, summaries, training_format), output.with_name(f"{output.name}.md"))
    print_message(f"Wrote {len(rows)} rows to {output.resolve()}, and a description of the data to {output.name}.md")


@logic_app.command("convert")
def convert(
    form: Annotated[
        str,
        typer.Argument(
            metavar="FORM",
            help="The data set that SOURCE is from: summeval, novel-eval, ms-marco, caters or summarize-from-feedback.",
        ),
    ],
    source: Annotated[
        Path, typer.Argument(metavar="SOURCE", help="The data set's file or folder, as its authors published it.")
    ],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="File to write (.jsonl).")],
    record_kind: Annotated[
        str,
        typer.Option(
            "--as", help="What to write: items, or people's comparisons (caters and summarize-from-feedback only)."
        ),
    ] = "items",
    aspect: Annotated[
        str,
        typer.Option(
            "--aspect",
            help="What items are compared by. summeval: coherence, consistency, …; caters: temporal or causal.",
        ),
    ] = "",
) -> None:
    """Convert a published data set to a file of items to compare.

    The result is a file of items, or of people's comparisons.

    Example: auditor logic convert summeval model_annotations.aligned.paired.jsonl -o items.jsonl
    """
    from auditor.errors import UsageError
    from auditor.imports.published_datasets import PEOPLE_JUDGE, read_dataset, write_dataset

    if record_kind not in ("items", "comparisons"):
        raise UsageError(f"--as: '{record_kind}' is not a kind of record to write.", "Use items or comparisons.")
    n_records = write_dataset(read_dataset(form, source, aspect), output, record_kind)
    print_message(f"{n_records} {record_kind}: {output.resolve()}")
    if record_kind == "items":
        print_message(f'Next: write logic = {{ items = "{output}", relation = "…" }} under [probes] of a configuration')
    else:
        print_message(f"Next: auditor import comparisons {output} --audit NAME --people {PEOPLE_JUDGE}")


@logic_app.command("rank")
def rank(
    config: Annotated[Path, typer.Argument(metavar="CONFIG", help="A configuration file with the probe logic.")],
    judge: Annotated[str | None, typer.Option("--judge", help="Ask only this model or judge.")] = None,
    beam: Annotated[
        int,
        typer.Option(
            "--beam",
            min=1,
            help="Number of partial rankings that the search follows at once; more is slower and may be better.",
        ),
    ] = 1,
    uncertainty: Annotated[
        float,
        typer.Option(
            "--uncertainty",
            min=0,
            max=0.5,
            help="With --beam: follow both outcomes of a comparison if its probability is closer to 1/2 than this.",
        ),
    ] = 0.1,
    calibrated: Annotated[
        bool, typer.Option("--calibrated", help="Ask about each pair in both orders, and average the answers.")
    ] = False,
    budget: Annotated[
        int | None, typer.Option("--budget", min=0, help="Maximum number of questions for each set and judge.")
    ] = None,
    storage: StorageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Rank items by asking a model to compare them (PairS).

    Ranking N items takes about N log N questions. The probe logic of the config says which items are ranked, and how
    models are asked. Every answer is recorded: run the command again to resume, or with another beam or budget to ask
    only new questions.

    Example: auditor logic rank examples/logic.toml --calibrated
    """
    from auditor.cli.progress import RunProgress
    from auditor.config import load_config
    from auditor.logic.ranking import RankingOptions, rank_items

    audit_config, options = load_config(config), RankingOptions(beam, uncertainty, calibrated, budget)
    with RunProgress() as progress:
        rankings = rank_items(audit_config, options, judge=judge, storage=storage, progress=progress, signals=True)
    if as_json:
        print_json(list(map(_ranking_to_dict, rankings)))
        return
    for judge_ranking in rankings:
        _print_ranking(judge_ranking)


def _print_ranking(judge_ranking: JudgeRanking) -> None:
    """Print one judge's ranking of a set: questions, agreement with people, and the order."""
    ranking, correlation = judge_ranking.ranking, judge_ranking.human_correlation
    print_message(
        f"{judge_ranking.judge}, {judge_ranking.item_set.context}: ranked with {ranking.asked} questions; comparing "
        f"all pairs would take {judge_ranking.n_all_pairs} questions in each order."
    )
    if not ranking.complete:
        print_message(
            f"  {ranking.failed} questions have no answer, and {ranking.over_budget} were not asked because of the "
            "budget. Their items were ranked as if the judge preferred neither."
        )
    if correlation.value is not None:
        interval = (
            "no interval"
            if correlation.ci_low is None
            else f"95% interval {correlation.ci_low:.2f} to {correlation.ci_high:.2f}"
        )
        print_message(
            f"  Agreement with people's ranking: Spearman's rho = {correlation.value:.2f} ({interval}, "
            f"{correlation.n} items)"
        )
    print_table(
        ["place", "item"],
        [
            [place, judge_ranking.item_set.items[item_index].id]
            for place, item_index in enumerate(ranking.order, start=1)
        ],
    )


def _ranking_to_dict(judge_ranking: JudgeRanking) -> dict[str, object]:
    """One judge's ranking of a set, for --json; `asked` counts questions, and `spearman_rho` is against people."""
    return {
        "judge": judge_ranking.judge,
        "context": judge_ranking.item_set.context,
        "order": [judge_ranking.item_set.items[item_index].id for item_index in judge_ranking.ranking.order],
        "asked": judge_ranking.ranking.asked,
        "failed": judge_ranking.ranking.failed,
        "over_budget": judge_ranking.ranking.over_budget,
        "all_pairs": judge_ranking.n_all_pairs,
        "spearman_rho": judge_ranking.human_correlation.value,
        "ci_low": judge_ranking.human_correlation.ci_low,
        "ci_high": judge_ranking.human_correlation.ci_high,
        "n": judge_ranking.human_correlation.n,
    }


def _print_repair(
    summaries: list[RepairSummary], flipped_comparisons: list[FlippedComparison], rated_answers: list[RepairedAnswers]
) -> None:
    """Print measures before and after the repair by judge, the flipped comparisons, and the ratings of the items."""
    # transitivity, commutativity and people (agreement with people) are pairs: before and after the repair.
    columns = ["judge", "sets", "answers", "flipped", "transitivity (K = 3)", "commutativity", "people"]
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
