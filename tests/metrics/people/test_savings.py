"""Replays of less than everything, against counts by hand and the rules that the run itself goes by."""

from __future__ import annotations

import numpy as np
import pytest

from auditor.metrics.judges.votes import settle
from auditor.metrics.people.savings import CompleteAudit, SamplingPlan, peer_agreement_rates, replay_audit

MODELS, CELLS, K = 4, 30, 5
MAY = ~np.eye(MODELS, dtype=np.bool_)


@pytest.fixture
def data() -> CompleteAudit:
    rng = np.random.default_rng(2)
    truth = rng.uniform(-1, 1, CELLS)
    samples = truth[None, :, None] + rng.normal(0, 0.3, (MODELS, CELLS, 1)) + rng.normal(0, 0.1, (MODELS, CELLS, K))
    samples[0, 3, :4] = np.nan
    simulated_verdicts = (rng.random((MODELS, MODELS, CELLS, K)) < 0.7).astype(np.float32)
    simulated_verdicts[
        ~np.broadcast_to(MAY.T[:, :, None, None], simulated_verdicts.shape) | np.isnan(samples)[None]
    ] = np.nan
    return CompleteAudit(samples, simulated_verdicts, MAY, truth, [(i % 3, i % 5) for i in range(CELLS)])


def test_everything_is_everything(data: CompleteAudit) -> None:
    full = replay_audit(data, SamplingPlan("everything"), 0.38, seed=1)
    assert (full.direct, full.review) == (MODELS * CELLS * K, 3 * (MODELS * CELLS * K - 4))
    assert full.scores == pytest.approx(np.nanmean(data.samples, axis=2), nan_ok=True)
    assert full.variances[1] == pytest.approx(data.samples[1].var(axis=1, ddof=1))
    assert peer_agreement_rates(full.counted_verdicts) == pytest.approx(
        [np.nanmean(data.verdicts[:, i]) for i in range(MODELS)]
    )


def test_winners_are_those_of_the_panel(data: CompleteAudit) -> None:
    full = replay_audit(data, SamplingPlan("everything"), 0.38, seed=1)
    scores, winners = np.nanmean(data.samples, axis=2), []
    for i in range(MODELS):
        for j in range(i + 1, MODELS):
            for cell in np.nonzero(np.abs(scores[i] - scores[j]) >= 0.38)[0]:
                judges = [judge for judge in range(MODELS) if judge not in (i, j)]
                rates = [[np.nanmean(data.verdicts[judge, side, cell]) for side in (i, j)] for judge in judges]
                won = settle(sum(a > b + 1e-9 for a, b in rates), sum(a < b - 1e-9 for a, b in rates), len(judges))
                winners.append({"left": 1, "right": -1, None: 0}[won])
    assert full.winners.tolist() == winners
    assert set(winners) == {1, 0, -1}


def test_fewer_judges_have_equal_shares_and_leave_scores_alone(data: CompleteAudit) -> None:
    full, part = (replay_audit(data, SamplingPlan("", judges_per_trace=m), 0.38, seed=1) for m in (None, 1))
    assert (part.direct, part.review) == (full.direct, MODELS * CELLS * K - 4)
    assert part.scores == pytest.approx(full.scores, nan_ok=True)
    n_verdicts = (~np.isnan(part.counted_verdicts)).sum(axis=(2, 3))
    assert n_verdicts[MAY.T].max() - n_verdicts[MAY.T].min() <= 4  # the four that failed


def test_adaptive_panels_ask_less_and_say_the_same(data: CompleteAudit) -> None:
    full, part = (replay_audit(data, SamplingPlan("", adaptive=a), 0.38, seed=1) for a in (False, True))
    assert part.winners.tolist() == full.winners.tolist()
    always = 2 * (MODELS * CELLS * K - 4)
    assert (~np.isnan(part.counted_verdicts)).sum() == always
    assert always < part.review < full.review
    calm = replay_audit(
        data, SamplingPlan("", adaptive=True), 9.0, seed=1
    )  # no conflicts: only traces that two judges left open
    first = np.where(np.isnan(calm.counted_verdicts), 0, calm.counted_verdicts).sum(axis=0)
    assert calm.review == always + int(((first == 1) & ~np.isnan(data.samples)).sum())


def test_a_cell_is_sampled_until_its_samples_agree(data: CompleteAudit) -> None:
    part = replay_audit(data, SamplingPlan("", tolerance=0.05), 0.38, seed=1)
    taken = 0
    for model in range(MODELS):
        for cell in range(CELLS):
            for n in range(3, K + 1):
                ok = data.samples[model, cell, :n]
                ok = ok[~np.isnan(ok)]
                if n == K or (len(ok) > 1 and ok.std(ddof=1) / len(ok) ** 0.5 <= 0.05):
                    taken += n
                    assert part.scores[model, cell] == pytest.approx(ok.mean(), nan_ok=True)
                    break
    assert part.direct == taken
    assert np.isnan(part.counted_verdicts[..., 3:]).all()


def test_cells_are_asked_until_intervals_are_narrow(data: CompleteAudit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("auditor.metrics.people.savings.FIRST_INTERIM_LOOK", 10)
    few, all_ = (replay_audit(data, SamplingPlan("", target_width=w), 0.38, seed=1) for w in (0.9, 0.001))
    reached = ~np.isnan(few.scores[1])
    assert 10 <= reached.sum() < CELLS
    assert few.direct == MODELS * K * reached.sum()
    assert all_.direct == MODELS * K * CELLS
