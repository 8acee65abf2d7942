"""Log-probabilities of a sentence's ends: what a provider can be asked for, and reading what it sent.

An answer's text is JSON, so that the ledger keeps what was measured: for `choice` pairs of token and log-probability,
the likeliest first; for all other ways a list of the ends' log-probabilities in nats. What a server did not
measure is `not_measurable`: many answer as if the request had been another one.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Sequence
from typing import Any

from auditor.config import EMBEDDED_PREFIX, REPLAY_PREFIX, ModelSection
from auditor.domain import Answer, Call, LogprobMeasure, Outcome
from auditor.models import litellm_client
from auditor.models.endpoint import COMPLETIONS_PROVIDER
from auditor.models.finish_reasons import FinishCategory
from auditor.models.responses import NO_CHOICE_ERROR, ResponseBody, build_answer, finish_category

N_TOP_LOGPROBS = 20
"""Next tokens asked for; the most that OpenAI's protocol gives."""
ECHO_MEASURES = (LogprobMeasure.ECHO, LogprobMeasure.PROMPT)
"""The two wire formats of one measurement; a server that lacks the first may have the second."""
COMPLETIONS_SERVER_PROVIDERS = (
    "openai",
    "hosted_vllm",
    "vllm",
    "custom_openai",
    "openai_like",
    "llamafile",
    "lm_studio",
)
"""Providers that are servers of the user's own, which may have the completions endpoint beside the chat's."""
_NO_ENDPOINT_STATUSES = (400, 404, 405, 422, 501)
UNSUPPORTED_STATUSES = {
    LogprobMeasure.ECHO: _NO_ENDPOINT_STATUSES,
    LogprobMeasure.PROMPT: _NO_ENDPOINT_STATUSES,
    LogprobMeasure.CHOICE: (400, 422),
}
"""HTTP statuses by which a server says that it cannot measure this; the same request would fail again."""


def supported_measures(section: ModelSection, method: str) -> tuple[LogprobMeasure, ...]:
    """How a model's log-probabilities can be measured, as far as can be told without asking; the best first."""
    if section.model.startswith(REPLAY_PREFIX):
        return ()
    if method == LogprobMeasure.ECHO:
        return ECHO_MEASURES
    if method != "auto":
        return (LogprobMeasure(method),)
    if section.weights or section.model.startswith(EMBEDDED_PREFIX):
        return (LogprobMeasure.CONTINUATION,)
    provider = section.model.split("/", 1)[0]
    found: list[LogprobMeasure] = []
    if provider == COMPLETIONS_PROVIDER or (provider in COMPLETIONS_SERVER_PROVIDERS and section.api_base):
        found += ECHO_MEASURES
    if "top_logprobs" in litellm_client.supported_params(section.model):
        found.append(LogprobMeasure.CHOICE)
    return tuple(found)


def measure_params(measure: LogprobMeasure) -> dict[str, Any]:
    """What is sent beside the text. At temperature 1 the probabilities are the model's own."""
    if measure is LogprobMeasure.ECHO:
        return {"echo": True, "logprobs": 1, "max_tokens": 1, "temperature": 1.0}
    if (
        measure is LogprobMeasure.PROMPT
    ):  # 0: of the prompt's own tokens alone, so that no likelier one can be taken for them
        return {"prompt_logprobs": 0, "max_tokens": 1, "temperature": 1.0}
    if measure is LogprobMeasure.CHOICE:
        return {"logprobs": True, "top_logprobs": N_TOP_LOGPROBS, "max_tokens": 1, "temperature": 1.0}
    return {}


