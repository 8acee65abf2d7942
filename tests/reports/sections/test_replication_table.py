"""Tables as the paper prints them, with our figures below each published row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from auditor.metrics.intervals.estimate import Estimate
from auditor.reports.data.replication import RecomputedCell
from auditor.reports.document import Cell, Footnoted, Printed, Reason, Row, Table
from auditor.reports.sections.replication import WideTable, build_long_table, to_paper_unit
from tests.reports.sections.node_text import cells_of, titled_cells_of
from tests.reports.sections.replicated_cells import filled, missing, own_figure, published
from tests.support.known import known


def build(*cells: RecomputedCell, order: tuple[str, ...] = (), folded: tuple[str, ...] = ()) -> Table:
    return WideTable.of(cells, order, folded).build("t", "t", "")


def values_of(row: Mapping[str, Cell]) -> list[Any]:
    """The name of a row, and the values of its estimates."""
    return [cell.value if isinstance(cell, Estimate) else cell for cell in row.values()]


def test_our_figure_stands_directly_below_the_published_row() -> None:
    cells = [
        filled(published("GPT", "r"), 0.5, model="mine"),
        filled(published("GPT", "MAE", "0.10"), 0.2, model="mine"),
        own_figure("other", 0.3),
    ]
    table = build(*cells, order=("MAE", "r"))
    assert [column.title for column in table.columns] == ["", "MAE", "r", "mark"]
    assert [values_of(row) for row in titled_cells_of(table)] == [
        ["GPT", Printed("0.10"), Printed("0.40"), None],
        ["yours: mine", 0.2, 0.5, "same definition"],
        ["other", None, 0.3, "same definition"],
    ]


def test_lines_are_of_surveys_and_units_where_a_figure_has_several() -> None:
    place = published("20 models", "conflicts", "348")
    cells = [
        filled(place, n, data=data, unit=unit)
        for unit in ("by cell", "by pair")
        for data, n in (("WVS", 3), ("PEW", 4))
    ]
    cells.append(filled(place, 7, data="WVS, PEW", unit="by cell"))
    assert [row[""] for row in titled_cells_of(build(*cells))] == [
        "20 models", "yours: WVS, by cell", "yours: PEW, by cell", "yours: WVS + PEW, by cell", "yours: WVS, by pair",
        "yours: PEW, by pair",
    ]  # fmt: skip


def test_a_figure_without_a_unit_stands_in_the_first_line_of_the_others() -> None:
    cells = [
        own_figure("a", 0.1, "BLEU"), own_figure("a", 0.2, "SaGE", unit="exponent 10"),
        own_figure("a", 0.3, "SaGE", unit="exponent 1"),
        own_figure("a", 0.4, "SaGE", unit="exponent 10, mixed"),
    ]  # fmt: skip
    assert [values_of(row)[:-1] for row in titled_cells_of(build(*cells))] == [
        ["a, exponent 10", 0.1, 0.2], ["a, exponent 1", None, 0.3], ["a, exponent 10, mixed", None, 0.4],
    ]  # fmt: skip


def test_the_unit_is_that_of_the_paper() -> None:
    percent, share = published("a", "H.", "67.8", scale=0.01), published("a", "settled", "89%")
    table = build(filled(percent, 0.7), filled(share, 0.8))
    assert [(column.digits, column.style) for column in table.columns[1:3]] == [(1, "decimal"), (0, "percent")]
    _, own_row = titled_cells_of(table)
    assert values_of(own_row)[1:3] == pytest.approx([70, 0.8])
    estimate = known(to_paper_unit(filled(percent, 0.7)))
    assert [estimate.ci_low, estimate.ci_high] == pytest.approx([60, 80])
    long_rows = titled_cells_of(build_long_table("l", "l", [filled(percent, 0.7), filled(share, 0.8)]))
    assert [row["difference"] for row in long_rows] == pytest.approx([2.2, -0.09])


def test_a_count_has_no_decimals_and_neither_has_its_difference() -> None:
    cell = filled(published("20 models", "conflicts", "348"), 25)
    counted = cell.model_copy(update={"recomputed": Estimate(25, 99, reason="none"), "difference": -323.0})
    [row] = titled_cells_of(build_long_table("l", "l", [counted]))
    assert (row["difference"], type(row["difference"])) == (-323, int)


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
    (first, second) = titled_cells_of(wide.build("t", "t", ""))
    assert first["x"] == cells[0].recomputed
    assert first["y"] == Footnoted(known(cells[1].recomputed), "¹")
    assert (first["mark"], second["mark"]) == ("other definition", "other definition")


def test_a_row_without_a_figure_of_ours_is_muted_and_says_why_once() -> None:
    other = missing(published("Phi"), "no_counterpart")
    no_file = [missing(published("BLEU", name), "no_file", detail="WVS: PEOPLE") for name in ("r", "s")]
    table = build(other, *no_file)
    assert [isinstance(row, Row) and row.is_muted for row in table.rows] == [True, False, False]
    assert list(cells_of(table)[-1]) == [
        "yours",
        Reason("not run: a file is missing (--data PEOPLE=FILE)", 2),
        "not run",
    ]


def test_n_is_shown_where_it_differs() -> None:
    same, other = own_figure("a", 0.1), own_figure("b", 0.2)
    assert not build(same, other).columns[1].show_n
    fewer = other.model_copy(update={"recomputed": Estimate(0.2, 5, reason="none")})
    assert build(same, fewer).columns[1].show_n


def test_folded_rows_are_left_out_but_decide_on_decimals() -> None:
    table = build(missing(published("Phi", printed="0.1234"), "no_counterpart"), own_figure("a", 0.1), folded=("Phi",))
    assert [row[""] for row in titled_cells_of(table)] == ["a"]
    assert table.columns[1].digits == 4


def test_rows_of_several_surveys_name_theirs() -> None:
    cells = [own_figure("a", 0.1).model_copy(update={"data": survey}) for survey in ("WVS", "PEW")]
    for shown, names in ((cells, ["a (WVS)", "a (PEW)"]), (cells[:1], ["a"])):
        assert [row["row"] for row in titled_cells_of(build_long_table("l", "l", shown))] == names
