"""Commands that import scores, answers, verdicts and comparisons."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from auditor.cli.options import LabelKindOption, StorageOption
from auditor.cli.output import format_command, print_message
from auditor.cli.progress import show_embedding_bar

if TYPE_CHECKING:
    from auditor.config.semantic import SemanticProbe
    from auditor.imports.recorded_audits import ImportedScores

import_app = typer.Typer(
    name="import", help="Import scores, answers or verdicts measured elsewhere.", no_args_is_help=True
)


class AnswerFileOption(StrEnum):
    """Formats of a file of recorded answers."""

    AUTO = "auto"
    TABLE = "table"
    INSPECT = "inspect"
    PROMPTFOO = "promptfoo"


NewAuditOption: TypeAlias = Annotated[str, typer.Option("--audit", metavar="NAME", help="Name of the new audit.")]
SurveyOption: TypeAlias = Annotated[
    str, typer.Option("--survey", metavar="S", help="The survey to compare with: a built-in one, or a file.")
]
RegionsOption: TypeAlias = Annotated[
    str,
    typer.Option(
        "--regions",
        metavar="G",
        help="Groups of countries: a built-in grouping, or a file with the columns country,region.",
    ),
]
TracesArgument: TypeAlias = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        help="A file with the columns model,country,topic,sample,text[,score]; or a log of Inspect AI or promptfoo; "
        "or a folder of logs.",
    ),
]
SourceFormatOption: TypeAlias = Annotated[
    AnswerFileOption, typer.Option("--from", help="Format of FILE; by default recognized by its suffix and contents.")
]
ScoreKeyOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--score",
        metavar="KEY",
        help="Name under which a log holds scores from -1 to 1; by default, scores are read from the text.",
    ),
]
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


@import_app.command("scores")
def import_scores(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A file with the columns model,country,topic,method,score[,sample].")
    ],
    survey: SurveyOption,
    audit: NewAuditOption,
    regions: RegionsOption = "western",
    storage: StorageOption = None,
) -> None:
    """Create an audit from scores that were measured elsewhere.

    No model is asked. An empty score counts as a failed sample. Several samples of a cell are averaged.

    Example: auditor import scores scores.csv --survey wvs7-sample --audit published
    """
    from auditor.imports.recorded_audits import import_scores as import_recorded_scores

    counts = import_recorded_scores(file, survey=survey, audit=audit, storage=storage, regions=regions)
    counted_scores = f"{pluralize(counts.scores, 'score')} of {pluralize(counts.models, 'model')} in audit '{audit}'"
    print_message(
        f"{pluralize(counts.rows, 'row')}: {counted_scores}"
        f"{', which replaces its previous contents' if counts.replaced else ''}."
    )
    if counts.empty:
        print_message(
            f"  {pluralize(counts.empty, 'row')} without a score: stored as failed answers; reports give their number."
        )
    if counts.not_in_survey:
        print_message(
            f"  {pluralize(counts.not_in_survey, 'row')} about countries and topics that the survey does not have: "
            "stored, but not compared with people."
        )
    print_message(f"Next: {format_command('report', audit, storage=storage)}")


@import_app.command("traces")
def import_traces(
    file: TracesArgument,
    survey: SurveyOption,
    audit: NewAuditOption,
    source_format: SourceFormatOption = AnswerFileOption.AUTO,
    country: Annotated[
        str,
        typer.Option(
            "--country", metavar="KEY", help="Name under which a log (Inspect AI, promptfoo) holds the country."
        ),
    ] = "country",
    topic: Annotated[
        str, typer.Option("--topic", metavar="KEY", help="Name under which a log holds the topic.")
    ] = "topic",
    score: ScoreKeyOption = None,
    regions: RegionsOption = "western",
    storage: StorageOption = None,
) -> None:
    """Create an audit from answers that were recorded elsewhere.

    No model is asked. Without a score, the text is searched for the line "SCORE = x" or a refusal; an empty text counts
    as a failed sample. FILE may also be a log of Inspect AI (.eval or .json, or a folder with one for each model) or
    promptfoo's results (.json or .jsonl): country and topic then come from each sample's metadata or variables.

    Example: auditor import traces answers.csv --survey wvs7-sample --audit published

    Example: auditor import traces logs --survey wvs7-sample --audit theirs --country nation
    """
    from auditor.imports.recorded_answers import AnswerFileFormat, LogKeys
    from auditor.imports.recorded_audits import import_traces as import_recorded_traces

    file_format, keys = AnswerFileFormat(source_format.value), LogKeys(country, topic, score)
    counts = import_recorded_traces(
        file, survey=survey, audit=audit, storage=storage, regions=regions, file_format=file_format, keys=keys
    )
    _print_import_summary(audit, counts, storage)


def _print_import_summary(audit: str, counts: ImportedScores, storage: str | None) -> None:
    """Print how many scores were imported, how many rows lacked a score or a cell of the survey, and what is next."""
    counted_scores = f"{pluralize(counts.scores, 'score')} of {pluralize(counts.models, 'model')} in audit '{audit}'"
    print_message(
        f"{pluralize(counts.rows, 'row')}: {counted_scores}"
        f"{', which replaces its previous contents' if counts.replaced else ''}."
    )
    if counts.empty:
        print_message(
            f"  {pluralize(counts.empty, 'row')} without a readable score: the report gives their number by cause."
        )
    if counts.not_in_survey:
        print_message(
            f"  {pluralize(counts.not_in_survey, 'row')} about countries and topics that the survey does not have: "
            "stored, but not compared with people."
        )
    for note in counts.notes:
        print_message(f"  {note}")
    verdicts_command = format_command("import", "verdicts", "FILE", "--audit", audit, storage=storage)
    print_message(f"Next: {format_command('report', audit, storage=storage)}, or {verdicts_command}")


@import_app.command("verdicts")
def import_verdicts(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="A file with the columns judge,model,country,topic,verdict[,justification][,sample]."
        ),
    ],
    audit: Annotated[
        str,
        typer.Option(
            "--audit",
            metavar="NAME",
            help="The audit to add the verdicts to; its answers or scores must be imported too.",
        ),
    ],
    storage: StorageOption = None,
) -> None:
    """Add verdicts from elsewhere to an imported audit.

    A verdict is VALID or INVALID, or empty where the judge gave none.

    Example: auditor import verdicts verdicts.csv --audit published
    """
    from auditor.imports.recorded_audits import import_verdicts as import_recorded_verdicts

    counts = import_recorded_verdicts(file, audit=audit, storage=storage)
    print_message(f"{pluralize(counts.rows, 'row')} of {pluralize(counts.judges, 'judge')} in audit '{audit}'.")
    if counts.empty:
        print_message(
            f"  {pluralize(counts.empty, 'row')} without a verdict (VALID or INVALID): counted as missing votes."
        )
    print_message(f"Next: {format_command('report', audit, storage=storage)}")


@import_app.command("labels")
def import_labels(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="A file with the columns rater,model,country,topic,sample,verdict[,inclusion]; or "
            "Label Studio's JSON export.",
        ),
    ],
    audit: Annotated[str, typer.Option("--audit", metavar="NAME", help="The audit whose traces were labelled.")],
    kind: Annotated[
        LabelKindOption, typer.Option("--kind", help="What was labelled: trace, answer_pair or comparison.")
    ] = LabelKindOption.TRACE,
    storage: StorageOption = None,
) -> None:
    """Add people's labels from another program to an audit.

    A verdict is VALID, INVALID or unsure; a column named after an aspect, such as score_fit, is true or false. Labels
    of traces that auditor review --sample drew count like those made on the review screen. If you drew the sample
    yourself, write the probability with which each trace was chosen in the column inclusion.

    Example: auditor import labels labels.csv --audit moral-alignment
    """
    from auditor.domain.labels import LabelKind
    from auditor.imports.labels import import_labels as import_recorded_labels

    label_kind = LabelKind(kind.value)
    counts = import_recorded_labels(file, audit=audit, storage=storage, kind=label_kind)
    print_message(f"{pluralize(counts.rows, 'label')} of {pluralize(counts.raters, 'rater')} in audit '{audit}'.")
    if counts.unchanged:
        print_message(f"  Already stored and unchanged: {pluralize(counts.unchanged, 'label')}.")
    if counts.empty:
        print_message(f"  {pluralize(counts.empty, 'row')} without a verdict: not imported.")
    if counts.outside:
        nouns = f"{label_kind.noun}s"
        reason = (
            "are outside of the sample"
            if counts.n_sampled
            else f"have no inclusion probability, and the audit has no drawn sample of {nouns}"
        )
        print_message(
            f"  {pluralize(counts.outside, 'label')} stored, but not used to correct the judges' figures: their "
            f"{nouns} {reason}, so they are not a random sample."
        )


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
    from auditor.imports.comparisons import import_comparisons as import_recorded_comparisons

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
    from auditor.imports.moral_answers import import_answers as import_recorded_answers

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


def _build_probe(options: dict[str, Any], similarity_measures: str) -> SemanticProbe:
    """The settings of the scores from the options of the command; raises UsageError if one cannot be used."""
    import pydantic

    from auditor.config.semantic import SemanticProbe
    from auditor.config.validation_messages import explain_validation_error
    from auditor.errors import UsageError

    measures = [measure.strip() for measure in similarity_measures.split(",") if measure.strip()]
    try:
        return SemanticProbe.model_validate(options | {"rivals": measures})
    except pydantic.ValidationError as error:
        raise UsageError(
            f"an option has a value that is not valid: {explain_validation_error(error, options, SemanticProbe)}"
        ) from None


def pluralize(n: int, noun: str) -> str:
    """A number with its noun, in the plural unless the number is 1: `1 row`, `2 rows`."""
    return f"{n} {noun}{'' if n == 1 else 's'}"
