"""Read providers' error messages: the message in a response's body, a form to compare messages by, and known fixes."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

MAX_MESSAGE_CHARS = 500
MAX_COMPARED_CHARS = 2_000
"""Characters of a message that `normalize_message` reads; longer messages are the same up to there."""
MAX_NESTED_MESSAGES = 3
"""Depth to which a message that is itself a JSON document is read, as routers pass on another provider's error."""

_MESSAGE_FIELDS = ("message", "Message", "errorMessage", "faultstring", "msg", "error_description", "title")
"""Names of the message in an error object; Bedrock and SageMaker write it with a capital."""
_ENCLOSING_FIELDS = ("error", "errors", "fault", "detail", "details")
"""Names of objects, lists or texts that hold the error: OpenAI's, watsonx's, Apigee's, FastAPI's."""
_CUT_OFF_MESSAGE = re.compile(r'"(?:message|Message|msg|error|detail)"\s*:\s*"((?:[^"\\]|\\.)*)')
"""A message in a JSON document that was cut off."""
_HTML_DOCUMENT = re.compile(r"<(?:!doctype|html|head|body|title|h1|center)\b", re.IGNORECASE)
_HTML_HIDDEN = re.compile(r"<(script|style)\b.*?(?:</\1\s*>|\Z)|<!--.*?(?:-->|\Z)", re.IGNORECASE | re.DOTALL)
_HTML_TITLE = re.compile(r"<title[^<>]*>([^<]*\w[^<]*)</title", re.IGNORECASE)
_HTML_TAG = re.compile(r"</?[a-zA-Z!][^<>]*(?:>|\Z)")
_CLASS_PREFIXES = re.compile(r"^(?:(?:litellm\.)?\w*(?:Error|Exception)\s*(?::|-)\s*)+")
"""Names of exception classes that litellm and its proxy put first: `litellm.BadRequestError: OpenAIException - `."""


def provider_message(body: str) -> str:
    """The message in the body of a provider's error response, cleaned; the body's text if it has no known format.

    Args:
        body: the body's text, or its beginning; secrets are the caller's to remove.

    Returns:
        One line of at most `MAX_MESSAGE_CHARS` characters; empty if the body has no text.
    """
    return clean_message(_read_message(body, MAX_NESTED_MESSAGES) or body)


def clean_message(text: str) -> str:
    """Turn a provider's text into one line: without HTML, control characters and litellm's class names.

    Lone surrogates stay: what is stored has them escaped (`auditor.models.responses.sanitize`).
    """
    if _HTML_DOCUMENT.search(text):
        title = _HTML_TITLE.search(text)
        text = html.unescape(title[1] if title else _HTML_TAG.sub(" ", _HTML_HIDDEN.sub(" ", text)))
    text = " ".join("".join(char if char.isprintable() or _is_surrogate(char) else " " for char in text).split())
    text = _CLASS_PREFIXES.sub("", text) or text
    return text if len(text) <= MAX_MESSAGE_CHARS else f"{text[: MAX_MESSAGE_CHARS - 1]}…"


def _is_surrogate(char: str) -> bool:
    """Whether a character is half of a pair in UTF-16."""
    return "\ud800" <= char <= "\udfff"


def _read_message(body: str, depth: int) -> str | None:
    """The message of an error's JSON document, which may be cut off; None if the text is not one."""
    start = body.lstrip()[:1]
    if start not in ("{", "[") or not depth:
        return None
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        match = _CUT_OFF_MESSAGE.search(body)
        return _decode_json_string(match[1]) if match else None
    message = "; ".join(dict.fromkeys(_iter_messages(document)))
    return (_read_message(message, depth - 1) or message) if message else None


def _iter_messages(error: object) -> Iterator[str]:
    """Yield the messages in an error: a text, an object, or a list of either, as providers document them."""
    if isinstance(error, str):
        if error.strip():
            yield error.strip()
    elif isinstance(error, list):
        for entry in error:
            yield from _iter_messages(entry)
    elif isinstance(error, Mapping):
        yield from _iter_object_messages(error)


def _iter_object_messages(error: Mapping[str, Any]) -> Iterator[str]:
    """Yield the messages in an error object: of what it encloses, else its own, with the field that it is about."""
    own_message = next((error[name] for name in _MESSAGE_FIELDS if error.get(name)), None)
    enclosed = next((error[name] for name in _ENCLOSING_FIELDS if error.get(name)), None)
    if isinstance(own_message, str):
        location = error.get("loc")  # FastAPI: the path of the field that was refused
        prefix = f"{'.'.join(map(str, location))}: " if isinstance(location, list) else ""
        nested_message = _read_message(_CLASS_PREFIXES.sub("", own_message), 1)  # a proxy passes on a provider's body
        yield f"{prefix}{nested_message or own_message}"
        # OpenRouter's own message says only that the provider failed; what the provider said is beside it.
        metadata = error.get("metadata")
        if isinstance(metadata, Mapping) and isinstance(raw := metadata.get("raw"), str) and raw.strip():
            yield _read_message(raw, 1) or raw
    elif own_message is not None:  # Mistral's list of refused fields is an object in `message`
        yield from _iter_messages(own_message)
    else:
        yield from _iter_messages(enclosed)


