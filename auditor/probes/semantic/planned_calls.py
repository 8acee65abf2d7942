"""Planned calls of the probe `semantic`: answers, rules of thumb, paraphrases, and judges' verdicts on pairs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from math import comb

from auditor.config import AuditConfig, ModelSection
from auditor.cost_estimation.planned_calls import USABLE_TRACE_SHARES, PlannedCalls, sample_evenly
from auditor.domain import Cell, Purpose, Survey
from auditor.probes.semantic.answers import list_recorded_answers
from auditor.probes.semantic.call_builders import (
    MAX_PARAPHRASE_WORDS,
    asked_text,
    build_answer_call,
    build_pair_call,
    build_paraphrase_call,
    build_rule_call,
    build_translation_call,
    is_paper_form,
    semantic_probe,
)
from auditor.probes.semantic.questions import load_planned_questions
from auditor.probes.semantic.records import (
    CONSISTENCY_PURPOSE,
    CONTRADICTION_PURPOSE,
    MORAL_PURPOSE,
    PARAPHRASE_PURPOSE,
    RULE_PURPOSE,
    TRANSLATION_PURPOSE,
    MoralQuestion,
)
from auditor.probes.semantic.settings import TASK_QUESTIONS, ConsistencySection, SemanticProbe
from auditor.reports.data.cost import ForecastRange

JUDGE_REASON_WORDS = 20
"""Words of a judge's reason about a pair of answers."""
EXPECTED_PARAPHRASE_ATTEMPTS = 2
"""Expected number of calls to the paraphraser for one question, since some of its candidates are rejected."""


def plan_semantic_calls(config: AuditConfig, survey: Survey, cells: Sequence[Cell]) -> Iterator[PlannedCalls]:
    """Yield the planned calls of the probe `semantic`, one entry per model and purpose.

    They are paraphrases of questions, answers to all wordings, further samples of the answers, rules of thumb behind
    the answers, and judges' verdicts on pairs of answers (consistency and contradiction).
    """
    probe = semantic_probe(config)
    questions = load_planned_questions(probe, survey)
    sampled_questions = sample_evenly(questions)
    n_wordings = len(questions) * probe.paraphrases
    n_answers = n_wordings + len(questions) * (probe.consistency.samples if probe.consistency else 0)
    yield from plan_paraphrase_calls(config, probe, questions)
    yield from plan_answer_calls(config, probe, sampled_questions, n_answers)
    if probe.rot and n_wordings:
        yield from plan_rule_calls(config, probe, sampled_questions, n_wordings)
    if probe.translator is not None:
        yield from _plan_translation_calls(config, probe, config.model(probe.translator), questions)
    if probe.consistency is not None:
        yield from _plan_consistency_calls(config, probe, probe.consistency, questions)
    if probe.contradiction is not None:
        n_models = sum(model.name != probe.contradiction for model in config.models)
        n_pairs = n_models * min(probe.worst, len(questions))
        pairs = ForecastRange.from_bounds(*(share * n_pairs for share in USABLE_TRACE_SHARES))
        yield from _plan_pair_calls(config, probe, probe.contradiction, CONTRADICTION_PURPOSE, sampled_questions, pairs)


def plan_answer_calls(
    config: AuditConfig, probe: SemanticProbe, sampled_questions: Sequence[MoralQuestion], n_answers: int
) -> Iterator[PlannedCalls]:
    """Yield the calls for as many answers of each model whose answers are not given.

    Args:
        sampled_questions: whose prompts are built as examples.
    """
    for model in config.models:
        if probe.has_given_answers(config, model):
            continue
        examples = [
            build_answer_call(config, model, asked_text(text, question.country, language))
            for question in sampled_questions
            for text, language in question.wordings
        ]
        yield PlannedCalls(model, MORAL_PURPOSE, ForecastRange.from_bounds(n_answers), examples, probe.max_words)


def plan_paraphrase_calls(
    config: AuditConfig, probe: SemanticProbe, questions: Sequence[MoralQuestion]
) -> Iterator[PlannedCalls]:
    """Yield the calls for paraphrases of the questions with too few wordings; rejected ones are asked for again."""
    incomplete = [
        (question, n_missing)
        for question in questions
        if (n_missing := probe.paraphrases - len(question.paraphrases)) > 0
    ]
    if probe.paraphraser is None or not incomplete:
        return
    author = config.model(probe.paraphraser)
    sampled = sample_evenly(incomplete)
    attempts = ForecastRange.from_bounds(1, min(EXPECTED_PARAPHRASE_ATTEMPTS, probe.attempts), probe.attempts)
    examples = [build_paraphrase_call(config, author, question, n_missing, 0) for question, n_missing in sampled]
    words = MAX_PARAPHRASE_WORDS * sum(n_missing for _, n_missing in incomplete) / len(incomplete)
    yield PlannedCalls(
        author, PARAPHRASE_PURPOSE, attempts * ForecastRange.from_bounds(len(incomplete)), examples, words
    )


