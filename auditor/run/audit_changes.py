"""Rename and delete audits, and declare answers invalid, under the locks of their runs."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from itertools import groupby
from typing import TypeVar

from auditor.agents.background_consistency import BackgroundConsistency
from auditor.agents.run_context import OfflineClient, RunContext
from auditor.config import load_stored_config, require_audit_name
from auditor.config.cross_table_rules import SIMULATED_NAME_START
from auditor.config.installed_probes import list_built_in_names, load_built_in
from auditor.domain import Method
from auditor.domain.audit_records import AnswerSelection, Exclusion
from auditor.errors import ConfigError, UsageError
from auditor.reports.data.audit_status import load_audit_status
from auditor.reports.data.coverage.build import measure_coverage
from auditor.reports.data.report_source import load_source
from auditor.run.audit_handle import open_stored_database
from auditor.run.fingerprints import fingerprint, was_run_with
from auditor.run.survey_plan import direct_encoder_loader, probe_encoder_loaders
from auditor.storage import audits, exclusions, results
from auditor.storage.audits import Audit
from auditor.storage.database import Database, run_lock
from auditor.storage.records import save_records


def rename_audit(name: str, new_name: str, *, storage: str | None = None) -> None:
    """Give an audit another name; its results, its decisions and its place in the hash chain do not change.

    Args:
        name: the audit's name.
        new_name: a name that no audit of the database has.
        storage: database URL; AUDITOR_STORAGE or `sqlite:///auditor.db` if None.

    Raises:
        UsageError: `new_name` cannot name an audit, or another audit has it.
        StorageError: there is no such audit, or it is being run.
        ConfigError: another version of auditor stored its configuration, and this one cannot read it.
    """
    require_audit_name(new_name)
    with open_stored_database(storage) as db:
        audits.get_audit(db, name)
        audits.require_free_name(db, new_name)
        with run_lock(db, name), run_lock(db, new_name):
            audit = audits.get_audit(db, name)
            audits.rename_audit(db, audit, new_name, *_rename_config(audit, new_name))


def delete_audit(name: str, *, storage: str | None = None) -> None:
    """Delete an audit; recorded answers, human decisions and the hash chain stay. See `storage.audit_changes`.

    Raises:
        StorageError: there is no such audit, or it is being run.
    """
    with open_stored_database(storage) as db, run_lock(db, name):
        audit = audits.get_audit(db, name)
        audits.delete_audit(db, audit)


def _rename_config(audit: Audit, new_name: str) -> tuple[str | None, str | None]:
    """The stored configuration with another name, as JSON, and its hash; (None, None) for imported scores.

    A hash of other prompts stays as it is: the next run then computes the results again in any case.

    Raises:
        UsageError: the models are simulated, and the new name does not say so; the audit could not be opened again.
    """
    if audit.config is None:
        return None, audit.config_hash
    try:
        renamed_config = load_stored_config(audit.config, new_name=new_name)
    except ConfigError:
        load_stored_config(audit.config)  # raises, if the configuration cannot be read under any name
        raise UsageError(
            f"models of '{audit.name}' are simulated, so its name must start with '{SIMULATED_NAME_START}'.",
            f"Name it {SIMULATED_NAME_START}-{new_name}.",
        ) from None
    config = renamed_config.model_copy(update={"name": audit.name})
    return renamed_config.model_dump_json(), (
        fingerprint(renamed_config) if was_run_with(audit, config) else audit.config_hash
    )


T = TypeVar("T")


def exclude_answers(name: str, selection: AnswerSelection, reason: str, *, storage: str | None = None) -> Exclusion:
    """Declare answers of an audit invalid; no model is called.

    They leave all figures, with their verdicts and conflicts, and count as planned and lost.

    Args:
        name: the audit's name.
        selection: which answers.
        reason: why; the report quotes it.
        storage: database URL; as `resolve_storage_url` if None.

    Raises:
        UsageError: the selection or the reason is empty, or no answer matches.
        StorageError: there is no such audit, or it is being run.
        AuditorError: the encoder that compares the remaining answers cannot be used.
    """
    if selection == AnswerSelection():
        raise UsageError("no answers are selected.", "Add --model, --country, --topic, --sample or --probe.")
    if not reason.strip():
        raise UsageError("the reason is empty.", 'Say why the answers are invalid: --reason "…"')
    return _change(
        name, storage, lambda db, audit_id: exclusions.exclude_answers(db, audit_id, selection, reason.strip())
    )


def undo_exclusion(name: str, exclusion_id: int, reason: str = "", *, storage: str | None = None) -> None:
    """Undo a declaration; its answers, verdicts and conflicts count again as before.

    If the audit was run with another configuration since, or answers that came since changed what is asked about these,
    verdicts on them are not stored: then the audit is not complete until the next run, which takes recorded ones.

    Raises:
        UsageError: the audit has no such declaration in force.
        StorageError, AuditorError: as in `exclude_answers`.
    """
    _change(name, storage, lambda db, audit_id: exclusions.undo_exclusion(db, audit_id, exclusion_id, reason.strip()))


def _change(name: str, storage: str | None, change: Callable[[Database, int], T]) -> T:
    """Change which answers of an audit are excluded, and compute its results again, under the lock of its runs."""
    with open_stored_database(storage) as db, run_lock(db, name):
        audit = audits.get_audit(db, name)
        recompute = _prepare(db, audit)
        result = change(db, audit.id)
        recompute()
        return result


def _prepare(db: Database, audit: audits.Audit) -> Callable[[], None]:
    """A function that computes an audit's results again; whether its encoder can be used is checked at once."""
    config = load_stored_config(audit.config)
    if config is None:
        return lambda: recompute_imported_scores(db, audit.id)
    load_encoder, encoder_loaders = direct_encoder_loader(config), probe_encoder_loaders(config)

    def recompute() -> None:
        from auditor.agents.derived_results import recompute_results  # loads numpy

        stop_event = threading.Event()
        survey = audits.load_audit_survey(db, audit)
        consistency = (
            None
            if load_encoder is None
            else BackgroundConsistency(load_encoder, config.embedding.model, db, audit.id, stop_event)
        )
        context = RunContext(
            config,
            survey,
            audit.id,
            list(survey.asked_cells),
            db,
            client=OfflineClient(),
            consistency=consistency,
            encoder_loaders=encoder_loaders,
            stop_event=stop_event,
        )
        recompute_results(context)
        update_final_stage(db, audit)
        if audit.stage in audits.FINAL_STAGES and _lacks_verdicts(db, audit):
            audits.set_stage(db, audit.id, "review")

    return recompute


