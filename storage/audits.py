"""Audits: their configuration, ground truth, items and stage, what they registered, their names, and their deletion."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields, replace
from typing import Any, NamedTuple

import sqlalchemy as sa

from auditor.domain import (
    AnswerKind,
    Cell,
    Conflict,
    Grouping,
    Outcome,
    Phrasing,
    Rating,
    Region,
    Survey,
    SurveyCell,
    Task,
    TaskItem,
    TopicQuestion,
    Trace,
    Verdict,
    canonical_json,
)
from auditor.domain.audit_records import Audit as Audit, Registration
from auditor.domain.labels import LabelEntry
from auditor.domain.records import RowPolicy
from auditor.errors import StorageError, UsageError, did_you_mean
from auditor.storage import hash_chain
from auditor.storage.call_records import ProviderBatch, StoredAnswer
from auditor.storage.database import Database
from auditor.storage.ledger import utc_now
from auditor.storage.probe_results import count_probe_answers, name_answers
from auditor.storage.records import load_records, read_records, replace_records
from auditor.storage.row_classes import replace_rows, select_records, table_of
from auditor.storage.schema import list_record_classes
from auditor.text_safety import truncate_text


def register_claim(db: Database, audit_id: int, baseline: str, margin: float) -> Registration:
    """Register a claim of non-inferiority, unless the last registration of the audit is the same; return the last."""

    def job(connection: sa.Connection) -> None:
        traces = table_of(Trace)
        count = sa.select(sa.func.count()).select_from(traces).where(traces.c.audit_id == audit_id)
        entry = Registration(0, baseline, margin, int(connection.execute(count).scalar_one()), utc_now())
        hash_chain.append_entry(connection, audit_id, entry)

    registrations = load_registrations(db, audit_id)
    if not registrations or (registrations[-1].baseline, registrations[-1].margin) != (baseline, margin):
        db.write(job)
    return load_registrations(db, audit_id)[-1]


def load_registrations(db: Database, audit_id: int) -> list[Registration]:
    """The claims of an audit in the order in which they were registered."""
    table = table_of(Registration)
    with db.read() as connection:
        return select_records(connection, Registration, table.c.audit_id == audit_id, order_by=[table.c.id])


def find_first_answer_time(db: Database, audit_id: int, model: str) -> str | None:
    """When the first recorded answer of a model's traces was stored, for this audit or another; None without one."""
    traces, answers = table_of(Trace), table_of(StoredAnswer)
    query = (
        sa.select(sa.func.min(answers.c.created_at))
        .select_from(traces.join(answers, traces.c.key == answers.c.key))
        .where(traces.c.audit_id == audit_id, traces.c.model == model)
    )
    with db.read() as connection:
        first: str | None = connection.execute(query).scalar_one()
    return first


def build_task_metadata(task: Task | None) -> dict[str, Any] | None:
    """Fields of a task for the audit's row: all but the items, whose changes its digest shows."""
    if task is None:
        return None
    metadata = {f.name: getattr(task, f.name) for f in fields(task) if f.name not in ("items", "people")}
    if task.people:  # earlier versions did not store these: their audits would count as changed
        metadata["people"] = list(task.people)
    return metadata | {"kind": task.kind.value, "range": list(task.range) if task.range else None}


def load_audit_task(db: Database, audit_id: int, metadata: Mapping[str, Any] | None) -> Task | None:
    """Load an audit's task with its items; None for an audit of a survey (no `metadata`)."""
    if metadata is None:
        return None
    items = load_records(db, audit_id, TaskItem)
    kind, bounds = AnswerKind(metadata["kind"]), metadata["range"]
    people = tuple(metadata.get("people", ()))
    task_fields = {**metadata, "kind": kind, "range": tuple(bounds) if bounds else None, "people": people}
    return Task(**task_fields, items={item.id: item for item in items})


def load_item(db: Database, audit_id: int, item_id: str) -> TaskItem | None:
    """Load one item; None if the audit has none of this id."""
    items = load_records(db, audit_id, TaskItem, id=item_id)
    return items[0] if items else None


