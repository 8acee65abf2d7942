"""Answers and groups by labels and codes mean what the mapping says, in whatever order it says it."""

from __future__ import annotations

import tomllib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from pydantic import ValidationError

from auditor.domain import Cell
from auditor.errors import ImportFileError, SurveyError
from auditor.surveys import load_mapping
from auditor.surveys.answer_codes import NO_GROUP, decode_groups
from auditor.surveys.column_reader import ColumnValue, DistinctValueColumn
from auditor.surveys.importer import ImportedSurvey, import_survey
from auditor.surveys.mapping import GroupDimension, LabelIndex, SurveyMapping
from auditor.surveys.writer import write_survey
from tests.surveys import official_files

HEAD = 'title = "T"\nsource = "S"\n'
COLUMNS = '[columns]\ncountry = ["cntry"]\n[topics]\nq = "divorce"\n'
ANSWERS = ["Agree strongly", "Agree", "Neither agree nor disagree", "Disagree", "Disagree strongly"]
COUNTS = [20, 40, 10, 20, 10]
CHOICES = [f'"{label.casefold()}" = {{ labels = ["{label}"], score = {1 - i / 2} }}' for i, label in enumerate(ANSWERS)]
NONRESPONSE = [f'"{label.casefold()}" = {{ labels = ["{label}"] }}' for label in ("Refusal", "Don't know", "No answer")]
GROUPS = [
    f'"{label.casefold()}" = {{ labels = ["{label}"], words = "{label}s" }}'
    for label in ("Catholic", "Catholic Orthodox")
]
WVS = load_mapping("wvs7")


def write_labels(folder: Path) -> Path:
    """100 Norwegians of the European Social Survey with an answer, and 30 without; religion in a further column."""
    rows = [label for label, count in zip(ANSWERS, COUNTS, strict=True) for _ in range(count)]
    rows += ["Refusal"] * 6 + ["Don't know"] * 16 + ["No answer"] * 8
    religions = ["Catholic", "Catholic Orthodox"]
    lines = [f"NO,{label},{religions[i % 2]}" for i, label in enumerate(rows)]
    path = folder / "ess.csv"
    path.write_text("cntry,q,religion\n" + "\n".join(lines) + "\n", encoding="utf-8")
    return path


def import_with(folder: Path, mapping: str, data: Path | None = None) -> ImportedSurvey:
    path = folder / "my.toml"
    path.write_text(mapping, encoding="utf-8")
    return import_survey(data or write_labels(folder), path, name="s")


def make_mapping(choices: list[str], nonresponse: list[str], groups: list[str]) -> str:
    """A mapping with its entries in a given order."""
    tables = {"choices": choices, "nonresponse": nonresponse, "groups.religion.values": groups}
    texts = [f"[{name}]\n" + "\n".join(entries) + "\n" for name, entries in tables.items()]
    return HEAD + COLUMNS + texts[0] + texts[1] + '[groups.religion]\ncolumn = "religion"\n' + texts[2]


def test_an_exact_label_wins_over_a_beginning(tmp_path: Path) -> None:
    imported = import_with(tmp_path, make_mapping(CHOICES, NONRESPONSE, GROUPS))
    [cell] = imported.survey.cells
    # (20 × 1 + 40 × 0.5 − 20 × 0.5 − 10 × 1) / 100
    assert cell.score == pytest.approx(0.2)
    assert cell.nonresponse == pytest.approx(15 / 65)
    kinds = imported.facts.by_cell[Cell("Norway", "divorce")].kinds
    assert kinds["no answer"] == pytest.approx(4 / 65)
    assert imported.distributions is not None
    assert imported.distributions.without_group == {"religion": 0}
    shares = imported.distributions.by_cell("religion", "catholic orthodox")[Cell("Norway", "divorce")]
    assert shares.n == 50
    assert shares.shares[0] == pytest.approx(5 / 50)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.permutations(CHOICES), st.permutations(NONRESPONSE), st.permutations(GROUPS))
