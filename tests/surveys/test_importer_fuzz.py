"""A good file that is renamed, reordered or blanked gives the same figures, or is refused with the row named."""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from auditor.errors import ImportFileError
from auditor.surveys import country_code
from auditor.surveys.importer import import_survey

ANSWERS = ["Agree strongly", "Agree", "Disagree", "Disagree strongly", "Don't know", "No answer"]
SPELLINGS = {"NOR": ["NO", "Norway", "NOR", "Norvège", "NORWAY", "norge"], "DEU": ["DE", "Germany", "DEU", "GER"]}
MAPPING = """title = "T"
source = "S"
[columns]
country = ["cntry"]
weight = "pspwght"
[topics]
q1 = "x"
q2 = "y"
[choices]
a = { labels = ["Agree strongly"], score = 1 }
b = { labels = ["Agree"], score = 0.5 }
c = { labels = ["Disagree"], score = -0.5 }
d = { labels = ["Disagree strongly"], score = -1 }
[nonresponse]
"dk" = { labels = ["Don't know"] }
"na" = { labels = ["No answer"] }
"""
Rows = list[dict[str, str]]
N_ROWS = 24
UNIFORM = settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def make_rows() -> Rows:
    """A good file: two countries, weights, and answers to two questions."""
    return [
        {
            "cntry": "NO" if i % 3 else "DE",
            "pspwght": f"{0.5 + i % 4 / 4}",
            "q1": ANSWERS[i % 6],
            "q2": ANSWERS[(2 * i + i // 5) % 5],
        }
        for i in range(N_ROWS)
    ]


@cache
def good_figures(folder: Path) -> dict[tuple[str, str], tuple[object, ...]]:
    """The figures of the good file."""
    return import_figures(folder, make_rows())


def import_figures(folder: Path, rows: Rows) -> dict[tuple[str, str], tuple[object, ...]]:
    """Write and import rows; return the figures of each cell, rounded, by country code and topic."""
    (folder / "my.toml").write_text(MAPPING, encoding="utf-8")
    with open(folder / "my.csv", "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    imported = import_survey(folder / "my.csv", folder / "my.toml", n_imputations=0, n_splits=2)
    assert imported.distributions is not None
    shares = imported.distributions.by_cell()
    return {
        (country_code(cell.cell.country) or "", cell.cell.topic): (
            cell.n,
            *(round(figure or 0.0, 9) for figure in (cell.score, cell.standard_error, cell.nonresponse)),
            *(round(share, 9) for share in shares[cell.cell].shares),
        )
        for cell in imported.survey.cells
    }


@UNIFORM
@given(st.permutations(range(N_ROWS)), st.permutations(["cntry", "pspwght", "q1", "q2"]))
def test_the_order_of_rows_and_columns_has_no_effect(tmp_path: Path, rows: list[int], columns: list[str]) -> None:
    good = make_rows()
    reordered = [{column: good[row][column] for column in columns} for row in rows]
    assert import_figures(tmp_path, reordered) == good_figures(tmp_path)


@UNIFORM
@given(st.data())
def test_other_forms_of_names_and_labels_have_no_effect(tmp_path: Path, data: st.DataObject) -> None:
    def respell(text: str) -> str:
        """Another case, white space or apostrophe."""
        forms = [text, text.upper(), text.lower(), text.replace(" ", "  "), f" {text} ", text.replace("'", "’")]
        forms += [text.replace(" ", "\u00a0"), text.replace("A", "\uff21"), text.replace("'", "´")]
        return data.draw(st.sampled_from(forms))

    spellings = {code: data.draw(st.sampled_from(names)) for code, names in SPELLINGS.items()}
    names = {name: data.draw(st.sampled_from([name, name.upper(), name.title()])) for name in make_rows()[0]}
    renamed = [
        {
            names["cntry"]: spellings["NOR" if row["cntry"] == "NO" else "DEU"],
            names["pspwght"]: row["pspwght"],
            names["q1"]: respell(row["q1"]),
            names["q2"]: respell(row["q2"]),
        }
        for row in make_rows()
    ]
    assert import_figures(tmp_path, renamed) == good_figures(tmp_path)


BLANKS = ["", " ", "NA", ".", "N/A"]
OTHER_ANSWERS = ["Agre", "Agree a lot", "agree_strongly", "No", "Don't", "Dont know", "1", "-1", "Refusal", "Yes!"]


@UNIFORM
@given(st.integers(0, N_ROWS - 1), st.sampled_from(["q1", "q2"]), st.sampled_from([*BLANKS, *OTHER_ANSWERS]))
def test_an_empty_or_another_answer_is_refused_with_its_row(tmp_path: Path, row: int, column: str, text: str) -> None:
    rows = make_rows()
    rows[row][column] = text
    problem = r" \(1 row\)" if text in BLANKS else f": '{text}'"
    with pytest.raises(ImportFileError, match=rf"row {row + 1}, column '{column}'{problem}"):
        import_figures(tmp_path, rows)


@UNIFORM
@given(st.integers(0, N_ROWS - 1), st.sampled_from(["Norwegen", "Norway", "Deutschland", "578", "276", "NA", "Kongo"]))
def test_another_spelling_of_a_country_in_one_row_is_refused_with_its_row(tmp_path: Path, row: int, name: str) -> None:
    rows = make_rows()
    rows[row]["cntry"] = name
    other_rows = [
        index for index in range(N_ROWS) if index != row and country_code(rows[index]["cntry"]) == country_code(name)
    ]
    # Of two spellings, the error names the row with the second one.
    expected_row = other_rows[0] if other_rows and row < other_rows[0] and not name.isdigit() else row
    with pytest.raises(ImportFileError, match=rf"row {expected_row + 1}, column 'cntry'"):
        import_figures(tmp_path, rows)


@UNIFORM
@given(st.integers(0, N_ROWS - 1), st.sampled_from(["q1", "q2", "cntry", "pspwght"]))
def test_a_renamed_column_is_refused_with_its_name(tmp_path: Path, row: int, column: str) -> None:
    rows = [{f"{name}_x" if name == column else name: text for name, text in row.items()} for row in make_rows()]
    with pytest.raises(ImportFileError, match=rf"has no column '{column}'"):
        import_figures(tmp_path, rows)


@UNIFORM
@given(st.integers(0, N_ROWS - 1), st.sampled_from(["cntry", "pspwght"]))
def test_a_row_without_country_or_weight_is_left_out_and_counted(tmp_path: Path, row: int, column: str) -> None:
    rows = make_rows()
    rows[row][column] = ""
    figures = import_figures(tmp_path, rows)
    imported = import_survey(tmp_path / "my.csv", tmp_path / "my.toml", n_imputations=0, n_splits=2)
    assert imported.facts.left_out == {"no country" if column == "cntry" else "no weight": 1}
    assert figures == import_figures(tmp_path, [other for index, other in enumerate(make_rows()) if index != row])
