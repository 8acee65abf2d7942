"""The document of a comparison: its finding, the labels of pairs, and reasons for caution."""

from __future__ import annotations

import pytest

from auditor.metrics.intervals.estimate import BoundedEstimate
from auditor.reports.data.coverage.lost_samples import WorstCaseDifferences
from auditor.reports.data.differences.compare import compare_targets
from auditor.reports.data.differences.schema import DifferenceReport, SeriesDifference
from auditor.reports.data.differences.series_pairs import parse_target
from auditor.reports.data.gates.check import decide_comparison
from auditor.reports.document import CountShare, Document, Figure
from auditor.reports.sections.differences_document import MAX_DETAILED_PAIRS, build_difference_document
from auditor.storage.database import Database, open_database
from tests.reports.data.differences.test_compare import save_imported_audit
from tests.reports.sections.node_text import assert_consistent, cells_of, findings_of, iterate_nodes, tables_of, text_of
from tests.support.report_changes import change


def compare(db: Database, *targets: str) -> DifferenceReport:
    return compare_targets(db, [parse_target(target) for target in targets])


def build_document(comparison: DifferenceReport) -> Document:
    document = build_difference_document(comparison)
    assert_consistent(document)
    return document


@pytest.fixture(scope="module")
def near_and_far(tmp_path_factory: pytest.TempPathFactory) -> DifferenceReport:
    """A model that is closer to people than another one; read-only."""
    with open_database(f"sqlite:///{tmp_path_factory.mktemp('pair')}/audits.db") as db:
        save_imported_audit(db, "one", {"near": 0.05, "far": 0.5})
        return compare(db, "one:far", "one:near")


def plot_labels(document: Document) -> list[str]:
    """Labels of the rows of the first plot, as its description lists them."""
    description = next(block.description for block in iterate_nodes(document) if isinstance(block, Figure))
    return [row.rsplit(" ", 4)[0] for row in description.split("; ")]


def test_a_single_pair_is_the_finding_and_has_both_metrics_in_tables(near_and_far: DifferenceReport) -> None:
    document = build_document(near_and_far)
    [pair] = near_and_far.pairs
    lead = text_of(document.opening)
    assert lead.startswith("near is closer to people than far: its mean absolute error differs by −0.")
    assert "p < 0.001, 42 shared cells)." in lead
    tables = tables_of(document)
    for table_id, row in (("overall-mae", pair.mae), ("overall-r", pair.pearson_r)):
        figures = [row.first, row.second, row.difference, row.difference.adjusted_p_value, "better", 42]
        assert cells_of(tables[table_id]) == [["far", "near", *figures, CountShare(0, 42), CountShare(0, 42)]]
    for table_id, groups in (("pair-1-country-mae", pair.by_country), ("pair-1-topic-mae", pair.by_topic)):
        assert len(tables[table_id].rows) == len(groups) > 0


def test_stretched_scores_are_described_by_r_only(db: Database) -> None:
    save_imported_audit(db, "one", {"near": 0.05, "far": 0.5}, method="logprob")
    comparison = compare(db, "one:far", "one:near")
    [pair] = comparison.pairs
    assert (pair.pearson_r.change, pair.mae.change, pair.mae.difference.value) == ("better", "not measurable", None)
    assert pair.regions == pair.by_country == pair.by_topic == []
    lead = text_of(build_document(comparison).opening)
    assert "by r, which differs by" in lead
    assert "Mean absolute errors cannot be compared: log-probability scores are rescaled" in lead


def test_pairs_of_one_model_are_labelled_by_the_model_and_others_by_both(db: Database) -> None:
    save_imported_audit(db, "before", {"a": 0.2, "b": 0.2, "c": 0.2})
    save_imported_audit(db, "afterwards", {"a": 0.2, "b": 0.2})
    assert plot_labels(build_document(compare(db, "before", "afterwards"))) == ["a", "b"]
    within_one_audit = compare(db, "before")
    document = build_document(within_one_audit)
    assert plot_labels(document) == [f"{pair.second} – {pair.first}" for pair in within_one_audit.pairs]
    lead = text_of(document.opening)
    assert lead.startswith("By mean absolute error, one model is closer to people than the other in 0 of 3 pairs.")
    assert "To choose among the models of one audit, use the tiers in its report." in lead
    assert "use the tiers" not in text_of(build_document(compare(db, "before", "afterwards")).opening)


def test_the_country_that_got_worse_is_named_with_its_difference(db: Database) -> None:
    save_imported_audit(db, "before", {"a": 0.05})
    save_imported_audit(db, "afterwards", {"a": 0.05}, worse_in="Nigeria")
    comparison = compare(db, "before", "afterwards")
    assert comparison.pairs[0].by_country[0].name == "Nigeria", "the largest increase comes first"
    document = build_document(comparison)
    [by_country] = [section for section in document.sections if section.id == "pair-1-country"]
    [(finding, status)] = findings_of(by_country)
    assert finding.startswith("Worse: Nigeria (+0.")
    assert status == "negative"
    [by_topic] = [section for section in document.sections if section.id == "pair-1-topic"]
    assert "No tested change by topic is statistically distinguishable from zero." in text_of(by_topic)


def test_unequal_coverage_is_a_reason_for_caution(db: Database) -> None:
    save_imported_audit(db, "before", {"a": 0.2})
    save_imported_audit(db, "afterwards", {"a": 0.2}, drop=10)
    text = text_of(build_document(compare(db, "before", "afterwards")).opening)
    assert "Reasons for caution" in text
    assert "24% of the planned samples of afterwards:a have no usable score" in text
    assert "samples of before:a" not in text, "it lost none"
    assert "Over all planned samples, the difference in mean absolute error may be anything from" in text


