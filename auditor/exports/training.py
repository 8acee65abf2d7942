"""Rows for training a model, in the formats of TRL: from comparisons, and from a survey with countries held out."""

from __future__ import annotations

import io
import json
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from auditor.agents.localization import question_prompt_fields
from auditor.atomic_files import write_files
from auditor.domain import ENGLISH, Cell, Message, Survey, derive_seed
from auditor.errors import UsageError, did_you_mean, pluralize
from auditor.lazy_imports import import_when_used
from auditor.reports.document import Code, Document, Inline, Paragraph, Section
from auditor.reports.output import render_document

if not TYPE_CHECKING:
    pa = import_when_used("pyarrow")
    pq = import_when_used("pyarrow.parquet")
else:
    import pyarrow as pa
    import pyarrow.parquet as pq

TrainingFormat = Literal["preference", "chat", "completion", "chat-completion"]
"""Formats of TRL: `preference` and `chat` have a chosen and a rejected answer (DPOTrainer), `completion` and
`chat-completion` one completion (SFTTrainer); those with `chat` consist of messages, the others of texts."""
DEFAULT_HELD_OUT_SHARE = 0.2
CARD_SECTION = "How they were made"
"""Heading of a section of all cards, by which a card of an earlier export is recognized."""
MIN_SHIFT = 0.1
"""Of a country from the mean of the training countries; below it there is no rejected answer."""


class TrainingText(NamedTuple):
    """One question with the answer to train.

    Attributes:
        messages: the prompt.
        rejected: an answer that is worse than `chosen`; None if there is none.
        source: further columns of the row.
    """

    messages: tuple[Message, ...]
    chosen: str
    rejected: str | None
    source: Mapping[str, Any]


class SurveyRows(NamedTuple):
    """Rows from a survey: those of the countries to train on, and of those held out for a test."""

    training: list[TrainingText]
    held_out: list[TrainingText]


def to_records(rows: Sequence[TrainingText], form: TrainingFormat) -> list[dict[str, Any]]:
    """Convert rows to records of a format, one dictionary a row; rows without a rejected answer have no preference."""
    is_preference, has_messages = form in ("preference", "chat"), form.startswith("chat")
    return [
        _to_record(row, is_preference=is_preference, has_messages=has_messages)
        for row in rows
        if row.rejected is not None or not is_preference
    ]


def _to_record(row: TrainingText, *, is_preference: bool, has_messages: bool) -> dict[str, Any]:
    """One row as texts or messages, with its further columns."""

    def answer(text: str | None) -> Any:
        return [{"role": "assistant", "content": text}] if has_messages else text

    prompt: Any = "\n\n".join(message.content for message in row.messages)
    if has_messages:
        prompt = [{"role": message.role, "content": message.content} for message in row.messages]
    answers = (
        {"chosen": answer(row.chosen), "rejected": answer(row.rejected)}
        if is_preference
        else {"completion": answer(row.chosen)}
    )
    return {"prompt": prompt, **answers, **row.source}


def build_survey_rows(survey: Survey, held_out: Collection[str]) -> SurveyRows:
    """Build a row from each cell in which people were asked: the country's mean score is the chosen answer.

    The rejected answer is the mean of the training countries on the topic: what a model says that does not tell
    countries apart. There is none where the two differ by less than 0.1.
    """
    scores = survey.scores
    by_topic: dict[str, list[float]] = {}
    for cell, score in scores.items():
        if cell.country not in held_out:
            by_topic.setdefault(cell.topic, []).append(score)
    rows = SurveyRows([], [])
    for cell, score in scores.items():
        mean = fmean(by_topic[cell.topic]) if cell.topic in by_topic else None
        rejected = None if mean is None or abs(score - mean) < MIN_SHIFT else f"{mean:+.2f}"
        source = {"country": cell.country, "topic": cell.topic}
        row = TrainingText(render_survey_question(survey, cell), f"{score:+.2f}", rejected, source)
        (rows.held_out if cell.country in held_out else rows.training).append(row)
    return rows


