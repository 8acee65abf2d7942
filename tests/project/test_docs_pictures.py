"""The pictures of README and docs show what the program shows now."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from auditor.reports.output import render_report
from tests.support import docs_pictures
from tests.support.docs_pictures import BROWSER_PICTURE, LABEL_PICTURE, REPORT_PICTURE, REVIEW_PICTURE, TABLET_SIZE

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
@pytest.mark.parametrize(
    ("path", "draw", "words"),
    [
        (REVIEW_PICTURE, docs_pictures.draw_review, "Hidden until you decide"),
        (LABEL_PICTURE, docs_pictures.draw_labelling, "VALID"),
    ],
    ids=["review", "labelling"],
)
def test_the_picture_of_a_screen_has_its_current_words(
    example: tuple[str, str], tmp_path: Path, path: Path, draw: Callable[[str, Path], tuple[str, str]], words: str
) -> None:
    picture, text = draw(example[0], tmp_path)
    assert words in text
    assert path.with_suffix(".txt").read_text(encoding="utf-8") == text, HOW_TO_FIX
    svg_words, current_words = map(docs_pictures.read_svg_words, (path.read_text(encoding="utf-8"), picture))
    assert svg_words == current_words, HOW_TO_FIX


def test_the_picture_of_the_browser_shows_what_the_app_shows(example: tuple[str, str], tmp_path: Path) -> None:
    shown = BROWSER_PICTURE.with_suffix(".txt").read_text(encoding="utf-8")
    assert shown == docs_pictures.draw_review(example[0], tmp_path, TABLET_SIZE)[1], HOW_TO_FIX
