"""The panel in a report: figures against outside references, and the words that go with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import krippendorff
import numpy as np
import pytest
from statsmodels.stats.inter_rater import fleiss_kappa

from auditor.domain import Cell, CellScore, Conflict, ConflictKind, ConflictState, Outcome, Ruling, Verdict
from auditor.reports.build import build_report
from auditor.reports.experiments.judge_experiments import measure_judge_drift, run_holdout_experiment
from auditor.reports.measurement_schema import Estimate
from auditor.reports.pages.html_report import render_html
from auditor.reports.pages.markdown_report import render_markdown
from auditor.reports.panel.certificate import write_certificate
from auditor.reports.panel.tables import build_panel_tables
from auditor.reports.report_schema import Report
from auditor.storage import audits, results
from auditor.storage.audits import Audit
from auditor.storage.database import Database
from tests.reports.conftest import survey_of
from tests.support.synthetic_audit import populate


def verdicts(db: Database, audit: Audit) -> list[list[float]]:
    """Verdicts as a table of judges and traces."""
    found = [v for v in results.load_verdicts(db, audit.id) if v.outcome is Outcome.OK]
    judges = sorted({v.judge for v in found})
    traces = sorted({(v.model, v.cell, v.sample) for v in found})
    said = {(v.judge, v.model, v.cell, v.sample): float(v.ruling is Ruling.VALID) for v in found}
    return [[said.get((j, *t), float("nan")) for t in traces] for j in judges]


def test_kappa_and_alpha_are_those_of_statsmodels_and_krippendorff(population: tuple[Database, Audit]) -> None:
    report = build_report(population[0], population[1].name)
    table = np.array(verdicts(*population))
    assert report.panel.krippendorff_alpha.value == pytest.approx(
        krippendorff.alpha(reliability_data=table, level_of_measurement="nominal")
    )
    counts = np.stack([(table == 1).sum(axis=0), (table == 0).sum(axis=0)], axis=1)
    whole = counts[counts.sum(axis=1) == 2]
    assert len(whole) == report.panel.fleiss_kappa.n
    assert report.panel.fleiss_kappa.value == pytest.approx(fleiss_kappa(whole))
    assert report.panel.prevalence.value == pytest.approx(whole[:, 0].sum() / whole.sum())


def test_one_answer_under_the_names_of_two_judges_is_said(db: Database) -> None:
    audit = populate(db, countries=5, topics=5, samples=1)
    assert build_report(db, audit.name).panel.repeated == 0
    given = [v for v in results.load_verdicts(db, audit.id) if v.outcome is Outcome.OK]
    first = given[0]
    twin = next(v for v in given if v.judge != first.judge and (v.model, v.cell) == (first.model, first.cell))
    results.save_verdicts(db, audit.id, [replace(twin, sample=first.sample, key=first.key)])
    report = build_report(db, audit.name)
    assert report.panel.repeated == 1
    assert "1 verdict of" in render_markdown(report)


def test_every_table_and_sentence_is_in_the_page_and_the_text(report: Report) -> None:
    page, text = render_html(report), render_markdown(report)
    for table in build_panel_tables(report.panel):
        assert table.caption in page
        for name in table.headers:
            assert f">{name}</th>" in page
            assert name in text
    assert report.panel.certificate
    assert "What this panel can and cannot settle" in page
    assert "What this panel can and cannot settle" in text


def alpha(value: float | None, low: float | None, high: float | None) -> Estimate:
    return Estimate(value=value, n=50, ci_low=low, ci_high=high, reason=None if low is not None else "too few")


@pytest.mark.parametrize(
    ("estimate", "words"),
    [
        (alpha(0.9, 0.85, 0.95), "can be relied on"),
        (alpha(0.75, 0.7, 0.8), "tentative conclusions"),
        (alpha(0.4, 0.2, 0.6), "not enough to rely on the verdict on a single trace"),
        (alpha(0.05, -0.1, 0.2), "cannot be told from chance"),
        (alpha(0.4, None, None), "nothing can be said"),
        (alpha(None, None, None), "vouches for nothing"),
    ],
)
def test_the_certificate_claims_no_more_than_alphas_interval(report: Report, estimate: Estimate, words: str) -> None:
    panel = report.panel.model_copy(update={"krippendorff_alpha": estimate})
    assert words in write_certificate(panel)[0]


def test_a_panel_that_nearly_always_says_the_same_is_warned_of(report: Report) -> None:
    lopsided = Estimate(value=0.93, n=50, ci_low=0.9, ci_high=0.95)
    told = " ".join(write_certificate(report.panel.model_copy(update={"prevalence": lopsided})))
    assert "93% of the verdicts say VALID" in told
    assert "AC1" in told


def test_the_correlation_of_peers_with_people_always_has_its_n(report: Report) -> None:
    [row] = report.panel.peer_alignment
    assert row.r.n == 3
    assert row.r.ci_low is None
    assert "n = 3 models" in " ".join(report.panel.certificate)


def test_at_twenty_models_the_interval_is_as_wide_as_it_is(db: Database) -> None:
    """r = 0.39 over 20 models has the interval [-0.06, 0.71]."""
    from auditor.reports.panel.judge_statistics import compute_peer_alignment

    rng = np.random.default_rng(0)
    x = rng.normal(size=20)
    noise = rng.normal(size=20)
    noise -= noise.mean() + ((noise - noise.mean()) @ (x - x.mean())) / ((x - x.mean()) @ (x - x.mean())) * (
        x - x.mean()
    )
    z = (x - x.mean()) / np.linalg.norm(x - x.mean())
    y = 0.39 * z + np.sqrt(1 - 0.39**2) * noise / np.linalg.norm(noise)
    base = build_report(db, populate(db, models=3).name)
    peers = [base.peer_agreement[0].model_copy(update={"model": str(i), "agreement": _of(v)}) for i, v in enumerate(x)]
    rows = [base.alignment[0].model_copy(update={"model": str(i), "pearson_r": float(v)}) for i, v in enumerate(y)]
    [found] = compute_peer_alignment(peers, rows)
    assert (round(found.r.value or 0, 2), found.r.n) == (0.39, 20)
    assert (round(found.r.ci_low or 0, 2), round(found.r.ci_high or 0, 2)) == (-0.06, 0.71)


def _of(value: float) -> Estimate:
    return Estimate(value=float(value), n=10, ci_low=0.0, ci_high=1.0)


def test_a_panel_that_gave_no_verdict_at_all_vouches_for_nothing(db: Database) -> None:
    audit = populate(db, name="silent")
    failed = [Verdict(v.judge, v.model, v.cell, v.sample, Outcome.TIMEOUT) for v in results.load_verdicts(db, audit.id)]
    results.save_verdicts(db, audit.id, failed)
    report = build_report(db, "silent")
    assert report.panel.votes == []
    assert all(row.given == 0 and row.valid.value is None and row.leniency.value is None for row in report.panel.judges)
    assert "vouches for nothing" in report.panel.certificate[0]
    assert "No verdict was given" in render_html(report)


# --- conflicts ---------------------------------------------------------------------------------------------------


def by_method(db: Database, direct: Sequence[float], logprob: Sequence[float]) -> Report:
    """One model's scores on a few cells, by two methods."""
    config = populate(db, models=2, name="config").config
    cells = [Cell("Japan", f"t{i}") for i in range(len(direct))]
    audit = audits.save_audit(
        db,
        name="methods",
        config=config,
        config_hash="x",
        survey=survey_of({(c.country, c.topic): 0.1 * i for i, c in enumerate(cells)}),
        environment={},
    )
    scores = [
        CellScore("alder", c, m, s)
        for m, xs in (("direct", direct), ("logprob", logprob))
        for c, s in zip(cells, xs, strict=True)
    ]
    results.save_scores(db, audit.id, [*scores, *(CellScore("birch", c, "direct", 0.9) for c in cells)])
    return build_report(db, "methods")


