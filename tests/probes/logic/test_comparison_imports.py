"""Recorded comparisons imported as an audit: the same statistics as from live judges, without any call."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import pytest

from auditor.errors import ImportFileError, UsageError
from auditor.probes.logic.comparison_imports import import_comparisons
from auditor.probes.logic.figures.schema import LogicReport
from auditor.reports.data.probe_reports import build_probe_reports
from auditor.reports.data.report_source import load_source
from auditor.reports.data.requests import build_sampling_report
from auditor.reports.output import render_report
from auditor.run import open_audit
from auditor.storage.database import open_database

HEAD = "judge,context,item_a,item_b,relation,decision"


def write_rows(path: Path, *rows: str, head: str = HEAD) -> Path:
    """Write a CSV file of comparisons and return its path."""
    path.write_text("\n".join([head, *rows]) + "\n", encoding="utf-8")
    return path


def logic_section(storage: str) -> LogicReport:
    """The part on logic of the imported audit's report, built alone."""
    with open_database(storage, create=False) as db:
        source = load_source(db, "judged")
        parts = build_probe_reports(db, source, build_sampling_report(source.config, source.call_counts))
    logic_report = parts["logic"]
    assert isinstance(logic_report, LogicReport)
    return logic_report


def rows_of_consistent_judge(judge: str, wins: list[tuple[str, str]]) -> list[str]:
    """Rows of a consistent judge: both orders and both relations of each pair (winner, loser)."""
    return [
        f"{judge},c,{a},{b},{relation},{'A' if ((a, b) in wins) == (relation == 'standard') else 'B'}"
        for pair in wins
        for a, b in permutations(pair)
        for relation in ("standard", "negated")
    ]


def test_a_cycle_of_four_items_without_shorter_cycles(storage: str, tmp_path: Path) -> None:
    wins = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")]
    file = write_rows(tmp_path / "x.csv", *rows_of_consistent_judge("j", wins))
    counts = import_comparisons(file, audit="judged", storage=storage)
    assert (counts.rows, counts.judges, counts.sets, counts.items) == (16, 1, 1, 4)
    section = logic_section(storage)
    row = section.judges[0]
    # Each set of three items lacks a comparison, so the share of transitive triples is not known.
    assert [t.share.value for t in row.transitivity if t.k == 3] == [None, None]
    assert all(t.share.reason for t in row.transitivity)
    assert row.commutativity.value == row.negation.value == 1.0
    contradiction = section.contradictions[0]
    assert (contradiction.reversals, contradiction.exact, contradiction.decided) == (1, True, 4)
    assert [cycle.items for cycle in contradiction.cycles] == [["a", "b", "c", "d"]]
    assert "a › b › c › d" in render_report(open_audit("judged", storage=storage).report(), "markdown")


def test_ties_are_left_out_and_an_empty_decision_is_not_measured(storage: str, tmp_path: Path) -> None:
    rows = ["j,c,a,b,standard,TIE", "j,c,b,a,standard,tie", "j,c,a,b,negated,TIE", "j,c,a,d,standard,A"]
    rows += ["j,c,d,a,standard,", "j,c,a,d,negated,B"]
    assert import_comparisons(write_rows(tmp_path / "x.csv", *rows), audit="judged", storage=storage).empty == 1
    row = logic_section(storage).judges[0]
    assert (row.commutativity.value, row.commutativity.ties, row.commutativity.lost) == (None, 1, 1)
    assert (row.negation.value, row.negation.n, row.negation.ties) == (1.0, 1, 1)
    assert row.negation.coverage == row.instances.negation.coverage == 0.5
    assert row.ties == 3
    assert row.losses == {"not_measurable": 1}


def test_human_comparisons_are_compared_with_judges(storage: str, tmp_path: Path) -> None:
    rows = ["ann,c,a,b,standard,B", "j,c,b,a,standard,A", "j,c,a,b,standard,A", "j,c,a,d,standard,A"]
    file = write_rows(tmp_path / "x.csv", *rows)
    assert import_comparisons(file, audit="judged", storage=storage, people="ann").rows == 4
    row = next(r for r in logic_section(storage).judges if r.judge == "j")
    assert (row.human_agreement.value, row.human_agreement.n) == (0.5, 2)
    # It names each item once, which is a tie once both orders are averaged.
    assert (row.human_agreement_calibrated.n, row.human_agreement_calibrated.ties) == (0, 1)
    with pytest.raises(UsageError, match="Its judges are: ann, j"):
        import_comparisons(file, audit="judged", storage=storage, people="bob")


@pytest.mark.parametrize("order", [1, -1])
def test_contradictory_decisions_of_people_are_a_tie_whatever_the_order_of_rows(
    storage: str, tmp_path: Path, order: int
) -> None:
    """The first row decided: a judge agreed with such people on all pairs, or on none."""
    ann = ["ann,c,a,b,standard,A", "ann,c,b,a,standard,A", "ann,c,a,d,standard,A", "ann,c,d,a,standard,B"]
    file = write_rows(tmp_path / "x.csv", "j,c,a,b,standard,A", "j,c,a,d,standard,A", *ann[::order])
    import_comparisons(file, audit="judged", storage=storage, people="ann")
    row = next(r for r in logic_section(storage).judges if r.judge == "j")
    assert (row.human_agreement.value, row.human_agreement.n) == (1.0, 1)
    file = write_rows(tmp_path / "y.csv", "j,c,a,b,standard,A", *ann[:2][::order])
    import_comparisons(file, audit="judged", storage=storage, people="ann")
    row = next(r for r in logic_section(storage).judges if r.judge == "j")
    assert row.human_agreement.reason == "people have no preference on the pairs that were asked about"


