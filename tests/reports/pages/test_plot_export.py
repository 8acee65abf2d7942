"""Plots as files: each is standalone XML inside the target folder."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
import vl_convert

from auditor.errors import UsageError
from auditor.reports.data.report_schema import Report
from auditor.reports.pages.plot_export import PlotFormat, iterate_plots, standalone_svg, write_plots


def test_every_plot_is_a_standalone_svg(report: Report, tmp_path: Path) -> None:
    paths = write_plots(report, tmp_path / "figures")
    names = {path.stem for path in paths}
    assert {"agreement", "regions", "map", "scatter-alder"} <= names
    for path in paths:
        root = ElementTree.fromstring(path.read_bytes())
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert float(root.attrib["width"]) > 100
        text = path.read_text(encoding="utf-8")
        assert "var(--" not in text
        assert "fill: #" in text
        assert path.parent == tmp_path / "figures"


def test_names_with_the_same_file_name_get_numbers(report: Report, tmp_path: Path) -> None:
    first, second = report.alignment[:2]
    rows = [first.model_copy(update={"model": "../x"}), second.model_copy(update={"model": "./x"})]
    cells = [cell.model_copy(update={"scores": {"direct": {"../x": 0.1, "./x": 0.2}}}) for cell in report.audit.cells]
    audit = report.audit.model_copy(update={"cells": cells})
    report_with_similar_names = report.model_copy(update={"alignment": rows, "audit": audit})
    names = {path.name for path in write_plots(report_with_similar_names, tmp_path)}
    assert {"scatter-x.svg", "scatter-x-2.svg"} <= names


@pytest.mark.parametrize(("form", "magic"), [("png", b"\x89PNG"), ("pdf", b"%PDF")])
def test_pictures_are_drawn_as_png_and_pdf(
    report: Report, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: PlotFormat, magic: bytes
) -> None:
    agreement_plot = dict(iterate_plots(report))["agreement"]
    monkeypatch.setattr("auditor.reports.pages.plot_export.iterate_plots", lambda _: [("agreement", agreement_plot)])
    [path] = write_plots(report, tmp_path, form)
    assert path.name == f"agreement.{form}"
    assert path.read_bytes().startswith(magic)
    assert path.stat().st_size > 2000


def test_a_missing_plot_package_is_a_usage_error(
    report: Report, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    with pytest.raises(UsageError, match=r"auditor\[plots\]"):
        write_plots(report, tmp_path / "figures", "png")
    assert not (tmp_path / "figures").exists()


def test_vega_lite_specs_contain_the_figures_and_render(report: Report, tmp_path: Path) -> None:
    paths = write_plots(report, tmp_path, "vega")
    assert [path.name.removesuffix(".vl.json") for path in paths] == [name for name, _ in iterate_plots(report)]
    for path in paths:
        spec = json.loads(path.read_text(encoding="utf-8"))
        assert spec["data"]["values"]
        svg = vl_convert.vegalite_to_svg(spec, vl_version="5.20", allowed_base_urls=[])
        assert svg.startswith("<svg")
        assert svg.count("<path") > len(spec["data"]["values"])
    rows = json.loads((tmp_path / "agreement.vl.json").read_text(encoding="utf-8"))["data"]["values"]
    assert {(row["name"], row["value"]) for row in rows} == {(row.model, row.pearson_r) for row in report.alignment}


def test_the_style_has_the_rules_of_plots_only(report: Report) -> None:
    text = standalone_svg(dict(iterate_plots(report))["map"])
    assert ".t3 rect" in text
    assert ".facts" not in text
