"""Scores, conflicts and votes, computed from stored answers and verdicts without a call, and without the graph."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby

import numpy as np

from auditor.agents.cell_scoring import (
    CHANCE_COLUMNS,
    compute_cell_score,
    compute_logprob_scores,
    evidence_hash,
    texts_by_language,
)
from auditor.agents.conflict_resolution import (
    add_answers,
    effective_threshold,
    find_answer_conflicts,
    find_cell_conflicts,
    find_method_conflicts,
    mark_within_noise,
    resolve_conflicts,
)
from auditor.agents.run_context import RunContext
from auditor.config.installed_probes import load_built_in
from auditor.domain import AnswerKind, Cell, CellScore, Conflict, Method, Trace
from auditor.failpoints import failpoint
from auditor.panel_assignment import TraceKey, select_reviewed
from auditor.storage import audits, results
from auditor.storage.probe_results import apply_vote_weights
from auditor.storage.records import save_records
from auditor.storage.votes import SampleKey, make_verdict_filter
from auditor.surveys.countries import native_languages

CELLS_PER_BATCH = 32
"""Cells whose scores are computed together; bounds the memory."""
MAX_CHANCE_CELLS = 300
"""Cells whose reasonings are compared with each other, one of each cell."""
CONFLICTS_PER_COUNT = 50
"""Conflicts whose votes are counted together: the rulings on their cells are in memory at once."""


def recompute_results(context: RunContext) -> None:
    """Compute scores, conflicts and votes from the stored answers and verdicts; no model is called."""
    save_scores(context)
    for name in context.config.probes.stages:
        load_built_in(name).recompute_results(context)
    detect_conflicts(context)
    weighted_config = apply_vote_weights(context.db, context.audit_id, context.config)
    resolve_by_vote(replace(context, config=weighted_config))


# --- scores -----------------------------------------------------------------------------------------------------------


def save_scores(context: RunContext) -> None:
    """Compute and store all scores from the stored answers."""
    _save_direct_scores(context)
    pair_scores = results.load_sentence_pairs(context.db, context.audit_id)
    save_records(context.db, context.audit_id, compute_logprob_scores(pair_scores))


def _save_direct_scores(context: RunContext) -> None:
    """Compute and store direct scores, in batches of cells; self-consistency only if its inputs have changed.

    Raises:
        RunInterrupted: the user stopped the run; the batches before are stored.
    """
    encoder = None
    while encoder != (encoder := _encoder_identity(context)):  # its weights may turn out to be others than recorded
        _save_scores_by_encoder(context, encoder)


def _encoder_identity(context: RunContext) -> str:
    """What stands for the encoder in the evidence of self-consistencies."""
    return context.config.embedding.model if context.consistency is None else context.consistency.identity


def _save_scores_by_encoder(context: RunContext, encoder: str) -> None:
    """Compute and store direct scores while the encoder stays the same."""
    stored_scores = results.load_scores(context.db, context.audit_id)
    old_scores = {(score.model, score.cell): score for score in stored_scores if score.method == Method.DIRECT}
    chance = _measure_chance(context, old_scores)
    for start in range(0, len(context.cells), CELLS_PER_BATCH):
        cells = context.cells[start : start + CELLS_PER_BATCH]
        traces = results.load_traces(context.db, context.audit_id, cells)
        scores = _compute_direct_scores(context, _group_by_model_and_cell(traces), old_scores)
        if _encoder_identity(context) != encoder:
            return
        save_records(context.db, context.audit_id, [_add_chance(score, chance) for score in scores])
        failpoint("scores")


def _measure_chance(
    context: RunContext, old_scores: Mapping[tuple[str, Cell], CellScore]
) -> Mapping[tuple[str, Cell], Mapping[str, float | None]]:
    """How alike each model's reasonings about different cells are, as values of columns of its scores.

    Of audits with many cells some are drawn. Without an encoder, stored values stay.
    """
    if context.consistency is None:
        return {key: {column: getattr(score, column) for column in CHANCE_COLUMNS} for key, score in old_scores.items()}
    n_cells = min(len(context.cells), MAX_CHANCE_CELLS)
    cells = random.Random(context.config.seed).sample(context.cells, n_cells)
    texts_by_model: dict[str, dict[Cell, dict[str, list[str]]]] = {}
    for (model, cell), traces in _group_by_model_and_cell(
        results.load_traces(context.db, context.audit_id, cells)
    ).items():
        texts_by_model.setdefault(model, {})[cell] = texts_by_language(traces)
    return {
        (model, cell): similarities
        for model, texts in texts_by_model.items()
        for cell, similarities in context.consistency.compute_chance(texts, context.config.seed).items()
    }


def _add_chance(score: CellScore, chance: Mapping[tuple[str, Cell], Mapping[str, float | None]]) -> CellScore:
    """The score with its model's similarities between cells."""
    chance_similarity, topic_similarity = map(chance.get((score.model, score.cell), {}).get, CHANCE_COLUMNS)
    return replace(score, chance_similarity=chance_similarity, topic_similarity=topic_similarity)


def _hash_texts(context: RunContext, texts_by_language: Mapping[str, Sequence[str]]) -> str:
    """Hash of the encoder and of a cell's texts, which its self-consistency is computed from."""
    return evidence_hash(_encoder_identity(context), [text for texts in texts_by_language.values() for text in texts])


