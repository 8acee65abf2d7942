"""The pictures of README and docs show what the program shows now."""

from __future__ import annotations

from pathlib import Path

import pytest

from auditor.reports.output import render_report
from tests.support import docs_pictures
from tests.support.docs_pictures import REPORT_PICTURE, REVIEW_PICTURE

HOW_TO_FIX = "the picture is out of date. How to fix: make pictures"


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """URL of a database with the worked example, and the HTML of its report."""
    storage = f"sqlite:///{tmp_path_factory.mktemp('example')}/audits.db"
    return storage, render_report(docs_pictures.run_example(storage), "html")


@pytest.mark.slow
def test_the_picture_of_the_report_has_its_current_words(example: tuple[str, str]) -> None:
    shown = REPORT_PICTURE.with_suffix(".txt").read_text(encoding="utf-8")
    assert "Do the models know what people accept?" in shown
    assert shown == docs_pictures.read_report_text(example[1]), HOW_TO_FIX
    assert REPORT_PICTURE.read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_the_picture_of_the_review_has_its_current_words(example: tuple[str, str], tmp_path: Path) -> None:
    picture, text = docs_pictures.draw_review(example[0], tmp_path)
    assert "Hidden until you decide" in text
    assert REVIEW_PICTURE.with_suffix(".txt").read_text(encoding="utf-8") == text, HOW_TO_FIX
    assert docs_pictures.read_svg_words(REVIEW_PICTURE.read_text(encoding="utf-8")) == docs_pictures.read_svg_words(
        picture
    ), HOW_TO_FIX
