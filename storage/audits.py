"""Audits: who they are, the ground truth they were planned on, and how far they have come."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from sqlalchemy import Connection, RowMapping, delete, insert, select, update

from auditor.domain import Cell, Grouping, Phrasing, Region, Survey, SurveyCell, canonical_json
from auditor.errors import StorageError, did_you_mean
from auditor.storage import semantic_results, tasks
from auditor.storage.database import Database, table_of
from auditor.storage.ledger import utc_now
from auditor.storage.tables import (
    AlteredTraceVerdictRow,
    AuditRow,
    ClaimRow,
    ComparisonItemRow,
    ComparisonRow,
    ComparisonSetRow,
    ConflictRow,
    ContestRow,
    GuessRow,
    RestatementRow,
    ScoreRow,
    SentencePairRow,
    SurveyCellRow,
    TraceRow,
    VerdictRow,
)
from auditor.text_safety import truncate_text

DERIVED_TABLES = (
    TraceRow,
    SentencePairRow,
    ScoreRow,
    VerdictRow,
    ConflictRow,
    ClaimRow,
    ComparisonSetRow,
    ComparisonItemRow,
    ComparisonRow,
    GuessRow,
    RestatementRow,
    AlteredTraceVerdictRow,
    ContestRow,
    *semantic_results.DERIVED_TABLES,
)
"""What is made anew from the ledger when an audit's configuration changes; ratings are never touched."""

AWAITING_HUMAN = "person"
"""The stage of an audit that is whole but for conflicts that wait for a person."""
FINISHED = "done"
FINAL_STAGES = (AWAITING_HUMAN, FINISHED)
"""Stages in which no model will be asked anything more."""


@dataclass(frozen=True, slots=True)
class Audit:
    """One audit as stored; `config` is canonical JSON, None for an audit of imported scores."""

    id: int
    name: str
    config: str | None
    config_hash: str | None
    survey: str
    stage: str
    created_at: str
    updated_at: str
    finished_at: str | None
    environment: str


def find_audit(db: Database, name: str) -> Audit | None:
    """The audit of that name."""
    table = table_of(AuditRow)
    with db.read() as connection:
        row = connection.execute(select(table).where(table.c.name == name)).mappings().one_or_none()
    return None if row is None else Audit(**row)


def get_audit(db: Database, name: str) -> Audit:
    """The audit of that name.

    Raises:
        StorageError: there is none; the message names the nearest.
    """
    audit = find_audit(db, name)
    if audit is not None:
        return audit
    names = [a.name for a in load_audits(db)]
    hint = did_you_mean(name, names, f"It holds: {', '.join(names) or 'none yet'}.")
    raise StorageError(f"the database {db.url} has no audit '{truncate_text(name)}'.", hint)


def load_audits(db: Database) -> list[Audit]:
    """All audits, oldest first."""
    table = table_of(AuditRow)
    with db.read() as connection:
        return [Audit(**row) for row in connection.execute(select(table).order_by(table.c.id)).mappings()]


def save_audit(
    db: Database,
    *,
    name: str,
    config: str | None,
    config_hash: str | None,
    survey: Survey,
    environment: dict[str, Any],
) -> Audit:
    """Create the audit, or bring it up to a changed config: derived rows are dropped, answers and ratings stay."""

    def job(connection: Connection) -> None:
        table = table_of(AuditRow)
        old = connection.execute(select(table).where(table.c.name == name)).mappings().one_or_none()
        values = {
            "config": config,
            "config_hash": config_hash,
            "survey": _serialize_survey(survey),
            "updated_at": utc_now(),
            "environment": canonical_json(environment),
        }
        if old is None:
            start = {"name": name, "stage": "plan", "created_at": utc_now(), "finished_at": None}
            result = connection.execute(insert(table), [values | start])
            audit_id = (
                int(result.inserted_primary_key[0]) if result.inserted_primary_key else _find_audit_id(connection, name)
            )
        else:
            audit_id = int(old["id"])
            changed = old["config_hash"] != config_hash or old["survey"] != values["survey"]
            if changed or not _has_same_truth(connection, audit_id, survey):
                values |= {"stage": "plan", "finished_at": None}
                _delete_derived_rows(connection, audit_id)
            connection.execute(update(table).where(table.c.id == audit_id), [values])
        _save_survey(connection, audit_id, survey)

    db.write(job)
    return get_audit(db, name)


