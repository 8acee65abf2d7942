"""Reports of every kind of audit, built from databases that are filled without a request where that is possible."""

from __future__ import annotations

import asyncio
import csv
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np

from auditor.config import load_stored_config
from auditor.domain import Cell, CellScore, Outcome, Survey, SurveyCell, Trace, canonical_json
from auditor.domain.audit_records import DesignAnswer, PlannedRun
from auditor.imports.recorded_audits import import_scores
from auditor.reports.data.build import build_report
from auditor.reports.data.judge_quality.build import build_judge_quality
from auditor.reports.data.report_schema import Report
from auditor.reports.data.report_source import load_source
from auditor.run import run_audit
from auditor.storage import audits, results
from auditor.storage.audits import Audit
from auditor.storage.database import Database, open_database
from auditor.storage.records import save_experiment, save_records
from auditor.surveys.baselines import estimate_from_similar_countries
from auditor.surveys.loader import load_survey
from tests.support.audit_configs import config
from tests.support.consistency_audits import save_logic_audit, save_semantic_audit
from tests.support.fake_server import FakeServer
from tests.support.judge_test_audits import save_judge_test_audit
from tests.support.planted_labels import plant_labels, plant_truth
from tests.support.request_reports import change_answers, direct_keys
from tests.support.scripted_tasks import audit as make_task_audit, solver
from tests.support.synthetic_audit import populate

WORKED_EXAMPLE = Path(__file__).parents[1] / "e2e" / "golden" / "databases" / "worked_example.tar.xz"
"""The database of `auditor demo`, compressed."""
PEOPLE_SHAPE, N_SELECTED = (24, 8), 14
"""Countries and topics of a survey with standard errors, and the countries on which models have scores."""


@contextmanager
def opened(folder: Path) -> Iterator[Database]:
    with open_database(f"sqlite:///{folder}/audits.db") as db:
        yield db


def build_stored(save: Callable[[Database], Audit], folder: Path) -> Report:
    """The report of an audit that a function saves."""
    with opened(folder) as db:
        return build_report(db, save(db).name)


def build_worked_example(folder: Path) -> Report:
    shutil.unpack_archive(WORKED_EXAMPLE, folder, filter="data")
    with opened(folder) as db:
        return build_report(db, "simulated-demo")


def build_task_report(folder: Path) -> Report:
    """The report of a task whose answers are scores, solved by scripted models."""
    storage = f"sqlite:///{folder}/audits.db"
    with FakeServer(solver) as server:
        run_audit(make_task_audit(server.url, folder, "score", probes={"direct": {"samples": 2}}), storage=storage)
    with opened(folder) as db:
        verdicts = results.load_verdicts(db, audits.get_audit(db, "sums").id)
        for i, verdict in enumerate(verdicts):  # the order of the calls depends on the machine; figures rest on it
            asyncio.run(change_answers(db, [verdict.key or ""], created_at=f"2026-01-01T00:{i // 60:02}:{i % 60:02}Z"))
        return build_report(db, "sums")


def write_rows(path: Path, header: list[str], rows: Sequence[tuple[object, ...]]) -> Path:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    return path


def build_people_report(folder: Path) -> Report:
    """The report of four models on 14 of the 24 countries of a survey with standard errors of 0.08.

    `knows` has the population's scores, `recites` those of the survey, `noisy` these with noise, and `nearest` copies
    the estimates from similar countries.
    """
    rng = np.random.default_rng(2)
    factors = rng.normal(size=(PEOPLE_SHAPE[0], 2)) @ rng.normal(size=(2, PEOPLE_SHAPE[1]))
    population = np.clip(0.15 * factors + 0.1 * rng.normal(size=PEOPLE_SHAPE), -0.9, 0.9)
    survey = np.clip(population + 0.08 * rng.normal(size=PEOPLE_SHAPE), -1, 1)
    names = [(f"country {i:02d}", f"topic {j}") for i in range(PEOPLE_SHAPE[0]) for j in range(PEOPLE_SHAPE[1])]
    people = [(*name, float(score), 0.08) for name, score in zip(names, survey.ravel(), strict=True)]
    path = write_rows(folder / "people.csv", ["country", "topic", "score", "standard_error"], people)
    nearest = estimate_from_similar_countries(load_survey(path))["three nearest countries"]
    guesses = np.array([value for _, value in sorted(nearest.items())]).reshape(PEOPLE_SHAPE)
    noise = 0.1 * np.random.default_rng(3).normal(size=PEOPLE_SHAPE)
    models = {"knows": population, "recites": np.round(survey, 2), "noisy": survey + noise, "nearest": guesses}
    rows = [
        (model, *name, "direct", float(np.clip(score, -1, 1)))
        for model, scores in models.items()
        for name, score in zip(names[: N_SELECTED * PEOPLE_SHAPE[1]], scores.ravel(), strict=False)
    ]
    file = write_rows(folder / "scores.csv", ["model", "country", "topic", "method", "score"], rows)
    import_scores(file, survey=str(path), audit="a", storage=f"sqlite:///{folder}/audits.db")
    with opened(folder) as db:
        return build_report(db, "a")


def save_two_methods(db: Database) -> Audit:
    """The synthetic audit, with log-probability scores of all its models beside the direct ones."""
    audit = populate(db)
    rng = np.random.default_rng(4)
    scores = [
        CellScore(row.model, row.cell, "logprob", float(np.clip(2 * row.score + 0.2 * rng.normal(), -1, 1)), 1, 1)
        for row in results.load_scores(db, audit.id)
        if row.score is not None
    ]
    save_records(db, audit.id, scores)
    return audit