def load_answers(db: Database, audit_id: int) -> dict[tuple[str, Cell, int], str]:
    """Load all parsed answers by model, item and sample, without the traces' texts."""
    c = table_of(Trace).c
    query = sa.select(c.model, c.country, c.topic, c.sample, c.answer).where(c.audit_id == audit_id)
    query = query.where(c.answer.is_not(None), c.outcome == Outcome.OK.value)
    with db.read() as connection:
        return {(model, Cell(*cell), sample): answer for model, *cell, sample, answer in connection.execute(query)}


AWAITING_HUMAN = "person"
"""Stage of an audit whose model calls are finished, and whose open conflicts wait for a human reviewer."""
REPORTING = "report"
"""Stage between the last decision of a human reviewer, or the vote of the judges, and the end."""
FINISHED = "done"
DELETED_PREFIX = "deleted/"
"""Beginning of the names of deleted audits; no other name has a slash."""
FINAL_STAGES = (AWAITING_HUMAN, FINISHED)
"""Stages in which no more calls to models follow."""


def find_audit(db: Database, name: str) -> Audit | None:
    """Load the audit of this name; None if there is none."""
    table = table_of(Audit)
    with db.read() as connection:
        row = connection.execute(_select_audits().where(table.c.name == name)).mappings().one_or_none()
    return None if row is None else Audit(**row)


def get_audit(db: Database, name: str) -> Audit:
    """Load the audit of this name.

    Raises:
        StorageError: there is no such audit; the message suggests the most similar name.
    """
    audit = find_audit(db, name)
    if audit is not None:
        return audit
    names = [existing.name for existing in load_audits(db)]
    hint = did_you_mean(name, names, f"Its audits: {', '.join(names) or 'none'}.")
    raise StorageError(f"the database {db.url} has no audit '{truncate_text(name)}'.", hint)


def load_audits(db: Database) -> list[Audit]:
    """Load all audits, oldest first."""
    with db.read() as connection:
        query = _select_audits().order_by(table_of(Audit).c.id)
        return [Audit(**row) for row in connection.execute(query).mappings()]


def deleted_name(audit_id: int) -> str:
    """Name of the row of a deleted audit."""
    return f"{DELETED_PREFIX}{audit_id}"


def _select_audits() -> sa.Select[Any]:
    """Query of the audits that are not deleted."""
    table = table_of(Audit)
    return sa.select(table).where(table.c.name.not_like(f"{DELETED_PREFIX}%"))


def save_audit(
    db: Database,
    *,
    name: str,
    config: str | None,
    config_hash: str | None,
    survey: Survey,
    environment: dict[str, Any],
    write_results: Callable[[sa.Connection, int], None] = lambda connection, audit_id: None,
) -> Audit:
    """Create an audit, or update an existing one of the same name, and return it as stored.

    If its configuration or survey changed, its derived rows are deleted and it starts again at the stage
    "plan". Answers and ratings stay.

    Args:
        write_results: writes more rows of the audit with this id in the same transaction, so that either all or none
            of them are stored.
    """

    def job(connection: sa.Connection) -> None:
        table = table_of(Audit)
        stored = connection.execute(sa.select(table).where(table.c.name == name)).mappings().one_or_none()
        values = {
            "config": config,
            "config_hash": config_hash,
            "survey": _serialize_survey(survey),
            "updated_at": utc_now(),
            "environment": canonical_json(environment),
        }
        kinds_after = hash_chain.input_kinds(is_imported=config is None)
        if stored is None:
            initial_values = {"name": name, "stage": "plan", "created_at": utc_now(), "finished_at": None}
            insertion = connection.execute(sa.insert(table), [values | initial_values])
            audit_id = (
                int(insertion.inserted_primary_key[0])
                if insertion.inserted_primary_key
                else _find_audit_id(connection, name)
            )
            with hash_chain.record_changes(connection, audit_id, (), kinds_after):
                _save_survey(connection, audit_id, survey)
                write_results(connection, audit_id)
            return
        audit_id = int(stored["id"])
        hash_chain.link_unreturned(connection, audit_id)
        kinds = hash_chain.input_kinds(is_imported=stored["config"] is None)
        with hash_chain.record_changes(connection, audit_id, kinds, kinds_after):
            survey_changed = not _has_same_description(stored["survey"], survey)
            config_changed = stored["config_hash"] != config_hash or survey_changed
            if config_changed or not _has_same_truth(connection, audit_id, survey):
                values |= {"stage": "plan", "finished_at": None}
                hash_chain.record_deleted_scores(connection, audit_id)
                _delete_derived_rows(connection, audit_id)
                hash_chain.append_act(connection, audit_id, act="replace", audit=name, at=utc_now())
            connection.execute(sa.update(table).where(table.c.id == audit_id), [values])
            _save_survey(connection, audit_id, survey)
            write_results(connection, audit_id)

    db.write(job)
    return get_audit(db, name)


