"""The home screen: the audits of a database, also while another process runs them."""

from __future__ import annotations

import os
import platform
import re
import sqlite3
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from auditor.domain import Decision
from auditor.reports.number_format import format_usd
from auditor.review.session import ReviewSession
from auditor.storage import audits, ledger, results
from auditor.storage.conflict_status import ConflictStatus
from auditor.storage.database import Database, find_runner, run_lock
from auditor.storage.overview import load_overviews
from auditor.storage.probe_results import AnswerCount
from auditor.tui.home import HomeScreen, render_audit_card
from auditor.tui.plain_text import describe_audit
from tests.support.known import known
from tests.support.review_audit import save_review_audit
from tests.support.synthetic_audit import populate
from tests.tui.conftest import Run

STARTS_EMPTY = True


async def test_audits_are_listed_with_progress_coverage_cost_and_open_conflicts(run: Run, db: Database) -> None:
    save_review_audit(db)
    populate(db)
    async with run(None) as driver:
        text = driver.text
        for words in ("2 audits", "moral", "population", "✓ done", "180/180 samples · 100% usable · cost unknown"):
            assert words in text
        (overview,) = (o for o in load_overviews(db) if o.audit.name == "population")
        assert format_usd(overview.cost_usd, lower_bound=True) in text
        assert f"○ {overview.conflicts[ConflictStatus.OPEN]} open" in text
        assert max(map(len, text.splitlines())) <= 80
        assert len(re.findall(r"\d{4}-\d\d-\d\d \d\d:\d\d", text)) == 2  # each fits on one line, even with a scrollbar


def test_the_figures_equal_those_of_the_rows(db: Database) -> None:
    audit = populate(db)
    (overview,) = load_overviews(db)
    traces, verdicts = results.load_traces(db, audit.id), results.load_verdicts(db, audit.id)
    assert overview.planned_samples == len(traces)
    assert overview.traces == (len(traces), sum(trace.outcome == "ok" for trace in traces))
    assert overview.verdicts == (len(verdicts), sum(verdict.outcome == "ok" for verdict in verdicts))
    keys = {trace.key for trace in traces} | {verdict.key for verdict in verdicts}
    answers = ledger.load_answers(db, [key for key in keys if key]).values()
    assert overview.cost_usd == pytest.approx(sum(answer.cost_usd or 0 for answer in answers))
    assert overview.unpriced == sum(answer.cost_usd is None for answer in answers) > 0
    assert overview.progress == 1.0
    assert overview.n_conflicts == len(results.load_conflicts(db, audit.id))


async def test_a_run_in_another_process_is_followed_without_locking_it(run: Run, db: Database) -> None:
    audit = save_review_audit(db)
    async with run(None) as driver:
        assert isinstance(driver.page, HomeScreen)
        writer = sqlite3.connect(str(db.path), timeout=0)  # like the other process; fails if the app holds a lock
        writer.execute("PRAGMA journal_mode=WAL")
        writer.execute("delete from trace where sample > 0")
        writer.execute("update audit set stage = 'elicit'")
        writer.commit()
        writer.execute("BEGIN IMMEDIATE")
        driver.page.reload_audits()
        await driver.settle()
        for words in ("‖ stopped at elicit", "60/180 samples", "━━━━━━━━╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌"):
            assert words in driver.text
        writer.rollback()
        writer.close()
        with run_lock(db, "moral"):
            driver.page.reload_audits()
            await driver.settle()
            assert "▶ elicit" in driver.text

        audits.set_stage(db, audit.id, audits.FINISHED)
        session = ReviewSession(db, audit, "grace")
        session.decide(session.load_item(session.conflict_keys()[0]), Decision.BOTH)
        driver.page.reload_audits()
        await driver.settle()
        assert "○ 19 open   ● 1 decided by people" in driver.text


def test_a_dead_process_is_not_a_runner(db: Database, tmp_path: Path) -> None:
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    holder_file = tmp_path / ".audits.db.locks" / "moral.holder"
    holder_file.parent.mkdir(exist_ok=True)
    assert find_runner(db, "moral") is None
    for text, expected in (
        (f"process {dead.pid} on {platform.node()}", None),
        (f"process {dead.pid} on another", f"process {dead.pid} on another"),
        (f"process {os.getpid()} on {platform.node()}", f"process {os.getpid()} on {platform.node()}"),
        ("something else", None),
    ):
        holder_file.write_text(text, encoding="utf-8")
        assert find_runner(db, "moral") == expected


async def test_an_empty_database_explains_how_to_run_an_audit(run: Run, db: Database) -> None:
    async with run(None) as driver:
        assert "This database has no audit yet" in driver.text
        assert "auditor run audit.toml" in driver.text
        assert known(db.path).name in driver.text.replace("\n", "").replace(" ", "")
        await driver.press("enter", "a", "j", "k")
        assert isinstance(driver.page, HomeScreen)


def test_small_costs_and_losses_are_not_rounded_away_in_either_form(db: Database) -> None:
    save_review_audit(db)
    (overview,) = load_overviews(db)
    overview = replace(overview, planned_samples=1001, traces=AnswerCount(1000, 999), cost_usd=0.0042, unpriced=3)
    text = render_audit_card(overview, 78).plain
    assert "━╌ 1\u202f000/1\u202f001 samples · > 99% usable · ≥ $0.0042" in text
    answers = replace(overview, probe_answers={"pressure": AnswerCount(1440, 1440)})
    assert "samples · 1\u202f440 pressure answers ·" in render_audit_card(answers, 78).plain
    sentence = describe_audit(1, overview)
    assert "> 99% of the samples done, > 99% of them usable, cost at least 0.0042 dollars, " in sentence
    assert "cost 12.50 dollars" in describe_audit(1, replace(overview, cost_usd=12.5, unpriced=0))


def test_an_audit_of_imported_scores_has_no_plan(db: Database) -> None:
    save_review_audit(db)
    (overview,) = load_overviews(db)
    overview_without_plan = replace(
        overview,
        planned_samples=None,
        traces=AnswerCount(0, 0),
        cost_usd=None,
        conflicts=dict.fromkeys(ConflictStatus, 0),
    )
    text = render_audit_card(overview_without_plan, 78).plain
    assert (overview_without_plan.progress, overview_without_plan.usable_share) == (None, None)
    assert "················ 0 samples · cost unknown" in text
    assert "no conflicts" in text
