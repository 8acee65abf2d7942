"""Reasoning ("thinking"): requesting it, leaving room for it, and separating it from an answer."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple, get_args

from auditor.config.providers import Reasoning, provider_of
from auditor.domain import Answer, Call, Capability, Outcome, ReasoningSettings, TokenLimitParam
from auditor.models import litellm_client


class ThinkingForm(NamedTuple):
    """One form in which a server leaves thinking in the text.

    Attributes:
        first_token: beginning of the first token of thinking, in lower case.
        opening, closing: regular expressions of what stands before and after thinking.
        source: models that write it, and where the form is documented.
    """

    first_token: str
    opening: str
    closing: str
    source: str


def _tags(name: str, source: str) -> ThinkingForm:
    """The form with a pair of tags, such as `<think>` and `</think>`."""
    return ThinkingForm(f"<{name}", rf"<{name}\s?>", rf"</{name}\s?>", source)


_HARMONY_END = r"<\|end\|>|<\|return\|>|<\|call\|>|(?=<\|start\|>|<\|channel\|>)"
_DETAILS_END = r"</details\s?>"
THINKING_FORMS = (
    _tags("think", "DeepSeek, Qwen, GLM, MiniMax M2 and others; docs.vllm.ai, reasoning outputs"),
    _tags("thinking", "prompts after Anthropic's guide; docs.claude.com, chain-of-thought prompting"),
    _tags("thought", "EXAONE Deep, and Gemini by OpenAI's protocol; among Open WebUI's reasoning tags"),
    _tags("reasoning", "models tuned by GRPO to write <reasoning> and <answer>; among Open WebUI's reasoning tags"),
    _tags("reason", "among Open WebUI's reasoning tags"),
    _tags("reflection", "Reflection Llama 3.1 70B; its model card"),
    _tags("scratchpad", "Claude 2 and prompts after its guide; docs.claude.com, let Claude think"),
    _tags("antthinking", "Claude, whose own system prompts use it; claude.ai's system prompt of 2024"),
    _tags("seed:think", "Seed-OSS; vLLM's parser seed_oss"),
    _tags("mm:think", "MiniMax M3; vLLM's parser minimax_m3"),
    _tags("longcat_think", "LongCat; vLLM's parser longcat"),
    ThinkingForm(
        "<details",
        r'<details type="reasoning"[^<>]{0,200}>',
        _DETAILS_END,
        "Open WebUI, in the answers of its server",
    ),
    ThinkingForm(
        "<details",
        r"<details style=[^<>]{0,200}>\s*<summary>\s*Thinking\.\.\.\s*</summary>",
        _DETAILS_END,
        "Dify, in the answers of its applications",
    ),
    ThinkingForm("[think]", r"\[THINK\]", r"\[/THINK\]", "Magistral from 1.1; its model card"),
    ThinkingForm("◁think▷", "◁think▷", "◁/think▷", "Kimi-VL and Kimi-Dev; among Open WebUI's reasoning tags"),
    ThinkingForm(
        "<|channel|>",
        r"(?:<\|start\|>assistant)?<\|channel\|>\s*analysis[^<]{0,200}<\|message\|>",
        _HARMONY_END,
        "gpt-oss; cookbook.openai.com/articles/openai-harmony",
    ),
    ThinkingForm(
        "<|channel>",
        r"<\|channel>\s*thought",
        r"<channel\|>",
        "Gemma 4; vLLM's parser gemma4",
    ),
    ThinkingForm("<unused94>", r"<unused94>\s*thought", r"<unused95>", "MedGemma 1.5; its model card"),
    ThinkingForm(
        "<|start_thinking|>",
        r"<\|START_THINKING\|>",
        r"<\|END_THINKING\|>",
        "Command A Reasoning; vLLM's parser cohere_command",
    ),
    ThinkingForm(
        "<|begin_of_thought|>",
        r"<\|begin_of_thought\|>",
        r"<\|end_of_thought\|>",
        "OpenThinker, Sky-T1, Bespoke-Stratos: their system prompt asks for it; among Open WebUI's reasoning tags",
    ),
    ThinkingForm("<|inner_prefix|>", r"<\|inner_prefix\|>", r"<\|inner_suffix\|>", "Apertus; vLLM's parser apertus"),
    ThinkingForm(
        "<|think:start|>", r"<\|think:start\|>", r"<\|think:end\|>", "Solar Open 2; vLLM's parser solar_open2"
    ),
    ThinkingForm(
        "<|think|>",
        r"<\|think\|>",
        r"<\|end\|>\s*(?:<\|begin\|>assistant\s*)?<\|content\|>",
        "Solar Open; vLLM's parser solar_open",
    ),
)
_OPENING = re.compile("|".join(f"({form.opening})" for form in THINKING_FORMS), re.IGNORECASE)
_CLOSINGS = [re.compile(form.closing, re.IGNORECASE) for form in THINKING_FORMS]
_FINAL_HEADER = (
    r"(?:<\|start\|>assistant)?<\|channel\|>\s*final[^<]{0,200}(?:<\|constrain\|>\s*\w{0,40}\s*)?<\|message\|>"
)
_APRIEL_END = r"\[BEGIN FINAL RESPONSE\]"
"""End of the thinking of Apriel, which begins with words that answers have, too: "Here are my reasoning steps:"."""
_UNOPENED = re.compile(
    "|".join(
        [
            _FINAL_HEADER,
            _APRIEL_END,
            *(form.closing for form in THINKING_FORMS if form.closing not in (_HARMONY_END, _DETAILS_END)),
        ]
    ),
    re.IGNORECASE,
)
"""End of thinking whose beginning was part of the prompt; two closings end other things, too."""
_WITHOUT_TOKENS = re.compile(
    r"\A\s*(?:analysis(?=\S).*?assistantfinal|analysis(?=[A-Z][a-z' ]).*"
    r"|Here(?:'s| is) my thought process:.*?Here(?:'s| is) my response:)",
    re.DOTALL,
)
"""gpt-oss from a server that drops special tokens, also cut off, and Granite 3.2 (vLLM's parser granite)."""

_TOKEN = "|".join(
    (
        r"(?:<\|start\|>assistant)?<\|channel\|>\s*commentary[^<]{0,200}(?:<\|constrain\|>\s*\w{0,40}\s*)?<\|message\|>",
        r"<\|start_header_id\|>assistant<\|end_header_id\|>",
        r"<\|(?:im_start|start|begin)\|>assistant|<\|turn>model|<start_of_turn>model",
        r"<\|[a-z_▁]{1,40}\|>|<｜[^｜<>]{1,40}｜>|</?s>|<eos>|<bos>|<pad>|<end_of_turn>|<turn\|>|\[/?INST\]",
        r"\[END FINAL RESPONSE\]",
        r"</?(?:answer|response|output|final)>",
    )
)
"""Special tokens of chat templates, and tags that some models put around an answer."""
_FIRST_TOKEN = re.compile(rf"\s*(?:{_TOKEN})", re.IGNORECASE)
_LAST_TOKEN = re.compile(rf"(?:{_TOKEN})\s*\Z", re.IGNORECASE)
_NEXT_TURN = re.compile(
    r"(?:<\|im_end\|>|<\|eot_id\|>|<\|end\|>|<end_of_turn>|<turn\|>|</s>)\s*"
    r"(?:<\|im_start\|>|<\|start_header_id\|>|<start_of_turn>|<\|turn>|<\|start\|>|<\|(?=(?:user|system)\|>))(?:user|system)\b",
    re.IGNORECASE,
)
"""Beginning of a turn of the user's, which a model without a stop token writes after its answer."""
_QUOTES = "`\"'“”‘’«»„"
_MAX_TOKENS = 32
"""Chat tokens that are removed from either end of a text."""
_MARKS = "<[◁"
_MARK_START = re.compile(r"<[|/a-z｜]|\[/?(?:THINK|INST)\]|\[(?:BEGIN|END) FINAL|◁", re.IGNORECASE)
_BARE_START = re.compile(r"\s*(?:analysis|Here)", re.IGNORECASE)


def strip_thinking(text: str) -> str:
    """Remove thinking, also if its beginning or its end is missing, and chat tokens at the ends of the text.

    Tags in quotation marks, or within a sentence, are a part of the answer. A text without thinking and chat tokens is
    returned unchanged.
    """
    has_mark = any(mark in text for mark in _MARKS) and _MARK_START.search(text) is not None
    if not has_mark and _BARE_START.match(text) is None:
        return text
    visible_text = _strip_tokens(_remove_thinking(_first_turn(text)))
    return text if visible_text == text else visible_text.strip()


def has_thinking(text: str) -> bool:
    """Whether a text has thinking that `strip_thinking` removes; the header of an answer alone is none."""
    turn = _first_turn(text)
    remaining_text = _remove_thinking(turn)
    if remaining_text == turn or re.fullmatch(_FINAL_HEADER, turn.removesuffix(remaining_text).strip()) is not None:
        return False
    return _count_letters(turn) > _count_letters(remaining_text)  # an empty block has none


def _count_letters(text: str) -> int:
    """Number of letters and digits outside of tags."""
    return sum(map(str.isalnum, _UNOPENED.sub("", _OPENING.sub("", text))))


def _first_turn(text: str) -> str:
    """The text up to a turn of the user's that a model without a stop token writes after its answer."""
    next_turn = _NEXT_TURN.search(text)
    return text if next_turn is None else text[: next_turn.start()]


def _remove_thinking(text: str) -> str:
    """Remove thinking from the text of one turn."""
    text, n_quoted = _remove_blocks(_WITHOUT_TOKENS.sub("", text, count=1))
    closings = _UNOPENED.finditer(text, n_quoted)
    ends = [match.end() for match in closings if not _is_quoted(text, match)]
    return text[ends[-1] :] if ends else text


def _remove_blocks(text: str) -> tuple[str, int]:
    """Remove thinking between its opening and its closing; up to the end of the text if the closing is missing.

    Returns:
        The rest, and the number of its characters up to the end of the last block that it quotes.
    """
    parts: list[str] = []
    n_copied = position = n_quoted = 0
    without_closing: set[int] = set()
    while (opening := _OPENING.search(text, position)) is not None:
        position = opening.end()
        form = (opening.lastindex or 1) - 1
        may_close = form not in without_closing and not _is_quoted(text, opening)
        closing = _find_closing(text, form, position) if may_close else None
        if may_close and closing is None:
            without_closing.add(form)  # none follows later either
        if closing is None and not _is_mention(text, opening):
            closing = _find_other_closing(text, position)
        if closing is not None and _quotes_block(text, opening.start(), closing.end()):
            position = closing.end()
            n_quoted = sum(map(len, parts)) + position - n_copied
        elif closing is not None:
            parts.append(text[n_copied : opening.start()])
            n_copied = position = closing.end()
        elif not _is_mention(text, opening):
            return "".join([*parts, text[n_copied : opening.start()]]), n_quoted
    return "".join([*parts, text[n_copied:]]), n_quoted


def _find_closing(text: str, form: int, position: int) -> re.Match[str] | None:
    """The first closing of a form from a position on that is not in quotation marks."""
    return next((match for match in _CLOSINGS[form].finditer(text, position) if not _is_quoted(text, match)), None)


def _find_other_closing(text: str, position: int) -> re.Match[str] | None:
    """The first closing of any form from a position on, if nothing between them opens; models confuse the forms.

    One between blanks is a mention, as in thinking that is cut off.
    """
    closings = _UNOPENED.finditer(text, position)
    closing = next((match for match in closings if not _is_quoted(text, match)), None)
    if closing is None or _OPENING.search(text, position, closing.start()):
        return None
    is_mention = text[closing.start() - 1] in " \t" and text[closing.end() : closing.end() + 1] in (*" \t,.;:",)
    return None if is_mention else closing


def _is_quoted(text: str, tag: re.Match[str]) -> bool:
    """Whether a tag stands in quotation marks of its own."""
    return _quotes_block(text, tag.start(), tag.end())


def _quotes_block(text: str, start: int, end: int) -> bool:
    """Whether a part of a text stands between quotation marks."""
    return 0 < start < end < len(text) and text[start - 1] in _QUOTES and text[end] in _QUOTES


def _is_mention(text: str, opening: re.Match[str]) -> bool:
    """Whether an opening without a closing is a word of a sentence: quoted, or between spaces on a line."""
    start, end = opening.span()
    if _is_quoted(text, opening):
        return True
    is_within_line = bool(text[text.rfind("\n", 0, start) + 1 : start].strip())
    return is_within_line and text[start - 1] in " (" and text[end : end + 1] in tuple(" .,;:)")


def _strip_tokens(text: str) -> str:
    """Remove chat tokens from both ends of a text."""
    for _ in range(_MAX_TOKENS):
        if (first := _FIRST_TOKEN.match(text)) is None:
            break
        text = text[first.end() :]
    for _ in range(_MAX_TOKENS):
        start = max(text.rfind("<"), text.rfind("["))
        if start < 0 or _LAST_TOKEN.match(text, start) is None:
            break
        text = text[:start]
    return text


def starts_thinking(token: str) -> bool:
    """Whether the first token of a text begins thinking."""
    beginning = token.strip().lower()
    return any(beginning.startswith(form.first_token) for form in THINKING_FORMS)


OUTPUT_LIMIT_PARAMS: tuple[TokenLimitParam, ...] = get_args(TokenLimitParam)
"""OpenAI's names of the limit on output tokens, as a call's parameters have them."""
SENT_OUTPUT_LIMITS = frozenset({"maxtokens", "maxcompletiontokens", "maxoutputtokens", "maxnewtokens", "numpredict"})
"""Providers' names of the limit on output tokens, in lower case without underscores."""
EFFORT_PARAMETERS = frozenset(
    {
        "reasoningeffort",
        "reasoning",
        "reasoningconfig",
        "effort",
        "thinking",
        "thinkingconfig",
        "think",
        "chattemplatekwargs",
    }
)
"""Providers' names of the parameter that requests reasoning, in the same form."""
EFFORT_ROOM_TOKENS: Mapping[str, int] = {
    "minimal": 1024,
    "low": 1024,
    "medium": 2048,
    "high": 4096,
    "xhigh": 8192,
    "max": 16384,
}
"""Tokens of room for each effort if the config sets no `reasoning.max_tokens`.

litellm sends these as the budget of Anthropic's and Gemini's models that take a number of tokens instead of an effort,
and Anthropic refuses a budget that is not below the limit on output tokens.
"""


def add_reasoning(request_kwargs: dict[str, Any], call: Call, capability: Capability) -> dict[str, Any]:
    """Copy litellm's arguments of a request with the reasoning that the call asks for, and with room for thinking.

    Unchanged if the config sets no reasoning and the capability has no room for thinking. Parameters of the config
    (`params`) take precedence over what is added here.
    """
    added = _reasoning_kwargs(call, request_kwargs["model"], capability)
    extra_body = {**added.pop("extra_body", {}), **request_kwargs.get("extra_body", {})}
    request_kwargs = {**added, **request_kwargs, **({"extra_body": extra_body} if extra_body else {})}
    return add_thinking_room(request_kwargs, call, capability)


def add_thinking_room(params: Mapping[str, Any], call: Call, capability: Capability) -> dict[str, Any]:
    """Copy parameters with the room for thinking added to each limit on output tokens."""
    room = thinking_room(call, capability)
    return {
        name: value + room if room and name in OUTPUT_LIMIT_PARAMS and isinstance(value, (int, float)) else value
        for name, value in params.items()
    }


def _reasoning_kwargs(call: Call, model: str, capability: Capability) -> dict[str, Any]:
    """Arguments of litellm's that request the reasoning which a call's config sets; empty if it sets none.

    They may have an `extra_body`, whose fields litellm sends as they are. A setting that the capability lists among the
    dropped parameters, as `reasoning_effort` or `thinking`, is left out.

    Args:
        call: the call.
        model: litellm's name of the model that the request goes to.
        capability: what the model's server accepts.
    """
    settings, provider = call.reasoning, provider_of(model)
    if settings is None or (call.measure is not None and call.measure.needs_completions_endpoint):
        return {}
    effort = None if "reasoning_effort" in capability.dropped_params else settings.effort
    budget = None if "thinking" in capability.dropped_params else settings.max_tokens
    if provider.reasoning is Reasoning.OBJECT:
        return _object_kwargs(effort, budget)
    kwargs: dict[str, Any] = {} if effort is None else _effort_kwargs(model, effort)
    takes_budget = provider.reasoning is Reasoning.BUDGET and litellm_client.translates_param(model, "thinking")
    is_excluded = effort and provider.effort_only_models and provider.effort_only_models.search(model)
    if budget is not None and takes_budget and not is_excluded:
        kwargs["thinking"] = {"type": "enabled", "budget_tokens": budget}
    return kwargs


def _object_kwargs(effort: str | None, budget: int | None) -> dict[str, Any]:
    """Arguments for a budget or an effort, not both, in an object of its own."""
    reasoning = {"max_tokens": budget} if budget is not None else {"effort": effort} if effort is not None else None
    return {} if reasoning is None else {"extra_body": {"reasoning": reasoning}}


def _effort_kwargs(model: str, effort: str) -> dict[str, Any]:
    """Arguments that request an effort: for litellm to translate or, if its table does not list the model, as it is."""
    style = provider_of(model).reasoning
    is_translated = style is not Reasoning.UNTRANSLATED and litellm_client.translates_param(model, "reasoning_effort")
    if is_translated or not litellm_client.speaks_openai(model):
        kwargs: dict[str, Any] = {"reasoning_effort": effort}
        if style is Reasoning.TEMPLATE and effort == "none":
            kwargs["extra_body"] = {"chat_template_kwargs": {"enable_thinking": False}}
        return kwargs
    return {"extra_body": {"reasoning_effort": effort}}


def thinking_room(call: Call, capability: Capability) -> int:
    """Tokens that are added to a call's limit on output tokens, so that thinking does not use up the answer's.

    The config's `reasoning.max_tokens` if set; else the room for the effort, or that of the capability if it is more.
    """
    if call.measure is not None:
        return 0
    settings = call.reasoning or ReasoningSettings()
    if settings.max_tokens is not None:
        return settings.max_tokens
    return max(capability.thinking_tokens, EFFORT_ROOM_TOKENS.get(settings.effort or "", 0))


def output_limit(call: Call, capability: Capability) -> int | None:
    """Highest limit on output tokens that is sent for a call, with the room for thinking; None if it sets none."""
    limits = [value for name in OUTPUT_LIMIT_PARAMS if isinstance(value := call.params.get(name), (int, float))]
    return int(max(limits)) + thinking_room(call, capability) if limits else None


def sent_output_limit(sent: str | None) -> int | None:
    """Limit on output tokens in `Answer.sent`, under whichever name the provider has for it; None if it has none."""
    try:
        parameters = json.loads(sent or "{}")
    except ValueError:
        return None
    return _find_output_limit(parameters) if isinstance(parameters, dict) else None


def _find_output_limit(parameters: Mapping[str, Any]) -> int | None:
    """Highest limit on output tokens among parameters at any depth; None if there is none."""
    limits = [
        value if isinstance(value, int) else _find_output_limit(value)
        for name, value in parameters.items()
        if isinstance(value, dict) or ((name.replace("_", "").lower() in SENT_OUTPUT_LIMITS) and isinstance(value, int))
    ]
    return max((limit for limit in limits if limit is not None), default=None)


def was_cut_by_lower_limit(answer: Answer, call: Call, capability: Capability) -> bool:
    """Whether an answer was truncated by a limit below the present one, so that it is worth asking again.

    False if one of the limits is not known: the same limit would truncate the answer again, and be paid for again.
    """
    previous_limit, present_limit = sent_output_limit(answer.sent), output_limit(call, capability)
    return (
        answer.outcome is Outcome.TRUNCATED
        and previous_limit is not None
        and present_limit is not None
        and previous_limit < present_limit
    )


def is_cut_off_thinking(answer: Answer) -> bool:
    """Whether a model thought until its tokens ran out, so that the same request with a higher limit may be answered.

    That is an answer that was cut off without any text but thinking.
    """
    return answer.outcome is Outcome.TRUNCATED and not strip_thinking(answer.text or "").strip()