def save_finished_audit(
    db: Database,
    *,
    name: str,
    config_hash: str,
    survey: Survey,
    environment: dict[str, Any],
    write_results: Callable[[sa.Connection, int], None],
) -> None:
    """Store an audit of recorded results as finished, in one transaction: all of it, or the earlier one stays.

    Args:
        name, config_hash, survey, environment, write_results: as in `save_audit`.
    """

    def write(connection: sa.Connection, audit_id: int) -> None:
        write_results(connection, audit_id)
        write_stage(connection, audit_id, FINISHED)

    save_audit(
        db,
        name=name,
        config=None,
        config_hash=config_hash,
        survey=survey,
        environment=environment,
        write_results=write,
    )


def set_stage(db: Database, audit_id: int, stage: str) -> None:
    """Store the stage that an audit has reached, and when its calls to models finished.

    That time is stored at the first final stage and deleted by a new run. The end of a review does not change it, nor
    does an exclusion or a rereading after which a finished audit waits for people.
    """
    db.write(lambda connection: write_stage(connection, audit_id, stage))


def write_stage(connection: sa.Connection, audit_id: int, stage: str) -> None:
    """Do what `set_stage` does within a transaction that has more to write."""
    table = table_of(Audit)
    now = utc_now()
    finished_at: Any = None
    if stage == REPORTING:
        finished_at = table.c.finished_at
    elif stage in FINAL_STAGES:
        # An experiment that asks more calls goes from FINISHED to FINISHED.
        is_after_run = table.c.stage.in_((AWAITING_HUMAN, FINISHED if stage == AWAITING_HUMAN else REPORTING))
        finished_at = sa.case((is_after_run, sa.func.coalesce(table.c.finished_at, now)), else_=now)
    values = {"stage": stage, "updated_at": now, "finished_at": finished_at}
    with hash_chain.record_changes(connection, audit_id, ["audit"]):
        connection.execute(sa.update(table).where(table.c.id == audit_id).values(values))


ENCODER, ENCODER_REVISION = "encoder", "encoder_revision"
"""Keys of an audit's environment with the encoder of its direct answers, and the hash of the encoder's weights."""


def keep_encoder(stored: Audit | None, encoder: str) -> dict[str, str]:
    """The entries of an audit's environment on its encoder; empty if it had none, or another one."""
    environment = {} if stored is None else json.loads(stored.environment)
    if environment.get(ENCODER) != encoder:
        return {}
    return {key: environment[key] for key in (ENCODER, ENCODER_REVISION)}


def load_encoder_revision(db: Database, audit_id: int) -> str | None:
    """Load the revision of the encoder by which an audit's self-consistencies were measured; None for none.

    Audits of programs that stored no vectors of direct answers have none.
    """
    table = table_of(Audit)
    with db.read() as connection:
        environment = connection.execute(
            sa.select(table.c.environment).where(table.c.id == audit_id)
        ).scalar_one_or_none()
    revision = json.loads(environment or "{}").get(ENCODER_REVISION)
    return None if revision is None else str(revision)


def save_encoder_revision(db: Database, audit_id: int, encoder: str, revision: str) -> None:
    """Record the encoder that measures an audit's self-consistencies from now on, and its revision."""
    table = table_of(Audit)

    def job(connection: sa.Connection) -> None:
        is_audit = table.c.id == audit_id
        environment = json.loads(connection.execute(sa.select(table.c.environment).where(is_audit)).scalar_one())
        environment |= {ENCODER: encoder, ENCODER_REVISION: revision}
        with hash_chain.record_changes(connection, audit_id, ["audit"]):
            connection.execute(sa.update(table).where(is_audit).values(environment=canonical_json(environment)))

    db.write(job)


