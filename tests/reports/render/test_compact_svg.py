"""Of Vega's SVG only what is visible stays."""

from __future__ import annotations

from xml.etree import ElementTree

from auditor.reports.render.compact_svg import MIN_MARKER_RUN, compact_view


def compact(content: str, definitions: str = "") -> str:
    """Compact a view with some content."""
    root = ElementTree.fromstring(
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink">'
        f'<g class="view" transform="translate(0,70)">{content}</g><defs>{definitions}</defs></svg>'
    )
    by_id = {element.attrib["id"]: element for element in root[1]}
    markup = ElementTree.tostring(compact_view(root[0], by_id, "f"), encoding="unicode")
    markup = markup.replace(" />", "/>")
    return "" if markup == '<g fill="none"/>' else markup.removeprefix('<g fill="none">').removesuffix("</g>")


def test_only_listed_attributes_are_taken_over() -> None:
    line = (
        '<line x2="3.14159" stroke="red" class="x" onclick="alert(1)" style="fill:red" xlink:href="http://a" href="b"/>'
    )
    assert compact(line) == '<line x2="3.1" stroke="red"/>'


def test_invisible_elements_are_left_out() -> None:
    assert compact('<path d="M0,0h9v9Z"/><path d="M0,0" fill="red" display="none"/><text opacity="0">a</text>') == ""
    assert compact('<text> </text><image href="a.png"/><a href="x"/><script/><g class="empty"/>') == ""


def test_groups_without_a_purpose_are_dissolved() -> None:
    inner = '<rect width="1" height="1" fill="red"/>'
    assert compact(f'<g class="a"><g transform="translate(0,0)">{inner}</g></g>') == inner
    assert compact(f'<g transform="translate(1,0)">{inner}</g>') == f'<g transform="translate(1,0)">{inner}</g>'


def test_the_text_alternative_of_a_mark_is_its_tooltip() -> None:
    path = '<path d="M0,0h1" fill="red" role="graphics-symbol" aria-roledescription="point" aria-label="a &lt;b&gt;"/>'
    assert compact(path) == '<path d="M0,0h1" fill="red"><title>a &lt;b&gt;</title></path>'
    assert "title" not in compact('<g aria-label="container"><path d="M0,0h1" fill="red"/></g>')


def test_attributes_that_all_children_have_move_to_the_group() -> None:
    marks = (
        '<g class="m"><rect x="1" fill="red" opacity="0.5"/><rect x="2" fill="red" opacity="0.5"/></g><g><line/></g>'
    )
    expected = '<g fill="red"><rect x="1" opacity="0.5"/><rect x="2" opacity="0.5"/></g><line/>'
    assert compact(marks) == expected


def test_long_runs_of_equal_symbols_are_markers_of_a_line() -> None:
    def symbols(n: int, attributes: str = "") -> str:
        paths = (f'<path transform="translate({i}.26,{i})" d="M2,0h3" fill="red"{attributes}/>' for i in range(n))
        return f"<g>{''.join(paths)}</g>"

    drawn = compact(symbols(MIN_MARKER_RUN))
    assert drawn.count("<marker") == 1
    assert '<path d="M2,0h3" fill="red"/></marker>' in drawn
    assert 'd="M0.3 0 1.3 1 2.3 2 ' in drawn
    assert 'marker-start="url(#f-m1)" marker-mid="url(#f-m1)" marker-end="url(#f-m1)"' in drawn
    assert "marker" not in compact(symbols(MIN_MARKER_RUN - 1))
    assert "marker" not in compact(symbols(MIN_MARKER_RUN, ' aria-label="a"'))


def test_texts_have_their_size_in_place_of_a_font() -> None:
    text = '<text font-size="0px" font-family="11" text-anchor="start">a</text>'
    assert compact(text) == '<text font-size="11">a</text>'
    assert compact(text.replace("0px", "14px")) == '<text font-size="14">a</text>'


def test_definitions_are_copied_with_new_ids() -> None:
    definition = '<clipPath id="clip80"><rect width="9.99" height="1"/></clipPath>'
    drawn = compact('<g clip-path="url(#clip80)"><rect fill="red" width="1"/></g>', definition)
    assert drawn.startswith('<clipPath id="f-d1"><rect width="10" height="1"/></clipPath>')
    assert 'clip-path="url(#f-d1)"' in drawn
