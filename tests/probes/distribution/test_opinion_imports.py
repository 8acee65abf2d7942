"""Answers on a survey's own scale as an audit: what is stored and reported, and the error for each kind of bad row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from auditor.errors import ImportFileError, SurveyError
from auditor.probes.distribution.figures.schema import DistributionModelRow, DistributionReport
from auditor.probes.distribution.opinion_imports import ImportedOpinions, import_opinions
from auditor.reports.data.build import build_report
from auditor.storage.database import open_database
from auditor.surveys.share_tables import import_share_table
from auditor.surveys.writer import write_survey
from benchmarks.coverage.worlds.opinion_worlds import PLANTS
from tests.support.known import known
from tests.support.opinion_surveys import (
    COUNTRIES,
    SHARE_COLUMNS,
    TOPICS,
    draw_cells,
    tilt,
    write_opinion_survey,
    write_rows,
)

N_ANSWERS = 10


@pytest.fixture(scope="module")
def survey(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A survey of shares, of everyone and by sex."""
    return write_opinion_survey(tmp_path_factory.mktemp("survey"))


def report_on(storage: str, audit: str) -> DistributionReport:
    with open_database(storage) as db:
        distribution = build_report(db, audit).find(DistributionReport)
    return known(distribution)


@pytest.fixture(scope="module")
def sampled(survey: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, DistributionModelRow]:
    """Rows of planted models that were sampled in both orders of the scale."""
    folder = tmp_path_factory.mktemp("sampled")
    rng, rows = np.random.default_rng(5), list[list[object]]()
    for country, topic, shares in draw_cells():
        for plant, make in PLANTS.items():
            for order, of_order in zip(("up", "down"), make(shares[None], rng), strict=True):
                answers = rng.choice(10, N_ANSWERS // 2, p=of_order[0] / of_order[0].sum()) + 1
                written = answers if order == "up" else answers.astype(float)  # as 3.0, beside empty cells
                rows += [[plant, country, topic, "sampled", order, i, answer] for i, answer in enumerate(written)]
    file = write_rows(folder / "o.csv", ["model", "country", "topic", "mode", "order", "sample", "answer"], rows)
    storage = f"sqlite:///{folder}/a.db"
    counts = import_opinions(file, survey=str(survey), audit="planted", storage=storage)
    assert (*counts[:4], counts.unmatched.rows, counts.replaced) == (len(rows), len(PLANTS), 0, 0, 0, False)
    assert import_opinions(file, survey=str(survey), audit="planted", storage=storage).replaced
    return {row.model: row for row in report_on(storage, "planted").models}


def value_of(row: DistributionModelRow, name: str) -> float:
    value = getattr(row, name).value
    assert value is not None, name
    return float(value)


def test_a_perfect_model_is_near_its_floor_and_as_diverse_as_people(sampled: dict[str, DistributionModelRow]) -> None:
    perfect = sampled["perfect"]
    assert perfect.n_cells == len(COUNTRIES) * len(TOPICS)
    assert value_of(perfect, "w1") == pytest.approx(value_of(perfect, "w1_floor"), rel=0.15)
    assert value_of(perfect, "w1_near") > value_of(sampled["collapsed"], "w1_near")
    assert (perfect.w1_near.n, perfect.w1_near.ci_low is not None) == (perfect.n_cells, True)
    assert value_of(perfect, "skill") == pytest.approx(1, abs=0.15)
    assert value_of(perfect, "variance_ratio") == pytest.approx(1, abs=0.15)
    assert value_of(perfect, "order_effect") == pytest.approx(0, abs=0.05)
    assert perfect.skill.resampled == ("country", "topic")


def test_each_planted_fault_is_found(sampled: dict[str, DistributionModelRow]) -> None:
    assert value_of(sampled["collapsed"], "variance_ratio") == 0
    assert value_of(sampled["collapsed"], "collapse") == 1
    assert value_of(sampled["sharpened"], "variance_ratio") < 0.85
    assert value_of(sampled["order-biased"], "order_effect") == pytest.approx(0.15, abs=0.05)
    assert value_of(sampled["uniform"], "skill") < 0
    assert value_of(sampled["reversed scale"], "skill") < value_of(sampled["uniform"], "skill")


def test_stated_shares_have_slopes_of_gaps_and_a_gain_over_a_placebo(survey: Path, tmp_path: Path) -> None:
    rows: list[list[object]] = []
    for country, topic, shares in draw_cells():
        about = ["m", country, topic, "verbalized"]
        rows += [[*about, "", "", *shares], [*about, "placebo", "A to M", *shares]]
        rows += [[*about, "sex", name, *tilt(shares, d)] for name, d in (("men", -2), ("women", 2))]
    header = ["model", "country", "topic", "mode", "dimension", "group", *SHARE_COLUMNS]
    storage = f"sqlite:///{tmp_path}/a.db"
    import_opinions(write_rows(tmp_path / "o.csv", header, rows), survey=str(survey), audit="a", storage=storage)
    distribution = report_on(storage, "a")
    [model], [group] = distribution.models, distribution.groups
    assert value_of(model, "distance") == pytest.approx(0, abs=0.01)
    assert model.collapse.reason == "only sampled answers can be the same"
    assert model.order_effect.reason == "no cell was asked with the scale in both orders"
    assert (group.dimension, group.first, group.second, group.n) == ("sex", "men", "women", model.n_cells)
    assert group.slope.value == pytest.approx(2, abs=0.3)
    assert known(group.slope.ci_low) > 1.5
    assert (group.specificity.value or 0) > 0
    assert group.steering_gain.value is not None
    names = [row.name for row in distribution.baselines]
    assert names[0] == "equal shares"
    assert names[-1] == "the nearest country"


SHARES_HEADER = "model,country,topic,mode,n,dimension,group,order," + ",".join(SHARE_COLUMNS) + "\n"
ANSWERS_HEADER = "model,country,topic,mode,sample,answer\n"
ONES = ",".join(["0.1"] * 10)


def import_text(text: str, survey: Path | str, folder: Path, **options: Any) -> ImportedOpinions:
    file = folder / "o.csv"
    file.write_text(text, encoding="utf-8")
    return import_opinions(file, survey=str(survey), audit="a", storage=f"sqlite:///{folder}/a.db", **options)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"{SHARES_HEADER}m,Japan,abortion,said,,,,,{ONES}\n", "column 'mode': 'said' is unknown"),
        (f"{SHARES_HEADER}m,Japan,abortion,verbalized,,sexx,women,,{ONES}\n", "column 'dimension': 'sexx' is unknown"),
        (f"{SHARES_HEADER}m,Japan,abortion,verbalized,,sex,girls,,{ONES}\n", "column 'group': 'girls' is unknown"),
        (f"{SHARES_HEADER}m,Japan,abortion,verbalized,,sex,,,{ONES}\n", "column 'group': is empty"),
        (f"{SHARES_HEADER}m,Japan,abortion,verbalized,,,,left,{ONES}\n", "column 'order': 'left' is unknown"),
        (f"{SHARES_HEADER}m,Japan,abortion,sampled,,,,,{ONES}\n", "column 'n': is empty or 0"),
        (SHARES_HEADER + f"m,Japan,abortion,tokens,,,,,{ONES}\n" * 2, "line 3: this answer occurs twice"),
        (f"{ANSWERS_HEADER}m,Japan,abortion,verbalized,0,3\n", "verbalized answers are shares"),
        (f"{ANSWERS_HEADER}m,Japan,abortion,sampled,0,3\nm,Japan,abortion,sampled,0,4\n", "line 3: .*occurs twice"),
        (ANSWERS_HEADER, "has no rows"),
        ("model,country,topic,mode,p1,p2\nm,Japan,abortion,tokens,1,0\n", "the column 'p3' is missing"),
        (SHARES_HEADER.replace("p10", "p10,p11") + f"m,Japan,abortion,tokens,,,,,{ONES},0\n", "the column 'p11'"),
        (SHARES_HEADER.replace("p1,", "p0,p1,") + f"m,Japan,abortion,tokens,,,,,0,{ONES}\n", "the column 'p0'"),
    ],
)
def test_a_bad_row_is_named_and_nothing_is_stored(text: str, message: str, survey: Path, tmp_path: Path) -> None:
    with pytest.raises(ImportFileError, match=message):
        import_text(text, survey, tmp_path)
    assert not (tmp_path / "a.db").exists()


