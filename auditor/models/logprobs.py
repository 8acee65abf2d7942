"""Log-probabilities of a sentence's continuations: which measures a provider supports, and parsing its responses.

An answer's text is JSON, so that the ledger stores the measurement: for `choice`, pairs of token and log-probability,
the likeliest first; for all other measures, a list of the continuations' log-probabilities in nats. If a server ignored
the parameters for the measure, as many do, or sent values that no log-probability has, the outcome is
`not_measurable`.
"""

from __future__ import annotations

import itertools
import json
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from auditor.config import EMBEDDED, REPLAY, SIMULATED, ModelSection
from auditor.domain import Answer, Call, LogprobMeasure, Outcome
from auditor.models import litellm_client
from auditor.models.finish_reasons import FinishCategory
from auditor.models.reasoning import starts_thinking
from auditor.models.responses import NO_CHOICE_ERROR, ResponseBody, build_answer, finish_category

N_TOP_LOGPROBS = 20
"""Number of candidates for the next token to request; the maximum of OpenAI's protocol."""
ECHO_MEASURES = (LogprobMeasure.ECHO, LogprobMeasure.PROMPT)
"""Two request formats of the same measure; a server that lacks the first may support the second."""
MAX_LOGPROB = 0.001
"""Highest log-probability in nats; it is at most 0, apart from rounding."""
MIN_LOGPROB = -1000.0
"""Bound at and below which a value stands for a missing one, such as -9999 at OpenAI and vLLM."""
MIN_EQUAL_TOKENS = 3
"""Number of tokens from which equal log-probabilities are taken for a constant that the server fills in."""
MAX_TOTAL_PROBABILITY = 1.01
"""Highest total probability of different tokens at one position; it is at most 1, apart from rounding."""
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
    if section.provider is REPLAY:
        return ()
    if section.provider is SIMULATED:
        return (LogprobMeasure.CHOICE,)
    if method == LogprobMeasure.ECHO:
        return ECHO_MEASURES
    if method != "auto":
        return (LogprobMeasure(method),)
    if section.weights or section.provider is EMBEDDED:
        return (LogprobMeasure.CONTINUATION,)
    completions = section.provider.completions
    measures: list[LogprobMeasure] = []
    if completions == "always" or (completions == "own_server" and section.api_base):
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
    read_logprobs = _echo_logprobs if call.measure is LogprobMeasure.ECHO else _prompt_logprobs
    if not all(isinstance(getattr(choice, "text", None), str) for choice in response.choices):
        return build_answer(call, response, body, Outcome.SERVER_ERROR, error=NO_CHOICE_ERROR)
    choices = sorted(response.choices, key=lambda choice: choice.index)
    prefix = call.messages[0].content
    token_logprobs = [
        read_logprobs(choice, prefix, prefix + continuation)
        for choice, continuation in zip(choices, call.continuations, strict=False)
    ]
    problem: str | None = "the server does not return log-probabilities of the prompt"
    if len(token_logprobs) == len(call.continuations) and all(token_logprobs):
        sentence_logprobs = [logprob for choice in choices for logprob in _all_token_logprobs(choice)]
        problem = _find_impossible(itertools.chain(*token_logprobs), sentence_logprobs)
    if problem is not None:
        return build_answer(call, response, body, Outcome.NOT_MEASURABLE, error=problem)
    return build_answer(call, response, body, Outcome.OK, text=json.dumps([*map(math.fsum, token_logprobs)]))


def _find_impossible(logprobs: Iterable[float], context_logprobs: Sequence[float]) -> str | None:
    """Why values cannot be log-probabilities, as the end of a sentence; None if they can.

    Args:
        logprobs: values that a score is made of.
        context_logprobs: these and those of the tokens around them, by which a constant is recognized.
    """
    values = list(logprobs)
    if max(values) > MAX_LOGPROB:
        if min(values) >= 0 and max(values) <= 1:
            return "the server sends probabilities in place of log-probabilities"
        return f"the server sends log-probabilities above 0, such as {max(values):g}"
    if min(values) <= MIN_LOGPROB:
        return f"the server sends a placeholder, {min(values):g}, in place of a log-probability"
    if len(context_logprobs) >= MIN_EQUAL_TOKENS and len(set(context_logprobs)) == 1:
        return f"the server sends the same log-probability, {context_logprobs[0]:g}, for every token"
    return None


