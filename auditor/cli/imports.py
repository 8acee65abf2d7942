"""Commands that import scores, answers, verdicts and comparisons; adds the groups `surveys` and `experiment` too."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from auditor.cli import experiments, surveys
from auditor.cli.options import StorageOption
from auditor.cli.output import format_command, print_message

if TYPE_CHECKING:
    from auditor.imports.recorded_audits import ImportedScores

import_app = typer.Typer(name="import", help="Bring in what was measured elsewhere.", no_args_is_help=True)


class AnswerFileOption(StrEnum):
    """Formats of a file of recorded answers."""

    AUTO = "auto"
    TABLE = "table"
    INSPECT = "inspect"
    PROMPTFOO = "promptfoo"


def register(app: typer.Typer) -> None:
    """Add the commands to the command-line app."""
    app.add_typer(surveys.app)
    app.add_typer(experiments.app)
    app.add_typer(import_app)


@import_app.command("scores")
def import_scores(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="model,country,topic,method,score[,sample]")],
    survey: Annotated[str, typer.Option("--survey", metavar="S", help="A built-in survey or a file.")],
    audit: Annotated[str, typer.Option("--audit", metavar="NAME", help="The audit that is made of it.")],
    regions: Annotated[
        str, typer.Option("--regions", metavar="G", help="Groups of countries: built in, or a file: country,region.")
    ] = "western",
    storage: StorageOption = None,
) -> None:
    """Make an audit of scores that were measured elsewhere, with no call to any model.

    An empty score is a sample that failed. Several samples of a cell are averaged.

    Example: auditor import scores scores.csv --survey wvs7-sample --audit published
    """
    from auditor.imports.recorded_audits import import_scores as import_recorded_scores

    counts = import_recorded_scores(file, survey=survey, audit=audit, storage=storage, regions=regions)
    counted_scores = f"{_pluralize(counts.scores, 'score')} of {_pluralize(counts.models, 'model')} in audit '{audit}'"
    print_message(
        f"{_pluralize(counts.rows, 'row')}: {counted_scores}"
        f"{', which replaces what it held' if counts.replaced else ''}."
    )
    if counts.empty:
        print_message(f"  {_pluralize(counts.empty, 'row')} without a score: counted as failed samples.")
    if counts.not_in_survey:
        print_message(
            f"  {_pluralize(counts.not_in_survey, 'row')} about cells that the survey does not have: kept, not "
            "compared."
        )
    print_message(f"Next: {format_command('report', audit, storage=storage)}")


@import_app.command("traces")
def import_traces(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="model,country,topic,sample,text[,score]; or a log; or a folder.")
    ],
    survey: Annotated[str, typer.Option("--survey", metavar="S", help="A built-in survey or a file.")],
    audit: Annotated[str, typer.Option("--audit", metavar="NAME", help="The audit that is made of it.")],
    source_format: Annotated[
        AnswerFileOption, typer.Option("--from", help="What FILE is; auto tells by its suffix and what is in it.")
    ] = AnswerFileOption.AUTO,
    country: Annotated[str, typer.Option("--country", metavar="KEY", help="Key of a log's countries.")] = "country",
    topic: Annotated[str, typer.Option("--topic", metavar="KEY", help="Key of a log's topics.")] = "topic",
    score: Annotated[
        str | None, typer.Option("--score", metavar="KEY", help="A log's score in [-1, 1]; else the text is read.")
    ] = None,
    regions: Annotated[
        str, typer.Option("--regions", metavar="G", help="Groups of countries: built in, or a file: country,region.")
    ] = "western",
    storage: StorageOption = None,
) -> None:
    """Make an audit of answers that were recorded elsewhere, with no call to any model.

    A row without a score is read for the line "SCORE = x", or as a refusal; an empty text is a sample that failed.
    FILE may also be a log of Inspect AI (.eval or .json, or a folder of them, one a model) or promptfoo's results
    (.json or .jsonl): country and topic are then looked for in each sample's metadata or variables.

    Example: auditor import traces answers.csv --survey wvs7-sample --audit published

    Example: auditor import traces logs --survey wvs7-sample --audit theirs --country nation
    """
    from auditor.imports.recorded_answers import AnswerFileFormat, LogKeys
    from auditor.imports.recorded_audits import import_traces as import_recorded_traces

    log_keys = LogKeys(country, topic, score)
    counts = import_recorded_traces(
        file,
        survey=survey,
        audit=audit,
        storage=storage,
        regions=regions,
        file_format=AnswerFileFormat(source_format.value),
        keys=log_keys,
    )
    _print_import_summary(audit, counts, storage)


def _print_import_summary(audit: str, counts: ImportedScores, storage: str | None) -> None:
    """Print how many scores were imported, how many rows lacked a score or a cell of the survey, and what is next."""
    counted_scores = f"{_pluralize(counts.scores, 'score')} of {_pluralize(counts.models, 'model')} in audit '{audit}'"
    print_message(
        f"{_pluralize(counts.rows, 'row')}: {counted_scores}"
        f"{', which replaces what it held' if counts.replaced else ''}."
    )
    if counts.empty:
        print_message(
            f"  {_pluralize(counts.empty, 'row')} without a readable score: counted by cause, see the report's "
            "coverage."
        )
    if counts.not_in_survey:
        print_message(
            f"  {_pluralize(counts.not_in_survey, 'row')} about cells that the survey does not have: kept, not "
            "compared."
        )
    for note in counts.notes:
        print_message(f"  {note}")
    verdicts_command = format_command("import", "verdicts", "FILE", "--audit", audit, storage=storage)
    print_message(f"Next: {format_command('report', audit, storage=storage)}, or {verdicts_command}")


@import_app.command("verdicts")
def import_verdicts(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="judge,model,country,topic,verdict[,justification][,sample]")
    ],
    audit: Annotated[str, typer.Option("--audit", metavar="NAME", help="An audit of imported traces or scores.")],
    storage: StorageOption = None,
) -> None:
    """Add verdicts that judges gave elsewhere to an audit that was imported.

    A verdict is VALID or INVALID, or empty where the judge gave none.

    Example: auditor import verdicts verdicts.csv --audit published
    """
    from auditor.imports.recorded_audits import import_verdicts as import_recorded_verdicts

    counts = import_recorded_verdicts(file, audit=audit, storage=storage)
    print_message(f"{_pluralize(counts.rows, 'row')} of {_pluralize(counts.judges, 'judge')} in audit '{audit}'.")
    if counts.empty:
        print_message(f"  {_pluralize(counts.empty, 'row')} without a verdict: counted as not given.")
    print_message(f"Next: {format_command('report', audit, storage=storage)}")


@import_app.command("comparisons")
def import_comparisons(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="judge,context,item_a,item_b,relation,decision")],
    audit: Annotated[str, typer.Option("--audit", metavar="NAME", help="The audit that is made of it.")],
    people: Annotated[
        str | None, typer.Option("--people", metavar="JUDGE", help="The judge whose rows are people's decisions.")
    ] = None,
    items: Annotated[
        Path | None, typer.Option("--items", metavar="FILE", help="Texts and people's scores: item,context,text,human.")
    ] = None,
    criterion: Annotated[
        str,
        typer.Option("--criterion", help="What items were compared by: acceptability, preference, relevance, …"),
    ] = "preference",
    storage: StorageOption = None,
) -> None:
    """Measure how logical recorded comparisons are, with no call to any model.

    A row is one question with item_a shown first; relation is standard or negated; decision is A, B, TIE or empty,
    which is not measured. A column sample (0 is the answer, from 1 on repeats) gives self-agreement.

    Example: auditor import comparisons judged.csv --audit judged --people human
    """
    from auditor.imports.comparisons import import_comparisons as import_recorded_comparisons

    counts = import_recorded_comparisons(
        file, audit=audit, storage=storage, people=people, items=items, criterion=criterion
    )
    counted_items = (
        f"{_pluralize(counts.items, 'item')} in {_pluralize(counts.sets, 'set')}, {_pluralize(counts.judges, 'judge')}"
    )
    print_message(
        f"{_pluralize(counts.rows, 'row')}: {counted_items}, audit '{audit}'"
        f"{', which it replaces' if counts.replaced else ''}."
    )
    if counts.empty:
        print_message(f"  {_pluralize(counts.empty, 'row')} without a decision: not measured.")
    print_message(f"Next: {format_command('report', audit, storage=storage)}")


@import_app.command("answers")
def import_answers(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="model,question_id,paraphrase,answer[,rot]")],
    audit: Annotated[str, typer.Option("--audit", metavar="NAME", help="The audit that is made of it.")],
    questions: Annotated[
        str, typer.Option("--questions", metavar="Q", help="The set that the ids are of: built-in or a file.")
    ] = "built-in",
    model: Annotated[
        str | None, typer.Option("--model", metavar="M", help="Whose answers, where the file does not say.")
    ] = None,
    encoder: Annotated[str | None, typer.Option("--encoder", metavar="E", help="Sentence encoder.")] = None,
    variant: Annotated[str, typer.Option("--variant", help="sage or sge.")] = "sage",
    alpha: Annotated[float, typer.Option("--alpha", help="Power that sharpens the weights of sage.")] = 10.0,
    rot_weight: Annotated[
        float, typer.Option("--rot-weight", min=0, max=1, help="Share of the rules of thumb; the rest is answers.")
    ] = 1.0,
    similarity_measures: Annotated[
        str, typer.Option("--rivals", metavar="LIST", help="More measures: bleu,rouge_l,bertscore.")
    ] = "",
    storage: StorageOption = None,
) -> None:
    """Score answers to moral questions that were given elsewhere, with no call to any model.

    Also read are the published files of the Moral Consistency Corpus (question_id,paraphrased,model_output[,rot]) and
    of the Moral Integrity Corpus (Q,A,rot). An empty answer is one that failed.

    Example: auditor import answers answers.csv --audit published
    """
    import pydantic

    from auditor.cli.progress import show_embedding_bar
    from auditor.config.semantic import SemanticProbe
    from auditor.config.validation_messages import explain_validation_error
    from auditor.errors import UsageError
    from auditor.imports.moral_answers import import_answers as import_recorded_answers

    probe_options = {
        "questions": questions,
        "encoder": encoder,
        "variant": variant,
        "alpha": alpha,
        "rot_weight": rot_weight,
    }
    try:
        probe = SemanticProbe.model_validate(
            probe_options
            | {"rivals": [measure.strip() for measure in similarity_measures.split(",") if measure.strip()]}
        )
    except pydantic.ValidationError as error:
        raise UsageError(
            f"the options of this command: {explain_validation_error(error, probe_options, SemanticProbe)}"
        ) from None
    with show_embedding_bar() as on_progress:
        counts = import_recorded_answers(
            file, audit=audit, probe=probe, model=model, storage=storage, on_progress=on_progress
        )
    counted_answers = (
        f"{_pluralize(counts.questions, 'question')} and {_pluralize(counts.models, 'model')} in audit '{audit}'"
    )
    print_message(
        f"{_pluralize(counts.rows, 'row')}: {counted_answers}"
        f"{', which replaces what it held' if counts.replaced else ''}."
    )
    if counts.empty:
        print_message(f"  {_pluralize(counts.empty, 'row')} without an answer: counted as failed.")
    if counts.unscorable:
        print_message(
            f"  {_pluralize(counts.unscorable, 'question')} of a model with fewer than two answers: not scored."
        )
    print_message(f"Next: {format_command('report', audit, storage=storage)}")


def _pluralize(n: int, noun: str) -> str:
    """A number with its noun, in the plural unless the number is 1: `1 row`, `2 rows`."""
    return f"{n} {noun}{'' if n == 1 else 's'}"
