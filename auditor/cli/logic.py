"""Commands about comparisons: what they repair, and ranking with few of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from auditor.cli.options import AsJson, Storage
from auditor.cli.output import command, put_json, say, table

if TYPE_CHECKING:
    from auditor.logic.ranking import Ranked
    from auditor.logic.repair import Flip, Mended, Outcome

logic_app = typer.Typer(name="logic", help="Compare items in pairs: repair and rank.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.add_typer(logic_app)


@logic_app.command("repair")
def repair(
    audit: Annotated[str, typer.Argument(metavar="AUDIT", help="An audit with comparisons.")],
    judge: Annotated[str | None, typer.Option("--judge", help="Only this judge's.")] = None,
    diff: Annotated[bool, typer.Option("--diff", help="List the verdicts that the repair flips.")] = False,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="Write rows for preference tuning (.jsonl or .parquet)."),
    ] = None,
    form: Annotated[str, typer.Option("--form", help="Of the rows: preference (texts) or chat (messages).")] = (
        "preference"
    ),
    noise: Annotated[
        float, typer.Option("--noise", min=0, max=1, help="Reverse this share of the answers first, to test it.")
    ] = 0.0,
    rated: Annotated[
        bool, typer.Option("--ratings", help="Show each item by win-loss rate, Bradley and Terry's model, and Elo.")
    ] = False,
    to_review: Annotated[
        bool, typer.Option("--to-review", help="Put exactly the flipped verdicts into the review queue.")
    ] = False,
    storage: Storage = None,
    as_json: AsJson = False,
) -> None:
    """Rank the items of each set by win-loss rate, and make the judge's comparisons follow from it (REPAIR).

    Beside the rows a data card is written, FILE.md. Every pair gets an answer in both orders and both forms.

    Example: auditor logic repair moral-alignment --diff -o repaired.jsonl
    """
    from auditor.atomic_files import write_whole
    from auditor.errors import UsageError
    from auditor.logic.repair import flips, mend, outcomes, send_to_review, training_rows
    from auditor.logic.training_data import data_card, write_training
    from auditor.run import storage_url
    from auditor.storage.database import open_database

    kind: Literal["preference", "chat"] = "chat" if form == "chat" else "preference"
    if form != kind:
        raise UsageError(f"'{form}' is no form of rows.", "Known are preference and chat.")
    if noise and to_review:
        raise UsageError(
            "answers reversed by --noise are no verdicts of the judge.", "Leave out --noise or --to-review."
        )
    with open_database(storage_url(storage), create=False) as db:
        mended = mend(db, audit, judge, noise=noise)
        flipped, found = flips(mended), outcomes(mended)
        sent = send_to_review(db, audit, flipped) if to_review else None
    if as_json:
        put_json({"judges": [o._asdict() for o in found], "flips": [_flip(f) for f in flipped]})
    else:
        _show(found, flipped if diff else [])
    if rated and not as_json:
        _show_ratings(mended)
    if output is not None:
        rows = training_rows(mended)
        write_training(rows, output, kind)
        write_whole(data_card(audit, rows, found, kind), output.with_name(f"{output.name}.md"))
        say(f"{len(rows)} rows: {output.resolve()}, with its data card {output.name}.md")
    if sent is not None:
        say(f"{sent} pairs with flipped verdicts are in the queue: {command('review', audit, storage=storage)}")


@logic_app.command("convert")
def convert(
    form: Annotated[
        str,
        typer.Argument(metavar="FORM", help="summeval, novel-eval, ms-marco, caters or summarize-from-feedback."),
    ],
    source: Annotated[Path, typer.Argument(metavar="SOURCE", help="Its file, or folder, as published.")],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="Write here (.jsonl).")],
    wanted: Annotated[
        str, typer.Option("--as", help="items, or comparisons: people's own (caters, summarize-from-feedback).")
    ] = "items",
    aspect: Annotated[
        str, typer.Option("--aspect", help="summeval: coherence, consistency, …; caters: temporal or causal.")
    ] = "",
) -> None:
    """Turn a published data set into a file of items for the probe logic, or of people's comparisons.

    Example: auditor logic convert summeval model_annotations.aligned.paired.jsonl -o items.jsonl
    """
    from auditor.errors import UsageError
    from auditor.imports.published_datasets import PEOPLE, read_published, write_published

    if wanted not in ("items", "comparisons"):
        raise UsageError(f"'{wanted}' is nothing that can be made.", "Known are items and comparisons.")
    n = write_published(read_published(form, source, aspect), output, wanted)
    say(f"{n} {wanted}: {output.resolve()}")
    if wanted == "items":
        say(f'Next: logic = {{ items = "{output}", relation = "…" }} under [probes]')
    else:
        say(f"Next: auditor import comparisons {output} --audit NAME --people {PEOPLE}")


@logic_app.command("rank")
def rank(
    config: Annotated[Path, typer.Argument(metavar="CONFIG", help="A config with the probe logic.")],
    judge: Annotated[str | None, typer.Option("--judge", help="Only this model.")] = None,
    beam: Annotated[int, typer.Option("--beam", min=1, help="Ways to merge followed at a time; 1 is greedy.")] = 1,
    uncertainty: Annotated[
        float, typer.Option("--uncertainty", min=0, max=0.5, help="With a beam: how near to 1/2 is uncertain.")
    ] = 0.1,
    calibrated: Annotated[bool, typer.Option("--calibrated", help="Ask both orders, and average.")] = False,
    budget: Annotated[int | None, typer.Option("--budget", min=0, help="Most questions a set and judge.")] = None,
    storage: Storage = None,
    as_json: AsJson = False,
) -> None:
    """Rank items with a model as comparator, in about N log N questions (PairS).

    What is ranked, and what is asked, is what the probe logic of the config says. Every answer is recorded: run it
    again to go on, or with another beam or budget to ask only what is new.

    Example: auditor logic rank examples/logic.toml --calibrated
    """
    from auditor.cli.progress import RunProgress
    from auditor.config import load_config
    from auditor.logic.ranking import RankingWanted, rank_items

    wanted = RankingWanted(beam, uncertainty, calibrated, budget)
    with RunProgress() as progress:
        found = rank_items(load_config(config), wanted, judge=judge, storage=storage, progress=progress, signals=True)
    if as_json:
        put_json([_ranking(one) for one in found])
        return
    for one in found:
        _show_ranking(one)


def _show_ranking(one: Ranked) -> None:
    made, people = one.ranking, one.people
    say(f"{one.judge}, {one.items.context}: {made.asked} questions; all pairs would be {one.all_pairs} an order.")
    if not made.complete:
        say(f"  {made.failed} without an answer, {made.over_budget} over the budget: placed without preference.")
    if people.r is not None:
        ends = "no interval" if people.ci_low is None else f"95% interval {people.ci_low:.2f} to {people.ci_high:.2f}"
        say(f"  Spearman's rho with people: {people.r:.2f} ({ends}, n {people.n})")
    table(["place", "item"], [[place, one.items.items[i].id] for place, i in enumerate(made.order, start=1)])


def _ranking(one: Ranked) -> dict[str, object]:
    return {
        "judge": one.judge,
        "context": one.items.context,
        "order": [one.items.items[i].id for i in one.ranking.order],
        "asked": one.ranking.asked,
        "failed": one.ranking.failed,
        "over_budget": one.ranking.over_budget,
        "all_pairs": one.all_pairs,
        "spearman_rho": one.people.r,
        "ci_low": one.people.ci_low,
        "ci_high": one.people.ci_high,
        "n": one.people.n,
    }


def _show(found: list[Outcome], flipped: list[Flip]) -> None:
    columns = ["judge", "sets", "answers", "flipped", "transitivity (K = 3)", "commutativity", "people"]
    rows = [
        [o.judge, o.sets, o.questions, o.flipped, *map(_change, (o.transitivity, o.commutativity, o.people))]
        for o in found
    ]
    table(columns, rows)
    if flipped:
        columns = ["judge", "set", "shown first (A)", "shown second (B)", "said", "follows"]
        table(columns, [list(_flip(flip).values()) for flip in flipped])


def _show_ratings(mended: list[Mended]) -> None:
    from auditor.logic.repair import ratings

    rows, notes = ratings(mended)
    columns = ["judge", "set", "item", "win-loss", "Bradley-Terry (std. error)", "Elo (range over orders)"]
    table(
        columns,
        [
            [
                r.judge,
                r.context,
                r.item,
                f"{r.win_loss:+.2f}",
                f"{r.strength:+.2f} ({r.std_error:.2f})",
                f"{r.elo:.0f} ({r.elo_low:.0f} to {r.elo_high:.0f})",
            ]
            for r in rows
        ],
    )
    for note in notes:
        say(f"{note}.")


def _change(pair: tuple[float | None, float | None]) -> str:
    return " → ".join("–" if value is None else f"{value:.2f}" for value in pair)


def _flip(flip: Flip) -> dict[str, str]:
    items = flip.items.items
    return {
        "judge": flip.judge,
        "context": flip.items.context,
        "item_a": items[flip.first].id,
        "item_b": items[flip.second].id,
        "said": flip.said.value,
        "follows": flip.follows.value,
    }
