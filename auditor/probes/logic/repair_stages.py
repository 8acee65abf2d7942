"""Stages of the data of REPAIR (tables 2 and 6 of Aligning with Logic): raw, perturbed, repaired and size-matched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from auditor.metrics.estimate import Estimate
from auditor.metrics.logic import LogicEstimate, estimate_commutativity
from auditor.metrics.preference import decisions
from auditor.metrics.set_transitivity import PartialTransitivity, estimate_transitivity
from auditor.metrics.unit_means import mean_over_units
from auditor.probes.logic.repair import RepairedAnswers

Floats = NDArray[np.float64]
RepairStage = Literal["raw", "perturbed", "repaired", "size-matched"]
REPAIR_STAGES: tuple[RepairStage, ...] = get_args(RepairStage)


class StageAnswers(NamedTuple):
    """One judge's answers on one set at one stage, shape (N, N) each; nan where there is none.

    Attributes:
        flipped: whether the judge's answer to the standard question was the opposite one.
    """

    source: RepairedAnswers
    standard: Floats
    negated: Floats
    flipped: NDArray[np.bool_]


class StageSummary(NamedTuple):
    """Size and consistency of one judge's data at one stage: a row of table 2 of the paper.

    Attributes:
        negated: whether questions in negated form are counted.
        transitivity: share of the subsets of K items without a cycle by the comparisons there are, as the mean over
            sets. Missing comparisons cannot be part of a cycle: it has the mean share of pairs that are present.
        commutativity: mean over sets of the share of pairs decided alike in both orders.
        rows: comparisons with a decision.
        rows_per_set: `rows` per item set.
    """

    judge: str
    stage: RepairStage
    negated: bool
    transitivity: PartialTransitivity
    commutativity: LogicEstimate
    rows: int
    rows_per_set: Estimate

    def to_json(self) -> dict[str, Any]:
        """The values by name, and the estimates with their intervals under `estimates`."""
        estimates = {
            "transitivity": self.transitivity,
            "commutativity": self.commutativity,
            "rows_per_set": self.rows_per_set,
        }
        return {
            **self._asdict(),
            **{name: estimate.value for name, estimate in estimates.items()},
            "pairs_present": self.transitivity.pairs_present,
            "estimates": {name: asdict(estimate) for name, estimate in estimates.items()},
        }


def select_stage(
    repaired: Sequence[RepairedAnswers], stage: RepairStage, *, negated: bool = True, seed: int = 0
) -> list[StageAnswers]:
    """Select the answers of a stage, one entry per judge and item set.

    Args:
        repaired: of any judges.
        stage: `raw` is as the judge answered, `perturbed` with noise, `repaired` as the ranking implies, and
            `size-matched` a random sample of the repaired answers with as many as `perturbed` has, for each judge.
        negated: whether answers to questions in negated form are kept.
        seed: of the sample.
    """
    answers = [_select_answers(entry, stage, negated=negated) for entry in repaired]
    if stage != "size-matched":
        return answers
    for judge in dict.fromkeys(entry.raw.judge for entry in repaired):
        indices = [i for i, entry in enumerate(repaired) if entry.raw.judge == judge]
        size = sum(_count_rows(_select_answers(repaired[i], "perturbed", negated=negated)) for i in indices)
        for i, sample in zip(indices, _sample_rows([answers[i] for i in indices], size, seed), strict=True):
            answers[i] = sample
    return answers


def summarize_stages(
    repaired: Sequence[RepairedAnswers], *, k: int = 5, seed: int = 0, max_subsets: int = 1000, negated: bool = True
) -> list[StageSummary]:
    """Measure each judge's data at every stage; `perturbed` is left out if no noise was asked for.

    Args:
        k: number of items in each subset that is checked for cycles.
        seed: of the samples.
        max_subsets: most subsets to check per set; of more, a sample is drawn.
        negated: whether stages are also counted with the negated form: the raw ones if the judge was asked in it.
    """
    rows = []
    for judge in dict.fromkeys(entry.raw.judge for entry in repaired):
        sets = [entry for entry in repaired if entry.raw.judge == judge]
        has_noise = sets[0].noise > 0  # also if so few answers were reversed that none was
        is_asked_negated = any(not np.isnan(_decided_only(entry.raw.negated)).all() for entry in sets)
        for stage in REPAIR_STAGES:
            has_negated = is_asked_negated or stage in ("repaired", "size-matched")
            for with_negated in (False, True) if negated and has_negated else (False,):
                if stage != "perturbed" or has_noise:
                    answers = select_stage(sets, stage, negated=with_negated, seed=seed)
                    rows.append(_summarize_stage(judge, stage, answers, k, seed, max_subsets, negated=with_negated))
    return rows


def _select_answers(entry: RepairedAnswers, stage: RepairStage, *, negated: bool) -> StageAnswers:
    """Answers of one set at a stage; `size-matched` is not yet sampled."""
    if stage in ("raw", "perturbed"):
        source = entry.raw if stage == "raw" else entry.original
        standard, negated_answers = source.preferences, source.negated
        flipped = np.zeros(standard.shape, dtype=bool)
    else:
        standard, negated_answers = entry.repair.preferences, entry.repair.negated
        flipped = np.zeros(standard.shape, dtype=bool)
        flipped[tuple(entry.repair.flipped.T)] = True
    selected_negated = negated_answers if negated else np.full(standard.shape, np.nan)
    return StageAnswers(entry, _decided_only(standard), _decided_only(selected_negated), flipped)


def _decided_only(preferences: Floats) -> Floats:
    """The preferences without ties and without the diagonal, which are no comparison to train on."""
    decided = np.where(np.abs(decisions(preferences)) == 1, preferences, np.nan)
    np.fill_diagonal(decided, np.nan)
    return decided


def _count_rows(answers: StageAnswers) -> int:
    """Number of decided answers, of both forms."""
    return int((~np.isnan(answers.standard)).sum() + (~np.isnan(answers.negated)).sum())


def _sample_rows(answers: Sequence[StageAnswers], size: int, seed: int) -> list[StageAnswers]:
    """Keep a random sample of the answers of all sets, without replacement; all of them if there are not more."""
    grids = [np.stack([entry.standard, entry.negated]) for entry in answers]
    rows = [(s, *map(int, position)) for s, grid in enumerate(grids) for position in np.argwhere(~np.isnan(grid))]
    sampled = [np.full(grid.shape, np.nan) for grid in grids]
    for index in np.random.default_rng(seed).permutation(len(rows))[:size]:
        s, *position = rows[index]
        sampled[s][tuple(position)] = grids[s][tuple(position)]
    return [entry._replace(standard=grid[0], negated=grid[1]) for entry, grid in zip(answers, sampled, strict=True)]


def _summarize_stage(
    judge: str, stage: RepairStage, answers: Sequence[StageAnswers], k: int, seed: int, max_subsets: int, *,
    negated: bool,
) -> StageSummary:  # fmt: skip
    """Measure one judge's data at one stage; see `summarize_stages`."""
    sets = []
    for entry in answers:
        asked = np.stack([~np.isnan(entry.standard), ~np.isnan(entry.negated)])
        shown = replace(entry.source.original, preferences=entry.standard, asked=asked, negated=entry.negated)
        sets.append(shown.metric_input)
    n_rows = list(map(_count_rows, answers))
    return StageSummary(
        judge=judge,
        stage=stage,
        negated=negated,
        transitivity=estimate_transitivity(sets, k, max_subsets, seed).partial["instances"],
        commutativity=estimate_commutativity(sets, "instances"),
        rows=sum(n_rows),
        rows_per_set=_mean_rows(n_rows, answers),
    )


def _mean_rows(n_rows: Sequence[int], answers: Sequence[StageAnswers]) -> Estimate:
    """Mean number of rows of a set; no set has more than all ordered pairs in both forms."""
    most = max(2 * entry.standard.shape[0] * (entry.standard.shape[0] - 1) for entry in answers)
    return mean_over_units(n_rows, {"set": range(len(n_rows))}, (0.0, float(most)), empty_reason="no item set")
