"""Official files become surveys whose figures statsmodels computes too."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import pytest
from statsmodels.stats.weightstats import DescrStatsW

from auditor.domain import Cell
from auditor.errors import ImportFileError, SurveyError
from auditor.surveys import load_distributions, load_mapping, load_survey, write_survey
from auditor.surveys.importer import ImportedSurvey, import_survey
from tests.support.known import known
from tests.support.linearised_error import linearised_error
from tests.surveys import official_files

EXACT = 1e-9
WVS_NAMES = {"DEU": "Germany", "NGA": "Nigeria", "TWN": "Taiwan", "NIR": "Northern Ireland"}
WVS_KINDS = {"don't know": -1, "no answer": -2, "not asked": -4, "missing": -5}


@pytest.fixture(scope="module")
def wvs() -> official_files.Columns:
    return official_files.wvs_columns()


@pytest.fixture(scope="module", params=["csv", "sav"])
def wvs_import(
    request: pytest.FixtureRequest, wvs: official_files.Columns, tmp_path_factory: pytest.TempPathFactory
) -> ImportedSurvey:
    folder = tmp_path_factory.mktemp("wvs")
    if request.param == "csv":
        return import_survey(official_files.write_csv(folder / "wvs.csv", wvs))
    return import_survey(official_files.wvs_sav(folder / "wvs.sav", wvs))


def test_every_wvs_cell_equals_statsmodels(wvs: official_files.Columns, wvs_import: ImportedSurvey) -> None:
    frame = pd.DataFrame(wvs)
    cells = {c.cell: c for c in wvs_import.survey.cells}
    facts = wvs_import.facts.by_cell
    assert len(cells) == 4 * 19
    for code, country in WVS_NAMES.items():
        people = frame[code == frame.B_COUNTRY_ALPHA]
        for question, topic in load_mapping("wvs7").topic_by_column.items():
            cell, fact = cells[Cell(country, topic)], facts[Cell(country, topic)]
            answered = people[people[question] >= 1]
            for kind, number in WVS_KINDS.items():
                expected = DescrStatsW((people[question] == number).astype(float), people.W_WEIGHT).mean
                assert fact.kinds[kind] == pytest.approx(expected, abs=EXACT)
            if answered.empty:
                assert (country, question) == ("Germany", "Q195")
                assert (cell.score, cell.n, cell.nonresponse) == (None, 0, None)
                assert (fact.neutral, fact.low, fact.high, fact.imputed) == (None, None, None, None)
                continue
            stats = DescrStatsW((answered[question] - 5.5) / 4.5, answered.W_WEIGHT)
            assert cell.score == pytest.approx(stats.mean, abs=EXACT)
            expected_error = linearised_error((answered[question] - 5.5) / 4.5, answered.W_WEIGHT)
            assert cell.standard_error == pytest.approx(expected_error, abs=EXACT)
            assert cell.n == len(answered)
            asked = people[people[question] != -4]
            silent = DescrStatsW((asked[question] < 0).astype(float), asked.W_WEIGHT).mean
            assert cell.nonresponse == pytest.approx(silent, abs=EXACT)


def test_every_treatment_equals_statsmodels(wvs: official_files.Columns, wvs_import: ImportedSurvey) -> None:
    frame = pd.DataFrame(wvs)
    people = frame[(frame.B_COUNTRY_ALPHA == "NGA") & (frame.Q182 != -4)]
    fact = wvs_import.facts.by_cell[Cell("Nigeria", "homosexuality")]
    scores = (people.Q182 - 5.5) / 4.5
    for end, value in (("neutral", 0.0), ("low", -1.0), ("high", 1.0)):
        completed = scores.where(people.Q182 > 0, value)
        assert getattr(fact, end) == pytest.approx(DescrStatsW(completed, people.W_WEIGHT).mean, abs=EXACT)
        if end == "neutral":
            expected_error = linearised_error(completed, people.W_WEIGHT)
            assert fact.neutral_error == pytest.approx(expected_error, abs=EXACT)
    answered = people[people.Q182 > 0]
    expected_error = linearised_error((answered.Q182 - 5.5) / 4.5, answered.W_WEIGHT)
    assert fact.design_error == pytest.approx(expected_error, abs=EXACT)
    weight = answered.W_WEIGHT
    assert fact.n_effective == pytest.approx(weight.sum() ** 2 / (weight**2).sum(), abs=EXACT)
    assert known(fact.low) < known(fact.imputed) < known(fact.high)


@pytest.fixture(scope="module")
def pew() -> official_files.Columns:
    return official_files.pew_columns()


def test_pew_shares_and_scores_equal_statsmodels(pew: official_files.Columns, tmp_path: Path) -> None:
    imported = import_survey(official_files.pew_sav(tmp_path / "pew.sav", pew), "pew2013")
    assert set(imported.survey.countries) == set(official_files.PEW_COUNTRIES.values())
    frame = pd.DataFrame(pew)
    cells, facts = {c.cell: c for c in imported.survey.cells}, imported.facts.by_cell
    for code, country in official_files.PEW_COUNTRIES.items():
        people = frame[frame.country == code]
        for question, topic in load_mapping("pew2013").topic_by_column.items():
            answers, cell = people[question], cells[Cell(country, topic)]
            stats = {
                value: DescrStatsW((answers == value).astype(float), people.weight).mean for value in (1, 2, 3, 4, 8, 9)
            }
            assert cell.acceptable == pytest.approx(stats[1], abs=EXACT)
            assert cell.unacceptable == pytest.approx(stats[2], abs=EXACT)
            assert cell.not_a_moral_issue == pytest.approx(stats[3], abs=EXACT)
            assert cell.nonresponse == pytest.approx(1 - stats[1] - stats[2] - stats[3], abs=EXACT)
            kinds = facts[cell.cell].kinds
            assert kinds["depends"] == pytest.approx(stats[4], abs=EXACT)
            assert kinds["don't know"] == pytest.approx(stats[8], abs=EXACT)
            assert kinds["refused"] == pytest.approx(stats[9], abs=EXACT)
            assert sum(kinds.values()) == pytest.approx(cell.nonresponse, abs=EXACT)
            answered = people[answers.isin([1, 2, 3])]
            scores = answered[question].map({1: 1.0, 2: -1.0, 3: 0.0})
            assert cell.score == pytest.approx(DescrStatsW(scores, answered.weight).mean, abs=EXACT)
            assert cell.standard_error == pytest.approx(linearised_error(scores, answered.weight), abs=EXACT)
            assert cell.n == len(answered)


def test_labels_of_the_file_decide_what_a_code_means(pew: official_files.Columns, tmp_path: Path) -> None:
    # The same people in a file that counts its codes the other way round.
    turned = {1: 2, 2: 1}
    swapped = dict(pew) | {q: [turned.get(v, v) for v in pew[q]] for q in official_files.PEW_QUESTIONS}
    labels: official_files.Labels = {
        turned.get(int(code), code): text for code, text in official_files.PEW_LABELS.items()
    }
    named = {"country": official_files.PEW_COUNTRIES, **dict.fromkeys(official_files.PEW_QUESTIONS, labels)}
    straight = import_survey(official_files.pew_sav(tmp_path / "a.sav", pew), "pew2013", name="pew")
    other = import_survey(official_files.write_sav(tmp_path / "b.sav", swapped, named), "pew2013", name="pew")
    assert other.survey == straight.survey


def test_labels_of_the_ends_turn_a_scale(wvs: official_files.Columns, tmp_path: Path) -> None:
    turned: official_files.Labels = {
        1: "Always justifiable", 10: "Never justifiable", -1: "DK", -2: "NA", -5: "Unknown",
    }  # fmt: skip
    path = official_files.write_sav(tmp_path / "t.sav", wvs, dict.fromkeys(official_files.WVS_QUESTIONS, turned))
    straight = import_survey(official_files.write_csv(tmp_path / "s.csv", wvs)).survey.scores
    for cell, score in import_survey(path).survey.scores.items():
        assert score == pytest.approx(-straight[cell], abs=1e-12)


def test_a_csv_of_labels_is_read_too(pew: official_files.Columns, tmp_path: Path) -> None:
    words = official_files.PEW_LABELS
    spelt: official_files.Columns = {
        "COUNTRY": [official_files.PEW_COUNTRIES[c] for c in pew["country"]],
        "Weight": pew["weight"],
        **{q.lower(): [words.get(v, "") for v in pew[q]] for q in official_files.PEW_QUESTIONS},
    }
    straight = import_survey(official_files.pew_sav(tmp_path / "pew.sav", pew), "pew2013")
    assert import_survey(official_files.write_csv(tmp_path / "pew.csv", spelt), "pew2013").survey == straight.survey


def test_semicolons_and_decimal_commas_are_understood(wvs: official_files.Columns, tmp_path: Path) -> None:
    european = dict(wvs) | {"W_WEIGHT": [str(w).replace(".", ",") for w in wvs["W_WEIGHT"]]}
    straight = import_survey(official_files.write_csv(tmp_path / "wvs.csv", wvs))
    (tmp_path / "other").mkdir()
    assert (
        import_survey(official_files.write_csv(tmp_path / "other" / "wvs.csv", european, ";")).survey == straight.survey
    )


def test_numeric_country_codes_do_where_there_are_no_others(wvs: official_files.Columns, tmp_path: Path) -> None:
    without = {k: v for k, v in wvs.items() if k != "B_COUNTRY_ALPHA"}
    imported = import_survey(official_files.write_csv(tmp_path / "wvs.csv", without))
    assert set(imported.survey.countries) == set(WVS_NAMES.values())


def test_rows_that_cannot_be_used_are_counted_by_reason(wvs: official_files.Columns, tmp_path: Path) -> None:
    columns = {k: list(v) for k, v in wvs.items()}
    columns["W_WEIGHT"][:5] = [0, 0, "", "", ""]
    columns["B_COUNTRY_ALPHA"][5:7] = ["", "-4"]
    imported = import_survey(official_files.write_csv(tmp_path / "wvs.csv", columns))
    assert imported.facts.left_out == {"no country": 2, "no weight": 3, "weight of zero": 2}
    assert imported.facts.respondents == 400 - 7


def test_a_mapping_keeps_some_rows_and_needs_no_code(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text(
        'title = "T"\nsource = "S"\nkeep = { wave = [2] }\nblank = "nonresponse"\ncountries = { NA = "Namibia" }\n'
        '[columns]\ncountry = ["land"]\n[topics]\na = "eating meat"\n'
        "[answers]\nlow = 5\nhigh = 1\n[nonresponse]\nrefused = { codes = [9] }\n"
    )
    # Wave 1 has a code that wave 2 has not: rows that are not kept are not judged.
    (tmp_path / "own.csv").write_text("land,wave,a\nNO,2,1\nNO,2.0,2\nNA,2,9\nNA,2,5\nNA,2,\nNA,1,77\n")
    imported = import_survey(tmp_path / "own.csv", tmp_path / "own.toml")
    assert imported.survey.scores == {Cell("Norway", "eating meat"): 0.75, Cell("Namibia", "eating meat"): -1.0}
    assert imported.facts.left_out == {"wave has a value that the mapping excludes": 1}
    namibia = imported.survey.cells[1]
    assert namibia.n == 1
    assert namibia.nonresponse == pytest.approx(2 / 3)
    assert imported.survey.words["eating meat"] == ("eating meat", "eating", "meat")


def test_the_scale_of_the_weights_has_no_effect(wvs: official_files.Columns, tmp_path: Path) -> None:
    """Weights with mean 1, and weights that add up to a population, such as ESS's two."""
    millions = dict(wvs) | {"W_WEIGHT": [w * 20_000 for w in wvs["W_WEIGHT"]]}
    small = import_survey(official_files.write_csv(tmp_path / "wvs.csv", wvs))
    large = import_survey(official_files.write_csv(tmp_path / "big.csv", millions))
    for one, other in zip(small.survey.cells, large.survey.cells, strict=True):
        assert other.score == pytest.approx(one.score, abs=1e-12)
        assert (other.standard_error is None) is (one.standard_error is None)
        if one.standard_error is not None:
            assert other.standard_error == pytest.approx(one.standard_error, rel=1e-9)


