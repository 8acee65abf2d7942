"""Non-inferiority by region: planted changes, and whether the margin was registered before the answers."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from auditor.config.sections import CompareSection, NonInferioritySection
from auditor.domain import Cell, CellScore, Grouping, Region, Survey, SurveyCell
from auditor.errors import UnfinishedAuditError
from auditor.metrics.intervals.estimate import Tested
from auditor.metrics.intervals.multiple_testing import adjust_tests
from auditor.metrics.intervals.two_way import paired_jackknife
from auditor.metrics.people.alignment import MAE
from auditor.reports.data.differences.compare import compare_targets
from auditor.reports.data.differences.schema import DifferenceReport, RegionMarginRow
from auditor.reports.data.differences.series_pairs import SeriesTarget
from auditor.reports.data.gates.check import decide_comparison
from auditor.reports.output import render_document
from auditor.reports.sections.differences_document import build_difference_document
from auditor.run import run_audit
from auditor.storage import audits
from auditor.storage.audits import load_registrations, register_claim
from auditor.storage.database import Database, open_database
from auditor.storage.hash_chain import verify_chain
from auditor.storage.records import load_records, replace_records
from tests.reports.conftest import save_rows
from tests.support.audit_configs import FOUR_CELLS, config
from tests.support.cli_runner import auditor, succeed
from tests.support.fake_server import FakeServer
from tests.support.report_changes import change
from tests.support.synthetic_audit import populate

MARGIN = 0.05
REGIONS = tuple(Region(name, tuple(f"{name} {i}" for i in range(10))) for name in ("North", "South"))
CELLS = [Cell(country, f"topic {j}") for region in REGIONS for country in region.countries for j in range(8)]
TARGETS = [SeriesTarget("before", None), SeriesTarget("after", None)]


def compare(db: Database, margin: float | None = MARGIN) -> DifferenceReport:
    return compare_targets(db, TARGETS, margin=margin)


def render(differences: DifferenceReport) -> str:
    """The words of the brief page on a comparison, in one line."""
    return " ".join(render_document(build_difference_document(differences, is_brief=True), "text").split())


def store_audits(db: Database, rise_in_south: float) -> None:
    """Two audits of one model; in the south the second is farther from people by the given MAE."""
    rng = np.random.default_rng(5)
    truth = rng.normal(0, 0.3, len(CELLS))
    survey = Survey(
        "own", "t", "s", "{topic} {country}", ("never", "always"),
        tuple(SurveyCell(cell, float(score)) for cell, score in zip(CELLS, truth, strict=True)),
        grouping=Grouping("g", "Two regions", REGIONS),
    )  # fmt: skip
    sign, error = rng.choice([-1.0, 1.0], len(CELLS)), np.abs(rng.normal(0.2, 0.02, len(CELLS)))
    rise = np.array([rise_in_south if cell.country.startswith("South") else 0.0 for cell in CELLS])
    for name, extra in (("before", 0.0), ("after", rise)):
        scores = truth + sign * (error + extra + rng.normal(0, 0.02, len(CELLS)))
        rows = [CellScore("m", cell, "direct", float(score)) for cell, score in zip(CELLS, scores, strict=True)]
        save_rows(db, survey, rows, name)


def test_a_region_passes_only_where_the_change_is_below_the_margin_and_the_page_says_not_registered(
    db: Database,
) -> None:
    store_audits(db, rise_in_south=0.1)
    differences = compare(db)
    [report] = differences.non_inferiority
    assert {row.region: row.passes for row in report.regions} == {"North": True, "South": False}
    assert not report.passes
    assert (report.registration, report.registered_margin) == ("not registered", None)
    for is_brief in (True, False):
        assert "not registered" in render_document(build_difference_document(differences, is_brief=is_brief), "html")
    assert compare(db, margin=None).non_inferiority == []


def save_scores(db: Database, name: str, method: str) -> None:
    """An audit whose scores are all the same, whatever its name."""
    survey = Survey(
        "own", "t", "s", "{topic} {country}", ("never", "always"),
        tuple(SurveyCell(cell, i % 7 / 7) for i, cell in enumerate(CELLS)), grouping=Grouping("g", "Two", REGIONS),
    )  # fmt: skip
    save_rows(db, survey, [CellScore("m", cell, method, i % 5 / 5) for i, cell in enumerate(CELLS)], name)


@pytest.mark.parametrize(
    ("method", "reason"), [("direct", "its uncertainty cannot be estimated"), ("logprob", "rescaled to the full scale")]
)
def test_a_change_without_an_interval_is_not_tested_and_the_page_says_why(
    db: Database, method: str, reason: str
) -> None:
    for name in ("before", "after"):
        save_scores(db, name, method)
    differences = compare(db)
    [report] = differences.non_inferiority
    assert reason in (report.reason or "")
    assert all(row.passes is None for row in report.regions)
    page = render(differences)
    assert "is not tested for non-inferiority" in page
    assert reason in page


def test_regions_without_an_interval_are_counted_apart(db: Database) -> None:
    store_audits(db, rise_in_south=0.1)
    differences = compare(db)
    [report] = differences.non_inferiority
    few = RegionMarginRow(region="East", change=Tested(0.0, 3, reason="few"), passes=None)
    changed = change(differences, non_inferiority=[change(report, regions=[*report.regions, few])])
    page = render(changed)
    assert "passes in 1 of 3 regions (1 not tested)" in page
    gate = decide_comparison(changed, fail_if_worse=False)
    assert gate.exit_code == 3
    assert re.search(r"after\S* is not tested against before\S* in East$", gate.reasons[-1])


@pytest.mark.parametrize(
    ("registered", "state"),
    [
        ([("before", MARGIN)], "registered"),
        ([("before", 0.1), ("before", MARGIN)], "other margin"),
        ([("another", MARGIN)], "not registered"),
    ],
)
def test_the_margin_is_compared_with_the_one_that_was_registered_first(
    db: Database, registered: list[tuple[str, float]], state: str
) -> None:
    store_audits(db, rise_in_south=0.0)
    for baseline, margin in registered:
        register_claim(db, audits.get_audit(db, "after").id, baseline, margin)
    [report] = compare(db).non_inferiority
    assert report.registration == state
    assert report.passes
    assert verify_chain(db).breaks == []


def test_countries_with_a_cultural_zone_are_found_in_their_region(db: Database) -> None:
    """With many zones, intervals are clustered by zone; regions still consist of countries."""
    for name, seed in (("before", 1), ("after", 1)):
        populate(db, models=1, countries=60, topics=6, samples=1, judges=0, seed=seed, name=name)
    [report] = compare(db).non_inferiority
    assert sum(row.change.n for row in report.regions) > 100


def test_a_run_registers_the_claim_before_it_asks_and_compare_uses_it(server: FakeServer, storage: str) -> None:
    before = config(server.url, 2, survey=FOUR_CELLS, judges=[])
    run_audit(before, storage=storage)
    claim = CompareSection(non_inferiority=NonInferioritySection(baseline=before.name, margin=MARGIN))
    after = change(before, name="after", compare=claim)
    assert after.hash == change(before, name="after").hash
    n_requests = len(server.requests)
    run_audit(after, storage=storage)
    assert len(server.requests) == n_requests  # the claim is in no key
    run_audit(after, storage=storage)
    run_audit(change(after, name="asked-anew", seed=after.seed + 1), storage=storage)
    assert len(server.requests) > n_requests
    with open_database(storage) as db:
        [entry] = load_registrations(db, audits.get_audit(db, "after").id)
        assert (entry.baseline, entry.margin, entry.n_answers) == (before.name, MARGIN, 0)
        assert verify_chain(db).breaks == []
        for name, state in (("after", "registered late"), ("asked-anew", "registered")):  # `before` has after's answers
            targets = [SeriesTarget(before.name, None), SeriesTarget(name, None)]
            assert {report.registration for report in compare_targets(db, targets).non_inferiority} == {state}
        late = audits.get_audit(db, before.name).id
        assert register_claim(db, late, "older", MARGIN).n_answers > 0


@pytest.mark.parametrize(("change", "low", "high"), [(0.0, 0.9, 1.0), (MARGIN, 0.0, 0.075)])
def test_a_planted_change_passes_if_it_is_none_and_rarely_at_the_margin(change: float, low: float, high: float) -> None:
    """Two regions of ten countries and eight topics, as `make coverage` has them in more audits."""
    n_audits, n_passed, n_covered = 60, 0, 0
    country = np.repeat(np.arange(10), 8)
    topic = np.tile(np.arange(8), 10)
    for seed in range(n_audits):
        rng = np.random.default_rng(seed)
        tests = []
        for _ in REGIONS:
            effects = rng.normal(0, 0.01, 10)[country] + rng.normal(0, 0.01, 8)[topic] + rng.normal(0, 0.04, 80)
            truth, first_error = rng.normal(0, 0.2, 80), 0.3 + np.abs(rng.normal(0, 0.1, 80))
            second_error = first_error + change + effects
            estimate = paired_jackknife(MAE, truth + second_error, truth + first_error, truth, country, topic)
            n_covered += (estimate.ci_low or 0.0) <= change <= (estimate.ci_high or 0.0)
            tests.append(estimate.against_margin(MARGIN))
        n_passed += any(test.is_significant for test in adjust_tests(tests, "regions"))
    assert low * n_audits <= n_passed <= high * n_audits
    assert n_covered >= 0.92 * n_audits * len(REGIONS)


@pytest.mark.parametrize(("rise", "expected"), [(0.0, (0, 0)), (0.2, (3, 3))])
def test_a_comparison_is_a_gate(db: Database, rise: float, expected: tuple[int, int]) -> None:
    store_audits(db, rise_in_south=rise)
    differences = compare(db)
    without_margin = change(differences, non_inferiority=[])
    gates = (decide_comparison(without_margin, fail_if_worse=True), decide_comparison(differences, fail_if_worse=False))
    assert tuple(gate.exit_code for gate in gates) == expected
    assert all(("after" in " ".join(gate.reasons)) is (rise > 0) for gate in gates)
    assert decide_comparison(without_margin, fail_if_worse=False).exit_code == 0
    audits.set_stage(db, audits.get_audit(db, "after").id, "direct")
    unfinished = decide_comparison(compare(db, margin=None), fail_if_worse=True)
    assert (unfinished.exit_code, "has not finished" in unfinished.reasons[0]) == (4, True)


@pytest.mark.parametrize(("rise", "exit_code"), [(0.0, 0), (0.01, 4)])
def test_a_model_that_gives_the_same_answers_is_no_worse(db: Database, rise: float, exit_code: int) -> None:
    """Though a difference of 0 in every cell has no interval; one of another size stays undecided."""
    store_audits(db, rise_in_south=0.0)
    truth = dict(zip(CELLS, np.random.default_rng(5).normal(0, 0.3, len(CELLS)), strict=True))
    before, after = (audits.get_audit(db, name).id for name in ("before", "after"))
    rows = []
    for row in load_records(db, before, CellScore):
        error = (row.score or 0.0) - truth[row.cell]
        rows.append(replace(row, score=float(truth[row.cell] + error + np.copysign(rise, error))))
    db.write(lambda connection: replace_records(connection, after, CellScore, rows))
    differences = compare(db, margin=None)
    [pair] = differences.pairs
    assert pair.mae.difference.adjusted_p_value is None
    assert pair.mae.difference.value == pytest.approx(rise)
    assert decide_comparison(differences, fail_if_worse=True).exit_code == exit_code


@pytest.mark.parametrize(
    ("lost_countries", "passes", "sentence"),
    [
        (REGIONS[1].countries, [None, True, None], "1 of 2 regions (1 not tested)"),
        # 5% of all samples, which needs no bounds, are 10% of those of the region.
        (REGIONS[1].countries[:1], [True, True, None], "1 of 2 regions (1 open, since lost samples could hide"),
    ],
)
def test_a_margin_that_lost_samples_could_hide_is_undecided(
    db: Database, lost_countries: tuple[str, ...], passes: list[bool | None], sentence: str
) -> None:
    """A model that answers only where it is close to people is no worse on these cells, and says nothing of others."""
    store_audits(db, rise_in_south=0.0)
    [report] = compare(db).non_inferiority
    assert report.passes
    audit_id = audits.get_audit(db, "after").id
    rows = load_records(db, audit_id, CellScore)
    lost = [
        replace(row, score=None, n_ok=0, n_planned=1) if row.cell.country in lost_countries else row for row in rows
    ]
    db.write(lambda connection: replace_records(connection, audit_id, CellScore, lost))
    differences = compare(db)
    [report] = differences.non_inferiority
    assert [row.passes for row in report.rows] == passes
    page = render(differences)
    assert f"passes in {sentence}" in page
    gate = decide_comparison(differences, fail_if_worse=False)
    assert (gate.exit_code, "a change could be hidden" in gate.reasons[0]) == (4, True)
    audits.set_stage(db, audit_id, "direct")
    unfinished = decide_comparison(compare(db), fail_if_worse=False)
    assert (unfinished.exit_code, "has not finished" in unfinished.reasons[0]) == (4, True)


def test_a_small_audit_is_tested_over_all_countries_together(db: Database) -> None:
    """Regions of four countries have no interval; all eight together do."""
    store_audits(db, rise_in_south=0.0)
    [report] = compare(db).non_inferiority
    assert report.overall is not None
    assert (report.overall.region, report.overall.passes) == ("All countries", True)
    assert report.overall.change.adjusted_p_value == report.overall.change.p_value
    assert [row.region for row in report.rows] == ["All countries", "North", "South"]
    few = [change(row, change=Tested(0.0, 3, reason="few countries"), passes=None) for row in report.regions]
    small = change(report, regions=few, reason="few countries")
    differences = change(compare(db), non_inferiority=[small])
    page = render(differences)
    assert "passes over all countries together" in page
    assert "No region is tested: few countries." in page
    assert decide_comparison(differences, fail_if_worse=False).exit_code == 0
    untested = change(small, overall=None)
    assert decide_comparison(change(differences, non_inferiority=[untested]), fail_if_worse=False).exit_code == 4


def test_the_command_compare_ends_with_the_exit_code_of_its_gate(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/audit.db"
    with open_database(url) as db:
        store_audits(db, rise_in_south=0.2)
    for options, code in (([], 0), (["--fail-if-worse"], 3), (["--non-inferiority", "0.05"], 3)):
        shown = auditor("compare", "before", "after", *options, "--json", "--storage", url, cwd=tmp_path)
        assert shown.returncode == code, shown.stderr
        assert ("Gate: failed." in shown.stderr) is (code == 3)
        assert json.loads(shown.stdout).get("gate", {}).get("verdict") == ("failed" if code else None)
    better = succeed("compare", "after", "before", "--fail-if-worse", "--storage", url, cwd=tmp_path)
    assert "Gate: passed." in better.stderr


def test_an_audit_without_scores_yet_is_called_unfinished(db: Database) -> None:
    store_audits(db, rise_in_south=0.0)
    stored = audits.get_audit(db, "before")
    survey = audits.load_audit_survey(db, stored)
    audit = audits.save_audit(db, name="stopped", config=None, config_hash=None, survey=survey, environment={})
    audits.set_stage(db, audit.id, "direct")
    with pytest.raises(UnfinishedAuditError, match="'stopped' is not finished") as raised:
        compare_targets(db, [SeriesTarget("before", None), SeriesTarget("stopped", None)])
    assert raised.value.exit_code == 4
    assert "--map" not in str(raised.value)
