"""Tokens and cost of planned calls, from their prompts, the length of recorded answers and prices."""

from __future__ import annotations

import json
from importlib import metadata

from auditor.config import EMBEDDED, REPLAY, SIMULATED, BatchSection, ModelSection
from auditor.cost_estimation.planned_calls import PlannedCalls
from auditor.domain import Call, Purpose
from auditor.models.batches import find_batch_provider
from auditor.models.endpoint import DEFAULT_CAPABILITY
from auditor.models.litellm_client import TokenPrice
from auditor.models.model_prices import token_price
from auditor.models.reasoning import thinking_room
from auditor.models.request_params import max_output_tokens
from auditor.models.structured import find_schema, limited_schema
from auditor.reports.data.cost.forecast import ForecastRange, ForecastRow
from auditor.storage.costs import MeanAnswerLength

MIN_RECORDED_ANSWERS = 20
"""Number of recorded answers of a model and purpose from which their mean length is used."""
BYTES_PER_TOKEN = (4.6, 4.0, 3.0)
"""UTF-8 bytes per token of prompts: at most, expected, at least (the order of a `ForecastRange` of tokens)."""
WORDS_PER_TOKEN = 0.75
"""Words per token of answers, a rule of thumb for English."""
ANSWER_OVERHEAD_TOKENS = 25
"""Tokens of an answer besides its prose: JSON keys, a score, a verdict."""


def build_forecast_row(
    planned: PlannedCalls, recorded_length: MeanAnswerLength | None, batch: BatchSection | None
) -> ForecastRow:
    """Estimate the tokens and the cost of planned calls.

    They follow from the mean size of the example prompts, the expected length of an answer and the price of a token.

    Args:
        recorded_length: mean length of the model's recorded answers for this purpose; None where there is none.
        batch: how calls are sent in batches, at a share `batch.price` of the full price; None without batches.
    """
    sizes = [_count_prompt_bytes(call) for call in planned.examples] or [0]
    mean_size = sum(sizes) / len(sizes)
    prompt = ForecastRange.from_bounds(*(mean_size / bytes_per_token for bytes_per_token in BYTES_PER_TOKEN))
    answer, basis = _estimate_answer_tokens(planned, recorded_length)
    price, source = _find_price(planned.model)
    calls = planned.calls
    tokens_in, tokens_out = (calls * tokens for tokens in (prompt, answer))
    # price[0] is in USD per prompt token, price[1] in USD per answer token.
    cost = (
        None
        if price is None
        else tokens_in * ForecastRange.from_bounds(price[0]) + tokens_out * ForecastRange.from_bounds(price[1])
    )
    # High stays at the full price: repairs are not batched, nor are calls to a server without batches.
    if batch and price and planned.purpose is not Purpose.PREFLIGHT and find_batch_provider(planned.model, batch):
        cost = cost and cost * ForecastRange.from_bounds(batch.price, batch.price, 1)
        source += f"; in batches, {batch.price:g} times this"
    return ForecastRow(
        name=planned.model.name,
        model=planned.model.model,
        stage=planned.purpose.value,
        calls=calls,
        prompt_tokens=tokens_in,
        completion_tokens=tokens_out,
        usd=cost,
        price=None if price is None else (round(price[0] * 1e6, 9), round(price[1] * 1e6, 9)),  # per million tokens
        price_source=source,
        basis=basis,
    )


def _count_prompt_bytes(call: Call) -> int:
    """UTF-8 bytes of a call's messages and of its answer's JSON schema, which providers count as input too."""
    n_message_bytes = sum(len(message.content.encode()) for message in call.messages)
    if call.schema is None:
        return n_message_bytes
    schema = limited_schema(find_schema(call.schema), call.max_words or 0)
    # As `structured.response_format`, which loads instructor (1 s).
    schema_format = {"type": "json_schema", "json_schema": {"name": call.schema, "schema": schema, "strict": True}}
    return n_message_bytes + len(json.dumps(schema_format))


def _estimate_answer_tokens(
    planned: PlannedCalls, recorded_length: MeanAnswerLength | None
) -> tuple[ForecastRange, str]:
    """Tokens of one answer as low, expected and high, and a phrase that names what they are based on.

    Based on the recorded answers if there are enough, else on the limit of tokens (log-probabilities) or the expected
    number of words, with half of the room for thinking that the config leaves. High is the limit that is sent, if
    larger.
    """
    max_tokens = max((max_output_tokens(call, DEFAULT_CAPABILITY) or 0 for call in planned.examples), default=0)
    thinking_tokens = max((thinking_room(call, DEFAULT_CAPABILITY) for call in planned.examples), default=0)
    if recorded_length is not None and recorded_length.n >= MIN_RECORDED_ANSWERS:
        return ForecastRange.from_bounds(
            0.7 * recorded_length.mean_tokens, recorded_length.mean_tokens, max(max_tokens, recorded_length.mean_tokens)
        ), f"{recorded_length.n} recorded answers"
    if planned.purpose is Purpose.LOGPROB:
        return ForecastRange.from_bounds(max_tokens), "token limit"
    expected = planned.expected_words / WORDS_PER_TOKEN + ANSWER_OVERHEAD_TOKENS
    capped = min(expected, max_tokens - thinking_tokens) if max_tokens else expected
    words = f"{planned.expected_words:.0f} words"
    basis = f"{words} and {thinking_tokens / 2:.0f} tokens of thinking" if thinking_tokens else words
    return ForecastRange.from_bounds(
        capped / 3, capped + thinking_tokens / 2, max(max_tokens, capped)
    ), f"{basis} (assumed)"


def _find_price(model: ModelSection) -> tuple[TokenPrice | None, str]:
    """Price of a model's tokens, None if unknown, and a phrase that names where it comes from."""
    price = token_price(model)
    if price is None:
        return None, "unknown"
    if model.provider in (EMBEDDED, SIMULATED):
        return price, "local model"
    if model.provider is REPLAY:
        return price, "recorded answers"
    if model.price is not None:
        return price, f"config{f', {model.price.as_of}' if model.price.as_of else ', undated'}"
    base_model_phrase = f" for {model.base_model}" if model.base_model else ""
    return price, f"list of litellm {metadata.version('litellm')}{base_model_phrase}"
