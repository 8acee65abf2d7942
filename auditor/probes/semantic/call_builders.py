"""The calls of the probe `semantic`, and the schemas of their answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from pydantic import FailFast

from auditor.agents.call_builders import build_call, effective_temperature, fence_line
from auditor.agents.localization import country_name
from auditor.config import AuditConfig, ModelSection
from auditor.config.base import Structure
from auditor.domain import ENGLISH, LANGUAGES, Call, Message, Purpose, derive_seed
from auditor.models.answer_schemas import text_field
from auditor.probes.semantic.records import (
    CONSISTENCY_PURPOSE,
    MORAL_PURPOSE,
    PARAPHRASE_PURPOSE,
    RULE_PURPOSE,
    TRANSLATION_PURPOSE,
    MoralQuestion,
)
from auditor.probes.semantic.settings import SemanticProbe
from auditor.prompts import load_prompt
from auditor.text_safety import truncate_middle


class MoralAnswer(Structure):
    """An answer to a moral question."""

    answer: Annotated[str, text_field("What is right, and why.")]


class OpenAnswer(MoralAnswer):
    """An answer to a question."""

    answer: Annotated[str, text_field("The answer, and why.")]


class RuleOfThumb(Structure):
    """The rule that an answer follows."""

    rule: Annotated[str, text_field("A judgment and an action, in one sentence.")]


class Choice(Structure):
    """Which of several answers is right, by number from 1, and why."""

    reason: Annotated[str, text_field("The right answer and why it is right.")]
    choice: int


class Paraphrases(Structure):
    """Other wordings of a question."""

    paraphrases: Annotated[list[str], FailFast()]


class Support(Structure):
    """Whether an answer is supported by another."""

    reason: Annotated[str, text_field("Why, in one sentence.")]
    supported: bool


class Contradiction(Structure):
    """Whether two answers contradict each other."""

    reason: Annotated[str, text_field("Why, in one sentence.")]
    contradict: bool


SCHEMAS: tuple[type[Structure], ...] = (
    *(MoralAnswer, OpenAnswer, RuleOfThumb, Choice, Paraphrases, Support, Contradiction),
)


PAPER_JUDGE_TEMPERATURE, PAPER_JUDGE_TOKENS = 0.5, 50
"""Of the judge of the consistency score, as published."""
PARAPHRASE_TEMPERATURE = 1.0
MAX_PARAPHRASE_WORDS = 40


def asked_text(text: str, country: str, language: str = ENGLISH) -> str:
    """A wording as the prompts show it: followed by the country that its question is about, if there is one.

    Args:
        language: of the wording, in which the country is named; in English where the program has no texts in it.
    """
    if not country:
        return text
    prompt = load_prompt("semantic.country", find_country_language(language))
    return prompt.render(question=text, country=country_name(country, prompt.language))[-1].content


def find_country_language(language: str) -> str:
    """The language in which the country of a wording in `language` is named."""
    return language if language in LANGUAGES else ENGLISH


def build_answer_call(
    config: AuditConfig,
    model: ModelSection,
    question: str,
    *,
    sample: int = 0,
    temperature: float | None = None,
    rule: str | None = None,
) -> Call:
    """Build the call that asks a model one wording, optionally with a rule of thumb to follow.

    Args:
        question: text of the wording (`asked_text`).
        sample: index of the sample among repeats.
        temperature: overrides the temperatures of the probe and of the model.
        rule: rule of thumb to follow.
    """
    probe = semantic_probe(config)
    template = f"semantic.answer{probe.prompt_suffix}" if rule is None else "semantic.follow"
    schema = OpenAnswer if probe.prompt_suffix else MoralAnswer
    fields = {
        "question": question,
        "max_words": str(probe.max_words),
        **({} if rule is None else {"rule": truncate_shown_text(config, rule)}),
    }
    return _build_call(
        config,
        model,
        MORAL_PURPOSE,
        load_prompt(f"{template}.{probe.mode}").render(preamble=model.system, **fields),
        temperature=effective_temperature(model, probe.temperature) if temperature is None else temperature,
        max_tokens=probe.max_tokens,
        schema=schema if probe.mode == "structured" else None,
        max_words=probe.max_words,
        sample=sample,
    )


def build_choice_call(config: AuditConfig, model: ModelSection, question: str, choices: Sequence[str]) -> Call:
    """Build the call that asks which of several answers to a wording is right, and why."""
    probe = semantic_probe(config)
    numbered_choices = "\n".join(
        f"{number}. {truncate_shown_text(config, choice)}" for number, choice in enumerate(choices, 1)
    )
    messages = load_prompt("semantic.choice").render(
        preamble=model.system, question=question, choices=numbered_choices, max_words=str(probe.max_words)
    )
    return _build_call(
        config,
        model,
        MORAL_PURPOSE,
        messages,
        temperature=effective_temperature(model, probe.temperature),
        max_tokens=probe.max_tokens,
        schema=Choice,
        max_words=probe.max_words,
    )


def build_rule_call(config: AuditConfig, model: ModelSection, question: str, answer: str) -> Call:
    """Build the call that asks for the rule of thumb behind an answer.

    Args:
        question, answer: text of the wording, and of the answer to it.
    """
    probe = semantic_probe(config)
    messages = load_prompt(f"semantic.rule.{probe.mode}").render(
        preamble=model.system,
        question=question,
        answer=truncate_shown_text(config, answer),
        max_words=str(probe.rot_words),
    )
    return _build_call(
        config,
        model,
        RULE_PURPOSE,
        messages,
        temperature=0.0,
        max_tokens=probe.max_tokens,
        schema=RuleOfThumb if probe.mode == "structured" else None,
        max_words=probe.rot_words,
    )


def build_paraphrase_call(
    config: AuditConfig, model: ModelSection, question: MoralQuestion, count: int, attempt: int
) -> Call:
    """Build the call that asks for `count` paraphrases of a question; `attempt` numbers repeated calls, from 0."""
    max_words = max(MAX_PARAPHRASE_WORDS, len(question.text.split()))
    messages = load_prompt("semantic.paraphrase").render(
        preamble=model.system, question=question.text, count=str(count)
    )
    return _build_call(
        config,
        model,
        PARAPHRASE_PURPOSE,
        messages,
        temperature=PARAPHRASE_TEMPERATURE,
        # Two tokens for each word of the longest paraphrases; languages without spaces are counted by characters.
        max_tokens=max(300, count * max(2 * max_words, len(question.text) // 3)),
        schema=Paraphrases,
        max_words=max_words,
        sample=attempt,
    )


def build_translation_call(config: AuditConfig, translator: ModelSection, text: str, language: str) -> Call:
    """Build the call that asks for a translation of an answer; `language` is an ISO 639-1 code."""
    probe, text = semantic_probe(config), truncate_shown_text(config, text)
    messages = load_prompt("semantic.translate").render(
        preamble=translator.system, language=language, text=text, fence=fence_line(text, config.seed, language)
    )
    return _build_call(
        config,
        translator,
        TRANSLATION_PURPOSE,
        messages,
        temperature=0.0,
        max_tokens=probe.max_tokens,
        schema=OpenAnswer,
        max_words=probe.max_words,
    )


def build_pair_call(
    config: AuditConfig, judge: ModelSection, purpose: Purpose, question: str, first: str, second: str
) -> Call:
    """Build the call that asks a judge whether the first answer supports the second, or whether they contradict.

    Args:
        purpose: `CONSISTENCY_PURPOSE` asks for support, `CONTRADICTION_PURPOSE` for contradiction.
        question: text of the original question.
        first, second: texts of the two answers.
    """
    first, second = truncate_shown_text(config, first), truncate_shown_text(config, second)
    if is_paper_form(config, purpose):
        return build_call(
            judge,
            purpose,
            load_prompt("semantic.consistency.paper").render(preamble=judge.system, first=first, second=second),
            temperature=PAPER_JUDGE_TEMPERATURE,
            max_tokens=PAPER_JUDGE_TOKENS,
            seed=derive_seed(config.seed, purpose.value, question, first, second),
        )
    structure = Support if purpose is CONSISTENCY_PURPOSE else Contradiction
    fence = fence_line(first + second, config.seed, question)
    messages = load_prompt(f"semantic.{purpose.value}{semantic_probe(config).prompt_suffix}").render(
        preamble=judge.system, question=question, first=first, second=second, fence=fence
    )
    return _build_call(
        config, judge, purpose, messages, temperature=0.0, max_tokens=200, schema=structure, max_words=40
    )


def is_paper_form(config: AuditConfig, purpose: Purpose) -> bool:
    """Whether the judge is asked in the published form of the consistency score, and answers yes or no."""
    section = semantic_probe(config).consistency
    return purpose is CONSISTENCY_PURPOSE and section is not None and section.form == "paper"


def truncate_shown_text(config: AuditConfig, text: str) -> str:
    """Cut a model's text that is shown to another model to `probes.review.max_trace_chars`."""
    return truncate_middle(text, config.probes.review.max_trace_chars)


def semantic_probe(config: AuditConfig) -> SemanticProbe:
    """The configured probe, or its defaults if it is not configured, as in an experiment."""
    return config.probes.find(SemanticProbe) or SemanticProbe()


def _build_call(
    config: AuditConfig,
    model: ModelSection,
    purpose: Purpose,
    messages: tuple[Message, ...],
    *,
    temperature: float,
    max_tokens: int,
    schema: type[Structure] | None,
    max_words: int,
    sample: int = 0,
) -> Call:
    """Build a call of the probe; its seed depends on the question.

    Args:
        schema: schema of the structured answer; None for free text.
        max_words: maximum length of each text in a structured answer.
        sample: index of the call among equal ones, from 0.
    """
    return build_call(
        model,
        purpose,
        messages,
        temperature=temperature,
        max_tokens=max_tokens,
        seed=derive_seed(config.seed, purpose.value, messages[-1].content, sample),
        sample=sample,
        schema=schema.__name__ if schema else None,
        max_words=max_words,
    )
