"""Shares of answers from microdata, compared with pandas and statsmodels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm

from auditor.domain import Cell
from auditor.metrics import sampling_floor
from auditor.surveys import SurveyDistributions, load_mapping, write_survey
from auditor.surveys.distributions import MIN_GROUP_SIZE, load_distributions
from auditor.surveys.estimates import compute_weighted_mean
from auditor.surveys.histograms import _compute_cut_variances, _split_half_distances
from auditor.surveys.importer import import_survey
from tests.support.known import known
from tests.surveys import official_files

TOPIC = "homosexuality"
EXACT = 1e-8
POINTS = np.linspace(-1, 1, 10)


@pytest.fixture(scope="module")
def wvs() -> official_files.Columns:
    """Answers with sex, age, and a religion that few have."""
    columns = official_files.wvs_columns(rows=1200)
    rng = np.random.default_rng(3)
    columns["Q260"] = [int(code) for code in rng.choice([1, 2, -5], 1200, p=[0.45, 0.5, 0.05])]
    columns["Q262"] = [int(age) for age in rng.integers(16, 90, 1200)]
    columns["Q289"] = [int(code) for code in rng.choice([0, 5, 7], 1200, p=[0.49, 0.49, 0.02])]
    return columns


@pytest.fixture(scope="module")
def shares(wvs: official_files.Columns, tmp_path_factory: pytest.TempPathFactory) -> SurveyDistributions:
    folder = tmp_path_factory.mktemp("shares")
    imported = import_survey(official_files.write_csv(folder / "wvs.csv", wvs), n_imputations=0)
    return known(imported.distributions)


def select(wvs: official_files.Columns, rule: str = "Q182 > 0") -> pd.DataFrame:
    """German respondents who answered the question on the topic and meet a rule."""
    return pd.DataFrame(wvs).query(f"B_COUNTRY_ALPHA == 'DEU' and Q182 > 0 and ({rule})")


@pytest.mark.parametrize(
    ("dimension", "group", "rule"),
    [("", "", "Q182 > 0"), ("sex", "women", "Q260 == 2"), ("age", "18-29", "18 <= Q262 <= 29"),
     ("age", "50+", "Q262 >= 50"), ("religion", "none", "Q289 == 0")],
)  # fmt: skip
def test_the_shares_of_everyone_and_of_a_group_are_weighted(
    wvs: official_files.Columns, shares: SurveyDistributions, dimension: str, group: str, rule: str
) -> None:
    people, cell = select(wvs, rule), shares.by_cell(dimension, group)[Cell("Germany", TOPIC)]
    weights = people.W_WEIGHT
    expected = [weights[code == people.Q182].sum() / weights.sum() for code in range(1, 11)]
    assert cell.shares == pytest.approx(expected, abs=EXACT)
    assert cell.n == len(people)
    assert cell.n_effective == pytest.approx(weights.sum() ** 2 / (weights**2).sum(), abs=1e-3)
    for cut, variance in enumerate(known(cell.cut_variances), start=1):
        below = (cut >= people.Q182).astype(float)
        fit = sm.WLS(below, np.ones(len(below)), weights=weights).fit(cov_type="HC1")
        assert variance == pytest.approx(float(fit.bse.iloc[0]) ** 2, abs=EXACT)


def test_the_distance_of_halves_is_twice_the_floor_of_exact_shares(shares: SurveyDistributions) -> None:
    cells = [cell for cell in shares.by_cell().values() if cell.split_half_distance is not None]
    assert len(cells) == 4 * 19 - 1
    floors = sampling_floor([c.shares for c in cells], POINTS, np.array([c.n_effective for c in cells], dtype=float))
    distances = np.array([cell.split_half_distance for cell in cells], dtype=float)
    assert distances.mean() / 2 == pytest.approx(floors.mean(), rel=0.05)


def test_the_scale_and_the_groups_are_those_of_the_mapping(shares: SurveyDistributions) -> None:
    assert [point.name for point in shares.points] == [str(code) for code in range(1, 11)]
    assert [point.score for point in shares.points] == pytest.approx(POINTS)
    assert shares.is_ordered
    assert set(shares.groups) == {"sex", "age", "religion"}, "the file has no column of the others"
    assert shares.groups["sex"] == {"men": "men", "women": "women"}


def test_small_groups_are_not_written_and_respondents_without_a_group_are_counted(
    wvs: official_files.Columns, shares: SurveyDistributions
) -> None:
    assert (pd.DataFrame(wvs).Q289 == 7).sum() > 0
    assert shares.by_cell("religion", "Buddhist") == {}
    assert min(cell.n or 0 for cell in shares.cells if cell.dimension) >= MIN_GROUP_SIZE
    assert shares.without_group["sex"] == (pd.DataFrame(wvs).Q260 == -5).sum()
    assert shares.without_group["age"] == (pd.DataFrame(wvs).Q262 < 18).sum()


def test_a_cell_that_was_not_asked_has_no_shares(shares: SurveyDistributions) -> None:
    assert Cell("Germany", load_mapping("wvs7").topic_by_column["Q195"]) not in shares.by_cell()


def test_choices_are_points_in_the_order_of_their_scores(tmp_path: Path) -> None:
    columns = official_files.pew_columns()
    imported = import_survey(official_files.pew_sav(tmp_path / "pew.sav", columns), "pew2013", n_imputations=0)
    shares = known(imported.distributions)
    assert [point.name for point in shares.points] == ["unacceptable", "not_a_moral_issue", "acceptable"]
    assert not shares.is_ordered
    people = pd.DataFrame(columns).query("country == 7 and Q84A <= 3")
    weights = people.weight
    expected = [weights[code == people.Q84A].sum() / weights.sum() for code in (2, 3, 1)]
    assert shares.by_cell()[Cell("Britain", "using contraceptives")].shares == pytest.approx(expected, abs=EXACT)


def test_written_shares_are_read_again(wvs: official_files.Columns, tmp_path: Path) -> None:
    imported = import_survey(official_files.write_csv(tmp_path / "wvs.csv", wvs), n_imputations=0)
    target = tmp_path / "my.csv"
    written = write_survey(imported.survey, target, imported.facts, imported.distributions)
    assert tmp_path / "my.distributions.json" in written
    assert load_distributions(target) == imported.distributions
    write_survey(imported.survey, target, imported.facts, overwrite=True)
    assert not (tmp_path / "my.distributions.json").exists(), "shares left by another survey would not match"


def test_cut_variances_are_those_of_weighted_means() -> None:
    rng = np.random.default_rng(1)
    chosen, weights = rng.integers(0, 4, 50), rng.uniform(0.2, 3, 50)
    variances = _compute_cut_variances(chosen, weights, 4, None)
    errors = [compute_weighted_mean((chosen <= cut).astype(float), weights).standard_error or 0.0 for cut in range(3)]
    assert known(variances).tolist() == pytest.approx([error**2 for error in errors], rel=1e-12)
    assert _compute_cut_variances(chosen[:1], weights[:1], 4, None) is None


def test_a_half_without_answers_has_no_distance() -> None:
    answers = np.zeros((3, 2, 2))
    answers[:, 0] = [[0.1, 0], [0.3, 0], [0, 0.7]]  # of the second topic one person has an answer
    answers[0, 1, 0] = 0.1
    scores = [np.array([-1.0, 1.0])] * 2
    distances = _split_half_distances(answers, scores, np.random.default_rng(0), 20)
    assert distances[0] is not None
    assert distances[1] is None
