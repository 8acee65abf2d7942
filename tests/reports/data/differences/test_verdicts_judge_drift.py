"""Judges of two audits, each with a labelled random sample: a planted drift is found, and none where there is none."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from auditor.domain.labels import LabelKind
from auditor.reports.data.build import build_report
from auditor.reports.data.differences.compare import compare_targets
from auditor.reports.data.differences.schema import DifferenceReport
from auditor.reports.data.differences.series_pairs import parse_target
from auditor.reports.data.judge_quality.labelled_traces import read_trace_key
from auditor.reports.sections.differences_document import build_difference_document
from auditor.review.label_sampling import draw_label_sample
from auditor.storage.audits import Audit
from auditor.storage.database import Database, open_database
from auditor.storage.labels import append_labels, load_label_sample
from auditor.storage.votes import load_votes
from tests.reports.sections.node_text import assert_consistent, tables_of, text_of
from tests.support.planted_labels import make_label, plant_truth
from tests.support.synthetic_audit import populate

ERROR_RATES = {"before": 0.05, "afterwards": 0.05, "reversed": 0.6}
"""Share of the traces on which people say the opposite of most judges, by audit."""


def label_sample(db: Database, audit: Audit, error_rate: float) -> None:
    """Draw a sample and label all of it, as a person who contradicts most judges at a rate."""
    draw_label_sample(db, audit, LabelKind.TRACE, 200)
    truth = plant_truth(load_votes(db, audit.id), error_rate)
    keys = [read_trace_key(sampled.unit.parts) for sampled in load_label_sample(db, audit.id, LabelKind.TRACE)]
    append_labels(db, audit.id, [make_label(key, is_valid=truth[key]) for key in keys])


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    with open_database(f"sqlite:///{tmp_path_factory.mktemp('drift') / 'audits.db'}") as database:
        for seed, (name, error_rate) in enumerate(ERROR_RATES.items()):
            label_sample(database, populate(database, name=name, seed=seed), error_rate)
        populate(database, name="unlabelled")
        yield database


def compare(db: Database, *names: str) -> DifferenceReport:
    return compare_targets(db, [parse_target(name) for name in names])


def test_a_judge_that_agrees_less_with_people_is_shown(db: Database) -> None:
    comparison = compare(db, "before", "reversed")
    rows = [row for row in comparison.judge_drift if row.figure == "accuracy"]
    quality = [build_report(db, name).judge_quality for name in ("before", "reversed")]
    assert quality[0] is not None
    assert [row.judge for row in rows] == [row.judge for row in quality[0].judges]
    for i, row in enumerate(rows):
        first, second = (None if one is None else one.judges[i].accuracy.value for one in quality)
        assert (row.first.value, row.second.value) == (first, second)
        assert row.change.value == pytest.approx((second or 0) - (first or 0))
        assert row.change.value is not None
        assert row.change.value < 0
        assert row.change.ci_high is not None
        assert row.change.ci_high < 0
        assert (row.change.adjusted_p_value or 1) < 0.05
    document = build_difference_document(comparison)
    assert_consistent(document)
    text = text_of(document.sections)
    assert f"{rows[0].judge}: its agreement with people changed from" in text
    assert len(tables_of(document)["judge-drift"].rows) == len(comparison.judge_drift) == 2 * len(rows)


def test_no_drift_is_shown_where_there_is_none(db: Database) -> None:
    comparison = compare(db, "before", "afterwards")
    assert comparison.judge_drift
    assert all((row.change.adjusted_p_value or 1) >= 0.05 for row in comparison.judge_drift)
    assert "no change of its agreement with people is shown" in text_of(build_difference_document(comparison).sections)


def test_each_two_audits_are_compared_once_and_only_if_both_are_labelled(db: Database) -> None:
    comparison = compare(db, "before", "afterwards", "reversed")
    audits = {(row.first_audit, row.second_audit) for row in comparison.judge_drift}
    assert audits == {("before", "afterwards"), ("before", "reversed")}
    keys = [(row.first_audit, row.second_audit, row.judge, row.figure) for row in comparison.judge_drift]
    assert len(keys) == len(set(keys))
    for names in (("before", "unlabelled"), ("before",)):
        unlabelled = compare(db, *names)
        assert unlabelled.judge_drift == []
        assert "Have the judges drifted?" not in text_of(build_difference_document(unlabelled).sections)