DESIGN_MAPPING = """
title = "t"
source = "s"
wording = "Is {topic} acceptable in {country}?"
scale = ["never", "always"]
blank = "not asked"
[columns]
country = ["country"]
weight = "w"
strata = "stratum"
psu = "place"
[topics]
q1 = "divorce"
[answers]
low = 1
high = 3
"""


def write_design_file(path: Path, lines: Sequence[str]) -> tuple[Path, Path]:
    """A file of respondents with strata and sampling units, and its mapping."""
    path.write_text("\n".join(["country,w,stratum,place,q1", *lines]))
    mapping = path.with_suffix(".toml")
    mapping.write_text(DESIGN_MAPPING)
    return path, mapping


def test_strata_and_sampling_units_of_a_country_give_its_standard_errors(tmp_path: Path) -> None:
    """In Chile, by hand: scores 1, 0 | -1, 0 of two places in one stratum, each of weight 1, with mean 0.

    Residuals are x / 4. The places' totals are 1/4 and -1/4, so the variance is 2 / 1 * (1/16 + 1/16) = 1/4. In Peru
    there is no design: four answers 1, 0, -1, 0 have the variance 4 / 3 * 2 / 16 = 1/6. In Mexico, stratum 7 has one
    place, whose total, 1/4, is compared with 0; stratum 8 has totals 0 and -1/4: 1/16 + 2 * (1/64 + 1/64) = 1/8.
    """
    lines = [
        "Chile,1,1,1,3", "Chile,1,1,1,2", "Chile,1,1,2,1", "Chile,1,1,2,2",
        "Peru,1,,,3", "Peru,1,,,2", "Peru,1,,,1", "Peru,1,,,2",
        "Mexico,1,7,1,3", "Mexico,1,7,1,2", "Mexico,1,8,1,2", "Mexico,1,8,2,1",
    ]  # fmt: skip
    imported = import_survey(*write_design_file(tmp_path / "people.csv", lines))
    errors = {c.cell.country: c.standard_error for c in imported.survey.cells}
    assert errors["Chile"] == pytest.approx(0.5)
    assert errors["Peru"] == pytest.approx((1 / 6) ** 0.5)
    assert errors["Mexico"] == pytest.approx((1 / 8) ** 0.5)
    assert imported.facts.notes == (
        "strata of Mexico with one primary sampling unit, which is compared with the country's mean: 7",
    )


