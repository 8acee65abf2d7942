"""Commands about pairwise comparisons: `auditor logic rank` and conversion, and their import."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias, get_args

import typer

from auditor.config import load_config
from auditor.console.options import JsonOption, NewAuditOption, StorageOption, output_file
from auditor.console.output import format_command, print_json, print_message, print_table
from auditor.console.progress import RunProgress
from auditor.errors import UsageError
from auditor.imports.published import PEOPLE_JUDGE, ConversionOptions, PublishedItem
from auditor.imports.published_registry import find_format, read_dataset, write_rows
from auditor.probes.logic.comparison_imports import import_comparisons as import_recorded_comparisons
from auditor.probes.logic.ranking import RankingOptions, rank_items
from auditor.probes.logic.repair_command import repair
from auditor.probes.logic.settings import LogicProbe
from auditor.reports.number_format import pluralize

if TYPE_CHECKING:
    from auditor.imports.published import PublishedDataset
    from auditor.probes.logic.ranking import JudgeRanking


DatasetArgument: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="DATASET",
        help="The data set that SOURCE is from: summeval, novel-eval, ms-marco, rankgpt, caters, "
        "summarize-from-feedback, truthful-qa, hellaswag, mmlu, gsm8k or mic.",
    ),
]
SourceArgument: TypeAlias = Annotated[
    Path, typer.Argument(metavar="SOURCE", help="The data set's file or folder, as its authors published it.")
]
OutputOption: TypeAlias = Annotated[Path, output_file("File to write (.jsonl).")]
KindOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--as",
        help="What to write: items (default); comparisons, by people (caters and summarize-from-feedback) or by the "
        "model that ranked the passages (rankgpt); questions (truthful-qa; default for mic); rules of thumb, by people "
        "(mic); known-answers, for the experiment accuracy (truthful-qa, hellaswag and mmlu).",
    ),
]
AspectOption: TypeAlias = Annotated[
    str,
    typer.Option(
        "--aspect", help="What items are compared by. summeval: coherence, consistency, …; caters: temporal or causal."
    ),
]
PermutationsOption: TypeAlias = Annotated[
    Path | None,
    typer.Option("--permutations", metavar="FILE", help="rankgpt: the rankings, such as marco-train-10k-gpt3.5.json."),
]
MinEventsOption: TypeAlias = Annotated[
    int | None, typer.Option("--min-events", min=2, help="caters: fewest events of a story. Default: 7.")
]
PassagesOption: TypeAlias = Annotated[
    int | None,
    typer.Option("--passages", min=2, help="rankgpt: read only the first passages of each query. Default: 10."),
]
SplitOption: TypeAlias = Annotated[
    str,
    typer.Option(
        "--split",
        help="summarize-from-feedback, hellaswag and mic: read only this part of the data, such as train. rankgpt: "
        "train, a random 80% of the queries (of those that --limit draws), or test, the others.",
    ),
]
SampleLimitOption: TypeAlias = Annotated[
    int | None,
    typer.Option("--limit", min=1, help="Draw this many sets of items, task items or questions at random."),
]
SeedOption: TypeAlias = Annotated[int, typer.Option("--seed", min=0, help="Seed of --limit and of random orders.")]


def convert(
    dataset_name: DatasetArgument,
    source: SourceArgument,
    output: OutputOption,
    kind: KindOption = None,
    aspect: AspectOption = "",
    permutations: PermutationsOption = None,
    min_events: MinEventsOption = None,
    passages: PassagesOption = None,
    split: SplitOption = "",
    limit: SampleLimitOption = None,
    seed: SeedOption = 0,
) -> None:
    """Convert a published data set to a file of items or questions.

    Items are compared in pairs (probe logic), or are a task's items (truthful-qa, hellaswag, mmlu and gsm8k). Files
    that are written with the same options belong together, such as a file of items and one of people's comparisons.

    Example: auditor logic convert summeval model_annotations.aligned.paired.jsonl -o items.jsonl
    """
    dataset_format = find_format(dataset_name)
    row_kind = _select_kind(dataset_name, kind)
    options = ConversionOptions(aspect, permutations, min_events, passages, split, seed, limit)
    dataset = read_dataset(dataset_name, source, options)
    n_rows = write_rows(dataset, output, row_kind, dataset_format.labeller)
    for note in dataset.notes:
        print_message(note)
    if dataset_format.layout_source:
        print_message(
            f"Layout not verified on a real file: it is that of {dataset_format.layout_source}. Check some rows."
        )
    noun = row_kind.replace("-", " ")
    print_message(f"{n_rows} {noun.removesuffix('s') if n_rows == 1 else noun}: {output.resolve()}")
    for step in _list_next_steps(dataset_name, row_kind, output, aspect, needs_items=_needs_items(dataset)):
        print_message(f"Next: {step}")


def _select_kind(dataset_name: str, kind: str | None) -> str:
    """The kind of rows to write; UsageError if the data set has none of them."""
    kinds = find_format(dataset_name).kinds
    for known in kinds:
        if kind in (None, known):
            return known
    raise UsageError(f"--as: {dataset_name} has no {kind}.", f"Use {' or '.join(kinds)}.")


def _needs_items(dataset: PublishedDataset) -> bool:
    """Whether comparisons only name their items, so that an import of them needs the file of items for the texts."""
    texts = {row.item: row.text for row in dataset.rows.get("items", ()) if isinstance(row, PublishedItem)}
    compared = {item for row in dataset.rows.get("comparisons", ()) for item in row[1:3]}
    return any(texts.get(item, item) != item for item in compared)


def _list_next_steps(dataset_name: str, kind: str, output: Path, aspect: str, *, needs_items: bool) -> Iterator[str]:
    """Yield what can be done with a file of rows."""
    dataset_format = find_format(dataset_name)
    relations = get_args(LogicProbe.model_fields["relation"].annotation)
    relation = aspect if aspect in relations else dataset_format.relation if not aspect else "preference"
    if kind == "comparisons":
        is_by_people = dataset_format.labeller == PEOPLE_JUDGE
        if is_by_people:
            yield f'add people = "{output}" to logic = {{ items = … }} under [probes] of a configuration'
        items = " --items ITEMS.jsonl" if needs_items else ""
        people = f" --people {PEOPLE_JUDGE}" if is_by_people else ""
        criterion = "" if relation == "preference" else f" --criterion {relation}"
        yield f"auditor import comparisons {output}{items} --audit NAME{people}{criterion}" + (
            "; --as items writes the file with the texts" if needs_items else ""
        )
        return
    task_answer = {**dict.fromkeys(("truthful-qa", "hellaswag", "mmlu"), "choice"), "gsm8k": "exact"}.get(dataset_name)
    yield {
        "items": f'write task = {{ source = "{output}", answer = "{task_answer}" }} in a configuration'
        if task_answer is not None
        else f'write logic = {{ items = "{output}", relation = "{relation}" }} under [probes] of a configuration',
        "questions": f'write semantic = {{ questions = "{output}", paraphraser = "…" }} under [probes] of a '
        "configuration",
        "known-answers": f"auditor experiment accuracy AUDIT {output}; the audit's paraphraser writes other wordings, "
        "unless you add a row with the column paraphrase for each",
        "rules": f"auditor experiment rules AUDIT --file {output}",
    }[kind]


def import_comparisons(
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="A file with the columns judge,context,item_a,item_b,relation,decision."),
    ],
    audit: NewAuditOption,
    people: Annotated[
        str | None,
        typer.Option("--people", metavar="JUDGE", help="The name that marks decisions by people in the column judge."),
    ] = None,
    items: Annotated[
        Path | None,
        typer.Option(
            "--items", metavar="FILE", help="A file of the items' texts and people's scores: item,context,text,human."
        ),
    ] = None,
    criterion: Annotated[
        str,
        typer.Option(
            "--criterion", help="Criterion by which items were compared, such as acceptability or preference."
        ),
    ] = "preference",
    storage: StorageOption = None,
) -> None:
    """Create an audit from comparisons of items in pairs.

    The report shows how logical the comparisons are; no model is asked. A row is one question with item_a shown first;
    relation is standard or negated; decision is A, B, TIE or empty (not measured). The column sample numbers
    repetitions of a question from 0, for self-agreement.

    Example: auditor import comparisons judged.csv --audit judged --people human
    """
    counts = import_recorded_comparisons(
        file, audit=audit, storage=storage, people=people, items=items, criterion=criterion
    )
    counted_items = (
        f"{pluralize(counts.items, 'item')} in {pluralize(counts.sets, 'set')}, {pluralize(counts.judges, 'judge')}"
    )
    print_message(
        f"{pluralize(counts.rows, 'row')}: {counted_items}, audit '{audit}'"
        f"{', which replaces its previous contents' if counts.replaced else ''}."
    )
    if counts.empty:
        print_message(f"  {pluralize(counts.empty, 'row')} without a decision: stored as missing answers of the judge.")
    if counts.undescribed and items is not None:
        print_message(
            f"  {pluralize(counts.undescribed, 'item')} not in {items.name}: without a text and a score of people."
        )
    print_message(f"Next: {format_command('report', audit, storage=storage)}")


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
            f"  no answer to {pluralize(ranking.failed, 'question')}, and {pluralize(ranking.over_budget, 'question')} "
            "not asked because of the budget. Their items were ranked as if the judge preferred neither."
        )
    if correlation.value is not None:
        interval = (
            "no interval"
            if correlation.ci_low is None
            else f"95% interval {correlation.ci_low:.2f} to {correlation.ci_high:.2f}"
        )
        print_message(
            f"  Agreement with people's ranking: Spearman's rho = {correlation.value:.2f} ({interval}, "
            f"{pluralize(correlation.n, 'item')})"
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