def render_survey_question(survey: Survey, cell: Cell) -> tuple[Message, ...]:
    """The survey's question about a cell, to be answered with a number from -1 to +1."""
    fields = question_prompt_fields(survey, cell, ENGLISH)
    scale = f"from -1.00 ({fields['never']}) to +1.00 ({fields['always']})"
    return (Message("user", f"{fields['question']}\nAnswer with one number {scale}, and nothing else."),)


def choose_held_out(survey: Survey, countries: Sequence[str], seed: int) -> list[str]:
    """The countries that are held out: as named, else a fifth of all, at least one, drawn at random.

    Raises:
        UsageError: the survey has no such country, or no country is left for training.
    """
    known = sorted({cell.country for cell in survey.scores})
    for name in countries:
        if name not in known:
            raise UsageError(
                f"--held-out: the survey has no country '{name}'.",
                did_you_mean(name, known, f"Countries: {', '.join(known[:8])} …"),
            )
    if not countries and len(known) > 1:
        rng = np.random.default_rng(derive_seed(seed, "held out"))
        n_drawn = max(1, round(DEFAULT_HELD_OUT_SHARE * len(known)))
        countries = [known[i] for i in rng.permutation(len(known))[:n_drawn]]
    if len(set(countries)) >= len(known):
        raise UsageError(
            "no country is left for training.", "Hold out fewer countries, or use a survey with several countries."
        )
    return sorted(set(countries))


def check_suffix(file: Path) -> None:
    """Raise UsageError if rows cannot be written to a file of this name."""
    if file.suffix not in (".jsonl", ".parquet"):
        raise UsageError(f"{file}: the file name must end in .jsonl or .parquet.", "Rename the file.")


def write_training_files(records_by_path: Mapping[Path, Sequence[Mapping[str, Any]]], card: Document) -> Path:
    """Write records as JSONL or Parquet, chosen by each file's suffix, and their card beside the first; all or none.

    Returns:
        The path of the card.

    Raises:
        UsageError: another suffix, the folder does not exist, or a file is not replaced.
    """
    first_path = next(iter(records_by_path))
    card_path = first_path.with_name(f"{first_path.name}.md")
    content_by_path = {path: _format_records(records, path) for path, records in records_by_path.items()}
    write_files({**content_by_path, card_path: render_document(card, "markdown").encode()}, {card_path: CARD_SECTION})
    return card_path


def _format_records(records: Sequence[Mapping[str, Any]], file: Path) -> bytes:
    """Records in the format of a file's suffix."""
    check_suffix(file)
    if file.suffix == ".jsonl":
        return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records).encode()
    buffer = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(list(records)), buffer)
    return buffer.getvalue()


def build_survey_card(title: str, form: TrainingFormat, held_out: Sequence[str], counts: Sequence[int]) -> Document:
    """Describe rows from a survey, and which countries test a model that is trained on them.

    Args:
        counts: rows for training, and rows of held-out countries.
    """
    about_rows = (
        "Each row asks the survey’s question about a country and a topic. The answer is the mean score of the "
        "country’s people, from -1 to +1."
    )
    if form in ("preference", "chat"):
        about_rows += (
            " The rejected answer is the mean of the training countries on the topic: what a model answers that does "
            f"not tell countries apart. Cells that differ from it by less than {MIN_SHIFT:g} have no row."
        )
    quoted = ", ".join(f'"{name}"' for name in held_out)
    test: list[Inline] = [
        f"The second file has {pluralize(counts[1], 'row')} of held-out countries. Audit the trained model on "
        "these countries: ",
        Code(f"survey.countries = [{quoted}]"),
        ".",
    ]
    limits = (
        "Means of samples of people have sampling errors, and say nothing of differences among a country’s people. "
        "Whether a trained model is closer to people in other countries, or on other questions, has to be measured. "
        "The survey’s terms apply."
    )
    return Document(
        "Data card",
        f"Rows for training from {title}",
        "",
        [
            Section("made", CARD_SECTION, [Paragraph(about_rows)]),
            Section("test", "Countries for the test", [Paragraph(test)]),
            Section("limits", "Limits", [Paragraph(limits)]),
        ],
        [Paragraph([f"{pluralize(counts[0], 'row')} in the form ", Code(form), "."])],
    )
