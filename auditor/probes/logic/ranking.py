"""PairS with a model as comparator: rank items in few calls, each recorded in the ledger."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from math import comb
from typing import TYPE_CHECKING

import numpy as np

from auditor import bootstrap
from auditor.agents.call_runner import run_audit_calls
from auditor.config import AuditConfig, ModelSection
from auditor.domain import Survey, derive_seed
from auditor.errors import UsageError
from auditor.metrics.intervals.correlation import spearman
from auditor.metrics.intervals.estimate import Estimate
from auditor.metrics.logic.consistency import average_answered_orders, decisions
from auditor.metrics.logic.pairs import PairQuestion, PairsRanking, rank_with_pairs
from auditor.probes.logic import comparison_rows
from auditor.probes.logic.comparisons import ItemSet
from auditor.probes.logic.item_sets import TRACE_ITEMS, build_item_sets, list_excluded_items
from auditor.probes.logic.questions import LogicQuestion, build_comparison_call, parse_comparison
from auditor.probes.logic.settings import LogicProbe
from auditor.run import describe_environment, fingerprint, load_planned_survey, resolve_storage_url, run_with_models
from auditor.storage import audits
from auditor.storage.database import Database, open_database, run_lock

if TYPE_CHECKING:
    from auditor.agents.run_context import ProgressReporter, RunContext


@dataclass(frozen=True, slots=True)
class RankingOptions:
    """Options of the ranking algorithm (see `auditor.metrics.logic.pairs`).

    Attributes:
        beam: number of partial merges to follow; 1 is greedy.
        uncertainty: with a beam, both outcomes are followed where the probability is closer to 1/2 than this.
        calibrated: whether each comparison is asked in both orders and averaged.
        budget: most questions per set and judge; None is no limit.
    """

    beam: int = 1
    uncertainty: float = 0.1
    calibrated: bool = False
    budget: int | None = None


@dataclass(frozen=True, slots=True)
class JudgeRanking:
    """One judge's ranking of one set, best first, with Spearman's rho against human scores."""

    judge: str
    item_set: ItemSet
    ranking: PairsRanking
    human_correlation: Estimate

    @property
    def n_all_pairs(self) -> int:
        """Number of questions that all pairs would take, each in one order."""
        return comb(len(self.item_set.items), 2)


def rank_items(
    config: AuditConfig,
    options: RankingOptions,
    *,
    judge: str | None = None,
    storage: str | None = None,
    progress: ProgressReporter | None = None,
    signals: bool = False,
) -> list[JudgeRanking]:
    """Rank the items of the probe `logic` of a config, set by set and judge by judge.

    Every answer is recorded in the ledger, under the same key as the probe's own calls: no call is repeated, and a
    stopped ranking is resumed. Calls count towards the audit's cost and budget.

    Args:
        config: with a probe `logic`, which defines the items; with `items = "traces"` the audit must have run.
        options: of the ranking algorithm.
        judge: name of the only model to use as comparator; None uses every model that compares items.
        storage: database URL.
        progress: receives every answer.
        signals: whether SIGINT, SIGTERM and SIGHUP stop the ranking with everything saved, as in `run_audit`.

    Raises:
        UsageError: the config has no probe `logic`, or no model of that name; or no set has two items.
        ConfigError, ModelSetupError, StorageError, RunInterrupted: as for a run.
    """
    bootstrap.prepare_environment()
    probe, judges = _find_probe(config), _select_judges(config, judge)
    survey = load_planned_survey(config)
    with open_database(resolve_storage_url(storage, config)) as db, run_lock(db, config.name):
        audit = audits.find_audit(db, config.name) or _create_audit(db, config, survey)

        async def rank(context: RunContext) -> list[JudgeRanking]:
            item_sets = _build_ranked_sets(context, probe)
            rankings = [
                _rank_item_set(context, probe, options, judge, item_set) for judge in judges for item_set in item_sets
            ]
            return list(await asyncio.gather(*rankings))

        unbatched_config = config.model_copy(update={"batch": None})  # each question depends on the last answer
        return run_with_models(rank, unbatched_config, survey, audit, db, progress=progress, signals=signals)


def _build_ranked_sets(context: RunContext, probe: LogicProbe) -> list[ItemSet]:
    """The sets to rank, without excluded items; UsageError if none has two items."""
    excluded = list_excluded_items(context, probe)
    item_sets = [
        replace(item_set, items=tuple(item for item in item_set.items if (item_set.context, item.id) not in excluded))
        for item_set in build_item_sets(context, probe)
    ]
    ranked_sets = [item_set for item_set in item_sets if len(item_set.items) > 1]
    if not ranked_sets:
        raise UsageError(
            "there is nothing to rank: no set has two items.",
            "Run the audit first, since its answers are the items."
            if probe.items == TRACE_ITEMS
            else "Check probes.logic.items.",
        )
    return ranked_sets


def _find_probe(config: AuditConfig) -> LogicProbe:
    """The probe that defines the items; UsageError without it."""
    probe = config.probes.find(LogicProbe)
    if probe is None:
        raise UsageError(
            "the configuration has no probe 'logic', which defines the items to rank.", "Add logic = {} to [probes]."
        )
    return probe


def _select_judges(config: AuditConfig, judge: str | None) -> list[ModelSection]:
    """The model of this name, or all that compare items; UsageError if there is none of the name."""
    judges = [model for name, model in config.models_by_name.items() if judge in (None, name)]
    if not judges:
        names = ", ".join(config.models_by_name)
        raise UsageError(f"the configuration has no model '{judge}'.", f"It has: {names}.")
    return judges


def _create_audit(db: Database, config: AuditConfig, survey: Survey) -> audits.Audit:
    """Store a new audit of the config, to which the recorded questions will belong, and return it."""
    return audits.save_audit(
        db,
        name=config.name,
        config=config.model_dump_json(),
        config_hash=fingerprint(config),
        survey=survey,
        environment=describe_environment(),
    )


async def _rank_item_set(
    context: RunContext, probe: LogicProbe, options: RankingOptions, judge: ModelSection, item_set: ItemSet
) -> JudgeRanking:
    """Rank one set with one judge, from an initial order drawn with the config's seed.

    The judge's ranks, counted so that the best item has the largest number, are correlated with human scores.
    """
    n_items = len(item_set.items)
    seed = derive_seed(context.config.seed, "rank", item_set.context)
    initial_order: list[int] = np.random.default_rng(seed).permutation(n_items).tolist()
    algorithm = rank_with_pairs(
        initial_order,
        beam=options.beam,
        uncertainty=options.uncertainty,
        calibrated=options.calibrated,
        budget=options.budget,
    )
    preferences = np.full((n_items, n_items), np.nan)
    try:
        questions = next(algorithm)
        while True:
            answers = await _ask_comparisons(context, probe, judge, item_set, questions)
            for (first, second), answer in zip(questions, answers, strict=True):
                preferences[first, second] = answer
            questions = algorithm.send(answers)
    except StopIteration as stop:
        ranking: PairsRanking = stop.value
    compared = average_answered_orders(preferences) if options.calibrated else preferences
    scores = np.empty(n_items)
    scores[list(ranking.order)] = np.arange(n_items, 0, -1)
    human_scores = np.array([np.nan if item.human is None else item.human for item in item_set.items])
    correlation = (
        spearman(scores, human_scores)
        if (np.abs(decisions(compared)) == 1).any()
        else Estimate(None, 0, reason="the judge decided no pair, so the order is that of a random draw")
    )
    return JudgeRanking(judge.name, item_set, ranking, correlation)


async def _ask_comparisons(
    context: RunContext, probe: LogicProbe, judge: ModelSection, item_set: ItemSet, pairs_to_ask: list[PairQuestion]
) -> list[float]:
    """Ask one judge a batch of questions about the items of a set.

    Args:
        pairs_to_ask: positions in the set of the item shown first and of the other item, one pair per question.

    Returns:
        One probability per question that the item shown first is preferred; nan where there is no valid answer.
    """
    questions = [LogicQuestion(0, first, second) for first, second in pairs_to_ask]  # 0: position of the only set
    calls = [build_comparison_call(context.config, probe, judge, item_set, question) for question in questions]
    answers = await run_audit_calls(context, "rank", calls)
    context.raise_if_stopped()
    parsed = [
        parse_comparison(answers[call.key], probe, judge.name, item_set, question, request=call.request_text)
        for call, question in zip(calls, questions, strict=True)
    ]
    return [comparison_rows.preference_value(comparison) for comparison in parsed]