def test_a_sampling_unit_that_is_missing_for_some_people_stops_the_import(tmp_path: Path) -> None:
    path, mapping = write_design_file(tmp_path / "people.csv", ["Chile,1,1,1,3", "Chile,1,1,,2"])
    with pytest.raises(ImportFileError, match=r"row 2, column 'place': empty, while other respondents of Chile"):
        import_survey(path, mapping)


def test_the_same_seed_gives_the_same_result_and_another_another(wvs: official_files.Columns, tmp_path: Path) -> None:
    path = official_files.write_csv(tmp_path / "wvs.csv", wvs)
    first, second, other = (import_survey(path, seed=s) for s in (3, 3, 4))
    assert first == second
    assert first.survey == other.survey
    assert first.facts.reliability != other.facts.reliability


SCALES_MAPPING = """
title = "t"
source = "s"
wording = "Is {topic} acceptable in {country}?"
scale = ["never", "always"]
[columns]
country = ["country"]
[answers]
low = 1
high = 3
[nonresponse]
"don't know" = { codes = [9] }
[topics]
q1 = "divorce"
[topics.q2]
topic = "trust"
wording = "How many people in {country} trust others, as regards {topic}?"
scale = ["nobody", "everybody"]
answers = { low = 5, high = 1 }
[topics.q3]
topic = "vote"
[topics.q3.choices]
no = { codes = [1], score = -1 }
maybe = { codes = [2], score = 0 }
yes = { codes = [3], score = 1 }
"""


