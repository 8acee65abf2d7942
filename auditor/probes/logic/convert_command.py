"""The command that converts published data sets to files of items, comparisons, questions and rules."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias, get_args

import typer

from auditor.console.options import output_file
from auditor.console.output import print_message

if TYPE_CHECKING:
    from auditor.imports.published.rows import PublishedDataset

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
    from auditor.imports.published.registry import find_format, read_dataset, write_rows
    from auditor.imports.published.rows import ConversionOptions

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
    from auditor.errors import UsageError
    from auditor.imports.published.registry import find_format

    kinds = find_format(dataset_name).kinds
    for known in kinds:
        if kind in (None, known):
            return known
    raise UsageError(f"--as: {dataset_name} has no {kind}.", f"Use {' or '.join(kinds)}.")


def _needs_items(dataset: PublishedDataset) -> bool:
    """Whether comparisons only name their items, so that an import of them needs the file of items for the texts."""
    from auditor.imports.published.rows import PublishedItem

    texts = {row.item: row.text for row in dataset.rows.get("items", ()) if isinstance(row, PublishedItem)}
    compared = {item for row in dataset.rows.get("comparisons", ()) for item in row[1:3]}
    return any(texts.get(item, item) != item for item in compared)


def _list_next_steps(dataset_name: str, kind: str, output: Path, aspect: str, *, needs_items: bool) -> Iterator[str]:
    """Yield what can be done with a file of rows."""
    from auditor.imports.published.registry import find_format
    from auditor.imports.published.rows import PEOPLE_JUDGE
    from auditor.probes.logic.settings import LogicProbe

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
