"""Replayed models, whose answers come from a file: `replay/NAME` answers direct questions with the rows of NAME.

Verdicts of a replayed judge come from a file, too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from auditor.config import REPLAY, AuditConfig, ModelSection
from auditor.domain import Answer, Call, Cell, Outcome, Purpose, Survey, Verdict
from auditor.errors import ImportFileError
from auditor.panel_assignment import TraceKey
from auditor.reports.number_format import pluralize
from auditor.surveys.countries import make_country_speller, make_topic_speller
from auditor.surveys.recorded_verdicts import read_recorded_verdicts
from auditor.surveys.row_reader import read_rows

if TYPE_CHECKING:
    from auditor.agents.run_context import ModelClient

REPLAY_COLUMNS = ("model", "country", "topic", "sample", "text")
ReplayRecord = Mapping[tuple[Cell, int], str]
"""Texts of one model's answers, by cell and number of the sample."""


class ReplayClient:
    """Answers calls to replayed models from records, and passes all other calls on."""

    def __init__(self, fallback_client: ModelClient, records: Mapping[str, ReplayRecord]) -> None:
        """Wrap a client.

        Args:
            fallback_client: answers calls to other models.
            records: recorded answers by the model's name in the audit.
        """
        self._fallback_client = fallback_client
        self._records = records

    async def complete(self, call: Call) -> Answer:
        """The recorded answer; a failure, which the next run repeats, if the file has none."""
        record = self._records.get(call.name)
        return await self._fallback_client.complete(call) if record is None else _replay_answer(call, record)


def load_records(config: AuditConfig, survey: Survey) -> dict[str, ReplayRecord]:
    """Load the recorded answers of all replayed models to direct questions, by the model's name in the audit.

    Without the probe `direct`, the files hold answers to other questions, and the records are empty; so is that of a
    model that only judges.

    Raises:
        ImportFileError: a file cannot be read, has an unusable row, or has no row of the model.
    """
    replayed_models = [model for model in config.models_by_name.values() if model.provider is REPLAY]
    asked_names = {model.name for model in config.models} if config.probes.direct is not None else set()
    return {model.name: _load_record(model, survey) if model.name in asked_names else {} for model in replayed_models}


def load_recorded_verdicts(config: AuditConfig, survey: Survey) -> dict[str, dict[TraceKey, Verdict]]:
    """Load the recorded verdicts of all replayed judges on answers of the audit's models.

    Returns:
        Verdicts by the judge's name in the audit and by trace.

    Raises:
        ImportFileError: a file cannot be read, has an unusable row, or has no row of the judge on a model and a cell
            of the audit.
    """
    judges = [judge for judge in config.judge_models if judge.verdicts is not None]
    authors = {model.unprefixed_model: model.name for model in config.models}
    cells = {survey_cell.cell for survey_cell in survey.cells}
    rows_by_file = {file: _read_verdicts(Path(file), survey) for file in {judge.verdicts or "" for judge in judges}}
    return {judge.name: _select_verdicts(judge, rows_by_file[judge.verdicts or ""], authors, cells) for judge in judges}


def _read_verdicts(file: Path, survey: Survey) -> list[Verdict]:
    """Read the verdicts of a file, with names as the survey spells them."""
    spellers = make_country_speller(survey, file), make_topic_speller(survey)
    rows = read_recorded_verdicts(file, *spellers, is_task=survey.task is not None)
    return [verdict for _, verdict in rows]


def describe_missing_answers(config: AuditConfig, survey: Survey, records: Mapping[str, ReplayRecord]) -> Iterator[str]:
    """Yield a notice for each replayed model that is asked more questions than its file has answers to."""
    samples = config.samples_by_cell(survey)
    asked = {(cell, sample) for cell, n_samples in samples.items() for sample in range(n_samples)}
    for model in config.models:
        record = records.get(model.name, {})
        if not record or not (missing := asked - record.keys()):
            continue
        notice = (
            f"Model '{model.name}': {model.answers} has {len(asked) - len(missing)} of "
            f"{pluralize(len(asked), 'answer')}. A missing one counts as failed; no request is sent."
        )
        if others := sorted({cell for cell, _ in record} - samples.keys()):
            notice += (
                f" It has answers on {pluralize(len(others), 'cell')} that the audit does not have, such as "
                f"{', '.join(filter(None, others[0]))}: write countries and topics as the survey does."
            )
        yield notice


