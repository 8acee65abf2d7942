"""Files of recorded verdicts: `judge,model,country,topic,verdict[,justification][,sample]`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from auditor.domain import Cell, Outcome, Ruling, Verdict
from auditor.domain.decisions import aspect_questions
from auditor.errors import ImportFileError
from auditor.surveys.distributions import parse_enum_cell
from auditor.surveys.row_reader import TextRow, read_column_names, read_rows

VERDICT_COLUMNS = ("judge", "model", "country", "topic", "verdict")
EXPORTED_NAMES = {"verdict": "ruling"}
"""Names of columns in an export of tables that differ."""
EXPORTED_COLUMNS = ("outcome", "confidence", "turn", "always")
"""Further columns of an export of tables, besides those of aspects."""


def read_recorded_verdicts(
    file: Path, spell_country: Callable[[str], str], spell_topic: Callable[[str], str], *, is_task: bool = False
) -> Iterator[tuple[str, Verdict]]:
    """Yield each row's verdict, after the place of the row in the file.

    Args:
        file: a table; a verdict is VALID or INVALID, or empty where the judge gave none. `auditor export tables` calls
            the column `ruling`; of its tables, aspects, confidence, and whether the judge was asked in any case
            (`always`) are read, too.
        spell_country, spell_topic: return a name in the survey's spelling.
        is_task: whether the verdicts are about items of a task, which the column `id` or `topic` names, and which
            belong to no country.

    Raises:
        ImportFileError: the file cannot be read or has no rows, a row cannot be used, or two rows have the same judge,
            model, country, topic and sample.
    """
    seen: set[tuple[str, str, Cell, int]] = set()
    names = {name.casefold() for name in read_column_names(file)}
    columns = [name for name in VERDICT_COLUMNS if not (is_task and name == "country")]
    aspects: Sequence[str] = ()
    if is_exported := {"judge", "ruling"} <= names:
        columns = [EXPORTED_NAMES.get(name, name) for name in columns]
        aspects = tuple(aspect_questions(for_task=is_task))
    if is_task and "id" in names:
        columns = ["id" if name == "topic" else name for name in columns]
    topic_column = "id" if "id" in columns else "topic"
    optional = ["justification", "sample", *aspects, *(EXPORTED_COLUMNS if is_exported else ())]
    for row in read_rows(file, columns, optional, booleans=(*aspects, "always")):
        row.cells.setdefault("verdict", row.cells.get(EXPORTED_NAMES["verdict"], ""))
        country = "" if is_task else spell_country(row.required_text("country"))
        verdict = _parse_verdict(row, Cell(country, spell_topic(row.required_text(topic_column))))
        if is_exported:
            verdict = _add_exported_columns(verdict, row, aspects)
        key = (verdict.judge, verdict.model, verdict.cell, verdict.sample)
        if key in seen:
            raise ImportFileError(
                f"{row.location}: this judge's verdict on this trace occurs twice.", "Keep one of the rows."
            )
        seen.add(key)
        yield row.location, verdict
    if not seen:
        raise ImportFileError(f"{file}: has no rows.", "Check that it is the right file.")


def _parse_verdict(row: TextRow, cell: Cell) -> Verdict:
    """Parse a row as a verdict on a cell's sample; an empty verdict has the outcome `unparsed`.

    Raises:
        ImportFileError: the verdict is neither VALID nor INVALID, or a required cell is empty.
    """
    verdict_text = row.cells["verdict"].upper()
    if verdict_text and verdict_text not in tuple(Ruling):
        raise ImportFileError(
            f"{row.location}, column 'verdict': '{row.cells['verdict']}' is neither VALID nor INVALID.",
            "Write VALID or INVALID, or leave it empty if the judge gave no verdict.",
        )
    return Verdict(
        judge=row.required_text("judge"),
        model=row.required_text("model"),
        cell=cell,
        sample=row.integer("sample"),
        outcome=Outcome.OK if verdict_text else Outcome.UNPARSED,
        ruling=Ruling(verdict_text) if verdict_text else None,
        justification=row.cells["justification"] or None,
    )


def _add_exported_columns(verdict: Verdict, row: TextRow, aspects: Sequence[str]) -> Verdict:
    """Add what an export of tables has besides the vote: without `always`, disputed traces would be a random sample."""
    outcome, confidence = parse_enum_cell(row, "outcome", Outcome, str.lower), row.number("confidence")
    if confidence is not None and not 0 <= confidence <= 1:
        raise row.make_cell_error("confidence", f"{confidence:g} is not from 0 to 1", "Write 0.85 for 85%.")
    return replace(
        verdict,
        outcome=verdict.outcome if verdict.ruling is not None or outcome in (None, Outcome.OK) else outcome,
        confidence=confidence,
        turn=row.integer("turn"),
        always=row.flag("always") is not False,
        aspects=row.flags(aspects),
    )
