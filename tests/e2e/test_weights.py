"""Vote weights estimated from human ratings are applied to the same audit without new requests."""

from __future__ import annotations

import json
import tomllib

from auditor.config import AuditConfig
from auditor.domain import ConflictState, Decision
from auditor.metrics.judges.votes import settle
from auditor.reports.output import render_report
from auditor.review.judge_weights import estimate_panel_weights, format_weights_toml
from auditor.review.session import ReviewSession
from auditor.run import open_audit, run_audit
from auditor.storage import audits, results
from auditor.storage.database import open_database
from tests.e2e.test_run import JAPAN
from tests.support.audit_configs import config
from tests.support.fake_server import FakeServer
from tests.support.known import known


def test_estimated_weights_settle_conflicts_again_without_requests(server: FakeServer, storage: str) -> None:
    first = config(server.url, models=4)
    run_audit(first, storage=storage)
    request_count = len(server.requests)
    with open_database(storage, create=False) as db:
        audit = audits.get_audit(db, "scripted")
        session = ReviewSession(db, audit, "ada")
        for key in list(session.conflict_keys()):
            session.decide(session.load_item(key), Decision.LEFT)
        panel = tomllib.loads(format_weights_toml(estimate_panel_weights(db, audit)))["panel"]
        ratings = len(results.load_ratings(db, audit.id))

    second = AuditConfig.model_validate(json.loads(first.model_dump_json()) | {"panel": panel})
    run_audit(second, storage=storage)

    assert len(server.requests) == request_count
    with open_database(storage, create=False) as db:
        audit = audits.get_audit(db, "scripted")
        conflicts = results.load_conflicts(db, audit.id)
        assert len(results.load_ratings(db, audit.id)) == ratings
    voting = known(open_audit("scripted", storage=storage).report().conflicts.voting)
    assert (voting.rule, voting.weights) == ("weighted", panel["weights"])
    assert voting.by_weight == sum(c.state is ConflictState.MAJORITY for c in conflicts)
    assert voting.by_majority == sum(settle(c.votes_left, c.votes_right, c.seats) is not None for c in conflicts)
    # Two assigned judges must agree for a majority; with two unequal weights, the larger one decides alone. If both
    # weights are 0, the conflict stays open.
    unweighted_winners = [(c, settle(c.votes_left, c.votes_right, c.seats)) for c in conflicts]
    n_unchanged_winners = sum(
        c.winner is not None and c.winner == {"left": c.left, "right": c.right}.get(side or "")
        for c, side in unweighted_winners
    )
    assert voting.by_weight > voting.by_majority >= n_unchanged_winners > 0
    assert (voting.same_side, voting.other_side) == (n_unchanged_winners, 0)
    report = open_audit("scripted", storage=storage).report()
    for form in ("html", "markdown"):
        text = " ".join(render_report(report, form).split())
        assert f"settled {voting.by_weight} of {len(conflicts)} conflicts" in text
        assert f"With one vote for each judge, {voting.by_majority} would be settled." in text


def test_equal_votes_have_no_figures_of_weights(server: FakeServer, storage: str) -> None:
    report = run_audit(config(server.url, survey=JAPAN), storage=storage).report()
    voting = known(report.conflicts.voting)
    assert (voting.rule, voting.weights, voting.by_weight, voting.same_side) == ("majority", {}, None, None)
    assert voting.by_majority == report.conflicts.states["majority"]
    assert "weighed" not in render_report(report, "markdown")


def test_an_adaptive_panel_has_no_figure_for_equal_votes(server: FakeServer, storage: str) -> None:
    weights = {f"model-{letter}": weight for letter, weight in zip("abcde", (3, 2, 1, 1, 1), strict=True)}
    panel = {"vote": "weighted", "weights": weights, "adaptive": True}
    report = run_audit(config(server.url, models=5, survey=JAPAN, panel=panel), storage=storage).report()
    voting = known(report.conflicts.voting)
    assert voting.by_weight == report.conflicts.states["majority"] > 0
    assert (voting.by_majority, voting.same_side, voting.other_side) == (None, None, None)
    assert "With one vote for each judge," not in render_report(report, "markdown")
    reason = "The result with one vote for each judge is not available, because the adaptive panel did not"
    assert reason in render_report(report, "markdown")