def test_a_topic_may_have_a_scale_and_a_question_of_its_own(tmp_path: Path) -> None:
    """By hand: divorce 1 and 3 are -1 and +1; trust 5 and 2 are -1 and +0.5; vote 2 and 3 are 0 and +1."""
    (tmp_path / "people.csv").write_text("country,q1,q2,q3\nPeru,1,5,2\nPeru,3,2,3\nPeru,9,9,9\n")
    (tmp_path / "m.toml").write_text(SCALES_MAPPING)
    imported = import_survey(tmp_path / "people.csv", tmp_path / "m.toml")
    assert imported.survey.scores == {
        Cell("Peru", "divorce"): 0.0, Cell("Peru", "trust"): -0.25, Cell("Peru", "vote"): 0.5,
    }  # fmt: skip
    shares = known(imported.distributions)
    assert {topic: scale.is_ordered for topic, scale in shares.scales.items()} == {"trust": True, "vote": False}
    assert [point.name for point in shares.scale_of("trust").points] == ["5", "4", "3", "2", "1"]
    assert shares.by_cell()[Cell("Peru", "trust")].shares == (0.5, 0, 0, 0.5, 0)
    target = tmp_path / "my.csv"
    write_survey(imported.survey, target, imported.facts, shares)
    loaded = load_survey(target)
    assert loaded.topic_questions == imported.survey.topic_questions
    assert loaded.question_about("trust").scale == ("nobody", "everybody")
    assert loaded.question_about("divorce").wording == loaded.wording


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("codes = [9]", "codes = [2]", "the answer code 2 is listed with two meanings"),
        ('topic = "vote"', 'topic = "trust"', "two columns have the topic 'trust'"),
        ('topic = "vote"', 'topic = "vote"\nanswers = { low = 1, high = 2 }', "only one of 'answers' and 'choices'"),
    ],
)
def test_a_scale_that_contradicts_the_mapping_is_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    (tmp_path / "people.csv").write_text("country,q1,q2,q3\nPeru,1,5,2\n")
    (tmp_path / "m.toml").write_text(SCALES_MAPPING.replace(old, new))
    with pytest.raises(SurveyError, match=message):
        import_survey(tmp_path / "people.csv", tmp_path / "m.toml")


def test_spaces_around_names_do_not_separate_a_cell_from_its_shares(tmp_path: Path) -> None:
    columns: official_files.Columns = {"c": [1.0, 1.0, 2.0], "q": [1.0, 4.0, 2.0]}
    data = official_files.write_sav(tmp_path / "s.sav", columns, {"c": {1: " España ", 2: "Peru"}})
    mapping = tmp_path / "m.toml"
    mapping.write_text(
        'title = "t"\nsource = "s"\n[columns]\ncountry = ["c"]\n[answers]\nlow = 1\nhigh = 4\n'
        '[topics]\nq = " divorce "\n',
        encoding="utf-8",
    )
    imported = import_survey(data, str(mapping))
    write_survey(imported.survey, tmp_path / "o.csv", imported.facts, imported.distributions)
    cells = set(load_survey(tmp_path / "o.csv").scores)
    assert cells == {Cell("España", "divorce"), Cell("Peru", "divorce")}
    assert set(known(load_distributions(tmp_path / "o.csv")).by_cell()) == cells