def test_the_order_of_entries_changes_no_figure(
    tmp_path: Path, choices: list[str], nonresponse: list[str], groups: list[str]
) -> None:
    folders = (tmp_path / "sorted", tmp_path / "permuted")
    mappings = (make_mapping(CHOICES, NONRESPONSE, GROUPS), make_mapping(choices, nonresponse, groups))
    for folder, mapping in zip(folders, mappings, strict=True):
        folder.mkdir(exist_ok=True)
        imported = import_with(folder, mapping)
        write_survey(imported.survey, folder / "s.csv", imported.facts, imported.distributions, overwrite=True)
    for name in ("s.csv", "s.survey.toml", "s.facts.json", "s.distributions.json"):
        assert (folders[0] / name).read_bytes() == (folders[1] / name).read_bytes()


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data(), st.sampled_from(["wvs7", "pew2013"]))
def test_the_order_of_entries_of_built_in_mappings_has_no_effect(data: st.DataObject, name: str) -> None:
    mapping = load_mapping(name)
    content = mapping.model_dump(by_alias=True)
    for table in ("choices", "nonresponse"):
        if content[table]:
            content[table] = dict(data.draw(st.permutations(list(content[table].items()))))
    for dimension in content["groups"].values():
        dimension["values"] = dict(data.draw(st.permutations(list(dimension["values"].items()))))
    permuted = SurveyMapping.model_validate(content)
    assert permuted.model_dump_json() == mapping.model_dump_json()


@pytest.mark.parametrize(
    "label", ["agree  STRONGLY", " Agree strongly ", "Agree\u00a0strongly", "Ａgree strongly"]
)  # fmt: skip
def test_case_space_and_unicode_form_are_ignored(label: str) -> None:
    mapping = make_mapping(CHOICES, NONRESPONSE, GROUPS)
    index = LabelIndex([("strongly", load_text(mapping).choices["agree strongly"])])  # type: ignore[index]
    assert index.find_meanings(label) == ["strongly"]


@pytest.mark.parametrize("label", ["Don’t know", "DON´T KNOW", "Don`t  know", "Donʼt know", "don＇t know"])
def test_apostrophes_are_alike(label: str) -> None:
    kind = load_text(make_mapping(CHOICES, NONRESPONSE, GROUPS)).nonresponse["don't know"]
    assert LabelIndex([("kind", kind)]).find_meanings(label) == ["kind"]


def load_text(mapping: str) -> SurveyMapping:
    return SurveyMapping.model_validate(tomllib.loads(mapping))


def test_a_beginning_counts_only_where_the_entry_says_so_and_if_one_fits(tmp_path: Path) -> None:
    data = tmp_path / "a.csv"
    data.write_text("cntry,q\nNO,No\nNO,No (never)\nNO,Yes\nNO,No answer\nNO,No opinion\n", encoding="utf-8")
    strict = '[choices]\nyes = { labels = ["Yes"], score = 1 }\nno = { labels = ["No"], score = -1 }\n'
    with pytest.raises(ImportFileError) as caught:
        import_with(tmp_path, HEAD + COLUMNS + strict, data)
    message = str(caught.value)
    assert "row 2, column 'q': 'No (never)' is neither one of the choices" in message
    assert "row 4, column 'q': 'No answer' (1 row)" in message
    assert "row 5, column 'q': 'No opinion' (1 row)" in message
    assert 'begins with a label of choices.no: add match = "beginning"' in message
    loose = strict.replace('["No"]', '["No"], match = "beginning"')
    kinds = '[nonresponse]\nx = { labels = ["No answer", "No opinion"] }\n'
    [cell] = import_with(tmp_path, HEAD + COLUMNS + loose + kinds, data).survey.cells
    assert cell.n == 3
    assert cell.score == pytest.approx(-1 / 3)
    data.write_text("cntry,q\nNO,No\nNO,No answer (volunteered)\n", encoding="utf-8")
    both = loose + kinds.replace("] }", '], match = "beginning" }')
    with pytest.raises(ImportFileError, match=r"begins with labels of nonresponse\.x and choices\.no"):
        import_with(tmp_path, HEAD + COLUMNS + both, data)


def test_labels_of_the_ends_are_exact_too(tmp_path: Path) -> None:
    data = tmp_path / "a.csv"
    data.write_text("cntry,q\nNO,Never\nNO,5\nNO,Never heard of it\n", encoding="utf-8")
    scale = '[answers]\nlow = 1\nhigh = 5\nlow_label = "never"\nhigh_label = "always"\n'
    with pytest.raises(ImportFileError, match=r"row 3, column 'q': 'Never heard of it' is neither"):
        import_with(tmp_path, HEAD + COLUMNS + scale, data)
    kinds = '[nonresponse]\n"unknown" = { labels = ["Never heard of it"] }\n'
    [cell] = import_with(tmp_path, HEAD + COLUMNS + scale + kinds, data).survey.cells
    assert (cell.n, cell.score) == (2, 0.0)


def test_labels_that_contradict_the_scale_stop_the_import(tmp_path: Path) -> None:
    columns = official_files.wvs_columns(60)
    labels: official_files.Labels = {1: "Never justifiable", 2: "Always justifiable"}
    path = official_files.write_sav(tmp_path / "w.sav", columns, dict.fromkeys(official_files.WVS_QUESTIONS, labels))
    with pytest.raises(
        ImportFileError, match=r"'Q177': the labels of the ends of the scale are at the codes 1 \('Never"
    ):
        import_survey(path)


