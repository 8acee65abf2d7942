"""Consistency of each model, what the others say of it, and how far the judges agree."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from auditor.domain import Method, Outcome
from auditor.metrics.two_way_means import crossed_mean, crossed_share
from auditor.reports.coverage.section import reviewable
from auditor.reports.estimate_conversion import clustered
from auditor.reports.measurement_schema import AlignmentRow, ConsistencyRow, Estimate, PeerRow
from auditor.reports.panel.certificate import certificate
from auditor.reports.panel.judge_statistics import (
    agreement_estimate,
    agreements,
    judge_rows,
    peer_alignment,
    prevalence,
    votes,
)
from auditor.reports.panel.judge_tests import fault_rows, guess_rows, position_rows, self_rows, shift_rows
from auditor.reports.panel.schema import PanelPart
from auditor.reports.panel.verdict_matrix import table
from auditor.reports.report_source import Floats, Source
from auditor.storage.count_queries import PeerTally

OK = Outcome.OK.value


def self_consistency(source: Source) -> list[ConsistencyRow]:
    """One row for each model and method."""
    few = "no cell has two usable samples"
    if source.config and source.config.probes.direct and source.config.direct.samples < 2:
        few = "one sample of each cell is taken, which differs from nothing"
    plain = source.config is not None and source.config.embedding.model == "none"
    return [
        ConsistencyRow(
            model=model,
            method=method,
            cosine=_mean(
                source, source.cosine[i], -1.0, "the configuration names no sentence encoder" if plain else few
            ),
            variance=_mean(source, source.variance[i], 0.0, few),
            sign_agreement=_mean(source, source.column_of("sign_agreement", i), 0.0, few),
            straddling=_straddling(source, source.column_of("straddles", i), few),
        )
        for i, (method, model) in enumerate(source.columns)
        if method != Method.LOGPROB  # one value that the weights determine, with nothing to differ from
    ]


def _mean(source: Source, values: Floats, least: float, none: str) -> Estimate:
    """Over cells, of values that are 1 at most."""
    return clustered(crossed_mean(values, source.country_index, source.topic_index, (least, 1.0)), none)


def _straddling(source: Source, straddles: Floats, few: str) -> Estimate:
    known = np.where(np.isnan(straddles), 0.0, 1.0)
    found = crossed_share(np.nan_to_num(straddles), known, source.country_index, source.topic_index)
    return clustered(found, few)


def peer_agreement(source: Source) -> list[PeerRow]:
    """One row for each model that was judged."""
    rows = []
    for model in source.models:
        if not any(j.model == model for j in source.judges):
            continue
        mine = [t for t in source.peers if t.model == model]
        shares = {
            name: _share(mine, name, f"n_{name}") for name in ("cultural_accuracy", "logical_consistency", "score_fit")
        }
        given, valid = sum(t.n for t in mine), sum(t.valid for t in mine)
        rows.append(PeerRow(model=model, given=given, valid=valid, agreement=_share(mine, "valid", "n"), **shares))
    return rows


def _share(tallies: Sequence[PeerTally], hits: str, total: str) -> Estimate:
    found = crossed_share(
        [getattr(t, hits) for t in tallies],
        [getattr(t, total) for t in tallies],
        [t.country for t in tallies],
        [t.topic for t in tallies],
    )
    return clustered(found, "nothing to count")


def panel(source: Source, alignment: Sequence[AlignmentRow], peers: Sequence[PeerRow]) -> PanelPart:
    """The judges, one by one and together."""
    ballots = table(source)
    kappa, alpha, ac1 = agreements(ballots, source.seed)
    asked = sum(j.n for j in source.judges)
    part = PanelPart(
        judges=judge_rows(source, ballots),
        fleiss_kappa=agreement_estimate(kappa),
        verdicts=kappa.n_ratings,
        repeated=source.repeated,
        single=kappa.n_dropped,
        krippendorff_alpha=agreement_estimate(alpha),
        gwet_ac1=agreement_estimate(ac1),
        prevalence=prevalence(ballots, source.seed),
        votes=votes(source, ballots),
        asked=asked,
        seats=_seats(source, asked),
        adaptive=source.config is not None and source.config.panel.adaptive,
        judges_per_trace=source.config.panel.judges_per_trace if source.config else None,
        peer_alignment=peer_alignment(peers, alignment),
        guesses=guess_rows(source.judge_names, source.guesses),
        rewriting=shift_rows(ballots, source.trials),
        faults=fault_rows(source.judge_names, source.trials),
        positions=position_rows(source.judge_names, source.contests),
        own_traces=self_rows(ballots, source.trials),
        certificate=[],
    )
    return part.model_copy(update={"certificate": certificate(part, of_task=source.survey.task is not None)})


def _seats(source: Source, asked: int) -> int:
    """Verdicts that whole panels would give on the traces that went before one."""
    if source.config is None:
        return asked
    seats = {m.name: source.config.panel_size(m.name) for m in source.config.models}
    return sum(seats[unit.name] * n for unit, n in reviewable(source.config, source.traces, source.readable).items())