def _decode_json_string(text: str) -> str:
    """Undo the escapes of a JSON string's content; the text itself if an escape is incomplete."""
    try:
        return str(json.loads(f'"{text}"'))
    except ValueError:
        return text


# --- comparing messages ------------------------------------------------------------------------------------------

_VARIABLE_PARTS = (
    (re.compile(r"\b(?:https?|wss?)://[^\s\"'<>)\]]+"), "<url>"),
    (re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", re.IGNORECASE), "<id>"),
    # A number of a request, a key or an account after its label, and ids with a prefix such as `req_011C…`.
    (
        re.compile(r"\b((?:request|trace|correlation|log|reference)[ _-]?id[\"']?\s*[:=]?\s*[\"']?)[\w.:-]+", re.I),
        r"\1<id>",
    ),
    (re.compile(r"\b(?:req|org|proj|user|chatcmpl|cmpl|msg|run|call|acct|key|sk|pk|gsk|xai)[_-][\w-]{4,}"), "<id>"),
    (re.compile(r"[\w-]*\*{2,}[\w-]*|[\w-]*…[\w-]*"), "<id>"),  # a key of which a part is shown
    (re.compile(r"(?<!\w)(['\"`])(?:(?!\1).){1,200}?\1(?!\w)"), "<name>"),
    (re.compile(r"[“‘«][^”’»]{1,200}[”’»]"), "<name>"),
    (re.compile(r"\b0x[0-9a-f]+\b|\b(?=[0-9a-f]*\d)(?=\d*[a-f])[0-9a-f]{4,}\b", re.IGNORECASE), "<id>"),
    (re.compile(r"\b(?=[A-Za-z]*\d)(?=\d*[A-Za-z])[A-Za-z0-9]{16,}\b"), "<id>"),
    (re.compile(r"\d+(?:[.,:]\d+)*"), "<n>"),
    (re.compile(r"\s+"), " "),
)
"""What differs between messages of one cause, and what it is replaced by, in this order."""


def normalize_message(text: str | None) -> str:
    """Replace what differs between messages of one cause: numbers, ids, quoted names and URLs.

    Messages of equal normalized text are taken to have the same cause.
    """
    normalized = (text or "")[:MAX_COMPARED_CHARS]
    for pattern, replacement in _VARIABLE_PARTS:
        normalized = pattern.sub(replacement, normalized)
    return normalized.strip().casefold()


# --- known fixes -------------------------------------------------------------------------------------------------


class KnownFix(NamedTuple):
    """How to fix failures of certain HTTP statuses (empty: any) whose message has certain words (None: any)."""

    statuses: frozenset[int]
    words: re.Pattern[str] | None
    fix: str


BAD_KEY = (
    r"(?:incorrect|invalid|wrong|bad) api[ _-]?key|api[ _-]?key (?:is )?(?:not valid|invalid|not found|expired)"
    r"|api_key_invalid|no connected db"
)
"""Words for a refused key. xAI and Gemini send them with status 400, as a litellm proxy without a database does."""
UNKNOWN_MODEL = (
    r"model[ _]not[ _](?:exist|found)|(?:invalid|unknown|no such) model\b|not a valid model"
    r"|supported api model names|model identifier is invalid"
    r"|model_decommissioned"
    r"|\bmodel\b(?:[^.]|\.(?=\S)){0,80} (?:decommissioned|reached (?:the|its) end of (?:its )?life)"
    r"|with on-demand throughput|deploymentnotfound|deployment for this resource does not exist"
    r"|\bmodel\b:?\s*(?!(?:output|response|answer|tool)s?\b)['\"`“]?[\w./:@-]*['\"`”]?,?\s*"
    r"(?:(?:is|was|could|can|currently)\s+){0,2}"
    r"(?:does not exist|doesn't exist|not (?:be )?found|not supported by any provider)"
)
"""Words for a model that does not exist. DeepSeek, Mistral, OpenRouter and Bedrock send them with status 400."""
SPENT_QUOTA = (
    r"insufficient[ _](?:quota|balance|credit|funds)|exceeded your current quota|credit balance|out of credits"
    r"|used all available credits|spending limit|reached your specified api usage limits"
)
"""Words for an account without money; waiting does not help."""
SPENT_QUOTA_OR_BILLING = rf"{SPENT_QUOTA}|billing"
"""Adds a word that, with other statuses than 402, 403 and 429, is often only part of a link to the account."""
BLOCKED_ACCOUNT = (
    r"(?:\b(?:account|organi[sz]ation|team|workspace|api[ _-]?key)|\b(?:your|api|account) access)"
    r"(?:(?:\s+(?!content|input|message|output|prompt|request|response)[^\s.]+){0,4}?\s+"
    r"(?:has been|have been|is|was)(?:\s+\w+)?)?"
    r"[\s_]+(?:flagged|suspended|terminated|blocked|banned|disabled|deactivated"
    r"|restricted(?! to))\b"
)
"""Words for an account or a key that the provider has closed, unlike a filter's for one prompt.

OpenAI sent them with status 429 (github.com/acheong08/ChatGPT/issues/533).
"""
MODERATION = (
    r"moderation|flagged|content[ _](?:filter|management policy|policy)|responsible ?ai ?(?:policy|practices)"
    r"|content exists risk|usage guidelines|safety system|the response was blocked|inappropriate content"
    r"|blocked by (?:a )?guardrail|unsafe or sensitive content|不安全或敏感内容|considered high risk"
)
"""Words of a filter that refused one prompt.

OpenRouter (openrouter.ai/docs/errors) and xAI (github.com/UKGovernmentBEIS/inspect_ai/pull/2267) send them with status
403, DeepSeek (github.com/deepseek-ai/awesome-deepseek-integration/issues/13) and Azure with 400.
"""
MODERATION_CODE = (
    r"\"(?:code|type)\"\s*:\s*\"?(?:content_filter|content_policy_violation|data_?inspection_?failed|1301)\b"
)
"""Codes of the same in the body of an error, whose message may say less: OpenAI's, Alibaba's and Zhipu's."""
TEMPORARY_QUOTA = r"temporar|retry in|try again in|retry after|per[ -]?min(?:ute)?\b"
"""Words for a quota that is renewed soon: Gemini's rate limit is worded like a spent quota."""
CONTEXT_LENGTH = (
    r"context[ _](?:length|window|size)|maximum context|(?:prompt|input) is too long|too many (?:input )?tokens"
    r"|max_model_len|exceeds? the (?:model's )?(?:maximum|available)[^.]{0,40}(?:length|tokens|context)"
)
"""Words for a prompt and an answer that do not fit into the model's context."""
TOO_LARGE = r"(?:request|entity|payload|content|prompt|input)(?: body| size)? (?:is )?too large"
"""Words for one request over a limit of the account or the server.

Groq (github.com/continuedev/continue/issues/10218) and web servers send them with status 413.
"""

_CHECK_KEY = "Check the API key: the variable that `api_key` names must hold a valid key of this provider."
_SIGN_IN_TO_AWS = (
    "Sign in to AWS, as with `aws sso login`, or set AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and, for temporary keys, "
    "AWS_SESSION_TOKEN; AWS_PROFILE names a profile."
)
_OTHER_COUNTRY = "The provider does not serve this country: use another provider or region."
_TOP_UP = "Top up the account or raise its quota at the provider, or use another key."
_SLOW_DOWN = "Set `rpm` and `tpm` to the account's limits or lower `concurrency`, then run the audit again."
_SHORTEN = (
    "This request is larger than the account's tokens per minute or the server's limit: lower `max_tokens`, raise the "
    "limit at the provider, or use another model."
)
TRUNCATED_FIX = (
    "Set `reasoning = { max_tokens = ... }` of the model or a lower `effort`, or raise `max_tokens` of the probe."
)
"""How to fix answers that were cut off."""
REASONING_ONLY_FIX = (
    'Turn off the model\'s thinking (`reasoning = { effort = "none" }`), or start the server with the reasoning parser '
    "of this model, or without one."
)
"""How to fix answers that a server takes for reasoning."""
_NO_RESPONSE, _SERVER_ERRORS = 0, tuple(range(500, 600))
_PARAMETER_REFUSALS = (_NO_RESPONSE, *range(400, 500), 500, 501)
"""Statuses with which a parameter is refused; litellm refuses some itself, without a response."""
# HTTP statuses (empty: any), words of the message (None: any), and the fix. The first match counts.
_FIX_TABLE: tuple[tuple[tuple[int, ...], str | None, str], ...] = (
    ((), r"^its tokens ran out", TRUNCATED_FIX),  # our own words, which name parameters
    ((), r"^the answer is only in the server's field for reasoning", REASONING_ONLY_FIX),
    (
        (_NO_RESPONSE,),
        r"^the proxy ",
        "Correct the environment variable, or list the server's host in NO_PROXY.",
    ),
    ((_NO_RESPONSE,), r"^\S+ is an address on this machine's network", "Correct `api_base`."),
    (
        (_NO_RESPONSE,),
        r"^Microsoft Entra ID issues no access token",
        "Sign in with `az login`, or set AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_CLIENT_SECRET. Or add `api_key`.",
    ),
    (
        (_NO_RESPONSE, 400, 403),
        r"unable to locate credentials|partial credentials|config profile|security token|expiredtoken"
        r"|request signature",
        _SIGN_IN_TO_AWS,
    ),
    ((_NO_RESPONSE, 400), r"aws region", "Correct `aws_region_name` in the model's `params`, or AWS_REGION."),
    ((_NO_RESPONSE,), r"credentials|(?:missing|no)\b[^.]{0,20} api[ _]?key|api_key client option", _CHECK_KEY),
    ((), r"llm provider not provided", "Begin `model` with the provider's name, such as openai/ or hosted_vllm/."),
    ((401,), None, _CHECK_KEY),
    ((402,), None, _TOP_UP),
    ((413,), None, _SHORTEN),
    ((), TOO_LARGE, _SHORTEN),
    ((429,), TEMPORARY_QUOTA, _SLOW_DOWN),
    ((), SPENT_QUOTA, _TOP_UP),
    ((403, 429), SPENT_QUOTA_OR_BILLING, _TOP_UP),
    ((), BLOCKED_ACCOUNT, "Ask the provider why the account or the key is blocked, or use another key."),
    ((), MODERATION, "The provider's content filter rejected the prompt. Such answers are counted as refusals."),
    ((403,), r"country|region|territory", _OTHER_COUNTRY),
    ((400,), r"location is not supported", _OTHER_COUNTRY),
    ((403,), None, "Check in the provider's console that the key may use this model."),
    ((), BAD_KEY, _CHECK_KEY),
    ((), UNKNOWN_MODEL, "Check the model's name in `model`, and that the account may use it."),
    ((404, 405), None, "Check the model's name, and that `api_base` ends with /v1, as most servers require."),
    ((429,), None, _SLOW_DOWN),
    ((), CONTEXT_LENGTH, "The text is longer than the model's context: lower `max_tokens`, or use another model."),
    (
        _PARAMETER_REFUSALS,
        r"temperature",
        "Set `temperature = false` in [models.capabilities]: the model accepts only its default.",
    ),
    (
        _PARAMETER_REFUSALS,
        r"response_?format|json_schema|structured output|json mode|response_?schema|output_config|grammar",
        "Set `form` in [models.capabilities] to json_object, tool or text: the server rejects the current form.",
    ),
    (
        _PARAMETER_REFUSALS,
        r"(?<!reasoning\.)max_tokens|max_completion_tokens|max_output_tokens",
        "Set `token_limit_param` in [models.capabilities] to the name that the server accepts, or lower `max_tokens`.",
    ),
    (
        _PARAMETER_REFUSALS,
        r"unsupported (?:parameter|value)|does ?n[o']t support|not supported|unknown (?:parameter|field|name)"
        r"|unrecognized (?:request )?argument|extra inputs|unexpected keyword|not permitted",
        "Remove the parameter from the model's `params`, or list it under [models.capabilities].",
    ),
    (
        (_NO_RESPONSE,),
        r"certificate|sslerror|\btls\b",
        "The server's certificate is not trusted: check `api_base`, or set SSL_CERT_FILE to a file with its "
        "certificate authority.",
    ),
    (
        (_NO_RESPONSE,),
        r"name or service not known|nodename|name resolution|getaddrinfo|no address associated",
        "The server's name is unknown: check the host in `api_base`, and the network.",
    ),
    (
        (),
        r"^no answer came before limits\.deadline_s",
        "Raise limits.deadline_s, the time for one call with its retries, or lower `concurrency`.",
    ),
    ((), r"time ?out|timed out|time limit|no answer in time", "Raise the model's `timeout_s`, or lower `concurrency`."),
    (
        (_NO_RESPONSE,),
        r"wrong.version.number|record layer failure",
        "The server answers without encryption: write http:// instead of https:// in `api_base`.",
    ),
    ((_NO_RESPONSE,), r"connect|unreachable|network", "Check that the server runs and that `api_base` is right."),
    (_SERVER_ERRORS, None, "The server failed: run the audit again later, or check the server's log."),
)
KNOWN_FIXES = tuple(
    KnownFix(frozenset(statuses), None if words is None else re.compile(words, re.IGNORECASE), fix)
    for statuses, words, fix in _FIX_TABLE
)


def how_to_fix(status: int | None, text: str | None) -> str:
    """How to fix a failure with this HTTP status (None: no response) and message; empty if no fix is known."""
    return next(
        (
            known.fix
            for known in KNOWN_FIXES
            if (not known.statuses or (status or _NO_RESPONSE) in known.statuses)
            and (known.words is None or known.words.search(text or ""))
        ),
        "",
    )