def test_a_models_two_methods_contradict_each_other(db: Database) -> None:
    report = by_method(db, [0.5, 0.2, -0.4, 0.9], [-0.5, 0.1, -0.9, 0.9])
    row = next(r for r in report.conflicts.between_methods if r.model == "alder")
    assert (row.conflicts.value, row.conflicts.n, row.opposite) == (0.5, 4, 1)
    assert row.largest == [("Japan", "t0", 0.5, -0.5), ("Japan", "t2", -0.4, -0.9)]
    text = render_markdown(report)
    assert "alder contradicts itself on 50% of 4 cells" in text
    assert "third quartile of this audit’s own differences is" in text


def test_what_is_within_the_noise_is_said_so(db: Database) -> None:
    audit = populate(db)
    rows = results.load_conflicts(db, audit.id)
    marked = [
        Conflict(
            c.cell, c.left, c.right, c.score_left, c.score_right, c.kind, c.state, c.seats, within_noise=i % 2 == 0
        )
        for i, c in enumerate(rows)
    ]
    results.replace_conflicts(db, audit.id, marked)
    report = build_report(db, audit.name)
    assert report.conflicts.within_noise.value == pytest.approx(0.5, abs=0.05)
    majority = sum(c.state is ConflictState.MAJORITY for c in marked if c.kind is not ConflictKind.LOGIC)
    assert report.conflicts.settled.value == pytest.approx(majority / len(marked))
    assert "within the noise of their own samples" in render_markdown(report)


