"""Stage of the probe `semantic`: store questions, generate paraphrases, collect answers, score, judge pairs."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from auditor.agents.probe_stage import ProbeStage
from auditor.agents.run_context import RunContext
from auditor.agents.stages import record_stage, wait_for_answers
from auditor.config import AuditConfig
from auditor.config.value_checks import DEFAULT_ENCODER
from auditor.domain import ENGLISH
from auditor.models.text_similarity import consistency_measures
from auditor.probes.semantic import answer_rows
from auditor.probes.semantic.answers import collect_answers, group_recorded_answers
from auditor.probes.semantic.call_builders import semantic_probe
from auditor.probes.semantic.labels import find_least_consistent_pairs, judge_consistency, judge_pairs
from auditor.probes.semantic.paraphrases import generate_paraphrases, translate_answers
from auditor.probes.semantic.questions import save_questions
from auditor.probes.semantic.records import (
    CONTRADICTION_PURPOSE,
    MoralAnswerRecord,
    MoralQuestion,
    SemanticScoringSettings,
)
from auditor.probes.semantic.scoring import ScoringPlan, score_audit
from auditor.probes.semantic.settings import TASK_QUESTIONS, SemanticProbe

QUESTIONS_PER_BATCH = 16
"""Questions in one parallel branch; bounds its memory."""
STAGE = "semantic"


class SemanticPlan(NamedTuple):
    """The questions as stored, and the recorded answers by model and question."""

    questions: Sequence[MoralQuestion]
    recorded_answers: Mapping[str, Mapping[str, Sequence[MoralAnswerRecord]]]


def build_semantic_stage() -> ProbeStage:
    """Build the stage of the probe."""
    return ProbeStage(STAGE, store_questions, answer, QUESTIONS_PER_BATCH, before=(paraphrase,), after=(score, judge))


async def store_questions(context: RunContext) -> int:
    """Store the questions and their wordings, and count them."""
    probe = semantic_probe(context.config)
    if probe.questions == TASK_QUESTIONS:
        await wait_for_answers(context)
    await record_stage(context, STAGE)
    return await asyncio.to_thread(_store_questions, context, probe)


def _store_questions(context: RunContext, probe: SemanticProbe) -> int:
    """Store the questions with their wordings, and plan; return their number. Warns of an unsuitable encoder."""
    questions = save_questions(context.db, context.audit_id, probe, context.survey)
    languages = {question.language for question in questions}.union(*(question.languages for question in questions))
    encoder = probe.encoder or context.config.embedding.model
    if probe.paraphrases and encoder == DEFAULT_ENCODER and (other_languages := sorted(languages - {ENGLISH})):
        context.progress.on_notice(
            f"The encoder {encoder} is for English only, but some questions are in {', '.join(other_languages)}. "
            "Name a multilingual encoder in probes.semantic.encoder."
        )
    stored_questions = answer_rows.load_questions(context.db, context.audit_id)
    context.probe_plans[STAGE] = SemanticPlan(stored_questions, group_recorded_answers(context.config))
    return len(stored_questions)


async def paraphrase(context: RunContext) -> None:
    """Generate paraphrases for questions that have too few, if a paraphraser is configured."""
    probe = semantic_probe(context.config)
    if probe.paraphraser is not None:
        for questions in _question_batches(context):
            await generate_paraphrases(context, probe, questions)


def _question_batches(context: RunContext) -> Iterator[Sequence[MoralQuestion]]:
    """Yield the stored questions in batches."""
    questions = context.probe_plans[STAGE].questions
    for start in range(0, len(questions), QUESTIONS_PER_BATCH):
        yield questions[start : start + QUESTIONS_PER_BATCH]


async def answer(context: RunContext, start: int, stop: int) -> None:
    """Ask every model all wordings of the range, and the rule of thumb behind each answer."""
    plan: SemanticPlan = context.probe_plans[STAGE]
    await collect_answers(context, plan.questions[start:stop], plan.recorded_answers)


async def score(context: RunContext) -> None:
    """Embed answers and rules, and score every question; without paraphrases, there is nothing to score."""
    await record_stage(context, STAGE)
    if not semantic_probe(context.config).paraphrases:
        settings = scoring_settings(context.config, semantic_probe(context.config))
        await asyncio.to_thread(answer_rows.replace_scores, context.db, context.audit_id, [], [], settings)
        return
    for questions in _question_batches(context):
        await translate_answers(context, questions)
    await asyncio.to_thread(score_audit, context.db, context.audit_id, build_scoring_plan(context))


async def judge(context: RunContext) -> None:
    """Have the configured judges assess pairs of answers for consistency and contradiction."""
    await record_stage(context, STAGE)
    probe = semantic_probe(context.config)
    least_consistent = await asyncio.to_thread(find_least_consistent_pairs, context, probe)
    for questions in _question_batches(context):
        if probe.consistency is not None:
            await judge_consistency(context, probe.consistency, questions)
        if probe.contradiction is not None:
            await judge_pairs(context, CONTRADICTION_PURPOSE, probe.contradiction, questions, least_consistent)


def build_scoring_plan(context: RunContext) -> ScoringPlan:
    """Build the scoring plan of a run from its configuration."""
    probe, encoder = context.config.probes.get(SemanticProbe), context.encoder_loaders.get("semantic")
    assert encoder is not None

    def on_texts_embedded(n_texts: int) -> None:
        """Report progress; their vectors are stored, so the run can stop here."""
        context.progress.on_steps_completed("embed", n_texts)
        context.raise_if_stopped()

    return ScoringPlan(
        settings=scoring_settings(context.config, probe),
        load_encoder=encoder,
        seed=context.config.seed,
        baseline_names=probe.rivals,
        load_baselines=lambda encoder: consistency_measures(probe.rivals, encoder, probe.bertscore_model),
        on_texts_planned=lambda n_texts: context.progress.on_calls_planned("embed", n_texts, 0),
        on_texts_embedded=on_texts_embedded,
    )


def scoring_settings(config: AuditConfig, probe: SemanticProbe) -> SemanticScoringSettings:
    """Settings of the scores for the report; `revision` and `evidence` are filled in when the scores are computed."""
    return SemanticScoringSettings(
        source=probe.questions,
        encoder=(probe.encoder or config.embedding.model) if probe.paraphrases else "none",
        revision="",
        variant=probe.variant,
        alpha=probe.alpha,
        rot_weight=probe.rot_weight,
        measured=probe.measured,
        wordings=probe.paraphrases,
        evidence="",
        bertscore_model=probe.used_bertscore_model,
        subject="any" if probe.prompt_suffix else "moral",
    )
