"""Derive an audit's results again from its recorded answers: compared with the stored ones, or put in their place."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from auditor.config import AuditConfig, load_stored_config
from auditor.config.installed_probes import load_built_in, load_probe
from auditor.config.probe_section import StoredEncoder
from auditor.domain import Answer, Call, CellScore, Outcome, Verdict, canonical_json
from auditor.errors import AuditorError, ConfigError, UsageError
from auditor.panel_assignment import TraceKey
from auditor.run import derivation_workers
from auditor.run.audit_changes import update_final_stage
from auditor.run.audit_handle import open_stored_database
from auditor.run.fingerprints import (
    READERS,
    find_other_readers,
    fingerprint,
    format_reader_versions,
    list_reader_versions,
    was_run_with,
)
from auditor.run.survey_plan import NO_ENCODER, bind_simulated_models, compares_answers
from auditor.storage import audits, exclusions, hash_chain, ledger, results
from auditor.storage.audits import Audit
from auditor.storage.database import Database, run_lock
from auditor.storage.derived_rows import (
    RowCallback,
    RowCheck,
    RowDifference,
    apply_copied_exclusions,
    compare_derived_rows,
    find_unknown_values,
    note_queried_hashes,
    open_copy,
)
from auditor.storage.records import load_records, save_records
from auditor.storage.rereadings import RowChange, store_rereading, undo_rereading

if TYPE_CHECKING:
    from auditor.agents.background_consistency import RecordedConsistency
    from auditor.agents.run_context import RunContext, TextEncoder


@dataclass(frozen=True, slots=True)
class Rederivation:
    """Outcome of `derive_again`.

    Attributes:
        check: of the stored rows by the derived ones; None if they could not be derived.
        reason: why not; None if they were derived.
        is_hindered: whether there are answers from which they could be derived elsewhere.
        other_readers: stored and present version of readers that are others now: rows that differ are no finding.
        missing_probes: why probes cannot be used now, as a sentence, by name: their results were not derived.
    """

    check: RowCheck | None
    reason: str | None = None
    is_hindered: bool = False
    other_readers: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    missing_probes: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_consistent(self) -> bool:
        """Whether no stored row differs from what the recorded answers say."""
        return self.check is None or not self.check.changed

    @property
    def lacks_results(self) -> bool:
        """Whether some stored results, or all, could not be derived here but could be elsewhere."""
        return self.is_hindered if self.check is None else bool(self.check.left_out)


def derive_again(
    db: Database,
    audit: Audit,
    queried_hashes: set[str] | None = None,
    unknown: Sequence[RowDifference] | None = None,
) -> Rederivation:
    """Derive all results of an audit again from its recorded answers, and compare them with the stored rows.

    An audit of imported results has no answers: nothing is derived. Nor is it where rows cannot be read.

    Args:
        db: the audit's database.
        audit: the audit.
        queried_hashes: a set to which the keys of calls and of embeddings are added that the results depend on.
        unknown: what `find_unknown_values` returns, if it was called before.
    """
    if not hash_chain.is_audit_intact(db, audit.id):
        return Rederivation(None, "the audit's configuration, survey or environment is not as it was written")
    if find_unknown_values(db, audit.id) if unknown is None else unknown:
        return Rederivation(None, "rows have values that no version of auditor writes")
    try:
        with open_derivation(db, audit, queried_hashes) as compare:
            config = load_stored_config(audit.config)
            missing = {} if config is None else config.probes.missing
            return Rederivation(compare(), other_readers=load_other_readers(audit), missing_probes=missing)
    except AuditorError as error:
        return Rederivation(None, error.message, is_hindered=audit.config is not None)


def load_other_readers(audit: Audit) -> dict[str, tuple[int, int]]:
    """Stored and present version of each reader of an audit's results whose version is another one now."""
    config = load_stored_config(audit.config)
    return {} if config is None else find_other_readers(audit, config)


