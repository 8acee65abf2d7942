"""Which questions are put about which pairs, word for word, and what an answer says."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from auditor.agents.sentence_pairs import letters_apart
from auditor.config import AuditConfig, LogicProbe, ModelSection
from auditor.domain import (
    Answer,
    Call,
    Choice,
    Comparison,
    ItemSet,
    Measure,
    Message,
    Outcome,
    Purpose,
    Relation,
    derive_seed,
)
from auditor.models.logprobs import params_of
from auditor.models.structured import Preference, ReasonedPreference, read
from auditor.prompts import fill, load_prompt
from auditor.prompts.comparison_wording import load_comparing

PLAIN_LENGTH = 160
"""Longer items, and those of several lines, stand between marker lines."""


class Pair(NamedTuple):
    """Two items of a set, by position; `repeated`: whether it is among those that show self-agreement."""

    of: int
    first: int
    second: int
    repeated: bool


class Question(NamedTuple):
    """One question about a pair: `first` is shown as A."""

    of: int
    first: int
    second: int
    relation: Relation = Relation.STANDARD
    paraphrase: int = 0
    sample: int = 0


def pairs_of(sets: Sequence[ItemSet], probe: LogicProbe, seed: int) -> list[Pair]:
    """The pairs that are asked about, set by set, each in the order it is shown in first.

    That order is drawn, so that an item's place in its set says nothing.
    """
    return [pair for of, one in enumerate(sets) for pair in _pairs(of, one, probe, seed)]


def _pairs(of: int, one: ItemSet, probe: LogicProbe, seed: int) -> list[Pair]:
    rng = np.random.default_rng(derive_seed(seed, "logic", "pairs", one.context))
    first, second = np.triu_indices(len(one.items), 1)
    order = rng.permutation(len(first))
    kept = np.sort(order if probe.max_pairs is None else order[: probe.max_pairs])
    repeated = set(rng.permutation(kept)[: probe.sampled_pairs].tolist()) if probe.samples else set()
    turned = rng.random(len(first)) < 0.5
    return [
        Pair(of, int(second[p]), int(first[p]), p in repeated)
        if turned[p]
        else Pair(of, int(first[p]), int(second[p]), p in repeated)
        for p in kept.tolist()
    ]


def questions_on(pair: Pair, probe: LogicProbe) -> Iterator[Question]:
    """All questions about a pair to one judge."""
    shown = [(pair.first, pair.second)]
    if probe.both_orders:
        shown.append((pair.second, pair.first))
    relations = [Relation.STANDARD, Relation.NEGATED] if probe.negated else [Relation.STANDARD]
    for paraphrase in range(probe.paraphrases):
        for first, second in shown:
            for relation in relations:
                yield Question(pair.of, first, second, relation, paraphrase)
        repeats = probe.samples if pair.repeated and probe.answer == "structured" else 0
        for sample in range(1, repeats + 1):
            yield Question(pair.of, pair.first, pair.second, Relation.STANDARD, paraphrase, sample)


def comparison_call(
    config: AuditConfig, probe: LogicProbe, judge: ModelSection, one: ItemSet, question: Question
) -> Call:
    """One question to one judge; its seed does not depend on the judge, so that renaming one changes no call."""
    if probe.answer == "probability":
        return _letter_call(judge, one, question)
    template = "logic.cot" if probe.cot else "logic.structured"
    words = {"max_words": str(probe.max_words)} if probe.cot else {}
    messages = _messages(template, judge.system, one, question, words)
    seed = derive_seed(config.seed, "logic", one.context, question.relation, question.paraphrase, question.sample)
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


def _letter_call(judge: ModelSection, one: ItemSet, question: Question) -> Call:
    """The same question, answered by how probable either letter is as the next token."""
    return Call(
        name=judge.name,
        model=judge.model,
        server=judge.api_base,
        messages=_messages("logic.letter", judge.system, one, question, {}),
        purpose=Purpose.LOGIC,
        params={**params_of(Measure.CHOICE), **judge.params},
        measure=Measure.CHOICE,
    )


def question_messages(one: ItemSet, first: int, second: int, relation: Relation) -> tuple[Message, ...]:
    """A question in its first wording, as any judge without a system text of its own is asked it."""
    return _messages("logic.structured", None, one, Question(0, first, second, relation), {})


def _messages(
    template: str, preamble: str | None, one: ItemSet, question: Question, words: dict[str, str]
) -> tuple[Message, ...]:
    return load_prompt(template, one.language).render(
        preamble=preamble,
        first=_shown(one.items[question.first].text),
        second=_shown(one.items[question.second].text),
        **asked(one, question.relation, question.paraphrase),
        **words,
    )


def asked(one: ItemSet, relation: Relation, paraphrase: int = 0) -> dict[str, str]:
    """What a set's items have in common, as a line, and the question, in the set's language."""
    found = load_comparing(one.language)
    criterion = found.criteria[one.criterion]
    what = criterion.standard if relation is Relation.STANDARD else criterion.negated
    return {
        "context": fill(criterion.context, {"context": _shown(one.text)}) + "\n" if one.text else "",
        "question": fill(found.frames[paraphrase], {"what": what}),
    }


def _shown(text: str) -> str:
    if len(text) <= PLAIN_LENGTH and "\n" not in text:
        return text
    digest = hashlib.sha256(text.encode()).hexdigest()
    while (fence := f"=== {digest[:12]} ===") in text:
        digest = hashlib.sha256(digest.encode()).hexdigest()
    return f"\n{fence}\n{text}\n{fence}"


def read_comparison(
    answer: Answer, judge: str, one: ItemSet, question: Question, *, letters: bool = False
) -> Comparison:
    """What a judge's answer says; a failed one says nothing, and why.

    Args:
        answer: what came back.
        judge: who was asked.
        one, question: what was asked.
        letters: whether the answer is the probabilities of the next token (P(i ≻ j) of Algorithm 1).
    """
    outcome, decision, probability = answer.outcome, None, None
    if outcome is Outcome.OK and letters:
        apart = letters_apart(answer.text or "[]")
        # Without either letter among the likeliest tokens its probability is small, but unknown.
        outcome = Outcome.NOT_MEASURABLE if apart is None else Outcome.OK
        if apart is not None:
            probability = 1 / (1 + math.exp(-apart))
            decision = Choice.FIRST if probability > 0.5 else Choice.SECOND if probability < 0.5 else Choice.TIE
    elif outcome is Outcome.OK:
        decision = _decision(answer.text or "")
        outcome = Outcome.OK if decision else Outcome.UNPARSED
    return Comparison(
        judge=judge,
        context=one.context,
        item_a=one.items[question.first].id,
        item_b=one.items[question.second].id,
        relation=question.relation,
        paraphrase=question.paraphrase,
        sample=question.sample,
        outcome=outcome,
        decision=decision,
        probability=probability,
        key=answer.key,
    )


def _decision(text: str) -> Choice | None:
    """The choice in an answer, with its reasoning or without: a judge may leave out what it was asked for."""
    plain, reasoned = read(Preference, text), read(ReasonedPreference, text)
    if isinstance(plain, Preference):
        return Choice(plain.answer)
    return Choice(reasoned.answer) if isinstance(reasoned, ReasonedPreference) else None
