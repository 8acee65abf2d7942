"""Scores of groups of answers that an experiment collected, by the measures of the audit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from auditor.agents.run_context import RunContext
from auditor.domain import Outcome
from auditor.metrics.semantic import cosine_similarities
from auditor.models.text_similarity import consistency_measures
from auditor.probes.semantic.call_builders import semantic_probe
from auditor.probes.semantic.stage import scoring_settings
from auditor.probes.semantic.text_scores import (
    Floats,
    TextGrid,
    score_measures,
    score_similarities,
    stack_text_kinds,
)
from auditor.probes.semantic.vector_cache import VectorCache


class GroupScores(NamedTuple):
    """Scores of groups of answers, shape (groups,) each; nan for fewer than two usable texts.

    Attributes:
        main: by the measure that the audit reports as its score.
        by_measure: by every measure, `main` included; keys are the text and the metric of `QuestionScore`.
        outcomes: number of answers (`answer`) and rules of thumb (`rot`) with each outcome; empty where none was
            requested.
    """

    main: Floats
    by_measure: dict[tuple[str, str], Floats]
    outcomes: dict[str, Counter[Outcome]]


class AnswerWithRule(NamedTuple):
    """An answer and its rule of thumb; only the outcome `ok` has a text.

    `rule_outcome` is None if no rule was requested.
    """

    outcome: Outcome
    answer: str | None
    rule_outcome: Outcome | None = None
    rule: str | None = None


def score_groups(
    context: RunContext, groups: Sequence[Sequence[AnswerWithRule]], *, answers_only: bool = False
) -> GroupScores:
    """Score the consistency of each group of answers by every measure of the audit.

    Args:
        answers_only: whether rules of thumb are left out, even if the audit has them.
    """
    probe, encoder = semantic_probe(context.config), context.encoder_loaders["semantic"]()
    settings = scoring_settings(context.config, probe)
    if answers_only:
        settings = replace(settings, measured="answer")
    group_size = max(map(len, groups), default=0)
    answers: TextGrid = [_pad([member.answer for member in group], group_size) for group in groups]
    rules: TextGrid = [_pad([member.rule for member in group], group_size) for group in groups]
    vectors_by_text = VectorCache(context.db, encoder).embed(
        text for texts in (*answers, *rules) for text in texts if text is not None
    )
    scores: dict[tuple[str, str], Floats] = {}
    texts_by_kind: dict[str, TextGrid] = {}
    for kind, vectors in stack_text_kinds(answers, rules, vectors_by_text, settings, group_size).items():
        by_metric = score_similarities(cosine_similarities(vectors), kind, settings)
        scores |= {(kind, metric): values for metric, values in by_metric.items()}
        texts_by_kind |= {name: texts for name, texts in (("answer", answers), ("rot", rules)) if name == kind}
    measures = consistency_measures(probe.rivals, encoder, probe.bertscore_model)
    scores |= {key: np.array(values) for key, values in score_measures(texts_by_kind, measures).items()}
    return GroupScores(scores[settings.measured, settings.variant], scores, _count_outcomes(groups))


def _count_outcomes(groups: Sequence[Sequence[AnswerWithRule]]) -> dict[str, Counter[Outcome]]:
    """Count the answers and the rules of thumb by outcome, for each kind of text that was requested."""
    members = [member for group in groups for member in group]
    counts = {
        "answer": Counter(member.outcome for member in members),
        "rot": Counter(member.rule_outcome for member in members if member.rule_outcome is not None),
    }
    return {text: by_outcome for text, by_outcome in counts.items() if by_outcome}


def _pad(texts: list[str | None], size: int) -> list[str | None]:
    """The texts, with None appended up to a number of them."""
    return texts + [None] * (size - len(texts))