def load_audit_survey(db: Database, audit: Audit) -> Survey:
    """Load the ground truth that the audit was planned with."""
    metadata = json.loads(audit.survey)
    return Survey(
        name=metadata["name"],
        title=metadata["title"],
        source=metadata["source"],
        wording=metadata["wording"],
        scale=(metadata["scale"][0], metadata["scale"][1]),
        cells=tuple(load_records(db, audit.id, SurveyCell)),
        words={topic: tuple(words) for topic, words in metadata["words"].items()},
        grouping=_parse_grouping(metadata.get("grouping")),
        topic_families={family: tuple(topics) for family, topics in metadata.get("topic_families", {}).items()},
        native={country: tuple(codes) for country, codes in metadata.get("native", {}).items()},
        phrasings={
            code: Phrasing(phrasing["wording"], (phrasing["scale"][0], phrasing["scale"][1]), phrasing["topics"])
            for code, phrasing in metadata.get("phrasings", {}).items()
        },
        topic_questions={
            topic: TopicQuestion(wording, (scale[0], scale[1]))
            for topic, (wording, scale) in metadata.get("topic_questions", {}).items()
        },
        task=load_audit_task(db, audit.id, metadata.get("task")),
        n_unplanned=metadata.get("n_unplanned", 0),
        question=metadata.get("question"),
        file=metadata.get("file", ""),
        zones=metadata.get("zones"),
        wordings={code: tuple(questions) for code, questions in metadata.get("wordings", {}).items()},
        donors={Cell(country, topic): score for country, topic, score in metadata.get("donors", ())},
    )


def _parse_grouping(stored: dict[str, Any] | None) -> Grouping | None:
    """Parse the groups of countries from the stored JSON; None if the survey has none."""
    if stored is None:
        return None
    regions = tuple(Region(name, tuple(countries)) for name, countries in stored["regions"])
    return Grouping(stored["name"], stored["title"], regions)


def _find_audit_id(connection: sa.Connection, name: str) -> int:
    """Load the id of the audit of this name, which must exist."""
    table = table_of(Audit)
    return int(connection.execute(sa.select(table.c.id).where(table.c.name == name)).scalar_one())


def _delete_derived_rows(connection: sa.Connection, audit_id: int) -> None:
    """Delete all rows of an audit that are rebuilt from the ledger."""
    for record_class in list_record_classes(RowPolicy.DERIVED):
        replace_rows(connection, record_class, audit_id, [])


def _serialize_survey(survey: Survey) -> str:
    """Canonical JSON of a survey without its cells and its task's items, which have tables of their own."""
    metadata = asdict(replace(survey, cells=(), task=None, donors={}))
    metadata.pop("cells")
    metadata["donors"] = [[*cell, score] for cell, score in survey.donors.items()]
    if not survey.donors:
        metadata.pop("donors")
    if survey.zones is None:
        metadata.pop("zones")
    metadata["wordings"] = {code: list(questions) for code, questions in survey.wordings.items()}
    if not survey.wordings:
        metadata.pop("wordings")
    if not survey.file:
        metadata.pop("file")
    # Earlier versions did not store these: their audits would count as changed.
    if not survey.n_unplanned:
        metadata.pop("n_unplanned")
    if survey.question is None:
        metadata.pop("question")
    if not survey.topic_questions:
        metadata.pop("topic_questions")
    metadata["words"] = {topic: list(words) for topic, words in survey.words.items()}
    metadata["native"] = {country: list(codes) for country, codes in survey.native.items()}
    metadata["topic_families"] = {family: list(topics) for family, topics in survey.topic_families.items()}
    metadata["task"] = build_task_metadata(survey.task)
    return canonical_json(metadata)


def _has_same_description(stored: str, survey: Survey) -> bool:
    """Whether the stored JSON describes this survey; that earlier versions stored no donors or zones is no change."""
    known = survey if '"donors"' in stored else replace(survey, donors={})
    known = known if '"zones"' in stored else replace(known, zones=None)
    return stored == _serialize_survey(known)


def _has_same_truth(connection: sa.Connection, audit_id: int, survey: Survey) -> bool:
    """Whether the stored ground truth of an audit equals that of a survey."""
    return read_records(connection, audit_id, SurveyCell) == list(survey.cells)


