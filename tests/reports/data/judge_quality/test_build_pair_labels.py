"""Judges of pairs of answers and of comparisons: figures from planted labels are shares that can be counted by hand."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from auditor.domain.labels import UNSURE, Label, LabelKind, LabelUnit
from auditor.domain.terms import ComparisonChoice
from auditor.metrics.judges.accuracy import judge_quality
from auditor.probes.logic.comparisons import Comparison, Relation
from auditor.probes.semantic import answer_rows
from auditor.reports.data.build import build_report
from auditor.reports.data.judge_quality.build import build_pair_labels
from auditor.reports.data.judge_quality.schema import PairLabelsReport
from auditor.reports.sections.judge_quality import build_pair_labels_section
from auditor.review.label_sampling import draw_label_sample
from auditor.storage import audits
from auditor.storage.audits import Audit
from auditor.storage.database import Database, open_database
from auditor.storage.labels import append_labels, load_label_sample
from auditor.storage.records import load_records
from tests.reports.sections.node_text import assert_consistent, text_of
from tests.support.known import known
from tests.support.label_audits import PAIR_AUDIT, SURVEY_AUDIT, run_pair_audit, run_survey_audit

ALL = 10_000
"""A sample of as many units has all units."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a database of an audit of pairs of answers and of one with comparisons."""
    folder = tmp_path_factory.mktemp("pair-labels")
    url = f"sqlite:///{folder}/audits.db"
    run_survey_audit(url, samples=1)
    run_pair_audit(url, folder)
    return folder


@pytest.fixture
def db(folder: Path, tmp_path: Path) -> Iterator[Database]:
    shutil.copytree(folder, tmp_path / "copy")
    with open_database(f"sqlite:///{tmp_path}/copy/audits.db") as database:
        yield database


def plant(db: Database, audit: Audit, kind: LabelKind, n: int, choose: Callable[[LabelUnit, int], str | None]) -> None:
    """Draw a sample, and label its units with what `choose` says of each unit and its place in the sample."""
    draw_label_sample(db, audit, kind, n)
    values = [
        (sampled.unit, choose(sampled.unit, i)) for i, sampled in enumerate(load_label_sample(db, audit.id, kind))
    ]
    labels = [Label(unit, "ada", value, datetime.now(UTC)) for unit, value in values if value is not None]
    append_labels(db, audit.id, labels)


def decisions_on_pairs(db: Database, audit: Audit, purpose: str) -> dict[LabelUnit, bool]:
    """Whether the judge says yes of each pair of answers."""
    return {
        LabelUnit(LabelKind("answer_pair"), (purpose, v.model, v.question, str(v.left), str(v.right))): v.holds
        for v in answer_rows.load_pair_verdicts(db, audit.id, purpose)
        if v.holds is not None
    }


def test_a_census_of_pairs_of_answers_gives_the_counted_shares(db: Database) -> None:
    audit = audits.get_audit(db, PAIR_AUDIT)
    decided = {purpose: decisions_on_pairs(db, audit, purpose) for purpose in ("consistency", "contradiction")}
    opposite = {"yes": "no", "no": "yes"}

    def choose(unit: LabelUnit, place: int) -> str:
        decisions = "yes" if decided.get(unit.parts[0], {}).get(unit) else "no"
        return opposite[decisions] if place % 4 == 0 else decisions

    plant(db, audit, LabelKind("answer_pair"), ALL, choose)
    [report] = build_pair_labels(db, audit.id)
    sample = load_label_sample(db, audit.id, LabelKind("answer_pair"))
    assert (report.kind, report.pairs, report.sampled, report.labels) == ("answer_pair", *[len(sample)] * 3)
    assert {row.question for row in report.judges} == set(decided)
    for row in report.judges:
        places = [i for i, sampled in enumerate(sample) if sampled.unit in decided[row.question]]
        hits = [i % 4 != 0 for i in places]
        assert row.pairs == row.labels == len(places)
        assert row.agreement.value == pytest.approx(np.mean(hits))
        assert (row.agreement.ci_low, row.agreement.ci_high) == pytest.approx([np.mean(hits)] * 2)  # nothing is left
        decisions = [decided[row.question][sample[i].unit] for i in places]
        people = [yes == hit for yes, hit in zip(decisions, hits, strict=True)]
        if any(people):
            assert known(row.sensitivity).value == pytest.approx(
                np.mean([y for y, p in zip(decisions, people, strict=True) if p])
            )


