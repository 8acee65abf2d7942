"""Consistency of each model, what the others say of it, and how far the judges agree."""

from __future__ import annotations

from collections import Counter

import numpy as np
from numpy.typing import NDArray

from auditor.domain import Method, Outcome
from auditor.metrics.agreement import Agreement, fleiss_kappa
from auditor.reports.estimates import mean_of, share_of
from auditor.reports.measures import ConsistencyRow, Estimate, JudgeRow, PanelPart, PeerRow
from auditor.reports.source import Source

OK = Outcome.OK.value


def self_consistency(source: Source) -> list[ConsistencyRow]:
    """One row for each model and method."""
    return [
        ConsistencyRow(
            model=model,
            method=method,
            cosine=mean_of(source.cosine[i], "no cell has embeddings of two usable samples"),
            variance=mean_of(source.variance[i], "no cell has two usable samples"),
        )
        for i, (method, model) in enumerate(source.columns)
        if method != Method.LOGPROB  # one value that the weights determine, with nothing to differ from
    ]


def peer_agreement(source: Source) -> list[PeerRow]:
    """One row for each model that was judged."""
    rows = []
    for model in source.models:
        mine = [j for j in source.judges if j.model == model and j.outcome == OK]
        given, valid = sum(j.n for j in mine), sum(j.valid for j in mine)
        if not any(j.model == model for j in source.judges):
            continue
        aspects = {
            name: share_of(sum(getattr(j, name) for j in mine), sum(getattr(j, f"n_{name}") for j in mine))
            for name in ("cultural_accuracy", "logical_consistency", "score_fit")
        }
        rows.append(PeerRow(model=model, given=given, valid=valid, agreement=share_of(valid, given), **aspects))
    return rows


def panel(source: Source) -> PanelPart:
    """The judges, one by one and together."""
    agreement = fleiss_kappa(_counts(source))
    return PanelPart(
        judges=[_judge(source, name) for name in source.judge_names if any(j.judge == name for j in source.judges)],
        fleiss_kappa=Estimate(
            value=agreement.value,
            n=agreement.n_items,
            ci_low=agreement.ci_low,
            ci_high=agreement.ci_high,
            reason=_why(agreement),
        ),
        verdicts=agreement.n_ratings,
        single=agreement.n_dropped,
    )


def _counts(source: Source) -> NDArray[np.int64]:
    """Verdicts VALID and INVALID on each trace, shape (traces, 2)."""
    split = np.array([(r.valid, r.invalid, r.n) for r in source.rulings], dtype=np.int64).reshape(-1, 3)
    return np.repeat(split[:, :2], split[:, 2], axis=0)


def _why(agreement: Agreement) -> str | None:
    words = {
        "no item has 2 ratings": "no trace has verdicts of two judges",
        "all ratings are the same": "all verdicts are the same, so there is no chance agreement to compare with",
    }
    return None if agreement.reason is None else words.get(agreement.reason, agreement.reason)


def _judge(source: Source, name: str) -> JudgeRow:
    mine = [j for j in source.judges if j.judge == name]
    outcomes = Counter[str]()
    for j in mine:
        outcomes[j.outcome] += j.n
    return JudgeRow(
        judge=name,
        assigned=outcomes.total(),
        given=outcomes[OK],
        losses={o.value: outcomes[o.value] for o in Outcome if o is not Outcome.OK and outcomes[o.value]},
        valid=share_of(sum(j.valid for j in mine), outcomes[OK]),
    )
