"""Which questions are put about which pairs, word for word, and what an answer says."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from auditor.agents.sentence_pairs import letter_logprob_difference
from auditor.config import AuditConfig, LogicProbe, ModelSection
from auditor.domain import (
    Answer,
    Call,
    Comparison,
    ComparisonChoice,
    ItemSet,
    LogprobMeasure,
    Message,
    Outcome,
    Purpose,
    Relation,
    derive_seed,
)
from auditor.models.logprobs import measure_params
from auditor.models.structured import Preference, ReasonedPreference, parse_structured_answer
from auditor.prompts import fill_placeholders, load_prompt
from auditor.prompts.comparison_wording import load_comparison_wording

MAX_UNFENCED_LENGTH = 160
"""Longer items, and those of several lines, stand between marker lines."""


class ItemPair(NamedTuple):
    """Two items of a set, by position; `repeated`: whether it is among those that show self-agreement."""

    set_index: int
    first: int
    second: int
    repeated: bool


class LogicQuestion(NamedTuple):
    """One question about a pair: `first` is shown as A."""

    set_index: int
    first: int
    second: int
    relation: Relation = Relation.STANDARD
    paraphrase: int = 0
    sample: int = 0


def plan_pairs(sets: Sequence[ItemSet], probe: LogicProbe, seed: int) -> list[ItemPair]:
    """The pairs that are asked about, set by set, each in the order it is shown in first.

    That order is drawn, so that an item's place in its set says nothing.
    """
    return [pair for of, one in enumerate(sets) for pair in _plan_set_pairs(of, one, probe, seed)]


def _plan_set_pairs(set_index: int, item_set: ItemSet, probe: LogicProbe, seed: int) -> list[ItemPair]:
    rng = np.random.default_rng(derive_seed(seed, "logic", "pairs", item_set.context))
    first, second = np.triu_indices(len(item_set.items), 1)
    order = rng.permutation(len(first))
    kept = np.sort(order if probe.max_pairs is None else order[: probe.max_pairs])
    repeated = set(rng.permutation(kept)[: probe.sampled_pairs].tolist()) if probe.samples else set()
    turned = rng.random(len(first)) < 0.5
    return [
        ItemPair(set_index, int(second[p]), int(first[p]), p in repeated)
        if turned[p]
        else ItemPair(set_index, int(first[p]), int(second[p]), p in repeated)
        for p in kept.tolist()
    ]


def questions_about(pair: ItemPair, probe: LogicProbe) -> Iterator[LogicQuestion]:
    """All questions about a pair to one judge."""
    shown = [(pair.first, pair.second)]
    if probe.both_orders:
        shown.append((pair.second, pair.first))
    relations = [Relation.STANDARD, Relation.NEGATED] if probe.negated else [Relation.STANDARD]
    for paraphrase in range(probe.paraphrases):
        for first, second in shown:
            for relation in relations:
                yield LogicQuestion(pair.set_index, first, second, relation, paraphrase)
        repeats = probe.samples if pair.repeated and probe.answer == "structured" else 0
        for sample in range(1, repeats + 1):
            yield LogicQuestion(pair.set_index, pair.first, pair.second, Relation.STANDARD, paraphrase, sample)


def build_comparison_call(
    config: AuditConfig, probe: LogicProbe, judge: ModelSection, item_set: ItemSet, question: LogicQuestion
) -> Call:
    """One question to one judge; its seed does not depend on the judge, so that renaming one changes no call."""
    if probe.answer == "probability":
        return _build_letter_call(judge, item_set, question)
    template = "logic.cot" if probe.cot else "logic.structured"
    words = {"max_words": str(probe.max_words)} if probe.cot else {}
    messages = _render_messages(template, judge.system, item_set, question, words)
    seed = derive_seed(config.seed, "logic", item_set.context, question.relation, question.paraphrase, question.sample)
    chosen = probe.sample_temperature if question.sample else probe.temperature
    temperature = chosen if judge.temperature is None else judge.temperature
    params = {"temperature": temperature, "max_tokens": probe.max_tokens, "seed": seed, **judge.params}
    return Call(
        name=judge.name,
        model=judge.model,
        server=judge.api_base,
        messages=messages,
        purpose=Purpose.LOGIC,
        sample=question.sample,
        params=params,
        schema=(ReasonedPreference if probe.cot else Preference).__name__,
        max_words=probe.max_words if probe.cot else None,
    )


def _build_letter_call(judge: ModelSection, item_set: ItemSet, question: LogicQuestion) -> Call:
    """The same question, answered by how probable either letter is as the next token."""
    return Call(
        name=judge.name,
        model=judge.model,
        server=judge.api_base,
        messages=_render_messages("logic.letter", judge.system, item_set, question, {}),
        purpose=Purpose.LOGIC,
        params={**measure_params(LogprobMeasure.CHOICE), **judge.params},
        measure=LogprobMeasure.CHOICE,
    )


def render_question(item_set: ItemSet, first: int, second: int, relation: Relation) -> tuple[Message, ...]:
    """A question in its first wording, as any judge without a system text of its own is asked it."""
    return _render_messages("logic.structured", None, item_set, LogicQuestion(0, first, second, relation), {})


def _render_messages(
    template: str, preamble: str | None, item_set: ItemSet, question: LogicQuestion, extra_fields: dict[str, str]
) -> tuple[Message, ...]:
    return load_prompt(template, item_set.language).render(
        preamble=preamble,
        first=_fence_long_text(item_set.items[question.first].text),
        second=_fence_long_text(item_set.items[question.second].text),
        **comparison_prompt_fields(item_set, question.relation, question.paraphrase),
        **extra_fields,
    )


def comparison_prompt_fields(item_set: ItemSet, relation: Relation, paraphrase: int = 0) -> dict[str, str]:
    """What a set's items have in common, as a line, and the question, in the set's language."""
    found = load_comparison_wording(item_set.language)
    criterion = found.criteria[item_set.criterion]
    what = criterion.standard if relation is Relation.STANDARD else criterion.negated
    return {
        "context": fill_placeholders(criterion.context, {"context": _fence_long_text(item_set.text)}) + "\n"
        if item_set.text
        else "",
        "question": fill_placeholders(found.frames[paraphrase], {"what": what}),
    }


def _fence_long_text(text: str) -> str:
    if len(text) <= MAX_UNFENCED_LENGTH and "\n" not in text:
        return text
    digest = hashlib.sha256(text.encode()).hexdigest()
    while (fence := f"=== {digest[:12]} ===") in text:
        digest = hashlib.sha256(digest.encode()).hexdigest()
    return f"\n{fence}\n{text}\n{fence}"


def parse_comparison(
    answer: Answer, judge: str, item_set: ItemSet, question: LogicQuestion, *, from_letters: bool = False
) -> Comparison:
    """What a judge's answer says; a failed one says nothing, and why.

    Args:
        answer: what came back.
        judge: who was asked.
        one, question: what was asked.
        letters: whether the answer is the probabilities of the next token (P(i ≻ j) of Algorithm 1).
    """
    outcome, decision, probability = answer.outcome, None, None
    if outcome is Outcome.OK and from_letters:
        apart = letter_logprob_difference(answer.text or "[]")
        # Without either letter among the likeliest tokens its probability is small, but unknown.
        outcome = Outcome.NOT_MEASURABLE if apart is None else Outcome.OK
        if apart is not None:
            probability = 1 / (1 + math.exp(-apart))
            decision = (
                ComparisonChoice.FIRST
                if probability > 0.5
                else ComparisonChoice.SECOND
                if probability < 0.5
                else ComparisonChoice.TIE
            )
    elif outcome is Outcome.OK:
        decision = _parse_decision(answer.text or "")
        outcome = Outcome.OK if decision else Outcome.UNPARSED
    return Comparison(
        judge=judge,
        context=item_set.context,
        item_a=item_set.items[question.first].id,
        item_b=item_set.items[question.second].id,
        relation=question.relation,
        paraphrase=question.paraphrase,
        sample=question.sample,
        outcome=outcome,
        decision=decision,
        probability=probability,
        key=answer.key,
    )


def _parse_decision(text: str) -> ComparisonChoice | None:
    """The choice in an answer, with its reasoning or without: a judge may leave out what it was asked for."""
    plain, reasoned = parse_structured_answer(Preference, text), parse_structured_answer(ReasonedPreference, text)
    if isinstance(plain, Preference):
        return ComparisonChoice(plain.answer)
    return ComparisonChoice(reasoned.answer) if isinstance(reasoned, ReasonedPreference) else None
