"""Ask each model of a config one question, to see what works before an audit is run; nothing is stored."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import TYPE_CHECKING, Literal

from auditor.agents.call_builders import build_direct_call, build_stand_in, describe_structure
from auditor.agents.sentence_pairs import build_sentence_pairs
from auditor.config import ENV_PREFIX, REPLAY, SIMULATED, AuditConfig, ModelSection
from auditor.config.loader import describe_unset_variable
from auditor.config.trust import list_secret_variables, remember_secrets, require_trust
from auditor.domain import Answer, AnswerForm, Call, Capability, Cell, LogprobMeasure, Outcome, Purpose, Survey
from auditor.error_messages import how_to_fix
from auditor.errors import AuditorError, ConfigError, ModelSetupError, pluralize
from auditor.lazy_imports import import_when_used
from auditor.models.budget import Budget, require_prices
from auditor.models.capability_discovery import THINKING_STEPS_TOKENS
from auditor.models.capability_registry import MAX_DISCOVERY_REQUESTS, prepare_call
from auditor.models.litellm_client import token_price
from auditor.models.logprobs import supported_measures
from auditor.models.structured_reading import parse_structured_answer
from auditor.run.survey_plan import load_planned_survey
from auditor.text_safety import truncate_text

if TYPE_CHECKING:
    from auditor.models.gateway import Gateway

if not TYPE_CHECKING:
    refusals = import_when_used("auditor.agents.refusals")
    models_gateway = import_when_used("auditor.models.gateway")
    structured = import_when_used("auditor.models.structured")
else:
    from auditor.agents import refusals
    from auditor.models import gateway as models_gateway, structured


LogprobState = Literal["yes", "no", "not offered", "local weights"]
PingState = Literal["ok", "warn", "FAIL"]
TRUNCATED_FIX = "Raise max_tokens, or set reasoning = { max_tokens = ... } for the model, or lower reasoning.effort."
UNREADABLE_FIX = "Set form in [models.capabilities] to another form, or use a model that follows instructions better."

REFUSAL_FIX = "The audit counts refusals; use another model if it refuses most questions."
MAX_QUOTED_CHARS = 200


@dataclass(frozen=True, slots=True)
class PingResult:
    """What was found out about one model. None stands for what is not known.

    Attributes:
        key: name of the variable that holds the key, with its state; `not needed` without one.
        form: in which a structured answer was requested and given.
        temperature, seed: whether the parameter was sent as configured.
        latency_s: of the last request.
        requests: number of requests sent.
        cost_usd: of all of them.
        state: `FAIL` if the model cannot be used, `warn` if its answer cannot be.
        problem: what is wrong with the model or its answer; None if nothing is.
    """

    model: str
    reachable: bool | None
    key: str
    state: PingState = "ok"
    form: AnswerForm | None = None
    temperature: str | None = None
    seed: str | None = None
    logprobs: LogprobState | None = None
    latency_s: float | None = None
    price: str = "unknown"
    requests: int = 0
    cost_usd: float | None = None
    problem: str | None = None
    how_to_fix: str | None = field(default=None)


def has_key(model: ModelSection) -> bool:
    """Whether the environment has the keys that a model's section names, or it names none."""
    return not _list_unset_variables(model)


def _list_unset_variables(model: ModelSection) -> list[str]:
    """Names of the variables that are to hold a model's keys, and are not set."""
    return [variable for variable in _list_variables(model) if not os.environ.get(variable)]


def _list_variables(model: ModelSection) -> list[str]:
    """Names of the variables that are to hold a model's keys."""
    return [key.removeprefix(ENV_PREFIX) for key in model.api_keys]


def describe_unasked(model: ModelSection) -> PingResult:
    """What is known of a model before it is asked; a problem if its key is not set."""
    price = token_price(model)
    known = PingResult(
        model=model.name,
        reachable=None,
        key=" and ".join(f"{variable} is set" for variable in _list_variables(model)) or "not needed",
        price="unknown" if price is None else f"${price.prompt_usd * 1e6:g} / ${price.completion_usd * 1e6:g}",
    )
    if model.provider is REPLAY:
        return replace(known, key="answers from a file", price="none")
    if model.provider is SIMULATED:
        return replace(known, key="simulated", price="none")
    if not has_key(model):
        variable = _list_unset_variables(model)[0]
        return replace(
            known,
            key=f"{variable} is not set",
            state="FAIL",
            problem=f"{describe_unset_variable(variable)}.",
            how_to_fix=f"Set it: export {variable}=...",
        )
    return known


