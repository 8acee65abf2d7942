"""A file can be looked at before it is imported, and a draft of a mapping is refused until it was edited."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pandas as pd
import pyreadstat
import pytest

from auditor.domain import Cell
from auditor.errors import ImportFileError, SurveyError
from auditor.surveys import load_mapping
from auditor.surveys.importer import import_survey
from auditor.surveys.mapping_draft import copy_mapping, draft_mapping
from auditor.surveys.preview import ColumnPreview, preview_file
from tests.support.known import known
from tests.surveys import official_files

ESS = (
    "idno,cntry,essround,pspwght,age,freehms,left\n"
    + "".join(f"{i},NO,9,0.9,{i},Agree strongly,{i % 11}\n" for i in range(1, 61))
    + "61,SE,10,1.1,61,Disagree,10\n62,SE,10,1.1,62,Refusal,77\n63,SE,10,1,63,,1\n"
)


@pytest.fixture
def ess(tmp_path: Path) -> Path:
    path = tmp_path / "ess.csv"
    path.write_text(ESS, encoding="utf-8")
    return path


def by_name(columns: tuple[ColumnPreview, ...]) -> dict[str, ColumnPreview]:
    return {column.name: column for column in columns}


def test_columns_are_recognized_and_values_that_may_identify_people_are_not_shown(ess: Path) -> None:
    preview = preview_file(ess)
    columns = by_name(preview.columns)
    assert preview.n_rows == 63
    assert {name: column.role for name, column in columns.items() if column.role} == {
        "cntry": "country", "essround": "wave", "pspwght": "weight",
    }  # fmt: skip
    assert columns["idno"].values is None
    assert columns["age"].values is None
    assert [(v.value, v.n_rows) for v in known(columns["freehms"].values)] == [
        ("Agree strongly", 60), ("Disagree", 1), ("Refusal", 1), ("(empty)", 1),
    ]  # fmt: skip
    assert known(columns["cntry"].values)[0].meaning == "Norway (ISO 3166 code)"
    assert columns["pspwght"].number_range == (0.9, 1.1)
    requested = by_name(preview_file(ess, shown_columns=["AGE"]).columns)
    assert requested["age"].values is not None
    with pytest.raises(ImportFileError, match=r"no column 'agee'\. Did you mean 'age'"):
        preview_file(ess, shown_columns=["agee"])


def test_a_draft_is_refused_until_it_was_edited(ess: Path, tmp_path: Path) -> None:
    draft = tmp_path / "my.toml"
    draft.write_text(draft_mapping(ess, preview_file(ess), ["freehms"]), encoding="utf-8")
    with pytest.raises(SurveyError, match=r"choices\.Agree strongly\.score"):
        import_survey(ess, draft)
    with_scores = draft.read_text(encoding="utf-8").replace('"?"', "1", 1).replace('"?"', "-1", 1)
    draft.write_text(with_scores, encoding="utf-8")
    with pytest.raises(SurveyError, match=r"my.toml: the mapping is a draft\. Check every line, then remove"):
        import_survey(ess, draft)
    edited = with_scores.replace("draft = true\n", "").replace("# blank", "blank")
    draft.write_text(edited, encoding="utf-8")
    imported = import_survey(ess, draft)
    assert imported.survey.scores == {Cell("Sweden", "freehms"): -1.0}
    assert imported.survey.cells[0].nonresponse == pytest.approx(2.1 / 3.2)


def test_a_draft_of_a_scale_has_its_ends_and_nonresponse(tmp_path: Path) -> None:
    path = official_files.wvs_sav(tmp_path / "w.sav", official_files.wvs_columns(200))
    draft = tmp_path / "my.toml"
    draft.write_text(draft_mapping(path, preview_file(path), ["Q182", "Q183"]), encoding="utf-8")
    mapping = load_mapping(draft)
    assert mapping.draft
    assert mapping.answers is not None
    assert (mapping.answers.low, mapping.answers.high) == (1, 10)
    assert mapping.answers.low_label == "Never justifiable"
    assert mapping.columns.weight == "W_WEIGHT"
    assert not mapping.nonresponse["Not asked"].asked
    text = draft.read_text(encoding="utf-8").replace("draft = true\n", "")
    draft.write_text(re.sub(r"(?m)^country = .*$", 'country = ["B_COUNTRY_ALPHA"]', text), encoding="utf-8")
    scores, expected = import_survey(path, draft).survey.scores, import_survey(path, "wvs7").survey.scores
    assert scores[Cell("Nigeria", "Q182")] == expected[Cell("Nigeria", "homosexuality")]


def test_a_draft_of_labelled_choices_has_codes_and_labels(tmp_path: Path) -> None:
    path = official_files.pew_sav(tmp_path / "p.sav", official_files.pew_columns(100))
    text = draft_mapping(path, preview_file(path), official_files.PEW_QUESTIONS)
    assert '"Morally acceptable" = { score = "?", codes = [1], labels = ["Morally acceptable"] }' in text
    assert '"Don’t know" = { codes = [8] }' in text
    assert "# blank = " in text


def test_a_copied_mapping_is_a_draft_too(tmp_path: Path) -> None:
    path = tmp_path / "my.toml"
    path.write_text(copy_mapping("wvs7"), encoding="utf-8")
    assert load_mapping(path).model_copy(update={"draft": False}) == load_mapping("wvs7")
    assert load_mapping(path).draft


def test_under_a_mapping_every_value_says_what_it_becomes(tmp_path: Path) -> None:
    columns = {name: list(values) for name, values in official_files.wvs_columns(60).items()}
    columns["Q182"][3] = 11
    columns["Q260"] = [i % 3 for i in range(60)]
    path = official_files.write_csv(tmp_path / "wvs.csv", columns)
    preview = preview_file(path, load_mapping("wvs7"))
    answers = by_name(preview.columns)["Q182"]
    assert answers.role == "topic: homosexuality"
    meanings = {value.value: (value.meaning, value.is_problem) for value in known(answers.values)}
    assert meanings["11"] == ("no meaning", True)
    assert meanings["1"] == ("score -1", False)
    assert meanings["-1"] == ("nonresponse: don't know", False)
    groups = known(by_name(preview.columns)["Q260"].values)
    assert [(value.value, value.meaning) for value in groups] == [("0", "in no group"), ("1", "men"), ("2", "women")]
    assert "row 4, column 'Q182': '11'" in str(known(preview.problem))
    columns["Q182"][3] = 10
    good = preview_file(official_files.write_csv(path, columns), load_mapping("wvs7"))
    assert good.problem is None
    assert known(good.reading).ungrouped_values == {"sex": {"0": 20}}


def test_missing_values_of_stata_are_kinds_of_nonresponse_by_their_labels(tmp_path: Path) -> None:
    frame = pd.DataFrame({"cntry": ["NO", "NO", "SE", "SE"], "q": [1, 2, "d", "i"]})
    labels: Any = {"q": {1: "Agree", 2: "Disagree", "d": "don't know", "i": "iap"}}
    path, draft = tmp_path / "gss.dta", tmp_path / "my.toml"
    pyreadstat.write_dta(frame, str(path), variable_value_labels=labels, missing_user_values={"q": ["d", "i"]})
    text = draft_mapping(path, preview_file(path)).replace("draft = true\n", "").replace('"?"', "1", 1)
    assert '"iap" = { labels = ["iap"], asked = false }' in text
    draft.write_text(text.replace('"?"', "-1"), encoding="utf-8")
    imported = import_survey(path, draft)
    assert [cell.nonresponse for cell in imported.survey.cells] == [0.0, 1.0]
    assert known(imported.reading).answer_counts == {"don't know": 1, "iap": 1, "missing": 0}