def plan_rule_calls(
    config: AuditConfig, probe: SemanticProbe, sampled_questions: Sequence[MoralQuestion], n_wordings: int
) -> Iterator[PlannedCalls]:
    """Yield the calls for a rule of thumb behind each usable answer, by the configured model or the answer's author.

    Args:
        sampled_questions: whose prompts are built as examples.
        n_wordings: number of wordings of all questions, which is also each model's number of answers to them.
    """
    text = " ".join(["word"] * probe.max_words)
    rules = ForecastRange.from_bounds(*(share * n_wordings for share in USABLE_TRACE_SHARES))
    authors = [config.model(probe.rot_model)] * len(config.models) if probe.rot_model else config.models
    for author in dict.fromkeys(model.name for model in authors):
        models = ForecastRange.from_bounds(sum(model.name == author for model in authors))
        examples = [
            build_rule_call(
                config, config.model(author), asked_text(question.text, question.country, question.language), text
            )
            for question in sampled_questions
        ]
        yield PlannedCalls(config.model(author), RULE_PURPOSE, rules * models, examples, probe.rot_words)


def _plan_translation_calls(
    config: AuditConfig, probe: SemanticProbe, translator: ModelSection, questions: Sequence[MoralQuestion]
) -> Iterator[PlannedCalls]:
    """Yield the translations of one answer of each model, for each question and pair of its languages."""
    n_pairs = sum(comb(len({*(question.languages or (question.language,))}), 2) for question in questions)
    translations = ForecastRange.from_bounds(*(share * n_pairs * len(config.models) for share in USABLE_TRACE_SHARES))
    examples = [build_translation_call(config, translator, " ".join(["word"] * probe.max_words), "de")]
    if n_pairs:
        yield PlannedCalls(translator, TRANSLATION_PURPOSE, translations, examples, probe.max_words)


def _plan_consistency_calls(
    config: AuditConfig, probe: SemanticProbe, section: ConsistencySection, questions: Sequence[MoralQuestion]
) -> Iterator[PlannedCalls]:
    """Yield the calls to the judge of consistency about pairs of answers to one question.

    They are about all pairs of the n answers, or about `n - 1` pairs, as `section.pairs` says.
    """

    def count_pairs(answers: float) -> float:
        """The number of judged pairs of this many answers to one question."""
        return comb(round(answers), 2) if section.pairs == "all" else max(0.0, answers - 1)

    ids = {question.id for question in questions}
    samples = config.direct.samples if probe.questions == TASK_QUESTIONS else section.samples
    recorded = [answers for _, answers in list_recorded_answers(config)]
    n_asked = sum(model.name != section.judge for model in config.models) - len(recorded)
    pairs = ForecastRange.from_bounds(
        *(n_asked * len(questions) * count_pairs(share * samples) for share in USABLE_TRACE_SHARES)
    )
    for answers in recorded:
        n_by_question = Counter(answer.question for answer in answers if answer.text and answer.question in ids)
        pairs += ForecastRange.from_bounds(sum(map(count_pairs, n_by_question.values())))
    sampled_questions = sample_evenly(questions)
    yield from _plan_pair_calls(config, probe, section.judge, CONSISTENCY_PURPOSE, sampled_questions, pairs)


def _plan_pair_calls(
    config: AuditConfig,
    probe: SemanticProbe,
    judge: str,
    purpose: Purpose,
    sampled_questions: Sequence[MoralQuestion],
    pairs: ForecastRange,
) -> Iterator[PlannedCalls]:
    """Yield the calls to a judge about pairs of answers of every model except the judge itself; none without others.

    Args:
        judge: name of the judging model.
        purpose: what the judge is asked: about consistency or contradiction.
        pairs: number of pairs of answers of all judged models.
    """
    section, text = config.model(judge), " ".join(["word"] * probe.max_words)
    if any(model.name != judge for model in config.models):
        examples = [
            build_pair_call(
                config, section, purpose, asked_text(question.text, question.country, question.language), text, text
            )
            for question in sampled_questions
        ]
        words = 1 if is_paper_form(config, purpose) else JUDGE_REASON_WORDS
        yield PlannedCalls(section, purpose, pairs, examples, words)
