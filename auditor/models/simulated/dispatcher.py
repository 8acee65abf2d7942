"""Answer requests to simulated models in this process, in place of the dispatchers that send them to providers."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from auditor.config.installed_probes import list_built_in_names, load_built_in, load_probe
from auditor.domain import Answer, AnswerForm, Attempt, Call, Capability, Outcome, canonical_json
from auditor.domain.review_aspects import SURVEY_REVIEWS, TASK_REVIEWS
from auditor.domain.terms import PROBE_PURPOSE_PREFIX
from auditor.models.answer_schemas import (
    MoralJudgement,
    ReasonedJudgement,
    ScoredAnswer,
    StepwiseJudgement,
)
from auditor.models.endpoint import DEFAULT_CAPABILITY
from auditor.models.provider_request import ProviderReply
from auditor.models.review_schemas import AuthorGuess, BlindGuess, Restated, SidePreference
from auditor.models.simulated import judgements, survey_answers
from auditor.models.simulated.world import World

CHARS_PER_TOKEN = 4


def _judgement(world: World, call: Call) -> dict[str, Any]:
    """A structured direct answer."""
    norms, reasoning, score = survey_answers.judge_cell(world, call)
    return {"norms": norms, "reasoning": reasoning, "score": score}


def _item_answer(world: World, call: Call) -> dict[str, Any]:
    """A structured answer to a task's item; a number where the schema asks for one."""
    reasoning, answer = survey_answers.answer_item(world, call)
    return {"reasoning": reasoning, "answer": float(answer) if call.schema == ScoredAnswer.__name__ else answer}


STRUCTURED_ANSWERS: Mapping[str, Callable[[World, Call], dict[str, Any]]] = {
    MoralJudgement.__name__: _judgement,
    ReasonedJudgement.__name__: _judgement,
    StepwiseJudgement.__name__: _judgement,
    **dict.fromkeys((*SURVEY_REVIEWS, *TASK_REVIEWS), judgements.review),
    AuthorGuess.__name__: judgements.guess_author,
    BlindGuess.__name__: judgements.guess,
    Restated.__name__: judgements.restate,
    SidePreference.__name__: judgements.compare_sides,
}
"""What answers each schema; all others are of a probe or a task's items."""


class SimulatedDispatcher:
    """Answers every call by its model's persona. No request is sent, and nothing is charged."""

    def __init__(self, world: World) -> None:
        """Create a dispatcher for the models of one audit.

        Args:
            world: what they know.
        """
        self._world = world

    async def send(
        self,
        call: Call,
        attempt_number: int,
        total_timeout_s: float | None,
        capability: Capability = DEFAULT_CAPABILITY,
    ) -> ProviderReply:
        """Answer a call; see `Dispatcher.send`."""
        started_at = datetime.now(UTC)
        text = answer_text(self._world, call)
        tokens = sum(len(message.content) for message in call.messages) // CHARS_PER_TOKEN, len(text) // CHARS_PER_TOKEN
        attempt = Attempt(
            number=attempt_number,
            started_at=started_at,
            latency_s=(datetime.now(UTC) - started_at).total_seconds(),
            outcome=Outcome.OK,
            prompt_tokens=tokens[0],
            completion_tokens=tokens[1],
            cost_usd=0.0,
            estimated=False,
        )
        answer = Answer(
            call.key,
            Outcome.OK,
            text=text,
            finish_reason="stop",
            served_model=call.model,
            prompt_tokens=tokens[0],
            completion_tokens=tokens[1],
            cost_usd=0.0,
            attempts=(attempt,),
            sent=canonical_json(dict(call.params)),
            altered="",
            capability=capability.id,
            form=None if call.schema is None else AnswerForm.JSON_SCHEMA,
        )
        return ProviderReply(answer, None)

    async def close(self) -> None:
        """Close nothing: there is no connection."""


def answer_text(world: World, call: Call) -> str:
    """The text of a model's answer, in the form that the call asks for."""
    if call.purpose.value.startswith(PROBE_PURPOSE_PREFIX):
        probe = load_probe(call.purpose.value.removeprefix(PROBE_PURPOSE_PREFIX))
        return probe.call("simulate", call, returns=str)
    answers = (load_built_in(name).answer_simulated(world, call) for name in list_built_in_names())
    if (text := next((answer for answer in answers if answer is not None), None)) is not None:
        return text
    if call.measure is not None:
        return survey_answers.answer_logprobs(world, call)
    if call.schema is not None:
        return json.dumps(STRUCTURED_ANSWERS.get(call.schema, _item_answer)(world, call))
    if world.survey.task is not None:
        reasoning, answer = survey_answers.answer_item(world, call)
        return f"{reasoning}\nANSWER = {answer}"
    return survey_answers.answer_survey(world, call)
