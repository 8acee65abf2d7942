"""docs/coverage.md: its hand-written part, and the tables that `make coverage` writes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.coverage import worlds as worlds_package
from benchmarks.coverage.known_limits import load_known_limits
from benchmarks.coverage.page import (
    BEGIN,
    DOCS,
    END,
    NOT_MEASURED,
    load_published_rows,
    make_title,
    render_table,
    write_page,
)
from benchmarks.coverage.planted import PlantedResult
from benchmarks.coverage.planted_studies import PLANTED_STUDIES
from benchmarks.coverage.rule import Summary
from benchmarks.coverage.runner import Result
from benchmarks.coverage.studies import STUDIES, figures_by_key, list_jobs, to_results, to_sentence_results

MAX_WORDS = 2500
PAGE = (DOCS / "coverage.md").read_text(encoding="utf-8")
FINE = Summary(300, 0, 0.95, 0.93, 0.97, 1.02, 0.98, 10)
SHORT = Summary(300, 30, 0.8, 0.75, 0.85, 0.9, 0.85, 10)


def test_the_page_explains_the_study_before_the_tables() -> None:
    explanation = PAGE.partition(BEGIN)[0]
    for heading in ("How it is made", "How to read the table", "The assumptions", "Results"):
        assert f"## {heading}" in explanation
    worlds = (Path(worlds_package.__path__[0]) / "README.md").read_text(encoding="utf-8")
    for world in {world.name for study in STUDIES for world in study.worlds}:
        assert world in worlds, f"{world} is not explained"
    assert "make coverage" in explanation
    assert PAGE.count(BEGIN) == PAGE.count(END) == 1


def test_the_page_can_be_read_in_ten_minutes() -> None:
    assert len(PAGE.split()) <= MAX_WORDS


def test_the_page_is_in_the_index_of_the_docs_and_of_the_site() -> None:
    assert "(coverage.md)" in (DOCS / "index.md").read_text(encoding="utf-8")
    assert "coverage.md" in (DOCS.parent / "mkdocs.yml").read_text(encoding="utf-8")


def test_the_page_has_a_row_for_each_figure_and_planted_fault() -> None:
    tables = PAGE.partition(BEGIN)[2].partition(END)[0]
    if NOT_MEASURED in tables:
        pytest.skip("the page is of a part of the study, and says which: run make coverage")
    for name in (*figures_by_key(), *(study.name for study in PLANTED_STUDIES)):
        assert f"\n{make_title(name)} | " in tables, f"run make coverage: {name} has no row"
    for place, reason in load_known_limits().items():
        assert place.kind == "width" or reason in tables, (
            f"run make coverage: a known limit is not on the page: {place}"
        )


def test_the_page_is_that_of_its_data(tmp_path: Path) -> None:
    (tmp_path / "coverage.md").write_text(PAGE, encoding="utf-8")
    published = load_published_rows()
    rows_by_key = {key: published[key] for key in list_jobs() if key in published}
    write_page(*to_results(rows_by_key), to_sentence_results(rows_by_key), folder=tmp_path)
    assert (tmp_path / "coverage.md").read_text(encoding="utf-8") == PAGE


def test_a_row_has_the_lowest_coverage_and_that_of_each_world_in_which_the_interval_fails() -> None:
    results = [
        Result("scores", "r", "gaussian", "5 × 5", FINE, SHORT),
        Result("scores", "r", "gaussian", "10 × 8", SHORT, None),
        Result("scores", "r", "Pew 2013", "5 × 5", FINE, None),
    ]
    assert "Pearson's r | 95% | gaussian:80%" in list(render_table(results))


def test_titles_have_the_usual_names_of_statistics() -> None:
    assert make_title("r") == "Pearson's r"
    assert make_title("largest mae gap") == "Largest MAE gap"
    assert make_title("judges that copy") == "Judges that copy"


def test_writing_keeps_the_hand_written_part(tmp_path: Path) -> None:
    (tmp_path / "coverage.md").write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n", encoding="utf-8")
    planted = PlantedResult("judges that copy", "2 of 5", "55 × 19", 200, 198, 196, 2, 200, 150, True, True)
    write_page([Result(STUDIES[0].name, "r", "gaussian", "5 × 5", FINE, None)], [planted], folder=tmp_path)
    page = (tmp_path / "coverage.md").read_text(encoding="utf-8")
    assert page.startswith(f"before\n{BEGIN}")
    assert page.endswith(f"{END}\nafter\n")
    assert "old" not in page
    assert "\nJudges that copy | 99% | 1%\n" in page
    figures = json.loads((tmp_path / "coverage.json").read_text(encoding="utf-8"))
    assert figures["intervals"][0]["summary"]["coverage"] == 0.95
    assert figures["planted"][0]["n_named"] == 198
    assert list(load_published_rows(tmp_path)) == [
        f"{STUDIES[0].name}/gaussian/5 × 5",
        "planted/judges that copy/2 of 5/55 × 19",
    ]
