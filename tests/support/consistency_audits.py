"""Synthetic audits of consistency in a database, made without requests: every estimate of their sections has a value.

Judges compare items of several sets, or models answer moral questions in several wordings. Equal arguments give equal
rows.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from auditor.domain import ComparisonChoice, Outcome
from auditor.probes.logic import comparison_rows as comparisons
from auditor.probes.logic.comparisons import Comparison, Item, ItemSet, Relation
from auditor.probes.semantic import answer_rows
from auditor.probes.semantic.records import (
    FOUNDATIONS,
    QUESTION_TEXT,
    MoralQuestion,
    PairVerdict,
    QuestionScore,
    SemanticScoringSettings,
)
from auditor.run import EMPTY_SURVEY
from auditor.storage import audits
from auditor.storage.audits import Audit
from auditor.storage.database import Database
from auditor.storage.records import save_records

N_JUDGES, N_SETS, N_ITEMS, N_WORDINGS, N_REPEATS = 4, 5, 5, 2, 2
ERROR_SHARES = np.linspace(0.05, 0.4, N_JUDGES)
"""Share of a judge's answers that are reversed: judges differ, so that figures correlate over them."""
COUNTRIES = ("Germany", "Japan", "France", "Kenya", "Canada", "Peru")
LANGUAGE_METRICS = ("languages:de-en", "translations:de-en", "sage@de")
MODELS, N_QUESTIONS, N_SAMPLES = ("alder", "birch", "cedar"), 36, 3


def save_logic_audit(db: Database, name: str = "comparisons", seed: int = 0) -> Audit:
    """Save an audit in which judges compare the items of several sets, in both orders, forms and wordings."""
    rng = np.random.default_rng(seed)
    audit = _save_audit(db, name)
    item_sets = []
    for i, row in enumerate(rng.permuted(np.tile(np.arange(N_ITEMS), (N_SETS, 1)), axis=1)):
        items = tuple(Item(f"item {j}", f"Item {j}", float(human)) for j, human in enumerate(row))
        item_sets.append(ItemSet(f"set {i}", "", "preference", items))
    comparisons.replace_item_sets(db, audit.id, item_sets)
    for judge, error_share in enumerate(ERROR_SHARES):
        for item_set in item_sets:
            answers = list(_compare_items(rng, f"judge {judge}", item_set, float(error_share)))
            save_records(db, audit.id, answers)
    return _finish(db, audit)


def _compare_items(rng: np.random.Generator, judge: str, item_set: ItemSet, error_share: float) -> Iterator[Comparison]:
    """All answers of a judge on one set; the better item is the one that people prefer."""
    for first, second in itertools.permutations(item_set.items, 2):
        for relation, wording in itertools.product(Relation, range(N_WORDINGS)):
            for sample in range(1 + N_REPEATS):
                names_better = rng.random() >= error_share
                is_first_named = ((first.human or 0) > (second.human or 0)) == (relation is Relation.STANDARD)
                decision = ComparisonChoice.FIRST if is_first_named == names_better else ComparisonChoice.SECOND
                question = (judge, item_set.context, first.id, second.id, relation)
                yield Comparison(*question, Outcome.OK, decision, paraphrase=wording, sample=sample)


def save_semantic_audit(db: Database, name: str = "questions", seed: int = 0) -> Audit:
    """Save an audit in which models answer questions of all foundations, scored by all measures and by a judge."""
    rng = np.random.default_rng(seed)
    audit = _save_audit(db, name)
    questions = []
    for i in range(N_QUESTIONS):
        foundation, country = FOUNDATIONS[i % len(FOUNDATIONS)], COUNTRIES[i % len(COUNTRIES)]
        question = MoralQuestion(f"q{i:02d}", f"Question {i}?", (f"Wording {i}?",), foundation, country=country)
        questions.append(question)
    answer_rows.replace_questions(db, audit.id, questions)
    measures = [(text, metric) for text in ("rot", "answer") for metric in ("sage", "cosine", "bleu")]
    scores = [
        QuestionScore(model, question.id, text, metric, float(rng.uniform(0.2 * i, 0.9)), 2, 0, 1, 0.1)
        for i, model in enumerate(MODELS)
        for text, metric in [*measures, *(("rot", name) for name in LANGUAGE_METRICS)]
        for question in questions
    ]
    scores += [
        QuestionScore("", question.id, QUESTION_TEXT, "sage", float(rng.uniform(0.2, 0.9)), 2, 0, 1, 0.1)
        for question in questions
    ]
    settings = SemanticScoringSettings(
        "synthetic", "encoder", "0" * 64, "sage", 10.0, 1.0, "rot", 2, "0" * 64, is_multilingual=True
    )
    answer_rows.replace_scores(db, audit.id, scores, [], settings)
    verdicts = [
        PairVerdict("judge", "consistency", model, question.id, left, right, Outcome.OK, bool(rng.random() < 0.7))
        for model, question in itertools.product(MODELS, questions)
        for left, right in itertools.combinations(range(N_SAMPLES), 2)
    ]
    save_records(db, audit.id, verdicts)
    return _finish(db, audit)


def _save_audit(db: Database, name: str) -> Audit:
    return audits.save_audit(db, name=name, config=None, config_hash=None, survey=EMPTY_SURVEY, environment={})


def _finish(db: Database, audit: Audit) -> Audit:
    audits.set_stage(db, audit.id, audits.FINISHED)
    return audits.get_audit(db, audit.name)
