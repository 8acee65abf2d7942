"""What the probe `semantic` would ask: answers, rules of thumb, other wordings, and what judges say of pairs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import comb

from auditor.agents.semantic.call_builders import (
    MAX_PARAPHRASE_WORDS,
    build_answer_call,
    build_pair_call,
    build_paraphrase_call,
    build_rule_call,
)
from auditor.agents.semantic.questions import load_planned_questions
from auditor.config import AuditConfig
from auditor.config.semantic import ConsistencySection, SemanticProbe
from auditor.cost_estimation.call_counts import USABLE_TRACE_SHARES
from auditor.cost_estimation.planned_calls import MAX_EXAMPLES, PlannedCalls
from auditor.domain import Purpose
from auditor.domain.semantic import MoralQuestion
from auditor.reports.cost.forecast import ForecastRange

JUDGE_REASON_WORDS = 20
"""Of a judge's answer about a pair."""
EXPECTED_PARAPHRASE_ATTEMPTS = 2
"""How often a paraphraser is expected to be asked about one question: some of what it writes is rejected."""


def plan_semantic_calls(config: AuditConfig, probe: SemanticProbe) -> Iterator[PlannedCalls]:
    """Answers to every wording, and to the samples of a consistency score; a rule of thumb for each usable answer."""
    questions = load_planned_questions(probe)
    some = questions[:: max(1, len(questions) // MAX_EXAMPLES)][:MAX_EXAMPLES]
    worded = len(questions) * probe.paraphrases
    asked = worded + len(questions) * (probe.consistency.samples if probe.consistency else 0)
    yield from _plan_paraphrase_calls(config, probe, questions)
    for model in config.models:
        examples = [build_answer_call(config, model, text) for q in some for text in q.paraphrases or (q.text,)]
        yield PlannedCalls(model, Purpose.MORAL, ForecastRange.from_bounds(asked), examples, probe.max_words)
    if probe.rot:
        yield from _plan_rule_calls(config, probe, some, worded)
    if probe.consistency is not None:
        yield from _plan_consistency_calls(config, probe, probe.consistency, questions)
    if probe.contradiction is not None:
        pairs = ForecastRange.from_bounds(*(share * min(probe.worst, len(questions)) for share in USABLE_TRACE_SHARES))
        yield from _plan_pair_calls(config, probe, probe.contradiction, Purpose.CONTRADICTION, some, pairs)


def _plan_paraphrase_calls(
    config: AuditConfig, probe: SemanticProbe, questions: Sequence[MoralQuestion]
) -> Iterator[PlannedCalls]:
    """For questions with too few wordings; asked again for those that are rejected, up to the limit."""
    lacking = [(q, n) for q in questions if (n := probe.paraphrases - len(q.paraphrases)) > 0]
    if probe.paraphraser is None or not lacking:
        return
    author = config.model(probe.paraphraser)
    some = lacking[:: max(1, len(lacking) // MAX_EXAMPLES)][:MAX_EXAMPLES]
    attempts = ForecastRange.from_bounds(1, min(EXPECTED_PARAPHRASE_ATTEMPTS, probe.attempts), probe.attempts)
    examples = [build_paraphrase_call(config, author, q, n, 0) for q, n in some]
    words = MAX_PARAPHRASE_WORDS * sum(n for _, n in lacking) / len(lacking)
    yield PlannedCalls(author, Purpose.PARAPHRASE, attempts * ForecastRange.from_bounds(len(lacking)), examples, words)


def _plan_rule_calls(
    config: AuditConfig, probe: SemanticProbe, sampled_questions: Sequence[MoralQuestion], n_wordings: int
) -> Iterator[PlannedCalls]:
    text = " ".join(["word"] * probe.max_words)
    rules = ForecastRange.from_bounds(*(share * n_wordings for share in USABLE_TRACE_SHARES))
    authors = [config.model(probe.rot_model)] * len(config.models) if probe.rot_model else config.models
    for author in dict.fromkeys(m.name for m in authors):
        models = ForecastRange.from_bounds(sum(m.name == author for m in authors))
        examples = [build_rule_call(config, config.model(author), q.text, text) for q in sampled_questions]
        yield PlannedCalls(config.model(author), Purpose.RULE, rules * models, examples, probe.rot_words)


def _plan_consistency_calls(
    config: AuditConfig, probe: SemanticProbe, section: ConsistencySection, questions: Sequence[MoralQuestion]
) -> Iterator[PlannedCalls]:
    def pairs(answers: float) -> float:
        return comb(round(answers), 2) if section.pairs == "all" else max(0.0, answers - 1)

    some = questions[:: max(1, len(questions) // MAX_EXAMPLES)][:MAX_EXAMPLES]
    each = ForecastRange.from_bounds(
        *(len(questions) * pairs(share * section.samples) for share in USABLE_TRACE_SHARES)
    )
    yield from _plan_pair_calls(config, probe, section.judge, Purpose.CONSISTENCY, some, each)


def _plan_pair_calls(
    config: AuditConfig,
    probe: SemanticProbe,
    judge: str,
    purpose: Purpose,
    sampled_questions: Sequence[MoralQuestion],
    pairs_per_model: ForecastRange,
) -> Iterator[PlannedCalls]:
    """Pairs of answers of every model but the judge itself."""
    models = sum(m.name != judge for m in config.models)
    section, text = config.model(judge), " ".join(["word"] * probe.max_words)
    if models:
        examples = [build_pair_call(config, section, purpose, q.text, text, text) for q in sampled_questions]
        yield PlannedCalls(
            section, purpose, pairs_per_model * ForecastRange.from_bounds(models), examples, JUDGE_REASON_WORDS
        )