def test_a_sample_of_comparisons_gives_the_design_based_share(db: Database) -> None:
    audit = audits.get_audit(db, SURVEY_AUDIT)
    rows = [
        row
        for row in load_records(db, audit.id, Comparison)
        if row.relation is Relation.STANDARD and (row.paraphrase, row.sample) == (0, 0) and row.decision is not None
    ]
    by_judge: dict[str, dict[LabelUnit, ComparisonChoice | None]] = {}
    for row in rows:
        unit = LabelUnit(LabelKind("comparison"), (row.context, row.item_a, row.item_b))
        by_judge.setdefault(row.judge, {})[unit] = row.decision
    first = by_judge[sorted(by_judge)[0]]

    def choose(unit: LabelUnit, place: int) -> str:
        decision = first.get(unit)
        return "A" if place % 3 == 0 or decision is None else decision.value

    plant(db, audit, LabelKind("comparison"), 4, choose)
    [report] = build_pair_labels(db, audit.id)
    sample = load_label_sample(db, audit.id, LabelKind("comparison"))
    label_of = {sampled.unit: choose(sampled.unit, i) for i, sampled in enumerate(sample)}
    stratum_of = {sampled.unit: sampled.stratum for sampled in sample}
    assert [row.judge for row in report.judges] == sorted(by_judge)
    for judge_row in report.judges:
        units = list(by_judge[judge_row.judge])
        matches = [float(label_of[u] == by_judge[judge_row.judge][u]) if u in label_of else np.nan for u in units]
        strata = [u.parts[0] for u in units]
        assert {stratum for u in units if u in stratum_of for stratum in stratum_of[u]} <= set(strata)
        expected = judge_quality(np.ones(len(units)), matches, strata=strata).accuracy
        assert judge_row.agreement.value == pytest.approx(expected.value)
        assert judge_row.agreement.n == expected.n
        assert (judge_row.sensitivity, judge_row.specificity, judge_row.kappa) == (None, None, None)


def test_unsure_raters_bound_the_agreement(db: Database) -> None:
    audit = audits.get_audit(db, PAIR_AUDIT)
    plant(db, audit, LabelKind("answer_pair"), ALL, lambda unit, place: UNSURE if place % 3 == 0 else "yes")
    [report] = build_pair_labels(db, audit.id)
    for row in report.judges:
        assert row.unsure > 0
        assert (
            known(row.agreement_if_unsure_disagree)
            <= known(row.agreement.value)
            <= known(row.agreement_if_unsure_agree)
        )
        assert known(row.agreement_if_unsure_disagree) < known(row.agreement_if_unsure_agree)


def describe(db: Database, name: str) -> tuple[str, PairLabelsReport]:
    """The section's text, and its data."""
    report = build_report(db, name)
    section = known(build_pair_labels_section(report))
    assert_consistent(section)
    return text_of(section), report.pair_labels[0]


def test_too_few_labels_are_counted_in_one_line(db: Database) -> None:
    audit = audits.get_audit(db, PAIR_AUDIT)
    plant(db, audit, LabelKind("answer_pair"), ALL, lambda unit, place: "yes" if place == 0 else None)
    text, data = describe(db, audit.name)
    n = max(data.suggested_labels, data.sampled)
    assert f"1 of about {n} labels of pairs of answers: too few" in text
    assert f"auditor review {audit.name} --sample {n} --kind answer_pair" in text
