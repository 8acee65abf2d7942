"""Simulated models answer calls of every purpose through recorder, gateway and graph, and only by themselves."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any
from unittest import mock

import numpy
import pytest
from pydantic import ValidationError
from sqlalchemy import select

from auditor.config import AuditConfig
from auditor.domain import Outcome, Purpose
from auditor.experiments.judges import bias, planted
from auditor.experiments.stored_audit import ExperimentContext
from auditor.models.simulated import POSITIVE_ENDS, has_flaw
from auditor.probes.semantic.experiments.runs import rules
from auditor.prompts.language_data import load_sentence_pairs
from auditor.reports.output import render_report
from auditor.run import run_audit
from auditor.storage.call_records import StoredAnswer
from auditor.storage.database import open_database
from auditor.storage.row_classes import table_of
from auditor.storage.schema import load_metadata
from auditor.surveys import load_survey
from tests.support.cli_runner import succeed
from tests.support.fixed_address import word_encoder
from tests.support.scripted_tasks import sum_task

MODELS = [{"name": name, "model": f"simulated/{name}"} for name in ("knows-every-culture", "western-everywhere")]
JUDGES = [{"name": name, "model": f"simulated/{name}"} for name in ("careful-judge-1", "lenient-judge")]
SURVEY = {"source": "wvs7-sample", "countries": ["Germany", "Nigeria"], "topics": ["divorce", "abortion", "suicide"]}


def simulated(**changes: Any) -> AuditConfig:
    base = {"name": "simulated-test", "models": MODELS, "judges": JUDGES, "embedding": {"model": "none"}, "seed": 3}
    return AuditConfig.model_validate(base | {"survey": SURVEY} | changes)


def run_survey(storage: str, _: Path) -> None:
    """Direct scores, log-probabilities, comparisons, all questions to judges, and experiments on judges."""
    review = {"guess": True, "rewrite": "neutral", "rewriter": "careful-judge-1"}
    probes = {"direct": {"samples": 2}, "logprob": {}, "logic": {"samples": 1}, "review": review}
    run_audit(simulated(probes=probes, conflicts={"threshold": 0.1}), storage=storage)
    planted(ExperimentContext(storage), "simulated-test", 2)
    bias(ExperimentContext(storage), "simulated-test", 2)


def run_other_forms(storage: str, _: Path) -> None:
    """Direct scores as text, and comparisons by the next token, with reasons, and of traces."""
    text_form = {"direct": {"samples": 1, "mode": "text"}, "logic": {"samples": 0, "answer": "probability"}}
    run_audit(simulated(probes=text_form), storage=storage)
    reasoned = {"direct": {"samples": 1}, "logic": {"samples": 0, "cot": True, "items": "traces"}}
    run_audit(simulated(probes=reasoned, name="simulated-reasons"), storage=storage)


def run_moral_questions(storage: str, folder: Path) -> None:
    """Moral questions that a model paraphrases, their rules of thumb, and judgements of pairs."""
    questions = folder / "questions.csv"
    rows = [f"{item},Is it wrong to keep a borrowed {item}?" for item in ("book", "bicycle", "coat", "boat")]
    questions.write_text("\n".join(["question_id,question", *rows]))
    judges = {"consistency": {"judge": "lenient-judge", "samples": 2}, "contradiction": "lenient-judge", "worst": 1}
    probe = {"questions": str(questions), "paraphraser": "careful-judge-1", "paraphrases": 4, "threshold": 0.01}
    for mode in ("structured", "text"):
        moral = {"semantic": {**probe, **judges, "mode": mode}}
        models = [*MODELS, {"name": "inconsistent", "model": "simulated/inconsistent"}]
        changes = {"models": models, "survey": None, "embedding": {"model": "words"}}
        run_audit(simulated(name=f"simulated-{mode}", probes=moral, **changes), storage=storage)
    rules(ExperimentContext(storage), "simulated-structured")
    rows = [
        f"{n},Is it wrong to keep a book?,May one keep book {n} ({code})?,{code}"
        for n in (1, 2)
        for code in ("en", "de")
    ]
    questions.write_text("\n".join(["question_id,question,paraphrase,language", *rows]))
    moral = {"semantic": {"questions": str(questions), "paraphrases": 2, "translator": "careful-judge-1"}}
    changes = {"survey": None, "embedding": {"model": "words"}}
    run_audit(simulated(probes=moral, name="simulated-languages", **changes), storage=storage)


def run_opinions(storage: str, _: Path) -> None:
    survey = {"source": "pew2013-sample", "countries": ["Germany", "Japan"], "topics": ["gambling"]}
    probe = {"modes": ["verbalized", "sampled", "tokens"], "samples": 4}
    run_audit(simulated(survey=survey, judges=[], probes={"distribution": probe}), storage=storage)


def run_tasks(storage: str, folder: Path) -> None:
    """Items of a task in every form."""
    for kind in ("exact", "choice", "score"):
        for mode in ("structured", "text"):
            (folder / f"{kind}-{mode}").mkdir()
            config = simulated(
                name=f"simulated-{kind}-{mode}", survey=None, task=sum_task(folder / f"{kind}-{mode}", kind, items=3),
                probes={"direct": {"samples": 2, "mode": mode}},
            )  # fmt: skip
            run_audit(config, storage=storage)


def load_outcomes(storage: str) -> tuple[set[str], dict[str, set[str]]]:
    """Purposes of the recorded answers, and the outcomes in every table that has some, by table."""
    with open_database(storage) as db, db.read() as connection:
        purposes = set(connection.execute(select(table_of(StoredAnswer).c.purpose)).scalars())
        outcomes = {
            table.name: set(connection.execute(select(table.c.outcome)).scalars())
            for table in load_metadata().sorted_tables
            if "outcome" in table.c
        }
    return purposes, {name: values for name, values in outcomes.items() if values}


PURPOSES = {
    run_survey: {"direct", "logprob", "logic", "review", "guess", "rewrite", "contest"},
    run_other_forms: {"direct", "logic", "review"},
    run_moral_questions: {"paraphrase", "translation", "moral", "rule", "consistency", "contradiction"},
    run_opinions: {"opinion"},
    run_tasks: {"direct", "review"},
}
"""Purposes of the calls of each audit."""


@pytest.mark.parametrize(("run_audits", "purposes"), PURPOSES.items())
def test_every_purpose_is_answered_in_the_form_that_is_asked_for(
    run_audits: Callable[[str, Path], None], purposes: set[str], storage: str, tmp_path: Path
) -> None:
    connect = mock.patch("socket.socket.connect", side_effect=AssertionError("a connection was opened"))
    with connect, word_encoder():
        run_audits(storage, tmp_path)
    recorded_purposes, outcomes = load_outcomes(storage)
    assert recorded_purposes == purposes
    assert outcomes == {name: {Outcome.OK.value} for name in outcomes}
    assert set(outcomes) > {"answer", "attempt"}


def test_the_audits_have_calls_of_every_purpose_but_preflight() -> None:
    covered = set().union(*PURPOSES.values())
    assert covered == {purpose.value for purpose in Purpose} - {"preflight"}  # there is nothing to find out of a server


def test_simulated_and_real_models_cannot_be_in_one_audit() -> None:
    real = {"name": "gpt", "model": "openai/gpt-4o"}
    for changes in ({"models": [*MODELS, real]}, {"judges": [real]}, {"models": [real]}):
        with pytest.raises(ValidationError, match="simulated and real models cannot be in one audit"):
            simulated(**changes)


def test_recorded_answers_may_be_judged_by_simulated_models(tmp_path: Path) -> None:
    """The worked example of the consistency score has such answers."""
    models = tmp_path / "models.toml"
    models.write_text(
        '[[models]]\nname = "a"\nmodel = "simulated/knows-every-culture"\n'
        '[[judges]]\nname = "b"\nmodel = "simulated/careful-judge"\n',
        encoding="utf-8",
    )
    words = ("replicate", "consistency", "--table", "example", "--models", models, "--json")
    result = succeed(*words, "--storage", f"sqlite:///{tmp_path}/simulated.db")
    [cell] = json.loads(result.stdout)["cells"]
    assert (cell["audit"], cell["recomputed"]["n"]) == ("simulated-rep-consistency-example", 2)


def test_the_name_of_an_audit_of_simulated_models_says_so() -> None:
    with pytest.raises(ValidationError, match="its name must start with 'simulated'"):
        simulated(name="my-audit")


def test_an_unknown_persona_is_named_with_the_closest_one() -> None:
    with pytest.raises(ValidationError, match="Did you mean 'western-everywhere'"):
        simulated(models=[{"name": "a", "model": "simulated/western-everwhere"}])


def test_answers_for_one_survey_are_not_used_for_another(storage: str, tmp_path: Path) -> None:
    config = simulated(judges=[], probes={"direct": {"samples": 2}})
    before = run_audit(config, storage=storage).report()
    survey_file = tmp_path / "own.csv"
    cells = load_survey("wvs7-sample").scores.items()
    rows = [
        f'{cell.country},"{cell.topic}",{-score}' for cell, score in cells if cell.country in ("Germany", "Nigeria")
    ]
    survey_file.write_text("\n".join(["country,topic,score", *rows]))
    changed_survey = {**SURVEY, "source": str(survey_file)}
    after = run_audit(simulated(judges=[], survey=changed_survey, probes={"direct": {"samples": 2}}), storage=storage)
    scores_before, scores_after = (
        [cell.scores["direct"]["knows-every-culture"] or 0.0 for cell in report.audit.cells]
        for report in (before, after.report())
    )
    assert numpy.corrcoef(scores_before, scores_after)[0, 1] < -0.9


def test_equal_seeds_give_equal_answers_and_other_seeds_others(storage: str, tmp_path: Path) -> None:
    """The records pass verification, and every page of the report says that the models are simulated."""
    config = simulated(judges=[], probes={"direct": {"samples": 2}})
    first = run_audit(config, storage=storage)
    assert run_audit(config, storage=f"sqlite:///{tmp_path}/other.db").scores() == first.scores()
    changed = simulated(judges=[], probes={"direct": {"samples": 2}}, seed=4)
    assert run_audit(changed, storage=f"sqlite:///{tmp_path}/third.db").scores() != first.scores()
    succeed("verify", "simulated-test", "--storage", storage)
    report = first.report()
    assert report.audit.simulated
    for page_format in ("html", "markdown", "text"):
        page = render_report(report, page_format)
        assert "Worked example: simulated models" in page
        assert "The figures are about no real model." in " ".join(page.split())


def test_simulated_judges_know_the_planted_faults() -> None:
    sentences = tomllib.loads((resources.files("auditor.prompts") / "en" / "faults.toml").read_text(encoding="utf-8"))
    assert has_flaw(sentences["western_norm"], None)
    assert has_flaw(sentences["non_sequitur"], None)
    assert not has_flaw(sentences["padding"], None)
    ends = load_sentence_pairs().ends
    assert {positive for positive, _ in ends} == POSITIVE_ENDS
