"""The forms of the questions of the probe `logic`: which prompt and schema a question has."""

from __future__ import annotations

from auditor.config.base import PromptForm
from auditor.probes.logic.answer_schemas import (
    BinaryPreference,
    Preference,
    ReasonedBinaryPreference,
    ReasonedPreference,
)
from auditor.probes.logic.settings import LogicProbe

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
