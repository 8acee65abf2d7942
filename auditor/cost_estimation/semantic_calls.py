"""What the probe `semantic` would ask: answers, rules of thumb, other wordings, and what judges say of pairs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import comb

from auditor.agents.semantic.call_builders import PARAPHRASE_WORDS, answer_call, pair_call, paraphrase_call, rule_call
from auditor.agents.semantic.questions import planned_questions
from auditor.config import AuditConfig
from auditor.config.semantic import ConsistencySection, SemanticProbe
from auditor.cost_estimation.call_counts import USABLE
from auditor.cost_estimation.planned_calls import SAMPLED, Planned
from auditor.domain import Purpose
from auditor.domain.semantic import Question
from auditor.reports.cost.forecast import Range

REASON_WORDS = 20
"""Of a judge's answer about a pair."""
EXPECTED_ATTEMPTS = 2
"""How often a paraphraser is expected to be asked about one question: some of what it writes is rejected."""


def planned_semantic(config: AuditConfig, probe: SemanticProbe) -> Iterator[Planned]:
    """Answers to every wording, and to the samples of a consistency score; a rule of thumb for each usable answer."""
    questions = planned_questions(probe)
    some = questions[:: max(1, len(questions) // SAMPLED)][:SAMPLED]
    worded = len(questions) * probe.paraphrases
    asked = worded + len(questions) * (probe.consistency.samples if probe.consistency else 0)
    yield from _wordings(config, probe, questions)
    for model in config.models:
        examples = [answer_call(config, model, text) for q in some for text in q.paraphrases or (q.text,)]
        yield Planned(model, Purpose.MORAL, Range.of(asked), examples, probe.max_words)
    if probe.rot:
        yield from _rules(config, probe, some, worded)
    if probe.consistency is not None:
        yield from _consistency(config, probe, probe.consistency, questions)
    if probe.contradiction is not None:
        pairs = Range.of(*(share * min(probe.worst, len(questions)) for share in USABLE))
        yield from _pairs(config, probe, probe.contradiction, Purpose.CONTRADICTION, some, pairs)


def _wordings(config: AuditConfig, probe: SemanticProbe, questions: Sequence[Question]) -> Iterator[Planned]:
    """For questions with too few wordings; asked again for those that are rejected, up to the limit."""
    lacking = [(q, n) for q in questions if (n := probe.paraphrases - len(q.paraphrases)) > 0]
    if probe.paraphraser is None or not lacking:
        return
    author = config.model(probe.paraphraser)
    some = lacking[:: max(1, len(lacking) // SAMPLED)][:SAMPLED]
    attempts = Range.of(1, min(EXPECTED_ATTEMPTS, probe.attempts), probe.attempts)
    examples = [paraphrase_call(config, author, q, n, 0) for q, n in some]
    words = PARAPHRASE_WORDS * sum(n for _, n in lacking) / len(lacking)
    yield Planned(author, Purpose.PARAPHRASE, attempts * Range.of(len(lacking)), examples, words)


def _rules(config: AuditConfig, probe: SemanticProbe, some: Sequence[Question], worded: int) -> Iterator[Planned]:
    text = " ".join(["word"] * probe.max_words)
    rules = Range.of(*(share * worded for share in USABLE))
    authors = [config.model(probe.rot_model)] * len(config.models) if probe.rot_model else config.models
    for author in dict.fromkeys(m.name for m in authors):
        models = Range.of(sum(m.name == author for m in authors))
        examples = [rule_call(config, config.model(author), q.text, text) for q in some]
        yield Planned(config.model(author), Purpose.RULE, rules * models, examples, probe.rot_words)


def _consistency(
    config: AuditConfig, probe: SemanticProbe, score: ConsistencySection, questions: Sequence[Question]
) -> Iterator[Planned]:
    def pairs(answers: float) -> float:
        return comb(round(answers), 2) if score.pairs == "all" else max(0.0, answers - 1)

    some = questions[:: max(1, len(questions) // SAMPLED)][:SAMPLED]
    each = Range.of(*(len(questions) * pairs(share * score.samples) for share in USABLE))
    yield from _pairs(config, probe, score.judge, Purpose.CONSISTENCY, some, each)


def _pairs(
    config: AuditConfig,
    probe: SemanticProbe,
    judge: str,
    purpose: Purpose,
    some: Sequence[Question],
    each: Range,
) -> Iterator[Planned]:
    """Pairs of answers of every model but the judge itself."""
    models = sum(m.name != judge for m in config.models)
    section, text = config.model(judge), " ".join(["word"] * probe.max_words)
    if models:
        examples = [pair_call(config, section, purpose, q.text, text, text) for q in some]
        yield Planned(section, purpose, each * Range.of(models), examples, REASON_WORDS)
