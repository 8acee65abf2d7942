"""Tables as the paper prints them, with our figures below each published row."""

from __future__ import annotations

from typing import cast

import pytest

from auditor.metrics.intervals.estimate import Estimate
from auditor.reports.data.replication import RecomputedCell
from auditor.reports.document import Footnoted, Printed, Reason, Row, Table
from auditor.reports.render.tables import iterate_rows
from auditor.reports.sections.replication import WideTable, build_long_table, to_paper_unit
from tests.reports.sections.replicated_cells import filled, missing, own_figure, published


def build(*cells: RecomputedCell, order: tuple[str, ...] = (), folded: tuple[str, ...] = ()) -> Table:
    return WideTable.of(cells, order, folded).build("t", "t", "")


def rows_of(table: Table) -> list[Row]:
    return [cast(Row, row) for row in table.rows]


def test_our_figure_stands_directly_below_the_published_row() -> None:
    cells = [
        filled(published("GPT", "r"), 0.5, model="mine"),
        filled(published("GPT", "MAE", "0.10"), 0.2, model="mine"),
        own_figure("other", 0.3),
    ]
    table = build(*cells, order=("MAE", "r"))
    assert [column.title for column in table.columns] == ["", "MAE", "r", "mark"]
    assert [row.cells[0] for row in rows_of(table)] == ["GPT", "yours: mine", "other"]
    printed, own_row, other = rows_of(table)
    assert printed.cells[1:] == [Printed("0.10"), Printed("0.40"), None]
    assert [cast(Estimate, cell).value for cell in own_row.cells[1:3]] == [0.2, 0.5]
    assert own_row.cells[3] == "same definition"
    assert (other.cells[1], cast(Estimate, other.cells[2]).value) == (None, 0.3)


def test_lines_are_of_surveys_and_units_where_a_figure_has_several() -> None:
    place = published("20 models", "conflicts", "348")
    cells = [
        filled(place, n, data=data, unit=unit)
        for unit in ("by cell", "by pair")
        for data, n in (("WVS", 3), ("PEW", 4))
    ]
    cells.append(filled(place, 7, data="WVS, PEW", unit="by cell"))
    titles = [row.cells[0] for row in rows_of(build(*cells))]
    assert titles == [
        "20 models", "yours: WVS, by cell", "yours: PEW, by cell", "yours: WVS + PEW, by cell", "yours: WVS, by pair",
        "yours: PEW, by pair",
    ]  # fmt: skip


def test_a_figure_without_a_unit_stands_in_the_first_line_of_the_others() -> None:
    cells = [
        own_figure("a", 0.1, "BLEU"), own_figure("a", 0.2, "SaGE", unit="exponent 10"),
        own_figure("a", 0.3, "SaGE", unit="exponent 1"),
        own_figure("a", 0.4, "SaGE", unit="exponent 10, mixed"),
    ]  # fmt: skip
    lines = {
        row.cells[0]: [cell and cast(Estimate, cell).value for cell in row.cells[1:3]] for row in rows_of(build(*cells))
    }
    assert lines == {"a, exponent 10": [0.1, 0.2], "a, exponent 1": [None, 0.3], "a, exponent 10, mixed": [None, 0.4]}


def test_the_unit_is_that_of_the_paper() -> None:
    percent, share = published("a", "H.", "67.8", scale=0.01), published("a", "settled", "89%")
    table = build(filled(percent, 0.7), filled(share, 0.8))
    assert [(column.digits, column.style) for column in table.columns[1:3]] == [(1, "decimal"), (0, "percent")]
    _, own_row = rows_of(table)
    assert cast(Estimate, own_row.cells[1]).value == pytest.approx(70)
    assert cast(Estimate, own_row.cells[2]).value == 0.8
    estimate = to_paper_unit(filled(percent, 0.7))
    assert estimate is not None
    assert [estimate.ci_low, estimate.ci_high] == pytest.approx([60, 80])
    long_rows = build_long_table("l", "l", [filled(percent, 0.7), filled(share, 0.8)]).rows
    assert [cast(tuple[object, ...], row)[4] for row in long_rows] == [pytest.approx(2.2), pytest.approx(-0.09)]


def test_a_count_has_no_decimals_and_neither_has_its_difference() -> None:
    cell = filled(published("20 models", "conflicts", "348"), 25)
    counted = cell.model_copy(update={"recomputed": Estimate(25, 99, reason="none"), "difference": -323.0})
    difference = cast(tuple[object, ...], build_long_table("l", "l", [counted]).rows[0])[4]
    assert (difference, type(difference)) == (-323, int)


def test_figures_that_depart_further_than_all_have_a_number() -> None:
    fields = {"mark": "other_definition"}
    cells = [
        own_figure("a", 0.1, "x", departures=["k"], **fields),
        own_figure("a", 0.2, "y", departures=["k", "order"], **fields),
        own_figure("b", 0.3, "y", departures=["k", "order"], **fields),
        own_figure("b", 0.4, "x", departures=["k"], mark="other_words"),
    ]
    wide = WideTable.of(cells)
    assert (wide.shared, dict(wide.numbers)) == (["k"], {("order",): 1})
    (first, second) = rows_of(wide.build("t", "t", ""))
    assert isinstance(first.cells[1], Estimate)
    assert first.cells[2] == Footnoted(cast(Estimate, cells[1].recomputed), "¹")
    assert (first.cells[3], second.cells[3]) == ("other definition", "other definition")


def test_a_row_without_a_figure_of_ours_is_muted_and_says_why_once() -> None:
    other = missing(published("Phi"), "no_counterpart")
    no_file = [missing(published("BLEU", name), "no_file", detail="WVS: PEOPLE") for name in ("r", "s")]
    muted, bleu, reason = rows_of(build(other, *no_file))
    assert muted.is_muted
    assert not bleu.is_muted
    assert reason.cells == ["yours", Reason("not run: a file is missing (--data PEOPLE=FILE)", 2), "not run"]


def test_n_is_shown_where_it_differs() -> None:
    same, other = own_figure("a", 0.1), own_figure("b", 0.2)
    assert not build(same, other).columns[1].show_n
    fewer = other.model_copy(update={"recomputed": Estimate(0.2, 5, reason="none")})
    assert build(same, fewer).columns[1].show_n


def test_folded_rows_are_left_out_but_decide_on_decimals() -> None:
    table = build(missing(published("Phi", printed="0.1234"), "no_counterpart"), own_figure("a", 0.1), folded=("Phi",))
    assert [row.cells[0] for row in rows_of(table)] == ["a"]
    assert table.columns[1].digits == 4


def test_rows_of_several_surveys_name_theirs() -> None:
    cells = [own_figure("a", 0.1).model_copy(update={"data": survey}) for survey in ("WVS", "PEW")]
    assert [row.cells[0] for row in iterate_rows(build_long_table("l", "l", cells))] == ["a (WVS)", "a (PEW)"]
    assert [row.cells[0] for row in iterate_rows(build_long_table("l", "l", cells[:1]))] == ["a"]