def test_a_label_of_one_order_counts_before_scores_in_both(storage: str, tmp_path: Path) -> None:
    """Scores say the opposite: the pair was a tie, and the agreement with its label not available."""
    file = write_rows(tmp_path / "x.csv", "j,c,a,b,standard,A,A", "j,c,a,d,standard,A,", head=f"{HEAD},people")
    items = write_rows(tmp_path / "items.csv", "a,c,a,1", "b,c,b,2", "d,c,d,3", head="item,context,text,human")
    import_comparisons(file, audit="judged", storage=storage, items=items)
    agreement = logic_section(storage).judges[0].human_agreement
    assert (agreement.value, agreement.n) == (0.5, 2)  # as the label of a and b, not as the scores of a and d


def test_repeats_long_items_and_their_descriptions(storage: str, tmp_path: Path) -> None:
    long_item = "word " * 400
    rows = [f"j,c,{long_item},b,standard,{d},{s}" for s, d in enumerate("AABAA")]
    file = write_rows(tmp_path / "x.csv", *rows, head=f"{HEAD},sample")
    items = write_rows(
        tmp_path / "items.csv", "b,c,the second,1", f"{long_item},c,{long_item},2", head="item,context,text,human"
    )
    import_comparisons(file, audit="judged", storage=storage, items=items)
    row = logic_section(storage).judges[0]
    assert (row.self_agreement.value, row.self_agreement.n) == (0.8, 1)
    assert row.human_agreement.value == 1.0


def test_items_that_their_file_does_not_describe_are_counted(storage: str, tmp_path: Path) -> None:
    file = write_rows(tmp_path / "x.csv", "j,c,a,b,standard,A")
    head = "item,context,text,human"
    items = write_rows(tmp_path / "items.csv", "a,c,the first,1", "d,c,the fourth,2", head=head)
    assert import_comparisons(file, audit="judged", storage=storage, items=items).undescribed == 1
    assert import_comparisons(file, audit="judged", storage=storage).undescribed == 0
    items = write_rows(tmp_path / "items.csv", "a,other,the first,1", "B,c,the second,2", head=head)
    with pytest.raises(ImportFileError, match="has none of the items that were compared"):
        import_comparisons(file, audit="judged", storage=storage, items=items)


def test_all_repetitions_of_a_question_count_whatever_their_numbers(storage: str, tmp_path: Path) -> None:
    """A, B and B agree by 2/3; A and B by 1/2; a question without a repetition is not counted."""
    rows = ["j,c,a,b,standard,A,0", "j,c,a,b,standard,B,1", "j,c,a,b,standard,B,2", "j,c,b,a,standard,A,0"]
    file = write_rows(tmp_path / "x.csv", *rows, head=f"{HEAD},sample")
    import_comparisons(file, audit="judged", storage=storage)
    agreement = logic_section(storage).judges[0].self_agreement
    assert agreement.value == pytest.approx(2 / 3)
    assert agreement.n == 1
    file = write_rows(
        tmp_path / "y.csv", *rows[:2], "j,c,b,a,standard,A,4", "j,c,b,a,standard,B,7", head=f"{HEAD},sample"
    )
    import_comparisons(file, audit="judged", storage=storage)
    agreement = logic_section(storage).judges[0].self_agreement
    assert (agreement.value, agreement.n) == (0.5, 2)


def test_a_second_import_replaces_the_first(storage: str, tmp_path: Path) -> None:
    import_comparisons(write_rows(tmp_path / "x.csv", "j,c,a,b,standard,A"), audit="judged", storage=storage)
    second_file = write_rows(tmp_path / "x.csv", "k,c,a,d,standard,A", "k,c,d,a,standard,A")
    assert import_comparisons(second_file, audit="judged", storage=storage).replaced
    [row] = logic_section(storage).judges
    assert (row.judge, row.commutativity.value) == ("k", 0.0)


@pytest.mark.parametrize(
    ("row", "message"),
    [("j,c,a,b,plain,A", "'plain' is not one of standard, negated"),
     ("j,c,a,b,standard,C", "'C' is not one of A, B, TIE"), ("j,c,a,a,standard,A", "with itself"),
     (",c,a,b,standard,A", "'judge' is empty"), ("j,c,x,y,standard,A", "answer to this question occurs twice")],
)  # fmt: skip
def test_a_row_that_cannot_be_used_is_named(storage: str, tmp_path: Path, row: str, message: str) -> None:
    file = write_rows(tmp_path / "x.csv", "j,c,x,y,standard,A", row)
    with pytest.raises(ImportFileError, match=message) as caught:
        import_comparisons(file, audit="judged", storage=storage)
    assert "line 3" in caught.value.message