# --- without asking ----------------------------------------------------------------------------------------------


def test_drift_between_two_runs(db: Database) -> None:
    first = populate(db, name="first")
    second = populate(db, name="second")
    flipped = 0
    later: list[Verdict] = []
    for v in results.load_verdicts(db, second.id):
        if v.judge == "birch" and v.ruling is Ruling.INVALID:
            later.append(Verdict(v.judge, v.model, v.cell, v.sample, v.outcome, Ruling.VALID, key=v.key))
            flipped += 1
    results.save_verdicts(db, second.id, later)
    rows = {row.judge: row for row in measure_judge_drift(db, first.name, db, second.name)}
    assert (rows["alder"].shift.value, rows["alder"].changed.value) == (0.0, 0.0)
    assert rows["birch"].changed.value == pytest.approx(flipped / rows["birch"].valid.n)
    assert rows["birch"].shift.ci_low is not None
    assert rows["birch"].shift.ci_low > 0
    assert rows["birch"].restated.value == 1.0

    traces = results.load_traces(db, second.id)
    other = [replace(t, text=t.text and t.text[::-1]) for t in traces if t.cell == traces[0].cell]  # as long as before
    none = [replace(t, text=None) for t in traces if t.cell == traces[-1].cell]
    results.save_traces(db, second.id, other + none)
    fewer = {row.judge: row for row in measure_judge_drift(db, first.name, db, second.name)}
    seen = {v.cell for v in results.load_verdicts(db, second.id) if v.judge == "birch" and v.outcome is Outcome.OK}
    assert {traces[0].cell, traces[-1].cell} < seen
    assert fewer["birch"].valid.n < rows["birch"].valid.n
    results.save_traces(db, first.id, none)  # of answers that nobody recorded nothing is known
    assert {r.judge: r.valid.n for r in measure_judge_drift(db, first.name, db, second.name)}["birch"] == fewer[
        "birch"
    ].valid.n


def test_the_holdout_of_an_audit(db: Database) -> None:
    [row] = run_holdout_experiment(db, populate(db, models=6, countries=8, topics=6).name, 50)
    assert (row.method, row.models) == ("direct", 6)
    assert row.unseen_cells.n == 6
    assert "6 models" in row.sentence
    [few] = run_holdout_experiment(db, populate(db, models=3, name="few").name, 50)
    assert "cannot be told: fewer than 4 models" in few.sentence


def test_leanings_by_chance_are_counted_of_all_that_were_tested(report: Report) -> None:
    mild = Estimate(value=0.2, n=90, ci_low=0.1, ci_high=0.3)
    level = Estimate(value=0.0, n=90, ci_low=-0.1, ci_high=0.1)
    none = Estimate(value=None, n=0, reason="not measured")
    blank = {"verbosity": none, "own_family": none, "order": none}
    first, second = (
        r.model_copy(update={**blank, "leniency": e}) for r, e in zip(report.panel.judges, (mild, level), strict=False)
    )
    told = " ".join(write_certificate(report.panel.model_copy(update={"judges": [first, second]})))
    assert "Of 2 leanings tested, about 0.1 would show this much where there is nothing." in told
    assert "findings is chance" not in told
