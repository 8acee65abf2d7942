"""A survey into files that `load_survey` reads back: figures, description, and the facts of the microdata."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path

from auditor.atomic_files import write_whole
from auditor.domain import Survey, SurveyCell
from auditor.errors import SurveyError, UsageError
from auditor.surveys import description, survey_facts
from auditor.surveys.loader import OPTIONAL


def write_survey(
    survey: Survey, path: str | Path, about: survey_facts.SurveyFacts | None = None, *, overwrite: bool = False
) -> list[Path]:
    """Write a survey as a tidy CSV with its description, and its facts if given, beside it.

    Args:
        path: the CSV file; the name of a survey that is read back is its stem.
        about: what only the microdata tell.
        overwrite: replace files that are there.

    Returns:
        The files written. Each is written whole or not at all.

    Raises:
        SurveyError: the suffix is not `.csv`, a file is there already, or the folder cannot be written to.
    """
    path = Path(path)
    if path.suffix.lower() != ".csv":
        raise SurveyError(f"{path}: a survey is written as CSV.", "Name the file .csv.")
    texts = {
        path: _csv(survey.cells),
        path.with_name(path.stem + description.SUFFIX): _toml(survey),
    }
    facts_path = path.with_name(path.stem + survey_facts.SUFFIX)
    if about is not None:
        texts[facts_path] = about.model_dump_json(indent=1) + "\n"
    there = [p for p in (*texts, facts_path) if p.exists()]
    if there and not overwrite:
        raise SurveyError(f"{there[0]}: is there already.", "Choose another name, or say to overwrite it.")
    try:
        for target, text in texts.items():
            write_whole(text, target)
        if about is None:
            facts_path.unlink(missing_ok=True)  # facts of another survey would lie about this one
    except UsageError as error:
        raise SurveyError(error.message, error.mend) from None
    except OSError as error:
        raise SurveyError(f"{path}: cannot be written: {error.strerror or error}.", "Choose another folder.") from None
    return list(texts)


def _csv(cells: Sequence[SurveyCell]) -> str:
    columns = [c for c in OPTIONAL if any(getattr(cell, c) is not None for cell in cells)]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["country", "topic", "score", *columns])
    for cell in cells:
        values = [cell.score, *(getattr(cell, c) for c in columns)]
        writer.writerow([*cell.cell, *("" if v is None else repr(v) for v in values)])
    return out.getvalue()


def _toml(survey: Survey) -> str:
    lines = [f"{key} = {_text(getattr(survey, key))}" for key in ("title", "source", "wording")]
    lines += [f"scale = {_list(survey.scale)}", "", "[words]"]
    lines += [f"{_text(topic)} = {_list(words)}" for topic, words in survey.words.items()]
    return "\n".join(lines) + "\n"


def _list(texts: Sequence[str]) -> str:
    return f"[{', '.join(map(_text, texts))}]"


def _text(text: str) -> str:
    """A TOML basic string: JSON's escapes are TOML's too, but for the one control character that JSON leaves alone."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