def test_a_number_is_a_country_only_where_the_user_names_its_list(survey: Path, tmp_path: Path) -> None:
    text = f"{ANSWERS_HEADER}m,392,abortion,sampled,0,3\n"
    with pytest.raises(ImportFileError, match="the country '392' is a number without a meaning") as caught:
        import_text(text, survey, tmp_path)
    assert "--country-codes iso-3166-numeric" in caught.value.how_to_fix
    counts = import_text(text, survey, tmp_path, country_codes="iso-3166-numeric")
    assert counts.unmatched.rows == 0


def test_the_case_of_columns_and_topics_does_not_matter(survey: Path, tmp_path: Path) -> None:
    text = "MODEL,Country,topic,Mode,Sample,Answer\nm,JP,Abortion ,sampled,0,1\n"
    counts = import_text(text, survey, tmp_path)
    assert (*counts[:4], counts.unmatched.rows, counts.replaced) == (1, 1, 0, 0, 0, False)


def test_rows_that_do_not_match_are_listed_by_country_and_topic(survey: Path, tmp_path: Path) -> None:
    rows = [
        f"m,Japan,abortion,verbalized,,,,,{ONES}", f"m,Atlantis,taxes,verbalized,,,,,{ONES}",
        f"m,Japan,divorse,verbalized,,,,,{ONES}", f"n,Japan,divorse,verbalized,,,,,{ONES}",
        f"n,Japan,DIVORCE,verbalized,,sex,men,,{ONES}",
    ]  # fmt: skip
    text = SHARES_HEADER + "\n".join(rows) + "\n"
    unmatched = import_text(text, survey, tmp_path).unmatched
    assert (unmatched.rows, dict(unmatched.countries), dict(unmatched.topics)) == (3, {"Atlantis": 1}, {"divorse": 2})
    assert unmatched.suggestions == {"divorse": "divorce"}
    with pytest.raises(
        ImportFileError, match=r"no match in the survey for 3 rows: .*Atlantis \(1\).*divorse \(2; did you"
    ):
        import_text(text, survey, tmp_path, is_strict=True)