def set_stage(db: Database, audit_id: int, stage: str) -> None:
    """Note how far the audit has come, and when it became whole."""
    table = table_of(AuditRow)
    values = {"stage": stage, "updated_at": utc_now(), "finished_at": utc_now() if stage in FINAL_STAGES else None}
    db.write(lambda connection: connection.execute(update(table).where(table.c.id == audit_id).values(values)))


def load_audit_survey(db: Database, audit: Audit) -> Survey:
    """The ground truth the audit was planned on."""
    import json

    facts = json.loads(audit.survey)
    table = table_of(SurveyCellRow)
    query = select(table).where(table.c.audit_id == audit.id).order_by(table.c.position)
    with db.read() as connection:
        cells = tuple(_parse_survey_cell(row) for row in connection.execute(query).mappings())
    return Survey(
        name=facts["name"],
        title=facts["title"],
        source=facts["source"],
        wording=facts["wording"],
        scale=(facts["scale"][0], facts["scale"][1]),
        cells=cells,
        words={topic: tuple(words) for topic, words in facts["words"].items()},
        grouping=_parse_grouping(facts.get("grouping")),
        native={country: tuple(codes) for country, codes in facts.get("native", {}).items()},
        phrasings={code: _parse_phrasing(words) for code, words in facts.get("phrasings", {}).items()},
        task=tasks.load_audit_task(db, audit.id, facts.get("task")),
    )


def _parse_phrasing(stored: dict[str, Any]) -> Phrasing:
    return Phrasing(stored["wording"], (stored["scale"][0], stored["scale"][1]), stored["topics"])


def _parse_grouping(stored: dict[str, Any] | None) -> Grouping | None:
    if stored is None:
        return None
    regions = tuple(Region(name, tuple(countries)) for name, countries in stored["regions"])
    return Grouping(stored["name"], stored["title"], regions)


def _find_audit_id(connection: Connection, name: str) -> int:
    table = table_of(AuditRow)
    return int(connection.execute(select(table.c.id).where(table.c.name == name)).scalar_one())


def _delete_derived_rows(connection: Connection, audit_id: int) -> None:
    for row in DERIVED_TABLES:
        table = table_of(row)
        connection.execute(delete(table).where(table.c.audit_id == audit_id))


def _serialize_survey(survey: Survey) -> str:
    facts = asdict(replace(survey, cells=(), task=None))
    facts.pop("cells")
    facts["words"] = {topic: list(words) for topic, words in survey.words.items()}
    facts["native"] = {country: list(codes) for country, codes in survey.native.items()}
    facts["task"] = tasks.task_metadata(survey.task)
    return canonical_json(facts)


def _survey_cell_rows(audit_id: int, survey: Survey) -> list[dict[str, Any]]:
    rows = []
    for position, cell in enumerate(survey.cells):
        values = asdict(cell)
        country, topic = values.pop("cell")
        known = {k: v for k, v in values.items() if k in SurveyCellRow.model_fields}
        rows.append({"audit_id": audit_id, "position": position, "country": country, "topic": topic, **known})
    return rows


def _has_same_truth(connection: Connection, audit_id: int, survey: Survey) -> bool:
    table = table_of(SurveyCellRow)
    query = select(table).where(table.c.audit_id == audit_id).order_by(table.c.position)
    return [dict(r) for r in connection.execute(query).mappings()] == _survey_cell_rows(audit_id, survey)


def _save_survey(connection: Connection, audit_id: int, survey: Survey) -> None:
    table = table_of(SurveyCellRow)
    connection.execute(delete(table).where(table.c.audit_id == audit_id))
    if survey.cells:
        connection.execute(insert(table), _survey_cell_rows(audit_id, survey))
    tasks.save_items(connection, audit_id, survey.task)


def _parse_survey_cell(row: RowMapping) -> SurveyCell:
    values = dict(row)
    cell = Cell(values.pop("country"), values.pop("topic"))
    for key in ("audit_id", "position"):
        values.pop(key)
    return SurveyCell(cell=cell, **values)
