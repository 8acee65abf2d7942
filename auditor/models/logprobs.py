"""Log-probabilities of a sentence's continuations: which measures a provider supports, and parsing its responses.

An answer's text is JSON, so that the ledger stores the measurement: for `choice`, pairs of token and log-probability,
the likeliest first; for all other measures, a list of the continuations' log-probabilities in nats. If a server ignored
the parameters for the measure, as many do, the outcome is `not_measurable`.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Sequence
from typing import Any

from auditor.config import EMBEDDED_PREFIX, REPLAY_PREFIX, SIMULATED_PREFIX, ModelSection
from auditor.domain import Answer, Call, LogprobMeasure, Outcome
from auditor.models import litellm_client
from auditor.models.endpoint import COMPLETIONS_PROVIDER
from auditor.models.finish_reasons import FinishCategory
from auditor.models.responses import NO_CHOICE_ERROR, ResponseBody, build_answer, finish_category
from auditor.models.thinking import starts_thinking

N_TOP_LOGPROBS = 20
"""Number of candidates for the next token to request; the maximum of OpenAI's protocol."""
ECHO_MEASURES = (LogprobMeasure.ECHO, LogprobMeasure.PROMPT)
"""Two request formats of the same measure; a server that lacks the first may support the second."""
COMPLETIONS_SERVER_PROVIDERS = (
    "openai",
    "hosted_vllm",
    "vllm",
    "custom_openai",
    "openai_like",
    "llamafile",
    "lm_studio",
)
"""Providers for the user's own servers, which may have a completions endpoint besides the chat endpoint."""
_NO_ENDPOINT_STATUSES = (400, 404, 405, 422, 501)
UNSUPPORTED_STATUSES = {
    LogprobMeasure.ECHO: _NO_ENDPOINT_STATUSES,
    LogprobMeasure.PROMPT: _NO_ENDPOINT_STATUSES,
    LogprobMeasure.CHOICE: (400, 422),
}
"""HTTP statuses which mean that a server does not support the measure; a retry would not help."""


def supported_measures(section: ModelSection, method: str) -> tuple[LogprobMeasure, ...]:
    """List the measures of log-probability that a model may support, the best first; no request is sent.

    Args:
        section: the model's section in the config.
        method: the config's `probes.logprob.method`: a measure's name, or `auto`.

    Returns:
        Empty if none is supported, as for recorded answers that are replayed.
    """
    if section.model.startswith(REPLAY_PREFIX):
        return ()
    if section.model.startswith(SIMULATED_PREFIX):
        return (LogprobMeasure.CHOICE,)
    if method == LogprobMeasure.ECHO:
        return ECHO_MEASURES
    if method != "auto":
        return (LogprobMeasure(method),)
    if section.weights or section.model.startswith(EMBEDDED_PREFIX):
        return (LogprobMeasure.CONTINUATION,)
    provider = section.model.split("/", 1)[0]
    measures: list[LogprobMeasure] = []
    if provider == COMPLETIONS_PROVIDER or (provider in COMPLETIONS_SERVER_PROVIDERS and section.api_base):
        measures += ECHO_MEASURES
    if "top_logprobs" in litellm_client.supported_params(section.model):
        measures.append(LogprobMeasure.CHOICE)
    return tuple(measures)


def measure_params(measure: LogprobMeasure) -> dict[str, Any]:
    """Request parameters of a measure; empty if no request is sent for it.

    At temperature 1 the probabilities are those of the model.
    """
    if measure is LogprobMeasure.ECHO:
        return {"echo": True, "logprobs": 1, "max_tokens": 1, "temperature": 1.0}
    if measure is LogprobMeasure.PROMPT:
        # 0: only the prompt's tokens are returned, so that no likelier token can be mistaken for one of them.
        return {"prompt_logprobs": 0, "max_tokens": 1, "temperature": 1.0}
    if measure is LogprobMeasure.CHOICE:
        return {"logprobs": True, "top_logprobs": N_TOP_LOGPROBS, "max_tokens": 1, "temperature": 1.0}
    return {}


def parse_echo_logprobs(call: Call, response: Any, body: ResponseBody = None) -> Answer:
    """Parse the log-probability of each continuation, summed over its tokens, from either format of `ECHO_MEASURES`.

    A server without support for echo returns the log-probability of the token that it generated instead; the answer is
    then `not_measurable`.
    """
    if failed_answer := _failed_answer(call, response, body):
        return failed_answer
    read_logprob = _echo_logprob if call.measure is LogprobMeasure.ECHO else _prompt_logprob
    if not all(isinstance(getattr(choice, "text", None), str) for choice in response.choices):
        return build_answer(call, response, body, Outcome.SERVER_ERROR, error=NO_CHOICE_ERROR)
    choices = sorted(response.choices, key=lambda choice: choice.index)
    prefix = call.messages[0].content
    logprobs = [
        read_logprob(choice, prefix, prefix + continuation)
        for choice, continuation in zip(choices, call.continuations, strict=False)
    ]
    if len(logprobs) != len(call.continuations) or None in logprobs:
        return build_answer(
            call,
            response,
            body,
            Outcome.NOT_MEASURABLE,
            error="the server does not return log-probabilities of the prompt",
        )
    return build_answer(call, response, body, Outcome.OK, text=json.dumps(logprobs))