def describe_missing_verdicts(
    config: AuditConfig, survey: Survey, verdicts: Mapping[str, Collection[TraceKey]]
) -> Iterator[str]:
    """Yield a notice for each replayed judge with fewer recorded verdicts than there are answers to review.

    Nothing where each judge is asked about a part of the answers only.
    """
    if config.panel.judges_per_trace is not None:
        return
    limit = config.probes.review.traces
    n_by_cell = {
        cell: n_samples if limit == "all" else min(limit, n_samples)
        for cell, n_samples in config.samples_by_cell(survey).items()
    }
    for judge in (judge for judge in config.judge_models if judge.verdicts is not None):
        recorded = Counter((key.model, key.cell) for key in verdicts[judge.name])
        authors = [model.name for model in config.models if model.name != judge.name]
        n_verdicts = sum(min(n, recorded[author, cell]) for author in authors for cell, n in n_by_cell.items())
        n_traces = len(authors) * sum(n_by_cell.values())
        if n_verdicts < n_traces:
            yield (
                f"Judge '{judge.name}': {judge.verdicts} has {pluralize(n_verdicts, 'verdict')} for up to "
                f"{pluralize(n_traces, 'answer')} to review. An answer without a recorded verdict counts as a failed "
                "verdict of this judge; no request is sent."
            )


def _select_verdicts(
    judge: ModelSection, rows: Sequence[Verdict], authors: Mapping[str, str], cells: Collection[Cell]
) -> dict[TraceKey, Verdict]:
    """One judge's verdicts by trace, with the names of the audit; ImportFileError if there is none."""
    name = judge.unprefixed_model
    rows = [row for row in rows if row.judge == name]
    if not rows:
        raise ImportFileError(
            f"{judge.verdicts} has no row of the judge '{name}'.",
            f"{REPLAY.prefix}/NAME uses the rows with that name in the column judge.",
        )
    verdicts = {
        TraceKey(authors[row.model], row.cell, row.sample): replace(row, judge=judge.name, model=authors[row.model])
        for row in rows
        if row.model in authors and row.cell in cells
    }
    if not verdicts:
        first = ", ".join(filter(None, (rows[0].model, *rows[0].cell)))
        raise ImportFileError(
            f"{judge.verdicts}: the audit has no answer that the judge '{name}' has a verdict on, such as {first}.",
            "Write models as their answers do, and countries and topics as the survey does.",
        )
    return verdicts


def _load_record(model: ModelSection, survey: Survey) -> ReplayRecord:
    """Load one model's recorded answers by cell and sample.

    Raises:
        ImportFileError: the file cannot be read, has no row of the model, or has a cell and sample twice.
    """
    name, file = model.unprefixed_model, Path(model.answers or "")
    spell_country, spell_topic = make_country_speller(survey, file), make_topic_speller(survey)
    record: dict[tuple[Cell, int], str] = {}
    for row in read_rows(file, REPLAY_COLUMNS, ["score"]):
        if row.cells["model"] != name:
            continue
        cell = Cell(spell_country(row.cells["country"]), spell_topic(row.cells["topic"]))
        record_key = cell, row.integer("sample")
        if record_key in record:
            raise ImportFileError(
                f"{row.location}: two rows have the same model, country, topic and sample.",
                "Give each answer its own number in the column sample, or delete the duplicate row.",
            )
        record[record_key] = row.cells["text"]
    if not record:
        raise ImportFileError(
            f"{file} has no row for the model '{name}'.",
            f"{REPLAY.prefix}/NAME uses the rows with that name in the column model.",
        )
    return record


def _replay_answer(call: Call, record: ReplayRecord) -> Answer:
    """The recorded answer to a call, or a client error if there is none or the call is no first direct question."""
    if (
        call.purpose is not Purpose.DIRECT
        or call.cell is None
        or any(message.role == "assistant" for message in call.messages)
    ):
        return Answer(call.key, Outcome.CLIENT_ERROR, error="a record holds first answers to direct questions only")
    text = record.get((call.cell, call.sample))
    if not text:
        place = f"{call.cell.country}, {call.cell.topic}, sample {call.sample}"
        return Answer(call.key, Outcome.CLIENT_ERROR, error=f"the record has no answer on {place}")
    return Answer(call.key, Outcome.OK, text=text, finish_reason="stop", served_model=call.model, cost_usd=0.0)
