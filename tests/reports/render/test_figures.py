"""Figures of a page are inert, share shapes and follow the theme; files are standalone."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from importlib import resources
from typing import Any
from xml.etree import ElementTree

import pytest

from auditor.reports.charts.interval_plot import CORRELATION_AXIS, IntervalRow, interval_plot
from auditor.reports.charts.scatter_plots import ScorePair, scatter_plot
from auditor.reports.charts.theme import build_spec, clean_text
from auditor.reports.charts.tradeoff_plot import TradeoffPoint, tradeoff_plot
from auditor.reports.charts.world_map import CountryEstimate, difference_map, error_map
from auditor.reports.document import Figure
from auditor.reports.render import figures
from auditor.reports.render.compact_svg import join_specs
from auditor.reports.render.figures import MIN_FONT_SIZE_PX, export_png, export_spec, export_svg, render_page_svgs
from tests.reports.hostile_report import EVIL, NAME
from tests.support.drawn_figures import country_estimates, render_page_svg, resolve_shared, texts_of, tooltips_of
from tests.support.html_page import assert_well_formed_and_inert
from tests.support.known import known

CSS = (resources.files("auditor.reports.render") / "page.css").read_text(encoding="utf-8")
PAGE_WIDTH_PX = 390


def map_spec(*, is_error: bool = False) -> Mapping[str, object]:
    world_map = (error_map if is_error else difference_map)(country_estimates())
    return known(world_map.spec)


def specs(name: str = "oak", title: str = "Calls") -> dict[str, Mapping[str, object]]:
    """One plot of each kind, with a name in it wherever one can be."""
    tradeoff = [TradeoffPoint(name, 10, 0.5, f"{name} {i}", 0.4, 0.6) for i in range(2)]
    return {
        "intervals": interval_plot([IntervalRow(name, 0.5, 0.2, 0.8), IntervalRow("b", None)], CORRELATION_AXIS),
        "points": scatter_plot([ScorePair(i / 20 - 1, i / 30, name) for i in range(30)]),
        "dense points": scatter_plot([ScorePair(i / 200 - 1, i / 300) for i in range(300)]),
        "squares": scatter_plot([ScorePair((i % 99) / 50 - 1, (i % 71) / 40 - 1, name) for i in range(2500)]),
        "map": map_spec(),
        "error map": map_spec(is_error=True),
        "tradeoff": tradeoff_plot(tradeoff, cost_title=title, accuracy_title=title),
    }


def as_figures(named_specs: Mapping[str, Mapping[str, object]]) -> list[Figure]:
    return [Figure(name, spec, f"Plot of {name}", f"About {name}") for name, spec in named_specs.items()]


def draw_page(page_figures: list[Figure]) -> tuple[str, list[str]]:
    definitions, svgs = render_page_svgs(page_figures)
    assert len(svgs) == len(page_figures)
    return definitions, svgs


@pytest.fixture(scope="module")
def page() -> tuple[str, list[str]]:
    return draw_page(as_figures(specs()))


def test_colors_are_variables_of_the_page_in_both_themes(page: tuple[str, list[str]]) -> None:
    for svg in page[1]:
        colors = re.findall(r'(?:fill|stroke)="([^"]*)"', svg)
        assert colors
        assert {color for color in colors if not color.startswith("var(--")} <= {"none"}
    variables = set(re.findall(r"var\((--[\w-]+)\)", "".join(page[1])))
    light_css, dark_css = CSS.split("prefers-color-scheme: dark", 1)
    for css in (light_css, dark_css.split("@media", 1)[0]):
        assert variables <= set(re.findall(r"--[\w-]+", css))


def test_figures_are_inert_and_have_no_background_and_no_external_reference(page: tuple[str, list[str]]) -> None:
    definitions, svgs = page
    for svg in (definitions, *svgs):
        assert_well_formed_and_inert(svg)
        assert not re.search(r"https?:|data:|javascript:|@import|xmlns|<style|class=\"background", svg)
        assert re.findall(r"url\((?!#)", svg) == []
        assert set(re.findall(r' style="([^":]*)', svg)) <= {"min-width", "position"}
        coordinates = " ".join(re.findall(r' (?:d|x|y|x2|y2|transform)="([^"]*)', svg))
        assert not re.search(r"[-\d]\.\d\d", re.sub(r"scale\([^)]*\)", "", coordinates))


def test_every_figure_has_an_accessible_name_and_description(page: tuple[str, list[str]]) -> None:
    for name, svg in zip(specs(), page[1], strict=True):
        root = ElementTree.fromstring(svg)
        assert root.attrib["role"] == "img"
        names = {element.attrib["id"]: element.text for element in root if "id" in element.attrib}
        assert [names[i] for i in root.attrib["aria-labelledby"].split()] == [f"Plot of {name}", f"About {name}"]


def test_ids_are_unique_and_every_reference_leads_to_one(page: tuple[str, list[str]]) -> None:
    markup = page[0] + "".join(page[1])
    ids = re.findall(r' id="([^"]*)"', markup)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'href="#([^"]*)"|url\(#([^)]*)\)', markup)) != set()
    assert {a or b for a, b in re.findall(r'href="#([^"]*)"|url\(#([^)]*)\)', markup)} <= set(ids)
    other_definitions, other_svgs = render_page_svgs(as_figures(specs()), id_prefix="other")
    other_ids = re.findall(r' id="([^"]*)"', other_definitions + "".join(other_svgs))
    assert not set(other_ids) & set(ids)


def test_shapes_of_countries_are_on_a_page_once() -> None:
    one, three = (draw_page(as_figures({str(i): map_spec() for i in range(n)})) for n in (1, 3))
    assert one[0] == "" or len(one[0]) < 500
    assert len(three[0]) > 40_000
    assert all(len(svg) < 5000 for svg in three[1])
    longest = [max(re.findall(r' d="([^"]*)"', svg), key=len, default="") for svg in three[1]]
    assert all(len(path) < 200 for path in longest)


def test_a_figure_looks_the_same_alone_and_among_others(page: tuple[str, list[str]]) -> None:
    for i, figure in enumerate(as_figures(specs())):
        single_figure = render_page_svg(
            figure.spec, title=figure.title, description=figure.description, id_prefix="alone"
        )
        in_page = ElementTree.tostring(resolve_shared(page[0], page[1][i]), encoding="unicode")
        expected = ElementTree.tostring(ElementTree.fromstring(single_figure), encoding="unicode")
        assert sorted(in_page.replace(f"figure-{i + 1}", "alone-1")) == sorted(expected)


def test_figures_that_are_equal_but_for_a_maps_layers_are_drawn_once(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[int] = []

    def join(specs: list[Mapping[str, object]]) -> dict[str, object]:
        """Join specifications, and note their number."""
        drawn.append(len(specs))
        return join_specs(specs)

    monkeypatch.setattr(figures, "join_specs", join)
    maps = [difference_map([CountryEstimate(name, 0.3)]).spec for name in ("Japan", "Germany", "Singapore")]
    _, svgs = draw_page(as_figures({str(i): spec for i, spec in enumerate(maps) if spec is not None}))
    assert drawn == [1]
    assert [tooltips_of(ElementTree.fromstring(svg)) for svg in svgs] == [
        ["Japan: +0.30"],
        ["Germany: +0.30"],
        ["Singapore: +0.30"],
    ]


def test_equal_figures_have_equal_bytes_whatever_was_drawn_before(page: tuple[str, list[str]]) -> None:
    render_page_svg(map_spec(), title="", description="", id_prefix="x")
    assert draw_page(as_figures(specs())) == page
    for spec in specs().values():
        assert export_svg(spec) == export_svg(spec)
    assert export_png(map_spec()) == export_png(map_spec())


@pytest.mark.parametrize("name", [EVIL, NAME, "a\x00\x1b[31m\u202eb\ud800\ufffe", "&lt;]]>שלום <b>"])
def test_hostile_names_are_texts(page: tuple[str, list[str]], name: str) -> None:
    hostile = [Figure(name, figure.spec, name, name) for figure in as_figures(specs(name, name))]
    for i, (expected, svg) in enumerate(zip(page[1], draw_page(hostile)[1], strict=True)):
        assert_well_formed_and_inert(svg)
        root = ElementTree.fromstring(svg)
        expected_root = ElementTree.fromstring(expected)
        assert [e.tag for e in root.iter() if e.tag != "title"] == [
            e.tag for e in expected_root.iter() if e.tag != "title"
        ]
        visible = " ".join([*texts_of(root), *tooltips_of(root)])
        assert clean_text(name)[:8] in visible or "oak" not in " ".join(texts_of(expected_root)), i
        assert not re.search(r"[\x00-\x08\x0e-\x1f\u202a-\u202e\u2066-\u2069]", svg)


def test_no_text_is_smaller_than_nine_pixels_on_a_phone(page: tuple[str, list[str]]) -> None:
    for svg in page[1]:
        root = ElementTree.fromstring(svg)
        width = float(root.attrib["viewBox"].split()[2])
        match = known(re.fullmatch(r"min-width:(\d+)px", root.attrib["style"]))
        scale = max(min(PAGE_WIDTH_PX, width), int(match[1])) / width
        sizes = [float(element.attrib["font-size"]) for element in root.iter() if "font-size" in element.attrib]
        assert min(sizes) * scale >= MIN_FONT_SIZE_PX


def test_texts_have_the_size_and_weight_of_the_specification(page: tuple[str, list[str]]) -> None:
    root = ElementTree.fromstring(page[1][0])
    sizes = {size for element in root.iter() if (size := element.get("font-size"))}
    assert sizes == {"11", "12"}
    assert 'font-weight="600"' in page[1][0]


def test_a_page_of_twenty_models_is_small() -> None:
    pairs = [ScorePair((i * 37 % 199) / 100 - 0.99, (i * 61 % 193) / 100 - 0.96) for i in range(1254)]
    countries = ("Japan", "Brazil", "Germany", "Nigeria", "Singapore") * 13
    estimates = [CountryEstimate(name, 0.3, 0.2, 0.4, 19) for name in dict.fromkeys(countries)]
    spec = known(difference_map(estimates).spec)
    definitions, svgs = draw_page(as_figures({"scatter": scatter_plot(pairs), "map": spec, "other map": spec}))
    scatter, *maps = (len(svg.encode()) for svg in svgs)
    assert 20 * (scatter + maps[0]) + len(definitions) < 700_000


def test_without_figures_the_renderer_is_not_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    assert render_page_svgs([]) == ("", [])


def test_nothing_is_fetched_for_a_figure() -> None:
    layer = {"data": {"url": "http://127.0.0.1:9/data.json"}, "mark": "point"}
    spec = build_spec([layer], width=10, height=10, padding=(0, 0, 0, 0))
    with pytest.raises(ValueError, match="not allowed"):
        render_page_svg(spec, title="", description="", id_prefix="x")
    with pytest.raises(ValueError, match="not allowed"):
        export_svg(spec)


def test_images_and_links_do_not_get_into_the_page() -> None:
    rows = [{"url": "http://127.0.0.1:9/image.png"}]
    link = {"href": {"field": "url", "type": "nominal"}}
    image: dict[str, object] = {"mark": "image", "encoding": {"url": {"field": "url", "type": "nominal"}}}
    layers = [image, {"mark": {"type": "point", "stroke": "red"}, "encoding": link}]
    spec = build_spec(layers, width=10, height=10, padding=(0, 0, 0, 0), data={"values": rows})
    assert "http" not in render_page_svg(spec, title="", description="", id_prefix="x")


def test_clip_paths_and_gradients_get_ids_of_the_figure() -> None:
    gradient = {"gradient": "linear", "stops": [{"offset": 0, "color": "red"}, {"offset": 1, "color": "blue"}]}
    encoding = {"x": {"value": 5}, "y": {"value": 5}}
    layer = {"data": {"values": [{}]}, "mark": {"type": "rect", "clip": True, "fill": gradient}, "encoding": encoding}
    spec = build_spec([layer], width=10, height=10, padding=(0, 0, 0, 0))
    svg = render_page_svg(spec, title="", description="", id_prefix="x")
    assert "<clipPath" in svg
    assert "<linearGradient" in svg
    ids = re.findall(r' id="([^"]*)"', svg)
    assert all(element_id.startswith("x-1-") for element_id in ids)
    assert set(re.findall(r"url\(#([^)]*)\)", svg)) <= set(ids)


def test_numbers_that_are_not_finite_are_refused() -> None:
    with pytest.raises(ValueError, match="JSON"):
        render_page_svg(scatter_plot([ScorePair(float("nan"), 0)]), title="", description="", id_prefix="x")


@pytest.mark.parametrize("name", list(specs()))
def test_files_are_standalone_with_resolved_colors_on_white(name: str) -> None:
    spec = specs()[name]
    svg = export_svg(spec).decode()
    assert "var(" not in svg
    assert '<rect width="' in svg
    assert 'fill="white"' in svg
    assert not re.search(r'(?:href|src)="', svg)
    root = ElementTree.fromstring(svg)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert float(root.attrib["width"]) > 200
    written: dict[str, Any] = json.loads(export_spec(spec))
    assert "var(" not in json.dumps(written)
    assert written["background"] == "white"
    assert written["$schema"].startswith("https://vega.github.io/schema/vega-lite/")


def test_a_name_like_a_color_stays_a_name_in_files() -> None:
    spec = specs("var(--ink)", "var(--ink)")
    assert ">var(--ink)</text>" in export_svg(spec["intervals"]).decode()
    tradeoff = export_svg(spec["tradeoff"]).decode()
    assert tradeoff.count(">var(--ink)</text>") == 4
    assert not re.search(r'(?:fill|stroke)="var', tradeoff)


def test_files_with_hostile_names_are_well_formed() -> None:
    for spec in specs(EVIL, EVIL).values():
        tags = {element.tag.split("}")[1] for element in ElementTree.fromstring(export_svg(spec)).iter()}
        assert tags <= {"svg", "g", "path", "rect", "line", "text"}
        json.loads(export_spec(spec))