@contextmanager
def open_derivation(
    db: Database, audit: Audit, queried_hashes: set[str] | None = None, on_reread: RowCallback = lambda *_: None
) -> Iterator[Callable[[], RowCheck]]:
    """Derive all results of an audit again, and yield a function that compares them with the stored rows.

    Args:
        db, audit, queried_hashes: as in `derive_again`.
        on_reread: as in `compare_derived_rows`.

    Raises:
        AuditorError: they cannot be derived.
    """
    config = load_stored_config(audit.config)
    if config is None:
        raise UsageError("the results of this audit were imported, and no answers are recorded.", "Nothing is needed.")
    _require_inputs(config)
    has_present_readers = was_run_with(audit, config)
    config = bind_simulated_models(config, audits.load_audit_survey(db, audit))
    models = {model.model for model in config.models_by_name.values()}
    with open_copy(db, audit, models) as copy, note_queried_hashes(queried_hashes, db, copy):
        context, client = prepare_derivation(db, copy, audit)
        # Queries of other processes are not noted, and a round of answers depends on those before.
        is_divisible = queried_hashes is None and config.probes.direct and config.direct.target_width is None
        if is_divisible and (n_workers := derivation_workers.count_workers(copy)) > 1:
            client.unasked |= derivation_workers.read_cells(db, copy, audit.name, n_workers, config)
            context = replace(context, has_cells=True)
        with derivation_workers.collect_garbage_rarely():
            asyncio.run(_derive(db, context))
        yield lambda: compare_derived_rows(
            db,
            copy,
            audit,
            is_unasked=client.unasked.__contains__,
            is_foreign=partial(hash_chain.is_linked, hash_chain.load_linked_names(db, audit.id)),
            missing_probes=config.probes.missing,
            other_readers=find_other_readers(audit, config),
            has_present_readers=has_present_readers,
            on_reread=on_reread,
            names=config.models_by_name,
        )


def prepare_derivation(db: Database, copy: Database, audit: Audit) -> tuple[RunContext, RecordedClient]:
    """Set up what derives the results of an audit: a context of a run, and its client.

    Args:
        db: the audit's database.
        copy: as of `derived_rows.open_copy`; results are stored in it.
        audit: an audit that was run here.
    """
    from auditor.agents.run_context import RunContext  # loads numpy

    config, survey = load_stored_config(audit.config), audits.load_audit_survey(db, audit)
    assert config is not None
    config = bind_simulated_models(config, survey)
    client = RecordedClient(db, copy, audit.id)
    names = [judge.name for judge in config.judge_models if judge.verdicts is not None]
    recorded: dict[str, dict[TraceKey, Verdict]] = {name: {} for name in names}
    for verdict in load_records(db, audit.id, Verdict, judge=names) if names else ():
        recorded[verdict.judge][TraceKey(verdict.model, verdict.cell, verdict.sample)] = verdict
    context = RunContext(
        config,
        survey,
        audit.id,
        list(survey.asked_cells),
        copy,
        client,
        consistency=_load_recorded_consistency(db, audit) if compares_answers(config) else None,
        encoder_loaders=_stored_encoder_loaders(db, audit, config),
        preflight=False,
        is_recorded=True,
        recorded_verdicts=recorded,
    )
    return context, client


def _require_inputs(config: AuditConfig) -> None:
    """Check that the files are there on which the calls of an audit depend.

    Without them, calls have other keys, and all of their results would count as changed.

    Raises:
        ConfigError: one is missing.
    """
    models = config.models_by_name.values()
    files = [file for model in models for file in (model.answers, model.verdicts, model.review_prompt) if file]

    def note(path: str) -> str:
        files.append(path)
        return path

    for name, settings in config.probes.with_stage.items():
        load_probe(name).resolve_paths(settings, note)
    for file in files:
        if Path(file).is_absolute() and not Path(file).exists():
            how_to_fix = "Put the file back, or check the archive that `auditor export evidence` wrote before."
            raise ConfigError(f"{file}: the audit was run with this file, which is not there now.", how_to_fix)


async def _derive(db: Database, context: RunContext) -> None:
    """Do on the copy what a run does, then apply the exclusions in force as the commands that declare them do."""
    from auditor.agents.derived_results import recompute_results  # loads numpy
    from auditor.agents.recorded_cells import has_only_cells, read_recorded_slice

    if context.consistency is None:  # no vectors are stored; a run keeps what was measured for unchanged texts, too
        measured = [
            CellScore(
                *(score.model, score.cell, score.method, None),
                **{column: getattr(score, column) for column in hash_chain.MEASURED_COLUMNS},
            )
            for score in results.load_scores(db, context.audit_id)
            if score.self_consistency is not None
        ]
        save_records(context.db, context.audit_id, measured)
    if has_only_cells(context.config):
        if not context.has_cells:
            await read_recorded_slice(context, 0, 1)
        context.raise_if_stopped()
        await asyncio.to_thread(recompute_results, context)
    else:
        from auditor.agents.graph import run_graph  # loads langgraph (2 s)

        await run_graph(context)
        context.raise_if_stopped()
    if exclusions.load_exclusions(db, context.audit_id):
        await asyncio.to_thread(apply_copied_exclusions, db, context.db, context.audit_id)
        await asyncio.to_thread(recompute_results, context)


