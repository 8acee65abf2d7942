"""Models whose answers come from a file: `replay/NAME` answers direct questions with the rows of that name."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from auditor.config import REPLAY, ModelSection
from auditor.domain import Answer, Call, Cell, Outcome, Purpose, Survey
from auditor.errors import ImportFileError
from auditor.surveys.country_spelling import speller
from auditor.surveys.row_reader import read_rows

if TYPE_CHECKING:
    from auditor.agents.run_context import Asker

COLUMNS = ("model", "country", "topic", "sample", "text")
Record = Mapping[tuple[Cell, int], str]


class Replaying:
    """Answers for the replayed models, and hands every other call on."""

    def __init__(self, asker: Asker, records: Mapping[str, Record]) -> None:
        """Wrap whoever answers the other calls.

        Args:
            asker: the gateway.
            records: by the model's name in the audit.
        """
        self._asker = asker
        self._records = records

    async def complete(self, call: Call) -> Answer:
        """The recorded answer; where the file has none, a failure that is asked again by the next run."""
        record = self._records.get(call.name)
        return await self._asker.complete(call) if record is None else _replayed(call, record)


class Divided:
    """Has some models' calls answered here, and all others elsewhere."""

    def __init__(self, names: Container[str], here: Asker, elsewhere: Asker) -> None:
        """Divide calls by the model's name."""
        self._names, self._here, self._elsewhere = names, here, elsewhere

    async def complete(self, call: Call) -> Answer:
        """The answer of whoever it is for."""
        return await (self._here if call.name in self._names else self._elsewhere).complete(call)


def load_records(models: Iterable[ModelSection], survey: Survey) -> dict[str, Record]:
    """The records of all replayed models, by name; nothing where there are none.

    Raises:
        ImportFileError: a file that cannot be read, a row that cannot be used, or no row of that name.
    """
    return {m.name: _record(m, survey) for m in models if m.model.startswith(REPLAY)}


def _record(model: ModelSection, survey: Survey) -> Record:
    name, file = model.model.removeprefix(REPLAY), Path(model.answers or "")
    spell = speller(survey)
    found: dict[tuple[Cell, int], str] = {}
    for row in read_rows(file, COLUMNS, ["score"]):
        if row.cells["model"] != name:
            continue
        at = (Cell(spell(row.cells["country"]), row.cells["topic"]), row.whole("sample"))
        if at in found:
            raise ImportFileError(f"{row.where}: this model, cell and sample is there twice.", "Number samples.")
        found[at] = row.cells["text"]
    if not found:
        raise ImportFileError(f"{file}: has no row of the model '{name}'.", f"{REPLAY}NAME takes its rows by name.")
    return found


def _replayed(call: Call, record: Record) -> Answer:
    if call.purpose is not Purpose.DIRECT or call.cell is None or any(m.role == "assistant" for m in call.messages):
        return Answer(call.key, Outcome.CLIENT_ERROR, error="a record holds first answers to direct questions only")
    text = record.get((call.cell, call.sample))
    if not text:
        where = f"{call.cell.country}, {call.cell.topic}, sample {call.sample}"
        return Answer(call.key, Outcome.CLIENT_ERROR, error=f"the record has no answer on {where}")
    return Answer(call.key, Outcome.OK, text=text, finish_reason="stop", served_model=call.model, cost_usd=0.0)
