"""An interval plot shows each row's label, estimate and intervals."""

from __future__ import annotations

import pytest

from auditor.reports.charts.interval_plot import (
    CORRELATION_AXIS,
    SHARE_AXIS,
    Axis,
    IntervalRow,
    difference_axis,
    error_axis,
    interval_plot,
)
from tests.support.drawn_figures import draw, texts_of, tooltips_of


def test_each_row_has_its_label_value_and_interval_in_the_order_given() -> None:
    rows = [IntervalRow("oak", 0.52, 0.31, 0.68), IntervalRow("ash", -0.2, -0.51, 0.1)]
    texts = texts_of(draw(interval_plot(rows, CORRELATION_AXIS)))
    assert [text for text in texts if text in ("oak", "ash")] == ["oak", "ash"]
    assert {"0.52", "(0.31 to 0.68)", "−0.20", "(−0.51 to 0.10)"} <= set(texts)
    assert {"−1", "−0.5", "0", "0.5", "1", CORRELATION_AXIS.title} <= set(texts)


def test_a_row_without_a_value_is_not_available_and_has_no_dot() -> None:
    svg = draw(interval_plot([IntervalRow("oak", None), IntervalRow("ash", None, annotation="too few")], SHARE_AXIS))
    assert {"oak", "ash", "not available", "too few"} <= set(texts_of(svg))
    assert list(svg.iter("path")) == []


def test_a_row_without_an_interval_shows_its_value_only() -> None:
    texts = texts_of(draw(interval_plot([IntervalRow("oak", 0.5)], SHARE_AXIS)))
    assert "0.50" in texts
    assert not [text for text in texts if "to" in text]


def test_each_row_has_one_interval_as_long_as_its_ends_are_apart() -> None:
    rows = [IntervalRow("oak", 0.5, 0.4, 0.6), IntervalRow("ash", 0.5, 0.2, 0.8)]
    lines = draw(interval_plot(rows, SHARE_AXIS)).iter("line")
    widths = [abs(float(line.attrib["x2"])) for line in lines if line.get("opacity") == "0.6"]
    assert len(widths) == 2
    assert max(widths) == pytest.approx(3 * min(widths), abs=0.2)


def test_a_value_outside_of_the_axis_is_drawn_at_its_end() -> None:
    svg = draw(interval_plot([IntervalRow("oak", 3.0, 2.0, 4.0), IntervalRow("ash", 1.0)], SHARE_AXIS))
    first, second = (path.attrib["transform"].split(",")[0] for path in svg.iter("path"))
    assert first == second


@pytest.mark.parametrize("is_narrow", [True, False])
def test_labels_too_long_for_a_column_stand_above_their_rows(is_narrow: bool) -> None:
    name = "a model with a long name" if is_narrow else "a model with a name that is too long for a column"
    svg = draw(interval_plot([IntervalRow(name, 0.5), IntervalRow("oak", 0.5)], SHARE_AXIS, is_narrow=is_narrow))
    assert {name, "oak"} <= set(texts_of(svg))
    assert tooltips_of(svg) == []


def test_a_label_longer_than_the_plot_is_cut_off_and_its_tooltip_has_all_of_it() -> None:
    name = " ".join(["a model with a name that is much too long for any plot"] * 3)
    svg = draw(interval_plot([IntervalRow(name, 0.5), IntervalRow("oak", 0.5)], SHARE_AXIS))
    assert tooltips_of(svg) == [name]
    assert [text for text in texts_of(svg) if text.endswith("…") and name.startswith(text[:-1])]


def test_equal_labels_stay_rows_of_their_own() -> None:
    svg = draw(interval_plot([IntervalRow("oak", 0.2), IntervalRow("oak", 0.4)], SHARE_AXIS))
    heights = {path.attrib["transform"].split(",")[1] for path in svg.iter("path")}
    assert len(heights) == 2


def test_the_reference_line_is_drawn_at_its_value() -> None:
    def count_dashed(axis: Axis) -> int:
        svg = draw(interval_plot([IntervalRow("oak", 0.5)], axis))
        return sum("stroke-dasharray" in line.attrib for line in svg.iter("line"))

    assert count_dashed(CORRELATION_AXIS) == 1
    assert count_dashed(SHARE_AXIS) == 0


def test_an_error_axis_reaches_the_next_round_number() -> None:
    assert (error_axis([0.1, None, 0.43], "MAE").high, error_axis([], "MAE").high) == (0.6, 0.2)
    assert list(error_axis([1.7], "MAE").ticks) == [0, 0.5, 1, 1.5, 2]


def test_a_difference_axis_is_symmetric_around_its_reference_line() -> None:
    axis = difference_axis([0.1, None, -0.35], "Difference")
    assert (axis.low, axis.high, axis.reference) == (-0.4, 0.4, 0.0)
    assert difference_axis([None], "Difference").high == 0.1


def test_a_plot_without_rows_is_drawn() -> None:
    assert texts_of(draw(interval_plot([], SHARE_AXIS))) == ["0", "0.25", "0.5", "0.75", "1"]
