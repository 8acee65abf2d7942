"""Commands that import scores, answers, verdicts and labels; those of built-in probes are in the probes' folders."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import typer

from auditor.console.options import (
    CountryCodesOption,
    NewAuditOption,
    RegionsOption,
    StorageOption,
    StrictOption,
    SurveyOption,
    label_kind_option,
    resolve_audit_name,
)
from auditor.console.output import format_command, print_message, print_unmatched_rows
from auditor.console.progress import show_reading_bar
from auditor.domain.labels import LabelKind
from auditor.imports.labels import import_labels as import_recorded_labels
from auditor.imports.recorded_answers import AnswerFileFormat, LogKeys
from auditor.imports.recorded_audits import (
    import_scores as import_recorded_scores,
    import_traces as import_recorded_traces,
    import_verdicts as import_recorded_verdicts,
)
from auditor.imports.task_answers import import_task_answers as import_recorded_task_answers
from auditor.reports.number_format import format_count, pluralize

if TYPE_CHECKING:
    from auditor.imports.recorded_audits import ImportedScores

import_app = typer.Typer(
    name="import", help="Import scores, answers or verdicts measured elsewhere.", no_args_is_help=True
)


TracesArgument: TypeAlias = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        help="A file with the columns model,country,topic,sample,text[,score]; or a log of Inspect AI or promptfoo; "
        "or a folder of logs.",
    ),
]
SourceFormatOption: TypeAlias = Annotated[
    Literal["auto", "table", "inspect", "promptfoo"],
    typer.Option("--from", help="Format of FILE; by default recognized by its suffix and contents."),
]
ScoreKeyOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--score",
        metavar="KEY",
        help="Name under which a log holds scores from -1 to 1; by default, scores are read from the text.",
    ),
]
QuestionOption: TypeAlias = Annotated[
    str | None,
    typer.Option("--question", metavar="TEXT", help="The question that the models were asked; reports quote it."),
]


@import_app.command("scores")
def import_scores(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A file with the columns model,country,topic,method,score[,sample].")
    ],
    survey: SurveyOption,
    audit: NewAuditOption,
    regions: RegionsOption = "western",
    question: QuestionOption = None,
    country_codes: CountryCodesOption = None,
    strict: StrictOption = False,
    storage: StorageOption = None,
) -> None:
    """Create an audit from scores that were measured elsewhere.

    No model is asked. The audit is about the cells of the file: a row with an empty score is a sample that was lost,
    and other cells of the survey were not planned. Several samples of a cell are averaged.

    Example: auditor import scores scores.csv --survey wvs7-sample --audit published
    """
    with show_reading_bar(file.name):
        counts = import_recorded_scores(
            file,
            survey=survey,
            audit=audit,
            storage=storage,
            regions=regions,
            question=question,
            is_strict=strict,
            country_codes=country_codes,
        )
    _print_import_summary(audit, counts, "without a score: counted as lost samples; reports give their number")
    print_message(f"Next: {format_command('report', audit, storage=storage)}")


@import_app.command("traces")
def import_traces(
    file: TracesArgument,
    survey: SurveyOption,
    audit: NewAuditOption,
    source_format: SourceFormatOption = "auto",
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
    question: QuestionOption = None,
    country_codes: CountryCodesOption = None,
    strict: StrictOption = False,
    storage: StorageOption = None,
) -> None:
    """Create an audit from answers that were recorded elsewhere.

    No model is asked. Without a score, the text is searched for the line "SCORE = x" or a refusal; an empty text counts
    as a failed sample. FILE may also be a log of Inspect AI (.eval or .json, or a folder with one for each model) or
    promptfoo's results (.json or .jsonl): country and topic then come from each sample's metadata or variables.

    Example: auditor import traces answers.csv --survey wvs7-sample --audit published

    Example: auditor import traces logs --survey wvs7-sample --audit theirs --country nation
    """
    file_format, keys = AnswerFileFormat(source_format), LogKeys(country, topic, score)
    with show_reading_bar(file.name):
        counts = import_recorded_traces(
            file,
            survey=survey,
            audit=audit,
            storage=storage,
            regions=regions,
            file_format=file_format,
            keys=keys,
            question=question,
            is_strict=strict,
            country_codes=country_codes,
        )
    _print_import_summary(audit, counts, "without a readable score: the report gives their number by cause")
    verdicts_command = format_command("import", "verdicts", "FILE", "--audit", audit, storage=storage)
    print_message(f"Next: {format_command('report', audit, storage=storage)}, or {verdicts_command}")


def _print_import_summary(audit: str, counts: ImportedScores, empty_rows: str) -> None:
    """Print how many scores were imported, and how many rows lacked a score or a cell of the survey.

    Args:
        empty_rows: what a row without a score is, and what becomes of it.
    """
    counted_scores = f"{pluralize(counts.scores, 'score')} of {pluralize(counts.models, 'model')} in audit '{audit}'"
    print_message(
        f"{pluralize(counts.rows, 'row')}: {counted_scores}"
        f"{', which replaces its previous contents' if counts.replaced else ''}."
    )
    if counts.empty:
        print_message(f"  {pluralize(counts.empty, 'row')} {empty_rows}.")
    print_unmatched_rows(counts.unmatched)
    for note in counts.notes:
        print_message(f"  {note}")


@import_app.command("verdicts")
def import_verdicts(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="A file with the columns judge,model,country,topic,verdict[,justification][,sample]; for a task "
            "judge,model,id,verdict.",
        ),
    ],
    audit: Annotated[
        str,
        typer.Option(
            "--audit",
            metavar="NAME",
            help="The audit to add the verdicts to; its answers or scores must be imported too.",
            callback=resolve_audit_name,
        ),
    ],
    storage: StorageOption = None,
) -> None:
    """Add verdicts from elsewhere to an imported audit.

    A verdict is VALID or INVALID, or empty where the judge gave none. It replaces the judge's earlier one on the same
    trace.

    Example: auditor import verdicts verdicts.csv --audit published
    """
    counts = import_recorded_verdicts(file, audit=audit, storage=storage)
    print_message(f"{pluralize(counts.rows, 'row')} of {pluralize(counts.judges, 'judge')} in audit '{audit}'.")
    if counts.empty:
        print_message(
            f"  {pluralize(counts.empty, 'row')} without a verdict (VALID or INVALID): counted as missing votes."
        )
    if counts.lost:
        causes = ", ".join(f"{outcome} {format_count(n)}" for outcome, n in counts.lost.items())
        print_message(
            f"  {pluralize(sum(counts.lost.values()), 'row')} about lost answers ({causes}): not imported, since no "
            "figure uses these answers."
        )
    if counts.self_verdicts:
        rows = pluralize(counts.self_verdicts, "row")
        print_message(
            f"  {rows} in which a model judges its own answer: not imported, since peer agreement is that of others."
        )
    if counts.changed:
        print_message(f"  {pluralize(counts.changed, 'row')} replaced another verdict of the judge on the same trace.")
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
    audit: Annotated[
        str,
        typer.Option(
            "--audit",
            metavar="AUDIT",
            help="The audit whose traces were labelled, by its name or config file.",
            callback=resolve_audit_name,
        ),
    ],
    kind: Annotated[str, label_kind_option("What was labelled: trace, answer_pair or comparison.")] = "trace",
    storage: StorageOption = None,
) -> None:
    """Add people's labels from another program to an audit.

    A verdict is VALID, INVALID or unsure; a column named after an aspect, such as score_fit, is true or false. Labels
    of traces that auditor review --sample drew count like those made on the review screen. If you drew the sample
    yourself, write the probability with which each trace was chosen in the column inclusion.

    Example: auditor import labels labels.csv --audit moral-alignment
    """
    label_kind = LabelKind(kind)
    from auditor.review.label_sampling import hash_shown_text  # late: loads numpy

    counts = import_recorded_labels(file, audit=audit, storage=storage, kind=label_kind, hash_text=hash_shown_text)
    print_message(f"{pluralize(counts.rows, 'label')} of {pluralize(counts.raters, 'rater')} in audit '{audit}'.")
    if counts.unchanged:
        print_message(f"  Already stored and unchanged: {pluralize(counts.unchanged, 'label')}.")
    if counts.changed:
        print_message(
            f"  {pluralize(counts.changed, 'label')} replaced another label of the rater on the same {label_kind.noun}."
        )
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


class AnswerKindOption(StrEnum):
    """Kinds of answers to the items of a task."""

    CHOICE = "choice"
    EXACT = "exact"
    SCORE = "score"


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


COMMANDS_OF_PROBES = {
    "comparisons": "auditor.probes.logic.commands:import_comparisons",
    "answers": "auditor.probes.semantic.import_command:import_answers",
    "opinions": "auditor.probes.distribution.import_command:import_opinions",
}
"""Functions of the commands of built-in probes, by the command's name."""
for _name, _path in COMMANDS_OF_PROBES.items():
    import_app.command(_name)(resolve_name(_path))