def build_labelled_report(folder: Path) -> Report:
    """The report of the synthetic audit, with the confidence of judges, and labels of three raters, at times unsure."""
    with opened(folder) as db:
        audit = populate(db, models=4, countries=12, topics=8)
        source = load_source(db, audit.name)
        confidence = np.random.default_rng(0).uniform(0.5, 1, len(source.votes))
        truth = plant_truth(source.votes, 0.1)
        labels = plant_labels(source.votes, truth, n_each=40, raters=3, rater_error=0.05, unsure_share=0.1)
        labelled = replace(source, votes=replace(source.votes, confidence=confidence), label_records=labels)
        return build_report(db, audit.name).model_copy(update={"judge_quality": build_judge_quality(labelled)})


def save_languages(db: Database) -> Audit:
    """An audit of two models in two languages, of which the second is worse in the south."""
    rng = np.random.default_rng(3)
    cells = [Cell(f"{'North' if i < 6 else 'South'} {i:02}", f"topic {j}") for i in range(12) for j in range(6)]
    scores = dict(zip(cells, rng.normal(0, 0.4, len(cells)).clip(-0.9, 0.9).tolist(), strict=True))
    survey = Survey(
        "languages", "t", "s", "{topic} {country}", ("never", "always"),
        tuple(SurveyCell(cell, score) for cell, score in scores.items()),
    )  # fmt: skip
    traces = []
    for model in ("model-a", "model-b"):
        for cell, score in scores.items():
            error = float(rng.normal(0, 0.15))
            for sample, (language, size) in enumerate((("en", 1.0), ("de", 2.0 if cell.country > "South" else 1.0))):
                answer = float(np.clip(score + size * error + rng.normal(0, 0.05), -1, 1))
                traces.append(Trace(model, cell, sample, Outcome.OK, answer, language=language))
    settings = config("http://127.0.0.1", 2, language=["en", "de"], judges=[], probes={"direct": {"samples": 1}})
    audit = audits.save_audit(
        db, name="languages", config=canonical_json(settings.model_dump(mode="json")), config_hash=settings.hash,
        survey=survey, environment={"auditor": "0"},
    )  # fmt: skip
    save_records(db, audit.id, traces)
    save_records(db, audit.id, [CellScore(trace.model, trace.cell, "direct", trace.score) for trace in traces[::2]])
    audits.set_stage(db, audit.id, audits.FINISHED)
    return audit


def save_designs(db: Database, *, samples: int = 3, seed: int = 0, name: str = "population") -> Audit:
    """A synthetic audit of seven models of one family with attributes, asked again in three wordings."""
    audit = populate(db, models=7, judges=1, samples=samples, seed=seed, name=name)
    settings = load_stored_config(audit.config)
    assert settings is not None
    models = [
        model.model_copy(
            update={"family": "pythia", "attributes": {"parameters": 10.0 ** (8 + i / 2), "tuning": "base"}}
        )
        for i, model in enumerate(settings.models)
    ]
    described = settings.model_copy(update={"models": models})
    survey = audits.load_audit_survey(db, audit)
    audits.save_audit(
        db, name=audit.name, config=canonical_json(described.model_dump(mode="json")), config_hash=audit.config_hash,
        survey=survey, environment={"auditor": "0.1.0"},
    )  # fmt: skip
    shifts = {"1": 0.0, "2": 0.1, "3": 0.3}
    runs = [PlannedRun(i, {"wording": name, "role": "none"}, tuple(survey.scores), 1) for i, name in enumerate(shifts)]
    answers = [
        DesignAnswer(run, settings.models[0].name, cell, 0, Outcome.OK, score + shift - 2 * shift * (score > 0.5))
        for run, shift in enumerate(shifts.values())
        for cell, score in survey.scores.items()
    ]
    save_experiment(db, audit.id, runs)
    save_experiment(db, audit.id, answers)
    return audit


def save_forms(db: Database) -> Audit:
    """The synthetic audit, one model of which was asked in two forms."""
    audit = populate(db, models=2)
    keys = direct_keys(db, "alder")
    asyncio.run(change_answers(db, keys[: len(keys) // 2], form="json_schema"))
    asyncio.run(change_answers(db, keys[len(keys) // 2 :], form="tool"))
    return audit


WHOLE_REPORTS: Mapping[str, Callable[[Path], Report]] = {
    "survey": lambda folder: build_stored(populate, folder),
    "one model": lambda folder: build_stored(lambda db: populate(db, models=1), folder),
    "one cell": lambda folder: build_stored(lambda db: populate(db, models=2, countries=1, topics=1), folder),
    "worked example": build_worked_example,
    "judges": lambda folder: build_stored(save_judge_test_audit, folder),
    "labels": build_labelled_report,
    "people": build_people_report,
    "two methods": lambda folder: build_stored(save_two_methods, folder),
    "languages": lambda folder: build_stored(save_languages, folder),
    "designs": lambda folder: build_stored(save_designs, folder),
    "forms": lambda folder: build_stored(save_forms, folder),
    "logic": lambda folder: build_stored(save_logic_audit, folder),
    "semantic": lambda folder: build_stored(save_semantic_audit, folder),
    "task": build_task_report,
}
"""How to build the report of each kind of audit in an empty folder."""