def _save_survey(connection: sa.Connection, audit_id: int, survey: Survey) -> None:
    """Store the cells of a survey and the items of its task in place of those that the audit had."""
    replace_records(connection, audit_id, SurveyCell, survey.cells)
    replace_records(connection, audit_id, TaskItem, survey.task.items.values() if survey.task else ())


class AuditContents(NamedTuple):
    """Number of rows that belong to one audit, by kind.

    Attributes:
        probe_answers: by their name in the singular.
        labels: rows in the log of labels.
        open_batches: batches that were submitted and not collected.
    """

    samples: int
    verdicts: int
    probe_answers: dict[str, int]
    conflicts: int
    decisions: int
    labels: int
    open_batches: int


def count_contents(db: Database, audit_id: int) -> AuditContents:
    """Count what an audit has."""
    batches = table_of(ProviderBatch)
    is_open = (batches.c.audit_id == audit_id) & batches.c.submitted_at.is_not(None) & batches.c.ended_at.is_(None)
    with db.read() as connection:
        return AuditContents(
            samples=_count_rows(connection, Trace, audit_id),
            verdicts=_count_rows(connection, Verdict, audit_id),
            probe_answers={
                name_answers(name): count.n for name, count in count_probe_answers(connection, audit_id).items()
            },
            conflicts=_count_rows(connection, Conflict, audit_id),
            decisions=_count_rows(connection, Rating, audit_id),
            labels=_count_rows(connection, LabelEntry, audit_id),
            open_batches=int(
                connection.execute(sa.select(sa.func.count()).select_from(batches).where(is_open)).scalar_one()
            ),
        )


def require_free_name(db: Database, name: str) -> None:
    """Raise UsageError if an audit has this name."""
    if find_audit(db, name) is not None:
        raise UsageError(f"an audit named '{name}' already exists.", "Choose another name, or rename that audit first.")


def rename_audit(db: Database, audit: Audit, new_name: str, config: str | None, config_hash: str | None) -> None:
    """Give an audit another name.

    Args:
        config: the configuration with the new name, as JSON; None for an audit of imported scores.
        config_hash: its hash.

    Raises:
        UsageError: another audit has that name.
    """
    require_free_name(db, new_name)
    values = {"name": new_name, "config": config, "config_hash": config_hash}

    def job(connection: sa.Connection) -> None:
        hash_chain.append_act(connection, audit.id, act="rename", audit=audit.name, to=new_name, at=utc_now())
        with hash_chain.record_changes(connection, audit.id, ["audit"]):
            connection.execute(sa.update(table_of(Audit)).where(table_of(Audit).c.id == audit.id).values(values))

    db.write(job)


def delete_audit(db: Database, audit: Audit) -> None:
    """Delete an audit's configuration, survey and all rows that are derived from recorded answers.

    The row of the audit stays under a name that no command shows: human decisions refer to it, and they cannot be
    deleted without breaking the hash chain.
    """
    record_classes = (*list_record_classes(RowPolicy.DERIVED), *list_record_classes(RowPolicy.MUTABLE))

    def job(connection: sa.Connection) -> None:
        hash_chain.append_act(connection, audit.id, act="delete", audit=audit.name, at=utc_now())
        kinds = hash_chain.input_kinds(is_imported=audit.config is None)
        with hash_chain.record_changes(connection, audit.id, kinds):
            empty_audit(connection)

    def empty_audit(connection: sa.Connection) -> None:
        for record_class in record_classes:
            if "audit_id" in table_of(record_class).c:
                replace_rows(connection, record_class, audit.id, [])
        table = table_of(Audit)
        values = {
            "name": deleted_name(audit.id),
            "config": None,
            "config_hash": None,
            "survey": "{}",
            "environment": "{}",
            "updated_at": utc_now(),
        }
        connection.execute(sa.update(table).where(table.c.id == audit.id).values(values))

    db.write(job)


def _count_rows(connection: sa.Connection, row_class: type, audit_id: int) -> int:
    """Number of an audit's rows of one class."""
    table = table_of(row_class)
    query = sa.select(sa.func.count()).select_from(table).where(table.c.audit_id == audit_id)
    return int(connection.execute(query).scalar_one())