def describe_answer(known: PingResult, model: ModelSection, call: Call, answer: Answer) -> PingResult:
    """Add what one answer shows: the state of the server, key and model, the form, the parameters and the time."""
    attempts = answer.attempts
    state, problem, fix = _judge_answer(call, answer)
    is_key_refused = bool(attempts) and attempts[-1].http_status == HTTPStatus.UNAUTHORIZED
    return replace(
        known,
        reachable=any(attempt.http_status is not None for attempt in attempts) if attempts else None,
        key=_describe_refused_key(model) if is_key_refused else known.key,
        state=state,
        form=answer.form if state == "ok" else None,
        temperature=_describe_param("temperature", call, answer),
        seed=_describe_param("seed", call, answer),
        latency_s=attempts[-1].latency_s if attempts else None,
        requests=len(attempts),
        cost_usd=answer.cost_usd if attempts else 0.0,
        problem=problem,
        how_to_fix=fix,
    )


def _describe_refused_key(model: ModelSection) -> str:
    """State of a key that the server did not accept."""
    variables = _list_variables(model)
    return f"{' or '.join(variables)} was refused" if variables else "missing"


def _describe_param(name: str, call: Call, answer: Answer) -> str | None:
    """How a parameter was sent: its value, `not sent`, or None if that is not known."""
    if name not in call.params or answer.altered is None or not answer.outcome.is_answer:
        return None
    for alteration in answer.altered.split(", "):
        altered_name, separator, sent_value = alteration.partition("=")
        if altered_name == name:
            return f"sent as {sent_value}" if separator else "not sent"
    return f"{call.params[name]:g}" if name == "temperature" else "sent"


def _judge_answer(call: Call, answer: Answer) -> tuple[PingState, str | None, str | None]:
    """Whether an answer shows that the model can be used, what is wrong otherwise, and how to fix it."""
    status = answer.attempts[-1].http_status if answer.attempts else None
    is_failed_request = status is None or status >= HTTPStatus.BAD_REQUEST
    if answer.outcome is Outcome.TRUNCATED and not is_failed_request:
        tokens = "" if answer.completion_tokens is None else f" ({pluralize(answer.completion_tokens, 'token')})"
        return "FAIL", f"it reached its token limit before its answer was complete{tokens}.", TRUNCATED_FIX
    if answer.outcome is Outcome.REFUSED and not is_failed_request:
        return (
            "warn",
            f"it refused to answer the question{_quote(answer)}.",
            REFUSAL_FIX,
        )
    if answer.outcome not in (Outcome.OK, Outcome.UNPARSED) or not (answer.text or "").strip():
        return "FAIL", answer.error or "it gave no answer.", how_to_fix(status, answer.error)
    if call.schema is None:
        return "ok", None, None
    parsed = parse_structured_answer(structured.SCHEMA_BY_NAME[call.schema], answer.text or "", call.request_text)
    if answer.outcome is Outcome.OK and not isinstance(parsed, str):
        return "ok", None, None
    if refusals.is_refusal_in_any_language(answer.text or ""):
        return "warn", f"it refused to answer the question{_quote(answer)}.", REFUSAL_FIX
    return "warn", f"its answer does not have the requested structure{_quote(answer)}.", UNREADABLE_FIX


