"""Labels are put where they do not cover dots or other labels."""

from __future__ import annotations

from itertools import combinations

from auditor.reports.charts.theme import LEGEND_FONT_SIZE_PX, Dot, estimate_text_width, place_labels


def test_a_label_stands_to_the_right_of_its_dot_where_there_is_room() -> None:
    [label] = place_labels([Dot(100, 50, 5, "one")], 400, 200)
    assert label.x > 105
    assert label.y == 50


def test_at_the_right_edge_a_label_stands_to_the_left() -> None:
    [label] = place_labels([Dot(395, 50, 5, "merge sort")], 400, 200)
    assert label.x + estimate_text_width("merge sort", LEGEND_FONT_SIZE_PX) < 391


def test_labels_of_dots_close_together_do_not_cover_each_other() -> None:
    dots = [Dot(100 + 12 * i, 100 + 7 * (i % 2), 4, f"label {i}") for i in range(4)]
    labels = place_labels(dots, 400, 200)
    width = estimate_text_width("label 0", LEGEND_FONT_SIZE_PX)
    for first, second in combinations(labels, 2):
        assert abs(first.x - second.x) >= width - 1 or abs(first.y - second.y) >= LEGEND_FONT_SIZE_PX - 1


def test_the_place_of_labels_depends_on_nothing_else() -> None:
    dots = [Dot(10.0 * i, 20, 4, "x" * i) for i in range(9)]
    assert place_labels(dots, 100, 50) == place_labels(dots, 100, 50)
