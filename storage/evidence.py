"""Evidence for the review of a conflict: the two sides without their authors and, by a call of its own, what blinding
hides.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TypeAlias

import sqlalchemy as sa

from auditor.domain import (
    Cell,
    Claim,
    Conflict,
    Method,
    Outcome,
    Ruling,
    SurveyCell,
    TaskItem,
    Trace,
    Verdict,
    parse_method_side,
)
from auditor.domain.terms import ENGLISH
from auditor.storage.conflict_status import ConflictKey
from auditor.storage.database import Database
from auditor.storage.ledger import MAX_KEYS_PER_QUERY
from auditor.storage.row_classes import table_of


@dataclass(frozen=True, slots=True)
class BlindedSample:
    """One sample of a side, without its author.

    Attributes:
        number: the sample's number.
        outcome: whether the sample could be parsed.
        score: the parsed score; None if the sample has none.
        text: the trace.
        answer: the answer to an item of a task; None in an audit of a survey.
        language: ISO 639-1 code of the language of the question.
    """

    number: int
    outcome: Outcome
    score: float | None
    text: str | None
    answer: str | None = None
    language: str = ENGLISH


Samples: TypeAlias = tuple[BlindedSample, ...]
"""The samples of one side of a conflict."""
ConflictSamples: TypeAlias = tuple[Samples, Samples]
"""The samples of the left and of the right side, as stored."""


@dataclass(frozen=True, slots=True)
class HiddenEvidence:
    """What a blind rater sees only after deciding; left and right as stored, not as displayed.

    Attributes:
        left, right: authors of the two sides.
        verdicts_left, verdicts_right: judges' verdicts on each side's traces, in order of judge and sample.
        survey: the survey's result for the cell; None if the audit has none.
        truth: correct answer to an item of a task; None if unknown, and in an audit of a survey.
    """

    left: str
    right: str
    verdicts_left: tuple[Verdict, ...]
    verdicts_right: tuple[Verdict, ...]
    survey: SurveyCell | None
    truth: str | None = None


def load_sides(db: Database, audit_id: int, key: ConflictKey) -> ConflictSamples:
    """Load the samples behind the two scores of a conflict, left and right as stored."""
    return load_sides_by_conflict(db, audit_id, [key])[key]


def load_sides_by_conflict(
    db: Database, audit_id: int, keys: Sequence[ConflictKey]
) -> dict[ConflictKey, ConflictSamples]:
    """Load the samples behind the two scores of each conflict, left and right as stored."""
    authors = {
        (author, key.country, key.topic)
        for key in keys
        for side in (key.left, key.right)
        for author in _possible_authors(side)
    }
    with db.read() as connection:
        traces = _load_traces(connection, audit_id, authors)

        def find_samples(key: ConflictKey, side: str) -> Samples:
            """The traces on the cell of a side that is a model, else its claim, else the traces behind its method."""
            direct, *behind_method = (traces[author, key.country, key.topic] for author in _possible_authors(side))
            return direct or _load_claim(connection, audit_id, key, side) or next(iter(behind_method), ())

        return {key: (find_samples(key, key.left), find_samples(key, key.right)) for key in keys}


def load_hidden_evidence(db: Database, audit_id: int, key: ConflictKey) -> HiddenEvidence:
    """Load the authors, verdicts and ground truth of a conflict."""
    with db.read() as connection:
        return HiddenEvidence(
            left=key.left,
            right=key.right,
            verdicts_left=_load_verdicts(connection, audit_id, key, key.left),
            verdicts_right=_load_verdicts(connection, audit_id, key, key.right),
            survey=_load_survey_cell(connection, audit_id, key),
            truth=_load_task_truth(connection, audit_id, key),
        )


def _possible_authors(side: str) -> list[str]:
    """The models that may have written the traces of a side: its name, or the model in the name of a direct method."""
    model, method = parse_method_side(side)
    return [side, model] if method == Method.DIRECT else [side]


def _load_traces(
    connection: sa.Connection, audit_id: int, authors: Iterable[tuple[str, str, str]]
) -> defaultdict[tuple[str, str, str], Samples]:
    """Load the samples of each model, country and topic, in the order of their numbers; empty where there are none."""
    c = table_of(Trace).c
    author = (c.model, c.country, c.topic)
    samples: defaultdict[tuple[str, str, str], Samples] = defaultdict(tuple)
    remaining = iter(authors)
    while chunk := list(islice(remaining, MAX_KEYS_PER_QUERY // len(author))):
        query = sa.select(*author, c.sample, c.outcome, c.score, c.text, c.answer, c.language).order_by(
            *author, c.sample
        )
        # Without a condition on each column, SQLite would search all traces of the audit.
        columns = [column.in_(set(values)) for column, values in zip(author, zip(*chunk, strict=True), strict=True)]
        query = query.where(c.audit_id == audit_id, *columns, sa.tuple_(*author).in_(chunk))
        for model, country, topic, number, outcome, *content in connection.execute(query):
            samples[model, country, topic] += (BlindedSample(number, Outcome(outcome), *content),)
    return samples


def _load_claim(connection: sa.Connection, audit_id: int, key: ConflictKey, model: str) -> tuple[BlindedSample, ...]:
    """Load the claim of a side of a conflict between claims, with the side's score, as a single sample."""
    claim, conflict = table_of(Claim), table_of(Conflict)
    score = conflict.c.score_left if model == key.left else conflict.c.score_right
    same_cell = [claim.c[name] == conflict.c[name] for name in ("audit_id", "country", "topic")]
    query = (
        sa.select(claim.c.text, score)
        .select_from(claim.join(conflict, sa.and_(*same_cell)))
        .where(
            claim.c.audit_id == audit_id,
            claim.c.model == model,
            claim.c.country == key.country,
            claim.c.topic == key.topic,
            conflict.c.left == key.left,
            conflict.c.right == key.right,
        )
    )
    return tuple(BlindedSample(0, Outcome.OK, score, text) for text, score in connection.execute(query))


