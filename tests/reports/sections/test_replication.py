"""Charts of a table’s figures, as the paper draws them."""

from __future__ import annotations

from itertools import product
from typing import Any, cast

import pytest

from auditor.reports.data.replication import ChartPoint, RecomputedCell, TableChart, TableLayout
from auditor.reports.document import Figure, HeatMap, Paragraph
from auditor.reports.sections.replication import build_pictures
from tests.reports.sections.replicated_cells import filled, own_figure, published

SCATTER = TableChart(x="SaGE", y="accuracy", points=(ChartPoint(x="s", y="a"),))


def draw(layout: TableLayout, *cells: RecomputedCell) -> list[Figure | HeatMap | Paragraph]:
    return build_pictures(cells, layout, "table-1")


def points_of(figure: Figure | HeatMap | Paragraph) -> list[tuple[str, float, float]]:
    assert isinstance(figure, Figure)
    values = cast(dict[str, Any], figure.spec["data"])["values"]
    return [(str(value["text"]).partition(":")[0], value["cost"], value["accuracy"]) for value in values]


def test_a_scatter_plot_has_published_rows_and_our_models() -> None:
    cells = [
        filled(published("GPT", "s", "0.5"), 0.4, model="mine"),
        filled(published("GPT", "a", "0.6"), 0.7, model="mine"),
        own_figure("other", 0.1, "s"), own_figure("other", 0.2, "a"), own_figure("half", 0.3, "s"),
    ]  # fmt: skip
    [figure] = draw(TableLayout(charts=(SCATTER,)), *cells)
    assert points_of(figure) == [
        ("published, GPT", 0.5, 0.6), ("yours, mine", 0.4, 0.7), ("yours, other", 0.1, 0.2),
    ]  # fmt: skip
    assert isinstance(figure, Figure)
    assert figure.table_id == "table-1"
    assert "'type': 'line'" not in str(figure.spec["layer"])


def test_nothing_is_drawn_for_fewer_than_two_points() -> None:
    cells = [own_figure("a", 0.1, "s"), own_figure("a", 0.2, "a"), own_figure("b", 0.2, "a")]
    assert draw(TableLayout(charts=(SCATTER,)), *cells) == []


def test_a_chart_of_one_survey_leaves_out_the_other() -> None:
    cells = [
        own_figure(name, i, column, data=data)
        for data in ("WVS", "PEW")
        for i, name in enumerate("ab")
        for column in "sa"
    ]
    [figure] = draw(TableLayout(charts=(SCATTER.model_copy(update={"data": "PEW"}),)), *cells)
    assert points_of(figure) == [("a", 0, 0), ("b", 1, 1)]
    assert isinstance(figure, Figure)
    assert figure.title == "accuracy against SaGE, PEW"


def test_lines_are_of_models_over_columns_or_forms() -> None:
    over_columns = TableChart(x="K", y="s", points=tuple(ChartPoint(x=k, y=f"s({k})") for k in (3, 4)))
    cells = [own_figure(name, k / 10, f"s({k})") for name in "ab" for k in (3, 4)]
    [figure] = draw(TableLayout(charts=(over_columns,)), *cells)
    assert points_of(figure) == [("a", 3, 0.3), ("a", 4, 0.4), ("b", 3, 0.3), ("b", 4, 0.4)]
    asked = list(product((0, 1), ("same", "other")))
    points = tuple(ChartPoint(x=t, y="s", form=f"{words}, {t}", series=words) for t, words in asked)
    over_forms = TableChart(x="temperature", y="s", points=points)
    forms = [
        filled(published(f"a, {words}, {t}", "s", "", form=f"{words}, {t}"), t, is_own_row=True, model="a")
        for t, words in asked
    ]
    [figure] = draw(TableLayout(charts=(over_forms,)), *forms)
    assert "'type': 'line'" in str(cast(Figure, figure).spec["layer"])
    assert points_of(figure) == [("a, other", 0, 0), ("a, other", 1, 1), ("a, same", 0, 0), ("a, same", 1, 1)]


@pytest.mark.parametrize(("kind", "has_negative_values"), [("correlation", True), ("error", False)])
def test_a_heat_map_for_each_survey(kind: Any, has_negative_values: bool) -> None:
    cells = [
        filled(published(country, "a", ""), 0.5, is_own_row=True, model="a", data=data)
        for data in ("WVS", "PEW")
        for country in ("Ghana", "Japan")
    ]
    pictures = draw(TableLayout(heat_map=kind), *cells)
    assert [picture.content for picture in pictures if isinstance(picture, Paragraph)] == ["WVS", "PEW"]
    maps = [picture for picture in pictures if isinstance(picture, HeatMap)]
    assert [heat_map.has_negative_values for heat_map in maps] == [has_negative_values] * 2
    assert [[name for name, _ in heat_map.rows] for heat_map in maps] == [["Ghana", "Japan"]] * 2