def _lacks_verdicts(db: Database, audit: audits.Audit) -> bool:
    """Whether a planned verdict has no row."""
    for stage in measure_coverage(load_source(db, audit.name)):
        recorded = Counter[object]()
        for unit, _, n in stage.recorded:
            recorded[unit] += n
        if stage.stage == "review" and any(n > recorded[unit] for unit, n in stage.planned.items()):
            return True
    return False


def update_final_stage(db: Database, audit: audits.Audit) -> None:
    """Let a finished audit wait for a person if a conflict is open now, and the other way round."""
    if audit.stage in audits.FINAL_STAGES:
        n_open = load_audit_status(db, audit)["open"]
        stage = audits.AWAITING_HUMAN if n_open else audits.FINISHED
        if stage != audit.stage:
            audits.set_stage(db, audit.id, stage)


def recompute_imported_scores(db: Database, audit_id: int) -> None:
    """Compute the scores of an imported audit again: of cells whose samples are stored, and of answers to questions."""
    from auditor.agents.cell_scoring import compute_cell_score  # loads numpy (0.1 s)

    stored = {
        (score.model, score.cell): score for score in results.load_scores(db, audit_id) if score.method == Method.DIRECT
    }
    traces = results.load_traces(db, audit_id)
    scores = []
    for key, group in groupby(traces, key=lambda trace: (trace.model, trace.cell)):
        samples, score = list(group), stored.get(key)
        n_planned = len(samples) if score is None else max(score.n_planned, len(samples))
        scores.append(compute_cell_score(*key, samples, n_planned, None, ""))
    save_records(db, audit_id, scores)
    for name in list_built_in_names():
        load_built_in(name).recompute_imported(db, audit_id)
