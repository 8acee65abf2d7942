"""Recorded answers and verdicts with planted figures: the document of the replication shows these figures."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest
from numpy.typing import NDArray

from auditor.replications.presets import load_paper
from tests.support import planted_figures
from tests.support.audit_configs import KEY_VARIABLE
from tests.support.cli_runner import succeed
from tests.support.fake_server import FakeServer, Reply, Request, completion
from tests.support.fixed_address import use_encoder
from tests.support.planted_comparisons import write_csv
from tests.support.replicated_audits import place_of
from tests.support.review_answers import rate_aspects

COUNTRIES = (*("Germany", "Nigeria", "France", "Egypt"), *("United States", "Pakistan"))
SURVEYS = {
    "WVS": (COUNTRIES[2:], ("divorce", "abortion", "suicide", "euthanasia", "death penalty")),
    "PEW": (COUNTRIES[:4], ("gambling", "drinking alcohol", "premarital sex", "having an affair", "contraceptives")),
}
MODELS = ("first", "second", "third", "fourth", "fifth")
JUDGES = ("judge-a", "judge-b", "judge-c")
R = (0.9, 0.75, 0.6, 0.35, -0.1)
"""Planted correlation of each model with people, in both surveys."""
VARIANCE = (0.001, 0.004, 0.003, 0.012, 0.02)
GROUNDS = ((0, 0, 0, 0, 0), (0, 0, 0, 0, 1), (0, 0, 0, 1, 1), (0, 0, 0, 1, 2), (0, 0, 1, 2, 3))
"""Which of several unrelated reasonings each model gives in its five samples."""
SELF_CONSISTENCY = (1.0, 0.6, 0.4, 0.3, 0.1)
"""Shares of the ten pairs of samples with the same reasoning."""
N_INVALID = (0, 2, 3, 5, 8)
"""Of each ten cells, how many of a model's answers the judges find INVALID."""
PATTERN = np.array([-2, -1, 0, 1, 2]) / np.sqrt(2.5)
"""Deviations of five samples from their mean, with variance 1."""
WORDS = ("custom", "religion", "harm", "fairness")
BY_MODEL = {
    "r": "r by model", "self_consistency": "self-consistency by model", "peer_agreement": "agreement by model",
}  # fmt: skip
"""Figures of single models, by what their extremes are of."""
COMPARED = {
    ("1", "r, direct"), ("self-consistency", "self-consistency"), ("self-consistency", "r with alignment"),
    ("variance", "mean"), ("variance", "standard deviation"), ("variance", "r with alignment"), ("peer", "A"),
    ("peer", "r with alignment, WVS"), ("peer", "r with alignment, PEW"), ("peer", "Fleiss kappa"),
    ("conflicts", "conflicts"), ("conflicts", "binary"), ("conflicts", "settled by majority"),
    ("regions", "Western"), ("regions", "non-Western"), ("regions", "gap"),
}  # fmt: skip


class ReasoningEncoder:
    """A sentence encoder in which texts with different first words are unrelated."""

    name = "reasonings"
    revision = "1"
    dimensions = len(WORDS)

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return np.eye(len(WORDS), dtype=np.float32)[[WORDS.index(text.split()[0]) for text in texts]]


