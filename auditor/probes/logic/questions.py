"""Questions of the probe `logic`: wordings, forms, pairs, calls, how many are planned, and reading the answers."""

from __future__ import annotations

import functools
import hashlib
import itertools
import math
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, field_validator

from auditor.agents.call_builders import build_call, build_logprob_call, effective_temperature
from auditor.agents.refusals import find_outcome_without_structure, refuses_in_reasons
from auditor.agents.run_context import OfflineClient, RunContext
from auditor.agents.sentence_pairs import letter_logprob_difference
from auditor.config import AuditConfig, ModelSection
from auditor.config.base import PromptForm, Structure
from auditor.cost_estimation.planned_calls import MAX_EXAMPLES, PlannedCalls
from auditor.domain import (
    ENGLISH,
    Answer,
    Call,
    Cell,
    ComparisonChoice,
    LogprobMeasure,
    Message,
    Outcome,
    Survey,
    derive_seed,
)
from auditor.metrics.logic.consistency import TIE_TOLERANCE
from auditor.models.answer_schemas import normalize_case, text_field
from auditor.models.structured_reading import parse_structured_answer, read_structured_answer
from auditor.probes.logic.comparisons import LOGIC_PURPOSE, Comparison, ItemSet, Relation
from auditor.probes.logic.item_sets import build_item_sets
from auditor.probes.logic.settings import LogicProbe
from auditor.prompts import Prompt, fill_placeholders, load_prompt
from auditor.reports.data.cost import ForecastRange


class Preference(Structure):
    """Which of two items, or neither."""

    answer: Literal["A", "B", "TIE"]

    _normalize_answer = field_validator("answer", mode="before")(normalize_case)


class ReasonedPreference(Structure):
    """Which of two items, after a chain of thought."""

    reasoning: Annotated[str, text_field("Step-by-step reasoning.")]
    answer: Literal["A", "B", "TIE"]

    _normalize_answer = field_validator("answer", mode="before")(normalize_case)


class BinaryPreference(Structure):
    """Which of two items."""

    answer: Literal["A", "B"]

    _normalize_answer = field_validator("answer", mode="before")(normalize_case)


class ReasonedBinaryPreference(Structure):
    """Which of two items, after a chain of thought."""

    reasoning: Annotated[str, text_field("Step-by-step reasoning.")]
    answer: Literal["A", "B"]

    _normalize_answer = field_validator("answer", mode="before")(normalize_case)


SCHEMAS: tuple[type[Structure], ...] = (Preference, ReasonedPreference, BinaryPreference, ReasonedBinaryPreference)


N_WORDINGS = 10


class Criterion(BaseModel):
    """A criterion of comparison.

    Attributes:
        context: sentence about what the items have in common, with the placeholder `{context}`.
        standard, negated: the criterion in the two forms of the question ("more …", "less …").
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    context: str
    standard: str
    negated: str


class ComparisonWording(BaseModel):
    """One language's texts: `frames` are questions with the placeholder `{what}` for the criterion."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    frames: Annotated[list[str], Field(min_length=N_WORDINGS, max_length=N_WORDINGS)]
    criteria: Mapping[str, Criterion]


@functools.cache
def load_comparison_wording(language: str) -> ComparisonWording:
    """Load the comparison texts of a language."""
    file = resources.files("auditor.prompts") / language / "logic.toml"
    return ComparisonWording.model_validate(tomllib.loads(file.read_text(encoding="utf-8")))


@functools.cache
def load_english_criteria() -> Mapping[str, Criterion]:
    """Load the criteria that exist in English only, by name."""
    file = resources.files("auditor.prompts") / ENGLISH / "logic.criteria.toml"
    criteria = tomllib.loads(file.read_text(encoding="utf-8"))["criteria"]
    return {name: Criterion.model_validate(texts) for name, texts in criteria.items()}


def find_criterion(name: str, language: str) -> Criterion:
    """Find the texts of a criterion; those of a criterion without other languages are English."""
    return load_comparison_wording(language).criteria.get(name) or load_english_criteria()[name]


AnswerSchema = type[Preference | ReasonedPreference | BinaryPreference | ReasonedBinaryPreference]

_SCHEMAS: dict[tuple[PromptForm, bool], AnswerSchema] = {
    ("standard", False): Preference,
    ("standard", True): ReasonedPreference,
    ("paper", False): BinaryPreference,
    ("paper", True): ReasonedBinaryPreference,
}
"""By the form of the prompt, and by whether the judge reasons first."""


def answer_schema(probe: LogicProbe, *, is_reasoned: bool) -> AnswerSchema:
    """Schema of an answer in JSON, with or without reasoning."""
    return _SCHEMAS[probe.form, is_reasoned]


