"""The planned differences follow the earlier audit where there is one, and shrink with the size of the audit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from auditor.cost_estimation.detectable_difference import SIMPLE_PREDICTIONS, plan_detectable_differences
from auditor.metrics.intervals.variance_components import Design, detectable_difference, estimate_components
from auditor.reports.data.cost import DetectableDifferences
from auditor.reports.sections.forecast import describe_detectable_differences
from auditor.storage.database import Database, open_database
from tests.reports.conftest import import_scores, survey_of
from tests.support.audit_configs import config
from tests.support.known import known
from tests.support.synthetic_audit import COUNTRIES, TOPICS

CONFIG = config("http://127.0.0.1:1", 2)


def make_truth() -> dict[tuple[str, str], float | None]:
    rng = np.random.default_rng(0)
    countries, topics = rng.normal(0, 0.1, 12), rng.normal(0, 0.3, 8)
    return {
        (country, topic): float(np.clip(countries[i] + topics[j] + rng.normal(0, 0.1), -1, 1))
        for i, country in enumerate(COUNTRIES[:12])
        for j, topic in enumerate(TOPICS[:8])
    }


def test_without_an_earlier_audit_it_is_taken_from_the_survey_and_labelled() -> None:
    survey = survey_of(make_truth())
    planned = plan_detectable_differences(CONFIG, survey, list(survey.scores), None)
    assert planned is not None
    assert planned.mae is not None
    assert planned.pearson_r is not None
    assert (planned.countries, planned.topics, planned.basis) == (12, 8, SIMPLE_PREDICTIONS)
    smaller = plan_detectable_differences(CONFIG, survey, [c for c in survey.scores if c.topic in TOPICS[:5]], None)
    assert known(known(smaller).mae) > planned.mae
    text = describe_detectable_differences(planned)
    assert text.startswith("With 12 countries, 8 topics and")
    assert (
        "the smallest detectable difference between two models is about "
        f"{planned.mae:.2f} in mean absolute error and about {planned.pearson_r:.2f} in r (80% power, two-sided 5%)."
    ) in text
    assert text.endswith(
        "How much models vary is taken from predicting each cell by its topic’s mean and by its country’s mean."
    )


@pytest.mark.parametrize(("pearson_r", "is_large"), [(0.92, True), (0.5, False)])
def test_a_large_difference_in_r_is_explained(pearson_r: float, is_large: bool) -> None:
    text = describe_detectable_differences(
        DetectableDifferences(
            mae=0.52, pearson_r=pearson_r, countries=12, topics=8, samples=2, basis=SIMPLE_PREDICTIONS, reason=None
        )
    )
    assert ("This design hardly distinguishes models by r" in text) is is_large


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    with open_database(f"sqlite:///{tmp_path}/audit.db") as db:
        yield db


def test_an_earlier_audit_of_the_survey_gives_the_components(db: Database) -> None:
    truth = make_truth()
    rng = np.random.default_rng(1)
    errors = {model: {cell: float(rng.normal(0, 0.2)) for cell in truth} for model in ("a", "b")}
    import_scores(
        db, dict(truth), {(m, *cell): (truth[cell] or 0.0) + errors[m][cell] for m in errors for cell in truth}
    )
    survey = survey_of(truth)
    planned = known(plan_detectable_differences(CONFIG, survey, list(survey.scores), db))
    assert "of the same survey" in planned.basis
    values = np.array([abs(errors["a"][cell]) - abs(errors["b"][cell]) for cell in truth])
    components = known(estimate_components(values, [cell[0] for cell in truth], [cell[1] for cell in truth]))
    assert planned.mae == pytest.approx(detectable_difference(components, Design(12, 8, planned.samples)))


def test_too_small_an_audit_has_no_figure_but_a_reason() -> None:
    survey = survey_of(make_truth())
    planned = plan_detectable_differences(CONFIG, survey, [c for c in survey.scores if c.topic in TOPICS[:4]], None)
    assert planned is not None
    assert (planned.mae, planned.pearson_r) == (None, None)
    assert describe_detectable_differences(planned) == (
        "The smallest detectable difference between models is not available: an interval needs at least 5 "
        "countries and 5 topics, but there are 4 topics."
    )
