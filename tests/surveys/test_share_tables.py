"""Tables of shares as surveys: what is read, and the error for each kind of bad row."""

from __future__ import annotations

import re
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
    assert imported.notes == ("left out 1 row of groups with fewer than 30 respondents",)
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
    assert imported.notes == ("1 row did not add up to 1: shares divided by their sum",)


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
        ("NA,divorce,,,,0.5,0.25,0.25", "'NA' may be Namibia or a missing value"),
        ("999,divorce,,,,0.5,0.25,0.25", "999 is a number without a meaning"),
        ("Türkiye,war,,,,0.5,0.25,0.25\nTurkey,divorce,,,,1,0,0", "'Turkey' and 'Türkiye' are the same country"),
        ("Japan,war,,,,0,0,1\nPeru,War,,,,1,0,0", "line 3, column 'topic': 'War' and 'war' are the same topic"),
        ("Virgin Islands,war,,,,0,0,1", "may be British Virgin Islands or Virgin Islands of the United States"),
        ("Japan,divorce,,,,0.9,0.9,0.7", "the shares add up to 2.5, not to 1 (or to 100 in percent)"),
        ("Japan,divorce,,,,0.1,0.1,0.1", "the shares add up to 0.3, not to 1"),
    ],
)
def test_a_bad_row_is_named(tmp_path: Path, row: str, message: str) -> None:
    with pytest.raises(ImportFileError, match=re.escape(message)):
        import_share_table(write(tmp_path, f"{row}\n"), 1, 3)


@pytest.mark.parametrize(
    ("low", "high", "message"),
    [(1, 10, "has 3 columns of shares"), (1, 1, "has 1 answers"), (0, 500, "has 501 answers")],
)
def test_a_scale_with_another_number_of_answers_is_refused(tmp_path: Path, low: int, high: int, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        import_share_table(write(tmp_path, "Japan,divorce,50,,,1,0,0\n"), low, high)


def test_columns_that_are_numbered_from_0_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path, "Japan,divorce,0.05,0.5,0.25,0.2\n", "country,topic,p0,p1,p2,p3\n")
    with pytest.raises(ImportFileError, match="the file has the column 'p0', but the first column of shares is p1"):
        import_share_table(path, 1, 3)


def test_a_file_without_shares_says_which_columns_it_has(tmp_path: Path) -> None:
    path = write(tmp_path, "Japan,divorce,0.5\n", "country,topic,score\n")
    with pytest.raises(ImportFileError, match="the column 'p1' is missing; the file has: country, topic, score"):
        import_share_table(path, 1, 3)


SCALES_HEADER = "country,topic,n,low,high,answers,p1,p2,p3,p4,Don't know,Refused\n"


def test_topics_of_one_table_have_scales_of_their_own(tmp_path: Path) -> None:
    """By hand: (0.5 * -1 + 0.5 * 1/3) = -1/3 on four steps; 0.25 * -1 + 0.75 * 1 = 0.5 on two answers in words."""
    rows = "Japan,trust,100,1,4,,0.5,0,0.5,0,,\nJapan,vote,200,,,no|yes,20,60,,,15,5\n"
    imported = import_share_table(write(tmp_path, rows, SCALES_HEADER))
    cells = {cell.cell.topic: cell for cell in imported.survey.cells}
    assert cells["trust"].score == pytest.approx(-1 / 3)
    assert cells["vote"].score == pytest.approx(0.5)
    assert [cells[topic].nonresponse for topic in ("trust", "vote")] == pytest.approx([0, 0.2])
    assert (cells["trust"].n, cells["vote"].n) == (100, 160)
    shares = imported.distributions
    assert [point.name for point in shares.scale_of("vote").points] == ["no", "yes"]
    assert [point.name for point in shares.scale_of("trust").points] == ["1", "2", "3", "4"]
    assert shares.by_cell()[Cell("Japan", "vote")].shares == (0.25, 0.75)
    assert imported.notes == ()
    target = tmp_path / "my.csv"
    write_survey(imported.survey, target, shares=shares)
    assert load_distributions(target) == shares


def test_a_remainder_is_stated_and_no_answer_grows_by_it(tmp_path: Path) -> None:
    rows = "Japan,divorce,100,,,0.5,0.2,0.2\nPeru,divorce,100,,,0.5,0.25,0.25\n"
    imported = import_share_table(write(tmp_path, rows), 1, 3)
    assert [cell.nonresponse for cell in imported.survey.cells] == [pytest.approx(0.1), None]
    assert [cell.n for cell in imported.survey.cells] == [90, 100]
    assert imported.notes == (
        "shares of 1 row add up to less than 1; the remainder, up to 10% (Japan × divorce), counts as people who gave "
        "no answer",
    )


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("Japan,trust,9,1,4,no|yes,1,0,0,0,,", "line 2: the row has both answers and a scale"),
        ("Japan,trust,9,,,,1,0,0,0,,", "the row has neither 'low' and 'high' nor 'answers'"),
        ("Japan,trust,9,1,,,1,0,0,0,,", "column 'low': with 'high' is no scale"),
        ("Japan,trust,9,,,no|no,1,0,,,,", "column 'answers': 'no|no' is no list of answers"),
        ("Japan,trust,9,1,3,,1,0,0,0,,", "column 'p4': is filled, but the topic's scale has 3 answers"),
        ("Japan,trust,9,1,9,,1,0,0,0,,", "the scale has 9 answers, but the file has 4 columns of shares"),
        ("Japan,trust,9,1,4,,0.5,0,0.5,0,0.2,", "the shares add up to 1.2"),
        ("Japan,trust,9,1,4,,1,0,0,0,,\nPeru,trust,9,1,3,,1,0,0,,,", "line 3: the topic 'trust' has another scale"),
    ],
)
def test_a_row_whose_scale_cannot_be_used_is_named(tmp_path: Path, row: str, message: str) -> None:
    with pytest.raises(ImportFileError, match=re.escape(message)):
        import_share_table(write(tmp_path, f"{row}\n", SCALES_HEADER))


