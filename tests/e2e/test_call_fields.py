"""All fields of the calls of every probe, for models with every setting that a call depends on.

`golden/calls.json` holds the beginnings of each call's key and of a digest of all its fields, by the names of the
config, the model and the builder. A changed key asks everything again that was paid for; see
`tests/e2e/test_requests_unchanged.py`. To record new calls:

    AUDITOR_GOLDEN=write pytest tests/e2e/test_call_fields.py
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import asdict, replace
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from auditor.agents.blinding_checks import _build_guess_call, _build_restatement_call
from auditor.agents.call_builders import build_direct_call, build_review_call
from auditor.agents.judge_experiments import _build_contest_call
from auditor.agents.sentence_pairs import build_sentence_pairs
from auditor.config import AuditConfig, ModelSection
from auditor.domain import (
    AnswerKind,
    Call,
    Cell,
    Conflict,
    ConflictKind,
    LogprobMeasure,
    Outcome,
    Purpose,
    Survey,
    Task,
    TaskItem,
    Trace,
)
from auditor.probes.distribution.opinion_questions import OpinionQuestion, OpinionSubject, build_opinion_call
from auditor.probes.distribution.opinions import OpinionMode, ScaleOrder
from auditor.probes.distribution.settings import DistributionProbe
from auditor.probes.logic.comparisons import Item, ItemSet
from auditor.probes.logic.questions import LogicQuestion, build_comparison_call
from auditor.probes.logic.settings import LogicProbe
from auditor.probes.semantic.call_builders import (
    build_answer_call,
    build_choice_call,
    build_pair_call,
    build_paraphrase_call,
    build_rule_call,
    build_translation_call,
)
from auditor.probes.semantic.records import MoralQuestion
from auditor.surveys import SurveyDistributions, load_survey, select_cells
from auditor.surveys.countries import native_languages
from auditor.surveys.distributions import AnswerPoint
from tests.support.audit_configs import config, with_schema_version

FILE = Path(__file__).with_name("golden") / "calls.json"
PURPOSES_WITHOUT_BUILDER = {Purpose.PREFLIGHT}
"""Calls that are built for another purpose first."""
CELL = Cell("Japan", "divorce")
TRACE = Trace("plain", CELL, 2, Outcome.OK, 0.5, "People there accept it.")
LATER_COUNTRIES = ("Greece", "New Zealand")
QUESTION = MoralQuestion("book", "Is it wrong to keep a borrowed book?")
ITEMS = ItemSet("topics", "Actions in Japan.", "preference", (Item("1", "divorce"), Item("2", "abortion")))

SHARES = SurveyDistributions(
    points=tuple(AnswerPoint(name=str(i), score=i / 2 - 1) for i in range(5)), is_ordered=True, cells=()
)


def _models(record: Path) -> list[ModelSection]:
    """Models with no setting, with every setting, and with a file of answers."""
    url = "https://llm.example/v1"
    every_setting = {
        "name": "every-setting", "model": "azure/deployment", "api_base": url, "base_model": "azure/gpt-4o",
        "system": "You are terse.", "temperature": 0.3, "params": {"top_p": 0.9, "max_tokens": 77},
        "reasoning": {"effort": "low", "max_tokens": 100}, "capabilities": {"form": "tool"}, "weights": "some/weights",
    }  # fmt: skip
    return [
        ModelSection(name="plain", model="openai/gpt-4o", weights="other/weights"),
        ModelSection.model_validate(every_setting),
        ModelSection(name="replayed", model="replay/old", answers=str(record), weights="no/weights"),
        ModelSection(name="with-record", model="openai/gpt-4o-mini", answers=str(record), weights="no/weights"),
    ]


def _configs(models: list[ModelSection]) -> dict[str, AuditConfig]:
    """Configs in which models judge each other or listed judges do, in both modes and in other languages."""
    as_text = {"direct": {"mode": "text", "temperature": 0.9}, "semantic": {"mode": "text", "temperature": 0.2}}
    base = config("http://localhost", embedding={"model": "words"}, probes={"direct": {}, "semantic": {}})
    earlier = with_schema_version(base, 1)
    short_reviews = config("http://localhost", embedding={"model": "words"}, probes={"review": {"max_words": 20}})
    short_reviews = short_reviews.model_copy(update={"models": models})
    listed = {"judges": [model for model in models if not model.model.startswith("replay/")]}
    any_subject = {"subject": "any", "rot": False, "consistency": {"judge": "model-a", "form": "paper"}}
    other_subject = {"direct": {"schema_version": 1}, "semantic": any_subject}
    return {
        "any subject": config("http://localhost", embedding={"model": "words"}, probes=other_subject)
        .model_copy(update={"models": models}),
        "peers": earlier.model_copy(update={"models": models}),
        "listed judges": earlier.model_copy(update={"models": models, **listed}),
        "schema 2": base.model_copy(update={"models": models}),
        "short reviews": short_reviews,
        "text": config("http://localhost", embedding={"model": "words"}, probes=as_text, language="native", seed=8)
        .model_copy(update={"models": models}),
    }  # fmt: skip


def _survey() -> Survey:
    """The sample with the countries that it had when the calls were recorded: guesses offer its countries."""
    sample = load_survey("wvs7-sample")
    survey = select_cells(sample, [name for name in sample.countries if name not in LATER_COUNTRIES])
    return replace(survey, native={country: native_languages(country) for country in survey.countries})


def _task_survey() -> Survey:
    items = {"1": TaskItem("1", "Which?", truth="b", options=("a", "b"))}
    return replace(_survey(), task=Task("items.csv", AnswerKind.CHOICE, "", items=items))


def _calls(audit: AuditConfig, model: ModelSection) -> Iterator[tuple[str, Call]]:
    """Calls of every builder, with the builder's name."""
    survey, task_survey = _survey(), _task_survey()
    context: Any = SimpleNamespace(config=audit, survey=survey)
    for sample in range(2):
        yield f"direct {sample}", build_direct_call(audit, survey, model, CELL, sample)
    yield "direct task", build_direct_call(audit, task_survey, model, Cell("", "1"), 0)
    yield "review", build_review_call(audit, survey, model, TRACE, "People there accept it.")
    task_trace = Trace("plain", Cell("", "1"), 0, Outcome.OK, None, "Because.", answer="b")
    yield "review task", build_review_call(audit, task_survey, model, task_trace, "Because.")
    guessed_trace = replace(TRACE, model="every-setting" if model.name == "plain" else "plain")
    yield "guess", _build_guess_call(context, model, guessed_trace, "People there accept it.")[1]
    yield "rewrite", _build_restatement_call(context, model, TRACE)
    conflict = Conflict(CELL, "plain", "replayed", 0.5, -0.5, ConflictKind.BINARY)
    sides = [replace(TRACE, text=text, score=score) for text, score in (("yes", 0.5), ("no", -0.5))]
    yield "contest", _build_contest_call(context, model, conflict, sides)
    for measure in LogprobMeasure:
        pair = next(build_sentence_pairs(model, CELL, measure))
        for call in pair.calls:
            yield f"pair {measure} {pair.calls.index(call)}", call
    yield from _comparison_calls(audit, model)
    yield from _semantic_calls(audit, model)
    yield from _opinion_calls(audit, model)