def plant_scores(people: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
    """Scores of each model, shape (models, cells), with the planted correlations with people."""
    noise = rng.normal(size=(len(MODELS), len(people)))
    basis, _ = np.linalg.qr(np.vstack([np.ones(len(people)), people, noise]).T)
    direction = (people - people.mean()) / np.linalg.norm(people - people.mean())
    scale = 0.2 * np.sqrt(len(people))
    return np.array(
        [scale * (r * direction + np.sqrt(1 - r * r) * basis[:, 2 + i]) for i, r in enumerate(R)], dtype=np.float64
    )


def is_valid(model: int, cell: int, judge: int) -> bool:
    """A planted verdict: judges mostly agree, and each differs in some cells of its own."""
    return (cell % 10 >= N_INVALID[model]) != ((cell + 3 * judge) % 11 == 0)


def plant(folder: Path, server_url: str) -> dict[int, dict[str, bool]]:
    """Write surveys, answers, verdicts, and a configuration in which one judge is asked and two are recorded.

    Returns:
        The verdict of each judge by the number in the reviewed answer's text.
    """
    rng = np.random.default_rng(5)
    answers: list[tuple[object, ...]] = []
    verdicts: list[tuple[object, ...]] = []
    verdict_by_number: dict[int, dict[str, bool]] = {}
    for survey, (countries, topics) in SURVEYS.items():
        cells = list(product(countries, topics))
        people = np.round(rng.uniform(-0.9, 0.9, len(cells)), 3)
        rows = [(*cell, score) for cell, score in zip(cells, people, strict=True)]
        write_csv(folder / f"{survey}.csv", "country,topic,score", rows)
        scores = plant_scores(people, rng)
        for (i, model), (c, cell) in product(enumerate(MODELS), enumerate(cells)):
            number = len(verdict_by_number) + 1000
            samples = scores[i, c] + np.sqrt(VARIANCE[i]) * PATTERN
            assert np.abs(samples).max() <= 1
            for k, score in enumerate(samples):
                reasoning = f"{WORDS[GROUNDS[i][k]]} decides this, by file number {number}."
                answers.append((model, *cell, k, f"{reasoning}\nSCORE = {score:.9f}"))
            verdict_by_number[number] = {judge: is_valid(i, c, j) for j, judge in enumerate(JUDGES)}
            rulings = verdict_by_number[number].items()
            verdicts += [(judge, model, *cell, "VALID" if valid else "INVALID") for judge, valid in rulings]
    write_csv(folder / "answers.csv", "model,country,topic,sample,text", answers)
    write_csv(folder / "verdicts.csv", "judge,model,country,topic,verdict", verdicts)
    sections = [
        f'[[models]]\nname = "{name}"\nmodel = "replay/{name}"\nanswers = "{folder}/answers.csv"\n' for name in MODELS
    ]
    header = f'name = "planted"\nsurvey = {{ source = "{folder}/WVS.csv" }}\n'
    asked = f'model = "openai/{JUDGES[0]}"\napi_base = "{server_url}"\napi_key = "os.environ/{KEY_VARIABLE}"\n'
    recorded = [f'model = "replay/{name}"\nverdicts = "{folder}/verdicts.csv"\n' for name in JUDGES[1:]]
    sections += [f'[[judges]]\nname = "{name}"\n{text}' for name, text in zip(JUDGES, [asked, *recorded], strict=True)]
    (folder / "models.toml").write_text(header + "\n".join(sections), encoding="utf-8")
    return verdict_by_number


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("planted")


@pytest.fixture(scope="module")
def output(folder: Path) -> dict[str, Any]:
    """What the command prints as JSON about the planted answers, with a live judge and with recorded verdicts."""
    verdict_by_number: dict[int, dict[str, bool]] = {}

    def rule(request: Request) -> Reply:
        number = re.search(r"file number (\d+)", request.text)  # None in a test of the judge before the run
        valid = number is None or verdict_by_number[int(number[1])][str(request.body["model"])]
        verdict = {"verdict": "VALID" if valid else "INVALID", "confidence": 90}
        return completion(json.dumps({**rate_aspects(valid), "justification": "It is planted.", **verdict}))

    with (
        FakeServer(rule) as server,
        pytest.MonkeyPatch.context() as monkeypatch,
        use_encoder(ReasoningEncoder()),
    ):
        monkeypatch.setenv("AUDITOR_TRUST", f"{KEY_VARIABLE}@{urlsplit(server.url).netloc}")
        verdict_by_number.update(plant(folder, server.url))
        data = [word for name in SURVEYS for word in ("--data", f"{name}={folder}/{name}.csv")]
        storage = ("--storage", f"sqlite:///{folder}/planted.db")
        words = ("replicate", "evalmoraal", "--models", str(folder / "models.toml"), *data, *storage)
        result = succeed(*words, "--json")
        assert {request.body["model"] for request in server.requests} == {JUDGES[0]}
        parsed: dict[str, Any] = json.loads(result.stdout)
        return parsed


@pytest.fixture(scope="module")
def independent_figures(folder: Path, output: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The figures by a program that imports numpy, and nothing of this one."""
    command = [sys.executable, str(Path(planted_figures.__file__)), str(folder)]
    figures: dict[str, dict[str, Any]] = json.loads(subprocess.check_output(command, text=True))
    return figures


def test_the_answers_have_the_planted_figures(independent_figures: dict[str, dict[str, Any]]) -> None:
    for figures in independent_figures.values():
        for name, planted in (
            ("r by model", R), ("variance by model", VARIANCE), ("self-consistency by model", SELF_CONSISTENCY),
        ):  # fmt: skip
            assert [figures[name][model] for model in MODELS] == pytest.approx(planted, abs=1e-6)
        agreement = [figures["agreement by model"][model] for model in MODELS]
        assert agreement == sorted(agreement, reverse=True)


def test_the_document_shows_the_planted_figures(
    independent_figures: dict[str, dict[str, Any]], output: dict[str, Any]
) -> None:
    paper = load_paper("evalmoraal")
    compared = set()
    for table in paper.tables:
        for row, column in [(line, name) for line in table.rows for name in table.read_row(line)]:
            for source in table.find_figures(row, column):
                for survey, figures in independent_figures.items():
                    if source.figure not in figures or source.audit not in ("", survey) or source.over_audits:
                        continue
                    place = (table.id, row.row, column, survey, source.label)
                    [cell] = [c for c in output["cells"] if (*place_of(c), c["data"], c["unit"]) == place]
                    assert cell["recomputed"] is not None, (table.id, row.row, column, cell)
                    assert cell["recomputed"]["value"] == pytest.approx(figures[source.figure], abs=1e-6), source.figure
                    if cell["is_extreme"]:
                        by_model = figures[BY_MODEL[source.figure.rpartition(".")[0]]]
                        assert by_model[cell["model"]] == pytest.approx(figures[source.figure]), "the extreme's model"
                    compared.add((table.id, column))
    assert compared == COMPARED
