"""Labelling a random sample: the draw, its extension, one rater's session, and the agreement of raters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import pytest

from auditor.domain import Outcome, Ruling, Trace
from auditor.domain.labels import UNSURE, LabelKind, UnitToLabel
from auditor.errors import ReviewError, StorageError, UsageError
from auditor.review.conflict_list import format_progress
from auditor.review.label_sampling import draw_label_sample
from auditor.review.labelling import LabellingSession
from auditor.storage import hash_chain, labels, results
from auditor.storage.audits import Audit
from auditor.storage.database import Database, open_database
from auditor.storage.records import save_records
from tests.support.review_audit import save_review_audit

VALID, INVALID = Ruling.VALID.value, Ruling.INVALID.value


@pytest.fixture
def db(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    with open_database(f"sqlite:///{tmp_path_factory.mktemp('db') / 'audits.db'}") as database:
        yield database


@pytest.fixture
def audit(db: Database) -> Audit:
    """An audit of 180 traces: 3 models, 20 cells, 3 samples."""
    return save_review_audit(db)


def load_label_sample(db: Database, audit: Audit) -> list[UnitToLabel]:
    return labels.load_label_sample(db, audit.id, LabelKind.TRACE)


def start(db: Database, audit: Audit, rater: str = "ada", share: float = 0.2, raters: int = 2) -> LabellingSession:
    return LabellingSession(db, audit, rater, second_rater_share=share, raters_per_shared_unit=raters)


def label_all(session: LabellingSession, value: str = VALID) -> list[UnitToLabel]:
    order = []
    while (sampled := session.next_unit()) is not None:
        session.save(sampled.unit, value, duration_s=2.0)
        order.append(sampled)
    return order


# --- the draw


def test_a_sample_is_stratified_by_model_and_verdict(db: Database, audit: Audit) -> None:
    drawn = draw_label_sample(db, audit, LabelKind.TRACE, 90)
    sample = load_label_sample(db, audit)
    assert (drawn.n_sampled, drawn.n_added, drawn.n_population) == (90, 90, 180)
    assert drawn.stratify == ("model", "verdict")
    counts = Counter(sampled.stratum for sampled in sample)
    assert {stratum[0] for stratum in counts} == {"alder", "birch", "cedar"}
    for sampled in sample:
        n, size = counts[sampled.stratum], sampled.n_in_stratum
        assert n >= min(size, 10)
        assert sampled.inclusion == pytest.approx(n / size)
    assert sum(1 / sampled.inclusion for sampled in sample) == pytest.approx(180)
    assert [sampled.position for sampled in sample] == list(range(90))


def test_the_draw_is_the_same_for_the_same_audit(db: Database, audit: Audit) -> None:
    other = save_review_audit(db, name="again")
    for one in (audit, other):
        draw_label_sample(db, one, LabelKind.TRACE, 40)
    assert load_label_sample(db, audit) == load_label_sample(db, other)


def test_a_larger_sample_keeps_the_smaller_one_and_its_labels(db: Database, audit: Audit) -> None:
    draw_label_sample(db, audit, LabelKind.TRACE, 60)
    before = [sampled.unit for sampled in load_label_sample(db, audit)]
    label_all(start(db, audit))
    drawn = draw_label_sample(db, audit, LabelKind.TRACE, 100)
    after = load_label_sample(db, audit)
    assert (drawn.n_sampled, drawn.n_added) == (100, 40)
    assert [sampled.unit for sampled in after[:60]] == before
    assert len(labels.load_labels(db, audit.id, LabelKind.TRACE)) == 60
    assert start(db, audit).load_progress().n_left == 40
    assert hash_chain.verify_chain(db).breaks == []


def test_a_smaller_sample_or_none_opens_the_drawn_one(db: Database, audit: Audit) -> None:
    draw_label_sample(db, audit, LabelKind.TRACE, 90)
    for n in (None, 10, 90):
        drawn = draw_label_sample(db, audit, LabelKind.TRACE, n)
        assert (drawn.n_sampled, drawn.n_added) == (90, 0)


def test_other_attributes_can_make_the_strata(db: Database, audit: Audit) -> None:
    draw_label_sample(db, audit, LabelKind.TRACE, 40, stratify=["region", "language"])
    assert {sampled.stratum for sampled in load_label_sample(db, audit)} == {
        ("Western", "en"),
        ("Non-Western", "en"),
    }


def test_a_sample_is_not_stratified_twice(db: Database, audit: Audit) -> None:
    draw_label_sample(db, audit, LabelKind.TRACE, 40)
    with pytest.raises(UsageError, match="is stratified by model,verdict"):
        draw_label_sample(db, audit, LabelKind.TRACE, 50, stratify=["topic"])


@pytest.mark.parametrize(
    ("n", "stratify", "message"),
    [(None, None, "has no label sample of traces yet"), (20, ["modell"], "cannot be stratified by 'modell'")],
)
def test_a_draw_that_is_not_possible(
    db: Database, audit: Audit, n: int | None, stratify: list[str] | None, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        draw_label_sample(db, audit, LabelKind.TRACE, n, stratify=stratify)
    assert labels.load_draw(db, audit.id, LabelKind.TRACE) is None


def test_an_audit_without_the_kind_says_what_is_missing(db: Database, audit: Audit) -> None:
    with pytest.raises(ReviewError, match="has no comparison to label"):
        draw_label_sample(db, audit, LabelKind("comparison"), 20)


def test_failed_traces_are_not_drawn(db: Database, audit: Audit) -> None:
    failed = replace(results.load_traces(db, audit.id)[0], outcome=Outcome.TRUNCATED, score=None)
    save_records(db, audit.id, [failed])
    assert draw_label_sample(db, audit, LabelKind.TRACE, 500).n_population == 179


def test_verdicts_that_come_later_do_not_change_the_strata(db: Database, audit: Audit) -> None:
    draw_label_sample(db, audit, LabelKind.TRACE, 60)
    verdicts = [replace(v, judge="dogwood", ruling=Ruling.INVALID) for v in results.load_verdicts(db, audit.id)]
    save_records(db, audit.id, verdicts)
    draw_label_sample(db, audit, LabelKind.TRACE, 100)
    sizes = {sampled.stratum: sampled.n_in_stratum for sampled in load_label_sample(db, audit)}
    assert sum(sizes.values()) == 180


def trace_parts(trace: Trace) -> tuple[str, ...]:
    return (trace.model, *trace.cell, str(trace.sample))


def delete_verdicts(db: Database, audit: Audit, model: str) -> None:
    """Replace all verdicts on a model by failures."""
    verdicts = [replace(v, outcome=Outcome.TIMEOUT, ruling=None) for v in results.load_verdicts(db, audit.id)]
    save_records(db, audit.id, [verdict for verdict in verdicts if verdict.model == model])


def test_traces_without_a_verdict_are_not_drawn_if_others_have_one(db: Database, audit: Audit) -> None:
    delete_verdicts(db, audit, "alder")
    drawn = draw_label_sample(db, audit, LabelKind.TRACE, 500)
    assert (drawn.n_sampled, drawn.n_population, drawn.n_unjudged) == (120, 120, 60)
    assert {sampled.unit.parts[0] for sampled in load_label_sample(db, audit)} == {"birch", "cedar"}
    frame = labels.load_label_frame(db, audit.id, LabelKind.TRACE)
    assert frame is not None
    assert len(frame.units) == 120


def test_an_audit_without_verdicts_can_be_labelled(db: Database, audit: Audit) -> None:
    for model in ("alder", "birch", "cedar"):
        delete_verdicts(db, audit, model)
    drawn = draw_label_sample(db, audit, LabelKind.TRACE, 500)
    assert (drawn.n_sampled, drawn.n_unjudged) == (180, 0)
    assert {sampled.stratum[1] for sampled in load_label_sample(db, audit)} == {"none"}


def change_text(db: Database, audit: Audit, trace: Trace) -> None:
    save_records(db, audit.id, [replace(trace, text="Rewritten.")])


def test_a_sample_of_changed_traces_is_neither_opened_nor_extended(db: Database, audit: Audit) -> None:
    draw_label_sample(db, audit, LabelKind.TRACE, 180)
    change_text(db, audit, results.load_traces(db, audit.id)[0])
    for n in (None, 200):
        with pytest.raises(ReviewError, match=r"have changed since its label sample was drawn.* 1 have another text"):
            draw_label_sample(db, audit, LabelKind.TRACE, n)


def test_a_new_draw_keeps_labels_of_unchanged_texts(db: Database, audit: Audit) -> None:
    draw_label_sample(db, audit, LabelKind.TRACE, 90)
    before = label_all(start(db, audit, share=0))
    (changed,) = [t for t in results.load_traces(db, audit.id) if trace_parts(t) == before[0].unit.parts]
    change_text(db, audit, changed)

    draw_label_sample(db, audit, LabelKind.TRACE, 90, redraw=True)
    after = load_label_sample(db, audit)
    assert {sampled.unit for sampled in after} == {sampled.unit for sampled in before}  # the numbers are permanent
    in_force = labels.load_labels(db, audit.id, LabelKind.TRACE)
    assert len(in_force) == 89
    assert [sampled.unit for sampled in label_all(start(db, audit, share=0))] == [before[0].unit]


def test_the_frame_has_every_unit_with_its_stratum_when_drawn(db: Database, audit: Audit) -> None:
    assert labels.load_label_frame(db, audit.id, LabelKind.TRACE) is None
    draw_label_sample(db, audit, LabelKind.TRACE, 60)
    frame = labels.load_label_frame(db, audit.id, LabelKind.TRACE)
    assert frame is not None
    strata = dict(frame.units)
    assert len(strata) == 180
    counts = Counter(strata.values())
    for sampled in load_label_sample(db, audit):
        assert strata[sampled.unit] == sampled.stratum
        assert counts[sampled.stratum] == sampled.n_in_stratum
    change_text(db, audit, results.load_traces(db, audit.id)[0])
    outdated = labels.load_label_frame(db, audit.id, LabelKind.TRACE)
    assert outdated == labels.LabelFrame((), is_outdated=True)


# --- a session


def test_labels_are_made_in_the_order_of_the_draw(db: Database, audit: Audit) -> None:
    draw_label_sample(db, audit, LabelKind.TRACE, 60)
    sample = load_label_sample(db, audit)
    assert label_all(start(db, audit)) == sample


def test_skipped_units_do_not_come(db: Database, audit: Audit) -> None:
    draw_label_sample(db, audit, LabelKind.TRACE, 60)
    first, second, third = load_label_sample(db, audit)[:3]
    assert start(db, audit).next_unit(after=first.unit, skipped={second.unit}) == third


def test_a_saved_label_is_loaded_with_what_was_shown(db: Database, audit: Audit) -> None:
    draw_label_sample(db, audit, LabelKind.TRACE, 60)
    session = start(db, audit)
    sampled = session.next_unit()
    assert sampled is not None
    aspects = {"cultural_accuracy": True, "score_fit": False}
    session.save(sampled.unit, INVALID, aspects, duration_s=3.25, text_hash="ab" * 32, note="odd")
    (label,) = labels.load_labels(db, audit.id, LabelKind.TRACE)
    assert (label.value, label.aspects, label.duration_s) == (INVALID, aspects, 3.25)
    assert (label.rater, label.note, label.text_hash, label.source) == ("ada", "odd", "ab" * 32, "review")
    assert session.find_label(sampled.unit) == label


def test_unknown_values_and_aspects_are_refused(db: Database, audit: Audit) -> None:
    draw_label_sample(db, audit, LabelKind.TRACE, 60)
    session = start(db, audit)
    unit = load_label_sample(db, audit)[0].unit
    with pytest.raises(ValueError, match="cannot be 'yes'"):
        session.save(unit, "yes")
    with pytest.raises(ValueError, match="no aspect"):
        session.save(unit, VALID, {"beauty": True})
    with pytest.raises(StorageError, match="not saved: the audit has no such trace any more"):
        session.save(unit._replace(parts=("alder", "Egypt", "divorce", "99")), VALID)
    assert labels.load_entries(db, audit.id) == []


def test_undo_returns_the_labels_one_by_one(db: Database, audit: Audit) -> None:
    draw_label_sample(db, audit, LabelKind.TRACE, 60)
    session = start(db, audit)
    first, second = load_label_sample(db, audit)[:2]
    session.save(first.unit, VALID)
    session.save(second.unit, INVALID)
    session.save(first.unit, UNSURE)
    undone = []
    while (label := session.undo()) is not None:
        undone.append((label.unit == first.unit, label.value))
    assert undone == [(True, UNSURE), (False, INVALID), (True, VALID)]
    assert session.next_unit() == first
    assert hash_chain.verify_chain(db).breaks == []


def test_undoing_a_change_restores_the_label_before_it(db: Database, audit: Audit) -> None:
    draw_label_sample(db, audit, LabelKind.TRACE, 60)
    session = start(db, audit)
    unit = load_label_sample(db, audit)[0].unit
    session.save(unit, VALID)
    session.save(unit, INVALID)
    session.undo()
    label = session.find_label(unit)
    assert label is not None
    assert label.value == VALID


def test_a_unit_stays_until_enough_raters_have_labelled_it(db: Database, audit: Audit) -> None:
    draw_label_sample(db, audit, LabelKind.TRACE, 60)
    assert len(label_all(start(db, audit, "ada", share=0.5, raters=3))) == 60
    n_second = len(label_all(start(db, audit, "ben", share=0.5, raters=3)))
    n_third = len(label_all(start(db, audit, "cleo", share=0.5, raters=3)))
    assert n_second == n_third
    assert 15 <= n_second <= 45
    assert label_all(start(db, audit, "dora", share=0.5, raters=3)) == []


def test_raters_at_work_at_once_start_with_different_units(db: Database, audit: Audit) -> None:
    draw_label_sample(db, audit, LabelKind.TRACE, 60)
    sessions = [start(db, audit, rater, share=0) for rater in ("ada", "ben")]
    for session in sessions:
        sampled = session.next_unit()
        assert sampled is not None
        session.save(sampled.unit, VALID)
    shown = []
    for _ in range(20):
        units = [session.next_unit() for session in sessions]
        assert units[0] != units[1]
        for session, sampled in zip(sessions, units, strict=True):
            assert sampled is not None
            session.save(sampled.unit, VALID)
            shown.append(sampled.unit)
    assert len(set(shown)) == 40


def test_progress_counts_what_is_left_and_how_long_it_takes(db: Database, audit: Audit) -> None:
    draw_label_sample(db, audit, LabelKind.TRACE, 60)
    session = start(db, audit, share=0)
    for duration in (4, 2, 3):
        sampled = session.next_unit()
        assert sampled is not None
        session.save(sampled.unit, VALID, duration_s=duration)
    assert (
        format_progress(session.load_progress()) == "57 of 60 left · 3 done (3 by you) · 3 s each · about 3 min to go"
    )


def test_agreement_counts_what_both_raters_decided(db: Database, audit: Audit) -> None:
    draw_label_sample(db, audit, LabelKind.TRACE, 60)
    sample = load_label_sample(db, audit)
    for rater, n_same in (("ada", 40), ("ben", 30)):
        session = start(db, audit, rater, share=1)
        for i, sampled in enumerate(sample[:40]):
            session.save(sampled.unit, VALID if i % 2 == (i < n_same) else INVALID)
        session.save(sample[40].unit, UNSURE)
    agreement = start(db, audit).load_agreement()
    (pair,) = agreement.pairs
    assert dict(agreement.n_decided_by_rater) == {"ada": 40, "ben": 40}
    assert pair.raw_agreement.value == pytest.approx(0.75)
    assert pair.raw_agreement.reason == "an interval needs at least 5 countries and 5 topics, but there are 4 topics"
    assert pair.kappa.value == pytest.approx(0.5)
