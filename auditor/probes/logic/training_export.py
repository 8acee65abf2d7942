"""The command `export training`: rows for tuning a model, from comparisons or from a survey."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import typer

from auditor.console.options import AuditArgument, StorageOption, output_file
from auditor.console.output import print_message
from auditor.errors import UsageError
from auditor.exports.training import (
    build_survey_card,
    build_survey_rows,
    check_suffix,
    choose_held_out,
    to_records,
    write_training_files,
)
from auditor.probes.logic.repair_command import (
    AnswersOption,
    MethodOption,
    NegatedOption,
    NoiseOption,
    OnlyJudgeOption,
    SeedOption,
    StageOption,
    measure_repair,
    repair_stored_comparisons,
    write_rows,
)
from auditor.probes.logic.training_data import RepairSettings
from auditor.reports.number_format import pluralize
from auditor.run import open_stored_audit
from auditor.storage import audits

if TYPE_CHECKING:
    from auditor.exports.training import TrainingFormat

SourceOption: TypeAlias = Annotated[
    Literal["comparisons", "survey"],
    typer.Option(
        "--from", help="comparisons: a judge's comparisons, made consistent by REPAIR. survey: people's mean scores."
    ),
]
FormOption: TypeAlias = Annotated[
    Literal["preference", "chat", "completion", "chat-completion"],
    typer.Option(
        "--form",
        help="Format of the rows for TRL: preference (texts) or chat (messages) for DPOTrainer, completion (texts) or "
        "chat-completion (messages) for SFTTrainer.",
    ),
]
HeldOutOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--held-out",
        metavar="COUNTRY",
        help="With --from survey: a country to hold out; may be repeated. By default a fifth of them, drawn with "
        "--seed.",
    ),
]


def export_training(
    audit: AuditArgument,
    output: Annotated[Path, output_file("File for the rows (.jsonl or .parquet).")],
    source: SourceOption = "comparisons",
    form: FormOption = "preference",
    held_out: HeldOutOption = None,
    judge: OnlyJudgeOption = None,
    stage: StageOption = "repaired",
    method: MethodOption = "win-loss",
    noise: NoiseOption = 0.0,
    negated: NegatedOption = True,
    answers: AnswersOption = "json",
    seed: SeedOption = None,
    storage: StorageOption = None,
) -> None:
    """Write rows for training a model, in the formats of TRL.

    Rows are from comparisons at a stage of REPAIR (--judge, --stage, --method, --noise, --negated and --answers are for
    these), or from the survey's scores. Rows of a survey leave countries out: FILE has the others, and a second file,
    such as rows.held-out.jsonl, the rows of these. A description of the data is written too, FILE.md.

    Example: auditor export training moral-alignment --from survey --held-out Japan -o rows.jsonl
    """
    check_suffix(output)
    if source == "survey":
        _export_survey(audit, output, form, held_out or [], seed or 0, storage)
        return
    if held_out:
        raise UsageError("--held-out: no effect on comparisons.", "Add --from survey, or leave it out.")

    settings = RepairSettings(
        stage=stage,  # type: ignore[arg-type]  # RepairSettings checks it
        method=method,  # type: ignore[arg-type]
        answers=answers,  # type: ignore[arg-type]
        noise=noise,
        seed=seed,
        negated=negated,
        form=form,
    )
    repaired_answers, _ = repair_stored_comparisons(audit, judge, settings, storage, has_rows=True, is_for_review=False)
    write_rows(audit, repaired_answers, measure_repair(repaired_answers, settings), settings, output)


def _export_survey(
    audit: str, output: Path, form: TrainingFormat, countries: list[str], seed: int, storage: str | None
) -> None:
    """Write the rows of the countries to train on, of those held out, and the card."""
    with open_stored_audit(audit, storage) as (db, stored_audit):
        survey = audits.load_audit_survey(db, stored_audit)
    if survey.task is not None or not survey.scores:
        raise UsageError(f"audit '{audit}' has no survey with people's scores.", "Name an audit of a survey.")
    held_out = choose_held_out(survey, countries, seed)
    rows = build_survey_rows(survey, held_out)
    held_out_file = output.with_name(f"{output.stem}.held-out{output.suffix}")
    records = {output: to_records(rows.training, form), held_out_file: to_records(rows.held_out, form)}
    counts = [len(file_records) for file_records in records.values()]
    card_file = write_training_files(records, build_survey_card(survey.title, form, held_out, counts))
    print_message(
        f"Wrote {pluralize(counts[0], 'row')} to {output.resolve()}, {counts[1]} of held-out countries to "
        f"{held_out_file.name}, and a description of the data to {card_file.name}"
    )