def _comparison_calls(audit: AuditConfig, model: ModelSection) -> Iterator[tuple[str, Call]]:
    probes = {"logic": LogicProbe(), "cot": LogicProbe(cot=True), "letters": LogicProbe(answer="probability")}
    for (name, probe), sample, language in product(probes.items(), range(2), ("en", "ja")):
        items, question = replace(ITEMS, language=language), LogicQuestion(0, 0, 1, sample=sample)
        yield f"{name} {sample} {language}", build_comparison_call(audit, probe, model, items, question)


def _opinion_calls(audit: AuditConfig, model: ModelSection) -> Iterator[tuple[str, Call]]:
    survey = _survey()
    asking = audit.model_copy(update={"probes": audit.probes.model_copy(update={"distribution": DistributionProbe()})})
    for mode, scale_order in product(OpinionMode, ScaleOrder):
        question = OpinionQuestion(OpinionSubject(CELL), mode, scale_order, 0)
        call = build_opinion_call(asking, survey, SHARES, model, question)
        if call is not None:
            yield f"opinion {mode} {scale_order}", call


def _semantic_calls(audit: AuditConfig, model: ModelSection) -> Iterator[tuple[str, Call]]:
    yield "answer", build_answer_call(audit, model, QUESTION.text)
    yield "answer 3", build_answer_call(audit, model, QUESTION.text, sample=3, temperature=1.0)
    yield "answer rule", build_answer_call(audit, model, QUESTION.text, rule="Give back what you borrow.")
    yield "choice", build_choice_call(audit, model, QUESTION.text, ["yes", "no"])
    yield "rule", build_rule_call(audit, model, QUESTION.text, "Yes.")
    yield "paraphrase", build_paraphrase_call(audit, model, QUESTION, 4, 1)
    yield "translation", build_translation_call(audit, model, "Yes.", "de")
    for purpose in (Purpose.declare("consistency"), Purpose.declare("contradiction")):
        yield purpose.value, build_pair_call(audit, model, purpose, QUESTION.text, "Yes.", "No.")


def test_every_field_of_every_call_is_as_recorded(tmp_path: Path) -> None:
    record = tmp_path / "record.csv"
    record.write_text("model,country,topic,sample,text\nold,Japan,divorce,0,SCORE = 0.5\n")
    models = _models(record)
    calls: dict[str, str] = {}
    purposes: set[Purpose] = set()
    for (audit_name, audit), model in product(_configs(models).items(), models):
        for builder, call in _calls(audit, model):
            fields = json.dumps(asdict(call), ensure_ascii=False)  # in the order in which the provider gets the params
            digest = hashlib.sha256(fields.encode()).hexdigest()
            calls[f"{audit_name}, {model.name}, {builder}"] = f"{call.key[:16]} {digest[:16]}"
            purposes.add(call.purpose)
    assert purposes == set(Purpose) - PURPOSES_WITHOUT_BUILDER
    if os.environ.get("AUDITOR_GOLDEN") == "write":
        FILE.write_text(json.dumps(calls, indent=1) + "\n", encoding="utf-8")
    recorded = json.loads(FILE.read_text(encoding="utf-8"))
    changed = [name for name in recorded if calls.get(name) != recorded[name]]
    assert not changed, f"{len(changed)} calls changed: {changed[:10]}"
    assert calls.keys() == recorded.keys()
