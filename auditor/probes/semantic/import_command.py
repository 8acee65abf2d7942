"""The command that imports answers to moral questions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, TypeAlias

import pydantic
import typer

from auditor.config.validation_messages import explain_validation_error
from auditor.console.options import NewAuditOption, StorageOption
from auditor.console.output import format_command, print_message
from auditor.console.progress import show_embedding_bar
from auditor.errors import UsageError
from auditor.probes.semantic.answer_imports import import_answers as import_recorded_answers
from auditor.probes.semantic.settings import SemanticProbe
from auditor.reports.number_format import pluralize

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
            f"  {pluralize(counts.empty, 'row')} without an answer, or with a refusal: stored as failed answers; "
            "reports give their number."
        )
    if counts.unscorable:
        n_unscorable = pluralize(counts.unscorable, "question")
        print_message(
            f"  {n_unscorable} of a model with fewer than two answers, or rules of thumb, to compare: without a score."
        )
    print_message(f"Next: {format_command('report', audit, storage=storage)}")


def _build_probe(options: dict[str, Any], similarity_measures: str) -> SemanticProbe:
    """The settings of the scores from the options of the command; raises UsageError if one cannot be used."""
    measures = [measure.strip() for measure in similarity_measures.split(",") if measure.strip()]
    try:
        return SemanticProbe.model_validate(options | {"rivals": measures})
    except pydantic.ValidationError as error:
        raise UsageError(
            f"an option has a value that is not valid: {explain_validation_error(error, options, SemanticProbe)}"
        ) from None
