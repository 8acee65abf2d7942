"""Agreement of three people on DialSummEval's summaries (Gao and Wan, NAACL 2022): 100 dialogues of 14 summaries each.

The ratings are beside the project and not part of it: without the file the tests are skipped.
"""

from __future__ import annotations

import csv
from pathlib import Path

import krippendorff
import numpy as np
import pytest
from numpy.typing import NDArray

from auditor.metrics.judges.agreement import (
    count_ratings,
    fleiss_kappa,
    gwet_ac1,
    krippendorff_alpha,
    leave_one_rater_out,
)
from tests.support.known import known

Floats = NDArray[np.float64]
FILE_NAME = "dialsummeval_ratings.csv"
PATHS = [folder / "shared" / "data" / FILE_NAME for folder in Path(__file__).resolve().parents]
FILE = next((path for path in PATHS if path.exists()), None)
DIMENSIONS = ("consistency", "relevance", "fluency", "coherence")

pytestmark = pytest.mark.skipif(FILE is None, reason=f"needs ../shared/data/{FILE_NAME}, which may not be passed on")


def _load_ratings(dimension: str) -> tuple[Floats, list[str]]:
    """Ratings from 1 to 5, shape (raters, summaries), and the dialogue of each summary."""
    with known(FILE).open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    raters = sorted({row["rater"] for row in rows})
    summaries = sorted({(row["dialogue"], row["system"]) for row in rows})
    position = {summary: i for i, summary in enumerate(summaries)}
    table = np.full((len(raters), len(summaries)), np.nan)
    for row in rows:
        table[raters.index(row["rater"]), position[row["dialogue"], row["system"]]] = float(row[dimension])
    return table, [dialogue for dialogue, _ in summaries]


@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_alpha_of_real_raters_is_the_packages_with_an_interval_over_dialogues(dimension: str) -> None:
    ratings, dialogues = _load_ratings(dimension)
    for level in ("nominal", "ordinal", "interval"):
        alpha = krippendorff_alpha(ratings, level, units={"dialogue": dialogues})
        expected = krippendorff.alpha(reliability_data=ratings, level_of_measurement=level)
        assert alpha.value == pytest.approx(expected, abs=1e-9)
        assert known(alpha.ci_low) < expected < known(alpha.ci_high)
        assert alpha.generalizes_to == "other dialogues like these"


def test_intervals_over_twenty_dialogues_cover_the_agreement_on_all_of_them() -> None:
    ratings, dialogues = _load_ratings("consistency")
    columns = [np.nonzero(np.array(dialogues) == name)[0] for name in sorted(set(dialogues))]
    is_consistent = (ratings >= 4).astype(float)
    truths = [
        krippendorff_alpha(ratings, "interval").value,
        fleiss_kappa(count_ratings(is_consistent)).value,
        gwet_ac1(is_consistent).value,
    ]
    hits, n_runs = np.zeros(3), 300
    for seed in range(n_runs):
        drawn = np.random.default_rng(seed).integers(0, len(columns), 20)
        items = np.concatenate([columns[i] for i in drawn])
        units = {"dialogue": np.repeat(np.arange(20), [len(columns[i]) for i in drawn])}
        figures = [
            krippendorff_alpha(ratings[:, items], "interval", units=units),
            fleiss_kappa(count_ratings(is_consistent[:, items]), units=units),
            gwet_ac1(is_consistent[:, items], units=units),
        ]
        for i, (figure, truth) in enumerate(zip(figures, truths, strict=True)):
            hits[i] += known(figure.ci_low) <= known(truth) <= known(figure.ci_high)
    assert (hits / n_runs > 0.9).all(), hits / n_runs


def test_a_rater_who_answers_at_random_is_the_only_outlier() -> None:
    ratings, dialogues = _load_ratings("consistency")
    shuffled = ratings.copy()
    shuffled[1] = np.random.default_rng(0).permutation(shuffled[1])
    left_out = leave_one_rater_out(shuffled, "interval", units={"dialogue": dialogues})
    lower_ends = [rater.difference.ci_low for rater in left_out]
    assert [low is not None and low > 0 for low in lower_ends] == [False, True, False]