def _load_recorded_consistency(db: Database, audit: Audit) -> RecordedConsistency | None:
    """What computes an audit's self-consistencies; None if it has none, or from before vectors were stored."""
    from auditor.agents.background_consistency import RecordedConsistency  # loads numpy
    from auditor.agents.vector_cache import StoredVectors

    revision = audits.load_encoder_revision(db, audit.id)
    return None if revision is None else RecordedConsistency(StoredVectors(db, revision))


def _stored_encoder_loaders(db: Database, audit: Audit, config: AuditConfig) -> dict[str, Callable[[], TextEncoder]]:
    """Functions that return the stored vectors in place of the encoders of probes, by the probe's name."""
    from auditor.agents.vector_cache import StoredVectors  # loads numpy

    loaders: dict[str, Callable[[], TextEncoder]] = {}
    for name in config.probes.stages:
        probe = load_built_in(name)
        if probe.find_encoder(config) is not None:
            stored = probe.load_stored_encoder(db, audit.id) or StoredEncoder(NO_ENCODER, None)
            loaders[name] = partial(StoredVectors, db, stored.revision, is_multilingual=stored.is_multilingual)
    return loaders


class RecordedClient:
    """Answers calls that have no recorded answer with their recorded failure."""

    def __init__(self, db: Database, copy: Database, audit_id: int) -> None:
        """Set up for an audit.

        Args:
            db: the audit's database, with its failed requests.
            copy: the database with the answers that the audit could use.
            audit_id: of the audit.
        """
        self._db, self._copy, self._audit_id = db, copy, audit_id
        self.unasked: set[str] = set()
        """Keys of calls without a recorded answer and without a recorded request."""

    async def complete(self, call: Call) -> Answer:
        """The recorded failure of a call; of one that would be asked again with a higher limit, the earlier answer."""
        earlier = call
        while earlier.retake:
            earlier = replace(earlier, retake=earlier.retake - 1)
            if answer := ledger.load_answers(self._copy, [earlier.key]).get(earlier.key):
                return answer
        outcome = ledger.load_last_outcome(self._db, call.key, self._audit_id)
        if outcome is None or outcome.is_answer:
            self.unasked.add(call.key)
            return Answer(call.key, Outcome.OVER_BUDGET)
        return Answer(call.key, outcome)


@dataclass(frozen=True, slots=True)
class Rereading:
    """What the present readers read otherwise.

    Attributes:
        readers: stored and present version of each reader that is another one now.
        n_by_table: number of results that change, by table.
        missing_probes: why probes cannot be used, as a sentence, by name: their results were not read.
    """

    readers: Mapping[str, tuple[int, int]]
    n_by_table: Mapping[str, int]
    missing_probes: Mapping[str, str]


def reread_audit(name: str, *, storage: str | None = None, is_preview: bool = False) -> Rereading:
    """Replace those results of an audit that the present readers read otherwise; no model is called.

    Results that differ although their reader has the same version stay as they are: `auditor verify` names them.

    Args:
        name: the audit's name.
        storage: database URL; as `resolve_storage_url` if None.
        is_preview: whether nothing is stored.

    Raises:
        UsageError: the audit's results were imported.
        StorageError: there is no such audit, or it is being run.
        AuditorError: results cannot be derived.
    """
    with open_stored_database(storage) as db, run_lock(db, name):
        audit = audits.get_audit(db, name)
        config = load_stored_config(audit.config)
        if config is None:
            raise UsageError(f"the results of '{name}' were imported: no answers are recorded.", "Import them again.")
        changes: list[RowChange] = []
        with open_derivation(db, audit, on_reread=lambda *change: changes.append(RowChange(*change))) as compare:
            compare()
        readers = find_other_readers(audit, config)
        if not is_preview and (readers or changes):
            earlier_readers = list_reader_versions(config) | {reader: old for reader, (old, _) in readers.items()}
            was_current = audit.config_hash == fingerprint(config, readers=earlier_readers)
            config_hash = fingerprint(config) if was_current else audit.config_hash
            environment = json.loads(audit.environment) | {READERS: format_reader_versions(config)}
            store_rereading(db, audit, changes, config_hash, canonical_json(environment))
            update_final_stage(db, audit)
        return Rereading(readers, Counter(change.table.name for change in changes), config.probes.missing)


def undo_reread(name: str, *, storage: str | None = None) -> int:
    """Restore the results that the last rereading of an audit replaced, and return their number.

    Raises:
        UsageError: there is none, or the audit was run again since.
        StorageError: there is no such audit, or it is being run.
    """
    with open_stored_database(storage) as db, run_lock(db, name):
        audit = audits.get_audit(db, name)
        n_restored = undo_rereading(db, audit)
        update_final_stage(db, audit)
        return n_restored
