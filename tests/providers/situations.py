"""The ten situations, as an audit meets them: its calls, sent by the gateway to a server that speaks the dialect."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from auditor.agents.answer_parsing import parse_trace
from auditor.agents.call_builders import blind_trace, build_direct_call, build_review_call
from auditor.agents.peer_review import parse_verdict
from auditor.agents.sentence_pairs import build_sentence_pairs
from auditor.config import AuditConfig, ModelSection
from auditor.domain import Answer, AnswerForm, Call, Cell, Outcome, Trace
from auditor.errors import ModelSetupError
from auditor.models import litellm_client
from auditor.models.gateway import Gateway
from auditor.models.logprobs import supported_measures
from auditor.surveys import load_survey
from tests.providers.dialect import Conversation, Dialect, Situation
from tests.support.closing import closing
from tests.support.fake_server import FakeServer
from tests.support.refusals import end_repeated_refusals

SURVEY = load_survey("wvs7-sample")
CELL = Cell("Germany", "divorce")
TRACE = Trace("author", CELL, 0, Outcome.OK, 0.5, "Step 1. People there accept it.\nStep 2. So it is fine.")
MAX_ATTEMPTS = 2
MAX_RETRY_WAIT_S = 5
"""A longer wait that a provider asks for ends a call."""
N_REFUSALS = 4
"""Requests of a call that is always refused by status 429: such refusals do not count as attempts."""
SETUP_ERROR = "model_setup_error"
"""Outcome of a situation in which the run ends with a `ModelSetupError`, before anything else is spent."""


@dataclass(frozen=True)
class Observation:
    """What happened in a situation.

    Attributes:
        outcome: of the trace, verdict or measurement as stored; `SETUP_ERROR` if the model cannot be used.
        words: what the user is shown; empty for a success.
        form: of the answer, by the product; None for free texts.
        seen_form: form that the provider read from the last request.
        n_requests: number of requests that went out.
        n_attempts: number of attempts that the product recorded.
        altered: the parameters that the product says were dropped or changed.
        retry_after_s: the wait that the product read from the last response.
        answer: the gateway's answer; None if no request could be made.
        wrong_addresses: requests to addresses that the provider does not have.
    """

    outcome: str
    words: str
    form: str | None
    seen_form: AnswerForm | None
    n_requests: int
    n_attempts: int
    altered: str | None
    retry_after_s: float | None
    answer: Answer | None
    wrong_addresses: tuple[str, ...]


def model_section(dialect: Dialect, situation: Situation) -> ModelSection:
    """The `[[models]]` entry of a situation: what a user writes for this provider, and nothing more."""
    models = {
        Situation.WRONG_MODEL: dialect.wrong_model,
        Situation.THINKING_RUNS_OUT: dialect.thinking_model or dialect.model,
    }
    keys: dict[str, Any] = {"name": "m", "model": models.get(situation, dialect.model), **dialect.section}
    if situation is Situation.THINKING_RUNS_OUT:
        keys |= dialect.thinking_section
    if dialect.key_variable is not None:
        keys["api_key"] = f"os.environ/{dialect.key_variable}"
    return ModelSection.model_validate(keys)


def audit_config(section: ModelSection) -> AuditConfig:
    """An audit with the defaults of a user's, of this model alone."""
    return AuditConfig.model_validate(
        {
            "name": "providers",
            "survey": {"source": SURVEY.name, "countries": [CELL.country], "topics": [CELL.topic]},
            "embedding": {"model": "none"},
            "models": [section.model_dump(exclude_unset=True), {"name": "peer", "model": "openai/peer"}],
            "limits": {"max_attempts": MAX_ATTEMPTS, "max_retry_wait_s": MAX_RETRY_WAIT_S},
            "probes": {"direct": {}, "logprob": {}},
            "seed": 7,
        }
    )


def build_calls(config: AuditConfig, situation: Situation) -> list[Call]:
    """The calls of a situation: one, or one for each measure of log-probabilities that the audit would try in turn."""
    section = config.models[0]
    if situation is Situation.REVIEW:
        return [build_review_call(config, SURVEY, section, TRACE, blind_trace(config, SURVEY, TRACE))]
    if situation is Situation.LOGPROB:
        measures = supported_measures(section, config.probes.logprob.method)  # type: ignore[union-attr]
        pairs = [next(build_sentence_pairs(section, CELL, measure)) for measure in measures]
        return [pair.call for pair in pairs if pair.call is not None]
    return [build_direct_call(config, SURVEY, section, CELL, 0)]


async def observe(dialect: Dialect, situation: Situation, server: FakeServer, key: str) -> Observation:
    """Let an audit's call meet the provider; environment variables hold `key`, right or wrong."""
    if dialect.key_variable is not None:
        os.environ[dialect.key_variable] = key
    conversation = Conversation(dialect, situation)
    server.requests.clear()
    server.script = conversation
    litellm_client.load_litellm()  # before the time of a call runs
    config = audit_config(model_section(dialect, situation))
    with end_repeated_refusals(N_REFUSALS):
        outcome, words, answers = await _complete(config, build_calls(config, situation), situation)
    answer = answers[-1] if answers else None
    attempts = [attempt for answered in answers for attempt in answered.attempts]
    return Observation(
        outcome=outcome, words=words, form=answer.form if answer else None,
        seen_form=conversation.forms[-1] if conversation.forms else None, n_requests=len(server.requests),
        n_attempts=len(attempts), altered=answer.altered if answer else None,
        retry_after_s=attempts[-1].retry_after_s if attempts else None, answer=answer,
        wrong_addresses=tuple(conversation.wrong_addresses),
    )  # fmt: skip


async def _complete(config: AuditConfig, calls: Iterable[Call], situation: Situation) -> tuple[str, str, list[Answer]]:
    """Complete calls until one is measurable: the outcome as stored, the words shown, and the answers."""
    gateway = Gateway(config.models[:1], config.limits)
    answers: list[Answer] = []
    try:
        for call in calls:
            answers.append(await gateway.complete(call))
            if answers[-1].outcome is not Outcome.NOT_MEASURABLE:
                break
    except ModelSetupError as error:
        return SETUP_ERROR, f"{error.message} {error.how_to_fix}", [*answers, *([error.answer] if error.answer else [])]
    finally:
        await gateway.close()
    if not answers:
        return Outcome.NOT_MEASURABLE, "", []
    return _stored_outcome(answers[-1], situation), answers[-1].error or "", answers


def _stored_outcome(answer: Answer, situation: Situation) -> str:
    """The outcome that an audit stores for an answer, after it was parsed."""
    if situation is Situation.LOGPROB:
        return answer.outcome.value
    if situation is Situation.REVIEW:
        return parse_verdict(answer, "m", TRACE, 60).outcome.value
    return parse_trace(answer, "m", CELL, 0, "structured").outcome.value


async def requests_in_turn(dialect: Dialect, server: FakeServer, key: str) -> list[int]:
    """Number of requests for each of three calls of one run: a direct question, a second sample of it, and a review."""
    if dialect.key_variable is not None:
        os.environ[dialect.key_variable] = key
    server.script = Conversation(dialect, Situation.DIRECT)
    config = audit_config(model_section(dialect, Situation.DIRECT))
    questions = [build_direct_call(config, SURVEY, config.models[0], CELL, sample) for sample in range(2)]
    numbers = []
    async with closing(Gateway(config.models[:1], config.limits)) as gateway:
        for call in (*questions, *build_calls(config, Situation.REVIEW)):
            server.requests.clear()
            answer = await gateway.complete(call)
            assert answer.outcome is Outcome.OK, answer
            numbers.append(len(server.requests))
    return numbers