def _load_verdicts(connection: sa.Connection, audit_id: int, key: ConflictKey, model: str) -> tuple[Verdict, ...]:
    """Load the judges' verdicts on a model's traces on the cell of a conflict, in order of judge and sample."""
    table = table_of(Verdict)
    c = table.c
    conditions = (c.audit_id == audit_id, c.country == key.country, c.topic == key.topic, c.model == model)
    rows = connection.execute(sa.select(table).where(*conditions)).mappings()
    # Sorted in Python: ORDER BY judge makes SQLite scan all verdicts of the audit instead of this cell's.
    return tuple(
        Verdict(
            judge=row["judge"],
            model=row["model"],
            cell=Cell(key.country, key.topic),
            sample=row["sample"],
            outcome=Outcome(row["outcome"]),
            ruling=None if row["ruling"] is None else Ruling(row["ruling"]),
            aspects=json.loads(row["aspects"]),
            justification=row["justification"],
            key=row["key"],
        )
        for row in sorted(rows, key=lambda row: (row["judge"], row["sample"]))
    )


def _load_survey_cell(connection: sa.Connection, audit_id: int, key: ConflictKey) -> SurveyCell | None:
    """Load the survey's result for the cell of a conflict; None if the survey has no such cell."""
    table = table_of(SurveyCell)
    c = table.c
    query = sa.select(table).where(c.audit_id == audit_id, c.country == key.country, c.topic == key.topic)
    row = connection.execute(query).mappings().one_or_none()
    if row is None:
        return None
    values = {name: row[name] for name in ("score", "n", "standard_error", "nonresponse")}
    return SurveyCell(cell=Cell(key.country, key.topic), **values)


def _load_task_truth(connection: sa.Connection, audit_id: int, key: ConflictKey) -> str | None:
    """Load the correct answer to an item of a task; None if unknown, and in an audit of a survey.

    In an audit of a task, the topic is the item's id, and the country is empty.
    """
    c = table_of(TaskItem).c
    query = sa.select(c.truth).where(c.audit_id == audit_id, c.id == key.topic)
    return None if key.country else connection.execute(query).scalar_one_or_none()
