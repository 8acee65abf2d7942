"""Running an audit to its end, and on from where it waits for people."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from auditor import bootstrap
from auditor.config import AuditConfig, load_config
from auditor.config.trust import destinations
from auditor.errors import NotAllowedError
from auditor.run.audit_handle import AuditHandle, storage_url
from auditor.run.config_changes import change_note
from auditor.run.engines import require_engine
from auditor.run.fingerprints import environment, fingerprint
from auditor.run.model_access import ask_models, encoder_of
from auditor.run.survey_plan import planned_cells, planned_survey
from auditor.storage import audits
from auditor.storage.database import Database, open_database, run_lock

if TYPE_CHECKING:
    from auditor.agents.run_context import Progress


def run_audit(
    config: AuditConfig | str | Path,
    *,
    storage: str | None = None,
    progress: Progress | None = None,
    signals: bool = False,
) -> AuditHandle:
    """Run an audit to its end; run it again to resume, or to ask only what is not yet recorded.

    Args:
        config: a configuration, or the path of one.
        storage: database URL, before AUDITOR_STORAGE and the config's own.
        progress: is told of every stage and answer.
        signals: whether SIGINT, SIGTERM and SIGHUP stop the run with everything saved; only from the main thread.

    Raises:
        ConfigError, SurveyError, ModelSetupError, StorageError: what is wrong, and how to mend it.
        Interrupted: a signal stopped the run.
    """
    bootstrap.prepare()
    if not isinstance(config, AuditConfig):
        config = load_config(config)
    survey = planned_survey(config)
    from auditor.agents.graph_runner import drive
    from auditor.agents.logic.item_sets import check_items
    from auditor.agents.run_context import Silent

    check_items(config, survey)
    if config.probes.semantic:
        from auditor.agents.semantic.questions import planned_questions

        planned_questions(config.probes.semantic)
    url = storage_url(storage, config)
    require_engine(config, url)
    progress = progress or Silent()
    with open_database(url) as db, run_lock(db, config.name):
        progress.noted(destinations(config))
        if db.upgraded is not None:
            progress.noted(str(db.upgraded))
        if note := change_note(audits.find(db, config.name), config, fingerprint(config)):
            progress.noted(note)
        audit = audits.save(
            db,
            name=config.name,
            config=config.model_dump_json(),
            config_hash=fingerprint(config),
            survey=survey,
            environment=environment(),
        )
        ask_models(
            lambda context: drive(context, db, _thread(audit)),
            config,
            survey,
            audit,
            db,
            encoder=encoder_of(config),
            progress=progress,
            signals=signals,
        )
    return AuditHandle(config.name, url)


def resume_after_review(name: str, *, storage: str | None = None) -> int:
    """Tell an audit that waits for people what they have decided; with nothing left open, it ends.

    Args:
        name: the audit's name; one that does not wait stays as it is.
        storage: database URL.

    Returns:
        Conflicts that are still open.
    """
    from auditor.reports.audit_status import status_of

    bootstrap.prepare()
    with open_database(storage_url(storage), create=False) as db:
        audit = audits.get(db, name)
        left: int = status_of(db, audit)["open"]
        if audit.stage == audits.PERSON and audit.config is not None:
            with suppress(NotAllowedError):  # a reviewer's decisions are saved; a runner's next run ends the audit
                asyncio.run(_resume(AuditConfig.model_validate_json(audit.config), audit, db, left))
        return left


async def _resume(config: AuditConfig, audit: audits.Audit, db: Database, left: int) -> None:
    from auditor.agents.graph_runner import resume
    from auditor.agents.run_context import Context, Nobody

    survey = audits.survey_of(db, audit)
    context = Context(config, survey, audit.id, planned_cells(survey), db, gateway=Nobody(), encoder=None)
    waited = await resume(context, db, _thread(audit), left)
    if not waited and left == 0:  # the graph's memory is gone (only the database was moved) or an earlier version's
        audits.set_stage(db, audit.id, audits.DONE)


def _thread(audit: audits.Audit) -> str:
    return f"{audit.id}/{audit.created_at}"
