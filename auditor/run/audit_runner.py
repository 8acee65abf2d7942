"""Run an audit to its end, and resume one that waits for human reviewers."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from auditor import bootstrap
from auditor.config import REPLAY, AuditConfig, load_config, load_stored_config
from auditor.config.trust import describe_destinations
from auditor.domain import Outcome, Survey
from auditor.errors import NotAllowedError, UsageError
from auditor.lazy_imports import import_when_used
from auditor.reports.data.audit_status import load_audit_status
from auditor.run.audit_handle import (
    AuditHandle,
    describe_database,
    locate_storage,
    open_stored_audit,
    open_stored_database,
    resolve_storage_url,
)
from auditor.run.fingerprints import (
    READERS,
    describe_config_change,
    describe_environment,
    fingerprint,
    format_reader_versions,
    keep_earlier_defaults,
)
from auditor.run.model_access import DiscoveryOptions, require_instructor, run_with_models, wait_for_database
from auditor.run.ray_engine import require_engine
from auditor.run.survey_plan import (
    check_probe_input,
    describe_survey_problems,
    direct_encoder_loader,
    list_unmeasurable,
    load_planned_survey,
)
from auditor.storage import audits
from auditor.storage.audits import register_claim
from auditor.storage.database import Database, open_database, run_lock
from auditor.storage.rereadings import forget_rereading

if TYPE_CHECKING:
    from auditor.agents.run_context import ProgressReporter

if not TYPE_CHECKING:
    call_runner = import_when_used("auditor.agents.call_runner")
    graph = import_when_used("auditor.agents.graph")
    run_context = import_when_used("auditor.agents.run_context")
else:
    from auditor.agents import call_runner, graph, run_context


@bootstrap.prepared_environment()
def run_audit(
    config: AuditConfig | str | Path,
    *,
    storage: str | None = None,
    progress: ProgressReporter | None = None,
    signals: bool = False,
    preflight: bool = True,
    rediscover: bool = False,
    ask_again: Outcome | None = None,
    ask_again_models: Collection[str] = (),
) -> AuditHandle:
    """Run an audit to its end; a second call resumes it, and sends only requests without a recorded answer.

    While it runs, this process's environment is without variables that would redirect requests, such as
    OPENAI_BASE_URL. It is as before when the function returns.

    Args:
        config: a configuration, or the path of its file.
        storage: database URL; else AUDITOR_STORAGE, else the config's `storage`, else `auditor.db` beside it.
        progress: receives every stage and answer.
        signals: whether SIGINT, SIGTERM and SIGHUP stop the run with everything saved; only from the main thread.
        preflight: whether to find out what all models accept before other calls are sent.
        rediscover: whether to find out again what models accept, if a call to them is left.
        ask_again: recorded answers with this outcome (`refused`, `truncated` or `unparsed`) to the questions of all
            probes and to reviews are asked for again, once each; None for none.
        ask_again_models: names of the models and judges that are asked again; all if empty.

    Raises:
        ConfigError, SurveyError, ModelSetupError, StorageError: the message says what is wrong, and how to fix it.
        RunInterrupted: a signal stopped the run.
    """
    if not isinstance(config, AuditConfig):
        config = load_config(config)
    survey = load_planned_survey(config)

    check_probe_input(config, survey)
    location = locate_storage(storage, config)
    require_engine(config)
    require_instructor(config)
    progress = progress or run_context.SilentProgress()
    notices = (location.notice, describe_survey_problems(config, survey), *list_unmeasurable(config, survey))
    for notice in filter(None, notices):
        progress.on_notice(notice)
    with open_database(location.url) as db, run_lock(db, config.name):
        with wait_for_database(db, config, progress.on_notice):
            is_stored = audits.find_audit(db, config.name) is not None
            progress.on_notice(describe_database(db, is_stored=is_stored))
            config, audit = _save_audit(db, config, survey, progress)
            forget_rereading(db, audit.id)
        run_with_models(
            graph.run_graph,
            config,
            survey,
            audit,
            db,
            load_encoder=direct_encoder_loader(config),
            progress=progress,
            signals=signals,
            discovery=DiscoveryOptions(preflight=preflight, rediscover=rediscover),
            repeated=_select_repeated(config, ask_again, ask_again_models),
        )
    return AuditHandle(config.name, location.url)


def _select_repeated(
    config: AuditConfig, outcome: Outcome | None, names: Collection[str]
) -> frozenset[tuple[str, Outcome]]:
    """Models and outcome of the answers to ask for again; recorded answers of `replay/` models cannot be.

    Raises:
        UsageError: a name is no model of the audit, or answers with the outcome cannot be asked for again.
    """
    if outcome is None:
        return frozenset()

    if outcome not in call_runner.REPEATABLE_OUTCOMES:
        choices = ", ".join(sorted(call_runner.REPEATABLE_OUTCOMES))
        raise UsageError(
            f"answers with the outcome '{outcome}' cannot be asked for again.",
            f"Choose one of: {choices}. Requests that failed are sent again by every run.",
        )
    if unknown_names := sorted(set(names) - set(config.models_by_name)):
        raise UsageError(
            f"the audit has no model or judge named '{unknown_names[0]}'.",
            f"Choose from: {', '.join(config.models_by_name)}.",
        )
    return frozenset(
        (name, outcome)
        for name, model in config.models_by_name.items()
        if (not names or name in names) and model.provider is not REPLAY
    )


@bootstrap.prepared_environment()
def store_audit(
    config: AuditConfig, *, storage: str | None = None, progress: ProgressReporter | None = None
) -> AuditHandle:
    """Store an audit without asking its models, for experiments that need its configuration only.

    A stored audit with the same configuration keeps its results; `run_audit` asks what is missing.

    Raises:
        ConfigError, SurveyError, StorageError: the message says what is wrong, and how to fix it.
    """
    survey = load_planned_survey(config)
    check_probe_input(config, survey)
    url = resolve_storage_url(storage, config)
    with open_database(url) as db, run_lock(db, config.name):
        _save_audit(db, config, survey, progress or run_context.SilentProgress())
    return AuditHandle(config.name, url)


def finish_audit(name: str, *, storage: str | None = None) -> None:
    """State that a stored audit is finished: no more calls follow, unless `run_audit` asks its own questions."""
    with open_stored_database(storage) as db:
        audits.set_stage(db, audits.get_audit(db, name).id, audits.FINISHED)


def _save_audit(
    db: Database, config: AuditConfig, survey: Survey, progress: ProgressReporter
) -> tuple[AuditConfig, audits.Audit]:
    """Store an audit's configuration and survey, with notices of what has changed since its last run.

    Returns:
        The configuration with settings whose default changed as an existing audit has them, and the stored audit.
    """
    progress.on_notice(describe_destinations(config))
    if db.upgraded is not None:
        progress.on_notice(str(db.upgraded))
    stored_audit = audits.find_audit(db, config.name)
    config = keep_earlier_defaults(stored_audit, config)
    config_hash = fingerprint(config)
    is_truth_changed = stored_audit is not None and _has_other_truth(audits.load_audit_survey(db, stored_audit), survey)
    if change_notice := describe_config_change(stored_audit, config, config_hash, is_truth_changed=is_truth_changed):
        progress.on_notice(change_notice)
    audit = audits.save_audit(
        db,
        name=config.name,
        config=config.model_dump_json(),
        config_hash=config_hash,
        survey=survey,
        environment=describe_environment()
        | {READERS: format_reader_versions(config)}
        | audits.keep_encoder(stored_audit, config.embedding.model),
    )
    if claim := config.compare.non_inferiority:
        register_claim(db, audit.id, claim.baseline, claim.margin)
    return config, audit


def _has_other_truth(stored: Survey, survey: Survey) -> bool:
    """Whether a survey has other scores of people, or other items, than the stored one."""
    digests = [known.task and known.task.digest for known in (stored, survey)]
    return stored.cells != survey.cells or digests[0] != digests[1]


@bootstrap.prepared_environment()
def resume_after_review(name: str, *, storage: str | None = None) -> int:
    """Resume an audit that waits for human reviewers; it finishes if no conflict is open.

    Args:
        name: the audit's name; an audit that does not wait is left unchanged.
        storage: database URL; as `resolve_storage_url` if None.

    Returns:
        Number of conflicts that are still open.
    """
    with open_stored_audit(name, storage) as (db, audit):
        n_open_conflicts: int = load_audit_status(db, audit)["open"]
        if audit.stage == audits.AWAITING_HUMAN and audit.config is not None and not n_open_conflicts:
            # A reviewer's database role may not end it: the decisions are saved, and the next run does.
            with suppress(NotAllowedError):
                asyncio.run(_resume_graph(load_stored_config(audit.config), audit, db))
        return n_open_conflicts


async def _resume_graph(config: AuditConfig, audit: audits.Audit, db: Database) -> None:
    """Resume the audit's graph; no model is called."""
    survey = audits.load_audit_survey(db, audit)
    context = run_context.RunContext(
        config, survey, audit.id, list(survey.asked_cells), db, client=run_context.OfflineClient()
    )
    await graph.resume_graph(context)