def _quote(answer: Answer) -> str:
    """The beginning of an answer's text in quotation marks, after a colon; empty without a text."""
    text = " ".join((answer.text or "").split())
    return f": “{truncate_text(text, MAX_QUOTED_CHARS)}”" if text else ""


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
        first_cost_usd: upper estimate of the cost of the first request of each kind; None if the price is unknown.
        max_cost_usd: the same of all requests.
    """

    model: ModelSection
    call: Call | None
    logprob_call: Call | None
    logprobs: LogprobState | None
    first_cost_usd: float | None = None
    max_cost_usd: float | None = None


@dataclass(frozen=True, slots=True)
class PingPlan:
    """What all models are asked, and what that costs at most.

    Attributes:
        budget_usd: `limits.budget_usd`, beyond which nothing is sent.
    """

    pings: Sequence[PlannedPing]
    budget_usd: float | None = None

    @property
    def max_requests(self) -> int:
        """Upper limit of the number of requests."""
        return sum(
            (MAX_DISCOVERY_REQUESTS if ping.call else 0) + (1 if ping.logprob_call else 0) for ping in self.pings
        )

    @property
    def max_cost_usd(self) -> float:
        """Upper estimate of the cost of all models with a known price, in US dollars."""
        max_cost_usd = sum(ping.max_cost_usd or 0.0 for ping in self.pings)
        return max_cost_usd if self.budget_usd is None else min(max_cost_usd, self.budget_usd)

    @property
    def unpriced_models(self) -> list[str]:
        """Names of the models that are asked at an unknown price."""
        return [ping.model.name for ping in self.pings if ping.call is not None and ping.max_cost_usd is None]


def plan_pings(config: AuditConfig) -> PingPlan:
    """Choose the questions, and estimate what they cost at most. Nothing is sent yet.

    Raises:
        ConfigError: a key would go to a server that the user has not allowed, a price that the budget needs is not
            known, or the first requests could exceed the budget. It may end later ones, which find out what a server
            accepts.
    """
    require_trust(config)
    models = list(config.models_by_name.values())
    require_prices(models, config.limits)
    survey = load_planned_survey(config)
    budget_usd = config.limits.budget_usd
    plan = PingPlan([_plan_ping(config, survey, model) for model in models], budget_usd)
    first_cost_usd = sum(ping.first_cost_usd or 0.0 for ping in plan.pings)
    if budget_usd is not None and first_cost_usd > budget_usd:
        raise ConfigError(
            f"asking each model once could cost up to ${first_cost_usd:.4f}, and limits.budget_usd is {budget_usd:g}.",
            "Raise the budget, or omit --ping.",
        )
    return plan


def _plan_ping(config: AuditConfig, survey: Survey, model: ModelSection) -> PlannedPing:
    """Choose what one model is asked."""
    if model.provider in (REPLAY, SIMULATED) or not has_key(model):
        return PlannedPing(model, None, None, None)
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
    return PlannedPing(model, call, logprob_call, known_state, *_estimate_costs(model, call, logprob_call))


def _build_question(config: AuditConfig, survey: Survey, model: ModelSection, cell: Cell) -> Call:
    """The audit's first question to an audited model; to others, a review of a stand-in trace.

    A model that also judges gets the review if its own questions have no structured answer.
    """
    is_judge = model.name in {judge.name for judge in config.judge_models}
    is_audited = model.name in {audited.name for audited in config.models}
    is_asked = is_audited and config.probes.direct is not None and cell != Cell("", "")
    if is_asked and not (is_judge and config.direct.mode == "text"):
        # As a call that only finds out what the server accepts, it counts towards the requests that may do so.
        return replace(build_direct_call(config, survey, model, cell, 0), purpose=Purpose.PREFLIGHT)
    return build_stand_in(config, survey, model, cell)


def _estimate_costs(
    model: ModelSection, call: Call, logprob_call: Call | None
) -> tuple[float, float] | tuple[None, None]:
    """Upper estimates of the cost of the first request of each kind, and of all, with the schema in words.

    Only an answer that is cut off gets more room for thinking, one step at a time.
    """
    price = token_price(model)
    if price is None:
        return None, None
    budget = Budget(None)
    rooms = (0, *THINKING_STEPS_TOKENS)
    costs_usd: list[float] = []
    for number in range(MAX_DISCOVERY_REQUESTS):
        capability = Capability(form=AnswerForm.TEXT, thinking_tokens=rooms[min(number, len(rooms) - 1)])
        prepared_call = prepare_call(call, capability, describe_structure)
        costs_usd.append(budget.estimate_max_cost(prepared_call, price, capability))
    logprob_usd = 0.0 if logprob_call is None else budget.estimate_max_cost(logprob_call, price)
    return costs_usd[0] + logprob_usd, sum(costs_usd) + logprob_usd


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
    limits = config.limits.model_copy(update={"max_attempts": MAX_ATTEMPTS})
    asked_models = [ping.model for ping in plan.pings if ping.call is not None]
    gateway = models_gateway.Gateway(asked_models, limits, seed=config.seed, describe_structure=describe_structure)

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
    added_usd = answer.cost_usd if answer.attempts else 0.0
    return replace(
        described,
        logprobs="yes" if answer.outcome is Outcome.OK else "no",
        requests=described.requests + len(answer.attempts),
        cost_usd=None if described.cost_usd is None or added_usd is None else described.cost_usd + added_usd,
    )