def repeats_questions(probe: LogicProbe) -> bool:
    """Whether questions are repeated: a letter's probability would not differ between repeats."""
    return probe.samples > 0 and (probe.answer == "structured" or probe.sample_answer == "cot")


def asks_for_letter(probe: LogicProbe, sample: int) -> bool:
    """Whether a question is answered by the probabilities of letters.

    Args:
        sample: 0 for the first answer, from 1 for repeats.
    """
    return probe.answer == "probability" and (sample == 0 or probe.sample_answer == "same")


def asks_for_reasoning(probe: LogicProbe, sample: int) -> bool:
    """Whether the judge reasons before it answers a question; the argument is that of `asks_for_letter`."""
    return probe.cot or (sample > 0 and probe.sample_answer == "cot")


def find_template(probe: LogicProbe, sample: int) -> str:
    """Name of the prompt of a question; the argument is that of `asks_for_letter`."""
    if asks_for_letter(probe, sample):
        return "logic.letter"
    folder = "logic" if probe.form == "standard" else f"logic.{probe.form}"
    return f"{folder}.{'cot' if asks_for_reasoning(probe, sample) else 'structured'}"


def list_templates(probe: LogicProbe) -> list[str]:
    """Names of the prompts of all questions, without repetition."""
    samples = (0, 1) if repeats_questions(probe) else (0,)
    return list(dict.fromkeys(find_template(probe, sample) for sample in samples))


def list_fingerprint_inputs(config: AuditConfig, languages: Sequence[str]) -> list[object]:
    """What determines the comparisons besides the config: prompts, wording, and the hashes of the files.

    The hash of the file of items is None if they are not from a file. That of people's labels, which are stored with
    the comparisons, is there only with such a file.

    Args:
        config: the audit's configuration.
        languages: codes of the languages that questions may be in.
    """
    probe = config.probes.get(LogicProbe)
    prompts = [load_prompt(template, language) for template in list_templates(probe) for language in languages]
    prompt_texts: list[object] = [
        [prompt.system, prompt.user, load_comparison_wording(prompt.language).model_dump(mode="json")]
        for prompt in prompts
    ]
    if (criterion := load_english_criteria().get(probe.relation)) is not None:
        prompt_texts.append(criterion.model_dump(mode="json"))
    hashes = [_hash_file(Path(file)) for file in (probe.items, probe.people) if file is not None]
    return [prompt_texts, *hashes]


def _hash_file(file: Path) -> str | None:
    """SHA-256 of a file's content; None if there is no such file."""
    return hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() else None


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
        outcome, decision = _parse_decision(probe, answer.text or "", request)
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


def _parse_decision(probe: LogicProbe, text: str, request: str = "") -> tuple[Outcome, ComparisonChoice | None]:
    """Parse the choice from an answer with or without reasoning, which a judge may leave out; None if there is none."""
    choice = parse_structured_answer(answer_schema(probe, is_reasoned=False), text, request)
    if isinstance(choice, str):
        return find_outcome_without_structure(text), None
    reasoned = read_structured_answer(answer_schema(probe, is_reasoned=True), text, request, explains=False).answer
    if reasoned is not None and refuses_in_reasons(reasoned):
        return Outcome.REFUSED, None
    return Outcome.OK, ComparisonChoice(choice.answer)


def plan_logic_calls(config: AuditConfig, survey: Survey, cells: Sequence[Cell]) -> Iterator[PlannedCalls]:
    """Yield the pairwise comparisons of items by each comparing model, apart by the form of the answer.

    All models are asked the same questions.
    """
    probe = config.probes.get(LogicProbe)
    item_sets = build_item_sets(RunContext(config, survey, 0, cells, None, OfflineClient()), probe)  # type: ignore[arg-type]
    pairs = plan_pairs(item_sets, probe, config.seed)
    questions = [question for pair in pairs for question in questions_about(pair, probe)]
    for judge, template in itertools.product(config.models_by_name.values(), list_templates(probe)):
        with_template = [question for question in questions if find_template(probe, question.sample) == template]
        if not with_template:
            continue
        examples = [
            build_comparison_call(config, probe, judge, item_sets[question.set_index], question)
            for question in with_template[:: max(1, len(with_template) // MAX_EXAMPLES)][:MAX_EXAMPLES]
        ]
        words = probe.max_words if asks_for_reasoning(probe, with_template[0].sample) else 0
        yield PlannedCalls(judge, LOGIC_PURPOSE, ForecastRange.from_bounds(len(with_template)), examples, words)