def parse_echo_logprobs(call: Call, response: Any, body: ResponseBody = None) -> Answer:
    """Log-probability of each end, summed over its tokens, from either format.

    A server that knows no echo sends the log-probability of the token it added instead, which must not be taken.
    """
    if failed := _failed_answer(call, response, body):
        return failed
    read = _echo_logprob if call.measure is LogprobMeasure.ECHO else _prompt_logprob
    if not all(isinstance(getattr(choice, "text", None), str) for choice in response.choices):
        return build_answer(call, response, body, Outcome.SERVER_ERROR, error=NO_CHOICE_ERROR)
    choices = sorted(response.choices, key=lambda c: c.index)
    beginning = call.messages[0].content
    found = [read(choice, beginning, beginning + end) for choice, end in zip(choices, call.continuations, strict=False)]
    if len(found) != len(call.continuations) or None in found:
        return build_answer(
            call, response, body, Outcome.NOT_MEASURABLE, error="the server gives no log-probabilities of the prompt"
        )
    return build_answer(call, response, body, Outcome.OK, text=json.dumps(found))


def _failed_answer(call: Call, response: Any, body: ResponseBody) -> Answer | None:
    """An answer that was refused, or that the provider failed at; None where it can be read. All stop at a limit."""
    if not getattr(response, "choices", None):
        return build_answer(call, response, body, Outcome.SERVER_ERROR, error=NO_CHOICE_ERROR)
    meaning = finish_category(response, body)
    if meaning is FinishCategory.REFUSED:
        return build_answer(call, response, body, Outcome.REFUSED)
    if meaning is FinishCategory.FAILED:
        return build_answer(call, response, body, Outcome.SERVER_ERROR, error="the provider failed at the measurement")
    return None


def _echo_logprob(choice: Any, prefix: str, sentence: str) -> float | None:
    logprobs = getattr(choice, "logprobs", None)
    values, tokens = getattr(logprobs, "token_logprobs", None), getattr(logprobs, "tokens", None)
    if not values or not tokens or len(values) != len(tokens):
        return None
    # Counted out of the tokens: servers differ in whether a text's offsets begin before or after the first mark.
    start = "".join(tokens).find(sentence)
    borders = [0, *itertools.accumulate(map(len, tokens))]
    first, last = start + len(prefix), start + len(sentence)
    if start < 0 or first not in borders or last not in borders:
        return None  # not the prompt, or a token lies across the border
    return _sum_logprobs(values[borders.index(first) : borders.index(last)])


def _prompt_logprob(choice: Any, prefix: str, sentence: str) -> float | None:
    """vLLM's field: null for the first token, then one object a token, of which the prompt's own token comes first."""
    field = getattr(choice, "prompt_logprobs", None)
    if not isinstance(field, list) or len(field) < 2 or not all(field[1:]):
        return None
    own = [next(iter(entry.values())) for entry in field[1:]]
    tokens = [str(token.get("decoded_token") or "") for token in own]
    # The first token has no text here: it is the sentence's, or a mark before it. What follows must end the sentence.
    text = "".join(tokens)
    borders = [0, *itertools.accumulate(map(len, tokens))]
    first = len(text) - (len(sentence) - len(prefix))
    if not (text.endswith(sentence) or sentence.endswith(text)) or first not in borders[: len(tokens)]:
        return None
    return _sum_logprobs([token.get("logprob") for token in own[borders.index(first) :]])


def _sum_logprobs(logprobs: Sequence[float | None]) -> float | None:
    numbers = [float(v) for v in logprobs if v is not None]
    total = math.fsum(numbers)
    return total if numbers and len(numbers) == len(logprobs) and math.isfinite(total) else None


def parse_choice_logprobs(call: Call, response: Any, body: ResponseBody = None) -> Answer:
    """The likeliest next tokens, as they came; which of them are A and B is read later."""
    if failed := _failed_answer(call, response, body):
        return failed
    content = getattr(getattr(response.choices[0], "logprobs", None), "content", None)
    top = getattr(content[0], "top_logprobs", None) if content else None
    if not top:
        why = "the provider gives no log-probabilities of the next token"
        return build_answer(call, response, body, Outcome.NOT_MEASURABLE, error=why)
    pairs = [[t.token, float(t.logprob)] for t in top if math.isfinite(t.logprob)]
    return build_answer(call, response, body, Outcome.OK, text=json.dumps(pairs, ensure_ascii=False))
