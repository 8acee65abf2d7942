"""What judges agree on and lean to, how their votes count, and whether peers know what people think."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import log

import numpy as np

from auditor.domain import Outcome
from auditor.metrics.agreement import Agreement, fleiss_kappa, gwet_ac1, krippendorff_alpha, leave_one_rater_out
from auditor.metrics.correlation import pearson
from auditor.metrics.judge_bias import Leaning, leniency, order_effect, preference, verbosity
from auditor.metrics.two_way_means import crossed_share
from auditor.metrics.votes import agreement_with_others, dawid_skene
from auditor.reports.estimate_conversion import clustered, estimate, share_of, unmeasured
from auditor.reports.measurement_schema import AlignmentRow, Estimate, PeerRow
from auditor.reports.panel.schema import JudgeRow, PeerAlignmentRow, VoteRow
from auditor.reports.panel.verdict_matrix import Table, family
from auditor.reports.report_source import Floats, Source

OK = Outcome.OK.value
NO_OTHER = "no trace has a verdict of this judge and of another"


def agreement_estimate(agreement: Agreement) -> Estimate:
    """A coefficient in the report's words; n counts traces."""
    words = {
        "no item has 2 ratings": "no trace has verdicts of two judges",
        "all ratings are the same": "all verdicts are the same, so there is no chance agreement to compare with",
    }
    reason = None if agreement.reason is None else words.get(agreement.reason, agreement.reason)
    return Estimate(
        value=agreement.value, n=agreement.n_items, ci_low=agreement.ci_low, ci_high=agreement.ci_high, reason=reason
    )


def agreements(ballots: Table, seed: int) -> tuple[Agreement, Agreement, Agreement]:
    """Fleiss' kappa, Krippendorff's alpha and Gwet's AC1 over the verdicts that statistics may rest on."""
    counts = np.stack([np.nansum(ballots.fair == value, axis=0) for value in (1, 0)], axis=1)
    return (
        fleiss_kappa(counts, seed=seed),
        krippendorff_alpha(ballots.fair, seed=seed),
        gwet_ac1(ballots.fair, 2, seed=seed),
    )


def prevalence(ballots: Table, seed: int, replicates: int = 2000) -> Estimate:
    """Share of VALID in the verdicts on traces with at least two, by a bootstrap over traces."""
    there = ~np.isnan(ballots.fair)
    kept = there.sum(axis=0) >= 2
    n, valid = there.sum(axis=0)[kept], np.nansum(ballots.fair, axis=0)[kept]
    if not len(n):
        return unmeasured("no trace has verdicts of two judges")
    patterns, times = np.unique(np.stack([valid, n], axis=1), axis=0, return_counts=True)
    draws = np.random.default_rng(seed).multinomial(len(n), times / len(n), replicates)
    shares = (draws @ patterns[:, 0]) / (draws @ patterns[:, 1])
    low, high = np.quantile(shares, (0.025, 0.975))
    value = float(valid.sum() / n.sum())
    if high - low < 1e-12:
        return Estimate(value=value, n=len(n), reason="every trace has the same verdicts: no interval")
    return Estimate(value=value, n=len(n), ci_low=float(low), ci_high=float(high))


def judge_rows(source: Source, ballots: Table) -> list[JudgeRow]:
    """One row for each judge that was asked."""
    fair, seed = ballots.fair, source.seed
    without = _without(ballots, seed)
    columns: Sequence[Sequence[Estimate]] = (
        [estimate(p) for p in agreement_with_others(fair)],
        [agreement_estimate(a) for a in without],
        _leanings(leniency(fair, ballots.cells)),
        _leanings(verbosity(fair, ballots.longer, ballots.cells)),
        _own_family(ballots),
        _leanings(order_effect(fair, ballots.moments, ballots.cells)),
        [_share(ballots, row, "the judge did not say how sure it is") for row in ballots.confidence],
        [_share(ballots, row, "nothing to count") for row in fair],
    )
    asked = {j.judge for j in source.judges}
    return [
        _judge(source, name, [column[i] for column in columns])
        for i, name in enumerate(ballots.judges)
        if name in asked
    ]


def _share(ballots: Table, values: Floats, none: str) -> Estimate:
    """The mean over traces of what is in [0, 1]; nan where there is none."""
    known, n = ~np.isnan(values), len(ballots.places[0])
    sums, counts = (np.bincount(ballots.cells[known], w, minlength=n) for w in (values[known], None))
    return clustered(crossed_share(sums, counts, *ballots.places), none)


def _without(ballots: Table, seed: int) -> Sequence[Agreement]:
    def alpha(ratings: Floats) -> Agreement:
        return krippendorff_alpha(ratings, seed=seed)

    return leave_one_rater_out(ballots.fair, alpha)


def _own_family(ballots: Table) -> list[Estimate]:
    found = _leanings(preference(ballots.fair, ballots.own_family, ballots.cells))
    known = np.asarray(ballots.own_family.any(axis=1) & (~ballots.own_family).any(axis=1))
    return [
        e if k else unmeasured("no other model of its family is judged")
        for e, k in zip(found, known.tolist(), strict=True)
    ]


def _leanings(found: Sequence[Leaning]) -> list[Estimate]:
    return [estimate(leaning) for leaning in found]