def _failed_answer(call: Call, response: Any, body: ResponseBody) -> Answer | None:
    """The answer if the measurement was refused or failed; None if the response can be parsed.

    A truncated response is no failure: every measurement generates at most one token.
    """
    if not getattr(response, "choices", None):
        return build_answer(call, response, body, Outcome.SERVER_ERROR, error=NO_CHOICE_ERROR)
    category = finish_category(response, body)
    if category is FinishCategory.REFUSED:
        return build_answer(call, response, body, Outcome.REFUSED)
    if category is FinishCategory.FAILED:
        return build_answer(call, response, body, Outcome.SERVER_ERROR, error="the provider's request failed")
    return None


def _echo_logprob(choice: Any, prefix: str, sentence: str) -> float | None:
    """Log-probability of a sentence's continuation after its prefix in an `echo` response; None if it is missing."""
    logprobs = getattr(choice, "logprobs", None)
    token_logprobs, tokens = getattr(logprobs, "token_logprobs", None), getattr(logprobs, "tokens", None)
    if not token_logprobs or not tokens or len(token_logprobs) != len(tokens):
        return None
    # Positions are computed from the tokens: servers differ in whether `text_offset` counts the first special token.
    # `token_boundaries`: index of the character where each token starts, then the end of the last one.
    sentence_start = "".join(tokens).find(sentence)
    token_boundaries = [0, *itertools.accumulate(map(len, tokens))]
    continuation_start, continuation_end = sentence_start + len(prefix), sentence_start + len(sentence)
    if sentence_start < 0 or continuation_start not in token_boundaries or continuation_end not in token_boundaries:
        return None  # the prompt is not echoed, or a token spans the end of the prefix or of the sentence
    return _sum_logprobs(
        token_logprobs[token_boundaries.index(continuation_start) : token_boundaries.index(continuation_end)]
    )


def _prompt_logprob(choice: Any, prefix: str, sentence: str) -> float | None:
    """Log-probability of a sentence's continuation after its prefix in vLLM's `prompt_logprobs`; None if missing.

    The field is a list: null for the first token, then one object per token, in which the prompt's token comes first.
    """
    entries = getattr(choice, "prompt_logprobs", None)
    if not isinstance(entries, list) or len(entries) < 2 or not all(entries[1:]):
        return None
    # Each entry is a dict by token id, whose first value belongs to the prompt's token; the null entry is left out.
    prompt_tokens = [next(iter(entry.values())) for entry in entries[1:]]
    tokens = [str(token.get("decoded_token") or "") for token in prompt_tokens]
    # The first token's text is missing: it is the sentence's first token, or a special token before the sentence. So
    # the text of the other tokens is the end of the sentence, or contains the sentence at its end.
    text = "".join(tokens)
    token_boundaries = [0, *itertools.accumulate(map(len, tokens))]
    continuation_start = len(text) - (len(sentence) - len(prefix))
    if (
        not (text.endswith(sentence) or sentence.endswith(text))
        or continuation_start not in token_boundaries[: len(tokens)]
    ):
        return None
    return _sum_logprobs(
        [token.get("logprob") for token in prompt_tokens[token_boundaries.index(continuation_start) :]]
    )


def _sum_logprobs(logprobs: Sequence[float | None]) -> float | None:
    """Sum of log-probabilities; None if there are none, one is missing, or the sum is not finite."""
    present_logprobs = [float(logprob) for logprob in logprobs if logprob is not None]
    total = math.fsum(present_logprobs)
    return total if present_logprobs and len(present_logprobs) == len(logprobs) and math.isfinite(total) else None


def parse_choice_logprobs(call: Call, response: Any, body: ResponseBody = None) -> Answer:
    """Parse the likeliest next tokens; the answer's text is a JSON list of [token, log-probability in nats].

    Which tokens mean option A and option B is decided later.
    """
    if failed_answer := _failed_answer(call, response, body):
        return failed_answer
    content = getattr(getattr(response.choices[0], "logprobs", None), "content", None)
    top_logprobs = getattr(content[0], "top_logprobs", None) if content else None
    if not content or not top_logprobs:
        error = "the provider does not return log-probabilities of the next token"
        return build_answer(call, response, body, Outcome.NOT_MEASURABLE, error=error)
    if _is_thinking(response, str(getattr(content[0], "token", ""))):
        error = "the log-probabilities are those of the model's thinking, not of its answer"
        return build_answer(call, response, body, Outcome.NOT_MEASURABLE, error=error)
    token_logprob_pairs = [
        [candidate.token, float(candidate.logprob)] for candidate in top_logprobs if math.isfinite(candidate.logprob)
    ]
    return build_answer(call, response, body, Outcome.OK, text=json.dumps(token_logprob_pairs, ensure_ascii=False))


def _is_thinking(response: Any, token: str) -> bool:
    """Whether the first generated token belongs to hidden reasoning: its alternatives are then no answers.

    Together lists the tokens of thinking before those of the text; others send the thinking in a field of its own.
    """
    message = response.choices[0].message
    details = getattr(getattr(response, "usage", None), "completion_tokens_details", None)
    return bool(
        getattr(message, "reasoning_content", None)
        or getattr(details, "reasoning_tokens", None)
        or starts_thinking(token)
    )