@pytest.mark.parametrize(("bound_high", "is_open"), [(0.2, True), (-0.1, False)])
def test_a_difference_that_lost_samples_could_reverse_is_about_the_shared_cells(
    near_and_far: DifferenceReport, bound_high: float, is_open: bool
) -> None:
    bounds = BoundedEstimate(-0.4, 42, reason="too few", bound_low=-0.6, bound_high=bound_high)
    pair = change(near_and_far.pairs[0], worst_case=WorstCaseDifferences(mae=bounds, pearson_r=bounds))
    limit = ", on the cells that both answered; lost samples could reverse this" if is_open else ""
    lead = text_of(build_document(change(near_and_far, pairs=[pair])).opening)
    assert lead.startswith(f"near is closer to people than far{limit}: its mean absolute error differs by −0.")
    several = text_of(build_document(change(near_and_far, pairs=[pair, near_and_far.pairs[0]])).opening)
    assert ("Lost samples could reverse 1 of these." in several) == is_open


@pytest.mark.parametrize(("bound_low", "exit_code"), [(-0.2, 4), (0.1, 3)])
def test_a_model_that_lost_samples_could_show_to_be_no_worse_does_not_fail_a_gate(
    db: Database, bound_low: float, exit_code: int
) -> None:
    save_imported_audit(db, "one", {"near": 0.05, "far": 0.5})
    comparison = compare(db, "one:near", "one:far")
    bounds = BoundedEstimate(0.4, 42, reason="too few", bound_low=bound_low, bound_high=0.6)
    pair = change(comparison.pairs[0], worst_case=WorstCaseDifferences(mae=bounds, pearson_r=bounds))
    assert pair.mae.change == "worse"
    gate = decide_comparison(change(comparison, pairs=[pair]), fail_if_worse=True)
    assert gate.exit_code == exit_code
    assert ("lost samples could reverse this" in gate.reasons[0]) is (exit_code == 4)


@pytest.mark.parametrize("n_more", [0, 1])
def test_details_are_left_out_for_many_pairs_with_a_remark(near_and_far: DifferenceReport, n_more: int) -> None:
    pairs = near_and_far.pairs * (MAX_DETAILED_PAIRS + n_more)
    document = build_document(change(near_and_far, pairs=pairs))
    detailed = [section for section in document.sections if section.id.startswith("pair-")]
    assert len(detailed) == MAX_DETAILED_PAIRS
    assert ("not-shown" in [section.id for section in document.sections]) == (n_more == 1)
    assert len(tables_of(document)["overall-mae"].rows) == len(pairs)


def without_test(row: SeriesDifference) -> SeriesDifference:
    return change(row, difference__p_value=None, difference__adjusted_p_value=None)


def test_differences_without_an_interval_are_called_untested(near_and_far: DifferenceReport) -> None:
    [pair] = near_and_far.pairs
    [tested, *others] = [change(row, change="not told apart", difference__p_value=0.5) for row in pair.by_topic]
    untested = [without_test(row) for row in others]

    def build(**update: object) -> Document:
        changed = change(pair, **update)
        return build_document(change(near_and_far, pairs=[changed]))

    def describe_topics(document: Document) -> str:
        return text_of(next(section for section in document.sections if section.id == "pair-1-topic"))

    some = build(by_topic=[tested, *untested])
    remark = f"distinguishable from zero. Tested: 1 of {len(pair.by_topic)}."
    assert remark in describe_topics(some)
    labels = [str(row) for row in tables_of(some)["pair-1-topic-mae"].rows]
    assert sum("'not tested'" in label for label in labels) == len(untested)
    assert "Changes by topic cannot be tested: none has a 95% CI." in describe_topics(build(by_topic=untested))
    mae = change(without_test(pair.mae), change="not told apart")
    assert f"{pair.second} is not tested against {pair.first}: its mean" in text_of(build(mae=mae).opening)


def test_the_finding_does_not_say_that_no_model_is_closer_where_none_was_tested(db: Database) -> None:
    save_imported_audit(db, "one", {"near": 0.05, "middle": 0.2, "far": 0.5})
    comparison = compare(db, "one")
    pairs = [change(pair, mae=change(without_test(pair.mae), change="not told apart")) for pair in comparison.pairs]
    for changed, finding in (
        (pairs, "No difference in mean absolute error can be tested, in any of 3 pairs."),
        ([comparison.pairs[0], *pairs[1:]], "closer to people than the other in 1 of 3 pairs (2 not tested)."),
    ):
        document = build_document(change(comparison, pairs=changed))
        assert finding in text_of(document.opening)


def test_models_of_one_audit_only_are_named_and_leave_a_gate_undecided(db: Database) -> None:
    save_imported_audit(db, "before", {"same": 0.1, "old": 0.1, "dropped": 0.1})
    save_imported_audit(db, "after", {"same": 0.1, "renamed": 0.7})
    comparison = compare(db, "before", "after")
    text = text_of(build_document(comparison).opening)
    assert "Not compared: before:dropped, before:old and after:renamed" in text
    gate = decide_comparison(comparison, fail_if_worse=True)
    assert gate.exit_code == 4
    [reason] = gate.reasons
    assert reason.startswith("after:renamed is not compared: the first audit has no model of this name.")
    assert "--map OLD=renamed" in reason


def test_models_that_a_later_audit_left_out_do_not_decide_a_gate(db: Database) -> None:
    save_imported_audit(db, "before", {"same": 0.1, "dropped": 0.1})
    save_imported_audit(db, "after", {"same": 0.1})
    comparison = compare(db, "before", "after")
    assert [model.label for model in comparison.unpaired] == ["before:dropped"]
    assert decide_comparison(comparison, fail_if_worse=True).exit_code == 0
    assert compare(db, "before:same", "after:same").unpaired == []