def test_all_values_without_a_meaning_are_listed_with_counts(tmp_path: Path) -> None:
    columns = {k: list(v) for k, v in official_files.wvs_columns(60).items()}
    columns["Q182"][6] = columns["Q182"][8] = 11
    columns["Q190"][1] = "often"
    with pytest.raises(ImportFileError) as caught:
        import_survey(official_files.write_csv(tmp_path / "wvs.csv", columns))
    assert "row 7, column 'Q182': '11'" in str(caught.value)
    assert "(2 rows); row 2, column 'Q190': 'often' (1 row)." in str(caught.value)


def test_a_label_with_two_meanings_is_refused(tmp_path: Path) -> None:
    mapping = make_mapping(CHOICES, [*NONRESPONSE, 'x = { labels = ["AGREE"] }'], GROUPS)
    with pytest.raises(SurveyError, match="the label 'agree' is listed with two meanings"):
        import_with(tmp_path, mapping)


def test_written_files_of_built_in_mappings_do_not_change(tmp_path: Path) -> None:
    imported = import_survey(official_files.wvs_sav(tmp_path / "wvs.sav", official_files.wvs_columns(120)))
    kinds = imported.facts.cells[0].kinds
    assert list(kinds) == ["don't know", "no answer", "not applicable", "not asked", "missing"]
    assert imported.distributions is not None
    assert imported.distributions.groups == {}


def make_column(
    name: str, values: list[ColumnValue], labels: dict[ColumnValue, str] | None = None
) -> DistinctValueColumn:
    """A column in which each value occurs once."""
    index = np.arange(len(values), dtype=np.int32)
    return DistinctValueColumn(name, tuple(values), labels or {}, index, index.astype(np.int64) + 1)


@pytest.mark.parametrize(
    ("column", "values", "dimension", "groups"),
    [
        ("q260", [1.0, 2.0, "2", -2.0, None], "sex", ["men", "women", "women", None, None]),
        ("Q262", [17.0, 18.0, 29.0, 30.0, 120.0, -1.0], "age", [None, "18-29", "18-29", "30-49", "50+", None]),
        ("Q275", [0.0, 5.0, 8.0, 9.0], "education", ["lower", "middle", "higher", None]),
        ("Q288", [3.0, 4.0, 10.0], "income", ["low", "middle", "high"]),
        ("Q289", [0.0, 5.0, 8.0], "religion", ["none", "Muslim", None]),
        ("H_URBRURAL", [1.0, 2.0], "settlement", ["urban", "rural"]),
    ],
)
def test_the_groups_of_the_world_values_survey(
    column: str, values: list[ColumnValue], dimension: str, groups: list[str | None]
) -> None:
    decoded = decode_groups([make_column(column, values)], WVS)
    names = list(WVS.groups[dimension].words_by_group)
    assert list(decoded) == [dimension]
    assert [None if position == NO_GROUP else names[position] for position in decoded[dimension]] == groups


def test_a_label_wins_over_the_code() -> None:
    column = make_column("Q260", [1.0, 2.0, 3.0], {1.0: "Female", 2.0: "Male", 3.0: "Other"})
    assert list(decode_groups([column], WVS)["sex"]) == [1, 0, NO_GROUP]
    unknown = make_column("Q260", [1.0], {1.0: "Other"})
    assert list(decode_groups([unknown], WVS)["sex"]) == [NO_GROUP], "its code may mean something else here"


def test_a_file_without_the_column_has_no_groups() -> None:
    assert decode_groups([], WVS) == {}


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"column": "Q1"}, "exactly one of the tables"),
        ({"column": "Q1", "values": {"a": {"words": "a"}}, "bands": {"b": {"from": 1, "to": 2, "words": "b"}}},
         "one of"),
        ({"column": "Q1", "values": {"a": {"codes": [1], "words": "a"}, "b": {"codes": [1], "words": "b"}}},
         "the code 1 is in two groups"),
        ({"column": "Q1", "bands": {"a": {"from": 1, "to": 5, "words": "a"}, "b": {"from": 5, "to": 9, "words": "b"}}},
         "'a' and 'b' overlap"),
    ],
)  # fmt: skip
def test_an_ambiguous_dimension_is_refused(table: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        GroupDimension.model_validate(table)


def test_other_mappings_may_have_no_groups() -> None:
    assert isinstance(load_mapping("pew2013"), SurveyMapping)
    assert load_mapping("pew2013").groups == {}