def find_impossible_candidates(candidates: Sequence[Sequence[Any]]) -> str | None:
    """Why tokens cannot be the likeliest ones at one position, as the end of a sentence; None if they can.

    A tokenizer may have several tokens with one text, such as `A` with and without a space before it, which a server
    may leave out. The same text with the same log-probability is one token, listed twice; texts without letters and
    digits are left out, since a server shows every part of a character alike.

    Args:
        candidates: pairs of token and log-probability in nats.
    """
    counts = Counter((token, logprob) for token, logprob in candidates if any(map(str.isalnum, token)))
    if repeated := next((token for (token, _), n in counts.items() if n > 1), None):
        return f"the server lists the token {repeated!r} twice"
    total = math.fsum(math.exp(logprob) for _, logprob in candidates)
    if total > MAX_TOTAL_PROBABILITY:
        return f"the server sends log-probabilities whose probabilities add up to {total:.3g}, which is more than 1"
    return None


def _all_token_logprobs(choice: Any) -> list[float]:
    """The numbers among the log-probabilities of a choice's tokens, without the first one, which has no context."""
    prompt_logprobs = getattr(choice, "prompt_logprobs", None)
    if isinstance(prompt_logprobs, list):
        logprobs = [next(iter(entry.values())).get("logprob") for entry in prompt_logprobs[1:] if entry]
    else:
        logprobs = (getattr(getattr(choice, "logprobs", None), "token_logprobs", None) or [])[1:]
    return [float(logprob) for logprob in logprobs if isinstance(logprob, (int, float))]


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


def _echo_logprobs(choice: Any, prefix: str, sentence: str) -> list[float]:
    """Log-probabilities of a sentence's tokens after its prefix in an `echo` response; empty if they are missing."""
    logprobs = getattr(choice, "logprobs", None)
    token_logprobs, tokens = getattr(logprobs, "token_logprobs", None), getattr(logprobs, "tokens", None)
    if not token_logprobs or not tokens or len(token_logprobs) != len(tokens):
        return []
    # Positions are computed from the tokens: servers differ in whether `text_offset` counts the first special token.
    # `token_boundaries`: index of the character where each token starts, then the end of the last one.
    sentence_start = "".join(tokens).find(sentence)
    token_boundaries = [0, *itertools.accumulate(map(len, tokens))]
    continuation_start, continuation_end = sentence_start + len(prefix), sentence_start + len(sentence)
    if sentence_start < 0 or continuation_start not in token_boundaries or continuation_end not in token_boundaries:
        return []  # the prompt is not echoed, or a token spans the end of the prefix or of the sentence
    return _finite_logprobs(
        token_logprobs[token_boundaries.index(continuation_start) : token_boundaries.index(continuation_end)]
    )


def _prompt_logprobs(choice: Any, prefix: str, sentence: str) -> list[float]:
    """Log-probabilities of a sentence's tokens after its prefix in vLLM's `prompt_logprobs`; empty if missing.

    The field is a list: null for the first token, then one object per token, in which the prompt's token comes first.
    """
    entries = getattr(choice, "prompt_logprobs", None)
    if not isinstance(entries, list) or len(entries) < 2 or not all(entries[1:]):
        return []
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
        return []
    return _finite_logprobs(
        [token.get("logprob") for token in prompt_tokens[token_boundaries.index(continuation_start) :]]
    )


def _finite_logprobs(logprobs: Sequence[float | None]) -> list[float]:
    """The log-probabilities; empty if one is missing or not finite."""
    present_logprobs = [float(logprob) for logprob in logprobs if logprob is not None and math.isfinite(logprob)]
    return present_logprobs if len(present_logprobs) == len(logprobs) else []


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
    candidate_logprobs = [float(logprob) for _, logprob in token_logprob_pairs]
    problem: str | None = "the provider does not return log-probabilities of the next token"
    if candidate_logprobs:
        problem = _find_impossible(candidate_logprobs, candidate_logprobs)
        problem = problem or find_impossible_candidates(token_logprob_pairs)
    if problem is not None:
        return build_answer(call, response, body, Outcome.NOT_MEASURABLE, error=problem)
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
