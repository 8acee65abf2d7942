"""Consistency of each model, what the others say of it, and how far the judges agree."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from auditor.domain import Method, Outcome
from auditor.reports.ballots import table
from auditor.reports.certificate import certificate
from auditor.reports.estimates import mean_of, share_of, unmeasured
from auditor.reports.judging import agreement_estimate, agreements, judge_rows, peer_alignment, prevalence, votes
from auditor.reports.measures import AlignmentRow, ConsistencyRow, Estimate, PeerRow
from auditor.reports.panel_measures import PanelPart
from auditor.reports.source import Floats, Source
from auditor.reports.trials import fault_rows, guess_rows, position_rows, self_rows, shift_rows

OK = Outcome.OK.value
FEW = "no cell has two usable samples"


def self_consistency(source: Source) -> list[ConsistencyRow]:
    """One row for each model and method."""
    return [
        ConsistencyRow(
            model=model,
            method=method,
            cosine=mean_of(source.cosine[i], "no cell has embeddings of two usable samples"),
            variance=mean_of(source.variance[i], FEW),
            sign_agreement=mean_of(source.column_of("sign_agreement", i), FEW),
            straddling=_straddling(source.column_of("straddles", i)),
        )
        for i, (method, model) in enumerate(source.columns)
        if method != Method.LOGPROB  # one value that the weights determine, with nothing to differ from
    ]


def _straddling(straddles: Floats) -> Estimate:
    known = straddles[~np.isnan(straddles)]
    return share_of(int(known.sum()), known.size) if known.size else unmeasured(FEW)


def peer_agreement(source: Source) -> list[PeerRow]:
    """One row for each model that was judged."""
    rows = []
    for model in source.models:
        mine = [j for j in source.fair_judges if j.model == model and j.outcome == OK]
        given, valid = sum(j.n for j in mine), sum(j.valid for j in mine)
        if not any(j.model == model for j in source.judges):
            continue
        aspects = {
            name: share_of(sum(getattr(j, name) for j in mine), sum(getattr(j, f"n_{name}") for j in mine))
            for name in ("cultural_accuracy", "logical_consistency", "score_fit")
        }
        rows.append(PeerRow(model=model, given=given, valid=valid, agreement=share_of(valid, given), **aspects))
    return rows


def panel(source: Source, alignment: Sequence[AlignmentRow]) -> PanelPart:
    """The judges, one by one and together."""
    ballots = table(source)
    kappa, alpha, ac1 = agreements(ballots, source.seed)
    asked = sum(j.n for j in source.judges)
    part = PanelPart(
        judges=judge_rows(source, ballots),
        fleiss_kappa=agreement_estimate(kappa),
        verdicts=kappa.n_ratings,
        single=kappa.n_dropped,
        krippendorff_alpha=agreement_estimate(alpha),
        gwet_ac1=agreement_estimate(ac1),
        prevalence=prevalence(ballots, source.seed),
        votes=votes(source, ballots),
        asked=asked,
        seats=_seats(source, asked),
        adaptive=source.config is not None and source.config.panel.adaptive,
        peer_alignment=peer_alignment(peer_agreement(source), alignment),
        guesses=guess_rows(source.judge_names, source.guesses),
        rewriting=shift_rows(ballots, source.trials),
        faults=fault_rows(source.judge_names, source.trials),
        positions=position_rows(source.judge_names, source.contests),
        own_traces=self_rows(ballots, source.trials),
        certificate=[],
    )
    return part.model_copy(update={"certificate": certificate(part)})


def _seats(source: Source, asked: int) -> int:
    """Verdicts that full panels would give on the traces that went before one."""
    if source.config is None:
        return asked
    limit = source.config.probes.review.traces
    seats = {m.name: len(source.config.judges_of(m.name)) for m in source.config.models}
    traces = [t for t in source.traces if t.outcome == OK]
    return sum(seats[t.model] * (t.n if limit == "all" else min(t.n, limit)) for t in traces)