def test_a_scale_is_in_the_rows_or_in_the_options(tmp_path: Path) -> None:
    path = write(tmp_path, "Japan,trust,9,1,4,,1,0,0,0,,\n", SCALES_HEADER)
    with pytest.raises(UsageError, match="has a scale in each row"):
        import_share_table(path, 1, 4)
    with pytest.raises(UsageError, match="needs the scale of the answers"):
        import_share_table(write(tmp_path, "Japan,divorce,9,,,1,0,0\n"))


def test_codes_become_names_and_columns_of_nonresponse_have_many_names(tmp_path: Path) -> None:
    rows = "076,divorce,0.5,0.25,0.15,0.1\nJP,divorce,40,25,25,10\n"
    for name in ("DK/Refused", "Don’t know/No answer", "DON'T_KNOW", "No opinion"):
        path = write(tmp_path, rows, f"country,topic,p1,p2,p3,{name}\n")
        imported = import_share_table(path, 1, 3, country_codes="iso-3166-numeric")
        assert [cell.cell.country for cell in imported.survey.cells] == ["Brazil", "Japan"]
        assert [cell.nonresponse for cell in imported.survey.cells] == pytest.approx([0.1, 0.1])
        assert not any("remainder" in note for note in imported.notes)


@pytest.mark.parametrize("number", ["840", "840.0", "076", "1001"])
def test_a_number_is_a_country_only_where_the_user_names_its_list(tmp_path: Path, number: str) -> None:
    path = write(tmp_path, f"Japan,divorce,50,,,0.5,0.25,0.25\n{number},divorce,50,,,0.5,0.25,0.25\n")
    with pytest.raises(ImportFileError, match=f"line 3, column 'country': {number} is a number without") as caught:
        import_share_table(path, 1, 3)
    assert "--country-codes iso-3166-numeric" in caught.value.how_to_fix
    with pytest.raises(ImportFileError, match="999 is not a country in ISO 3166"):
        import_share_table(write(tmp_path, "999,divorce,,,,0.5,0.25,0.25\n"), 1, 3, country_codes="iso-3166-numeric")


def test_names_that_are_no_country_are_listed_with_their_rows(tmp_path: Path) -> None:
    names = ("Japan", "Total", "EU-28", "All countries", "Frnace", "Total")
    rows = "".join(f"{name},topic {number},50,,,0.5,0.25,0.25\n" for number, name in enumerate(names))
    [note] = import_share_table(write(tmp_path, rows), 1, 3).notes
    assert note == (
        "names that are no known country: Total: unknown name, 2 rows; EU-28: unknown name, 1 row; "
        "All countries: unknown name, 1 row; Frnace: unknown name, similar to France, 1 row"
    )


def test_a_row_without_shares_is_of_a_question_that_was_not_asked(tmp_path: Path) -> None:
    rows = "Japan,divorce,50,,,0.5,0.25,0.25\nPeru,divorce,50,,,,,\nPeru,war,,,,,,\n"
    imported = import_share_table(write(tmp_path, rows), 1, 3)
    assert [cell.cell for cell in imported.survey.cells] == [Cell("Japan", "divorce")]
    assert imported.notes == ("left out 2 rows without any share: people were not asked",)
    with pytest.raises(ImportFileError, match="column 'p1': is empty") as caught:
        import_share_table(write(tmp_path, "Peru,divorce,50,,,,0.5,0.5\n"), 1, 3)
    assert caught.value.how_to_fix.endswith("leave all shares of the row empty, or leave out the row.")


@pytest.mark.parametrize("columns", ["acceptable,not acceptable,n", "n,p1,p2", "% yes,% no"])
def test_a_table_of_shares_that_is_loaded_as_scores_names_the_option(tmp_path: Path, columns: str) -> None:
    row = ",".join(["Germany", "divorce", *["40"] * len(columns.split(","))])
    path = write(tmp_path, f"{row}\n", f"country,topic,{columns}\n")
    with pytest.raises(ImportFileError, match="the column 'score' is missing") as caught:
        load_survey(path)
    assert "auditor surveys import FILE --shares" in caught.value.how_to_fix


def test_a_misspelt_score_is_still_named(tmp_path: Path) -> None:
    path = write(tmp_path, "Germany,divorce,0.5,x,y\n", "country,topic,scroe,note,source\n")
    with pytest.raises(ImportFileError, match="unknown column 'scroe'"):
        load_survey(path)
