"""Ask each model of a config one question, to see what works before an audit is run; nothing is stored."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from auditor.config import REPLAY, SIMULATED, AuditConfig, ModelSection
from auditor.config.trust import require_trust
from auditor.domain import Answer, AnswerForm, Call, Capability, Cell, LogprobMeasure, Outcome, Purpose, Survey
from auditor.errors import AuditorError, ConfigError, ModelSetupError
from auditor.run.api_keys import list_secret_variables, remember_secrets
from auditor.run.ping_results import LogprobState, PingResult, describe_answer, describe_unasked, has_key
from auditor.run.survey_plan import load_planned_survey

if TYPE_CHECKING:
    from auditor.models.gateway import Gateway

MAX_ATTEMPTS = 1
"""Requests for one question, apart from those that find out what a server accepts: a busy server is not asked again."""
PingCallback = Callable[[PingResult], None]
"""Called with each model's result as soon as it is known."""


@dataclass(frozen=True, slots=True)
class PlannedPing:
    """What one model is asked.

    Attributes:
        model: its section in the config.
        call: the question; None if its key is not set, or its answers come from a file.
        logprob_call: a request for log-probabilities; None without one.
        logprobs: what is known of log-probabilities without a request; None if `logprob_call` shows it.
        max_cost_usd: upper estimate of the cost; None if the price is unknown.
    """

    model: ModelSection
    call: Call | None
    logprob_call: Call | None
    logprobs: LogprobState | None
    max_cost_usd: float | None


@dataclass(frozen=True, slots=True)
class PingPlan:
    """What all models are asked, and what that costs at most."""

    pings: Sequence[PlannedPing]

    @property
    def max_requests(self) -> int:
        """Upper limit of the number of requests."""
        from auditor.models.capability_registry import MAX_DISCOVERY_REQUESTS  # loads litellm's client (0.3 s)

        return sum(
            (MAX_DISCOVERY_REQUESTS if ping.call else 0) + (1 if ping.logprob_call else 0) for ping in self.pings
        )

    @property
    def max_cost_usd(self) -> float:
        """Upper estimate of the cost of all models with a known price, in US dollars."""
        return sum(ping.max_cost_usd or 0.0 for ping in self.pings)

    @property
    def unpriced_models(self) -> list[str]:
        """Names of the models that are asked at an unknown price."""
        return [ping.model.name for ping in self.pings if ping.call is not None and ping.max_cost_usd is None]


def plan_pings(config: AuditConfig) -> PingPlan:
    """Choose the questions, and estimate what they cost at most. Nothing is sent yet.

    Raises:
        ConfigError: a key would go to a server that the user has not allowed, a price that the budget needs is not
            known, or the greatest cost exceeds the budget.
    """
    from auditor.models.budget import require_prices  # loads litellm's client (0.3 s)

    require_trust(config)
    models = list(config.models_by_name.values())
    require_prices(models, config.limits)
    survey = load_planned_survey(config)
    plan = PingPlan([_plan_ping(config, survey, model) for model in models])
    budget_usd = config.limits.budget_usd
    if budget_usd is not None and plan.max_cost_usd > budget_usd:
        raise ConfigError(
            f"asking each model could cost up to ${plan.max_cost_usd:.4f}, and limits.budget_usd is {budget_usd:g}.",
            "Raise the budget, or omit --ping.",
        )
    return plan


def _plan_ping(config: AuditConfig, survey: Survey, model: ModelSection) -> PlannedPing:
    """Choose what one model is asked."""
    from auditor.agents.sentence_pairs import build_sentence_pairs
    from auditor.models.logprobs import supported_measures

    if model.provider in (REPLAY, SIMULATED) or not has_key(model):
        return PlannedPing(model, None, None, None, None)
    cells = list(survey.asked_cells)
    cell = cells[0] if cells else Cell("", "")
    measures = supported_measures(model, config.probes.logprob.method if config.probes.logprob else "auto")
    # Most servers of chats refuse the other measures over the network; only one request is spent on this.
    measure = LogprobMeasure.CHOICE if LogprobMeasure.CHOICE in measures else next(iter(measures), None)
    known_state: LogprobState | None = "not offered" if measure is None else None
    if measure is LogprobMeasure.CONTINUATION:
        measure, known_state = None, "local weights"
    logprob_call = next(build_sentence_pairs(model, cell, measure)).call if measure else None
    call = _build_question(config, survey, model, cell)
    return PlannedPing(model, call, logprob_call, known_state, _estimate_max_cost(model, call, logprob_call))


