"""Questions of the probe `logic`: selecting pairs, building the calls, and parsing the answers."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from auditor.agents.model_call import build_call, build_logprob_call, effective_temperature
from auditor.agents.sentence_pairs import letter_logprob_difference
from auditor.config import AuditConfig, ModelSection
from auditor.domain import Answer, Call, ComparisonChoice, LogprobMeasure, Message, Outcome, derive_seed
from auditor.metrics.preference import TIE_TOLERANCE
from auditor.models.structured_reading import parse_structured_answer
from auditor.probes.logic.comparison_wording import find_criterion, load_comparison_wording
from auditor.probes.logic.comparisons import LOGIC_PURPOSE, Comparison, ItemSet, Relation
from auditor.probes.logic.question_forms import (
    answer_schema,
    asks_for_letter,
    asks_for_reasoning,
    find_template,
    repeats_questions,
)
from auditor.probes.logic.settings import LogicProbe
from auditor.prompts import Prompt, fill_placeholders, load_prompt

MAX_UNFENCED_LENGTH = 160
"""Items that are longer, or have several lines, are put between delimiter lines."""


class ItemPair(NamedTuple):
    """Two items of a set, by position.

    Attributes:
        set_index: position of the set among all sets.
        first, second: positions of the two items in the set, in the order in which they are shown first.
        repeated: whether its questions are repeated to measure self-agreement.
    """

    set_index: int
    first: int
    second: int
    repeated: bool


class LogicQuestion(NamedTuple):
    """One question about a pair.

    Attributes:
        set_index: position of the set among all sets.
        first, second: positions in the set of the items shown as A and as B.
        paraphrase: index of the wording of the question, from 0.
        sample: 0 for the first answer, from 1 for repeats.
    """

    set_index: int
    first: int
    second: int
    relation: Relation = Relation.STANDARD
    paraphrase: int = 0
    sample: int = 0


def plan_pairs(sets: Sequence[ItemSet], probe: LogicProbe, seed: int) -> list[ItemPair]:
    """Select the pairs to compare, set by set, each in the order in which it is shown first.

    That order is random, so that an item's position in its set carries no information.
    """
    return [
        pair for set_index, item_set in enumerate(sets) for pair in _plan_set_pairs(set_index, item_set, probe, seed)
    ]


def _plan_set_pairs(set_index: int, item_set: ItemSet, probe: LogicProbe, seed: int) -> list[ItemPair]:
    """Select one set's pairs at random, the order within each pair, and the pairs to repeat."""
    rng = np.random.default_rng(derive_seed(seed, "logic", "pairs", item_set.context))
    first, second = np.triu_indices(len(item_set.items), 1)  # positions of the two items of every pair
    random_order = rng.permutation(len(first))
    pair_indices = np.sort(random_order if probe.max_pairs is None else random_order[: probe.max_pairs])
    repeated_indices = set(rng.permutation(pair_indices)[: probe.sampled_pairs].tolist()) if probe.samples else set()
    is_swapped = rng.random(len(first)) < 0.5
    return [
        ItemPair(set_index, int(second[index]), int(first[index]), index in repeated_indices)
        if is_swapped[index]
        else ItemPair(set_index, int(first[index]), int(second[index]), index in repeated_indices)
        for index in pair_indices.tolist()
    ]


def questions_about(pair: ItemPair, probe: LogicProbe) -> Iterator[LogicQuestion]:
    """Yield all questions about a pair for one judge."""
    item_orders = [(pair.first, pair.second)]
    if probe.both_orders:
        item_orders.append((pair.second, pair.first))
    relations = [Relation.STANDARD, Relation.NEGATED] if probe.negated else [Relation.STANDARD]
    for paraphrase in range(probe.paraphrases):
        for first, second in item_orders:
            for relation in relations:
                yield LogicQuestion(pair.set_index, first, second, relation, paraphrase)
        n_repeats = probe.samples if pair.repeated and repeats_questions(probe) else 0
        for sample in range(1, n_repeats + 1):
            yield LogicQuestion(pair.set_index, pair.first, pair.second, Relation.STANDARD, paraphrase, sample)


def build_comparison_call(
    config: AuditConfig, probe: LogicProbe, judge: ModelSection, item_set: ItemSet, question: LogicQuestion
) -> Call:
    """Build the call for one question to one judge; the seed is the same for all judges."""
    prompt = load_prompt(find_template(probe, question.sample), item_set.language)
    extra_fields = {"max_words": str(probe.max_words)} if "max_words" in prompt.fields else {}
    messages = _render_messages(prompt, judge.system, item_set, question, extra_fields)
    if asks_for_letter(probe, question.sample):
        # The probability of each letter as the next token.
        return build_logprob_call(judge, LOGIC_PURPOSE, messages, LogprobMeasure.CHOICE)
    is_reasoned = asks_for_reasoning(probe, question.sample)
    # Repeats, from 1, have a temperature of their own.
    temperature = probe.sample_temperature if question.sample else probe.temperature
    return build_call(
        judge,
        LOGIC_PURPOSE,
        messages,
        temperature=effective_temperature(judge, temperature),
        max_tokens=probe.max_tokens,
        seed=derive_seed(
            config.seed, "logic", item_set.context, question.relation, question.paraphrase, question.sample
        ),
        sample=question.sample,
        schema=answer_schema(probe, is_reasoned=is_reasoned).__name__,
        max_words=probe.max_words if is_reasoned else None,
        language=item_set.language,
    )