def _compute_direct_scores(
    context: RunContext,
    traces_by_model_cell: Mapping[tuple[str, Cell], list[Trace]],
    old_scores: Mapping[tuple[str, Cell], CellScore],
) -> list[CellScore]:
    """Compute direct scores from traces by (model, cell); unchanged cells keep their self-consistency."""
    language_texts = {model_cell: texts_by_language(traces) for model_cell, traces in traces_by_model_cell.items()}
    evidence = {model_cell: _hash_texts(context, by_language) for model_cell, by_language in language_texts.items()}
    changed_texts = {
        model_cell: texts
        for model_cell, texts in language_texts.items()
        if model_cell not in old_scores or old_scores[model_cell].evidence != evidence[model_cell]
    }
    new_consistencies: Mapping[tuple[str, Cell], float | None] = (
        dict.fromkeys(changed_texts) if context.consistency is None else context.consistency.compute(changed_texts)
    )
    scores = []
    for model_cell, traces in traces_by_model_cell.items():
        consistency = (
            new_consistencies[model_cell] if model_cell in changed_texts else old_scores[model_cell].self_consistency
        )
        # The second part of the key is the cell. A stopping rule may have taken more samples than guaranteed.
        n_planned = max(
            context.config.guaranteed_samples_per_cell(native_languages(model_cell[1].country)), len(traces)
        )
        scores.append(compute_cell_score(*model_cell, traces, n_planned, consistency, evidence[model_cell]))
    return scores


def _group_by_model_and_cell(traces: Iterable[Trace]) -> dict[tuple[str, Cell], list[Trace]]:
    """Group traces by (model, cell)."""

    def model_and_cell(trace: Trace) -> tuple[str, Cell]:
        """Key of the groups, also the order of the traces."""
        return trace.model, trace.cell

    return {
        model_cell: list(group) for model_cell, group in groupby(sorted(traces, key=model_and_cell), key=model_and_cell)
    }


# --- conflicts and votes ----------------------------------------------------------------------------------------------


def detect_conflicts(context: RunContext) -> list[Conflict]:
    """Find conflicts in direct scores or task answers and, if configured, between methods; store and return them."""
    scores = results.load_scores(context.db, context.audit_id)
    task = context.survey.task
    if task is not None and task.kind is not AnswerKind.SCORE:
        answer_conflicts = find_answer_conflicts(scores, [model.name for model in context.config.models], context.cells)
        results.replace_conflicts(context.db, context.audit_id, answer_conflicts)
        return answer_conflicts
    conflicts, threshold = find_score_conflicts(context, context.cells, scores)
    if context.config.conflicts.methods:
        conflicts += find_method_conflicts(scores, threshold)
    results.replace_conflicts(context.db, context.audit_id, conflicts)
    return conflicts


def find_score_conflicts(
    context: RunContext, cells: Sequence[Cell], scores: Sequence[CellScore]
) -> tuple[list[Conflict], float]:
    """Find the conflicts between the direct scores of models on some cells, all open; also returns the threshold."""
    # One row per cell and one column per model; nan for a missing score.
    score_table = np.full((len(cells), len(context.config.models)), np.nan)
    row_by_cell = {cell: index for index, cell in enumerate(cells)}
    column_by_model = {model.name: index for index, model in enumerate(context.config.models)}
    for score in scores:
        if score.score is not None and score.method == Method.DIRECT:
            score_table[row_by_cell[score.cell], column_by_model[score.model]] = score.score
    threshold = effective_threshold(context.config.conflicts.threshold, score_table)
    conflicts = [
        conflict
        for cell, cell_scores in zip(cells, score_table, strict=True)
        for conflict in find_cell_conflicts(cell, list(column_by_model), cell_scores, threshold)
    ]
    conflicts = mark_within_noise(conflicts, [score for score in scores if score.method == Method.DIRECT])
    return (conflicts if context.survey.task is None else add_answers(conflicts, scores)), threshold


def resolve_by_vote(context: RunContext) -> list[Conflict]:
    """Count the votes on the conflicts that have any; store and return these with the other conflicts of scores.

    The rulings on the cells of some conflicts are in memory at a time; all of them for `dawid_skene`, which estimates
    the judges' error rates from them.
    """
    counts_in_conflicts = verdict_filter(context)
    model_conflicts, assigned_judges = results.load_voted_conflicts(context.db, context.audit_id), None
    if context.config.panel.judges_per_trace is not None:
        scored_keys = (TraceKey(*key) for key in results.load_scored_trace_keys(context.db, context.audit_id))
        assigned_judges = context.panel_assignment.judges_by_cell(
            filter(counts_in_conflicts, select_reviewed(context.config, scored_keys))
        )
    conflicts: list[Conflict] = []
    needs_all = context.config.panel.vote == "dawid_skene"
    batch_size = max(1, len(model_conflicts)) if needs_all else CONFLICTS_PER_COUNT
    for start in range(0, len(model_conflicts), batch_size):
        batch = model_conflicts[start : start + batch_size]
        cells = None if needs_all else {conflict.cell for conflict in batch}
        rulings = [
            ruling
            for ruling in results.load_rulings(context.db, context.audit_id, cells)
            if counts_in_conflicts((ruling.model, ruling.cell, ruling.sample))
        ]
        conflicts += resolve_conflicts(context.config, batch, rulings, assigned_judges)
    conflicts += results.load_unvoted_conflicts(context.db, context.audit_id)
    results.replace_conflicts(context.db, context.audit_id, conflicts)
    return conflicts


def verdict_filter(context: RunContext) -> Callable[[SampleKey], bool]:
    """Build the predicate of `make_verdict_filter` for an audit."""
    return make_verdict_filter(
        context.survey.task,
        lambda: results.load_scores(context.db, context.audit_id),
        lambda: audits.load_answers(context.db, context.audit_id),
    )
