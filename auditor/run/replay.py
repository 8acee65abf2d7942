"""Models whose answers come from a file: `replay/NAME` answers direct questions with the rows of that name."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from auditor.config import REPLAY_PREFIX, ModelSection
from auditor.domain import Answer, Call, Cell, Outcome, Purpose, Survey
from auditor.errors import ImportFileError
from auditor.surveys.country_spelling import make_country_speller
from auditor.surveys.row_reader import read_rows

if TYPE_CHECKING:
    from auditor.agents.run_context import ModelClient

REPLAY_COLUMNS = ("model", "country", "topic", "sample", "text")
ReplayRecord = Mapping[tuple[Cell, int], str]


class ReplayClient:
    """Answers for the replayed models, and hands every other call on."""

    def __init__(self, fallback_client: ModelClient, records: Mapping[str, ReplayRecord]) -> None:
        """Wrap whoever answers the other calls.

        Args:
            asker: the gateway.
            records: by the model's name in the audit.
        """
        self._fallback_client = fallback_client
        self._records = records

    async def complete(self, call: Call) -> Answer:
        """The recorded answer; where the file has none, a failure that is asked again by the next run."""
        record = self._records.get(call.name)
        return await self._fallback_client.complete(call) if record is None else _replay_answer(call, record)


class RoutingClient:
    """Has some models' calls answered here, and all others elsewhere."""

    def __init__(self, model_names: Container[str], selected_client: ModelClient, default_client: ModelClient) -> None:
        """Divide calls by the model's name."""
        self._model_names, self._selected_client, self._default_client = model_names, selected_client, default_client

    async def complete(self, call: Call) -> Answer:
        """The answer of whoever it is for."""
        return await (self._selected_client if call.name in self._model_names else self._default_client).complete(call)


def load_records(models: Iterable[ModelSection], survey: Survey) -> dict[str, ReplayRecord]:
    """The records of all replayed models, by name; nothing where there are none.

    Raises:
        ImportFileError: a file that cannot be read, a row that cannot be used, or no row of that name.
    """
    return {m.name: _load_record(m, survey) for m in models if m.model.startswith(REPLAY_PREFIX)}


def _load_record(model: ModelSection, survey: Survey) -> ReplayRecord:
    name, file = model.model.removeprefix(REPLAY_PREFIX), Path(model.answers or "")
    spell = make_country_speller(survey)
    found: dict[tuple[Cell, int], str] = {}
    for row in read_rows(file, REPLAY_COLUMNS, ["score"]):
        if row.cells["model"] != name:
            continue
        at = (Cell(spell(row.cells["country"]), row.cells["topic"]), row.integer("sample"))
        if at in found:
            raise ImportFileError(f"{row.location}: this model, cell and sample is there twice.", "Number samples.")
        found[at] = row.cells["text"]
    if not found:
        raise ImportFileError(
            f"{file}: has no row of the model '{name}'.", f"{REPLAY_PREFIX}NAME takes its rows by name."
        )
    return found


def _replay_answer(call: Call, record: ReplayRecord) -> Answer:
    if call.purpose is not Purpose.DIRECT or call.cell is None or any(m.role == "assistant" for m in call.messages):
        return Answer(call.key, Outcome.CLIENT_ERROR, error="a record holds first answers to direct questions only")
    text = record.get((call.cell, call.sample))
    if not text:
        where = f"{call.cell.country}, {call.cell.topic}, sample {call.sample}"
        return Answer(call.key, Outcome.CLIENT_ERROR, error=f"the record has no answer on {where}")
    return Answer(call.key, Outcome.OK, text=text, finish_reason="stop", served_model=call.model, cost_usd=0.0)
