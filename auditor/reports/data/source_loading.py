"""Read all records that an audit's report needs from storage."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from auditor.config import load_stored_config
from auditor.domain import AlteredTraceVerdict, CellScore, Contest, Guess
from auditor.domain.design_records import PlannedRun
from auditor.prompts.judge_address import addresses_judge
from auditor.reports.data.label_records import load_label_records
from auditor.reports.data.report_source import ReportSource
from auditor.storage import audits, costs, count_queries, results, tasks
from auditor.storage.call_records import StoredCapability
from auditor.storage.database import Database
from auditor.storage.exclusions import load_exclusions
from auditor.storage.probe_answers import apply_vote_weights, list_answering_models
from auditor.storage.records import load_records
from auditor.storage.reviewed_conflicts import load_reviewed_conflicts
from auditor.storage.votes import load_votes


def count_addressing_traces(db: Database, audit_id: int) -> dict[str, int]:
    """Count each model's usable traces that address their judge."""
    texts = results.iterate_trace_texts(db, audit_id, usable_only=True)
    return dict(Counter(row.model for row in texts if addresses_judge(row.text, row.language)))


MAX_CONCURRENT_QUERIES = 2
"""Database queries that run at the same time; more would need too much memory at once."""
SOURCE_QUERIES: Mapping[str, Callable[[Database, int], Any]] = {
    "call_counts": costs.count_calls,  # the slowest queries start first
    "votes": load_votes,
    "judge_counts": count_queries.count_judge_verdicts,
    "reviewed_conflicts": load_reviewed_conflicts,
    "verdict_counts": count_queries.count_verdicts,
    "scores": partial(load_records, record_class=CellScore),
    "trace_counts": count_queries.count_traces,
    "exclusions": load_exclusions,
    "trace_repeats": count_queries.count_trace_repeats,
    "verdict_repeats": count_queries.count_verdict_repeats,
    "sentence_pair_repeats": count_queries.count_sentence_pair_repeats,
    "probe_repeats": count_queries.count_probe_repeats,
    "sentence_pair_counts": count_queries.count_sentence_pairs,
    "failed_attempt_counts": costs.count_unreturned_calls,
    "probe_models": list_answering_models,
    "author_guesses": partial(load_records, record_class=Guess),
    "judge_tests": partial(load_records, record_class=AlteredTraceVerdict),
    "position_tests": partial(load_records, record_class=Contest),
    "capability_history": partial(load_records, record_class=StoredCapability),
    "label_records": load_label_records,
    "design_runs": partial(load_records, record_class=PlannedRun),
    "design_answers": results.load_design_answers,
}
"""Database query that fills each field of `ReportSource`."""


def load_source(db: Database, audit_name: str) -> ReportSource:
    """Read all records that the report of an audit needs.

    Raises:
        StorageError: there is no such audit.
    """
    audit = audits.get_audit(db, audit_name)
    config = load_stored_config(audit.config)
    survey = audits.load_audit_survey(db, audit)
    queries = dict(SOURCE_QUERIES)
    if survey.task:
        queries["task_answers"] = tasks.load_answers
    if survey.n_wordings > 1:
        queries["sample_scores"] = results.load_sample_scores
    if config and config.review_varies_by_trace:
        queries["scored_traces"] = results.load_scored_trace_keys
    if config:
        max_trace_chars = config.probes.review.max_trace_chars
        queries["n_shortened_traces"] = lambda db, audit_id: count_queries.count_shortened_traces(
            db, audit_id, max_trace_chars
        )
    with ThreadPoolExecutor(MAX_CONCURRENT_QUERIES) as executor:  # a running query releases the GIL
        futures = {field_name: executor.submit(query, db, audit.id) for field_name, query in queries.items()}
        records = {field_name: future.result() for field_name, future in futures.items()}
    if records["verdict_counts"]:
        records["n_addressing_traces"] = count_addressing_traces(db, audit.id)
    if survey.task and survey.task.people:
        people = set(survey.task.people)
        records["trace_counts"] = [count for count in records["trace_counts"] if count.model not in people]
    return ReportSource(
        audit=audit,
        config=None if config is None else apply_vote_weights(db, audit.id, config),
        survey=survey,
        **records,
    )
