"""Commands about pairwise comparisons: `auditor logic` with its subcommands, of which `rank` is defined here."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from auditor.console.options import JsonOption, StorageOption
from auditor.console.output import print_json, print_message, print_table
from auditor.probes.logic.convert_command import convert
from auditor.probes.logic.repair_command import repair
from auditor.reports.number_format import pluralize

if TYPE_CHECKING:
    from auditor.probes.logic.ranking import JudgeRanking

RankedConfigArgument: TypeAlias = Annotated[
    Path, typer.Argument(metavar="CONFIG", help="A configuration file with the probe logic.")
]
JudgeOption: TypeAlias = Annotated[str | None, typer.Option("--judge", help="Ask only this model or judge.")]
BeamOption: TypeAlias = Annotated[
    int,
    typer.Option(
        "--beam",
        min=1,
        help="Number of partial rankings that the search follows at once; more is slower and may be better.",
    ),
]
UncertaintyOption: TypeAlias = Annotated[
    float,
    typer.Option(
        "--uncertainty",
        min=0,
        max=0.5,
        help="With --beam: follow both outcomes of a comparison if its probability is closer to 1/2 than this.",
    ),
]
CalibratedOption: TypeAlias = Annotated[
    bool, typer.Option("--calibrated", help="Ask about each pair in both orders, and average the answers.")
]
QuestionBudgetOption: TypeAlias = Annotated[
    int | None, typer.Option("--budget", min=0, help="Maximum number of questions for each set and judge.")
]

logic_app = typer.Typer(
    name="logic", help="Repair, convert and rank comparisons of items in pairs.", no_args_is_help=True
)
logic_app.command("repair")(repair)
logic_app.command("convert")(convert)


@logic_app.command("rank")
def rank(
    config: RankedConfigArgument,
    judge: JudgeOption = None,
    beam: BeamOption = 1,
    uncertainty: UncertaintyOption = 0.1,
    calibrated: CalibratedOption = False,
    budget: QuestionBudgetOption = None,
    storage: StorageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Rank items by asking a model to compare them (PairS).

    Ranking N items takes about N log N questions. The probe logic of the config says which items are ranked, and how
    models are asked. Every answer is recorded: run the command again to resume, or with another beam or budget to ask
    only new questions.

    Example: auditor logic rank examples/logic.toml --calibrated
    """
    from auditor.config import load_config
    from auditor.console.progress import RunProgress
    from auditor.probes.logic.ranking import RankingOptions, rank_items

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
        f"{judge_ranking.judge}, {judge_ranking.item_set.context}: ranked with "
        f"{pluralize(ranking.asked, 'question')}; comparing all pairs would take {judge_ranking.n_all_pairs} questions "
        "in each order."
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