def _build_question(config: AuditConfig, survey: Survey, model: ModelSection, cell: Cell) -> Call:
    """The audit's first question to an audited model; to others, a review of a stand-in trace.

    A model that also judges gets the review if its own questions have no structured answer.
    """
    from auditor.agents.call_builders import build_direct_call, build_stand_in

    is_judge = model.name in {judge.name for judge in config.judge_models}
    is_audited = model.name in {audited.name for audited in config.models}
    is_asked = is_audited and config.probes.direct is not None and cell != Cell("", "")
    if is_asked and not (is_judge and config.direct.mode == "text"):
        # As a call that only finds out what the server accepts, it counts towards the requests that may do so.
        return replace(build_direct_call(config, survey, model, cell, 0), purpose=Purpose.PREFLIGHT)
    return build_stand_in(config, survey, model, cell)


def _estimate_max_cost(model: ModelSection, call: Call, logprob_call: Call | None) -> float | None:
    """Upper estimate of the cost of all requests to a model: with the most room for thinking, the schema in words."""
    from auditor.agents.structure_instruction import describe_structure
    from auditor.models.budget import Budget
    from auditor.models.capability_discovery import THINKING_STEPS_TOKENS
    from auditor.models.capability_registry import MAX_DISCOVERY_REQUESTS, prepare_call
    from auditor.models.model_prices import token_price

    price = token_price(model)
    if price is None:
        return None
    dearest = Capability(form=AnswerForm.TEXT, thinking_tokens=THINKING_STEPS_TOKENS[-1])
    budget = Budget(None)
    question_usd = budget.estimate_max_cost(prepare_call(call, dearest, describe_structure), price, dearest)
    logprob_usd = 0.0 if logprob_call is None else budget.estimate_max_cost(logprob_call, price)
    return MAX_DISCOVERY_REQUESTS * question_usd + logprob_usd


def ping_models(config: AuditConfig, plan: PingPlan, on_result: PingCallback | None = None) -> list[PingResult]:
    """Ask every model its question, all models at once; the budget holds for all requests together.

    Args:
        config: the configuration.
        plan: what each model is asked.
        on_result: receives the result of each model that is asked; None for no one.

    Raises:
        ModelSetupError: an embedded model cannot be started.
    """
    remember_secrets(list_secret_variables(config))
    return asyncio.run(_ping_all(config, plan, on_result or (lambda _: None)))


async def _ping_all(config: AuditConfig, plan: PingPlan, on_result: PingCallback) -> list[PingResult]:
    """Open a gateway for the models that are asked, and ask them."""
    from auditor.agents.structure_instruction import describe_structure
    from auditor.models.gateway import Gateway  # loads httpx (0.3 s)

    limits = config.limits.model_copy(update={"max_attempts": MAX_ATTEMPTS})
    asked_models = [ping.model for ping in plan.pings if ping.call is not None]
    gateway = Gateway(asked_models, limits, seed=config.seed, describe_structure=describe_structure)

    async def ping_and_report(ping: PlannedPing) -> PingResult:
        """Ask one model, and pass its result on at once: another may take minutes."""
        answered = await _ping(gateway, ping)
        if ping.call is not None:
            on_result(answered)
        return answered

    try:
        return list(await asyncio.gather(*map(ping_and_report, plan.pings)))
    finally:
        await gateway.close()


async def _ping(gateway: Gateway, ping: PlannedPing) -> PingResult:
    """Ask one model."""
    unasked = describe_unasked(ping.model)
    if ping.call is None:
        return unasked
    try:
        answer = await gateway.complete(ping.call)
    except ModelSetupError as error:
        answer = error.answer or Answer(ping.call.key, Outcome.CLIENT_ERROR)
        described = describe_answer(unasked, ping.model, ping.call, answer)
        return replace(described, state="FAIL", problem=error.message, how_to_fix=error.how_to_fix)
    described = describe_answer(unasked, ping.model, ping.call, answer)
    if described.state == "FAIL":
        return described
    if ping.logprob_call is None:
        return replace(described, logprobs=ping.logprobs)
    return await _add_logprobs(gateway, ping.logprob_call, described)


async def _add_logprobs(gateway: Gateway, call: Call, described: PingResult) -> PingResult:
    """Request log-probabilities once; that a server refuses them is no problem of the model's."""
    try:
        answer = await gateway.complete(call)
    except AuditorError as error:
        answer = error.answer or Answer(call.key, Outcome.CLIENT_ERROR)
    return replace(
        described,
        logprobs="yes" if answer.outcome is Outcome.OK else "no",
        requests=described.requests + len(answer.attempts),
        cost_usd=_add_costs(described.cost_usd, answer),
    )


def _add_costs(cost_usd: float | None, answer: Answer) -> float | None:
    """The cost with that of a further answer; None if one is unknown."""
    added_usd = answer.cost_usd if answer.attempts else 0.0
    return None if cost_usd is None or added_usd is None else cost_usd + added_usd