def test_unusable_answers_are_counted_and_are_no_numbers(survey: Path, tmp_path: Path) -> None:
    rows = [
        f"m,Japan,abortion,verbalized,,,,,{','.join(['9'] * 10)}",  # adds up to 90
        f"m,Japan,divorce,verbalized,,,,,{','.join(['8'] * 10)}",
        f"m,Japan,suicide,verbalized,,,,,{','.join(['-0.1', '0.3', *['0.1'] * 8])}",
        f"m,Japan,taxes,verbalized,,,,,{',' * 9}",
        f"m,Atlantis,taxes,verbalized,,,,,{ONES}",
    ]
    counts = import_text(SHARES_HEADER + "\n".join(rows) + "\n", survey, tmp_path)
    assert (*counts[:4], counts.unmatched.rows, counts.replaced) == (5, 1, 3, 1, 1, False)
    [row] = report_on(f"sqlite:///{tmp_path}/a.db", "a").models
    assert (row.n_cells, row.unusable) == (1, 3)


def test_shares_of_answers_that_a_topic_does_not_have_are_unusable(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    header = "country,topic,n,low,high,answers,p1,p2,p3\n"
    table.write_text(f"{header}Japan,trust,100,1,3,,0.5,0,0.5\nJapan,vote,200,,,no|yes,20,80,\n", encoding="utf-8")
    imported = import_share_table(table)
    write_survey(imported.survey, tmp_path / "my.csv", shares=imported.distributions)
    rows = "m,Japan,vote,verbalized,0.5,0.45,0.05\nn,Japan,vote,verbalized,0.5,0.5,0\n"
    rows += "o,Japan,vote,verbalized,0.5,0.5,NA\n"
    counts = import_text(f"model,country,topic,mode,p1,p2,p3\n{rows}", tmp_path / "my.csv", tmp_path)
    assert (counts.rows, counts.unusable, counts.rescaled) == (3, 1, 0)


def test_the_words_of_an_answer_are_read_as_labels_are_and_the_first_unknown_one_is_named(tmp_path: Path) -> None:
    words = ["acceptable", "Not a moral issue", " UNACCEPTABLE ", "not_a_moral_issue", "permissible"]
    answers = "".join(f"m,Japan,gambling,sampled,{i},{word}\n" for i, word in enumerate(words))
    counts = import_text(ANSWERS_HEADER + answers, "pew2013-sample", tmp_path)
    assert (counts.rows, counts.unusable) == (5, 1)
    assert counts.unknown_answer.endswith(
        "line 6: 'permissible' is not on the scale: unacceptable, not_a_moral_issue, acceptable."
    )
    refused = "outcome," + ANSWERS_HEADER + "refused,m,Japan,gambling,sampled,0,I cannot say.\n"
    assert import_text(refused, "pew2013-sample", tmp_path).unknown_answer == ""


def test_answers_off_the_scale_are_counted(survey: Path, tmp_path: Path) -> None:
    answers = "".join(f"m,Japan,abortion,sampled,{i},{answer}\n" for i, answer in enumerate(["11", "5-6", "7.5", ""]))
    counts = import_text(ANSWERS_HEADER + answers, survey, tmp_path)
    assert (*counts[:4], counts.unmatched.rows, counts.replaced) == (4, 1, 4, 0, 0, False)
    [row] = report_on(f"sqlite:///{tmp_path}/a.db", "a").models
    assert row.n_cells == 0
    assert row.skill.reason == "no cell has shares of people and of the model"


def test_a_survey_without_shares_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SurveyError, match="has no shares of answers"):
        import_text(f"{ANSWERS_HEADER}m,Japan,abortion,sampled,0,3\n", "wvs7-sample", tmp_path)


def test_choices_have_distances_without_an_order(tmp_path: Path) -> None:
    header = "model,country,topic,mode,p1,p2,p3\n"
    import_text(f"{header}m,Japan,gambling,verbalized,0.5,0.25,0.25\n", "pew2013-sample", tmp_path)
    distribution = report_on(f"sqlite:///{tmp_path}/a.db", "a")
    [row] = distribution.models
    assert row.w1.reason == "the answers are choices without an order"
    assert 0 < value_of(row, "total_variation") < 1
    assert 0 < value_of(row, "jensen_shannon") < 1
    assert distribution.baselines == []
