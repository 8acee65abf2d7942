"""Write a survey to files that `load_survey` can read: scores, description, and the facts of the microdata."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path

from auditor.atomic_files import write_files
from auditor.domain import Survey, SurveyCell
from auditor.errors import SurveyError, UsageError
from auditor.surveys import description, distributions, survey_facts
from auditor.surveys.loader import OPTIONAL_COLUMNS


def write_survey(
    survey: Survey,
    path: str | Path,
    microdata_facts: survey_facts.SurveyFacts | None = None,
    shares: distributions.SurveyDistributions | None = None,
    *,
    overwrite: bool = False,
) -> list[Path]:
    """Write a survey as a tidy CSV file, with its description, facts and shares of answers in files next to it.

    Args:
        path: the CSV file; `load_survey` names the survey after its stem.
        microdata_facts: facts that only the microdata contain; without them no such file is written.
        shares: shares of answers by cell and group; without them no such file is written.
        overwrite: replace existing files.

    Returns:
        The files written. Each is written atomically.

    Raises:
        SurveyError: the suffix is not `.csv`, a file exists already, or the folder is not writable.
    """
    path = Path(path)
    if path.suffix.lower() != ".csv":
        raise SurveyError(f"{path}: surveys are written only as CSV.", "Use a file name that ends in .csv.")
    texts = {
        path: _format_csv(survey.cells),
        path.with_name(path.stem + description.DESCRIPTION_SUFFIX): _format_description(survey),
    }
    facts_path = path.with_name(path.stem + survey_facts.FACTS_SUFFIX)
    shares_path = path.with_name(path.stem + distributions.DISTRIBUTIONS_SUFFIX)
    if microdata_facts is not None:
        texts[facts_path] = microdata_facts.model_dump_json(indent=1) + "\n"
    if shares is not None:
        texts[shares_path] = distributions.format_distributions(shares)
    existing_files = [file_path for file_path in (*texts, facts_path, shares_path) if file_path.exists()]
    if existing_files and not overwrite:
        raise SurveyError(f"{existing_files[0]}: already exists.", "Choose another name, or overwrite it (--force).")
    try:
        write_files(texts)
        for companion_path in {facts_path, shares_path} - set(texts):
            companion_path.unlink(missing_ok=True)  # a file left by another survey would not match
    except UsageError as error:
        raise SurveyError(error.message, error.how_to_fix) from None
    except OSError as error:
        raise SurveyError(f"{path}: cannot be written: {error.strerror or error}.", "Choose another folder.") from None
    return list(texts)


def _format_csv(cells: Sequence[SurveyCell]) -> str:
    """Format cells as CSV; optional columns without any number are left out."""
    columns = [column for column in OPTIONAL_COLUMNS if any(getattr(cell, column) is not None for cell in cells)]
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(["country", "topic", "score", *columns])
    for cell in cells:
        numbers = [cell.score, *(getattr(cell, column) for column in columns)]
        writer.writerow([*cell.cell, *("" if number is None else repr(number) for number in numbers)])
    return buffer.getvalue()


def _format_description(survey: Survey) -> str:
    """Return the description of a survey as TOML: title, source, wording, scale, families of topics, words, and
    the questions of topics that have their own."""
    lines = [f"{key} = {format_toml_string(getattr(survey, key))}" for key in ("title", "source", "wording")]
    lines.append(f"scale = {format_toml_list(survey.scale)}")
    for table, texts_by_name in (("topic_families", survey.topic_families), ("words", survey.words)):
        lines += ["", f"[{table}]"] if texts_by_name or table == "words" else []
        lines += [f"{format_toml_string(name)} = {format_toml_list(texts)}" for name, texts in texts_by_name.items()]
    for topic, question in survey.topic_questions.items():
        lines += [
            "", f"[questions.{format_toml_string(topic)}]", f"wording = {format_toml_string(question.wording)}",
            f"scale = {format_toml_list(question.scale)}",
        ]  # fmt: skip
    return "\n".join(lines) + "\n"


def format_toml_list(texts: Sequence[str]) -> str:
    """Return texts as a TOML array on one line."""
    return f"[{', '.join(map(format_toml_string, texts))}]"


def format_toml_string(text: str) -> str:
    """Format a TOML basic string; JSON's escapes are valid in TOML, but JSON does not escape DEL, as TOML requires."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