def render_question(
    item_set: ItemSet, first: int, second: int, relation: Relation, *, as_letter: bool = False
) -> tuple[Message, ...]:
    """Render a question in its first wording, without a judge's system text.

    Args:
        first, second: positions in the set of the items shown as A and as B.
        as_letter: whether a letter is asked for as the answer, instead of JSON.
    """
    prompt = load_prompt("logic.letter" if as_letter else "logic.structured", item_set.language)
    return _render_messages(prompt, None, item_set, LogicQuestion(0, first, second, relation), {})


def _render_messages(
    prompt: Prompt, preamble: str | None, item_set: ItemSet, question: LogicQuestion, extra_fields: dict[str, str]
) -> tuple[Message, ...]:
    """Fill in a prompt with the two items of a question; `preamble` is a judge's own system text."""
    return prompt.render(
        preamble=preamble,
        first=_fence_long_text(item_set.items[question.first].text),
        second=_fence_long_text(item_set.items[question.second].text),
        **comparison_prompt_fields(item_set, question.relation, question.paraphrase),
        **extra_fields,
    )


def comparison_prompt_fields(item_set: ItemSet, relation: Relation, paraphrase: int = 0) -> dict[str, str]:
    """Values for the placeholders `context` (description of the set) and `question`, in the set's language.

    Args:
        paraphrase: index of the wording of the question; its placeholder `what` stands for the criterion of comparison.
    """
    wording = load_comparison_wording(item_set.language)
    criterion = find_criterion(item_set.criterion, item_set.language)
    criterion_text = criterion.standard if relation is Relation.STANDARD else criterion.negated
    return {
        "context": fill_placeholders(criterion.context, {"context": _fence_long_text(item_set.text)}) + "\n"
        if item_set.text
        else "",
        "question": fill_placeholders(wording.frames[paraphrase], {"what": criterion_text}),
    }


def _fence_long_text(text: str) -> str:
    """Put a long or multi-line text between delimiter lines that do not occur in it; a short one stays as it is."""
    if len(text) <= MAX_UNFENCED_LENGTH and "\n" not in text:
        return text
    digest = hashlib.sha256(text.encode()).hexdigest()
    while (fence := f"=== {digest[:12]} ===") in text:
        digest = hashlib.sha256(digest.encode()).hexdigest()
    return f"\n{fence}\n{text}\n{fence}"


def parse_comparison(
    answer: Answer,
    probe: LogicProbe,
    judge: str,
    item_set: ItemSet,
    question: LogicQuestion,
    people: ComparisonChoice | None = None,
    request: str = "",
) -> Comparison:
    """Parse a judge's answer; without a decision if the call failed or the answer is invalid.

    Args:
        answer: the judge's answer.
        probe: how it was asked for.
        judge: name of the judge.
        item_set, question: the set and the question asked.
        people: people's decision on the standard question about these items.
        request: what the judge was asked; an answer that only repeats it does not count.
    """
    outcome, decision, probability = answer.outcome, None, None
    if outcome is Outcome.OK and asks_for_letter(probe, question.sample):
        logprob_difference = letter_logprob_difference(answer.text or "[]")
        # If a letter is not among the most likely tokens, its probability is small but unknown.
        outcome = Outcome.NOT_MEASURABLE if logprob_difference is None else Outcome.OK
        if logprob_difference is not None:
            probability = 1 / (1 + math.exp(-logprob_difference))  # P(i ≻ j) of Algorithm 1
            probability, decision = _decide_by_probability(probability, probe)
    elif outcome is Outcome.OK:
        decision = _parse_decision(probe, answer.text or "", request)
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
        people=people,
        key=answer.key,
    )


def _decide_by_probability(probability: float, probe: LogicProbe) -> tuple[float, ComparisonChoice]:
    """The probability that the item shown first is named, and the decision.

    In the paper's form there is no tie: with equal probabilities, the item shown first is named (Algorithm 1).
    """
    if probe.form == "paper" and abs(probability - 0.5) <= TIE_TOLERANCE:
        return 0.5, ComparisonChoice.FIRST
    if probability == 0.5:
        return probability, ComparisonChoice.TIE
    return probability, ComparisonChoice.FIRST if probability > 0.5 else ComparisonChoice.SECOND


def _parse_decision(probe: LogicProbe, text: str, request: str = "") -> ComparisonChoice | None:
    """Parse the choice from an answer with or without reasoning, which a judge may leave out; None if it is invalid."""
    choice = parse_structured_answer(answer_schema(probe, is_reasoned=False), text, request)
    return None if isinstance(choice, str) else ComparisonChoice(choice.answer)