def _judge(source: Source, name: str, measured: Sequence[Estimate]) -> JudgeRow:
    mine = [j for j in source.judges if j.judge == name]
    outcomes = Counter[str]()
    for j in mine:
        outcomes[j.outcome] += j.n
    agreement, without, mild, wordy, kin, order, sure, valid = measured
    return JudgeRow(
        judge=name,
        family=family(source.config, name),
        assigned=outcomes.total(),
        given=outcomes[OK],
        losses={o.value: outcomes[o.value] for o in Outcome if o is not Outcome.OK and outcomes[o.value]},
        shortened=sum(j.shortened for j in mine),
        valid=valid,
        confidence=sure,
        agreement=agreement,
        alpha_without=without,
        leniency=mild,
        verbosity=wordy,
        own_family=kin,
        order=order,
    )


# --- votes ------------------------------------------------------------------------------------------------------


def votes(source: Source, ballots: Table) -> list[VoteRow]:
    """What each way of counting makes of the traces; the plain majority of the assigned seats first."""
    if not ballots.traces:
        return []
    plain = _by_weight(ballots, np.ones(len(ballots.judges)))
    rows = [_vote_row("majority", plain, plain, {})]
    shares = agreement_with_others(ballots.fair)
    taught = {name: _log_odds(round((p.value or 0) * p.n), p.n) for name, p in zip(ballots.judges, shares, strict=True)}
    rows.append(_weighted(ballots, plain, "weighted by agreement with the rest", taught))
    if source.config is not None and source.config.panel.weights:
        rows.append(_weighted(ballots, plain, "weighted as configured", source.config.panel.weights))
    fitted = dawid_skene(ballots.said)
    if fitted.reason is not None:
        return [*rows, _vote_row("dawid-skene", None, plain, {}, fitted.reason)]
    accuracy = {name: float(a) for name, a in zip(ballots.judges, fitted.accuracy, strict=True) if not np.isnan(a)}
    return [*rows, _vote_row("dawid-skene", fitted.labels(), plain, accuracy)]


def _log_odds(hits: int, n: int) -> float:
    """The best weight of an independent judge (Nitzan and Paroush 1982), never below 0."""
    p = (hits + 1) / (n + 2)
    return max(log(p / (1 - p)), 0.0)


def _weighted(ballots: Table, plain: Floats, rule: str, weights: Mapping[str, float]) -> VoteRow:
    vector = np.array([weights.get(name, 1.0) for name in ballots.judges])
    if not vector.sum() > 0:
        return _vote_row(rule, None, plain, {}, "no judge has any weight")
    vector = vector / vector.mean()
    told = dict(zip(ballots.judges, vector.tolist(), strict=True))
    return _vote_row(rule, _by_weight(ballots, vector), plain, told)


def _by_weight(ballots: Table, weights: Floats) -> Floats:
    """1, 0, or nan where no side holds more than half of the weight assigned to a trace, shape (traces,)."""
    said = ballots.said
    held = [(weights[:, None] * (said == value)).sum(axis=0) for value in (1, 0)]
    total = _assigned(ballots, weights)
    return np.where(held[0] > total / 2 * (1 + 1e-12), 1.0, np.where(held[1] > total / 2 * (1 + 1e-12), 0.0, np.nan))


def _assigned(ballots: Table, weights: Floats) -> Floats:
    """The weight of all judges that a trace was assigned to, shape (traces,); of those who ruled, where imported."""
    ruled: Floats = (weights[:, None] * ~np.isnan(ballots.said)).sum(axis=0)
    if ballots.config is None:
        return ruled
    of = dict(zip(ballots.judges, weights.tolist(), strict=True))
    if ballots.seats is not None:
        given = [ballots.seats.get(key) for key in ballots.traces]
        return np.array([o if j is None else sum(of[n] for n in j) for j, o in zip(given, ruled, strict=True)])
    panels = {m.name: sum(of[j.name] for j in ballots.config.judges_of(m.name)) for m in ballots.config.models}
    return np.array([panels.get(key[0], own) for key, own in zip(ballots.traces, ruled, strict=True)])


def _vote_row(
    rule: str, said: Floats | None, plain: Floats, weights: Mapping[str, float], reason: str | None = None
) -> VoteRow:
    if said is None:
        return VoteRow(
            rule=rule, valid=0, invalid=0, open=len(plain), differs=unmeasured(reason or ""), weights={}, reason=reason
        )
    both = ~np.isnan(said) & ~np.isnan(plain)
    return VoteRow(
        rule=rule,
        valid=int((said == 1).sum()),
        invalid=int((said == 0).sum()),
        open=int(np.isnan(said).sum()),
        differs=share_of(int((both & (said != plain)).sum()), int(both.sum())),
        weights=dict(weights),
    )


# --- peers and people -------------------------------------------------------------------------------------------


def peer_alignment(peers: Sequence[PeerRow], alignment: Sequence[AlignmentRow]) -> list[PeerAlignmentRow]:
    """For each method, the correlation over models of peer agreement with r against people."""
    agreed = {row.model: row.agreement.value for row in peers}
    rows = []
    for method in dict.fromkeys(row.method for row in alignment):
        mine = [row for row in alignment if row.method == method and row.model in agreed]
        x = [np.nan if agreed[row.model] is None else agreed[row.model] for row in mine]
        y = [np.nan if row.pearson_r is None else row.pearson_r for row in mine]
        found = pearson(np.array(x, dtype=float), np.array(y, dtype=float))
        words = {
            "x constant": "peers find all models equally VALID",
            "y constant": "all models agree alike with people",
        }
        reason = None if found.reason is None else words.get(found.reason, found.reason.replace("pairs", "models"))
        r = Estimate(value=found.r, n=found.n, ci_low=found.ci_low, ci_high=found.ci_high, reason=reason)
        rows.append(PeerAlignmentRow(method=method, r=r))
    return rows if peers else []
