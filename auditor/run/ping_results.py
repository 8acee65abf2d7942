"""What `auditor doctor CONFIG --ping` found out about a model: its state, and what is wrong with it or its answer."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import Literal

from auditor.config import ENV_PREFIX, REPLAY, SIMULATED, ModelSection
from auditor.config.loader import describe_unset_variable
from auditor.domain import Answer, AnswerForm, Call, Outcome
from auditor.error_messages import how_to_fix
from auditor.text_safety import truncate_text

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
    from auditor.models.model_prices import token_price

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
    from auditor.agents.answer_parsing import is_refusal  # loads numpy (0.1 s)
    from auditor.models.structured import SCHEMA_BY_NAME  # loads pydantic's models
    from auditor.models.structured_reading import parse_structured_answer

    status = answer.attempts[-1].http_status if answer.attempts else None
    is_failed_request = status is None or status >= HTTPStatus.BAD_REQUEST
    if answer.outcome is Outcome.TRUNCATED and not is_failed_request:
        tokens = "" if answer.completion_tokens is None else f" ({answer.completion_tokens:,} tokens)"
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
    parsed = parse_structured_answer(SCHEMA_BY_NAME[call.schema], answer.text or "", call.request_text)
    if answer.outcome is Outcome.OK and not isinstance(parsed, str):
        return "ok", None, None
    if is_refusal(answer.text or "", call.language):
        return "warn", f"it refused to answer the question{_quote(answer)}.", REFUSAL_FIX
    return "warn", f"its answer does not have the requested structure{_quote(answer)}.", UNREADABLE_FIX


def _quote(answer: Answer) -> str:
    """The beginning of an answer's text in quotation marks, after a colon; empty without a text."""
    text = " ".join((answer.text or "").split())
    return f": “{truncate_text(text, MAX_QUOTED_CHARS)}”" if text else ""
