"""Tables of shares as surveys: what is read, and the error for each kind of bad row."""

from __future__ import annotations

from pathlib import Path

import pytest

from auditor.domain import Cell
from auditor.errors import ImportFileError, UsageError
from auditor.surveys import load_distributions, load_survey, write_survey
from auditor.surveys.share_tables import import_share_table

HEADER = "country,topic,n,dimension,group,p1,p2,p3\n"


def write(folder: Path, rows: str, header: str = HEADER) -> Path:
    """A table of shares."""
    path = folder / "table.csv"
    path.write_text(header + rows, encoding="utf-8")
    return path


def test_shares_become_scores_and_distributions(tmp_path: Path) -> None:
    rows = "Japan,divorce,101,,,0.5,0.25,0.25\nJapan,divorce,40,sex,women,50,25,25\nJapan,divorce,29,sex,men,1,0,0\n"
    imported = import_share_table(write(tmp_path, rows), 1, 3)
    [cell] = imported.survey.cells
    assert (cell.cell, cell.n) == (Cell("Japan", "divorce"), 101)
    assert cell.score == pytest.approx(-0.25)
    assert cell.standard_error == pytest.approx((0.6875 / 100) ** 0.5)
    shares = imported.distributions
    assert [point.name for point in shares.points] == ["1", "2", "3"]
    assert shares.by_cell("sex", "women")[cell.cell].shares == (0.5, 0.25, 0.25)
    assert shares.by_cell("sex", "men") == {}, "fewer than 30 respondents"
    assert shares.by_cell()[cell.cell].cut_variances == pytest.approx((0.25 / 100, 0.1875 / 100))
    assert imported.notes == ("1 rows of groups with fewer than 30 respondents were left out",)
    target = tmp_path / "my.csv"
    write_survey(imported.survey, target, shares=shares)
    assert load_distributions(target) == shares
    assert load_survey(target).scores == pytest.approx({cell.cell: -0.25})


def test_a_scale_from_high_to_low_is_read_from_its_low_end(tmp_path: Path) -> None:
    path = write(tmp_path, "Japan,divorce,1,0,0\n", "country,topic,p1,p2,p3\n")
    imported = import_share_table(path, 3, 1)
    assert [point.name for point in imported.distributions.points] == ["3", "2", "1"]
    assert imported.survey.cells[0].score == -1
    assert imported.distributions.cells[0].cut_variances is None
    assert imported.notes == ("rows without 'n' have no sampling error: their distances have no floor",)


def test_rounded_shares_are_divided_by_their_sum_and_counted(tmp_path: Path) -> None:
    imported = import_share_table(write(tmp_path, "Japan,divorce,50,,,0.33,0.33,0.33\n"), 1, 3)
    assert imported.distributions.cells[0].shares == pytest.approx((1 / 3, 1 / 3, 1 / 3))
    assert imported.notes == ("1 rows did not add up to 1 and were divided by their sum",)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("Japan,divorce,50,,,0.5,0.5,0.5", "line 2: the shares add up to 1.5"),
        ("Japan,divorce,50,,,-0.5,1,0.5", "column 'p1': -0.5 is below 0"),
        ("Japan,divorce,50,,,,1,0", "column 'p1': is empty"),
        ("Japan,divorce,50,,,many,1,0", "'many' is not a number"),
        ("Japan,divorce,50,,,0,0,0", "the shares add up to 0"),
        ("Japan,divorce,0,,,1,0,0", "column 'n': is 0"),
        ("Japan,divorce,5.5,,,1,0,0", "is not a whole number"),
        ("Japan,divorce,50,sex,,1,0,0", "column 'group': is empty"),
        ("Japan,divorce,50,,women,1,0,0", "column 'dimension': is empty"),
        (",divorce,50,,,1,0,0", "the column 'country' is empty"),
        ("Japan,divorce,50,,,1,0,0\nJapan,divorce,50,,,0,1,0", "line 3: Japan × divorce occurs twice"),
        ("Japan,divorce,50,sex,women,1,0,0", "no row has the shares of all respondents"),
    ],
)
def test_a_bad_row_is_named(tmp_path: Path, row: str, message: str) -> None:
    with pytest.raises(ImportFileError, match=message):
        import_share_table(write(tmp_path, f"{row}\n"), 1, 3)


@pytest.mark.parametrize(
    ("low", "high", "message"),
    [(1, 10, "has 3 columns of shares"), (1, 1, "has 1 answers"), (0, 500, "has 501 answers")],
)
def test_a_scale_with_another_number_of_answers_is_refused(tmp_path: Path, low: int, high: int, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        import_share_table(write(tmp_path, "Japan,divorce,50,,,1,0,0\n"), low, high)


def test_a_file_without_shares_says_which_columns_it_has(tmp_path: Path) -> None:
    path = write(tmp_path, "Japan,divorce,0.5\n", "country,topic,score\n")
    with pytest.raises(ImportFileError, match="the column 'p1' is missing; the file has: country, topic, score"):
        import_share_table(path, 1, 3)
