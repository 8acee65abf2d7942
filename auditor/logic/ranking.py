"""PairS with a model as comparator: ranking items in few calls, each of them in the ledger."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from math import comb
from typing import TYPE_CHECKING

import numpy as np

from auditor import bootstrap
from auditor.config import AuditConfig, LogicProbe, ModelSection
from auditor.domain import ItemSet, Survey, derive_seed
from auditor.errors import UsageError
from auditor.metrics.correlation import Correlation, spearman
from auditor.metrics.pairs_ranking import PairQuestion, PairsRanking, rank_with_pairs
from auditor.run import describe_environment, fingerprint, load_planned_survey, resolve_storage_url, run_with_models
from auditor.storage import audits, comparisons
from auditor.storage.database import Database, open_database, run_lock

if TYPE_CHECKING:
    from auditor.agents.run_context import ProgressReporter, RunContext


@dataclass(frozen=True, slots=True)
class RankingOptions:
    """How to rank.

    Attributes:
        beam: ways to merge that are followed at a time; 1 is greedy.
        uncertainty: with a beam, both outcomes are followed where the probability is nearer to 1/2 than this.
        calibrated: whether each comparison is asked in both orders and averaged.
        budget: most questions a set and judge; None is no limit.
    """

    beam: int = 1
    uncertainty: float = 0.1
    calibrated: bool = False
    budget: int | None = None


@dataclass(frozen=True, slots=True)
class JudgeRanking:
    """One judge's ranking of one set, best first, with Spearman's rho against people's scores."""

    judge: str
    item_set: ItemSet
    ranking: PairsRanking
    human_correlation: Correlation

    @property
    def n_all_pairs(self) -> int:
        """Questions that all pairs would take, each in one order."""
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

    Every answer is in the ledger, under the same key as the probe's own: what it asked is not asked again, and a
    ranking that was stopped goes on where it was. What it costs is the audit's, and the audit's budget holds for both.

    Args:
        config: with a probe `logic`, which says what is compared; with `items = "traces"` the audit must have run.
        wanted: how to rank.
        judge: only this model.
        storage: database URL.
        progress: is told of every answer.
        signals: as of `run_audit`.

    Raises:
        UsageError: the config has no probe `logic`, or no model of that name.
        ConfigError, ModelSetupError, StorageError, Interrupted: as for a run.
    """
    bootstrap.prepare_environment()
    from auditor.agents.logic.item_sets import build_item_sets

    probe = config.probes.logic
    if probe is None:
        raise UsageError("the config has no probe 'logic', which says what is ranked.", "Add logic = {} to [probes].")
    judges = [m for m in _logic_judges(config) if judge in (None, m.name)]
    if not judges:
        names = ", ".join(m.name for m in _logic_judges(config))
        raise UsageError(f"the config has no model '{judge}'.", f"It has: {names}.")
    survey = load_planned_survey(config)
    with open_database(resolve_storage_url(storage, config)) as db, run_lock(db, config.name):
        audit = audits.find_audit(db, config.name) or _create_audit(db, config, survey)

        async def rank(context: RunContext) -> list[JudgeRanking]:
            sets = build_item_sets(context, probe)
            wants = [_rank_item_set(context, probe, options, judge, one) for judge in judges for one in sets]
            return list(await asyncio.gather(*wants))

        asking = config.model_copy(update={"batch": None})  # what is asked next depends on what was said last
        return run_with_models(rank, asking, survey, audit, db, progress=progress, signals=signals)


def _logic_judges(config: AuditConfig) -> list[ModelSection]:
    from auditor.agents.logic.graph import comparing_models

    return comparing_models(config)


def _create_audit(db: Database, config: AuditConfig, survey: Survey) -> audits.Audit:
    """The audit that the questions belong to, where it has not run yet."""
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
    """Drive the algorithm with the model's answers; it begins from an order that is drawn."""
    n = len(item_set.items)
    seed = derive_seed(context.config.seed, "rank", item_set.context)
    start: list[int] = np.random.default_rng(seed).permutation(n).tolist()
    algorithm = rank_with_pairs(
        start, beam=options.beam, uncertainty=options.uncertainty, calibrated=options.calibrated, budget=options.budget
    )
    try:
        batch = next(algorithm)
        while True:
            batch = algorithm.send(await _ask_comparisons(context, probe, judge, item_set, batch))
    except StopIteration as end:
        ranking: PairsRanking = end.value
    scores = np.empty(n)
    scores[list(ranking.order)] = np.arange(n, 0, -1)
    people = np.array([np.nan if item.human is None else item.human for item in item_set.items])
    return JudgeRanking(judge.name, item_set, ranking, spearman(scores, people))


async def _ask_comparisons(
    context: RunContext, probe: LogicProbe, judge: ModelSection, item_set: ItemSet, pairs_to_ask: list[PairQuestion]
) -> list[float]:
    from auditor.agents.logic import questions as asked
    from auditor.agents.semantic.answer_collection import run_audit_calls

    wanted = [asked.LogicQuestion(0, first, second) for first, second in pairs_to_ask]
    calls = [asked.build_comparison_call(context.config, probe, judge, item_set, question) for question in wanted]
    answers = await run_audit_calls(context, "rank", calls)
    context.raise_if_stopped()
    read = [
        asked.parse_comparison(
            answers[call.key], judge.name, item_set, question, from_letters=probe.answer == "probability"
        )
        for call, question in zip(calls, wanted, strict=True)
    ]
    return [comparisons.preference_value(comparison) for comparison in read]
