"""The command that converts published data sets to files of items, comparisons, questions and rules."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from auditor.cli.output import print_message

FormArgument: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="FORM",
        help="The data set that SOURCE is from: summeval, novel-eval, ms-marco, rankgpt, caters, "
        "summarize-from-feedback, truthful-qa, hellaswag or mic.",
    ),
]
SourceArgument: TypeAlias = Annotated[
    Path, typer.Argument(metavar="SOURCE", help="The data set's file or folder, as its authors published it.")
]
OutputOption: TypeAlias = Annotated[
    Path, typer.Option("-o", "--output", metavar="FILE", help="File to write (.jsonl).")
]
KindOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--as",
        help="What to write: items (default); comparisons, by people (caters and summarize-from-feedback); questions "
        "(truthful-qa; default for mic); rules of thumb, by people (mic); known-answers, for the experiment accuracy "
        "(truthful-qa and hellaswag).",
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
SplitOption: TypeAlias = Annotated[
    str,
    typer.Option(
        "--split", help="summarize-from-feedback, hellaswag and mic: read only this part of the data, such as train."
    ),
]
SampleLimitOption: TypeAlias = Annotated[
    int | None,
    typer.Option("--limit", min=1, help="Draw this many sets of items, task items or questions at random."),
]
SeedOption: TypeAlias = Annotated[int, typer.Option("--seed", min=0, help="Seed of --limit and of random orders.")]


def convert(
    form: FormArgument,
    source: SourceArgument,
    output: OutputOption,
    kind: KindOption = None,
    aspect: AspectOption = "",
    permutations: PermutationsOption = None,
    min_events: MinEventsOption = None,
    split: SplitOption = "",
    limit: SampleLimitOption = None,
    seed: SeedOption = 0,
) -> None:
    """Convert a published data set to a file of items or questions.

    Items are compared in pairs (probe logic), or are a task's items (truthful-qa and hellaswag). Files that are written
    with the same options belong together, such as a file of items and one of people's comparisons.

    Example: auditor logic convert summeval model_annotations.aligned.paired.jsonl -o items.jsonl
    """
    from auditor.errors import UsageError
    from auditor.imports.published.registry import find_format, read_dataset, write_rows
    from auditor.imports.published.rows import ConversionOptions

    dataset_format = find_format(form)
    kind = kind or dataset_format.kinds[0]
    if kind not in dataset_format.kinds:
        raise UsageError(f"--as: {form} has no {kind}.", f"Use {' or '.join(dataset_format.kinds)}.")
    dataset = read_dataset(form, source, ConversionOptions(aspect, permutations, min_events, split, seed))
    if limit is not None:
        dataset = dataset.sample(limit, seed)
    n_rows = write_rows(dataset, output, kind)
    for note in dataset.notes:
        print_message(note)
    if dataset_format.layout_source:
        print_message(
            f"Layout not verified on a real file: it is that of {dataset_format.layout_source}. Check some rows."
        )
    print_message(f"{n_rows} {kind.replace('-', ' ')}: {output.resolve()}")
    is_task = form in ("truthful-qa", "hellaswag")
    print_message(f"Next: {_describe_next_step('task items' if is_task and kind == 'items' else kind, output)}")


def _describe_next_step(kind: str, output: Path) -> str:
    """What to do with a file of rows."""
    from auditor.imports.published.registry import PEOPLE_JUDGE

    return {
        "items": f'write logic = {{ items = "{output}", relation = "…" }} under [probes] of a configuration',
        "task items": f'write task = {{ source = "{output}", answer = "choice" }} in a configuration',
        "comparisons": f'add people = "{output}" to logic = {{ items = … }} under [probes] of a configuration; or '
        f"auditor import comparisons {output} --audit NAME --people {PEOPLE_JUDGE}",
        "questions": f'write semantic = {{ questions = "{output}", paraphraser = "…" }} under [probes] of a '
        "configuration",
        "known-answers": f"auditor experiment accuracy AUDIT {output}; the audit's paraphraser writes other wordings, "
        "unless you add a row with the column paraphrase for each",
        "rules": f"auditor experiment rules AUDIT --file {output}",
    }[kind]
