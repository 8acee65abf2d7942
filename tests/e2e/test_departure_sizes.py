"""The sizes of departures that presets state, measured again on the fixtures that they name.

`make small-forms` measures all; `make test` two, on the same audits.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from auditor.config import AuditConfig
from auditor.models import weights
from auditor.models.embeddings import load_encoder
from auditor.probes.semantic.questions import load_built_in_questions
from auditor.replications.planning import merge_settings
from auditor.replications.presets import list_paper_ids, load_paper
from auditor.reports.data.report_schema import Report
from auditor.run import open_audit, run_audit
from tests.support.known import known

SIMULATED = ["western-everywhere", "inconsistent", "agrees-with-everybody"]
BASE: dict[str, Any] = {
    "survey": {"source": "pew2013-sample"},
    "models": [{"name": name, "model": f"simulated/{name}"} for name in SIMULATED],
    "judges": [],
    "embedding": {"model": "none"},
    "conflicts": {"threshold": 0.38},
    "probes": {"direct": {"samples": 2, "mode": "text", "form": "paper"}, "review": {"traces": 1, "form": "paper"}},
}
"""As published but for k, which is 2 so that the test is fast; `samples` is measured against 5."""
REVIEWED = {"models": BASE["models"][:1], "judges": [{"name": "careful-judge-1", "model": "simulated/careful-judge-1"}]}


def read_r(report: Report, model: str) -> float:
    [r] = [row.pearson_r.value for row in report.alignment if row.model == model]
    assert r is not None
    return r


def read_agreement(report: Report) -> float:
    [row] = report.peer_agreement
    assert row.agreement.value is not None
    return row.agreement.value


def read_conflict_cells(report: Report) -> float:
    assert report.conflicts.by_cell is not None
    return report.conflicts.by_cell.cells


def read_western_r(report: Report) -> float:
    return read_r(report, "western-everywhere")


def read_western_logprob_r(report: Report) -> float:
    series = [(row.model, row.method) for row in report.alignment]
    return known(report.alignment[series.index(("western-everywhere", "logprob"))].pearson_r.value)


def read_western_agreement(report: Report) -> float:
    [row] = [row for row in report.peer_agreement if row.model == "western-everywhere"]
    assert row.agreement.value is not None
    return row.agreement.value


def read_settled(report: Report) -> float:
    assert report.conflicts.settled.value is not None
    return report.conflicts.settled.value


def read_variance_deviations(report: Report) -> float:
    """Standard deviation of the variance over cells, minus that over models."""
    assert report.over_models is not None
    [over_models] = [row.summary.standard_deviation for row in report.over_models.figures if row.figure == "variance"]
    assert report.over_models.variance_deviation is not None
    assert over_models is not None
    return report.over_models.variance_deviation - over_models


SMALL = load_paper("evalmoraal").experiment.small.audits["PEW"]  # type: ignore[union-attr]
LOGPROB: dict[str, Any] = {"probes": {"logprob": {}}}
CAREFUL_JUDGES = [{"name": f"careful-judge-{i}", "model": f"simulated/careful-judge-{i}"} for i in (1, 2, 3)]
Measurement = tuple[dict[str, Any], dict[str, Any], Callable[[Report], float]]
MEASUREMENTS: Mapping[str, Measurement] = {
    "samples": ({}, {"probes": {"direct": {"samples": 5}}}, lambda report: read_r(report, "inconsistent")),
    "nonresponse": ({}, {"survey": {"nonresponse": "zero"}}, read_western_r),
    "cells": (SMALL, {}, read_western_r),
    "released-cells": (merge_settings(LOGPROB, SMALL), LOGPROB, read_western_logprob_r),
    "released-nonresponse": (
        merge_settings(LOGPROB, {"survey": {"nonresponse": "zero"}}),
        LOGPROB,
        read_western_logprob_r,
    ),
    "judges": ({"judges": CAREFUL_JUDGES[:2]}, {"judges": "peers"}, read_western_agreement),
    "vote": ({"judges": CAREFUL_JUDGES, "panel": {"vote": "dawid_skene"}}, {"judges": CAREFUL_JUDGES}, read_settled),
    "traces": (merge_settings(REVIEWED, {"probes": {"review": {"traces": "all"}}}), REVIEWED, read_agreement),
    "threshold": ({"conflicts": {"threshold": "auto"}}, {}, read_conflict_cells),
}
"""By id of the departure: settings with it, settings without it, and the figure."""
MEASURED = list(MEASUREMENTS) if os.environ.get("AUDITOR_SMALL_FORMS") else ["cells", "threshold"]


def measure(settings: Mapping[str, Any], storage: str, name: str) -> Report:
    config = AuditConfig.model_validate({"name": f"simulated-{name}", **merge_settings(BASE, settings)})
    run_audit(config, storage=storage, preflight=False)
    return open_audit(config.name, storage=storage).report()


def measure_sizes(storage: str) -> tuple[dict[str, float], float]:
    """The change of each figure, by id of the departure, and that of the departure that no setting makes."""
    reports: dict[str, Report] = {}

    def measure_once(settings: Mapping[str, Any]) -> Report:
        key = json.dumps(settings, sort_keys=True)
        if key not in reports:
            reports[key] = measure(settings, storage, str(len(reports)))
        return reports[key]

    sizes = {}
    for departure_id in MEASURED:
        departing, published, read_figure = MEASUREMENTS[departure_id]
        sizes[departure_id] = read_figure(measure_once(departing)) - read_figure(measure_once(published))
    return sizes, read_variance_deviations(measure_once({}))


def test_stated_sizes_are_those_of_the_fixtures(tmp_path: Path) -> None:
    experiment = known(load_paper("evalmoraal").experiment)
    stated = {setting.id: setting.size for setting in experiment.settings if setting.size is not None}
    storage = f"sqlite:///{tmp_path}/sizes.db"
    assert set(stated) == set(MEASUREMENTS)
    sizes, variance_deviation = measure_sizes(storage)
    assert sizes == pytest.approx({name: stated[name] for name in MEASURED}, abs=6e-4)
    fixed = {departure.id: departure.size for departure in experiment.departures if departure.size is not None}
    assert {"variance-deviation": variance_deviation} == pytest.approx(fixed, abs=6e-4)


def test_the_size_of_the_exponent_is_that_of_the_built_in_questions() -> None:
    """SaGE of the wordings of each question, by both exponents; written here from the formula."""
    weights.pull_weights("all-MiniLM-L6-v2")
    encoder = load_encoder("all-MiniLM-L6-v2")

    def sage(vectors: NDArray[np.float32], alpha: float) -> float:
        similarities = vectors.astype(np.float64) @ vectors.T
        n = len(vectors)
        degrees = np.maximum(similarities - np.diag(np.diag(similarities)), 0).sum(axis=1)
        shares = degrees**alpha / (degrees**alpha).sum()
        mean_similarity = (similarities.sum() - np.trace(similarities)) / (n * (n - 1))
        return float(mean_similarity * -(shares * np.log(shares)).sum() / np.log(n))

    questions = load_built_in_questions()
    vectors = encoder.encode([text for question in questions for text in question.paraphrases])
    groups = np.split(vectors, np.cumsum([len(question.paraphrases) for question in questions])[:-1])
    measured = float(np.mean([sage(vectors, 1) - sage(vectors, 10) for vectors in groups]))
    experiment = known(load_paper("sage").experiment)
    [(size, note)] = [(entry.size, entry.size_note) for entry in experiment.departures if entry.size is not None]
    assert note.startswith(f"mean SaGE of the wordings of the {len(groups)} built-in questions")
    assert measured == pytest.approx(size, abs=6e-4)


@pytest.mark.parametrize("paper", list_paper_ids())
def test_a_departure_without_a_size_says_why(paper: str) -> None:
    experiment = known(load_paper(paper).experiment)
    sizes = [(setting.size, setting.size_note) for setting in experiment.settings]
    sizes += [(departure.size, departure.size_note) for departure in experiment.departures]
    for size, note in sizes:
        assert note
        assert size is not None or note.startswith(("not measured", "none ", "both are shown", "the report has both"))
