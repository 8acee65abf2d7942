"""Commands that import what belongs to no survey: answers to moral questions, and comparisons of items in pairs."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from auditor.cli.imports import NewAuditOption, import_app
from auditor.cli.options import StorageOption
from auditor.cli.output import format_command, print_message
from auditor.cli.progress import show_embedding_bar
from auditor.reports.number_format import pluralize

if TYPE_CHECKING:
    from auditor.probes.semantic.settings import SemanticProbe

QuestionsOption: TypeAlias = Annotated[
    str,
    typer.Option(
        "--questions", metavar="Q", help="The questions that the column question_id refers to: built-in, or a file."
    ),
]
AnsweringModelOption: TypeAlias = Annotated[
    str | None, typer.Option("--model", metavar="M", help="The model that answered, if the file does not name it.")
]
RuleWeightOption: TypeAlias = Annotated[
    float,
    typer.Option(
        "--rot-weight",
        min=0,
        max=1,
        help="Weight of the rules of thumb (0 to 1) in the similarity of two answers.",
    ),
]
MeasuresOption: TypeAlias = Annotated[
    str,
    typer.Option(
        "--rivals",
        metavar="LIST",
        help="Measures of similarity besides the cosine: bleu,bleu_nltk,rouge_l,rouge_l_stemmed,bertscore,"
        "bertscore_bert_base.",
    ),
]


class AnswerKindOption(StrEnum):
    """Kinds of answers to the items of a task."""

    CHOICE = "choice"
    EXACT = "exact"
    SCORE = "score"


@import_app.command("comparisons")
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
    from auditor.probes.logic.comparison_imports import import_comparisons as import_recorded_comparisons

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
    print_message(f"Next: {format_command('report', audit, storage=storage)}")


@import_app.command("answers")
def import_answers(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A file with the columns model,question_id,paraphrase,answer[,rot].")
    ],
    audit: NewAuditOption,
    questions: QuestionsOption = "built-in",
    model: AnsweringModelOption = None,
    encoder: Annotated[str | None, typer.Option("--encoder", metavar="E", help="Sentence encoder.")] = None,
    variant: Annotated[str, typer.Option("--variant", help="sage or sge.")] = "sage",
    alpha: Annotated[
        float, typer.Option("--alpha", help="Exponent of the weights in the formula of SaGE (consistency).")
    ] = 10.0,
    rot_weight: RuleWeightOption = 1.0,
    similarity_measures: MeasuresOption = "",
    bertscore_model: Annotated[
        str | None,
        typer.Option(
            "--bertscore-model",
            metavar="M",
            help="Weights for the measure bertscore_bert_base: a folder or a name on the Hugging Face hub "
            "(google-bert/bert-base-uncased).",
        ),
    ] = None,
    storage: StorageOption = None,
) -> None:
    """Create an audit from answers to moral questions.

    No model is asked. FILE may also be a published file of the Moral Consistency Corpus
    (question_id,paraphrased,model_output[,rot]) or the Moral Integrity Corpus (Q,A,rot). An empty answer counts as
    failed.

    Example: auditor import answers answers.csv --audit published
    """
    from auditor.probes.semantic.answer_imports import import_answers as import_recorded_answers

    options = {"questions": questions, "encoder": encoder, "variant": variant, "alpha": alpha, "rot_weight": rot_weight}
    options |= {} if bertscore_model is None else {"bertscore_model": bertscore_model}
    probe = _build_probe(options, similarity_measures)
    with show_embedding_bar() as on_step:
        counts = import_recorded_answers(
            file, audit=audit, probe=probe, model=model, storage=storage, on_progress=on_step
        )
    replaced = ", which replaces its previous contents" if counts.replaced else ""
    print_message(
        f"{pluralize(counts.rows, 'row')}: {pluralize(counts.questions, 'question')} and "
        f"{pluralize(counts.models, 'model')} in audit '{audit}'{replaced}."
    )
    if counts.empty:
        print_message(
            f"  {pluralize(counts.empty, 'row')} without an answer: stored as failed answers; reports give their "
            "number."
        )
    if counts.unscorable:
        n_unscorable = pluralize(counts.unscorable, "question")
        print_message(
            f"  {n_unscorable} of a model with fewer than two answers: without a score, since consistency compares a "
            "model's answers with each other."
        )
    print_message(f"Next: {format_command('report', audit, storage=storage)}")


@import_app.command("task-answers")
def import_task_answers(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="A file with the columns model,id,answer (or text)[,sample]; labels by rater and item as JSON; or "
            "logs of Inspect AI.",
        ),
    ],
    audit: NewAuditOption,
    task: Annotated[
        Path | None,
        typer.Option("--task", metavar="ITEMS", help="A file of the items: id,question[,context,truth,options]."),
    ] = None,
    answer: Annotated[
        AnswerKindOption | None, typer.Option("--answer", help="Kind of the answers: choice, exact or score.")
    ] = None,
    options: Annotated[
        str | None,
        typer.Option("--options", metavar="A|B", help="With choice: the options, if ITEMS has no such column."),
    ] = None,
    score_range: Annotated[
        tuple[float, float] | None,
        typer.Option("--range", metavar="LOW HIGH", help="With score: the lowest and the highest possible score."),
    ] = None,
    tolerance: Annotated[
        float | None, typer.Option("--tolerance", help="Largest error of a number that counts as correct.")
    ] = None,
    people: Annotated[
        Path | None, typer.Option("--people", metavar="FILE", help="People's answers to the same items.")
    ] = None,
    score: Annotated[
        str | None,
        typer.Option("--score", metavar="KEY", help="In a log: the score whose answer counts, if there are several."),
    ] = None,
    storage: StorageOption = None,
) -> None:
    """Create an audit from answers to the questions of a task.

    No model is asked. Logs of Inspect AI have the questions and right answers themselves. Without questions, as in
    tables of raters' labels, --answer says whether labels are equal or not (exact), or numbers (score).

    Example: auditor import task-answers answers.csv --task items.csv --answer choice --audit quiz

    Example: auditor import task-answers logs --audit from-inspect

    Example: auditor import task-answers llm_annotations.json --people human_annotations.json --answer exact --audit a
    """
    from auditor.imports.task_answers import import_task_answers as import_recorded_task_answers

    answer_format = {
        "answer": answer.value if answer else None,
        "options": [option.strip() for option in options.split("|")] if options else None,
        "range": score_range,
        "tolerance": tolerance,
    }
    counts = import_recorded_task_answers(
        file,
        audit=audit,
        items=task,
        answer_format={name: value for name, value in answer_format.items() if value is not None},
        people=people,
        score=score,
        storage=storage,
    )
    people_count = f" and {pluralize(counts.people, 'person', 'people')}" if counts.people else ""
    print_message(
        f"{pluralize(counts.rows, 'answer')} of {pluralize(counts.models, 'model')}{people_count} to "
        f"{pluralize(counts.items, 'item')} in audit '{audit}'"
        f"{', which replaces its previous contents' if counts.replaced else ''}."
    )
    if counts.failed:
        print_message(f"  {pluralize(counts.failed, 'row')} without a usable answer: the report gives their number.")
    for note in counts.notes:
        print_message(f"  {note}")
    print_message(f"Next: {format_command('report', audit, storage=storage)}")


def _build_probe(options: dict[str, Any], similarity_measures: str) -> SemanticProbe:
    """The settings of the scores from the options of the command; raises UsageError if one cannot be used."""
    import pydantic

    from auditor.config.validation_messages import explain_validation_error
    from auditor.errors import UsageError
    from auditor.probes.semantic.settings import SemanticProbe

    measures = [measure.strip() for measure in similarity_measures.split(",") if measure.strip()]
    try:
        return SemanticProbe.model_validate(options | {"rivals": measures})
    except pydantic.ValidationError as error:
        raise UsageError(
            f"an option has a value that is not valid: {explain_validation_error(error, options, SemanticProbe)}"
        ) from None
